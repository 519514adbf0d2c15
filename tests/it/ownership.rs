//! A domain is served only after its owner has proven it, and no owner can take the domain of
//! another.
//!
//! The name server of a test has the records that customers and attackers set.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use serde_json::{Value, json};

use crate::edge::{Edge, Setup};
use crate::http::{Connection, Response, TIMEOUT};
use crate::names::{Manner, Names};
use crate::pebble::{self, Pebble};
use crate::presets::SKILL;
use crate::repository::API;
use crate::tls::connect;

const EDGE: &str = "edge.waypost.localhost";

/// A gateway that asks a name server, with keys of an operator and of two owners.
struct Platform {
    edge: Edge,
    names: Names,
    operator: String,
    acme: String,
    evil: String,
}

/// The shortest waits: a domain is checked every second.
const FAST: &str =
    "retry_seconds: [1], recheck_seconds: 1, check_now_seconds: 1, check_timeout_seconds: 5";

fn key(setup: &Setup, owner: &str, role: &str) -> String {
    let output = setup.run(&["key", "create", "--owner", owner, "--role", role]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl Platform {
    fn start(more: &str) -> Self {
        Self::of(Setup::new(), Names::start(), &format!("{FAST}, {more}"))
    }

    fn of(setup: Setup, names: Names, settings: &str) -> Self {
        let setup = setup
            .conf(
                "verification",
                &format!("{{ {}, {settings} }}", names.resolvers()),
            )
            .conf("admin", "{ triggers_max: 1000000 }");
        let operator = key(&setup, "platform", "operator");
        let acme = key(&setup, "acme", "owner");
        let evil = key(&setup, "evil", "owner");
        let edge = setup.start();
        let platform = Self {
            edge,
            names,
            operator,
            acme,
            evil,
        };
        for owner in ["acme", "evil"] {
            let record = json!({ "owner": owner, "subdomain": owner });
            let path = format!("/v1/sites/{owner}");
            let made = platform.call(&platform.operator, "PUT", &path, Some(&record));
            assert_eq!(made.status, 201, "{}", made.text());
            platform.edge.publish(owner, &[("skill.md", SKILL)]);
        }
        platform
    }

    /// Starts a gateway that orders certificates.
    fn with_authority(names: Names, settings: &str, acme: &str) -> (Self, Pebble) {
        let authority = pebble::Settings::new();
        let base = Setup::new();
        let key = base.path("acme.key").display().to_string();
        let setup = base.conf("listen", &authority.listen()).conf(
            "acme",
            &format!(
                "{{ authorities: [{}], agree_to_terms: true, key_file: {key}, retry_seconds: [1], {acme} }}",
                authority.entry()
            ),
        );
        let pebble = authority.start();
        (Self::of(setup, names, settings), pebble)
    }

    /// Returns whether a client that trusts the authority sees a certificate for a name.
    fn has_certificate(&self, name: &str, client: &Arc<ClientConfig>) -> bool {
        let address: SocketAddr = self.edge.https.unwrap();
        connect(address, name, client).is_ok()
    }

    /// Adds a domain, sets its alias, and waits until it is active. Returns the target.
    #[track_caller]
    fn activate(&self, owner: &str, host: &str) -> String {
        let target = wanted(&self.add(owner, host), "CNAME");
        self.names.alias(host, &target);
        self.wait_for_state(owner, host, "active");
        target
    }

    #[track_caller]
    fn call(&self, key: &str, method: &str, path: &str, content: Option<&Value>) -> Response {
        let text = content.map(Value::to_string).unwrap_or_default();
        let mut connection = Connection::open(self.edge.http);
        let kind = match method {
            "PATCH" => "application/merge-patch+json\r\nIf-Match: *",
            _ => "application/json",
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {API}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        connection.send(request.as_bytes());
        connection.receive(method).unwrap()
    }

    /// Adds a domain to the site of an owner, and returns what the API says about it.
    #[track_caller]
    fn add(&self, owner: &str, host: &str) -> Value {
        let added = self.call(
            self.key(owner),
            "PUT",
            &format!("/v1/sites/{owner}/domains/{host}"),
            None,
        );
        assert!(matches!(added.status, 200 | 201), "{}", added.text());
        added.json()
    }

    /// Removes a domain from the site of an owner.
    #[track_caller]
    fn remove(&self, owner: &str, host: &str) {
        let path = format!("/v1/sites/{owner}/domains/{host}");
        let removed = self.call(self.key(owner), "DELETE", &path, None);
        assert_eq!(removed.status, 204, "{}", removed.text());
    }

    fn key(&self, owner: &str) -> &str {
        match owner {
            "acme" => &self.acme,
            _ => &self.evil,
        }
    }

    fn show(&self, owner: &str, host: &str) -> Value {
        let path = format!("/v1/sites/{owner}/domains/{host}");
        self.call(self.key(owner), "GET", &path, None).json()
    }

    /// Waits until the API says something about a domain.
    #[track_caller]
    fn wait(&self, owner: &str, host: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let since = Instant::now();
        loop {
            let shown = self.show(owner, host);
            if is_so(&shown) {
                return shown;
            }
            assert!(since.elapsed() < 2 * TIMEOUT, "{shown:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn wait_for_state(&self, owner: &str, host: &str, state: &str) -> Value {
        let is_served = matches!(state, "verified" | "active" | "dangling");
        self.wait(owner, host, |shown| {
            // The record has the state a moment before the site is served.
            shown["ownership"]["state"] == state && shown["served"] == is_served
        })
    }

    /// Waits until a sentence about a domain contains a text, and returns that sentence.
    #[track_caller]
    fn wait_for_sentence(&self, owner: &str, host: &str, text: &str) -> String {
        let shown = self.wait(owner, host, |shown| sentences(shown).contains(text));
        sentences(&shown)
    }

    /// Waits until a domain was checked once more, from now on.
    #[track_caller]
    fn wait_for_check(&self, owner: &str, host: &str) -> Value {
        // A check that runs now may have begun before this call; the second one begins after it.
        let mut shown = self.show(owner, host);
        for _ in 0..2 {
            let before = shown["ownership"]["checked_at"].clone();
            shown = self.wait(owner, host, |shown| {
                shown["ownership"]["checked_at"] != before
            });
        }
        shown
    }

    #[track_caller]
    fn is_served(&self, host: &str) -> bool {
        match self.edge.get(host, "/skill.md").status {
            200 => true,
            404 => false,
            status => panic!("{status}"),
        }
    }
}

fn sentences(shown: &Value) -> String {
    let sentences = shown["ownership"]["in_the_way"].as_array();
    let sentences = sentences.into_iter().flatten();
    let sentences: Vec<_> = sentences.filter_map(Value::as_str).collect();
    sentences.join("\n")
}

/// Returns the value of a record that the API asks for.
#[track_caller]
fn wanted(shown: &Value, kind: &str) -> String {
    let records = shown["ownership"]["records"].as_array().unwrap();
    let record = records.iter().find(|record| record["type"] == kind);
    record.unwrap()["value"].as_str().unwrap().to_owned()
}

#[test]
fn an_added_domain_is_served_once_its_alias_names_the_token() {
    let platform = Platform::start("");
    let host = "docs.acme.test";
    let names = &platform.names;
    let added = platform.add("acme", host);
    assert_eq!(added["ownership"]["state"], "pending");
    assert_eq!(added["served"], false);
    let target = wanted(&added, "CNAME");
    assert!(target.ends_with(&format!(".{EDGE}")), "{target}");
    assert!(!platform.is_served(host));
    platform.wait_for_sentence("acme", host, "has neither a CNAME nor an address");
    // The old host of the documentation.
    names.alias(host, "acme.oldhost.test");
    names.addresses("acme.oldhost.test", &["192.0.2.1"]);
    let why = platform.wait_for_sentence("acme", host, "acme.oldhost.test");
    let expected = format!(
        "the CNAME of {host} points at acme.oldhost.test; it should point at {target}; checked "
    );
    assert!(
        why.starts_with(&expected) && why.ends_with(" s ago"),
        "{why}"
    );
    assert!(!platform.is_served(host));
    names.alias(host, &target);
    let shown = platform.wait_for_state("acme", host, "active");
    assert_eq!(
        (&shown["served"], sentences(&shown)),
        (&json!(true), String::new())
    );
    assert!(platform.is_served(host));
    assert!(!platform.is_served("other.acme.test"));
    // Who did it.
    let page = platform
        .call(&platform.acme, "GET", "/v1/audit?project=acme", None)
        .json();
    let last = &page["entries"][0];
    assert_eq!(last["what"], "domain.active");
    assert_eq!(last["who"]["user"], "verification");
    assert_eq!(last["before"]["ownership"], "pending");
    // The state and its reason are kept over a restart; no proof is asked for again.
    platform.names.misbehave(host, Some(Manner::Silent));
    let Platform {
        edge,
        names,
        operator,
        acme,
        evil,
    } = platform;
    edge.signal("KILL");
    let edge = edge.ended().start();
    let platform = Platform {
        edge,
        names,
        operator,
        acme,
        evil,
    };
    assert!(platform.is_served(host));
    // Servers that do not answer take nothing away.
    platform.wait_for_sentence("acme", host, "do not answer in time");
    assert_eq!(platform.show("acme", host)["ownership"]["state"], "active");
    assert!(
        platform
            .edge
            .metric("domain_checks_total{result=\"unanswered\"}")
            > 0.5
    );
}

#[test]
fn an_apex_is_proven_by_its_text_and_leads_here_by_its_addresses() {
    let platform = Platform::start("addresses: [\"192.0.2.7\", \"2001:db8::7\"]");
    let host = "acme.test";
    let names = &platform.names;
    names.addresses(host, &["192.0.2.1"]);
    let added = platform.add("acme", host);
    assert_eq!(
        (wanted(&added, "A"), wanted(&added, "AAAA")),
        ("192.0.2.7".into(), "2001:db8::7".into())
    );
    let text = wanted(&added, "TXT");
    platform.wait_for_sentence(
        "acme",
        host,
        "acme.test leads to 192.0.2.1; create the TXT record",
    );
    // Addresses alone prove nothing.
    names.addresses(host, &["192.0.2.7"]);
    platform.wait_for_sentence(
        "acme",
        host,
        "acme.test leads to 192.0.2.7; create the TXT record",
    );
    assert!(!platform.is_served(host));
    names.text(
        "_waypost-challenge.acme.test",
        &["v=spf1 -all", "waypost=00000000000000000000000000000000"],
    );
    platform.wait_for_sentence("acme", host, &format!("it should be {text}"));
    names.addresses(host, &["192.0.2.1", "192.0.2.7"]);
    names.text("_waypost-challenge.acme.test", &["v=spf1 -all", &text]);
    platform.wait_for_state("acme", host, "verified");
    platform.wait_for_sentence(
        "acme",
        host,
        "acme.test leads to 192.0.2.1, which is not here",
    );
    assert!(platform.is_served(host));
    names.addresses(host, &["192.0.2.7"]);
    platform.wait_for_state("acme", host, "active");
}

#[test]
fn a_domain_without_its_proof_is_served_for_a_while_and_then_not() {
    let platform = Platform::start("dangling_seconds: 4");
    let host = "docs.acme.test";
    let target = platform.activate("acme", host);
    platform.names.remove(host);
    platform.wait_for_state("acme", host, "dangling");
    assert!(platform.is_served(host));
    platform.wait_for_state("acme", host, "quarantined");
    assert!(!platform.is_served(host));
    // The proof is back.
    platform.names.alias(host, &target);
    platform.wait_for_state("acme", host, "active");
    assert!(platform.is_served(host));
}

#[test]
fn a_domain_that_is_removed_and_added_again_is_checked_at_once() {
    // Checks of active domains are far apart.
    let settings = "retry_seconds: [1], check_timeout_seconds: 5";
    let platform = Platform::of(Setup::new(), Names::start(), settings);
    let host = "docs.acme.test";
    let target = platform.activate("acme", host);
    for _ in 0..3 {
        let path = format!("/v1/sites/acme/domains/{host}");
        let removed = platform.call(&platform.acme, "DELETE", &path, None);
        assert_eq!(removed.status, 204);
        let added = platform.add("acme", host);
        assert_eq!(added["ownership"]["state"], "pending");
        // The same owner has the same token, so the record in DNS is right.
        assert_eq!(wanted(&added, "CNAME"), target);
        platform.wait_for_state("acme", host, "active");
    }
}

#[test]
fn nobody_takes_a_domain_of_somebody_else() {
    let platform = Platform::start("dangling_seconds: 3600");
    let names = &platform.names;
    let evil = |host: &str| {
        let path = format!("/v1/sites/evil/domains/{host}");
        platform.call(&platform.evil, "PUT", &path, None)
    };
    // A forgotten alias that leads here, to the token of the other owner or to the edge.
    let host = "docs.acme.test";
    let target = wanted(&platform.add("acme", host), "CNAME");
    names.alias(host, &target);
    let claimed = platform.add("evil", host);
    assert_ne!(wanted(&claimed, "CNAME"), target);
    platform.wait_for_state("acme", host, "active");
    // Both were pending; the first proof has won, and the other one waits for one of its own.
    platform.wait_for_sentence("evil", host, "it should point at");
    assert_eq!(platform.show("evil", host)["served"], false);
    assert!(platform.is_served(host));

    // A proven domain cannot be added at all.
    platform.call(
        &platform.evil,
        "DELETE",
        &format!("/v1/sites/evil/domains/{host}"),
        None,
    );
    let refused = evil(host);
    assert_eq!(refused.status, 409, "{}", refused.text());

    // An alias that leads to the edge, a chain that ends at the right name, and a wildcard.
    for (host, alias) in [
        ("a.victim.test", EDGE.to_owned()),
        ("b.victim.test", format!("acme.{EDGE}")),
    ] {
        names.alias(host, &alias);
        platform.add("evil", host);
        platform.wait_for_check("evil", host);
        assert_eq!(
            platform.show("evil", host)["ownership"]["state"],
            "pending",
            "{host}"
        );
    }
    let chained = wanted(&platform.add("evil", "c.victim.test"), "CNAME");
    names.alias("c.victim.test", "cdn.evil.test");
    names.alias("cdn.evil.test", &chained);
    platform.wait_for_sentence("evil", "c.victim.test", "a chain proves nothing");
    names.alias("*.wild.test", &target);
    platform.add("evil", "x.wild.test");
    platform.wait_for_sentence("evil", "x.wild.test", "is an alias of");

    // The first owner releases the domain and forgets the alias.
    let path = format!("/v1/sites/acme/domains/{host}");
    assert_eq!(
        platform.call(&platform.acme, "DELETE", &path, None).status,
        204
    );
    assert!(!platform.is_served(host));
    let claimed = platform.add("evil", host);
    platform.wait_for_check("evil", host);
    assert_eq!(platform.show("evil", host)["ownership"]["state"], "pending");
    // Within the quarantine a new owner needs the text, which only the owner of the zone can write.
    names.alias(host, &wanted(&claimed, "CNAME"));
    platform.wait_for_sentence(
        "evil",
        host,
        "another owner had docs.acme.test a short time ago",
    );
    assert!(!platform.is_served(host));
    names.text(
        "_waypost-challenge.docs.acme.test",
        &[&wanted(&claimed, "TXT")],
    );
    platform.wait_for_state("evil", host, "active");
    assert!(platform.is_served(host));
}

#[test]
fn the_earlier_text_of_an_owner_proves_nothing_after_another_owner_had_the_domain() {
    let platform = Platform::start("");
    let names = &platform.names;
    let host = "docs.acme.test";
    let text = "_waypost-challenge.docs.acme.test";
    let mut texts = Vec::new();
    for owner in ["evil", "acme"] {
        texts.push(wanted(&platform.add(owner, host), "TXT"));
        // Nobody removes the texts of earlier owners.
        let all: Vec<&str> = texts.iter().map(String::as_str).collect();
        names.text(text, &all);
        platform.wait(owner, host, |shown| shown["served"] == true);
        platform.remove(owner, host);
    }
    let [evil, acme] = [&texts[0], &texts[1]];
    // The owner that had it last has the same token.
    assert_eq!(wanted(&platform.add("acme", host), "TXT"), *acme);
    platform.wait("acme", host, |shown| shown["served"] == true);
    platform.remove("acme", host);
    let claimed = wanted(&platform.add("evil", host), "TXT");
    assert_ne!(claimed, *evil);
    platform.wait_for_check("evil", host);
    assert_eq!(platform.show("evil", host)["ownership"]["state"], "pending");
    assert!(!platform.is_served(host));
    names.text(text, &[evil, acme, &claimed]);
    platform.wait("evil", host, |shown| shown["served"] == true);
}

#[test]
fn an_owner_that_waits_needs_a_new_text_after_another_owner_had_the_domain() {
    let platform = Platform::start("");
    let names = &platform.names;
    let host = "docs.acme.test";
    let evil = wanted(&platform.add("evil", host), "TXT");
    let acme = wanted(&platform.add("acme", host), "TXT");
    names.text("_waypost-challenge.docs.acme.test", &[&acme]);
    platform.wait("acme", host, |shown| shown["served"] == true);
    names.text("_waypost-challenge.docs.acme.test", &[&acme, &evil]);
    platform.remove("acme", host);
    platform.wait_for_check("evil", host);
    let shown = platform.show("evil", host);
    assert_eq!(shown["ownership"]["state"], "pending");
    let fresh = wanted(&shown, "TXT");
    assert_ne!(fresh, evil);
    names.text("_waypost-challenge.docs.acme.test", &[&fresh]);
    platform.wait("evil", host, |shown| shown["served"] == true);
}

#[test]
fn a_site_that_an_operator_gives_to_another_owner_needs_its_proof_and_stays_served() {
    let platform = Platform::start("dangling_seconds: 3600");
    let names = &platform.names;
    let host = "docs.acme.test";
    let target = platform.activate("acme", host);
    let waiting = wanted(&platform.add("acme", "help.acme.test"), "TXT");
    let moved = platform.call(
        &platform.operator,
        "PATCH",
        "/v1/sites/acme",
        Some(&json!({ "owner": "evil" })),
    );
    assert_eq!(moved.status, 200, "{}", moved.text());
    let show = |host: &str| {
        let path = format!("/v1/sites/acme/domains/{host}");
        platform.call(&platform.evil, "GET", &path, None).json()
    };
    let wait = |is_so: &dyn Fn(&Value) -> bool| {
        let since = Instant::now();
        while !is_so(&show(host)) {
            assert!(since.elapsed() < 2 * TIMEOUT, "{:#}", show(host));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // The token of the owner before is not shown, and proves nothing.
    let shown = show(host);
    assert_eq!(shown["ownership"]["state"], "dangling");
    let fresh = wanted(&shown, "CNAME");
    assert_ne!(fresh, target);
    assert_ne!(wanted(&show("help.acme.test"), "TXT"), waiting);
    wait(&|shown| sentences(shown).contains("it should point at"));
    assert_eq!(show(host)["ownership"]["state"], "dangling");
    assert!(platform.is_served(host));
    names.alias(host, &fresh);
    wait(&|shown| shown["ownership"]["state"] == "active");
    // It is another owner's now.
    let refused = platform.call(
        &platform.acme,
        "GET",
        &format!("/v1/sites/acme/domains/{host}"),
        None,
    );
    assert_eq!(refused.status, 404, "{}", refused.text());
}

#[test]
fn a_domain_whose_proof_is_gone_goes_to_the_next_who_proves_it() {
    let platform = Platform::start("dangling_seconds: 3600");
    let names = &platform.names;
    let host = "docs.acme.test";
    names.alias(host, &wanted(&platform.add("acme", host), "CNAME"));
    platform.wait_for_state("acme", host, "active");
    names.remove(host);
    platform.wait_for_state("acme", host, "dangling");
    let claimed = platform.add("evil", host);
    platform.wait_for_check("evil", host);
    assert_eq!(platform.show("acme", host)["served"], true);
    names.text(
        "_waypost-challenge.docs.acme.test",
        &[&wanted(&claimed, "TXT")],
    );
    platform.wait("evil", host, |shown| shown["served"] == true);
    assert_eq!(
        platform.show("acme", host)["ownership"]["state"],
        "quarantined"
    );
    assert_eq!(platform.show("acme", host)["served"], false);
}

#[test]
fn a_name_below_a_domain_of_another_owner_needs_that_owner() {
    let platform = Platform::start("");
    let names = &platform.names;
    let text = wanted(&platform.add("acme", "acme.test"), "TXT");
    names.text("_waypost-challenge.acme.test", &[&text]);
    platform.wait("acme", "acme.test", |shown| shown["served"] == true);
    let host = "docs.acme.test";
    let claimed = platform.add("evil", host);
    let own = wanted(&claimed, "TXT");
    names.alias(host, &wanted(&claimed, "CNAME"));
    platform.wait_for_sentence(
        "evil",
        host,
        "acme.test belongs to another owner on this service",
    );
    assert!(!platform.is_served(host));
    names.text("_waypost-challenge.acme.test", &[&text, &own]);
    platform.wait_for_state("evil", host, "active");
    // The owner itself needs no agreement.
    let below = wanted(&platform.add("acme", "help.acme.test"), "CNAME");
    names.alias("help.acme.test", &below);
    platform.wait_for_state("acme", "help.acme.test", "active");
}

#[test]
fn names_that_nobody_can_own_are_refused() {
    let platform = Platform::start("edge_domain: edge.other-zone.com");
    for (host, why) in [
        ("edge.other-zone.com", "names of the edge"),
        ("a.edge.other-zone.com", "names of the edge"),
        ("docs.acme.alt", "reserved"),
        ("a-.acme.test", "begins or ends with a hyphen"),
        ("docs_one.acme.test", "has an underscore"),
        ("xn--a.acme.test", "is no name of IDNA"),
        ("m%C3%BCnchen.test", "use xn--mnchen-3ya.test"),
        ("evil.waypost.localhost", "default subdomains"),
        (API, "host of the admin API"),
        ("docs.localhost", "reserved"),
        ("co.uk", "public suffix"),
        ("127.0.0.1", "IP address"),
        ("_waypost-challenge.acme.test", "begins with _"),
    ] {
        let path = format!("/v1/sites/evil/domains/{host}");
        let refused = platform.call(&platform.evil, "PUT", &path, None);
        assert_eq!(refused.status, 422, "{host}: {}", refused.text());
        assert!(refused.text().contains(why), "{}", refused.text());
        // The operator's key is no proof either.
        let path = format!("/v1/sites/acme/domains/{host}");
        assert_eq!(
            platform.call(&platform.operator, "PUT", &path, None).status,
            422
        );
    }
    // A domain that the operator adds by a call is pending too; a record in a file is its word.
    let path = "/v1/sites/acme/domains/docs.acme.test";
    let added = platform.call(&platform.operator, "PUT", path, None).json();
    assert_eq!(added["ownership"]["state"], "pending");
    platform
        .edge
        .write_site("filed", "domains: [docs.filed.test]");
    platform.edge.publish("filed", &[("skill.md", SKILL)]);
    assert!(platform.is_served("docs.filed.test"));
    // But no record can have a name of the edge.
    let record = "domains: [docs.wrong.test, a.edge.other-zone.com]";
    platform.edge.setup.write_site("wrong", record);
    platform.edge.wait_for_log(|line| {
        let text = line["message"].as_str().unwrap_or_default();
        text.contains("a.edge.other-zone.com") && text.contains("names of the edge")
    });
}

#[test]
fn name_servers_that_misbehave_are_named_and_delay_nobody() {
    let platform = Platform::start("parallel_max: 4, parallel_owner_max: 2");
    let names = &platform.names;
    for (host, manner, why) in [
        ("silent.evil.test", Manner::Silent, "do not answer in time"),
        (
            "failing.evil.test",
            Manner::Failing,
            "answer Server Failure",
        ),
        (
            "lying.evil.test",
            Manner::Lying,
            "something that is no answer",
        ),
        (
            "garbled.evil.test",
            Manner::Garbled,
            "something that is no answer",
        ),
    ] {
        for name in [host.to_owned(), format!("_waypost-challenge.{host}")] {
            names.misbehave(&name, Some(manner));
        }
        platform.add("evil", host);
        platform.wait_for_sentence("evil", host, why);
    }
    names.alias("circle.evil.test", "round.evil.test");
    names.alias("round.evil.test", "circle.evil.test");
    platform.add("evil", "circle.evil.test");
    platform.wait_for_sentence("evil", "circle.evil.test", "form a cycle");
    names.alias("long.evil.test", "n0.evil.test");
    for nth in 0..12 {
        names.alias(
            &format!("n{nth}.evil.test"),
            &format!("n{}.evil.test", nth + 1),
        );
    }
    platform.add("evil", "long.evil.test");
    platform.wait_for_sentence("evil", "long.evil.test", "more than 8 aliases");
    let many: Vec<String> = (0..150).map(|nth| format!("text {nth}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    names.text("_waypost-challenge.huge.evil.test", &many);
    names.addresses("huge.evil.test", &["192.0.2.1"]);
    platform.add("evil", "huge.evil.test");
    platform.wait_for_sentence("evil", "huge.evil.test", "more than 100 records");
    // A long answer comes over TCP, and may have the proof.
    let shown = platform.add("evil", "long-text.evil.test");
    let own = wanted(&shown, "TXT");
    let mut texts = many[..90].to_vec();
    texts.push(&own);
    names.text("_waypost-challenge.long-text.evil.test", &texts);
    platform.wait_for_state("evil", "long-text.evil.test", "verified");

    // Hundreds of domains whose servers never answer: the domain of another owner is next.
    let slow: Vec<String> = (0..300).map(|nth| format!("d{nth}.slow.test")).collect();
    for host in &slow {
        names.misbehave(host, Some(Manner::Silent));
        names.misbehave(&format!("_waypost-challenge.{host}"), Some(Manner::Silent));
    }
    let record = json!({ "owner": "evil", "subdomain": "slow", "domains": slow });
    let made = platform.call(&platform.operator, "PUT", "/v1/sites/slow", Some(&record));
    assert_eq!(made.status, 201, "{}", made.text());
    platform.edge.wait_for_metric("domain_checks_due", 100.0);
    let target = wanted(&platform.add("acme", "docs.acme.test"), "CNAME");
    names.alias("docs.acme.test", &target);
    platform.wait_for_state("acme", "docs.acme.test", "active");
    assert!(platform.edge.metric("domain_checks_due") > 100.0);
    assert!(platform.edge.metric("process_panics_total") < 0.5);
}

#[test]
fn a_look_can_be_asked_for_and_not_too_often() {
    let names = Names::start();
    let platform = Platform::of(
        Setup::new(),
        names,
        "retry_seconds: [3600], check_now_seconds: 3600",
    );
    let host = "docs.acme.test";
    let path = format!("/v1/sites/acme/domains/{host}");
    let target = wanted(&platform.add("acme", host), "CNAME");
    platform.wait("acme", host, |shown| {
        shown["ownership"]["checked_at"].is_string()
    });
    platform.names.alias(host, &target);
    let check = format!("{path}/check");
    let soon = platform.call(&platform.acme, "POST", &check, None);
    assert_eq!(soon.status, 429, "{}", soon.text());
    assert!(soon.field("retry-after").is_some());
    assert_eq!(
        platform.call(&platform.evil, "POST", &check, None).status,
        404
    );
    let none = platform.call(
        &platform.acme,
        "POST",
        "/v1/sites/acme/domains/no.acme.test/check",
        None,
    );
    assert_eq!(none.status, 404);
    let Platform {
        edge,
        names,
        operator,
        acme,
        evil,
    } = platform;
    edge.signal("TERM");
    let conf = format!(
        "{{ {}, retry_seconds: [3600], check_now_seconds: 1 }}",
        names.resolvers()
    );
    let edge = edge.ended().conf("verification", &conf).start();
    let platform = Platform {
        edge,
        names,
        operator,
        acme,
        evil,
    };
    let since = Instant::now();
    let asked = loop {
        // A second must have passed since the last check.
        let asked = platform.call(&platform.acme, "POST", &check, None);
        if asked.status != 429 || since.elapsed() > TIMEOUT {
            break asked;
        }
    };
    assert_eq!(asked.status, 202, "{}", asked.text());
    platform.wait_for_state("acme", host, "active");
    // The same from the command line.
    platform.names.remove(host);
    let since = Instant::now();
    let text = loop {
        // A second must have passed since the last check.
        let output = platform.edge.setup.run(&["domain", "check", "acme", host]);
        let text = String::from_utf8(output.stdout).unwrap();
        if text.contains("dangling") || since.elapsed() > TIMEOUT {
            break text;
        }
    };
    assert!(
        text.starts_with(&format!("{host}  canonical  served  dangling\n")),
        "{text}"
    );
    assert!(
        text.contains(&format!("DNS record: {host} CNAME {target}")),
        "{text}"
    );
    assert!(
        text.contains("in the way: docs.acme.test has neither a CNAME nor an address"),
        "{text}"
    );
    let output = platform.edge.setup.run(&["domain", "show", "acme", host]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("dangling"), "{shown}");
}

#[test]
fn domains_from_before_proof_was_required_have_time_to_prove_themselves() {
    let names = Names::start();
    let setup = Setup::new().conf("verification", "{ required: false }");
    let operator = key(&setup, "platform", "operator");
    let acme = key(&setup, "acme", "owner");
    let evil = key(&setup, "evil", "owner");
    let edge = setup.start();
    let platform = Platform {
        edge,
        names,
        operator,
        acme,
        evil,
    };
    let record = json!({ "owner": "acme", "subdomain": "acme", "domains": ["docs.acme.test"] });
    let made = platform.call(&platform.operator, "PUT", "/v1/sites/acme", Some(&record));
    assert_eq!(made.status, 201, "{}", made.text());
    platform.edge.publish("acme", &[("skill.md", SKILL)]);
    assert!(platform.is_served("docs.acme.test"));
    assert_eq!(
        platform.show("acme", "docs.acme.test")["ownership"],
        Value::Null
    );
    let Platform {
        edge,
        names,
        operator,
        acme,
        evil,
    } = platform;
    edge.signal("TERM");
    let conf = format!(
        "{{ {}, {FAST}, dangling_seconds: 3600 }}",
        names.resolvers()
    );
    let edge = edge.ended().conf("verification", &conf).start();
    let platform = Platform {
        edge,
        names,
        operator,
        acme,
        evil,
    };
    let shown = platform.wait_for_state("acme", "docs.acme.test", "dangling");
    assert!(platform.is_served("docs.acme.test"));
    platform
        .names
        .alias("docs.acme.test", &wanted(&shown, "CNAME"));
    platform.wait_for_state("acme", "docs.acme.test", "active");
}

#[test]
fn two_gateways_share_the_work_and_the_other_goes_on_after_a_kill() {
    let first = Platform::start("");
    let second = first.edge.setup.beside().start();
    let count = |edge: &Edge| edge.metric("domain_checks_leader");
    first.edge.wait_for_metric("domain_checks_leader", 1.0);
    assert!(count(&first.edge) + count(&second) < 1.5);
    let host = "docs.acme.test";
    let target = wanted(&first.add("acme", host), "CNAME");
    first.edge.signal("KILL");
    second.wait_for_metric("domain_checks_leader", 1.0);
    first.names.alias(host, &target);
    let Platform {
        edge,
        names,
        operator,
        acme,
        evil,
    } = first;
    // The store is in its directory.
    let _first = edge;
    let second = Platform {
        edge: second,
        names,
        operator,
        acme,
        evil,
    };
    second.wait_for_state("acme", host, "active");
    assert!(second.is_served(host));
}

#[test]
fn the_full_journey_ends_with_https() {
    let names = Names::start();
    let (platform, pebble) = Platform::with_authority(names, FAST, "caa_identities: [ca.test]");
    let client = pebble.client(&["http/1.1"]);
    let host = "docs.acme.test";
    let added = platform.add("acme", host);
    let target = wanted(&added, "CNAME");
    // Proven by a text, before it leads here: served, and nothing is ordered.
    platform.names.text(
        "_waypost-challenge.docs.acme.test",
        &[&wanted(&added, "TXT")],
    );
    platform.wait_for_state("acme", host, "verified");
    platform.wait_for_check("acme", host);
    assert!(!pebble.log().contains(host));
    // It leads here, and the zone lets only another authority issue certificates.
    platform.names.authority("acme.test", "other-ca.test");
    platform.names.alias(host, &target);
    platform.wait_for_state("acme", host, "active");
    let shown = platform.wait("acme", host, |shown| {
        shown["certificate_problem"].is_string()
    });
    let why = shown["certificate_problem"].as_str().unwrap();
    assert!(
        why.contains("the CAA record of acme.test allows only other-ca.test"),
        "{why}"
    );
    assert!(!pebble.log().contains(host));
    platform.names.authority("acme.test", "ca.test");
    let since = Instant::now();
    while !platform.has_certificate(host, &client) {
        assert!(
            since.elapsed() < 2 * TIMEOUT,
            "{:#}",
            platform.show("acme", host)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let stream = connect(platform.edge.https.unwrap(), host, &client).unwrap();
    let mut open = Connection::over(stream);
    open.send(format!("GET /skill.md HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    assert_eq!(open.receive("GET").unwrap().text(), SKILL);
    assert_eq!(
        platform.show("acme", host)["certificate_problem"],
        Value::Null
    );
}

#[test]
fn a_domain_that_dangles_keeps_its_certificate_until_it_is_quarantined() {
    let settings = format!("{FAST}, dangling_seconds: 5");
    let (platform, pebble) =
        Platform::with_authority(Names::start(), &settings, "release_seconds: 1");
    let client = pebble.client(&["http/1.1"]);
    let wait_for = |host: &str, has_one: bool| {
        let since = Instant::now();
        while platform.has_certificate(host, &client) != has_one {
            assert!(since.elapsed() < 2 * TIMEOUT, "{host}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let (host, removed) = ("docs.acme.test", "old.acme.test");
    for host in [host, removed] {
        platform.activate("acme", host);
        wait_for(host, true);
    }
    platform.names.remove(host);
    platform.wait_for_state("acme", host, "dangling");
    let listed = platform
        .edge
        .setup
        .run(&["domain", "list", "--state", "dangling"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.contains(&format!("acme  {host}  ")) && !listed.contains(removed),
        "{listed}"
    );
    // Its site serves it for a while, so clients need the certificate: this takes longer than the
    // wait before a certificate is revoked.
    platform.wait_for_check("acme", host);
    assert!(platform.has_certificate(host, &client));
    // The owner takes a domain out of the site.
    let path = format!("/v1/sites/acme/domains/{removed}");
    let deleted = platform.call(&platform.acme, "DELETE", &path, None);
    assert_eq!(deleted.status, 204);
    wait_for(removed, false);
    platform.wait_for_state("acme", host, "quarantined");
    wait_for(host, false);
    for name in [host, removed] {
        platform.edge.wait_for_log(|line| {
            let text = line["message"].as_str().unwrap_or_default();
            line["name"] == name && text.contains("its certificate was revoked")
        });
    }
}

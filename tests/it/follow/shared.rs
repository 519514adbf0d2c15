//! Edges of gateways that share a database: a challenge and a token count for the edges of all of
//! them, whichever gateway orders certificates or runs the command.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::secrets::{certificate, edge_with_key, wait_for_order};
use super::*;
use crate::pebble::Settings;
use crate::repository::{self, Repository};
use crate::store_documents::ordering;
use crate::store_postgres::{Objects, cluster, command, init, machine};

const LISTEN: &str =
    "{ http: [\"127.0.0.1:0\"], https: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\" }";

#[test]
fn a_challenge_is_on_the_edges_of_every_gateway_before_the_authority_asks() {
    for challenge in ["http-01", "tls-alpn-01"] {
        let cluster = cluster();
        let settings = Settings::new();
        let listen = free_address();
        let first = machine(&cluster, None, &Objects::Directory)
            .conf("listen", LISTEN)
            .conf("edges", "{ challenge_wait_seconds: 6 }");
        let key_file = first.path("acme.key");
        let first = ordering(first, &settings, &key_file, challenge);
        init(&first);
        let second = machine(&cluster, Some(&first), &Objects::Directory).conf("listen", LISTEN);
        let copy = second.path("acme.key");
        let second = ordering(second, &settings, &copy, challenge);
        let edges = format!("{{ listen: \"{listen}\", allow_http: true }}");
        let second = second.conf("edges", &edges);
        // The authority connects to the ports of the edge.
        let of_edge = settings.listen();
        let pebble = settings.start();
        let client = pebble.client(&["http/1.1"]);
        let leader = first.acme("").with_skill().start();
        leader.wait_for_log(|line| line["message"] == "this process orders certificates");
        std::fs::copy(&key_file, &copy).unwrap();
        let other = second.acme("").start();
        let between = Between::start(listen);
        let address = url(between.address);
        let edge = edge_with_key(&other.setup, &address, "paris", &of_edge).start();
        wait_for_order(&leader, || certificate(&edge, DOMAIN, &client).is_some());

        // The edge gets each change late, and still no order fails.
        between.lie(|path, _| {
            if path.contains("secrets") {
                std::thread::sleep(Duration::from_millis(1500));
            }
        });
        for gateway in [&leader, &other] {
            gateway.write_site("second", "domains: [docs.second.test]");
        }
        wait_until("a second certificate", || {
            certificate(&edge, "docs.second.test", &client).is_some()
        });
        let failed = |line: &serde_json::Value| {
            let message = line["message"].as_str().unwrap_or_default();
            message.starts_with("no certificate for docs.second.test")
                || message.starts_with("these machines do not answer the challenge of docs.second")
        };
        assert_eq!(leader.count_log(failed), 0);

        if challenge != "http-01" {
            continue;
        }
        // An edge that does not take the challenge is waited for only so long, and the log says so.
        between.lie(|path, response| {
            if path.contains("secrets") {
                change_end(response);
            }
        });
        for gateway in [&leader, &other] {
            gateway.write_site("third", "domains: [docs.third.test]");
        }
        leader.wait_for_log(|line| {
            let message = line["message"].as_str().unwrap_or_default();
            message.starts_with("these machines do not answer the challenge of docs.third.test")
                && message.contains("edges of ")
        });
    }
}

#[test]
fn a_token_of_an_edge_counts_and_ends_on_every_gateway() {
    let cluster = cluster();
    let [one, two] = [free_address(), free_address()];
    let edges = |listen| format!("{{ listen: \"{listen}\", allow_http: true }}");
    let first = machine(&cluster, None, &Objects::Directory);
    init(&first);
    let second = machine(&cluster, Some(&first), &Objects::Directory);
    let first = first.conf("edges", &edges(one)).acme("").with_skill();
    let second = second.conf("edges", &edges(two)).acme("");
    let (first, second) = (first.start(), second.start());
    let token = output(&first.setup, &["edge", "add", "paris"]);
    // The command ends when all gateways know the token.
    let field = format!("Bearer {token}");
    let answers = || {
        let fields = [("Authorization", &*field)];
        let path = "/v1/follow/snapshot";
        [one, two].map(|listen| http::request(listen, "GET", "source", path, &fields).status)
    };
    assert!(!answers().contains(&401), "{:?}", answers());
    // A gateway that has just started may still fill its cache.
    wait_until("both answer", || answers() == [200, 200]);
    // An edge follows the gateway on which its token was not made.
    let edge = Setup::new();
    write_private(edge.path("token"), &token);
    let edge = following(&second.setup, edge, &url(two), "").start();
    wait_until_serves(&edge, SKILL);
    output(&second.setup, &["edge", "remove", "paris"]);
    assert_eq!(answers(), [401, 401]);
    // A change ends its long poll.
    first.publish("acme", &[("skill.md", PAY)]);
    wait_until("the edge is refused", || cause(&edge).contains("401"));
    assert_eq!(served(&edge, DOMAIN), SKILL);
}

/// Starts two gateways of one database that edges can follow, with the same signing key. The second
/// one begins a later life.
fn two_sources(cluster: &crate::cluster::Cluster) -> ([SocketAddr; 2], [Edge; 2]) {
    let addresses = [free_address(), free_address()];
    let edges = |listen| format!("{{ listen: \"{listen}\", allow_http: true }}");
    let first = machine(cluster, None, &Objects::Directory);
    init(&first);
    let second = machine(cluster, Some(&first), &Objects::Directory);
    let first = first
        .conf("edges", &edges(addresses[0]))
        .acme("")
        .with_skill();
    let second = second.conf("edges", &edges(addresses[1])).acme("");
    let first = first.start();
    output(&second, &["edge", "key"]);
    let key = std::fs::read_to_string(first.setup.path("store/edges-key")).unwrap();
    write_private(second.path("store/edges-key"), &key);
    // Whatever the clock says, its life is later.
    std::fs::write(second.path("store/edges-life"), "9999999999\n").unwrap();
    let second = second.start();
    (addresses, [first, second])
}

#[test]
fn each_gateway_lists_the_edges_of_the_other_one() {
    let cluster = cluster();
    let ([one, two], [first, second]) = two_sources(&cluster);
    let edges = [(&first, one, "paris"), (&second, two, "tokyo")];
    let edges = edges
        .map(|(source, address, name)| edge_of(&source.setup, &url(address), name, "").start());
    edges.iter().for_each(|edge| wait_until_serves(edge, SKILL));
    let all_follow = |gateway: &Edge| fleet(gateway).matches("  following  0 behind").count() == 2;
    for (gateway, name) in [(&first, "tokyo"), (&second, "paris")] {
        wait_until("both follow", || all_follow(gateway));
        let lines = fleet(gateway);
        let line = lines.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.contains("  of the gateway "), "{lines}");
        let known = gateway.setup.path("known.yaml");
        let status = std::process::Command::new(env!("CARGO_BIN_EXE_waypost"))
            .args(["fleet", "--conf"])
            .arg(known)
            .status();
        assert!(status.unwrap().success());
    }
}

#[test]
fn a_freeze_counts_on_every_gateway() {
    let cluster = cluster();
    let ([_, two], [first, second]) = two_sources(&cluster);
    let edge = edge_of(&second.setup, &url(two), "paris", "").start();
    wait_until_serves(&edge, SKILL);
    // The command ends when all gateways are frozen.
    output(&first.setup, &["freeze", "--why", "look at this"]);
    assert!(
        fleet(&second).contains("FROZEN: since"),
        "{}",
        fleet(&second)
    );
    assert!(fleet(&second).contains("look at this"));
    first.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&second, PAY);
    assert_eq!(served(&edge, DOMAIN), SKILL);
    // It holds over a restart, also of a gateway that has lost its cache.
    let second = kill(second);
    std::fs::remove_file(second.path("store/documents/position")).unwrap();
    let second = second.start();
    wait_until("the edge is there again", || {
        fleet(&second).contains("paris  ring 0  following")
    });
    assert!(fleet(&second).contains("FROZEN"), "{}", fleet(&second));
    assert_eq!(served(&edge, DOMAIN), SKILL);
    output(&second.setup, &["unfreeze"]);
    wait_until_serves(&edge, PAY);
    let none = output(&first.setup, &["unfreeze"]);
    assert_eq!(none, "it was not frozen");
}

#[test]
fn an_update_is_visible_when_the_edges_of_every_gateway_have_it() {
    let cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory);
    init(&first);
    let docs = Repository::new(&first, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let listen = free_address();
    let edges = format!("{{ listen: \"{listen}\", allow_http: true }}");
    let second = machine(&cluster, Some(&first), &Objects::Directory).conf("edges", &edges);
    // No edge follows the first gateway.
    let first = first.acme(&docs.record()).start();
    let second = second.acme(&docs.record()).start();
    let update = || {
        let id = repository::queue(&first.setup, "acme");
        let record = repository::follow(&first.setup, &id);
        assert_eq!(record["status"], "success", "{record:#}");
        id
    };
    let visible_at = |id: &str| repository::record(&first.setup, id)["visibleAt"].clone();
    let id = update();
    let between = Between::start(listen);
    let edge = edge_of(&second.setup, &url(between.address), "paris", "").start();
    wait_until_serves(&edge, SKILL);
    wait_until("visible", || !visible_at(&id).is_null());
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    between.lie(move |path, response| {
        if path.contains("objects") {
            change_end(response);
        }
        if path.contains("failing=1") {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    docs.push("Change", &[("skill.md", PAY)]);
    let id = update();
    wait_until("the edge reports twice that it fails", || {
        asked.load(Ordering::SeqCst) > 1
    });
    for gateway in [&first, &second] {
        wait_until_serves(gateway, PAY);
    }
    assert!(visible_at(&id).is_null());
    first.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("is not visible everywhere yet: it waits for paris of ring 0")
    });
    assert!(visible_at(&id).is_null());
    between.be_honest();
    wait_until_serves(&edge, PAY);
    wait_until("visible", || !visible_at(&id).is_null());
}

#[test]
fn an_edge_that_is_pointed_at_another_gateway_compares_everything() {
    let cluster = cluster();
    let ([one, two], [first, second]) = two_sources(&cluster);
    let edge = edge_of(&second.setup, &url(two), "paris", "").start();
    wait_until_serves(&edge, SKILL);
    wait_until("filled", || readiness(&edge)["status"] == "ready");
    let setup = kill(edge);
    first.publish("acme", &[("skill.md", PAY)]);
    // The first gateway began before the second one.
    let edge = following(&first.setup, setup, &url(one), "").start();
    assert_eq!(served(&edge, DOMAIN), SKILL);
    wait_until_serves(&edge, PAY);
    wait_until("compared", || {
        edge.metric("follow_comparisons_total") >= 1.0
    });
    wait_until("it follows", || cause(&edge).is_empty());
}

#[test]
fn a_gateway_that_has_lost_its_cache_takes_no_site_from_its_edges() {
    let mut cluster = cluster();
    let listen = free_address();
    let edges = format!("{{ listen: \"{listen}\", allow_http: true }}");
    let gateway = machine(&cluster, None, &Objects::Directory).conf("edges", &edges);
    init(&gateway);
    // The record is in the database only.
    let record = gateway.path("record.yaml");
    std::fs::write(&record, format!("subdomain: acme\ndomains: [{DOMAIN}]\n")).unwrap();
    command(&gateway, &["site", "set", "acme", record.to_str().unwrap()]);
    gateway.publish("acme", &[("skill.md", SKILL)]);
    let gateway = gateway.start();
    let edge = edge_of(&gateway.setup, &url(listen), "paris", "").start();
    wait_until_serves(&edge, SKILL);
    let gateway = kill(gateway);
    cluster.stop();
    for entry in std::fs::read_dir(gateway.path("store")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !["FORMAT", "documents"].contains(&name) && !name.starts_with("edges-") {
            match path.is_dir() {
                true => std::fs::remove_dir_all(&path).unwrap(),
                false => std::fs::remove_file(&path).unwrap(),
            }
        }
    }
    let gateway = gateway.start();
    let answer = ask_for_everything(listen, &edge);
    assert!(
        answer.starts_with(b"HTTP/1.1 503"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    assert_eq!(served(&edge, DOMAIN), SKILL);
    cluster.restart();
    wait_until_serves(&gateway, SKILL);
    assert_eq!(served(&edge, DOMAIN), SKILL);
    gateway.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&edge, PAY);
}

#[test]
fn an_edge_refuses_a_gateway_with_an_older_copy_of_the_store_until_it_has_caught_up() {
    let mut cluster = cluster();
    let ([one, two], [first, second]) = two_sources(&cluster);
    let edge = edge_of(&second.setup, &url(two), "paris", "").start();
    wait_until_serves(&edge, SKILL);
    wait_until("filled", || readiness(&edge)["status"] == "ready");
    let key = output(&second.setup, &["edge", "key"]);
    let first = kill(first);
    second.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&edge, PAY);
    // The first gateway begins with what it had, and cannot reach the database.
    cluster.stop();
    let first = first.start();
    assert_eq!(served(&first, DOMAIN), SKILL);
    let mut edge = trusting(kill(edge), &url(one), &[&key], "").start();
    for _start in 0..2 {
        wait_until("it says why", || {
            assert_eq!(served(&edge, DOMAIN), PAY);
            cause(&edge).contains("of the store, and this edge has revision")
        });
        assert!(edge.metric("follow_failures_total{reason=\"behind\"}") >= 1.0);
        assert_eq!(edge.metric("follow_comparisons_total"), 0.0);
        edge.wait_for_log(|line| {
            let message = line["message"].as_str().unwrap_or_default();
            message.contains("it would go back to an earlier state")
        });
        wait_until("the gateway knows it", || {
            fleet(&first).contains("cannot use what this node sends (behind)")
        });
        // The edge remembers what it had.
        edge = kill(edge).start();
    }
    cluster.restart();
    wait_until_serves(&first, PAY);
    wait_until("it follows", || {
        assert_eq!(served(&edge, DOMAIN), PAY);
        readiness(&edge)["status"] == "ready"
    });
    first.publish("acme", &[("skill.md", &skill(3))]);
    wait_until_serves(&edge, &skill(3));
    assert_eq!(first.metric("follow_source_edges"), 1.0);
}

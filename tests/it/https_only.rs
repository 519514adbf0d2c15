//! Requests without TLS are redirected if the operator configures it, and responses have
//! `Strict-Transport-Security`.

use std::io::Write as _;

use crate::certificates::Authority;
use crate::edge::Setup;
use crate::origin::{After, Origin};
use crate::presets::{DOMAIN, SKILL, SUBDOMAIN};
use crate::tls::{Encrypted, encrypted};

const API: &str = "api.waypost.localhost";

/// A gateway with certificates for the site's domain and for the admin API.
fn start(tls: &str, trusted: &str, record: &str) -> Encrypted {
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new());
    let directory = setup.path("certificates");
    authority.issue(&[API]).write(&directory, API);
    let directory = directory.display();
    let setup = setup
        .conf("tls", &format!("{{ directory: \"{directory}\", {tls} }}"))
        .conf("connections", &format!("{{ trusted_peers: [{trusted}] }}"))
        .acme(record)
        .with_skill();
    Encrypted {
        authority,
        edge: setup.start(),
    }
}

#[test]
fn a_request_without_tls_is_redirected_if_its_host_has_a_certificate() {
    let gateway = start("redirect: true", "", "");
    let edge = &gateway.edge;
    for (method, host, path, status, location) in [
        ("GET", DOMAIN, "/guide", 308, "/guide"),
        ("HEAD", DOMAIN, "/guide?a=b&c", 308, "/guide?a=b&c"),
        // The MCP server is no document.
        ("POST", DOMAIN, "/mcp", 308, "/mcp"),
        // Agents read discovery documents as they ask, on both paths.
        ("GET", DOMAIN, "/skill.md", 200, ""),
        ("HEAD", DOMAIN, "/skill.md?a=b&c", 200, ""),
        (
            "GET",
            DOMAIN,
            "/.well-known/skills/../agent-card.json",
            200,
            "",
        ),
        ("GET", DOMAIN, "/.well-known/agent-card.json", 200, ""),
        ("POST", "DOCS.acme.test:80", "//x/%2e", 308, "//x/%2e"),
        // A certificate authority asks before there is a certificate.
        ("GET", DOMAIN, "/.well-known/acme-challenge/x", 404, ""),
        // There is no certificate for this name.
        ("GET", SUBDOMAIN, "/skill.md", 200, ""),
        // A redirect would hide from its owner that a key was sent without TLS.
        ("GET", API, "/v1/x", 404, ""),
    ] {
        let response = edge.request(method, host, path, &[]);
        assert_eq!(response.status, status, "{host}{path}: {response:?}");
        let expected = format!("https://{DOMAIN}{location}");
        let expected = (status == 308).then_some(expected.as_str());
        assert_eq!(response.field("location"), expected, "{host}{path}");
        assert_eq!(response.field("strict-transport-security"), None);
    }
    // A forwarded header from an untrusted client has no effect.
    let claims = [("X-Forwarded-Proto", "https")];
    assert_eq!(edge.request("GET", DOMAIN, "/", &claims).status, 308);
}

#[test]
fn a_trusted_peer_that_has_received_a_request_over_tls_gets_no_redirect() {
    let gateway = start("redirect: true", "127.0.0.0/8", "");
    for (proto, status) in [("https", 404), ("http", 308), ("https, http", 308)] {
        let fields = [("X-Forwarded-Proto", proto)];
        let response = gateway.edge.request("GET", DOMAIN, "/guide", &fields);
        assert_eq!(response.status, status, "{proto}");
    }
    // Without the field, a redirect could lead to the same peer for ever.
    assert_eq!(gateway.edge.get(DOMAIN, "/guide").status, 404);
}

#[test]
fn a_key_that_a_trusted_peer_has_received_without_tls_is_rejected() {
    let gateway = start("redirect: true", "127.0.0.0/8", "");
    for (lines, api, site) in [
        (&["https"][..], 401, 404),
        (&["http"], 403, 308),
        (&["http, https "], 401, 404),
        (&["https,http"], 403, 308),
        // The first lines may be the client's.
        (&["https", "http"], 403, 308),
        (&["http", "https"], 401, 404),
        (&["https", "http, HTTPS"], 401, 404),
        (&["https", ""], 403, 404),
    ] {
        let protos = lines.iter().map(|proto| ("X-Forwarded-Proto", *proto));
        let key = [("Authorization", "Bearer a")];
        let fields: Vec<_> = key.into_iter().chain(protos).collect();
        let status = |host, path| {
            let response = gateway.edge.request("GET", host, path, &fields);
            response.status
        };
        assert_eq!(status(API, "/v1/sites/acme"), api, "{lines:?}");
        assert_eq!(status(DOMAIN, "/guide"), site, "{lines:?}");
    }
}

#[test]
fn without_acme_nothing_is_redirected_by_default() {
    let gateway = start("", "", "");
    let edge = &gateway.edge;
    let response = edge.get(DOMAIN, "/skill.md");
    assert_eq!((response.status, response.text()), (200, SKILL));
    assert_eq!(edge.get(DOMAIN, "/guide").status, 404);
}

#[test]
fn with_acme_hosts_that_have_a_certificate_are_redirected_by_default() {
    let of_setting = |redirect: &str| {
        let authority = Authority::new();
        let setup = encrypted(&authority, Setup::new());
        let key = setup.path("acme.key").display().to_string();
        let directory = setup.path("certificates").display().to_string();
        let setup = setup
            // Nothing answers there.
            .conf(
                "acme",
                &format!(
                    "{{ authorities: [{{ directory: \"https://127.0.0.1:1/directory\" }}], \
                     agree_to_terms: true, key_file: {key} }}"
                ),
            )
            .conf(
                "tls",
                &format!("{{ directory: \"{directory}\", {redirect} }}"),
            )
            .acme("")
            .with_skill();
        let edge = setup.start();
        let status = |host, path| edge.get(host, path).status;
        let challenge = "/.well-known/acme-challenge/x";
        let of_host = [status(DOMAIN, "/guide"), status(DOMAIN, "/skill.md")];
        assert_eq!(status(DOMAIN, challenge), 404);
        // It has no certificate.
        assert_eq!(status(SUBDOMAIN, "/guide"), 404);
        of_host
    };
    assert_eq!(of_setting(""), [308, 200]);
    assert_eq!(of_setting("redirect: null"), [308, 200]);
    assert_eq!(of_setting("redirect: false"), [404, 200]);
}

/// A site's own server that sends a `Strict-Transport-Security` of its own for one path.
fn with_own_time() -> Origin {
    Origin::responding(|request, stream| {
        let own = match &*request.target {
            "/own" => "Strict-Transport-Security: max-age=7\r\n",
            _ => "",
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{own}\r\n");
        // The gateway may have closed the connection.
        let _closed = stream.write_all(head.as_bytes());
        After::Keep
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_response_over_tls_tells_browsers_to_use_tls() {
    let origin = with_own_time();
    let gateway = start("hsts_seconds: 600", "", &origin.record());
    let mut http2 = gateway.http2().await;
    for (host, path, status, expected) in [
        // The fast path, twice the proxy path, a rejected request.
        (DOMAIN, "/skill.md", 200, "max-age=600"),
        (DOMAIN, "/x/../skill.md", 200, "max-age=600"),
        (API, "/v1/x", 404, "max-age=600"),
        (DOMAIN, "/a\\b", 400, "max-age=600"),
        // The site's own server may send its own value.
        (DOMAIN, "/guide", 200, "max-age=600"),
        (DOMAIN, "/own", 200, "max-age=7"),
    ] {
        let mut http1 = gateway.http1();
        http1.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        let first = http1.receive("GET").unwrap();
        assert_eq!(first.status, status, "{host}{path}");
        let name = "strict-transport-security";
        assert_eq!(first.field(name), Some(expected), "{host}{path}");
        if status != 400 {
            let second = http2.get(host, path).await.unwrap();
            assert_eq!(second.status, status, "{host}{path}");
            assert_eq!(second.field(name), Some(expected), "{host}{path}");
        }
        // RFC 6797 §7.2: never without TLS.
        let plain = gateway.edge.get(host, "/skill.md");
        assert_eq!(plain.field(name), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_has_its_own_time_for_browsers() {
    let origin = with_own_time();
    let record = |hsts: &str| format!("{}\nhsts: {hsts}", origin.record());
    let full = record("{ seconds: 31536000, subdomains: true, preload: true }");
    // The operator has none for all sites.
    let gateway = start("", "", &full);
    let name = "strict-transport-security";
    let long = Some("max-age=31536000; includeSubDomains; preload");
    let mut http2 = gateway.http2().await;
    for (host, path, status, expected) in [
        // The fast path, the proxy path, the direct path, and what the site's own server says.
        (DOMAIN, "/skill.md", 200, long),
        (DOMAIN, "/x/../skill.md", 200, long),
        (DOMAIN, "/guide", 200, long),
        (DOMAIN, "/own", 200, Some("max-age=7")),
        // It is no matter of other hosts.
        (API, "/v1/x", 404, None),
    ] {
        let mut http1 = gateway.http1();
        http1.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        let first = http1.receive("GET").unwrap();
        assert_eq!(
            (first.status, first.field(name)),
            (status, expected),
            "{host}{path}"
        );
        let second = http2.get(host, path).await.unwrap();
        assert_eq!(
            (second.status, second.field(name)),
            (status, expected),
            "{host}{path}"
        );
        // RFC 6797 §7.2: never without TLS.
        assert_eq!(gateway.edge.get(host, "/skill.md").field(name), None);
    }
    // A changed record counts from the next request, also on an open connection. `seconds: 0` tells
    // browsers to forget the rule.
    let mut open = gateway.http1();
    let get = format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    open.send(get.as_bytes());
    assert_eq!(open.receive("GET").unwrap().field(name), long);
    let record = format!("domains: [{DOMAIN}]\n{}", record("{ seconds: 0 }"));
    gateway.edge.write_site("acme", &record);
    open.send(get.as_bytes());
    assert_eq!(open.receive("GET").unwrap().field(name), Some("max-age=0"));
}

#[test]
fn a_promise_to_browsers_that_contradicts_itself_is_rejected() {
    for (hsts, expected) in [
        (
            "{ seconds: 600, preload: true }",
            "`preload` needs `subdomains: true`",
        ),
        ("{ subdomains: true }", "seconds"),
        ("{ seconds: 99999999 }", "63072000"),
        ("{ seconds: 1, maxAge: 2 }", "maxAge"),
    ] {
        let setup = Setup::new().site("acme", &format!("hsts: {hsts}"));
        let output = setup.run(&["check"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{hsts}: {text}");
        assert!(text.contains(expected), "{hsts}: {text}");
    }
}

#[test]
fn settings_that_have_no_effect_are_rejected() {
    for (conf, expected) in [
        (
            vec![("tls", "{ redirect: true }")],
            "need an address in `listen.https`",
        ),
        (
            vec![("tls", "{ hsts_seconds: 1 }")],
            "need an address in `listen.https`",
        ),
        (
            vec![
                ("tls", "{ redirect: true, directory: x }"),
                ("listen", "{ https: [\"127.0.0.1:0\"] }"),
                ("service", "{ scheme: http }"),
            ],
            "`tls.redirect` needs `service.scheme: https`",
        ),
    ] {
        let setup = conf
            .iter()
            .fold(Setup::new(), |setup, (key, value)| setup.conf(key, value));
        let (status, stderr) = setup.start_expecting_failure();
        assert!(!status.success() && stderr.contains(expected), "{stderr}");
    }
}

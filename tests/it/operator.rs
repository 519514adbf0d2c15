//! The gateway seen by its operator: health, metrics, and an access line for every request.

use std::time::Instant;

use serde_json::Value;

use crate::edge::{Edge, Setup};
use crate::http::{self, Connection, Response, TIMEOUT};
use crate::origin::Origin;
use crate::presets::{DOMAIN, SKILL};

fn request(edge: &Edge, method: &str, path: &str) -> Response {
    let authorization = edge.operator_token();
    let fields = [("Authorization", authorization.as_str())];
    http::request(edge.operator, method, "localhost", path, &fields)
}

#[test]
fn health_and_readiness_are_short_texts() {
    let edge = Setup::new().acme_before(&Origin::start()).start();
    for (method, path, status, text) in [
        ("GET", "/healthz", 200, "ok\n"),
        ("GET", "/readyz", 200, "ready\n"),
        ("GET", "/readyz?verbose", 200, "ready\n"),
        ("HEAD", "/readyz", 200, ""),
        (
            "GET",
            "/",
            404,
            "/healthz, /readyz, /metrics, /upstreams, /edges, /top or /reload\n",
        ),
        (
            "GET",
            "/skill.md",
            404,
            "/healthz, /readyz, /metrics, /upstreams, /edges, /top or /reload\n",
        ),
        ("POST", "/healthz", 405, ""),
        ("DELETE", "/metrics", 405, ""),
    ] {
        let response = request(&edge, method, path);
        assert_eq!(
            (response.status, response.text()),
            (status, text),
            "{method} {path}"
        );
        assert_eq!(
            response.field("cache-control"),
            Some("no-store"),
            "{method} {path}"
        );
    }
    // The public listener serves none of these paths.
    for path in ["/healthz", "/readyz", "/metrics", "/reload"] {
        let response = http::request(edge.http, "GET", DOMAIN, path, &[]);
        assert_eq!(response.text(), format!("GET {path}"), "the site's own");
    }
}

#[test]
fn a_reload_compares_everything_with_the_disk() {
    let edge = Setup::new().acme_before(&Origin::start()).start();
    for path in ["/reload", "/reload?accept-removals"] {
        let before = edge.metric("index_fresh_timestamp_seconds");
        let since = Instant::now();
        assert_eq!(request(&edge, "POST", path).status, 202, "{path}");
        while edge.metric("index_fresh_timestamp_seconds") <= before {
            assert!(since.elapsed() < TIMEOUT, "{path} compared nothing");
        }
    }
    assert_eq!(request(&edge, "GET", "/reload").status, 404);
}

#[test]
fn metrics_count_events() {
    let edge = Setup::new().acme_before(&Origin::start()).start();
    let requests = |route: &str, status: u16| {
        edge.metric(&format!(
            "gateway_requests_total{{route=\"{route}\",status=\"{status}\"}}"
        ))
    };
    let mut connection = Connection::open(edge.http);
    connection.send(
        format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n")
            .repeat(3)
            .as_bytes(),
    );
    for _ in 0..3 {
        assert_eq!(connection.receive("GET").unwrap().status, 200);
    }
    edge.request("POST", DOMAIN, "/skill.md", &[]);
    edge.get("unknown.test", "/");
    http::request(edge.http, "GET", DOMAIN, "/guide", &[]);
    http::request(edge.http, "TRACE", DOMAIN, "/guide", &[]);
    for (route, status, expected) in [
        ("fast_path", 200, 3.0),
        ("discovery", 405, 1.0),
        ("rejected", 404, 1.0),
        ("rejected", 405, 1.0),
        ("origin", 200, 1.0),
    ] {
        // Counted before the response is written, or a moment after its last byte.
        let since = Instant::now();
        while requests(route, status) < expected && since.elapsed() < TIMEOUT {}
        let seen = requests(route, status);
        assert!((seen - expected).abs() < 0.5, "{route} {status}: {seen}");
    }
    assert!(edge.metric("gateway_connections_total") >= 5.0);
    assert!(edge.metric("gateway_connections_open") >= 1.0);
    assert!((edge.metric("index_sites") - 1.0).abs() < 0.5);
    assert!((edge.metric("index_hosts") - 2.0).abs() < 0.5);
    assert!(edge.metric("index_fresh_timestamp_seconds") > 1.7e9);
    assert!(edge.metric("gateway_request_duration_seconds_count{route=\"fast_path\"}") > 2.5);
}

#[test]
fn metrics_are_valid_and_name_no_customer() {
    let edge = Setup::new().acme_before(&Origin::start()).start();
    edge.get(DOMAIN, "/skill.md");
    // Counted a moment after its last byte.
    let since = Instant::now();
    while edge.metric("gateway_request_duration_seconds_count{route=\"fast_path\"}") < 0.5 {
        assert!(since.elapsed() < TIMEOUT, "nothing is counted");
    }
    let response = request(&edge, "GET", "/metrics");
    assert_eq!(
        response.field("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let mut families = std::collections::HashSet::new();
    for line in response.text().lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            families.insert(kind.split(' ').next().unwrap());
            continue;
        }
        if line.starts_with("# HELP ") {
            assert!(line.split(' ').count() > 4, "no help: {line}");
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let name = name.split('{').next().unwrap();
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        assert!(
            families.contains(family) || families.contains(name),
            "no type: {line}"
        );
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    assert!(!response.text().contains("acme"), "a customer is named");
    for family in [
        "gateway_requests_total",
        "gateway_request_duration_seconds",
        "gateway_connections_open",
        "gateway_tls_failures_total",
        "gateway_access_lines_dropped_total",
        "index_hosts",
        "tls_certificate_expires_timestamp_seconds",
    ] {
        assert!(families.contains(family), "{family} is missing");
    }
}

/// Sends the same requests to a gateway with the fast path or without, and returns the
/// access lines by path.
fn lines_of(fast_path: bool) -> Vec<Value> {
    let origin = Origin::start();
    let edge = Setup::new()
        .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
        .acme_before(&origin)
        .start();
    let agent = "User-Agent: node \"18\"\r\nCookie: secret=1\r\nAuthorization: Bearer secret\r\n";
    for (method, target) in [
        ("GET", "/skill.md"),
        ("HEAD", "/skill.md"),
        ("GET", "/skill.md?token=secret"),
        ("GET", "/.well-known/skills/none/SKILL.md"),
        ("GET", "/guide?token=secret"),
        ("POST", "/guide"),
        ("GET", "http://docs.acme.test/absolute?token=secret"),
        // Rejected requests have lines too.
        ("TRACE", "/trace?token=secret"),
        ("GET", "/bad#secret"),
        ("GET", "/bad\u{e9}"),
        ("GET", "http://user:secret@docs.acme.test/credentials"),
    ] {
        let mut connection = Connection::open(edge.http);
        connection.send(
            format!("{method} {target} HTTP/1.1\r\nHost: {DOMAIN}\r\n{agent}\r\n").as_bytes(),
        );
        connection.receive(method).unwrap();
    }
    for bytes in [
        &b"GET /nohost HTTP/1.1\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00",
        b"GET /line\n\n",
    ] {
        let mut connection = Connection::open(edge.http);
        connection.send(bytes);
        assert!(connection.receive("GET").unwrap().status >= 400);
    }
    edge.stop()
}

#[test]
fn every_request_has_one_access_line_on_either_path() {
    for fast_path in [true, false] {
        let lines = lines_of(fast_path);
        let text: Vec<_> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(lines.len(), 14, "{text:#?}");
        for line in &lines {
            let object = line.as_object().unwrap();
            let is_wait = |key: &&str| matches!(*key, "connect_us" | "first_byte_us" | "body_us");
            let keys = object.keys().map(String::as_str);
            let keys: Vec<_> = keys.filter(|key| !is_wait(key)).collect();
            assert_eq!(
                keys,
                [
                    "time",
                    "peer",
                    "protocol",
                    "tls",
                    "method",
                    "host",
                    "path",
                    "agent",
                    "status",
                    "bytes",
                    "route",
                    "took_us",
                    "request_id",
                    "ended",
                ]
            );
            assert_eq!(line["peer"], "127.0.0.1");
            assert!(!line.to_string().contains("secret"), "{line}");
        }
        let route = if fast_path { "fast_path" } else { "discovery" };
        for (method, bytes, route) in [
            ("GET", SKILL.len(), route),
            ("HEAD", 0, route),
            ("GET", SKILL.len(), "discovery"),
        ] {
            let expected = serde_json::json!({
                "method": method, "path": "/skill.md", "host": DOMAIN, "status": 200,
                "bytes": bytes, "route": route, "agent": "node \"18\"",
            });
            let expected = expected.as_object().unwrap();
            // Lines of different connections may be in any order.
            let matches = |line: &&Value| expected.iter().all(|(key, value)| line[key] == *value);
            assert!(
                lines.iter().any(|line| matches(&line)),
                "{expected:?}: {text:#?}"
            );
        }
        let rejected: Vec<_> = lines
            .iter()
            .filter(|line| line["route"] == "rejected")
            .collect();
        assert_eq!(rejected.len(), 7, "{text:#?}");
        let paths: Vec<_> = rejected
            .iter()
            .map(|line| line["path"].as_str().unwrap())
            .collect();
        assert!(
            paths.contains(&"/trace") && paths.contains(&"/nohost"),
            "{paths:?}"
        );
        let absolute = lines
            .iter()
            .find(|line| line["path"] == "/absolute")
            .expect("the path of a URL");
        assert_eq!(absolute["route"], "origin");
    }
}

#[test]
fn an_access_log_that_was_moved_away_is_opened_again() {
    let edge = Setup::new().acme_before(&Origin::start()).start();
    let (log, moved) = (edge.setup.path("access.log"), edge.setup.path("access.1"));
    edge.get(DOMAIN, "/skill.md");
    let since = Instant::now();
    while std::fs::read_to_string(&log).unwrap_or_default().is_empty() {
        assert!(since.elapsed() < TIMEOUT, "nothing is logged");
    }
    std::fs::rename(&log, &moved).unwrap();
    edge.get(DOMAIN, "/skill.md");
    let before = std::fs::read_to_string(moved).unwrap();
    assert_eq!((before.lines().count(), edge.stop().len()), (1, 1));
}

#[test]
fn the_process_log_is_text_for_people_or_json_for_machines() {
    for (format, opening) in [("text", ""), ("json", "{")] {
        let setup = Setup::new().conf("log", &format!("{{ format: {format}, filter: info }}"));
        // A site with a mistake: the log reports it at the start.
        let setup = setup.conf("listen", "{ http: [\"192.0.2.1:80\"] }");
        let (status, words) = setup.start_expecting_failure();
        assert!(!status.success());
        assert!(words.contains("listen on 192.0.2.1:80"), "{words}");
        for line in words
            .lines()
            .filter(|line| line.contains(" INFO ") || line.starts_with('{'))
        {
            assert!(line.starts_with(opening), "{format}: {line}");
        }
    }
}

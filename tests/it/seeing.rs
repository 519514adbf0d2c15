//! What an operator sees of a running gateway: its state, its heaviest clients, its logs and the
//! traces of its requests.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::edge::{Edge, LOCAL_UPSTREAMS, Setup};
use crate::http::{Connection, TIMEOUT};
use crate::origin::Origin;
use crate::presets::{DOMAIN, SKILL};

/// Runs a command with the configuration of a gateway, and with the address of its listener.
fn ask(edge: &Edge, arguments: &[&str]) -> Output {
    let conf = fs::read_to_string(edge.setup.path("waypost.yaml")).unwrap();
    let operator = format!("operator: \"{}\"", edge.operator);
    let asked = edge.setup.path("asked.yaml");
    fs::write(&asked, conf.replace("operator: \"127.0.0.1:0\"", &operator)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_waypost"));
    command.args(arguments).arg("--conf").arg(asked);
    command.output().unwrap()
}

#[track_caller]
fn prints(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn status_says_what_is_wrong_first_and_with_its_exit_code() {
    let edge = Setup::new().acme("").with_skill().start();
    let text = prints(&ask(&edge, &["status"]), 0);
    assert!(text.contains("is ready. Nothing is wrong."), "{text}");
    assert!(text.contains("sites        1 with"), "{text}");
    assert!(text.contains("updates      0 wait, 0 are built"), "{text}");
    assert!(text.contains("upgrade      possible"), "{text}");

    edge.setup.write_records("broken", "project: [\n");
    edge.wait_for_metric("site_records_rejected", 1.0);
    let text = prints(&ask(&edge, &["status"]), 1);
    let problem = "\n  * 1 site records have mistakes or conflicts";
    assert!(text.contains(problem), "{text}");
    let text = prints(&ask(&edge, &["status", "--json"]), 1);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["problems"].as_array().unwrap().len(), 1, "{json}");
    // A process that does not respond.
    let operator = edge.operator;
    edge.signal("STOP");
    edge.signal("KILL");
    let setup = edge.ended();
    let conf = fs::read_to_string(setup.path("asked.yaml")).unwrap();
    assert!(conf.contains(&operator.to_string()));
    let output = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["status", "--conf"])
        .arg(setup.path("asked.yaml"))
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{why}");
    assert!(
        why.contains(&format!("nothing responds on {operator}")),
        "{why}"
    );
}

#[test]
fn top_names_the_heaviest_hosts_addresses_and_reasons() {
    let edge = Setup::new().acme("").with_skill().start();
    for _ in 0..30 {
        assert_eq!(edge.get(DOMAIN, "/skill.md").status, 200);
    }
    assert_eq!(edge.get("unknown.test", "/").status, 404);
    // A request is counted a moment after its response.
    let since = Instant::now();
    let text = loop {
        let text = prints(&ask(&edge, &["top"]), 0);
        if text.contains("unknown.test") {
            break text;
        }
        assert!(since.elapsed() < TIMEOUT, "{text}");
    };
    assert!(text.contains("requests by host"), "{text}");
    let heaviest = text.lines().nth(1).unwrap();
    assert!(heaviest.ends_with(&format!("/s  {DOMAIN}")), "{text}");
    assert!(heaviest.trim_start().starts_with("96.8 %"), "{text}");
    assert!(text.contains("/s  127.0.0.1\n"), "{text}");
    assert!(text.contains("/s  fast_path 200 complete\n"), "{text}");
    let text = prints(
        &ask(&edge, &["top", "--by", "host", "--of", "bytes", "--json"]),
        0,
    );
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let least = 30 * SKILL.len() as u64;
    assert!(
        json["entries"][0]["count"].as_u64().unwrap() >= least,
        "{json}"
    );
    let wrong = crate::http::request(edge.operator, "GET", "localhost", "/top?by=shoe", &[]);
    assert_eq!(wrong.status, 400);
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn the_trace_of_a_request_is_passed_on_and_logged() {
    for fast_path in [true, false] {
        let origin = Origin::start();
        let edge = Setup::new()
            .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
            .conf(
                "upstream",
                &format!("{{ create_request_id: false, {LOCAL_UPSTREAMS} }}"),
            )
            .acme_before(&origin)
            .start();
        let fields = [
            ("traceparent", PARENT),
            ("tracestate", "a=1"),
            ("X-Request-Id", "me-7"),
        ];
        for (path, fields) in [
            ("/guide", &fields[..]),
            ("/skill.md", &fields[..]),
            ("/none", &[]),
        ] {
            crate::http::request(edge.http, "GET", DOMAIN, path, fields);
        }
        let received = origin.received();
        assert_eq!(received[0].field("traceparent"), Some(PARENT));
        assert_eq!(received[0].field("tracestate"), Some("a=1"));
        assert_eq!(received[0].field("x-request-id"), Some("me-7"));
        let bare = received.last().unwrap();
        assert_eq!(
            (bare.field("traceparent"), bare.field("x-request-id")),
            (None, None)
        );
        let lines = edge.stop();
        // A response arrives before its line is written, so the lines have no order.
        let line = |path: &str| lines.iter().find(|line| line["path"] == path).unwrap();
        for line in ["/guide", "/skill.md"].map(line) {
            assert_eq!(line["trace"], "4bf92f3577b34da6a3ce929d0e0e4736", "{line}");
            assert_eq!(line["request_id"], "me-7", "{line}");
        }
        let bare = line("/none");
        assert!(bare.get("trace").is_none() && bare.get("request_id").is_none());
    }
}

#[test]
fn a_request_without_a_trace_gets_one_if_that_is_configured() {
    for fast_path in [true, false] {
        let origin = Origin::start();
        let upstream = format!(
            "{{ create_trace_context: true, create_request_id: false, {LOCAL_UPSTREAMS} }}"
        );
        let edge = Setup::new()
            .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
            .conf("upstream", &upstream)
            .acme_before(&origin)
            .start();
        let wrong = [("traceparent", "00-abc-def-01"), ("tracestate", "a=1")];
        let valid = [("traceparent", PARENT), ("tracestate", "a=1")];
        for fields in [&[][..], &wrong, &valid, &[("X-Request-Id", "me-7")]] {
            crate::http::request(edge.http, "GET", DOMAIN, "/guide", fields);
        }
        let received = origin.received();
        let lines = edge.stop();
        assert_eq!(lines.len(), 4);
        let mut traces = Vec::new();
        for request in &received {
            let parent = request.field("traceparent").unwrap();
            let trace = parent.split('-').nth(1).unwrap();
            assert!(lines.iter().any(|line| line["trace"] == trace), "{trace}");
            traces.push((
                trace.to_owned(),
                request.field("x-request-id").unwrap().to_owned(),
            ));
        }
        assert_eq!(traces.len(), 4);
        assert!(traces[0].0 == traces[0].1 && traces[1].0 == traces[1].1);
        assert_ne!(traces[0].0, traces[1].0);
        assert_eq!(received[1].field("tracestate"), None);
        assert_eq!(received[2].field("traceparent"), Some(PARENT));
        assert_eq!(received[2].field("tracestate"), Some("a=1"));
        assert_eq!(traces[2].0, traces[2].1);
        assert_eq!(traces[3].1, "me-7");
    }
}

#[test]
fn each_request_has_an_id_that_only_a_trusted_peer_names() {
    for (fast_path, trusted) in [
        (true, ""),
        (true, "127.0.0.1"),
        (false, ""),
        (false, "127.0.0.1"),
    ] {
        let origin = Origin::start();
        let connections = format!("{{ fast_path: {fast_path}, trusted_peers: [{trusted}] }}");
        let edge = Setup::new()
            .conf("connections", &connections)
            .acme_before(&origin)
            .start();
        let id = ("X-Request-Id", "me-7");
        let paths = ["/guide", "/skill.md", "/none", "/traced"];
        for path in paths {
            let fields = [id, ("traceparent", PARENT)];
            let fields = match path {
                "/none" => &[][..],
                "/traced" => &fields[1..],
                _ => &fields[..1],
            };
            crate::http::request(edge.http, "GET", DOMAIN, path, fields);
        }
        let received = origin.received();
        let lines = edge.stop();
        assert_eq!(lines.len(), paths.len());
        let mut ids = std::collections::BTreeSet::new();
        for line in &lines {
            let (path, id) = (
                line["path"].as_str().unwrap(),
                line["request_id"].as_str().unwrap(),
            );
            let is_random = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            match path {
                "/traced" => assert_eq!(id, &PARENT[3..35]),
                "/guide" | "/skill.md" if !trusted.is_empty() => assert_eq!(id, "me-7"),
                _ => assert!(is_random && ids.insert(id.to_owned()), "{line}"),
            }
            let got = received.iter().find(|request| request.target == path);
            match path {
                "/skill.md" => assert!(got.is_none()),
                _ => assert_eq!(got.unwrap().field("x-request-id"), Some(id), "{line}"),
            }
        }
    }
}

/// A program renames the file, sometimes makes a new one, and tells the gateway, as logrotate does.
#[test]
fn no_line_is_lost_while_the_access_log_is_rotated() {
    let edge = Setup::new().acme("").with_skill().start();
    let is_over = AtomicBool::new(false);
    let responses = AtomicUsize::new(0);
    let path = edge.setup.path("access.log");
    let rotations = 20;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut connection = Connection::open(edge.http);
                while !is_over.load(Ordering::Relaxed) {
                    let request = format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
                    connection.send(request.as_bytes());
                    assert_eq!(connection.receive("GET").unwrap().status, 200);
                    responses.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 0..rotations {
            let before = responses.load(Ordering::Relaxed);
            let since = Instant::now();
            while responses.load(Ordering::Relaxed) < before + 50 || !path.exists() {
                assert!(since.elapsed() < TIMEOUT);
                crate::http::pause();
            }
            fs::rename(&path, path.with_extension(format!("log.{number}"))).unwrap();
            if number % 2 == 0 {
                fs::write(&path, "").unwrap();
            }
            edge.signal("HUP");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let mut files: Vec<_> = (0..rotations)
        .map(|number| path.with_extension(format!("log.{number}")))
        .collect();
    files.push(path.clone());
    edge.signal("TERM");
    let setup = edge.ended();
    let text: String = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), responses.into_inner());
    drop(setup);
}

#[test]
fn the_process_log_can_be_a_file_that_is_rotated() {
    let setup = Setup::new().acme("");
    let path = setup.path("waypost.log");
    let log = format!("{{ file: {}, filter: info }}", path.display());
    let setup = setup.conf("log", &log);
    setup.write_conf();
    let mut process = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["serve", "--conf"])
        .arg(setup.path("waypost.yaml"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let wait_for = |part: &str| {
        let since = Instant::now();
        while !fs::read_to_string(&path).is_ok_and(|text| text.contains(part)) {
            assert!(since.elapsed() < TIMEOUT, "the log has no line with {part}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for("scheme=http");
    fs::rename(&path, path.with_extension("1")).unwrap();
    let status = Command::new("kill")
        .args(["-s", "HUP", &process.id().to_string()])
        .status();
    assert!(status.unwrap().success());
    wait_for("SIGHUP");
    process.kill().unwrap();
    process.wait().unwrap();
    let before = fs::read_to_string(path.with_extension("1")).unwrap();
    assert!(before.contains("scheme=http") && !before.contains("SIGHUP"));
}

//! Each access line says how its request ended and how long it waited for an upstream, on
//! every path.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;

use serde_json::Value;

use crate::edge::{Edge, LOCAL_UPSTREAMS, Setup};
use crate::http::{Connection, TIMEOUT};
use crate::origin::{After, Origin, write_page};
use crate::ports::free_address;
use crate::presets::DOMAIN;

/// The times of an access line, in the order in which they pass.
const WAITS: [&str; 3] = ["connect_us", "first_byte_us", "body_us"];
/// The shortest time of a wait that ends after `read_seconds: 1`.
const SECOND: u64 = 1_000_000;

/// An origin that fails in the way that the path names.
fn failing() -> Origin {
    Origin::responding(|request, stream| {
        let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
        let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
        match &*request.target {
            "/closes" => return After::Close,
            "/nonsense" => {
                let _closed = stream.write_all(b"220 mail.acme.test ESMTP\r\n\r\n");
                return After::Close;
            }
            "/silent" => {
                // Until the gateway gives up.
                let _closed = stream.read(&mut [0]);
                return After::Close;
            }
            "/half-closes" => {
                let _closed = stream.write_all(half.as_bytes());
                return After::Close;
            }
            "/half-silent" => {
                let _closed = stream.write_all(half.as_bytes());
                let _closed = stream.read(&mut [0]);
                return After::Close;
            }
            "/chunk-closes" => {
                let _closed = stream.write_all(chunk.as_bytes());
                return After::Close;
            }
            "/chunk-nonsense" => {
                let _closed = stream.write_all(chunk.as_bytes());
                let _closed = stream.write_all(b"zz\r\n");
                let _closed = stream.read(&mut [0]);
                return After::Close;
            }
            "/endless" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
                let _closed = stream.write_all(head.as_bytes());
                while stream.write_all(&[b'a'; 64 << 10]).is_ok() {}
                return After::Close;
            }
            _ => write_page(stream, &request.method, "page"),
        }
        After::Keep
    })
}

fn edge(fast_path: bool, origin: &Origin) -> Edge {
    let gone = free_address();
    let upstream = format!("{{ read_seconds: 1, {LOCAL_UPSTREAMS} }}");
    Setup::new()
        .conf(
            "connections",
            &format!("{{ fast_path: {fast_path}, head_seconds: 1 }}"),
        )
        .conf("upstream", &upstream)
        .acme_before(origin)
        .site("gone", &format!("origin: {{ url: \"http://{gone}\" }}"))
        .site(
            "unknown",
            "origin: { url: \"http://no-such-host.invalid\" }",
        )
        .start()
}

/// Sends a request and reads everything that comes, or as little as `reads`.
fn send(edge: &Edge, request: &str, reads: Option<usize>) {
    let mut connection = Connection::open(edge.http);
    connection.send(request.as_bytes());
    match reads {
        Some(bytes) => drop(connection.receive_bytes(bytes)),
        None => {
            let mut stream = connection.into_stream();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            // A reset also ends the connection.
            let _reset = stream.read_to_end(&mut Vec::new());
        }
    }
}

#[track_caller]
fn line<'l>(lines: &'l [Value], path: &str) -> &'l Value {
    let mut found = lines.iter().filter(|line| line["path"] == path);
    let line = found.next().unwrap_or_else(|| panic!("no line of {path}"));
    assert!(found.next().is_none(), "{path} is logged twice");
    line
}

#[test]
fn each_end_has_its_word_and_its_waits_on_every_path() {
    for fast_path in [true, false] {
        let origin = failing();
        let edge = edge(fast_path, &origin);
        // The path, the word, how many waits there are, and whether the last is as long as
        // `read_seconds`.
        let cases = [
            ("/page", "complete", 3, false),
            ("/closes", "upstream_closed", 2, false),
            ("/nonsense", "upstream_invalid", 2, false),
            ("/silent", "upstream_first_byte_timeout", 2, true),
            ("/half-closes", "upstream_closed", 3, false),
            ("/half-silent", "upstream_read_timeout", 3, true),
            ("/chunk-closes", "upstream_closed", 3, false),
            ("/chunk-nonsense", "upstream_invalid", 3, false),
            ("/skill.md", "complete", 0, false),
            ("/endless", "client_closed", 3, false),
            ("/refused", "upstream_refused", 1, false),
            ("/unknown", "upstream_unknown", 1, false),
            ("/short-body", "request_invalid", 0, false),
            ("/bad#target", "request_invalid", 0, false),
        ];
        for (path, ..) in cases {
            let host = match path {
                "/refused" => "gone.waypost.localhost",
                "/unknown" => "unknown.waypost.localhost",
                _ => DOMAIN,
            };
            let (method, fields, reads) = match path {
                "/short-body" => ("POST", "Content-Length: 10\r\n", None),
                "/endless" => ("GET", "", Some(100_000)),
                _ => ("GET", "Connection: close\r\n", None),
            };
            let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
            send(&edge, &request, reads);
        }
        let many = "x: y\r\n".repeat(101);
        send(
            &edge,
            &format!("GET /fields HTTP/1.1\r\nHost: a\r\n{many}\r\n"),
            None,
        );
        // The client goes away while its request is served: its line is the last to come.
        edge.wait_for_metric(
            "gateway_requests_ended_total{reason=\"client_closed\"}",
            1.0,
        );
        for (reason, count) in [
            ("upstream_closed", 3.0),
            ("upstream_first_byte_timeout", 1.0),
            ("upstream_read_timeout", 1.0),
            ("head_limit", 1.0),
            ("failed", 0.0),
        ] {
            let series = format!("gateway_requests_ended_total{{reason=\"{reason}\"}}");
            assert_eq!(edge.metric(&series).max(0.0), count, "{reason}");
        }
        let waited = edge.metric("gateway_upstream_wait_seconds_count{for=\"first_byte\"}");
        assert!(waited >= 9.0, "{waited}");
        let lines = edge.stop();
        for (path, word, waits, is_long) in cases {
            let path = path.split('#').next().unwrap();
            let line = line(&lines, path);
            let context = format!("fast path {fast_path}: {line}");
            assert_eq!(line["ended"], word, "{context}");
            if path == "/short-body" {
                // On the proxy path the connection is made before the body has come.
                continue;
            }
            let has: Vec<_> = WAITS.iter().filter_map(|key| line[key].as_u64()).collect();
            assert_eq!(has.len(), waits, "{context}");
            let took = line["took_us"].as_u64().unwrap();
            assert!(has.iter().sum::<u64>() <= took + 1, "{context}");
            if is_long {
                assert!(*has.last().unwrap() >= SECOND, "{context}");
            }
        }
        assert_eq!(line(&lines, "/fields")["ended"], "head_limit");
    }
}

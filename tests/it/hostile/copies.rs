//! Copies of responses: no client gets the page of another, no site fills the disk or removes the
//! copies of another, and a full disk harms no response.

use std::fs;
use std::io::Write as _;

use crate::copies::{Server, count, files, get, ready, setup, wait_for};
use crate::edge::LOCAL_UPSTREAMS;
use crate::full::SmallDisk;
use crate::http::request;
use crate::http::wait_until;
use crate::origin::{After, Origin};
use crate::presets::DOMAIN;

#[test]
fn no_client_gets_what_another_client_has_seen() {
    for fast_path in [true, false] {
        let server = Server::start();
        let edge = setup(fast_path, "")
            .acme(&server.origin.record())
            .site(
                "other",
                &format!("domains: [other.test]\n{}", server.origin.record()),
            )
            .start();
        ready(&edge);
        // Pages for one client, and pages into which a client may have written something.
        let personal = [
            ("Cookie", "session=1"),
            ("Authorization", "Bearer a"),
            ("X-Forwarded-Scheme", "nothttps"),
            ("X-Host", "evil.test"),
            ("X-HTTP-Method-Override", "POST"),
            ("Origin", "https://evil.test"),
            ("Cache-Control", "no-store"),
        ];
        for (at, field) in personal.iter().enumerate() {
            assert_eq!(get(&edge, &format!("/{at}"), &[*field]).status, 200);
        }
        assert_eq!(get(&edge, "/page?a", &[]).status, 200);
        wait_for(&edge, "stored", 2.0);
        server.set(503);
        for (at, (name, _)) in personal.iter().enumerate() {
            let status = get(&edge, &format!("/{at}"), &[]).status;
            // What claims to be a proxy's is removed before the server sees it.
            let expected = if *name == "X-Forwarded-Scheme" {
                200
            } else {
                503
            };
            assert_eq!(status, expected, "fast path {fast_path}: {name}");
        }
        assert_eq!(get(&edge, "/page?a", &[("Cookie", "a=b")]).status, 200);
        // Another host, site, path, query, or a client that says who it is.
        let at = |host: &str, path: &str| request(edge.http, "GET", host, path, &[]).status;
        assert_eq!(at("acme.waypost.localhost", "/page?a"), 503);
        assert_eq!(at("other.test", "/page?a"), 503);
        assert_eq!((at(DOMAIN, "/page"), at(DOMAIN, "/page?b")), (503, 503));
        let named = get(&edge, "/page?a", &[("Authorization", "Bearer a")]);
        assert_eq!(named.status, 503);
        let socket = [("Upgrade", "websocket"), ("Connection", "upgrade")];
        assert_eq!(get(&edge, "/page?a", &socket).status, 503);
    }
}

#[test]
fn a_request_whose_response_could_not_be_kept_removes_no_copy() {
    for fast_path in [true, false] {
        let server = Server::start();
        let edge = setup(fast_path, "").acme(&server.origin.record()).start();
        ready(&edge);
        assert_eq!(get(&edge, "/page", &[]).status, 200);
        wait_for(&edge, "stored", 1.0);
        let has_copy = || {
            server.set(503);
            get(&edge, "/page", &[]).status == 200
        };
        for (method, field) in [
            ("GET", ("X-HTTP-Method-Override", "DELETE")),
            ("GET", ("Origin", "https://evil.test")),
            ("GET", ("Range", "bytes=0-1")),
            ("GET", ("Cache-Control", "no-store")),
            ("GET", ("Cookie", "banned=1")),
            ("GET", ("Authorization", "Bearer a")),
            // Some servers know no HEAD.
            ("HEAD", ("Accept", "*/*")),
        ] {
            for status in [302, 403, 404, 410] {
                server.set(status);
                let response = request(edge.http, method, DOMAIN, "/page", &[field]);
                assert_eq!(response.status, status, "{method} {field:?}");
                assert!(has_copy(), "{fast_path} {method} {field:?} {status}");
            }
            server.set(200);
            server.respond_with("Cache-Control: private\r\n");
            let response = request(edge.http, method, DOMAIN, "/page", &[field]);
            assert_eq!(response.status, 200, "{method} {field:?}");
            assert!(has_copy(), "{fast_path} {method} {field:?} private");
        }
        server.set(404);
        assert_eq!(get(&edge, "/page", &[]).status, 404);
        assert!(!has_copy());
    }
}

#[test]
fn a_client_gets_no_coding_that_it_does_not_accept() {
    let server = Server::start();
    let edge = setup(true, "").acme(&server.origin.record()).start();
    ready(&edge);
    server.respond_with("Content-Encoding: gzip\r\nVary: Accept-Encoding\r\nX-Form: gzip\r\n");
    let gzip = [("Accept-Encoding", "br, gzip")];
    assert_eq!(get(&edge, "/a", &gzip).status, 200);
    assert_eq!(get(&edge, "/b", &gzip).status, 200);
    server.respond_with("Vary: Accept-Encoding\r\nX-Form: plain\r\n");
    assert_eq!(get(&edge, "/b", &[]).status, 200);
    wait_for(&edge, "stored", 3.0);
    server.set(503);
    assert_eq!(
        get(&edge, "/a", &[("Accept-Encoding", "gzip;q=0.5")]).status,
        200
    );
    for fields in [
        &[][..],
        &[("Accept-Encoding", "br")],
        &[("Accept-Encoding", "gzip;q=0")],
    ] {
        assert_eq!(get(&edge, "/a", fields).status, 503, "{fields:?}");
        let plain = get(&edge, "/b", fields);
        assert_eq!((plain.status, plain.field("x-form")), (200, Some("plain")));
    }
}

#[test]
fn a_site_with_endless_pages_fills_no_disk_and_removes_no_copy_of_another() {
    let origin = Origin::responding(|request, stream| {
        let page = match &*request.target {
            "/endless" => {
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                let _closed = stream.write_all(head.as_bytes());
                let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
                for _ in 0..64 {
                    let _closed = stream.write_all(chunk.as_bytes());
                }
                let _closed = stream.write_all(b"0\r\n\r\n");
                return After::Keep;
            }
            target => format!("{target} {}", "x".repeat(20_000)),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
        let _closed = stream.write_all(format!("{head}{page}").as_bytes());
        After::Keep
    });
    let small = Server::start();
    let edge = setup(true, ", site_bytes_max: 1048576, total_bytes_max: 1572864")
        .acme(&origin.record())
        .site(
            "small",
            &format!("domains: [small.test]\n{}", small.origin.record()),
        )
        .start();
    ready(&edge);
    let of_small = |path: &str| request(edge.http, "GET", "small.test", path, &[]).status;
    assert_eq!(of_small("/page"), 200);
    // Requested again: it is wanted.
    for _ in 0..2 {
        assert_eq!(get(&edge, "/wanted", &[]).status, 200);
        wait_for(&edge, "stored", 2.0);
    }
    assert_eq!(get(&edge, "/endless", &[]).body.len(), 64 << 16);
    for at in 0..150 {
        let path = format!("/page?{at}");
        assert_eq!(get(&edge, &path, &[]).status, 200);
        wait_for(&edge, "stored", 3.0 + f64::from(at));
        let used: u64 = files(&edge)
            .iter()
            .map(|file| fs::metadata(file).map_or(0, |found| found.len()))
            .sum();
        // The file of a copy that was removed may be there for a moment.
        assert!(used < (1 << 20) + (64 << 10), "{used} bytes after {at}");
    }
    assert!(count(&edge, "evicted") > 90.0);
    small.set(503);
    assert_eq!(of_small("/page"), 200);
    let bytes = edge.metric("gateway_copies_bytes");
    assert!((500_000.0..=1_572_864.0).contains(&bytes), "{bytes}");
    assert_eq!(count(&edge, "stored"), 152.0);
}

#[test]
fn a_full_or_broken_disk_changes_no_response() {
    let disk = SmallDisk::mount();
    let server = Server::start();
    for fast_path in [true, false] {
        let edge = setup(fast_path, "")
            .conf(
                "upstream",
                &format!(
                    "{{ copies: {{ directory: {}, free_bytes_min: 0 }}, {LOCAL_UPSTREAMS} }}",
                    disk.path(&format!("copies-{fast_path}"))
                ),
            )
            .acme(&server.origin.record())
            .start();
        ready(&edge);
        server.set(200);
        assert_eq!(get(&edge, "/a", &[]).status, 200);
        wait_for(&edge, "stored", 1.0);
        disk.fill();
        for at in 0..50 {
            let page = get(&edge, &format!("/{at}"), &[]);
            assert_eq!(
                (page.status, page.text()),
                (200, &*format!("/{at} at {DOMAIN}"))
            );
        }
        wait_until("the disk fails", || count(&edge, "failed") > 0.0);
        // The disk is not asked again at once.
        wait_until("copies are dropped", || count(&edge, "dropped") > 10.0);
        assert!(count(&edge, "failed") < 5.0);
        server.set(503);
        assert_eq!(get(&edge, "/a", &[]).status, 200);
        assert_eq!(get(&edge, "/1", &[]).status, 503);
        disk.free();
        edge.stop();
    }
}

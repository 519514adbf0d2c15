//! Which hosts and which spellings of a path the gateway serves itself.
//!
//! Sources: RFC 9110 §7.2 (`Host`), §7.4 (misdirected requests); RFC 3986 §6.2.2.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};

use super::serving;
use crate::edge::{Edge, Setup};
use crate::http;
use crate::presets::{CARD, LEGACY, MANIFEST, PAY, SKILL};

/// Starts a customer's own server, which responds to every request with the body `origin`.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                line.clear();
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\norigin";
            // The gateway may have closed the connection after its timeout.
            let _closed = reader.get_mut().write_all(answer);
        }
    });
    address
}

/// A gateway with two skills in front of a customer's own server.
fn before_an_origin(record: &str) -> Edge {
    let origin = origin();
    serving(
        &format!("origin: {{ url: \"http://{origin}\" }}\n{record}"),
        &[SKILL, PAY],
    )
}

/// Sends a request without the checks for the gateway's own responses.
#[track_caller]
fn is_from_origin(edge: &Edge, path: &str) -> bool {
    let response = http::request(edge.http, "GET", "acme.waypost.localhost", path, &[]);
    let is_origins = response.body == b"origin";
    if !is_origins {
        response.check("GET");
    }
    is_origins
}

#[test]
fn what_is_not_discovery_goes_to_the_origin() {
    let edge = before_an_origin("base_path: /docs");
    for path in [
        "/",
        "/docs/",
        "/docs/guide",
        "/skill.mdx",
        "/skill.md.bak",
        "/Skill.md",
        "/SKILL.md",
        "/docs/skill.md/deeper",
        "/.well-known/acme-challenge/token",
        "/.well-known/agent-card.jsonld",
        "/.well-known/agent-skillset/index.json",
        "/.well-known/skillsets",
        "/.WELL-KNOWN/skills/index.json",
        "//skill.md",
        "/docs//skill.md",
        "/other/skill.md",
        "/docs2/skill.md",
        "/docs%2Fskill.md",
        "/%2Fskill.md",
    ] {
        assert!(is_from_origin(&edge, path), "{path}");
    }
}

#[test]
fn what_looks_like_discovery_and_is_not_there_never_comes_from_the_origin() {
    let edge = before_an_origin("base_path: /docs");
    for base in ["", "/docs"] {
        for path in [
            "/.well-known/agent-skills",
            "/.well-known/agent-skills/",
            "/.well-known/agent-skills/nobody/SKILL.md",
            "/.well-known/agent-skills/sdk",
            "/.well-known/agent-skills/sdk/",
            "/.well-known/agent-skills/sdk/skill.md",
            "/.well-known/agent-skills/sdk/SKILL.md/",
            "/.well-known/agent-skills/sdk/reference.md",
            "/.well-known/agent-skills/SDK/SKILL.md",
            "/.well-known/agent-skills//SKILL.md",
            "/.well-known/agent-skills/index.json/",
            "/.well-known/agent-skills/INDEX.json",
            "/.well-known/agent-skills/sdk%2FSKILL.md",
            "/.well-known/skills",
            "/.well-known/skills/",
            "/.well-known/skills/nobody/skill.md",
            "/.well-known/skills/sdk",
            "/.well-known/skills/sdk/",
            "/.well-known/skills/sdk/Skill.md",
            "/.well-known/skills/index.json/",
            "/.well-known/agent-card.json/",
            "/skill.md/",
        ] {
            let path = format!("{base}{path}");
            let response = edge.get("acme.waypost.localhost", &path);
            assert_eq!(response.status, 404, "{path}");
            assert_eq!(response.field("vary"), Some("Accept-Encoding"), "{path}");
        }
    }
}

#[test]
fn another_spelling_of_a_path_is_the_same_document() {
    let edge = before_an_origin("base_path: /docs");
    let host = "acme.waypost.localhost";
    for (path, spellings) in [
        (
            MANIFEST,
            &[
                "/.well-known/agent-skills/index.json?v=1",
                "/.well-known/agent-skills/index.json?",
                "/%2Ewell-known/agent%2dskills/index%2Ejson",
                "/./.well-known/agent-skills/index.json",
                "/guide/../.well-known/agent-skills/./index.json",
                "/../../.well-known/agent-skills/index.json",
                "/.well-known/skills/../agent-skills/index.json",
                "/docs/guide/%2e%2e/.well-known/agent-skills/index.json",
                "/docs/../.well-known/agent-skills/index.json",
            ][..],
        ),
        (
            "/.well-known/skills/sdk/SKILL.md",
            &[
                "/.well-known/skills/s%64k/SKILL.md",
                "/.well-known/skills/pay-refund/../sdk/SKILL.md",
                "/docs/.well-known/skills/sdk/%53KILL.md",
            ],
        ),
        (
            CARD,
            &[
                "/.well-known/agent-card%2Ejson",
                "/docs/./.well-known/agent-card.json",
            ],
        ),
        (LEGACY, &["/.well-known/skills/sdk/../index.json"]),
    ] {
        let wanted = edge.get(host, path).normalised();
        assert_eq!(wanted.status, 200);
        for spelling in spellings {
            assert_eq!(edge.get(host, spelling).normalised(), wanted, "{spelling}");
        }
    }
}

#[test]
fn a_host_is_the_same_in_every_spelling() {
    let edge = serving("domains: [docs.acme.test, under_score.acme.test]", &[SKILL]);
    for host in [
        "docs.acme.test",
        "docs.acme.test.",
        "docs.acme.test:80",
        "docs.acme.test:8080",
        "docs.acme.test.:65535",
        "docs.acme.test:",
        "DOCS.ACME.TEST",
        "Docs.Acme.Test.:443",
        "under_score.acme.test",
        "ACME.waypost.localhost",
        "acme.waypost.localhost.:8080",
    ] {
        assert_eq!(edge.get(host, "/skill.md").text(), SKILL, "{host}");
    }
}

#[test]
fn an_unknown_host_is_404_and_what_is_no_host_name_400() {
    let edge = serving("domains: [docs.acme.test]", &[SKILL]);
    for host in [
        "other.acme.test",
        "acme.test",
        "deeper.docs.acme.test",
        "waypost.localhost",
        "nobody.waypost.localhost",
        "localhost",
        "xdocs.acme.test",
    ] {
        for path in ["/skill.md", "/", MANIFEST] {
            assert_eq!(edge.get(host, path).status, 404, "{host}{path}");
        }
    }
    for host in [
        "127.0.0.1",
        "127.0.0.1:8080",
        "[::1]",
        "[::1]:8080",
        "1.2.3",
        "docs..acme.test",
        ".docs.acme.test",
        "docs.acme.test:port",
        "docs.acme.test:80:80",
        "docs acme.test",
        "docs.acme.test/",
        "user@docs.acme.test",
        "dócs.acme.test",
    ] {
        for path in ["/skill.md", "/"] {
            assert_eq!(edge.get(host, path).status, 400, "{host}{path}");
        }
    }
}

#[test]
fn only_host_selects_a_site() {
    let edge = Setup::new()
        .acme("")
        .site("other", "domains: [docs.other.test]")
        .start();
    edge.publish("acme", &[("skill.md", SKILL)]);
    edge.publish("other", &[("skill.md", PAY)]);
    let forwarded = [
        ("X-Forwarded-Host", "docs.acme.test"),
        ("Forwarded", "host=docs.acme.test"),
        ("X-Original-Host", "docs.acme.test"),
    ];
    let response = edge.request("GET", "docs.other.test", "/skill.md", &forwarded);
    assert_eq!(response.text(), PAY);
    let response = edge.request("GET", "nobody.test", "/skill.md", &forwarded);
    assert_eq!(response.status, 404);
}

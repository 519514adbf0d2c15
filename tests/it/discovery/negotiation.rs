//! Methods, conditions, codings, and the fields of every response.
//!
//! Sources: RFC 9110 §9, §12.5.3 and §13; RFC 9111 §5.2; Fetch §3.2; RFC 7932, 8878, 1952.

use std::io::Read as _;

use super::{long_skill, serving, sha256};
use crate::edge::{Edge, Setup};
use crate::http::Response;
use crate::presets::{CARD, LEGACY, MANIFEST, PAY, SKILL, SUBDOMAIN};

const CODINGS: [&str; 3] = ["br", "zstd", "gzip"];
const LONG: &str = "/.well-known/agent-skills/long/SKILL.md";
/// Every document of a site with two skills.
const DOCUMENTS: [&str; 7] = [
    "/skill.md",
    MANIFEST,
    LONG,
    LEGACY,
    "/.well-known/skills/long/SKILL.md",
    "/.well-known/skills/long/skill.md",
    CARD,
];

/// A site with one long skill and many others, so that its lists are compressed too.
fn compressible() -> Edge {
    let long = long_skill();
    let others: Vec<String> = (0..20)
        .map(|nth| format!("---\nname: pay-{nth}\ndescription: Take payments.\n---\n"))
        .collect();
    let skills: Vec<&str> = std::iter::once(long.as_str())
        .chain(others.iter().map(String::as_str))
        .collect();
    serving("", &skills)
}

#[track_caller]
fn decode(response: &Response) -> Vec<u8> {
    let mut out = Vec::new();
    let body = response.body.as_slice();
    match response.field("content-encoding") {
        None => out.extend_from_slice(body),
        Some("br") => {
            brotli::Decompressor::new(body, 4096)
                .read_to_end(&mut out)
                .unwrap();
        }
        Some("zstd") => zstd::stream::copy_decode(body, &mut out).unwrap(),
        Some("gzip") => {
            flate2::read::GzDecoder::new(body)
                .read_to_end(&mut out)
                .unwrap();
        }
        Some(other) => panic!("nobody asked for {other}"),
    }
    out
}

#[track_caller]
fn accepting(edge: &Edge, path: &str, codings: &str) -> Response {
    edge.request("GET", SUBDOMAIN, path, &[("Accept-Encoding", codings)])
}

#[test]
fn every_coding_decodes_to_the_identity_bytes() {
    let edge = compressible();
    for path in [LONG, MANIFEST, LEGACY, CARD] {
        let plain = edge.get(SUBDOMAIN, path);
        assert_eq!(plain.field("content-encoding"), None);
        for coding in CODINGS {
            let coded = accepting(&edge, path, coding);
            assert_eq!(coded.field("content-encoding"), Some(coding), "{path}");
            assert!(coded.body.len() < plain.body.len());
            assert_eq!(decode(&coded), plain.body, "{path} in {coding}");
        }
    }
}

#[test]
fn a_client_gets_the_best_encoding_that_it_accepts() {
    let edge = compressible();
    for (accept, coding) in [
        ("gzip, deflate", Some("gzip")),
        ("gzip, deflate, br", Some("br")),
        ("gzip, deflate, br, zstd", Some("br")),
        ("gzip, zstd", Some("zstd")),
        ("GZIP", Some("gzip")),
        ("br;q=0, gzip", Some("gzip")),
        ("*", Some("br")),
        ("br;q=0, zstd;q=0, *", Some("gzip")),
        ("identity", None),
        ("deflate, compress", None),
        ("br;q=0", None),
        ("", None),
    ] {
        let response = accepting(&edge, LONG, accept);
        assert_eq!(response.status, 200, "{accept:?}");
        assert_eq!(response.field("content-encoding"), coding, "{accept:?}");
        assert_eq!(decode(&response), long_skill().as_bytes(), "{accept:?}");
    }
}

#[test]
fn a_short_document_is_sent_as_it_is() {
    let edge = serving("", &[SKILL]);
    let response = accepting(&edge, "/skill.md", "br, zstd, gzip");
    assert_eq!(response.field("content-encoding"), None);
    assert_eq!(response.text(), SKILL);
    // A cache must know that the response depends on this field, even if this one is identity.
    assert_eq!(response.field("vary"), Some("Accept-Encoding"));
}

#[test]
fn entity_tags_depend_only_on_content_and_encoding() {
    let edge = compressible();
    let store = format!(
        "{{ local: {{ path: {} }} }}",
        edge.setup.path("store").display()
    );
    let other = Setup::new().conf("store", &store).site("acme", "").start();
    for path in [LONG, MANIFEST, LEGACY, CARD] {
        let mut seen = Vec::new();
        for codings in ["identity", "br", "zstd", "gzip"] {
            let (here, there) = (
                accepting(&edge, path, codings),
                accepting(&other, path, codings),
            );
            assert_eq!(here.clone().normalised(), there.normalised(), "{path}");
            let tag = here.field("etag").unwrap().to_owned();
            // RFC 9110 §8.8.3: a strong tag has no `W/`.
            assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
            assert!(tag.contains(&sha256(&decode(&here))[..32]), "{tag}");
            assert!(!seen.contains(&tag), "{tag} names two codings");
            seen.push(tag);
        }
    }
}

#[test]
fn head_is_get_without_its_body() {
    let edge = compressible();
    let paths = DOCUMENTS
        .into_iter()
        .chain(["/.well-known/skills/nobody/SKILL.md"]);
    for path in paths {
        for fields in [&[][..], &[("Accept-Encoding", "gzip")]] {
            let get = edge.request("GET", SUBDOMAIN, path, fields).normalised();
            let head = edge.request("HEAD", SUBDOMAIN, path, fields).normalised();
            assert_eq!(
                (get.status, &get.fields),
                (head.status, &head.fields),
                "{path}"
            );
        }
    }
}

#[test]
fn options_describes_the_allowed_cross_origin_requests() {
    let edge = compressible();
    for path in DOCUMENTS {
        let fields = [
            ("Origin", "https://elsewhere.test"),
            ("Access-Control-Request-Method", "GET"),
            // The A2A SDK for JavaScript sends this field, so browsers send a preflight request.
            ("Access-Control-Request-Headers", "a2a-version"),
        ];
        let response = edge.request("OPTIONS", SUBDOMAIN, path, &fields);
        assert_eq!(response.status, 204, "{path}");
        assert_eq!(response.field("allow"), Some("GET, HEAD, OPTIONS"));
        assert_eq!(response.field("access-control-allow-origin"), Some("*"));
        let methods = response.field("access-control-allow-methods").unwrap();
        assert!(
            methods.contains("GET") && methods.contains("HEAD"),
            "{methods}"
        );
        let headers = response.field("access-control-allow-headers").unwrap();
        assert!(
            headers.to_ascii_lowercase().contains("a2a-version"),
            "{headers}"
        );
    }
}

#[test]
fn other_methods_are_405_with_the_allowed_methods() {
    let edge = compressible();
    for path in DOCUMENTS {
        for method in ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"] {
            let response = edge.request(method, SUBDOMAIN, path, &[("Content-Length", "0")]);
            assert_eq!(response.status, 405, "{method} {path}");
            assert_eq!(response.field("allow"), Some("GET, HEAD, OPTIONS"));
        }
    }
}

#[test]
fn every_document_carries_the_fields_that_caches_and_browsers_need() {
    let edge = compressible();
    for path in DOCUMENTS {
        let response = edge.get(SUBDOMAIN, path);
        assert_eq!(
            response.field("cache-control"),
            Some("public, max-age=60, no-transform")
        );
        assert_eq!(response.field("access-control-allow-origin"), Some("*"));
        if response.status != 200 {
            continue;
        }
        assert_eq!(response.field("x-content-type-options"), Some("nosniff"));
        assert_eq!(response.field("vary"), Some("Accept-Encoding"));
        // These also depend on the site record, which has no date.
        let has_date = path != CARD && path != MANIFEST;
        assert_eq!(
            response.field("last-modified").is_some(),
            has_date,
            "{path}"
        );
    }
    let absent = edge.get(SUBDOMAIN, "/.well-known/agent-skills/nobody/SKILL.md");
    assert_eq!(absent.status, 404);
    assert_eq!(
        absent.field("cache-control"),
        Some("public, max-age=10, no-transform")
    );
    assert_eq!(absent.field("vary"), Some("Accept-Encoding"));
    assert_eq!(absent.field("access-control-allow-origin"), Some("*"));
    assert_eq!(absent.field("x-content-type-options"), Some("nosniff"));
}

#[test]
fn a_fresh_copy_is_not_sent_again() {
    let edge = compressible();
    for path in [LONG, MANIFEST, LEGACY, CARD] {
        for codings in ["identity", "br"] {
            let whole = accepting(&edge, path, codings);
            let tag = whole.field("etag").unwrap().to_owned();
            for condition in [
                tag.clone(),
                format!("W/{tag}"),
                format!("\"another\", W/\"third\",{tag}"),
                format!("\"with, comma\" , {tag} , \"last\""),
                "*".to_owned(),
            ] {
                let fields = [("Accept-Encoding", codings), ("If-None-Match", &condition)];
                let response = edge.request("GET", SUBDOMAIN, path, &fields);
                assert_eq!(response.status, 304, "{condition} {path}");
                assert!(response.body.is_empty());
                // RFC 9110 §15.4.5: a 304 has these fields of the 200.
                for field in ["etag", "cache-control", "vary", "last-modified"] {
                    assert_eq!(response.field(field), whole.field(field), "{field}");
                }
                let head = edge.request("HEAD", SUBDOMAIN, path, &fields);
                assert_eq!(head.normalised(), response.normalised());
            }
        }
    }
}

#[test]
fn a_copy_of_another_encoding_or_release_is_replaced() {
    let edge = compressible();
    let brotli = accepting(&edge, LONG, "br")
        .field("etag")
        .unwrap()
        .to_owned();
    for condition in [
        &*brotli,
        "\"another\"",
        "W/\"another\"",
        "garbage",
        "\"open",
        "",
    ] {
        let response = edge.request("GET", SUBDOMAIN, LONG, &[("If-None-Match", condition)]);
        assert_eq!(response.status, 200, "{condition:?}");
        assert_eq!(response.text(), long_skill());
    }
    let changed = format!("{}\nOne more line.\n", long_skill());
    super::publish(&edge, &[&changed, PAY]);
    let response = edge.request(
        "GET",
        SUBDOMAIN,
        LONG,
        &[("Accept-Encoding", "br"), ("If-None-Match", &brotli)],
    );
    assert_eq!(response.status, 200);
    assert_eq!(decode(&response), changed.as_bytes());
}

#[test]
fn dates_decide_only_when_no_tag_does() {
    let edge = compressible();
    let whole = edge.get(SUBDOMAIN, LONG);
    let date = whole.field("last-modified").unwrap();
    let tag = whole.field("etag").unwrap();
    let (past, future) = (
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sat, 06 Nov 2094 08:49:37 GMT",
    );
    for (fields, status) in [
        (&[("If-Modified-Since", date)][..], 304),
        (&[("If-Modified-Since", future)], 304),
        (&[("If-Modified-Since", past)], 200),
        (&[("If-Modified-Since", "yesterday")], 200),
        // RFC 9110 §13.1.3: If-Modified-Since is ignored if there is an If-None-Match.
        (
            &[
                ("If-Modified-Since", date),
                ("If-None-Match", "\"another\""),
            ],
            200,
        ),
        (&[("If-Modified-Since", past), ("If-None-Match", tag)], 304),
        (&[("If-Match", "\"another\"")], 412),
        (&[("If-Match", tag)], 200),
        (&[("If-Match", "*")], 200),
        (&[("If-Unmodified-Since", past)], 412),
        (&[("If-Unmodified-Since", date)], 200),
        // RFC 9110 §13.2.2: If-Match first, then If-None-Match.
        (&[("If-Match", "\"another\""), ("If-None-Match", tag)], 412),
    ] {
        let response = edge.request("GET", SUBDOMAIN, LONG, fields);
        assert_eq!(response.status, status, "{fields:?}");
    }
    // RFC 9110 §13.1.1: a weak tag never matches in If-Match.
    let weak = format!("W/{tag}");
    let response = edge.request("GET", SUBDOMAIN, LONG, &[("If-Match", &weak)]);
    assert_eq!(response.status, 412);
}

#[test]
fn a_range_is_ignored() {
    let edge = compressible();
    let whole = edge.get(SUBDOMAIN, LONG).normalised();
    for fields in [
        &[("Range", "bytes=0-9")][..],
        &[("Range", "bytes=0-9"), ("If-Range", "\"another\"")],
    ] {
        let response = edge.request("GET", SUBDOMAIN, LONG, fields);
        assert_eq!(response.normalised(), whole);
    }
}

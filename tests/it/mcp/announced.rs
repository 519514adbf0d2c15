//! Where clients find the server, and how many messages they may send to it.

use serde_json::{Value, json};

use super::{documentation, post_with, serving};
use crate::edge::Setup;
use crate::http::{Connection, silence};
use crate::origin::Origin;
use crate::presets::{DOMAIN, SUBDOMAIN};
use std::time::Duration;

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[test]
fn cards_lists_and_links_name_the_address_of_the_server() {
    let edge = serving("base_path: /docs");
    let endpoint = format!("https://{DOMAIN}/docs/mcp");
    for host in [DOMAIN, SUBDOMAIN] {
        for root in ["", "/docs"] {
            let card = edge.get(host, &format!("{root}/.well-known/mcp/server-card.json"));
            assert_eq!(card.field("access-control-allow-origin"), Some("*"));
            assert_eq!(card.field("content-type"), Some("application/json"));
            let etag = card.field("etag").unwrap();
            let again = edge.request(
                "GET",
                host,
                &format!("{root}/.well-known/mcp/server-card.json"),
                &[("If-None-Match", etag)],
            );
            assert_eq!(again.status, 304);
            let card = card.json();
            assert_eq!(
                (&card["url"], &card["remotes"][0]["url"]),
                (&json!(endpoint), &json!(endpoint))
            );
            assert_eq!(card["name"], "test.acme.docs/acme");
            assert_eq!(card["tools"][0]["name"], "search");
            for list in ["mcp", "mcp.json", "mcp/server-cards.json"] {
                let list = edge.get(host, &format!("{root}/.well-known/{list}")).json();
                assert_eq!(list["servers"][0]["url"], endpoint);
            }
        }
    }
    let own = edge.get(DOMAIN, "/docs/mcp/server-card");
    assert_eq!(
        own.field("content-type"),
        Some("application/mcp-server-card+json")
    );
    assert_eq!(
        own.json()["remotes"][0]["supportedProtocolVersions"][0],
        "2026-07-28"
    );
    // The schema of SEP-2127 has no other members.
    assert!(own.json().get("tools").is_none());
    let page = edge.get(DOMAIN, "/docs/guides/start");
    let link = page.field("link").unwrap();
    let expected = "</docs/.well-known/mcp/server-card.json>; rel=\"mcp-server-card\"";
    assert!(link.contains(expected), "{link}");
    let list = edge.get(DOMAIN, "/docs/llms.txt");
    assert!(
        list.text().contains(&format!("MCP server: `{endpoint}`")),
        "{}",
        list.text()
    );
    let skills = format!("(https://{DOMAIN}/docs/.well-known/agent-skills/index.json)");
    assert!(list.text().contains(&skills), "{}", list.text());
    let catalog = edge.get(DOMAIN, "/docs/.well-known/api-catalog").json();
    let anchors: Vec<&Value> = catalog["linkset"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| &link["anchor"])
        .collect();
    assert_eq!(
        anchors,
        [
            &json!(format!("https://{DOMAIN}/docs/_waypost/pages")),
            &json!(format!("https://{DOMAIN}/docs/_waypost/search")),
            &json!(endpoint)
        ]
    );
    let description = edge.get(DOMAIN, "/docs/_waypost/openapi.json").json();
    for path in ["/_waypost/pages", "/_waypost/search"] {
        assert!(description["paths"][path]["get"].is_object());
    }
    assert_eq!(
        description["servers"][0]["url"],
        format!("https://{DOMAIN}/docs")
    );
    for path in [
        "/docs/.well-known/mcp/server-card.json",
        "/docs/mcp/server-card",
    ] {
        assert_eq!(edge.request("POST", DOMAIN, path, &[]).status, 405);
        assert_eq!(edge.request("OPTIONS", DOMAIN, path, &[]).status, 204);
    }
}

#[test]
fn llms_txt_names_the_skills_and_the_mcp_server_and_both_answer() {
    let edge = serving("base_path: /docs");
    let list = edge.get(DOMAIN, "/docs/llms.txt").text().to_owned();
    let named = |start: &str, end: char| {
        let (_, rest) = list.split_once(start).unwrap_or_else(|| panic!("{list}"));
        let address = rest.split(end).next().unwrap();
        let path = address.strip_prefix(&format!("https://{DOMAIN}"));
        path.unwrap_or_else(|| panic!("{address}")).to_owned()
    };
    let skills = edge.get(DOMAIN, &named("Skills for agents: [list](", ')'));
    assert_eq!(skills.json()["skills"][0]["type"], "skill-md");
    let server = post_with(&edge, &named("MCP server: `", '`'), &JSON, PING);
    assert_eq!(server.json()["result"], json!({}));
}

#[test]
fn a_site_without_a_server_announces_none() {
    let edge = serving("mcp: false");
    let page = edge.get(DOMAIN, "/guides/start");
    assert!(!page.field("link").unwrap().contains("mcp"));
    for path in [
        "/llms.txt",
        "/.well-known/llms.txt",
        "/.well-known/api-catalog",
    ] {
        let list = edge.get(DOMAIN, path);
        assert_eq!(list.status, 200, "{path}");
        assert!(!list.text().contains("mcp"), "{}", list.text());
        assert!(list.text().contains("guides/start") || path.contains("catalog"));
    }
    for path in [
        "/.well-known/mcp/server-card.json",
        "/mcp/server-card",
        "/.well-known/mcp.json",
    ] {
        assert_eq!(edge.get(DOMAIN, path).status, 404, "{path}");
    }
}

#[test]
fn before_a_server_of_the_customer_the_default_subdomain_is_announced() {
    let origin = Origin::start();
    let edge = Setup::new()
        .acme(&format!("{}\nmcp: true", origin.record()))
        .start();
    edge.publish("acme", &documentation());
    let card = edge.get(DOMAIN, "/.well-known/mcp/server-card.json").json();
    assert_eq!(card["url"], format!("https://{SUBDOMAIN}/mcp"));
    // The proxy of the customer may forward only these paths.
    let manifest = edge
        .get(DOMAIN, "/.well-known/agent-skills/index.json")
        .json();
    assert_eq!(manifest["mcp"]["url"], format!("https://{SUBDOMAIN}/mcp"));
    let card = edge.get(DOMAIN, "/.well-known/agent-card.json").json();
    let extension = &card["capabilities"]["extensions"][0];
    assert_eq!(
        extension["params"]["url"],
        format!("https://{SUBDOMAIN}/mcp")
    );
    assert_eq!(extension["required"], false);
    edge.write_site("acme", &format!("domains: [{DOMAIN}]\n{}", origin.record()));
    let theirs = crate::http::request(
        edge.http,
        "GET",
        DOMAIN,
        "/.well-known/mcp/server-card.json",
        &[],
    );
    assert!(theirs.field("via").is_some());
}

#[test]
fn a_client_that_sends_too_many_messages_has_to_wait() {
    for fast_path in ["true", "false"] {
        let edge = Setup::new()
            .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
            .conf(
                "clients",
                "{ mcp_requests_per_second: 1, burst_seconds: 5 }",
            )
            .acme("")
            .start();
        edge.publish("acme", &documentation());
        let responses: Vec<_> = (0..20)
            .map(|_| post_with(&edge, "/mcp", &JSON, PING))
            .collect();
        let answered = responses
            .iter()
            .filter(|response| response.status == 200)
            .count();
        // One more for each second that the requests take.
        assert!((5..=15).contains(&answered), "{answered}");
        let rejected = responses.last().unwrap();
        assert_eq!(rejected.status, 429);
        assert!(
            rejected.text().contains("this address sends"),
            "{rejected:?}"
        );
        assert!(rejected.field("retry-after").is_some());
        assert_eq!(rejected.field("access-control-allow-origin"), Some("*"));
        // All other paths of the site are served.
        assert_eq!(edge.get(DOMAIN, "/guides/start").status, 200);
        let counted =
            edge.metric("gateway_client_limits_exceeded_total{limit=\"mcp\",mode=\"enforced\"}");
        assert!(counted > 5.0, "{counted}");
    }
}

#[test]
fn all_clients_of_a_site_together_have_a_limit_that_leaves_other_sites_alone() {
    let edge = Setup::new()
        .conf(
            "clients",
            "{ mcp_requests_per_second: 0, mcp_site_requests_per_second: 1, burst_seconds: 3 }",
        )
        .acme("")
        .site("other", "domains: [other.test]")
        .start();
    edge.publish("acme", &documentation());
    edge.publish("other", &documentation());
    let responses: Vec<_> = (0..10)
        .map(|_| post_with(&edge, "/mcp", &JSON, PING))
        .collect();
    assert_eq!(responses[0].status, 200);
    assert_eq!(responses[9].status, 429);
    let text = responses[9].text();
    assert!(text.contains("this site gets too many messages"), "{text}");
    let mut connection = Connection::open(edge.http);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: other.test\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        PING.len()
    );
    connection.send(&[head.as_bytes(), PING].concat());
    assert_eq!(connection.receive("POST").unwrap().status, 200);
}

#[test]
fn each_message_of_a_batch_counts() {
    for fast_path in ["true", "false"] {
        let edge = Setup::new()
            .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
            .conf(
                "clients",
                "{ mcp_requests_per_second: 1, burst_seconds: 10 }",
            )
            .acme("")
            .start();
        edge.publish("acme", &documentation());
        let batch = format!("[{}]", vec![String::from_utf8_lossy(PING); 8].join(","));
        let statuses: Vec<u16> = (0..4)
            .map(|_| post_with(&edge, "/mcp", &JSON, batch.as_bytes()).status)
            .collect();
        assert_eq!(statuses, [200, 200, 429, 429], "{fast_path}");
    }
}

#[test]
fn a_message_that_comes_in_pieces_is_answered_and_a_slow_one_is_not() {
    let edge = Setup::new()
        .conf("connections", "{ body_seconds: 1 }")
        .acme("")
        .start();
    edge.publish("acme", &documentation());
    let head = |length: usize| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    let mut pieces = Connection::open(edge.http);
    pieces.send(head(PING.len()).as_bytes());
    for byte in PING.chunks(7) {
        pieces.send(byte);
    }
    assert_eq!(pieces.receive("POST").unwrap().status, 200);
    // The same connection, chunked.
    let chunked = format!(
        "POST /mcp HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
        PING.len(),
        String::from_utf8_lossy(PING)
    );
    pieces.send(chunked.as_bytes());
    assert_eq!(pieces.receive("POST").unwrap().status, 200);
    // Two messages in one write, on the fast path.
    let two = [head(PING.len()).as_bytes(), PING].concat().repeat(2);
    pieces.send(&two);
    for _ in 0..2 {
        assert_eq!(pieces.receive("POST").unwrap().status, 200);
    }
    // The content is longer than allowed and has no declared length.
    let mut endless = Connection::open(edge.http);
    let chunk = format!("4000\r\n{}\r\n", " ".repeat(0x4000));
    endless.send(format!("POST /mcp HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{}", chunk.repeat(5)).as_bytes());
    assert_eq!(endless.receive("POST").unwrap().status, 413);
    let mut slow = Connection::open(edge.http);
    slow.send(head(PING.len()).as_bytes());
    slow.send(&PING[..10]);
    silence(Duration::from_millis(1500));
    assert_eq!(slow.receive("POST").unwrap().status, 408);
}

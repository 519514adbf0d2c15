//! Messages, eras, statuses and codes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{STATELESS, documentation, post, post_with, result, serving, stateless};
use crate::edge::Setup;
use crate::http;
use crate::presets::{DOMAIN, PAY, SKILL, SUBDOMAIN};

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn a_handshake_agrees_on_the_revision_that_the_client_wants() {
    let edge = serving("");
    for (wanted, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        (STATELESS, "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }});
        let response = post_with(&edge, "/mcp", &[JSON], message.to_string().as_bytes());
        let result = &response.json()["result"];
        assert_eq!(result["protocolVersion"], agreed, "{wanted}");
        assert_eq!(result["serverInfo"]["name"], "acme");
        assert_eq!(result["serverInfo"]["title"], "Acme Docs");
        assert!(result["capabilities"]["tools"].is_object());
        let instructions = result["instructions"].as_str().unwrap();
        assert!(instructions.contains("How to use Acme.") && instructions.contains("pay-refund"));
        assert!(result.get("resultType").is_none() && result.get("ttlMs").is_none());
        assert!(response.field("mcp-session-id").is_none());
    }
    assert_eq!(result(&edge, "ping", json!({})), json!({}));
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let response = post(&edge, &notification);
    assert_eq!((response.status, &*response.body), (202, &b""[..]));
}

#[test]
fn requests_without_a_handshake_say_how_long_they_may_be_kept() {
    let edge = serving("");
    let discovered = stateless(&edge, "server/discover", json!({})).json();
    let discovered = &discovered["result"];
    assert_eq!(discovered["supportedVersions"][0], STATELESS);
    assert_eq!(
        discovered["capabilities"]["extensions"]["io.modelcontextprotocol/skills"],
        json!({"directoryRead": true})
    );
    for (method, params, is_kept) in [
        ("server/discover", json!({}), true),
        ("tools/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        (
            "resources/read",
            json!({"uri": "skill://sdk/SKILL.md"}),
            true,
        ),
        ("skills/list", json!({}), true),
        ("skills/get", json!({"uri": "skill://sdk/SKILL.md"}), true),
        ("tools/call", json!({"name": "list_pages"}), false),
    ] {
        let response = stateless(&edge, method, params);
        let answer = response.json();
        let result = &answer["result"];
        assert_eq!(result["resultType"], "complete", "{method} {answer}");
        let server = &result["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(server["title"], "Acme Docs", "{method}");
        let kept = (result["ttlMs"].as_u64(), result["cacheScope"].as_str());
        let expected = if is_kept {
            (Some(60_000), Some("public"))
        } else {
            (None, None)
        };
        assert_eq!(kept, expected, "{method}");
    }
    // Methods that only the handshake era has.
    for method in ["initialize", "ping", "resources/subscribe", "x"] {
        let response = stateless(&edge, method, json!({"protocolVersion": STATELESS}));
        assert_eq!(response.status, 404, "{method}");
        assert_eq!(response.json()["error"]["code"], -32601);
    }
    let unknown = post(
        &edge,
        &json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}),
    );
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (200, &json!(-32601))
    );
}

#[test]
fn fields_and_message_agree_or_the_request_is_rejected() {
    let edge = serving("");
    let version = ("MCP-Protocol-Version", STATELESS);
    let method = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "list_pages");
    let meta = |version: &str| {
        json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    };
    let send = |fields: &[(&str, &str)], meta: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "list_pages", "_meta": meta,
        }});
        let fields = [&[JSON], fields].concat();
        let response = post_with(&edge, "/mcp", &fields, message.to_string().as_bytes());
        let answer = response.json();
        assert_eq!(answer["id"], 7);
        (response.status, answer["error"]["code"].as_i64(), answer)
    };
    let good = send(&[version, method, name], meta(STATELESS));
    assert_eq!((good.0, good.1), (200, None), "{}", good.2);
    let encoded = ("Mcp-Name", "=?base64?bGlzdF9wYWdlcw==?=");
    assert_eq!(send(&[version, method, encoded], meta(STATELESS)).0, 200);
    for (fields, meta, code) in [
        (vec![method, name], meta(STATELESS), -32020),
        (vec![version, name], meta(STATELESS), -32020),
        (vec![version, method], meta(STATELESS), -32020),
        (
            vec![version, ("Mcp-Method", "tools/list"), name],
            meta(STATELESS),
            -32020,
        ),
        (
            vec![version, method, ("Mcp-Name", "fetch")],
            meta(STATELESS),
            -32020,
        ),
        (
            vec![version, method, ("Mcp-Name", "=?base64?!?=")],
            meta(STATELESS),
            -32020,
        ),
        (
            vec![("MCP-Protocol-Version", "2025-11-25"), method, name],
            meta(STATELESS),
            -32020,
        ),
        (
            vec![("MCP-Protocol-Version", "2030-01-01"), method, name],
            meta("2030-01-01"),
            -32022,
        ),
        (
            vec![("MCP-Protocol-Version", "1999-01-01")],
            json!({}),
            -32022,
        ),
        (vec![version, method, name], json!({}), -32602),
        (
            vec![version, method, name],
            json!({"io.modelcontextprotocol/protocolVersion": STATELESS}),
            -32602,
        ),
        (
            vec![version, version, method, name],
            meta(STATELESS),
            -32020,
        ),
    ] {
        let (status, found, answer) = send(&fields, meta);
        assert_eq!((status, found), (400, Some(code)), "{fields:?} {answer}");
        if code == -32022 {
            assert_eq!(answer["error"]["data"]["supported"][0], STATELESS);
        }
    }
}

#[test]
fn what_is_not_a_message_is_answered_as_the_specification_says() {
    let edge = serving("");
    let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("nothing", -32700),
        ("\u{feff}{}", -32700),
        (&*deep, -32700),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
    ] {
        let response = post_with(&edge, "/mcp", &[JSON], body.as_bytes());
        let answer = response.json();
        assert_eq!(
            (response.status, &answer["error"]["code"]),
            (400, &json!(code)),
            "{body:.80}"
        );
        assert!(answer.get("id").is_none());
    }
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
    ] {
        let response = post_with(&edge, "/mcp", &[("Content-Type", kind)], ping);
        assert_eq!(response.status, 415, "{kind}");
    }
    assert_eq!(post_with(&edge, "/mcp", &[], ping).status, 415);
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{}"}}}}"#,
        "a".repeat(60_000)
    );
    assert_eq!(
        post_with(&edge, "/mcp", &[JSON], long.as_bytes()).status,
        200
    );
    let longer = format!("{}{long}", " ".repeat(6_000));
    assert_eq!(
        post_with(&edge, "/mcp", &[JSON], longer.as_bytes()).status,
        413
    );
}

#[test]
fn other_methods_and_foreign_origins_are_rejected() {
    let edge = serving("");
    for method in ["GET", "HEAD", "DELETE", "PUT", "PATCH"] {
        let response = edge.request(method, DOMAIN, "/mcp", &[("Accept", "text/event-stream")]);
        assert_eq!(response.status, 405, "{method}");
        assert_eq!(response.field("allow"), Some("POST, OPTIONS"));
    }
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (origin, status) in [
        ("https://agent.example", 200),
        ("http://localhost:6274", 200),
        ("http://evil.example", 403),
        ("null", 403),
    ] {
        let response = post_with(&edge, "/mcp", &[JSON, ("Origin", origin)], ping);
        assert_eq!(response.status, status, "{origin}");
        if status == 200 {
            assert_eq!(response.field("access-control-allow-origin"), Some("*"));
        }
        let preflight = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            (
                "Access-Control-Request-Headers",
                "content-type,mcp-protocol-version",
            ),
        ];
        let response = edge.request("OPTIONS", DOMAIN, "/mcp", &preflight);
        assert_eq!(
            response.status,
            if status == 200 { 204 } else { 403 },
            "{origin}"
        );
        if status == 200 {
            assert_eq!(
                response.field("access-control-allow-methods"),
                Some("POST, OPTIONS")
            );
            let allowed = response.field("access-control-allow-headers").unwrap();
            for field in [
                "Content-Type",
                "MCP-Protocol-Version",
                "Mcp-Method",
                "Mcp-Name",
            ] {
                assert!(allowed.contains(field), "{allowed}");
            }
        }
    }
}

#[test]
fn a_skill_is_a_resource_with_the_bytes_and_the_digest_of_its_file() {
    let edge = serving("");
    let listed = result(&edge, "resources/list", json!({}));
    let listed = listed["resources"].as_array().unwrap();
    assert_eq!(listed[1]["uri"], "skill://sdk/SKILL.md");
    assert_eq!(listed[1]["size"], SKILL.len());
    for (uri, file) in [
        ("skill://sdk/SKILL.md", SKILL),
        ("skill://pay-refund/SKILL.md", PAY),
        ("mintlify://skills/sdk", SKILL),
    ] {
        let read = result(&edge, "resources/read", json!({"uri": uri}));
        let contents = &read["contents"][0];
        assert_eq!(contents["text"], file, "{uri}");
        assert_eq!(contents["mimeType"], "text/markdown");
        assert_eq!(contents["uri"], uri);
    }
    let manifest = edge
        .get(DOMAIN, "/.well-known/agent-skills/index.json")
        .json();
    let skills = stateless(&edge, "skills/list", json!({})).json();
    // The name of the other skill is not a slug, so no entry can describe its file.
    let entries = skills["result"]["skills"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["uri"], "skill://sdk/SKILL.md");
    assert_eq!(
        entries[0]["frontmatter"],
        json!({"name": "sdk", "description": "Use the SDK."})
    );
    assert_eq!(
        entries[0]["resources"][0]["digest"],
        manifest["skills"][1]["digest"]
    );
    let entry = stateless(&edge, "skills/get", json!({"uri": "skill://sdk/SKILL.md"})).json();
    assert_eq!(entry["result"]["skill"], entries[0]);
    let missing = stateless(&edge, "skills/get", json!({"uri": "skill://none/SKILL.md"})).json();
    assert_eq!(missing["error"]["code"], -32602);
    let directory = result(
        &edge,
        "resources/directory/read",
        json!({"uri": "skill://sdk"}),
    );
    assert_eq!(directory["resources"][0]["uri"], "skill://sdk/SKILL.md");
}

#[test]
fn pages_are_resources_at_their_addresses() {
    let edge = serving("base_path: /docs");
    let fields = [JSON];
    let ask = |method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        post_with(&edge, "/docs/mcp", &fields, message.to_string().as_bytes()).json()
    };
    let listed = ask("resources/list", json!({}));
    let uris: Vec<&str> = listed["result"]["resources"].as_array().unwrap()[2..]
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap())
        .collect();
    let address = format!("https://{DOMAIN}/docs");
    assert_eq!(
        uris,
        ["index", "guides/start", "guides/limits", "api/errors"]
            .map(|page| format!("{address}/{page}.md"))
    );
    for uri in uris {
        let path = uri.strip_prefix(&format!("https://{DOMAIN}")).unwrap();
        let page = edge.get(DOMAIN, path);
        // The second answer is made of what the first one left in memory.
        for _ in 0..2 {
            let read = ask("resources/read", json!({"uri": uri}));
            assert_eq!(read["result"]["contents"][0]["text"], page.text(), "{uri}");
        }
    }
    let mut files = documentation();
    files[1].1 = "---\ntitle: Welcome\n---\n\nAnother release.\n";
    edge.publish("acme", &files);
    let read = ask(
        "resources/read",
        json!({"uri": format!("{address}/index.md")}),
    );
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("Another release."), "{text}");
    let on_subdomain = format!("https://{SUBDOMAIN}/docs/guides/limits");
    assert!(
        ask("resources/read", json!({"uri": on_subdomain}))
            .get("result")
            .is_some()
    );
    for uri in [
        "https://other.test/docs/index.md",
        "https://docs.acme.test.evil.test/docs/index.md",
        "https://docs.acme.test@evil.test/docs/index.md",
        "https://docs.acme.test/index.md",
        "https://docs.acme.test/docs/none.md",
        "https://docs.acme.test/docs/../../../../etc/passwd",
        "https://docs.acme.test/docs/%2e%2e/%2e%2e/site.json",
        "https://docs.acme.test/docs/guides/../../site.json",
        "file:///etc/passwd",
        "skill://sdk/../pay-refund/SKILL.md",
        "skill://sdk/SKILL.md/..",
        "skill://../sdk/SKILL.md",
        "skill://",
        "mintlify://skills/",
        "",
        "\u{0}",
    ] {
        let answer = ask("resources/read", json!({"uri": uri}));
        assert_eq!(answer["error"]["code"], -32002, "{uri} {answer}");
    }
    let answer = ask("resources/read", json!({"uri": 7}));
    assert_eq!(answer["error"]["code"], -32602);
    let templates = ask("resources/templates/list", json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"],
        format!("{address}/{{+page}}.md")
    );
    // The server is below the base path only.
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_ne!(post_with(&edge, "/mcp", &fields, ping).status, 200);
}

#[test]
fn a_long_list_of_resources_has_pages() {
    let names: Vec<String> = (0..250).map(|n| format!("page-{n:03}")).collect();
    let files: Vec<String> = names.iter().map(|name| format!("{name}.mdx")).collect();
    let config = json!({"name": "Acme", "navigation": {"pages": names}}).to_string();
    let mut pages = vec![("docs.json", &*config), ("skill.md", SKILL)];
    pages.extend(files.iter().map(|file| (&**file, "Text.\n")));
    let edge = Setup::new().acme("").start();
    edge.publish("acme", &pages);
    let mut cursor = Value::Null;
    let mut uris = BTreeSet::new();
    let mut count = 0;
    loop {
        let listed = result(&edge, "resources/list", json!({"cursor": cursor}));
        for resource in listed["resources"].as_array().unwrap() {
            uris.insert(resource["uri"].as_str().unwrap().to_owned());
            count += 1;
        }
        match listed.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    assert_eq!((uris.len(), count), (251, 251));
    for cursor in [json!("x"), json!(""), json!(7)] {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {"cursor": cursor}});
        assert_eq!(post(&edge, &message).json()["error"]["code"], -32602);
    }
}

#[test]
fn the_record_of_a_site_decides_whether_it_has_a_server() {
    let edge = serving("mcp: false");
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(post_with(&edge, "/mcp", &[JSON], ping).status, 405);
    edge.write_site("acme", &format!("domains: [{DOMAIN}]"));
    assert_eq!(post_with(&edge, "/mcp", &[JSON], ping).status, 200);
    edge.write_site("acme", &format!("domains: [{DOMAIN}]\nvisibility: private"));
    assert_eq!(post_with(&edge, "/mcp", &[JSON], ping).status, 404);
    let unknown = http::request(edge.http, "POST", "unknown.test", "/mcp", &[JSON]);
    assert_eq!(unknown.status, 404);
}

#[test]
fn the_origin_of_a_customer_keeps_its_path_unless_the_record_says_otherwise() {
    let origin = crate::origin::Origin::start();
    let edge = Setup::new().acme(&origin.record()).start();
    edge.publish("acme", &documentation());
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let theirs = http::request(
        edge.http,
        "POST",
        DOMAIN,
        "/mcp",
        &[("Content-Length", "0")],
    );
    assert!(theirs.field("via").is_some(), "{theirs:?}");
    edge.write_site(
        "acme",
        &format!("domains: [{DOMAIN}]\n{}\nmcp: true", origin.record()),
    );
    let ours = post_with(&edge, "/mcp", &[JSON], ping);
    assert_eq!(ours.json()["result"], json!({}));
    let listed = super::call(&edge, "list_pages", json!({}));
    assert_eq!(listed["structuredContent"]["total"], 4);
    edge.write_site(
        "acme",
        &format!(
            "domains: [{DOMAIN}]\n{}\nmcp: true\nvisibility: private",
            origin.record()
        ),
    );
    assert_eq!(post_with(&edge, "/mcp", &[JSON], ping).status, 404);
}

#[test]
fn a_batch_is_answered_in_the_revision_that_has_batches() {
    let edge = serving("");
    let ping = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let old = ("MCP-Protocol-Version", "2025-03-26");
    let send = |fields: &[(&str, &str)], batch: &Value| {
        let fields = [&[JSON], fields].concat();
        post_with(&edge, "/mcp", &fields, batch.to_string().as_bytes())
    };
    let batch = json!([
        ping(1),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "l", "method": "tools/call", "params": {"name": "search", "arguments": {"query": "E1042"}}},
        {"jsonrpc": "2.0", "id": 2, "method": "x"},
        7,
    ]);
    // Clients of this revision send no field (2025-06-18 introduced it).
    for fields in [&[][..], &[old]] {
        let response = send(fields, &batch);
        assert_eq!(response.status, 200, "{}", response.text());
        let answers = response.json();
        assert_eq!(answers.as_array().unwrap().len(), 4, "{answers}");
        assert_eq!(
            (&answers[0]["id"], &answers[0]["result"]),
            (&json!(1), &json!({}))
        );
        assert!(answers[1]["result"]["content"].is_array(), "{answers}");
        assert_eq!(answers[2]["error"]["code"], -32601);
        assert_eq!(answers[3]["error"]["code"], -32600);
    }
    let silent = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]);
    let response = send(&[old], &silent);
    assert_eq!((response.status, &*response.body), (202, &b""[..]));
    // 2025-03-26, `basic/lifecycle`: a batch has no `initialize`.
    let begin = json!([{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}]);
    assert_eq!(send(&[old], &begin).json()[0]["error"]["code"], -32600);
    let long: Vec<Value> = (0..17).map(ping).collect();
    for (fields, batch) in [
        (&[old][..], json!([])),
        (&[old], json!(long)),
        (&[("MCP-Protocol-Version", "2025-06-18")], json!([ping(1)])),
        (&[("MCP-Protocol-Version", "2025-11-25")], json!([ping(1)])),
        (&[("MCP-Protocol-Version", STATELESS)], json!([ping(1)])),
    ] {
        let response = send(fields, &batch);
        assert_eq!(response.status, 400, "{batch}");
        assert_eq!(response.json()["error"]["code"], -32600, "{batch}");
    }
}

#[test]
fn a_skill_without_an_entry_is_listed_at_the_address_of_the_hosted_service() {
    let edge = serving("");
    let listed = result(&edge, "resources/list", json!({}));
    let resources = listed["resources"].as_array().unwrap();
    let with = |uri: &str| resources.iter().find(|resource| resource["uri"] == uri);
    // The name in this file is not the last part of an address, as SEP-2640 demands.
    assert!(with("skill://pay-refund/SKILL.md").is_none());
    for (uri, file) in [
        ("skill://sdk/SKILL.md", SKILL),
        ("mintlify://skills/pay-refund", PAY),
    ] {
        let resource = with(uri).unwrap_or_else(|| panic!("{listed}"));
        let digest = waypost::digest::Digest::of(file.as_bytes());
        assert_eq!(
            resource["_meta"]["waypost/digest"],
            format!("sha256:{digest}")
        );
        let read = result(&edge, "resources/read", json!({"uri": uri}));
        assert_eq!(read["contents"][0]["text"], file);
    }
}

#[test]
fn instructions_say_that_more_skills_exist() {
    let edge = Setup::new().acme("").start();
    let files: Vec<(String, String)> = (0..30)
        .map(|nth| {
            let words = "Does something. ".repeat(10);
            (
                format!(".waypost/skills/skill-{nth}/SKILL.md"),
                format!("---\nname: skill-{nth}\ndescription: {words}\n---\n\n# Do\n"),
            )
        })
        .collect();
    let mut listed: Vec<(&str, &str)> = documentation().into_iter().collect();
    listed.retain(|(path, _)| !path.contains("skill"));
    listed.extend(files.iter().map(|(path, text)| (&**path, &**text)));
    edge.publish("acme", &listed);
    let result = result(
        &edge,
        "initialize",
        json!({"protocolVersion": "2025-11-25"}),
    );
    let instructions = result["instructions"].as_str().unwrap();
    assert!(instructions.len() <= 2048);
    let shown = instructions.matches("- skill-").count();
    let expected = format!("{} more: call `skill` without a name.", 30 - shown);
    assert!(
        shown > 3 && instructions.ends_with(&expected),
        "{instructions}"
    );
}

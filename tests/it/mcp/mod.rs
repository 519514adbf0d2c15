//! The MCP server of a site: its messages, its tools, and its real clients.
//!
//! | module | promise |
//! |---|---|
//! | `protocol` | both eras at one address, with the statuses and codes of the specification |
//! | `tools` | the answer of each tool, and the error for a wrong call |
//! | `scope` | the languages and versions that a tool searches |
//! | `announced` | where clients find the server, and how many messages they may send |
//! | `http2` | messages over HTTP/2, on both paths |
//! | `clients` | published SDKs and tools list, read and call |
//! | `conformance` | the official suite passes; with the tools of `fixture` where it needs its own |
//! | `rust` | the types and the client of the SDK for Rust read what the server writes |

mod announced;
mod clients;
mod conformance;
mod fixture;
mod http2;
mod protocol;
mod rust;
mod scope;
mod tools;

use serde_json::{Value, json};

use crate::edge::{Edge, Setup};
use crate::http::{Connection, Response};
use crate::presets::{DOMAIN, PAY, SKILL};

/// The revision without a handshake.
const STATELESS: &str = "2026-07-28";
const CONFIG: &str = r#"{
  "name": "Acme Docs", "description": "How to use Acme.",
  "navigation": { "pages": ["index", "guides/start", "guides/limits", { "group": "API", "pages": ["api/errors"] }] },
  "redirects": [{ "source": "/begin", "destination": "/guides/start" }]
}"#;
const LIMITS: &str = "---\ntitle: Limits\ndescription: What Acme limits.\n---\n\n\
    Every key has limits.\n\n## Requests\n\nSet `max_tokens` below 4096.\n\n## Bytes\n\n\
    ```sh\n# not a heading\nacme --max-bytes 10\n```\n\nThe error is E1042.\n";

/// The documentation that the tests ask about.
fn documentation() -> Vec<(&'static str, &'static str)> {
    vec![
        ("docs.json", CONFIG),
        (
            "index.mdx",
            "---\ntitle: Welcome\ndescription: Begin here.\n---\n\nAcme makes things.\n",
        ),
        (
            "guides/start.mdx",
            "---\ntitle: Start\n---\n\nInstall it, then see [limits](/guides/limits).\n",
        ),
        ("guides/limits.mdx", LIMITS),
        (
            "api/errors.mdx",
            "---\ntitle: Errors\n---\n\n| code | why |\n|---|---|\n| E1042 | too many bytes |\n",
        ),
        (
            "hidden.mdx",
            "---\ntitle: Hidden\nhidden: true\n---\n\nE1042 is a secret.\n",
        ),
        ("skill.md", SKILL),
        (".waypost/skills/pay/SKILL.md", PAY),
    ]
}

/// A gateway that serves the documentation as the site `acme`.
fn serving(record: &str) -> Edge {
    let edge = Setup::new().acme(record).start();
    edge.publish("acme", &documentation());
    edge
}

/// Sends a content to the server of the site, with these fields.
#[track_caller]
fn post_with(edge: &Edge, path: &str, fields: &[(&str, &str)], body: &[u8]) -> Response {
    let mut connection = Connection::open(edge.http);
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: {DOMAIN}\r\n");
    for (name, value) in fields {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    connection.send(&[head.as_bytes(), body].concat());
    let response = connection.receive("POST").unwrap();
    response.check("POST");
    response
}

/// Sends a message with a handshake before it, as clients up to 2025-11-25 do.
#[track_caller]
fn post(edge: &Edge, message: &Value) -> Response {
    let fields = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    post_with(edge, "/mcp", &fields, message.to_string().as_bytes())
}

/// Sends a request without a handshake.
#[track_caller]
fn stateless(edge: &Edge, method: &str, mut params: Value) -> Response {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params.get("name").or(params.get("uri"));
    let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut fields = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", STATELESS),
        ("Mcp-Method", method),
    ];
    if !name.is_empty() {
        fields.push(("Mcp-Name", &name));
    }
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    post_with(edge, "/mcp", &fields, message.to_string().as_bytes())
}

/// Sends a request, and returns its result.
#[track_caller]
fn result(edge: &Edge, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
    let response = post(edge, &message);
    assert_eq!(response.status, 200, "{}", response.text());
    let answer = response.json();
    assert_eq!(
        (&answer["jsonrpc"], &answer["id"]),
        (&json!("2.0"), &json!("a"))
    );
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// Calls a tool, and returns its result.
#[track_caller]
fn call(edge: &Edge, tool: &str, arguments: Value) -> Value {
    result(
        edge,
        "tools/call",
        json!({"name": tool, "arguments": arguments}),
    )
}

/// Returns the text of a tool's result.
#[track_caller]
fn text(result: &Value) -> &str {
    let content = result["content"].as_array().unwrap();
    assert_eq!(content.len(), 1, "{result}");
    assert_eq!(content[0]["type"], "text");
    content[0]["text"].as_str().unwrap()
}

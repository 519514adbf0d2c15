//! The MCP SDK for Rust (`rmcp` 3.11.0): its client uses the server, and its types read every
//! message of the server without loss.
//!
//! It is a program of its own, in `tests/rmcp`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::clients::{address, asked};
use super::{post, serving, stateless};
use crate::presets::DOMAIN;

fn program() -> PathBuf {
    let clients = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/clients");
    let program = clients.join("rmcp/target/debug/rmcp-client");
    assert!(program.exists(), "`make test` builds {}", program.display());
    program
}

#[test]
fn the_rust_sdk_uses_the_server_with_a_handshake_and_without_it() {
    let edge = serving("");
    for (mode, revision) in [("initialize", "2025-11-25"), ("discover", "2026-07-28")] {
        let output = Command::new(program())
            .args(["ask", mode, &address(&edge)])
            .arg(format!("{DOMAIN}:{}", edge.http))
            .output()
            .unwrap();
        asked(&output, revision);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        // The name of the other skill is not the last part of its address: it has no entry.
        assert_eq!(said["skills"], json!(["skill://sdk/SKILL.md"]), "{mode}");
        assert_eq!(said["entry"], "sdk", "{mode}");
    }
}

#[test]
fn the_types_of_the_rust_sdk_read_every_message_without_loss() {
    let edge = serving("");
    let page = format!("https://{DOMAIN}/guides/start.md");
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let requests = [
        (
            "initialize",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            }),
        ),
        ("server/discover", json!({})),
        ("ping", json!({})),
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "skill://sdk/SKILL.md"})),
        ("resources/read", json!({"uri": page})),
        ("resources/read", json!({"uri": "skill://none/SKILL.md"})),
        ("resources/directory/read", json!({"uri": "skill://sdk"})),
        ("skills/list", json!({})),
        ("skills/get", json!({"uri": "skill://sdk/SKILL.md"})),
        ("skills/get", json!({"uri": "skill://none/SKILL.md"})),
        ("tools/call", call("search", json!({"query": "limits"}))),
        ("tools/call", call("search", json!({}))),
        ("tools/call", call("fetch", json!({"id": "guides/start"}))),
        ("tools/call", call("list_pages", json!({}))),
        ("tools/call", call("grep", json!({"pattern": "E1042"}))),
        ("tools/call", call("skill", json!({"name": "sdk"}))),
        ("tools/call", call("none", json!({}))),
        ("none", json!({})),
    ];
    let mut messages = Vec::new();
    for (method, params) in requests {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        messages.push((method, post(&edge, &message).json()));
        messages.push((method, stateless(&edge, method, params).json()));
    }
    let mut reader = Command::new(program())
        .arg("read")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = reader.stdin.take().unwrap();
    for (_, message) in &messages {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = reader.wait_with_output().unwrap();
    let written = String::from_utf8(output.stdout).unwrap();
    let mut written = written.lines();
    for (method, message) in &messages {
        let line = written
            .next()
            .unwrap_or_else(|| panic!("{method}: not read: {message}"));
        let again: Value = serde_json::from_str(line).unwrap();
        assert_eq!(&again, message, "{method}");
    }
    assert!(output.status.success());
}

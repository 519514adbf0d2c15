//! Real clients, as agents use them.
//!
//! | client | from | revision |
//! |---|---|---|
//! | `@modelcontextprotocol/sdk` 1.32.2 | npm | 2025-11-25 |
//! | `@modelcontextprotocol/client` 2.4.0 | npm | 2025-11-25 and 2026-07-28 |
//! | `mcp` 1.30.0 | `PyPI` | 2025-11-25 |
//! | `mcp` 2.3.0 | `PyPI` | 2026-07-28, and 2025-11-25 if forced |
//! | `fastmcp` 4.1.2 | `PyPI` | 2026-07-28, with the extension for skills |
//! | `@modelcontextprotocol/inspector` 2.12.0 | npm | its command line |
//! | `rmcp` 3.11.0 | crates.io | 2025-11-25 and 2026-07-28; see [`super::rust`] |
//!
//! Each of them lists everything, reads a skill and a page, and calls every tool; the SDKs check
//! results against the schemas that the tools declare.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{documentation, serving};
use crate::clients::{PYTHON_HOOK, client, resolver};
use crate::edge::{Edge, Setup};
use crate::presets::{DOMAIN, PAY, SKILL};

/// The calls of every client, in JavaScript. `client` is connected.
const JAVASCRIPT: &str = r#"
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const resources = (await client.listResources()).resources.map((resource) => resource.uri);
const templates = (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate);
const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
const call = async (name, args) => (await client.callTool({ name, arguments: args }));
let unknown;
try { await read('skill://none/SKILL.md'); } catch (error) { unknown = error.code; }
console.log(JSON.stringify({
  server: client.getServerVersion().title,
  tools, resources, templates, unknown,
  skill: await read('skill://pay-refund/SKILL.md'),
  page: await read(resources.at(-1)),
  fetched: JSON.parse((await call('fetch', { id: 'guides/start' })).content[0].text).title,
  listed: (await call('list_pages', {})).structuredContent.total,
  found: (await call('grep', { pattern: 'E1042' })).structuredContent.matches.length,
  told: (await call('skill', { name: 'sdk' })).content[0].text,
  wrong: (await call('grep', { pattern: '(' })).isError,
  revision: VERSION,
}));
await client.close();
"#;

/// The same in Python.
const PYTHON: &str = r#"
async def ask(client, revision, server, read, Error):
    tools = [tool.name for tool in (await client.list_tools()).tools]
    resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
    templates = (await client.list_resource_templates()).resource_templates if is_2 else \
        (await client.list_resource_templates()).resourceTemplates
    templates = [one.uri_template if is_2 else one.uriTemplate for one in templates]
    async def text(uri):
        return (await client.read_resource(read(uri))).contents[0].text
    structured = lambda result: result.structured_content if is_2 else result.structuredContent
    unknown = None
    try:
        await text("skill://none/SKILL.md")
    except Error as error:
        unknown = error.error.code
    wrong = await client.call_tool("grep", {"pattern": "("})
    print(json.dumps({
        "server": server, "tools": tools, "resources": resources, "templates": templates, "unknown": unknown,
        "skill": await text("skill://pay-refund/SKILL.md"),
        "page": await text(resources[-1]),
        "fetched": json.loads((await client.call_tool("fetch", {"id": "guides/start"})).content[0].text)["title"],
        "listed": structured(await client.call_tool("list_pages", {}))["total"],
        "found": len(structured(await client.call_tool("grep", {"pattern": "E1042"}))["matches"]),
        "told": (await client.call_tool("skill", {"name": "sdk"})).content[0].text,
        "wrong": wrong.is_error if is_2 else wrong.isError,
        "revision": revision,
    }))
"#;

/// Returns the address of the server, for a client.
pub(super) fn address(edge: &Edge) -> String {
    format!("http://{DOMAIN}:{}/mcp", edge.http.port())
}

/// Asserts the output of a client.
#[track_caller]
pub(super) fn asked(output: &Output, revision: &str) {
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["server"], "Acme Docs");
    assert_eq!(said["revision"], revision);
    assert_eq!(
        said["tools"],
        json!(["search", "fetch", "list_pages", "grep", "skill"])
    );
    assert_eq!(said["resources"].as_array().unwrap().len(), 6, "{said}");
    assert_eq!(
        said["templates"][0],
        format!("https://{DOMAIN}/{{+page}}.md")
    );
    // Version 2 of the JavaScript SDK shows the old code of an unknown resource as the new one.
    let unknown = said["unknown"].as_i64().unwrap();
    assert!([-32602, -32002].contains(&unknown), "{unknown}");
    assert_eq!(said["skill"], PAY);
    assert!(
        said["page"].as_str().unwrap().contains("too many bytes"),
        "{said}"
    );
    assert_eq!(said["fetched"], "Start");
    assert_eq!((&said["listed"], &said["found"]), (&json!(4), &json!(2)));
    assert_eq!(said["told"], SKILL);
    assert_eq!(said["wrong"], true);
}

#[track_caller]
fn javascript(folder: &str, version: &str, connect: &str, revision: &str) {
    let edge = serving("");
    let folder = client(folder, version);
    let script = format!(
        "(async () => {{ {connect}\n{JAVASCRIPT} }})().catch((error) => {{ console.error(error); process.exit(1); }});"
    );
    let output = Command::new(folder.join("node_modules/.bin/node"))
        .arg("--require")
        .arg(resolver(&edge))
        .args(["-e", &script, &address(&edge)])
        .current_dir(&folder)
        .output()
        .unwrap();
    asked(&output, revision);
}

#[track_caller]
fn python(folder: &str, version: &str, connect: &str, revision: &str) {
    let edge = serving("");
    let folder = client(folder, version);
    let script = format!("{PYTHON_HOOK}\n{connect}");
    let script = script.replace("{ASK}", PYTHON);
    let output = Command::new(folder.join("bin/python"))
        .args(["-c", &script, &address(&edge)])
        .output()
        .unwrap();
    asked(&output, revision);
}

#[test]
fn the_javascript_sdk_1_uses_the_server() {
    let connect = r#"
        const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
        const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');
        const transport = new StreamableHTTPClientTransport(new URL(process.argv[1]));
        const client = new Client({ name: 'test', version: '1' });
        await client.connect(transport);
        const VERSION = transport.protocolVersion;"#;
    javascript(
        "mcp-1",
        "@modelcontextprotocol/sdk@1.32.2",
        connect,
        "2025-11-25",
    );
}

const JAVASCRIPT_2: &str = r#"
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'MODE' } });
    await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[1])));
    const VERSION = client.getNegotiatedProtocolVersion();"#;

#[test]
fn the_javascript_sdk_2_uses_the_server_with_a_handshake() {
    let connect = JAVASCRIPT_2.replace("MODE", "legacy");
    javascript(
        "mcp-2",
        "@modelcontextprotocol/client@2.4.0",
        &connect,
        "2025-11-25",
    );
}

#[test]
fn the_javascript_sdk_2_uses_the_server_without_a_handshake() {
    let connect = JAVASCRIPT_2.replace("MODE", "auto");
    javascript(
        "mcp-2",
        "@modelcontextprotocol/client@2.4.0",
        &connect,
        "2026-07-28",
    );
}

#[test]
fn the_python_sdk_1_uses_the_server() {
    let connect = r#"
is_2 = False
from pydantic import AnyUrl
from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client
{ASK}
async def main():
    async with streamablehttp_client(sys.argv[1]) as (read, write, _):
        async with ClientSession(read, write) as client:
            begun = await client.initialize()
            await ask(client, begun.protocolVersion, begun.serverInfo.title, AnyUrl, McpError)

asyncio.run(main())
"#;
    python("mcp-1-py", "mcp==1.30.0", connect, "2025-11-25");
}

const PYTHON_2: &str = r#"
is_2 = True
from mcp import Client, MCPError
{ASK}
async def main():
    async with Client(sys.argv[1], mode="MODE") as client:
        await ask(client, client.protocol_version, client.server_info.title, str, MCPError)

asyncio.run(main())
"#;

#[test]
fn the_python_sdk_2_uses_the_server_with_a_handshake() {
    let connect = PYTHON_2.replace("MODE", "legacy");
    python("mcp-2-py", "mcp==2.3.0", &connect, "2025-11-25");
}

#[test]
fn the_python_sdk_2_uses_the_server_without_a_handshake() {
    let connect = PYTHON_2.replace("MODE", "auto");
    python("mcp-2-py", "mcp==2.3.0", &connect, "2026-07-28");
}

#[test]
fn fastmcp_finds_and_verifies_the_skills() {
    let edge = Setup::new().acme("").start();
    let mut files = documentation();
    let skill = "---\nname: refunds\ndescription: Refund.\nlicense: MIT\nmetadata:\n  version: \"1.0\"\n---\n# R\n";
    files.push((".waypost/skills/refunds/SKILL.md", skill));
    edge.publish("acme", &files);
    let folder = client("fastmcp-py", "fastmcp==4.1.2");
    let script = r#"
from fastmcp import Client
from fastmcp.skills import SkillsClientExtension

async def main():
    async with Client(sys.argv[1], extensions=[SkillsClientExtension()]) as client:
        skills = await client.list_skills()
        one = await client.get_skill("skill://refunds/SKILL.md")
        called = await client.call_tool("list_pages", {})
        text = (await client.read_resource("skill://refunds/SKILL.md"))[0].text
        print(json.dumps({
            "skills": [str(skill.uri) for skill in skills],
            "license": one.frontmatter.license,
            "pages": called.structured_content["total"],
            "text": text,
        }))

asyncio.run(main())
"#;
    let script = format!("{PYTHON_HOOK}\n{script}");
    let output = Command::new(folder.join("bin/python"))
        .args(["-c", &script, &address(&edge)])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        said["skills"],
        json!(["skill://refunds/SKILL.md", "skill://sdk/SKILL.md"])
    );
    assert_eq!(
        (&said["license"], &said["pages"]),
        (&json!("MIT"), &json!(4))
    );
    assert_eq!(said["text"], skill);
}

#[test]
fn the_command_line_of_the_inspector_lists_reads_and_calls() {
    let edge = serving("");
    let folder = client("mcp-inspector", "@modelcontextprotocol/inspector@2.12.0");
    let inspect = |arguments: &[&str]| -> Value {
        let output = Command::new(folder.join("node_modules/.bin/node"))
            .arg("--require")
            .arg(resolver(&edge))
            .arg(folder.join("node_modules/.bin/mcp-inspector"))
            .args(["--cli", &address(&edge), "--transport", "http"])
            .args(arguments)
            .current_dir(edge.setup.path("."))
            .env("HOME", edge.setup.path("."))
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?} {output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let tools = inspect(&["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 5);
    let uri = "skill://sdk/SKILL.md";
    let read = inspect(&["--method", "resources/read", "--uri", uri]);
    assert_eq!(read["contents"][0]["text"], SKILL);
    let called = [
        "--method",
        "tools/call",
        "--tool-name",
        "fetch",
        "--tool-arg",
        "id=guides/start",
    ];
    assert_eq!(inspect(&called)["structuredContent"]["title"], "Start");
}

//! Real clients, as users run them, against a running gateway.
//!
//! `make test` installs each of them into its own folder beside the build:
//!
//! | client | from | what it does in these tests |
//! |---|---|---|
//! | `skills` 1.3.9, 1.4.9, 1.5.14, 1.7.4 | npm | finds and installs every skill of a site |
//! | `afdocs` 0.22.2 | npm | judges how well agents can read the bundled documentation |
//! | `@a2a-js/sdk` 0.3.14, 1.3.0 | npm | resolves the card and chooses a transport by it |
//! | `a2a-sdk` 0.3.26, 1.3.0 | `PyPI` | the same |
//!
//! Node and Python do not resolve `*.test` and `*.localhost`. A hook in the resolver of each
//! resolves these names to loopback, where the gateway listens.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::browser;
use crate::edge::{Edge, Setup};
use crate::presets::{PAY, SKILL};

const NODE_HOOK: &str = r#"
const dns = require('node:dns');
const { lookup } = dns;
dns.lookup = (name, options, done) => {
  if (typeof options === 'function') [options, done] = [{}, options];
  if (!/\.(test|localhost)$/.test(name)) return lookup(name, options, done);
  const loopback = { address: '127.0.0.1', family: 4 };
  process.nextTick(() => options.all ? done(null, [loopback]) : done(null, '127.0.0.1', 4));
};
"#;

const NODE_CARD: &str = r#"
const { ClientFactory, DefaultAgentCardResolver } = require('@a2a-js/sdk/client');
(async () => {
  const card = await new DefaultAgentCardResolver().resolve(process.argv[1]);
  const client = await new ClientFactory().createFromAgentCard(card);
  console.log(JSON.stringify({
    name: card.name,
    url: card.supportedInterfaces[0].url,
    skills: card.skills.map((skill) => skill.id),
    transport: client.transport.constructor.name,
  }));
})().catch((error) => { console.error(error); process.exit(1); });
"#;

/// Resolves the names of tests to loopback. A script of Python begins with it.
pub const PYTHON_HOOK: &str = r#"
import asyncio, json, socket, sys

resolve = socket.getaddrinfo

def to_loopback(host, *rest, **named):
    name = host.decode() if isinstance(host, bytes) else host
    is_ours = name and name.endswith((".test", ".localhost"))
    return resolve("127.0.0.1" if is_ours else host, *rest, **named)

socket.getaddrinfo = to_loopback
"#;

const PYTHON_CARD: &str = r#"
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory

async def main():
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, sys.argv[1]).get_agent_card()
        # The name of the setting is another in 1.x.
        is_1 = "supported_protocol_bindings" in ClientConfig.__dataclass_fields__
        bindings = "supported_protocol_bindings" if is_1 else "supported_transports"
        config = ClientConfig(httpx_client=http, **{bindings: ["HTTP+JSON"]})
        client = ClientFactory(config).create(card)
        print(json.dumps({
            "name": card.name,
            "url": card.supported_interfaces[0].url if is_1 else card.url,
            "skills": [skill.id for skill in card.skills],
            "transport": type(client._transport).__name__,
        }))

asyncio.run(main())
"#;

/// Returns the folder in which this version of a client is installed.
#[track_caller]
pub fn client(name: &str, version: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/clients")
        .join(name);
    let installed = fs::read_to_string(folder.join(".installed")).unwrap_or_default();
    assert!(
        installed.split_whitespace().any(|word| word == version),
        "{version} is not installed; `make test` installs it"
    );
    folder
}

/// A gateway with two skills on a custom domain and on the default subdomain.
fn serving(record: &str) -> Edge {
    let edge = Setup::new().acme(record).start();
    edge.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{ "name": "Acme Docs", "navigation": { "pages": ["index"] } }"#,
            ),
            ("index.mdx", "# Acme\n"),
            ("skill.md", SKILL),
            (".waypost/skills/pay/SKILL.md", PAY),
        ],
    );
    edge
}

/// Writes the resolver hook for Node and returns its path.
pub fn resolver(edge: &Edge) -> PathBuf {
    let hook = edge.setup.path("resolve.cjs");
    fs::write(&hook, NODE_HOOK).unwrap();
    hook
}

/// Returns a command that runs Node with the resolver hook.
fn node(edge: &Edge, client: &Path) -> Command {
    let hook = resolver(edge);
    let mut node = Command::new(client.join("node_modules/.bin/node"));
    node.arg("--require").arg(hook);
    node
}

/// The newest version of the `skills` tool, and the folder in which it is installed.
const SKILLS: (&str, &str) = ("skills", "1.7.4");

/// Runs the `skills` tool in a new project; returns its output and the installed files.
fn skills(
    edge: &Edge,
    (folder, version): (&str, &str),
    arguments: &[&str],
) -> (Output, BTreeMap<String, String>) {
    let tool = client(folder, &format!("skills@{version}"));
    let with_node = client(SKILLS.0, &format!("skills@{}", SKILLS.1));
    let home = edge.setup.path("home");
    let project = tempfile::tempdir_in(edge.setup.path(".")).unwrap();
    fs::create_dir_all(&home).unwrap();
    let output = node(edge, &with_node)
        .arg(tool.join("node_modules/skills/bin/cli.mjs"))
        .args(arguments)
        .current_dir(project.path())
        .env("HOME", home)
        .envs([("CI", "1"), ("NO_COLOR", "1")])
        // The tool must not send usage data.
        .envs([("DISABLE_TELEMETRY", "1"), ("DO_NOT_TRACK", "1")])
        .output()
        .unwrap();
    let mut installed = BTreeMap::new();
    if let Ok(entries) = fs::read_dir(project.path().join(".claude/skills")) {
        for entry in entries {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path().join("SKILL.md")).unwrap();
            installed.insert(entry.file_name().into_string().unwrap(), text);
        }
    }
    (output, installed)
}

/// Installs every skill from an address with the newest version of the `skills` tool, and returns
/// their names and texts.
#[track_caller]
pub fn installed_from(edge: &Edge, url: &str) -> Vec<(String, String)> {
    let arguments = ["add", url, "-a", "claude-code", "-y", "--copy"];
    let (output, installed) = skills(edge, SKILLS, &arguments);
    assert!(output.status.success(), "{url}: {output:?}");
    installed.into_iter().collect()
}

/// Installs every skill from an address and asserts that the bytes are the authors'.
#[track_caller]
fn installs_all(edge: &Edge, host: &str, path: &str) {
    let url = format!("http://{host}:{}{path}", edge.http.port());
    installs_all_with(edge, SKILLS, &url);
}

#[track_caller]
fn installs_all_with(edge: &Edge, tool: (&str, &str), url: &str) {
    let arguments = ["add", url, "-a", "claude-code", "-y", "--copy"];
    let (output, installed) = skills(edge, tool, &arguments);
    let wanted = BTreeMap::from([
        ("pay-refund".to_owned(), PAY.to_owned()),
        ("sdk".to_owned(), SKILL.to_owned()),
    ]);
    assert!(output.status.success(), "{url}: {output:?}");
    assert_eq!(installed, wanted, "{url}: {output:?}");
}

#[test]
fn the_skills_tool_installs_from_a_custom_domain() {
    installs_all(&serving(""), "docs.acme.test", "");
}

#[test]
fn the_skills_tool_installs_from_the_default_subdomain() {
    installs_all(&serving(""), "acme.waypost.localhost", "");
}

#[test]
fn the_skills_tool_installs_from_beneath_a_base_path() {
    let edge = serving("base_path: /docs");
    installs_all(&edge, "docs.acme.test", "/docs");
    // This installs from the root, where the site's documents are too.
    installs_all(&edge, "docs.acme.test", "");
}

#[test]
fn the_skills_tool_installs_from_the_address_of_a_file_or_a_page() {
    let edge = serving("base_path: /docs");
    for path in ["/docs/skill.md", "/skill.md", "/docs/index"] {
        installs_all(&edge, "docs.acme.test", path);
    }
}

#[test]
fn the_skills_tool_installs_one_skill_by_its_name() {
    let edge = serving("");
    let url = format!("http://docs.acme.test:{}", edge.http.port());
    let arguments = [
        "add",
        &url,
        "--skill",
        "sdk",
        "-a",
        "claude-code",
        "-y",
        "--copy",
    ];
    let (output, installed) = skills(&edge, SKILLS, &arguments);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(installed.keys().collect::<Vec<_>>(), ["sdk"], "{output:?}");
}

#[test]
fn the_skills_tool_finds_nothing_on_a_private_site() {
    let edge = serving("");
    edge.write_site("acme", "domains: [docs.acme.test]\nvisibility: private");
    let url = format!("http://docs.acme.test:{}", edge.http.port());
    let arguments = ["add", &url, "-a", "claude-code", "-y", "--copy"];
    let (output, installed) = skills(&edge, SKILLS, &arguments);
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(installed, BTreeMap::new());
}

#[test]
fn afdocs_gives_the_bundled_documentation_all_points() {
    let edge = browser::serving();
    let tool = client("afdocs", "afdocs@0.22.2");
    let with_node = client(SKILLS.0, &format!("skills@{}", SKILLS.1));
    let output = node(&edge, &with_node)
        .arg(tool.join("node_modules/afdocs/bin/afdocs.mjs"))
        .args([
            "check",
            &format!("http://{}:{}/", browser::HOST, edge.http.port()),
        ])
        .args(["--format", "json", "--score", "--quiet"])
        .args(["--sampling", "none", "--request-delay", "0"])
        .output()
        .unwrap();
    // It exits with 1 when any check of any page gives less than all points.
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let score = report["scoring"]["overall"].as_u64();
    let results = report["results"].as_array().unwrap();
    let less: Vec<_> = results
        .iter()
        .filter(|result| result["status"] == "fail" || result["status"] == "warn")
        .map(|result| (&result["id"], &result["message"]))
        .collect();
    assert_eq!(score, Some(100), "{less:#?}");
}

/// Installs skills from the address of a skill file and from the address of a page, with and
/// without a base path.
#[track_caller]
fn installs_from_any_address(folder: &str, version: &str) {
    for (record, base) in [("", ""), ("base_path: /docs", "/docs")] {
        let edge = serving(record);
        for path in ["", "/skill.md", "/index", "/index.md"] {
            // Version 1.3 installs from this address only a file with `metadata.mintlify-proj`,
            // which authors do not write.
            if version == "1.3.9" && path == "/skill.md" {
                continue;
            }
            let url = format!("http://docs.acme.test:{}{base}{path}", edge.http.port());
            installs_all_with(&edge, (folder, version), &url);
        }
    }
}

#[test]
fn skills_1_3_installs_from_any_address_of_a_site() {
    installs_from_any_address("skills-1.3", "1.3.9");
}

#[test]
fn skills_1_3_installs_a_generated_skill_from_the_address_of_its_file() {
    let edge = Setup::new().acme("base_path: /docs").start();
    let config = r#"{ "name": "Acme Docs", "navigation": { "pages": ["index"] } }"#;
    let files = [("docs.json", config), ("index.mdx", "Acme pays people.\n")];
    edge.publish("acme", &files);
    for path in ["/docs/skill.md", "/skill.md", "/docs"] {
        let url = format!("http://docs.acme.test:{}{path}", edge.http.port());
        let arguments = ["add", &url, "-a", "claude-code", "-y", "--copy"];
        let (output, installed) = skills(&edge, ("skills-1.3", "1.3.9"), &arguments);
        assert!(output.status.success(), "{url}: {output:?}");
        let names: Vec<_> = installed.keys().collect();
        assert_eq!(names, ["acme-docs"], "{url}: {output:?}");
        assert!(installed["acme-docs"].contains("# Acme Docs"), "{url}");
    }
}

#[test]
fn skills_1_4_installs_from_any_address_of_a_site() {
    installs_from_any_address("skills-1.4", "1.4.9");
}

#[test]
fn skills_1_5_installs_from_any_address_of_a_site() {
    installs_from_any_address("skills-1.5", "1.5.14");
}

#[test]
fn skills_1_7_installs_from_any_address_of_a_site() {
    installs_from_any_address(SKILLS.0, SKILLS.1);
}

/// Reads the output of a resolver about a card.
#[track_caller]
fn resolved(output: &Output, address: &str, transport: &str) {
    assert!(output.status.success(), "{output:?}");
    let card: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(card["name"], "Acme Docs");
    assert_eq!(card["url"], address);
    assert_eq!(card["skills"], serde_json::json!(["pay-refund", "sdk"]));
    let chosen = card["transport"].as_str().unwrap();
    assert!(chosen.contains(transport), "{chosen}");
}

/// Where a card is requested, and the address in the card.
const CARDS: [(&str, &str); 2] = [
    ("docs.acme.test", "https://docs.acme.test/docs"),
    ("acme.waypost.localhost", "https://docs.acme.test/docs"),
];

#[track_caller]
fn javascript_resolves(folder: &str, version: &str) {
    let edge = serving("base_path: /docs");
    let folder = client(folder, version);
    for (host, address) in CARDS {
        let url = format!("http://{host}:{}/docs/", edge.http.port());
        let mut node = node(&edge, &folder);
        let output = node
            .args(["-e", NODE_CARD, &url])
            .current_dir(&folder)
            .output();
        resolved(&output.unwrap(), address, "RestTransport");
    }
}

#[track_caller]
fn python_resolves(folder: &str, version: &str, transport: &str) {
    let edge = serving("base_path: /docs");
    let folder = client(folder, version);
    for (host, address) in CARDS {
        let url = format!("http://{host}:{}/docs", edge.http.port());
        let mut python = Command::new(folder.join("bin/python"));
        let script = format!("{PYTHON_HOOK}{PYTHON_CARD}");
        let output = python.args(["-c", &script, &url]).output();
        resolved(&output.unwrap(), address, transport);
    }
}

#[test]
fn the_a2a_sdk_0_3_for_javascript_resolves_the_card() {
    javascript_resolves("a2a", "@a2a-js/sdk@0.3.14");
}

#[test]
fn the_a2a_sdk_1_3_for_javascript_resolves_the_card() {
    javascript_resolves("a2a-1", "@a2a-js/sdk@1.3.0");
}

#[test]
fn the_a2a_sdk_0_3_for_python_resolves_the_card() {
    python_resolves(
        "a2a-0.3-py",
        "a2a-sdk[http-server]==0.3.26",
        "RestTransport",
    );
}

#[test]
fn the_a2a_sdk_1_3_for_python_resolves_the_card() {
    python_resolves(
        "a2a-1-py",
        "a2a-sdk[http-server]==1.3.0",
        "CompatRestTransport",
    );
}

//! The rules D1 to D6 on small documents. The integration tests use real clients.

use serde_json::{Value, json};

use super::paths::{Document, find, normalise};
use super::*;
use crate::digest::Digest;
use crate::response::Encoding;
use crate::site::BasePath;

fn listed(slug: &str) -> Listed {
    Listed {
        slug: slug.into(),
        name: slug.to_uppercase().into(),
        description: format!("Use {slug}.").into(),
        digest: Digest::of(slug.as_bytes()),
        generated: false,
    }
}

fn summary() -> Summary {
    Summary::new(
        "Acme \"Docs\"",
        "All of Acme.",
        "2.0",
        vec![listed("sdk"), listed("cli")],
    )
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn d1_d2_d4_the_manifest_has_served_digests_schemas_and_path_absolute_urls() {
    let summary = summary();
    let base = BasePath::parse("/docs").unwrap();
    let served = summary
        .skills
        .iter()
        .map(|skill| (skill, Digest::of(b"served")));
    let manifest = parse(&manifest(served, &base, None));
    let schema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
    let entry = |slug: &str| {
        json!({
            "$schema": schema, "name": slug, "type": "skill-md", "description": format!("Use {slug}."),
            "url": format!("/docs/.well-known/agent-skills/{slug}/SKILL.md"),
            "digest": format!("sha256:{}", Digest::of(b"served")),
        })
    };
    assert_eq!(
        manifest,
        json!({"$schema": schema, "skills": [entry("cli"), entry("sdk")]})
    );
}

#[test]
fn d3_the_legacy_index_has_no_schema() {
    let index = parse(&legacy(&summary().skills[..1]));
    assert_eq!(
        index,
        json!({"skills": [{"name": "cli", "description": "Use cli.", "files": ["SKILL.md"]}]})
    );
}

#[test]
fn d5_d6_the_card_is_complete_and_its_urls_are_absolute() {
    let url = "https://docs.acme.com/docs";
    let card = parse(&card(&summary(), url, None));
    assert_eq!(
        card,
        json!({
            "protocolVersion": "0.3", "name": "Acme \"Docs\"", "description": "All of Acme.", "version": "2.0",
            "url": url, "preferredTransport": "HTTP+JSON",
            "supportedInterfaces": [{"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"}],
            "provider": {"url": url, "organization": "Acme \"Docs\""}, "documentationUrl": url,
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "capabilities": {"streaming": false, "pushNotifications": false},
            "skills": [
                {"id": "cli", "name": "CLI", "description": "Use cli.", "tags": ["documentation"], "url": format!("{url}/.well-known/agent-skills/cli/SKILL.md")},
                {"id": "sdk", "name": "SDK", "description": "Use sdk.", "tags": ["documentation"], "url": format!("{url}/.well-known/agent-skills/sdk/SKILL.md")},
            ],
        })
    );
}

#[test]
fn d7_an_mcp_server_on_another_host_is_named() {
    let url = "https://acme.docs.test/mcp";
    let card = parse(&card(&summary(), "https://docs.acme.com", Some(url)));
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    assert_eq!(extensions.len(), 1);
    let server = json!({"url": url, "transport": "streamable-http"});
    assert_eq!(extensions[0]["params"], server);
    assert_eq!(extensions[0]["required"], false);
    let base = BasePath::default();
    let none = std::iter::empty();
    let manifest = parse(&manifest(none, &base, Some(url)));
    assert_eq!(manifest["mcp"], server);
}

#[test]
fn a_summary_reads_back_and_a_newer_one_is_rejected() {
    let bytes = summary().to_bytes();
    assert_eq!(Summary::parse(&bytes).unwrap(), summary());
    let newer = String::from_utf8(bytes.to_vec())
        .unwrap()
        .replace("\"version\":1", "\"version\":2,\"extra\":0");
    assert!(matches!(
        Summary::parse(newer.as_bytes()),
        Err(UnreadableSummary::Newer(2))
    ));
    assert!(matches!(
        Summary::parse(b"{"),
        Err(UnreadableSummary::Syntax(_))
    ));
    assert_eq!(
        skill_path("sdk", Encoding::Brotli),
        "skills/sdk/SKILL.md.br"
    );
}

#[test]
fn every_intercepted_path_is_found_with_and_without_the_base_path() {
    let base = BasePath::parse("/docs").unwrap();
    for (path, document) in [
        ("/skill.md", Document::Entry),
        ("/skill.md/", Document::Absent),
        ("/.well-known/agent-skills/index.json", Document::Manifest),
        (
            "/.well-known/agent-skills/sdk/SKILL.md",
            Document::Skill("sdk"),
        ),
        ("/.well-known/agent-skills/sdk/skill.md", Document::Absent),
        ("/.well-known/agent-skills", Document::Absent),
        ("/.well-known/agent-skills/", Document::Absent),
        ("/.well-known/agent-skills/sdk", Document::Absent),
        ("/.well-known/agent-skills/sdk/", Document::Absent),
        ("/.well-known/agent-skills/index.json/", Document::Absent),
        (
            "/.well-known/agent-skills/sdk/scripts/run.sh",
            Document::Absent,
        ),
        ("/.well-known/skills/index.json", Document::Legacy),
        ("/.well-known/skills/sdk/SKILL.md", Document::Skill("sdk")),
        ("/.well-known/skills/sdk/skill.md", Document::Skill("sdk")),
        ("/.well-known/skills", Document::Absent),
        ("/.well-known/agent-card.json", Document::Card),
        ("/.well-known/agent-card.json/", Document::Absent),
    ] {
        assert_eq!(find(path, &BasePath::default()), Some(document), "{path}");
        assert_eq!(find(path, &base), Some(document), "{path}");
        assert_eq!(
            find(&format!("/docs{path}"), &base),
            Some(document),
            "/docs{path}"
        );
        assert_eq!(
            find(&format!("/docs{path}"), &BasePath::default()),
            None,
            "/docs{path}"
        );
    }
}

#[test]
fn paths_that_only_look_intercepted_are_not() {
    for path in [
        "/skill.mdx",
        "/skill.md/x",
        "/Skill.md",
        "/.well-known/agent-card.jsonx",
        "/.well-known/agent-skillset/index.json",
        "/.well-known/skillsets",
        "/.well-known/acme-challenge/token",
        "//.well-known/agent-card.json",
        "/",
        "",
    ] {
        assert_eq!(find(path, &BasePath::default()), None, "{path}");
    }
}

#[test]
fn normalising_decodes_the_unreserved_and_removes_dot_segments_only() {
    for (path, expected) in [
        ("/skill.md", "/skill.md"),
        ("/%73kill%2emd", "/skill.md"),
        ("/%2Ewell-known/x", "/.well-known/x"),
        ("/a/../skill.md", "/skill.md"),
        ("/a/%2e%2E/skill.md", "/skill.md"),
        ("/../../skill.md", "/skill.md"),
        ("/a/./b/.", "/a/b/"),
        ("/a/b/..", "/a/"),
        ("//skill.md", "//skill.md"),
        ("/a%2Fb", "/a%2Fb"),
        ("/a%5Cb", "/a%5Cb"),
        ("/%", "/%"),
        ("/%7", "/%7"),
        ("/%zz%é", "/%zz%é"),
        ("/%25%37%33", "/%2573"),
        ("", ""),
    ] {
        assert_eq!(normalise(path), expected, "{path}");
    }
}

#[test]
fn documents_name_their_own_paths() {
    for (base, index) in [
        ("", "/.well-known/skills/index.json"),
        ("/docs", "/docs/.well-known/skills/index.json"),
    ] {
        let base = BasePath::parse(base).unwrap();
        let path = paths::legacy_index(&base);
        let file = paths::skill_file(&base, "charge");
        assert_eq!(path, index);
        assert_eq!(
            file,
            format!("{base}/.well-known/agent-skills/charge/SKILL.md")
        );
        assert_eq!(find(&path, &base), Some(Document::Legacy));
        assert_eq!(find(&file, &base), Some(Document::Skill("charge")));
    }
}

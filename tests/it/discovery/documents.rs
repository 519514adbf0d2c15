//! The content of each document, and its path.

use serde_json::{Value, json};

use super::{long_skill, publish, serving, sha256};
use crate::edge::{Edge, Setup};
use crate::presets::{CARD, LEGACY, MANIFEST, PAY, SKILL};

const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

/// Returns every skill of the manifest, with the response for its `url`.
#[track_caller]
fn files_of_manifest(edge: &Edge, host: &str, manifest: &str) -> Vec<(String, String)> {
    let manifest = edge.get(host, manifest).json();
    let skills = manifest["skills"].as_array().unwrap();
    let file = |skill: &Value| {
        let response = edge.get(host, skill["url"].as_str().unwrap());
        assert_eq!(response.status, 200, "{skill}");
        // Agent Skills Discovery 0.2.0: the digest of the raw bytes, in 64 lower-case digits.
        let digest = format!("sha256:{}", sha256(&response.body));
        assert_eq!(skill["digest"], digest, "{skill}");
        (
            skill["name"].as_str().unwrap().to_owned(),
            response.text().to_owned(),
        )
    };
    skills.iter().map(file).collect()
}

#[test]
fn one_skill_is_served_at_the_entry_point_on_every_host() {
    let edge = serving("domains: [docs.acme.test]", &[SKILL]);
    for host in [
        "docs.acme.test",
        "acme.waypost.localhost",
        "DOCS.acme.test.:8080",
    ] {
        let response = edge.get(host, "/skill.md");
        assert_eq!((response.status, response.text()), (200, SKILL), "{host}");
        assert_eq!(
            response.field("content-type"),
            Some("text/markdown; charset=utf-8")
        );
    }
}

#[test]
fn several_skills_make_the_entry_point_a_redirect() {
    let edge = serving("base_path: /docs", &[SKILL, PAY]);
    for path in ["/docs/skill.md", "/skill.md"] {
        let response = edge.get("acme.waypost.localhost", path);
        assert_eq!(response.status, 307, "{path}");
        assert_eq!(
            response.field("location"),
            Some("/docs/.well-known/skills/index.json")
        );
        assert_eq!(
            response.field("cache-control"),
            Some("public, max-age=60, no-transform")
        );
        assert!(response.body.is_empty());
    }
}

#[test]
fn the_entry_point_follows_the_number_of_skills() {
    let edge = serving("", &[SKILL]);
    let entry = |edge: &Edge| edge.get("acme.waypost.localhost", "/skill.md").status;
    assert_eq!(entry(&edge), 200);
    publish(&edge, &[SKILL, PAY]);
    assert_eq!(entry(&edge), 307);
    publish(&edge, &[PAY]);
    assert_eq!(entry(&edge), 200);
}

#[test]
fn the_manifest_lists_each_skill_with_the_digest_of_its_served_bytes() {
    let edge = serving("domains: [docs.acme.test]", &[SKILL, PAY]);
    for host in ["docs.acme.test", "acme.waypost.localhost"] {
        let response = edge.get(host, MANIFEST);
        assert_eq!(response.field("content-type"), Some("application/json"));
        let digest = |text: &str| format!("sha256:{}", sha256(text.as_bytes()));
        let url = |slug: &str| format!("/.well-known/agent-skills/{slug}/SKILL.md");
        let wanted = json!({
            "$schema": SCHEMA,
            "skills": [
                {
                    "$schema": SCHEMA, "name": "pay-refund", "type": "skill-md",
                    "description": "Take payments.", "url": url("pay-refund"), "digest": digest(PAY),
                },
                {
                    "$schema": SCHEMA, "name": "sdk", "type": "skill-md",
                    "description": "Use the SDK.", "url": url("sdk"), "digest": digest(SKILL),
                },
            ],
        });
        assert_eq!(response.json(), wanted);
        assert_eq!(
            files_of_manifest(&edge, host, MANIFEST),
            [
                ("pay-refund".to_owned(), PAY.to_owned()),
                ("sdk".to_owned(), SKILL.to_owned())
            ]
        );
    }
}

#[test]
fn the_legacy_index_has_the_upper_case_name_and_no_schema() {
    let edge = serving("", &[SKILL, PAY]);
    let response = edge.get("acme.waypost.localhost", LEGACY);
    assert_eq!(response.field("content-type"), Some("application/json"));
    let wanted = json!({"skills": [
        {"name": "pay-refund", "description": "Take payments.", "files": ["SKILL.md"]},
        {"name": "sdk", "description": "Use the SDK.", "files": ["SKILL.md"]},
    ]});
    assert_eq!(response.json(), wanted);
}

#[test]
fn a_skill_file_has_the_author_s_bytes_at_each_of_its_paths() {
    let text = "\u{feff}---\r\nname: sdk\r\ndescription: Ünïcode — 🚀.\r\n---\r\n\r\n# SDK\t \r\n";
    let edge = serving("", &[text, PAY]);
    for path in [
        "/.well-known/agent-skills/sdk/SKILL.md",
        "/.well-known/skills/sdk/SKILL.md",
        "/.well-known/skills/sdk/skill.md",
    ] {
        let response = edge.get("acme.waypost.localhost", path);
        assert_eq!((response.status, response.text()), (200, text), "{path}");
        assert_eq!(
            response.field("content-type"),
            Some("text/markdown; charset=utf-8")
        );
    }
}

#[test]
fn every_document_is_found_beneath_the_base_path_and_at_the_root() {
    let edge = serving("base_path: /docs/v2", &[SKILL]);
    let host = "acme.waypost.localhost";
    for path in [
        "/skill.md",
        MANIFEST,
        "/.well-known/agent-skills/sdk/SKILL.md",
        LEGACY,
        "/.well-known/skills/sdk/SKILL.md",
        "/.well-known/skills/sdk/skill.md",
        CARD,
    ] {
        let beneath = edge.get(host, &format!("/docs/v2{path}"));
        let at_root = edge.get(host, path);
        assert_eq!(beneath.status, 200, "{path}");
        assert_eq!(beneath.normalised(), at_root.normalised(), "{path}");
        assert_eq!(edge.get(host, &format!("/docs{path}")).status, 404);
    }
    for manifest in [MANIFEST.to_owned(), format!("/docs/v2{MANIFEST}")] {
        let listed = edge.get(host, &manifest).json();
        assert_eq!(
            listed["skills"][0]["url"],
            "/docs/v2/.well-known/agent-skills/sdk/SKILL.md"
        );
        assert_eq!(files_of_manifest(&edge, host, &manifest).len(), 1);
    }
}

#[test]
fn a_card_has_the_requested_host_or_on_the_default_subdomain_the_canonical_host() {
    let edge = serving(
        "domains: [docs.acme.test, help.acme.test]\nbase_path: /docs",
        &[SKILL],
    );
    for (host, address) in [
        ("docs.acme.test", "https://docs.acme.test/docs"),
        ("help.acme.test", "https://help.acme.test/docs"),
        ("acme.waypost.localhost", "https://docs.acme.test/docs"),
    ] {
        let response = edge.get(host, CARD);
        assert_eq!(response.status, 200);
        assert_eq!(response.field("content-type"), Some("application/json"));
        let skill = json!({
            "id": "sdk", "name": "sdk", "description": "Use the SDK.", "tags": ["documentation"],
            "url": format!("{address}/.well-known/agent-skills/sdk/SKILL.md"),
        });
        let wanted = json!({
            "protocolVersion": "0.3",
            "name": "Acme Docs",
            "description": "All about Acme.",
            "version": "1.0",
            "url": address,
            "preferredTransport": "HTTP+JSON",
            "supportedInterfaces": [
                {"url": address, "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"},
            ],
            "provider": {"url": address, "organization": "Acme Docs"},
            "documentationUrl": address,
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "capabilities": {"streaming": false, "pushNotifications": false},
            "skills": [skill],
        });
        assert_eq!(response.json(), wanted, "{host}");
    }
}

#[test]
fn addresses_carry_the_scheme_and_the_port_of_the_service() {
    let edge = Setup::new()
        .conf("service", "{ scheme: http, port: 8088 }")
        .site("acme", "")
        .start();
    edge.publish("acme", &[("skill.md", SKILL)]);
    let card = edge.get("acme.waypost.localhost", CARD).json();
    assert_eq!(card["url"], "http://acme.waypost.localhost:8088");
}

#[test]
fn a_site_without_a_release_has_an_uncacheable_404() {
    let edge = Setup::new().site("acme", "").start();
    for path in ["/skill.md", MANIFEST, LEGACY, CARD] {
        let response = edge.get("acme.waypost.localhost", path);
        assert_eq!(response.status, 404, "{path}");
        assert_eq!(
            response.field("cache-control"),
            Some("no-store, no-transform")
        );
    }
    edge.publish("acme", &[("skill.md", SKILL)]);
    assert_eq!(edge.get("acme.waypost.localhost", "/skill.md").status, 200);
}

#[test]
fn a_site_whose_only_skill_is_for_groups_serves_a_generated_one() {
    let edge = Setup::new().site("acme", "").start();
    let secret = "---\nname: secret\ndescription: For admins.\ngroups: [admin]\n---\n";
    let documentation = [
        (
            "docs.json",
            r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#,
        ),
        ("index.mdx", "# Acme\n\nAcme moves money.\n"),
        ("skill.md", secret),
    ];
    edge.publish("acme", &documentation);
    let host = "acme.waypost.localhost";
    for list in [MANIFEST, LEGACY, CARD] {
        let response = edge.get(host, list);
        assert_eq!(response.status, 200, "{list}");
        let skills = response.json()["skills"].as_array().unwrap().len();
        assert_eq!(skills, 1, "{list}");
        assert!(!response.text().contains("For admins"), "{list}");
    }
    let generated = edge.get(host, "/skill.md");
    assert_eq!(generated.status, 200);
    assert!(!generated.text().contains("For admins"));
}

#[test]
fn a_generated_skill_moves_with_the_canonical_domain_and_so_does_its_digest() {
    let edge = Setup::new().site("acme", "base_path: /start").start();
    let docs = std::fs::canonicalize("tests/repositories/payments").unwrap();
    let published = edge.setup.publish_directory("acme", &docs);
    edge.wait_until_served("acme", published.generation);
    let host = "acme.waypost.localhost";
    let mut before = edge.get(host, "/skill.md");
    for (record, address) in [
        ("", "https://acme.waypost.localhost/"),
        ("domains: [docs.acme.test]", "https://docs.acme.test/"),
        (
            "domains: [help.acme.test]\nbase_path: /docs",
            "https://help.acme.test/docs/",
        ),
    ] {
        edge.write_site("acme", record);
        let skill = edge.get(host, "/skill.md");
        assert!(skill.text().contains(address), "{}", skill.text());
        assert_ne!(skill.field("etag"), before.field("etag"));
        let files = files_of_manifest(&edge, host, MANIFEST);
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].1, skill.text());
        before = skill;
    }
}

#[test]
fn a_broken_skill_does_not_affect_the_others() {
    let edge = serving("", &["---\nname: [\n---\n# Broken\n", PAY, &long_skill()]);
    let names: Vec<String> = files_of_manifest(&edge, "acme.waypost.localhost", MANIFEST)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"pay-refund".to_owned()), "{names:?}");
    assert!(names.contains(&"long".to_owned()), "{names:?}");
}

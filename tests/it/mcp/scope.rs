//! Languages and versions in the calls of tools.

use serde_json::{Value, json};

use super::tools::helps;
use super::{call, serving, text};

#[test]
fn versions_and_languages_are_apart() {
    let edge = crate::edge::Setup::new().acme("").start();
    // Neither default is the first of its list.
    let config = json!({"name": "Acme", "navigation": {"languages": [
        {"language": "fr", "pages": ["fr/index"]},
        {"language": "en", "default": true, "versions": [
            {"version": "2.0", "pages": ["next/index", "next/more"]},
            {"version": "1.0", "default": true, "pages": ["index"]},
        ]},
    ]}});
    edge.publish(
        "acme",
        &[
            ("docs.json", &config.to_string()),
            ("index.mdx", "Hello, word.\n"),
            ("next/index.mdx", "Hello, next word.\n"),
            ("next/more.mdx", "More.\n"),
            ("fr/index.mdx", "Bonjour, word.\n"),
        ],
    );
    let count = |arguments: Value| {
        call(&edge, "list_pages", arguments)["structuredContent"]["total"].clone()
    };
    assert_eq!(count(json!({})), 1);
    assert_eq!(count(json!({"version": "2.0"})), 2);
    assert_eq!(count(json!({"language": "fr", "version": "all"})), 1);
    assert_eq!(count(json!({"language": "all", "version": "all"})), 4);
    let found = |arguments: Value| {
        let found = call(&edge, "grep", arguments);
        found["structuredContent"]["matches"][0]["id"].clone()
    };
    assert_eq!(found(json!({"pattern": "word"})), "index");
    assert_eq!(
        found(json!({"pattern": "word", "language": "fr", "version": "all"})),
        "fr"
    );
    helps(
        &call(&edge, "list_pages", json!({"language": "de"})),
        "There are: fr, en.",
    );
    let search = |arguments: Value| call(&edge, "search", arguments);
    helps(
        &search(json!({"query": "word", "language": "de"})),
        "There is no language \"de\". There are: fr, en.",
    );
    helps(
        &search(json!({"query": "word", "version": "3.0"})),
        "There is no version \"3.0\". There are: 2.0, 1.0.",
    );
    let french = search(json!({"query": "word", "language": "fr-CA"}));
    assert_eq!(french["structuredContent"]["results"][0]["id"], "fr");
    // Both forms say that the results are from another version.
    let other = search(json!({"query": "more"}));
    let told: Value = serde_json::from_str(text(&other)).unwrap();
    for form in [&other["structuredContent"], &told] {
        assert_eq!(form["results"][0]["id"], "next/more", "{other}");
        assert_eq!(form["elsewhere"], true, "{other}");
    }
}

#[test]
fn a_documentation_without_versions_is_searched_for_any_version() {
    let edge = serving("");
    let arguments = json!({"query": "max_tokens", "language": "en", "version": "1.0"});
    let found = call(&edge, "search", arguments);
    let structured = &found["structuredContent"];
    assert_eq!(structured["results"][0]["id"], "guides/limits#requests");
    assert!(structured.get("elsewhere").is_none(), "{found}");
}

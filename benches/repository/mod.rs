//! The generated documentation that the benches build and check. It has no diagnostics.

use bytes::Bytes;
use serde_json::{Value, json};
use waypost::source::{Tree, TreePath};

use std::fmt::Write as _;

/// How many pages it has.
pub(crate) const PAGES: usize = 1100;
/// How many specifications it has.
pub(crate) const SPECIFICATIONS: usize = 24;

pub(crate) fn path(text: &str) -> TreePath {
    TreePath::parse(text).expect("generated paths are paths")
}

/// Returns the path of a page.
fn page_path(number: usize) -> TreePath {
    path(&format!("guides/page-{number}.mdx"))
}

/// Returns documentation with every feature of the navigation: [`PAGES`] pages with the given
/// texts, and [`SPECIFICATIONS`] specifications with the given number of paths, each with two
/// methods. One page may have a different text.
pub(crate) fn repository(
    page: fn(usize) -> String,
    endpoints: usize,
    changed: Option<(usize, String)>,
) -> Tree {
    let text = |n: usize| match &changed {
        Some((changed, text)) if *changed == n => text.clone(),
        _ => page(n),
    };
    let config = json!({"name": "Acme", "navigation": navigation(),
        "redirects": (0..200).map(|n| json!({"source": format!("/old-{n}"), "destination": format!("/guides/page-{n}")})).collect::<Vec<_>>()});
    let mut files = vec![
        (path("docs.json"), Bytes::from(config.to_string())),
        (path("snippets/note.mdx"), Bytes::from_static(b"A note")),
        (path("images/one.png"), Bytes::from_static(b"png")),
    ];
    files.extend((0..PAGES).map(|n| (page_path(n), Bytes::from(text(n)))));
    for n in 0..SPECIFICATIONS {
        let value = specification(n, endpoints);
        let (ending, text) = match n % 2 {
            0 => (
                "json",
                serde_json::to_string_pretty(&value).expect("values are JSON"),
            ),
            _ => ("yaml", yaml(&value, 0)),
        };
        files.push((path(&format!("api/{n}.{ending}")), Bytes::from(text)));
    }
    Tree::from_files(files, [])
}

fn specification(number: usize, endpoints: usize) -> Value {
    let mut paths = serde_json::Map::new();
    for endpoint in 0..endpoints {
        let operation = json!({
            "summary": format!("Do thing {endpoint} of {number}"),
            "tags": [format!("tag {}", endpoint % 5)],
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
                {"$ref": "#/components/parameters/Page"}],
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
            "responses": {"200": {"description": "Done", "content": {"application/json": {
                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}}}}},
        });
        paths.insert(
            format!("/things-{endpoint}/{{id}}"),
            json!({ "get": operation, "post": operation }),
        );
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": format!("API {number}"), "version": "1"},
        "paths": paths,
        "components": {
            "parameters": {"Page": {"name": "page", "in": "query", "schema": {"type": "integer"}}},
            "schemas": {"Thing": {"type": "object", "properties": {
                "name": {"type": "string"}, "parent": {"$ref": "#/components/schemas/Thing"}}}},
        },
    })
}

/// Groups of ten pages, nested, with roots, listings and badges.
fn groups(from: usize, to: usize) -> Vec<Value> {
    let slug = |page: usize| format!("guides/page-{page}");
    (from..to)
        .step_by(10)
        .map(|start| {
            let end = (start + 10).min(to);
            let nested: Vec<_> = (start + 4..end).map(slug).collect();
            let mut pages: Vec<Value> = (start + 1..(start + 4).min(end)).map(|p| slug(p).into()).collect();
            if !nested.is_empty() {
                pages.push(json!({"group": "More", "expanded": true, "icon": "plus", "pages": nested}));
            }
            json!({"group": format!("Group {start}"), "tag": "NEW", "root": slug(start), "directory": "card", "pages": pages})
        })
        .collect()
}

fn navigation() -> Value {
    let apis: Vec<_> = (0..SPECIFICATIONS)
        .map(|n| {
            let ending = if n % 2 == 0 { "json" } else { "yaml" };
            json!({"group": format!("API {n}"), "openapi": {"source": format!("api/{n}.{ending}"), "directory": format!("api-{n}")}})
        })
        .collect();
    let menu = json!([{"item": "Start", "description": "First", "groups": groups(600, 700)},
        {"item": "Elsewhere", "href": "https://example.com"}]);
    json!({"languages": [
        {"language": "en", "banner": {"content": "New"}, "versions": [
            {"version": "2", "tag": "Latest", "tabs": [
                {"tab": "Guides", "groups": groups(0, 600)},
                {"tab": "Menu", "menu": menu},
                {"tab": "API", "groups": apis}]},
            {"version": "1", "anchors": [{"anchor": "Old", "groups": groups(700, 900)}]}]},
        {"language": "fr", "dropdowns": [{"dropdown": "Guides", "groups": groups(900, PAGES)}]}],
        "global": {"anchors": [{"anchor": "Status", "href": "https://status.example.com"}]}})
}

/// Writes a value as YAML in block style, texts quoted.
fn yaml(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) => members.iter().fold(String::new(), |mut out, (key, value)| {
            let inner = yaml(value, depth + 1);
            let _ = match value {
                Value::Object(_) | Value::Array(_) => {
                    writeln!(out, "{indent}\"{key}\":\n{}", inner.trim_end())
                }
                _ => writeln!(out, "{indent}\"{key}\": {inner}"),
            };
            out
        }),
        Value::Array(items) => items.iter().fold(String::new(), |mut out, item| {
            let inner = yaml(item, depth + 1);
            let _ = writeln!(out, "{indent}- {}", inner.trim());
            out
        }),
        scalar => scalar.to_string(),
    }
}

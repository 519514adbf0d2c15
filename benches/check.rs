//! How long is a check?
//!
//! Over a generated documentation that has every feature of the navigation: 1,100 pages of
//! 3 KB with links, anchors, images and code, 24 specifications of 60 endpoints, JSON and
//! YAML; and over a `docs.json` of 2.3 MB alone, in the shape of the largest real one
//! (languages, versions, tabs, nested groups). Both must be free of findings, or something
//! other than a check was measured.

use std::fmt::Write as _;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use waypost::docs::{self, Extent, Options};
use waypost::source::{Tree, TreePath};

const PAGES: usize = 1100;
const SPECIFICATIONS: usize = 24;
const ENDPOINTS: usize = 60;

fn path(text: &str) -> TreePath {
    TreePath::parse(text).expect("generated paths are paths")
}

fn page(number: usize) -> String {
    let next = (number + 1) % PAGES;
    let mut text = format!(
        "---\ntitle: Page {number}\ndescription: About {number}\nicon: star\n---\n\nimport Note from \"/snippets/note.mdx\"\n\n"
    );
    for section in 0..8 {
        let _ = write!(
            text,
            "## Section {section}\n\nSee [the next](/guides/page-{next}#section-{section}) and [here](#section-0), \
             with `code [not](a-link)` and **words** that fill the line.\n\n\
             ![image](/images/one.png)\n\n<Card title=\"Card {section}\" href=\"/guides/page-{next}\" />\n\n\
             ```bash\ncurl https://api.example.com/v1/things # [not](a-link)\n```\n\n"
        );
    }
    text
}

fn specification(number: usize) -> Value {
    let mut paths = serde_json::Map::new();
    for endpoint in 0..ENDPOINTS {
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

/// A documentation with every feature.
fn repository() -> Tree {
    let config = json!({"name": "Acme", "navigation": navigation(),
        "redirects": (0..200).map(|n| json!({"source": format!("/old-{n}"), "destination": format!("/guides/page-{n}")})).collect::<Vec<_>>()});
    let mut files = vec![
        (path("docs.json"), Bytes::from(config.to_string())),
        (path("snippets/note.mdx"), Bytes::from_static(b"A note")),
        (path("images/one.png"), Bytes::from_static(b"png")),
    ];
    files.extend((0..PAGES).map(|n| (path(&format!("guides/page-{n}.mdx")), Bytes::from(page(n)))));
    for n in 0..SPECIFICATIONS {
        let value = specification(n);
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

/// A `docs.json` of 2.3 MB.
fn large() -> Tree {
    let version = |language: usize, version: usize| {
        let tabs: Vec<_> = (0..6)
            .map(|tab| {
                let groups: Vec<_> = (0..12)
                    .map(|group| {
                        let pages: Vec<_> = (0..12)
                            .map(|page| format!("l{language}/v{version}/t{tab}/g{group}/quite-a-long-name-{page}"))
                            .collect();
                        json!({"group": format!("Group {group}"), "icon": "star", "pages": [{"group": "Nested", "pages": pages}]})
                    })
                    .collect();
                json!({"tab": format!("Tab {tab}"), "icon": "book", "groups": groups})
            })
            .collect();
        json!({"version": format!("v{version}"), "tabs": tabs})
    };
    let languages: Vec<_> = ["en", "fr", "ko", "pt-BR"]
        .iter()
        .enumerate()
        .map(|(at, code)| {
            let versions: Vec<_> = (0..10).map(|n| version(at, n)).collect();
            json!({"language": code, "versions": versions})
        })
        .collect();
    let config = json!({"name": "Acme", "navigation": {"languages": languages}});
    let text = serde_json::to_string_pretty(&config).expect("values are JSON");
    assert!(text.len() > 2_300_000, "{} bytes", text.len());
    Tree::from_files([(path("docs.json"), Bytes::from(text))], [])
}

fn benches(criterion: &mut Criterion) {
    let tree = repository();
    criterion.bench_function("check/1100_pages_24_specifications", |bencher| {
        bencher.iter(|| {
            let (docs, found) = docs::read(&tree, &Options::default());
            let links = docs::check::check(&docs, &tree);
            assert_eq!((found.len(), links.len()), (0, 0), "{found:?} {links:?}");
            assert_eq!(
                docs.navigation.pages.len(),
                PAGES + SPECIFICATIONS * ENDPOINTS * 2
            );
            black_box(docs)
        });
    });
    let tree = large();
    let options = Options {
        extent: Extent::Config,
        ..Options::default()
    };
    criterion.bench_function("check/docs_json_of_2_3_megabytes", |bencher| {
        bencher.iter(|| {
            let (docs, found) = docs::read(&tree, &options);
            assert_eq!(found.len(), 0, "{found:?}");
            black_box(docs)
        });
    });
}

criterion_group! {
    name = check;
    config = Criterion::default().sample_size(10);
    targets = benches
}
criterion_main!(check);

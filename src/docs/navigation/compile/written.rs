//! Endpoints that pages describe by hand: `api: METHOD URL` in the frontmatter of a page, and its
//! `ParamField` elements.
//!
//! Such a page gets a small specification of its own, so that its bar, its samples and its form are
//! made as those of other endpoints. Its text is the author's.

use serde_json::{Map, Value as Json, json};

use crate::docs::config::Mdx;
use crate::docs::openapi::{self, Method, Specification};
use crate::docs::page::Page;
use crate::mdx::{Element, Node};
use crate::syntax::Diagnostics;

/// The header of a key without a name.
const KEY: &str = "X-API-Key";

/// Makes the specification of a page; `None` if `text` names no endpoint.
pub(super) fn specification(
    page: &Page,
    text: &str,
    settings: &Mdx,
    diagnostics: &mut Diagnostics,
) -> Option<Specification> {
    let (method, target) = text.trim().split_once(char::is_whitespace)?;
    let method = Method::parse(method).filter(|method| *method != Method::Webhook)?;
    let (server, path) = split(target.trim());
    let servers = match server {
        Some(server) => vec![json!({"url": server})],
        None => settings
            .server
            .iter()
            .map(|url| json!({"url": url}))
            .collect(),
    };
    let mut operation = operation(page, &path);
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {"title": page.title(), "version": ""},
        "servers": servers,
    });
    let auth = page.meta.auth_method.as_deref();
    if let Some(scheme) = scheme(auth.or(settings.auth.method.as_deref()), settings) {
        document["components"] = json!({"securitySchemes": {"auth": scheme}});
        operation["security"] = json!([{"auth": []}]);
    }
    let mut item = Map::new();
    item.insert(method.key().to_owned(), operation);
    let mut paths = Map::new();
    paths.insert(path, item.into());
    document["paths"] = paths.into();
    let file = diagnostics
        .files
        .add(page.path.as_str(), document.to_string().into());
    let mut specification = openapi::read(file, diagnostics)?;
    specification.from_page = true;
    Some(specification)
}

/// Splits an address into the server, if it names one, and the path.
fn split(target: &str) -> (Option<&str>, String) {
    let Some((_, rest)) = target.split_once("://") else {
        return (None, format!("/{}", target.trim_start_matches('/')));
    };
    let at = target.len() - rest.len() + rest.find('/').unwrap_or(rest.len());
    let (server, path) = target.split_at(at);
    (
        Some(server),
        if path.is_empty() { "/" } else { path }.to_owned(),
    )
}

/// Returns the way to authenticate that a `method` names.
fn scheme(method: Option<&str>, settings: &Mdx) -> Option<Json> {
    Some(match method? {
        "bearer" => json!({"type": "http", "scheme": "bearer"}),
        "basic" => json!({"type": "http", "scheme": "basic"}),
        "key" => {
            let name = settings.auth.name.as_deref().unwrap_or(KEY);
            json!({"type": "apiKey", "in": "header", "name": name})
        }
        _ => return None,
    })
}

/// Describes the parameters and the body that the fields of a page name.
fn operation(page: &Page, path: &str) -> Json {
    let mut fields = Vec::new();
    if let Ok(read) = &page.read {
        gather(&read.nodes, &mut fields);
    }
    let mut parameters: Vec<Json> = Vec::new();
    let (mut body, mut required) = (Map::new(), Vec::new());
    for field in fields {
        if let Some(name) = field.text("body") {
            body.insert(name.to_owned(), schema(field));
            required.extend(field.has("required").then(|| name.to_owned()));
        }
        for place in ["path", "query", "header"] {
            if let Some(name) = field.text(place) {
                parameters.push(json!({
                    "name": name,
                    "in": place,
                    "required": place == "path" || field.has("required"),
                    "schema": schema(field),
                }));
            }
        }
    }
    // Names in the path that no field describes.
    for part in path.split('{').skip(1) {
        let name = part.split('}').next().unwrap_or_default();
        let is_it = |known: &Json| known["name"] == name && known["in"] == "path";
        if !parameters.iter().any(is_it) {
            parameters.push(
                json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}),
            );
        }
    }
    let mut operation = json!({"parameters": parameters});
    if !body.is_empty() {
        let schema = json!({"type": "object", "properties": body, "required": required});
        operation["requestBody"] = json!({"content": {"application/json": {"schema": schema}}});
    }
    operation
}

/// Collects the fields of a page, without fields in fields.
fn gather<'n>(nodes: &'n [Node], fields: &mut Vec<&'n Element>) {
    for node in nodes {
        match node {
            Node::Element(element) if matches!(&*element.name, "ParamField" | "Param") => {
                fields.push(element);
            }
            node => node.each_children(&mut |children| gather(children, fields)),
        }
    }
}

/// Returns the schema of a field by its `type`, such as `integer` or `string[]`.
fn schema(field: &Element) -> Json {
    let mut schema = of_kind(field.text("type").unwrap_or_default());
    if let Some(default) = field.text("default") {
        schema["default"] = match schema["type"] == "string" {
            true => default.into(),
            false => serde_json::from_str(default).unwrap_or_else(|_| default.into()),
        };
    }
    schema
}

fn of_kind(kind: &str) -> Json {
    let kind = kind.trim().to_ascii_lowercase();
    if kind.ends_with("[]") || kind.starts_with("array") || kind.starts_with("list") {
        let item = kind.strip_suffix("[]").unwrap_or("string");
        // Lists in lists are rare; their innermost items are enough for a sample.
        let item = of_plain_kind(item.trim_end_matches("[]"));
        return json!({"type": "array", "items": item});
    }
    of_plain_kind(&kind)
}

fn of_plain_kind(kind: &str) -> Json {
    match kind {
        "int" | "integer" => json!({"type": "integer"}),
        "number" | "float" | "double" => json!({"type": "number"}),
        "bool" | "boolean" => json!({"type": "boolean"}),
        "object" => json!({"type": "object"}),
        _ => json!({"type": "string"}),
    }
}

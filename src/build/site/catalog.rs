//! The catalog of the APIs that the documentation describes, for programs: the server of each, its
//! specification, and the first page about it.
//!
//! Sources: RFC 9727 (`api-catalog`), RFC 9264 §4.2 (`application/linkset+json`), RFC 8631
//! (`service-desc`, `service-doc`).

use serde_json::{Value, json};

use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::discovery::paths::{MCP_CARD, mcp_address};
use crate::docs::Docs;
use crate::docs::published::{Address, Published};
use crate::release::pages::{API_DESCRIPTION, PAGES};
use crate::release::site::SEARCH;
use crate::render::layout::path_of;
use crate::search::{FOUND_MAX, LIMIT_MAX};
use crate::site::percent::encode;
use crate::syntax::is_yaml;

/// RFC 9727 §4: the media type of a catalog.
pub(super) const LINKSET: &str =
    "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";

/// An API that is described.
pub(super) struct Interface<'d> {
    /// Its name.
    pub(super) title: &'d str,
    /// The address of its specification.
    pub(super) description: String,
    /// The media type of the specification.
    media_type: &'static str,
    /// The address of the first page about it.
    page: String,
    /// The URL of its server.
    server: Option<&'d str>,
}

/// Finds the APIs whose specifications are public.
pub(super) fn interfaces(docs: &Docs) -> Vec<Interface<'_>> {
    docs.published
        .iter()
        .map(|one| interface(docs, one))
        .collect()
}

fn interface<'d>(docs: &'d Docs, published: &'d Published) -> Interface<'d> {
    let specification = &docs.specifications[published.specification];
    let (description, name) = match &published.address {
        Address::File(path) => (format!("{BASE_URL_PLACEHOLDER}/{}", encode(path)), path),
        Address::Elsewhere(url) => (url.to_string(), url),
    };
    let page = docs.navigation.page(published.page);
    let operations = specification.endpoints.iter();
    let mut operations = operations.filter_map(|endpoint| specification.operation(endpoint));
    let server = operations.find_map(|operation| operation.servers().into_iter().next());
    Interface {
        title: match &*specification.title {
            "" => name,
            title => title,
        },
        description,
        media_type: match is_yaml(name) {
            true => "application/vnd.oai.openapi",
            false => "application/vnd.oai.openapi+json",
        },
        page: format!("{BASE_URL_PLACEHOLDER}/{}", encode(path_of(page))),
        // A relative address belongs to a server that the documentation does not name.
        server: server
            .map(|server| server.url)
            .filter(|url| url.contains("://") && !url.contains('{')),
    }
}

/// Writes the catalog: the APIs that the documentation describes, and the APIs of the site itself.
pub(super) fn write(docs: &Docs) -> String {
    let links = |interface: &Interface<'_>| {
        json!({
            "anchor": interface.server.unwrap_or(&interface.page),
            "service-desc": [{"href": interface.description, "type": interface.media_type}],
            "service-doc": [{"href": interface.page, "type": "text/html"}],
        })
    };
    let mut links: Vec<_> = interfaces(docs).iter().map(links).collect();
    let below = |path: &str| format!("{BASE_URL_PLACEHOLDER}/{path}");
    for path in [PAGES, SEARCH] {
        links.push(json!({
            "anchor": below(path),
            "service-desc": [{
                "href": below(API_DESCRIPTION), "type": "application/vnd.oai.openapi+json",
            }],
        }));
    }
    links.push(json!({
        "anchor": mcp_address(BASE_URL_PLACEHOLDER),
        "service-desc": [{
            "href": format!("{BASE_URL_PLACEHOLDER}{MCP_CARD}"), "type": "application/json",
        }],
    }));
    json!({ "linkset": links }).to_string()
}

/// Describes the API of the site itself (OpenAPI 3.1).
pub(super) fn api_description(docs: &Docs) -> String {
    let title = match &*docs.config.name {
        "" => "Documentation",
        name => name,
    };
    let text = json!({"type": "string"});
    let page = json!({
        "type": "object",
        "required": ["id", "title", "url", "tokens"],
        "properties": {
            "id": {"type": "string", "description": "Its path, without leading slash; `index` for the page at the root."},
            "title": text,
            "description": text,
            "url": {"type": "string", "format": "uri", "description": "With `.md` at its end, the page is Markdown."},
            "language": {"type": "string", "description": "Its language tag, if there are several languages."},
            "version": {"type": "string", "description": "Its version, if there are several versions."},
            "section": {"type": "array", "items": text, "description": "The labels of the navigation above it."},
            "tokens": {"type": "integer", "description": "The length of its Markdown; 4 bytes count as one token."},
        },
    });
    let schema = json!({
        "type": "object",
        "required": ["pages"],
        "properties": {
            "language": {"type": "string", "description": "The language that readers see first, if there are several."},
            "version": {"type": "string", "description": "The version that readers see first, if there are several."},
            "pages": {"type": "array", "items": page},
        },
    });
    let found = json!({
        "description": "The pages, in the order of the navigation.",
        "content": {"application/json": {"schema": schema}},
    });
    let operation = json!({
        "operationId": "listPages",
        "summary": "List the pages, of all languages and versions",
        "responses": {"200": found, "304": {"description": "The list has not changed."}},
    });
    json!({
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "servers": [{"url": BASE_URL_PLACEHOLDER}],
        "paths": {
            format!("/{PAGES}"): {"get": operation},
            format!("/{SEARCH}"): {"get": search_operation()},
        },
    })
    .to_string()
}

/// Makes the schema of an object with these members.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// Makes the schema of an object that always has all these members.
fn all(properties: Value) -> Value {
    let names = properties.as_object().into_iter().flatten();
    let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
    object(properties.clone(), &names)
}

fn search_operation() -> Value {
    let text = json!({"type": "string"});
    let parameter = |name: &str, schema: Value, description: &str| {
        json!({
            "name": name, "in": "query", "required": name == "q",
            "schema": schema, "description": description,
        })
    };
    let limit = json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX});
    let flag = json!({"type": "string", "enum": ["0", "1"]});
    let piece = object(
        json!({
            "text": text,
            "match": {"type": "boolean", "description": "Present and true: the text is a word of the question."},
        }),
        &["text"],
    );
    let section = all(json!({
        "heading": {"type": ["string", "null"], "description": "`null` at the beginning of the page."},
        "url": text,
        "excerpt": {"type": "array", "items": piece, "description": "The pieces of a text, in order."},
    }));
    let result = all(json!({
        "url": text,
        "title": text,
        "breadcrumb": {"type": "array", "items": text, "description": "The labels of the navigation above the page."},
        "language": {"type": "string", "description": "The language tag of the page."},
        "version": {"type": ["string", "null"], "description": "The version of the page, if there are several."},
        "score": {"type": "number", "description": "Comparable within one answer."},
        "sections": {"type": "array", "items": section, "description": "Its best sections, the best first."},
    }));
    let schema = all(json!({
        "query": text,
        "total": {"type": "integer", "maximum": FOUND_MAX, "description": "How many pages were found. All of them can be reached with `cursor`."},
        "elsewhere": {"type": "boolean", "description": "Nothing was found in this language and version; the results are from other ones."},
        "cursor": {"type": ["string", "null"], "description": "For more results."},
        "versions": {"type": "array", "items": text, "description": "The versions of the language that can be searched."},
        "results": {"type": "array", "items": result},
    }));
    json!({
        "operationId": "search",
        "summary": "Find the pages and sections that answer a question",
        "parameters": [
            parameter("q", text.clone(), "The question."),
            parameter("limit", limit, "The most pages in the answer."),
            parameter("cursor", text.clone(), "The `cursor` of an earlier answer."),
            parameter("version", text.clone(), "A version; without it, the default one."),
            parameter("language", text.clone(), "A language tag; without it, the default one."),
            parameter("typing", flag.clone(), "`1`: a reader still types, so the last word may be only a beginning."),
            parameter("settled", flag, "`1`: the owner's numbers count this question, although a reader types; `0`: they do not."),
        ],
        "responses": {
            "200": {
                "description": "The best page first.",
                "content": {"application/json": {"schema": schema}},
            },
            "400": {"description": "A parameter is wrong."},
        },
    })
}

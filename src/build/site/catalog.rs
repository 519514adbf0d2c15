//! The catalog of the APIs that a documentation describes, for programs: the server of each,
//! its specification, and the first page about it.
//!
//! Sources: RFC 9727 (`api-catalog`), RFC 9264 §4.2 (`application/linkset+json`), RFC 8631
//! (`service-desc`, `service-doc`).

use serde_json::json;

use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::Docs;
use crate::docs::published::{Address, Published};
use crate::render::layout::path_of;
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

/// Writes the catalog.
pub(super) fn write(docs: &Docs) -> String {
    let links = |interface: &Interface<'_>| {
        json!({
            "anchor": interface.server.unwrap_or(&interface.page),
            "service-desc": [{"href": interface.description, "type": interface.media_type}],
            "service-doc": [{"href": interface.page, "type": "text/html"}],
        })
    };
    let links: Vec<_> = interfaces(docs).iter().map(links).collect();
    json!({ "linkset": links }).to_string()
}

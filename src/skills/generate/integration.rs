//! The section about the documented API: specifications, servers, authentication.

use crate::docs::Docs;
use crate::docs::openapi::{Security, Specification};
use crate::docs::published::Published;
use crate::syntax::Value;

use super::outline::{Outline, endpoint};
use super::text::{plain, short};

/// The most lines of the section.
pub(super) const LINES_MAX: usize = 40;
const SERVERS_MAX: usize = 4;

/// Describes each specification that a listed page belongs to.
pub(super) fn integration(docs: &Docs, outline: &Outline, base_url: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for id in outline.pages() {
        let Some((specification, _)) = endpoint(docs, docs.navigation.page(id)) else {
            continue;
        };
        if seen.contains(&&*specification.path) {
            continue;
        }
        seen.push(&specification.path);
        let mut described = describe(specification);
        if let Some(file) = file(docs, specification) {
            let link = format!("[{file}]({base_url}/{file})");
            described.insert(1, format!("  - Specification: {link}"));
        }
        // The last line is the link to the list of pages.
        if lines.len() + described.len() >= LINES_MAX {
            break;
        }
        lines.extend(described);
    }
    lines.push(format!(
        "- Pages as Markdown: add `.md` to an address; all of them: [llms.txt]({base_url}/llms.txt)"
    ));
    lines
}

/// Returns the path of a specification that the site serves.
fn file<'d>(docs: &'d Docs, specification: &Specification) -> Option<&'d str> {
    let mut published = docs.published.iter();
    let is_it = |published: &&Published| {
        docs.specifications[published.specification].path == specification.path
    };
    let path = published.find(is_it)?.file()?;
    // A path with other characters would need escapes in a Markdown link.
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    path.bytes().all(is_plain).then_some(path)
}

fn describe(specification: &Specification) -> Vec<String> {
    let title = plain(&specification.title);
    let count = specification.endpoints.len();
    let plural = if count == 1 { "" } else { "s" };
    let mut lines = vec![format!("- **{title}**: OpenAPI, {count} endpoint{plural}")];
    let operations = || {
        let endpoints = specification.endpoints.iter();
        endpoints.filter_map(|endpoint| specification.operation(endpoint))
    };
    let mut urls: Vec<String> = Vec::new();
    for server in operations().flat_map(|operation| operation.servers()) {
        let url = format!("  - Server: `{}`", server.url.replace('`', ""));
        let about = server
            .description
            .map(short)
            .filter(|about| !about.is_empty());
        let line = about.map_or(url.clone(), |about| format!("{url} ({about})"));
        if !urls.contains(&line) && urls.len() < SERVERS_MAX {
            urls.push(line);
        }
    }
    lines.extend(urls);
    let mut schemes: Vec<String> = Vec::new();
    for security in operations().flat_map(|operation| operation.security()) {
        let line = format!("  - Authentication: {}", authentication_methods(&security));
        if !security.schemes.is_empty() && !schemes.contains(&line) && schemes.len() < SERVERS_MAX {
            schemes.push(line);
        }
    }
    lines.extend(schemes);
    lines
}

/// Describes how a request is authenticated.
fn authentication_methods(security: &Security<'_>) -> String {
    let authentication_methods = security.schemes.iter().map(|(name, scheme)| {
        let text = |key| scheme.get(key).and_then(Value::text).unwrap_or_default();
        let (kind, place, field) = (text("type"), text("in"), text("name"));
        match (kind, text("scheme").to_ascii_lowercase().as_str()) {
            ("http", "bearer") => "`Authorization: Bearer <token>`".to_owned(),
            ("http", "basic") => "`Authorization: Basic <credentials>`".to_owned(),
            ("apiKey", _) => format!("key in the {place} `{}`", plain(field)),
            ("oauth2" | "openIdConnect", _) => format!("OAuth 2.0 ({})", plain(name)),
            _ => plain(name),
        }
    });
    authentication_methods.collect::<Vec<_>>().join(" and ")
}

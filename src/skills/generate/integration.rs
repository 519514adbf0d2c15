//! The section about integration: specifications, their servers and their authentication;
//! integrations with other products, SDKs and command lines.

use crate::docs::Docs;
use crate::docs::openapi::{Security, Specification};
use crate::docs::published::Published;
use crate::syntax::Value;

use super::advice::says_lack;
use super::interleave::interleave;
use super::outline::{Outline, endpoint, link_to, words};
use super::reference::is_api;
use super::role::Role;
use super::sink::{Share, Sink, cost};
use super::text::{plain, short};

/// The most lines and characters of the section.
const LINES_MAX: usize = 30;
const CHARACTERS_MAX: usize = 2400;
/// The most characters about specifications.
const SPECIFICATIONS_CHARACTERS_MAX: usize = 1500;
const SERVERS_MAX: usize = 3;
/// The characters for pages about integrations that a large documentation has, too.
const PAGES_CHARACTERS_MIN: usize = 700;

/// Describes each specification that a listed page belongs to, then lists the pages about
/// integrations: the first page of every group before any second one.
pub(super) fn integration(
    docs: &Docs,
    outline: &Outline,
    share: Share,
    base_url: &str,
) -> Vec<String> {
    let mut specifications = Sink::new(
        base_url,
        LINES_MAX / 2,
        share.of(SPECIFICATIONS_CHARACTERS_MAX),
    );
    let mut seen: Vec<&str> = Vec::new();
    for id in outline.pages() {
        let Some((specification, _)) = endpoint(docs, docs.navigation.page(id)) else {
            continue;
        };
        if seen.contains(&&*specification.path) || !is_api(docs, specification) {
            continue;
        }
        seen.push(&specification.path);
        let first = link_to(docs, id, base_url);
        let mut described = describe(specification, &first);
        if let Some(file) = file(docs, specification) {
            let link = format!("[{file}]({base_url}/{file})");
            described.insert(1, format!("  - Specification: {link}"));
        }
        specifications.add(&described);
    }
    let described = specifications.lines.iter();
    let described: usize = described.map(|line| cost(line, base_url)).sum();
    let characters = share
        .of(CHARACTERS_MAX)
        .max(described + PAGES_CHARACTERS_MIN);
    let mut sink = Sink::new(base_url, LINES_MAX, characters);
    sink.add(&specifications.lines);
    let of_categories = outline.categories.iter().map(|category| {
        let entries = category.entries.iter();
        // A page that says that something does not work is no integration.
        let entries = entries.filter(|entry| {
            let page = docs.navigation.page(entry.page);
            entry.role == Role::Integration && !says_lack(&words(docs, page))
        });
        entries.enumerate()
    });
    for (nth, entry) in interleave(of_categories) {
        // The first page of a group says what the group is about; the others are named.
        let name = format!("- {}", entry.link(docs, base_url));
        let is_described = nth == 0 && sink.add(&[entry.line(docs, base_url)]);
        if !is_described && !sink.add(&[name]) {
            break;
        }
    }
    sink.lines
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

fn describe(specification: &Specification, first: &str) -> Vec<String> {
    let title = plain(&specification.title);
    let count = specification.endpoints.len();
    let plural = if count == 1 { "" } else { "s" };
    let mut lines = vec![format!(
        "- **{title}**: OpenAPI, {count} endpoint{plural}, from {first} on"
    )];
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
        let line = format!("  - Authentication: {}", authentication(&security));
        if !security.schemes.is_empty() && !schemes.contains(&line) && schemes.len() < SERVERS_MAX {
            schemes.push(line);
        }
    }
    lines.extend(schemes);
    lines
}

/// Describes how a request is authenticated.
pub(super) fn authentication(security: &Security<'_>) -> String {
    let methods = security.schemes.iter().map(|(name, scheme)| {
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
    methods.collect::<Vec<_>>().join(" and ")
}

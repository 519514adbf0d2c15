//! The canonical addresses of pages: `canonical` of the frontmatter.
//!
//! An address on the site itself is stored as a path, because a release knows no domain. The
//! origin writes the address into the `Link` field of the page's response, in place of the
//! page's own.
//!
//! A sitemap lists canonical addresses, so a page that names another one is not in it. Many
//! authors write a page's own address in full, and a release cannot know whether its domain is
//! the site's. So an address that ends in the page's own path counts as its own: a superfluous
//! entry does less harm than a site that is not listed.
//!
//! Sources: RFC 6596 (the canonical link relation); sitemaps.org 0.9.

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::render::layout::path_of;
use crate::render::link::{Map, Target};
use crate::site::percent::encode;

/// Finds the pages that name a canonical address, with that address.
pub(super) fn find<'d>(
    docs: &Docs,
    pages: impl Iterator<Item = &'d Page>,
    map: &Map,
) -> BTreeMap<Box<str>, Box<str>> {
    let named = pages.filter_map(|page| Some((path_of(page).into(), named(docs, page, map)?)));
    named.collect()
}

/// Returns whether the canonical address of a page is its own.
pub(super) fn is_own(docs: &Docs, page: &Page, map: &Map) -> bool {
    let Some(named) = named(docs, page, map) else {
        return true;
    };
    let path = path_of(page);
    let Some((_, rest)) = named.split_once("://") else {
        return named.trim_start_matches('/') == path;
    };
    let named = rest.find('/').map_or("", |start| &rest[start..]);
    let named = named.trim_end_matches('/');
    match path {
        "" => named.is_empty(),
        path => named.ends_with(&format!("/{}", encode(path))),
    }
}

/// Returns the canonical address that a page names.
fn named(docs: &Docs, page: &Page, map: &Map) -> Option<Box<str>> {
    let written = docs.pages.get(&page.slug)?;
    address(&page.slug, written.meta.canonical.as_deref()?, map)
}

/// Finds canonical addresses that are neither a page of this site nor a URL.
pub(super) fn invalid_addresses(docs: &Docs, map: &Map) -> Vec<Diagnostic> {
    let wrong = docs.pages.iter().filter_map(|page| {
        let written = page.meta.canonical.as_deref()?;
        if address(&page.slug, written, map).is_some() {
            return None;
        }
        let message = format!("`canonical` is `{written}`, neither a page of this site nor a URL");
        let found = Diagnostic::warning("canonical", page.path.as_str(), message);
        Some(found.help("write a path such as `/guides/start`, or `https://` and the rest"))
    });
    wrong.collect()
}

/// Returns an address as it is stored: a URL, or a path with a leading slash.
fn address(slug: &str, written: &str, map: &Map) -> Option<Box<str>> {
    match map.resolve(slug, written) {
        Target::Page { page, .. } => Some(format!("/{page}").into()),
        Target::Elsewhere(url) => {
            let is_http = ["https://", "http://"].iter().any(|s| url.starts_with(s));
            // RFC 8288 §3: the field has it between angle brackets.
            let is_plain = url
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b'<' && b != b'>');
            (is_http && is_plain).then_some(url)
        }
        _ => None,
    }
}

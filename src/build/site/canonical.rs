//! Pages that search engines shall know by another address: `canonical` of the frontmatter.
//!
//! An address of the site is kept as a path, for a release knows no domain; the origin writes
//! either into the `Link` field of the page, in place of the page's own address.
//!
//! Sources: RFC 6596 (the canonical link relation).

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::render::layout::path_of;
use crate::render::link::{Map, Target};

/// Finds the pages that name an address, with what they name.
pub(super) fn find<'d>(
    docs: &Docs,
    pages: impl Iterator<Item = &'d Page>,
    map: &Map,
) -> BTreeMap<Box<str>, Box<str>> {
    let named = pages.filter_map(|page| {
        let written = docs.pages.get(&page.slug)?;
        let address = address(&page.slug, written.meta.canonical.as_deref()?, map)?;
        Some((path_of(page).into(), address))
    });
    named.collect()
}

/// Tells which addresses name nothing that the page could be known by.
pub(super) fn unusable(docs: &Docs, map: &Map) -> Vec<Diagnostic> {
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

/// Returns an address as it is kept: a URL, or a path with a leading slash.
fn address(slug: &str, written: &str, map: &Map) -> Option<Box<str>> {
    match map.resolve(slug, written) {
        Target::Page { page, .. } => Some(format!("/{page}").into()),
        Target::Elsewhere(url) => {
            let is_http = ["https://", "http://"].iter().any(|s| url.starts_with(s));
            // It stands between angle brackets in a field (RFC 8288 §3).
            let is_plain = url
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b'<' && b != b'>');
            (is_http && is_plain).then_some(url)
        }
        _ => None,
    }
}

//! The entry points of the reference: the endpoints of the specifications, as a table.
//!
//! A specification may have more endpoints than the table has rows. Endpoints that the code of guides
//! calls come first, then the `POST` endpoints of each group, then the others.

use std::collections::HashSet;

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::docs::openapi::{Method, Specification};
use crate::mdx::Node;

use super::interleave::interleave;
use super::outline::{Outline, endpoint, link, required};
use super::role::Role;
use super::sink::{Share, Sink};
use super::text::{cell, plain};

/// The most rows and characters of the table.
const ROWS_MAX: usize = 26;
const CHARACTERS_MAX: usize = 2800;

/// Returns whether a specification describes an API: one with a single endpoint documents one
/// request, and is only used if there is nothing else.
pub(super) fn is_api(docs: &Docs, specification: &Specification) -> bool {
    let mut all = docs.specifications.iter();
    specification.endpoints.len() > 1 || !all.any(|other| other.endpoints.len() > 1)
}

/// Writes the table: the endpoints that guides call, then the `POST` endpoints, then the others. Groups
/// take turns, and an endpoint of two groups is shown once. A documentation without endpoints has no
/// table.
pub(super) fn table(docs: &Docs, outline: &Outline, share: Share, base_url: &str) -> Vec<String> {
    let groups = outline.categories.iter().enumerate().map(|(group, of)| {
        let entries = of.entries.iter().enumerate();
        entries.map(move |(nth, entry)| (group, nth, entry))
    });
    let mut sink = Sink::new(base_url, ROWS_MAX, share.of(CHARACTERS_MAX));
    let mut rows: Vec<(usize, usize, String)> = Vec::new();
    let mut left_out: Vec<PageId> = Vec::new();
    let mut seen = HashSet::new();
    let called = Called::of(docs, outline);
    let all = interleave(groups).filter_map(|(group, nth, entry)| {
        let page = docs.navigation.page(entry.page);
        let (specification, one) = endpoint(docs, page)?;
        is_api(docs, specification).then_some((group, nth, entry, page, specification, one))
    });
    let mut all: Vec<_> = all.collect();
    // The sort is stable.
    all.sort_by_cached_key(|(.., one)| (!called.has(&one.path), one.method != Method::Post));
    for (group, nth, entry, page, specification, one) in all {
        // Two specifications may have the same endpoint.
        if !seen.insert((&entry.title, one.method, &*one.path)) {
            continue;
        }
        let row = format!(
            "| {} | `{}` | {} | {} |",
            one.method,
            cell(&one.path),
            cell(&link(&entry.title, page, base_url)),
            cell(&required(specification, one)),
        );
        if sink.add(std::slice::from_ref(&row)) {
            rows.push((group, nth, row));
        } else {
            left_out.push(entry.page);
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    rows.sort();
    let mut lines = vec![
        "| Method | Path | Page | Required |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ];
    lines.extend(rows.into_iter().map(|(_, _, row)| row));
    if !left_out.is_empty() {
        lines.push(String::new());
        lines.push(format!(
            "{} more endpoints of {} are in {}.",
            left_out.len(),
            plain(&docs.config.name),
            outline.lists_of(&left_out, base_url)
        ));
    }
    lines
}

/// The paths of addresses in the code of guides, as segments.
struct Called(Vec<Vec<String>>);

// === impl Called ===

impl Called {
    fn of(docs: &Docs, outline: &Outline) -> Self {
        let mut paths = HashSet::new();
        if !docs.specifications.is_empty() {
            for (_, _, nodes) in outline.contents(docs, |role| role < Role::Reference) {
                gather(nodes, &mut paths);
            }
        }
        let split = |path: &String| segments(path).map(str::to_owned).collect();
        Self(paths.iter().map(split).collect())
    }

    /// Returns whether the code calls the endpoint with this path; below it, or for a value in
    /// braces, other segments may stand.
    fn has(&self, path: &str) -> bool {
        let wanted: Vec<&str> = segments(path).collect();
        let is_value = |segment: &str| segment.starts_with('{') || segment.starts_with(':');
        if wanted.iter().all(|segment| is_value(segment)) {
            return false;
        }
        self.0.iter().any(|found| {
            let Some(before) = found.len().checked_sub(wanted.len()) else {
                return false;
            };
            let is_it = |found: &[String]| {
                let mut pairs = found.iter().zip(&wanted);
                pairs.all(|(found, wanted)| is_value(wanted) || found == wanted)
            };
            // The last value may be an address itself.
            match wanted.last().is_some_and(|last| is_value(last)) {
                true => found.windows(wanted.len()).any(is_it),
                false => is_it(&found[before..]),
            }
        })
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// Collects the paths of addresses in code.
fn gather(nodes: &[Node], paths: &mut HashSet<String>) {
    for node in nodes {
        match node {
            Node::Fence { code, .. } => {
                let words = code.split(|c: char| c.is_whitespace() || "\"'`<>,;()\\".contains(c));
                for word in words.filter(|word| word.contains('/')) {
                    let address = word.split(['?', '#']).next().unwrap_or_default();
                    // The host, or a placeholder for it.
                    let path = address.split_once("://").map_or(address, |(_, rest)| rest);
                    let start = path.find('/').unwrap_or(path.len());
                    if path.len() > start + 1 {
                        paths.insert(path[start..].to_owned());
                    }
                }
            }
            node => node.each_children(&mut |children| gather(children, paths)),
        }
    }
}

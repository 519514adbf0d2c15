//! The entry points of the reference: the endpoints of the specifications, as a table.

use crate::docs::Docs;
use crate::docs::openapi::Specification;

use super::interleave::interleave;
use super::outline::{Outline, endpoint, link, required};
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

/// Writes the table: the first endpoints of every group before the others, without endpoints that
/// another group has shown. A documentation without endpoints has no table.
pub(super) fn table(docs: &Docs, outline: &Outline, share: Share, base_url: &str) -> Vec<String> {
    let groups = outline.categories.iter().enumerate().map(|(group, of)| {
        let entries = of.entries.iter().enumerate();
        entries.map(move |(nth, entry)| (group, nth, entry))
    });
    let mut sink = Sink::new(base_url, ROWS_MAX, share.of(CHARACTERS_MAX));
    let mut rows: Vec<(usize, usize, String)> = Vec::new();
    let mut left_out = 0;
    let mut seen = std::collections::HashSet::new();
    for (group, nth, entry) in interleave(groups) {
        let page = docs.navigation.page(entry.page);
        let Some((specification, one)) = endpoint(docs, page) else {
            continue;
        };
        if !is_api(docs, specification) {
            continue;
        }
        if !seen.insert((&*specification.path, one.method, &*one.path)) {
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
            left_out += 1;
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
    if left_out > 0 {
        lines.push(String::new());
        lines.push(format!(
            "{left_out} more endpoints of {} are in [llms.txt]({base_url}/llms.txt).",
            plain(&docs.config.name)
        ));
    }
    lines
}

//! More calls of the product: a short example of each guide, in the language of the first call. The
//! code is copied unchanged.
//!
//! The first call shows that something works. An agent then writes code for a task, and needs the
//! names of the functions for it.

use std::collections::HashSet;

use crate::docs::Docs;

use super::code::{Block, Kind};
use super::first::First;
use super::group::groups;
use super::interleave::interleave;
use super::name::Names;
use super::outline::{Outline, content, link_to};
use super::role::{Role, is_about_repair};
use super::sink::{Share, Sink};

/// The most lines and characters of the section.
const LINES_MAX: usize = 90;
const CHARACTERS_MAX: usize = 2000;
/// The most lines and bytes of an example.
const CODE_LINES_MAX: usize = 9;
const CODE_BYTES_MAX: usize = 420;
/// The most examples.
const EXAMPLES_MAX: usize = 8;

/// Writes the examples: the first of every group of pages before any second one. Code of the first
/// call and of the `workflows` is not repeated.
pub(super) fn examples(
    docs: &Docs,
    outline: &Outline,
    first: &First<'_>,
    names: &Names,
    workflows: &[String],
    share: Share,
    base_url: &str,
) -> Vec<String> {
    let mut sink = Sink::new(base_url, LINES_MAX, share.of(CHARACTERS_MAX));
    let Some(language) = first.language else {
        return sink.lines;
    };
    let workflow_lines: HashSet<&str> = workflows
        .iter()
        .flat_map(|lines| lines.lines())
        .map(str::trim)
        .collect();
    let is_new = |block: &Block<'_>| {
        let mut lines = block.code.lines().map(str::trim);
        !first.shown.contains(block.code) && !lines.all(|line| workflow_lines.contains(line))
    };
    let is_wanted = |block: &Block<'_>| {
        block.is_in(language)
            && block.kind() == Kind::Call
            && block.is_complete()
            && block.imports()
            && block.acts()
            && block.only_makes().is_none()
            && !block.passes_unmade()
            && block.mentions(names)
            && block.code.len() <= CODE_BYTES_MAX
            && block.code.lines().count() <= CODE_LINES_MAX
            && is_new(block)
    };
    let mut seen = HashSet::new();
    let mut said = HashSet::new();
    for entry in interleave(outline.early().map(|category| &category.entries)) {
        let page = docs.navigation.page(entry.page);
        let is_guide =
            (Role::Guide..=Role::Concept).contains(&entry.role) && !is_about_repair(page);
        if said.len() == EXAMPLES_MAX || !is_guide || !seen.insert(entry.page) {
            continue;
        }
        let nodes = content(docs, page).unwrap_or_default();
        let blocks = groups(nodes).into_iter().flat_map(|group| group.blocks);
        let mut found = blocks.filter(|block| is_wanted(block) && !said.contains(block.code));
        if let Some(block) = found.next() {
            let from = link_to(docs, entry.page, base_url);
            let mut lines = vec![format!("- {from}:"), String::new()];
            lines.extend(block.fence("  "));
            lines.push(String::new());
            if sink.add(&lines) {
                said.insert(block.code);
            }
        }
    }
    sink.lines
}

//! The list of pages.

use std::collections::HashMap;

use super::file::Rest;
use super::interleave::interleave;
use super::outline::{Category, Outline};
use super::role::Role;
use super::sink::cost;
use crate::docs::Docs;

/// How many characters the list of pages has at least, if a link to the first page of each group needs
/// so many; and how many of them are for reference, community and changelog.
const PAGES_CHARACTERS_MIN: usize = 3600;
const LATE_CHARACTERS_MIN: usize = 700;
/// How many characters one category of pages needs besides its lines.
const CATEGORY_CHARACTERS: usize = 24;
/// The most characters of the names of groups that have no link.
const OTHERS_MAX: usize = 300;
/// How many of them the words of the line need, and how many are kept for the line.
const OTHERS_WORDS: usize = 45;
const OTHERS_CHARACTERS: usize = 200;

/// The list of pages: those that an agent needs first, and the others.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) early: Vec<String>,
    pub(super) late: Vec<String>,
}

/// Returns the positions of categories, the first of every part before any second one, and groups at
/// the top, and those about the start, before groups inside others. So a large part leaves room for
/// the others.
fn by_part(categories: &[&Category]) -> Vec<usize> {
    let interleaved = |is_top: bool| {
        let mut parts: Vec<(&str, Vec<usize>)> = Vec::new();
        for (at, category) in categories.iter().enumerate() {
            let mut roles = category.entries.iter().map(|entry| entry.role);
            let is_first = category.parent.is_empty() || roles.any(|role| role <= Role::Access);
            if is_first != is_top {
                continue;
            }
            match parts.iter_mut().find(|(part, _)| *part == category.part) {
                Some((_, positions)) => positions.push(at),
                None => parts.push((&category.part, vec![at])),
            }
        }
        interleave(parts.into_iter().map(|(_, positions)| positions)).collect::<Vec<_>>()
    };
    let mut order = interleaved(true);
    order.extend(interleaved(false));
    order
}

/// Names the groups that have no link, as many as fit.
fn others(names: &[String], characters_max: usize) -> Option<String> {
    let mut line = String::new();
    let mut named = 0;
    for name in names {
        if line.chars().count() + name.chars().count() + OTHERS_WORDS > characters_max {
            break;
        }
        line.push_str(if line.is_empty() { "" } else { ", " });
        line.push_str(name);
        named += 1;
    }
    let more = match names.len() - named {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (named > 0).then(|| format!("- Groups without a link here: {line}{more}"))
}

/// Returns how many characters the list of pages should have at least: a link for each group.
pub(super) fn pages_characters_min(docs: &Docs, outline: &Outline, base_url: &str) -> usize {
    let of_category = |category: &Category| {
        let link = category.entries.first();
        let link = link.map_or(0, |entry| cost(&entry.link(docs, base_url), base_url));
        link + 1 + category.name().chars().count() + CATEGORY_CHARACTERS
    };
    let all: usize = outline.categories.iter().map(of_category).sum();
    (all + all / 4).min(PAGES_CHARACTERS_MIN)
}

/// Lists pages by category: a line for each, with links. The first page of every category is
/// chosen before any second one, guides before reference, community and changelog (rule G2).
pub(super) fn skills(docs: &Docs, outline: &Outline, base_url: &str, rest: Rest) -> Listed {
    let (early, late): (Vec<&Category>, Vec<&Category>) = outline
        .categories
        .iter()
        .partition(|category| !category.is_late());
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for category in &outline.categories {
        *labels.entry(&category.label).or_default() += 1;
    }
    // A part is only named where its groups could be confused with those of another part.
    let name_of = |category: &Category| match labels.get(&*category.label) {
        Some(1) if !category.label.trim().is_empty() => category.label.clone(),
        _ => category.name(),
    };
    let mut listed = Listed::default();
    // What the early ones leave is for the late ones, too.
    let reserved = match late.is_empty() {
        true => 0,
        false => LATE_CHARACTERS_MIN.min(rest.characters / 4),
    };
    let mut budget = rest;
    budget.characters -= reserved;
    for (categories, out, reserved) in [
        (early, &mut listed.early, 0),
        (late, &mut listed.late, reserved),
    ] {
        budget.characters += reserved;
        let mut is_complete = true;
        let mut links: Vec<Vec<String>> = vec![Vec::new(); categories.len()];
        let longest = categories
            .iter()
            .map(|category| category.entries.len())
            .max();
        let order = by_part(&categories);
        let mut unlisted = None;
        // If not every group gets a link, there is room for the names of the others.
        let first = |category: &&Category| {
            let link = category.entries.first()?.link(docs, base_url);
            Some(
                cost(&link, base_url) + 1 + name_of(category).chars().count() + CATEGORY_CHARACTERS,
            )
        };
        let firsts: usize = categories.iter().filter_map(first).sum();
        let is_early = reserved == 0;
        let for_others = match is_early && firsts > budget.characters {
            true => OTHERS_CHARACTERS.min(budget.characters / 8),
            false => 0,
        };
        budget.characters -= for_others;
        for nth in 0..longest.unwrap_or(0) {
            for at in &order {
                let (category, links) = (categories[*at], &mut links[*at]);
                let Some(entry) = category.entries.get(nth).filter(|_| links.len() == nth) else {
                    continue;
                };
                let link = entry.link(docs, base_url);
                // The first page also needs the label, and the words about the other pages.
                let (lines, more) = match nth {
                    0 => (1, name_of(category).chars().count() + CATEGORY_CHARACTERS),
                    _ => (0, 0),
                };
                if budget.take(cost(&link, base_url) + 1 + more, lines) {
                    links.push(link);
                }
            }
            if nth == 0 && is_early {
                budget.characters += for_others;
                let left = order.iter().filter(|at| links[**at].is_empty());
                let names: Vec<String> = left.map(|at| name_of(categories[*at])).collect();
                let line = others(&names, budget.characters.min(OTHERS_MAX));
                unlisted = line.filter(|line| budget.take(line.chars().count() + 1, 1));
            }
        }
        for (category, links) in categories.iter().zip(links) {
            let left = category.entries.len() - links.len();
            is_complete &= left == 0;
            if links.is_empty() {
                continue;
            }
            let more = match left {
                0 => String::new(),
                _ => format!(", and {left} more"),
            };
            out.push(format!(
                "- **{}**: {}{more}",
                name_of(category),
                links.join(", ")
            ));
        }
        if let Some(line) = unlisted.filter(|_| !out.is_empty()) {
            out.push(line);
        }
        // One line names the list of all pages, and not each category.
        if !is_complete && !out.is_empty() {
            out.push(format!(
                "- All other pages: {}",
                outline.all_pages(base_url)
            ));
        }
    }
    listed
}

// === impl Category ===

impl Category {
    /// Returns the labels of its part and of itself.
    fn name(&self) -> String {
        if self.part == self.label || self.label.trim().is_empty() {
            self.part.clone()
        } else {
            format!("{}: {}", self.part, self.label)
        }
    }
}

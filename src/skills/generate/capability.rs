//! What the product can do: each part of it, what the part is for, and the page to start from.
//!
//! The rows come from three places that authors fill on purpose: the parts of the navigation, the
//! cards of the first page, and the groups at the top of each part.

use std::collections::{HashMap, HashSet};

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::docs::page::capitalised;
use crate::mdx::{Element, Node};

use super::about::{is_generic_part, is_generic_title};
use super::interleave::interleave;
use super::outline::{Category, Entry, Outline, content, link_to, purpose as about_page};
use super::role::normal;
use super::sink::{Share, Sink};
use super::text::{cell, fit, plain, words};

/// The most rows and characters of the table.
const ROWS_MAX: usize = 20;
const CHARACTERS_MAX: usize = 3300;
/// How many cards of the first page are rows.
const CARDS_MAX: usize = 10;
/// The longest purpose of a row, in characters.
const PURPOSE_MAX: usize = 130;
/// How many pages name the purpose of a part that has no description.
const NAMED_MAX: usize = 3;

/// A row of the table.
struct Row {
    area: String,
    purpose: String,
    page: PageId,
}

/// Writes the table. `about` is the text at the beginning of the skill, which no row repeats.
pub(super) fn table(
    docs: &Docs,
    outline: &Outline,
    about: &str,
    share: Share,
    base_url: &str,
) -> Vec<String> {
    let mut rows = parts(docs, outline, about);
    rows.extend(cards(docs, outline));
    rows.extend(groups(docs, outline, about));
    // Nearly every documentation has an area with such a name.
    if rows.iter().any(|row| !is_generic_title(&row.area)) {
        rows.retain(|row| !is_generic_title(&row.area));
    }
    // A row without words says little; a documentation may have no others.
    if rows.iter().any(|row| !row.purpose.is_empty()) {
        rows.retain(|row| !row.purpose.is_empty());
    }
    let mut sink = Sink::new(base_url, ROWS_MAX, share.of(CHARACTERS_MAX));
    let mut areas = HashSet::new();
    let mut pages = HashSet::new();
    for row in rows {
        let is_new = !pages.contains(&row.page) && !areas.contains(&normal(&row.area));
        if row.area.trim().is_empty() || !is_new {
            continue;
        }
        let line = format!(
            "| {} | {} | {} |",
            cell(&row.area),
            cell(&row.purpose),
            cell(&link_to(docs, row.page, base_url)),
        );
        if sink.add(&[line]) {
            areas.insert(normal(&row.area));
            pages.insert(row.page);
        }
    }
    if sink.lines.is_empty() {
        return sink.lines;
    }
    let head = ["| Area | What for | Start |", "|---|---|---|"];
    head.map(str::to_owned)
        .into_iter()
        .chain(sink.lines)
        .collect()
}

/// Lists the parts of the navigation, if there are several.
fn parts(docs: &Docs, outline: &Outline, about: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut parts: Vec<&str> = Vec::new();
    for category in outline.early() {
        if parts.contains(&&*category.part) {
            continue;
        }
        parts.push(&category.part);
        // A part does not begin with its examples.
        let mut own = outline.early().filter(|other| other.part == category.part);
        let begins = own.find(|other| other.entries.iter().any(is_beginning));
        rows.extend(row(docs, &category.part, begins.unwrap_or(category), about));
    }
    if parts.len() == 1 { Vec::new() } else { rows }
}

/// Lists the groups at the top of each part: the first group of every part before any second one.
fn groups(docs: &Docs, outline: &Outline, about: &str) -> Vec<Row> {
    let mut parts: Vec<(&str, Vec<Row>)> = Vec::new();
    for category in outline
        .early()
        .filter(|category| category.parent.is_empty())
    {
        let known = parts.iter().position(|(part, _)| *part == category.part);
        let at = known.unwrap_or_else(|| {
            parts.push((&category.part, Vec::new()));
            parts.len() - 1
        });
        let rows = &mut parts[at].1;
        if category.label == category.part {
            // Pages beside the groups of a part are often the first pages of its subjects.
            for entry in category
                .entries
                .iter()
                .filter(|entry| !entry.role.is_late())
            {
                rows.push(Row {
                    area: entry.title.clone(),
                    purpose: purpose(&about_page(docs, docs.navigation.page(entry.page)), about),
                    page: entry.page,
                });
            }
        } else if !is_generic_title(&category.label) {
            rows.extend(row(docs, &category.label, category, about));
        }
    }
    for (_, rows) in &mut parts {
        rows.retain(|row| !is_generic_title(&row.area));
    }
    interleave(parts.into_iter().map(|(_, rows)| rows)).collect()
}

/// Returns whether a page can be the first one that a reader opens: a list of examples is no beginning.
fn is_beginning(entry: &Entry) -> bool {
    !entry.role.is_late() && normal(&entry.title).trim() != "examples"
}

/// Writes the row of a part or a group: its first page, else its first pages by name.
fn row(docs: &Docs, label: &str, category: &Category, about: &str) -> Option<Row> {
    let shown = category
        .entries
        .iter()
        .filter(|entry| !entry.role.is_late());
    let shown: Vec<_> = shown.collect();
    let at = shown.iter().position(|entry| is_beginning(entry));
    let mut entries = shown[at.unwrap_or(0)..].iter();
    let first = entries.next()?;
    let mut text = purpose(&about_page(docs, docs.navigation.page(first.page)), about);
    if text.is_empty() || text == first.title {
        let titles = entries.map(|entry| &*entry.title);
        let titles = titles
            .filter(|title| !is_generic_title(title) && !title.ends_with('?'))
            .take(NAMED_MAX);
        text = fit(&titles.collect::<Vec<_>>().join(", "), PURPOSE_MAX);
    }
    Some(Row {
        area: match is_generic_part(label) {
            true => first.title.clone(),
            false => label.to_owned(),
        },
        purpose: text,
        page: first.page,
    })
}

/// Returns what a reader learns on a page: `Send a job.` of "Learn how to send a job."
fn learned(text: &str) -> Option<String> {
    const STARTS: [&str; 8] = [
        "Learn how to ",
        "Learn about how to ",
        "Learn to ",
        "A quick guide on how to ",
        "A quick guide to ",
        "This guide shows how to ",
        "This guide shows you how to ",
        "This guide explains how to ",
    ];
    let rest = STARTS.iter().find_map(|start| text.strip_prefix(start))?;
    (!rest.is_empty()).then(|| capitalised(rest))
}

/// Returns whether a text only tells the reader to read a page, or begins in the middle of a procedure.
fn is_about_reading(text: &str) -> bool {
    const STARTS: [&str; 9] = [
        " learn how ",
        " learn about ",
        " learn to ",
        " a quick guide ",
        " quick guide ",
        " this guide ",
        " this page ",
        " once you ",
        " after you ",
    ];
    let words = normal(text);
    STARTS.iter().any(|start| words.starts_with(start))
}

/// Returns the description of a page as a purpose; nothing if the skill begins with it, or if it says only
/// what the reader can do with the page.
fn purpose(described: &str, about: &str) -> String {
    let learned = learned(described);
    let described = learned.as_deref().unwrap_or(described);
    if is_about_reading(described) {
        return String::new();
    }
    let described = fit(described, PURPOSE_MAX);
    // A date or a text before a list says nothing.
    if described.ends_with(':') || normal(&described).starts_with(" effective date ") {
        return String::new();
    }
    match about.contains(described.trim_end_matches('…')) {
        true => String::new(),
        false => described,
    }
}

/// Lists the cards of the first page that lead to pages of the skill.
fn cards(docs: &Docs, outline: &Outline) -> Vec<Row> {
    let Some(home) = outline.home(docs) else {
        return Vec::new();
    };
    let page = docs.navigation.page(home);
    let mut found = Vec::new();
    gather(content(docs, page).unwrap_or_default(), &mut found);
    let shown: HashMap<&str, PageId> = outline
        .entries_of(|role| !role.is_late())
        .map(|entry| (&*docs.navigation.page(entry.page).url, entry.page))
        .collect();
    let rows = found.into_iter().filter_map(|card| {
        let href = card.text("href")?;
        let path = href.split(['#', '?']).next().unwrap_or_default();
        let path = path.trim_end_matches('/');
        let id = *shown.get(path)?;
        let title = plain(card.text("title")?);
        let text = purpose(&words(&card.children), "");
        (!text.is_empty() && id != home).then_some(Row {
            area: title,
            purpose: text,
            page: id,
        })
    });
    rows.take(CARDS_MAX).collect()
}

fn gather<'d>(nodes: &'d [Node], out: &mut Vec<&'d Element>) {
    for node in nodes {
        match node {
            Node::Element(element) if *element.name == *"Card" => out.push(element),
            node => node.each_children(&mut |children| gather(children, out)),
        }
    }
}

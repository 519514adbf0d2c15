//! The quickstarts of a group: alternatives, or steps one after the other.
//!
//! Quickstarts for platforms and languages are alternatives, among which a reader chooses. Their
//! titles are names (`Next.js`), or differ in a name (`Add a login to your React app`, `… Vue
//! app`). Titles with different actions are the steps of one start, and so are pages
//! that a numbered list of one of them names. Those are no choice.

use std::collections::{HashMap, HashSet};

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::mdx::{Element, Node};

use super::about::is_generic_title;
use super::outline::{Entry, Outline, content};
use super::role::{Role, is_about_setup, normal};
use super::words::{is_task, number};

/// A group with this many quickstarts is a choice; so many groups and quickstarts are listed.
const QUICKSTARTS_MIN: usize = 3;
const QUICKSTARTS_MAX: usize = 5;
const GROUPS_MAX: usize = 3;
/// A numbered list that names this many quickstarts gives their order.
const ORDERED_MIN: usize = 2;

/// Lists the quickstarts of each group in which they are alternatives.
pub(super) fn choices(docs: &Docs, outline: &Outline, base_url: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for category in &outline.categories {
        let starts = category
            .entries
            .iter()
            .filter(|entry| entry.role == Role::Start);
        let starts: Vec<&Entry> = starts.collect();
        let is_choice = starts.len() >= QUICKSTARTS_MIN && are_alternatives(docs, &starts);
        if !is_choice || lines.len() == GROUPS_MAX {
            continue;
        }
        let links: Vec<String> = starts
            .iter()
            .take(QUICKSTARTS_MAX)
            .map(|entry| entry.link(docs, base_url))
            .collect();
        let more = match starts.len() - links.len() {
            0 => String::new(),
            more => {
                let pages: Vec<PageId> = starts.iter().map(|entry| entry.page).collect();
                let lists = outline.lists_of(&pages, base_url);
                format!(", and {more} more in {lists}")
            }
        };
        let label = match category.label == category.part {
            true => category.label.clone(),
            false => format!("{}: {}", category.part, category.label),
        };
        lines.push(format!(
            "- Choose a start of {label}: {}{more}",
            links.join(", ")
        ));
    }
    lines
}

/// Returns the quickstarts that are alternatives of the first one of their group.
pub(super) fn others(docs: &Docs, outline: &Outline) -> HashSet<PageId> {
    let mut others = HashSet::new();
    for category in &outline.categories {
        let starts = category
            .entries
            .iter()
            .filter(|entry| entry.role == Role::Start);
        let starts: Vec<&Entry> = starts.collect();
        if starts.len() > 1 && are_alternatives(docs, &starts) {
            others.extend(starts[1..].iter().map(|entry| entry.page));
        }
    }
    others
}

/// Returns whether a reader needs only one of these pages.
fn are_alternatives(docs: &Docs, starts: &[&Entry]) -> bool {
    let pages = || starts.iter().map(|entry| docs.navigation.page(entry.page));
    let urls: HashSet<&str> = pages().map(|page| &*page.url).collect();
    let orders = |nodes| orders(nodes, &urls);
    if pages().any(|page| content(docs, page).is_some_and(orders)) {
        return false;
    }
    let titles: Vec<&str> = starts.iter().map(|entry| &*entry.title).collect();
    differ_by_name(&titles)
}

/// Returns whether titles are names, or differ only in a name.
fn differ_by_name(titles: &[&str]) -> bool {
    let numbered = titles.iter().filter(|title| number(title).is_some());
    if numbered.count() >= ORDERED_MIN {
        return false;
    }
    let is_step = |title: &&&str| {
        let is_one_word = !title.contains(' ');
        !is_one_word && is_task(title) || is_generic_title(title) || is_about_setup(title)
    };
    if titles.iter().filter(is_step).count() * 2 < titles.len() {
        return true;
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for title in titles {
        let words: HashSet<String> = normal(title)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
    }
    let is_shared = |word: &str| {
        let words = normal(word);
        let mut words = words.split_whitespace();
        words.all(|word| {
            counts
                .get(word)
                .is_some_and(|count| count * 2 > titles.len())
        })
    };
    // The words that differ begin with a capital letter: they are names.
    let is_framed = |title: &&&str| {
        let (same, own): (Vec<&str>, Vec<&str>) =
            title.split(' ').partition(|word| is_shared(word));
        let names = own.iter().any(|word| word.contains(char::is_uppercase));
        same.len() >= own.len() && (own.is_empty() || names)
    };
    titles.iter().filter(is_framed).count() * 2 > titles.len()
}

/// Returns whether a numbered list names several of these pages.
fn orders(nodes: &[Node], urls: &HashSet<&str>) -> bool {
    nodes.iter().any(|node| {
        let is_list = match node {
            Node::List { start, .. } => start.is_some(),
            Node::Element(Element { name, .. }) => **name == *"Steps",
            _ => false,
        };
        let mut found = HashSet::new();
        if is_list {
            linked(std::slice::from_ref(node), urls, &mut found);
        }
        let mut is_inside = false;
        node.each_children(&mut |children| is_inside |= orders(children, urls));
        found.len() >= ORDERED_MIN || is_inside
    })
}

/// Collects the pages that links lead to.
fn linked<'u>(nodes: &[Node], urls: &HashSet<&'u str>, found: &mut HashSet<&'u str>) {
    for node in nodes {
        let href = match node {
            Node::Link { href, .. } => Some(&**href),
            Node::Element(element) => element.text("href"),
            _ => None,
        };
        let path = href.and_then(|href| href.split(['#', '?']).next());
        found.extend(path.and_then(|path| urls.get(path.trim_end_matches('/'))));
        node.each_children(&mut |children| linked(children, urls, found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_choice_and_steps_are_not() {
        for titles in [
            &["Next.js", "AWS Lambda", "Python"][..],
            &["Quickstart", "Go", "Node", "Rust"],
            &[
                "Add Login to Your React Application",
                "Add Login to Your Vue.js Application",
                "Android - Facebook Login",
            ],
            &["Install on Linux", "Install on macOS", "Install on Windows"],
        ] {
            assert!(differ_by_name(titles), "{titles:?}");
        }
        for titles in [
            &["Run your first job", "Connect a model", "Upload files"][..],
            &[
                "Quickstart",
                "Prepare your project",
                "Connect your warehouse",
                "Invite your team",
            ],
            &["Introduction", "Installation", "Authentication"],
            &["1. Boxes", "2. Queues", "3. Jobs"],
            &[
                "Set up your account",
                "Set up your project",
                "Set up your client",
            ],
        ] {
            assert!(!differ_by_name(titles), "{titles:?}");
        }
    }
}

//! Finds the sentences of the documentation that say what the product is.
//!
//! The card, `llms.txt` and the skill use the same sentences. Authors say what the product is in
//! `docs.json`, or on the first page: "E2B is …". Sentences about the documentation itself ("Here
//! you find all guides") do not describe the product and are skipped.

use std::collections::HashSet;

use crate::docs::Docs;
use crate::docs::navigation::tree::{Page, PageId};
use crate::mdx::Node;

use super::outline::{Outline, content};
use super::role::{Role, has, normal};
use super::text::{fit, is_silent, plain, sentences, words};
use super::words::{in_sentence, is_instruction};

/// The most characters of the sentences.
const CHARACTERS_MAX: usize = 320;
/// How many pages are searched for a definition, besides those that introduce the product.
const PAGES_MAX: usize = 12;
/// How many paragraphs of a page are searched.
const PARAGRAPHS_MAX: usize = 16;
/// How many instructions and how many subjects the description names.
const INSTRUCTIONS_MAX: usize = 6;
const SUBJECTS_MAX: usize = 5;
/// Shorter words of a title, such as `to`, stay small in title case.
const TITLE_CASE_LETTERS: usize = 4;

/// Words that name documentation, not a product.
const DOCUMENTATION: [&str; 17] = [
    "docs",
    "documentation",
    "developer",
    "developers",
    "dev",
    "portal",
    "hub",
    "center",
    "official",
    "guides",
    "the",
    "for",
    "of",
    "and",
    "to",
    "welcome",
    "s",
];
/// The words after the name of a product in a sentence that defines it.
const DEFINES: [&str; 24] = [
    "is",
    "are",
    "lets",
    "let",
    "enables",
    "allows",
    "provides",
    "helps",
    "gives",
    "makes",
    "offers",
    "turns",
    "runs",
    "connects",
    "brings",
    "combines",
    "delivers",
    "handles",
    "manages",
    "takes",
    "powers",
    "simplifies",
    "supports",
    "builds",
];
/// Beginnings of sentences about the documentation itself.
const META: [&str; 32] = [
    "here you",
    "here are",
    "this guide",
    "this page",
    "this section",
    "this site",
    "this documentation",
    "this doc",
    "this document",
    "this tutorial",
    "this article",
    "this quickstart",
    "this is",
    "these docs",
    "the following",
    "welcome",
    "learn",
    "get started",
    "start with",
    "in this",
    "explore the",
    "explore our",
    "find",
    "everything you need",
    "browse",
    "if you",
    "see",
    "discover",
    "read",
    "looking for",
    "documentation for",
    "our documentation",
];
const INTRODUCTIONS: [&str; 6] = [
    "introduction",
    "intro",
    "overview",
    "welcome",
    "what is",
    "home",
];
/// Titles that nearly every documentation has: they do not say when to use the skill.
const GENERIC: [&str; 26] = [
    "getting started",
    "get started",
    "introduction",
    "intro",
    "overview",
    "documentation",
    "guides",
    "guide",
    "welcome",
    "other",
    "home",
    "quickstart",
    "quick start",
    "quickstarts",
    "index",
    "faq",
    "faqs",
    "frequently asked questions",
    "troubleshooting",
    "troubleshoot",
    "help",
    "support",
    "basics",
    "concepts",
    "resources",
    "examples",
];

/// Returns the sentences that say what the documented product is; `None` if there are none.
///
/// They are the description of `docs.json` unless it only says that this is documentation, else
/// sentences of the first pages.
#[must_use]
pub fn about(docs: &Docs) -> Option<String> {
    of(docs, &Outline::of(docs)).map(|(about, _)| about)
}

/// Returns the sentences, and the page from which they are; `None` for `docs.json`.
pub(super) fn of(docs: &Docs, outline: &Outline) -> Option<(String, Option<PageId>)> {
    let product = product(&docs.config.name);
    if let Some(description) = docs.config.description.as_deref()
        && !is_generic(&plain(description), &product)
    {
        return Some((description.to_owned(), None));
    }
    let first = outline.home(docs)?;
    if let Some(found) = definition(docs, first, &product) {
        return Some((found, Some(first)));
    }
    if let Some(description) = docs.navigation.page(first).description.as_deref() {
        let description = plain(description);
        if !is_generic(&description, &product) && !is_meta(&description) {
            return Some((fit(&description, CHARACTERS_MAX), Some(first)));
        }
    }
    let others = outline.pages().filter(|id| *id != first);
    let others = others
        .enumerate()
        .filter(|(nth, id)| *nth < PAGES_MAX || is_introduction(docs.navigation.page(*id)));
    for (_, id) in others {
        if let Some(found) = definition(docs, id, &product) {
            return Some((found, Some(id)));
        }
    }
    let opening = paragraphs(docs, first);
    let mut opening = opening.iter().map(|paragraph| starting(paragraph, 0));
    let found = opening.find(|text| !is_meta(text) && text.split(' ').count() > 4)?;
    Some((found, Some(first)))
}

/// Returns the definition of the product on a page.
pub(super) fn definition(docs: &Docs, id: PageId, product: &str) -> Option<String> {
    paragraphs(docs, id).iter().find_map(|paragraph| {
        let nth = sentences(paragraph)
            .iter()
            .position(|sentence| defines(sentence, product))?;
        Some(starting(paragraph, nth))
    })
}

/// Returns the sentences of a paragraph from the `nth` on that fit.
fn starting(paragraph: &str, nth: usize) -> String {
    let mut out = String::new();
    for sentence in sentences(paragraph).into_iter().skip(nth) {
        if !out.is_empty() && (out.len() + sentence.len() > CHARACTERS_MAX || is_meta(sentence)) {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(sentence);
    }
    fit(&out, CHARACTERS_MAX)
}

fn is_introduction(page: &Page) -> bool {
    has(&normal(&page.title), &INTRODUCTIONS)
}

/// Returns the name of a product: the title without words such as "documentation".
pub(super) fn product(title: &str) -> String {
    let title = plain(title);
    let mut words: Vec<&str> = title.split(' ').collect();
    let is_of_documentation = |word: &&str| {
        let word = word.to_lowercase();
        DOCUMENTATION.contains(&&*word) || word == "api"
    };
    while words.len() > 1 && words.last().is_some_and(is_of_documentation) {
        words.pop();
    }
    let words = words.join(" ");
    words.trim_end_matches([':', '-', '–', '|', ' ']).to_owned()
}

/// Returns whether nearly every documentation has a page with this title.
pub(super) fn is_generic_title(title: &str) -> bool {
    GENERIC.contains(&normal(title).trim())
}

/// Returns whether a part of the navigation is only named as documentation: `Docs`, `Guides`.
pub(super) fn is_generic_part(label: &str) -> bool {
    let words = normal(label);
    DOCUMENTATION.contains(&words.trim())
}

/// Returns whether a description says nothing except that this is the documentation of a product.
fn is_generic(description: &str, product: &str) -> bool {
    let product = normal(product);
    let words = normal(description);
    let rest = words
        .split(' ')
        .filter(|word| !word.is_empty() && !DOCUMENTATION.contains(word));
    rest.filter(|word| !product.contains(&format!(" {word} ")))
        .count()
        < 2
}

/// Returns whether a sentence is about the documentation itself.
pub(super) fn is_meta(sentence: &str) -> bool {
    let words = normal(sentence);
    let words = words.trim_start();
    META.iter().any(|start| {
        words
            .strip_prefix(start)
            .is_some_and(|rest| rest.starts_with(' '))
    })
}

/// Returns whether a sentence defines the product: `Acme is …`, `The Acme API lets you …`.
fn defines(sentence: &str, product: &str) -> bool {
    // A remark between parentheses may follow the name.
    let mut bare = String::new();
    let mut depth = 0;
    for c in sentence.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            c if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    let words = normal(&bare);
    let words = words.trim_start().trim_start_matches("the ");
    let initials: String = product
        .split(' ')
        .filter_map(|word| word.chars().next())
        .collect();
    let mut names = vec![normal(product).trim().to_owned()];
    if initials.chars().count() > 1 {
        names.push(initials.to_lowercase());
    }
    names.iter().filter(|name| !name.is_empty()).any(|name| {
        let Some(rest) = words
            .strip_prefix(&**name)
            .filter(|rest| rest.starts_with(' '))
        else {
            return false;
        };
        let mut after = rest.split(' ').filter(|word| !word.is_empty());
        // "Acme then lets you …" continues another sentence.
        let continues = |word: &str| matches!(word, "then" | "also" | "will" | "can" | "now");
        let mut before = after.by_ref().take(3).take_while(|word| !continues(word));
        let verb = before.position(|word| DEFINES.contains(&word));
        // "Acme is not …", "Acme is available in …" define nothing.
        let next = after.next().unwrap_or_default();
        verb.is_some() && !matches!(next, "not" | "available" | "now" | "currently" | "also")
    })
}

/// Returns the paragraphs of a page, as plain lines.
fn paragraphs(docs: &Docs, id: PageId) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(nodes) = content(docs, docs.navigation.page(id)) {
        gather(nodes, &mut out);
    }
    out
}

fn gather(nodes: &[Node], out: &mut Vec<String>) {
    for node in nodes {
        if out.len() == PARAGRAPHS_MAX {
            return;
        }
        match node {
            Node::Element(element) if is_silent(&element.name) => {}
            Node::Paragraph(line) => {
                let words = words(line);
                if words.chars().any(char::is_alphabetic) {
                    out.push(words);
                }
            }
            Node::Heading { .. } | Node::Table(_) | Node::List { .. } | Node::Fence { .. } => {}
            Node::Element(element) if matches!(&*element.name, "Steps" | "Card" | "CodeGroup") => {}
            node => node.each_children(&mut |children| gather(children, out)),
        }
    }
}

/// Writes when to use the skill: agents decide by this text.
pub(super) fn description(docs: &Docs, title: &str, about: &str, outline: &Outline) -> String {
    let product = product(title);
    let mut instructions: Vec<String> = Vec::new();
    let mut subjects: Vec<String> = Vec::new();
    let early = || {
        outline
            .categories
            .iter()
            .filter(|category| !category.is_late())
    };
    let deepest = early()
        .map(|category| category.entries.len())
        .max()
        .unwrap_or(0);
    for nth in 0..deepest {
        for entry in early().filter_map(|category| category.entries.get(nth)) {
            let title = entry.title.trim_end_matches(['.', '!', '…']);
            let title = title.strip_suffix(" Overview").unwrap_or(title);
            let phrase = match is_task(title) {
                true => in_sentence(&without_title_case(title, &|| {
                    paragraphs(docs, entry.page).join(" ")
                })),
                false => title.to_owned(),
            };
            let words = normal(&phrase);
            let known = |all: &[String]| all.iter().any(|other| normal(other) == words);
            let is_short = phrase.chars().count() <= 60
                && !phrase.contains([';', ':', '"', '|', '?'])
                && !phrase.contains(" - ");
            let is_start = entry.role <= Role::Access || has(&words, &["documentation", "docs"]);
            if is_start
                || entry.role.is_late()
                || !is_short
                || known(&instructions)
                || known(&subjects)
            {
                continue;
            }
            let is_generic = is_generic_title(&phrase);
            if is_task(&phrase) && phrase.contains(' ') {
                let is_about_start = has(&words, &["get started", "quickstart"]);
                if instructions.len() < INSTRUCTIONS_MAX && !is_about_start {
                    instructions.push(phrase);
                }
            } else if entry.role != Role::Concept
                && !is_generic
                && subjects.len() < SUBJECTS_MAX
                && words != normal(&product)
            {
                subjects.push(phrase);
            }
        }
    }
    let mut text = String::new();
    if !about.is_empty() {
        text.push_str(about);
        if !about.ends_with(['.', '!', '?', '。', '…']) {
            text.push('.');
        }
        text.push(' ');
    }
    text.push_str(&format!("Use when a task needs {product}"));
    if !instructions.is_empty() {
        text.push_str(&format!(", for example to {}", list(&instructions)));
    }
    if !subjects.is_empty() {
        let and = if instructions.is_empty() {
            ", for"
        } else {
            "; also for"
        };
        text.push_str(&format!("{and} {}", list(&subjects)));
    }
    text.push('.');
    text
}

/// Writes a title such as `Connect Your Client` as in a sentence. `text` returns the text of the
/// page. A word that the page never has in small letters is a name, and keeps its capital.
fn without_title_case(title: &str, text: &dyn Fn() -> String) -> String {
    let is_large = |word: &str| {
        let mut letters = word.chars();
        letters.next().is_some_and(char::is_uppercase) && letters.all(|c| !c.is_uppercase())
    };
    let is_word = |word: &&str| word.chars().count() >= TITLE_CASE_LETTERS;
    let mut after_first = title.split(' ').skip(1).filter(is_word).peekable();
    if after_first.peek().is_none() || !after_first.all(is_large) {
        return title.to_owned();
    }
    let text = text();
    let known: HashSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let write = |(nth, word): (usize, &str)| {
        let small = word.to_lowercase();
        match nth > 0 && is_large(word) && known.contains(&*small) {
            true => small,
            false => word.to_owned(),
        }
    };
    let words: Vec<String> = title.split(' ').enumerate().map(write).collect();
    words.join(" ")
}

/// Returns whether a title is a task. Verbs that are also nouns need an object: `Request units` is
/// a subject, `Request a refund` is a task.
pub(super) fn is_task(title: &str) -> bool {
    const NOUNS: [&str; 41] = [
        "access", "request", "launch", "debug", "list", "set", "test", "trace", "host", "order",
        "index", "search", "report", "log", "process", "schedule", "cache", "share", "sort",
        "query", "limit", "design", "stream", "monitor", "plan", "start", "filter", "label",
        "measure", "group", "tag", "type", "use", "view", "watch", "issue", "load", "handle",
        "map", "select", "upgrade",
    ];
    const OBJECTS: [&str; 15] = [
        "in", "up", "out", "a", "an", "the", "your", "our", "to", "with", "from", "all",
        "multiple", "data", "code",
    ];
    let words = normal(title);
    let mut words = words.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    let has_object = second.is_some_and(|second| OBJECTS.contains(&second));
    is_instruction(title) && (!NOUNS.contains(&first) || has_object)
}

/// Joins phrases: `a, b or c`.
fn list(phrases: &[String]) -> String {
    match phrases.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_named_without_its_documentation() {
        assert_eq!(product("Acme Docs"), "Acme");
        assert_eq!(product("Acme Developer Documentation"), "Acme");
        assert_eq!(product("Docs"), "Docs");
        assert_eq!(product("Acme Pay API"), "Acme Pay");
    }

    #[test]
    fn a_title_is_written_as_in_a_sentence() {
        let text =
            || "You need an account. Open the console of Redis, then your client.".to_owned();
        let written = |title: &str| without_title_case(title, &text);
        assert_eq!(written("Create an Account"), "Create an account");
        assert_eq!(written("Connect Your Client"), "Connect your client");
        assert_eq!(written("Connect Redis"), "Connect Redis");
        assert_eq!(
            written("Create an account with SSO"),
            "Create an account with SSO"
        );
    }

    #[test]
    fn definitions_are_told_from_other_sentences() {
        for sentence in [
            "Acme is an API for payments.",
            "The Acme API lets you pay.",
            "Acme (the service) helps you.",
        ] {
            assert!(defines(sentence, "Acme"), "{sentence}");
        }
        assert!(defines(
            "MCP (Model Context Protocol) is open.",
            "Model Context Protocol"
        ));
        for sentence in [
            "Here you find Acme.",
            "Acmes are many.",
            "Acme is not for cards.",
            "Log in to Acme.",
        ] {
            assert!(!defines(sentence, "Acme"), "{sentence}");
        }
        assert!(is_generic("Acme documentation", "Acme"));
        assert!(is_generic("The official docs of Acme.", "Acme"));
        assert!(!is_generic("Accept payments with Acme.", "Acme"));
        assert!(is_meta("Here you'll find all guides."));
        assert!(is_meta("This document serves as a guide."));
        assert!(!is_meta("Welcoming payments"));
    }
}

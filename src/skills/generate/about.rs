//! Finds the sentences of the documentation that say what the product is.
//!
//! The card, `llms.txt` and the skill use the same sentences. Authors say what the product is in
//! `docs.json`, or on the first page: "E2B is …". Sentences about the documentation itself ("Here
//! you find all guides") do not describe the product and are skipped.

use crate::docs::Docs;
use crate::docs::navigation::tree::{Page, PageId};
use crate::mdx::Node;

use super::outline::{Outline, content, is_callout};
use super::role::{has, normal};
use super::text::{fit, is_silent, plain, sentences, words};

/// The most characters of the sentences.
const CHARACTERS_MAX: usize = 320;
/// How many pages are searched for a definition, besides those that introduce the product.
const PAGES_MAX: usize = 60;
/// How many paragraphs of a page are searched.
const PARAGRAPHS_MAX: usize = 16;
/// The shortest word of a product's name by which it is mentioned, in characters.
const WORD_MIN: usize = 3;

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
const DEFINES: [&str; 41] = [
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
    "accepts",
    "automates",
    "charges",
    "collects",
    "converts",
    "creates",
    "deploys",
    "generates",
    "hosts",
    "indexes",
    "monitors",
    "processes",
    "searches",
    "sends",
    "stores",
    "tracks",
    "transforms",
];
/// Those of them that often say something about a part of the product.
const WEAK: [&str; 25] = [
    "gives",
    "handles",
    "makes",
    "manages",
    "provides",
    "runs",
    "supports",
    "takes",
    "accepts",
    "automates",
    "charges",
    "collects",
    "converts",
    "creates",
    "deploys",
    "generates",
    "hosts",
    "indexes",
    "monitors",
    "processes",
    "searches",
    "sends",
    "stores",
    "tracks",
    "transforms",
];
/// The words between the name of a product and the verb of its definition.
const KINDS: [&str; 14] = [
    "api",
    "apis",
    "app",
    "cli",
    "cloud",
    "engine",
    "framework",
    "library",
    "platform",
    "sdk",
    "server",
    "service",
    "itself",
    "protocol",
];
/// Words after "is" in sentences that praise the product, and do not say what it is.
const PRAISES: [&str; 24] = [
    "available",
    "based",
    "built",
    "compatible",
    "created",
    "currently",
    "designed",
    "developed",
    "easy",
    "fast",
    "ideal",
    "intended",
    "licensed",
    "made",
    "meant",
    "optimised",
    "optimized",
    "perfect",
    "powered",
    "released",
    "tested",
    "trusted",
    "used",
    "written",
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
const GENERIC: [&str; 31] = [
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
    "features",
    "appendix",
    "glossary",
    "good practices",
    "best practices",
];

/// The subject of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The product or a part of it, as on the first page: `Acme Boxes are …`.
    Any,
    /// The product itself.
    Whole,
    /// The product itself, with a verb that says what it is or does as a whole. On pages about
    /// something else, "Acme supports …" is about that.
    Certain,
}

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
    if let Some(found) = definition(docs, first, &product, Subject::Whole) {
        return Some((found, Some(first)));
    }
    if let Some(description) = docs.navigation.page(first).description.as_deref() {
        let description = plain(description);
        // What a beginner does first says nothing about the product.
        let is_tutorial = has(&normal(&description), &["your first"]);
        if !is_generic(&description, &product) && !is_meta(&description) && !is_tutorial {
            return Some((fit(&description, CHARACTERS_MAX), Some(first)));
        }
    }
    let others = outline.pages().filter(|id| *id != first);
    let others = others
        .enumerate()
        .filter(|(nth, id)| *nth < PAGES_MAX || is_introduction(docs.navigation.page(*id)));
    for (_, id) in others {
        if let Some(found) = definition(docs, id, &product, Subject::Certain) {
            return Some((found, Some(id)));
        }
    }
    if let Some(found) = definition(docs, first, &product, Subject::Any) {
        return Some((found, Some(first)));
    }
    let opening = paragraphs(docs, first);
    let mut opening = opening.iter().map(|paragraph| starting(paragraph, 0));
    let found = opening.find(|text| !is_meta(text) && text.split(' ').count() > 4)?;
    Some((found, Some(first)))
}

/// Returns the definition of the product on a page.
pub(super) fn definition(
    docs: &Docs,
    id: PageId,
    product: &str,
    subject: Subject,
) -> Option<String> {
    paragraphs(docs, id).iter().find_map(|paragraph| {
        let nth = sentences(paragraph)
            .iter()
            .position(|sentence| !sentence.ends_with(':') && defines(sentence, product, subject))?;
        Some(starting(paragraph, nth))
    })
}

/// Returns the sentences of a paragraph from the `nth` on that fit.
fn starting(paragraph: &str, nth: usize) -> String {
    let mut out = String::new();
    for sentence in sentences(paragraph).into_iter().skip(nth) {
        let is_too_long = out.len() + sentence.len() > CHARACTERS_MAX;
        // What a sentence announces is not repeated.
        let announces = sentence.ends_with(':');
        if !out.is_empty() && (is_too_long || announces || is_meta(sentence)) {
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

/// Returns the words of a product's name by which code, packages and variables mention it: in lower
/// case, each with at least three characters.
pub(super) fn product_words(product: &str) -> Vec<String> {
    let words = normal(product);
    let words = words.split_whitespace();
    words
        .filter(|word| word.chars().count() >= WORD_MIN)
        .map(str::to_owned)
        .collect()
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

/// Returns whether a description says nothing more than the title of its page and the name of the site:
/// `Version: v2` of `Acme docs`.
pub(super) fn repeats(description: &str, title: &str, site: &str) -> bool {
    const KINDS: [&str; 8] = [
        "a",
        "an",
        "api",
        "guide",
        "introduction",
        "overview",
        "reference",
        "version",
    ];
    let known = normal(&format!("{title} {site}"));
    let is_number = |word: &str| {
        word.trim_start_matches('v')
            .bytes()
            .all(|b| b.is_ascii_digit())
    };
    normal(description).split_whitespace().all(|word| {
        let is_kind = KINDS.contains(&word) || DOCUMENTATION.contains(&word);
        is_kind || is_number(word) || known.contains(&format!(" {word} "))
    })
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
fn defines(sentence: &str, product: &str, subject: Subject) -> bool {
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
        let is_part = |word: &str| subject != Subject::Any && !KINDS.contains(&word);
        let is_weak = |word: &str| subject == Subject::Certain && WEAK.contains(&word);
        let mut verb = None;
        for word in after.by_ref().take(3).take_while(|word| !continues(word)) {
            if DEFINES.contains(&word) && !is_weak(word) {
                verb = Some(word);
                break;
            }
            if is_part(word) {
                break;
            }
        }
        // "Acme is not …", "Acme is available in …" define nothing.
        let next = after.next().unwrap_or_default();
        let is_praise = PRAISES.contains(&next);
        verb.is_some() && !is_praise && !matches!(next, "not" | "now" | "also")
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
            node if is_callout(node) => {}
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
    fn the_words_of_a_product_are_lower_case_and_not_short() {
        for (product, words) in [
            ("Acme Pay", &["acme", "pay"][..]),
            ("Acme.js: AI & Boxes", &["acme", "boxes"]),
            ("ComfyUI", &["comfyui"]),
            ("Go", &[]),
            ("", &[]),
        ] {
            assert_eq!(product_words(product), words, "{product}");
        }
    }

    #[test]
    fn definitions_are_told_from_other_sentences() {
        for sentence in [
            "Acme is an API for payments.",
            "The Acme API lets you pay.",
            "Acme (the service) helps you.",
        ] {
            assert!(defines(sentence, "Acme", Subject::Whole), "{sentence}");
        }
        assert!(defines(
            "MCP (Model Context Protocol) is open.",
            "Model Context Protocol",
            Subject::Whole
        ));
        let part = "Acme Archive allows you to keep receipts.";
        assert!(defines(part, "Acme", Subject::Any) && !defines(part, "Acme", Subject::Whole));
        let content = "Acme indexes your content.";
        assert!(
            defines(content, "Acme", Subject::Whole) && !defines(content, "Acme", Subject::Certain)
        );
        let other = "Acme supports many models.";
        assert!(
            defines(other, "Acme", Subject::Whole) && !defines(other, "Acme", Subject::Certain)
        );
        for sentence in [
            "Here you find Acme.",
            "Acmes are many.",
            "Acme is not for cards.",
            "Log in to Acme.",
            "Acme is designed for speed at scale.",
            "Acme is optimized for short calls.",
        ] {
            assert!(!defines(sentence, "Acme", Subject::Any), "{sentence}");
        }
        assert!(is_generic("Acme documentation", "Acme"));
        assert!(is_generic("The official docs of Acme.", "Acme"));
        assert!(!is_generic("Accept payments with Acme.", "Acme"));
        for (description, title) in [
            ("Acme docs", "Documentation of all"),
            ("Version: v0.54", "Boxes"),
            (
                "Authentication for the Acme Developer API",
                "Authentication",
            ),
            ("Developer Guides Overview", "Build with it"),
        ] {
            assert!(repeats(description, title, "Acme"), "{description}");
        }
        assert!(!repeats("Create a box", "Boxes", "Acme"));
        assert!(is_meta("Here you'll find all guides."));
        assert!(is_meta("This document serves as a guide."));
        assert!(!is_meta("Welcoming payments"));
    }
}

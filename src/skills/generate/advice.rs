//! The advice of authors: pitfalls and limits, and cases in which the product is not the right
//! tool.

use std::collections::{BTreeSet, HashSet};

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::mdx::{Element, Node};

use super::about::{is_meta, product};
use super::alone::{is_open, is_reference, refers_back, refers_outside};
use super::interleave::interleave;
use super::limit::{Scope, is_rule, says_consequence, says_limit, says_rate};
use super::outline::{Outline, content, link_to, words as outline_words};
use super::role::{Role, has, is_obsolete, normal};
use super::sink::{Share, Sink};
use super::text::{self, fit, sentences, whole, words};

/// The most lines and characters of each list.
const PITFALLS_MAX: usize = 12;
const PITFALLS_CHARACTERS_MAX: usize = 2100;
const UNSUITED_MAX: usize = 5;
const UNSUITED_CHARACTERS_MAX: usize = 900;
/// The longest advice, in characters.
const ADVICE_MAX: usize = 260;
/// How many sentences of a page about limits are listed, if it is about the whole product and if it
/// is about a part of it; and how many of all such pages.
const LIMITS_OF_WHOLE_MAX: usize = 4;
const LIMITS_OF_PART_MAX: usize = 1;
const LIMITS_MAX: usize = 6;
/// How many values below one heading are limits.
const VALUES_OF_HEADING_MAX: usize = 2;
/// How many callouts of a page with the same weight are listed.
const CALLOUTS_MAX: usize = 2;
/// How many pages about something old are named.
const OLD_MAX: usize = 4;
/// The shortest advice, in words.
const WORDS_MIN: usize = 5;

/// Words of a sentence about a purpose for which another tool is better.
const UNSUITED: [&str; 13] = [
    "not recommended for",
    "not suitable",
    "not suited",
    "not intended for",
    "not designed for",
    "not designed to",
    "not meant for",
    "not meant to",
    "not for production",
    "not a replacement",
    "not a substitute",
    "not a good fit",
    "not the right",
];
/// Words of a sentence that compares two products.
const REPLACES: [&str; 2] = ["not a replacement", "not a substitute"];
/// Words of a sentence that forbids a use, before the words of the case.
const FORBIDS: [&str; 5] = [
    "do not use",
    "don t use",
    "should not be used",
    "shouldn t use",
    "should not use",
];
/// Words of a sentence about something with which the product does not work: another product or a
/// platform, not a feature.
const LACKS: [&str; 7] = [
    "lacks support for",
    "not supported on",
    "not compatible with",
    "is incompatible with",
    "are incompatible with",
    "does not work with",
    "doesn t work with",
];
/// Within how many words a sentence names the product that it is about.
const SUBJECT_WORDS: usize = 7;
/// The last words of a heading about such cases that names no other subject.
const UNSUITED_ENDS: [&str; 8] = [
    "use", "it", "this", "avoid", "scope", "fit", "goals", "them",
];
/// Words before a case.
const CASES: [&str; 6] = ["for", "when", "if", "in", "with", "as"];
/// Words of headings above such cases.
const UNSUITED_HEADINGS: [&str; 6] = [
    "when not to use",
    "when not to",
    "when to avoid",
    "not a good fit",
    "non goals",
    "out of scope",
];
/// Words of a sentence that is not advice, or that needs another sentence to be understood.
const NOT_UNSUITED: [&str; 16] = [
    "our name",
    "our logo",
    "trademark",
    "trademarks",
    "tutorial",
    "if you don t use",
    "if you do not use",
    "when you don t use",
    "if you don t",
    "do not use it",
    "do not use them",
    "don t use it",
    "don t use them",
    "but this is not",
    "while this is",
    "temporarily",
];
/// Words of callouts about the page itself or about news.
const NEWS: [&str; 18] = [
    "this page",
    "this guide",
    "beta",
    "coming soon",
    "new",
    "deprecated",
    "legacy",
    "migrate",
    "documentation reflects",
    "work in progress",
    "symptoms",
    "feedback",
    "newsletter",
    "twitter",
    "promo",
    "early access",
    "release stages",
    "subscribe",
];

/// The advice in the documentation.
#[derive(Debug, Default)]
pub(super) struct Advice {
    pub(super) pitfalls: Vec<String>,
    pub(super) unsuited: Vec<String>,
}

/// A callout: its weight and its text.
type Callout = (usize, String);

/// The advice of one page.
#[derive(Debug, Default)]
struct Page {
    callouts: Vec<Callout>,
    /// Cases in which the product is not the right tool: whether the words are about a purpose, and
    /// the sentence.
    unsuited: Vec<(bool, String)>,
    /// What it limits, if its title is about limits, and its first words.
    limits_of: Option<Scope>,
    first: String,
    /// Its sentences that state a limit.
    limits: Vec<String>,
    heading: String,
    /// The name of the product, in normal words.
    product: String,
    /// Whether the heading is about such cases.
    is_unsuited: bool,
    /// Whether an item of a list is being read.
    is_item: bool,
}

/// Collects the advice.
pub(super) fn advice(docs: &Docs, outline: &Outline, share: Share, base_url: &str) -> Advice {
    let mut pages: Vec<(Role, PageId, Page)> = Vec::new();
    let mut seen = HashSet::new();
    for entry in outline.entries_of(|role| role < Role::Community) {
        if !seen.insert(entry.page) {
            continue;
        }
        let Some(nodes) = content(docs, docs.navigation.page(entry.page)) else {
            continue;
        };
        let of_page = docs.navigation.page(entry.page);
        let mut page = Page {
            limits_of: Scope::of(of_page),
            first: outline_words(docs, of_page),
            product: normal(&product(&docs.config.name)),
            ..Page::default()
        };
        page.nodes(nodes);
        pages.push((entry.role, entry.page, page));
    }
    // The pages that every agent reads come first, the reference last.
    pages.sort_by_key(|(role, ..)| match role {
        Role::Start | Role::Install | Role::Access => 0,
        Role::Reference => 2,
        _ => 1,
    });
    let line = |text: &str, id: PageId| format!("- {text} – {}", link_to(docs, id, base_url));
    Advice {
        pitfalls: pitfalls(&pages, share, base_url, &line),
        unsuited: unsuited(docs, outline, &pages, share, base_url),
    }
}

fn pitfalls(
    pages: &[(Role, PageId, Page)],
    share: Share,
    base_url: &str,
    line: &dyn Fn(&str, PageId) -> String,
) -> Vec<String> {
    let mut sink = Sink::new(base_url, PITFALLS_MAX, share.of(PITFALLS_CHARACTERS_MAX));
    let mut said = HashSet::new();
    // Pages about limits come first; those of the whole product before those of a part.
    for (scope, max) in [
        (Scope::Whole, LIMITS_OF_WHOLE_MAX),
        (Scope::Part, LIMITS_OF_PART_MAX),
    ] {
        let of_scope = pages
            .iter()
            .filter(|(_, _, page)| page.limits_of == Some(scope));
        for (_, id, page) in of_scope {
            for limit in page.limits(max) {
                if sink.lines.len() < LIMITS_MAX && said.insert(limit) {
                    sink.add(&[line(limit, *id)]);
                }
            }
        }
    }
    // The callout with the highest weight on each page comes before any second callout, and a text
    // with a consequence comes before a text without one.
    for (weight, has_consequence) in [(3, true), (3, false), (2, true), (2, false)] {
        let is_wanted =
            |(own, text): &&Callout| *own == weight && says_consequence(text) == has_consequence;
        let of_pages = pages.iter().map(|(_, id, page)| {
            let of_weight = page.callouts.iter().filter(is_wanted);
            of_weight.take(CALLOUTS_MAX).map(|(_, text)| (*id, text))
        });
        for (id, text) in interleave(of_pages) {
            if said.insert(text) {
                sink.add(&[line(text, id)]);
            }
        }
    }
    sink.lines
}

/// Lists the cases for which the product is not made. Sentences about a purpose come first, and
/// among them the texts that name the product. Pages about old versions come last.
fn unsuited(
    docs: &Docs,
    outline: &Outline,
    pages: &[(Role, PageId, Page)],
    share: Share,
    base_url: &str,
) -> Vec<String> {
    let product = normal(&product(&docs.config.name));
    let mut cases: Vec<(bool, bool, &str, PageId)> = Vec::new();
    // A specification says what programs should not do, which is another matter.
    let guides = pages.iter().filter(|(role, ..)| *role < Role::Reference);
    for (_, id, page) in guides {
        for (is_purpose, text) in &page.unsuited {
            let names = normal(text).contains(&product);
            cases.push((!names, !is_purpose, text, *id));
        }
    }
    cases.sort_by_key(|(names, is_purpose, ..)| (*is_purpose, *names));
    let mut sink = Sink::new(base_url, UNSUITED_MAX, share.of(UNSUITED_CHARACTERS_MAX));
    let mut said: Vec<BTreeSet<String>> = Vec::new();
    let mut seen = HashSet::new();
    for (_, _, text, id) in cases {
        let words: BTreeSet<String> = normal(text).split_whitespace().map(str::to_owned).collect();
        let is_repeated = said.iter().any(|other| is_nearly(other, &words));
        if !is_repeated && seen.insert(id) {
            said.push(words);
            sink.add(&[format!("- {text} – {}", link_to(docs, id, base_url))]);
        }
    }
    let mut lines = sink.lines;
    let old = outline
        .entries_of(|role| role == Role::Changelog)
        .filter(|entry| is_obsolete(docs.navigation.page(entry.page)));
    let old: Vec<String> = old
        .take(OLD_MAX)
        .map(|entry| entry.link(docs, base_url))
        .collect();
    if !old.is_empty() {
        lines.push(format!(
            "- Do not start new work with what the pages call legacy or deprecated: {}",
            old.join(", ")
        ));
    }
    lines
}

/// Returns whether two sentences have nearly the same words.
fn is_nearly(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let same = one.intersection(other).count();
    10 * same >= 8 * one.len().max(other.len())
}

/// Returns whether a text says that the product does not work with something.
pub(super) fn says_lack(text: &str) -> bool {
    has(&normal(text), &LACKS)
}

// === impl Page ===

impl Page {
    /// Returns its most important limits, in order. One of several says what happens beyond them,
    /// if a sentence does.
    fn limits(&self, max: usize) -> impl Iterator<Item = &String> {
        // Its first words often only announce the limits.
        let first = Some(&self.first).filter(|first| says_limit(first) && !is_meta(first));
        let all: Vec<&String> = self.limits.iter().chain(first).collect();
        let mut kept: Vec<usize> = (0..all.len().min(max)).collect();
        let beyond = all.iter().position(|text| says_consequence(text));
        if let (Some(beyond), Some(last), true) = (beyond, kept.last_mut(), max > 1) {
            *last = beyond.max(*last);
        }
        kept.into_iter().map(move |at| all[at])
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Heading { children, .. } => {
                    self.heading = words(children);
                    // "When not to use custom fields" is about a part of the product.
                    let words = normal(&self.heading);
                    let last = words.split_whitespace().last().unwrap_or_default();
                    let is_whole = words.contains(&self.product) || UNSUITED_ENDS.contains(&last);
                    self.is_unsuited = is_whole && has(&words, &UNSUITED_HEADINGS);
                }
                Node::Paragraph(line) => {
                    let line = words(line);
                    self.paragraph(&line);
                }
                Node::Quote(children) => self.quote(children),
                Node::Element(element) => self.element(element),
                Node::List { items, .. } => {
                    let outer = std::mem::replace(&mut self.is_item, true);
                    for item in items {
                        let inline = item.children.iter().take_while(|node| !node.is_block());
                        let line = words(&item.children[..inline.count()]);
                        self.paragraph(&line);
                        self.nodes(&item.children);
                    }
                    self.is_item = outer;
                }
                _ => {}
            }
        }
    }

    fn paragraph(&mut self, line: &str) {
        for sentence in sentences(line) {
            self.unsuited(sentence);
            let is_long = sentence.split(' ').count() >= WORDS_MIN;
            let refers = has(&normal(sentence), &["below", "above", "following"]);
            let is_limit =
                || says_limit(sentence) || says_rate(sentence) || says_consequence(sentence);
            if self.limits_of.is_some()
                && is_long
                && !refers
                && !sentence.ends_with([':', '?'])
                && !is_open(sentence)
                && !refers_back(sentence)
                && !is_reference(sentence)
                && is_limit()
            {
                // An item of a list, or a value, is often no sentence without its heading. A few
                // values are enough to show which limits the heading has.
                let is_whole = !self.is_item && sentence.ends_with(['.', '!', '。']);
                let heading = format!("{}: ", self.heading.trim_end_matches([':', '.']));
                let of_heading = self
                    .limits
                    .iter()
                    .filter(|other| other.starts_with(&heading));
                if !is_whole && of_heading.count() == VALUES_OF_HEADING_MAX {
                    continue;
                }
                let limit = match !is_whole && !self.heading.is_empty() {
                    true => format!("{heading}{sentence}"),
                    false => sentence.to_owned(),
                };
                self.limits.extend(whole(&limit, ADVICE_MAX));
            }
        }
    }

    fn unsuited(&mut self, sentence: &str) {
        let sentence = sentence.strip_prefix("Note: ").unwrap_or(sentence);
        let words = normal(sentence);
        // The name of a command is not the product.
        let plain: String = sentence.split('`').step_by(2).collect();
        let plain = normal(&plain);
        let subject = plain.split_whitespace().take(SUBJECT_WORDS);
        let subject = format!(" {} ", subject.collect::<Vec<_>>().join(" "));
        // Another sentence that forbids something is about how to use the product.
        let names_product = words.contains(&self.product);
        let forbids = FORBIDS.iter().any(|forbids| {
            let around = words.split_once(&format!(" {forbids} "));
            names_product && around.is_some_and(|(_, after)| has(&format!(" {after}"), &CASES))
        });
        let is_other = words.starts_with(" if you ")
            && words.ends_with(" instead ")
            && plain.contains(&self.product)
            && sentence.rsplit(',').next().is_some_and(|last| {
                // A setting is no other product.
                has(&normal(last), &["use", "consider", "choose", "prefer"]) && !last.contains('`')
            });
        // Only the product: "the file is not for editors" is about something else.
        let is_not_for = words.starts_with(&format!("{}is not for ", self.product));
        let is_purpose = is_not_for || has(&words, &UNSUITED) || self.is_unsuited && self.is_item;
        // Another product that it does not work with.
        let lacks = has(&words, &LACKS) && subject.contains(&self.product);
        let is_avoided = words.starts_with(" avoid using ") && plain.contains(&self.product);
        let avoids = is_avoided || forbids || is_other || lacks;
        let refers = has(&words, &["below", "above", "following"]);
        // "Not recommended for …" does not say what is not recommended.
        let is_bare = words.starts_with(" not ") && !self.is_unsuited;
        let is_about_other = has(&words, &REPLACES) && !names_product;
        // `0` - not recommended: a value in a list of values.
        let is_value = sentence.starts_with('`') && sentence.contains("` - ");
        let is_left_out = refers || is_value || is_bare || is_about_other || refers_back(sentence);
        let is_unsuited = (is_purpose || avoids) && !has(&words, &NOT_UNSUITED) && !is_left_out;
        let is_long = is_not_for || sentence.split(' ').count() > WORDS_MIN;
        if is_unsuited && is_long && !sentence.ends_with([':', '?']) && !is_open(sentence) {
            // An item of such a list is no sentence without its heading.
            let text = match self.is_unsuited && self.is_item {
                true => format!("{}: {sentence}", self.heading.trim_end_matches([':', '?'])),
                false => sentence.to_owned(),
            };
            let text = whole(&text, ADVICE_MAX);
            self.unsuited.extend(text.map(|text| (is_purpose, text)));
        }
    }

    fn element(&mut self, element: &Element) {
        let kind = match &*element.name {
            "Callout" => element.text("type").unwrap_or("Note"),
            name => name,
        };
        match kind.to_ascii_lowercase().as_str() {
            "warning" | "danger" | "error" | "caution" => self.callout(&element.children, 3),
            "note" | "info" | "tip" | "important" => self.callout(&element.children, 1),
            // A cell is no sentence.
            "table" => {}
            _ => self.nodes(&element.children),
        }
    }

    /// Reads a quotation that is a callout: its first words are `[!WARNING]` or `Warning:`.
    fn quote(&mut self, children: &[Node]) {
        let Some(Node::Paragraph(first)) = children.first() else {
            return;
        };
        let start = normal(&crate::mdx::plain(first));
        let starts = |words: &[&str]| {
            words
                .iter()
                .any(|word| start.starts_with(&format!(" {word} ")))
        };
        if starts(&["warning", "caution", "danger"]) {
            self.callout(children, 3);
        } else if starts(&["note", "important"]) {
            self.callout(children, 1);
        }
    }

    fn callout(&mut self, children: &[Node], weight: usize) {
        let text = match children.iter().any(Node::is_block) {
            false => words(children),
            true => {
                let paragraphs = children.iter().filter_map(|node| match node {
                    Node::Paragraph(line) => Some(words(line)),
                    _ => None,
                });
                // A title in bold has no full stop.
                text::joined(paragraphs)
            }
        };
        // GitHub writes the kind of a callout as its first words: `[!WARNING]`.
        let text = match text
            .strip_prefix("[!")
            .and_then(|rest| rest.split_once(']'))
        {
            Some((_, rest)) => rest.trim(),
            None => text.trim(),
        };
        let text = text.trim_start_matches(['*', ' ']);
        let text = ["Note: ", "Warning: ", "Important: "]
            .iter()
            .find_map(|start| text.strip_prefix(start))
            .unwrap_or(text);
        for sentence in sentences(text) {
            self.unsuited(sentence);
        }
        // A sentence that refers to the text around the callout has no meaning without that text.
        let stays = |sentence: &&str| {
            !sentence.ends_with([':', '?']) && !refers_outside(sentence) && !is_reference(sentence)
        };
        let mut kept: Vec<&str> = sentences(text).into_iter().filter(stays).collect();
        if weight < 3 {
            // A note is read for its limit: what precedes it is about the page.
            let is_first = |sentence: &&str| is_rule(sentence) && !is_open(sentence);
            let first = kept.iter().position(is_first);
            kept.drain(..first.unwrap_or(kept.len()));
        }
        // A warning such as "This deletes all" is about its section.
        let acts = ["this operation", "this action", "this command"];
        let is_about_section = |first: &&str| is_open(first) || has(&normal(first), &acts);
        let is_about_section = kept.first().is_some_and(is_about_section);
        if kept.first().is_some_and(|first| refers_back(first)) {
            return;
        }
        let text = kept.join(" ");
        let text = match (is_about_section, &*self.heading) {
            (false, _) => text,
            (true, heading) if weight == 3 && !heading.is_empty() => {
                format!("{}: {text}", heading.trim_end_matches([':', '.', '?']))
            }
            (true, _) => return,
        };
        let text = &*text;
        let is_limit = !text.is_empty();
        let is_news = has(&normal(&fit(text, 120)), &NEWS);
        let weight = match (weight, is_limit, is_news) {
            (_, _, true) => return,
            (3, _, _) => 3,
            (_, true, _) => 2,
            _ => return,
        };
        if text.split(' ').count() >= WORDS_MIN && !text.ends_with(':') {
            let text = whole(text, ADVICE_MAX);
            self.callouts.extend(text.map(|text| (weight, text)));
        }
    }
}

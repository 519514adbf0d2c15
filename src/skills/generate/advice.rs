//! The advice of authors: pitfalls and limits, decisions, and cases in which another product is
//! better.

use std::collections::HashSet;

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::mdx::{Element, Node};

use super::outline::{Outline, content, link_to, words as outline_words};
use super::role::{Role, has, normal};
use super::sink::Sink;
use super::text::{fit, plain, sentences, words};

/// The most lines and characters of each list.
pub(super) const PITFALLS_MAX: usize = 14;
const PITFALLS_CHARACTERS_MAX: usize = 2600;
pub(super) const DECISIONS_MAX: usize = 7;
const DECISIONS_CHARACTERS_MAX: usize = 1500;
pub(super) const UNSUITED_MAX: usize = 5;
const UNSUITED_CHARACTERS_MAX: usize = 900;
/// The longest advice, in characters.
const ADVICE_MAX: usize = 260;
/// How many sentences of a page about limits are listed.
const LIMITS_OF_PAGE_MAX: usize = 3;
/// The longest heading about a choice, in characters.
const HEADING_MAX: usize = 80;
/// The shortest advice, in words.
const WORDS_MIN: usize = 5;

/// Words of a sentence about a limit.
const LIMITS: [&str; 33] = [
    "limit",
    "limits",
    "limited",
    "maximum",
    "minimum",
    "at most",
    "at least",
    "up to",
    "must",
    "only",
    "cannot",
    "can t",
    "not supported",
    "unsupported",
    "never",
    "requires",
    "required",
    "expire",
    "expires",
    "expired",
    "rate",
    "quota",
    "by default",
    "default",
    "no longer",
    "before",
    "irreversible",
    "permanently",
    "not available",
    "doesn t",
    "does not",
    "won t",
    "timeout",
];
/// Words that also stand in sentences without a limit, unless there is a number.
const WEAK: [&str; 5] = ["by default", "default", "before", "rate", "only"];
/// Words of a sentence that states a limit.
const STRICT: [&str; 14] = [
    "must",
    "cannot",
    "can t",
    "not supported",
    "unsupported",
    "never",
    "at most",
    "at least",
    "up to",
    "maximum of",
    "minimum of",
    "limit of",
    "expire",
    "expires",
];
/// Words of titles of pages about limits.
const LIMIT_TITLES: [&str; 8] = [
    "limits",
    "rate limits",
    "rate limiting",
    "limitations",
    "quotas",
    "quotas and limits",
    "known issues",
    "usage limits",
];
/// Words of a sentence about a case in which another product is better.
const UNSUITED: [&str; 15] = [
    "not recommended for",
    "not suitable",
    "not intended",
    "not designed for",
    "not meant for",
    "do not use",
    "don t use",
    "should not be used",
    "shouldn t use",
    "should not use",
    "not for production",
    "not a replacement",
    "not supported",
    "when not to use",
    "not a good fit",
];
/// Words of a sentence that is not advice, or that needs another sentence to be understood.
const NOT_UNSUITED: [&str; 8] = [
    "if you don t use",
    "if you do not use",
    "when you don t use",
    "if you don t",
    "do not use it",
    "do not use them",
    "don t use it",
    "don t use them",
];
/// Words of headings about a choice.
const CHOICES: [&str; 8] = [
    "choose",
    "choosing",
    "which to",
    "which one",
    "which should",
    "when to use",
    "should i use",
    "should you use",
];
/// Words of headings that compare two things.
const COMPARES: [&str; 2] = ["vs", "versus"];
/// How many comparisons are decisions.
const COMPARES_MAX: usize = 3;
/// Words of callouts about the page itself or about news.
const NEWS: [&str; 11] = [
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
    "feedback",
];

/// The advice in the documentation.
#[derive(Debug, Default)]
pub(super) struct Advice {
    pub(super) pitfalls: Vec<String>,
    pub(super) decisions: Vec<String>,
    pub(super) unsuited: Vec<String>,
}

/// A callout: its weight and its text.
type Callout = (usize, String);

/// The advice of one page.
#[derive(Debug, Default)]
struct Page {
    callouts: Vec<Callout>,
    /// Whether the heading only compares, and the text of the decision.
    choices: Vec<(bool, String)>,
    unsuited: Vec<String>,
    /// Whether its title is about limits, and its first words.
    is_about_limits: bool,
    first: String,
    /// Its sentences that state a limit.
    limits: Vec<String>,
    heading: String,
    /// The heading of a section about a choice whose first paragraph has not come yet.
    open_choice: Option<bool>,
}

/// Collects the advice. `choices` are the alternatives of the first call.
pub(super) fn advice(
    docs: &Docs,
    outline: &Outline,
    choices: &[(Vec<String>, PageId)],
    base_url: &str,
) -> Advice {
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
            is_about_limits: has(&normal(&of_page.title), &LIMIT_TITLES),
            first: outline_words(docs, of_page),
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
        pitfalls: pitfalls(&pages, base_url, &line),
        decisions: decisions(&pages, choices, base_url, &line),
        unsuited: unsuited(&pages, base_url, &line),
    }
}

fn pitfalls(
    pages: &[(Role, PageId, Page)],
    base_url: &str,
    line: &dyn Fn(&str, PageId) -> String,
) -> Vec<String> {
    let mut sink = Sink::new(base_url, PITFALLS_MAX, PITFALLS_CHARACTERS_MAX);
    let mut said = HashSet::new();
    // Pages about limits come first.
    for (_, id, page) in pages.iter().filter(|(_, _, page)| page.is_about_limits) {
        // Its first words often only announce the limits.
        let first = Some(&page.first).filter(|first| says_limit(first));
        let limits = page.limits.iter().chain(first).take(LIMITS_OF_PAGE_MAX);
        for limit in limits {
            if said.insert(limit) {
                sink.add(&[line(limit, *id)]);
            }
        }
    }
    // The callout with the highest weight on each page comes before any second callout.
    for weight in [3, 2] {
        for nth in 0..2 {
            for (_, id, page) in pages {
                let mut of_weight = page.callouts.iter().filter(|(own, _)| *own == weight);
                let Some((_, text)) = of_weight.nth(nth) else {
                    continue;
                };
                if said.insert(text) {
                    sink.add(&[line(text, *id)]);
                }
            }
        }
    }
    sink.lines
}

fn decisions(
    pages: &[(Role, PageId, Page)],
    choices: &[(Vec<String>, PageId)],
    base_url: &str,
    line: &dyn Fn(&str, PageId) -> String,
) -> Vec<String> {
    let mut sink = Sink::new(base_url, DECISIONS_MAX, DECISIONS_CHARACTERS_MAX);
    let mut said = HashSet::new();
    for (labels, id) in choices {
        let text = format!("Choose one: {}", labels.join(", "));
        if said.insert(text.clone()) {
            sink.add(&[line(&text, *id)]);
        }
    }
    // Each page gives one choice. Pages of the reference give none: they list alternatives, but the
    // reader need not choose. Headings that only compare come after headings that ask.
    for (compares, max) in [(false, DECISIONS_MAX), (true, COMPARES_MAX)] {
        let mut count = 0;
        for (_, id, page) in pages.iter().filter(|(role, ..)| *role < Role::Reference) {
            let mut choices = page.choices.iter().filter(|(kind, _)| *kind == compares);
            if let Some((_, text)) = choices.next()
                && count < max
                && said.insert(text.clone())
            {
                count += 1;
                sink.add(&[line(text, *id)]);
            }
        }
    }
    sink.lines
}

/// Returns whether a sentence states a limit: a number, or something that must or cannot be.
fn says_limit(sentence: &str) -> bool {
    let words = normal(sentence);
    let has_number = sentence.contains(|c: char| c.is_ascii_digit());
    // The reason for a design is no limit of the reader.
    let explains = has(&words, &["because", "so the"]);
    !explains && has(&words, &STRICT) || has_number && has(&words, &LIMITS)
}

/// Returns whether a sentence of a note is a rule for the reader. A sentence that gives a reason
/// explains how something was built.
fn is_rule(sentence: &str) -> bool {
    let words = normal(sentence);
    let explains = has(&words, &["because", "so the", "which means"]);
    let mut rules = LIMITS.into_iter().filter(|word| !WEAK.contains(word));
    says_limit(sentence) || !explains && rules.any(|word| has(&words, &[word]))
}

/// Returns whether a heading is about a choice, and whether it only compares.
fn choice(heading: &str) -> Option<bool> {
    let words = normal(heading);
    if heading.chars().count() > HEADING_MAX {
        return None;
    }
    let asks = has(&words, &CHOICES).then_some(false);
    asks.or_else(|| has(&words, &COMPARES).then_some(true))
}

fn unsuited(
    pages: &[(Role, PageId, Page)],
    base_url: &str,
    line: &dyn Fn(&str, PageId) -> String,
) -> Vec<String> {
    let mut sink = Sink::new(base_url, UNSUITED_MAX, UNSUITED_CHARACTERS_MAX);
    let mut said = HashSet::new();
    for (_, id, page) in pages {
        if let Some(text) = page.unsuited.first()
            && said.insert(text)
        {
            sink.add(&[line(text, *id)]);
        }
    }
    sink.lines
}

// === impl Page ===

impl Page {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Heading { children, .. } => {
                    self.heading = words(children);
                    self.open_choice = choice(&self.heading);
                }
                Node::Paragraph(line) => {
                    let line = words(line);
                    self.paragraph(&line);
                }
                Node::Quote(children) => self.quote(children),
                Node::Element(element) => self.element(element),
                Node::List { items, .. } => {
                    items.iter().for_each(|item| self.nodes(&item.children));
                }
                _ => {}
            }
        }
    }

    fn paragraph(&mut self, line: &str) {
        if let Some(kind) = self.open_choice.take() {
            let first = sentences(line).into_iter().next().unwrap_or_default();
            if first.split(' ').count() >= WORDS_MIN && !first.ends_with(':') {
                let heading = self.heading.trim_end_matches(['.', ':']);
                let text = format!("{heading}: {}", fit(first, ADVICE_MAX));
                self.choices.push((kind, text));
            }
        }
        for sentence in sentences(line) {
            self.unsuited(sentence);
            let is_long = sentence.split(' ').count() >= WORDS_MIN;
            let refers = has(&normal(sentence), &["below", "above", "following"]);
            if self.is_about_limits
                && is_long
                && !refers
                && !sentence.ends_with([':', '?'])
                && says_limit(sentence)
            {
                self.limits.push(fit(sentence, ADVICE_MAX));
            }
        }
    }

    fn unsuited(&mut self, sentence: &str) {
        let words = normal(sentence);
        let is_unsuited = (has(&words, &UNSUITED) || words.starts_with(" avoid using "))
            && !has(&words, &NOT_UNSUITED);
        let is_long = sentence.split(' ').count() > WORDS_MIN;
        if is_unsuited && is_long && !sentence.ends_with([':', '?']) {
            self.unsuited.push(fit(sentence, ADVICE_MAX));
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
            "tabs" => {
                self.tabs(element);
                self.nodes(&element.children);
            }
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
                paragraphs.collect::<Vec<_>>().join(" ")
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
            !sentence.ends_with([':', '?']) && !has(&normal(sentence), &["below", "above"])
        };
        let mut kept: Vec<&str> = sentences(text).into_iter().filter(stays).collect();
        if weight < 3 {
            // A note is read for its limit: what precedes it is about the page.
            let first = kept.iter().position(|sentence| is_rule(sentence));
            kept.drain(..first.unwrap_or(kept.len()));
        }
        let text = &*kept.join(" ");
        let is_limit = !text.is_empty();
        let is_news = has(&normal(&fit(text, 120)), &NEWS);
        let weight = match (weight, is_limit, is_news) {
            (_, _, true) => return,
            (3, _, _) => 3,
            (_, true, _) => 2,
            _ => return,
        };
        if text.split(' ').count() >= WORDS_MIN && !text.ends_with(':') {
            self.callouts.push((weight, fit(text, ADVICE_MAX)));
        }
    }

    /// Notes the titles of tabs as alternatives under their heading.
    fn tabs(&mut self, tabs: &Element) {
        let titles = tabs.children.iter().filter_map(|child| match child {
            Node::Element(tab) => tab.text("title").map(plain),
            _ => None,
        });
        let titles: Vec<String> = titles.filter(|title| !title.is_empty()).collect();
        let kind = choice(&self.heading);
        if let Some(kind) = kind.filter(|_| (2..=8).contains(&titles.len())) {
            let text = format!("{}: {}", self.heading, titles.join(", "));
            self.choices.push((kind, text));
        }
    }
}

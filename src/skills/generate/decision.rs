//! The decisions that an agent must take, as a table: when to use what.
//!
//! The rows come from tables that authors wrote for a choice, from sentences such as "Use A when
//! B" and "If you need B, use A", and from lists below a heading about a choice. A sentence that
//! names no alternative is no decision, even below such a heading.

use std::collections::HashSet;

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::mdx::{Node, Table};

use super::outline::{Outline, link_to};
use super::quickstart;
use super::role::{Role, has, normal};
use super::sink::{Share, Sink};
use super::text::{cell, fit, is_balanced, sentences, words};
use super::words::is_instruction;

/// The most rows of the table, and the most characters of the whole list.
const ROWS_MAX: usize = 13;
const CHARACTERS_MAX: usize = 2400;
/// How many rows of one page come before those of other pages.
const OF_PAGE_MAX: usize = 5;
/// How many of them a page has that is about neither a choice nor a concept.
const OF_GUIDE_MAX: usize = 2;
/// The longest case and the longest alternative, in characters.
const WHEN_MAX: usize = 150;
const USE_MAX: usize = 80;
/// The longest sentence that is read, in characters.
const SENTENCE_MAX: usize = 260;
/// The longest heading about a choice, in characters.
const HEADING_MAX: usize = 80;

/// Words of headings about a choice.
const CHOICES: [&str; 12] = [
    "choose",
    "choosing",
    "which to",
    "which one",
    "which should",
    "when to use",
    "should i use",
    "should you use",
    "vs",
    "versus",
    "compare",
    "comparison",
];
/// Words of the head of a column that holds cases.
const CASES: [&str; 12] = [
    "want",
    "want to",
    "need",
    "use case",
    "use cases",
    "scenario",
    "situation",
    "goal",
    "best for",
    "when to use",
    "use when",
    "recommended for",
];
/// Words of the head of a column that holds alternatives, beside a column of cases.
const ALTERNATIVES: [&str; 20] = [
    "use",
    "uses",
    "choose",
    "recommendation",
    "recommended",
    "approach",
    "method",
    "option",
    "solution",
    "tool",
    "feature",
    "command",
    "guide",
    "product",
    "sdk",
    "type",
    "plan",
    "mode",
    "strategy",
    "algorithm",
];
/// The first words of a sentence that recommends something.
const VERBS: [&str; 7] = [
    "Use ",
    "Choose ",
    "Pick ",
    "Prefer ",
    "Go with ",
    "Consider using ",
    "Reach for ",
];
/// The words between an alternative and its case.
const BETWEEN: [&str; 4] = [" when ", " whenever ", " if ", " only if "];
/// The words between a case and its alternative.
const AFTER: [&str; 11] = [
    ", use ",
    ", choose ",
    ", pick ",
    ", prefer ",
    ", go with ",
    ", consider using ",
    ", we recommend ",
    ", you should use ",
    ", you can prefer ",
    ", you can use ",
    ", you can choose ",
];
/// Alternatives that a heading names.
const THIS: [&str; 6] = [
    "this option",
    "this approach",
    "this method",
    "this mode",
    "this strategy",
    "this way",
];
/// The first words of an alternative that needs another sentence to be understood.
const PRONOUNS: [&str; 18] = [
    "it",
    "its",
    "them",
    "these",
    "those",
    "that",
    "they",
    "either",
    "both",
    "one",
    "this",
    "caution",
    "such",
    "the same",
    "the following",
    "the other",
    "another",
    "a different",
];

/// The first words of a case that says nothing alone.
const VAGUE: [&str; 12] = [
    "they",
    "this",
    "these",
    "that",
    "not",
    "possible",
    "present",
    "needed",
    "necessary",
    "available",
    "required",
    "applicable",
];

/// The product or method to use in a case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Route {
    when: String,
    use_what: String,
}

/// The routes of a page, the most certain first.
struct Page {
    id: PageId,
    /// The routes of a table or of a section about a choice.
    chosen: Vec<Route>,
    /// The routes of other sentences.
    said: Vec<Route>,
    /// The heading above.
    heading: String,
    /// Whether that heading, and the title of the page, are about a choice.
    is_choice: bool,
    is_titled: bool,
    /// How many of its rows come before those of other pages.
    rows_max: usize,
}

/// Writes the list. `choices` are the alternatives of the first call.
pub(super) fn decisions(
    docs: &Docs,
    outline: &Outline,
    choices: &[(Vec<String>, PageId)],
    share: Share,
    base_url: &str,
) -> Vec<String> {
    let mut sink = Sink::new(base_url, ROWS_MAX, share.of(CHARACTERS_MAX));
    let mut known = HashSet::new();
    for (labels, id) in choices {
        let is_part = |(others, page): &(Vec<String>, PageId)| {
            let mut same = labels.iter();
            page == id && others.len() > labels.len() && same.all(|label| others.contains(label))
        };
        if choices.iter().any(is_part) {
            continue;
        }
        let text = format!("- Choose one: {}", labels.join(", "));
        if known.insert(text.clone()) {
            sink.add(&[format!("{text} – {}", link_to(docs, *id, base_url))]);
        }
    }
    // Half of the place is for the table.
    let mut starts = Sink::new(base_url, ROWS_MAX, share.of(CHARACTERS_MAX) / 2);
    for line in quickstart::choices(docs, outline, base_url) {
        if starts.add(std::slice::from_ref(&line)) {
            sink.add(&[line]);
        }
    }
    let first = sink.lines.len();
    let pages = pages(docs, outline);
    let mut said: HashSet<&Route> = HashSet::new();
    // The rows of a page stand together.
    let mut rows: Vec<(bool, usize, usize, String, PageId)> = Vec::new();
    // What is left of the place is for more rows of the same guides.
    for (is_chosen, is_rest) in [(true, false), (false, false), (true, true)] {
        for (at, page) in pages.iter().enumerate() {
            let routes = if is_chosen { &page.chosen } else { &page.said };
            // A single sentence of a guide is seldom a decision about the product.
            let max = match (is_chosen, is_rest) {
                (true, false) => page.rows_max,
                (true, true) => OF_PAGE_MAX - page.rows_max,
                (false, _) => 1,
            };
            let mut of_page = 0;
            for (nth, route) in routes.iter().enumerate() {
                if of_page == max || !said.insert(route) {
                    continue;
                }
                let row = format!("| {} | {}", cell(&route.when), cell(&route.use_what));
                let is_known = rows.iter().any(|row| row.1 == at);
                let link = match is_known {
                    true => "″".to_owned(),
                    false => cell(&link_to(docs, page.id, base_url)),
                };
                if sink.add(&[format!("{row} | {link} |")]) {
                    rows.push((!is_chosen, at, nth, row, page.id));
                    of_page += 1;
                }
            }
        }
    }
    sink.lines.truncate(first);
    rows.sort();
    let mut last = None;
    let rows = rows.into_iter().map(|(_, _, _, row, id)| {
        let link = match last.replace(id) == Some(id) {
            true => "″".to_owned(),
            false => cell(&link_to(docs, id, base_url)),
        };
        format!("{row} | {link} |")
    });
    let rows: Vec<String> = rows.collect();
    if !rows.is_empty() {
        if first > 0 {
            sink.lines.push(String::new());
        }
        let head = ["| When | Use | Page |", "|---|---|---|"];
        sink.lines.extend(head.map(str::to_owned));
        sink.lines.extend(rows);
    }
    sink.lines
}

/// Reads the routes of the pages: introductions come first. Pages of the reference give
/// none: they list alternatives, but the reader need not choose.
fn pages(docs: &Docs, outline: &Outline) -> Vec<Page> {
    let mut pages: Vec<(Role, Page)> = Vec::new();
    for (entry, of_page, nodes) in outline.contents(docs, |role| role < Role::Reference) {
        let mut page = Page {
            id: entry.page,
            chosen: Vec::new(),
            said: Vec::new(),
            heading: String::new(),
            is_choice: is_choice(&of_page.title),
            is_titled: is_choice(&of_page.title),
            rows_max: match entry.role == Role::Concept || is_choice(&of_page.title) {
                true => OF_PAGE_MAX,
                false => OF_GUIDE_MAX,
            },
        };
        page.nodes(nodes);
        pages.push((entry.role, page));
    }
    pages.sort_by_key(|(role, _)| match role {
        Role::Start | Role::Install | Role::Access => 0,
        Role::Concept => 1,
        _ => 2,
    });
    pages.into_iter().map(|(_, page)| page).collect()
}

// === impl Page ===

impl Page {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Heading { children, .. } => {
                    self.heading = words(children);
                    self.is_choice = is_choice(&self.heading);
                }
                Node::Paragraph(line) => self.sentences(&words(line)),
                Node::List { items, start: None } => {
                    for item in items {
                        self.item(&item.children);
                    }
                }
                Node::Table(table) => {
                    let is_choice = self.is_choice || self.is_titled;
                    self.chosen.extend(of_table(table, is_choice));
                }
                Node::Fence { .. } | Node::List { .. } => {}
                node => node.each_children(&mut |children| self.nodes(children)),
            }
        }
    }

    fn sentences(&mut self, line: &str) {
        for sentence in sentences(line) {
            if let Some(route) = route(sentence, &self.heading, self.is_choice) {
                let routes = if self.is_choice {
                    &mut self.chosen
                } else {
                    &mut self.said
                };
                routes.push(route);
            }
        }
    }

    /// Reads an item of a list: `**A**: best for B`, else its sentences.
    fn item(&mut self, children: &[Node]) {
        let line = match children.first() {
            Some(Node::Paragraph(line)) => &line[..],
            _ => {
                let inline = children.iter().take_while(|node| !node.is_block()).count();
                &children[..inline]
            }
        };
        if self.is_choice
            && let Some((Node::Strong(name), rest)) = line.split_first()
            && let Some(route) = labelled(&words(name), &words(rest))
        {
            self.chosen.push(route);
            return;
        }
        self.sentences(&words(line));
    }
}

/// Returns whether a heading is about a choice.
fn is_choice(heading: &str) -> bool {
    heading.chars().count() <= HEADING_MAX && has(&normal(heading), &CHOICES)
}

/// Reads `A: best for B`.
fn labelled(name: &str, rest: &str) -> Option<Route> {
    const SAYS: [&str; 9] = [
        "best for",
        "best when",
        "ideal for",
        "recommended for",
        "suitable for",
        "use when",
        "when",
        "if you",
        "for",
    ];
    let rest = rest.trim_start_matches([':', '-', '–', '—', ' ']);
    let starts = |line: &str| {
        let words = normal(line);
        let mut says = SAYS.iter();
        !words.starts_with(" for example ")
            && says.any(|word| words.starts_with(&format!(" {word} ")))
    };
    let first = sentences(rest).into_iter().find(|line| starts(line))?;
    let name = name.trim_end_matches([':', ' ']);
    Route::new(first, name)
}

/// Reads a table with a column of cases and a column of alternatives. In a section about a choice, the
/// alternatives may be the names in the first column.
fn of_table(table: &Table, is_choice: bool) -> Vec<Route> {
    let heads: Vec<String> = table.head.iter().map(|cell| normal(&words(cell))).collect();
    let of = |any: &[&str]| heads.iter().position(|head| has(head, any));
    let Some(cases) = of(&CASES).or_else(|| heads.iter().position(|head| head == " when ")) else {
        return Vec::new();
    };
    let other = heads.iter().enumerate();
    let mut other = other.filter(|(nth, head)| *nth != cases && has(head, &ALTERNATIVES));
    // Cases that stand beside names belong to the first column.
    let alternatives = match other.next() {
        Some((nth, _)) => nth,
        None if cases > 0 && is_choice => 0,
        None => return Vec::new(),
    };
    let rows = table.rows.iter().filter_map(|row| {
        let (when, use_what) = (row.get(cases)?, row.get(alternatives)?);
        Route::new(&words(when), &words(use_what))
    });
    rows.collect()
}

/// Reads a sentence that says what to use in which case. `For A, use B` is often a step, so it is
/// only read in a section about a choice.
fn route(sentence: &str, heading: &str, is_choice: bool) -> Option<Route> {
    if sentence.chars().count() > SENTENCE_MAX || sentence.ends_with([':', '?']) {
        return None;
    }
    let sentence = sentence.trim_end_matches('.');
    if let Some(rest) = VERBS.iter().find_map(|verb| sentence.strip_prefix(verb)) {
        let (at, between) = BETWEEN
            .iter()
            .filter_map(|between| Some((outside(rest, between)?, between)))
            .min()?;
        let (what, when) = (&rest[..at], &rest[at + between.len()..]);
        // "Choose a channel where …" is a step, not a decision.
        let is_step = has(&normal(what), &["where", "that", "to"]);
        // "Use this option if …" is about the option that its heading names.
        let what = match THIS.contains(&what) && !is_instruction(heading) {
            true => heading.trim_end_matches([':', ' ']),
            false => what,
        };
        return (!is_step).then(|| Route::new(when, what)).flatten();
    }
    let case = ["If you ", "If your ", "When you ", "When your ", "For "];
    let start = case.iter().find(|start| sentence.starts_with(**start))?;
    if *start == "For " && !is_choice {
        return None;
    }
    let (at, after) = AFTER
        .iter()
        .filter_map(|after| Some((outside(sentence, after)?, after)))
        .min()?;
    let kept = match *start {
        "For " => 0,
        start => start.find(' ').map_or(0, |space| space + 1),
    };
    Route::new(&sentence[kept..at], &sentence[at + after.len()..])
}

/// Finds a text outside of code.
fn outside(line: &str, wanted: &str) -> Option<usize> {
    let mut found = line.match_indices(wanted).map(|(at, _)| at);
    found.find(|at| line[..*at].matches('`').count().is_multiple_of(2))
}

// === impl Route ===

impl Route {
    /// Makes a route if both sides can be understood without the page.
    fn new(when: &str, use_what: &str) -> Option<Self> {
        let when = when.trim().trim_end_matches(['.', ',']);
        let use_what = use_what.trim().trim_end_matches(['.', ',']);
        let verbs = ["using ", "Use ", "Consider "];
        let use_what = verbs
            .iter()
            .find_map(|verb| use_what.strip_prefix(verb))
            .unwrap_or(use_what);
        let use_what = use_what.strip_suffix(" instead").unwrap_or(use_what);
        let pages = [
            "this guide",
            "this page",
            "this tutorial",
            "this quickstart",
        ];
        let is_page = pages.contains(&use_what);
        let use_what = if is_page { "the page" } else { use_what };
        let starts = |text: &str, any: &[&str]| {
            let words = normal(text);
            any.iter()
                .any(|word| words.starts_with(&format!(" {word} ")))
        };
        let refers = |text: &str| has(&normal(text), &["below", "above", "following"]);
        let is_said = |text: &str| text.chars().any(char::is_alphanumeric);
        let is_open = !is_said(when)
            // A bare number does not name the setting that it belongs to.
            || !use_what.chars().any(char::is_alphabetic)
            || when.split(' ').count() < 2
            || use_what.chars().count() > USE_MAX
            || ["none", "n a", "no", "not applicable"].contains(&normal(use_what).trim())
            || starts(use_what, &PRONOUNS)
            || starts(when, &VAGUE)
            || refers(when)
            || refers(use_what)
            // A condition inside parentheses is not the one of the sentence.
            || !is_balanced(when)
            || !is_balanced(use_what);
        (!is_open).then(|| Self {
            when: fit(when, WHEN_MAX),
            use_what: use_what.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_what_to_use_when() {
        for (sentence, when, use_what) in [
            (
                "Use the `when` key when a table is large.",
                "a table is large",
                "the `when` key",
            ),
            (
                "If you need messages in order, use a queue.",
                "you need messages in order",
                "a queue",
            ),
            (
                "For small files, use the form.",
                "For small files",
                "the form",
            ),
            (
                "Use this guide when you replace another tool.",
                "you replace another tool",
                "the page",
            ),
            (
                "Prefer pools if your calls are short",
                "your calls are short",
                "pools",
            ),
        ] {
            let expected = Route {
                when: when.to_owned(),
                use_what: use_what.to_owned(),
            };
            assert_eq!(route(sentence, "", true), Some(expected), "{sentence}");
        }
        for sentence in [
            "Use it when a table is large.",
            "Use these when you must.",
            "Use a token if possible, otherwise fail.",
            "Choose a channel where messages arrive when a task fails.",
            "Use the values below if you test.",
            "If you need help, write to us.",
            "Use a queue.",
            "Use a pool when these are full.",
            "Use the escaping of your framework (most escape by default when using its syntax).",
        ] {
            assert_eq!(route(sentence, "", true), None, "{sentence}");
        }
        assert_eq!(route("For the name, use `x`.", "", false), None);
        assert_eq!(Route::new("you need a burst", "`4+`"), None);
        let best = labelled("Pool", ": holds many. Best for short calls.");
        assert_eq!(best.unwrap().when, "Best for short calls");
        assert_eq!(labelled("Pool", ": the best-known part."), None);
    }
}

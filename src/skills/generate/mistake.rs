//! Mistakes and their remedies, as a table: from pages and sections about troubleshooting.

use std::collections::HashSet;

use crate::docs::Docs;
use crate::mdx::{Element, Node};

use super::about::is_generic_title;
use super::outline::{Outline, link_to};
use super::role::{Role, has, normal};
use super::sink::{Share, Sink};
use super::text::{cell, fit, plain, sentences, words};
use super::words::is_instruction;

/// The most rows and characters of the table.
const ROWS_MAX: usize = 7;
const CHARACTERS_MAX: usize = 1500;
/// The longest symptom and the longest remedy, in characters.
const SYMPTOM_MAX: usize = 110;
const REMEDY_MAX: usize = 200;
/// How many mistakes of one page are listed before those of other pages.
const OF_PAGE_MAX: usize = 2;
/// Words of titles and headings above mistakes.
const TITLES: [&str; 10] = [
    "troubleshooting",
    "troubleshoot",
    "common mistakes",
    "common errors",
    "common issues",
    "common problems",
    "known issues",
    "error messages",
    "errors",
    "pitfalls",
];
/// Words of a sentence that says what to do.
const REMEDIES: [&str; 12] = [
    "make sure",
    "ensure",
    "check that",
    "check if",
    "you need to",
    "you must",
    "you should",
    "instead",
    "to fix",
    "to resolve",
    "to solve",
    "please",
];

/// Words of a heading that says that something does not work.
const FAILS: [&str; 80] = [
    "aren t",
    "blank",
    "blocked",
    "broken",
    "can t",
    "cannot",
    "conflict",
    "conflicts",
    "couldn t",
    "crash",
    "crashes",
    "delayed",
    "denied",
    "detected",
    "did not",
    "didn t",
    "disconnects",
    "does not",
    "doesn t",
    "don t",
    "duplicate",
    "empty",
    "error",
    "errors",
    "exceeded",
    "exception",
    "expired",
    "fail",
    "failed",
    "failing",
    "fails",
    "failure",
    "failures",
    "forbidden",
    "hang",
    "hangs",
    "high",
    "ignored",
    "incorrect",
    "invalid",
    "is not",
    "isn t",
    "issue",
    "issues",
    "lost",
    "mismatch",
    "missing",
    "never",
    "no",
    "not",
    "nothing",
    "outdated",
    "problem",
    "problems",
    "refused",
    "rejected",
    "slow",
    "stale",
    "stopped",
    "stops",
    "stuck",
    "timed out",
    "timeout",
    "timeouts",
    "timing out",
    "too many",
    "trouble",
    "unable",
    "unauthorized",
    "unavailable",
    "undefined",
    "unexpected",
    "unknown",
    "unreachable",
    "unsupported",
    "warning",
    "without",
    "won t",
    "wrong",
    "wrongly",
];
/// The last words of a heading that describes errors in general.
const OF_ERRORS: [&str; 9] = [
    "codes",
    "format",
    "formats",
    "handling",
    "messages",
    "objects",
    "reference",
    "responses",
    "types",
];

/// Words of headings that are no mistakes.
const APPENDICES: [&str; 6] = [
    "problem statement",
    "learn more",
    "next steps",
    "see also",
    "what s next",
    "best practices",
];

/// A mistake: its symptom, and its remedy.
type Mistake = (String, String);

/// Writes mistakes with their remedies as a table: the first of every page before others.
pub(super) fn table(docs: &Docs, outline: &Outline, share: Share, base_url: &str) -> Vec<String> {
    let mut pages = Vec::new();
    for (entry, page, nodes) in outline.contents(docs, |role| role < Role::Community) {
        let mut reader = Reader {
            is_inside: has(&normal(&page.title), &TITLES).then_some(0),
            found: Vec::new(),
            open: None,
        };
        reader.nodes(nodes);
        if !reader.found.is_empty() {
            pages.push((entry.page, reader.found));
        }
    }
    let mut sink = Sink::new(base_url, ROWS_MAX, share.of(CHARACTERS_MAX));
    let mut said = HashSet::new();
    for nth in 0..OF_PAGE_MAX {
        for (id, found) in &pages {
            if let Some((symptom, remedy)) = found.get(nth)
                && said.insert(symptom)
            {
                let link = link_to(docs, *id, base_url);
                let row = [&**symptom, remedy, &link].map(cell).join(" | ");
                sink.add(&[format!("| {row} |")]);
            }
        }
    }
    if sink.lines.is_empty() {
        return sink.lines;
    }
    let head = [
        "| Mistake or symptom | What to do | Page |",
        "|---|---|---|",
    ];
    let head = head.map(str::to_owned).into_iter();
    head.chain(sink.lines).collect()
}

/// Finds the mistakes of a page.
struct Reader {
    /// The level of the heading above mistakes, 0 for the title of the page; `None` elsewhere.
    is_inside: Option<u8>,
    found: Vec<Mistake>,
    /// A symptom whose remedy has not come yet.
    open: Option<String>,
}

// === impl Reader ===

impl Reader {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Heading {
                    level, children, ..
                } => self.heading(*level, &words(children)),
                Node::Paragraph(line) => self.remedy(&words(line)),
                Node::List { items, .. } if self.open.is_some() => {
                    for item in items {
                        self.remedy(&words(&item.children));
                    }
                }
                Node::Element(element) => self.element(element),
                _ => {}
            }
        }
    }

    fn heading(&mut self, level: u8, heading: &str) {
        self.open = None;
        if has(&normal(heading), &TITLES) {
            self.is_inside = Some(level);
            return;
        }
        match self.is_inside {
            Some(above) if above >= level => self.is_inside = None,
            Some(_) => self.open = symptom(heading),
            None => {}
        }
    }

    fn element(&mut self, element: &Element) {
        let is_item = matches!(&*element.name, "Accordion" | "Expandable");
        let title = element.text("title").map(plain).unwrap_or_default();
        if is_item && self.is_inside.is_some() {
            self.open = symptom(&title);
        }
        self.nodes(&element.children);
        if is_item {
            self.open = None;
        }
    }

    /// Reads a paragraph below a symptom: its first sentence that says what to do.
    fn remedy(&mut self, line: &str) {
        let says = |sentence: &&str| {
            let words = normal(sentence);
            let is_long = sentence.split(' ').count() > 3;
            // The output of a program.
            let code = sentence.trim_end_matches('.').strip_prefix('`');
            let code = code.and_then(|code| code.strip_suffix('`'));
            let is_code = code.is_some_and(|code| !code.contains('`'));
            // Words like "below" refer to what a skill does not repeat.
            let refers = has(&words, &["below", "above", "following"]);
            // A label of the symptom, or only a reference.
            let is_other = ["Issue", "Problem", "Cause", "Symptom", "Error", "See"]
                .iter()
                .any(|start| words.starts_with(&format!(" {} ", start.to_lowercase())));
            is_long
                // A placeholder of an author has no small letters.
                && sentence.contains(char::is_lowercase)
                && !is_code
                && !refers
                && !is_other
                && !sentence.ends_with([':', '?'])
                && (is_instruction(sentence) || has(&words, &REMEDIES))
                && !words.starts_with(" you are ")
        };
        let Some(symptom) = &self.open else { return };
        let labels = ["Solution: ", "Fix: ", "To fix this: ", "Remedy: "];
        let line = labels
            .iter()
            .find_map(|label| line.strip_prefix(label))
            .unwrap_or(line);
        if let Some(remedy) = sentences(line).into_iter().find(says) {
            let mistake = (symptom.clone(), fit(remedy, REMEDY_MAX));
            self.open = None;
            self.found.push(mistake);
        }
    }
}

/// Returns whether a heading is about something that does not work: it says so, has the number of an
/// error, or shows a message or a name.
fn fails(heading: &str) -> bool {
    let words = normal(heading);
    let is_number = |word: &str| {
        word.len() == 3 && word.starts_with(['4', '5']) && word.bytes().all(|b| b.is_ascii_digit())
    };
    let last = words.split_whitespace().last().unwrap_or_default();
    let is_general = OF_ERRORS.contains(&last);
    let shows = heading.contains(['`', '"', '“']);
    !is_general && (has(&words, &FAILS) || words.split(' ').any(is_number) || shows)
}

/// Returns the words of a heading as a symptom; `None` if it says of nothing that it does not work, if
/// it is an instruction or too long.
fn symptom(heading: &str) -> Option<String> {
    let heading = heading.trim_end_matches([':', '.', ' ']);
    let is_short = heading.chars().count() <= SYMPTOM_MAX;
    let is_one = heading.split(' ').count() > 1 || heading.contains('`');
    let is_remark = is_generic_title(heading) || has(&normal(heading), &APPENDICES);
    let is_symptom = is_short && is_one && !is_remark && !is_instruction(heading) && fails(heading);
    is_symptom.then(|| heading.to_owned())
}

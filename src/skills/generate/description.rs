//! The description of a generated skill: agents decide by it whether to use the skill.
//!
//! It says what the product is, which packages the code of a task imports, and names tasks and
//! subjects of its guides by their titles. A title is written as in a sentence. Many authors write
//! titles with capitals (`Connect Your Client`), so the running text of all pages decides which
//! words are names.

use std::collections::{HashMap, HashSet};

use crate::docs::Docs;
use crate::mdx::Node;

use super::about::{is_generic_title, is_meta, product};
use super::interleave::interleave;
use super::outline::{Outline, content};
use super::package::described;
use super::role::{Role, has, is_about_setup, is_about_start, normal};
use super::text::{is_silent, sentences};
use super::words::{in_sentence, is_task};

/// How many instructions and how many subjects the description names.
const INSTRUCTIONS_MAX: usize = 6;
const SUBJECTS_MAX: usize = 5;
/// Words of titles about the reader's own account. Few tasks of an agent are about it.
const ACCOUNT: [&str; 18] = [
    "account",
    "accounts",
    "billing",
    "invoice",
    "invoices",
    "payment",
    "payments",
    "plan",
    "plans",
    "pricing",
    "subscribe",
    "subscription",
    "subscriptions",
    "log in",
    "login",
    "sign in",
    "sign up",
    "signup",
];
/// Titles that begin with the same words of this number are about the same task.
const ALIKE_WORDS: usize = 3;
/// Shorter words of a title, such as `to`, stay small in title case.
const TITLE_CASE_LETTERS: usize = 4;
/// Stands for text that is no running text, such as a link.
const GAP: &str = " | ";

/// Writes when to use the skill.
pub(super) fn description(docs: &Docs, title: &str, about: &str, outline: &Outline) -> String {
    let product = product(title);
    let (instructions, subjects) = phrases(outline, about, &product);
    let all = instructions.iter().chain(&subjects).copied();
    let usage = Usage::of(docs, outline, all, &product);
    let list = |phrases: &[&str]| {
        let phrases: Vec<String> = phrases.iter().map(|phrase| usage.write(phrase)).collect();
        join(&phrases)
    };
    let mut text = String::new();
    if !about.is_empty() {
        text.push_str(about);
        if !about.ends_with(['.', '!', '?', '。', '…']) {
            text.push('.');
        }
        text.push(' ');
    }
    text.push_str(&format!("Use when a task needs {product}"));
    let packages = described(docs, outline, &product);
    if !packages.is_empty() {
        text.push_str(&format!(" or its code uses {}", join(&packages)));
    }
    if !instructions.is_empty() {
        text.push_str(&format!(", for example to {}", list(&instructions)));
    }
    if !subjects.is_empty() {
        let and = match instructions.is_empty() {
            true => ", for",
            false => "; also for",
        };
        text.push_str(&format!("{and} {}", list(&subjects)));
    }
    text.push('.');
    text
}

/// Chooses titles that are tasks, and titles that are subjects: the first of every group before any
/// second one. Titles about the reader's account are used if there are no others.
fn phrases<'o>(outline: &'o Outline, about: &str, product: &str) -> (Vec<&'o str>, Vec<&'o str>) {
    let (mut instructions, mut subjects): (Vec<&str>, Vec<&str>) = Default::default();
    let mut of_account: Vec<&str> = Vec::new();
    // A product may be about accounts or payments itself.
    let about = normal(about);
    let is_account = |title: &str| {
        let title = normal(title);
        ACCOUNT
            .iter()
            .any(|word| has(&title, &[word]) && !has(&about, &[word]))
    };
    for entry in interleave(outline.early().map(|category| &category.entries)) {
        let title = entry.title.trim_end_matches(['.', '!', '…']);
        let phrase = title.strip_suffix(" Overview").unwrap_or(title);
        let words = normal(phrase);
        let known = |all: &[&str]| all.iter().any(|other| normal(other) == words);
        let is_short = phrase.chars().count() <= 60
            && !phrase.contains([';', ':', '"', '|', '?', '(', '—', '–'])
            && !phrase.contains(" - ");
        // A quickstart may name its task or its platform: "Add a login to your React app".
        let is_about = is_about_start(phrase) || is_about_setup(phrase);
        let is_named = entry.role == Role::Start && !is_about;
        let is_start = entry.role <= Role::Access && !is_named
            || has(&words, &["documentation", "docs"])
            || is_named && instructions.iter().any(|other| begins_alike(other, phrase));
        if is_start || entry.role.is_late() || !is_short || known(&instructions) || known(&subjects)
        {
            continue;
        }
        if is_task(phrase) && phrase.contains(' ') {
            let is_quickstart = has(&words, &["get started", "quickstart"]);
            let list = match !is_named && is_account(phrase) {
                true => &mut of_account,
                false => &mut instructions,
            };
            if list.len() < INSTRUCTIONS_MAX && !is_quickstart {
                list.push(phrase);
            }
        } else if entry.role != Role::Concept
            && !is_generic_title(phrase)
            && !is_meta(phrase)
            && !is_account(phrase)
            && subjects.len() < SUBJECTS_MAX
            && words != normal(product)
        {
            subjects.push(phrase);
        }
    }
    if instructions.is_empty() {
        instructions = of_account;
    }
    (instructions, subjects)
}

/// Returns whether two titles begin with the same words and differ only in what follows.
fn begins_alike(one: &str, other: &str) -> bool {
    let start = |title: &str| {
        normal(title)
            .split_whitespace()
            .take(ALIKE_WORDS)
            .collect::<String>()
    };
    start(one) == start(other)
}

/// How the running text writes the words of some titles.
#[derive(Debug, Default)]
struct Usage {
    /// How often a word, in lower case, has a small and a capital first letter inside sentences.
    counts: HashMap<String, (usize, usize)>,
    /// Two words with capitals that follow each other: `Universal Login`.
    names: HashSet<(String, String)>,
    /// The words of the name of the product, in lower case.
    product: HashSet<String>,
}

// === impl Usage ===

impl Usage {
    /// Reads the running text of the pages for the capitals of these phrases.
    fn of<'p>(
        docs: &Docs,
        outline: &Outline,
        phrases: impl Iterator<Item = &'p str>,
        product: &str,
    ) -> Self {
        let words = phrases.flat_map(|phrase| phrase.split(' ')).map(bare);
        let mut usage = Self {
            counts: words
                .filter(|word| is_large(word))
                .map(|word| (word.to_lowercase(), (0, 0)))
                .collect(),
            product: normal(product)
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            ..Self::default()
        };
        if usage.counts.is_empty() {
            return usage;
        }
        let pages: HashSet<_> = outline.pages().collect();
        for id in pages {
            let nodes = content(docs, docs.navigation.page(id)).unwrap_or_default();
            usage.nodes(nodes);
        }
        usage
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Paragraph(line) => {
                    let mut text = String::new();
                    running(line, &mut text);
                    self.text(&text);
                }
                Node::Heading { .. } | Node::Table(_) | Node::Fence { .. } => {}
                Node::Element(element) if is_silent(&element.name) => {}
                node => node.each_children(&mut |children| self.nodes(children)),
            }
        }
    }

    fn text(&mut self, text: &str) {
        for sentence in sentences(text) {
            let mut before = "";
            for (nth, word) in sentence.split_whitespace().map(bare).enumerate() {
                let large = is_large(word);
                let known = match large {
                    true => self.counts.get_mut(&word.to_lowercase()),
                    false => self.counts.get_mut(word),
                };
                if let Some((small, capital)) = known {
                    match large {
                        // The first of two words may be large only because the sentence begins.
                        true if nth > 1 && is_large(before) => {
                            self.names.insert((before.to_owned(), word.to_owned()));
                        }
                        // Each sentence begins with a capital letter.
                        true if nth > 0 => *capital += 1,
                        true => {}
                        false => *small += 1,
                    }
                }
                before = word;
            }
        }
    }

    /// Writes a title as in a sentence.
    fn write(&self, title: &str) -> String {
        let words: Vec<&str> = title.split(' ').collect();
        let after_first = || {
            words
                .iter()
                .skip(1)
                .filter(|word| word.chars().count() >= TITLE_CASE_LETTERS)
        };
        let has_capital = |word: &&str| word.contains(char::is_uppercase);
        let is_title_case = after_first().all(has_capital);
        let write = |(nth, word): (usize, &&str)| {
            let is_free = match nth {
                // The verb of a task.
                0 if is_task(title) => return in_sentence(word),
                0 => true,
                _ => is_title_case,
            };
            let is_name = |one: usize| {
                let pair = words.get(one).zip(words.get(one + 1));
                pair.is_some_and(|(one, two)| {
                    self.names
                        .contains(&(bare(one).to_owned(), bare(two).to_owned()))
                })
            };
            let is_in_name = is_name(nth) || nth > 0 && is_name(nth - 1);
            let small = word.to_lowercase();
            let key = bare(word).to_lowercase();
            let (as_small, as_capital) = self.counts.get(&key).copied().unwrap_or_default();
            let is_word = as_small > 0 && as_small >= as_capital;
            let is_ours = self.product.contains(&key);
            match is_free && is_large(bare(word)) && is_word && !is_in_name && !is_ours {
                true => small,
                false => (*word).to_owned(),
            }
        };
        let words: Vec<String> = words.iter().enumerate().map(write).collect();
        words.join(" ")
    }
}

/// Writes running text: without links, names of buttons and code, whose capitals are those of
/// titles.
fn running(nodes: &[Node], out: &mut String) {
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Break => out.push(' '),
            _ => out.push_str(GAP),
        }
    }
}

/// Returns a word without punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Returns whether only the first letter of a word is a capital.
fn is_large(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase) && letters.all(|c| !c.is_uppercase())
}

/// Joins phrases: `a, b or c`.
fn join(phrases: &[String]) -> String {
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
    fn a_title_is_written_as_in_a_sentence() {
        let titles = [
            ("Create an Account", "create an account"),
            ("Connect Your Client", "connect your client"),
            ("Connect Redis", "connect Redis"),
            ("Create an account with SSO", "create an account with SSO"),
            ("Configure FAPI Compliance", "configure FAPI compliance"),
            (
                "Call Your APIs on a User's Behalf",
                "call your APIs on a user's behalf",
            ),
            ("Customize Universal Login", "customize Universal Login"),
            ("Streaming", "streaming"),
            ("Filesystem Access", "filesystem access"),
            ("Acme Boxes", "Acme boxes"),
            ("The Explore view", "the Explore view"),
            ("Slack", "Slack"),
        ];
        let mut usage = Usage {
            product: HashSet::from(["acme".to_owned()]),
            ..Usage::default()
        };
        let words = titles
            .iter()
            .flat_map(|(title, _)| title.split(' '))
            .map(bare);
        usage.counts = words.map(|word| (word.to_lowercase(), (0, 0))).collect();
        for sentence in [
            "You need an account. Open the console of Redis, then your client.",
            "It opens Universal Login, a page for the login of a universal user.",
            "The Explore view is there.",
            "For compliance, it acts on behalf of a user's account.",
            "The streaming of the filesystem needs access to boxes of acme, and the agents explore them.",
            "A message in Slack.",
        ] {
            usage.text(sentence);
        }
        for (title, expected) in titles {
            assert_eq!(usage.write(title), expected);
        }
    }
}

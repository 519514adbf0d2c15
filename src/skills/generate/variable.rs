//! The environment variables of the product, as a table: name, meaning, page.
//!
//! Names come from tables of variables, from code that sets or reads them, and from sentences
//! about them. The meaning is what an author wrote: a cell, a comment above the line, a sentence;
//! else the example value, if it is a placeholder.

use std::collections::HashMap;

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::mdx::{Node, Table, plain};

use super::about::{self, product_words};
use super::outline::{Outline, link_to};
use super::role::{Role, has, normal};
use super::secret;
use super::sink::{Share, Sink};
use super::text::{cell, fit, sentences, words};

/// The most rows and characters of the table.
const ROWS_MAX: usize = 10;
const CHARACTERS_MAX: usize = 1500;
/// The longest meaning, in characters.
const MEANING_MAX: usize = 110;
/// The longest name and the longest example value, in bytes.
const NAME_MAX: usize = 60;
const VALUE_MAX: usize = 40;
/// Within how many words a sentence names the variable that it is about.
const NAME_WORDS_MAX: usize = 3;
/// How many pages must use a variable whose name does not name the product.
const PAGES_MIN: usize = 2;
/// Variables of the operating system and of other programs.
const SYSTEM: [&str; 12] = [
    "NODE_ENV",
    "NODE_OPTIONS",
    "PYTHON_PATH",
    "PYTHONPATH",
    "JAVA_HOME",
    "GITHUB_TOKEN",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "XDG_CONFIG_HOME",
    "LD_LIBRARY_PATH",
    "API_KEY",
    "BASE_URL",
];
/// The text before the name of a variable in a program.
const READS: [&str; 12] = [
    "process.env.",
    "process.env[\"",
    "process.env['",
    "import.meta.env.",
    "os.environ[\"",
    "os.environ['",
    "os.environ.get(\"",
    "os.getenv(\"",
    "os.Getenv(\"",
    "ENV[\"",
    "ENV['",
    "env::var(\"",
];

/// How sure a meaning is: the order is the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Table,
    Comment,
    Sentence,
    Value,
    Unknown,
}

/// A variable, and what the pages say about it.
struct Variable {
    name: String,
    meaning: (Kind, String),
    page: PageId,
    /// The pages that use it.
    pages: Vec<PageId>,
    /// Whether the pages about the start use it.
    is_early: bool,
}

/// Writes the table; without variables there is none.
pub(super) fn table(docs: &Docs, outline: &Outline, share: Share, base_url: &str) -> Vec<String> {
    let variables = variables(docs, outline);
    let mut sink = Sink::new(base_url, ROWS_MAX, share.of(CHARACTERS_MAX));
    let mut last = None;
    let mut left: Vec<&Variable> = Vec::new();
    for variable in &variables {
        let link = match last == Some(variable.page) {
            true => "″".to_owned(),
            false => cell(&link_to(docs, variable.page, base_url)),
        };
        let row = format!(
            "| `{}` | {} | {link} |",
            variable.name,
            cell(&variable.meaning.1)
        );
        match sink.add(&[row]) {
            true => last = Some(variable.page),
            false => left.push(variable),
        }
    }
    if sink.lines.is_empty() {
        return sink.lines;
    }
    let mut lines = vec![
        "| Variable | Meaning | Page |".to_owned(),
        "|---|---|---|".to_owned(),
    ];
    lines.extend(sink.lines);
    // The page that describes most of the others.
    let most = left.iter().rev().max_by_key(|one| {
        let same = left.iter().filter(|other| other.page == one.page);
        same.count()
    });
    if let Some(most) = most {
        lines.push(String::new());
        let of_page = left.iter().filter(|other| other.page == most.page).count();
        let link = link_to(docs, most.page, base_url);
        lines.push(match (left.len(), of_page) {
            (1, _) => format!("1 more variable is in {link}."),
            (all, own) if own == all => format!("{all} more variables are in {link}."),
            (all, own) if own * 2 > all => format!("{all} more variables; most are in {link}."),
            (all, own) => {
                format!("{all} more variables are on other pages; {own} of them in {link}.")
            }
        });
    }
    lines
}

/// Collects the variables in the order of the table: those of the product before others, those of
/// the first steps before others, then those that most pages use.
fn variables(docs: &Docs, outline: &Outline) -> Vec<Variable> {
    let product = product_words(&about::product(&docs.config.name));
    let names: Vec<String> = product.iter().map(|word| word.to_uppercase()).collect();
    let mut all: Vec<Variable> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (entry, of_page, nodes) in outline.contents(docs, |role| role < Role::Community) {
        let mut reader = Reader {
            is_about: is_about(&of_page.title),
            heading: String::new(),
            found: Vec::new(),
        };
        reader.nodes(nodes);
        let is_early = entry.role <= Role::Access;
        for (name, kind, meaning) in reader.found {
            let next = all.len();
            let at = *numbers.entry(name.clone()).or_insert(next);
            if at == next {
                all.push(Variable {
                    name,
                    meaning: (Kind::Unknown, String::new()),
                    page: entry.page,
                    pages: Vec::new(),
                    is_early: false,
                });
            }
            let variable = &mut all[at];
            variable.is_early |= is_early;
            if !variable.pages.contains(&entry.page) {
                variable.pages.push(entry.page);
            }
            if kind < variable.meaning.0 && !meaning.is_empty() {
                variable.meaning = (kind, meaning);
                variable.page = entry.page;
            }
        }
    }
    let is_own = |variable: &Variable| {
        let mut words = variable.name.split('_');
        words.any(|word| names.iter().any(|name| name == word))
    };
    all.retain(|variable| {
        let is_used = variable.pages.len() >= PAGES_MIN || variable.meaning.0 == Kind::Table;
        let is_said = !variable.meaning.1.is_empty();
        is_own(variable) || is_used && is_said && !SYSTEM.contains(&&*variable.name)
    });
    all.sort_by_key(|variable| {
        let pages = std::cmp::Reverse(variable.pages.len());
        (!is_own(variable), !variable.is_early, pages)
    });
    all
}

/// Finds the variables of a page.
struct Reader {
    /// Whether the title of the page says that it is about variables.
    is_about: bool,
    heading: String,
    found: Vec<(String, Kind, String)>,
}

// === impl Reader ===

impl Reader {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Heading { children, .. } => self.heading = words(children),
                Node::Table(table) => self.table(table),
                Node::Paragraph(line) => self.line(line),
                Node::List { items, .. } => {
                    for item in items {
                        let inline = item.children.iter().take_while(|node| !node.is_block());
                        self.line(&item.children[..inline.count()]);
                        self.nodes(&item.children);
                    }
                }
                Node::Fence { info, code } => self.code(info, code),
                node => node.each_children(&mut |children| self.nodes(children)),
            }
        }
    }

    /// Reads a table whose first column names variables.
    fn table(&mut self, table: &Table) {
        let heads: Vec<String> = table.head.iter().map(|cell| normal(&words(cell))).collect();
        let first = heads.first().map_or("", |head| &**head);
        let is_here = self.is_about || is_about(&self.heading);
        if !has(
            first,
            &["variable", "environment variable", "env var", "env"],
        ) && !is_here
        {
            return;
        }
        let about = [
            "description",
            "purpose",
            "meaning",
            "what",
            "details",
            "notes",
        ];
        let column = heads.iter().position(|head| has(head, &about));
        let column = column.unwrap_or(1);
        for row in &table.rows {
            let name = row.first().map(|cell| plain(cell));
            let name = name.as_deref().map(str::trim).filter(|name| is_name(name));
            if let (Some(name), Some(cell)) = (name, row.get(column)) {
                let meaning = fit(&words(cell), MEANING_MAX);
                self.found.push((name.to_owned(), Kind::Table, meaning));
            }
        }
    }

    /// Reads a line of text with the name of a variable in code.
    fn line(&mut self, line: &[Node]) {
        let names = line.iter().filter_map(|node| match node {
            Node::Code(code) if is_name(code.trim()) => Some(code.trim()),
            _ => None,
        });
        let names: Vec<&str> = names.collect();
        if names.is_empty() {
            return;
        }
        let text = words(line);
        let is_here = is_about(&self.heading) || self.is_about;
        for name in names {
            let code = format!("`{name}`");
            let own = sentences(&text).into_iter().find(|one| one.contains(&code));
            let Some(own) = own.filter(|own| !renames(own)) else {
                continue;
            };
            if !is_here && !is_about(own) {
                continue;
            }
            // `NAME`: what it is.
            let rest = own.strip_prefix(&*code).map(str::trim_start);
            let rest = rest.and_then(|rest| rest.strip_prefix([':', '–', '—', '-']));
            // A sentence that continues another one is no meaning.
            let starts = ["This ", "It ", "These ", "They ", "Or ", "And ", "If "];
            if rest.is_none() && starts.iter().any(|start| own.starts_with(start)) {
                continue;
            }
            if rest.is_none() && !says_meaning(own, &code) {
                continue;
            }
            let meaning = rest.unwrap_or(own).trim().trim_end_matches(':');
            let meaning = fit(meaning, MEANING_MAX);
            self.found.push((name.to_owned(), Kind::Sentence, meaning));
        }
    }

    fn code(&mut self, info: &str, code: &str) {
        let language = info.split([' ', '{']).next().unwrap_or_default();
        let shells = [
            "",
            "sh",
            "bash",
            "shell",
            "zsh",
            "env",
            "dotenv",
            "shellscript",
            "ini",
            "terminal",
            "properties",
            "text",
            "console",
            "docker",
        ];
        let is_shell = shells.contains(&&*language.to_ascii_lowercase());
        let mut comment = String::new();
        for line in code.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix('#') {
                let text = text.trim_matches(['#', ' ', '-', '=']);
                // The name of a file is no meaning.
                let is_said = text.contains(' ') && !text.contains(".env");
                comment = if is_said {
                    text.to_owned()
                } else {
                    String::new()
                };
                continue;
            }
            if is_shell && let Some((name, value)) = assignment(line) {
                let (kind, meaning) = match &*comment {
                    "" => (Kind::Value, example(value)),
                    comment => (
                        Kind::Comment,
                        super::text::plain(&fit(comment, MEANING_MAX)),
                    ),
                };
                self.found.push((name.to_owned(), kind, meaning));
            }
            for reads in READS {
                for (at, _) in line.match_indices(reads) {
                    let rest = &line[at + reads.len()..];
                    let inside = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
                    let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
                    if is_name(&rest[..end]) {
                        let name = rest[..end].to_owned();
                        self.found.push((name, Kind::Unknown, String::new()));
                    }
                }
            }
            comment.clear();
        }
    }
}

/// Returns whether a sentence is about a variable: it begins with it, or says what to put into it. A
/// condition on its value is about something else.
fn says_meaning(sentence: &str, code: &str) -> bool {
    const HOLDS: [&str; 8] = [
        "set", "sets", "setting", "hold", "holds", "contains", "define", "defines",
    ];
    const CHECKS: [&str; 5] = ["Check ", "Make sure ", "Ensure ", "Verify ", "Confirm "];
    const CONDITIONS: [&str; 6] = [" if ", " when ", " unless ", " whether ", "If ", "When "];
    let Some((before, _)) = sentence.split_once(code) else {
        return false;
    };
    let is_condition = CONDITIONS.iter().any(|word| match word.starts_with(' ') {
        true => before.contains(word),
        false => before.starts_with(word),
    });
    let is_early = before.split_whitespace().count() <= NAME_WORDS_MAX;
    // A sentence about several variables defines none of them.
    let names = sentence.split('`').skip(1).step_by(2);
    let is_alone = names.filter(|name| is_name(name.trim())).count() == 1;
    let is_check = CHECKS.iter().any(|start| sentence.starts_with(start));
    !is_condition && !is_check && is_alone && (is_early || has(&normal(sentence), &HOLDS))
}

/// Returns whether a sentence says that a variable has another name now: the old one is no advice.
fn renames(sentence: &str) -> bool {
    let words = normal(sentence);
    let is_now = sentence.contains("` is now `");
    is_now || has(&words, &["renamed", "replaced by", "replaces"])
}

/// Returns whether a text is about environment variables.
fn is_about(text: &str) -> bool {
    let about = [
        "environment variable",
        "environment variables",
        "env var",
        "env vars",
        "env variable",
        "env variables",
    ];
    has(&normal(text), &about)
}

/// Reads `NAME=value`, `export NAME=value`, `-e NAME=value`.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let starts = ["export ", "-e ", "--env ", "set ", "ENV "];
    let line = starts
        .iter()
        .find_map(|start| line.strip_prefix(start))
        .unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    is_name(name).then_some((name, value.trim_end_matches(['\\', ' '])))
}

/// Returns whether a text is the name of an environment variable: `ACME_API_KEY`. Placeholders
/// such as `YOUR_API_KEY` are values.
fn is_name(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    (4..=NAME_MAX).contains(&text.len())
        && text.contains('_')
        && text.bytes().all(inside)
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && !text.ends_with('_')
        && !text.starts_with("YOUR_")
        && !text.starts_with("MY_")
        && !text.ends_with("_HERE")
}

/// Writes an example value; nothing if it could be a secret or is none.
fn example(value: &str) -> String {
    let value = value.trim_matches(['"', '\'', ' ']);
    let is_plain = !value.is_empty()
        && value.len() <= VALUE_MAX
        && !value.contains(['`', '$', '(', '\n'])
        && secret::find(value).is_none();
    match is_plain {
        true => format!("for example `{value}`"),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_about_the_variable_that_it_begins_with_or_sets() {
        for sentence in [
            "`ACME_KEY` is the key of a project.",
            "The environment variable `ACME_KEY` is the key.",
            "For a project of your team you set the environment variable `ACME_KEY`.",
        ] {
            assert!(says_meaning(sentence, "`ACME_KEY`"), "{sentence}");
        }
        for sentence in [
            "`--db-url` and `--token` can be omitted if `ACME_KEY` is set.",
            "If `ACME_KEY` is set, the option is ignored.",
            "Set `ACME_KEY` and `ACME_URL` in the settings of your project.",
            "Check that you have set the `ACME_KEY`.",
            "The option of the command reads from the environment, like `ACME_KEY`.",
        ] {
            assert!(!says_meaning(sentence, "`ACME_KEY`"), "{sentence}");
        }
    }

    #[test]
    fn names_of_variables_are_told_from_placeholders() {
        for name in ["ACME_API_KEY", "E2B_KEY", "DB_1"] {
            assert!(is_name(name), "{name}");
        }
        for other in [
            "PATH",
            "YOUR_API_KEY",
            "a_B",
            "KEY_HERE",
            "A_",
            "_AB",
            "1_AB",
        ] {
            assert!(!is_name(other), "{other}");
        }
        assert_eq!(
            assignment("export ACME_KEY=\"x\" \\"),
            Some(("ACME_KEY", "\"x\""))
        );
        assert_eq!(assignment("let A_B=1"), None);
        assert_eq!(example("\"acme_***\""), "for example `acme_***`");
        assert_eq!(example("ghp_16C7e42F292c6912E7710c838347Ae178B4a"), "");
        assert_eq!(example("$OTHER"), "");
    }
}

//! The commands of a product with a command line, as a table: from tables of commands, headings
//! that are a command, and the shell code of pages about the command line.

use std::collections::{HashMap, HashSet};

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::docs::page::capitalised;
use crate::mdx::{Node, plain};

use super::about;
use super::outline::{Outline, link_to};
use super::role::{Role, has, normal};
use super::sink::{Share, Sink};
use super::text::{self, cell, fit, says_version, sentences, words};
use super::words::{in_sentence, is_task, without_number};

/// The most rows and characters of the table.
const ROWS_MAX: usize = 30;
const CHARACTERS_MAX: usize = 3000;
/// A program with fewer commands has no table.
const COMMANDS_MIN: usize = 3;
/// The longest command and the longest purpose, in characters.
const COMMAND_MAX: usize = 70;
const PURPOSE_MAX: usize = 110;
/// The fewest words of a heading that is no task and still a purpose.
const PURPOSE_WORDS_MIN: usize = 3;
/// How many lines of code below one heading are commands.
const LINES_OF_HEADING_MAX: usize = 3;
/// Words of titles of pages about a command line.
const TITLES: [&str; 4] = ["cli", "command line", "commands", "command reference"];
/// Headings and remarks that name no purpose.
const GENERIC: [&str; 3] = ["usage", "example usage", "or"];
/// Programs that are on every page about a command line, and are not its subject.
const TOOLS: [&str; 30] = [
    "npm", "npx", "pnpm", "yarn", "bun", "pip", "pipx", "uv", "brew", "cargo", "go", "curl",
    "wget", "git", "docker", "kubectl", "helm", "cd", "ls", "cat", "cp", "mv", "rm", "mkdir",
    "export", "echo", "sudo", "chmod", "source", "node",
];

/// A command of a program.
struct Command {
    command: String,
    purpose: String,
    page: PageId,
    /// Whether it is only a line of code, below a heading.
    is_line: bool,
}

/// The program of a product's command line.
pub(super) struct Program {
    pub(super) name: String,
    commands: Vec<Command>,
}

/// Finds the program with the most commands.
pub(super) fn program(docs: &Docs, outline: &Outline) -> Option<Program> {
    let product = normal(&about::product(&docs.config.name));
    let mut programs: Vec<(String, Vec<Command>)> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (entry, page, nodes) in outline.contents(docs, |role| role < Role::Community) {
        let is_about = has(&normal(&page.title), &TITLES) || has(&normal(&page.url), &TITLES);
        let mut reader = Reader {
            page: entry.page,
            is_about,
            title: text::plain(&page.title),
            heading: String::new(),
            before: String::new(),
            lines_left: LINES_OF_HEADING_MAX,
            open: None,
            found: Vec::new(),
        };
        reader.nodes(nodes);
        for found in reader.found {
            let program = found.command.split(' ').next().unwrap_or_default();
            let is_own = product.contains(&format!(" {program} "));
            if !is_own && (!is_about || TOOLS.contains(&program)) {
                continue;
            }
            let next = programs.len();
            let number = *numbers.entry(program.to_owned()).or_insert(next);
            if number == next {
                programs.push((program.to_owned(), Vec::new()));
            }
            programs[number].1.push(found);
        }
    }
    for (_, commands) in &mut programs {
        // What an author described comes before lines of code, and these before bare names.
        commands.sort_by_key(|command| (command.purpose.is_empty(), command.is_line));
        let mut said = HashSet::new();
        commands.retain(|command| said.insert(command.command.clone()));
    }
    // The first of equal ones.
    let programs = programs.into_iter().rev();
    let (name, commands) = programs
        .max_by_key(|(_, commands)| commands.len())
        .filter(|(_, commands)| commands.len() >= COMMANDS_MIN)?;
    Some(Program { name, commands })
}

/// Writes the table of the commands of a program.
pub(super) fn table(
    docs: &Docs,
    program: Option<&Program>,
    share: Share,
    base_url: &str,
) -> Vec<String> {
    let Some(Program { name, commands }) = program else {
        return Vec::new();
    };
    let mut sink = Sink::new(base_url, ROWS_MAX, share.of(CHARACTERS_MAX));
    let mut shown = 0;
    let mut last = None;
    for command in commands {
        // A row without a page belongs to the page of the row above it.
        let link = match last == Some(command.page) {
            true => "″".to_owned(),
            false => cell(&link_to(docs, command.page, base_url)),
        };
        let row = format!(
            "| `{}` | {} | {link} |",
            cell(&command.command),
            cell(&command.purpose)
        );
        if sink.add(&[row]) {
            shown += 1;
            last = Some(command.page);
        }
    }
    let mut lines = vec![
        "| Command | Purpose | Page |".to_owned(),
        "|---|---|---|".to_owned(),
    ];
    lines.extend(sink.lines);
    let left = commands.len() - shown;
    if left > 0 {
        lines.push(String::new());
        lines.push(format!(
            "{left} more commands of `{name}` are on these pages."
        ));
    }
    lines
}

/// Finds the commands of a page.
struct Reader {
    page: PageId,
    is_about: bool,
    /// The title of the page, and the heading; empty before the first one.
    title: String,
    heading: String,
    /// The paragraph directly above.
    before: String,
    /// How many lines of code below the heading may still be commands.
    lines_left: usize,
    /// A heading that is a command, whose first paragraph has not come yet.
    open: Option<String>,
    found: Vec<Command>,
}

// === impl Reader ===

impl Reader {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            let before = std::mem::take(&mut self.before);
            match node {
                Node::Heading { children, .. } => {
                    self.heading = words(children).replace('`', "");
                    self.lines_left = LINES_OF_HEADING_MAX;
                    self.open = command(children, self.is_about);
                }
                Node::Paragraph(line) => {
                    let text = words(line);
                    // The version since which a command is there does not say what it does.
                    let open = self.open.take_if(|_| !says_version(&text));
                    if let Some(command) = open {
                        self.add(command, &text, false);
                    }
                    self.before = text;
                }
                Node::Table(table) => {
                    for row in &table.rows {
                        if let [first, second, ..] = &row[..]
                            && let Some(command) = command(first, false)
                        {
                            self.add(command, &words(second), false);
                        }
                    }
                }
                Node::Fence { code, .. } if self.is_about => {
                    let mut remark = "";
                    let mut announced = announced(&before);
                    for line in code.lines() {
                        let line = line.trim_start_matches(['$', '>', ' ']);
                        if let Some(text) = line.strip_prefix('#') {
                            remark = text.trim_matches(['#', ' ']);
                            continue;
                        }
                        let (line, own) = line.split_once(" #").unwrap_or((line, ""));
                        let line = line.trim_end();
                        if self.lines_left > 0 && is_command(line) {
                            self.lines_left -= 1;
                            let said = [own.trim(), remark];
                            let said = said.into_iter().find(|text| !text.is_empty());
                            let purpose = match said {
                                Some(said) => text::plain(said),
                                None => announced
                                    .take()
                                    .unwrap_or_else(|| self.purpose_of_heading()),
                            };
                            if !GENERIC.contains(&normal(&purpose).trim()) {
                                self.add(line.to_owned(), &purpose, true);
                            }
                        }
                        remark = "";
                    }
                }
                node => node.each_children(&mut |children| self.nodes(children)),
            }
        }
    }

    /// Returns the heading if it says what a command is for, else the title of the page if that does.
    /// A heading such as "Core" says nothing.
    fn purpose_of_heading(&self) -> String {
        let heading = without_number(&self.heading);
        let words = normal(heading).split_whitespace().count();
        if is_task(heading) || words >= PURPOSE_WORDS_MIN {
            return heading.to_owned();
        }
        let title = &self.title;
        match is_task(title) || heading.is_empty() {
            true if heading.is_empty() => title.clone(),
            true => format!("{title}: {}", in_sentence(heading)),
            false => String::new(),
        }
    }

    fn add(&mut self, command: String, purpose: &str, is_line: bool) {
        let purpose = fit(purpose.trim_end_matches([':', ' ']), PURPOSE_MAX);
        // The name of a command says enough if no author describes it.
        if is_line && purpose.is_empty() || purpose.chars().any(char::is_alphanumeric) {
            self.found.push(Command {
                command,
                purpose,
                page: self.page,
                is_line,
            });
        }
    }
}

/// Returns what the last sentence of a paragraph says about the code below it: `To list all boxes` of "To
/// list all boxes, use the following command:". `None` if it only announces the code.
fn announced(paragraph: &str) -> Option<String> {
    let last = sentences(paragraph).pop()?;
    // Another sentence explains something, often the code above it.
    if !last.ends_with(':') && !last.starts_with("To ") {
        return None;
    }
    let last = last.trim_end_matches([':', '.', ' ']);
    let (start, rest) = last.split_once(", ").unwrap_or((last, ""));
    let points = |text: &str| has(&normal(text), &["following", "below", "above", "command"]);
    let said = match start.starts_with("To ") && !points(start) {
        true if rest.is_empty() || points(rest) || rest.contains(" run") => {
            start.strip_prefix("To ")?
        }
        _ if last.starts_with("To ") || last.starts_with("If ") => return None,
        _ if points(last) || has(&normal(last), &["this", "it", "these"]) => return None,
        _ => last,
    };
    (said.split(' ').count() >= 2).then(|| capitalised(said))
}

/// Returns the command that some nodes consist of: code, or plain words if `or_words`.
fn command(nodes: &[Node], or_words: bool) -> Option<String> {
    let is_code = |node: &Node| match node {
        Node::Code(_) => true,
        Node::Link { children, .. } => matches!(&children[..], [Node::Code(_)]),
        Node::Text(text) => text.trim().is_empty(),
        _ => false,
    };
    let text = plain(nodes);
    let text = text.trim();
    let is_whole = nodes.iter().all(is_code) || or_words && !text.contains(char::is_uppercase);
    (is_whole && is_command(text)).then(|| text.to_owned())
}

/// Returns whether a line is a program with a command: `acme deploy --all`.
fn is_command(line: &str) -> bool {
    let mut parts = line.split(' ');
    let is_name = |part: &str| {
        let mut letters = part.bytes();
        letters.next().is_some_and(|b| b.is_ascii_lowercase())
            && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_:".contains(&b))
    };
    let is_one = parts.next().is_some_and(is_name) && parts.next().is_some_and(is_name);
    // A heading that compares two commands.
    let compares = parts.any(|part| matches!(part, "vs" | "vs." | "versus" | "and" | "or"));
    // Continued lines and pipes are no single command.
    let is_plain = !line.contains(['\n', '`', '\\', ';', '&', '=']) && !line.contains(" | ");
    is_one && !compares && is_plain && line.chars().count() <= COMMAND_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_above_a_command_says_what_it_is_for() {
        for (paragraph, purpose) in [
            (
                "A box is small. To list all boxes, use the following command:",
                Some("List all boxes"),
            ),
            (
                "List the boxes of a team:",
                Some("List the boxes of a team"),
            ),
            ("Use the following command:", None),
            ("It does this:", None),
            (
                "To filter boxes by their state you can add the `--state` flag, which has two values:",
                None,
            ),
            ("If you need a box to try it, you need no account:", None),
            ("The program finds the box by its name.", None),
            ("", None),
        ] {
            assert_eq!(announced(paragraph).as_deref(), purpose, "{paragraph}");
        }
    }
}

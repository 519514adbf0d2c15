//! Procedures that authors wrote: `<Steps>` and numbered lists.

use crate::docs::Docs;

use super::outline::Outline;
use super::text::{plain, short};

/// The most lines and characters of the section.
pub(super) const LINES_MAX: usize = 160;
const CHARACTERS_MAX: usize = 7000;
/// The most steps of one procedure that are listed.
const STEPS_MAX: usize = 12;
/// The fewest steps of a procedure.
const STEPS_MIN: usize = 2;

/// A procedure of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Workflow {
    /// The heading above it.
    pub(super) heading: String,
    /// The steps, in order.
    pub(super) steps: Vec<String>,
}

/// Collects procedures: the first procedure of every page before any second one.
pub(super) fn workflows(docs: &Docs, outline: &Outline, base_url: &str) -> Vec<String> {
    let found: Vec<_> = outline
        .pages()
        .map(|id| docs.navigation.page(id))
        .filter_map(|page| Some((page, read(docs.pages.get(&page.slug)?.body()))))
        .collect();
    let deepest = found
        .iter()
        .map(|(_, workflows)| workflows.len())
        .max()
        .unwrap_or(0);
    let (mut lines, mut characters) = (Vec::new(), 0);
    for nth in 0..deepest {
        for (page, workflows) in &found {
            let Some(workflow) = workflows.get(nth) else {
                continue;
            };
            let section = workflow.lines(&plain(&page.title), &format!("{base_url}{}", page.url));
            let cost: usize = section.iter().map(|line| line.chars().count() + 1).sum();
            if lines.len() + section.len() > LINES_MAX || characters + cost > CHARACTERS_MAX {
                return lines;
            }
            characters += cost;
            if !lines.is_empty() {
                lines.push(String::new());
            }
            lines.extend(section);
        }
    }
    lines
}

impl Workflow {
    fn lines(&self, title: &str, url: &str) -> Vec<String> {
        let mut lines = vec![
            if self.heading.is_empty() || self.heading == title {
                format!("### {title}")
            } else {
                format!("### {title}: {}", self.heading)
            },
            String::new(),
        ];
        for (number, step) in (1..).zip(self.steps.iter().take(STEPS_MAX)) {
            lines.push(format!("{number}. {step}"));
        }
        lines.push(String::new());
        lines.push(format!("Details: [{title}]({url})"));
        lines
    }
}

/// Reads a page line by line; code is only read to find the single command of a step.
#[derive(Default)]
struct Reader {
    found: Vec<Workflow>,
    heading: String,
    /// The procedure that is being read; `kind` is its form.
    current: Workflow,
    kind: Option<Kind>,
    fence: Option<String>,
    code: Vec<String>,
    /// Whether the current step still needs its first sentence.
    wants_words: bool,
    wants_code: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Steps,
    Numbers,
}

/// Finds the procedures in a page's text.
pub(super) fn read(text: &str) -> Vec<Workflow> {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.line(line);
    }
    reader.end();
    reader.found
}

impl Reader {
    fn line(&mut self, line: &str) {
        let trimmed = line.trim();
        if self.code(trimmed) {
            return;
        }
        let level = trimmed.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&level) && trimmed[level..].starts_with(' ') {
            if self.kind == Some(Kind::Numbers) {
                self.end();
            }
            if self.kind.is_none() {
                self.heading = plain(&trimmed[level..]);
            }
        } else if trimmed.starts_with("<Steps") {
            self.end();
            self.begin(Kind::Steps);
        } else if trimmed.starts_with("</Steps") {
            self.end();
        } else if trimmed.starts_with("<Step") && self.kind == Some(Kind::Steps) {
            let title = attribute(trimmed, "title").map(plain).unwrap_or_default();
            self.step(title);
        } else if let Some(step) = numbered(line).filter(|_| self.kind != Some(Kind::Steps)) {
            // A list that begins again at 1 is a new list.
            if self.kind.is_none() || step.0 == 1 {
                self.end();
                self.begin(Kind::Numbers);
            }
            self.step(short(step.1));
            self.wants_words = false;
        } else if self.kind == Some(Kind::Numbers)
            && !line.starts_with([' ', '\t'])
            && !trimmed.is_empty()
        {
            self.end();
        } else {
            self.words(trimmed);
        }
    }

    /// Reads a line of code, or the fence that begins or ends it; returns `false` for other lines.
    fn code(&mut self, line: &str) -> bool {
        if let Some(fence) = &self.fence {
            if line.starts_with(&**fence) {
                self.fence = None;
                self.command();
            } else if !line.is_empty() {
                self.code.push(line.to_owned());
            }
            return true;
        }
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let fence: String = mark.map_or_else(String::new, |mark| {
            line.chars().take_while(|c| *c == mark).collect()
        });
        if fence.len() >= 3 {
            self.fence = Some(fence);
            self.code.clear();
            return true;
        }
        false
    }

    /// Adds the command to the step, if its code block has only this one line.
    fn command(&mut self) {
        if let ([command], true, Some(step)) = (
            self.code.as_slice(),
            self.wants_code,
            self.current.steps.last_mut(),
        ) && !command.contains('`')
            && command.len() <= 160
        {
            step.truncate(step.trim_end_matches(['.', ':']).len());
            step.push_str(&format!(": `{command}`"));
            self.wants_code = false;
        }
    }

    fn begin(&mut self, kind: Kind) {
        self.kind = Some(kind);
        self.current.heading.clone_from(&self.heading);
    }

    fn step(&mut self, title: String) {
        self.current.steps.push(title);
        self.wants_words = true;
        self.wants_code = true;
    }

    /// Adds a step's first sentence to its title.
    fn words(&mut self, line: &str) {
        if !self.wants_words || line.is_empty() || line.starts_with(['<', '{', '|', '-', '*', '>'])
        {
            return;
        }
        let (words, Some(step)) = (short(line), self.current.steps.last_mut()) else {
            return;
        };
        if step.is_empty() {
            *step = words;
        } else if !words.is_empty() {
            step.push_str(". ");
            step.push_str(&words);
        }
        self.wants_words = false;
    }

    fn end(&mut self) {
        let mut workflow = std::mem::take(&mut self.current);
        self.kind = None;
        self.wants_words = false;
        self.wants_code = false;
        workflow.steps.retain(|step| !step.is_empty());
        if workflow.steps.len() >= STEPS_MIN {
            self.found.push(workflow);
        }
    }
}

/// Reads `1. text` or `1) text` at the beginning of a line.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line[digits..].strip_prefix(['.', ')'])?.strip_prefix(' ')?;
    Some((line.get(..digits)?.parse().ok()?, rest))
}

/// Returns the value of an attribute that is written in quotes.
fn attribute<'l>(tag: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = tag.split_once(&format!("{name}="))?;
    let quote = rest
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    rest[1..].split(quote).next()
}

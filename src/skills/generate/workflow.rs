//! Procedures that authors wrote: `<Steps>` and numbered lists.

use crate::docs::Docs;
use crate::mdx::Node;

use super::outline::{Outline, content};
use super::text::{plain, shorten, words};

/// The most lines and characters of the section.
pub(super) const LINES_MAX: usize = 160;
const CHARACTERS_MAX: usize = 7000;
/// The most steps of one procedure that are listed.
const STEPS_MAX: usize = 12;
/// The longest command of a step, in bytes.
const COMMAND_BYTES_MAX: usize = 160;
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
        .filter_map(|page| Some((page, read(content(docs, page)?))))
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

/// Finds the procedures of a page.
#[derive(Default)]
struct Reader {
    found: Vec<Workflow>,
    heading: String,
}

/// Finds the procedures in the content of a page.
pub(super) fn read(nodes: &[Node]) -> Vec<Workflow> {
    let mut reader = Reader::default();
    reader.nodes(nodes);
    reader.found
}

// === impl Reader ===

impl Reader {
    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Heading { children, .. } => self.heading = words(children),
                Node::List {
                    start: Some(_),
                    items,
                } => {
                    let steps = items.iter().map(|item| step("", &item.children, false));
                    self.add(steps.collect());
                }
                Node::Element(element) if *element.name == *"Steps" => {
                    let steps = element.children.iter().filter_map(|child| match child {
                        Node::Element(child) if *child.name == *"Step" => {
                            let title = child.text("title").map(plain).unwrap_or_default();
                            Some(step(&title, &child.children, true))
                        }
                        _ => None,
                    });
                    self.add(steps.collect());
                }
                Node::Element(element) => self.nodes(&element.children),
                _ => {}
            }
        }
    }

    fn add(&mut self, mut steps: Vec<String>) {
        steps.retain(|step| !step.is_empty());
        if steps.len() >= STEPS_MIN {
            self.found.push(Workflow {
                heading: self.heading.clone(),
                steps,
            });
        }
    }
}

/// Writes a step: its title, its first paragraph if `has_words` or if it has no title, and the
/// command of its first block of code with only one line, in the order of the page.
fn step(title: &str, children: &[Node], has_words: bool) -> String {
    let mut step = title.to_owned();
    let mut wants_words = has_words || title.is_empty();
    let mut wants_command = true;
    let mut rest = children;
    while let Some((node, after)) = rest.split_first() {
        rest = after;
        match node {
            Node::Fence { code, .. } if wants_command && !step.is_empty() => {
                if let Some(command) = command(code) {
                    step.truncate(step.trim_end_matches(['.', ':']).len());
                    step.push_str(&format!(": `{command}`"));
                    wants_command = false;
                }
            }
            Node::Paragraph(line) if wants_words => {
                wants_words = !add(&mut step, &shorten(&words(line)));
            }
            // A tight item holds its text without a paragraph.
            node if wants_words && !node.is_block() => {
                let more = rest.iter().take_while(|node| !node.is_block()).count();
                let line = &children[children.len() - rest.len() - 1..][..=more];
                rest = &rest[more..];
                wants_words = !add(&mut step, &shorten(&words(line)));
            }
            _ => {}
        }
    }
    step
}

/// Adds a sentence to a step; returns whether it says something.
fn add(step: &mut String, words: &str) -> bool {
    if !step.is_empty() && !words.is_empty() {
        step.push_str(". ");
    }
    step.push_str(words);
    !words.is_empty()
}

/// Returns the command of a block of code with only one line.
fn command(code: &str) -> Option<&str> {
    let mut lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next()?;
    let is_short = !first.contains('`') && first.len() <= COMMAND_BYTES_MAX;
    (lines.next().is_none() && is_short).then_some(first)
}

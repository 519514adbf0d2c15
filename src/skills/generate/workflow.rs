//! Procedures that authors wrote: `<Steps>`, numbered lists, numbered headings.
//!
//! Only pages that tell how to do something have procedures (see [`Role::has_procedures`]). A
//! numbered list there is one if its items are instructions and if the heading above it does not
//! announce an explanation: the steps of an attacker, or the internal steps of a server, are not a
//! procedure for the reader.

use std::collections::HashSet;

use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::mdx::{Element, Node};

use super::about::{is_generic_part, is_generic_title};
use super::code::{Block, Kind};
use super::outline::{Outline, content, link};
use super::role::{Role, has, is_explanation, normal};
use super::sink::Sink;
use super::text::{fit, plain, words};
use super::words::{is_instruction, number, without_number};

/// The most lines and characters of the section.
pub(super) const LINES_MAX: usize = 150;
const CHARACTERS_MAX: usize = 4600;
/// The most steps of one procedure that are listed.
const STEPS_MAX: usize = 12;
/// The fewest steps of a procedure, and of one that is made of headings.
const STEPS_MIN: usize = 2;
const HEADINGS_MIN: usize = 3;
/// The most lines and bytes of code in a step.
const CODE_LINES_MAX: usize = 12;
const CODE_BYTES_MAX: usize = 500;
/// The longest text of a step, in characters.
const STEP_MAX: usize = 160;
/// Headings of lists of things that the reader has to have.
const PREREQUISITES: [&str; 5] = [
    "prerequisite",
    "prerequisites",
    "requirements",
    "before you begin",
    "before you start",
];
/// Headings at the end of a page, which are no steps.
const APPENDICES: [&str; 6] = [
    "see also",
    "next steps",
    "what s next",
    "further reading",
    "learn more",
    "related resources",
];

/// A procedure of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Workflow<'d> {
    /// The heading above it.
    pub(super) heading: String,
    /// The steps, in order.
    pub(super) steps: Vec<Step<'d>>,
}

/// A step of a procedure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step<'d> {
    /// What to do.
    pub(super) words: String,
    /// The first code of the step.
    pub(super) code: Option<Block<'d>>,
}

/// Collects procedures: the first procedure of every page before any second one, and pages about
/// the start first. Code that `shown` contains is not repeated.
pub(super) fn workflows(
    docs: &Docs,
    outline: &Outline,
    shown: &HashSet<&str>,
    base_url: &str,
) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut pages: Vec<(Role, &Page)> = outline
        .entries_of(Role::has_procedures)
        .filter(|entry| seen.insert(entry.page))
        .map(|entry| (entry.role, docs.navigation.page(entry.page)))
        .collect();
    pages.sort_by_key(|(role, _)| match role {
        Role::Start => 0,
        Role::Install | Role::Access => 1,
        _ => 2,
    });
    let found: Vec<_> = pages
        .into_iter()
        .filter_map(|(role, page)| Some((page, read(content(docs, page)?, role, is_english(page)))))
        .collect();
    let mut said = HashSet::new();
    let deepest = found.iter().map(|(_, workflows)| workflows.len()).max();
    let mut sink = Sink::new(base_url, LINES_MAX, CHARACTERS_MAX);
    let mut misses = 0;
    for nth in 0..deepest.unwrap_or(0) {
        for (page, workflows) in &found {
            let Some(workflow) = workflows.get(nth) else {
                continue;
            };
            // Pages about similar things begin with the same steps.
            if !said.insert(workflow.key()) {
                continue;
            }
            let own = plain(&page.title);
            // Every part of a site may have a page with such a title.
            let part = page
                .place
                .as_ref()
                .and_then(|place| place.breadcrumb.first());
            let title = match part {
                Some(part) if is_generic_title(&own) && !is_generic_part(part) => {
                    format!("{}: {own}", plain(part))
                }
                _ => own.clone(),
            };
            let heading = match &*workflow.heading {
                "" => title.clone(),
                heading if heading == own => title.clone(),
                heading => format!("{title}: {heading}"),
            };
            let link = link(&own, page, base_url);
            // A procedure whose code does not fit is written without it.
            let full = workflow.lines(&link, shown, true);
            if !sink.add_under(&heading, full)
                && !sink.add_under(&heading, workflow.lines(&link, shown, false))
            {
                misses += 1;
                if misses == 8 {
                    return sink.lines;
                }
            }
        }
    }
    sink.lines
}

/// Returns whether a page is in English, so that its instructions can be recognised.
fn is_english(page: &Page) -> bool {
    let language = page
        .place
        .as_ref()
        .and_then(|place| place.language.as_deref());
    language.is_none_or(|code| code == "en" || code.starts_with("en-"))
}

impl Workflow<'_> {
    /// Returns the common part of two similar procedures.
    fn key(&self) -> Vec<(String, Option<&str>)> {
        let key = |step: &Step<'_>| normal(&step.words);
        let steps = self.steps.iter();
        steps
            .map(|step| (key(step), step.code.as_ref().map(|code| code.code)))
            .collect()
    }

    fn lines(&self, link: &str, shown: &HashSet<&str>, has_code: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, step) in (1..).zip(self.steps.iter().take(STEPS_MAX)) {
            let text = step.words.trim_end_matches([':', ' ']);
            let is_shown = |code: &Block<'_>| shown.contains(code.code);
            if step.code.as_ref().is_some_and(is_shown) {
                lines.push(format!(
                    "{number}. {text} (the code is in the first working call)"
                ));
                continue;
            }
            let code = step.code.as_ref();
            match code.map(|code| (code, code.one_line())) {
                Some((_, Some(line))) => {
                    let text = text.trim_end_matches('.');
                    lines.push(format!("{number}. {text}: `{line}`"));
                }
                Some((code, None)) if has_code => {
                    lines.push(format!("{number}. {text}:"));
                    lines.push(String::new());
                    lines.extend(code.fence("   "));
                    lines.push(String::new());
                }
                _ => lines.push(format!("{number}. {text}")),
            }
        }
        if lines.last().is_none_or(|last| !last.is_empty()) {
            lines.push(String::new());
        }
        lines.push(format!("Details: {link}"));
        lines
    }
}

/// Finds the procedures of a page.
struct Reader<'d> {
    found: Vec<Workflow<'d>>,
    heading: String,
    is_english: bool,
}

/// Finds the procedures in the content of a page.
pub(super) fn read(nodes: &[Node], role: Role, is_english: bool) -> Vec<Workflow<'_>> {
    let mut reader = Reader {
        found: Vec::new(),
        heading: String::new(),
        is_english,
    };
    let headings = headings(nodes, role);
    // Lists below the headings of a procedure are its parts.
    if headings.is_empty() {
        reader.nodes(nodes);
    } else {
        reader.add(headings, false);
    }
    reader.found
}

/// Reads a procedure that is made of headings: numbered ones, or the instructions of a page about
/// the start.
fn headings(nodes: &[Node], role: Role) -> Vec<Step<'_>> {
    let level = nodes.iter().find_map(|node| match node {
        Node::Heading { level, .. } => Some(*level),
        _ => None,
    });
    let Some(level) = level else {
        return Vec::new();
    };
    let mut numbered: Vec<Step<'_>> = Vec::new();
    let mut named: Vec<Step<'_>> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let Node::Heading {
            level: own,
            children,
            ..
        } = node
        else {
            continue;
        };
        if *own != level {
            continue;
        }
        let title = words(children);
        let rest = &nodes[at + 1..];
        let end = rest
            .iter()
            .position(|node| matches!(node, Node::Heading { level: other, .. } if *other <= level));
        let content = &rest[..end.unwrap_or(rest.len())];
        let step = || step(without_number(&title), content, false);
        if number(&title) == Some(numbered.len() + 1) {
            numbered.push(step());
        } else if is_instruction(&title) && !is_explanation(&title) {
            named.push(step());
        }
    }
    if numbered.len() >= STEPS_MIN {
        return numbered;
    }
    let has_steps = nodes
        .iter()
        .any(|node| matches!(node, Node::Element(element) if *element.name == *"Steps"));
    if role <= Role::Install && named.len() >= HEADINGS_MIN && !has_steps {
        return named;
    }
    Vec::new()
}

// === impl Reader ===

impl<'d> Reader<'d> {
    fn nodes(&mut self, nodes: &'d [Node]) {
        for node in nodes {
            match node {
                Node::Heading { children, .. } => self.heading = words(children),
                Node::List {
                    start: Some(_),
                    items,
                } => {
                    let steps = items.iter().map(|item| step("", &item.children, false));
                    self.add(steps.collect(), true);
                }
                Node::Element(element) if *element.name == *"Steps" => self.steps(element),
                Node::Element(element) => self.nodes(&element.children),
                _ => {}
            }
        }
    }

    fn steps(&mut self, steps: &'d Element) {
        let steps = steps.children.iter().filter_map(|child| match child {
            Node::Element(child) if *child.name == *"Step" => {
                let title = child.text("title").map(plain).unwrap_or_default();
                Some(step(without_number(&title), &child.children, true))
            }
            _ => None,
        });
        self.add(steps.collect(), false);
    }

    /// Adds a procedure. The items of a list must be instructions.
    fn add(&mut self, mut steps: Vec<Step<'d>>, is_list: bool) {
        steps.retain(|step| !step.words.is_empty() && !is_appendix(&step.words));
        if steps.len() < STEPS_MIN || is_explanation(&self.heading) {
            return;
        }
        if is_list && has(&normal(&self.heading), &PREREQUISITES) {
            return;
        }
        let instructions = steps.iter().filter(|step| is_instruction(&step.words));
        if is_list && self.is_english && instructions.count() * 3 < steps.len() * 2 {
            return;
        }
        self.found.push(Workflow {
            heading: without_number(&self.heading).to_owned(),
            steps,
        });
    }
}

/// Reads a step: its title, its first paragraph if `has_words` or if it has no title, and its first
/// code, in the order of the page.
fn step<'d>(title: &str, children: &'d [Node], has_words: bool) -> Step<'d> {
    let mut step = Step {
        words: title.to_owned(),
        code: None,
    };
    let mut wants_words = has_words || title.is_empty();
    let mut rest = children;
    while let Some((node, after)) = rest.split_first() {
        rest = after;
        match node {
            Node::Paragraph(line) if wants_words => {
                wants_words = !add(&mut step.words, &words(line));
            }
            // A tight item holds its text without a paragraph.
            node if wants_words && !node.is_block() => {
                let more = rest.iter().take_while(|node| !node.is_block()).count();
                let line = &children[children.len() - rest.len() - 1..][..=more];
                rest = &rest[more..];
                wants_words = !add(&mut step.words, &words(line));
            }
            _ => {}
        }
    }
    if !step.words.is_empty() {
        // The first code of an installation may install a tool that is needed for it.
        let installs = has(&normal(title), &["install"]);
        let own = installs.then(|| code_of(children, &|code| code.kind() == Kind::Install));
        step.code = own.flatten().or_else(|| first_code(children));
    }
    step
}

/// Returns whether a heading only begins the end of a page.
fn is_appendix(words: &str) -> bool {
    let words = normal(words);
    APPENDICES.contains(&words.trim())
}

/// Adds a sentence to a step; returns whether the sentence has content.
fn add(step: &mut String, words: &str) -> bool {
    if !step.is_empty() && !words.is_empty() {
        step.push_str(". ");
    }
    step.push_str(&fit(words, STEP_MAX));
    !words.is_empty()
}

/// Returns the first code that a skill can repeat, at any depth.
fn first_code(nodes: &[Node]) -> Option<Block<'_>> {
    code_of(nodes, &|code| !code.is_output())
}

/// Returns the first short code that `is_wanted` accepts, at any depth.
fn code_of<'d>(nodes: &'d [Node], wanted: &dyn Fn(&Block<'_>) -> bool) -> Option<Block<'d>> {
    nodes.iter().find_map(|node| match node {
        Node::Fence { info, code } => {
            let block = Block::of(info, code, "");
            let is_short = code.lines().count() <= CODE_LINES_MAX && code.len() <= CODE_BYTES_MAX;
            (is_short && !code.trim().is_empty() && wanted(&block)).then_some(block)
        }
        node => {
            let mut found = None;
            node.each_children(&mut |children| {
                found = found.take().or_else(|| code_of(children, wanted));
            });
            found
        }
    })
}

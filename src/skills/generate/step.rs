//! A step of a procedure: what to do, and its code.

use crate::mdx::Node;

use super::code::{Block, Kind};
use super::role::{has, normal};
use super::text::{fit, sentences, words};
use super::words::is_instruction;
use super::wrong::{self, Verdict};

/// The most lines and bytes of code in a step.
const CODE_LINES_MAX: usize = 12;
const CODE_BYTES_MAX: usize = 500;
/// The longest text of a step, in characters.
const STEP_MAX: usize = 160;
/// Headings at the end of a page, which are no steps.
const APPENDICES: [&str; 7] = [
    "done",
    "see also",
    "next steps",
    "what s next",
    "further reading",
    "learn more",
    "related resources",
];

/// A step of a procedure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step<'d> {
    /// What to do.
    pub(super) words: String,
    /// The first code of the step.
    pub(super) code: Option<Block<'d>>,
    /// The only link in its text.
    pub(super) link: Option<&'d str>,
    /// Whether its text is only a title.
    pub(super) is_bare: bool,
}

/// Reads a step: its title, its first paragraph if `has_words` or if it has no title, and its first
/// code, in the order of the page. A title without code gets its first instruction.
pub(super) fn step<'d>(title: &str, children: &'d [Node], has_words: bool) -> Step<'d> {
    let mut step = Step {
        words: title.to_owned(),
        ..Step::default()
    };
    let mut wants_words = has_words || title.is_empty();
    // The words of the step before a sentence that announces code, and that code.
    let mut announced: Option<(String, &'d str)> = None;
    let mut rest = children;
    while let Some((node, after)) = rest.split_first() {
        rest = after;
        let line = match node {
            Node::Paragraph(line) if wants_words => &line[..],
            // A tight item holds its text without a paragraph.
            node if wants_words && !node.is_block() => {
                let more = rest.iter().take_while(|node| !node.is_block()).count();
                let line = &children[children.len() - rest.len() - 1..][..=more];
                rest = &rest[more..];
                line
            }
            _ => continue,
        };
        let said = words(line);
        let text = whole(&said, rest.first(), !title.is_empty());
        if !text.is_empty() {
            step.link = only_link(line);
        }
        if let (Some(Node::Fence { code, .. }), true) = (rest.first(), text.ends_with(':')) {
            let mut before = step.words.clone();
            let sentences = sentences(&text);
            let kept = sentences.split_last().map_or(&[][..], |(_, kept)| kept);
            add(&mut before, &kept.join(" "));
            announced = Some((before, code.trim_matches('\n')));
        }
        // What follows a list that is left out does not begin the step.
        wants_words = !add(&mut step.words, &text) && !said.ends_with(':');
    }
    if !step.words.is_empty() {
        // The first code of an installation may install a tool that is needed for it.
        let installs = has(&normal(title), &["install"]);
        let mut verdict = Verdict::default();
        verdict.heading(title);
        let is_install = |code: &Block<'_>| code.kind() == Kind::Install;
        let is_sample =
            |code: &Block<'_>| !code.is_output() && !code.is_address() && code.is_whole();
        let own = installs.then(|| code_of(children, &mut { verdict }, &is_install));
        let first = || code_of(children, &mut { verdict }, &is_sample);
        step.code = own.flatten().or_else(first);
    }
    // "You should see:" announces an output, which is not the code of the step.
    if let (Some((before, code)), Some(own)) = (announced, &step.code)
        && own.code != code
        && !before.is_empty()
    {
        step.words = before;
    }
    if !title.is_empty()
        && !has_words
        && step.code.is_none()
        && let Some((line, text)) = first_instruction(children)
    {
        step.link = only_link(line);
        add(&mut step.words, &text);
    }
    step.is_bare = step.words == title && step.code.is_none() && step.link.is_none();
    step
}

/// Returns a text without a last sentence that announces what a step does not repeat. A short list
/// that it announces is added to it, or the names of its items; without a place for them, a step that
/// has a title needs no sentence about them.
fn whole(text: &str, after: Option<&Node>, has_title: bool) -> String {
    let all = sentences(text);
    if let Some((last, kept)) = all.split_last()
        && wrong::is_wrong(last)
    {
        return kept.join(" ");
    }
    if !text.ends_with(':') {
        return text.to_owned();
    }
    match after {
        Some(Node::Fence { .. } | Node::Element(_)) => return text.to_owned(),
        Some(Node::List { items, .. }) => {
            let items: Vec<String> = items
                .iter()
                .map(|item| {
                    words(&item.children)
                        .trim_end_matches(['.', ';', ','])
                        .to_owned()
                })
                .collect();
            let names: Vec<&str> = items.iter().map(|item| name_of(item)).collect();
            for list in [items.join("; "), names.join("; ")] {
                if text.chars().count() + list.chars().count() < STEP_MAX {
                    return format!("{text} {list}");
                }
            }
            if has_title && all.len() == 1 {
                return String::new();
            }
        }
        _ => {}
    }
    let kept = all.split_last().map_or(&[][..], |(_, kept)| kept);
    match kept.is_empty() {
        // The only sentence still says what the step is about.
        true => text.to_owned(),
        false => kept.join(" "),
    }
}

/// Returns the name of an item of a list: `Host` of `Host: the address of the machine`.
fn name_of(item: &str) -> &str {
    let ends = [": ", " – ", " — ", " - "].iter();
    let end = ends.filter_map(|end| item.find(end)).min();
    &item[..end.unwrap_or(item.len())]
}

/// Returns the target of the link in a line, if there is one link.
fn only_link(line: &[Node]) -> Option<&str> {
    let mut links = line.iter().filter_map(|node| match node {
        Node::Link { href, .. } => Some(&**href),
        _ => None,
    });
    let first = links.next()?;
    links.next().is_none().then_some(first)
}

/// Returns the first sentence of a section that is an instruction, and its line.
fn first_instruction(nodes: &[Node]) -> Option<(&[Node], String)> {
    nodes.iter().find_map(|node| {
        let line = match node {
            Node::Paragraph(line) => &line[..],
            Node::List { items, .. } => {
                let item = &items.first()?.children;
                match item.first()? {
                    Node::Paragraph(line) => &line[..],
                    _ => {
                        let inline = item.iter().take_while(|node| !node.is_block()).count();
                        &item[..inline]
                    }
                }
            }
            _ => return None,
        };
        let text = words(line);
        let found = sentences(&text)
            .into_iter()
            .find(|one| is_instruction(one) && !one.ends_with(':'))?;
        Some((line, found.to_owned()))
    })
}

/// Returns whether a heading only begins the end of a page.
pub(super) fn is_appendix(words: &str) -> bool {
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

/// Returns the first short code that `is_wanted` accepts, at any depth; not one that the page shows
/// as wrong.
fn code_of<'d>(
    nodes: &'d [Node],
    verdict: &mut Verdict,
    is_wanted: &dyn Fn(&Block<'_>) -> bool,
) -> Option<Block<'d>> {
    nodes.iter().find_map(|node| match node {
        Node::Heading { children, .. } => {
            verdict.heading(&words(children));
            None
        }
        Node::Paragraph(line) => {
            verdict.line(&words(line));
            None
        }
        Node::Element(element) if element.text("title").is_some_and(wrong::is_wrong) => None,
        // Steps inside a step are a procedure of their own.
        Node::Element(element) if *element.name == *"Steps" => None,
        Node::Fence { info, code } => {
            let block = Block::of(info, code, "");
            let is_short = code.lines().count() <= CODE_LINES_MAX && code.len() <= CODE_BYTES_MAX;
            let is_right = is_wanted(&block) && !verdict.is_wrong(&block);
            (is_short && !code.trim().is_empty() && is_right).then_some(block)
        }
        node => {
            let mut found = None;
            node.each_children(&mut |children| {
                found = found
                    .take()
                    .or_else(|| code_of(children, verdict, is_wanted));
            });
            found
        }
    })
}

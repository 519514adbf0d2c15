//! A step of a procedure: what to do, and its code.

use crate::mdx::Node;

use super::code::{Block, Kind};
use super::role::{has, normal};
use super::sample::{Sample, Samples, announces_output};
use super::text::{fit, plain, sentences, words};
use super::words::is_instruction;
use super::wrong;

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
    /// The code of the page for it; `sample::choose` chooses from these.
    pub(super) samples: Vec<Sample<'d>>,
    /// The code that is written.
    pub(super) code: Vec<Block<'d>>,
    /// Whether the page has more code for it.
    pub(super) has_more: bool,
    /// The only link in its text.
    pub(super) link: Option<&'d str>,
    /// Whether its text is only a title.
    pub(super) is_bare: bool,
}

/// Reads a step: its title, its first paragraph if `has_words` or if it has no title, and its code, in
/// the order of the page. A title without code gets the titles of the `<Steps>` below it, else its
/// first instruction.
pub(super) fn step<'d>(title: &str, children: &'d [Node], has_words: bool) -> Step<'d> {
    let mut step = Step {
        words: title.to_owned(),
        ..Step::default()
    };
    let mut wants_words = has_words || title.is_empty();
    // The words of the step before a sentence that announces code, and that code.
    let mut announced: Option<(String, &'d str, bool)> = None;
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
            announced = Some((before, code.trim_matches('\n'), announces_output(&text)));
        }
        // What follows a list that is left out does not begin the step.
        wants_words = !add(&mut step.words, &text) && !said.ends_with(':');
    }
    if !step.words.is_empty() {
        // The first code of an installation may install a tool that is needed for it.
        let installs = has(&normal(title), &["install"]);
        // A procedure below a numbered heading is the content of that step.
        let mut samples = Samples::of(title, children, !has_words && !title.is_empty());
        let is_install = |sample: &Sample<'_>| {
            let mut codes = sample.iter().flatten();
            codes.any(|code| code.kind() == Kind::Install)
        };
        if let Some(own) = samples.iter().position(is_install).filter(|_| installs) {
            samples.drain(..own);
        }
        step.samples = samples;
    }
    // "You should see:" announces an output, which is not the code of the step.
    if let Some((before, code, is_output)) = announced
        && (is_output || !step.samples.is_empty())
        && !before.is_empty()
        && !step
            .samples
            .iter()
            .flatten()
            .flatten()
            .any(|own| own.code == code)
    {
        step.words = before;
    }
    if !title.is_empty() && !has_words {
        let inner = inner_titles(children);
        if !inner.is_empty() && step.words.chars().count() + inner.chars().count() < STEP_MAX {
            add(&mut step.words, &inner);
        } else if step.samples.is_empty()
            && let Some((line, text)) = first_instruction(children)
        {
            step.link = only_link(line);
            add(&mut step.words, &text);
        }
    }
    step.is_bare = step.words == title && step.samples.is_empty() && step.link.is_none();
    step
}

/// Returns the titles of the `<Steps>` of a section: `Open the console; Copy the key`.
fn inner_titles(nodes: &[Node]) -> String {
    let steps = nodes.iter().filter_map(|node| match node {
        Node::Element(element) if *element.name == *"Steps" => Some(&element.children),
        _ => None,
    });
    let titles = steps.flatten().filter_map(|step| match step {
        Node::Element(step) if *step.name == *"Step" => step.text("title").map(plain),
        _ => None,
    });
    titles.collect::<Vec<_>>().join("; ")
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

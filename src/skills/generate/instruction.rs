//! Sentences of pages that instruct agents against their users.
//!
//! A skill does not repeat them (see `text`), and their author learns about them.

use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::mdx::{Node, plain};
use crate::skills::unsafe_text::says_instruction;

use super::outline::Outline;

/// Reports the first such sentence of each page that a generated skill may use.
#[must_use]
pub fn instructions(docs: &Docs) -> Vec<Diagnostic> {
    let outline = Outline::of(docs);
    let contents = outline.contents(docs, |_| true);
    let found = contents.filter_map(|(_, page, nodes)| {
        let what = first(nodes)?;
        let written = docs.pages.get(&page.slug)?;
        let message = format!("the generated skill leaves out a sentence that looks like {what}");
        Some(Diagnostic::warning(
            "skill-unsafe",
            written.path.as_str(),
            message,
        ))
    });
    found.collect()
}

/// Returns what the first such sentence instructs to do. Code is no sentence.
fn first(nodes: &[Node]) -> Option<&'static str> {
    nodes.iter().find_map(|node| match node {
        Node::Paragraph(line) | Node::Heading { children: line, .. } => {
            says_instruction(&plain(line))
        }
        Node::Text(text) => says_instruction(text),
        Node::Fence { .. } => None,
        node => {
            let mut found = None;
            node.each_children(&mut |children| found = found.or_else(|| first(children)));
            found
        }
    })
}

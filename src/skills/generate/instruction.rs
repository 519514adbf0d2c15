//! Sentences of pages that instruct agents against their users.
//!
//! A skill does not repeat them (see `text`), and their author learns about them.

use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::mdx::{Node, plain};
use crate::skills::unsafe_text::says_instruction;

use super::outline::{Outline, is_callout};
use super::role::Role;

/// Reports the first such sentence of each page that a generated skill would use: in a description, in a
/// callout, on the first page and on pages about the start. Other pages may describe such texts.
pub(super) fn instructions(docs: &Docs, outline: &Outline) -> Vec<Diagnostic> {
    let home = outline.home(docs);
    let contents = outline.contents(docs, |_| true);
    let found = contents.filter_map(|(entry, page, nodes)| {
        let is_whole = entry.role <= Role::Access || Some(entry.page) == home;
        let description = page.description.as_deref().unwrap_or_default();
        let what = says_instruction(description).or_else(|| first(nodes, is_whole))?;
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

/// Returns what the first such sentence instructs to do; without `is_whole`, only callouts are read. Code
/// is no sentence.
fn first(nodes: &[Node], is_whole: bool) -> Option<&'static str> {
    nodes.iter().find_map(|node| match node {
        Node::Paragraph(line) | Node::Heading { children: line, .. } if is_whole => {
            says_instruction(&plain(line))
        }
        Node::Text(text) if is_whole => says_instruction(text),
        Node::Fence { .. } => None,
        node => {
            let is_whole = is_whole || is_callout(node);
            let mut found = None;
            node.each_children(&mut |children| {
                found = found.or_else(|| first(children, is_whole));
            });
            found
        }
    })
}

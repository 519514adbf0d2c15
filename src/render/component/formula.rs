//! `Latex`: a formula in a line of text.

use super::Component;
use crate::mdx::plain;

pub(super) const LATEX: Component = Component {
    names: &["Latex"],
    html: |writer, formula| writer.formula(&plain(&formula.children), false),
    markdown_inline: |_, formula, out| {
        out.push_str(&format!("${}$", plain(&formula.children)));
    },
    ..Component::DEFAULT
};

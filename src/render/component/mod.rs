//! Components: the HTML and the Markdown of each, one file for each component.
//!
//! [`COMPONENTS`] is the table by name. The reader of pages also needs the names of components, and
//! which of them are blocks: see [`mdx::component`](crate::mdx::component).
//!
//! In HTML, parts that open and close are `<details>` elements, and alternatives are sections that
//! a script turns into tabs. So everything can be read without scripts. Colours and sizes that a
//! page sets become classes of the page's own stylesheet, because its policy forbids styles in
//! markup.
//!
//! In Markdown:
//!
//! | component | Markdown |
//! |---|---|
//! | callouts | a block quote that starts with the title in bold |
//! | Card, Tile | `- [title](link): text` |
//! | Tabs, `CodeGroup` | each title in bold above its content |
//! | Steps | an ordered list |
//! | Accordion, Expandable, Update | the title in bold, then the content |
//! | `ParamField`, `ResponseField` | `- name type required: text` |
//! | Frame | the content, with the caption below |
//! | Tooltip | its text, with the tip in parentheses |
//! | Columns, Panel, layout | the content |
//! | icons, Visibility for humans | nothing |
//!
//! Sources: WAI-ARIA Authoring Practices 1.2 (disclosure, tabs, tooltip).

mod accordion;
mod badge;
mod callout;
mod card;
mod code_group;
mod color;
mod columns;
mod diagram;
mod field;
mod formula;
mod frame;
mod icon;
pub(super) mod panel;
mod prompt;
mod snippet;
mod steps;
mod tabs;
mod tooltip;
mod tree;
mod update;
mod visibility;

pub(super) use tabs::views;

use super::{html, markdown};
use crate::mdx::Element;

/// How one component is written.
pub(super) struct Component {
    /// The names under which pages use it.
    names: &'static [&'static str],
    /// Writes it as HTML.
    pub(super) html: fn(&mut html::Writer<'_>, &Element),
    /// Writes it as blocks of Markdown.
    pub(super) markdown: fn(&markdown::Writer<'_>, &Element, &mut String),
    /// Writes it as part of a line of Markdown.
    pub(super) markdown_inline: fn(&markdown::Writer<'_>, &Element, &mut String),
}

/// All components.
const COMPONENTS: [&Component; 34] = [
    &accordion::ACCORDION,
    &accordion::ACCORDION_GROUP,
    &accordion::EXPANDABLE,
    &badge::BADGE,
    &callout::CALLOUT,
    &card::CARD,
    &card::TILE,
    &code_group::CODE_BLOCK,
    &code_group::CODE_GROUP,
    &code_group::REQUEST_EXAMPLE,
    &code_group::RESPONSE_EXAMPLE,
    &color::COLOR,
    &color::COLOR_ITEM,
    &color::COLOR_ROW,
    &columns::COLUMN,
    &columns::COLUMNS,
    &diagram::MERMAID,
    &field::FIELD,
    &formula::LATEX,
    &frame::FRAME,
    &icon::ICON,
    &panel::PANEL,
    &prompt::PROMPT,
    &snippet::SNIPPET,
    &steps::STEP,
    &steps::STEPS,
    &tabs::TAB,
    &tabs::TABS,
    &tabs::VIEW,
    &tooltip::TOOLTIP,
    &tree::TREE,
    &tree::TREE_ITEM,
    &update::UPDATE,
    &visibility::VISIBILITY,
];

/// Finds a component by its name.
pub(super) fn find(name: &str) -> Option<&'static Component> {
    let mut all = COMPONENTS.into_iter();
    all.find(|component| component.names.contains(&name))
}

// === impl Component ===

impl Component {
    /// The default of a component: it shows its content, in Markdown below its title.
    const DEFAULT: Self = Self {
        names: &[],
        html: |writer, element| writer.nodes(&element.children),
        markdown: |writer, element, out| {
            markdown::block(&writer.bold_label(element, "title"), out);
            writer.blocks(&element.children, out);
        },
        markdown_inline: |writer, element, out| {
            // Spaces around the text inside are part of the sentence.
            let children = element.children.iter();
            children.for_each(|child| writer.inline(child, out));
        },
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mdx::component::components;

    #[test]
    fn every_component_that_pages_may_use_is_written() {
        for name in components() {
            assert!(find(name).is_some(), "{name}");
        }
        let written = COMPONENTS.into_iter().flat_map(|component| component.names);
        for name in written.filter(|name| name.starts_with(|c: char| c.is_uppercase())) {
            assert!(components().any(|known| known == *name), "{name}");
        }
    }
}

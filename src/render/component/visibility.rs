//! `Visibility`: content for people only, or for agents only.

use super::Component;

pub(super) const VISIBILITY: Component = Component {
    names: &["Visibility"],
    html: |writer, element| {
        if element.text("for") != Some("agents") {
            writer.inside(&element.children);
        }
    },
    markdown: |writer, element, out| {
        if element.text("for") != Some("humans") {
            (Component::DEFAULT.markdown)(writer, element, out);
        }
    },
    markdown_inline: |writer, element, out| {
        if element.text("for") != Some("humans") {
            (Component::DEFAULT.markdown_inline)(writer, element, out);
        }
    },
};

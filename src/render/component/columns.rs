//! `Columns`, `CardGroup` and `Column`: content side by side.

use super::Component;
use crate::mdx::Element;
use crate::render::html;

pub(super) const COLUMNS: Component = Component {
    names: &["CardGroup", "Columns"],
    html,
    ..Component::DEFAULT
};
pub(super) const COLUMN: Component = Component {
    names: &["Column"],
    html: |writer, column| writer.wrap("<div class=column>", &column.children, "</div>\n"),
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, columns: &Element) {
    let open = match columns.text("cols").and_then(|n| n.parse().ok()) {
        Some(1_u8) => "<div class=\"cards cols-1\">\n",
        Some(3) => "<div class=\"cards cols-3\">\n",
        Some(4..) => "<div class=\"cards cols-4\">\n",
        _ => "<div class=\"cards cols-2\">\n",
    };
    writer.wrap(open, &columns.children, "</div>\n");
}

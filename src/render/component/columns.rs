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
    html: |writer, column| {
        writer.open("<div", "column", column);
        writer.wrap(">", &column.children, "</div>\n");
    },
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, columns: &Element) {
    let class = match columns.text("cols").and_then(|n| n.parse().ok()) {
        Some(1_u8) => "cards cols-1",
        Some(3) => "cards cols-3",
        Some(4..) => "cards cols-4",
        _ => "cards cols-2",
    };
    writer.open("<div", class, columns);
    writer.wrap(">\n", &columns.children, "</div>\n");
}

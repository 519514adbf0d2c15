//! `Panel`: content beside the article.

use super::Component;

/// The classes of a panel that is beside the text.
const BESIDE: &str = "panel beside";
/// The beginning of such a panel in the HTML of an article.
pub(in crate::render) const BEGINNING: &str = "<aside class=\"panel beside";

pub(super) const PANEL: Component = Component {
    names: &["Panel"],
    html: |writer, panel| {
        // The layout puts a panel beside the text only if it is a part of the page itself.
        let class = match writer.is_outermost() {
            true => BESIDE,
            false => "panel",
        };
        writer.open("<aside", class, panel);
        writer.wrap(">", &panel.children, "</aside>\n");
    },
    ..Component::DEFAULT
};

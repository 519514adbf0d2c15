//! `Panel`: content beside the article.

use super::Component;

pub(super) const PANEL: Component = Component {
    names: &["Panel"],
    html: |writer, panel| {
        writer.open("<aside", "panel", panel);
        writer.wrap(">", &panel.children, "</aside>\n");
    },
    ..Component::DEFAULT
};

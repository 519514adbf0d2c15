//! `Panel`: content beside the article.

use super::Component;

pub(super) const PANEL: Component = Component {
    names: &["Panel"],
    html: |writer, panel| writer.wrap("<aside class=panel>", &panel.children, "</aside>\n"),
    ..Component::DEFAULT
};

//! `Mermaid`: a diagram; see [`html::diagram`](crate::render::html::diagram).

use super::Component;
use crate::mdx::{Element, plain};
use crate::render::markdown::fence;

pub(super) const MERMAID: Component = Component {
    names: &["Mermaid"],
    html: |writer, diagram| {
        let title = diagram.text("title").unwrap_or_default();
        writer.diagram(&source(diagram), title);
    },
    markdown: |_, diagram, out| fence("mermaid", &source(diagram), out),
    ..Component::DEFAULT
};

fn source(diagram: &Element) -> String {
    let chart = diagram.text("chart").map(str::to_owned);
    chart.unwrap_or_else(|| plain(&diagram.children))
}

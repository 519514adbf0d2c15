//! `Update`: an entry of a changelog.

use super::Component;
use crate::mdx::{Element, Node, Value, in_line, plain};
use crate::render::html::{self, fragment};
use crate::render::markdown::{self, block, escaped};

pub(super) const UPDATE: Component = Component {
    names: &["Update"],
    html,
    markdown,
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, update: &Element) {
    let label = update.words("label").unwrap_or_default();
    let anchor = update.anchor.as_deref();
    writer.open("<section", "update", update);
    writer.id(anchor);
    writer.out.markup("><p class=update-label>");
    writer.aliases(anchor);
    writer.out.markup("<a");
    if let Some(anchor) = anchor {
        writer.out.attribute("href", &fragment(&anchor.id));
    }
    writer.out.markup(">");
    writer.label_in_link(update, "label");
    writer.out.markup("</a></p>");
    writer.listed(2, anchor, &label);
    let tags = tags_of(update);
    if !tags.is_empty() {
        writer.out.markup("<p class=update-tags>");
        for tag in tags {
            writer.wrap("<span class=badge>", &in_line(&tag), "</span> ");
        }
        writer.out.markup("</p>");
    }
    writer.description(update, "description", "update-description");
    writer.wrap("<div>", &update.children, "</div></section>\n");
}

/// Returns the tags, which are texts or elements.
fn tags_of(update: &Element) -> Vec<Vec<Node>> {
    let is_shown = |tag: &Vec<Node>| !plain(tag).trim().is_empty();
    let tags: Vec<Vec<Node>> = match update.get("tags") {
        Some(Value::List(values)) => values
            .iter()
            .filter_map(|value| match value {
                Value::Nodes(nodes) => Some(nodes.clone()),
                value => Some(vec![Node::Text(value.as_text()?.to_owned())]),
            })
            .collect(),
        Some(Value::Nodes(nodes)) => nodes.iter().map(|node| vec![node.clone()]).collect(),
        Some(Value::Text(text)) => vec![vec![Node::Text(text.clone())]],
        _ => Vec::new(),
    };
    tags.into_iter().filter(is_shown).collect()
}

fn markdown(writer: &markdown::Writer<'_>, update: &Element, out: &mut String) {
    let mut label = writer.bold_label(update, "label");
    let tags = tags_of(update);
    if !tags.is_empty() {
        let tags: Vec<_> = tags.iter().map(|tag| escaped(plain(tag).trim())).collect();
        label += &format!(" ({})", tags.join(", "));
    }
    block(&label, out);
    block(&writer.description(update, "description"), out);
    writer.blocks(&update.children, out);
}

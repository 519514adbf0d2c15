//! `Update`: an entry of a changelog.

use super::Component;
use crate::mdx::{Element, Value};
use crate::render::html::{self, fragment};
use crate::render::markdown::{self, block, escaped};

pub(super) const UPDATE: Component = Component {
    names: &["Update"],
    html,
    markdown,
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, update: &Element) {
    let label = update.text("label").unwrap_or_default();
    let anchor = update.anchor.as_deref();
    writer.out.markup("<section class=update");
    writer.id(anchor);
    writer.out.markup("><p class=update-label>");
    writer.aliases(anchor);
    writer.out.markup("<a");
    if let Some(anchor) = anchor {
        writer.out.attribute("href", &fragment(&anchor.id));
    }
    writer.out.markup(">").text(label).markup("</a></p>");
    writer.listed(2, anchor, label);
    if let Some(Value::List(tags)) = update.get("tags") {
        writer.out.markup("<p class=update-tags>");
        for tag in tags.iter().filter_map(Value::as_text) {
            writer
                .out
                .markup("<span class=badge>")
                .text(tag)
                .markup("</span> ");
        }
        writer.out.markup("</p>");
    }
    if let Some(description) = update.text("description") {
        writer.out.markup("<p class=update-description>");
        writer.prose(description);
        writer.out.markup("</p>");
    }
    writer.wrap("<div>", &update.children, "</div></section>\n");
}

fn markdown(writer: &markdown::Writer<'_>, update: &Element, out: &mut String) {
    let mut label = markdown::bold(update.text("label"));
    if let Some(Value::List(tags)) = update.get("tags") {
        let tags: Vec<_> = tags
            .iter()
            .filter_map(Value::as_text)
            .map(escaped)
            .collect();
        label += &format!(" ({})", tags.join(", "));
    }
    block(&label, out);
    writer.prose_block(update.text("description"), out);
    writer.blocks(&update.children, out);
}

//! `Update`: an entry of a changelog.

use super::Component;
use crate::mdx::{Element, Value};
use crate::render::html::{self, slug};
use crate::render::markdown::{self, block, escaped};

pub(super) const UPDATE: Component = Component {
    names: &["Update"],
    html,
    markdown,
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, update: &Element) {
    let label = update.text("label").unwrap_or_default();
    let id = writer.anchor(&update.text("id").map_or_else(|| slug(label), slug));
    writer
        .out
        .markup("<section class=update")
        .attribute("id", &id)
        .markup("><p class=update-label><a")
        .attribute("href", &format!("#{id}"))
        .markup(">")
        .text(label)
        .markup("</a></p>");
    writer.listed(2, &id, label);
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

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
    writer.description(update, "description", "update-description");
    writer.wrap("<div>", &update.children, "</div></section>\n");
}

fn markdown(writer: &markdown::Writer<'_>, update: &Element, out: &mut String) {
    let mut label = writer.bold_label(update, "label");
    if let Some(Value::List(tags)) = update.get("tags") {
        let tags: Vec<_> = tags
            .iter()
            .filter_map(Value::as_text)
            .map(escaped)
            .collect();
        label += &format!(" ({})", tags.join(", "));
    }
    block(&label, out);
    block(&writer.description(update, "description"), out);
    writer.blocks(&update.children, out);
}

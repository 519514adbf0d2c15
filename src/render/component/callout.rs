//! `Callout` and its kinds: `Note`, `Warning`, `Info`, `Tip`, `Check`, `Danger`.

use super::Component;
use crate::mdx::Element;
use crate::mdx::component::callout;
use crate::render::html;
use crate::render::markdown::{self, block, escaped, prefixed};

pub(super) const CALLOUT: Component = Component {
    // The reader of pages does not know the names in lower case, and warns about them.
    names: &[
        "Callout", "Note", "Warning", "Info", "Tip", "Check", "Danger", "Error", "note", "warning",
        "info", "tip", "check", "success", "danger", "error",
    ],
    html,
    markdown,
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, element: &Element) {
    let Some(class) = callout(&element.name, element.text("type")) else {
        return writer.nodes(&element.children);
    };
    // A callout without a kind has no default title; its icon shows what it is.
    let has_kind = *element.name != *"Callout" || element.text("type").is_some();
    let default = match has_kind {
        true => writer.messages.article.callout(class),
        false => "",
    };
    let has_title = match element.words("title") {
        Some(title) => !title.is_empty(),
        None => !default.is_empty(),
    };
    let own = element
        .text("color")
        .and_then(|color| writer.class_with("--tone", color));
    let class = match own {
        Some(own) => format!("callout {class} {own}"),
        None => format!("callout {class}"),
    };
    let class = writer.classes(element, Some(&class)).unwrap_or(class);
    writer
        .out
        .markup("<aside")
        .attribute("class", &class)
        .markup(" role=note>");
    if !has_title {
        // The icon stands beside the text.
        writer.icon_of(element, "icon");
    } else {
        writer.out.markup("<strong class=callout-title>");
        writer.icon_of(element, "icon");
        writer.label(element, "title", default);
        writer.out.markup("</strong>");
    }
    writer.wrap("<div>", &element.children, "</div></aside>\n");
}

fn markdown(writer: &markdown::Writer<'_>, element: &Element, out: &mut String) {
    let Some(class) = callout(&element.name, element.text("type")) else {
        return (Component::DEFAULT.markdown)(writer, element, out);
    };
    let default = writer.messages.article.callout(class);
    let title = element.words("title").filter(|title| !title.is_empty());
    let head = format!("**{}:**", escaped(title.as_deref().unwrap_or(default)));
    let text = writer.after(&head, " ", &element.children);
    block(&prefixed(&text, "> ", "> "), out);
}

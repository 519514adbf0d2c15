//! `Accordion`, `Expandable` and `AccordionGroup`: content that a reader opens.

use super::Component;
use crate::mdx::Element;
use crate::render::html;
use crate::render::markdown;

pub(super) const ACCORDION: Component = Component {
    names: &["Accordion"],
    html: |writer, element| html(writer, element, "accordion"),
    markdown,
    ..Component::DEFAULT
};
pub(super) const EXPANDABLE: Component = Component {
    names: &["Expandable"],
    html: |writer, element| html(writer, element, "accordion expandable"),
    ..Component::DEFAULT
};
pub(super) const ACCORDION_GROUP: Component = Component {
    names: &["AccordionGroup"],
    html: |writer, group| {
        writer.open("<div", "accordions", group);
        writer.wrap(">\n", &group.children, "</div>\n");
    },
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, accordion: &Element, class: &'static str) {
    let anchor = accordion.anchor.as_deref();
    writer.open("<details", class, accordion);
    writer.id(anchor);
    if accordion.has("defaultOpen") {
        writer.out.markup(" open");
    }
    writer.out.markup("><summary>");
    writer.aliases(anchor);
    writer.icon_of(accordion, "icon");
    writer.label(accordion, "title", writer.messages.article.details);
    if accordion.words("description").is_some() {
        writer.out.markup("<small>");
        writer.label(accordion, "description", "");
        writer.out.markup("</small>");
    }
    writer.wrap("</summary><div>", &accordion.children, "</div></details>\n");
}

/// Writes the title with the description beside it, then the content.
fn markdown(writer: &markdown::Writer<'_>, accordion: &Element, out: &mut String) {
    let title = writer.bold_label(accordion, "title");
    let description = writer.description(accordion, "description");
    markdown::block(format!("{title} {description}").trim(), out);
    writer.blocks(&accordion.children, out);
}

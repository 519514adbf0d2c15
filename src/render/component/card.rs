//! `Card`, and `Tile`, a card that starts with its picture.

use super::Component;
use crate::mdx::{Element, Node, Value, in_line, plain};
use crate::render::html;
use crate::render::markdown::{self, block, escaped, prefixed};

pub(super) const CARD: Component = Component {
    names: &["Card"],
    html: card_html,
    markdown,
    markdown_inline: markdown_title,
};
pub(super) const TILE: Component = Component {
    names: &["Tile"],
    html: tile_html,
    markdown,
    markdown_inline: markdown_title,
};

fn card_html(writer: &mut html::Writer<'_>, card: &Element) {
    let is_disabled = card.has("disabled");
    let href = card.text("href").filter(|_| !is_disabled);
    let mut class = "card".to_owned();
    for (prop, name) in [("horizontal", " horizontal"), ("disabled", " disabled")] {
        class += if card.has(prop) { name } else { "" };
    }
    let is_arrow = card.has("arrow")
        || card.get("arrow").is_none() && href.is_some_and(|href| href.contains("://"));
    class += if is_arrow && href.is_some() {
        " arrow"
    } else {
        ""
    };
    let class = writer.classes(card, Some(&class)).unwrap_or(class);
    writer.out.markup("<div").attribute("class", &class);
    writer.out.markup(if is_disabled {
        " aria-disabled=true>"
    } else {
        ">"
    });
    match card.get("img") {
        Some(Value::Text(src)) => writer.image(src, "", &[("class", "card-image")]),
        Some(Value::Nodes(nodes)) => html_picture(writer, nodes),
        _ => {}
    }
    html_icon(writer, card);
    html_title(writer, card, href);
    writer.description(card, "description", "card-description");
    writer.wrap("<div>", &card.children, "</div>");
    if let Some(action) = card.words("cta") {
        // The picture is hidden from screen readers, because the title is the same link.
        writer
            .out
            .markup("<p class=card-action aria-hidden=true>")
            .text(&action)
            .markup(" →</p>");
    }
    writer.out.markup("</div>\n");
}

fn tile_html(writer: &mut html::Writer<'_>, tile: &Element) {
    writer.open("<div", "card tile", tile);
    writer.wrap("><div class=tile-image>", &tile.children, "</div>");
    html_title(writer, tile, tile.text("href"));
    writer.description(tile, "description", "card-description");
    writer.out.markup("</div>\n");
}

/// Writes the picture of a card that is an element.
fn html_picture(writer: &mut html::Writer<'_>, nodes: &[Node]) {
    let image = image_in(nodes);
    let src = image.and_then(|image| image.text("src"));
    match (image, src) {
        (Some(image), Some(src)) => {
            let alt = image.text("alt").unwrap_or_default();
            writer.image(src, alt, &[("class", "card-image")]);
        }
        _ => writer.inside(nodes),
    }
}

/// Finds an image that is alone.
fn image_in(nodes: &[Node]) -> Option<&Element> {
    match nodes {
        [Node::Element(image)] if &*image.name == "img" => Some(image),
        [Node::Paragraph(line)] => image_in(line),
        [Node::Element(outer)] if matches!(&*outer.name, "" | "div" | "span") => {
            image_in(&outer.children)
        }
        _ => None,
    }
}

fn html_icon(writer: &mut html::Writer<'_>, card: &Element) {
    if card.has("icon") {
        let mut icon = card.clone();
        // The `color` of a card is the colour of its icon.
        if let Some(color) = card.get("color") {
            icon.attributes.push(("iconColor".into(), color.clone()));
        }
        writer.icon_of(&icon, "icon");
    }
}

fn html_title(writer: &mut html::Writer<'_>, card: &Element, href: Option<&str>) {
    writer.out.markup("<p class=card-title>");
    match (href, card.get("title")) {
        (Some(href), Some(Value::Nodes(nodes))) => writer.link(href, &in_line(nodes)),
        (Some(href), _) => match card.words("title").filter(|title| !title.is_empty()) {
            Some(title) => writer.link(href, &[Node::Text(title.into_owned())]),
            // A title that failed.
            None if card.is_unevaluated("title") => {
                writer.link(href, &[Node::Text(href.to_owned())]);
            }
            None => {
                let words = plain(&card.children);
                let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
                let label = if words.is_empty() { href } else { &words };
                writer.link_named(href, label);
            }
        },
        (None, _) => writer.label(card, "title", ""),
    }
    writer.out.markup("</p>\n");
}

fn markdown(writer: &markdown::Writer<'_>, card: &Element, out: &mut String) {
    let mut head = String::new();
    markdown_title(writer, card, &mut head);
    let description = writer.description(card, "description");
    if !description.is_empty() {
        head = format!("{head}: {description}");
    }
    let between = if description.is_empty() { ": " } else { "\n\n" };
    let text = writer.after(&head, between, &card.children);
    block(&prefixed(&text, "- ", "  "), out);
}

/// Writes the title of a card, with the link of the card.
fn markdown_title(writer: &markdown::Writer<'_>, card: &Element, out: &mut String) {
    let href = card.text("href").filter(|_| !card.has("disabled"));
    let title = ["title", "cta"].map(|key| writer.label(card, key));
    let title = title.into_iter().find(|title| !title.is_empty());
    match (href, title) {
        (Some(href), title) => {
            let title = title.unwrap_or_else(|| escaped(href));
            writer.link(href, &title, out);
        }
        (None, Some(title)) => out.push_str(&format!("**{title}**")),
        (None, None) => {}
    }
}

//! `Color`: a palette, in rows, of colours with their values.

use super::Component;
use crate::mdx::{Element, Value};
use crate::render::html;
use crate::render::markdown::{self, block, code_span, escaped};

pub(super) const COLOR: Component = Component {
    names: &["Color"],
    html: |writer, palette| writer.wrap("<div class=colors>", &palette.children, "</div>\n"),
    ..Component::DEFAULT
};
pub(super) const COLOR_ROW: Component = Component {
    names: &["Color.Row"],
    html: row_html,
    ..Component::DEFAULT
};
pub(super) const COLOR_ITEM: Component = Component {
    names: &["Color.Item"],
    html: item_html,
    markdown: item_markdown,
    ..Component::DEFAULT
};

fn row_html(writer: &mut html::Writer<'_>, row: &Element) {
    if row.words("title").is_some() {
        writer.out.markup("<p class=color-title>");
        writer.label(row, "title", "");
        writer.out.markup("</p>");
    }
    writer.wrap("<div class=color-row>", &row.children, "</div>\n");
}

/// Writes a colour with its swatch; a colour may have one value for light and one for dark.
fn item_html(writer: &mut html::Writer<'_>, item: &Element) {
    let values: Vec<&str> = match item.get("value") {
        Some(Value::Object(modes)) => modes
            .iter()
            .filter_map(|(_, value)| value.as_text())
            .collect(),
        value => value.and_then(Value::as_text).into_iter().collect(),
    };
    writer.out.markup("<div class=color>");
    for value in &values {
        if let Some(class) = writer.class_with("background", value) {
            let class = format!("swatch {class}");
            writer
                .out
                .markup("<span")
                .attribute("class", &class)
                .markup("></span>");
        }
    }
    writer.label(item, "name", "");
    for value in &values {
        writer.out.markup(" <code>").text(value).markup("</code>");
    }
    writer.out.markup("</div>\n");
}

fn item_markdown(_: &markdown::Writer<'_>, item: &Element, out: &mut String) {
    let mut values: Vec<String> = Vec::new();
    let mut add = |value: &str, mode: &str| {
        let mut text = String::new();
        code_span(value, &mut text);
        values.push(text + mode);
    };
    match item.get("value") {
        Some(Value::Object(modes)) => {
            for (mode, value) in modes {
                add(value.as_text().unwrap_or_default(), &format!(" ({mode})"));
            }
        }
        value => add(value.and_then(Value::as_text).unwrap_or_default(), ""),
    }
    let name = escaped(&item.words("name").unwrap_or_default());
    block(&format!("- {name}: {}", values.join(", ")), out);
}

//! `ParamField` and `ResponseField`: a parameter or a field of an interface.

use super::Component;
use crate::mdx::component::parameter;
use crate::mdx::{Element, Value, plain};
use crate::render::html;
use crate::render::markdown::{self, block, code_span, escaped, prefixed};
use crate::render::messages;

pub(super) const FIELD: Component = Component {
    names: &["ParamField", "Param", "ResponseField", "Response"],
    html,
    markdown,
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, field: &Element) {
    let (place, name) = match parameter(field) {
        Some((place, name)) => (place, name.into()),
        None => ("", field.words("name").unwrap_or_default()),
    };
    let anchor = field.anchor.as_deref();
    writer.open("<div", "field", field);
    writer.id(anchor);
    writer.out.markup("><p class=field-head>");
    writer.aliases(anchor);
    html_labels(writer, field, "pre");
    writer.out.markup("<code>").text(&name).markup("</code>");
    html_labels(writer, field, "post");
    for text in [field.words("type").unwrap_or_default(), place.into()] {
        if !text.is_empty() {
            writer
                .out
                .markup(" <span class=badge>")
                .text(&text)
                .markup("</span>");
        }
    }
    let messages = &writer.messages.article;
    if field.has("required") {
        writer.out.markup(" <span class=\"badge required\">");
        writer.out.text(messages.required).markup("</span>");
    }
    if field.has("deprecated") {
        writer.out.markup(" <span class=\"badge deprecated\">");
        writer.out.text(messages.deprecated).markup("</span>");
    }
    for (label, value) in values(field, messages) {
        writer
            .out
            .markup(" <span class=badge>")
            .text(label)
            .markup(": <bdi>")
            .text(&value)
            .markup("</bdi></span>");
    }
    writer.wrap("</p>", &field.children, "</div>\n");
}

/// Returns the labels before (`pre`) or after (`post`) the name of a field.
fn labels<'f>(field: &'f Element, key: &str) -> impl Iterator<Item = &'f str> {
    let labels = match field.get(key) {
        Some(Value::List(labels)) => &labels[..],
        _ => &[],
    };
    labels.iter().filter_map(Value::as_text)
}

/// Returns the default and the example of a field, each with its label.
fn values(
    field: &Element,
    messages: &messages::Article,
) -> impl Iterator<Item = (&'static str, String)> {
    let keys = [
        ("default", messages.default),
        ("placeholder", messages.example),
    ];
    let value = |(key, label)| Some((label, field.get(key).and_then(value_text)?));
    let values = keys.into_iter().filter_map(value);
    values.filter(|(_, value)| !value.is_empty())
}

/// Writes the labels before or after the name of a field.
fn html_labels(writer: &mut html::Writer<'_>, field: &Element, key: &str) {
    for label in labels(field, key) {
        writer
            .out
            .markup(" <span class=badge>")
            .text(label)
            .markup("</span> ");
    }
}

/// Returns a value as a page shows it.
fn value_text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Text(text) => text.clone(),
        Value::Boolean(flag) => flag.to_string(),
        Value::List(values) => {
            let values: Vec<_> = values.iter().filter_map(value_text).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Nodes(nodes) => plain(nodes),
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .filter_map(|(key, value)| Some(format!("{key}: {}", value_text(value)?)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Null => return None,
    })
}

fn markdown(writer: &markdown::Writer<'_>, field: &Element, out: &mut String) {
    let parameter = parameter(field);
    let name = match parameter {
        Some((_, name)) => name.into(),
        None => field.words("name").unwrap_or_default(),
    };
    let messages = &writer.messages.article;
    // The words of the HTML, in its order: agents and tools compare both.
    let mut head = String::new();
    labels(field, "pre").for_each(|label| push_word(&escaped(label), &mut head));
    let mut code = String::new();
    code_span(&name, &mut code);
    push_word(&code, &mut head);
    labels(field, "post").for_each(|label| push_word(&escaped(label), &mut head));
    // Empty brackets start no link, so `string[]` needs no escapes.
    let kind = escaped(&field.words("type").unwrap_or_default());
    push_word(&kind.replace("\\[\\]", "[]"), &mut head);
    push_word(parameter.map_or("", |(place, _)| place), &mut head);
    for (key, label) in [
        ("required", messages.required),
        ("deprecated", messages.deprecated),
    ] {
        push_word(if field.has(key) { label } else { "" }, &mut head);
    }
    for (label, value) in values(field, messages) {
        push_word(&format!("{label}: "), &mut head);
        code_span(&value, &mut head);
    }
    let text = writer.after(&head, ": ", &field.children);
    block(&prefixed(&text, "- ", "  "), out);
}

/// Appends a word after a space; nothing for an empty word.
fn push_word(word: &str, out: &mut String) {
    if !word.is_empty() && !out.is_empty() {
        out.push(' ');
    }
    out.push_str(word);
}

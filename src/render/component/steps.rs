//! `Steps` and `Step`: numbered instructions.

use super::Component;
use crate::mdx::{Element, Node, Value};
use crate::render::html;
use crate::render::markdown::{self, block, prefixed};

pub(super) const STEPS: Component = Component {
    names: &["Steps"],
    html: steps_html,
    markdown: steps_markdown,
    ..Component::DEFAULT
};
/// A step outside of `Steps`. In HTML it is a list with one item.
pub(super) const STEP: Component = Component {
    names: &["Step"],
    html: |writer, step| {
        writer.out.markup("<ol class=steps>\n");
        step_html(writer, step, None);
        writer.out.markup("</ol>\n");
    },
    ..Component::DEFAULT
};

fn steps_html(writer: &mut html::Writer<'_>, steps: &Element) {
    writer.open("<ol", "steps", steps);
    writer.out.markup(">\n");
    let level = title_level(steps);
    for child in &steps.children {
        match child {
            Node::Element(step) if *step.name == *"Step" => step_html(writer, step, level),
            // A list may only hold items.
            other => writer.wrap(
                "<li class=\"step plain\">",
                std::slice::from_ref(other),
                "</li>\n",
            ),
        }
    }
    writer.out.markup("</ol>\n");
}

fn step_html(writer: &mut html::Writer<'_>, step: &Element, level: Option<u8>) {
    let has_icon = step.has("icon");
    let class = if has_icon { "step drawn" } else { "step" };
    let number = step.number("stepNumber");
    let start = number.and_then(|number| {
        let before = i64::try_from(number).ok()? - 1;
        writer.class_with("counter-reset", &format!("step {before}"))
    });
    match start {
        Some(start) => {
            let own = writer.classes(step, Some(&format!("{class} {start}")));
            writer
                .out
                .markup("<li")
                .attribute("class", &own.unwrap_or_default());
        }
        None => writer.open("<li", class, step),
    }
    if let Some(number) = number {
        writer.out.attribute("value", &number.to_string());
    }
    writer.out.markup(">");
    if has_icon {
        writer.out.markup("<span class=step-icon>");
        writer.icon_of(step, "icon");
        writer.out.markup("</span>");
    }
    if let Some(title) = step.get("title").filter(|_| step.words("title").is_some()) {
        let anchor = step.anchor.as_deref();
        match title_level(step).or(level) {
            Some(level) => {
                writer.heading(level, anchor, &title_nodes(title));
            }
            None => {
                writer.out.markup("<p class=step-title");
                writer.id(anchor);
                writer.out.markup(">");
                writer.aliases(anchor);
                match title {
                    Value::Text(text) => writer.prose(text),
                    _ => writer.label(step, "title", ""),
                }
                writer.out.markup("</p>");
            }
        }
    }
    writer.wrap("<div>", &step.children, "</div></li>\n");
}

/// Returns a title as the content of a heading.
fn title_nodes(title: &Value) -> Vec<Node> {
    match title {
        Value::Nodes(nodes) => nodes.clone(),
        title => vec![Node::Text(title.as_text().unwrap_or_default().to_owned())],
    }
}

/// Returns the level of heading that a page asks for by `titleSize`.
fn title_level(element: &Element) -> Option<u8> {
    let size = element.text("titleSize")?.strip_prefix('h')?;
    size.parse().ok().filter(|level| (2..=6).contains(level))
}

fn steps_markdown(writer: &markdown::Writer<'_>, steps: &Element, out: &mut String) {
    let mut number = 0;
    for child in &steps.children {
        match child {
            Node::Element(step) if *step.name == *"Step" => {
                number = step.number("stepNumber").unwrap_or(number + 1);
                step_markdown(writer, number, step, out);
            }
            Node::Text(text) if text.trim().is_empty() => {}
            other => writer.block(other, out),
        }
    }
}

fn step_markdown(writer: &markdown::Writer<'_>, number: usize, step: &Element, out: &mut String) {
    let marker = format!("{number}. ");
    let mut text = String::new();
    match step.get("title") {
        Some(Value::Nodes(_)) => block(&writer.bold_label(step, "title"), &mut text),
        _ => {
            let title = writer.prose(step.text("title").unwrap_or_default());
            if !title.is_empty() {
                block(&format!("**{title}**"), &mut text);
            }
        }
    }
    writer.blocks(&step.children, &mut text);
    let indent = " ".repeat(marker.len());
    block(&prefixed(text.trim_end(), &marker, &indent), out);
}

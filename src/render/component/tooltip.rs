//! `Tooltip`: a term with an explanation that keyboard users and screen readers can reach.

use super::Component;
use crate::mdx::{Element, Node};
use crate::render::html;
use crate::render::markdown::{self, escaped};

pub(super) const TOOLTIP: Component = Component {
    names: &["Tooltip"],
    html,
    markdown_inline,
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, tooltip: &Element) {
    let tip = tooltip.words("tip").unwrap_or_default();
    let headline = tooltip.words("headline").unwrap_or_default();
    if tip.is_empty() && headline.is_empty() {
        return writer.nodes(&tooltip.children);
    }
    let anchor = tooltip.anchor.as_deref();
    writer.out.markup("<span class=tooltip tabindex=0");
    if let Some(anchor) = anchor {
        writer.out.attribute("aria-describedby", &anchor.id);
    }
    writer.wrap(">", &tooltip.children, "<span role=tooltip");
    writer.id(anchor);
    writer.out.markup(">");
    if !headline.is_empty() {
        writer.out.markup("<strong>");
        writer.label(tooltip, "headline", "");
        writer.out.markup("</strong> ");
    }
    writer.label(tooltip, "tip", "");
    if let (Some(action), Some(href)) = (tooltip.words("cta"), tooltip.text("href")) {
        writer.out.markup(" ");
        writer.link(href, &[Node::Text(action.into_owned())]);
    }
    writer.out.markup("</span></span>");
}

fn markdown_inline(writer: &markdown::Writer<'_>, tooltip: &Element, out: &mut String) {
    out.push_str(&writer.line(&tooltip.children));
    let texts = ["headline", "tip"].map(|key| writer.label(tooltip, key));
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        return;
    }
    out.push_str(&format!(" ({}", texts.join(": ")));
    if let (Some(action), Some(href)) = (tooltip.words("cta"), tooltip.text("href")) {
        out.push_str(", ");
        writer.link(href, &escaped(&action), out);
    }
    out.push(')');
}

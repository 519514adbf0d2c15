//! `Tabs` and `View`: panels; the reader sees one at a time.

use super::Component;
use crate::mdx::{Element, Node};
use crate::render::html;

pub(super) const TABS: Component = Component {
    names: &["Tabs"],
    html,
    ..Component::DEFAULT
};
pub(super) const TAB: Component = Component {
    names: &["Tab"],
    html: |writer, tab| tab_html(writer, tab, "tab", writer.messages.article.tab),
    ..Component::DEFAULT
};
/// A single view. Several views in a row are one choice: see [`views`].
pub(super) const VIEW: Component = Component {
    names: &["View"],
    html: |writer, view| views(writer, &[view]),
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, tabs: &Element) {
    // Groups with the same titles change together unless `sync` is false.
    let is_alone = tabs.get("sync").is_some() && !tabs.has("sync");
    writer.open("<div", "tabs", tabs);
    writer
        .out
        .markup(if is_alone { " data-sync=off>\n" } else { ">\n" });
    // The script shows the first tab unless another one has the class.
    let chosen = tabs.number("defaultTabIndex").unwrap_or(0);
    let mut number = 0;
    for child in &tabs.children {
        match child {
            Node::Element(tab) if *tab.name == *"Tab" => {
                let is_chosen = number > 0 && number == chosen;
                let class = if is_chosen { "tab chosen" } else { "tab" };
                number += 1;
                tab_html(writer, tab, class, writer.messages.article.tab);
            }
            // Other content stays readable below the tabs.
            other => writer.node(other),
        }
    }
    writer.out.markup("</div>\n");
}

/// Writes views that follow each other: one choice, which the script stores as it does for
/// tabs.
pub(in crate::render) fn views(writer: &mut html::Writer<'_>, views: &[&Element]) {
    writer.out.markup("<div class=\"tabs views\">\n");
    for view in views {
        tab_html(writer, view, "tab", writer.messages.article.view);
    }
    writer.out.markup("</div>\n");
}

fn tab_html(writer: &mut html::Writer<'_>, tab: &Element, class: &'static str, untitled: &str) {
    let title = tab.words("title");
    let title = title.as_deref().unwrap_or(untitled);
    let anchor = tab.anchor.as_deref();
    writer.open("<section", class, tab);
    writer.id(anchor);
    writer
        .out
        .attribute("data-title", title)
        .markup("><p class=tab-title>");
    writer.aliases(anchor);
    writer.icon_of(tab, "icon");
    writer.label(tab, "title", untitled);
    writer.wrap("</p>", &tab.children, "</section>\n");
}

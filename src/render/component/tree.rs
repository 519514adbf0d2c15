//! `Tree`: folders and files.

use super::Component;
use crate::mdx::{Element, Node};
use crate::render::html;
use crate::render::markdown::{self, block, escaped, prefixed};

pub(super) const TREE: Component = Component {
    names: &["Tree"],
    html: |writer, tree| html(writer, &tree.children),
    markdown: |writer, tree, out| block(&writer.inside(&tree.children), out),
    ..Component::DEFAULT
};
pub(super) const TREE_ITEM: Component = Component {
    names: &["Tree.File", "Tree.Folder"],
    html: item_html,
    markdown: item_markdown,
    ..Component::DEFAULT
};

/// The name that [`html::Writer::within`] has for the content of a folder.
const WITHIN: &str = "tree";

fn html(writer: &mut html::Writer<'_>, items: &[Node]) {
    writer.out.markup("<ul class=tree>\n");
    html_items(writer, items);
    writer.out.markup("</ul>\n");
}

fn html_items(writer: &mut html::Writer<'_>, items: &[Node]) {
    writer.within.push(WITHIN);
    writer.nodes(items);
    writer.within.pop();
}

fn item_html(writer: &mut html::Writer<'_>, item: &Element) {
    // An item outside of a tree gets one of its own.
    if writer.within.last() != Some(&WITHIN) {
        return html(writer, &[Node::Element(item.clone())]);
    }
    let name = &item.words("name").unwrap_or_default();
    if *item.name == *"Tree.File" {
        writer
            .out
            .markup("<li class=file>")
            .text(name)
            .markup("</li>\n");
        return;
    }
    writer.out.markup("<li class=folder><details");
    if item.has("defaultOpen") {
        writer.out.markup(" open");
    }
    writer
        .out
        .markup("><summary>")
        .text(name)
        .markup("</summary><ul>");
    html_items(writer, &item.children);
    writer.out.markup("</ul></details></li>\n");
}

/// Writes the line of an item, and below it the content of a folder.
fn item_markdown(writer: &markdown::Writer<'_>, item: &Element, out: &mut String) {
    let name = escaped(&item.words("name").unwrap_or_default());
    let text = prefixed(&writer.inside(&item.children), "  ", "  ");
    out.push_str(format!("- {name}\n{text}").trim_end());
    out.push('\n');
}

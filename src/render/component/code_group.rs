//! `CodeGroup` and similar components: code blocks; the reader sees one at a time.

use super::Component;
use crate::mdx::{Element, Node};
use crate::render::html::{self, fence::Info};

pub(super) const CODE_GROUP: Component = Component {
    names: &["CodeGroup"],
    html: |writer, group| html(writer, group, "<div class=\"tabs codes\""),
    markdown: |writer, group, out| writer.blocks(&group.children, out),
    ..Component::DEFAULT
};
pub(super) const CODE_BLOCK: Component = Component {
    names: &["CodeBlock"],
    markdown: Component::DEFAULT.markdown,
    ..CODE_GROUP
};
pub(super) const REQUEST_EXAMPLE: Component = Component {
    names: &["RequestExample"],
    html: |writer, group| html(writer, group, "<div class=\"tabs codes example request\""),
    ..CODE_GROUP
};
pub(super) const RESPONSE_EXAMPLE: Component = Component {
    names: &["ResponseExample"],
    html: |writer, group| html(writer, group, "<div class=\"tabs codes example response\""),
    ..CODE_GROUP
};

fn html(writer: &mut html::Writer<'_>, group: &Element, open: &'static str) {
    writer.out.markup(open);
    // The script makes a list with this label.
    if group.has("dropdown") {
        let label = writer.messages.article.code;
        writer.out.attribute("data-dropdown", label);
    }
    writer.out.markup(">\n");
    html_children(writer, &group.children);
    writer.out.markup("</div>\n");
}

fn html_children(writer: &mut html::Writer<'_>, children: &[Node]) {
    for child in children {
        match child {
            Node::Fence { info, code } => html_tab(writer, &Info::parse(info), code),
            // A block with its language as an attribute holds its code as a fence.
            Node::Element(block) if matches!(&*block.name, "CodeBlock" | "") => {
                html_children(writer, &block.children);
            }
            Node::Paragraph(line) if line.iter().any(is_block) => html_children(writer, line),
            other => writer.node(other),
        }
    }
}

fn is_block(node: &Node) -> bool {
    matches!(node, Node::Element(block) if &*block.name == "CodeBlock")
}

fn html_tab(writer: &mut html::Writer<'_>, info: &Info, code: &str) {
    let title = [&info.title, &info.language]
        .into_iter()
        .find(|title| !title.is_empty())
        .map_or(writer.messages.article.code, |title| title);
    writer
        .out
        .markup("<section class=tab")
        .attribute("data-title", title)
        .markup("><p class=tab-title>");
    writer.fence_icon(info);
    writer.out.text(title).markup("</p>");
    writer.code(info, code, false);
    writer.out.markup("</section>\n");
}

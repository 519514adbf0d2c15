//! `Frame`: a picture or other content with a border, a hint and a caption.

use super::Component;
use crate::mdx::Element;
use crate::render::html;

pub(super) const FRAME: Component = Component {
    names: &["Frame"],
    html,
    markdown: |writer, frame, out| {
        writer.prose_block(frame.text("hint"), out);
        writer.blocks(&frame.children, out);
        writer.prose_block(frame.text("caption"), out);
    },
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, frame: &Element) {
    if let Some(hint) = frame.text("hint") {
        writer.out.markup("<p class=frame-hint>");
        writer.prose(hint);
        writer.out.markup("</p>");
    }
    writer.wrap("<figure class=frame>", &frame.children, "");
    if let Some(caption) = frame.text("caption") {
        writer.out.markup("<figcaption>");
        writer.prose(caption);
        writer.out.markup("</figcaption>");
    }
    writer.out.markup("</figure>\n");
}

//! `Frame`: a picture or other content with a border, a hint and a caption.

use super::Component;
use crate::mdx::Element;
use crate::render::{html, markdown};

pub(super) const FRAME: Component = Component {
    names: &["Frame"],
    html,
    markdown: |writer, frame, out| {
        markdown::block(&writer.description(frame, "hint"), out);
        writer.blocks(&frame.children, out);
        markdown::block(&writer.description(frame, "caption"), out);
    },
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, frame: &Element) {
    if frame.words("hint").is_some() {
        writer.out.markup("<div class=frame-hint>");
        writer.prose_of(frame, "hint");
        writer.out.markup("</div>");
    }
    writer.open("<figure", "frame", frame);
    writer.wrap(">", &frame.children, "");
    if frame.words("caption").is_some() {
        writer.out.markup("<figcaption>");
        writer.prose_of(frame, "caption");
        writer.out.markup("</figcaption>");
    }
    writer.out.markup("</figure>\n");
}

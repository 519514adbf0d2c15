//! `Prompt`: a text to copy for an agent, as Markdown.

use super::Component;
use crate::mdx::Element;
use crate::render::html::{self, fence::Info};
use crate::render::markdown;

pub(super) const PROMPT: Component = Component {
    names: &["Prompt"],
    html,
    markdown: |writer, prompt, out| {
        writer.bold_block(prompt.words("description").as_deref(), out);
        writer.blocks(&prompt.children, out);
    },
    ..Component::DEFAULT
};

fn html(writer: &mut html::Writer<'_>, prompt: &Element) {
    let title = prompt.words("description");
    let text = markdown::write(writer.file, &prompt.children, writer.map, writer.messages);
    let info = Info {
        title: title.as_deref().unwrap_or("Prompt").to_owned(),
        wrapped: true,
        icon: prompt.text("icon").unwrap_or_default().to_owned(),
        ..Info::default()
    };
    writer.code(&info, text.trim(), true);
}

//! Components as Markdown: one arm for each line of the table in [`markdown`](super).

use super::line::{code_span, escaped, is_inline};
use super::{Writer, block, fence, prefixed};
use crate::mdx::component;
use crate::mdx::{Element, Node, Value, plain};

// === impl Writer ===

impl Writer<'_> {
    /// Writes what is a component, or nothing that anybody knows: then what it holds.
    pub(super) fn component(&self, element: &Element, out: &mut String) {
        let children = &element.children;
        match &*element.name {
            name if component::callout(name, element.text("type")).is_some() => {
                self.callout(element, out);
            }
            "Card" | "Tile" => self.card(element, out),
            "Steps" => self.steps(children, out),
            "ParamField" | "Param" | "ResponseField" | "Response" => self.field(element, out),
            "Frame" => {
                self.remark(element.text("hint"), out);
                self.blocks(children, out);
                self.remark(element.text("caption"), out);
            }
            "Update" => self.update(element, out),
            "Accordion" => {
                self.labelled(&self.bold(element, "title"), element, out);
            }
            "CodeGroup" | "RequestExample" | "ResponseExample" => self.blocks(children, out),
            "Prompt" => {
                block(&self.bold(element, "description"), out);
                self.blocks(children, out);
            }
            "Tree" => block(&self.inside(children), out),
            "Tree.Folder" | "Tree.File" => self.tree_item(element, out),
            "Color.Item" => self.colour(element, out),
            "Mermaid" => {
                let chart = element.text("chart").map(str::to_owned);
                let chart = chart.unwrap_or_else(|| plain(children));
                fence("mermaid", &chart, out);
            }
            "Visibility" if element.text("for") == Some("humans") => {}
            name if component::is_component(name) => {
                block(&self.bold(element, "title"), out);
                self.blocks(children, out);
            }
            _ => self.blocks(children, out),
        }
    }

    /// Returns an attribute in bold; nothing for one that is not there.
    fn bold(&self, element: &Element, key: &str) -> String {
        match escaped(element.text(key).unwrap_or_default()) {
            text if text.is_empty() => text,
            text => format!("**{text}**"),
        }
    }

    fn remark(&self, text: Option<&str>, out: &mut String) {
        block(&self.prose(text.unwrap_or_default()), out);
    }

    /// Writes a label with the description beside it, then what the element holds.
    fn labelled(&self, label: &str, element: &Element, out: &mut String) {
        let description = self.prose(element.text("description").unwrap_or_default());
        block(format!("{label} {description}").trim(), out);
        self.blocks(&element.children, out);
    }

    /// Writes what an element holds behind `head`: in its line, unless it begins with a block
    /// that needs a line of its own.
    fn behind(&self, head: &str, between: &str, children: &[Node]) -> String {
        let text = self.inside(children);
        let mut said = children.iter().filter(|node| match node {
            Node::Text(text) => !text.trim().is_empty(),
            _ => true,
        });
        let is_line = said.next().is_none_or(|first| match first {
            Node::Paragraph(line) => line.iter().all(is_inline),
            node => is_inline(node),
        });
        match text.is_empty() {
            true => head.to_owned(),
            false if head.is_empty() => text,
            false if is_line => format!("{head}{between}{text}"),
            false => format!("{head}\n\n{text}"),
        }
    }

    fn callout(&self, element: &Element, out: &mut String) {
        let class = component::callout(&element.name, element.text("type"));
        let default = self.messages.article.callout(class.unwrap_or_default());
        let title = element.text("title").filter(|title| !title.is_empty());
        let head = format!("**{}:**", escaped(title.unwrap_or(default)));
        let text = self.behind(&head, " ", &element.children);
        block(&prefixed(&text, "> ", "> "), out);
    }

    fn card(&self, element: &Element, out: &mut String) {
        let mut head = String::new();
        self.card_title(element, &mut head);
        let description = self.prose(element.text("description").unwrap_or_default());
        if !description.is_empty() {
            head = format!("{head}: {description}");
        }
        let between = if description.is_empty() { ": " } else { "\n\n" };
        let text = self.behind(&head, between, &element.children);
        block(&prefixed(&text, "- ", "  "), out);
    }

    /// Writes the title of a card, linked to where the card leads.
    pub(super) fn card_title(&self, element: &Element, out: &mut String) {
        let href = element.text("href").filter(|_| !element.has("disabled"));
        let title = ["title", "cta"].map(|key| escaped(element.text(key).unwrap_or_default()));
        let title = title.into_iter().find(|title| !title.is_empty());
        match (href, title) {
            (Some(href), title) => {
                let title = title.unwrap_or_else(|| escaped(href));
                self.link(href, &title, out);
            }
            (None, Some(title)) => out.push_str(&format!("**{title}**")),
            (None, None) => {}
        }
    }

    fn steps(&self, children: &[Node], out: &mut String) {
        let mut number = 0;
        for child in children {
            match child {
                Node::Element(step) if *step.name == *"Step" => {
                    number += 1;
                    self.step(number, step, out);
                }
                Node::Text(text) if text.trim().is_empty() => {}
                other => self.block(other, out),
            }
        }
    }

    fn step(&self, number: usize, step: &Element, out: &mut String) {
        let marker = format!("{number}. ");
        let mut text = String::new();
        let title = self.prose(step.text("title").unwrap_or_default());
        if !title.is_empty() {
            block(&format!("**{title}**"), &mut text);
        }
        self.blocks(&step.children, &mut text);
        let indent = " ".repeat(marker.len());
        block(&prefixed(text.trim_end(), &marker, &indent), out);
    }

    fn field(&self, element: &Element, out: &mut String) {
        let parameter = component::parameter(element);
        let name = parameter.map(|(_, name)| name).or(element.text("name"));
        let mut notes: Vec<String> = Vec::new();
        // Empty brackets begin no link: `string[]` stays readable.
        notes.extend(
            element
                .text("type")
                .map(|kind| escaped(kind).replace("\\[\\]", "[]")),
        );
        notes.extend(parameter.map(|(place, _)| place.to_owned()));
        let messages = &self.messages.article;
        for (key, word) in [
            ("required", messages.required),
            ("deprecated", messages.deprecated),
        ] {
            notes.extend(element.has(key).then(|| word.to_owned()));
        }
        let mut head = String::new();
        code_span(name.unwrap_or_default(), &mut head);
        if !notes.is_empty() {
            head += &format!(" ({})", notes.join(", "));
        }
        if let Some(default) = element.text("default").filter(|text| !text.is_empty()) {
            head += &format!(", {} ", messages.default);
            code_span(default, &mut head);
        }
        let text = self.behind(&head, ": ", &element.children);
        block(&prefixed(&text, "- ", "  "), out);
    }

    fn update(&self, element: &Element, out: &mut String) {
        let mut label = self.bold(element, "label");
        if let Some(Value::List(tags)) = element.get("tags") {
            let tags: Vec<_> = tags
                .iter()
                .filter_map(Value::as_text)
                .map(escaped)
                .collect();
            label += &format!(" ({})", tags.join(", "));
        }
        block(&label, out);
        self.remark(element.text("description"), out);
        self.blocks(&element.children, out);
    }

    /// Writes a line of a tree, and below it what lies in a folder.
    fn tree_item(&self, element: &Element, out: &mut String) {
        let name = escaped(element.text("name").unwrap_or_default());
        let text = prefixed(&self.inside(&element.children), "  ", "  ");
        out.push_str(format!("- {name}\n{text}").trim_end());
        out.push('\n');
    }

    /// Writes a colour, maybe with another one for the dark.
    fn colour(&self, element: &Element, out: &mut String) {
        let mut values: Vec<String> = Vec::new();
        let mut add = |value: &str, mode: &str| {
            let mut text = String::new();
            code_span(value, &mut text);
            values.push(text + mode);
        };
        match element.get("value") {
            Some(Value::Object(modes)) => {
                for (mode, value) in modes {
                    add(value.as_text().unwrap_or_default(), &format!(" ({mode})"));
                }
            }
            value => add(value.and_then(Value::as_text).unwrap_or_default(), ""),
        }
        let name = escaped(element.text("name").unwrap_or_default());
        block(&format!("- {name}: {}", values.join(", ")), out);
    }
}

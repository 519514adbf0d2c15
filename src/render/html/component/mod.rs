//! Components as HTML.
//!
//! What opens and closes is `<details>`, what is chosen from is a group of sections that a
//! script makes tabs of: everything is readable without it. Classes are those that the
//! stylesheet knows; what a page says about colours and sizes becomes a class of its own
//! stylesheet ([`style`](super::style)).
//!
//! Sources: WAI-ARIA Authoring Practices 1.2 (disclosure, tabs, tooltip).

mod card;
mod choice;
mod field;
mod piece;

use super::fence::Info;
use super::{Writer, slug};
use crate::mdx::component as known;
use crate::mdx::{Element, Node, Value, plain, read_markdown};
use crate::render::icon;

// === impl Writer ===

impl Writer<'_> {
    /// Writes a component; `false` when it is none.
    pub(super) fn component(&mut self, element: &Element) -> bool {
        let children = &element.children;
        match &*element.name {
            name if known::callout(name, element.text("type")).is_some() => self.callout(element),
            "Card" => self.card(element),
            "Tile" => self.tile(element),
            "CardGroup" | "Columns" => self.columns(element),
            "Column" => self.wrap("<div class=column>", children, "</div>\n"),
            "Tabs" => self.tabs(element),
            "Tab" => self.tab(element, "Tab"),
            "View" => self.views(&[element]),
            "CodeGroup" | "CodeBlock" => self.code_group(element, "<div class=\"tabs codes\""),
            "RequestExample" => {
                self.code_group(element, "<div class=\"tabs codes example request\"");
            }
            "ResponseExample" => {
                self.code_group(element, "<div class=\"tabs codes example response\"");
            }
            "Steps" => self.steps(element),
            "Step" => self.lone_step(element),
            "AccordionGroup" => self.wrap("<div class=accordions>\n", children, "</div>\n"),
            "Accordion" => self.accordion(element, "<details class=accordion"),
            "Expandable" => self.accordion(element, "<details class=\"accordion expandable\""),
            "Frame" => self.frame(element),
            "ParamField" | "Param" | "ResponseField" | "Response" => self.field(element),
            "Tooltip" => self.tooltip(element),
            "Icon" => self.icon_element(element),
            "Badge" => self.badge(element),
            "Update" => self.update(element),
            "Panel" => self.wrap("<aside class=panel>", children, "</aside>\n"),
            "Prompt" => self.prompt(element),
            "Tree" => self.tree(children),
            "Tree.Folder" | "Tree.File" => self.tree_item(element),
            "Color" => self.wrap("<div class=colors>", children, "</div>\n"),
            "Color.Row" => self.colour_row(element),
            "Color.Item" => self.colour(element),
            "Latex" => self.formula(&plain(children), false),
            "Mermaid" => {
                let chart = element
                    .text("chart")
                    .map_or_else(|| plain(children), str::to_owned);
                self.diagram(&chart, element.text("title").unwrap_or_default());
            }
            "Visibility" => {
                if element.text("for") != Some("agents") {
                    self.inside(children);
                }
            }
            // What a file that does not exist would have shown.
            "Snippet" => self.nodes(children),
            _ => return false,
        }
        true
    }

    /// Writes a text of an attribute, which may have Markdown of a line in it.
    fn prose(&mut self, text: &str) {
        match read_markdown(text).as_deref() {
            Ok([Node::Paragraph(line)]) => self.nodes(line),
            _ => {
                self.out.text(text);
            }
        }
    }

    /// Writes the icon of an element, when it has one: a name, an address or a drawing.
    fn icon(&mut self, element: &Element, key: &str) {
        let class = self.icon_class(element);
        match element.get(key) {
            Some(Value::Nodes(nodes)) => self.wrap("<span class=icon>", nodes, "</span>"),
            Some(Value::Text(name)) if icon::is_address(name) => {
                let class =
                    class.map_or_else(|| "icon".to_owned(), |class| format!("icon {class}"));
                self.image(name, "", &[("class", &class)]);
            }
            Some(Value::Text(name)) if !name.trim().is_empty() => {
                self.named_icon(
                    name,
                    element.text("iconType"),
                    class.as_deref(),
                    element.line,
                );
            }
            _ => {}
        }
    }

    fn named_icon(&mut self, name: &str, style: Option<&str>, class: Option<&str>, line: u32) {
        // An emoji is its own drawing.
        if !name.is_ascii() {
            self.out
                .markup("<span class=icon>")
                .text(name)
                .markup("</span>");
            return;
        }
        if let Some(icon) = icon::find(name, style, self.map.library) {
            self.out.icon(icon, class);
            return;
        }
        let told = self.unknown_icons.len();
        if self.unknown_icons.insert(name.into()) {
            let found = icon::unknown(self.file, name, told);
            self.diagnostics.push(found.at(line.max(1), 1, 0));
        }
    }

    /// Returns the class for the colour and size that a page gives an icon.
    fn icon_class(&mut self, element: &Element) -> Option<String> {
        let is_icon = *element.name == *"Icon";
        let color = element.text(if is_icon { "color" } else { "iconColor" });
        let color = color.and_then(|color| self.class_with("color", color));
        let size = element.text("size").filter(|_| is_icon).and_then(|size| {
            let size = size.trim().trim_end_matches("px");
            size.parse::<f32>().is_ok().then(|| format!("{size}px"))
        });
        let size = size.and_then(|size| self.class_with("height", &size));
        let classes: Vec<String> = color.into_iter().chain(size).collect();
        (!classes.is_empty()).then(|| classes.join(" "))
    }

    fn icon_element(&mut self, element: &Element) {
        self.icon(element, if element.has("icon") { "icon" } else { "name" });
    }

    /// Returns whether a page asks for a title as heading, and of which level.
    fn title_level(element: &Element) -> Option<u8> {
        let size = element.text("titleSize")?.strip_prefix('h')?;
        size.parse().ok().filter(|level| (2..=6).contains(level))
    }
}

/// Returns a value as a page shows it.
fn shown(value: &Value) -> Option<String> {
    Some(match value {
        Value::Text(text) => text.clone(),
        Value::Boolean(flag) => flag.to_string(),
        Value::List(values) => {
            let values: Vec<_> = values.iter().filter_map(shown).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Nodes(nodes) => plain(nodes),
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .filter_map(|(key, value)| Some(format!("{key}: {}", shown(value)?)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Null => return None,
    })
}

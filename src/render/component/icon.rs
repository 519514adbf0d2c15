//! `Icon`, and the icons that other components show beside their titles.

use super::Component;
use crate::mdx::{Element, Value};
use crate::render::{html, icon};

pub(super) const ICON: Component = Component {
    names: &["Icon"],
    html: |writer, element| {
        let key = if element.has("icon") { "icon" } else { "name" };
        writer.icon_of(element, key);
    },
    markdown_inline: |_, _, _| {},
    ..Component::DEFAULT
};

// === impl Writer ===

impl html::Writer<'_> {
    /// Writes the icon that an attribute of an element gives, if it has that attribute: a
    /// name, an address or markup.
    pub(super) fn icon_of(&mut self, element: &Element, key: &str) {
        let class = self.icon_class(element);
        match element.get(key) {
            Some(Value::Nodes(nodes)) => {
                self.icon_span(class.as_deref());
                self.wrap("", nodes, "</span>");
            }
            Some(Value::Text(name)) if icon::is_address(name) => {
                let class =
                    class.map_or_else(|| "icon".to_owned(), |class| format!("icon {class}"));
                self.image(name, "", &[("class", &class)]);
            }
            Some(Value::Text(name)) if !name.trim().is_empty() => {
                let style = element.text("iconType");
                // An element of a snippet has no line in this file.
                let line = match element.span.file {
                    0 => element.line,
                    _ => self.line,
                };
                self.named_icon(name, style, class.as_deref(), line);
            }
            _ => {}
        }
    }

    fn named_icon(&mut self, name: &str, style: Option<&str>, class: Option<&str>, line: u32) {
        // An emoji is shown as it is.
        if !name.is_ascii() {
            self.icon_span(class);
            self.out.text(name).markup("</span>");
            return;
        }
        if let Some(icon) = icon::find(name, style, self.map.library) {
            self.out.icon(icon, class);
            return;
        }
        let reported = self.unknown_icons.len();
        if self.unknown_icons.insert(name.into()) {
            let unknown = icon::unknown(self.file, name, reported);
            self.diagnostics.push(match line {
                0 => unknown,
                line => unknown.at(line, 1, 0),
            });
        }
    }

    fn icon_span(&mut self, class: Option<&str>) {
        match class {
            Some(class) => {
                let class = format!("icon {class}");
                self.out
                    .markup("<span")
                    .attribute("class", &class)
                    .markup(">");
            }
            None => {
                self.out.markup("<span class=icon>");
            }
        }
    }

    /// Returns the classes for the colour and size that a page gives an icon, and its own ones.
    fn icon_class(&mut self, element: &Element) -> Option<String> {
        let is_icon = *element.name == *"Icon";
        let color = element.text(if is_icon { "color" } else { "iconColor" });
        let color = color.and_then(|color| self.class_with("color", color));
        let size = element.text("size").filter(|_| is_icon).and_then(|size| {
            let size = size.trim().trim_end_matches("px");
            size.parse::<f32>().is_ok().then(|| format!("{size}px"))
        });
        let size = size.and_then(|size| self.class_with("height", &size));
        let own = is_icon.then(|| self.classes(element, None)).flatten();
        let classes: Vec<String> = color.into_iter().chain(size).chain(own).collect();
        (!classes.is_empty()).then(|| classes.join(" "))
    }
}

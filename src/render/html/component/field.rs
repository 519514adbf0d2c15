//! Parameters and fields of an interface.

use super::{Element, Value, Writer, known, shown, slug};

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn field(&mut self, element: &Element) {
        let (place, name) = known::parameter(element)
            .map_or(("", element.text("name")), |(place, name)| {
                (place, Some(name))
            });
        let name = name.unwrap_or_default();
        let wanted = element
            .text("id")
            .map_or_else(|| format!("field-{}", slug(name)), slug);
        let id = self.anchor(&wanted);
        self.out.markup("<div class=field").attribute("id", &id);
        self.out.markup("><p class=field-head>");
        self.labels(element.get("pre"));
        self.out.markup("<code>").text(name).markup("</code>");
        self.labels(element.get("post"));
        for text in [element.text("type").unwrap_or_default(), place] {
            if !text.is_empty() {
                self.out
                    .markup(" <span class=badge>")
                    .text(text)
                    .markup("</span>");
            }
        }
        let messages = &self.messages.article;
        if element.has("required") {
            self.out.markup(" <span class=\"badge required\">");
            self.out.text(messages.required).markup("</span>");
        }
        if element.has("deprecated") {
            self.out.markup(" <span class=\"badge deprecated\">");
            self.out.text(messages.deprecated).markup("</span>");
        }
        for (key, word) in [
            ("default", messages.default),
            ("placeholder", messages.example),
        ] {
            if let Some(value) = element.get(key).and_then(shown).filter(|v| !v.is_empty()) {
                self.out
                    .markup(" <span class=badge>")
                    .text(word)
                    .markup(": ");
                self.out.text(&value).markup("</span>");
            }
        }
        self.wrap("</p>", &element.children, "</div>\n");
    }

    /// Labels before and after the name of a field.
    fn labels(&mut self, labels: Option<&Value>) {
        let Some(Value::List(labels)) = labels else {
            return;
        };
        for label in labels.iter().filter_map(Value::as_text) {
            self.out
                .markup(" <span class=badge>")
                .text(label)
                .markup("</span> ");
        }
    }
}

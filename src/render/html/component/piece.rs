//! Components that are one thing: callouts, frames, badges, tooltips, updates, trees.

use super::{Element, Info, Node, Value, Writer, known, slug};
use crate::render::markdown;

/// Colours of a badge that the stylesheet has.
const BADGES: [(&str, &str); 9] = [
    ("gray", "badge"),
    ("blue", "badge blue"),
    ("green", "badge green"),
    ("yellow", "badge yellow"),
    ("orange", "badge yellow"),
    ("red", "badge red"),
    ("purple", "badge purple"),
    ("white", "badge"),
    ("surface", "badge"),
];

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn callout(&mut self, element: &Element) {
        let Some(class) = known::callout(&element.name, element.text("type")) else {
            return;
        };
        let word = self.messages.article.callout(class);
        let own = element
            .text("color")
            .and_then(|color| self.class_with("--tone", color));
        let class = match own {
            Some(own) => format!("callout {class} {own}"),
            None => format!("callout {class}"),
        };
        // A callout of no kind is whatever its icon says.
        let is_plain = *element.name == *"Callout" && element.text("type").is_none();
        let word = element
            .text("title")
            .unwrap_or(if is_plain { "" } else { word });
        self.out
            .markup("<aside")
            .attribute("class", &class)
            .markup(" role=note>");
        if !word.is_empty() || element.has("icon") {
            self.out.markup("<strong class=callout-word>");
            self.icon(element, "icon");
            self.out.text(word).markup("</strong>");
        }
        self.wrap("<div>", &element.children, "</div></aside>\n");
    }

    pub(super) fn frame(&mut self, element: &Element) {
        if let Some(hint) = element.text("hint") {
            self.out.markup("<p class=frame-hint>");
            self.prose(hint);
            self.out.markup("</p>");
        }
        self.wrap("<figure class=frame>", &element.children, "");
        if let Some(caption) = element.text("caption") {
            self.out.markup("<figcaption>");
            self.prose(caption);
            self.out.markup("</figcaption>");
        }
        self.out.markup("</figure>\n");
    }

    /// A word with an explanation, which keyboard and screen reader reach too.
    pub(super) fn tooltip(&mut self, element: &Element) {
        let tip = element.text("tip").unwrap_or_default();
        let headline = element.text("headline").unwrap_or_default();
        if tip.is_empty() && headline.is_empty() {
            return self.nodes(&element.children);
        }
        let id = self.anchor("tip");
        self.out
            .markup("<span class=tooltip tabindex=0")
            .attribute("aria-describedby", &id);
        self.wrap(">", &element.children, "<span role=tooltip");
        self.out.attribute("id", &id).markup(">");
        if !headline.is_empty() {
            self.out
                .markup("<strong>")
                .text(headline)
                .markup("</strong> ");
        }
        self.out.text(tip);
        if let (Some(action), Some(href)) = (element.text("cta"), element.text("href")) {
            self.out.markup(" ");
            self.link(href, &[Node::Text(action.to_owned())]);
        }
        self.out.markup("</span></span>");
    }

    pub(super) fn badge(&mut self, element: &Element) {
        let color = element.text("color").unwrap_or("gray");
        let known = BADGES.iter().find(|(name, _)| *name == color);
        let class = match known {
            Some((_, class)) => (*class).to_owned(),
            None => {
                let own = self.class_with("color", color);
                own.map_or_else(|| "badge".to_owned(), |own| format!("badge {own}"))
            }
        };
        self.out
            .markup("<span")
            .attribute("class", &class)
            .markup(">");
        self.icon(element, "icon");
        self.wrap("", &element.children, "</span>");
    }

    pub(super) fn update(&mut self, element: &Element) {
        let label = element.text("label").unwrap_or_default();
        let id = self.anchor(&element.text("id").map_or_else(|| slug(label), slug));
        self.out
            .markup("<section class=update")
            .attribute("id", &id);
        self.out
            .markup("><p class=update-label><a")
            .attribute("href", &format!("#{id}"));
        self.out.markup(">").text(label).markup("</a></p>");
        self.listed(2, &id, label);
        if let Some(Value::List(tags)) = element.get("tags") {
            self.out.markup("<p class=update-tags>");
            for tag in tags.iter().filter_map(Value::as_text) {
                self.out
                    .markup("<span class=badge>")
                    .text(tag)
                    .markup("</span> ");
            }
            self.out.markup("</p>");
        }
        if let Some(description) = element.text("description") {
            self.out.markup("<p class=update-description>");
            self.prose(description);
            self.out.markup("</p>");
        }
        self.wrap("<div>", &element.children, "</div></section>\n");
    }

    /// A text to copy for an agent, as Markdown.
    pub(super) fn prompt(&mut self, element: &Element) {
        let title = element.text("description").unwrap_or("Prompt");
        let text = markdown::write(self.file, &element.children, self.map, self.messages);
        let info = Info {
            title: title.to_owned(),
            wrapped: true,
            icon: element.text("icon").unwrap_or_default().to_owned(),
            ..Info::default()
        };
        self.code(&info, text.trim(), true);
    }

    pub(super) fn tree(&mut self, items: &[Node]) {
        self.out.markup("<ul class=tree>\n");
        self.branch(items);
        self.out.markup("</ul>\n");
    }

    /// Writes what lies in a folder; items may stand nowhere else.
    fn branch(&mut self, items: &[Node]) {
        self.within.push("tree");
        self.nodes(items);
        self.within.pop();
    }

    pub(super) fn tree_item(&mut self, element: &Element) {
        if self.within.last() != Some(&"tree") {
            return self.tree(&[Node::Element(element.clone())]);
        }
        let name = element.text("name").unwrap_or_default();
        if *element.name == *"Tree.File" {
            self.out
                .markup("<li class=file>")
                .text(name)
                .markup("</li>\n");
            return;
        }
        self.out.markup("<li class=folder><details");
        if element.has("defaultOpen") {
            self.out.markup(" open");
        }
        self.out
            .markup("><summary>")
            .text(name)
            .markup("</summary><ul>");
        self.branch(&element.children);
        self.out.markup("</ul></details></li>\n");
    }

    pub(super) fn colour_row(&mut self, element: &Element) {
        if let Some(title) = element.text("title") {
            self.out
                .markup("<p class=color-title>")
                .text(title)
                .markup("</p>");
        }
        self.wrap("<div class=color-row>", &element.children, "</div>\n");
    }

    /// A colour to look at, maybe another one in the dark.
    pub(super) fn colour(&mut self, element: &Element) {
        let values: Vec<&str> = match element.get("value") {
            Some(Value::Object(modes)) => modes
                .iter()
                .filter_map(|(_, value)| value.as_text())
                .collect(),
            value => value.and_then(Value::as_text).into_iter().collect(),
        };
        self.out.markup("<div class=color>");
        for value in &values {
            if let Some(class) = self.class_with("background", value) {
                let class = format!("swatch {class}");
                self.out
                    .markup("<span")
                    .attribute("class", &class)
                    .markup("></span>");
            }
        }
        self.out.text(element.text("name").unwrap_or_default());
        for value in &values {
            self.out.markup(" <code>").text(value).markup("</code>");
        }
        self.out.markup("</div>\n");
    }
}

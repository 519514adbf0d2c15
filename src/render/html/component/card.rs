//! Cards, tiles and the columns they stand in.

use super::{Element, Node, Writer};

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn card(&mut self, element: &Element) {
        let is_disabled = element.has("disabled");
        let href = element.text("href").filter(|_| !is_disabled);
        let mut class = "card".to_owned();
        for (prop, name) in [("horizontal", " horizontal"), ("disabled", " disabled")] {
            class += if element.has(prop) { name } else { "" };
        }
        let is_arrow = element.has("arrow")
            || element.get("arrow").is_none() && href.is_some_and(|href| href.contains("://"));
        class += if is_arrow && href.is_some() {
            " arrow"
        } else {
            ""
        };
        self.out.markup("<div").attribute("class", &class);
        self.out.markup(if is_disabled {
            " aria-disabled=true>"
        } else {
            ">"
        });
        if let Some(src) = element.text("img") {
            self.image(src, "", &[("class", "card-image")]);
        }
        self.card_icon(element);
        self.card_title(element.text("title").unwrap_or_default(), href);
        self.wrap("<div>", &element.children, "</div>");
        if let Some(action) = element.text("cta") {
            // The title is the link already; this is where people look for it.
            self.out
                .markup("<p class=card-action aria-hidden=true>")
                .text(action)
                .markup(" →</p>");
        }
        self.out.markup("</div>\n");
    }

    /// A card whose picture comes first.
    pub(super) fn tile(&mut self, element: &Element) {
        self.wrap(
            "<div class=\"card tile\"><div class=tile-image>",
            &element.children,
            "</div>",
        );
        let title = element.text("title").unwrap_or_default();
        self.card_title(title, element.text("href"));
        if let Some(description) = element.text("description") {
            self.out.markup("<p>");
            self.prose(description);
            self.out.markup("</p>");
        }
        self.out.markup("</div>\n");
    }

    fn card_icon(&mut self, element: &Element) {
        if element.has("icon") {
            let mut icon = element.clone();
            // On a card the colour is the icon's.
            if let Some(color) = element.get("color") {
                icon.attributes.push(("iconColor".into(), color.clone()));
            }
            self.icon(&icon, "icon");
        }
    }

    fn card_title(&mut self, title: &str, href: Option<&str>) {
        self.out.markup("<p class=card-title>");
        match href {
            Some(href) => self.link(href, &[Node::Text(title.to_owned())]),
            None => {
                self.out.text(title);
            }
        }
        self.out.markup("</p>\n");
    }

    pub(super) fn columns(&mut self, element: &Element) {
        let columns = match element.text("cols").and_then(|n| n.parse().ok()) {
            Some(1_u8) => "<div class=\"cards cols-1\">\n",
            Some(3) => "<div class=\"cards cols-3\">\n",
            Some(4..) => "<div class=\"cards cols-4\">\n",
            _ => "<div class=\"cards cols-2\">\n",
        };
        self.wrap(columns, &element.children, "</div>\n");
    }
}

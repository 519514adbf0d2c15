//! What opens, closes or is chosen from: tabs, views, code groups, steps, accordions.

use super::{Element, Info, Node, Writer, slug};

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn tabs(&mut self, element: &Element) {
        // Groups change together unless a page says that this one does not.
        let is_alone = element.get("sync").is_some() && !element.has("sync");
        self.out.markup("<div class=tabs").markup(if is_alone {
            " data-sync=off>\n"
        } else {
            ">\n"
        });
        for child in &element.children {
            match child {
                Node::Element(tab) if *tab.name == *"Tab" => self.tab(tab, "Tab"),
                // What is no tab stays readable below them.
                other => self.node(other),
            }
        }
        self.out.markup("</div>\n");
    }

    /// Views that follow each other are a choice, remembered like tabs.
    pub(in crate::render::html) fn views(&mut self, views: &[&Element]) {
        self.out.markup("<div class=\"tabs views\">\n");
        for view in views {
            self.tab(view, "View");
        }
        self.out.markup("</div>\n");
    }

    /// One of several things to choose from.
    pub(super) fn tab(&mut self, element: &Element, unnamed: &str) {
        let title = element.text("title").unwrap_or(unnamed);
        let id = self.anchor(&element.text("id").map_or_else(|| slug(title), slug));
        self.out.markup("<section class=tab").attribute("id", &id);
        self.out
            .attribute("data-title", title)
            .markup("><p class=tab-title>");
        self.icon(element, "icon");
        self.out.text(title);
        self.wrap("</p>", &element.children, "</section>\n");
    }

    pub(super) fn code_group(&mut self, element: &Element, open: &'static str) {
        self.out.markup(open);
        self.out.markup(if element.has("dropdown") {
            " data-dropdown>\n"
        } else {
            ">\n"
        });
        for child in &element.children {
            match child {
                Node::Fence { info, code } => {
                    let info = Info::parse(info);
                    let title = [&info.title, &info.language]
                        .into_iter()
                        .find(|title| !title.is_empty())
                        .map_or("Code", |title| title)
                        .to_owned();
                    self.out
                        .markup("<section class=tab")
                        .attribute("data-title", &title);
                    self.out.markup("><p class=tab-title>");
                    self.fence_icon(&info);
                    self.out.text(&title).markup("</p>");
                    self.code(&info, code, false);
                    self.out.markup("</section>\n");
                }
                other => self.node(other),
            }
        }
        self.out.markup("</div>\n");
    }

    pub(super) fn steps(&mut self, element: &Element) {
        self.out.markup("<ol class=steps>\n");
        let level = Self::title_level(element);
        for child in &element.children {
            match child {
                Node::Element(step) if *step.name == *"Step" => self.step(step, level),
                // Only items may stand in a list.
                other => self.wrap(
                    "<li class=\"step plain\">",
                    std::slice::from_ref(other),
                    "</li>\n",
                ),
            }
        }
        self.out.markup("</ol>\n");
    }

    /// A step that stands by itself is a list of one.
    pub(super) fn lone_step(&mut self, element: &Element) {
        self.out.markup("<ol class=steps>\n");
        self.step(element, None);
        self.out.markup("</ol>\n");
    }

    fn step(&mut self, element: &Element, level: Option<u8>) {
        let has_icon = element.has("icon");
        self.out.markup(if has_icon {
            "<li class=\"step drawn\">"
        } else {
            "<li class=step>"
        });
        if has_icon {
            self.out.markup("<span class=step-icon>");
            self.icon(element, "icon");
            self.out.markup("</span>");
        }
        if let Some(title) = element.text("title") {
            let id = element.text("id").map(slug);
            match Self::title_level(element).or(level) {
                Some(level) => self.heading(level, id.as_deref(), &[Node::Text(title.to_owned())]),
                None => {
                    let id = self.anchor(&id.unwrap_or_else(|| slug(title)));
                    self.out.markup("<p class=step-title").attribute("id", &id);
                    self.out.markup(">");
                    self.prose(title);
                    self.out.markup("</p>");
                }
            }
        }
        self.wrap("<div>", &element.children, "</div></li>\n");
    }

    pub(super) fn accordion(&mut self, element: &Element, open: &'static str) {
        let title = element.text("title").unwrap_or("Details");
        let id = self.anchor(&element.text("id").map_or_else(|| slug(title), slug));
        self.out.markup(open).attribute("id", &id);
        if element.has("defaultOpen") {
            self.out.markup(" open");
        }
        self.out.markup("><summary>");
        self.icon(element, "icon");
        self.out.text(title);
        if let Some(description) = element.text("description") {
            self.out
                .markup("<small>")
                .text(description)
                .markup("</small>");
        }
        self.wrap("</summary><div>", &element.children, "</div></details>\n");
    }
}

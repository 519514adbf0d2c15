//! The column of the article: breadcrumb, title, text, previous and next page.

use super::{Mode, PageWriter, path_of};
use crate::docs::config::Eyebrows;
use crate::docs::navigation::tree::Page;
use crate::render::article::Article;
use crate::render::html::Heading;

/// The deepest level of headings in the list beside an article.
const LEVEL_MAX: u8 = 3;

// === impl PageWriter ===

impl PageWriter<'_> {
    pub(super) fn main(&mut self, page: &Page, article: &Article, mode: Mode) {
        // No heading has an id of a layout: slugs do not start with `_`.
        self.out.markup("<main id=_content>\n");
        if mode.has_title() {
            self.title(page);
        }
        if mode.has_contents() {
            self.contents(&article.headings);
        }
        self.out.markup("<article>");
        self.out.append(&article.html);
        self.listings();
        self.out.markup("</article>\n");
        if mode.has_title() {
            self.neighbours(page);
        }
        self.out.markup("</main>\n");
    }

    fn title(&mut self, page: &Page) {
        self.out.markup("<div class=title>");
        self.outdated();
        self.eyebrow(page);
        self.out.markup("<h1>").text(&page.title);
        if page.deprecated {
            self.out
                .markup(" <span class=\"badge deprecated\">")
                .text(self.messages.deprecated)
                .markup("</span>");
        }
        self.out.markup("</h1>\n");
        if let Some(description) = &page.description {
            self.out.markup("<p class=lead>").text(description);
            self.out.markup("</p>\n");
        }
        self.actions();
        self.out.markup("</div>\n");
    }

    /// Writes the breadcrumb or the section above the title, according to `styling.eyebrows`.
    fn eyebrow(&mut self, page: &Page) {
        let Some(place) = &page.place else {
            return;
        };
        let labels = &place.breadcrumb;
        if labels.is_empty() {
            return;
        }
        if self.layout.eyebrows() == Eyebrows::Breadcrumbs {
            self.out
                .markup("<nav class=eyebrow")
                .attribute("aria-label", self.messages.breadcrumb)
                .markup("><ol>");
            let targets = self.layout.crumbs(self.beside, labels);
            for (label, target) in labels.iter().zip(targets) {
                self.out.markup("<li>");
                match target.filter(|target| Some(*target) != self.id) {
                    Some(target) => {
                        self.out.markup("<a");
                        self.href(self.layout.path(target));
                        self.out.markup(">").text(label).markup("</a>");
                    }
                    None => {
                        self.out.text(label);
                    }
                }
                self.out.markup("</li>");
            }
            self.out.markup("</ol></nav>\n");
        } else if let Some(section) = labels.last() {
            self.out
                .markup("<p class=eyebrow>")
                .text(section)
                .markup("</p>\n");
        }
    }

    /// Writes the actions: copy the page as Markdown, view it as Markdown, edit its source,
    /// add the MCP server of the site to an editor.
    fn actions(&mut self) {
        let markdown = if self.path.is_empty() {
            "index"
        } else {
            self.path
        };
        self.out
            .markup("<div class=actions><button class=\"copy-page scripted sign sign-copy\" type=button>")
            .text(self.messages.copy_page)
            .markup("</button><a class=\"sign sign-text\" rel=alternate type=\"text/markdown\"");
        self.href(&format!("{markdown}.md"));
        self.out
            .markup(">")
            .text(self.messages.view_as_markdown)
            .markup("</a>");
        let edit = self.id.and_then(|id| self.layout.edit(id));
        if let Some(edit) = edit {
            self.out
                .markup("<a class=\"edit sign sign-edit\" rel=noopener")
                .attribute("href", &edit)
                .markup(">")
                .text(self.messages.edit_page)
                .markup("</a>");
        }
        // Its script fills it.
        self.out.markup(
            "<details class=\"selector connect scripted\"><summary>MCP</summary><ul></ul></details>",
        );
        self.out.markup("</div>\n");
    }

    fn neighbours(&mut self, page: &Page) {
        let Some(place) = &page.place else {
            return;
        };
        if place.previous.or(place.next).is_none() {
            return;
        }
        self.out
            .markup("<nav class=neighbours")
            .attribute("aria-label", self.messages.previous_and_next)
            .markup(">");
        for (id, open, word) in [
            (
                place.previous,
                "<div class=previous>",
                self.messages.previous,
            ),
            (place.next, "<div class=next>", self.messages.next),
        ] {
            self.out.markup(open);
            if let Some(id) = id {
                let page = self.layout.navigation().page(id);
                self.out.markup("<a");
                self.href(path_of(page));
                self.out.markup("><small>").text(word).markup("</small>");
                self.out.text(&page.title).markup("</a>");
            }
            self.out.markup("</div>");
        }
        self.out.markup("</nav>\n");
    }

    /// Writes the list of headings. The stylesheet puts it beside the article on a wide
    /// screen, and above it otherwise.
    fn contents(&mut self, headings: &[Heading]) {
        let listed = headings.iter().filter(|h| h.level <= LEVEL_MAX);
        if listed.clone().nth(1).is_none() {
            return;
        }
        self.out
            .markup("<nav class=contents")
            .attribute("aria-label", self.messages.on_this_page)
            .markup("><details><summary>")
            .text(self.messages.on_this_page)
            .markup("</summary><ul>");
        for heading in listed {
            self.out.markup(if heading.level == LEVEL_MAX {
                "<li class=deeper data-depth=1><a"
            } else {
                "<li data-depth=0><a"
            });
            self.out.attribute("href", &format!("#{}", heading.id));
            self.out.markup(">").text(&heading.text).markup("</a></li>");
        }
        self.out.markup("</ul></details></nav>\n");
    }
}

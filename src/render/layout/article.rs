//! The column of the article: breadcrumb, title, text, previous and next page.

use super::{Mode, PageWriter, path_of};
use crate::docs::config::{Action, Display, Eyebrows};
use crate::docs::navigation::tree::Page;
use crate::render::article::Article;
use crate::render::component::panel;
use crate::render::html::{self, Heading};
use crate::render::messages::Messages;

/// The deepest level of headings in the list beside an article.
const LEVEL_MAX: u8 = 3;

// === impl PageWriter ===

impl PageWriter<'_> {
    pub(super) fn main(&mut self, page: &Page, article: &Article, mode: Mode) {
        // A browser may show the beginning of the article before it has the panel, so the classes
        // of `main` say that there will be one.
        let has_panel = article.html.as_str().contains(panel::BEGINNING);
        // No heading has an id of a layout: slugs do not start with `_`.
        // On the page of an endpoint the panel takes the place of the list of headings.
        self.out
            .markup(match (has_panel, page.endpoint().is_some()) {
                (true, true) => "<main id=_content class=with-panel>\n",
                (true, false) => "<main id=_content class=\"with-panel with-contents\">\n",
                (false, _) => "<main id=_content>\n",
            });
        let is_listed = mode.has_contents() && is_list(&article.headings);
        let display = self.layout.config().contextual.display;
        // A panel takes the place of the list.
        let is_beside = is_listed && display == Display::Contents && !has_panel;
        if mode.has_title() {
            self.title(page, !is_beside);
        }
        if is_listed {
            self.contents(&article.headings, is_beside);
        }
        // Screen readers find a page by its first heading. An author may leave it out where the layout
        // writes none.
        if !mode.has_title() && !article.html.as_str().contains("<h1") {
            self.out
                .markup("<h1 class=unseen>")
                .text(&page.title)
                .markup("</h1>\n");
        }
        self.out.markup("<article>");
        self.out.append(&article.html);
        self.listings();
        self.out.markup("</article>\n");
        if mode.has_title() {
            self.vote();
            self.related();
            self.neighbours(page);
        }
        self.out.markup("</main>\n");
    }

    fn title(&mut self, page: &Page, has_actions: bool) {
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
        if let Some(day) = self.layout.docs.updated(page) {
            self.out
                .markup("<p class=updated>")
                .text(self.messages.updated)
                .markup(" <time")
                .attribute("datetime", day)
                .markup(">")
                .text(day)
                .markup("</time></p>\n");
        }
        if has_actions {
            self.actions();
        }
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
            let targets = self.layout.breadcrumbs(self.beside, labels);
            for (n, (label, target)) in labels.iter().zip(targets).enumerate() {
                // A division and the group in it may have the same label.
                if labels.get(n + 1) == Some(label) {
                    continue;
                }
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

    /// Writes the actions: copy and view the page as Markdown, edit its source, and a menu that
    /// opens the page in an assistant or adds the MCP server of the site to an editor.
    ///
    /// `contextual.options` selects them.
    fn actions(&mut self) {
        let markdown = if self.path.is_empty() {
            "index"
        } else {
            self.path
        };
        let own = self.layout.config().contextual.options.as_deref();
        let options = own.unwrap_or(&Action::DEFAULT);
        self.out.markup("<div class=actions>");
        if let Some(form) = self.form.take() {
            let messages = Messages::of(self.layout.language_tag(self.beside));
            self.out
                .markup("<button class=\"try-it scripted\" type=button disabled")
                .attribute("data-operation", &form.to_string())
                .attribute("data-words", &messages.words_of_form().to_string())
                .markup(">")
                .text(messages.form.try_it)
                .markup("</button>");
        }
        if options.contains(&Action::Copy) {
            self.out
                .markup("<button class=\"copy-page scripted sign sign-copy\" type=button>")
                .text(self.messages.copy_page)
                .markup("</button>");
        }
        self.out
            .markup("<a class=\"sign sign-text\" rel=alternate type=\"text/markdown\"");
        self.href(&format!("{markdown}.md"));
        // Agents and the script read its address also if readers do not see it.
        self.out.markup(match options.contains(&Action::View) {
            true => ">",
            false => " hidden>",
        });
        self.out.text(self.messages.view_as_markdown).markup("</a>");
        let edit = self.id.and_then(|id| self.layout.edit(id));
        if let Some(edit) = edit {
            self.out
                .markup("<a class=\"edit sign sign-edit\" rel=noopener")
                .attribute("href", &edit)
                .markup(">")
                .text(self.messages.edit_page)
                .markup("</a>");
        }
        if let Some(feed) = self.feed() {
            self.out.markup("<a type=\"application/rss+xml\"");
            self.href(&feed);
            self.out.markup(">RSS</a>");
        }
        self.menu_of_page(options);
        self.out.markup("</div>\n");
    }

    /// Writes the menu of a page. Its script adds the addresses, because a page does not know its
    /// own.
    fn menu_of_page(&mut self, options: &[Action]) {
        let mut servers = String::new();
        for option in options {
            servers += match option {
                Action::Cursor => "cursor ",
                Action::VsCode => "vscode ",
                Action::Server => "mcp ",
                _ => "",
            };
        }
        let is_link = |action: &&Action| matches!(action, Action::Ask { .. } | Action::Custom(_));
        let links: Vec<&Action> = options.iter().filter(is_link).collect();
        if servers.is_empty() && links.is_empty() {
            return;
        }
        self.out
            .markup("<details class=\"selector connect scripted\"");
        if !servers.is_empty() {
            self.out.attribute("data-mcp", servers.trim_end());
        }
        self.out.markup("><summary>");
        self.out.text(match links.is_empty() {
            true => "MCP",
            false => self.messages.open_in,
        });
        self.out.markup("</summary><ul>");
        for action in links {
            self.out
                .markup("<li><a rel=\"noopener nofollow\" target=_blank");
            match action {
                Action::Ask { name, address } => {
                    self.out
                        .attribute("data-ask", address)
                        .markup(">")
                        .text(name);
                }
                Action::Custom(custom) => {
                    let href = custom.href.as_deref().unwrap_or_default();
                    self.out.attribute("data-to", href).markup(">");
                    self.out.text(&custom.title);
                    if let Some(description) = &custom.description {
                        self.out
                            .markup(" <small>")
                            .text(description)
                            .markup("</small>");
                    }
                }
                _ => {}
            }
            self.out.markup("</a></li>");
        }
        self.out.markup("</ul></details>");
    }

    fn neighbours(&mut self, page: &Page) {
        let Some(place) = &page.place else {
            return;
        };
        let written = self.layout.docs.written(page);
        if written.is_some_and(|written| written.meta.hide_neighbours) {
            return;
        }
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
    fn contents(&mut self, headings: &[Heading], has_actions: bool) {
        self.out
            .markup("<nav class=contents")
            .attribute("aria-label", self.messages.on_this_page)
            .markup("><details><summary>")
            .text(self.messages.on_this_page)
            .markup("</summary><ul>");
        for heading in listed(headings) {
            self.out.markup(if heading.level == LEVEL_MAX {
                "<li class=deeper data-depth=1><a"
            } else {
                "<li data-depth=0><a"
            });
            self.out.attribute("href", &html::fragment(&heading.id));
            self.out.markup(">").text(&heading.text).markup("</a></li>");
        }
        self.out.markup("</ul></details>");
        if has_actions {
            self.actions();
        }
        self.out.markup("</nav>\n");
    }
}

/// Returns the headings that the list beside an article has.
fn listed(headings: &[Heading]) -> impl Iterator<Item = &Heading> {
    headings.iter().filter(|heading| heading.level <= LEVEL_MAX)
}

/// Returns whether an article has enough headings for a list.
fn is_list(headings: &[Heading]) -> bool {
    listed(headings).nth(1).is_some()
}

//! Selectors of product, version and language, and the tabs.
//!
//! A selector is a `<details>` with links. Another version or language links to the alternate
//! page of this one (N7).

use super::PageWriter;
use crate::docs::navigation::tree::{Content, Division, DivisionKind, Divisions};

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes the selectors of product and version: at the top of the sidebar, and on a wide screen
    /// in the header of a page without a column for it.
    pub(super) fn choices(&mut self) {
        let is_choice = |list: &Divisions| {
            matches!(
                list.kind,
                DivisionKind::Products | DivisionKind::Dropdowns | DivisionKind::Versions
            )
        };
        let selected = &self.layout.sidebar(self.beside).selected;
        if !selected.iter().any(|(list, _)| is_choice(list)) {
            return;
        }
        self.out.markup("<div class=choices>");
        for (divisions, at) in selected.iter().filter(|(list, _)| is_choice(list)) {
            self.selector(divisions, *at);
        }
        self.out.markup("</div>\n");
    }

    /// Writes a selector of one of several divisions.
    pub(super) fn selector(&mut self, divisions: &Divisions, at: usize) {
        let current = &divisions.list[at];
        let (open, what) = match divisions.kind {
            DivisionKind::Versions => ("<details class=selector", self.messages.version),
            DivisionKind::Languages => {
                ("<details class=\"selector at-end\"", self.messages.language)
            }
            _ => ("<details class=selector", self.messages.product),
        };
        // The browser opens only one of several `<details>` with the same name.
        self.out
            .markup(open)
            .attribute("data-kind", divisions.kind.key())
            .markup(" name=choices><summary");
        if divisions.kind == DivisionKind::Languages {
            self.out.markup(" class=\"sign sign-globe\"");
        }
        self.out.markup("><span>");
        // The kind of the selector, unless the label begins with it. It is visible for versions
        // only, because "2.0" alone is not clear.
        let first = label(current).split_whitespace().next();
        if first.is_none_or(|word| word.to_lowercase() != what.to_lowercase()) {
            self.out
                .markup(if divisions.kind == DivisionKind::Versions {
                    "<small>"
                } else {
                    "<small class=unseen>"
                });
            self.out.text(what).markup("</small> ");
        }
        self.icon(current.icon.as_deref());
        self.out.text(label(current));
        self.badge(current.tag.as_deref());
        self.out.markup("</span></summary><ul>");
        for (n, division) in shown(divisions, Some(at)) {
            self.out.markup("<li>");
            self.open_division(divisions, n, n == at);
            if n == divisions.default && divisions.kind == DivisionKind::Versions {
                self.out.markup(" <span class=\"badge faint\">");
                self.out.text(self.messages.default).markup("</span>");
            }
            self.about(division);
            self.out.markup("</a></li>");
        }
        self.out.markup("</ul></details>");
    }

    /// Opens the link to a division and writes its name.
    pub(super) fn open_division(&mut self, list: &Divisions, n: usize, is_current: bool) {
        let division = &list.list[n];
        self.out.markup("<a");
        self.division_href(list, n);
        if is_current {
            self.out.markup(" aria-current=true");
        }
        if let Some(parts) = &division.language {
            self.out.attribute("lang", &parts.language.tag);
            self.out.attribute("hreflang", &parts.language.tag);
        }
        self.out.markup(">");
        self.named(division);
    }

    /// Writes icon, name and badge of a division.
    fn named(&mut self, division: &Division) {
        self.icon(division.icon.as_deref());
        self.out.text(label(division));
        self.badge(division.tag.as_deref());
    }

    fn about(&mut self, division: &Division) {
        if let Some(description) = &division.description {
            self.out
                .markup("<small>")
                .text(description)
                .markup("</small>");
        }
    }

    pub(super) fn badge(&mut self, tag: Option<&str>) {
        if let Some(tag) = tag {
            self.out
                .markup(" <span class=badge>")
                .text(tag)
                .markup("</span>");
        }
    }

    /// Writes `href` with the page that a division leads to.
    fn division_href(&mut self, list: &Divisions, at: usize) {
        let division = &list.list[at];
        if let Content::Link(href) = &division.content {
            return self.href_written(href);
        }
        let switches = matches!(list.kind, DivisionKind::Versions | DivisionKind::Languages);
        let to = if switches {
            self.layout.alternate(self.path, list, at)
        } else {
            let first = division.first.map(|id| self.layout.navigation().page(id));
            first.map(super::path_of)
        };
        self.href(to.unwrap_or(self.layout.home()));
    }

    pub(super) fn tabs(&mut self, tabs: &Divisions, at: usize) {
        self.out
            .markup("<nav class=sections")
            .attribute("aria-label", self.messages.sections)
            .markup("><ul>");
        for (n, tab) in shown(tabs, Some(at)) {
            self.out.markup(if n == at {
                "<li class=current>"
            } else {
                "<li>"
            });
            match &tab.content {
                Content::Divisions(menu) if menu.kind == DivisionKind::Menu => {
                    self.menu(tab, menu);
                }
                _ => {
                    self.open_division(tabs, n, n == at);
                    self.out.markup("</a>");
                }
            }
            self.out.markup("</li>");
        }
        self.out.markup("</ul></nav>\n");
    }

    fn menu(&mut self, tab: &Division, menu: &Divisions) {
        self.out
            .markup("<details class=selector name=choices><summary>");
        self.named(tab);
        self.out.markup("</summary><ul>");
        let taken = self.layout.sidebar(self.beside).selected.iter();
        let taken = taken.filter(|(list, _)| std::ptr::eq(*list, menu));
        let current = taken.map(|(_, at)| *at).next();
        // Even the current item is left out if it is hidden; the sidebar shows it.
        for (n, item) in shown(menu, None) {
            self.out.markup("<li>");
            self.open_division(menu, n, current == Some(n));
            self.about(item);
            self.out.markup("</a></li>");
        }
        self.out.markup("</ul></details>");
    }

    /// Writes the notice above a page that is not of the default version, with a link to the
    /// alternate page of the default version.
    pub(super) fn outdated(&mut self) {
        let sidebar = self.layout.sidebar(self.beside);
        let versions = sidebar
            .selected
            .iter()
            .find(|(list, _)| list.kind == DivisionKind::Versions);
        let Some((versions, at)) = versions.filter(|(versions, at)| versions.default != *at) else {
            return;
        };
        let newest = &versions.list[versions.default];
        self.out.markup("<p class=outdated role=note><span>");
        self.out.text(self.messages.you_are_reading).text(" ");
        self.out.markup("<strong>");
        self.out.text(&versions.list[*at].label);
        self.out.markup("</strong>.</span> <a");
        self.division_href(versions, versions.default);
        self.out.markup(">").text(self.messages.go_to).text(" ");
        self.out.text(&newest.label).markup("</a></p>\n");
    }
}

/// Lists the divisions that are shown, with their indices: those that are not hidden, and
/// the selected one, at `at`.
pub(super) fn shown(
    divisions: &Divisions,
    at: Option<usize>,
) -> impl Iterator<Item = (usize, &Division)> {
    let all = divisions.list.iter().enumerate();
    all.filter(move |(n, division)| !division.hidden || at == Some(*n))
}

/// Returns the label of a division. The label of a language is in that language.
fn label(division: &Division) -> &str {
    match &division.language {
        Some(parts) => parts.language.name,
        None => &division.label,
    }
}

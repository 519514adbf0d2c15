//! The sidebar: links for every page, then the groups and pages of the selected divisions.
//!
//! The title of a group is a link if the group has a root page (N3), or to its first page if
//! `drilldown` is set; then a separate chevron opens the group. Otherwise the title opens it.
//! A `<summary>` never contains a link, because a press on it would do two things.

use super::PageWriter;
use super::selector::shown;
use super::shared::Sidebar;
use super::sidebar_entries::OPEN;
use crate::docs::navigation::tree::{DivisionKind, Divisions, Entry, Group, Open, PageId};

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes the sidebar: a column on a wide screen, or nothing there if `is_column` is false. On
    /// a narrow screen it is a drawer on every page.
    pub(super) fn sidebar(&mut self, is_column: bool) {
        let sidebar = self.layout.sidebar(self.beside);
        self.out
            .markup(match is_column {
                true => "<nav class=sidebar id=_pages popover",
                false => "<nav class=\"sidebar drawer\" id=_pages popover",
            })
            .attribute("aria-label", self.messages.pages)
            .markup("><div class=drawer-head><span>")
            .text(self.messages.menu)
            .markup(
                "</span><button class=\"plain-button sign sign-close\" type=button \
                 popovertarget=_pages popovertargetaction=hide",
            )
            .attribute("aria-label", self.messages.close)
            .markup("></button></div>\n");
        self.choices();
        self.persistent_links(sidebar);
        self.sidebar_entries(sidebar);
        self.out.markup("</nav>\n");
    }

    /// Writes the anchors, the items of a menu, and the links that every page has.
    fn persistent_links(&mut self, sidebar: &Sidebar<'_>) {
        let is_persistent =
            |list: &Divisions| matches!(list.kind, DivisionKind::Anchors | DivisionKind::Menu);
        let has_links = self.layout.global(self.beside).next().is_some();
        if !has_links && !sidebar.selected.iter().any(|(list, _)| is_persistent(list)) {
            return;
        }
        self.out.markup("<ul class=anchors>");
        for (divisions, at) in sidebar
            .selected
            .iter()
            .filter(|(list, _)| is_persistent(list))
        {
            self.anchors(divisions, *at);
        }
        for anchor in self.layout.global(self.beside) {
            self.out.markup("<li><a");
            self.href_written(&anchor.href);
            self.out.markup(">");
            self.icon(anchor.icon.as_deref());
            self.out.text(&anchor.label).markup("</a></li>");
        }
        self.out.markup("</ul>\n");
    }

    /// Writes a sidebar that mixes pages and groups. Its groups are top-level ones (N5).
    pub(super) fn top_entries(&mut self, entries: &[Entry]) {
        let mut rest = entries;
        while let Some(first) = rest.first() {
            if let Entry::Group(group) = first {
                if !group.hidden {
                    self.top_group(group);
                }
                rest = &rest[1..];
                continue;
            }
            let is_page = |entry: &Entry| matches!(entry, Entry::Page(_));
            let pages = rest.iter().take_while(|entry| is_page(entry)).count();
            self.mark_entry();
            self.out.markup("<section class=group>");
            self.entries(&rest[..pages], None);
            self.out.markup("</section>\n");
            rest = &rest[pages..];
        }
    }

    fn anchors(&mut self, divisions: &Divisions, at: usize) {
        for (n, _) in shown(divisions, Some(at)) {
            self.out.markup("<li>");
            self.open_division(divisions, n, n == at);
            self.out.markup("</a></li>");
        }
    }

    /// Writes a top-level group, which is always open (N5).
    pub(super) fn top_group(&mut self, group: &Group) {
        self.mark_entry();
        self.out.markup("<section class=group>");
        if !group.label.is_empty() {
            self.out.markup("<p class=group-title>");
            self.group_title(group);
            self.out.markup("</p>");
        }
        self.entries(&group.entries, group.root);
        self.out.markup("</section>");
    }

    /// Writes the title of a group, as a link if it opens a page (N3).
    fn group_title(&mut self, group: &Group) {
        match self.opened_by(group) {
            Some(page) => {
                self.open_link(page);
                self.group_name(group);
                self.out.markup("</a>");
            }
            None => self.group_name(group),
        }
    }

    fn group_name(&mut self, group: &Group) {
        self.icon(group.icon.as_deref());
        self.out.text(&group.label);
        self.badge(group.tag.as_deref());
    }

    /// Returns the page that the title of a group links to: its root, or its first page if
    /// `drilldown` is set.
    fn opened_by(&self, group: &Group) -> Option<PageId> {
        let first = || group.first(&self.layout.navigation().pages);
        let drilled = || self.layout.drilldown().then(first).flatten();
        group.root.or_else(drilled)
    }

    fn entries(&mut self, entries: &[Entry], root: Option<PageId>) {
        self.out.markup("<ul>");
        for entry in entries {
            match entry {
                Entry::Page(id) if Some(*id) == root => {}
                Entry::Page(id) => self.entry(*id),
                Entry::Group(group) => self.nested(group),
            }
        }
        self.out.markup("</ul>");
    }

    fn entry(&mut self, id: PageId) {
        let page = self.layout.navigation().page(id);
        if page.hidden {
            return;
        }
        self.mark_entry();
        self.out.markup("<li>");
        self.open_link(id);
        if let Some(endpoint) = self.layout.endpoint(id) {
            let method = endpoint.method.to_string();
            self.out
                .markup("<span class=method")
                .attribute("data-method", &method);
            let word = if method == "DELETE" { "DEL" } else { &method };
            self.out.markup(">").text(word).markup("</span> ");
        } else {
            self.icon(page.icon.as_deref());
        }
        let title = page.sidebar_title.as_ref().unwrap_or(&page.title);
        if page.deprecated {
            self.out.markup("<del>").text(title).markup("</del>");
        } else {
            self.out.text(title);
        }
        self.badge(page.tag.as_deref());
        self.out.markup("</a></li>");
    }

    fn nested(&mut self, group: &Group) {
        if group.hidden {
            return;
        }
        self.mark_entry();
        match self.opened_by(group) {
            // The link must not be inside the summary; see the module's documentation.
            Some(_) => {
                self.out.markup("<li class=nested>");
                self.group_title(group);
                self.open_details(group);
                self.out.markup("><summary");
                let label = format!("{} {}", self.messages.pages_of, group.label);
                self.out
                    .attribute("aria-label", &label)
                    .markup("></summary>");
            }
            None => {
                self.out.markup("<li class=nested>");
                self.open_details(group);
                self.out.markup("><summary>");
                self.group_title(group);
                self.out.markup("</summary>");
            }
        }
        self.entries(&group.entries, group.root);
        self.out.markup("</details></li>");
    }

    /// Opens the element of a group, which is open if this page is in the group.
    fn open_details(&mut self, group: &Group) {
        self.out.markup("<details");
        let is_always_open = group.open != Open::Collapsed;
        if let Some(marks) = &mut self.marks {
            match is_always_open {
                true => marks.open(),
                false => marks.group(group, self.out.as_str().len()),
            }
        }
        if is_always_open || self.is_inside(group) {
            self.out.markup(OPEN);
        }
    }

    /// Notes that an entry begins.
    fn mark_entry(&mut self) {
        if let Some(marks) = &mut self.marks {
            marks.entry(self.out.as_str().len());
        }
    }

    /// Returns whether this page is in a group.
    fn is_inside(&self, group: &Group) -> bool {
        let Some(id) = self.id else {
            return false;
        };
        group.root == Some(id)
            || group.entries.iter().any(|entry| match entry {
                Entry::Page(page) => *page == id,
                Entry::Group(group) => self.is_inside(group),
            })
    }
}

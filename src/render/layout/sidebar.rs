//! The sidebar: anchors, then the groups and pages of where the reader is.

use super::Sheet;
use crate::docs::navigation::tree::{Content, DivisionKind, Divisions, Entry, Group, Open, PageId};

// === impl Sheet ===

impl Sheet<'_> {
    pub(super) fn sidebar(&mut self) {
        let leaf = self.shell.leaf(self.id);
        self.out.markup(
            "<nav class=sidebar aria-label=Pages><details class=pages open><summary>Menu</summary><div>",
        );
        self.out.markup("<ul class=anchors>");
        for (divisions, at) in &leaf.trail {
            if matches!(divisions.kind, DivisionKind::Anchors | DivisionKind::Menu) {
                self.anchors(divisions, *at);
            }
        }
        for anchor in self.shell.global(self.id) {
            self.out.markup("<li><a");
            self.href_written(&anchor.href);
            self.out.markup(">").text(&anchor.label).markup("</a></li>");
        }
        self.out.markup("</ul>");
        match leaf.content {
            Some(Content::Groups(groups)) => {
                for group in groups.iter().filter(|group| !group.hidden) {
                    self.top_group(group);
                }
            }
            Some(Content::Entries(entries)) => self.entries(entries, None),
            _ => {}
        }
        self.out.markup("</div></details></nav>\n");
    }

    fn anchors(&mut self, divisions: &Divisions, at: usize) {
        for (n, division) in divisions.list.iter().enumerate() {
            if division.hidden && n != at {
                continue;
            }
            self.out.markup("<li><a");
            self.division_href(divisions.kind, division);
            if n == at {
                self.out.markup(" aria-current=true");
            }
            self.out.markup(">").text(&division.label);
            self.badge(division.tag.as_deref());
            self.out.markup("</a></li>");
        }
    }

    /// N5: a group at the top is always open.
    fn top_group(&mut self, group: &Group) {
        self.out
            .markup("<section class=group><p class=group-title>");
        self.group_title(group);
        self.out.markup("</p>");
        self.entries(&group.entries, group.root);
        self.out.markup("</section>");
    }

    /// N3: the title of a group with a root opens it.
    fn group_title(&mut self, group: &Group) {
        match self.opened_by(group) {
            Some(page) => {
                self.open_link(page);
                self.out.text(&group.label);
                self.badge(group.tag.as_deref());
                self.out.markup("</a>");
            }
            None => {
                self.out.text(&group.label);
                self.badge(group.tag.as_deref());
            }
        }
    }

    /// Returns the page that a group's title opens: its root, or with `drilldown` its first.
    fn opened_by(&self, group: &Group) -> Option<PageId> {
        let drills = self.shell.config().drilldown == Some(true);
        let first = || group.first(&self.shell.navigation().pages);
        group.root.or_else(|| drills.then(first).flatten())
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
        let page = self.shell.navigation().page(id);
        if page.hidden {
            return;
        }
        self.out.markup("<li>");
        self.open_link(id);
        if let Some(endpoint) = self.shell.endpoint(id) {
            let method = endpoint.method.to_string();
            self.out
                .markup("<span class=method")
                .attribute("data-method", &method);
            self.out.markup(">").text(&method).markup("</span> ");
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
        let is_open = group.open != Open::Collapsed || self.is_inside(group);
        let open = if is_open { " open" } else { "" };
        match self.opened_by(group) {
            // A link in a summary cannot be told from the summary, so the two stand apart.
            Some(_) => {
                self.out.markup("<li class=nested>");
                self.group_title(group);
                self.out.markup("<details").markup(open).markup("><summary");
                let label = format!("Pages of {}", group.label);
                self.out
                    .attribute("aria-label", &label)
                    .markup("></summary>");
            }
            None => {
                self.out.markup("<li class=nested><details").markup(open);
                self.out.markup("><summary>");
                self.group_title(group);
                self.out.markup("</summary>");
            }
        }
        self.entries(&group.entries, group.root);
        self.out.markup("</details></li>");
    }

    /// Returns whether the page that is read stands in a group.
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

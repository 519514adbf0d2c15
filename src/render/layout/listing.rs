//! The listing of a group on its root page (rule N4).
//!
//! `accordion` is a list of rows; the row of a nested group opens and shows its pages.
//! `card` is a grid of cards; the card of a nested group names its pages.

use super::PageWriter;
use crate::docs::navigation::tree::{Directory, Entry, Group, PageId};

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes the listings of the groups whose root this page is.
    pub(super) fn listings(&mut self) {
        let layout = self.layout;
        for group in self.id.into_iter().flat_map(|id| layout.rooted_at(id)) {
            let visible_entries = self.visible_entries(group);
            if visible_entries.is_empty() {
                continue;
            }
            match group.listing() {
                Directory::None => {}
                Directory::Card => self.cards(&visible_entries),
                Directory::Accordion => self.rows(&visible_entries),
            }
        }
    }

    /// Returns the children of a group that its listing shows: all but the root page.
    fn visible_entries<'g>(&self, group: &'g Group) -> Vec<&'g Entry> {
        let pages = &self.layout.navigation().pages;
        let is_shown = |entry: &&Entry| match entry {
            Entry::Page(id) => {
                Some(*id) != group.root && !self.layout.navigation().page(*id).hidden
            }
            Entry::Group(group) => group.first(pages).is_some(),
        };
        group.entries.iter().filter(is_shown).collect()
    }

    fn cards(&mut self, entries: &[&Entry]) {
        self.out.markup("<ul class=\"cards cols-2 listing\">");
        for entry in entries {
            self.out.markup("<li class=card>");
            match entry {
                Entry::Page(id) => self.child(*id),
                Entry::Group(group) => {
                    let first = group.first(&self.layout.navigation().pages);
                    if let Some(first) = first {
                        self.child_title(first, Some(group));
                    }
                    let names = self.names(group);
                    self.out.markup("<p>").text(&names).markup("</p>");
                }
            }
            self.out.markup("</li>");
        }
        self.out.markup("</ul>\n");
    }

    fn rows(&mut self, entries: &[&Entry]) {
        self.out.markup("<ul class=\"listing rows\">");
        for entry in entries {
            match entry {
                Entry::Page(id) => {
                    self.out.markup("<li class=row>");
                    self.child(*id);
                }
                Entry::Group(group) => {
                    self.out.markup("<li><details><summary>");
                    self.icon(group.icon.as_deref());
                    self.out.text(&group.label);
                    self.badge(group.tag.as_deref());
                    self.out.markup("</summary><ul>");
                    self.opened(group);
                    self.out.markup("</ul></details>");
                }
            }
            self.out.markup("</li>");
        }
        self.out.markup("</ul>\n");
    }

    /// Writes links to all pages of a nested group, at any depth.
    fn opened(&mut self, group: &Group) {
        if let Some(root) = group.root {
            self.line(root);
        }
        for entry in self.visible_entries(group) {
            match entry {
                Entry::Page(id) => self.line(*id),
                Entry::Group(group) => self.opened(group),
            }
        }
    }

    fn line(&mut self, id: PageId) {
        self.out.markup("<li>");
        self.open_link(id);
        let page = self.layout.navigation().page(id);
        self.out.text(&page.title).markup("</a></li>");
    }

    fn child(&mut self, id: PageId) {
        self.child_title(id, None);
        let page = self.layout.navigation().page(id);
        if let Some(description) = &page.description {
            self.out.markup("<p>").text(description).markup("</p>");
        }
    }

    fn child_title(&mut self, id: PageId, group: Option<&Group>) {
        let page = self.layout.navigation().page(id);
        let (icon, label, tag) = match group {
            Some(group) => (&group.icon, &group.label, &group.tag),
            None => (&page.icon, &page.title, &page.tag),
        };
        self.out.markup("<p class=card-title>");
        self.open_link(id);
        self.icon(icon.as_deref());
        self.out.text(label).markup("</a>");
        self.badge(tag.as_deref());
        self.out.markup("</p>");
    }

    /// Returns the titles of a group's children in one line.
    fn names(&self, group: &Group) -> String {
        let mut names: Vec<&str> = Vec::new();
        for entry in self.visible_entries(group) {
            names.push(match entry {
                Entry::Page(id) => &self.layout.navigation().page(*id).title,
                Entry::Group(group) => &group.label,
            });
        }
        names.join(" · ")
    }
}

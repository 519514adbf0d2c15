//! Groups and the entries of `pages`.

use crate::docs::schema::Element;
use crate::syntax::{Data, SpanDiagnostic, Value};

use super::super::schema::{ChildKind, SourceElement};
use super::super::tree::{Content, Directory, Entry, Group, Open, PageId};
use super::{Compiler, DUPLICATE_LABEL, EMPTY, Scope};

/// Whether a group is at the top of a sidebar or in another group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Nested,
}

// === impl Compiler ===

impl Compiler<'_> {
    /// Compiles the groups of an element that is not a group.
    pub(super) fn groups(&mut self, items: &[Value], declares: bool, scope: &Scope) -> Content {
        let mut groups: Vec<Group> = Vec::new();
        for item in items {
            let Some(group) = self.group(item, Level::Top, scope) else {
                continue;
            };
            groups.push(group);
        }
        if declares {
            groups.extend(self.generated_groups(scope, Open::Always));
        }
        Content::Groups(groups)
    }

    /// Compiles the pages of an element that is not a group.
    pub(super) fn pages(&mut self, items: &[Value], declares: bool, scope: &Scope) -> Content {
        let mut entries = self.entries(items, Level::Top, scope);
        if declares {
            let generated = self.generated_groups(scope, Open::Always);
            entries.extend(generated.into_iter().map(Entry::Group));
        }
        Content::Entries(entries)
    }

    fn entries(&mut self, items: &[Value], level: Level, scope: &Scope) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut labels = std::collections::HashSet::new();
        for item in items {
            match &item.data {
                Data::Text(text) => entries.extend(self.entry(text, item, scope).map(Entry::Page)),
                Data::Map(_) => {
                    let Some(group) = self.group(item, level, scope) else {
                        continue;
                    };
                    if !group.label.is_empty() && !labels.insert(group.label.clone()) {
                        let message =
                            format!("there are two groups `{}` side by side", group.label);
                        self.warn(
                            DUPLICATE_LABEL,
                            item.get("group").map_or(item.span, |g| g.span),
                            message,
                        );
                    }
                    entries.push(Entry::Group(group));
                }
                _ => {
                    let message = format!(
                        "an entry of `pages` is a path or a group, not {}",
                        item.kind()
                    );
                    self.diagnostics.push(SpanDiagnostic::error(
                        crate::docs::schema::SHAPE,
                        item.span,
                        message,
                    ));
                }
            }
        }
        entries
    }

    /// Compiles an entry: the path of a page, or an endpoint.
    fn entry(&mut self, text: &str, item: &Value, scope: &Scope) -> Option<PageId> {
        match self.endpoint_entry(text, item.span, scope) {
            Some(endpoint) => endpoint,
            None => {
                let id = self.table.list(text, item.span, scope, self.diagnostics)?;
                self.table.note_specification(id, scope.applied.as_ref());
                Some(id)
            }
        }
    }

    fn group(&mut self, item: &Value, level: Level, scope: &Scope) -> Option<Group> {
        let written = self.element(item, Element::Group)?;
        let label = written.label()?;
        let mut scope = scope.clone();
        self.inherit(&written, &mut scope);
        if !label.is_empty() {
            scope.breadcrumb.push(label.into());
        }
        let open = self.open(&written, level);
        self.one_kind(&written, &written.children(), None);
        let root = self.root(&written, &scope);
        let mut entries = self.children(&written, root, &scope);
        let declares = item.get("openapi").is_some();
        if declares || written.children().is_empty() {
            let generated = self.generated_groups(&scope, Open::Collapsed);
            entries.extend(generated.into_iter().map(Entry::Group));
        }
        self.directory(&written, root, &entries);
        if entries.is_empty() && root.is_none() {
            if written.children().is_empty()
                && !scope
                    .applied
                    .as_ref()
                    .is_some_and(|applied| applied.is_unknown())
            {
                let message = format!("{} has no pages and is left out", written.name());
                self.warn(EMPTY, written.place(), message);
            }
            return None;
        }
        Some(Group {
            label: label.into(),
            icon: written.icon(),
            tag: written.owned_text("tag"),
            root,
            open,
            directory: scope.directory,
            hidden: scope.hidden,
            entries,
        })
    }

    /// Compiles the children of a group without its root, which the title opens.
    fn children(
        &mut self,
        written: &SourceElement<'_>,
        root: Option<PageId>,
        scope: &Scope,
    ) -> Vec<Entry> {
        let children = written.children();
        let Some(chosen) = children.first() else {
            return Vec::new();
        };
        let mut entries = match chosen.kind {
            ChildKind::Pages => self.entries(chosen.items, Level::Nested, scope),
            ChildKind::Groups | ChildKind::Divisions(..) => {
                let groups = chosen.items.iter();
                let groups: Vec<_> = groups
                    .filter_map(|item| self.group(item, Level::Nested, scope))
                    .collect();
                groups.into_iter().map(Entry::Group).collect()
            }
        };
        if let Some(root) = root {
            entries.retain(|entry| !matches!(entry, Entry::Page(id) if *id == root));
        }
        entries
    }

    /// Rule N5: `expanded` affects nested groups only.
    fn open(&mut self, written: &SourceElement<'_>, level: Level) -> Open {
        let expanded = written.flag("expanded");
        match (level, expanded) {
            (Level::Nested, Some((true, _))) => Open::Expanded,
            (Level::Nested, _) => Open::Collapsed,
            (Level::Top, None) => Open::Always,
            (Level::Top, Some((_, span))) => {
                let message = format!(
                    "`expanded` has no effect on {}: top-level groups are always open",
                    written.name()
                );
                self.no_effect(Some("N5"), span, message);
                Open::Always
            }
        }
    }

    /// Rule N3: the page that the group's title opens.
    fn root(&mut self, written: &SourceElement<'_>, scope: &Scope) -> Option<PageId> {
        let (text, span) = written.text("root")?;
        let id = match self.endpoint_entry(text, span, scope) {
            Some(endpoint) => endpoint,
            None => self.table.list(text, span, scope, self.diagnostics),
        }?;
        self.table.note_specification(id, scope.applied.as_ref());
        let slug = self.table.slug(id).to_owned();
        let pages = written.value.get("pages").map_or(&[][..], Value::items);
        let again = |item: &&Value| {
            item.text()
                .is_some_and(|text| text.trim_matches('/') == slug)
        };
        if let Some(again) = pages.iter().find(again) {
            let message = format!(
                "`{slug}` is the root of {} and is listed among its pages too",
                written.name()
            );
            let diagnostic = SpanDiagnostic::warning("N3", again.span, message);
            self.diagnostics
                .push(diagnostic.help("the title opens it; the entry is left out"));
            self.table.note_reported_root(id);
        }
        Some(id)
    }

    /// Rule N4: only a root page shows a listing: the group's own, or the root of a nested group.
    fn directory(&mut self, written: &SourceElement<'_>, root: Option<PageId>, entries: &[Entry]) {
        let Some((text, _)) = written.text("directory") else {
            return;
        };
        if Directory::parse(text).is_none_or(|directory| directory == Directory::None) {
            return;
        }
        if root.is_none() && !has_root(entries) {
            let span = written
                .value
                .member("directory")
                .map_or(written.place(), |member| member.span);
            let message = format!(
                "`directory` has no effect on {}: it has no `root` to show the listing",
                written.name()
            );
            let diagnostic = SpanDiagnostic::warning("N4", span, message);
            self.diagnostics
                .push(diagnostic.help("add `root`, the page that the title opens"));
        }
    }
}

fn has_root(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| match entry {
        Entry::Page(_) => false,
        Entry::Group(group) => group.root.is_some() || has_root(&group.entries),
    })
}

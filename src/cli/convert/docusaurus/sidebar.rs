//! The pages of Docusaurus by id, and the sidebars that list them.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value as Json};

use super::{Instance, Labelled, navbar_items, words};
use crate::cli::convert::mkdocs::of_entries;
use crate::cli::convert::notes::{Notes, object, resolve, set};
use crate::cli::convert::pages::Page;
use crate::docs::page;
use crate::source::TreePath;
use crate::syntax::{Data, FileId, Span, Value};

/// How deep categories and directories may be nested.
const DEPTH_MAX: usize = 64;

/// The pages of one instance.
pub(super) struct Sidebars {
    pages: Vec<Page>,
    /// For each page, the directory that it is in: relative to the directory of the instance, and
    /// without the numbers that names may begin with.
    directories: Vec<String>,
    by_id: HashMap<String, usize>,
    below: TreePath,
    /// The patterns of the pages that are not published.
    pub(super) unpublished: Vec<String>,
}

/// An entry of a directory, before it is sorted.
struct Listed {
    position: f64,
    name: String,
    json: Json,
}

// === impl Sidebars ===

impl Sidebars {
    /// Reads the pages of an instance.
    pub(super) fn read(notes: &mut Notes<'_>, instance: &Instance<'_>, root: &TreePath) -> Self {
        let mut read = Self {
            pages: Vec::new(),
            directories: Vec::new(),
            by_id: HashMap::new(),
            below: instance.path.clone(),
            unpublished: Vec::new(),
        };
        let files: Vec<_> = notes.tree.files().cloned().collect();
        for file in &files {
            let Some(below) = file.strip_prefix(&instance.path) else {
                continue;
            };
            // Partial pages are imported by others.
            if below.split('/').any(|segment| segment.starts_with('_')) {
                continue;
            }
            let Some(page) = Page::read(notes, file, root) else {
                continue;
            };
            if page.meta("draft") == Some("true") || instance.excluded.has(below) {
                let path = file.strip_prefix(root).unwrap_or_default();
                read.unpublished.push(format!("/{path}"));
                continue;
            }
            let directory = below
                .rsplit_once('/')
                .map_or("", |(directory, _)| directory);
            let directory: Vec<_> = directory.split('/').map(|one| unnumbered(one).1).collect();
            let directory = directory.join("/");
            let name = unnumbered(page.name()).1.to_owned();
            let id = page.meta("id").map_or(name, str::to_owned);
            let id = match directory.is_empty() {
                true => id,
                false => format!("{directory}/{id}"),
            };
            read.by_id.insert(id, read.pages.len());
            read.pages.push(page);
            read.directories.push(directory);
        }
        read
    }

    /// Converts the sidebars of the instance: the label and the children of each.
    pub(super) fn convert(
        &mut self,
        notes: &mut Notes<'_>,
        directory: &TreePath,
        instance: &Instance<'_>,
        config: &Value,
    ) -> Vec<Labelled> {
        let default = instance
            .id
            .as_deref()
            .map_or_else(|| "Docs".to_owned(), words);
        let named = instance.sidebars.filter(|named| !named.is_null());
        if named.and_then(Value::flag) == Some(false) {
            return Vec::new();
        }
        let file = notes.text(named);
        let from = directory.join("docusaurus.config.js").unwrap_or_default();
        let usual = match (named, &file) {
            (None, _) => Some("./sidebars.js"),
            (_, Some(file)) => Some(&**file),
            _ => None,
        };
        let file = usual.and_then(|file| {
            let file = match file.starts_with('.') {
                true => file.to_owned(),
                false => format!("./{file}"),
            };
            notes.imported(&from, &file)
        });
        let Some(file) = file else {
            if let Some(named) = named {
                let help = "the sidebar follows the directories instead";
                notes.entry(named.span, "the file with the sidebars is not there", help);
            }
            let entries = self.directory(notes, "", 0);
            return vec![(default, of_entries(entries))];
        };
        let sidebars = match notes.read(&file) {
            Ok(sidebars) => sidebars,
            Err(error) => {
                let span = named.map_or(config.span, |named| named.span);
                let help = "the sidebar follows the directories instead";
                notes.entry(span, format!("{error:#}"), help);
                let entries = self.directory(notes, "", 0);
                return vec![(default, of_entries(entries))];
            }
        };
        let mut all = Vec::new();
        for sidebar in sidebars.members() {
            let label = navbar_items(config).iter().find(|item| {
                let text = |key: &str| item.get(key).and_then(Value::text);
                text("sidebarId") == Some(&sidebar.key)
                    && text("docsPluginId") == instance.id.as_deref()
            });
            let label = notes.text(label.and_then(|item| item.get("label")));
            let entries = self.items(notes, &sidebar.value, 0);
            if entries.is_empty() {
                continue;
            }
            let label = label.unwrap_or_else(|| match sidebars.members().len() {
                1 => default.clone(),
                _ => words(&sidebar.key),
            });
            all.push((label, of_entries(entries)));
        }
        all
    }

    /// Converts the items of a sidebar or a category.
    fn items(&mut self, notes: &mut Notes<'_>, items: &Value, depth: usize) -> Vec<Json> {
        if depth > DEPTH_MAX {
            return Vec::new();
        }
        match &items.data {
            Data::List(list) => {
                let mut entries = Vec::new();
                for item in list {
                    self.item(notes, item, depth, &mut entries);
                }
                entries
            }
            // `{Category: ["page"]}`
            Data::Map(members) if items.get("type").is_none() => {
                let mut entries = Vec::new();
                for member in members {
                    let pages = self.items(notes, &member.value, depth + 1);
                    if !pages.is_empty() {
                        let label = (&*member.key).into();
                        let group = object([("group", label), ("pages", pages.into())]);
                        entries.push(group.into());
                    }
                }
                entries
            }
            Data::Map(_) => {
                let mut entries = Vec::new();
                self.item(notes, items, depth, &mut entries);
                entries
            }
            _ => {
                notes.computed(items.span);
                Vec::new()
            }
        }
    }

    fn item(&mut self, notes: &mut Notes<'_>, item: &Value, depth: usize, out: &mut Vec<Json>) {
        if let Some(id) = item.text() {
            out.extend(self.page(notes, id, item, None));
            return;
        }
        if item.data == Data::Unresolved {
            notes.computed(item.span);
            return;
        }
        let Some(kind) = item.get("type") else {
            out.extend(self.items(notes, item, depth));
            return;
        };
        let label = notes.text(item.get("label"));
        match kind.text() {
            Some("doc" | "ref") => {
                if let Some(id) = notes.text(item.get("id")) {
                    out.extend(self.page(notes, &id, item, label));
                }
            }
            Some("autogenerated") => {
                let directory = notes.text(item.get("dirName")).unwrap_or_default();
                let directory = directory.trim_matches(['.', '/']).to_owned();
                out.extend(self.directory(notes, &directory, depth));
            }
            Some("category") => {
                let pages = item
                    .get("items")
                    .map(|items| self.items(notes, items, depth + 1));
                let collapsed = item.get("collapsed").and_then(Value::flag);
                let root = self.link(notes, item.get("link"));
                let pages = pages.unwrap_or_default();
                out.extend(category(
                    &label.unwrap_or_default(),
                    root,
                    pages,
                    collapsed,
                    depth,
                ));
            }
            Some("link") => {
                let href = notes.text(item.get("href")).unwrap_or_default();
                let message = format!("a link in a sidebar ({href}) is not converted");
                let help = "write it into `navbar.links` or `navigation.global.anchors`";
                notes.entry(item.span, message, help);
            }
            _ => {
                let help = "write a page or a group instead";
                notes.entry(item.span, "this entry of a sidebar is not converted", help);
            }
        }
    }

    /// Returns the page that the label of a category opens.
    fn link(&mut self, notes: &mut Notes<'_>, link: Option<&Value>) -> Option<Json> {
        let link = link?;
        if link.get("type").and_then(Value::text) == Some("generated-index") {
            let help = "write a page and name it in `root` of the group";
            notes.entry(
                link.span,
                "the generated page of a category is left out",
                help,
            );
            return None;
        }
        let id = notes.text(link.get("id"))?;
        self.page(notes, &id, link, None)
    }

    fn page(
        &mut self,
        notes: &mut Notes<'_>,
        id: &str,
        at: &Value,
        label: Option<String>,
    ) -> Option<Json> {
        let Some(found) = self.by_id.get(id).copied() else {
            let help = "write the page, or remove the entry";
            notes.entry(
                at.span,
                format!("there is no page with the id {id:?}"),
                help,
            );
            return None;
        };
        let page = &mut self.pages[found];
        page.label = label.or(page.label.take());
        Some(named(notes, page, at.span))
    }

    /// Lists a directory as Docusaurus does: by position, number and name.
    fn directory(&mut self, notes: &mut Notes<'_>, directory: &str, depth: usize) -> Vec<Json> {
        let (_, entries) = self.listed(notes, directory, depth);
        entries
    }

    /// Returns the index of a directory and its other entries.
    fn listed(
        &mut self,
        notes: &mut Notes<'_>,
        directory: &str,
        depth: usize,
    ) -> (Option<Json>, Vec<Json>) {
        if depth > DEPTH_MAX {
            return (None, Vec::new());
        }
        let (mut listed, mut index) = (Vec::new(), None);
        // The directories below, by name without number: the name with number.
        let mut below: BTreeMap<String, String> = BTreeMap::new();
        for (at, page) in self.pages.iter().enumerate() {
            let of_page = self.directories[at].as_str();
            if of_page == directory && page.meta("unlisted") != Some("true") {
                let (number, name) = unnumbered(page.name());
                let position = page
                    .meta("sidebar_position")
                    .and_then(|text| text.parse().ok());
                let last = directory.rsplit('/').next().unwrap_or_default();
                let is_index = ["index", "readme"].contains(&&*name.to_lowercase());
                let is_index = is_index || (!directory.is_empty() && name == last);
                let json = named(notes, page, Span::default());
                if is_index && index.is_none() && !directory.is_empty() {
                    index = Some(json);
                } else {
                    listed.push(Listed {
                        position: position.or(number).unwrap_or(f64::MAX),
                        name: page.name().to_owned(),
                        json,
                    });
                }
            }
            let inside = match directory.is_empty() {
                true => Some(of_page),
                false => of_page
                    .strip_prefix(directory)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            if let Some(inside) = inside.filter(|inside| !inside.is_empty()) {
                let name = inside.split('/').next().unwrap_or_default();
                let depth = directory.split('/').filter(|one| !one.is_empty()).count();
                let path = page.path.strip_prefix(&self.below).unwrap_or_default();
                let written = path.split('/').nth(depth).unwrap_or_default();
                below.insert(name.to_owned(), written.to_owned());
            }
        }
        for (name, written) in below {
            let inside = match directory.is_empty() {
                true => name.clone(),
                false => format!("{directory}/{name}"),
            };
            let (root, pages) = self.listed(notes, &inside, depth + 1);
            let settings = self.category(notes, &inside);
            let get = |key: &str| settings.as_ref().and_then(|settings| settings.get(key));
            let label = get("label")
                .and_then(Value::scalar)
                .unwrap_or(&name)
                .to_owned();
            let collapsed = get("collapsed").and_then(Value::flag);
            let position = get("position").and_then(Value::scalar);
            let position = position.and_then(|text| text.parse().ok());
            let position = position.or(unnumbered(&written).0).unwrap_or(f64::MAX);
            let linked = get("link").cloned();
            let root = root.or_else(|| self.link(notes, linked.as_ref()));
            let json = category(&label, root, pages, collapsed, depth);
            listed.extend(json.map(|json| Listed {
                position,
                name: written,
                json,
            }));
        }
        listed.sort_by(|a, b| {
            let positions = a.position.total_cmp(&b.position);
            positions.then_with(|| a.name.cmp(&b.name))
        });
        (index, listed.into_iter().map(|one| one.json).collect())
    }

    /// Reads the settings of a directory, `_category_.json` or `.yml`.
    fn category(&self, notes: &mut Notes<'_>, directory: &str) -> Option<Value> {
        let at = self.directories.iter().position(|one| {
            one == directory
                || one
                    .strip_prefix(directory)
                    .is_some_and(|rest| rest.starts_with('/'))
        })?;
        // The directory as it is written, with its numbers.
        let depth = directory.split('/').count();
        let path = self.pages[at].path.strip_prefix(&self.below)?;
        let written: Vec<_> = path.split('/').take(depth).collect();
        let written = resolve(&self.below, &written.join("/"))?;
        let names = ["_category_.json", "_category_.yml", "_category_.yaml"].iter();
        let path = names
            .filter_map(|name| written.join(name).ok())
            .find(|path| notes.is_file(path))?;
        match notes.read(&path) {
            Ok(settings) => Some(settings),
            Err(error) => {
                let help = "correct the file, and convert again";
                let file = notes.add_text(&path, "").unwrap_or_default();
                notes.entry(at_start(file), format!("{error:#}"), help);
                None
            }
        }
    }

    /// Returns the old address of each page with its new one.
    pub(super) fn moved(&self, instance: &Instance<'_>) -> Vec<(String, String)> {
        let pages = self.pages.iter().zip(&self.directories);
        let moved = pages.map(|(page, directory)| {
            let name = unnumbered(page.name()).1;
            let last = directory.rsplit('/').next().unwrap_or_default();
            let is_index = ["index", "readme"].contains(&&*name.to_lowercase());
            let is_index = is_index || (!directory.is_empty() && name == last);
            let own = match (page.meta("slug"), page.meta("id")) {
                (Some(slug), _) => match slug.strip_prefix('/') {
                    Some(absolute) => absolute.to_owned(),
                    None => format!("{directory}/{slug}"),
                },
                (None, None) if is_index => directory.clone(),
                (None, id) => format!("{directory}/{}", id.unwrap_or(name)),
            };
            let from = format!("{}/{own}", instance.route);
            let from: Vec<_> = from.split('/').filter(|one| !one.is_empty()).collect();
            let slug = match page.slug.strip_suffix("README") {
                Some(before) => format!("{before}index"),
                None => page.slug.clone(),
            };
            (format!("/{}", from.join("/")), page::url(&slug))
        });
        moved.collect()
    }

    pub(super) fn into_pages(self) -> Vec<Page> {
        self.pages
    }
}

/// Returns how the navigation names a page. A README is ignored as a page, so it must be renamed.
fn named(notes: &mut Notes<'_>, page: &Page, at: Span) -> Json {
    let Some(before) = page.slug.strip_suffix("README") else {
        return page.slug.as_str().into();
    };
    let at = match at == Span::default() {
        true => notes.add_text(&page.path, "").map_or(at, at_start),
        false => at,
    };
    let message = format!("{} is ignored, because its name is README", page.path);
    notes.entry(at, message, "rename it to index");
    format!("{before}index").into()
}

fn at_start(file: FileId) -> Span {
    Span {
        file,
        start: 0,
        end: 0,
    }
}

/// Makes a group of a category; a category without pages but with a page of its own is that page.
fn category(
    label: &str,
    root: Option<Json>,
    pages: Vec<Json>,
    collapsed: Option<bool>,
    depth: usize,
) -> Option<Json> {
    if pages.is_empty() {
        return root;
    }
    let mut group: Map<String, Json> = object([("group", label.into())]);
    set(&mut group, "root", root.unwrap_or_default());
    // Groups at the top are always open.
    if collapsed == Some(false) && depth > 0 {
        set(&mut group, "expanded", true);
    }
    set(&mut group, "pages", pages);
    Some(group.into())
}

/// Splits the number off a name: `01-start` is number 1 and `start`. A date or a version, such as
/// `2024-01`, is no number.
fn unnumbered(name: &str) -> (Option<f64>, &str) {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &name[digits..];
    let mark = rest.trim_start_matches(' ');
    let after = mark.trim_start_matches(['-', '_', '.']);
    let text = after.trim_start_matches(' ');
    let is_marked = after.len() < mark.len();
    let is_text = text.starts_with(|letter: char| !letter.is_ascii_digit());
    match digits > 0 && is_marked && is_text {
        true => (name[..digits].parse().ok(), text),
        false => (None, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_before_names_are_split_off() {
        assert_eq!(unnumbered("01-start"), (Some(1.0), "start"));
        assert_eq!(unnumbered("2. next"), (Some(2.0), "next"));
        assert_eq!(unnumbered("2024-01-02"), (None, "2024-01-02"));
        assert_eq!(unnumbered("3d"), (None, "3d"));
        assert_eq!(unnumbered("plain"), (None, "plain"));
    }
}

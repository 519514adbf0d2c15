//! `mkdocs.yml`, also with the settings of Material for `MkDocs`.

use std::collections::HashMap;

use anyhow::Context as _;
use serde_json::{Map, Value as Json};

use super::Converted;
use super::notes::{Notes, object, resolve, set};
use super::pages::{self, Foreign, Page};
use crate::docs::page::title_of;
use crate::source::TreePath;
use crate::syntax::{Data, Member, Span, Value};

/// The colours that Material for `MkDocs` has names for.
const COLORS: [(&str, &str); 21] = [
    ("red", "#ef5552"),
    ("pink", "#e92063"),
    ("purple", "#ab47bd"),
    ("deep purple", "#7e56c2"),
    ("indigo", "#4051b5"),
    ("blue", "#2094f3"),
    ("light blue", "#02a6f2"),
    ("cyan", "#00bdd6"),
    ("teal", "#009485"),
    ("green", "#4cae4f"),
    ("light green", "#8bc34b"),
    ("lime", "#cbdc38"),
    ("yellow", "#ffec3d"),
    ("amber", "#ffc105"),
    ("orange", "#ffa724"),
    ("deep orange", "#ff6e42"),
    ("brown", "#795649"),
    ("grey", "#757575"),
    ("blue grey", "#546d78"),
    ("black", "#000000"),
    ("white", "#ffffff"),
];

/// Syntax of the extensions of Python-Markdown that is not read.
const FOREIGN: [Foreign; 6] = [
    Foreign {
        is: |line| line.starts_with("!!! "),
        name: "an admonition (`!!!`)",
        instead: "write `<Note>` … `</Note>`, or `> [!NOTE]` in a .md file",
    },
    Foreign {
        is: |line| line.starts_with("??? ") || line.starts_with("???+ "),
        name: "a collapsible admonition (`???`)",
        instead: "write `<Accordion title=\"…\">` … `</Accordion>`",
    },
    Foreign {
        is: |line| line.starts_with("=== \"") || line.starts_with("=== '"),
        name: "a content tab (`===`)",
        instead: "write `<Tabs>` with a `<Tab title=\"…\">` for each",
    },
    Foreign {
        is: |line| line.starts_with("--8<--") || line.starts_with("-8<-"),
        name: "a snippet (`--8<--`)",
        instead: "write `import Part from \"/snippets/part.mdx\"` and `<Part />`",
    },
    Foreign {
        is: |line| line.starts_with("::: "),
        name: "a block of mkdocstrings (`:::`)",
        instead: "write the text that the plugin would make",
    },
    Foreign {
        is: |line| line.starts_with("{%") || line.starts_with("{{"),
        name: "a macro",
        instead: "write the text that the plugin would make",
    },
];

struct Reading<'n, 't> {
    notes: &'n mut Notes<'t>,
    docs: TreePath,
    pages: Vec<Page>,
    by_path: HashMap<TreePath, usize>,
    links: Vec<Json>,
}

/// Converts `mkdocs.yml`.
pub(super) fn convert(
    mut notes: Notes<'_>,
    path: &TreePath,
    write_pages: bool,
) -> anyhow::Result<Converted> {
    let root = notes.read(path)?;
    anyhow::ensure!(root.is_map(), "{path} is not a mapping");
    let directory = path.parent().unwrap_or_default();
    let docs = notes.text(root.get("docs_dir"));
    let docs = docs.unwrap_or_else(|| "docs".to_owned());
    let docs = resolve(&directory, &docs)
        .filter(|docs| notes.tree.list(docs).is_ok())
        .with_context(|| format!("the docs_dir {docs:?} of {path} is not a directory"))?;
    let files: Vec<_> = notes.tree.files().cloned().collect();
    let pages = files
        .iter()
        .filter_map(|file| Page::read(&notes, file, &docs));
    let pages: Vec<Page> = pages.collect();
    let by_path = pages.iter().enumerate();
    let by_path = by_path.map(|(at, page)| (page.path.clone(), at)).collect();
    let mut reading = Reading {
        notes: &mut notes,
        docs: docs.clone(),
        pages,
        by_path,
        links: Vec::new(),
    };
    let mut config = settings(&mut reading, &root);
    let mut navigation = navigation(&mut reading, &root);
    let global = object([("anchors", std::mem::take(&mut reading.links).into())]);
    set(&mut navigation, "global", global);
    config.insert("navigation".to_owned(), navigation.into());
    let mut pages = reading.pages;
    let changed = pages::titles(&mut notes, &mut pages, write_pages);
    pages::syntax(&mut notes, &pages, &FOREIGN);
    Ok(notes.finish(docs, config, Vec::new(), changed))
}

fn settings(reading: &mut Reading<'_, '_>, root: &Value) -> Map<String, Json> {
    let mut config = Map::new();
    let mut primary_link = Map::new();
    let name = reading.notes.text(root.get("site_name"));
    set(&mut config, "name", name.unwrap_or_default());
    for Member { key, span, value } in root.members() {
        let notes = &mut *reading.notes;
        match &**key {
            // Read elsewhere, or without a meaning here.
            "site_name" | "docs_dir" | "nav" | "site_dir" | "edit_uri" | "repo_name" | "strict"
            | "watch" | "dev_addr" | "copyright" | "site_author" => {}
            "use_directory_urls" => {
                if value.flag() == Some(false) {
                    let message = "addresses have no `.html` here";
                    let help = "write a redirect from /NAME.html for each page that others link to";
                    notes.setting_with_help(*span, message, help);
                }
            }
            "site_description" => {
                let value = notes.json(value);
                set(&mut config, "description", value);
            }
            "repo_url" => {
                let url = notes.text(Some(value)).unwrap_or_default();
                let kind = match url.contains("github.com/") {
                    true => "github",
                    false => "button",
                };
                let label = notes.text(root.get("repo_name"));
                let label = label.unwrap_or_else(|| "Repository".to_owned());
                primary_link = object([
                    ("type", kind.into()),
                    ("label", label.into()),
                    ("href", url.into()),
                ]);
            }
            "theme" => theme(reading, value, &mut config),
            "plugins" => plugins(reading, value, &mut config),
            "extra" => {
                let social = value.get("social").map_or(&[][..], Value::items);
                let mut socials = Map::new();
                for one in social {
                    let icon = notes.text(one.get("icon")).unwrap_or_default();
                    let name = icon.rsplit('/').next().unwrap_or_default();
                    let name = match name {
                        "x-twitter" | "twitter" => "x",
                        name => name,
                    };
                    let link = notes.text(one.get("link")).unwrap_or_default();
                    set(&mut socials, name, link);
                }
                set(&mut config, "footer", object([("socials", socials.into())]));
                for other in value.members() {
                    if &*other.key != "social" {
                        let message = format!("`extra.{}` has no counterpart", other.key);
                        notes.setting(other.span, message);
                    }
                }
            }
            "extra_css" => {
                for one in value.items() {
                    let help = "put the file into the directory of the pages: every stylesheet \
                                there applies; check that its selectors exist here";
                    let message = "a stylesheet of another theme";
                    notes.setting_with_help(one.span, message, help);
                }
            }
            "extra_javascript" | "hooks" => {
                notes.setting(*span, format!("`{key}`: scripts of authors are not run"));
            }
            "markdown_extensions" => extensions(notes, value),
            "site_url" => {
                let url = notes.text(Some(value)).unwrap_or_default();
                let path = url
                    .split("://")
                    .nth(1)
                    .and_then(|rest| rest.split_once('/'));
                if path.is_some_and(|(_, path)| !path.trim_matches('/').is_empty()) {
                    let help = "set `base_path` in the record of the site";
                    let message = "the site is below a path of its host";
                    notes.setting_with_help(*span, message, help);
                }
            }
            _ => {
                let help = match &**key {
                    "INHERIT" => "copy the settings of that file into this one",
                    _ => "see the list of keys in the documentation of docs.json",
                };
                let message = format!("`{key}` has no counterpart in docs.json");
                notes.setting_with_help(*span, message, help);
            }
        }
    }
    set(
        &mut config,
        "navbar",
        object([("primary", primary_link.into())]),
    );
    config
}

fn theme(reading: &mut Reading<'_, '_>, theme: &Value, config: &mut Map<String, Json>) {
    let palettes = match theme.get("palette") {
        Some(palette) if palette.is_map() => std::slice::from_ref(palette),
        Some(palette) => palette.items(),
        None => &[],
    };
    let named = |palette: &Value, key: &str| {
        let name = palette.get(key)?.text()?.replace('-', " ");
        let (_, color) = COLORS.iter().find(|(known, _)| **known == *name)?;
        // Texts in black or white would not be a colour of the site.
        (!matches!(name.as_str(), "black" | "white")).then_some(*color)
    };
    let primary = palettes
        .iter()
        .find_map(|palette| named(palette, "primary"));
    let accent = palettes.iter().find_map(|palette| named(palette, "accent"));
    if let Some(color) = primary.or(accent) {
        set(config, "colors", object([("primary", color.into())]));
    }
    for palette in palettes {
        let primary = palette.get("primary");
        if let Some(custom) = primary.filter(|primary| primary.text() == Some("custom")) {
            let help = "write the colour into `colors.primary`";
            let message = "the colour is in a stylesheet";
            reading.notes.setting_with_help(custom.span, message, help);
        }
    }
    if let [one] = palettes {
        let scheme = one.get("scheme").and_then(Value::text);
        let default = match scheme {
            Some("slate") => "dark",
            _ => "light",
        };
        let appearance = object([("default", default.into()), ("strict", true.into())]);
        set(config, "appearance", appearance);
    }
    for key in ["logo", "favicon"] {
        let Some(value) = theme.get(key) else {
            continue;
        };
        let file = value.text().and_then(|file| resolve(&reading.docs, file));
        match file.filter(|file| reading.notes.is_file(file)) {
            Some(file) => {
                let below = file.strip_prefix(&reading.docs).unwrap_or_default();
                set(config, key, format!("/{below}"));
            }
            None => {
                let help = "put the image into the directory of the pages and name it in docs.json";
                let message = format!("the file of `theme.{key}` is not there");
                reading.notes.setting_with_help(value.span, message, help);
            }
        }
    }
    for Member { key, span, .. } in theme.members() {
        let is_read = [
            "name", "palette", "logo", "favicon", "features", "icon", "language",
        ];
        if !is_read.contains(&&**key) {
            let message = format!("`theme.{key}` has no counterpart in docs.json");
            reading.notes.setting(*span, message);
        }
    }
}

/// Returns the entries of `plugins` or `markdown_extensions`: a name with its settings.
fn entries(value: &Value) -> Vec<(&str, &Value, Option<&Value>)> {
    let mut entries = Vec::new();
    for item in value.items() {
        match item.members() {
            [] => entries.extend(item.text().map(|name| (name, item, None))),
            members => {
                let members = members.iter();
                entries.extend(members.map(|one| (&*one.key, item, Some(&one.value))));
            }
        }
    }
    for one in value.members() {
        entries.push((&*one.key, &one.value, Some(&one.value)));
    }
    entries
}

fn plugins(reading: &mut Reading<'_, '_>, value: &Value, config: &mut Map<String, Json>) {
    for (name, at, settings) in entries(value) {
        match name.rsplit('/').next().unwrap_or(name) {
            // Built in.
            "search" | "minify" | "git-revision-date-localized" | "autorefs" | "offline" => {}
            "redirects" => {
                let maps = settings.and_then(|settings| settings.get("redirect_maps"));
                let mut redirects = Vec::new();
                for one in maps.map_or(&[][..], Value::members) {
                    let Some(to) = one.value.text() else {
                        reading.notes.computed(one.value.span);
                        continue;
                    };
                    let to = match to.contains("://") {
                        true => to.to_owned(),
                        false => address(to),
                    };
                    let (from, to) = (address(&one.key).into(), to.into());
                    redirects.push(object([("source", from), ("destination", to)]).into());
                }
                set(config, "redirects", Json::Array(redirects));
            }
            _ => {
                let message = format!("the plugin `{name}` has no counterpart");
                reading.notes.setting(at.span, message);
            }
        }
    }
}

fn extensions(notes: &mut Notes<'_>, value: &Value) {
    /// Extensions whose syntax is read, or reported where a page uses it.
    const READ: [&str; 25] = [
        "tables",
        "fenced_code",
        "footnotes",
        "toc",
        "extra",
        "sane_lists",
        "smarty",
        "admonition",
        "codehilite",
        "abbr",
        "superfences",
        "highlight",
        "inlinehilite",
        "details",
        "tabbed",
        "snippets",
        "emoji",
        "tasklist",
        "magiclink",
        "arithmatex",
        "betterem",
        "tilde",
        "meta",
        "nl2br",
        "mdx_truly_sane_lists",
    ];
    for (name, at, _) in entries(value) {
        let last = name.rsplit('.').next().unwrap_or(name);
        if !READ.contains(&last) {
            let message = format!("the syntax of the extension `{name}` is not read");
            notes.setting(at.span, message);
        }
    }
}

/// Returns the address of a page of `MkDocs`: `guide/index.md` is at `/guide`.
fn address(file: &str) -> String {
    let (path, anchor) = match file.split_once('#') {
        Some((path, anchor)) => (path, format!("#{anchor}")),
        None => (file, String::new()),
    };
    let slug = path.strip_suffix(".md").unwrap_or(path).trim_matches('/');
    let slug = match slug.strip_suffix("README") {
        Some(before) => format!("{before}index"),
        None => slug.to_owned(),
    };
    format!("{}{anchor}", crate::docs::page::url(&slug))
}

// === navigation ===

fn navigation(reading: &mut Reading<'_, '_>, root: &Value) -> Map<String, Json> {
    let features = root.get("theme").and_then(|theme| theme.get("features"));
    let features = features.map_or(&[][..], Value::items).iter();
    let features: Vec<_> = features.filter_map(Value::text).collect();
    let entries = match root.get("nav") {
        Some(nav) => nav
            .items()
            .iter()
            .filter_map(|entry| reading.entry(entry))
            .collect(),
        None => reading.below(""),
    };
    if features.contains(&"navigation.tabs") && entries.iter().any(Json::is_object) {
        let tabs: Vec<_> = entries
            .into_iter()
            .map(|entry| match entry {
                Json::Object(mut group) => {
                    let label = group.remove("group").unwrap_or_default();
                    let mut tab = object([("tab", label)]);
                    let root = group.remove("root");
                    let mut pages = Vec::from_iter(root);
                    if let Some(Json::Array(listed)) = group.remove("pages") {
                        pages.extend(listed);
                    }
                    tab.extend(of_entries(pages));
                    Json::from(tab)
                }
                page => {
                    let slug = page.as_str().unwrap_or_default();
                    let known = reading.pages.iter().find(|known| known.slug == *slug);
                    let label = known.and_then(|page| page.label.clone());
                    let label = label.unwrap_or_else(|| match slug {
                        "index" => "Home".to_owned(),
                        slug => title_of(slug).into(),
                    });
                    let pages = vec![page.clone()];
                    Json::from(object([("tab", label.into()), ("pages", pages.into())]))
                }
            })
            .collect();
        return object([("tabs", tabs.into())]);
    }
    of_entries(entries)
}

/// Makes the children of a division: groups, or pages if one of them is a page.
pub(super) fn of_entries(entries: Vec<Json>) -> Map<String, Json> {
    let key = match !entries.is_empty() && entries.iter().all(Json::is_object) {
        true => "groups",
        false => "pages",
    };
    let mut map = Map::new();
    map.insert(key.to_owned(), entries.into());
    map
}

// === impl Reading ===

impl Reading<'_, '_> {
    fn entry(&mut self, entry: &Value) -> Option<Json> {
        match &entry.data {
            Data::Text(file) => self.page(file, entry, None),
            Data::Map(members) => {
                let [Member { key, value, .. }] = &**members else {
                    let help = "write it into docs.json by hand";
                    self.notes
                        .entry(entry.span, "this entry has several keys", help);
                    return None;
                };
                match &value.data {
                    Data::List(items) => {
                        let pages = items.iter();
                        let mut pages: Vec<Json> =
                            pages.filter_map(|item| self.entry(item)).collect();
                        if pages.is_empty() {
                            return None;
                        }
                        let mut group = object([("group", (&**key).into())]);
                        // Material shows an index page as the page of the section.
                        let is_index = |page: &Json| {
                            let slug = page.as_str().unwrap_or_default();
                            slug.ends_with("/index")
                        };
                        if pages.len() > 1 && pages.first().is_some_and(is_index) {
                            group.insert("root".to_owned(), pages.remove(0));
                        }
                        group.insert("pages".to_owned(), pages.into());
                        Some(group.into())
                    }
                    Data::Text(file) => self.page(file, value, Some(key)),
                    _ => {
                        let help = "name a page or a list of pages";
                        self.notes
                            .entry(entry.span, "this entry names no page", help);
                        None
                    }
                }
            }
            _ => {
                let help = "name a page or a list of pages";
                self.notes
                    .entry(entry.span, "this entry names no page", help);
                None
            }
        }
    }

    fn page(&mut self, file: &str, at: &Value, label: Option<&str>) -> Option<Json> {
        if file.contains("://") || file.starts_with("mailto:") {
            let Some(label) = label else {
                let help = "give the link a label";
                self.notes.entry(at.span, "a link without a label", help);
                return None;
            };
            let link = object([("anchor", label.into()), ("href", file.into())]);
            self.links.push(link.into());
            return None;
        }
        let path = resolve(&self.docs, file);
        let directory = path
            .as_ref()
            .filter(|path| self.notes.tree.list(path).is_ok());
        if let Some(directory) = directory {
            let directory = directory.strip_prefix(&self.docs).unwrap_or_default();
            let pages = self.below(&format!("{directory}/"));
            let label = label.map_or_else(|| title_of(directory).into(), str::to_owned);
            let group = object([("group", label.into()), ("pages", pages.into())]);
            return group.contains_key("pages").then(|| group.into());
        }
        let known = path.as_ref().and_then(|path| self.by_path.get(path));
        let Some(known) = known.copied() else {
            let help = match file.contains(['*', '?']) {
                true => "list the pages",
                false => "write the page, or remove the entry",
            };
            let message = format!("there is no page {file:?}");
            self.notes.entry(at.span, message, help);
            return None;
        };
        let page = &mut self.pages[known];
        page.label = label.map(str::to_owned).or(page.label.take());
        let slug = page.slug.clone();
        Some(match index_of(&slug) {
            Some(index) => {
                note_readme(self.notes, at.span, file);
                index.into()
            }
            None => slug.into(),
        })
    }

    /// Lists the pages of a directory and of those in it, as `MkDocs` does without `nav`. The name
    /// of the directory ends with a slash; empty for all pages.
    fn below(&mut self, directory: &str) -> Vec<Json> {
        let mut slugs: Vec<String> = Vec::new();
        for page in &self.pages {
            let Some(index) = index_of(&page.slug) else {
                slugs.push(page.slug.clone());
                continue;
            };
            // Beside an index.md, MkDocs leaves it out too.
            let is_index = !self.pages.iter().any(|other| other.slug == index);
            if is_index && index.starts_with(directory) {
                note_readme(self.notes, Span::default(), page.path.as_str());
                slugs.push(index);
            }
        }
        let slugs: Vec<&str> = slugs.iter().map(String::as_str).collect();
        by_directory(&slugs, directory)
    }
}

/// Returns the page that a README.md is renamed to; `None` for another file.
fn index_of(slug: &str) -> Option<String> {
    let before = slug.strip_suffix("README")?;
    (before.is_empty() || before.ends_with('/')).then(|| format!("{before}index"))
}

fn note_readme(notes: &mut Notes<'_>, span: Span, file: &str) {
    let message = format!("{file} is ignored, because its name is README.md");
    notes.entry(span, message, "rename it to index.md");
}

/// Lists pages with a group for each directory; the index comes first.
fn by_directory(pages: &[&str], directory: &str) -> Vec<Json> {
    let mut entries: Vec<(bool, &str, Json)> = Vec::new();
    let mut groups: Vec<&str> = Vec::new();
    for slug in pages {
        let Some(below) = slug.strip_prefix(directory) else {
            continue;
        };
        match below.split_once('/') {
            None => entries.push((below != "index", below, (*slug).into())),
            Some((name, _)) if !groups.contains(&name) => {
                groups.push(name);
                let below = by_directory(pages, &format!("{directory}{name}/"));
                let group = object([
                    ("group", title_of(name).as_ref().into()),
                    ("pages", below.into()),
                ]);
                entries.push((true, name, group.into()));
            }
            Some(_) => {}
        }
    }
    entries.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    entries.into_iter().map(|(_, _, json)| json).collect()
}

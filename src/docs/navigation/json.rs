//! `navigation.json`: the resolved navigation for programs.
//!
//! ```json
//! {
//!   "version": 1,
//!   "first": "/quickstart",
//!   "content": { "kind": "tabs", "default": 0, "items": [
//!     { "label": "Guides", "icon": "book", "first": "/quickstart", "content":
//!       { "kind": "groups", "items": [
//!         { "label": "Start", "root": "/quickstart", "open": "always", "directory": "none",
//!           "items": [{ "page": "/install" }, { "label": "…", "items": [] }] }
//!       ] } }
//!   ] },
//!   "global": [{ "label": "Status", "href": "https://…" }],
//!   "pages": [{ "url": "/quickstart", "slug": "quickstart", "title": "Quickstart",
//!     "source": "file", "breadcrumb": ["Guides", "Start"], "next": "/install",
//!     "language": "en", "version": "v2" }]
//! }
//! ```
//!
//! **Invariant:** it holds only public content: no page whose frontmatter names `groups`, and
//! no group or division without a public page.
//!
//! Pages are named by their URL, which starts at the site's base path. `kind` is a key of
//! `docs.json` (`pages`, `groups`, `tabs`, `menu`, …) or `link`. Members without a value are
//! left out: there is no `null`, and no empty list except `items` and `pages`. Later versions
//! of this program only add members; a change of meaning is a new `version`.

use serde_json::{Map, Value, json};

use crate::docs::config::{Banner, Footer, Link, Navbar};

use super::Navigation;
use super::tree::{
    Anchor, Content, Division, Divisions, Entry, Group, LanguageParts, Page, PageId, Source,
};

/// The version of the format.
const VERSION: u32 = 1;

/// Writes a navigation as `navigation.json`.
#[must_use]
pub fn to_json(navigation: &Navigation) -> Vec<u8> {
    let mut root = Map::new();
    root.insert("version".to_owned(), VERSION.into());
    let writer = Writer { navigation };
    put(
        &mut root,
        "first",
        navigation.first().map(|id| writer.url(id)),
    );
    put(
        &mut root,
        "content",
        navigation
            .content
            .as_ref()
            .map(|content| writer.content(content)),
    );
    put_list(
        &mut root,
        "global",
        navigation.global.iter().map(anchor).collect(),
    );
    let public = navigation.pages.iter().filter(|page| page.public);
    let pages = public.map(|page| writer.page(page));
    root.insert("pages".to_owned(), pages.collect());
    serde_json::to_vec(&root).expect("texts and numbers are always JSON")
}

/// Returns the URLs of the pages in a `navigation.json`; an empty list if it is invalid.
#[must_use]
pub fn urls(bytes: &[u8]) -> Vec<Box<str>> {
    let root: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let pages = root["pages"].as_array().map_or(&[][..], Vec::as_slice);
    let urls = pages.iter().filter_map(|page| page["url"].as_str());
    urls.map(Box::from).collect()
}

struct Writer<'n> {
    navigation: &'n Navigation,
}

fn put(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

fn put_flag(object: &mut Map<String, Value>, key: &str, flag: bool) {
    put(object, key, flag.then_some(true));
}

fn put_list(object: &mut Map<String, Value>, key: &str, list: Vec<Value>) {
    put(object, key, (!list.is_empty()).then_some(list));
}

// === impl Writer ===

impl Writer<'_> {
    fn url(&self, id: PageId) -> &str {
        &self.navigation.page(id).url
    }

    /// Writes the content of an element; `None` if nothing in it is public.
    fn content(&self, content: &Content) -> Option<Value> {
        let (kind, items) = match content {
            Content::Entries(entries) => ("pages", self.entries(entries)),
            Content::Groups(groups) => {
                let groups = groups.iter().filter_map(|group| self.group(group));
                ("groups", groups.collect())
            }
            Content::Divisions(divisions) => return self.divisions(divisions),
            Content::Link(href) => return Some(json!({ "kind": "link", "href": href })),
        };
        (!items.is_empty()).then(|| json!({ "kind": kind, "items": items }))
    }

    fn divisions(&self, divisions: &Divisions) -> Option<Value> {
        let mut default = 0;
        let mut items = Vec::with_capacity(divisions.list.len());
        for (at, division) in divisions.list.iter().enumerate() {
            let Some(item) = self.division(division) else {
                continue;
            };
            if at == divisions.default {
                default = items.len();
            }
            items.push(item);
        }
        let kind = divisions.kind.key();
        let written = || json!({ "kind": kind, "default": default, "items": items });
        (!items.is_empty()).then(written)
    }

    fn division(&self, division: &Division) -> Option<Value> {
        let content = self.content(&division.content)?;
        let mut object = Map::new();
        put(&mut object, "label", Some(&*division.label));
        put(&mut object, "description", division.description.as_deref());
        put(&mut object, "icon", division.icon.as_deref());
        put(&mut object, "tag", division.tag.as_deref());
        put_flag(&mut object, "hidden", division.hidden);
        if let Some(parts) = &division.language {
            language(parts, &mut object);
        }
        put_list(
            &mut object,
            "global",
            division.global.iter().map(anchor).collect(),
        );
        put(&mut object, "first", division.first.map(|id| self.url(id)));
        put(&mut object, "content", Some(content));
        Some(Value::Object(object))
    }

    fn group(&self, group: &Group) -> Option<Value> {
        let root = group.root.filter(|id| self.navigation.page(*id).public);
        let items = self.entries(&group.entries);
        if root.is_none() && items.is_empty() {
            return None;
        }
        let mut object = Map::new();
        put(&mut object, "label", Some(&*group.label));
        put(&mut object, "icon", group.icon.as_deref());
        put(&mut object, "tag", group.tag.as_deref());
        put(&mut object, "root", root.map(|id| self.url(id)));
        put(&mut object, "open", Some(group.open.as_str()));
        put(&mut object, "directory", Some(group.listing().as_str()));
        put_flag(&mut object, "hidden", group.hidden);
        put(&mut object, "items", Some(items));
        Some(Value::Object(object))
    }

    fn entries(&self, entries: &[Entry]) -> Vec<Value> {
        let entry = |entry: &Entry| match entry {
            Entry::Page(id) => {
                let page = self.navigation.page(*id);
                page.public.then(|| json!({ "page": page.url }))
            }
            Entry::Group(group) => self.group(group),
        };
        entries.iter().filter_map(entry).collect()
    }

    fn page(&self, page: &Page) -> Value {
        let mut object = Map::new();
        put(&mut object, "url", Some(&*page.url));
        put(&mut object, "slug", Some(&*page.slug));
        put(&mut object, "title", Some(&*page.title));
        put(&mut object, "sidebarTitle", page.sidebar_title.as_deref());
        put(&mut object, "description", page.description.as_deref());
        put(&mut object, "icon", page.icon.as_deref());
        put(&mut object, "tag", page.tag.as_deref());
        put(&mut object, "link", page.link.as_deref());
        let source = match page.source {
            Source::File => "file",
            Source::Specification => "specification",
        };
        put(&mut object, "source", Some(source));
        put_flag(&mut object, "hidden", page.hidden);
        put_flag(&mut object, "noindex", page.noindex);
        put_flag(&mut object, "deprecated", page.deprecated);
        match &page.place {
            None => put_flag(&mut object, "unlisted", true),
            Some(place) => {
                let breadcrumb = place.breadcrumb.iter().map(|label| Value::from(&**label));
                put_list(&mut object, "breadcrumb", breadcrumb.collect());
                put(
                    &mut object,
                    "previous",
                    place.previous.map(|id| self.url(id)),
                );
                put(&mut object, "next", place.next.map(|id| self.url(id)));
                put(&mut object, "language", place.language.as_deref());
                put(&mut object, "version", place.version.as_deref());
            }
        }
        Value::Object(object)
    }
}

fn language(parts: &LanguageParts, object: &mut Map<String, Value>) {
    put(object, "language", Some(&*parts.language.code));
    put(object, "languageTag", Some(&*parts.language.tag));
    put(object, "banner", parts.banner.as_ref().map(banner));
    put(object, "footer", parts.footer.as_ref().map(footer));
    put(object, "navbar", parts.navbar.as_ref().map(navbar));
}

fn anchor(anchor: &Anchor) -> Value {
    let mut object = Map::new();
    put(&mut object, "label", Some(&*anchor.label));
    put(&mut object, "icon", anchor.icon.as_deref());
    put(&mut object, "href", Some(&*anchor.href));
    Value::Object(object)
}

fn banner(banner: &Banner) -> Value {
    json!({ "content": banner.content, "dismissible": banner.dismissible })
}

fn footer(footer: &Footer) -> Value {
    let socials: Map<_, _> = footer
        .socials
        .iter()
        .map(|(network, href)| (network.to_string(), Value::from(&**href)))
        .collect();
    let columns = footer.columns.iter().map(|column| {
        let mut object = Map::new();
        put(&mut object, "header", column.header.as_deref());
        put(
            &mut object,
            "items",
            Some(column.items.iter().map(link).collect::<Vec<_>>()),
        );
        Value::Object(object)
    });
    json!({ "socials": socials, "links": columns.collect::<Vec<_>>() })
}

fn navbar(navbar: &Navbar) -> Value {
    let mut object = Map::new();
    put_list(
        &mut object,
        "links",
        navbar.links.iter().map(link).collect(),
    );
    put(&mut object, "primary", navbar.primary.as_ref().map(link));
    Value::Object(object)
}

fn link(link: &Link) -> Value {
    let mut object = Map::new();
    put(&mut object, "label", link.label.as_deref());
    put(&mut object, "href", Some(&*link.href));
    put(&mut object, "type", link.kind.as_deref());
    put(&mut object, "icon", link.icon.as_deref());
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::{Options, read};
    use crate::source::{Tree, TreePath};

    fn written(files: &[(&str, &str)]) -> String {
        let files = files.iter().map(|(path, text)| {
            let bytes = bytes::Bytes::from((*text).to_owned());
            (TreePath::parse(path).unwrap(), bytes)
        });
        let (docs, found) = read(&Tree::from_files(files, []), &Options::default());
        assert_eq!(found, []);
        String::from_utf8(to_json(&docs.navigation)).unwrap()
    }

    const CONFIG: &str = r#"{"name": "A", "navigation": {"versions": [
        {"version": "2", "groups": [{"group": "Secrets", "pages": ["secret"]}]},
        {"version": "1", "default": true, "groups": [
            {"group": "Open", "root": "a", "directory": "card", "pages": ["secret", "b"]}]}]}}"#;

    #[test]
    fn a_navigation_is_written_as_documented() {
        let json = written(&[
            ("docs.json", CONFIG),
            ("a.mdx", "---\ntitle: First\n---"),
            ("b.mdx", ""),
            ("secret.mdx", "---\ngroups: [staff]\ntitle: Merger\n---"),
        ]);
        let is: Value = serde_json::from_str(&json).unwrap();
        let expected = json!({
            "version": 1,
            "first": "/a",
            "content": {"kind": "versions", "default": 0, "items": [
                {"label": "1", "first": "/a", "content": {"kind": "groups", "items": [
                    {"label": "Open", "root": "/a", "open": "always", "directory": "card", "items": [{"page": "/b"}]}]}}]},
            "pages": [
                {"url": "/a", "slug": "a", "title": "First", "source": "file",
                    "breadcrumb": ["Open"], "next": "/b", "version": "1"},
                {"url": "/b", "slug": "b", "title": "B", "source": "file",
                    "breadcrumb": ["Open"], "previous": "/a", "version": "1"}],
        });
        assert_eq!(is, expected);
    }

    #[test]
    fn private_entries_are_not_written() {
        let json = written(&[
            ("docs.json", CONFIG),
            ("a.mdx", ""),
            ("b.mdx", ""),
            ("secret.mdx", "---\ngroups: [staff]\ntitle: Merger\n---"),
        ]);
        for word in ["Merger", "secret", "Secrets", "staff"] {
            assert!(!json.contains(word), "{word}");
        }
    }
}

//! The frontmatter of a page.
//!
//! Keys that are not listed here belong to other tools and are ignored.

use super::Mode;
use crate::diagnostic::{Diagnostic, Location};
use crate::docs::schema;
use crate::frontmatter::Frontmatter;
use crate::source::TreePath;
use crate::syntax::{Data, Value};

/// The keys of a page's frontmatter that this program uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Meta {
    /// Its title.
    pub title: Option<Box<str>>,
    /// Its title in the sidebar, if it differs.
    pub sidebar_title: Option<Box<str>>,
    /// Its description, in one line.
    pub description: Option<Box<str>>,
    /// Its icon.
    pub icon: Option<Box<str>>,
    /// Its badge in the sidebar.
    pub tag: Option<Box<str>>,
    /// Which parts of the layout it has.
    pub mode: Mode,
    /// The address to which its sidebar entry leads instead of the page.
    pub url: Option<Box<str>>,
    /// Its canonical URL for search engines.
    pub canonical: Option<Box<str>>,
    /// The endpoint it describes: `[file] METHOD path`.
    pub openapi: Option<(Box<str>, Location)>,
    /// The endpoint that the page describes by hand: `METHOD URL`.
    pub api: Option<(Box<str>, Location)>,
    /// How requests of that endpoint are authenticated: `bearer`, `basic`, `key` or `none`.
    pub auth_method: Option<Box<str>>,
    /// The schema that the page describes: `[file] Name`.
    pub openapi_schema: Option<(Box<str>, Location)>,
    /// Search keywords.
    pub keywords: Vec<Box<str>>,
    /// The groups that may read it; an empty list means everyone.
    pub groups: Vec<Box<str>>,
    /// Whether sidebar, search and listings leave it out.
    pub hidden: Option<bool>,
    /// Whether search finds it, whatever `hidden` and `noindex` say.
    pub searchable: Option<bool>,
    /// The factor by which search raises it.
    pub boost: Option<f32>,
    /// Whether search engines and listings leave it out.
    pub noindex: bool,
    /// Whether the subject of the page is deprecated.
    pub deprecated: bool,
    /// Its tags for search engines and for previews of links.
    pub tags: Vec<Tag>,
    /// Whether the preview of a link to it has an image of its own.
    pub thumbnail: Option<bool>,
    /// Whether the links to the previous and the next page are left out.
    pub hide_neighbours: bool,
    /// Whether its endpoint has no form that sends requests: `playground` with another value than
    /// `interactive`.
    pub hide_form: bool,
    /// The day on which its author last changed it: `2026-01-31`.
    pub updated: Option<Box<str>>,
    /// Links to pages with related content, shown below the page.
    pub related: Vec<Related>,
}

/// A link to related content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Its text; `None` for the title of the page that it leads to.
    pub label: Option<Box<str>>,
    /// The address: a path of the site, or a URL.
    pub href: Box<str>,
    /// Its place in the file.
    pub location: Location,
}

/// A tag for search engines or for previews of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its name, such as `og:image`.
    pub name: Box<str>,
    /// Its content.
    pub content: Box<str>,
    /// Its place in the file.
    pub location: Location,
}

/// How many links to related content a page has.
const RELATED_MAX: usize = 10;
/// The beginnings of the names of keys that are tags.
const TAGS: [&str; 3] = ["og:", "twitter:", "article:"];

// === impl Meta ===

impl Meta {
    /// Reads frontmatter; a value of the wrong kind is reported and ignored.
    pub(super) fn read(
        frontmatter: &Frontmatter,
        path: &TreePath,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut reader = Reader {
            frontmatter,
            path,
            found,
        };
        Self {
            title: reader.text("title"),
            sidebar_title: reader.text("sidebarTitle"),
            description: reader.text("description"),
            icon: reader.text("icon"),
            tag: reader.text("tag"),
            mode: reader.mode(),
            url: reader.text("url"),
            canonical: reader.text("canonical"),
            openapi: reader.located_text("openapi"),
            api: reader.located_text("api"),
            auth_method: reader.text("authMethod"),
            openapi_schema: reader.located_text("openapi-schema"),
            keywords: reader.texts("keywords"),
            groups: reader.texts("groups"),
            hidden: reader.flag("hidden"),
            searchable: reader.flag("searchable"),
            boost: reader.weight("boost"),
            noindex: reader.flag("noindex").unwrap_or(false),
            deprecated: reader.flag("deprecated").unwrap_or(false),
            tags: reader.tags(),
            thumbnail: reader.flag("thumbnail"),
            hide_neighbours: reader.flag("hideFooterPagination").unwrap_or(false),
            hide_form: reader
                .text("playground")
                .is_some_and(|display| &*display != "interactive"),
            updated: reader.day("lastUpdatedDate"),
            related: reader.related(),
        }
    }

    /// Returns whether everyone may read the page.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.groups.is_empty()
    }
}

struct Reader<'m> {
    frontmatter: &'m Frontmatter,
    path: &'m TreePath,
    found: &'m mut Vec<Diagnostic>,
}

// === impl Reader ===

impl Reader<'_> {
    fn wrong(&mut self, key: &str, value: &Value, expected: &str) {
        let message = format!("`{key}` is {expected}, not {}", value.yaml_kind());
        self.report(value, message);
    }

    fn report(&mut self, value: &Value, message: String) {
        let Location {
            line,
            column,
            length,
        } = self.frontmatter.locate(value.span);
        let diagnostic = Diagnostic::warning(super::FRONTMATTER, self.path.as_str(), message);
        self.found.push(diagnostic.at(line, column, length));
    }

    fn text(&mut self, key: &str) -> Option<Box<str>> {
        let value = self.frontmatter.mapping.get(key)?;
        match (&value.data, value.scalar()) {
            (Data::Null, _) => None,
            (_, Some(text)) => Some(text.trim())
                .filter(|text| !text.is_empty())
                .map(Box::from),
            // `icon` may be an object, as in the navigation.
            (Data::Map(_), None) if key == "icon" => {
                value.get("name").and_then(Value::scalar).map(Box::from)
            }
            _ => {
                self.wrong(key, value, "a text");
                None
            }
        }
    }

    fn mode(&mut self) -> Mode {
        let Some((text, _)) = self.located_text("mode") else {
            return Mode::default();
        };
        Mode::parse(&text).unwrap_or_else(|| {
            if let Some(value) = self.frontmatter.mapping.get("mode") {
                let known = "`default`, `wide`, `center`, `custom` and `frame`";
                self.report(
                    value,
                    format!("there is no mode `{text}`; the modes are {known}"),
                );
            }
            Mode::default()
        })
    }

    fn located_text(&mut self, key: &str) -> Option<(Box<str>, Location)> {
        let text = self.text(key)?;
        let value = self.frontmatter.mapping.get(key)?;
        Some((text, self.frontmatter.locate(value.span)))
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        let value = self.frontmatter.mapping.get(key)?;
        match (value.flag(), value.scalar()) {
            (Some(flag), _) => Some(flag),
            (None, Some("true")) => Some(true),
            (None, Some("false")) => Some(false),
            _ if value.data == Data::Null => None,
            _ => {
                self.wrong(key, value, "true or false");
                None
            }
        }
    }

    /// Reads a day as RFC 3339 writes it; a time after it is left out.
    fn day(&mut self, key: &str) -> Option<Box<str>> {
        let text = self.text(key)?;
        let day = text.get(..10).unwrap_or(&text);
        if day.parse::<jiff::civil::Date>().is_ok() && day.len() == 10 {
            return Some(day.into());
        }
        let value = self.frontmatter.mapping.get(key)?;
        self.report(
            value,
            format!("`{key}` is a day such as 2026-01-31, not `{text}`"),
        );
        None
    }

    /// Reads a list of addresses, and of objects with a title and an address; `false` is an empty
    /// list.
    fn related(&mut self) -> Vec<Related> {
        let Some(value) = self.frontmatter.mapping.get("related") else {
            return Vec::new();
        };
        if value.list().is_none() {
            if value.flag() != Some(false) && value.data != Data::Null {
                self.wrong("related", value, "a list of paths and URLs");
            }
            return Vec::new();
        }
        let mut related = Vec::new();
        for item in value.items().iter().take(RELATED_MAX) {
            let (label, address) = match item.members() {
                [only, ..] => (Some(only.key.clone()), &only.value),
                [] => (None, item),
            };
            match address.scalar() {
                Some(href) => related.push(Related {
                    label,
                    href: href.trim().into(),
                    location: self.frontmatter.locate(address.span),
                }),
                None => self.wrong("related", item, "a list of paths and URLs"),
            }
        }
        related
    }

    fn tags(&mut self) -> Vec<Tag> {
        let members = self.frontmatter.mapping.members().iter();
        let is_tag = |key: &str| TAGS.iter().any(|start| key.starts_with(start));
        let keys: Vec<Box<str>> = members
            .filter(|member| is_tag(&member.key))
            .map(|member| member.key.clone())
            .collect();
        let tag = |name: Box<str>| {
            let (content, location) = self.located_text(&name)?;
            Some(Tag {
                name,
                content,
                location,
            })
        };
        keys.into_iter().filter_map(tag).collect()
    }

    fn weight(&mut self, key: &str) -> Option<f32> {
        let value = self.frontmatter.mapping.get(key)?;
        let weight = schema::weight(value);
        if weight.is_none() && value.data != Data::Null {
            let written = value.scalar().unwrap_or(value.yaml_kind());
            let message = format!("`{key}` is {}, not {written}", schema::WEIGHT);
            self.report(value, message);
        }
        weight
    }

    /// Reads a list of texts; one text is split at its commas.
    fn texts(&mut self, key: &str) -> Vec<Box<str>> {
        let Some(value) = self.frontmatter.mapping.get(key) else {
            return Vec::new();
        };
        if let Some(items) = value.list() {
            return items
                .iter()
                .filter_map(Value::scalar)
                .map(Box::from)
                .collect();
        }
        let text = value.scalar().unwrap_or_default();
        let words = text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty());
        words.map(Box::from).collect()
    }
}

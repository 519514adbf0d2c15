//! What readers and search engines find around the text of a page: `seo`, `contextual`, `errors`,
//! `search`.

use crate::docs::schema::kind::{
    Flag, Label, List, OrDefault, Required, Section, Text, TextList, Texts,
};
use crate::docs::schema::{Declared as _, Field, Kind, Shape, elsewhere, object};
use crate::syntax::Value;

use super::Scheme;

object! {
    /// Tags for search engines and for previews of links.
    pub struct Seo = "`seo`" {
        /// Tags of every page: names and contents.
        "metatags" => metatags: OrDefault<Texts>,
        /// Tags of the pages below a path.
        "paths" => paths: OrDefault<List<SeoPath>>,
        /// The pages that search engines find: `navigable`, or `all`, also hidden pages.
        "indexing" => indexing: OrDefault<Indexing>,
        /// The owner of the site, for search engines.
        "organization" => organization: Section<Organization>,
    }
    also { Field::no_effect("trailingSlash", &["boolean"], "Addresses of pages have no slash at the end"), }
}

object! {
    /// Tags of the pages below a path.
    pub struct SeoPath = "an entry of `paths`" {
        /// The path, such as `/guides`; `*` stands for any text.
        "path" => path: Required<Label>,
        /// Names and contents of the tags.
        "metatags" => metatags: OrDefault<Texts>,
    }
}

object! {
    /// The owner of a site (schema.org, `Organization`).
    pub struct Organization = "`organization`" {
        /// The name.
        "name" => name: Required<Label>,
        /// The name in registers.
        "legalName" => legal_name: Text,
        /// The address of its own site.
        "url" => url: Text,
        /// The address of its logo.
        "logo" => logo: Text,
        /// An address that stands for it.
        "id" => id: Text,
        /// Its other addresses, such as its profiles in networks.
        "sameAs" => same_as: TextList,
    }
}

object! {
    /// The menu of a page.
    pub struct Contextual = "`contextual`" {
        /// The entries of the menu, in this order.
        "options" => options: Actions,
        /// The place of the menu: `header`, below the title, or `toc`, below the list of headings.
        "display" => display: OrDefault<Display>,
    }
}

object! {
    /// An entry that the owner of the site has added to the menu of a page.
    pub struct CustomAction = "a custom option" {
        /// Its text.
        "title" => title: Required<Label>,
        /// A sentence about it.
        "description" => description: Text,
        /// Its destination: a URL. `$page` is the address of the page as Markdown, `$path` its
        /// path, `$mcp` the address of the MCP server.
        "href" => href: Destination,
    }
    also { Field::accepted("icon", &["string", "object"], "The icon of the entry"), }
}

object! {
    /// The images that networks and chats show for links.
    pub struct Thumbnails = "`thumbnails`" {
        /// Whether they are `light` or `dark`.
        "appearance" => appearance: OrDefault<Scheme>,
        /// A picture below their text: an SVG, PNG or JPEG file of the site.
        "background" => background: Text,
        /// Whether each page has an image of its own.
        "pages" => pages: OrDefault<Flag>,
    }
    also { Field::new("fonts", Shape::Described(&[], &elsewhere::THUMBNAIL_FONTS), "The font of the images").without_effect(), }
}

object! {
    /// Pages for errors.
    pub struct Errors = "`errors`" {
        /// The page for paths that do not exist.
        "404" => not_found: OrDefault<Section<NotFound>>,
    }
}

object! {
    /// The page for paths that do not exist.
    pub struct NotFound = "`404`" {
        /// Its title.
        "title" => title: Text,
        /// The text below the title, in Markdown.
        "description" => description: Text,
        /// Whether readers are taken to the first page instead.
        "redirect" => redirect: OrDefault<Flag>,
    }
}

object! {
    /// Questions to readers below a page.
    pub struct Feedback = "`feedback`" {
        /// Whether readers are asked if the page was helpful.
        "thumbs" => thumbs: OrDefault<Flag>,
    }
    also {
        Field::accepted(
            "edits",
            &["boolean"],
            "The link to edit a page comes from the repository; no effect here",
        ),
        Field::accepted("issues", &["boolean"], "Links to issues"),
    }
}

object! {
    /// The search.
    pub struct Search = "`search`" {
        /// The text of the search box before a reader types.
        "prompt" => prompt: Text,
    }
}

object! {
    /// Facts about pages that come from the repository.
    pub struct Metadata = "`metadata`" {
        /// Whether a page shows the day of the last commit that changed its file; `lastUpdatedDate`
        /// in the frontmatter wins.
        "timestamp" => timestamp: OrDefault<Flag>,
    }
}

/// The pages that search engines find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// The pages that a sidebar lists.
    #[default]
    Navigable,
    /// Hidden pages too, but not those with `noindex`.
    All,
}

/// The place of the menu of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Display {
    /// Below the title.
    #[default]
    Header,
    /// Below the list of headings; below the title of a page without such a list.
    Contents,
}

/// The kind of the entries of the menu of a page.
#[derive(Debug)]
pub enum Actions {}

/// The kind of a URL, or of an object with its `base` and its `query`.
#[derive(Debug)]
pub enum Destination {}

/// An entry of the menu of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Copies the page as Markdown.
    Copy,
    /// Opens the page as Markdown.
    View,
    /// Opens the page in an assistant.
    Ask {
        /// The name of the assistant.
        name: &'static str,
        /// The beginning of its address, to which the question is added.
        address: &'static str,
    },
    /// Shows the address of the MCP server of the site.
    Server,
    /// Adds the MCP server of the site to Cursor.
    Cursor,
    /// Adds the MCP server of the site to VS Code.
    VsCode,
    /// An entry of the owner.
    Custom(CustomAction),
}

/// Assistants that a page can be opened in: key, name, address.
const ASSISTANTS: [(&str, &str, &str); 5] = [
    ("chatgpt", "ChatGPT", "https://chatgpt.com/?hints=search&q="),
    ("claude", "Claude", "https://claude.ai/new?q="),
    (
        "perplexity",
        "Perplexity",
        "https://www.perplexity.ai/search?q=",
    ),
    ("grok", "Grok", "https://grok.com/?q="),
    (
        "aistudio",
        "Google AI Studio",
        "https://aistudio.google.com/prompts/new_chat?prompt=",
    ),
];

/// Options of other platforms that have no effect here, because they need a service.
const WITHOUT_EFFECT: [&str; 6] = [
    "assistant",
    "devin",
    "devin-desktop",
    "devin-mcp",
    "download-pdf",
    "download-spec",
];

// === impl Action ===

impl Action {
    /// The entries of a site that names none.
    pub const DEFAULT: [Self; 5] = [
        Self::Copy,
        Self::View,
        Self::Cursor,
        Self::VsCode,
        Self::Server,
    ];

    /// Reads an entry; `None` if the entry has no effect here.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        let Some(key) = value.text() else {
            let custom = CustomAction::read(value)?;
            return custom.href.is_some().then_some(Self::Custom(custom));
        };
        Some(match key {
            "copy" => Self::Copy,
            "view" => Self::View,
            "mcp" | "add-mcp" => Self::Server,
            "cursor" => Self::Cursor,
            "vscode" => Self::VsCode,
            _ => {
                let mut all = ASSISTANTS.into_iter();
                let (_, name, address) = all.find(|(known, ..)| *known == key)?;
                Self::Ask { name, address }
            }
        })
    }

    /// Returns why an entry of `options` is left out; `None` if it is not left out.
    #[must_use]
    pub fn problem(value: &Value) -> Option<String> {
        if Self::of(value).is_some() {
            return None;
        }
        Some(match value.text() {
            Some(key) if WITHOUT_EFFECT.contains(&key) => {
                format!("the option `{key}` has no effect here")
            }
            Some(key) => format!("`{key}` is not an option of the menu"),
            None => "a custom option has `title` and `href`, a URL that begins with `https://` or `http://`".to_owned(),
        })
    }
}

// === impl Kind ===

impl Kind for Indexing {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::OneOf(&["navigable", "all"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(Value::text).and_then(|text| match text {
            "navigable" => Some(Self::Navigable),
            "all" => Some(Self::All),
            _ => None,
        }))
    }
}

impl Kind for Display {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::OneOf(&["header", "toc"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(Value::text).and_then(|text| match text {
            "header" => Some(Self::Header),
            "toc" => Some(Self::Contents),
            _ => None,
        }))
    }
}

impl Kind for Actions {
    type Value = Option<Vec<Action>>;
    const SHAPE: Shape = Shape::OfType(&["array"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        let items = value.and_then(Value::list);
        Some(items.map(|items| items.iter().filter_map(Action::of).collect()))
    }
}

impl Kind for Destination {
    type Value = Option<Box<str>>;
    const SHAPE: Shape = Shape::OfType(&["string", "object"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        let written = value.and_then(|value| {
            if let Some(href) = value.text() {
                return Some(href.trim().to_owned());
            }
            let base = value.get("base")?.text()?.trim();
            let query = value.get("query").map_or(&[][..], Value::items).iter();
            let pairs = query.filter_map(|pair| {
                let text = |key| pair.get(key).and_then(Value::text);
                Some(format!("{}={}", text("key")?, text("value")?))
            });
            let query = pairs.collect::<Vec<_>>().join("&");
            let mark = if base.contains('?') { "&" } else { "?" };
            Some(match query.is_empty() {
                true => base.to_owned(),
                false => format!("{base}{mark}{query}"),
            })
        });
        let is_http = |href: &String| href.starts_with("https://") || href.starts_with("http://");
        Some(written.filter(is_http).map(Into::into))
    }
}

// === impl Seo ===

impl Seo {
    /// Returns the tags of a page by its path in URLs, without leading slash: those of every page,
    /// then those of the paths that contain it. A later tag of the same name replaces an earlier
    /// one.
    #[must_use]
    pub fn tags(&self, path: &str) -> Vec<(&str, &str)> {
        let own = self.paths.iter().filter(|entry| entry.contains(path));
        let own = own.flat_map(|entry| &entry.metatags);
        let mut tags: Vec<(&str, &str)> = Vec::new();
        for (name, content) in self.metatags.iter().chain(own) {
            set_tag(&mut tags, name, content);
        }
        tags
    }

    /// Returns whether the tags of a page tell search engines to leave it out.
    #[must_use]
    pub fn hides(&self, path: &str) -> bool {
        let mut robots = self
            .tags(path)
            .into_iter()
            .filter(|(name, _)| *name == "robots");
        robots.any(|(_, content)| content.contains("noindex"))
    }
}

/// Sets the content of a tag.
pub fn set_tag<'t>(tags: &mut Vec<(&'t str, &'t str)>, name: &'t str, content: &'t str) {
    match tags.iter_mut().find(|(known, _)| *known == name) {
        Some(tag) => tag.1 = content,
        None => tags.push((name, content)),
    }
}

// === impl SeoPath ===

impl SeoPath {
    fn contains(&self, path: &str) -> bool {
        let pattern = self.path.trim_start_matches('/');
        if !pattern.contains('*') {
            let directory = pattern.trim_end_matches('/');
            let rest = path.strip_prefix(directory);
            return directory.is_empty()
                || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        }
        let mut parts = pattern.split('*').filter(|part| !part.is_empty());
        let mut rest = path;
        if !pattern.starts_with('*') {
            let first = parts.next().unwrap_or_default();
            let Some(after) = rest.strip_prefix(first) else {
                return false;
            };
            rest = after;
        }
        let mut last = "";
        for part in parts {
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
            last = part;
        }
        pattern.ends_with('*') || rest.is_empty() || (!last.is_empty() && rest.ends_with(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Diagnostics, json};

    fn value(text: &str) -> Value {
        let mut diagnostics = Diagnostics::default();
        let file = diagnostics.files.add("docs.json", text.into());
        json::read(file, &mut diagnostics).unwrap()
    }

    #[test]
    fn the_tags_of_a_path_replace_those_of_the_site() {
        let seo = Seo::read(&value(
            r#"{"metatags": {"og:site_name": "Acme", "x": "1"}, "paths": [
                {"path": "/api/*", "metatags": {"x": "2", "robots": "noindex, nofollow"}},
                {"path": "guides", "metatags": {"y": "3"}}]}"#,
        ))
        .unwrap();
        assert_eq!(
            seo.tags("api/a")[..2],
            [("og:site_name", "Acme"), ("x", "2")]
        );
        assert_eq!(seo.tags("guides").last(), Some(&("y", "3")));
        assert_eq!(seo.tags("guides/a").last(), Some(&("y", "3")));
        assert_eq!(seo.tags("guidestar").last(), Some(&("x", "1")));
        assert!(seo.hides("api/a") && !seo.hides("guides"));
    }

    #[test]
    fn a_star_in_a_path_stands_for_any_text() {
        for (pattern, path, contains) in [
            ("/", "a/b", true),
            ("/*", "a", true),
            ("/a/*/c", "a/b/c", true),
            ("/a/*/c", "a/b/d", false),
            ("/a/*/c", "a/b/c/d", false),
            ("/a/*", "b/a/c", false),
            ("*/c", "a/b/c", true),
            ("/a", "a/b", true),
            ("/a/", "ab", false),
        ] {
            let entry = SeoPath {
                path: pattern.into(),
                metatags: Vec::new(),
            };
            assert_eq!(entry.contains(path), contains, "{pattern} {path}");
        }
    }

    #[test]
    fn the_entries_of_the_menu_are_read_in_their_order() {
        let entries = value(
            r#"["view", "claude", "unknown", "cursor", {"title": "T", "href": {"base": "https://a.test", "query": [{"key": "q", "value": "$page"}]}},
                {"title": "no address"}, {"title": "x", "href": "javascript:alert(1)"}, "assistant"]"#,
        );
        let actions = Actions::read(Some(&entries)).flatten().unwrap();
        let [
            Action::View,
            Action::Ask { name: "Claude", .. },
            Action::Cursor,
            Action::Custom(custom),
        ] = &actions[..]
        else {
            panic!("{actions:?}");
        };
        assert_eq!(custom.href.as_deref(), Some("https://a.test?q=$page"));
        let problems = entries.items().iter().filter_map(Action::problem);
        assert_eq!(problems.count(), 4);
    }
}

//! `docs.json` beside its navigation: the site's name, its look, its redirects.

use crate::docs::schema::{self, table};
use crate::syntax::{Diagnostics, Span, Value};

/// What `docs.json` says beside its navigation.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The name of the site.
    pub name: Box<str>,
    /// What it documents.
    pub description: Option<Box<str>>,
    /// The name of its theme.
    pub theme: Option<Box<str>>,
    /// Its colours.
    pub colors: Colors,
    /// Its logo.
    pub logo: Option<Image>,
    /// Its icon.
    pub favicon: Option<Image>,
    /// Its fonts.
    pub fonts: Fonts,
    /// What stands above a page's title; unset is the theme's default.
    pub eyebrows: Option<Eyebrows>,
    /// Whether selecting a group opens its first page; unset is the theme's default.
    pub drilldown: Option<bool>,
    /// The library that its icons are of.
    pub icon_library: Option<Box<str>>,
    /// Its redirects.
    pub redirects: Vec<Redirect>,
    /// What stands above every page.
    pub banner: Option<Banner>,
    /// What stands below every page.
    pub footer: Option<Footer>,
    /// What stands in the bar above every page.
    pub navbar: Option<Navbar>,
    /// The specifications for pages that bind an endpoint.
    pub openapi: Vec<(Box<str>, Span)>,
    /// Whether rules N1 and N2 warn instead of failing.
    pub lenient: bool,
}

/// The colours of a site, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Colors {
    /// The main one.
    pub primary: Option<Box<str>>,
    /// The main one on dark ground.
    pub light: Option<Box<str>>,
    /// The one of buttons.
    pub dark: Option<Box<str>>,
}

/// The fonts of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fonts {
    /// Of everything.
    pub body: Option<Font>,
    /// Of titles, where it is another.
    pub heading: Option<Font>,
}

/// A font.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Font {
    /// The name of its family.
    pub family: Box<str>,
    /// Its weight, or the two ends of a variable one's.
    pub weight: Option<Box<str>>,
    /// Its file.
    pub source: Option<Box<str>>,
}

/// An image on light and on dark ground.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// On light ground.
    pub light: Box<str>,
    /// On dark ground.
    pub dark: Box<str>,
    /// Where it leads.
    pub href: Option<Box<str>>,
    /// Where it is written.
    pub span: Span,
}

/// What stands above a page's title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyebrows {
    /// The group the page is in.
    Section,
    /// The whole way to it.
    Breadcrumbs,
}

/// An old path and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The old path.
    pub source: Box<str>,
    /// Where it leads.
    pub destination: Box<str>,
    /// Whether for good.
    pub permanent: bool,
    /// Where the old path is written.
    pub span: Span,
    /// Where the new one is written.
    pub destination_span: Span,
}

/// A line above every page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banner {
    /// What it says, in inline Markdown.
    pub content: Box<str>,
    /// Whether a reader can close it.
    pub dismissible: bool,
}

/// What stands below every page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footer {
    /// Networks and the URLs of the accounts there.
    pub socials: Vec<(Box<str>, Box<str>)>,
    /// Columns of links.
    pub columns: Vec<Column>,
}

/// A column of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its title.
    pub header: Option<Box<str>>,
    /// Its links.
    pub items: Vec<Link>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What it says; a link to a repository may say nothing.
    pub label: Option<Box<str>>,
    /// Where it leads.
    pub href: Box<str>,
    /// What it is: `button`, `github`, `discord`.
    pub kind: Option<Box<str>>,
    /// Its icon.
    pub icon: Option<Box<str>>,
}

/// What stands in the bar above every page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Navbar {
    /// Links.
    pub links: Vec<Link>,
    /// The button.
    pub primary: Option<Link>,
}

// === impl Config ===

impl Config {
    /// Reads what `docs.json` says beside its navigation, and checks all its keys.
    #[must_use]
    pub fn read(root: &Value, diagnostics: &mut Diagnostics) -> Self {
        // The navigation has a check of its own, element by element.
        if !schema::check(root, &table::DOCS, diagnostics) {
            return Self::default();
        }
        let styling = root
            .get("styling")
            .and_then(|styling| text(styling, "eyebrows"));
        let redirects = root.get("redirects").map_or(&[][..], Value::items);
        Self {
            name: text(root, "name").unwrap_or_default(),
            description: text(root, "description"),
            theme: text(root, "theme"),
            colors: root.get("colors").map(colors).unwrap_or_default(),
            logo: root.get("logo").and_then(image),
            favicon: root.get("favicon").and_then(image),
            fonts: root.get("fonts").map(Fonts::read).unwrap_or_default(),
            eyebrows: styling.and_then(|name| match &*name {
                "section" => Some(Eyebrows::Section),
                "breadcrumbs" => Some(Eyebrows::Breadcrumbs),
                _ => None,
            }),
            drilldown: root
                .get("interaction")
                .and_then(|i| i.get("drilldown")?.flag()),
            icon_library: root.get("icons").and_then(|icons| text(icons, "library")),
            redirects: redirects.iter().filter_map(redirect).collect(),
            banner: root.get("banner").and_then(Banner::read),
            footer: root.get("footer").map(Footer::read),
            navbar: root.get("navbar").map(Navbar::read),
            openapi: root
                .get("api")
                .and_then(|api| api.get("openapi"))
                .map_or_else(Vec::new, sources),
            lenient: root.get("lenient").and_then(Value::flag).unwrap_or(false),
        }
    }
}

/// Returns the texts that a value of shape `OpenApi` names.
#[must_use]
pub fn sources(value: &Value) -> Vec<(Box<str>, Span)> {
    let one = |value: &Value| {
        let source = value.get("source").unwrap_or(value);
        Some((source.text()?.trim().into(), source.span))
    };
    match value.items() {
        [] => one(value).into_iter().collect(),
        items => items.iter().filter_map(one).collect(),
    }
}

fn text(value: &Value, key: &str) -> Option<Box<str>> {
    let text = value.get(key)?.text()?.trim();
    (!text.is_empty()).then(|| text.into())
}

fn colors(value: &Value) -> Colors {
    Colors {
        primary: text(value, "primary"),
        light: text(value, "light"),
        dark: text(value, "dark"),
    }
}

fn image(value: &Value) -> Option<Image> {
    if let Some(path) = value.text() {
        return Some(Image {
            light: path.into(),
            dark: path.into(),
            href: None,
            span: value.span,
        });
    }
    let (light, dark) = (text(value, "light"), text(value, "dark"));
    Some(Image {
        light: light.clone().or_else(|| dark.clone())?,
        dark: dark.or(light)?,
        href: text(value, "href").or_else(|| text(value, "url")),
        span: value.span,
    })
}

fn redirect(value: &Value) -> Option<Redirect> {
    Some(Redirect {
        source: text(value, "source")?,
        destination: text(value, "destination")?,
        permanent: value.get("permanent").and_then(Value::flag).unwrap_or(true),
        span: value.get("source")?.span,
        destination_span: value.get("destination")?.span,
    })
}

/// Returns the name of an icon: a text, or an object that has it.
#[must_use]
pub fn icon(value: &Value) -> Option<Box<str>> {
    let icon = value.get("icon")?;
    let name = icon.text().or_else(|| icon.get("name")?.text())?.trim();
    (!name.is_empty()).then(|| name.into())
}

/// Finds the icons that `docs.json` names beside labels, wherever those stand.
pub(super) fn icons(root: &Value) -> Vec<(Box<str>, Span)> {
    let mut found = Vec::new();
    for key in ["navigation", "navbar", "footer"] {
        if let Some(part) = root.get(key) {
            gather_icons(part, &mut found);
        }
    }
    found
}

/// Values lie at most `DEPTH_MAX` deep in each other.
fn gather_icons(value: &Value, found: &mut Vec<(Box<str>, Span)>) {
    if let (Some(name), Some(member)) = (icon(value), value.member("icon")) {
        found.push((name, member.value.span));
    }
    let below = value.members().iter().map(|member| &member.value);
    for value in below.chain(value.items()) {
        gather_icons(value, found);
    }
}

// === impl Fonts ===

impl Fonts {
    /// Reads one font for everything, or one each for `body` and `heading`.
    fn read(value: &Value) -> Self {
        let body = Font::read(value).or_else(|| Font::read(value.get("body")?));
        let heading = value.get("heading").and_then(Font::read);
        Self {
            heading: heading.or_else(|| body.clone()),
            body,
        }
    }
}

// === impl Font ===

impl Font {
    fn read(value: &Value) -> Option<Self> {
        let weight = value.get("weight").and_then(Value::scalar);
        Some(Self {
            family: text(value, "family")?,
            weight: weight.map(Box::from),
            source: text(value, "source"),
        })
    }

    /// Returns the path of its file from the root of the documentation; pages load none from
    /// elsewhere.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        let source = self.source.as_deref()?;
        let is_elsewhere = source.contains("://") || source.starts_with("//");
        (!is_elsewhere).then(|| source.trim_start_matches(['.', '/']))
    }
}

// === impl Banner ===

impl Banner {
    /// Reads a banner.
    #[must_use]
    pub fn read(value: &Value) -> Option<Self> {
        Some(Self {
            content: text(value, "content")?,
            dismissible: value
                .get("dismissible")
                .and_then(Value::flag)
                .unwrap_or(false),
        })
    }
}

// === impl Footer ===

impl Footer {
    /// Reads a footer.
    #[must_use]
    pub fn read(value: &Value) -> Self {
        let socials = value.get("socials").map_or(&[][..], Value::members);
        let columns = value.get("links").map_or(&[][..], Value::items);
        Self {
            socials: socials
                .iter()
                .filter_map(|member| Some((member.key.clone(), member.value.text()?.into())))
                .collect(),
            columns: columns
                .iter()
                .map(|column| Column {
                    header: text(column, "header"),
                    items: Link::read_all(column, "items"),
                })
                .collect(),
        }
    }
}

// === impl Link ===

impl Link {
    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            label: text(value, "label"),
            href: text(value, "href")?,
            kind: text(value, "type"),
            icon: icon(value),
        })
    }

    fn read_all(value: &Value, key: &str) -> Vec<Self> {
        let links = value.get(key).map_or(&[][..], Value::items);
        links.iter().filter_map(Self::read).collect()
    }
}

// === impl Navbar ===

impl Navbar {
    /// Reads a navbar.
    #[must_use]
    pub fn read(value: &Value) -> Self {
        Self {
            links: Link::read_all(value, "links"),
            primary: value.get("primary").and_then(Link::read),
        }
    }
}

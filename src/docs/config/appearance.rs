//! The appearance of a site: colours, images, fonts and defaults.

use crate::docs::schema::kind::{Flag, Href, Label, OrDefault, Required, Text};
use crate::docs::schema::{self, Declared, Field, Kind, Shape, elsewhere, object};
use crate::syntax::{Diagnostics, Span, SpanDiagnostic, Value};

object! {
    /// The colours of the site, as written.
    pub struct Colors = "`colors`" {
        /// The main colour, as #rrggbb.
        "primary" => primary: RequiredColor,
        /// The main colour on a dark background.
        "light" => light: Text,
        /// The main colour of buttons.
        "dark" => dark: Text,
    }
}

object! {
    /// The logo on light and on dark backgrounds.
    pub struct ImageKeys = "`logo`" {
        /// The image on a light background.
        "light" => light: Text,
        /// The image on a dark background.
        "dark" => dark: Text,
        /// The link of the logo.
        "href" => href: Href,
        /// The link of the logo; older files use this key.
        "url" => url: Href,
    }
}

object! {
    /// How pages look.
    pub struct Styling = "`styling`" {
        /// The text above a page's title; the default depends on the theme.
        "eyebrows" => eyebrows: Eyebrows,
        /// The colours of code: `system`, those of the page, or `dark`. With names of highlighting
        /// themes, `{"theme": {"light": "…", "dark": "…"}}` or one name, code is dark if the theme for
        /// light mode is a dark one; the colours are the built-in ones.
        "codeblocks" => codeblocks: Codeblocks,
        /// Whether pages have formulas between dollars; the default is true. `Latex` always has one.
        "latex" => latex: Flag,
    }
    also {
        Field::accepted(
            "custom",
            &["string"],
            "The site's own styles; no effect here, CSS files of the repository are used",
        ),
        Field::accepted(
            "rounded",
            &["string", "boolean"],
            "How round corners are; the theme decides",
        ),
    }
}

object! {
    /// How the sidebar behaves.
    pub struct Interaction = "`interaction`" {
        /// Whether selecting a group opens its first page; the default is the theme's.
        "drilldown" => drilldown: Flag,
    }
}

object! {
    /// The source of icons.
    pub struct Icons = "`icons`" {
        /// The library in which icons are looked up first.
        "library" => library: Text,
    }
}

object! {
    /// One font for everything, or one each for text and titles.
    pub struct FontSet = "`fonts`" {
        /// The font of everything but titles.
        "body" => body: Font,
        /// The font of titles.
        "heading" => heading: Font,
    }
}

/// The kind of the main colour: its absence is an error, but the other colours are read.
#[derive(Debug)]
pub enum RequiredColor {}

/// An image on light and on dark backgrounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// On a light background.
    pub light: Box<str>,
    /// On a dark background.
    pub dark: Box<str>,
    /// The destination of the link: a path or a URL.
    pub href: Option<Box<str>>,
    /// Its place in `docs.json`.
    pub span: Span,
}

/// The text above a page's title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyebrows {
    /// The group of the page.
    Section,
    /// All groups and divisions of the page.
    Breadcrumbs,
}

/// The colours of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codeblocks {
    /// Those of the page: light in light mode, dark in dark mode.
    System,
    /// Always dark.
    Dark,
}

/// The colours in which a page is shown first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Those of the reader's system.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

object! {
    /// Light and dark mode.
    pub struct Appearance = "`appearance`" {
        /// The mode in which pages are shown first: `system`, `light` or `dark`.
        "default" => default: OrDefault<Scheme>,
        /// Whether readers cannot change the mode.
        "strict" => strict: OrDefault<Flag>,
    }
}

/// The fonts of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fonts {
    /// The font of everything but titles.
    pub body: Option<Font>,
    /// The font of titles.
    pub heading: Option<Font>,
}

/// A font.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Font {
    /// The name of its family.
    pub family: Box<str>,
    /// Its weight, or the range of weights of a variable font.
    pub weight: Option<Box<str>>,
    /// Its file.
    pub source: Option<Box<str>>,
}

// === impl Font ===

impl Font {
    /// Returns the path of its file from the root of the documentation.
    ///
    /// It is `None` for a URL: pages do not load fonts from other sites.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        let source = self.source.as_deref()?;
        let is_elsewhere = source.contains("://") || source.starts_with("//");
        (!is_elsewhere).then(|| source.trim_start_matches(['.', '/']))
    }
}

// === impl Kind ===

impl Kind for RequiredColor {
    type Value = Option<Box<str>>;
    const SHAPE: Shape = Shape::Label;
    const REQUIRED: bool = true;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Label::read(value)
    }
}

impl Kind for Image {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::TextOr(ImageKeys::OBJECT);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(Self::of))
    }
}

impl Image {
    fn of(value: &Value) -> Option<Self> {
        let span = value.span;
        if let Some(path) = value.text() {
            return Some(Self {
                light: path.into(),
                dark: path.into(),
                href: None,
                span,
            });
        }
        let ImageKeys {
            light,
            dark,
            href,
            url,
        } = ImageKeys::read(value)?;
        Some(Self {
            light: light.clone().or_else(|| dark.clone())?,
            dark: dark.or(light)?,
            href: href.or(url),
            span,
        })
    }
}

impl Kind for Eyebrows {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::OneOf(&["section", "breadcrumbs"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(match value.and_then(Value::text) {
            Some("section") => Some(Self::Section),
            Some("breadcrumbs") => Some(Self::Breadcrumbs),
            _ => None,
        })
    }
}

/// Words in the names of dark themes of the highlighter Shiki.
const DARK_THEMES: [&str; 21] = [
    "dark",
    "night",
    "black",
    "dracula",
    "monokai",
    "nord",
    "frappe",
    "macchiato",
    "mocha",
    "andromeeda",
    "aurora",
    "houston",
    "laserwave",
    "kanagawa-wave",
    "kanagawa-dragon",
    "rose-pine-moon",
    "poimandres",
    "synthwave",
    "vesper",
    "material-theme-ocean",
    "material-theme-palenight",
];

/// Names of light themes of the highlighter Shiki without the word "light", and of others that are
/// no darker than the page.
const LIGHT_THEMES: [&str; 8] = [
    "catppuccin-latte",
    "css-variables",
    "horizon-bright",
    "kanagawa-lotus",
    "plastic",
    "red",
    "rose-pine-dawn",
    "slack-ochin",
];

// === impl Codeblocks ===

impl Codeblocks {
    /// Reports a name that is no theme of the highlighter.
    pub(super) fn check(root: &Value, diagnostics: &mut Diagnostics) {
        let styling = root.get("styling");
        let Some(written) = styling.and_then(|styling| styling.get("codeblocks")) else {
            return;
        };
        let theme = written.get("theme").unwrap_or(written);
        let values = [Some(theme), theme.get("light"), theme.get("dark")];
        for value in values.into_iter().flatten() {
            let is_known = |name: &str| {
                matches!(name, "system" | "light")
                    || name.contains("light")
                    || LIGHT_THEMES.contains(&name)
                    || DARK_THEMES.iter().any(|word| name.contains(word))
            };
            if let Some(name) = value.text().filter(|name| !is_known(name)) {
                let message =
                    format!("`codeblocks` has no theme `{name}`; code has the colours of the page");
                let help = "write `system`, `dark` or the name of a theme of Shiki";
                let warning = SpanDiagnostic::warning(schema::NO_EFFECT, value.span, message);
                diagnostics.push(warning.help(help));
            }
        }
    }
}

// === impl Kind ===

impl Kind for Codeblocks {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::Described(&["string"], &elsewhere::CODEBLOCKS);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        let theme = value.map(|value| value.get("theme").unwrap_or(value));
        let in_light_mode = theme.map(|theme| theme.get("light").unwrap_or(theme));
        Some(in_light_mode.and_then(Value::text).map(|name| {
            let is_dark = DARK_THEMES.iter().any(|word| name.contains(word));
            if is_dark { Self::Dark } else { Self::System }
        }))
    }
}

impl Kind for Scheme {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::OneOf(&["system", "light", "dark"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(match value.and_then(Value::text) {
            Some("system") => Some(Self::System),
            Some("light") => Some(Self::Light),
            Some("dark") => Some(Self::Dark),
            _ => None,
        })
    }
}

impl Kind for Font {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::OfType(&["object"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        let Some(value) = value else {
            return Some(None);
        };
        let weight = value.get("weight").and_then(Value::scalar);
        let family = Required::<Text>::read(value.get("family"));
        Some(family.map(|family| Self {
            family,
            weight: weight.map(Box::from),
            source: Text::read(value.get("source")).flatten(),
        }))
    }
}

impl Kind for Fonts {
    type Value = Self;
    const SHAPE: Shape = Shape::Described(&[], &elsewhere::FONTS);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        let FontSet { body, heading } = value.and_then(FontSet::read).unwrap_or_default();
        // Without `body` and `heading` the object itself is the font of texts and titles.
        let body = Font::read(value)?.or(body);
        Some(Self {
            heading: heading.or_else(|| body.clone()),
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::json;

    #[test]
    fn code_is_dark_with_a_dark_theme_in_light_mode() {
        for (text, expected) in [
            (r#""system""#, Some(Codeblocks::System)),
            (r#""dark""#, Some(Codeblocks::Dark)),
            (r#""github-light""#, Some(Codeblocks::System)),
            (r#"{"theme": "dracula"}"#, Some(Codeblocks::Dark)),
            (
                r#"{"theme": {"light": "github-light", "dark": "github-dark"}}"#,
                Some(Codeblocks::System),
            ),
            (
                r#"{"light": "one-dark-pro", "dark": "dracula"}"#,
                Some(Codeblocks::Dark),
            ),
            ("{}", None),
            ("7", None),
        ] {
            let mut diagnostics = Diagnostics::default();
            let file = diagnostics.files.add("docs.json", text.into());
            let value = json::read(file, &mut diagnostics);
            assert_eq!(Codeblocks::read(value.as_ref()), Some(expected), "{text}");
        }
    }
}

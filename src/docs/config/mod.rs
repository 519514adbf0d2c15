//! `docs.json` without its navigation: name, appearance and redirects of the site.

mod agents;
mod api;
mod appearance;
mod part;
mod reading;
mod redirect;
mod variable;

use crate::docs::schema::kind::{
    Flag, Label, List, OrDefault, RequiredOrEmpty, Section, Text, Unchecked,
};
use crate::docs::schema::{self, Declared as _, Field, Shape, elsewhere, navigation, object};
use crate::syntax::{Diagnostics, Span, SpanDiagnostic, Value};

pub(in crate::docs) use crate::docs::schema::kind::specifications as sources;
pub use agents::ForAgents;
pub use api::{
    Api, Defaults, Examples, Expanded, Language, Languages, Mdx, MdxAuth, Params, Playground,
    Playing,
};
pub use appearance::{
    Appearance, Codeblocks, Colors, Eyebrows, Font, FontSet, Fonts, Icons, Image, ImageKeys,
    Interaction, Scheme, Styling,
};
pub use part::{
    Banner, Button, Column, Footer, FooterLink, Link, Links, Navbar, NavbarLink, NavbarPrimary,
};
pub use reading::{
    Action, Actions, Contextual, CustomAction, Destination, Display, Errors, Feedback, Indexing,
    Metadata, NotFound, Organization, Search, Seo, SeoPath, Thumbnails, set_tag,
};
pub use redirect::Redirect;
pub use variable::{Misspelled, Variables};

object! {
    /// The configuration of a documentation site.
    pub struct Config = "docs.json" {
        /// The name of the site.
        "name" => name: RequiredOrEmpty<Label>,
        /// What the site documents.
        "description" => description: Text,
        /// The theme: its name selects one of three layouts, and some defaults.
        "theme" => theme: Text,
        /// The colours of the site.
        "colors" => colors: OrDefault<Section<Colors>>,
        /// Light and dark mode.
        "appearance" => appearance: OrDefault<Section<Appearance>>,
        /// The logo.
        "logo" => logo: Image,
        /// The icon of the site.
        "favicon" => favicon: Image,
        /// The fonts.
        "fonts" => fonts: Fonts,
        /// How pages look.
        "styling" => styling: OrDefault<Section<Styling>>,
        /// How the sidebar behaves.
        "interaction" => interaction: OrDefault<Section<Interaction>>,
        /// The library of icons.
        "icons" => icons: OrDefault<Unchecked<Icons>>,
        /// Old paths and their new destinations.
        "redirects" => redirects: OrDefault<List<Redirect>>,
        /// The banner above every page.
        "banner" ["N8"] => banner: Section<Banner>,
        /// The footer of every page.
        "footer" ["N8"] => footer: Section<Footer>,
        /// The bar at the top of every page.
        "navbar" ["N8"] => navbar: Section<Navbar>,
        /// Settings of endpoint pages.
        "api" => api: OrDefault<Section<Api>>,
        /// Tags for search engines and for previews of links.
        "seo" => seo: OrDefault<Section<Seo>>,
        /// The menu of a page.
        "contextual" => contextual: OrDefault<Section<Contextual>>,
        /// The images that networks and chats show for links.
        "thumbnails" => thumbnails: OrDefault<Section<Thumbnails>>,
        /// What agents read in the Markdown of pages.
        "markdown" => markdown: OrDefault<Section<ForAgents>>,
        /// Pages for errors.
        "errors" => errors: OrDefault<Section<Errors>>,
        /// Questions to readers below a page.
        "feedback" => feedback: OrDefault<Section<Feedback>>,
        /// The search.
        "search" => search: OrDefault<Section<Search>>,
        /// Facts about pages that come from the repository.
        "metadata" => metadata: OrDefault<Section<Metadata>>,
        /// Texts that pages name as `{{name}}`.
        "variables" => variables: OrDefault<Variables>,
        /// Rules N1 and N2 warn instead of failing.
        "lenient" => lenient: OrDefault<Flag>,
    }
    also {
        Field::new(
            "navigation",
            Shape::Object(&navigation::NAVIGATION),
            "The structure of the site",
        )
        .required()
        .rule("N1"),
        Field::accepted("$schema", &["string"], "The address of a JSON Schema, for editors"),
        Field::accepted(
            "public",
            &["boolean"],
            "Whether everyone may read the pages; no effect here, visibility is the site's",
        ),
        Field::new(
            "background",
            Shape::Described(&[], &elsewhere::BACKGROUND),
            "The background of pages; no effect here, the theme decides",
        )
        .without_effect(),
        Field::new(
            "integrations",
            Shape::Described(&[], &elsewhere::INTEGRATIONS),
            "Analytics and other services, by name; no effect here, pages load nothing from them",
        )
        .without_effect(),
        Field::accepted(
            "analytics",
            &["object"],
            "Analytics, by name; no effect here, pages load nothing from them",
        ),
        Field::accepted(
            "scripts",
            &["array", "string", "object"],
            "Scripts of authors; no effect here, they are not run",
        ),
        Field::accepted("variations", &["object"], "Variants of pages, as `options`"),
        Field::accepted("assistant", &["object"], "Settings of an assistant"),
        Field::accepted(
            "modeToggle",
            &["object"],
            "Light and dark mode; no effect here, use `appearance`",
        ),
        Field::accepted(
            "chat",
            &["object"],
            "Settings of a chat; no effect here, pages load nothing from such services",
        ),
    }
}

// === impl Config ===

impl Config {
    /// Reads `docs.json` without its navigation, and checks its keys.
    #[must_use]
    pub fn of(root: &Value, diagnostics: &mut Diagnostics) -> Self {
        // The elements of the navigation are checked one by one when it is compiled.
        if !schema::check(root, Self::OBJECT, diagnostics) {
            return Self::default();
        }
        check_buttons(root, diagnostics);
        check_menu(root, diagnostics);
        Language::check(root, diagnostics);
        Codeblocks::check(root, diagnostics);
        let config = Self::read(root).unwrap_or_default();
        config.markdown.check(root, diagnostics);
        config
    }
}

/// Reports the buttons of navbars that have no label.
///
/// Pages show them with a label that is made from their address.
fn check_buttons(root: &Value, diagnostics: &mut Diagnostics) {
    let languages = root.get("navigation").and_then(|n| n.get("languages"));
    let languages = languages.map_or(&[][..], Value::items);
    for value in std::iter::once(root).chain(languages) {
        let Some(primary) = value.get("navbar").and_then(|n| n.member("primary")) else {
            continue;
        };
        if let Some(label) = NavbarPrimary::read(&primary.value).and_then(|p| p.missing_label()) {
            let message = format!("the button of the navbar has no `label`; it shows `{label}`");
            let help = "add `label`, the text of the button";
            diagnostics.push(SpanDiagnostic::warning("N8", primary.span, message).help(help));
        }
    }
}

/// Reports entries of the menu of a page that are left out.
fn check_menu(root: &Value, diagnostics: &mut Diagnostics) {
    let options = root.get("contextual").and_then(|menu| menu.get("options"));
    let Some(options) = options else {
        return;
    };
    if options.list().is_none() {
        let message = format!("`options` is an array, not {}", options.kind());
        diagnostics.push(SpanDiagnostic::error(schema::SHAPE, options.span, message));
    }
    for option in options.items() {
        if let Some(problem) = Action::problem(option) {
            diagnostics.push(SpanDiagnostic::warning(
                schema::NO_EFFECT,
                option.span,
                problem,
            ));
        }
    }
}

/// Returns the name of the icon of an object.
#[must_use]
pub fn icon(value: &Value) -> Option<Box<str>> {
    schema::kind::icon(value.get("icon")?)
}

/// Finds the icons that `docs.json` names beside labels, at any depth.
pub(super) fn icons(root: &Value) -> Vec<(Box<str>, Span)> {
    let mut found = Vec::new();
    for key in ["navigation", "navbar", "footer"] {
        if let Some(part) = root.get(key) {
            gather_icons(part, &mut found);
        }
    }
    found
}

/// The settings that name pictures for the images that a build draws. A setting for one mode comes
/// before the one for both.
const PICTURES: [&str; 6] = [
    "logo.light",
    "logo.dark",
    "logo",
    "favicon.light",
    "favicon",
    "thumbnails.background",
];

/// Finds the settings that name pictures, with their places.
pub(super) fn pictures(root: &Value) -> Vec<(&'static str, Span)> {
    let place = |key: &'static str| {
        let value = key.split('.').try_fold(root, |value, name| value.get(name));
        value.map(|value| (key, value.span))
    };
    PICTURES.into_iter().filter_map(place).collect()
}

/// Collects icons recursively; values are nested at most `DEPTH_MAX` deep.
fn gather_icons(value: &Value, found: &mut Vec<(Box<str>, Span)>) {
    if let (Some(name), Some(member)) = (icon(value), value.member("icon")) {
        found.push((name, member.value.span));
    }
    let below = value.members().iter().map(|member| &member.value);
    for value in below.chain(value.items()) {
        gather_icons(value, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::json;

    fn read(text: &str) -> (Config, Vec<String>) {
        let mut diagnostics = Diagnostics::default();
        let file = diagnostics.files.add("docs.json", text.into());
        let root = json::read(file, &mut diagnostics).unwrap();
        let config = Config::of(&root, &mut diagnostics);
        let diagnostics = diagnostics.finish();
        (
            config,
            diagnostics.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn a_button_without_a_label_is_a_warning_and_gets_a_label() {
        for (primary, label, warnings) in [
            (
                r#"{"type": "button", "href": "https://www.acme.test/a"}"#,
                "acme.test",
                1,
            ),
            (r#"{"href": "/guides/get-started"}"#, "Get started", 1),
            (
                r#"{"type": "github", "href": "https://github.com/a/b"}"#,
                "GitHub",
                0,
            ),
            (
                r#"{"type": "discord", "href": "https://discord.gg/a"}"#,
                "Discord",
                0,
            ),
            (r#"{"label": "Go", "href": "/a"}"#, "Go", 0),
        ] {
            let text = format!(
                r#"{{"name": "A", "navigation": {{}}, "navbar": {{"primary": {primary}}}}}"#
            );
            let (config, diagnostics) = read(&text);
            let primary = config.navbar.unwrap().primary.unwrap();
            assert_eq!(primary.label.as_deref(), Some(label));
            assert_eq!(diagnostics.len(), warnings, "{diagnostics:?}");
        }
    }

    #[test]
    fn values_that_do_nothing_are_reported() {
        let (_, diagnostics) = read(
            r#"{"name": "A", "navigation": {}, "colors": {"primary": "red"},
            "api": {"examples": {"languages": ["curl", "cobol"]}},
            "styling": {"codeblocks": {"theme": {"light": "weird", "dark": "dracula"}}}}"#,
        );
        assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
        assert!(
            diagnostics[0].contains("no samples in `cobol`"),
            "{diagnostics:?}"
        );
        assert!(
            diagnostics[1].contains("no theme `weird`"),
            "{diagnostics:?}"
        );
        for theme in [
            r#""system""#,
            r#""github-light""#,
            r#"{"theme": "css-variables"}"#,
        ] {
            let text = format!(
                r#"{{"name": "A", "navigation": {{}}, "colors": {{"primary": "red"}}, "styling": {{"codeblocks": {theme}}}}}"#
            );
            assert_eq!(read(&text).1, [""; 0]);
        }
    }

    #[test]
    fn the_description_of_a_key_is_its_doc_comment() {
        let (config, diagnostics) = read(
            r##"{"name": " A ", "navigation": {}, "colors": {"primary": "#fff"}, "logo": "/l.svg",
            "styling": {"eyebrows": "breadcrumbs"}, "interaction": {"drilldown": false},
            "icons": {"library": "lucide", "other": 1}, "redirects": [{"source": "/a", "destination": "/b"},
                {"source": "/c", "destination": "/d", "permanent": false}],
            "api": {"openapi": ["a.json", {"source": "b.json"}]}, "lenient": true,
            "footer": {"socials": {"x": "https://x.com/a"}, "links": [{"header": "H", "items": [{"label": "L", "href": "/l"}]}]}}"##,
        );
        assert_eq!(diagnostics, [""; 0]);
        assert_eq!(&*config.name, "A");
        assert_eq!(config.colors.primary.as_deref(), Some("#fff"));
        assert_eq!(&*config.logo.unwrap().dark, "/l.svg");
        assert_eq!(config.styling.eyebrows, Some(Eyebrows::Breadcrumbs));
        assert_eq!(config.interaction.drilldown, Some(false));
        assert_eq!(config.icons.library.as_deref(), Some("lucide"));
        let permanent = config.redirects.iter().map(|redirect| redirect.permanent);
        assert!(permanent.eq([true, false]));
        let sources = config.api.openapi.iter().map(|(source, _)| &**source);
        assert!(sources.eq(["a.json", "b.json"]));
        assert!(config.lenient);
        let footer = config.footer.unwrap();
        assert_eq!(footer.socials.len(), 1);
        assert_eq!(&*footer.columns[0].items[0].href, "/l");
    }
}

//! The files that all pages of a site load: a stylesheet, a script, and the script of the
//! search, which is loaded on first use. Pages of endpoints may load two more.
//!
//! Their names contain their digest, so that browsers may cache them for ever.

use std::fmt::Write as _;

use super::colour::{Brand, Rgb};
use super::theme;
use crate::docs::Docs;
use crate::docs::config::Playing;
use crate::release::site::SPECULATION;
use crate::render::css::LAYERS;
use crate::render::file::{CSS, File};
use crate::render::html;
use crate::site::percent::encode;

/// The script of every page. Its first part runs before the first paint, the others when the
/// page is loaded.
pub const SCRIPT: &str = concat!(
    include_str!("scripts/first.js"),
    include_str!("scripts/layout.js"),
    include_str!("scripts/tabs.js"),
    include_str!("scripts/copy.js"),
    include_str!("scripts/connect.js"),
    include_str!("scripts/vote.js"),
    include_str!("scripts/search.js"),
);
const FINDER: &str = include_str!("scripts/finder.js");
const TRY: &str = include_str!("scripts/try.js");
const TRY_STYLES: &str = include_str!("styles/try.css");
/// The media type of a script (RFC 9239 §6).
pub const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The stylesheet of every page. The order matters: later rules override earlier ones.
pub(in crate::render) const STYLES: [&str; 6] = [
    include_str!("styles/base.css"),
    include_str!("styles/chrome.css"),
    include_str!("styles/columns.css"),
    include_str!("styles/article.css"),
    include_str!("styles/code.css"),
    include_str!("styles/components.css"),
];
/// The fonts of pages: subsets with the letters of western European languages.
///
/// Their licence is beside them. `pack.py` writes them.
const SANS: &[u8] = include_bytes!("../font/geist.woff2");
const MONO: &[u8] = include_bytes!("../font/geist-mono.woff2");
/// The height of a line above and below its base in both fonts, in percent of the size.
const ASCENT: f64 = 100.5;
const DESCENT: f64 = 29.5;
/// The fonts of a system that are shown before [`SANS`] is loaded: family, weights, names, and a
/// ratio: the average width of a letter of [`SANS`], divided by the average width in this font.
const SANS_FALLBACKS: [(&str, &str, &str, f64); 2] = [
    (
        "Geist Fallback",
        "400 500",
        "local(\"Arial\"), local(\"ArialMT\"), local(\"Liberation Sans\")",
        1.051,
    ),
    (
        "Geist Fallback",
        "501 700",
        "local(\"Arial Bold\"), local(\"Arial-BoldMT\"), local(\"Liberation Sans Bold\")",
        1.051,
    ),
];
/// The fonts of a system that are shown before [`MONO`] is loaded, as in [`SANS_FALLBACKS`].
const MONO_FALLBACKS: [(&str, &str, &str, f64); 2] = [
    (
        "Geist Mono Fallback",
        "400 700",
        "local(\"Menlo\"), local(\"DejaVu Sans Mono\"), local(\"Liberation Mono\")",
        0.997,
    ),
    (
        "Geist Mono Fallback 2",
        "400 700",
        "local(\"Consolas\")",
        1.091,
    ),
];
/// The media type of a font (RFC 8081 §4.4.5).
const WOFF2: &str = "font/woff2";
/// Transitions from page to page: a rule that no layer may hold.
const TRANSITIONS: &str = include_str!("styles/transitions.css");
/// The media type of such rules.
pub const SPECULATION_TYPE: &str = "application/speculationrules+json";
/// Browsers may fetch a page when a reader points at its link. Only for relative links, which are
/// inside the site: other hosts must not learn which pages are read.
const SPECULATION_RULES: &str = r#"{"prefetch":[{"source":"document","where":{"selector_matches":"a:not([href^='http'], [href^='mailto:'], [href^='#'], [type])"},"eagerness":"moderate"}]}"#;

/// The files that all pages of a site load.
#[derive(Clone, Debug)]
pub struct Assets {
    /// The stylesheet, with the site's colours.
    pub stylesheet: File,
    /// The stylesheets of the site's authors, as one, if they have any.
    pub authors: Option<File>,
    /// The script.
    pub script: File,
    /// The search: a module, which the script imports on first use.
    pub finder: File,
    /// The script and the stylesheet of forms that send requests, if pages of endpoints have them.
    pub forms: Option<(File, File)>,
    /// The font of text, unless the site has its own.
    pub sans: Option<File>,
    /// The font of code.
    pub mono: File,
    /// The rules by which a browser may fetch linked pages early.
    pub speculation: File,
}

// === impl Assets ===

impl Assets {
    /// Returns all files.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        let own = [
            &self.stylesheet,
            &self.script,
            &self.finder,
            &self.speculation,
            &self.mono,
        ];
        let forms = self
            .forms
            .iter()
            .flat_map(|(script, styles)| [script, styles]);
        own.into_iter()
            .chain(&self.authors)
            .chain(&self.sans)
            .chain(forms)
    }

    /// Generates the files of a site; `authors` are the stylesheets of its authors, confined.
    #[must_use]
    pub fn new(docs: &Docs, authors: &str) -> Self {
        let has_own_fonts = docs.config.fonts.body.is_some();
        let sans = (!has_own_fonts).then(|| File::new("geist", "woff2", SANS.into(), WOFF2));
        let mono = File::new("geist-mono", "woff2", MONO.into(), WOFF2);
        let own = [
            brand(docs).properties(),
            bundled_fonts(sans.as_ref(), &mono),
            fonts(docs),
            theme::styles(&docs.config),
        ]
        .concat();
        let styles = format!(
            "{LAYERS}@layer waypost {{\n{}{}{own}}}\n{TRANSITIONS}",
            STYLES.concat(),
            html::STYLES
        );
        let authors = (!authors.is_empty()).then(|| {
            let styles = palette(docs, authors) + authors;
            File::new("authors", "css", styles.into(), CSS)
        });
        Self {
            stylesheet: File::new("site", "css", styles.into(), CSS),
            authors,
            script: File::new("site", "js", compact(SCRIPT).into(), JAVASCRIPT),
            finder: File::new("finder", "js", compact(FINDER).into(), JAVASCRIPT),
            forms: (docs.config.api.playground.display == Some(Playing::Interactive)).then(|| {
                let styles = format!("{LAYERS}@layer waypost {{\n{TRY_STYLES}}}\n");
                (
                    File::new("try", "js", compact(TRY).into(), JAVASCRIPT),
                    File::new("try", "css", styles.into(), CSS),
                )
            }),
            sans,
            mono,
            speculation: File {
                path: SPECULATION.to_owned(),
                bytes: SPECULATION_RULES.into(),
                media_type: SPECULATION_TYPE,
            },
        }
    }
}

/// Removes the lines of a script that are comments, indentation, and the ends of lines that end no
/// statement. No text of a script is on several lines.
fn compact(script: &str) -> String {
    let lines = script.lines().map(str::trim_start);
    let kept = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    kept.flat_map(|line| match line.ends_with(['{', '(', ',', ';']) {
        true => [line, ""],
        false => [line, "\n"],
    })
    .collect()
}

/// The grays of [`palette`], lightest first: 50, 100 to 900, 950.
const GRAYS: [&str; 11] = [
    "249 250 251",
    "243 244 246",
    "229 231 235",
    "209 213 219",
    "156 163 175",
    "107 114 128",
    "75 85 99",
    "55 65 81",
    "31 41 55",
    "17 24 39",
    "3 7 18",
];

/// Returns the custom properties that stylesheets of authors may use: colours as three numbers,
/// `rgb(var(--primary))`.
fn palette(docs: &Docs, authors: &str) -> String {
    let colors = &docs.config.colors;
    let read = |colour: &Option<Box<str>>| Rgb::parse(colour.as_deref()?);
    let primary = read(&colors.primary).unwrap_or(Rgb::DEFAULT);
    let (_, dark_background) = brand(docs).backgrounds();
    let mut styles = String::from("@layer waypost{");
    // Without scripts no element gets the class, so the page must not be dark.
    if authors.contains(".dark") {
        styles += ":root:not(.js):not(.js){color-scheme:light}";
    }
    styles += ":root{";
    for (name, colour) in [
        ("primary", primary),
        ("primary-light", read(&colors.light).unwrap_or(primary)),
        ("primary-dark", read(&colors.dark).unwrap_or(primary)),
    ] {
        styles += &format!("--{name}:{};", colour.channels());
    }
    styles += "--background-light:255 255 255;--background-dark:";
    styles += &dark_background.channels();
    styles += ";";
    let steps = [50]
        .into_iter()
        .chain((100..=900).step_by(100))
        .chain([950]);
    for (step, gray) in steps.zip(GRAYS) {
        styles += &format!("--gray-{step}:{gray};");
    }
    styles + "}}\n"
}

/// Returns the colours of the site: `primary`, `light` for dark mode, and `dark` for buttons.
pub(super) fn brand(docs: &Docs) -> Brand {
    let colors = &docs.config.colors;
    let read = |colour: &Option<Box<str>>| Rgb::parse(colour.as_deref()?);
    let primary = read(&colors.primary).unwrap_or(Rgb::DEFAULT);
    Brand {
        primary,
        light: read(&colors.light).unwrap_or(primary),
        fill: read(&colors.dark).unwrap_or(primary),
    }
}

/// Returns the colours of the diagrams of a site, for [`Map`](crate::render::link::Map).
#[must_use]
pub fn diagram_palette(docs: &Docs) -> Box<str> {
    brand(docs).palette().into()
}

/// Returns the styles with the bundled fonts.
///
/// Until a font is loaded, a font of the system is shown with the same widths and heights, so that
/// no text moves (CSS Fonts 5 §4.9). A font of text that loads late is used from the next page on
/// (`optional`), because the widths of its letters are the same only on average. All letters of
/// a font of code have one width, so that font is used as soon as it is loaded (`swap`).
fn bundled_fonts(sans: Option<&File>, mono: &File) -> String {
    let name = |file: &File| file.path.rsplit('/').next().unwrap_or_default().to_owned();
    let face = |family: &str, file: &File, display: &str| {
        format!(
            "@font-face {{ font-family: \"{family}\"; src: url(\"{}\") format(\"woff2\"); \
             font-weight: 400 700; font-display: {display}; }}\n",
            name(file)
        )
    };
    let fallback = |(family, weight, local, width): (&str, &str, &str, f64)| {
        format!(
            "@font-face {{ font-family: \"{family}\"; src: {local}; font-weight: {weight}; \
             size-adjust: {:.1}%; ascent-override: {:.1}%; descent-override: {:.1}%; line-gap-override: 0%; }}\n",
            width * 100.0,
            ASCENT / width,
            DESCENT / width,
        )
    };
    let mut styles = face("Geist Mono", mono, "swap");
    styles.extend(MONO_FALLBACKS.map(fallback));
    if let Some(sans) = sans {
        styles += &face("Geist", sans, "optional");
        styles.extend(SANS_FALLBACKS.map(fallback));
    }
    styles
}

/// Returns the styles with the fonts of the site. A font is a file of the repository, whose
/// path is relative to the stylesheet, or the name of a font that the reader may have.
fn fonts(docs: &Docs) -> String {
    let fonts = &docs.config.fonts;
    let mut styles = String::new();
    for (font, property) in [(&fonts.body, "--sans"), (&fonts.heading, "--heading")] {
        let Some(font) = font else { continue };
        // The family is written between quotes, so characters that could end them are removed.
        let is_plain = |c: char| c.is_alphanumeric() || " -_".contains(c);
        let family: String = font.family.chars().filter(|c| is_plain(*c)).collect();
        if let Some(path) = font.file() {
            let weight = font.weight.as_deref().unwrap_or("100 900");
            let weight: String = weight
                .chars()
                .filter(|c| c.is_ascii_digit() || *c == ' ')
                .collect();
            let path = encode(path).replace(['(', ')', '\''], "_");
            // `optional`: a font that loads late is used from the next page on, so that no text
            // moves.
            writeln!(
                styles,
                "@font-face {{ font-family: \"{family}\"; src: url(\"../{path}\"); \
                 font-weight: {weight}; font-display: optional; }}"
            )
            .expect("a String takes every character");
        }
        writeln!(
            styles,
            ":root {{ {property}: \"{family}\", system-ui, sans-serif; }}"
        )
        .expect("a String takes every character");
    }
    styles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_within_its_size_limit() {
        let script = compact(SCRIPT);
        assert!(script.len() <= 15 << 10, "{} bytes", script.len());
        assert!(!script.contains("// "), "a comment is left");
    }

    #[test]
    fn all_sizes_of_text_are_steps_of_the_scale() {
        let styles = STYLES.concat() + html::STYLES;
        for (at, _) in styles.match_indices("font-size: ") {
            let value = styles[at..].split([';', '}']).next().unwrap();
            let value = value.trim_start_matches("font-size: ").trim();
            let is_step = value.starts_with("var(--size-") || value == "inherit";
            assert!(
                is_step || value.ends_with("em") && !value.ends_with("rem"),
                "{value}"
            );
        }
    }

    fn styles(config: &str) -> String {
        let path = |path: &str| crate::source::TreePath::parse(path).unwrap();
        let config =
            format!("{{\"name\": \"Acme\", \"navigation\": {{\"pages\": [\"a\"]}}, {config}}}");
        let files = [
            (path("docs.json"), config.into()),
            (path("a.mdx"), "Text.".to_owned().into()),
        ];
        let tree = crate::source::Tree::from_files(files, []);
        let (docs, _found) = crate::docs::read(&tree, &crate::docs::Options::default());
        let bytes = Assets::new(&docs, "").stylesheet.bytes;
        let text = str::from_utf8(&bytes).unwrap();
        let (_, own) = text.split_once(html::STYLES).unwrap();
        let own = own.strip_suffix(TRANSITIONS).unwrap();
        own.strip_suffix("}\n").unwrap().to_owned()
    }

    #[test]
    fn a_site_sets_its_own_colours_and_fonts() {
        let own = styles("\"theme\": \"plain\"");
        assert!(
            own.contains("--brand: light-dark(#0b6e4f, #0b6e4f)"),
            "{own}"
        );
        assert!(own.contains("url(\"geist."), "{own}");
        let own = styles("\"colors\": {\"primary\": \"#ff8800\", \"light\": \"#ffa040\"}");
        assert!(
            own.contains("--brand: light-dark(#ff8800, #ff8800)"),
            "{own}"
        );
        assert!(own.contains(", #ffa040); --brand"), "{own}");
        let own = styles("\"colors\": {\"primary\": \"#ff8800\", \"dark\": \"#112233\"}");
        assert!(
            own.contains("--brand: light-dark(#112233, #112233)"),
            "{own}"
        );
        let own = styles(
            "\"fonts\": {\"family\": \"Inter\", \"weight\": 400, \"source\": \"/fonts/inter.woff2\"}",
        );
        assert!(
            own.contains("url(\"../fonts/inter.woff2\"); font-weight: 400;"),
            "{own}"
        );
        assert!(own.contains("--heading: \"Inter\""), "{own}");
        assert!(!own.contains("url(\"geist."), "{own}");
    }

    #[test]
    fn no_font_name_can_end_its_declaration() {
        let own = styles(
            "\"fonts\": {\"body\": {\"family\": \"x\\\"; } * { display: none\", \"source\": \"a\\\")}b{c\", \"weight\": \"4;}\"}, \"heading\": {\"family\": \"Y\", \"source\": \"https://fonts.test/y.woff2\"}}",
        );
        let outside: String = own.split('"').step_by(2).collect();
        assert_eq!(
            outside.matches('{').count(),
            outside.matches('}').count(),
            "{own}"
        );
        assert!(
            !own.contains("fonts.test") && !outside.contains("display: none"),
            "{own}"
        );
    }
}

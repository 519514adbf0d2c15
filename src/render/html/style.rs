//! The `style` attribute of pages, written as classes in a stylesheet of the page.
//!
//! The content security policy forbids styles in markup. So each set of declarations becomes
//! a class, whose name is their digest, and a page with such classes loads its own stylesheet.
//! Only listed properties are written, and no value that could load a file, cover the page or
//! end a declaration.
//!
//! Sources: CSS Syntax 3 §4 and §5; WHATWG HTML §4.2.6 (stylesheets in `<body>`).

use std::fmt::Write as _;

use super::Writer;
use crate::digest::Digest;
use crate::mdx::{Element, Value};

/// How many characters of a declaration are in a message.
const SHOWN_CHARS: usize = 60;
/// How long a value may be.
const VALUE_BYTES_MAX: usize = 200;

/// The allowed properties: they change their own element. `<main>` clips what is painted and
/// contains what is positioned, so they may also move it within the content.
const PROPERTIES: &str = "\
    -webkit-box-orient -webkit-line-clamp accent-color align-content align-items align-self \
    aspect-ratio backdrop-filter background background-clip background-color background-image \
    background-position background-repeat background-size border border-bottom \
    border-bottom-color border-bottom-left-radius border-bottom-right-radius \
    border-bottom-style border-bottom-width border-collapse border-color border-left \
    border-left-color border-left-style border-left-width border-radius border-right \
    border-right-color border-right-style border-right-width border-spacing border-style \
    border-top border-top-color border-top-left-radius border-top-right-radius border-top-style \
    border-top-width border-width bottom box-shadow box-sizing break-inside caption-side clear \
    color color-scheme column-count column-gap columns cursor display fill filter flex \
    flex-basis flex-direction flex-flow flex-grow flex-shrink flex-wrap float font-family \
    font-size font-style font-variant font-weight gap grid grid-area grid-auto-columns \
    grid-auto-flow grid-auto-rows grid-column grid-gap grid-row grid-template \
    grid-template-areas grid-template-columns grid-template-rows height inset inset-block \
    inset-inline isolation justify-content justify-items justify-self left letter-spacing \
    line-height list-style list-style-type margin margin-block margin-bottom margin-inline \
    margin-left margin-right margin-top max-height max-width min-height min-width object-fit \
    object-position opacity order outline outline-color outline-offset outline-style \
    outline-width overflow overflow-wrap overflow-x overflow-y padding padding-block \
    padding-bottom padding-inline padding-left padding-right padding-top place-content \
    place-items place-self pointer-events position right rotate row-gap scale \
    scroll-margin-top stroke stroke-width tab-size table-layout text-align text-decoration \
    text-indent text-overflow text-shadow text-transform text-wrap top transform \
    transform-origin transition transition-delay transition-duration transition-property \
    transition-timing-function translate user-select vertical-align visibility white-space \
    width word-break word-spacing word-wrap z-index";
/// The allowed values of `position`.
const POSITIONS: [&str; 3] = ["absolute", "relative", "static"];
/// The allowed functions: they compute values and load nothing.
const FUNCTIONS: &str = "\
    blur brightness calc clamp color-mix conic-gradient contrast cubic-bezier drop-shadow \
    fit-content grayscale hsl hsla hue-rotate invert light-dark linear-gradient matrix max min \
    minmax oklch opacity perspective radial-gradient repeat repeating-linear-gradient rgb rgba \
    rotate rotatex rotatey rotatez saturate scale scalex scaley sepia skew skewx skewy steps \
    translate translate3d translatex translatey translatez var";
/// Properties whose numbers have no unit. For all others `px` is added, as React does.
const UNITLESS: [&str; 16] = [
    "-webkit-line-clamp",
    "aspect-ratio",
    "column-count",
    "columns",
    "flex",
    "flex-grow",
    "flex-shrink",
    "font-weight",
    "grid-area",
    "grid-column",
    "grid-row",
    "line-height",
    "opacity",
    "order",
    "scale",
    "z-index",
];

// === impl Writer ===

impl Writer<'_> {
    /// Returns the class for the `style` of an element, if any declaration in it is allowed.
    pub(super) fn style_of(&mut self, element: &Element) -> Option<String> {
        let (declarations, left_out) = declarations(element.get("style")?);
        for declaration in left_out {
            let message = format!("`{declaration}` in a `style` is left out: pages cannot use it");
            self.warn("stylesheet", message);
        }
        self.class(declarations)
    }

    /// Returns the class for declarations, which must be allowed ones.
    pub(super) fn class(&mut self, declarations: String) -> Option<String> {
        if declarations.is_empty() {
            return None;
        }
        let digest = Digest::of(declarations.as_bytes()).to_string();
        let class = format!("s-{}", &digest[..10]);
        self.styles.insert(class.clone(), declarations);
        Some(class)
    }

    /// Returns the class for one declaration with a value from a page, if it is allowed.
    pub(in crate::render) fn class_with(
        &mut self,
        property: &'static str,
        value: &str,
    ) -> Option<String> {
        let value = value.trim();
        is_value(value)
            .then(|| format!("{property}:{value}"))
            .and_then(|text| self.class(text))
    }
}

/// Reads a `style`, which is an object in JSX and a text in HTML; returns the allowed declarations,
/// and the others as far as a message shows them.
fn declarations(style: &Value) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut left_out = Vec::new();
    let mut add = |name: &str, value: &str| {
        let name = kebab(name);
        let value = value.trim().trim_end_matches("!important").trim_end();
        if value.is_empty() {
            return;
        }
        if !is_allowed(&name, value) {
            let declaration = format!("{name}: {value}");
            left_out.push(declaration.chars().take(SHOWN_CHARS).collect());
            return;
        }
        let separator = if out.is_empty() { "" } else { ";" };
        let is_number = value.parse::<f64>().is_ok_and(|number| number != 0.0);
        let has_unit = UNITLESS.contains(&&*name) || name.starts_with("--");
        let unit = if is_number && !has_unit { "px" } else { "" };
        write!(out, "{separator}{name}:{value}{unit}").expect("a String takes every character");
    };
    match style {
        Value::Object(entries) => {
            for (name, value) in entries {
                if let Some(value) = value.as_text() {
                    add(name, value);
                }
            }
        }
        Value::Text(text) => {
            for (name, value) in text.split(';').filter_map(|part| part.split_once(':')) {
                add(name, value);
            }
        }
        _ => {}
    }
    (out, left_out)
}

/// Returns whether a declaration is written.
fn is_allowed(name: &str, value: &str) -> bool {
    if let Some(own) = name.strip_prefix("--") {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        return !own.is_empty() && own.chars().all(is_plain) && is_value(value);
    }
    match name {
        "position" => POSITIONS.contains(&value),
        "font-family" => is_font(value),
        name => PROPERTIES.split(' ').any(|known| known == name) && is_value(value),
    }
}

/// Returns whether a value is a list of fonts, whose names may have quotes.
fn is_font(value: &str) -> bool {
    let is_quoted = |quote: char, other: char| {
        value.matches(quote).count().is_multiple_of(2) && !value.contains(other)
    };
    (is_quoted('"', '\'') || is_quoted('\'', '"')) && is_value(&value.replace(['"', '\''], ""))
}

/// `maxWidth` → `max-width`.
fn kebab(name: &str) -> String {
    let name = name.trim();
    // The names of custom properties have their own case.
    if name.starts_with("--") {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len() + 2);
    if name.starts_with("Webkit") {
        out.push('-');
    }
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Returns whether a value is allowed: no strings, no escapes, no character that ends the
/// declaration, and only listed functions.
pub(in crate::render) fn is_value(value: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " .,%#()+-*/_".contains(c);
    if value.is_empty()
        || value.len() > VALUE_BYTES_MAX
        || !value.chars().all(plain)
        || value.contains("/*")
        || value.matches('(').count() != value.matches(')').count()
    {
        return false;
    }
    let mut before = value.split('(').collect::<Vec<_>>();
    before.pop();
    before.iter().all(|text| {
        let start = text.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let name = &text[start.map_or(0, |at| at + 1)..];
        let name = name.to_ascii_lowercase();
        name.is_empty() || FUNCTIONS.split(' ').any(|known| known == name)
    })
}

/// Writes the stylesheet of a page.
pub(super) fn stylesheet<'s>(classes: impl Iterator<Item = (&'s String, &'s String)>) -> String {
    classes.fold(String::new(), |mut out, (class, declarations)| {
        // `article .x` is more specific than the single class of a component.
        writeln!(out, "article .{class}{{{declarations}}}")
            .expect("a String takes every character");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: &[(&str, &str)]) -> Value {
        let entry = |(name, value): &(&str, &str)| ((*name).into(), Value::Text((*value).into()));
        Value::Object(entries.iter().map(entry).collect())
    }

    #[test]
    fn a_style_keeps_properties_of_layout() {
        let style = object(&[
            ("maxWidth", "300"),
            ("flex", "2"),
            ("gap", "1rem 2rem"),
            ("margin", "0"),
        ]);
        assert_eq!(
            declarations(&style).0,
            "max-width:300px;flex:2;gap:1rem 2rem;margin:0"
        );
        let text = Value::Text("color: rgb(1, 2, 3); Text-Align:center".into());
        let expected = "color:rgb(1, 2, 3);text-align:center";
        assert_eq!(declarations(&text), (expected.to_owned(), Vec::new()));
    }

    #[test]
    fn a_style_may_move_an_element_within_the_content() {
        let style = object(&[
            ("position", "relative"),
            ("paddingBottom", "56.25%"),
            ("top", "0"),
            ("left", "4"),
            ("zIndex", "9"),
            ("transform", "translate(-50%, -50%) rotate(3deg)"),
            ("transition", "all .2s cubic-bezier(.4, 0, .2, 1)"),
            ("cursor", "pointer"),
            ("--rowGap", "4"),
            ("color", "var(--accent)"),
            ("fontFamily", "\"IBM Plex Mono\", monospace"),
            ("WebkitLineClamp", "3"),
        ]);
        let expected = "position:relative;padding-bottom:56.25%;top:0;left:4px;z-index:9;\
            transform:translate(-50%, -50%) rotate(3deg);\
            transition:all .2s cubic-bezier(.4, 0, .2, 1);cursor:pointer;--rowGap:4;\
            color:var(--accent);font-family:\"IBM Plex Mono\", monospace;-webkit-line-clamp:3";
        assert_eq!(declarations(&style), (expected.to_owned(), Vec::new()));
    }

    #[test]
    fn a_style_cannot_load_files_cover_the_page_or_end_a_declaration() {
        for (name, value) in [
            ("background", "url(https://x.test)"),
            ("background", "image-set(x)"),
            ("position", "fixed"),
            ("position", "sticky"),
            ("position", "var(--p)"),
            ("fontFamily", "\"a\\"),
            ("fontFamily", "'a\"', x"),
            ("fontFamily", "\"a;}*{"),
            ("width", "expression(alert(1))"),
            ("color", "red}*{display:none"),
            ("color", "red;background:blue"),
            ("color", "\\75rl(x)"),
            ("color", "/*"),
            ("color", "calc(1px"),
            ("--x", "url(x)"),
            ("--x}", "1"),
            ("behavior", "x"),
            ("content", "attr(x)"),
        ] {
            let (written, left_out) = declarations(&object(&[(name, value)]));
            assert_eq!(written, "", "{name}: {value}");
            assert_eq!(left_out.len(), 1, "{name}: {value}");
        }
    }
}

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

/// How long a value may be.
const VALUE_BYTES_MAX: usize = 200;

/// The allowed properties: they change layout and colours of their own element only.
const PROPERTIES: &str = "\
    align-content align-items align-self aspect-ratio background background-color border \
    border-bottom border-bottom-color border-collapse border-color border-left border-radius \
    border-right border-spacing border-style border-top border-width box-shadow box-sizing \
    clear color column-count column-gap columns display fill flex flex-basis flex-direction \
    flex-flow flex-grow flex-shrink flex-wrap float font-family font-size font-style \
    font-variant font-weight gap grid grid-auto-flow grid-auto-rows grid-column grid-gap \
    grid-row grid-template grid-template-areas grid-template-columns grid-template-rows \
    height justify-content justify-items justify-self letter-spacing line-height list-style \
    list-style-type margin margin-block margin-bottom margin-inline margin-left margin-right \
    margin-top max-height max-width min-height min-width object-fit object-position opacity \
    order overflow overflow-wrap overflow-x overflow-y padding padding-block padding-bottom \
    padding-inline padding-left padding-right padding-top place-content place-items row-gap \
    stroke table-layout text-align text-decoration text-transform vertical-align white-space \
    width";
/// The allowed functions: they compute values and load nothing.
const FUNCTIONS: [&str; 14] = [
    "calc",
    "clamp",
    "fit-content",
    "hsl",
    "hsla",
    "linear-gradient",
    "max",
    "min",
    "minmax",
    "oklch",
    "radial-gradient",
    "repeat",
    "rgb",
    "rgba",
];
/// Properties whose numbers have no unit. For all others `px` is added, as React does.
const UNITLESS: [&str; 10] = [
    "aspect-ratio",
    "column-count",
    "columns",
    "flex",
    "flex-grow",
    "flex-shrink",
    "font-weight",
    "line-height",
    "opacity",
    "order",
];

// === impl Writer ===

impl Writer<'_> {
    /// Returns the class for the `style` of an element, if any declaration in it is allowed.
    pub(super) fn style_of(&mut self, element: &Element) -> Option<String> {
        let declarations = declarations(element.get("style")?);
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

/// Reads a `style`, which is an object in JSX and a text in HTML.
fn declarations(style: &Value) -> String {
    let mut out = String::new();
    let mut add = |name: &str, value: &str| {
        let name = kebab(name);
        let value = value.trim().trim_end_matches("!important").trim_end();
        let Some(known) = PROPERTIES.split(' ').find(|known| *known == name) else {
            return;
        };
        if !is_value(value) {
            return;
        }
        let separator = if out.is_empty() { "" } else { ";" };
        let is_number = value.parse::<f64>().is_ok_and(|number| number != 0.0);
        let unit = if is_number && !UNITLESS.contains(&&*name) {
            "px"
        } else {
            ""
        };
        write!(out, "{separator}{known}:{value}{unit}").expect("a String takes every character");
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
    out
}

/// `maxWidth` → `max-width`.
fn kebab(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    for c in name.trim().chars() {
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
        name.is_empty() || FUNCTIONS.contains(&&*name.to_ascii_lowercase())
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
            declarations(&style),
            "max-width:300px;flex:2;gap:1rem 2rem;margin:0"
        );
        let text = Value::Text("color: rgb(1, 2, 3); Text-Align:center".into());
        assert_eq!(declarations(&text), "color:rgb(1, 2, 3);text-align:center");
    }

    #[test]
    fn a_style_cannot_load_files_cover_the_page_or_end_a_declaration() {
        for (name, value) in [
            ("background", "url(https://x.test)"),
            ("background", "image-set(x)"),
            ("position", "fixed"),
            ("zIndex", "9"),
            ("width", "expression(alert(1))"),
            ("color", "red}*{display:none"),
            ("color", "red;background:blue"),
            ("color", "\\75rl(x)"),
            ("color", "/*"),
            ("color", "calc(1px"),
            ("--x", "1"),
            ("behavior", "x"),
            ("content", "attr(x)"),
        ] {
            assert_eq!(
                declarations(&object(&[(name, value)])),
                "",
                "{name}: {value}"
            );
        }
    }
}

//! Names of authors that our stylesheets use too.
//!
//! Pages and stylesheets of authors use any class. A class or custom property with a name that
//! our own stylesheets use would take their style, so it gets another name, in pages and in
//! stylesheets alike. A class that is a hook ([`super::hook`]) keeps its meaning in stylesheets.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use super::hook;
use crate::render::{html, layout};

/// The prefix of such a name.
const PREFIX: &str = "x-";
/// How long a class may be.
const CLASS_BYTES_MAX: usize = 128;
/// How many classes an element may have.
const CLASSES_MAX: usize = 64;
/// Classes that scripts and components use, but no stylesheet of ours.
const UNSTYLED: [&str; 9] = [
    "copy-page",
    "current",
    "js",
    "latin",
    "ready",
    "scripted",
    "theme",
    "dismissed",
    "wrap",
];

/// The classes and custom properties of our own stylesheets.
static OURS: LazyLock<(HashSet<&'static str>, HashSet<&'static str>)> = LazyLock::new(|| {
    let (mut classes, mut properties) =
        (HashSet::from(UNSTYLED), HashSet::from(layout::PROPERTIES));
    let hooks = hook::selectors();
    for styles in layout::STYLES.iter().copied().chain([html::STYLES]) {
        names(styles, &mut classes, &mut properties);
    }
    for selector in hooks {
        names(selector, &mut classes, &mut properties);
    }
    classes.retain(|name| !name.starts_with(PREFIX));
    (classes, properties)
});

/// Returns the class that is written for a class of a page.
pub fn class(written: &str) -> Cow<'_, str> {
    // Classes for the `style` of elements begin so.
    if OURS.0.contains(written) || written.starts_with("s-") {
        Cow::Owned(format!("{PREFIX}{written}"))
    } else {
        Cow::Borrowed(written)
    }
}

/// Returns the new name of an author's custom property; `None` if it keeps its name.
pub(super) fn property(written: &str) -> Option<String> {
    let name = written.strip_prefix("--")?;
    let is_ours = OURS.1.contains(name);
    is_ours.then(|| format!("--{PREFIX}{name}"))
}

/// Returns the classes of an element that are written.
pub fn classes(written: &str) -> impl Iterator<Item = &str> {
    let short = |class: &&str| class.len() <= CLASS_BYTES_MAX;
    let classes = written.split_ascii_whitespace().filter(short);
    classes.take(CLASSES_MAX)
}

/// Finds the classes and the defined custom properties of a stylesheet of ours.
fn names(
    styles: &'static str,
    classes: &mut HashSet<&'static str>,
    properties: &mut HashSet<&'static str>,
) {
    let mut rest = styles;
    while let Some(at) = rest.find(['/', '"', '.', '-']) {
        let found = &rest[at..];
        let skip = |end: Option<usize>, length: usize| end.map_or(found.len(), |at| at + length);
        let used = if found.starts_with("/*") {
            skip(found.find("*/"), 2)
        } else if let Some(text) = found.strip_prefix('"') {
            skip(text.find('"'), 2)
        } else if let Some(text) = found.strip_prefix("--") {
            let name = identifier(text);
            if text[name.len()..].starts_with(':') {
                properties.insert(name);
            }
            2 + name.len()
        } else if let Some(text) = found.strip_prefix('.') {
            let name = identifier(text);
            if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                classes.insert(name);
            }
            1 + name.len()
        } else {
            1
        };
        rest = &found[used..];
    }
}

fn identifier(text: &'static str) -> &'static str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_or_property_with_a_name_of_ours_gets_another_name() {
        let written = classes("top grid w-[12px] card s-12ab").map(class);
        let written: Vec<_> = written.collect();
        assert_eq!(written, ["x-top", "grid", "w-[12px]", "x-card", "x-s-12ab"]);
        assert_eq!(property("--accent").as_deref(), Some("--x-accent"));
        assert_eq!(property("--own"), None);
    }

    #[test]
    fn every_class_that_a_script_looks_up_is_known() {
        let mut rest = layout::SCRIPT;
        while let Some(at) = rest.find("querySelector") {
            rest = &rest[at..];
            let start = rest.find('"').unwrap() + 1;
            let selector = &rest[start..start + rest[start..].find('"').unwrap()];
            let (mut classes, mut properties) = (HashSet::new(), HashSet::new());
            names(selector, &mut classes, &mut properties);
            for name in classes {
                assert!(OURS.0.contains(name), "{name}");
            }
            rest = &rest[start..];
        }
    }
}

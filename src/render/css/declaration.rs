//! Decides which declarations of authors may apply to a part of the shell, and which are never
//! written.
//!
//! Our own stylesheet confines the content: `<main>` clips painting and contains positioned
//! elements. So any declaration may apply to the content. A part of the shell is not confined, so
//! no declaration may move it over another part.

use lightningcss::printer::PrinterOptions;
use lightningcss::properties::Property;

use super::selector::Matches;

/// Properties that no element may have: they run code in old browsers, or show something above
/// the page.
const REFUSED: [&str; 6] = [
    "-moz-binding",
    "behavior",
    "src",
    "view-transition-class",
    "view-transition-group",
    "view-transition-name",
];
/// Properties that could move a part of the shell over another part, or move content out of
/// `<main>`. Properties that begin with one of [`FAMILIES`] could do the same.
const MOVING: [&str; 18] = [
    "bottom",
    "contain",
    "container-type",
    "isolation",
    "left",
    "perspective",
    "position",
    "position-anchor",
    "position-area",
    "position-try",
    "right",
    "rotate",
    "scale",
    "top",
    "transform",
    "translate",
    "will-change",
    "z-index",
];
const FAMILIES: [&str; 5] = ["anchor-", "animation", "inset", "offset", "outline-offset"];

/// Returns why a declaration is left out, or nothing if it is kept.
pub(super) fn rejected(property: &Property<'_>, matches: Matches) -> Option<String> {
    let id = property.property_id();
    let name = id.name();
    if REFUSED.contains(&name) {
        return Some(format!("`{name}` is left out: no page may use it"));
    }
    if matches == Matches::Content {
        return None;
    }
    let is_moving = MOVING.contains(&name) || FAMILIES.iter().any(|start| name.starts_with(start));
    if is_moving || name.starts_with("margin") && may_be_negative(property) {
        return Some(format!(
            "`{name}` is left out: parts outside of the content cannot be moved"
        ));
    }
    None
}

fn may_be_negative(property: &Property<'_>) -> bool {
    let written = property.value_to_css_string(PrinterOptions::default());
    written.is_ok_and(|value| value.contains('-') || value.contains('('))
}

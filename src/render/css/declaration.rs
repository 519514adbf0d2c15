//! Decides which declarations of authors may apply to a part of the shell, and which are never
//! written.
//!
//! Our own stylesheet confines the content: `<main>` clips painting and contains positioned
//! elements. So any declaration may apply to what is in it. A part of the shell and `<main>` itself
//! are not confined. No declaration may move them out of their place, or paint further than
//! [`NEAR_PIXELS`] outside of their box. They may become larger, smaller or invisible.

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
const MOVING: [&str; 23] = [
    "-webkit-box-reflect",
    "bottom",
    "contain",
    "container-type",
    "filter",
    "float",
    "isolation",
    "left",
    "order",
    "perspective",
    "position",
    "position-anchor",
    "position-area",
    "position-try",
    "right",
    "rotate",
    "scale",
    "text-indent",
    "top",
    "transform",
    "translate",
    "will-change",
    "z-index",
];
const FAMILIES: [&str; 7] = [
    "anchor-",
    "animation",
    "border-image",
    "grid",
    "inset",
    "offset",
    "outline",
];
/// Properties of `<main>` that could move it out of its place, or paint outside of it. Our own
/// stylesheet overrides the other properties of [`MOVING`] there.
const MOVING_MAIN: [&str; 13] = [
    "align-self",
    "border-image",
    "border-image-outset",
    "filter",
    "float",
    "grid-area",
    "grid-column",
    "grid-row",
    "justify-self",
    "order",
    "outline",
    "outline-offset",
    "place-self",
];
/// Properties that paint outside of the box of an element, as far as their lengths say.
const PAINTING: [&str; 4] = [
    "box-shadow",
    "text-decoration-thickness",
    "text-shadow",
    "text-underline-offset",
];
/// How far a part of the shell may paint outside of its box.
const NEAR_PIXELS: f32 = 40.0;
/// The functions of colours. Their numbers are no lengths.
const COLOURS: [&str; 11] = [
    "color(",
    "color-mix(",
    "hsl(",
    "hsla(",
    "hwb(",
    "lab(",
    "lch(",
    "oklab(",
    "oklch(",
    "rgb(",
    "rgba(",
];

/// Returns why a declaration is left out, or nothing if it is kept.
pub(super) fn rejected(property: &Property<'_>, matches: Matches) -> Option<String> {
    let id = property.property_id();
    let name = id.name();
    if REFUSED.contains(&name) {
        return Some(format!("`{name}` is left out: no page may use it"));
    }
    let is_moving = match matches {
        Matches::Content => return None,
        Matches::Main => MOVING_MAIN.contains(&name),
        Matches::Root | Matches::Shell => {
            MOVING.contains(&name) || FAMILIES.iter().any(|start| name.starts_with(start))
        }
    };
    if is_moving || name.starts_with("margin") && may_be_negative(property) {
        return Some(format!(
            "`{name}` is left out: parts outside of the content cannot be moved"
        ));
    }
    if PAINTING.contains(&name) && !is_near(property) {
        return Some(format!(
            "`{name}` is left out: parts outside of the content can paint at most {NEAR_PIXELS} \
             pixels around themselves"
        ));
    }
    None
}

/// Returns whether all lengths of a value are short.
fn is_near(property: &Property<'_>) -> bool {
    let Ok(written) = property.value_to_css_string(PrinterOptions::default()) else {
        return false;
    };
    let Some(lengths) = without_colours(&written) else {
        return false;
    };
    let mut words = lengths.split(|c: char| c.is_whitespace() || c == ',');
    words.all(|word| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let number: Option<f32> = word[..word.len() - unit.len()].parse().ok();
        let Some(number) = number else {
            // A colour, a keyword, or nothing.
            return !word.contains('(');
        };
        match unit {
            "" => number == 0.0,
            "px" => number.abs() <= NEAR_PIXELS,
            "em" | "rem" => number.abs() <= NEAR_PIXELS / 16.0,
            _ => false,
        }
    })
}

/// Returns a value without the functions of colours.
fn without_colours(value: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('(') {
        let start = rest[..at].rfind([' ', ',']).map_or(0, |space| space + 1);
        if !COLOURS.contains(&&rest[start..=at]) {
            return None;
        }
        out.push_str(&rest[..start]);
        let mut depth = 0_u32;
        let end = rest.char_indices().find(|(_, c)| {
            match *c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            *c == ')' && depth == 0
        });
        rest = &rest[end?.0 + 1..];
    }
    Some(out + rest)
}

fn may_be_negative(property: &Property<'_>) -> bool {
    let written = property.value_to_css_string(PrinterOptions::default());
    written.is_ok_and(|value| value.contains('-') || value.contains('('))
}

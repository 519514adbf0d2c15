//! The parts of inline SVG that pages may use, and that HTML writes.
//!
//! Elements that animate, load or refer to other documents are not on the list: `animate`, `set`,
//! `image`, `script`, `style`. Of `foreignObject` and `a` the text is shown.
//!
//! `use` repeats an element of the same page. No element that `use` could name contains another
//! `use`, so drawings cannot multiply without end ([`reference()`]).
//!
//! Sources: SVG 2 §5, §8 to §13.

use super::node::{Element, Node, Value, plain};

/// The elements that only draw, separated by spaces; the list does not contain `svg` itself.
pub const ELEMENTS: &str = "\
    circle clipPath defs desc ellipse g line linearGradient marker mask path pattern polygon \
    polyline radialGradient rect stop symbol text title tspan use";
/// Elements that can have an id and are not shown where `use` names them.
const NEVER_REPEATED: [&str; 6] = [
    "clipPath",
    "linearGradient",
    "marker",
    "mask",
    "pattern",
    "radialGradient",
];

/// Returns whether this is the name of `svg` or of an element that may be inside it.
#[must_use]
pub fn is_part(name: &str) -> bool {
    name == "svg" || ELEMENTS.split(' ').any(|known| known == name)
}

/// Returns whether some parts of a drawing show something; HTML leaves out other drawings.
///
/// Source: SVG 2 §9 to §11.
#[must_use]
pub fn draws(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Paragraph(children) => draws(children),
        Node::Element(element) => match &*element.name {
            "circle" | "ellipse" | "line" | "path" | "polygon" | "polyline" | "rect" | "text" => {
                true
            }
            "use" => reference(element).is_some(),
            "foreignObject" => !plain(&element.children).trim().is_empty(),
            // Another drawing of the page may repeat what is in `defs` and `symbol`.
            "" | "a" | "defs" | "g" | "marker" | "mask" | "pattern" | "symbol" => {
                draws(&element.children)
            }
            _ => false,
        },
        _ => false,
    })
}

/// Returns the name of a part, if HTML writes it inside of the element `within`.
#[must_use]
pub fn part(within: &str, element: &Element) -> Option<&'static str> {
    let known = ELEMENTS.split(' ').find(|known| **known == *element.name);
    known.filter(|_| !matches!(within, "title" | "desc"))
}

/// Returns the value of an attribute, as HTML writes it. The name has the spelling of SVG; JSX
/// spells it without hyphens.
#[must_use]
pub fn attribute<'e>(element: &'e Element, name: &str) -> Option<&'e str> {
    let mut found = element.attributes.iter();
    match found.find(|(written, _)| is(written, name)) {
        Some((_, Value::Text(value))) if is_harmless(value) => Some(value),
        _ => None,
    }
}

/// Returns the element of the same page that `use` repeats, as `#id`.
#[must_use]
pub fn reference(element: &Element) -> Option<&str> {
    let names = ["href", "xlinkHref", "xlink:href"];
    let target = names.into_iter().find_map(|name| element.text(name))?;
    let id = target.strip_prefix('#')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (!id.is_empty() && id.chars().all(is_plain)).then_some(target)
}

/// Returns whether `use` could name an element: then no `use` is written in it.
#[must_use]
pub fn is_repeatable(name: &str, element: &Element) -> bool {
    name != "svg" && !NEVER_REPEATED.contains(&name) && attribute(element, "id").is_some()
}

/// Returns whether the id of an element is written. An element that is, or a drawing that contains,
/// a `use` has none.
#[must_use]
pub fn has_id(name: &str, element: &Element) -> bool {
    fn uses(nodes: &[Node]) -> bool {
        nodes.iter().any(|node| match node {
            Node::Paragraph(children) => uses(children),
            Node::Element(element) => *element.name == *"use" || uses(&element.children),
            _ => false,
        })
    }
    match name {
        "use" => false,
        "svg" => !uses(&element.children),
        _ => true,
    }
}

/// Visits the ids that HTML writes in a drawing.
pub fn each_id<'e>(drawing: &'e Element, visit: &mut impl FnMut(&'e str)) {
    if draws(&drawing.children) {
        ids("svg", drawing, visit);
    }
}

fn ids<'e>(name: &'static str, element: &'e Element, visit: &mut impl FnMut(&'e str)) {
    if let Some(id) = attribute(element, "id").filter(|_| has_id(name, element)) {
        visit(id);
    }
    ids_of_parts(name, &element.children, visit);
}

/// Paragraphs and fragments are skipped.
fn ids_of_parts<'e>(within: &'static str, nodes: &'e [Node], visit: &mut impl FnMut(&'e str)) {
    for node in nodes {
        match node {
            Node::Paragraph(children) => ids_of_parts(within, children, visit),
            Node::Element(element) if matches!(&*element.name, "" | "a") => {
                ids_of_parts(within, &element.children, visit);
            }
            Node::Element(element) => {
                if let Some(name) = part(within, element) {
                    ids(name, element, visit);
                }
            }
            _ => {}
        }
    }
}

/// Returns whether two spellings name the same attribute: `strokeWidth` is `stroke-width`.
fn is(written: &str, attribute: &str) -> bool {
    let mut written = written
        .chars()
        .filter(|c| *c != '-')
        .map(|c| c.to_ascii_lowercase());
    let attribute = attribute
        .chars()
        .filter(|c| *c != '-')
        .map(|c| c.to_ascii_lowercase());
    attribute.clone().all(|c| written.next() == Some(c)) && written.next().is_none()
}

/// Returns whether a value refers to nothing outside of the page.
fn is_harmless(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    if lower.contains(['\\', '<', '&']) || lower.contains("script") || lower.contains("data:") {
        return false;
    }
    match lower.matches("url(").count() {
        0 => !lower.contains("//"),
        _ => {
            let inner = lower
                .trim()
                .strip_prefix("url(#")
                .and_then(|rest| rest.strip_suffix(')'));
            inner.is_some_and(|id| {
                id.chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_match_in_the_spelling_of_jsx_too() {
        assert!(is("strokeWidth", "stroke-width") && is("viewBox", "viewBox"));
        assert!(!is("stroke", "stroke-width") && !is("strokeWidths", "stroke-width"));
    }

    #[test]
    fn references_stay_in_the_page() {
        assert!(is_harmless("url(#a-1)") && is_harmless("M0 0h1") && is_harmless("#fff"));
        for value in [
            "url(https://x.test)",
            "url(#a) url(x)",
            "javascript:x",
            "//x.test",
            "url(data:x)",
        ] {
            assert!(!is_harmless(value), "{value}");
        }
    }
}

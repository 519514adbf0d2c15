//! Inline SVG: only listed elements ([`crate::mdx::drawing`]) and attributes are written, and
//! references only to the same document (`fill="url(#a)"`).
//!
//! Sources: SVG 2 §5, §8 to §13; WHATWG HTML §13.2.6.5 (foreign content).

use super::Writer;
use crate::mdx::drawing::ELEMENTS;
use crate::mdx::{Element, Node, Value};

/// The allowed attributes in the spelling of SVG; JSX spells them without hyphens.
const ATTRIBUTES: &str = "\
    aria-hidden aria-label clip-path clip-rule clipPathUnits cx cy d dominant-baseline dx dy \
    fill fill-opacity fill-rule font-family font-size font-style font-weight fx fy \
    gradientTransform gradientUnits height id letter-spacing marker-end marker-mid \
    marker-start markerHeight markerUnits markerWidth mask maskUnits offset opacity orient \
    patternTransform patternUnits points preserveAspectRatio r refX refY role rx ry \
    spreadMethod stop-color stop-opacity stroke stroke-dasharray stroke-dashoffset \
    stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width text-anchor \
    transform vector-effect viewBox width x x1 x2 y y1 y2";

// === impl Writer ===

impl Writer<'_> {
    /// Writes a drawing, unless it would show nothing.
    pub(super) fn drawing(&mut self, element: &Element) {
        if !draws(&element.children) {
            return;
        }
        self.out.markup("<svg");
        if let Some(class) = self.classes(element, None) {
            self.out.attribute("class", &class);
        }
        self.drawn("svg", element);
    }

    fn drawn(&mut self, name: &'static str, element: &Element) {
        for attribute in ATTRIBUTES.split(' ') {
            let found = element
                .attributes
                .iter()
                .find(|(name, _)| is(name, attribute));
            if let Some((_, Value::Text(value))) = found
                && is_harmless(value)
            {
                self.out.attribute(attribute, value);
            }
        }
        self.out.markup(">");
        self.parts(name, &element.children);
        self.out.markup("</").markup(name).markup(">");
    }

    /// Writes the content of a drawing. The reader of pages puts text into paragraphs, which
    /// are skipped.
    fn parts(&mut self, within: &'static str, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Paragraph(children) => self.parts(within, children),
                Node::Element(element) if element.name.is_empty() => {
                    self.parts(within, &element.children);
                }
                Node::Element(element) => {
                    let known = ELEMENTS.split(' ').find(|known| **known == *element.name);
                    if let Some(name) = known
                        && !matches!(within, "title" | "desc")
                    {
                        self.out.markup("<").markup(name);
                        if let Some(class) = self.style_of(element) {
                            self.out.attribute("class", &class);
                        }
                        self.drawn(name, element);
                    }
                }
                Node::Text(text) if matches!(within, "text" | "tspan" | "title" | "desc") => {
                    self.out.text(text);
                }
                _ => {}
            }
        }
    }
}

/// Returns whether some parts of a drawing show something (SVG 2 §9 to §11).
fn draws(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Paragraph(children) => draws(children),
        Node::Element(element) => match &*element.name {
            "circle" | "ellipse" | "line" | "path" | "polygon" | "polyline" | "rect" | "text" => {
                true
            }
            "" | "g" | "marker" | "mask" | "pattern" => draws(&element.children),
            _ => false,
        },
        _ => false,
    })
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

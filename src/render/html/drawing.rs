//! Inline SVG: only listed elements ([`crate::mdx::drawing`]) and attributes are written, and
//! references only to the same document (`fill="url(#a)"`).
//!
//! Sources: SVG 2 §5, §8 to §13; WHATWG HTML §13.2.6.5 (foreign content).

use super::Writer;
use crate::mdx::drawing;
use crate::mdx::{Element, Node};

/// The allowed attributes in the spelling of SVG.
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
        if !drawing::draws(&element.children) {
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
            if let Some(value) = drawing::attribute(element, attribute) {
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
                    if let Some(name) = drawing::part(within, element) {
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

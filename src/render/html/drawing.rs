//! Inline SVG: only listed elements ([`crate::mdx::drawing`]) and attributes are written, and
//! references only to the same document (`fill="url(#a)"`).
//!
//! Sources: SVG 2 §5, §8 to §13; WHATWG HTML §13.2.6.5 (foreign content).

use super::Writer;
use crate::mdx::drawing;
use crate::mdx::{Element, Node, plain};

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
        self.drawn("svg", element, false);
    }

    /// Writes the rest of an element; `is_repeated` is whether `use` may name an element around it.
    fn drawn(&mut self, name: &'static str, element: &Element, is_repeated: bool) {
        for attribute in ATTRIBUTES.split(' ') {
            if attribute == "id" && !drawing::has_id(name, element) {
                continue;
            }
            if let Some(value) = drawing::attribute(element, attribute) {
                self.out.attribute(attribute, value);
            }
        }
        self.out.markup(">");
        let is_repeated = is_repeated || drawing::is_repeatable(name, element);
        self.parts(name, &element.children, is_repeated);
        self.out.markup("</").markup(name).markup(">");
    }

    /// Writes the content of a drawing. The reader of pages puts text into paragraphs, which
    /// are skipped.
    fn parts(&mut self, within: &'static str, nodes: &[Node], is_repeated: bool) {
        for node in nodes {
            match node {
                Node::Paragraph(children) => self.parts(within, children, is_repeated),
                Node::Element(element) if element.name.is_empty() => {
                    self.parts(within, &element.children, is_repeated);
                }
                Node::Element(element) if *element.name == *"a" => {
                    self.drawn_link(within, element, is_repeated);
                }
                Node::Element(element) if *element.name == *"foreignObject" => {
                    self.drawn_words(within, element);
                }
                Node::Element(element) => {
                    let reference = drawing::reference(element);
                    if let Some(name) = drawing::part(within, element)
                        && (name != "use" || !is_repeated && reference.is_some())
                    {
                        self.out.markup("<").markup(name);
                        if let (Some(target), "use") = (reference, name) {
                            self.out.attribute("href", target);
                        }
                        if let Some(class) = self.style_of(element) {
                            self.out.attribute("class", &class);
                        }
                        self.drawn(name, element, is_repeated);
                    }
                }
                Node::Text(text) if matches!(within, "text" | "tspan" | "title" | "desc") => {
                    self.out.text(text);
                }
                _ => {}
            }
        }
    }

    /// Writes a link of a drawing.
    fn drawn_link(&mut self, within: &'static str, link: &Element, is_repeated: bool) {
        let href = link.text("href").or_else(|| link.text("xlinkHref"));
        let is_shown = drawing::draws(&link.children) && !matches!(within, "title" | "desc");
        let Some(href) = href.filter(|_| !self.in_link && is_shown) else {
            return self.parts(within, &link.children, is_repeated);
        };
        self.out.markup("<a");
        self.href("href", href);
        self.out.markup(">");
        self.in_link = true;
        self.parts(within, &link.children, is_repeated);
        self.in_link = false;
        self.out.markup("</a>");
    }

    /// Writes the words of HTML in a drawing.
    fn drawn_words(&mut self, within: &'static str, foreign: &Element) {
        let words = plain(&foreign.children);
        if words.trim().is_empty() || matches!(within, "title" | "desc" | "text" | "tspan") {
            return;
        }
        self.out.markup("<text dominant-baseline=hanging");
        for name in ["x", "y"] {
            if let Some(value) = drawing::attribute(foreign, name) {
                self.out.attribute(name, value);
            }
        }
        self.out.markup(">").text(words.trim()).markup("</text>");
    }
}

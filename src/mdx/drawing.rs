//! The elements of inline SVG that pages may use.
//!
//! What moves, loads, refers or holds HTML is not on the list: `animate`, `set`, `use`,
//! `image`, `foreignObject`, `script`, `style`, `a`.
//!
//! Sources: SVG 2 §5, §8 to §13.

/// The elements that only draw, separated by spaces; `svg` itself is not among them.
pub const ELEMENTS: &str = "\
    circle clipPath defs desc ellipse g line linearGradient marker mask path pattern polygon \
    polyline radialGradient rect stop text title tspan";

/// Returns whether a name is that of a part of a drawing.
#[must_use]
pub fn is_part(name: &str) -> bool {
    name == "svg" || ELEMENTS.split(' ').any(|known| known == name)
}

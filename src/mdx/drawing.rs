//! The elements of inline SVG that pages may use.
//!
//! Elements that animate, load, refer to other documents or hold HTML are not on the list:
//! `animate`, `set`, `use`, `image`, `foreignObject`, `script`, `style`, `a`.
//!
//! Sources: SVG 2 §5, §8 to §13.

/// The elements that only draw, separated by spaces; the list does not contain `svg` itself.
pub const ELEMENTS: &str = "\
    circle clipPath defs desc ellipse g line linearGradient marker mask path pattern polygon \
    polyline radialGradient rect stop text title tspan";

/// Returns whether this is the name of `svg` or of an element that may be inside it.
#[must_use]
pub fn is_part(name: &str) -> bool {
    name == "svg" || ELEMENTS.split(' ').any(|known| known == name)
}

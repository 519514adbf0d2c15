//! The components and HTML elements that pages may use.
//!
//! The reader (which warns about unknown names) and both writers use the same lists.
//!
//! Sources: the components that are used in 28,919 public pages; WHATWG HTML.

use super::drawing::is_part;

/// Components that are inline.
const INLINE: [&str; 4] = ["Badge", "Icon", "Tooltip", "Latex"];

/// Components that are blocks.
const BLOCK: [&str; 42] = [
    "Accordion",
    "AccordionGroup",
    "Callout",
    "Card",
    "CardGroup",
    "Check",
    "CodeBlock",
    "CodeGroup",
    "Color",
    "Color.Item",
    "Color.Row",
    "Column",
    "Columns",
    "Danger",
    "Error",
    "Expandable",
    "Frame",
    "Info",
    "Mermaid",
    "Note",
    "Panel",
    "ParamField",
    "Param",
    "Prompt",
    "RequestExample",
    "Response",
    "ResponseExample",
    "ResponseField",
    "Snippet",
    "Step",
    "Steps",
    "Tab",
    "Tabs",
    "Tile",
    "Tip",
    "Tree",
    "Tree.File",
    "Tree.Folder",
    "Update",
    "View",
    "Visibility",
    "Warning",
];

/// HTML elements that are inline.
const HTML_INLINE: [&str; 33] = [
    "a", "abbr", "audio", "b", "bdi", "bdo", "br", "cite", "code", "del", "dfn", "em", "i", "img",
    "ins", "kbd", "mark", "picture", "q", "rp", "rt", "ruby", "s", "samp", "small", "span",
    "strong", "sub", "sup", "time", "u", "var", "wbr",
];

/// HTML elements that are blocks.
const HTML_BLOCK: [&str; 41] = [
    "article",
    "aside",
    "blockquote",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "iframe",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "ul",
    "video",
];

/// Returns whether pages may use an element of this name; the name of a fragment is empty.
#[must_use]
pub fn is_known(name: &str) -> bool {
    name.is_empty()
        || INLINE.contains(&name)
        || BLOCK.contains(&name)
        || name == "source"
        || html(name).is_some()
        || is_part(name)
}

/// Elements of SVG that a drawing may not have.
const NOT_DRAWN: &str = "\
    animate animateMotion animateTransform feBlend feColorMatrix feComponentTransfer feComposite \
    feConvolveMatrix feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFlood feFuncA \
    feFuncB feFuncG feFuncR feGaussianBlur feImage feMerge feMergeNode feMorphology feOffset \
    fePointLight feSpecularLighting feSpotLight feTile feTurbulence filter foreignObject image mpath \
    set switch textPath view";

/// Returns what becomes of an element of HTML or SVG that pages cannot use; nothing if the name is
/// one of a component.
pub(super) fn left_out(name: &str) -> Option<&'static str> {
    if is_unseen(name) {
        return Some("it is left out");
    }
    if NOT_DRAWN.split(' ').any(|known| known == name) {
        return Some(match name {
            "foreignObject" => "its text is shown",
            _ => "it is left out",
        });
    }
    let is_element = name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains('.');
    is_element.then_some("its content is shown")
}

/// Returns whether an element has text that readers never see.
pub(super) fn is_unseen(name: &str) -> bool {
    matches!(name, "script" | "style")
}

/// Returns the names of all components.
pub(crate) fn components() -> impl Iterator<Item = &'static str> {
    INLINE.into_iter().chain(BLOCK)
}

/// Returns whether an element cannot be inside a paragraph.
///
/// An unknown element shows its content and may be anywhere.
#[must_use]
pub fn is_block(name: &str) -> bool {
    BLOCK.contains(&name) || HTML_BLOCK.contains(&name)
}

/// Returns whether an HTML element is a block that has no meaning besides its content.
pub(super) fn is_container(name: &str) -> bool {
    matches!(
        name,
        "article"
            | "aside"
            | "center"
            | "div"
            | "footer"
            | "header"
            | "main"
            | "nav"
            | "p"
            | "section"
    )
}

/// Returns the name if it is an HTML element that is written unchanged.
#[must_use]
pub(crate) fn html(name: &str) -> Option<&'static str> {
    let mut all = HTML_INLINE.into_iter().chain(HTML_BLOCK);
    all.find(|known| *known == name)
}

/// Returns the kind of a callout, which selects its CSS class and its label.
#[must_use]
pub(crate) fn callout(name: &str, kind: Option<&str>) -> Option<&'static str> {
    let name = match (name, kind) {
        ("Callout", Some(kind)) => kind,
        (name, _) => name,
    };
    Some(match name {
        "Note" | "note" | "Callout" => "note",
        "Warning" | "warning" => "warning",
        "Info" | "info" => "info",
        "Tip" | "tip" => "tip",
        "Check" | "check" | "success" => "check",
        "Danger" | "danger" | "Error" | "error" => "danger",
        _ => return None,
    })
}

/// Returns the place and the name of a parameter, from attributes such as `path="id"`.
pub(crate) fn parameter(element: &super::Element) -> Option<(&'static str, &str)> {
    let places = ["path", "query", "body", "header", "cookie"];
    places
        .into_iter()
        .find_map(|place| Some((place, element.text(place)?)))
}

//! HTML elements of pages, with their allowed attributes (**R3**).
//!
//! **Invariant:** a browser parses the HTML into the tree that was written (**R7**). A parser
//! moves misplaced elements: a block in a paragraph, text in a table row, an item in an item.
//! So this module never writes an element where it is not allowed.
//!
//! Sources: WHATWG HTML §3.2.5 (content models), §13.2.6 (tree construction), §4.8.1 and
//! §4.8.4 (pictures), §4.8.5 (frames), §15.3 (what attributes look like).

use super::Writer;
use crate::mdx::component as known;
use crate::mdx::{Element, Node, Value};
use crate::render::css;
use crate::render::link::Target;

/// Attributes that are allowed on every HTML element: names and descriptions.
const GLOBAL: [&str; 6] = ["title", "lang", "dir", "role", "aria-label", "aria-hidden"];
/// Further attributes that are allowed on some elements.
const OWN: [(&str, &[&str]); 9] = [
    ("td", &["colspan", "rowspan"]),
    ("th", &["colspan", "rowspan", "scope"]),
    ("ol", &["start", "reversed", "type"]),
    ("li", &["value"]),
    ("details", &["open"]),
    ("time", &["datetime"]),
    ("col", &["span"]),
    ("colgroup", &["span"]),
    (
        "video",
        &[
            "width",
            "height",
            "controls",
            "loop",
            "muted",
            "autoplay",
            "playsinline",
        ],
    ),
];
/// Names after `data-` that our own scripts and stylesheets use. Authors cannot set these.
const OURS: [&str; 23] = [
    "active",
    "active-deepest",
    "ask",
    "banner",
    "callout-type",
    "current-path",
    "dropdown",
    "finder",
    "language",
    "mcp",
    "messages",
    "method",
    "mood",
    "names",
    "operation",
    "root",
    "scheme",
    "search",
    "strict",
    "sync",
    "theme",
    "title",
    "to",
];
/// Elements that may contain only certain others: their name, the allowed children, and the
/// element that is put around other content (empty: such content is left out).
const PARTS: [(&str, &[&str], &str); 8] = [
    (
        "table",
        &["caption", "colgroup", "thead", "tbody", "tfoot", "tr"],
        "tbody",
    ),
    ("thead", &["tr"], "tr"),
    ("tbody", &["tr"], "tr"),
    ("tfoot", &["tr"], "tr"),
    ("tr", &["td", "th"], "td"),
    ("colgroup", &["col"], ""),
    ("ruby", &["rt", "rp"], ""),
    ("dl", &["dt", "dd"], "dd"),
];

// === impl Writer ===

impl Writer<'_> {
    /// Writes an HTML element.
    pub(super) fn html_element(&mut self, name: &'static str, element: &Element) {
        let children = match (name, &element.children[..]) {
            // The text between the author's own tags of a paragraph is read as one, too.
            ("p", [Node::Paragraph(line)]) => line,
            _ => &element.children,
        };
        match name {
            "a" => return self.html_link(element),
            "img" => return self.html_image(element),
            "picture" if element.is_picture() => return self.html_picture(element),
            "picture" => return self.nodes(children),
            "iframe" => return self.html_frame(element),
            "video" | "audio" => return self.html_media(name, element),
            "br" | "wbr" | "hr" => {
                self.out.markup("<").markup(name).markup(">");
                return;
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.as_bytes()[1] - b'0';
                let class = self.classes(element, None);
                let anchor = element.anchor.as_deref();
                return self.heading_of_class(level, anchor, children, class.as_deref());
            }
            _ => {}
        }
        if !self.is_allowed_here(name) {
            // The content and the anchor of the element are written.
            if let Some(anchor) = &element.anchor {
                self.place(&anchor.id);
            }
            return self.nodes(children);
        }
        let name = match name {
            // A parser ends `<p>` at a block, but not `<div>`.
            "p" if children.iter().any(Node::is_or_holds_block) => "div",
            // The layout already has these landmarks. A second one would confuse users of screen
            // readers.
            "main" | "header" | "footer" | "article" | "nav" => "div",
            "summary" if self.within.last() != Some(&"details") => "div",
            name => name,
        };
        self.out.markup("<").markup(name);
        self.attributes(name, element);
        self.out.markup(">");
        if name == "col" {
            return;
        }
        self.within.push(name);
        match PARTS.iter().find(|(whole, ..)| *whole == name) {
            Some((_, parts, otherwise)) if name != "ruby" => {
                self.parts_of(parts, otherwise, children)
            }
            _ if name == "pre" => self.paragraphs_of(children),
            _ => self.nodes(children),
        }
        self.within.pop();
        self.out.markup("</").markup(name).markup(">");
    }

    /// Writes the content of `<pre>`, in which paragraphs are lines with an empty line between them.
    fn paragraphs_of(&mut self, nodes: &[Node]) {
        for (number, node) in nodes.iter().enumerate() {
            match node {
                Node::Paragraph(line) => {
                    self.out.text(if number > 0 { "\n\n" } else { "" });
                    self.nodes(line);
                }
                node => self.node(node),
            }
        }
    }

    /// Returns whether an element is allowed in the element that is open.
    fn is_allowed_here(&self, name: &str) -> bool {
        let parent = self.within.last();
        let mut wholes = PARTS
            .iter()
            .filter(|(_, parts, _)| parts.contains(&name))
            .peekable();
        match name {
            "li" => matches!(parent, Some(&("ul" | "ol"))),
            _ if wholes.peek().is_none() => true,
            _ => wholes.any(|(whole, ..)| parent == Some(whole)),
        }
    }

    /// Writes the content of an element that may contain only certain others.
    fn parts_of(&mut self, parts: &[&str], otherwise: &'static str, nodes: &[Node]) {
        let mut rest: Vec<&Node> = Vec::new();
        for node in nodes {
            match node {
                Node::Element(part) if parts.contains(&&*part.name) => {
                    self.other_part(otherwise, &mut rest);
                    self.node(node);
                }
                // Paragraphs come from the reader of pages, fragments from snippets.
                Node::Paragraph(children) if !is_text(children) => {
                    self.other_part(otherwise, &mut rest);
                    self.parts_of(parts, otherwise, children);
                }
                Node::Element(inner) if inner.name.is_empty() => {
                    self.other_part(otherwise, &mut rest);
                    self.parts_of(parts, otherwise, &inner.children);
                }
                Node::Text(text) if text.trim().is_empty() => {}
                other => rest.push(other),
            }
        }
        self.other_part(otherwise, &mut rest);
    }

    /// Writes content that is not allowed here inside an element that is.
    fn other_part(&mut self, name: &'static str, nodes: &mut Vec<&Node>) {
        let children: Vec<Node> = std::mem::take(nodes).into_iter().cloned().collect();
        if children.is_empty() || name.is_empty() {
            return;
        }
        let mut part = Element::new(name);
        part.children = children;
        self.html_element(known::html(name).unwrap_or("div"), &part);
    }

    fn attributes(&mut self, name: &'static str, element: &Element) {
        let own = OWN.iter().find(|(element, _)| *element == name);
        let own = own.map_or(&[][..], |(_, attributes)| attributes);
        self.id(element.anchor.as_deref());
        if let Some(class) = self.classes(element, None) {
            self.out.attribute("class", &class);
        }
        for allowed in GLOBAL.iter().chain(own) {
            // JSX spells some attributes differently: `colSpan`.
            let mut all = element.attributes.iter();
            let found = all.find(|(name, _)| name.eq_ignore_ascii_case(allowed));
            match found.map(|(_, value)| value) {
                Some(Value::Text(value)) => {
                    self.out.attribute(allowed, value);
                }
                Some(Value::Boolean(true)) => {
                    self.out.attribute(allowed, "");
                }
                _ => {}
            }
        }
        for (name, value) in &element.attributes {
            let value = match value {
                Value::Text(value) => value,
                Value::Boolean(true) => "true",
                Value::Boolean(false) => "false",
                _ => continue,
            };
            if let Some(name) = name.strip_prefix("data-")
                && !OURS.contains(&name)
            {
                self.out.data(name, value);
            }
        }
    }

    /// Opens the tag of the element that a component becomes: with its own class, and with the
    /// classes and the style that the author gave the component.
    pub(in crate::render) fn open(
        &mut self,
        tag: &'static str,
        own: &'static str,
        component: &Element,
    ) {
        self.out.markup(tag);
        match self.classes(component, None) {
            Some(more) => self.out.attribute("class", &format!("{own} {more}")),
            None if own.contains(' ') => self.out.attribute("class", own),
            None => self.out.markup(" class=").markup(own),
        };
    }

    /// Returns the classes of an element: for light or dark mode, and for its style.
    pub(in crate::render) fn classes(
        &mut self,
        element: &Element,
        more: Option<&str>,
    ) -> Option<String> {
        let written = element.text("className").or_else(|| element.text("class"));
        let mut classes: Vec<String> = more.map(ToOwned::to_owned).into_iter().collect();
        let shown = written.and_then(mode);
        classes.extend(shown.map(ToOwned::to_owned));
        for class in css::classes(written.unwrap_or_default()) {
            // The class for the mode replaces the author's classes for the mode.
            let class = match shown {
                Some("only-light") if class == "dark:hidden" => continue,
                Some("only-dark") if class == "hidden" => continue,
                Some("only-dark") => class.strip_prefix("dark:").unwrap_or(class),
                _ => class,
            };
            self.utilities.insert(class.into());
            classes.push(css::class(class).into_owned());
        }
        if matches!(
            &*element.name,
            "article" | "footer" | "header" | "main" | "nav"
        ) {
            classes.push(format!("x-{}", element.name));
        }
        classes.extend(self.hints(element));
        classes.extend(self.style_of(element));
        (!classes.is_empty()).then(|| classes.join(" "))
    }

    /// Returns the classes for presentational attributes such as `align` (§15.3).
    fn hints(&mut self, element: &Element) -> Vec<String> {
        let mut classes = Vec::new();
        // `align` on a table would move the table, not align its text (§15.3.8).
        let is_table = *element.name == *"table";
        if let Some(align @ ("left" | "center" | "right")) = element.text("align")
            && !is_table
        {
            classes.extend(self.class_with("text-align", align));
        }
        let is_cell = matches!(&*element.name, "td" | "th");
        let is_row = matches!(&*element.name, "tr" | "thead" | "tbody" | "tfoot");
        if let Some(align @ ("top" | "middle" | "bottom" | "baseline")) = element.text("valign")
            && (is_cell || is_row)
        {
            classes.extend(self.class_with("vertical-align", align));
        }
        if (is_table || is_cell || *element.name == *"col")
            && let Some(width) = element.text("width").and_then(length)
        {
            classes.extend(self.class_with("width", &width));
        }
        classes
    }

    fn html_link(&mut self, element: &Element) {
        match element.text("href") {
            Some(href) => {
                if let Some(anchor) = &element.anchor {
                    self.place(&anchor.id);
                }
                let class = self.classes(element, None);
                let mut more: Vec<(&'static str, &str)> = Vec::new();
                more.extend(class.as_deref().map(|class| ("class", class)));
                for name in ["title", "aria-label"] {
                    more.extend(element.text(name).map(|value| (name, value)));
                }
                self.link_with(href, &element.children, &more);
            }
            // `<a id="x">` without `href` is not a link.
            None => {
                self.out.markup("<span");
                self.attributes("span", element);
                self.wrap(">", &element.children, "</span>");
            }
        }
    }

    fn html_image(&mut self, element: &Element) {
        let size = |name| {
            let size = element.text(name)?.trim_end_matches("px");
            Some(size).filter(|n| n.parse::<u32>().is_ok())
        };
        let mut more: Vec<(&'static str, &str)> = Vec::new();
        more.extend(size("width").map(|n| ("width", n)));
        more.extend(size("height").map(|n| ("height", n)));
        // A share of the place is no number of pixels. The ratio is that of the file.
        let share = element.text("width").and_then(|width| {
            let share: f32 = width.trim().strip_suffix('%')?.parse().ok()?;
            (0.0..=1000.0).contains(&share).then(|| format!("{share}%"))
        });
        let share = share.and_then(|share| self.class_with("width", &share));
        let class = self.classes(element, share.as_deref());
        more.extend(class.as_deref().map(|class| ("class", class)));
        more.extend(element.text("title").map(|title| ("title", title)));
        let src = element
            .text("src")
            .or_else(|| element.text("light"))
            .unwrap_or_default();
        let alt = element.text("alt").unwrap_or_default();
        let Some(dark) = element.text("dark").or_else(|| element.text("srcDark")) else {
            return self.image(src, alt, &more);
        };
        more.retain(|(name, _)| *name != "class");
        let mut light = more.clone();
        light.push(("class", "only-light"));
        more.push(("class", "only-dark"));
        self.image(src, alt, &light);
        self.image(dark, alt, &more);
    }

    /// Writes a `<picture>` with sources for light and dark as two images, because the reader may
    /// choose another colour scheme than the system's.
    ///
    /// Both have the size of the `<img>`. Other sources are left out: the `<img>` has a format
    /// that every browser shows.
    fn html_picture(&mut self, picture: &Element) {
        let mut parts = Vec::new();
        elements_in(&picture.children, &mut parts);
        let Some(shown) = parts.iter().find(|part| *part.name == *"img") else {
            return self.nodes(&picture.children);
        };
        let source = |scheme: &str| {
            let mut sources = parts.iter().filter(|part| *part.name == *"source");
            let source = sources.find(|source| {
                let media = source.text("media").unwrap_or_default();
                let media: String = media.split_whitespace().collect();
                media.contains(&format!("prefers-color-scheme:{scheme}"))
            })?;
            let all = source.text("srcset").or_else(|| source.text("srcSet"))?;
            first_of(all)
        };
        let (light, dark) = (source("light"), source("dark"));
        let mut sources = parts.iter().filter(|part| *part.name == *"source");
        let left_out = sources.find_map(|source| {
            let media = source.text("media")?;
            let is_kept = media.is_empty() || media.contains("prefers-color-scheme");
            (!is_kept).then_some(media)
        });
        if let Some(media) = left_out {
            let message = format!(
                "the `<source>` for `{media}` is left out; only those for light and dark mode are shown"
            );
            self.warn("mdx-component", message);
        }
        if light.is_none() && dark.is_none() {
            return self.html_image(shown);
        }
        let mut pair = Element::clone(shown);
        let fallback = shown.text("src").unwrap_or_default();
        for (name, src) in [("src", light), ("dark", dark)] {
            let src = src.unwrap_or(fallback).to_owned();
            pair.attributes.push((name.into(), Value::Text(src)));
        }
        self.html_image(&pair);
    }

    fn html_media(&mut self, name: &'static str, element: &Element) {
        self.out.markup("<").markup(name);
        self.attributes("video", element);
        if let Some(src) = element.text("src") {
            self.href("src", src);
        }
        if let Some(poster) = element.text("poster") {
            self.href("poster", poster);
        }
        self.out.markup(" preload=metadata>");
        self.sources(&element.children);
        self.out.markup("</").markup(name).markup(">");
    }

    fn sources(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Element(source) if *source.name == *"source" => {
                    self.out.markup("<source");
                    self.href("src", source.text("src").unwrap_or_default());
                    if let Some(kind) = source.text("type") {
                        self.out.attribute("type", kind);
                    }
                    self.out.markup(">");
                }
                Node::Paragraph(children) => self.sources(children),
                _ => {}
            }
        }
    }

    /// Writes a sandboxed frame if its host is allowed, else a link to the address.
    fn html_frame(&mut self, element: &Element) {
        let src = element.text("src").unwrap_or_default();
        let title = element
            .text("title")
            .unwrap_or(self.messages.article.embedded_page);
        let Target::Elsewhere(url) = self.map.resolve(self.file, src) else {
            return;
        };
        if !self.map.frames.allow(&url) {
            let message = format!("`{url}` is shown as a link: pages may not embed its host");
            self.warn("frame-host", message);
            return self.link(&url, &[Node::Text(title.to_owned())]);
        }
        self.out.markup(
            "<iframe loading=lazy allowfullscreen sandbox=\"allow-scripts allow-same-origin allow-presentation allow-popups\"",
        );
        self.out.attribute("src", &url).attribute("title", title);
        if let Some(class) = self.classes(element, None) {
            self.out.attribute("class", &class);
        }
        self.out.markup("></iframe>");
    }
}

/// Finds all elements below nodes. The reader of pages puts text into paragraphs, which are
/// skipped.
fn elements_in<'n>(nodes: &'n [Node], found: &mut Vec<&'n Element>) {
    for node in nodes {
        match node {
            Node::Element(element) => {
                found.push(element);
                elements_in(&element.children, found);
            }
            Node::Paragraph(children) => elements_in(children, found),
            _ => {}
        }
    }
}

/// Returns the first address of a `srcset` (§4.8.4.2.1). An address that ends in a comma has
/// no descriptor.
fn first_of(srcset: &str) -> Option<&str> {
    let first = srcset.split_whitespace().next()?;
    let first = first.trim_matches(',');
    (!first.is_empty()).then_some(first)
}

/// Reads a length of HTML (§2.3.4.4) in pixels or percent.
fn length(text: &str) -> Option<String> {
    let number = text.trim();
    let (number, unit) = match number.strip_suffix('%') {
        Some(share) => (share, "%"),
        None => (number.strip_suffix("px").unwrap_or(number), "px"),
    };
    let number: u16 = number.parse().ok()?;
    Some(format!("{number}{unit}"))
}

/// Returns whether a paragraph contains text only. A paragraph with elements may come from the
/// reader of pages, which puts one around the parts of a table or list.
fn is_text(children: &[Node]) -> bool {
    !children
        .iter()
        .any(|child| matches!(child, Node::Element(_)))
}

/// Returns the class for content that is shown only in light or only in dark mode. Pages use these
/// class names of Tailwind CSS for it.
pub(in crate::render) fn mode(classes: &str) -> Option<&'static str> {
    let has = |wanted: &str| classes.split_whitespace().any(|class| class == wanted);
    let shows = [
        "dark:block",
        "dark:inline",
        "dark:inline-block",
        "dark:flex",
        "dark:grid",
    ];
    if has("dark:hidden") {
        Some("only-light")
    } else if has("hidden") && shows.iter().any(|class| has(class)) {
        Some("only-dark")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authors_cannot_set_attributes_that_our_scripts_and_styles_use() {
        let layout = concat!(
            include_str!("../layout/scripts/connect.js"),
            include_str!("../layout/scripts/copy.js"),
            include_str!("../layout/scripts/first.js"),
            include_str!("../layout/scripts/layout.js"),
            include_str!("../layout/scripts/search.js"),
            include_str!("../layout/scripts/tabs.js"),
            include_str!("../layout/scripts/vote.js"),
        );
        let styles = crate::render::layout::STYLES.concat() + crate::render::html::STYLES;
        let word = |text: &str, is_part: fn(char) -> bool| -> String {
            text.chars().take_while(|c| is_part(*c)).collect()
        };
        let all = styles + layout;
        let attributes = all.split("data-").skip(1);
        let attributes = attributes.map(|rest| word(rest, |c| c.is_ascii_lowercase() || c == '-'));
        let properties = all.split("dataset.").skip(1);
        let properties = properties.map(|rest| word(rest, |c| c.is_ascii_lowercase()));
        for name in attributes.chain(properties).filter(|name| !name.is_empty()) {
            assert!(OURS.contains(&&*name), "{name}");
        }
        assert!(OURS.is_sorted());
    }

    #[test]
    fn class_names_for_light_and_dark_mode_are_read() {
        assert_eq!(mode("block dark:hidden"), Some("only-light"));
        assert_eq!(mode("hidden dark:block rounded"), Some("only-dark"));
        assert_eq!(mode("dark:block"), None);
        assert_eq!(mode("grid md:grid-cols-2"), None);
    }
}

//! Inline Markdown: text, emphasis, code, links, images.
//!
//! Sources: CommonMark 0.31.2 §2.4 (backslash escapes), §6.1 (code spans), §6.3 (links).

use std::borrow::Cow;

use super::{BREAK, Writer};
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::mdx::component as known;
use crate::mdx::drawing::is_part;
use crate::mdx::{Element, Node, Value, block_mark, plain, read_markdown};
use crate::render::component;
use crate::render::html;
use crate::render::link::Target;
use crate::site::percent::encode;

// === impl Writer ===

impl Writer<'_> {
    pub(in crate::render) fn line(&self, nodes: &[Node]) -> String {
        let mut line = String::new();
        nodes.iter().for_each(|node| self.inline(node, &mut line));
        line.trim().to_owned()
    }

    /// Writes the text of an attribute, in which inline Markdown is allowed.
    pub(in crate::render) fn prose(&self, text: &str) -> String {
        match read_markdown(text).as_deref() {
            Ok([Node::Paragraph(line)]) => self.line(line),
            _ => escaped(text),
        }
    }

    /// Returns an attribute that is shown in a line: a text, or a piece of a page.
    pub(in crate::render) fn label(&self, element: &Element, name: &str) -> String {
        match element.get(name) {
            Some(Value::Nodes(nodes)) if !nodes.iter().any(Node::is_or_holds_block) => {
                self.line(nodes)
            }
            _ => escaped(&element.words(name).unwrap_or_default()),
        }
    }

    /// Returns an attribute that describes an element: a text with inline Markdown, or a piece of
    /// a page.
    pub(in crate::render) fn description(&self, element: &Element, name: &str) -> String {
        match element.get(name) {
            Some(Value::Text(text)) => self.prose(text),
            _ => self.label(element, name),
        }
    }

    pub(in crate::render) fn inline(&self, node: &Node, out: &mut String) {
        match node {
            Node::Text(text) => escape(text, out),
            Node::Code(code) => code_span(code, out),
            Node::Formula { tex, .. } => out.push_str(&format!("${}$", tex.replace('\n', " "))),
            Node::Break => out.push_str(BREAK),
            Node::Emphasis(children) => self.around("*", children, out),
            Node::Strong(children) => self.around("**", children, out),
            Node::Struck(children) => self.around("~~", children, out),
            Node::Link { href, children, .. } => self.link_with(href, children, out),
            Node::Image {
                src, alt, title, ..
            } => self.image(src, alt, title, out),
            Node::FootnoteReference(label) => out.push_str(&format!("[^{label}]")),
            Node::Element(element) if is_dark_form(element) => {}
            Node::Element(element) => self.inline_element(element, out),
            Node::Expression(_) => {
                out.push_str(&format!("*{}*", escaped(self.messages.article.left_out)));
            }
            block => escape(&plain(std::slice::from_ref(block)), out),
        }
    }

    fn around(&self, mark: &str, children: &[Node], out: &mut String) {
        self.trimmed(children, out, |inside, out| {
            out.push_str(&format!("{mark}{inside}{mark}"));
        });
    }

    fn link_with(&self, href: &str, children: &[Node], out: &mut String) {
        self.trimmed(children, out, |text, out| self.link(href, text, out));
    }

    /// Writes children with the spaces at their edges outside of the marks that `write` adds:
    /// `**a **` is no emphasis (CommonMark 0.31.2 §6.2).
    fn trimmed(&self, children: &[Node], out: &mut String, write: impl Fn(&str, &mut String)) {
        let mut inside = String::new();
        children
            .iter()
            .for_each(|node| self.inline(node, &mut inside));
        let text = inside.trim();
        let has_space = |edge: bool| if edge { " " } else { "" };
        push_space(has_space(inside.starts_with(char::is_whitespace)), out);
        if !text.is_empty() {
            write(text, out);
            push_space(has_space(inside.ends_with(char::is_whitespace)), out);
        }
    }

    fn inline_element(&self, element: &Element, out: &mut String) {
        let children = &element.children;
        match &*element.name {
            "a" => match element.text("href") {
                Some(href) => self.link_with(href, children, out),
                // `<a id="x">` without `href` is not a link.
                None => children.iter().for_each(|child| self.inline(child, out)),
            },
            "img" => {
                let shown = element.text("src").or_else(|| element.text("light"));
                let alt = element.text("alt").unwrap_or_default();
                let title = element.text("title").unwrap_or_default();
                self.image(shown.unwrap_or_default(), alt, title, out);
            }
            "br" => out.push_str(BREAK),
            "b" | "strong" => self.around("**", children, out),
            "i" | "em" => self.around("*", children, out),
            "s" | "del" => self.around("~~", children, out),
            "code" | "kbd" | "samp" => code_span(&plain(children), out),
            "iframe" | "video" | "audio" => self.media(element, out),
            // SVG has no text form.
            name if is_part(name) => {}
            name => match component::find(name) {
                Some(component) => (component.markdown_inline)(self, element, out),
                // Spaces around the text inside are part of the sentence.
                None => spaced(element)
                    .iter()
                    .for_each(|child| self.inline(child, out)),
            },
        }
    }

    /// Writes a link to a video, an audio file or a framed page.
    pub(super) fn media(&self, element: &Element, out: &mut String) {
        let default = match &*element.name {
            "iframe" => self.messages.article.embedded_page,
            "audio" => "Audio",
            _ => "Video",
        };
        let source = element.text("src").or_else(|| source_in(&element.children));
        let title = element.text("title").filter(|title| !title.is_empty());
        if let Some(url) = source.and_then(|src| self.address(src)) {
            write_link(&url, &escaped(title.unwrap_or(default)), out);
        }
    }

    fn address(&self, href: &str) -> Option<String> {
        if href.trim().is_empty() {
            return None;
        }
        Some(match self.map.resolve(self.file, href) {
            Target::Page { page, rest } => super::address(&page) + &rest,
            Target::Asset(path) => format!("{BASE_URL_PLACEHOLDER}/{}", encode(&path)),
            Target::Unknown { path, rest } => {
                format!("{BASE_URL_PLACEHOLDER}/{}{rest}", encode(&path))
            }
            Target::Here(href) | Target::Elsewhere(href) => href.into(),
            Target::Rejected => return None,
        })
    }

    /// Writes a link; `text` is Markdown already.
    pub(in crate::render) fn link(&self, href: &str, text: &str, out: &mut String) {
        match self.address(href) {
            Some(url) => write_link(&url, text, out),
            None => out.push_str(text),
        }
    }

    /// Writes an image, or its alternative text if its address is not allowed.
    fn image(&self, src: &str, alt: &str, title: &str, out: &mut String) {
        let alt = escaped(alt);
        // CommonMark 0.31.2 §6.3: a title is in quotes, which a backslash escapes.
        let title = match title.is_empty() {
            true => String::new(),
            false => format!(" \"{}\"", escaped(title).replace('"', "\\\"")),
        };
        match self.address(src) {
            Some(url) => out.push_str(&format!("![{alt}]({}{title})", destination(&url))),
            None => out.push_str(&alt),
        }
    }
}

/// Returns whether a node is inline.
pub(super) fn is_inline(node: &Node) -> bool {
    match node {
        Node::Text(_)
        | Node::Code(_)
        | Node::Break
        | Node::Emphasis(_)
        | Node::Strong(_)
        | Node::Struck(_)
        | Node::Link { .. }
        | Node::Image { .. }
        | Node::FootnoteReference(_)
        | Node::Expression(_) => true,
        Node::Formula { display, .. } => !display,
        Node::Element(element) if is_part(&element.name) => true,
        Node::Element(element) => {
            !known::is_block(&element.name) && element.children.iter().all(is_inline)
        }
        _ => false,
    }
}

/// Returns the content of an element, with a space between the elements that its style sets apart.
pub(super) fn spaced(element: &Element) -> Cow<'_, [Node]> {
    let classes = element.text("className").or_else(|| element.text("class"));
    let is_apart = |class: &str| matches!(class, "flex" | "inline-flex" | "grid" | "inline-grid");
    if !classes.is_some_and(|classes| classes.split_whitespace().any(is_apart)) {
        return Cow::Borrowed(&element.children);
    }
    Cow::Owned(match &*element.children {
        // All of it is on one line.
        [Node::Paragraph(line)] => vec![Node::Paragraph(apart(line))],
        children => apart(children),
    })
}

/// Returns nodes with a space before each element but the first.
fn apart(nodes: &[Node]) -> Vec<Node> {
    let mut spaced = Vec::with_capacity(2 * nodes.len());
    for node in nodes {
        if matches!(node, Node::Element(_)) && !spaced.is_empty() {
            spaced.push(Node::Text(" ".to_owned()));
        }
        spaced.push(node.clone());
    }
    spaced
}

/// Returns whether an element shows an image only in dark mode: the second form of an image that
/// stands beside it.
pub(super) fn is_dark_form(element: &Element) -> bool {
    let classes = element.text("className").or_else(|| element.text("class"));
    classes.and_then(html::mode) == Some("only-dark") && is_image(element)
}

/// Returns whether an element is an image or holds nothing but images.
fn is_image(element: &Element) -> bool {
    fn all(nodes: &[Node]) -> bool {
        nodes.iter().all(|node| match node {
            Node::Image { .. } => true,
            Node::Text(text) => text.trim().is_empty(),
            Node::Paragraph(line) => all(line),
            Node::Element(element) => is_image(element),
            _ => false,
        })
    }
    *element.name == *"img" || !element.children.is_empty() && all(&element.children)
}

/// Returns the address of the first `<source>` of a video.
fn source_in(nodes: &[Node]) -> Option<&str> {
    nodes.iter().find_map(|node| match node {
        Node::Element(source) if *source.name == *"source" => source.text("src"),
        Node::Paragraph(children) => source_in(children),
        _ => None,
    })
}

fn write_link(url: &str, text: &str, out: &mut String) {
    // `!` before a link would make it an image.
    if out.ends_with('!') {
        out.insert(out.len() - 1, '\\');
    }
    let is_plain = !url.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>'));
    if url == text && url.contains(':') && is_plain {
        out.push_str(&format!("<{url}>"));
    } else {
        out.push_str(&format!("[{text}]({})", destination(url)));
    }
}

/// Returns an address as a link destination, between angle brackets where it needs them
/// (CommonMark §6.3).
fn destination(url: &str) -> String {
    let ends = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '(' | ')' | '<' | '>');
    if !url.contains(ends) {
        return url.to_owned();
    }
    let mut out = String::with_capacity(url.len() + 2);
    out.push('<');
    for c in url.chars() {
        match c {
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out.push('>');
    out
}

/// Writes code between more backticks than it contains (CommonMark §6.1).
pub(in crate::render) fn code_span(code: &str, out: &mut String) {
    if code.trim().is_empty() {
        return;
    }
    let code = code.replace('\n', " ");
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    out.push_str(&format!("{fence}{space}{code}{space}{fence}"));
}

/// Returns a text without markup, such as a title or the text of an attribute, escaped and in one
/// line.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        escape(word, &mut out);
    }
    out
}

/// Writes text, with escapes for the characters that Markdown would interpret.
///
/// Sources: CommonMark 0.31.2 §2.4, §2.5 (references to characters), §6.2 (emphasis); GFM 0.29 §6.5
/// (strikethrough).
fn escape(text: &str, out: &mut String) {
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let is_marked = match c {
            '*' | '`' | '<' | '[' | ']' | '\\' => true,
            '_' => may_delimit(out.chars().next_back(), rest.chars().next()),
            '~' => rest.starts_with('~') || out.ends_with('~'),
            '&' => is_reference(rest),
            _ => false,
        };
        if is_marked {
            out.push('\\');
        }
        match c {
            ' ' => push_space(" ", out),
            c => out.push(c),
        }
    }
}

/// Writes a space, unless there is one: two at the end of a line are a line break.
fn push_space(space: &str, out: &mut String) {
    if !out.ends_with(' ') {
        out.push_str(space);
    }
}

/// Returns whether an underscore between two characters may begin or end emphasis: it does not
/// between letters, as in `snake_case`, nor between spaces.
fn may_delimit(before: Option<char>, after: Option<char>) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_space = |c: Option<char>| c.is_some_and(char::is_whitespace);
    !(is_letter(before) && is_letter(after) || is_space(before) && is_space(after))
}

/// Returns whether the text after `&` makes a reference to a character, such as `&lt;`.
fn is_reference(rest: &str) -> bool {
    let Some((name, _)) = rest.split_once(';') else {
        return false;
    };
    let name = name.strip_prefix('#').unwrap_or(name);
    !name.is_empty() && name.len() <= 32 && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Escapes the beginnings of lines that Markdown would take for blocks.
pub(super) fn not_blocks(text: &str) -> Cow<'_, str> {
    if !text.lines().any(|line| block_mark(line).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for (nth, line) in text.split('\n').enumerate() {
        if nth > 0 {
            out.push('\n');
        }
        match block_mark(line) {
            Some(at) => out.extend([&line[..at], "\\", &line[at..]]),
            None => out.push_str(line),
        }
    }
    Cow::Owned(out)
}

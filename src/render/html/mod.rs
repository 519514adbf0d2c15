//! Writes a page as HTML.
//!
//! Only listed elements and attributes are written (**R3**); all other content of a page is
//! written as text (**R2**).
//!
//! Sources: WHATWG HTML; WAI-ARIA Authoring Practices 1.2; MathML Core.

pub mod diagram;
pub(super) mod drawing;
mod element;
pub(super) mod fence;
mod formula;
mod style;

pub(super) use element::mode;
pub(super) use style::is_value as is_css_value;

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Diagnostic;
use crate::markup::Html;

use super::file::{CSS, File};
use super::highlight::Work;
use super::link::{Map, Start, Target};
use super::messages::Messages;
use super::{component, css};
use crate::mdx::anchor::{Anchor, of_footnote};
use crate::mdx::component as known;
use crate::mdx::{Alignment, Element, Item, Node, Table, Value, in_line, plain, read_markdown};

/// A heading of a page, for the list beside it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Heading {
    /// From 1 to 6.
    pub level: u8,
    /// Its anchor.
    pub id: Box<str>,
    /// Its text.
    pub text: Box<str>,
}

/// How wide an image is shown: at most as wide as the text of a page.
const IMAGE_SIZES: &str = "(max-width: 47rem) 100vw, 47rem";

/// A page as HTML.
#[derive(Debug, Default)]
pub struct HtmlPage {
    /// The article.
    pub html: Html,
    /// Its headings in order.
    pub headings: Vec<Heading>,
    /// The files of the repository that it shows or links, by path from the root of the docs.
    pub assets: BTreeSet<Box<str>>,
    /// The generated files that it loads.
    pub files: Vec<File>,
    /// The parts that were left out, and the reasons.
    pub diagnostics: Vec<Diagnostic>,
}

/// The stylesheet of components; it becomes part of the stylesheet of a site.
pub const STYLES: &str = include_str!("components.css");

/// Writes the nodes of `file`, which are shown at `start`, in the language of `messages`.
#[must_use]
pub fn write(
    file: &str,
    start: Start<'_>,
    nodes: &[Node],
    map: &Map,
    messages: &Messages,
    has_title: bool,
) -> HtmlPage {
    let mut writer = Writer {
        has_title,
        ..Writer::new(file, start, map, messages)
    };
    writer.nodes(nodes);
    writer.count_uncoloured();
    let (html, files) = writer.with_files();
    HtmlPage {
        html,
        files,
        headings: writer.headings,
        assets: writer.assets,
        diagnostics: writer.diagnostics,
    }
}

/// Returns the diagnostics of [`write()`]. It does not colour code, which is most of the work.
#[must_use]
pub fn check(
    file: &str,
    start: Start<'_>,
    nodes: &[Node],
    map: &Map,
    messages: &Messages,
) -> Vec<Diagnostic> {
    let mut writer = Writer {
        is_draft: true,
        ..Writer::new(file, start, map, messages)
    };
    writer.nodes(nodes);
    writer.count_uncoloured();
    writer.diagnostics
}

/// Writes the HTML of a page.
pub(super) struct Writer<'p> {
    /// Whether the HTML is dropped, so that code is not highlighted.
    is_draft: bool,
    /// Whether the layout writes the title of the page above the article.
    has_title: bool,
    pub(super) file: &'p str,
    start: Start<'p>,
    pub(super) map: &'p Map,
    pub(super) messages: &'p Messages,
    pub(super) out: Html,
    headings: Vec<Heading>,
    assets: BTreeSet<Box<str>>,
    in_link: bool,
    /// The line of the element that is written now, from 1; 0 if it is not in this file.
    pub(super) line: u32,
    /// The names of the HTML elements that are open, outermost first; empty for an element
    /// that the author did not write.
    pub(super) within: Vec<&'static str>,
    /// Classes of this page, with their declarations.
    styles: BTreeMap<String, String>,
    /// The author's classes on this page; some are utility classes.
    utilities: BTreeSet<Box<str>>,
    has_diagrams: bool,
    /// The names of icons that do not exist, so that each is reported once.
    pub(super) unknown_icons: BTreeSet<Box<str>>,
    /// The work that colouring code may still cost.
    highlighting: Work,
    /// How many pieces of code are shown without colours because of a limit.
    uncoloured: usize,
    pub(super) diagnostics: Vec<Diagnostic>,
}

// === impl Writer ===

impl<'p> Writer<'p> {
    fn new(file: &'p str, start: Start<'p>, map: &'p Map, messages: &'p Messages) -> Self {
        Self {
            is_draft: false,
            has_title: true,
            file,
            start,
            map,
            messages,
            out: Html::default(),
            headings: Vec::new(),
            assets: BTreeSet::new(),
            in_link: false,
            line: 0,
            within: Vec::new(),
            styles: BTreeMap::new(),
            utilities: BTreeSet::new(),
            has_diagrams: false,
            unknown_icons: BTreeSet::new(),
            highlighting: Work::default(),
            uncoloured: 0,
            diagnostics: Vec::new(),
        }
    }
}

impl Writer<'_> {
    /// Returns the HTML with links to the generated files, and these files.
    fn with_files(&mut self) -> (Html, Vec<File>) {
        let mut html = Html::default();
        let mut files = Vec::new();
        // The layer comes first in the file. The `style` of an element is in no layer, so it
        // overrides the layer.
        let utilities = css::utility::sheet(self.utilities.iter().map(|class| &**class));
        let styles = utilities + &style::stylesheet(self.styles.iter());
        if !styles.is_empty() {
            let file = File::new("page", "css", styles.into(), CSS);
            html.markup("<link rel=stylesheet");
            html.attribute("href", &self.start.to(&file.path));
            html.markup(">\n");
            files.push(file);
        }
        if self.has_diagrams {
            files.extend(diagram::files().iter().cloned());
        }
        html.append(&self.out);
        (html, files)
    }

    pub(super) fn nodes(&mut self, nodes: &[Node]) {
        let mut rest = nodes;
        while let Some((node, after)) = rest.split_first() {
            rest = after;
            let Some(first) = as_view(node) else {
                self.node(node);
                continue;
            };
            let mut views = vec![first];
            while let Some((next, after)) = rest.split_first() {
                match as_view(next) {
                    Some(view) => views.push(view),
                    None if is_space(next) => {}
                    None => break,
                }
                rest = after;
            }
            component::views(self, &views);
        }
    }

    pub(super) fn node(&mut self, node: &Node) {
        match node {
            Node::Text(text) => {
                self.out.text(text);
            }
            Node::Code(code) => {
                self.out.markup("<code>").text(code).markup("</code>");
            }
            Node::Formula { tex, display } => self.formula(tex, *display),
            Node::Break => {
                self.out.markup("<br>");
            }
            Node::Rule => {
                self.out.markup("<hr>");
            }
            Node::Emphasis(children) => self.wrap("<em>", children, "</em>"),
            Node::Strong(children) => self.wrap("<strong>", children, "</strong>"),
            Node::Struck(children) => self.wrap("<del>", children, "</del>"),
            // A parser ends `<p>` at a block.
            Node::Paragraph(children) if children.iter().any(Node::is_or_holds_block) => {
                self.wrap("<div class=paragraph>", children, "</div>\n");
            }
            Node::Paragraph(children) => self.wrap("<p>", children, "</p>\n"),
            Node::Quote(children) => self.wrap("<blockquote>", children, "</blockquote>\n"),
            Node::Link { href, children, .. } => self.link(href, children),
            Node::Image {
                src, alt, title, ..
            } => {
                let title = Some(("title", title.as_str())).filter(|(_, title)| !title.is_empty());
                self.image(src, alt, title.as_slice());
            }
            Node::Heading {
                level,
                children,
                anchor,
                ..
            } => self.heading(*level, anchor.as_deref(), children),
            Node::Fence { info, code } => self.fence(info, code),
            Node::List { start, items } => self.list(*start, items),
            Node::Table(table) => self.table(table),
            Node::FootnoteReference(label) => self.footnote_reference(label),
            Node::Footnote { label, children } => {
                let id = of_footnote(label);
                self.out.markup("<aside class=footnote");
                self.out.attribute("id", &id).markup("><sup>");
                self.out.text(label).markup("</sup> ");
                self.wrap("<div>", children, "</div></aside>\n");
            }
            Node::Element(element) => self.element(element),
            Node::Expression(_) => {
                self.out.markup("<span class=left-out>");
                self.out.text(self.messages.article.left_out);
                self.out.markup("</span>");
            }
        }
    }

    pub(super) fn wrap(&mut self, open: &'static str, children: &[Node], close: &'static str) {
        self.out.markup(open);
        self.inside(children);
        self.out.markup(close);
    }

    /// Returns whether the nodes that are written now are in no element of the article.
    pub(super) fn is_outermost(&self) -> bool {
        self.within.is_empty()
    }

    /// Writes nodes inside an element that this program adds. An HTML element that needs a certain
    /// parent is not allowed there, even if the parent is further out.
    pub(super) fn inside(&mut self, children: &[Node]) {
        self.within.push("");
        self.nodes(children);
        self.within.pop();
    }

    /// Writes the text of an attribute, in which inline Markdown is allowed.
    pub(super) fn prose(&mut self, text: &str) {
        match read_markdown(text).as_deref() {
            Ok([Node::Paragraph(line)]) => self.nodes(line),
            _ => {
                self.out.text(text);
            }
        }
    }

    /// Writes an attribute that is a text with inline Markdown, or a piece of a page.
    pub(super) fn prose_of(&mut self, element: &Element, name: &str) {
        match element.get(name) {
            Some(Value::Nodes(nodes)) => self.inside(nodes),
            Some(Value::Text(text)) => self.prose(text),
            _ => {}
        }
    }

    /// Writes an attribute that is shown in a line: a text, or a piece of a page.
    pub(super) fn label(&mut self, element: &Element, name: &str, otherwise: &str) {
        match element.get(name) {
            Some(Value::Nodes(nodes)) => self.inside(&in_line(nodes)),
            _ => {
                let words = element.words(name);
                self.out.text(words.as_deref().unwrap_or(otherwise));
            }
        }
    }

    /// Writes an attribute in a link.
    pub(super) fn label_in_link(&mut self, element: &Element, name: &str) {
        let outer = std::mem::replace(&mut self.in_link, true);
        self.label(element, name, "");
        self.in_link = outer;
    }

    /// Writes an attribute that describes an element, if it is set: a text with inline Markdown,
    /// or a piece of a page.
    pub(super) fn description(&mut self, element: &Element, name: &str, class: &'static str) {
        match element.get(name) {
            Some(Value::Nodes(nodes)) => {
                self.out.markup("<div").attribute("class", class);
                self.wrap(">", nodes, "</div>");
            }
            Some(Value::Text(text)) if !text.is_empty() => {
                self.out.markup("<p").attribute("class", class).markup(">");
                self.prose(text);
                self.out.markup("</p>");
            }
            _ => {}
        }
    }

    fn footnote_reference(&mut self, label: &str) {
        if self.in_link {
            self.out.markup("<sup>").text(label).markup("</sup>");
            return;
        }
        let href = format!("#{}", of_footnote(label));
        self.out.markup("<sup><a").attribute("href", &href);
        self.out.markup(">").text(label).markup("</a></sup>");
    }

    /// Writes the anchor of the element whose tag is being written.
    pub(super) fn id(&mut self, anchor: Option<&Anchor>) {
        if let Some(anchor) = anchor {
            self.out.attribute("id", &anchor.id);
        }
    }

    /// Writes the other names of a place: elements that show nothing.
    pub(super) fn aliases(&mut self, anchor: Option<&Anchor>) {
        for alias in anchor.map_or(&[][..], |anchor| &anchor.aliases) {
            self.place(alias);
        }
    }

    /// Writes an element that shows nothing and can be linked to.
    fn place(&mut self, id: &str) {
        self.out.markup("<span").attribute("id", id);
        self.out.markup("></span>");
    }

    pub(super) fn heading(&mut self, level: u8, anchor: Option<&Anchor>, children: &[Node]) {
        self.heading_of_class(level, anchor, children, None);
    }

    fn heading_of_class(
        &mut self,
        level: u8,
        anchor: Option<&Anchor>,
        children: &[Node],
        class: Option<&str>,
    ) {
        let text = plain(children).trim().to_owned();
        let (open, close) = match level {
            // The title of the page is the only `<h1>`, if the layout writes it.
            1 if !self.has_title => ("<h1", "</h1>\n"),
            1 | 2 => ("<h2", "</h2>\n"),
            3 => ("<h3", "</h3>\n"),
            4 => ("<h4", "</h4>\n"),
            5 => ("<h5", "</h5>\n"),
            _ => ("<h6", "</h6>\n"),
        };
        self.out.markup(open);
        self.id(anchor);
        if let Some(class) = class {
            self.out.attribute("class", class);
        }
        self.out.markup(">");
        self.aliases(anchor);
        self.inside(&in_line(children));
        // Outside of its page, as in a feed, a heading needs no link to itself.
        let is_in_page = matches!(self.start, Start::Page(_));
        if let Some(anchor) = anchor.filter(|_| is_in_page && !self.in_link) {
            let label = format!("{} {text}", self.messages.article.link_to);
            self.out
                .markup("<a class=anchor")
                .attribute("href", &fragment(&anchor.id))
                .attribute("aria-label", &label)
                .markup("></a>");
        }
        self.out.markup(close);
        self.listed(level.max(2), anchor, &text);
    }

    /// Adds a heading to the list of headings.
    pub(super) fn listed(&mut self, level: u8, anchor: Option<&Anchor>, text: &str) {
        if let Some(anchor) = anchor {
            self.headings.push(Heading {
                level,
                id: anchor.id.clone(),
                text: text.into(),
            });
        }
    }

    /// Reports a part of the element that is written now.
    fn warn(&mut self, rule: &'static str, message: String) {
        let found = Diagnostic::warning(rule, self.file, message);
        self.diagnostics.push(match self.line {
            0 => found,
            line => found.at(line, 1, 0),
        });
    }

    /// Writes an attribute with the address of a link; returns `false` if the address is not
    /// allowed.
    fn href(&mut self, name: &'static str, href: &str) -> bool {
        let written = match self.map.resolve(self.file, href) {
            Target::Page { page, rest } => self.start.to(&page) + &rest,
            Target::Unknown { path, rest } => self.start.to(&path) + &rest,
            Target::Asset(path) => {
                let written = self.start.to(&path);
                self.assets.insert(path);
                written
            }
            Target::Here(href) => href.into(),
            Target::Elsewhere(href) => href.into(),
            Target::Rejected => {
                let message = format!("`{href}` is not a kind of address that pages may link");
                self.warn("link-scheme", message);
                return false;
            }
        };
        self.out.attribute(name, &written);
        true
    }

    /// Writes a link without content; `label` is its name for screen readers.
    pub(super) fn link_named(&mut self, href: &str, label: &str) {
        self.link_with(href, &[], &[("aria-label", label)]);
    }

    pub(super) fn link(&mut self, href: &str, children: &[Node]) {
        self.link_with(href, children, &[]);
    }

    /// Writes a link; `more` are further attributes, which must be allowed ones.
    fn link_with(&mut self, href: &str, children: &[Node], more: &[(&'static str, &str)]) {
        // A parser ends a link at a link inside it.
        if self.in_link {
            return self.nodes(children);
        }
        self.out.markup("<a");
        self.href("href", href);
        if href.starts_with("http") {
            self.out.markup(" rel=noopener");
        }
        for (name, value) in more {
            self.out.attribute(name, value);
        }
        self.out.markup(">");
        self.in_link = true;
        self.inside(children);
        self.in_link = false;
        self.out.markup("</a>");
    }

    /// Writes an image; `more` are further attributes, which must be allowed ones.
    pub(super) fn image(&mut self, src: &str, alt: &str, more: &[(&'static str, &str)]) {
        self.out.markup("<img");
        if !self.href("src", src) {
            self.out.attribute("src", "");
        }
        self.out.attribute("alt", alt).markup(" loading=lazy");
        if let Target::Asset(path) = self.map.resolve(self.file, src)
            && let Some(asset) = self.map.assets.get(&path)
            && let Some((width, height)) = asset.size
        {
            // Sizes of the author are written below. The ratio comes from the file.
            let own = |wanted: &str| {
                let (_, value) = more.iter().find(|(name, _)| *name == wanted)?;
                value.parse::<usize>().ok()
            };
            let scaled = |length: usize, by: usize, of: usize| {
                (length.saturating_mul(by) + of / 2) / of.max(1)
            };
            let (own_width, own_height) = (own("width"), own("height"));
            if own_width.is_none() {
                let width = own_height.map_or(width, |own| scaled(own, width, height));
                self.out.attribute("width", &width.to_string());
            }
            if own_height.is_none() {
                let height = own_width.map_or(height, |own| scaled(own, height, width));
                self.out.attribute("height", &height.to_string());
            }
            if let Some(form) = &asset.form {
                let (small, large) = (self.start.to(&form.path), self.start.to(&path));
                let all = match form.width as usize == width {
                    true => format!("{small} {width}w"),
                    false => format!("{small} {}w, {large} {width}w", form.width),
                };
                self.out.attribute("srcset", &all);
                self.out.attribute("sizes", IMAGE_SIZES);
            }
        }
        for (name, value) in more {
            self.out.attribute(name, value);
        }
        self.out.markup(">");
    }

    fn list(&mut self, start: Option<u64>, items: &[Item]) {
        match start {
            None => self.out.markup("<ul>\n"),
            Some(1) => self.out.markup("<ol>\n"),
            Some(n) => {
                let n = n.to_string();
                self.out.markup("<ol").attribute("start", &n).markup(">\n")
            }
        };
        for item in items {
            self.out.markup("<li>");
            if let Some(checked) = item.checked {
                self.out.markup("<input type=checkbox disabled");
                if checked {
                    self.out.markup(" checked");
                }
                let messages = &self.messages.article;
                let label = if checked {
                    messages.ticked
                } else {
                    messages.not_ticked
                };
                self.out.attribute("aria-label", label).markup("> ");
            }
            self.inside(&item.children);
            self.out.markup("</li>\n");
        }
        self.out.markup(if start.is_some() {
            "</ol>\n"
        } else {
            "</ul>\n"
        });
    }

    fn table(&mut self, table: &Table) {
        // A wide table scrolls inside this element, which takes the focus so that the
        // keyboard can scroll it.
        self.out
            .markup("<div class=table tabindex=0 role=group")
            .attribute("aria-label", self.messages.article.table)
            .markup("><table><thead><tr>");
        for (n, cell) in table.head.iter().enumerate() {
            self.cell("<th", table.alignment.get(n), cell, "</th>");
        }
        self.out.markup("</tr></thead>\n<tbody>");
        for row in &table.rows {
            self.out.markup("<tr>");
            for (n, cell) in row.iter().enumerate() {
                self.cell("<td", table.alignment.get(n), cell, "</td>");
            }
            self.out.markup("</tr>\n");
        }
        self.out.markup("</tbody></table></div>\n");
    }

    fn cell(
        &mut self,
        open: &'static str,
        alignment: Option<&Alignment>,
        children: &[Node],
        close: &'static str,
    ) {
        self.out.markup(open).markup(match alignment {
            Some(Alignment::Center) => " class=center>",
            Some(Alignment::Right) => " class=end>",
            _ => ">",
        });
        self.inside(children);
        self.out.markup(close);
    }

    fn element(&mut self, element: &Element) {
        let line = match element.span.file {
            0 => element.line,
            _ => 0,
        };
        let outer = std::mem::replace(&mut self.line, line);
        self.element_at_its_line(element);
        self.line = outer;
    }

    fn element_at_its_line(&mut self, element: &Element) {
        if let Some(component) = component::find(&element.name) {
            return (component.html)(self, element);
        }
        match known::html(&element.name) {
            Some(name) => self.html_element(name, element),
            None if *element.name == *"svg" => self.drawing(element),
            // Parts of a drawing are not shown outside of one.
            None if crate::mdx::drawing::is_part(&element.name) => {}
            // R4: an unknown element is replaced by its content.
            None => self.nodes(&element.children),
        }
    }
}

fn as_view(node: &Node) -> Option<&Element> {
    match node {
        Node::Element(element) if *element.name == *"View" => Some(element),
        _ => None,
    }
}

fn is_space(node: &Node) -> bool {
    matches!(node, Node::Text(text) if text.trim().is_empty())
}

/// Writes the address of an anchor on its own page. Letters of other scripts stay, as in the
/// addresses that people copy. Characters with a meaning in an address are encoded.
///
/// Source: WHATWG URL §4.3 (fragments).
#[must_use]
pub fn fragment(id: &str) -> String {
    let mut out = String::with_capacity(id.len() + 1);
    out.push('#');
    for c in id.chars() {
        match c {
            '%' | '"' | '<' | '>' | '`' | '#' | '\\' => {
                out.push_str(&format!("%{:02X}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;

//! A page as Markdown, for agents.
//!
//! | component | Markdown |
//! |---|---|
//! | callouts | a quotation that starts with the word in bold |
//! | Card | `- [title](link): text` |
//! | Tabs, `CodeGroup` | each title in bold above what it holds |
//! | Steps | an ordered list |
//! | Accordion, Expandable, Update | its title in bold, then what it holds |
//! | `ParamField`, `ResponseField` | `- name (type, required): text` |
//! | Tooltip | its text, the tip in parentheses |
//! | Frame, Columns, Panel, layout | what they hold |
//! | Visibility for humans | nothing |
//!
//! Links inside the site are absolute, on the placeholder of the base URL, and end in `.md`.

use super::component;
use super::html::fence::Info;
use super::link::{Map, Target, encode};
use super::mdx::{Alignment, Element, Item, Node, Table, plain};
use crate::discovery::BASE_URL_PLACEHOLDER;

/// Writes the nodes of the page of `file`.
#[must_use]
pub fn write(file: &str, nodes: &[Node], map: &Map) -> String {
    let writer = Writer { file, map };
    let mut out = String::new();
    writer.blocks(nodes, &mut out);
    let trimmed = out.trim_end().len();
    out.truncate(trimmed);
    out.push('\n');
    out
}

/// Returns the address of a page as Markdown, on the placeholder of the base URL.
#[must_use]
pub fn address(page: &str) -> String {
    let page = if page.is_empty() { "index" } else { page };
    format!("{BASE_URL_PLACEHOLDER}/{}.md", encode(page))
}

struct Writer<'p> {
    file: &'p str,
    map: &'p Map,
}

// === impl Writer ===

impl Writer<'_> {
    /// Writes blocks with blank lines between them; runs of inline nodes are paragraphs.
    fn blocks(&self, nodes: &[Node], out: &mut String) {
        let mut line = String::new();
        for node in nodes {
            if is_inline(node) {
                self.inline(node, &mut line);
                continue;
            }
            paragraph(&mut line, out);
            self.block(node, out);
        }
        paragraph(&mut line, out);
    }

    fn block(&self, node: &Node, out: &mut String) {
        match node {
            Node::Heading {
                level, children, ..
            } => {
                let text = format!("{} {}", "#".repeat((*level).into()), self.line(children));
                block(&text, out);
            }
            Node::Paragraph(children) => block(&self.line(children), out),
            Node::Fence { info, code } => fence(info, code, out),
            Node::Quote(children) => block(&prefixed(&self.inside(children), "> ", "> "), out),
            Node::List { start, items } => self.list(*start, items, out),
            Node::Table(table) => self.table(table, out),
            Node::Rule => block("---", out),
            Node::Formula { tex, .. } => block(&format!("$$\n{}\n$$", tex.trim()), out),
            Node::Footnote { label, children } => {
                let text = prefixed(&self.inside(children), &format!("[^{label}]: "), "    ");
                block(&text, out);
            }
            Node::Element(element) => self.element(element, out),
            inline => block(&self.line(std::slice::from_ref(inline)), out),
        }
    }

    fn inside(&self, children: &[Node]) -> String {
        let mut inside = String::new();
        self.blocks(children, &mut inside);
        inside.trim_end().to_owned()
    }

    fn line(&self, nodes: &[Node]) -> String {
        let mut line = String::new();
        nodes.iter().for_each(|node| self.inline(node, &mut line));
        line.trim().to_owned()
    }

    fn inline(&self, node: &Node, out: &mut String) {
        let around = |mark: &str, children: &[Node], out: &mut String| {
            let inside = self.line(children);
            if !inside.is_empty() {
                out.push_str(&format!("{mark}{inside}{mark}"));
            }
        };
        match node {
            Node::Text(text) => escape(text, out),
            Node::Code(code) => {
                let fence = if code.contains('`') { "`` " } else { "`" };
                let close: String = fence.chars().rev().collect();
                out.push_str(&format!("{fence}{code}{close}"));
            }
            Node::Formula { tex, .. } => out.push_str(&format!("${tex}$")),
            Node::Break => out.push_str("  \n"),
            Node::Emphasis(children) => around("*", children, out),
            Node::Strong(children) => around("**", children, out),
            Node::Struck(children) => around("~~", children, out),
            Node::Link { href, children } => self.link(href, &self.line(children), out),
            Node::Image { src, alt } => self.image(src, alt, out),
            Node::FootnoteReference(label) => out.push_str(&format!("[^{label}]")),
            Node::Element(element) => self.inline_element(element, out),
            block => out.push_str(&plain(std::slice::from_ref(block))),
        }
    }

    fn inline_element(&self, element: &Element, out: &mut String) {
        let inside = || self.line(&element.children);
        match &*element.name {
            "a" => self.link(element.text("href").unwrap_or("#"), &inside(), out),
            "img" => self.image(
                element.text("src").unwrap_or_default(),
                element.text("alt").unwrap_or_default(),
                out,
            ),
            "br" => out.push_str("  \n"),
            "b" | "strong" => out.push_str(&format!("**{}**", inside())),
            "i" | "em" => out.push_str(&format!("*{}*", inside())),
            "code" | "kbd" | "samp" => out.push_str(&format!("`{}`", plain(&element.children))),
            "Latex" => out.push_str(&format!("${}$", plain(&element.children))),
            "Icon" => {}
            "Tooltip" => {
                let tip = element.text("tip").unwrap_or_default();
                out.push_str(&format!("{} ({tip})", inside()));
            }
            // Spaces around words inside of it are part of the sentence.
            _ => element
                .children
                .iter()
                .for_each(|child| self.inline(child, out)),
        }
    }

    fn address(&self, href: &str) -> Option<String> {
        Some(match self.map.resolve(self.file, href) {
            Target::Page { page, rest } => address(&page) + &rest,
            Target::Asset(path) => format!("{BASE_URL_PLACEHOLDER}/{}", encode(&path)),
            Target::Unknown { path, rest } => {
                format!("{BASE_URL_PLACEHOLDER}/{}{rest}", encode(&path))
            }
            Target::Here(href) | Target::Elsewhere(href) => href.into(),
            Target::Refused => return None,
        })
    }

    fn link(&self, href: &str, text: &str, out: &mut String) {
        match self.address(href) {
            Some(url) if url == text => out.push_str(&format!("<{url}>")),
            Some(url) => out.push_str(&format!("[{text}]({url})")),
            None => out.push_str(text),
        }
    }

    fn image(&self, src: &str, alt: &str, out: &mut String) {
        if let Some(url) = self.address(src) {
            out.push_str(&format!("![{alt}]({url})"));
        }
    }

    fn list(&self, start: Option<u64>, items: &[Item], out: &mut String) {
        let mut text = String::new();
        for (n, item) in items.iter().enumerate() {
            let marker = match start {
                Some(start) => format!("{}. ", start.saturating_add(n as u64)),
                None => "- ".to_owned(),
            };
            let mut inside = self.inside(&item.children);
            if let Some(checked) = item.checked {
                let mark = if checked { "[x] " } else { "[ ] " };
                inside.insert_str(0, mark);
            }
            let indent = " ".repeat(marker.len());
            text += &prefixed(&inside, &marker, &indent);
            text.push('\n');
        }
        block(text.trim_end(), out);
    }

    fn table(&self, table: &Table, out: &mut String) {
        let row = |cells: &[Vec<Node>]| {
            let cells = cells
                .iter()
                .map(|cell| self.line(cell).replace('\n', " ").replace('|', "\\|"));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut text = row(&table.head);
        let rule = table.alignment.iter().map(|alignment| match alignment {
            Alignment::Unset => "---",
            Alignment::Left => ":--",
            Alignment::Center => ":-:",
            Alignment::Right => "--:",
        });
        text += &format!("| {} |\n", rule.collect::<Vec<_>>().join(" | "));
        text.extend(table.rows.iter().map(|cells| row(cells)));
        block(text.trim_end(), out);
    }

    fn element(&self, element: &Element, out: &mut String) {
        let children = &element.children;
        let title = element.text("title").unwrap_or_default();
        if let Some((_, word)) = component::callout(&element.name, element.text("type")) {
            let word = if title.is_empty() { word } else { title };
            let text = format!("**{word}:** {}", self.inside(children));
            return block(&prefixed(&text, "> ", "> "), out);
        }
        match &*element.name {
            "Card" | "Tile" => self.card(element, title, out),
            "Steps" => {
                let mut number = 0;
                for child in children {
                    match child {
                        Node::Element(step) if *step.name == *"Step" => {
                            number += 1;
                            let title = step.text("title").unwrap_or_default();
                            self.point(&format!("{number}. "), title, &step.children, out);
                        }
                        other => self.block(other, out),
                    }
                }
            }
            "ParamField" | "Param" | "ResponseField" | "Response" => self.field(element, out),
            "CodeGroup" | "RequestExample" | "ResponseExample" => self.blocks(children, out),
            "Tree.Folder" | "Tree.File" => {
                let name = element.text("name").unwrap_or_default();
                let text = prefixed(&self.inside(children), "  ", "  ");
                let text = format!("- {name}\n{text}");
                out.push_str(text.trim_end());
                out.push('\n');
            }
            "Color.Item" => {
                let name = element.text("name").unwrap_or_default();
                let value = element.text("value").unwrap_or_default();
                block(&format!("- {name}: `{value}`"), out);
            }
            "Mermaid" => fence("mermaid", &plain(children), out),
            "Visibility" if element.text("for") == Some("humans") => {}
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = usize::from(element.name.as_bytes()[1] - b'0');
                block(
                    &format!("{} {}", "#".repeat(level), self.line(children)),
                    out,
                );
            }
            "hr" => block("---", out),
            "iframe" | "video" => {
                let mut line = String::new();
                let src = element.text("src").unwrap_or_default();
                self.link(
                    src,
                    if title.is_empty() { "Video" } else { title },
                    &mut line,
                );
                block(&line, out);
            }
            _ => {
                let label = [title, element.text("label").unwrap_or_default()];
                if let Some(label) = label.into_iter().find(|label| !label.is_empty()) {
                    block(&format!("**{label}**"), out);
                }
                self.blocks(children, out);
            }
        }
    }

    fn card(&self, element: &Element, title: &str, out: &mut String) {
        let mut head = String::new();
        match element.text("href") {
            Some(href) => self.link(href, title, &mut head),
            None => head = format!("**{title}**"),
        }
        let text = self.inside(&element.children);
        let text = if text.is_empty() {
            head
        } else {
            format!("{head}: {text}")
        };
        block(&prefixed(&text, "- ", "  "), out);
    }

    fn point(&self, marker: &str, title: &str, children: &[Node], out: &mut String) {
        let mut text = String::new();
        if !title.is_empty() {
            block(&format!("**{title}**"), &mut text);
        }
        self.blocks(children, &mut text);
        let indent = " ".repeat(marker.len());
        block(&prefixed(text.trim_end(), marker, &indent), out);
    }

    fn field(&self, element: &Element, out: &mut String) {
        let parameter = component::parameter(element);
        let name = parameter.map(|(_, name)| name).or(element.text("name"));
        let mut notes: Vec<&str> = Vec::new();
        notes.extend(element.text("type"));
        notes.extend(parameter.map(|(place, _)| place));
        notes.extend(element.has("required").then_some("required"));
        notes.extend(element.has("deprecated").then_some("deprecated"));
        let mut text = format!("`{}`", name.unwrap_or_default());
        if !notes.is_empty() {
            text += &format!(" ({})", notes.join(", "));
        }
        if let Some(default) = element.text("default") {
            text += &format!(", default `{default}`");
        }
        text += &format!(": {}", self.inside(&element.children));
        block(&prefixed(&text, "- ", "  "), out);
    }
}

fn is_inline(node: &Node) -> bool {
    match node {
        Node::Text(_)
        | Node::Code(_)
        | Node::Break
        | Node::Emphasis(_)
        | Node::Strong(_)
        | Node::Struck(_)
        | Node::Link { .. }
        | Node::Image { .. }
        | Node::FootnoteReference(_) => true,
        Node::Formula { display, .. } => !display,
        Node::Element(element) => {
            !component::is_block(&element.name) && element.children.iter().all(is_inline)
        }
        _ => false,
    }
}

fn block(text: &str, out: &mut String) {
    if !text.trim().is_empty() {
        out.push_str(text);
        out.push_str("\n\n");
    }
}

fn paragraph(line: &mut String, out: &mut String) {
    block(std::mem::take(line).trim(), out);
}

fn fence(info: &str, code: &str, out: &mut String) {
    let longest = code
        .lines()
        .map(|line| line.trim_start())
        .map(|line| line.len() - line.trim_start_matches('`').len())
        .max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    let Info {
        language, title, ..
    } = Info::parse(info);
    let space = if title.is_empty() { "" } else { " " };
    let end = if code.ends_with('\n') { "" } else { "\n" };
    block(
        &format!("{fence}{language}{space}{title}\n{code}{end}{fence}"),
        out,
    );
}

/// Puts `first` before the first line and `next` before the others.
fn prefixed(text: &str, first: &str, next: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        let prefix = if n == 0 { first } else { next };
        let prefix = if line.is_empty() {
            prefix.trim_end()
        } else {
            prefix
        };
        out.push_str(prefix);
        out.push_str(line);
    }
    out
}

/// Writes text so that it reads back as text.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        if matches!(c, '*' | '`' | '<' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
}

#[cfg(test)]
mod tests;

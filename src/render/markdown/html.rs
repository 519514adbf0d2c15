//! HTML elements as Markdown: lists, tables, quotations, code.
//!
//! **Limits.** A table cell is one line in Markdown, so the blocks in a cell are joined with
//! `<br>`. The content of a cell that spans rows is written in the first of them.
//!
//! Sources: WHATWG HTML §4.4 (grouping), §4.9.12 (the table model); GFM 0.29 §4.10.

use super::super::html::fence::without_remarks;
use super::line::{code_span, escaped, is_inline};
use super::{Writer, block, fence, prefixed, row};
use crate::mdx::drawing::is_part;
use crate::mdx::{Element, Node, plain};

/// A limit on columns, because one cell may claim 1,000 (`colspan`).
const COLUMNS_MAX: usize = 50;

/// The content of a table, row by row.
#[derive(Default)]
struct Grid<'n> {
    /// The content outside of cells: the caption, and misplaced content.
    around: Vec<&'n Node>,
    rows: Vec<Row<'n>>,
}

/// A row, without the cells of earlier rows that span it.
struct Row<'n> {
    is_head: bool,
    cells: Vec<&'n Element>,
}

// === impl Writer ===

impl Writer<'_> {
    /// Writes an HTML element that has a form of its own in Markdown; returns `false` for all
    /// others.
    pub(super) fn html(&self, element: &Element, out: &mut String) -> bool {
        let children = &element.children;
        match &*element.name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = usize::from(element.name.as_bytes()[1] - b'0');
                self.heading(level, children, out);
            }
            "hr" => block("---", out),
            "ul" => self.list(None, items(children).into_iter(), out),
            "ol" => {
                let start = element.text("start").and_then(|start| start.parse().ok());
                let start = Some(start.unwrap_or(1));
                self.list(start, items(children).into_iter(), out);
            }
            "blockquote" => block(&prefixed(&self.inside(children), "> ", "> "), out),
            "pre" => match children.as_slice() {
                [code @ Node::Fence { .. }] => self.block(code, out),
                _ => fence("", &plain(children), out),
            },
            "summary" | "dt" => {
                let text = self.line(&lines(children));
                if !text.is_empty() {
                    block(&format!("**{text}**"), out);
                }
            }
            "table" => self.html_table(element, out),
            "a" => match element.text("href") {
                Some(href) => self.link_around_blocks(href, children, out),
                None => return false,
            },
            "iframe" | "video" | "audio" => {
                let mut line = String::new();
                self.media(element, &mut line);
                block(&line, out);
            }
            // SVG has no text form.
            name if is_part(name) => {}
            _ => return false,
        }
        true
    }

    /// Writes a link that holds blocks, as a card has: the first line is the link, and the others
    /// follow it.
    fn link_around_blocks(&self, href: &str, children: &[Node], out: &mut String) {
        let mut parts = Vec::new();
        self.cell_parts(children, &mut parts);
        // An image without a text is decoration.
        parts.retain(|part| !part.starts_with("![]("));
        let mut parts = parts.into_iter();
        let mut line = String::new();
        self.link(
            href,
            &parts.next().unwrap_or_else(|| escaped(href)),
            &mut line,
        );
        let rest: Vec<String> = parts.collect();
        if !rest.is_empty() {
            line += &format!(": {}", rest.join(" "));
        }
        block(&line, out);
    }

    fn html_table(&self, element: &Element, out: &mut String) {
        let mut grid = Grid::default();
        grid.gather(&element.children, false);
        grid.around.iter().for_each(|node| self.block(node, out));
        let is_head = |row: &Row<'_>| {
            row.is_head || !row.cells.is_empty() && row.cells.iter().all(|cell| *cell.name == *"th")
        };
        let has_head = grid.rows.first().is_some_and(is_head);
        let mut rows = self.cells(&grid.rows);
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        if width == 0 {
            return;
        }
        // GFM 0.29 §4.10: a table has a header row.
        if !has_head {
            rows.insert(0, Vec::new());
        }
        let mut text = String::new();
        for (number, mut cells) in rows.into_iter().enumerate() {
            cells.resize(width, String::new());
            text += &row(&cells);
            if number == 0 {
                text += &row(&vec!["---".to_owned(); width]);
            }
        }
        block(text.trim_end(), out);
    }

    /// Writes the cells of each row in their columns (WHATWG HTML §4.9.12.1).
    fn cells(&self, rows: &[Row<'_>]) -> Vec<Vec<String>> {
        // For each column, how many more rows an earlier cell spans.
        let mut taken = [0_usize; COLUMNS_MAX];
        let mut written = Vec::with_capacity(rows.len());
        for row in rows {
            let mut cells: Vec<String> = Vec::new();
            let mut given = row.cells.iter();
            let mut column = 0;
            while column < COLUMNS_MAX {
                if taken[column] > 0 {
                    taken[column] -= 1;
                    cells.push(String::new());
                    column += 1;
                    continue;
                }
                let Some(cell) = given.next() else { break };
                let span = |name| attribute(cell, name).unwrap_or(1).max(1);
                let end = column.saturating_add(span("colspan")).min(COLUMNS_MAX);
                cells.push(self.cell(&cell.children));
                cells.resize(end, String::new());
                taken[column..end].fill(span("rowspan") - 1);
                column = end;
            }
            written.push(cells);
        }
        written
    }

    /// Returns the content of a cell in one line.
    pub(super) fn cell(&self, nodes: &[Node]) -> String {
        let mut parts: Vec<String> = Vec::new();
        self.cell_parts(nodes, &mut parts);
        parts.join("<br>")
    }

    fn cell_parts(&self, nodes: &[Node], parts: &mut Vec<String>) {
        let mut line = String::new();
        let end = |line: &mut String, parts: &mut Vec<String>| {
            let text = std::mem::take(line);
            if !text.trim().is_empty() {
                parts.push(text.trim().to_owned());
            }
        };
        for node in nodes {
            if is_inline(node) {
                self.inline(node, &mut line);
                continue;
            }
            end(&mut line, parts);
            match node {
                Node::Paragraph(children) | Node::Quote(children) => {
                    self.cell_parts(children, parts);
                }
                Node::List { items, .. } => {
                    for item in items {
                        parts.push(format!("• {}", self.cell(&item.children)));
                    }
                }
                Node::Fence { code, .. } => {
                    for code in without_remarks(code).lines() {
                        let mut span = String::new();
                        code_span(code, &mut span);
                        parts.push(span);
                    }
                }
                Node::Element(item) if *item.name == *"li" => {
                    parts.push(format!("• {}", self.cell(&item.children)));
                }
                Node::Element(element) if element.children.is_empty() => {
                    self.inline(node, &mut line);
                }
                Node::Element(element) => {
                    let title = escaped(element.text("title").unwrap_or_default());
                    if !title.is_empty() {
                        parts.push(format!("**{title}**"));
                    }
                    self.cell_parts(&element.children, parts);
                }
                other => self.inline(other, &mut line),
            }
        }
        end(&mut line, parts);
    }
}

// === impl Grid ===

impl<'n> Grid<'n> {
    /// Finds the rows. The reader of pages puts text into paragraphs, which are skipped.
    fn gather(&mut self, nodes: &'n [Node], is_head: bool) {
        for node in nodes {
            match node {
                Node::Paragraph(children) => self.gather(children, is_head),
                Node::Element(element) => match &*element.name {
                    "caption" => self.around.extend(&element.children),
                    "tr" => {
                        let mut cells = Vec::new();
                        self.cells_in(&element.children, &mut cells);
                        self.rows.push(Row { is_head, cells });
                    }
                    // A cell without a row around it.
                    "td" | "th" => self.rows.push(Row {
                        is_head,
                        cells: vec![element],
                    }),
                    "thead" => self.gather(&element.children, true),
                    _ => self.gather(&element.children, is_head),
                },
                Node::Text(text) if text.trim().is_empty() => {}
                other => self.around.push(other),
            }
        }
    }

    fn cells_in(&mut self, nodes: &'n [Node], cells: &mut Vec<&'n Element>) {
        for node in nodes {
            match node {
                Node::Paragraph(children) => self.cells_in(children, cells),
                Node::Element(cell) if matches!(&*cell.name, "td" | "th") => cells.push(cell),
                Node::Element(element) => self.cells_in(&element.children, cells),
                Node::Text(text) if text.trim().is_empty() => {}
                other => self.around.push(other),
            }
        }
    }
}

/// Finds the items of a list. Content between items becomes an item.
fn items(nodes: &[Node]) -> Vec<(Option<bool>, &[Node])> {
    let mut found = Vec::new();
    for node in nodes {
        match node {
            Node::Text(text) if text.trim().is_empty() => {}
            Node::Element(item) if *item.name == *"li" => found.push((None, &*item.children)),
            Node::Paragraph(children) => found.extend(items(children)),
            Node::Element(fragment) if fragment.name.is_empty() => {
                found.extend(items(&fragment.children));
            }
            other => found.push((None, std::slice::from_ref(other))),
        }
    }
    found
}

/// Replaces paragraphs by their content.
fn lines(nodes: &[Node]) -> Vec<Node> {
    let line = |node: &Node| match node {
        Node::Paragraph(children) => children.clone(),
        other => vec![other.clone()],
    };
    nodes.iter().flat_map(line).collect()
}

fn attribute(element: &Element, name: &str) -> Option<usize> {
    let mut all = element.attributes.iter();
    // JSX spells some attributes differently: `colSpan`.
    let (_, value) = all.find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    value.as_text()?.parse().ok()
}

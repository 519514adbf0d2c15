//! Writes nodes as JavaScript, for the component that holds them.

use std::collections::BTreeSet;

use super::Piece;
use crate::jsx::RUNTIME;
use crate::jsx::compile::{property, quoted};
use crate::mdx::Reader;
use crate::mdx::node::{Element, Node, Value, plain};

/// How deep components can inspect their children, if no part of the children is evaluated.
const LEVELS_MAX: usize = 3;
/// How many characters of a finished part components can read.
const TEXT_CHARS_MAX: usize = 4000;

// === impl Reader ===

impl Reader<'_> {
    /// Writes nodes as the children of an element; `free` gets the names that they use.
    pub(in crate::mdx) fn parts(
        &mut self,
        nodes: Vec<Node>,
        level: usize,
        free: &mut BTreeSet<Box<str>>,
    ) -> Vec<String> {
        let mut parts = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                // A paragraph that holds only expressions is replaced by them.
                Node::Paragraph(children) if children.iter().all(is_piece_or_space) => {
                    parts.extend(self.parts(children, level, free));
                }
                node => parts.push(self.part(node, level, free)),
            }
        }
        parts
    }

    fn part(&mut self, node: Node, level: usize, free: &mut BTreeSet<Box<str>>) -> String {
        let node = match node {
            Node::Text(text) => return quoted(&text),
            Node::Expression(expression) => {
                return match expression.piece.map(|piece| self.take_piece(piece)) {
                    Some(piece) => {
                        free.extend(piece.free);
                        piece.code
                    }
                    None => self.leaf(Node::Expression(expression)),
                };
            }
            node => node,
        };
        let holds = holds_piece(&node);
        match node {
            Node::Element(element) if holds || level < LEVELS_MAX => {
                self.element_part(element, level, free)
            }
            node if !holds => self.leaf(node),
            Node::List { start, items } => {
                let mut shells = Vec::with_capacity(items.len());
                let mut kept = Vec::with_capacity(items.len());
                for mut item in items {
                    let children = std::mem::take(&mut item.children);
                    let inner = self.parts(children, level + 1, free);
                    shells.push(format!(
                        "{RUNTIME}.h(\"li\", null, {})",
                        listed(&inner, "null")
                    ));
                    kept.push(item);
                }
                let name = if start.is_some() { "ol" } else { "ul" };
                let shell = self.evaluation.add_shell(Node::List { start, items: kept });
                format!(
                    "{RUNTIME}.s({shell}, \"{name}\", {{}}, [{}])",
                    shells.join(", ")
                )
            }
            Node::Table(mut table) => {
                let mut cells = Vec::new();
                let all = table.head.iter_mut().chain(table.rows.iter_mut().flatten());
                let all: Vec<Vec<Node>> = all.map(std::mem::take).collect();
                for cell in all {
                    let inner = self.parts(cell, level + 1, free);
                    cells.push(format!(
                        "{RUNTIME}.h(\"td\", null, {})",
                        listed(&inner, "null")
                    ));
                }
                let shell = self.evaluation.add_shell(Node::Table(table));
                format!(
                    "{RUNTIME}.s({shell}, \"table\", {{}}, [{}])",
                    cells.join(", ")
                )
            }
            mut node => {
                let mut children = Vec::new();
                node.each_children_mut(&mut |inner| children.append(inner));
                let inner = self.parts(children, level + 1, free);
                let name = name_of(&node);
                let shell = self.evaluation.add_shell(node);
                format!(
                    "{RUNTIME}.s({shell}, \"{name}\", {{}}, [{}])",
                    inner.join(", ")
                )
            }
        }
    }

    fn element_part(
        &mut self,
        mut element: Element,
        level: usize,
        free: &mut BTreeSet<Box<str>>,
    ) -> String {
        let children = std::mem::take(&mut element.children);
        let inner = self.parts(children, level + 1, free);
        let mut props = Vec::new();
        let mut waiting = element.written.iter_mut();
        let mut waiting: Vec<_> = waiting
            .by_ref()
            .filter_map(|written| {
                let (piece, at) = written.piece.take()?;
                written.unevaluated = None;
                Some((at, piece, written.name.clone()))
            })
            .collect();
        waiting.reverse();
        let attributes = std::mem::take(&mut element.attributes);
        let count = attributes.len();
        let mut attributes = attributes.into_iter();
        for at in 0..=count {
            while let Some((_, piece, name)) = waiting.pop_if(|(before, ..)| *before <= at) {
                let piece = self.take_piece(piece);
                free.extend(piece.free);
                props.push(match name.is_empty() {
                    true => format!("...{}", piece.code),
                    false => format!("{}: {}", property(&name), piece.code),
                });
            }
            if let Some((name, value)) = attributes.next() {
                let value = self.literal(value);
                props.push(format!("{}: {value}", property(&name)));
            }
        }
        let name = element.name.clone();
        let shell = self.evaluation.add_shell(Node::Element(element));
        let name = match name.is_empty() {
            true => format!("{RUNTIME}.F"),
            false => quoted(&name),
        };
        format!(
            "{RUNTIME}.s({shell}, {name}, {{{}}}, [{}])",
            props.join(", "),
            inner.join(", ")
        )
    }

    /// Writes a finished part, which the engine hands back by its number.
    pub(super) fn leaf(&mut self, node: Node) -> String {
        let name = name_of(&node);
        let text = match &node {
            Node::Fence { code, .. } => code.trim_end_matches('\n').to_owned(),
            node => plain(std::slice::from_ref(node)),
        };
        let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
        let shell = self.evaluation.add_shell(node);
        format!("{RUNTIME}.l({shell}, \"{name}\", {})", quoted(&text))
    }

    /// Writes a value.
    pub(super) fn literal(&mut self, value: Value) -> String {
        match value {
            Value::Null => "null".to_owned(),
            Value::Boolean(truth) => truth.to_string(),
            Value::Text(text) => quoted(&text),
            Value::List(values) => {
                let items: Vec<_> = values.into_iter().map(|one| self.literal(one)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(entries) => {
                let mut items = Vec::with_capacity(entries.len());
                for (name, value) in entries {
                    // As a computed name, `__proto__` has no special meaning.
                    items.push(format!("[{}]: {}", quoted(&name), self.literal(value)));
                }
                format!("{{{}}}", items.join(", "))
            }
            Value::Nodes(nodes) => {
                let mut unused = BTreeSet::new();
                let parts = self.parts(nodes, 0, &mut unused);
                listed(&parts, "null")
            }
        }
    }

    fn take_piece(&mut self, number: usize) -> Piece {
        std::mem::take(&mut self.evaluation.pieces[number])
    }
}

/// Writes a list of children, or the only one.
pub(super) fn listed(parts: &[String], none: &str) -> String {
    match parts {
        [] => none.to_owned(),
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

fn is_piece_or_space(node: &Node) -> bool {
    match node {
        Node::Expression(expression) => expression.piece.is_some(),
        Node::Text(text) => text.trim().is_empty(),
        _ => false,
    }
}

/// Returns whether a node holds a piece that is not evaluated yet.
fn holds_piece(node: &Node) -> bool {
    let mut found = match node {
        Node::Expression(expression) => expression.piece.is_some(),
        Node::Element(element) => element.written.iter().any(|one| one.piece.is_some()),
        _ => false,
    };
    node.each_children(&mut |children| found = found || children.iter().any(holds_piece));
    found
}

/// Returns the name of the HTML element that a node becomes.
fn name_of(node: &Node) -> &'static str {
    match node {
        Node::Code(_) => "code",
        Node::Formula { .. } => "math",
        Node::Break => "br",
        Node::Emphasis(_) => "em",
        Node::Strong(_) => "strong",
        Node::Struck(_) => "del",
        Node::Link { .. } => "a",
        Node::Image { .. } => "img",
        Node::FootnoteReference(_) => "sup",
        Node::Footnote { .. } => "section",
        Node::Heading { level, .. } => match level {
            1 => "h1",
            2 => "h2",
            3 => "h3",
            4 => "h4",
            5 => "h5",
            _ => "h6",
        },
        Node::Paragraph(_) => "p",
        Node::Fence { .. } => "pre",
        Node::Quote(_) => "blockquote",
        Node::List { start: None, .. } => "ul",
        Node::List { .. } => "ol",
        Node::Table(_) => "table",
        Node::Rule => "hr",
        Node::Text(_) | Node::Element(_) | Node::Expression(_) => "span",
    }
}

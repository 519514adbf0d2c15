//! Builds nodes from the tokens of a piece of MDX.
//!
//! The text of each element is read separately as Markdown, with marks in place of the tags
//! in it. So the Markdown parser reads each byte once, and indentation that only shows the
//! nesting of tags is removed before the parser could read it as code.

mod tags;
mod text;

use std::collections::HashMap;
use std::ops::Range;

use super::markdown::{self, Mark};
use super::node::{Element, Expression, Node, Written};
use super::scan::{self, Attribute, AttributeValue, TokenKind};
use super::span::{Span, Trace};
use super::value::{Scope, Value};
use super::{DEPTH_MAX, Place, Position, Reader, Refused};
use crate::mdx::component;

use tags::Piece;
use text::{Draft, Region};

// === impl Reader ===

impl Reader<'_> {
    /// Reads a piece of MDX without import and export.
    pub(super) fn region(
        &mut self,
        text: &str,
        at: Position,
        scope: &Scope,
        depth: usize,
    ) -> Vec<Node> {
        let Ok(scanned) = scan::scan(text) else {
            self.refuse(Refused::Unclosed);
            return Vec::new();
        };
        let region = Region {
            text,
            scanned: &scanned,
            scope,
            line: at.line,
            base: at.offset,
            line_ends: memchr::memchr_iter(b'\n', text.as_bytes()).collect(),
        };
        let pieces = self.match_tags(&region, depth);
        self.blocks(&region, 0..text.len(), pieces, depth)
    }

    /// Reads the blocks of one element.
    fn blocks(
        &mut self,
        region: &Region<'_>,
        range: Range<usize>,
        pieces: Vec<Piece>,
        depth: usize,
    ) -> Vec<Node> {
        if depth >= DEPTH_MAX {
            self.refuse(Refused::TooDeep);
        }
        if self.refused.is_some() {
            return Vec::new();
        }
        let mut draft = Draft {
            text: String::with_capacity(range.len() + 16),
            marks: Vec::new(),
            indent: region.indent(&range, &pieces),
            trace: Trace::new(&self.origin),
        };
        self.fill(region, range, pieces, &mut draft, depth);
        markdown::read(&draft.text, &mut draft.marks, &draft.trace, depth)
    }

    /// Writes the Markdown of a range, with marks in place of elements and expressions.
    fn fill(
        &mut self,
        region: &Region<'_>,
        range: Range<usize>,
        pieces: Vec<Piece>,
        draft: &mut Draft,
        depth: usize,
    ) {
        let mut at = range.start;
        for piece in pieces {
            let span = region.span(&piece);
            region.copy(at..span.start, draft);
            at = span.end;
            match piece {
                Piece::Comment { .. } => {}
                Piece::Expression { inner, range } => {
                    let at = region.position(inner.start);
                    let source = &region.text[inner];
                    let nodes = match self.evaluate(source, at, region.scope, depth) {
                        Some(value) => value.into_nodes(),
                        None => vec![Node::Expression(Expression {
                            source: source.into(),
                            span: self.span(region, range),
                        })],
                    };
                    draft.mark(Mark::Nodes(nodes));
                }
                Piece::Element {
                    token,
                    inner,
                    pieces,
                    ..
                } => {
                    let is_flow = region.is_flow(&span, &range, token);
                    let mut element = self.element(region, token, span.clone(), depth);
                    if is_flow || self.is_component(region, &element.name) {
                        element.children = self.blocks(region, inner, pieces, depth + 1);
                        let nodes = self.shown(region, element, depth);
                        if is_flow {
                            draft.flow(nodes);
                        } else {
                            draft.mark(Mark::Nodes(nodes));
                        }
                    } else {
                        draft.mark(Mark::Open(element));
                        self.fill(region, inner, pieces, draft, depth + 1);
                        draft.mark(Mark::Close);
                    }
                }
            }
        }
        region.copy(at..range.end, draft);
    }

    fn is_component(&self, region: &Region<'_>, name: &str) -> bool {
        region.scope.components.contains_key(name)
    }

    /// Replaces an element by the content of its local component.
    fn shown(&mut self, region: &Region<'_>, element: Element, depth: usize) -> Vec<Node> {
        let Some(template) = region.scope.components.get(&element.name) else {
            return self.snippet(element, depth);
        };
        let mut props: HashMap<_, _> = element.attributes.into_iter().collect();
        if !element.children.is_empty() {
            props.insert("children".into(), Value::Nodes(element.children));
        }
        self.expand(template, props, depth)
    }

    /// Replaces `<Snippet file="x.mdx" />` by the content of the file.
    fn snippet(&mut self, element: Element, depth: usize) -> Vec<Node> {
        let file = element.text("file").filter(|_| *element.name == *"Snippet");
        let Some(file) = file else {
            return vec![Node::Element(element)];
        };
        let mut scope = Scope::default();
        let file = file.trim_start_matches('/');
        let places = [format!("snippets/{file}"), format!("_snippets/{file}")];
        let there = places.iter().find(|path| (self.load)(path).is_some());
        let from = format!("/{}", there.unwrap_or(&places[0]));
        let at = Place::line(element.line);
        self.import(Some("Snippet"), &[], &from, at, &mut scope, 0);
        match scope.components.get("Snippet") {
            Some(template) => self.expand(template, HashMap::new(), depth),
            None => Vec::new(),
        }
    }

    /// Reads the name and the attributes of a tag.
    fn element(
        &mut self,
        region: &Region<'_>,
        token: usize,
        span: Range<usize>,
        depth: usize,
    ) -> Element {
        let token = &region.scanned.tokens[token];
        let line = region.line_of(token.range.start);
        let TokenKind::Open {
            name, attributes, ..
        } = &token.kind
        else {
            unreachable!("elements are made of opening tags");
        };
        let name = &region.text[name.clone()];
        if !component::is_known(name)
            && !region.scope.components.contains_key(name)
            && !region.scope.missing.contains(name)
        {
            self.warn(
                "mdx-component",
                line,
                format!("there is no component `{name}`; what it holds is shown"),
            );
        }
        let mut read = Vec::with_capacity(attributes.len());
        let mut written = Vec::with_capacity(attributes.len());
        for Attribute { name, value } in attributes {
            let name = &region.text[name.clone()];
            let value = match value {
                AttributeValue::True => Some(Value::Boolean(true)),
                AttributeValue::Text(text) => {
                    written.push(Written {
                        name: name.into(),
                        span: self.span(region, text.clone()),
                        unevaluated: None,
                    });
                    Some(Value::Text(markdown::unescape(&region.text[text.clone()])))
                }
                // An event handler is never called, so it is ignored without a warning.
                AttributeValue::Expression(_) if name.starts_with("on") => continue,
                AttributeValue::Expression(range) => {
                    let source = &region.text[range.clone()];
                    let value = self.attribute(source, region.position(range.start), region, depth);
                    written.push(Written {
                        name: name.into(),
                        span: self.span(region, range.clone()),
                        unevaluated: value.is_none().then(|| source.into()),
                    });
                    value
                }
            };
            match value {
                None => {}
                Some(Value::Object(entries)) if name.is_empty() => read.extend(entries),
                Some(value) => read.push((name.into(), value)),
            }
        }
        Element {
            attributes: read,
            line,
            span: self.span(region, span),
            written,
            ..Element::new(name)
        }
    }

    /// Evaluates an attribute in braces; for `{...props}`, the value that is spread.
    fn attribute(
        &mut self,
        source: &str,
        at: Position,
        region: &Region<'_>,
        depth: usize,
    ) -> Option<Value> {
        let trimmed = source.trim_start();
        let spread = trimmed.strip_prefix("...").unwrap_or(source);
        let at = at.plus(&source[..source.len() - spread.len()]);
        self.evaluate(spread, at, region.scope, depth)
    }

    fn span(&self, region: &Region<'_>, range: Range<usize>) -> Span {
        self.origin
            .span(region.base + range.start..region.base + range.end)
    }
}

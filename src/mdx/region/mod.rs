//! Builds nodes from the tokens of a piece of MDX.
//!
//! The text of each element is read separately as Markdown, with marks in place of the tags
//! in it. So the Markdown parser reads each byte once, and indentation that only shows the
//! nesting of tags is removed before the parser could read it as code.

mod tags;
mod text;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::markdown::{self, Mark};
use super::module::Binding;
use super::node::{Element, Expression, Node, Written};
use super::scan::{self, Attribute, AttributeValue, TokenKind};
use super::scope::Scope;
use super::span::{Span, Trace};
use super::value::{Code, NoValue, Value};
use super::{DEPTH_MAX, Place, Reader, Refused};
use crate::mdx::component;

use tags::Piece;
use text::{MarkdownBuffer, Region};

/// How many bytes of stack reading one region needs at most, with the regions of the elements
/// in it, but without regions in expressions and components.
const STACK_RED_ZONE: usize = 512 << 10;
/// How many bytes of stack are added when fewer are left.
const STACK_BYTES: usize = 4 << 20;

// === impl Reader ===

impl Reader<'_> {
    /// Reads a piece of MDX without import and export.
    pub(super) fn region(
        &mut self,
        text: &str,
        at: usize,
        scope: Scope,
        depth: usize,
    ) -> Vec<Node> {
        let Ok(scanned) = scan::scan(text, &mut self.lookahead) else {
            self.refuse(Refused::Unclosed);
            return Vec::new();
        };
        let region = Region {
            text,
            scanned: &scanned,
            scope,
            base: at,
            origin: Arc::clone(&self.origin),
        };
        let pieces = self.match_tags(&region, depth);
        stacker::maybe_grow(STACK_RED_ZONE, STACK_BYTES, || {
            self.blocks(&region, 0..text.len(), pieces, depth)
        })
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
        let mut buffer = MarkdownBuffer {
            text: String::with_capacity(range.len() + 16),
            marks: Vec::new(),
            indent: region.indent(&range, &pieces),
            trace: Trace::new(&self.origin),
        };
        self.fill(region, range, pieces, &mut buffer, depth);
        self.markdown(&buffer.text, &mut buffer.marks, &buffer.trace, depth)
    }

    /// Writes the Markdown of a range, with marks in place of elements and expressions.
    fn fill(
        &mut self,
        region: &Region<'_>,
        range: Range<usize>,
        pieces: Vec<Piece>,
        buffer: &mut MarkdownBuffer,
        depth: usize,
    ) {
        let mut at = range.start;
        for piece in pieces {
            let span = region.span(&piece);
            region.copy(at..span.start, buffer);
            at = span.end;
            match piece {
                Piece::Comment { .. } => {}
                Piece::Expression { inner, range } => {
                    let code = self.code(region, inner.clone(), depth);
                    let nodes = match self.evaluate(code) {
                        Ok(value) => value.into_nodes(),
                        // Text that is not an expression stays text, like a `<` that opens no
                        // tag.
                        Err(NoValue::Broken(_)) => vec![Node::Text(region.text[range].into())],
                        Err(NoValue::Unsupported) => vec![Node::Expression(Expression {
                            source: code.source.into(),
                            span: self.span(region, range),
                        })],
                    };
                    buffer.mark(Mark::Nodes(nodes));
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
                            buffer.flow(nodes);
                        } else {
                            buffer.mark(Mark::Nodes(nodes));
                        }
                    } else {
                        buffer.mark(Mark::Open(element));
                        self.fill(region, inner, pieces, buffer, depth + 1);
                        buffer.mark(Mark::Close);
                    }
                }
            }
        }
        region.copy(at..range.end, buffer);
    }

    fn is_component(&self, region: &Region<'_>, name: &str) -> bool {
        self.scopes.component(region.scope, name).is_some()
    }

    /// Returns a piece of JavaScript of a region.
    fn code<'t>(&self, region: &Region<'t>, inner: Range<usize>, depth: usize) -> Code<'t> {
        Code {
            at: region.base + inner.start,
            source: &region.text[inner],
            scope: region.scope,
            depth,
        }
    }

    /// Replaces an element by the content of its local component.
    fn shown(&mut self, region: &Region<'_>, element: Element, depth: usize) -> Vec<Node> {
        let Some(template) = self.scopes.component(region.scope, &element.name) else {
            return self.snippet(element, depth);
        };
        let template = Arc::clone(template);
        let mut props: HashMap<_, _> = element.attributes.into_iter().collect();
        if !element.children.is_empty() {
            props.insert("children".into(), Value::Nodes(element.children));
        }
        self.expand(&template, props, depth)
    }

    /// Replaces `<Snippet file="x.mdx" />` by the content of the file.
    fn snippet(&mut self, element: Element, depth: usize) -> Vec<Node> {
        let file = element.text("file").filter(|_| *element.name == *"Snippet");
        let Some(file) = file else {
            return vec![Node::Element(element)];
        };
        let count = self.scopes.len();
        let scope = self.scopes.add(None);
        let file = file.trim_start_matches('/');
        let places = [format!("snippets/{file}"), format!("_snippets/{file}")];
        let there = places.iter().find(|path| (self.load)(path).is_some());
        let from = format!("/{}", there.unwrap_or(&places[0]));
        let at = Place::line(element.line);
        self.import(
            &[Binding::new("default", "Snippet")],
            &from,
            at,
            scope,
            depth,
        );
        let nodes = match self.scopes.component(scope, "Snippet").map(Arc::clone) {
            Some(template) => self.expand(&template, HashMap::new(), depth),
            None => Vec::new(),
        };
        self.scopes.truncate(count);
        nodes
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
            && !self.is_component(region, name)
            && !self.scopes.is_missing(region.scope, name)
        {
            self.warn(
                "mdx-component",
                line,
                format!("there is no component `{name}`; its content is shown"),
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
                    let code = self.code(region, range.clone(), depth);
                    let value = self.attribute(code);
                    written.push(Written {
                        name: name.into(),
                        span: self.span(region, range.clone()),
                        unevaluated: value.is_none().then(|| code.source.into()),
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
    fn attribute(&mut self, code: Code<'_>) -> Option<Value> {
        let trimmed = code.source.trim_start();
        let source = trimmed.strip_prefix("...").unwrap_or(code.source);
        let at = code.at + code.source.len() - source.len();
        self.evaluate(Code { source, at, ..code }).ok()
    }

    fn span(&self, region: &Region<'_>, range: Range<usize>) -> Span {
        self.origin
            .span(region.base + range.start..region.base + range.end)
    }
}

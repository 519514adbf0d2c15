//! Builds nodes from the tokens of a piece of MDX.
//!
//! The text of each element is read separately as Markdown, with marks in place of the tags
//! in it. So the Markdown parser reads each byte once, and indentation that only shows the
//! nesting of tags is removed before the parser could read it as code.

mod tags;
mod text;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::evaluation::Piece as Evaluated;
use super::markdown::{self, Meaning};
use super::module::Binding;
use super::node::{
    AttributePosition, Element, Expression, Node, code_block, code_sample, lift_summary,
};
use super::scan::{self, Attribute, AttributeValue};
use super::scope::Scope;
use super::span::{Span, Trace};
use super::value::{Code, NoValue, Value, is_number};
use super::{DEPTH_MAX, Reader, Rejected, WarningPosition};
use crate::jsx::compile::quoted;
use crate::jsx::{RUNTIME, TEXTS, TITLES};
use crate::mdx::component;
use crate::mdx::control;
use crate::mdx::html;

use tags::Piece;
pub(super) use tags::VOID;
pub(super) use text::escaped;
use text::{MarkdownBuffer, Region};

/// How many bytes of stack reading one region needs at most, with the regions of the elements
/// in it, but without regions in expressions and components.
const STACK_RED_ZONE: usize = 512 << 10;
/// How many bytes of stack are added when fewer are left.
const STACK_BYTES: usize = 4 << 20;

/// How many bytes of nodes are counted for a byte of HTML in a string.
const HTML_BYTES_PER_BYTE: usize = 16;

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
        let Ok(scanned) = scan::scan(text, !self.is_plain, self.is_latex, &mut self.lookahead)
        else {
            self.reject(Rejected::Unclosed);
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
            self.reject(Rejected::TooDeep);
        }
        if self.rejected.is_some() {
            return Vec::new();
        }
        // Only the content of an element starts after a tag.
        let is_line = range.start > 0 && !region.text[range.clone()].contains('\n');
        let mut buffer = MarkdownBuffer {
            text: String::with_capacity(range.len() + 16),
            marks: Vec::new(),
            is_line,
            indent: region.indent(&range, &pieces),
            fence: 0,
            trace: Trace::new(&self.origin),
        };
        self.fill(region, range, pieces, &mut buffer, depth, false);
        self.markdown(&buffer.text, &mut buffer.marks, &buffer.trace, depth)
    }

    /// Writes the Markdown of a range, with marks in place of elements and expressions; a range in
    /// an inline element has no blocks of its own.
    fn fill<'t>(
        &mut self,
        region: &Region<'t>,
        range: Range<usize>,
        pieces: Vec<Piece>,
        buffer: &mut MarkdownBuffer<'t>,
        depth: usize,
        is_inline: bool,
    ) {
        let mut at = range.start;
        for piece in pieces {
            let span = region.span(&piece);
            region.copy(at..span.start, buffer);
            at = span.end;
            let source = &region.text[span.clone()];
            match piece {
                Piece::Comment { .. } => {}
                Piece::Text { .. } => {
                    let text = Node::Text(source.into());
                    buffer.mark(Meaning::Nodes(vec![text]), source);
                }
                Piece::Expression { inner, range } => {
                    let code = self.code(region, inner.clone(), depth);
                    let nodes = match self.evaluate(code) {
                        Ok(value) => value.into_nodes(),
                        // Text that is not an expression stays text, like a `<` that opens no
                        // tag.
                        Err(NoValue::Broken(_)) => vec![Node::Text(source.into())],
                        Err(NoValue::Unsupported) => {
                            self.expression(code, self.span(region, range))
                        }
                    };
                    buffer.mark(Meaning::Nodes(nodes), source);
                }
                Piece::Element {
                    token,
                    inner,
                    pieces,
                    ..
                } => {
                    let is_flow = region.is_flow(&span, &range, token, &inner, &pieces);
                    let is_own = is_flow && !is_inline;
                    if self.is_component(region, region.name_of(token)) {
                        let nodes = self.component(region, token, span, inner, pieces, depth);
                        buffer.nodes(nodes, source, is_own);
                        continue;
                    }
                    let mut element = self.element(region, token, span.clone(), depth);
                    if component::is_unseen(&element.name) {
                        continue;
                    }
                    let is_empty = region.text[inner.clone()].trim().is_empty();
                    if is_empty && self.is_without_words(region, &element) {
                        let place = self.span(region, span);
                        let site = self.site(region, token, place);
                        let reason = "it is not part of the documentation";
                        let note = self.left_out(Some(site), &element.name, reason);
                        buffer.mark(Meaning::Nodes(vec![note]), source);
                        continue;
                    }
                    if let Some(children) = self.inner_html(&mut element, depth) {
                        element.children = children;
                        buffer.mark(Meaning::Nodes(vec![Node::Element(element)]), source);
                        continue;
                    }
                    if is_empty && !component::is_known(&element.name) {
                        control::show_words(&mut element);
                    }
                    if is_flow {
                        element
                            .children
                            .extend(self.blocks(region, inner, pieces, depth + 1));
                        if self.is_unknown(region, &element.name) {
                            let shown = shown_attributes(&element);
                            linked(&mut element);
                            element.children.splice(0..0, shown);
                        }
                        code_block(&mut element);
                        lift_summary(&mut element);
                        let nodes = match code_sample(&element) {
                            Some(fence) => vec![fence],
                            None => self.snippet(element, depth),
                        };
                        buffer.nodes(nodes, source, is_own);
                    } else {
                        let (opens, closes) = (inner.start - span.start, inner.end - span.start);
                        let words = std::mem::take(&mut element.children);
                        buffer.mark(Meaning::Open(element), &source[..opens]);
                        if !words.is_empty() {
                            buffer.mark(Meaning::Nodes(words), "");
                        }
                        self.fill(region, inner, pieces, buffer, depth + 1, true);
                        buffer.mark(Meaning::Close, &source[closes..]);
                    }
                }
            }
        }
        region.copy(at..range.end, buffer);
    }

    /// Returns whether a name, or the object of a member such as `Card.Title`, is a component of
    /// the page.
    fn is_component(&self, region: &Region<'_>, name: &str) -> bool {
        let first = name.split('.').next().unwrap_or(name);
        self.scopes.is_declared(region.scope, first)
            && !self.scopes.is_missing(region.scope, first)
            && !first.starts_with(|c: char| c.is_ascii_lowercase())
    }

    /// Shows a component of the page, with its children.
    fn component(
        &mut self,
        region: &Region<'_>,
        token: usize,
        span: Range<usize>,
        inner: Range<usize>,
        pieces: Vec<Piece>,
        depth: usize,
    ) -> Vec<Node> {
        let name = region.name_of(token);
        let template = self.scopes.component(region.scope, name).map(Arc::clone);
        let is_alone = self.evaluation.inside == 0 || pieces.is_empty() && inner.is_empty();
        if let Some(template) = template.filter(|_| is_alone)
            && let Some(mut props) = self.plain_props(region, token, depth)
        {
            let children = self.blocks(region, inner, pieces, depth + 1);
            if !children.is_empty() {
                props.push(("children".into(), Value::Nodes(children)));
            }
            return self.expand(&template, props, depth);
        }
        let is_line = !region.text[inner.clone()].contains('\n');
        self.evaluation.inside += 1;
        let mut children = self.blocks(region, inner, pieces, depth + 1);
        self.evaluation.inside -= 1;
        // Text in the same line as its tags is not a paragraph.
        if is_line && let [Node::Paragraph(line)] = &mut children[..] {
            children = std::mem::take(line);
        }
        if self.rejected.is_some() {
            return Vec::new();
        }
        let mut piece = Evaluated::default();
        let first = name.split('.').next().unwrap_or(name);
        piece.free.insert(first.into());
        let props = self.props(region, token, depth, &mut piece.free);
        let texts = texts(region, token);
        let parts = self.parts(children, 0, &mut piece.free);
        let place = self.span(region, span);
        piece.site = self.site(region, token, place);
        piece.code = format!(
            "{RUNTIME}.c({}, () => [{name}, {{{}}}], [{}], {{{texts}}})",
            piece.site,
            props.join(", "),
            parts.join(", ")
        );
        self.shown_or_kept(region.scope, piece, place, depth)
    }

    /// Returns the place of a tag, as a number.
    fn site(&mut self, region: &Region<'_>, token: usize, place: Span) -> usize {
        let range = region.scanned.tokens[token].range.clone();
        let line = region.line_of(range.start);
        let file = self.file.clone();
        self.evaluation
            .add_site(&file, line, &region.text[range], place)
    }

    /// Returns the attributes of a tag if all of them are plain values.
    fn plain_props(
        &mut self,
        region: &Region<'_>,
        token: usize,
        depth: usize,
    ) -> Option<Vec<(Box<str>, Value)>> {
        let mut props: Vec<(Box<str>, Value)> = Vec::new();
        for Attribute { name, value } in region.attributes_of(token) {
            let name = &region.text[name.clone()];
            let value = match value {
                AttributeValue::True => Value::Boolean(true),
                AttributeValue::Text(text) => {
                    Value::Text(markdown::unescape(&region.text[text.clone()]))
                }
                AttributeValue::Expression(_) if name.is_empty() => return None,
                AttributeValue::Expression(range) => {
                    let code = self.code(region, range.clone(), depth);
                    // The file could add numbers, and a number that became a text would give a
                    // wrong sum.
                    match self.evaluate(code) {
                        Ok(Value::Text(text)) if is_number(&text) => return None,
                        Ok(Value::List(_) | Value::Object(_)) => return None,
                        Ok(value) => value,
                        Err(NoValue::Broken(_)) => continue,
                        Err(NoValue::Unsupported) => return None,
                    }
                }
            };
            props.retain(|(known, _)| **known != *name);
            props.push((name.into(), value));
        }
        Some(props)
    }

    /// Writes the attributes of a tag as properties of an object.
    fn props(
        &mut self,
        region: &Region<'_>,
        token: usize,
        depth: usize,
        free: &mut BTreeSet<Box<str>>,
    ) -> Vec<String> {
        let mut props = Vec::new();
        for Attribute { name, value } in region.attributes_of(token) {
            let name = &region.text[name.clone()];
            let (is_spread, value) = match value {
                AttributeValue::True => (false, "true".to_owned()),
                AttributeValue::Text(text) => {
                    let text = markdown::unescape(&region.text[text.clone()]);
                    (false, quoted(&text))
                }
                AttributeValue::Expression(range) => {
                    let code = self.code(region, range.clone(), depth);
                    let (is_spread, code) = unspread(code);
                    let Some(compiled) = self.compiled(code) else {
                        continue;
                    };
                    free.extend(compiled.free);
                    (is_spread, compiled.code)
                }
            };
            props.push(match is_spread || name.is_empty() {
                true => format!("...{value}"),
                false => format!("[{}]: {value}", quoted(name)),
            });
        }
        props
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
        let at = WarningPosition::line(element.line);
        self.import(&[Binding::new("default", "Snippet")], &from, at, scope);
        let nodes = match self.scopes.component(scope, "Snippet").map(Arc::clone) {
            Some(template) => {
                let mut props = element.attributes;
                if !element.children.is_empty() {
                    props.push(("children".into(), Value::Nodes(element.children)));
                }
                self.expand(&template, props, depth)
            }
            // The missing file was reported.
            None if element.children.is_empty() => vec![Node::Expression(Expression {
                source: format!("<Snippet file=\"{file}\" />").into(),
                span: element.span,
                piece: None,
            })],
            None => element.children,
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
        let line = region.line_of(region.scanned.tokens[token].range.start);
        let (name, attributes) = (region.name_of(token), region.attributes_of(token));
        if !component::is_known(name) && !self.scopes.is_missing(region.scope, name) {
            let message = match component::left_out(name) {
                Some(what) => format!("pages cannot use the element `{name}`; {what}"),
                None => format!("there is no component `{name}`; its content is shown"),
            };
            self.warn("mdx-component", line, message);
        }
        let mut read = Vec::with_capacity(attributes.len());
        let mut written = Vec::with_capacity(attributes.len());
        for Attribute { name, value } in attributes {
            let name = &region.text[name.clone()];
            let value = match value {
                AttributeValue::True => Some(Value::Boolean(true)),
                AttributeValue::Text(text) => {
                    written.push(AttributePosition {
                        name: name.into(),
                        span: self.span(region, text.clone()),
                        unevaluated: None,
                        piece: None,
                    });
                    Some(Value::Text(markdown::unescape(&region.text[text.clone()])))
                }
                // An event handler is never called. The report names its element.
                AttributeValue::Expression(_) if name.starts_with("on") => {
                    if name[2..].starts_with(|c: char| c.is_ascii_uppercase()) {
                        self.evaluation
                            .interactive
                            .insert(region.name_of(token).into());
                    }
                    continue;
                }
                AttributeValue::Expression(range) => {
                    let code = self.code(region, range.clone(), depth);
                    let place = self.span(region, range.clone());
                    let (value, piece) = self.attribute(code, place);
                    written.push(AttributePosition {
                        name: name.into(),
                        span: place,
                        unevaluated: value.is_none().then(|| code.source.into()),
                        piece: piece.map(|piece| (piece, read.len())),
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

    /// Returns the content of an element from its attribute `dangerouslySetInnerHTML`, and removes
    /// the attribute.
    pub(super) fn inner_html(&mut self, element: &mut Element, depth: usize) -> Option<Vec<Node>> {
        let given = |(name, _): &(Box<str>, Value)| **name == *"dangerouslySetInnerHTML";
        let at = element.attributes.iter().position(given)?;
        let (_, value) = element.attributes.remove(at);
        let Value::Object(entries) = value else {
            return None;
        };
        let html = entries.into_iter().find(|(name, _)| **name == *"__html");
        let (_, Value::Text(text)) = html? else {
            return None;
        };
        // Each tag becomes an element, which is larger than its text.
        let is_paid = self.charge(text.len() * HTML_BYTES_PER_BYTE);
        Some(match is_paid {
            true => html::read(&text, DEPTH_MAX.saturating_sub(depth + 1)),
            false => Vec::new(),
        })
    }

    /// Returns whether no component has this name.
    fn is_unknown(&self, region: &Region<'_>, name: &str) -> bool {
        let is_component = name.starts_with(|c: char| c.is_ascii_uppercase());
        is_component && (!component::is_known(name) || self.scopes.is_missing(region.scope, name))
    }

    /// Returns whether an element without content stands for an import that does not exist, and
    /// has no words in its attributes.
    fn is_without_words(&self, region: &Region<'_>, element: &Element) -> bool {
        let first = element.name.split('.').next().unwrap_or_default();
        self.scopes.is_missing(region.scope, first)
            && !element.has("dangerouslySetInnerHTML")
            && shown_attributes(element).is_empty()
    }

    /// Evaluates an attribute in braces; for `{...props}`, the value that is spread. Inside the
    /// content of a component, the attribute may become a piece that is evaluated later.
    fn attribute(&mut self, code: Code<'_>, place: Span) -> (Option<Value>, Option<usize>) {
        let (_, code) = unspread(code);
        match self.evaluate(code) {
            Ok(value) => return (Some(value), None),
            Err(NoValue::Broken(_)) => return (None, None),
            Err(NoValue::Unsupported) if self.is_plain => return (None, None),
            Err(NoValue::Unsupported) => {}
        }
        let Some(piece) = self.piece_of(code, place) else {
            return (None, None);
        };
        if self.evaluation.inside > 0 {
            return (None, Some(self.keep_piece(piece)));
        }
        (self.attribute_value(code.scope, piece, code.depth), None)
    }

    fn span(&self, region: &Region<'_>, range: Range<usize>) -> Span {
        self.origin
            .span(region.base + range.start..region.base + range.end)
    }
}

/// Writes the plain texts in the attributes of a tag, which are shown if its component fails.
fn texts(region: &Region<'_>, token: usize) -> String {
    let mut found = Vec::new();
    for Attribute { name, value } in region.attributes_of(token) {
        let name = &region.text[name.clone()];
        if let AttributeValue::Text(text) = value
            && (TITLES.contains(&name) || TEXTS.contains(&name))
        {
            let text = markdown::unescape(&region.text[text.clone()]);
            found.push(format!("{}: {}", quoted(name), quoted(&text)));
        }
    }
    found.join(", ")
}

/// Returns the attributes of a component that does not exist which contain text for readers.
fn shown_attributes(element: &Element) -> Vec<Node> {
    let shown = |name: &str, is_title: bool| match element.get(name) {
        Some(Value::Text(text)) if !text.trim().is_empty() => {
            let text = Node::Text(text.clone());
            Some(Node::Paragraph(vec![match is_title {
                true => Node::Strong(vec![text]),
                false => text,
            }]))
        }
        Some(Value::Nodes(nodes)) => Some(Node::Paragraph(nodes.clone())),
        _ => None,
    };
    let titles = TITLES.iter().filter_map(|name| shown(name, true));
    let texts = TEXTS.iter().filter_map(|name| shown(name, false));
    titles.chain(texts).collect()
}

/// Makes a link of the only line in a component that does not exist and has an address.
fn linked(element: &mut Element) {
    let Some(href) = element.text("href").map(str::to_owned) else {
        return;
    };
    let span = element.span_of("href").unwrap_or(element.span);
    if let [Node::Paragraph(line)] = &mut element.children[..] {
        let link = Node::Link {
            href,
            children: std::mem::take(line),
            span,
        };
        line.push(link);
    }
}

/// Removes the dots of `{...props}`; returns whether there were some.
fn unspread(code: Code<'_>) -> (bool, Code<'_>) {
    let trimmed = code.source.trim_start();
    match trimmed.strip_prefix("...") {
        None => (false, code),
        Some(source) => {
            let at = code.at + code.source.len() - source.len();
            (true, Code { source, at, ..code })
        }
    }
}

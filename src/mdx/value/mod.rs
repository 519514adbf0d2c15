//! The values of expressions, and the reader of expressions.
//!
//! JavaScript is never run. The reader knows literals (texts, numbers, truth values, lists,
//! objects, templates), JSX, names of exports, imports and props that have such a value, and
//! choices between them ([`operator`]). Any other expression is [`Unsupported`], and the
//! author gets a warning.

mod operator;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::Position;
use super::node::Node;
use super::scan::balanced;
use super::span::Origin;

/// How deep lists and objects may be nested.
const DEPTH_MAX: usize = 16;

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null` or `undefined`: shows as nothing.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A text, or a number as it is written.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// Keys and values.
    Object(Vec<(Box<str>, Value)>),
    /// A piece of a page.
    Nodes(Vec<Node>),
}

/// The names that a file can use.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Values of exports, imports and props.
    pub values: HashMap<Box<str>, Value>,
    /// Components that can be used as a tag.
    pub components: HashMap<Box<str>, Arc<Template>>,
    /// Imported names without a value, which were already reported.
    pub missing: HashSet<Box<str>>,
}

/// A file or an export that is used as a component.
#[derive(Debug)]
pub(super) struct Template {
    /// The file that contains it.
    pub file: Box<str>,
    /// The MDX that it shows.
    pub body: Arc<str>,
    /// Maps the cleaned text of that file to the original.
    pub origin: Arc<Origin>,
    /// The position in that file at which the body starts.
    pub at: Position,
    /// How the body names its props.
    pub parameters: Parameters,
    /// The names that are known where it was written.
    pub scope: Scope,
}

/// How a component names its props.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parameters {
    /// For a whole file: each prop by its own name, and all as `props`.
    Implicit,
    /// `props => …`
    Whole(Box<str>),
    /// `({ title, href = "/" }) => …`, defaults as source.
    Named(Vec<(Box<str>, Option<Box<str>>)>),
}

/// The expression would have to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsupported;

// === impl Value ===

impl Value {
    /// Returns the text or number.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the nodes that show the value in a page; as in React, booleans show nothing.
    pub(super) fn into_nodes(self) -> Vec<Node> {
        match self {
            Self::Text(text) => vec![Node::Text(text)],
            Self::Nodes(nodes) => nodes,
            Self::List(values) => values.into_iter().flat_map(Self::into_nodes).collect(),
            Self::Null | Self::Boolean(_) | Self::Object(_) => Vec::new(),
        }
    }
}

/// Evaluates an expression; `jsx` reads a range of the source as MDX.
pub(super) fn evaluate(
    source: &str,
    scope: &Scope,
    jsx: &mut dyn FnMut(Range<usize>) -> Vec<Node>,
) -> Result<Value, Unsupported> {
    let mut reader = Reader {
        source,
        at: 0,
        scope,
        jsx,
    };
    let value = reader.value(0)?;
    reader.space();
    let rest = &source[reader.at..];
    if rest.is_empty() || rest == ";" {
        Ok(value)
    } else {
        Err(Unsupported)
    }
}

struct Reader<'s> {
    source: &'s str,
    at: usize,
    scope: &'s Scope,
    jsx: &'s mut dyn FnMut(Range<usize>) -> Vec<Node>,
}

// === impl Reader ===

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn space(&mut self) {
        self.at = self.source.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, text: &str) -> bool {
        self.space();
        let is_next = self.rest().starts_with(text);
        self.at += if is_next { text.len() } else { 0 };
        is_next
    }

    fn primary(&mut self, depth: usize) -> Result<Value, Unsupported> {
        self.space();
        let Some(first) = self.rest().chars().next() else {
            return Err(Unsupported);
        };
        match first {
            '"' | '\'' => self.string(first).map(Value::Text),
            '`' => self.template(depth),
            '[' => self.list(depth),
            '{' => self.object(depth),
            '<' => Ok(self.jsx()),
            '(' => {
                self.at += 1;
                let value = self.value(depth + 1)?;
                self.take(")").then_some(value).ok_or(Unsupported)
            }
            '-' | '0'..='9' => Ok(self.number()),
            _ => self.name(),
        }
    }

    fn string(&mut self, quote: char) -> Result<String, Unsupported> {
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((n, c)) = chars.next() {
            match c {
                '\\' => out.push(match chars.next().ok_or(Unsupported)?.1 {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                }),
                c if c == quote => {
                    self.at += n + 1;
                    return Ok(out);
                }
                c => out.push(c),
            }
        }
        Err(Unsupported)
    }

    fn template(&mut self, depth: usize) -> Result<Value, Unsupported> {
        let mut out = String::new();
        self.at += 1;
        loop {
            let rest = self.rest();
            let stop = rest.find(['`', '\\', '$']).ok_or(Unsupported)?;
            out.push_str(&rest[..stop]);
            let found = rest.as_bytes()[stop];
            self.at += stop + 1;
            match found {
                b'`' => return Ok(Value::Text(out)),
                b'\\' => {
                    let escaped = self.rest().chars().next().ok_or(Unsupported)?;
                    out.push(if escaped == 'n' { '\n' } else { escaped });
                    self.at += escaped.len_utf8();
                }
                _ if self.rest().starts_with('{') => {
                    self.at += 1;
                    match self.value(depth + 1)? {
                        Value::Text(text) => out.push_str(&text),
                        _ => return Err(Unsupported),
                    }
                    if !self.take("}") {
                        return Err(Unsupported);
                    }
                }
                _ => out.push('$'),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Unsupported> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.take("]") {
            items.push(self.value(depth + 1)?);
            if !self.take(",") && !self.rest().starts_with(']') {
                return Err(Unsupported);
            }
        }
        Ok(Value::List(items))
    }

    fn object(&mut self, depth: usize) -> Result<Value, Unsupported> {
        self.at += 1;
        let mut entries = Vec::new();
        while !self.take("}") {
            let key: Box<str> = match self.rest().chars().next() {
                Some(quote @ ('"' | '\'')) => self.string(quote)?.into(),
                _ => self.identifier().ok_or(Unsupported)?.into(),
            };
            if !self.take(":") {
                return Err(Unsupported);
            }
            entries.push((key, self.value(depth + 1)?));
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(Unsupported);
            }
        }
        Ok(Value::Object(entries))
    }

    fn number(&mut self) -> Value {
        let is_digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let rest = self.rest();
        let end = rest.find(|c| !is_digit(c)).unwrap_or(rest.len());
        let text = rest[..end].to_owned();
        self.at += end;
        Value::Text(text)
    }

    fn identifier(&mut self) -> Option<&str> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let start = self.at;
        let rest = self.rest();
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += length;
        (length > 0).then(|| &self.source[start..start + length])
    }

    fn name(&mut self) -> Result<Value, Unsupported> {
        let name = self.identifier().ok_or(Unsupported)?.to_owned();
        Ok(match &*name {
            "true" => Value::Boolean(true),
            "false" => Value::Boolean(false),
            "null" | "undefined" => Value::Null,
            _ => self.scope.values.get(&*name).ok_or(Unsupported)?.clone(),
        })
    }

    /// Reads JSX up to the end of its first element.
    fn jsx(&mut self) -> Value {
        let end = super::scan::element_end(self.source.as_bytes(), self.at);
        let piece = self.at..end;
        self.at = end;
        Value::Nodes((self.jsx)(piece))
    }
}

/// Returns the text inside the balanced brackets at the start of a text, and the rest.
pub(super) fn braced(text: &str) -> Option<(&str, &str)> {
    let end = balanced(text.as_bytes(), 0).ok()?;
    Some((&text[1..end - 1], &text[end..]))
}

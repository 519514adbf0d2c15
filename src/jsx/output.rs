//! The output of the engine: a tree of texts, elements and references.

use serde_json::Value as Json;

/// How deep the JSON of a result may be nested: each part adds at most four arrays. A page can
/// exceed it only if it replaces functions of the prelude.
const JSON_DEPTH_MAX: usize = 4 * super::DEPTH_MAX as usize + 8;

/// A part of the result of a piece of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A text.
    Text(String),
    /// A finished part of the page, by the number that the caller gave it.
    Leaf(usize),
    /// An HTML element or a built-in component.
    Element {
        /// Its name.
        name: Box<str>,
        /// The number of the part of the page that it was made from.
        shell: Option<usize>,
        /// Its attributes, in order.
        attributes: Vec<(Box<str>, Value)>,
        /// Its children.
        children: Vec<Output>,
    },
    /// An expression or a component that failed.
    Failed(Failure),
}

/// An expression or a component that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The number of the place in the page, as the caller gave it.
    pub site: Option<usize>,
    /// The name of the component that failed; empty for an expression.
    pub component: Box<str>,
    /// Why it failed.
    pub reason: String,
    /// The children of the component.
    pub children: Vec<Output>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`, or something that cannot be shown.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A text, or a number as JavaScript shows it.
    Text(String),
    /// An array.
    List(Vec<Value>),
    /// An object.
    Object(Vec<(Box<str>, Value)>),
    /// A value that holds elements.
    Nodes(Vec<Output>),
}

/// The result of one piece of a page.
#[derive(Debug)]
pub struct Shown<T> {
    /// The result.
    pub result: T,
    /// The names of the components that a reader could use if their scripts ran: they have state,
    /// effects or event handlers. Only their first render is shown.
    pub interactive: Vec<Box<str>>,
}

// === impl Shown ===

impl<T> Shown<T> {
    /// Reads the JSON of the prelude; `None` if it has another form.
    pub(super) fn read(json: &str, read: impl FnOnce(Json) -> Option<T>) -> Option<Self> {
        if depth_of(json) > JSON_DEPTH_MAX {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_str(json);
        deserializer.disable_recursion_limit();
        let found = <(Json, Vec<Box<str>>) as serde::Deserialize>::deserialize(&mut deserializer);
        let (result, interactive) = found.ok()?;
        Some(Self {
            result: read(result)?,
            interactive,
        })
    }
}

// === impl Output ===

impl Output {
    pub(super) fn list(json: Json) -> Option<Vec<Self>> {
        let Json::Array(list) = json else {
            return None;
        };
        list.into_iter().map(Self::read).collect()
    }

    fn read(json: Json) -> Option<Self> {
        let mut parts = match json {
            Json::String(text) => return Some(Self::Text(text)),
            Json::Array(parts) => parts.into_iter(),
            _ => return None,
        };
        Some(match parts.next()?.as_u64()? {
            0 => Self::Leaf(number(&parts.next()?)?),
            1 => Self::Element {
                name: text(parts.next()?)?,
                shell: number(&parts.next()?),
                attributes: pairs(parts.next()?)?,
                children: Self::list(parts.next()?)?,
            },
            2 => Self::Failed(Failure {
                site: number(&parts.next()?),
                component: text(parts.next()?)?,
                reason: text(parts.next()?)?.into(),
                children: Self::list(parts.next()?)?,
            }),
            _ => return None,
        })
    }
}

// === impl Value ===

impl Value {
    pub(super) fn read(json: Json) -> Option<Self> {
        let mut parts = match json {
            Json::Null => return Some(Self::Null),
            Json::Bool(truth) => return Some(Self::Boolean(truth)),
            Json::String(text) => return Some(Self::Text(text)),
            Json::Array(parts) => parts.into_iter(),
            _ => return None,
        };
        let kind = parts.next()?.as_u64()?;
        let content = parts.next()?;
        Some(match (kind, content) {
            (0, Json::Array(list)) => {
                Self::List(list.into_iter().map(Self::read).collect::<Option<_>>()?)
            }
            (1, content) => Self::Object(pairs(content)?),
            (2, content) => Self::Nodes(Output::list(content)?),
            _ => return None,
        })
    }
}

fn text(json: Json) -> Option<Box<str>> {
    match json {
        Json::String(text) => Some(text.into()),
        _ => None,
    }
}

fn number(json: &Json) -> Option<usize> {
    usize::try_from(json.as_u64()?).ok()
}

/// Reads names and values that follow each other in one array.
fn pairs(json: Json) -> Option<Vec<(Box<str>, Value)>> {
    let Json::Array(list) = json else {
        return None;
    };
    let mut found = Vec::with_capacity(list.len() / 2);
    let mut parts = list.into_iter();
    while let Some(name) = parts.next() {
        found.push((text(name)?, Value::read(parts.next()?)?));
    }
    Some(found)
}

/// Returns how deep the arrays and objects of a JSON text are nested.
fn depth_of(json: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let mut in_text = false;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_text = !in_text,
            b'\\' if in_text => {
                bytes.next();
            }
            b'[' | b'{' if !in_text => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

//! The values of expressions that can be evaluated without running JavaScript.

mod evaluate;

use super::node::Node;

pub(super) use evaluate::{Code, NoValue, bare, is_number};

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null` or `undefined`: shows as nothing.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A text, or a number as it is shown.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// Keys and values.
    Object(Vec<(Box<str>, Value)>),
    /// A piece of a page.
    Nodes(Vec<Node>),
}

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

    /// Returns about how many bytes a copy needs.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Null | Self::Boolean(_) => 0,
                Self::Text(text) => text.len(),
                Self::List(values) => values.iter().map(Self::bytes).sum(),
                Self::Object(entries) => {
                    let each = entries.iter().map(|(key, value)| key.len() + value.bytes());
                    each.sum()
                }
                Self::Nodes(nodes) => nodes.iter().map(Node::bytes).sum(),
            }
    }

    /// Returns the value of a key; `None` if this kind of value has no keys that are known here.
    fn member(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(entries) => {
                let mut last_first = entries.iter().rev();
                let found = last_first.find(|(name, _)| **name == *key);
                Some(found.map_or(&Self::Null, |(_, value)| value))
            }
            Self::List(values) => {
                let at: usize = key.parse().ok()?;
                Some(values.get(at).unwrap_or(&Self::Null))
            }
            _ => None,
        }
    }
}

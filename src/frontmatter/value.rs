//! What YAML says, with its places in the file.

use crate::diagnostic::Location;

/// What a value counts beside its text, against [`super::WEIGHT_MAX`].
pub(super) const NODE_WEIGHT: usize = 32;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Value {
    /// What it is.
    pub data: Data,
    /// Where it starts in the file.
    pub location: Location,
}

/// What a value is, by the core schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number, as it is written: `1.0` stays `1.0`.
    Number(Box<str>),
    /// A text.
    Text(Box<str>),
    /// A list.
    List(Vec<Value>),
    /// Keys and values.
    Mapping(Mapping),
}

/// Keys and values in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key as text; a number or `true` as it is written.
    pub key: Box<str>,
    /// Where the key stands.
    pub location: Location,
    /// Its value.
    pub value: Value,
}

// === impl Value ===

impl Value {
    /// Returns the text, when it is one. A number is none: `version: 1.0` is no text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a text, number or truth value as a text.
    #[must_use]
    pub fn scalar(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) | Data::Number(text) => Some(text),
            Data::Boolean(true) => Some("true"),
            Data::Boolean(false) => Some("false"),
            Data::Null | Data::List(_) | Data::Mapping(_) => None,
        }
    }

    /// Returns the truth value, when it is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.data {
            Data::Boolean(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the number, when it is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match &self.data {
            Data::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns the items, when it is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        match &self.data {
            Data::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the keys and values, when it is a mapping.
    #[must_use]
    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.data {
            Data::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// Names what it is, for a message: "a list".
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.data {
            Data::Null => "nothing",
            Data::Boolean(_) => "a truth value",
            Data::Number(_) => "a number",
            Data::Text(_) => "a text",
            Data::List(_) => "a list",
            Data::Mapping(_) => "a mapping",
        }
    }

    /// Counts the value and all in it, against [`super::WEIGHT_MAX`].
    pub(super) fn weight(&self) -> usize {
        let below = match &self.data {
            Data::Null | Data::Boolean(_) => 0,
            Data::Number(text) | Data::Text(text) => text.len(),
            Data::List(items) => items.iter().map(Self::weight).sum(),
            Data::Mapping(mapping) => mapping
                .iter()
                .map(|entry| entry.key.len() + entry.value.weight())
                .sum(),
        };
        NODE_WEIGHT + below
    }

    /// Returns how many levels of lists and mappings it has; 0 for a scalar.
    pub(super) fn depth(&self) -> usize {
        let deepest = match &self.data {
            Data::List(items) => items.iter().map(Self::depth).max(),
            Data::Mapping(mapping) => mapping.iter().map(|entry| entry.value.depth()).max(),
            _ => return 0,
        };
        1 + deepest.unwrap_or(0)
    }
}

impl PartialEq for Value {
    /// Two values are equal wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

// === impl Mapping ===

impl Mapping {
    /// Returns the value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns a key with its value.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| *entry.key == *key)
    }

    /// Returns the keys and values in the order in which they are written.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry whose key is not there yet.
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }
}

impl PartialEq for Entry {
    /// Two entries are equal wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

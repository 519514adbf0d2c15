//! The value: what a file of JSON or YAML contains, with the place of each part.

use std::collections::HashSet;

use super::FileId;

/// A range of bytes in one of the files read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Which file.
    pub file: FileId,
    /// Its first byte.
    pub start: u32,
    /// The byte after its last byte.
    pub end: u32,
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its place in the file.
    pub span: Span,
    /// Its content.
    pub data: Data,
}

/// The content of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// `null`, or nothing in YAML.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number, as written: `1.10` stays `1.10`.
    Number(Box<str>),
    /// A text.
    Text(Box<str>),
    /// A list (in JSON, an array).
    List(Vec<Value>),
    /// Keys and values (in JSON, an object; in YAML, a mapping), in the order of the file. No
    /// key is in it twice.
    Map(Vec<Member>),
    /// The value of a reference that could not be resolved, which has its own diagnostic.
    Unresolved,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Member {
    /// The key.
    pub key: Box<str>,
    /// The place of the key.
    pub span: Span,
    /// Its value.
    pub value: Value,
}

// === impl Span ===

impl Span {
    /// Returns the range of bytes in its file.
    #[must_use]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the place before its first byte.
    #[must_use]
    pub fn before(self) -> Self {
        Self {
            end: self.start,
            ..self
        }
    }

    /// Returns the text between the quotes, if this is a quoted text without escapes.
    #[must_use]
    pub fn inside(self) -> Self {
        Self {
            start: self.start + 1,
            end: self.end.saturating_sub(1).max(self.start + 1),
            ..self
        }
    }
}

// === impl Value ===

impl Value {
    /// Returns the value of a key; `None` also if this is not a map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.member(key).map(|member| &member.value)
    }

    /// Returns a key with its value; `None` also if this is not a map.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| *member.key == *key)
    }

    /// Returns the keys and values; none if this is not a map.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        match &self.data {
            Data::Map(members) => members,
            _ => &[],
        }
    }

    /// Returns the items; none if this is not a list.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the text, if it is one. `version: 1.0` is a number, not a text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a text, number or boolean as a text: where a text is expected, `version: 1.0`
    /// means "1.0".
    #[must_use]
    pub fn scalar(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) | Data::Number(text) => Some(text),
            Data::Flag(true) => Some("true"),
            Data::Flag(false) => Some("false"),
            _ => None,
        }
    }

    /// Returns the number, if it is an integer; YAML also allows `0x1f` and `0o17`.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        let Data::Number(text) = &self.data else {
            return None;
        };
        match (text.strip_prefix("0x"), text.strip_prefix("0o")) {
            (Some(digits), _) => i64::from_str_radix(digits, 16).ok(),
            (_, Some(digits)) => i64::from_str_radix(digits, 8).ok(),
            _ => text.parse().ok(),
        }
    }

    /// Returns the items, if this is a list.
    #[must_use]
    pub fn list(&self) -> Option<&[Value]> {
        match &self.data {
            Data::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the boolean, if it is one.
    #[must_use]
    pub fn flag(&self) -> Option<bool> {
        match self.data {
            Data::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// Returns whether this is a map.
    #[must_use]
    pub fn is_map(&self) -> bool {
        matches!(self.data, Data::Map(_))
    }

    /// Returns whether this is `null`, or nothing in YAML.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.data == Data::Null
    }

    /// Returns its type in the terms of JSON, for a message: "an array".
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.data {
            Data::Null => "null",
            Data::Flag(_) => "a boolean",
            Data::Number(_) => "a number",
            Data::Text(_) => "a string",
            Data::List(_) => "an array",
            Data::Map(_) => "an object",
            Data::Unresolved => "unknown",
        }
    }

    /// Returns its type in the terms of YAML, for a message: "a list".
    #[must_use]
    pub fn yaml_kind(&self) -> &'static str {
        match self.data {
            Data::Null => "empty",
            Data::List(_) => "a list",
            Data::Map(_) => "a mapping",
            _ => self.kind(),
        }
    }

    /// Counts the value and all values in it, for comparison with [`super::VALUES_MAX`].
    #[must_use]
    pub fn count(&self) -> usize {
        let below: usize = match &self.data {
            Data::List(items) => items.iter().map(Self::count).sum(),
            Data::Map(members) => members.iter().map(|member| member.value.count()).sum(),
            _ => 0,
        };
        1 + below
    }
}

impl PartialEq for Value {
    /// Compares two values without their places.
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

impl PartialEq for Member {
    /// Compares two members without their places.
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

/// The keys of a map that is being read; a hash set is used only for many keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    hashed: HashSet<Box<str>>,
}

// === impl Keys ===

impl Keys {
    const COMPARED_MAX: usize = 32;

    /// Returns whether a key is not in `members` yet; the caller must then add it.
    pub(super) fn insert(&mut self, members: &[Member], key: &str) -> bool {
        if members.len() < Self::COMPARED_MAX {
            return members.iter().all(|member| *member.key != *key);
        }
        if self.hashed.is_empty() {
            self.hashed = members.iter().map(|member| member.key.clone()).collect();
        }
        self.hashed.insert(key.into())
    }
}

//! What authors wrote in JSON and YAML, with the place of each value.
//!
//! `docs.json`, the files it refers to and OpenAPI specifications are read into the same
//! [`Value`], whichever of the two languages they are written in. Every value and key
//! keeps its [`Span`], so that whoever gives it meaning can point at it, and mistakes of
//! one kind never hide those of another: [`json`] reads on after an error.
//!
//! A value owns its texts. [`Files`] owns the files, and turns spans into lines and
//! columns only when there is something to say about them. [`Findings`] collects what
//! was said.
//!
//! **Limits.** A file has at most [`FILE_BYTES_MAX`] bytes, its values lie at most
//! [`DEPTH_MAX`] deep in each other and are at most [`VALUES_MAX`]; each end in a
//! diagnostic, so nothing that reads a value needs a bound of its own.

mod findings;
pub mod json;
pub mod reference;
pub mod yaml;

pub use findings::{FileId, Files, Finding, Findings};

/// How many bytes a file of JSON or YAML may have. The longest real `docs.json` has 2.4
/// MB; real specifications reach 12 MB.
pub const FILE_BYTES_MAX: u64 = 32 << 20;
/// How deep values may lie in each other. Real files reach 30 (specifications).
pub const DEPTH_MAX: usize = 128;
/// How many values there may be, those a reference or alias repeats included.
pub const VALUES_MAX: usize = 2_000_000;

/// A range of bytes in one of the files read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Which file.
    pub file: FileId,
    /// Its first byte.
    pub start: u32,
    /// The byte after its last.
    pub end: u32,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Value {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub data: Data,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// `null`, or nothing in YAML.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number, as it is written.
    Number(Box<str>),
    /// A text.
    Text(Box<str>),
    /// A list.
    List(Vec<Value>),
    /// Keys and values in the order in which they are written, no key twice.
    Map(Vec<Member>),
    /// What a reference that leads nowhere would have stood for; told where it stands.
    Unread,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Member {
    /// The key.
    pub key: Box<str>,
    /// Where the key stands.
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

    /// Returns what stands between the quotes, when this is a quoted text without escapes.
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
    /// Returns the value of a key; `None` too when this is no map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.member(key).map(|member| &member.value)
    }

    /// Returns a key with its value; `None` too when this is no map.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| *member.key == *key)
    }

    /// Returns the keys and values; none when this is no map.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        match &self.data {
            Data::Map(members) => members,
            _ => &[],
        }
    }

    /// Returns the items; none when this is no list.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the text, when it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a text or number as a text: `version: 1.0` means "1.0" where a text is asked for.
    #[must_use]
    pub fn scalar(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) | Data::Number(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the truth value, when it is one.
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

    /// Names what it is, for a message: "a list".
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.data {
            Data::Null => "null",
            Data::Flag(_) => "a boolean",
            Data::Number(_) => "a number",
            Data::Text(_) => "a string",
            Data::List(_) => "an array",
            Data::Map(_) => "an object",
            Data::Unread => "unknown",
        }
    }

    /// Counts the value and all in it, against [`VALUES_MAX`].
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
    /// Two values are equal wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

impl PartialEq for Member {
    /// Two members are equal wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

/// A file name is read as JSON unless it says YAML.
#[must_use]
pub fn is_yaml(path: &str) -> bool {
    let path = std::path::Path::new(path);
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("yaml") || e.eq_ignore_ascii_case("yml"))
}

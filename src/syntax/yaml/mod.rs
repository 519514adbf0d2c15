//! YAML with places.
//!
//! The values are built here from the parser's events, because an alias must be counted: nine lines
//! of aliases to aliases expand to a billion values. Each repetition counts against [`Limits`].
//!
//! Scalars are resolved by the core schema: `yes` is a text, `true` is not. A number keeps its
//! text, because a title of `1.10` or a hash of `91e16528` is meant as written.
//!
//! The specification demands that every line of a quoted text is indented deeper than its
//! key. Most parsers of YAML accept any indentation there, and authors rely on it. We accept it
//! too: if the parser rejects such a text, its lines are indented and the file is read again.
//!
//! Sources: YAML 1.2.2 §7.1 (aliases), §7.3 (quoted texts), §10.3.2 (core schema: resolution of
//! tags).

mod places;
mod scalar;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScanError};

use super::{
    DEPTH_MAX, DUPLICATE_KEY, Data, Diagnostics, FILE_BYTES, FileId, Keys, LIMIT, Member, Span,
    SpanDiagnostic, VALUES_MAX, Value,
};
use places::Places;

/// The rule for text that is not YAML.
pub const SYNTAX: &str = "yaml-syntax";

/// How much a text may contain, with its aliases expanded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The deepest nesting of values.
    pub depth: usize,
    /// The most values.
    pub values: usize,
    /// The most bytes of texts.
    pub text_bytes: usize,
    /// After how many documents reading stops.
    pub documents: usize,
    /// How many quoted texts may be indented too little.
    pub indentations: usize,
}

/// The limits for the first document of a file.
pub const FILE: Limits = Limits {
    depth: DEPTH_MAX,
    values: VALUES_MAX,
    // Twice the bytes that a file can have without aliases.
    text_bytes: 2 * FILE_BYTES,
    documents: 1,
    indentations: 4,
};

/// The result of reading a text.
#[derive(Debug, Default)]
pub struct Stream {
    /// The documents that could be read.
    pub documents: Vec<Value>,
    /// The keys that their mapping already contains. The map has the first value.
    pub duplicates: Vec<Duplicate>,
    /// Why reading ended before the end of the text.
    pub problem: Option<Problem>,
}

/// A key that its mapping already contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: Box<str>,
    /// The place of its second occurrence.
    pub span: Span,
}

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of problem.
    pub kind: ProblemKind,
    /// Where it is.
    pub span: Span,
    /// The description of the problem.
    pub message: String,
}

/// The kinds of [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The parser rejects the text.
    Syntax,
    /// The text is YAML, but has a structure that we do not read.
    Structure,
    /// It exceeds a limit.
    Limit,
}

/// Reads the first document of a file; `None` if it cannot be read.
#[must_use]
pub fn read(file: FileId, diagnostics: &mut Diagnostics) -> Option<Value> {
    let text = Arc::clone(diagnostics.files.text(file));
    let stream = parse(&text, 0..text.len(), file, &FILE);
    for Duplicate { key, span } in stream.duplicates {
        let message = format!("the key `{key}` is repeated");
        diagnostics.push(SpanDiagnostic::error(DUPLICATE_KEY, span, message));
    }
    if let Some(problem) = stream.problem {
        let rule = match problem.kind {
            ProblemKind::Syntax | ProblemKind::Structure => SYNTAX,
            ProblemKind::Limit => LIMIT,
        };
        diagnostics.push(SpanDiagnostic::error(rule, problem.span, problem.message));
        return None;
    }
    stream.documents.into_iter().next()
}

/// Reads the part of a text that `range` names. Spans count from the start of the text.
#[must_use]
pub fn parse(text: &str, range: Range<usize>, file: FileId, limits: &Limits) -> Stream {
    let mut places = Places::new(text, range, file);
    let mut indentations = 0;
    loop {
        let mut builder = Builder::new(places, limits);
        let problem = match builder.read() {
            Ok(()) => return builder.stream,
            Err(Stopped::Problem(problem)) => problem,
            Err(stopped @ (Stopped::Indentation { at } | Stopped::Tab { at })) => {
                let indent = match stopped {
                    Stopped::Tab { .. } => Places::indent_line,
                    _ => Places::indent,
                };
                if indentations < limits.indentations && indent(&mut builder.places, at) {
                    indentations += 1;
                    places = builder.places;
                    continue;
                }
                Problem {
                    kind: ProblemKind::Syntax,
                    span: builder.places.span(at, at),
                    message: "the lines of a quoted text must be indented".to_owned(),
                }
            }
        };
        return Stream {
            problem: Some(problem),
            ..builder.stream
        };
    }
}

/// Why a [`Builder`] stops.
enum Stopped {
    Problem(Problem),
    /// The quoted text that starts at this character is indented too little.
    Indentation {
        at: usize,
    },
    /// A line of a quoted text is indented with the tab at this character.
    Tab {
        at: usize,
    },
}

/// Builds values from events.
struct Builder<'t, 'l> {
    places: Places<'t>,
    limits: &'l Limits,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    total: Size,
    stream: Stream,
}

/// A list or map that is not closed yet.
struct Open {
    span: Span,
    anchor: usize,
    data: Partial,
}

enum Partial {
    List(Vec<Value>),
    Map {
        members: Vec<Member>,
        keys: Keys,
        key: Option<Value>,
    },
}

/// A value that aliases may repeat.
struct Anchored {
    value: Value,
    size: Size,
    depth: usize,
}

/// How much a value contains.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    values: usize,
    text_bytes: usize,
}

// === impl Builder ===

impl<'t, 'l> Builder<'t, 'l> {
    fn new(places: Places<'t>, limits: &'l Limits) -> Self {
        Self {
            places,
            limits,
            open: Vec::new(),
            anchors: HashMap::new(),
            total: Size::default(),
            stream: Stream::default(),
        }
    }

    fn read(&mut self) -> Result<(), Stopped> {
        let text = self.places.text();
        let mut parser = Parser::new_from_str(&text);
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| self.scan_error(&error))?;
            let span = self.places.span(span.start.index(), span.end.index());
            if matches!(event, Event::DocumentEnd)
                && self.stream.documents.len() == self.limits.documents
            {
                return Ok(());
            }
            self.event(event, span).map_err(Stopped::Problem)?;
        }
        Ok(())
    }

    fn scan_error(&mut self, error: &ScanError) -> Stopped {
        let at = error.marker().index();
        match error.info() {
            "invalid indentation in quoted scalar" => return Stopped::Indentation { at },
            "tab cannot be used as indentation" => return Stopped::Tab { at },
            _ => {}
        }
        Stopped::Problem(Problem {
            kind: ProblemKind::Syntax,
            span: self.places.span(at, at),
            message: error.info().to_owned(),
        })
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let Some(data) = scalar::resolve(text.into_owned(), style, tag.as_deref()) else {
                    let message = "this value is not of the type that its tag names";
                    return Err(Problem::structure(span, message));
                };
                self.add(Value { span, data }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.enter(span, anchor, Partial::List(Vec::new())),
            Event::MappingStart(anchor, _) => self.enter(span, anchor, Partial::map()),
            Event::SequenceEnd | Event::MappingEnd => self.leave(),
            Event::Alias(anchor) => self.alias(span, anchor),
            _ => Ok(()),
        }
    }

    fn enter(&mut self, span: Span, anchor: usize, data: Partial) -> Result<(), Problem> {
        self.check_depth(1, span)?;
        self.open.push(Open { span, anchor, data });
        Ok(())
    }

    /// Checks that the innermost open value may contain a value of this depth.
    fn check_depth(&self, depth: usize, span: Span) -> Result<(), Problem> {
        if self.open.len() + depth <= self.limits.depth {
            return Ok(());
        }
        let message = format!("values are nested more than {} deep", self.limits.depth);
        Err(Problem::limit(span, message))
    }

    fn leave(&mut self) -> Result<(), Problem> {
        let open = self.open.pop().expect("the parser closes what it opened");
        let data = match open.data {
            Partial::List(items) => Data::List(items),
            Partial::Map { members, .. } => Data::Map(members),
        };
        let span = open.span;
        self.add(Value { span, data }, open.anchor)
    }

    fn alias(&mut self, span: Span, anchor: usize) -> Result<(), Problem> {
        let Some(Anchored { size, depth, .. }) = self.anchors.get(&anchor) else {
            let message = "this alias is inside the value that it names";
            return Err(Problem::structure(span, message));
        };
        let (size, depth) = (*size, *depth);
        self.check_depth(depth, span)?;
        // The value is counted before it is copied.
        self.count(size, span)?;
        let data = self.anchors[&anchor].value.data.clone();
        self.place(Value { span, data })
    }

    /// Adds a value that is complete. The values inside it were counted before.
    fn add(&mut self, value: Value, anchor: usize) -> Result<(), Problem> {
        self.count(Size::of_one(&value), value.span)?;
        if anchor > 0 {
            let (size, depth) = (Size::of(&value), depth(&value));
            // The copy is counted too.
            self.count(size, value.span)?;
            let value = value.clone();
            self.anchors.insert(anchor, Anchored { value, size, depth });
        }
        self.place(value)
    }

    fn count(&mut self, size: Size, span: Span) -> Result<(), Problem> {
        self.total.values += size.values;
        self.total.text_bytes += size.text_bytes;
        if self.total.values > self.limits.values {
            let message = format!(
                "there are more than {} values, those that aliases repeat included",
                self.limits.values
            );
            return Err(Problem::limit(span, message));
        }
        if self.total.text_bytes > self.limits.text_bytes {
            let message = format!(
                "there are more than {} bytes of text, those that aliases repeat included",
                self.limits.text_bytes
            );
            return Err(Problem::limit(span, message));
        }
        Ok(())
    }

    /// Adds a value as a document, an item, a key, or the value of a key.
    fn place(&mut self, value: Value) -> Result<(), Problem> {
        match self.open.last_mut().map(|open| &mut open.data) {
            None => self.stream.documents.push(value),
            Some(Partial::List(items)) => items.push(value),
            Some(Partial::Map { members, keys, key }) => match key.take() {
                None if scalar::key(&value).is_none() => {
                    let message = format!("{} cannot be a key", value.yaml_kind());
                    return Err(Problem::structure(value.span, message));
                }
                None => *key = Some(value),
                Some(name) => {
                    let span = name.span;
                    let name = scalar::key(&name).expect("it was checked when it was read");
                    if keys.insert(members, &name) {
                        let key = name;
                        members.push(Member { key, span, value });
                    } else {
                        let key = name;
                        self.stream.duplicates.push(Duplicate { key, span });
                    }
                }
            },
        }
        Ok(())
    }
}

// === impl Problem ===

impl Problem {
    fn structure(span: Span, message: impl Into<String>) -> Self {
        Self {
            kind: ProblemKind::Structure,
            span,
            message: message.into(),
        }
    }

    fn limit(span: Span, message: String) -> Self {
        Self {
            kind: ProblemKind::Limit,
            span,
            message,
        }
    }
}

// === impl Partial ===

impl Partial {
    fn map() -> Self {
        Self::Map {
            members: Vec::new(),
            keys: Keys::default(),
            key: None,
        }
    }
}

// === impl Size ===

impl Size {
    /// Measures a value without the values in it.
    fn of_one(value: &Value) -> Self {
        let text_bytes = match &value.data {
            Data::Text(text) | Data::Number(text) => text.len(),
            Data::Map(members) => members.iter().map(|member| member.key.len()).sum(),
            _ => 0,
        };
        Self {
            values: 1,
            text_bytes,
        }
    }

    fn of(value: &Value) -> Self {
        let below = value.items().iter();
        let below = below.chain(value.members().iter().map(|member| &member.value));
        below
            .map(Self::of)
            .fold(Self::of_one(value), |sum, size| Self {
                values: sum.values + size.values,
                text_bytes: sum.text_bytes + size.text_bytes,
            })
    }
}

/// Returns how many levels of lists and maps a value has; 0 for a scalar.
fn depth(value: &Value) -> usize {
    let below = match &value.data {
        Data::List(items) => items.iter().map(depth).max(),
        Data::Map(members) => members.iter().map(|member| depth(&member.value)).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

#[cfg(test)]
mod tests;

//! From YAML events to values.
//!
//! The parser's events are taken one by one rather than its ready-made documents, because
//! a document has no bounds: aliases are copied as often as they are named, however much
//! that makes, and a repeated key ends it. Here each costs what it costs and is told.
//!
//! **Invariant:** values lie at most [`DEPTH_MAX`] deep, so that walking and dropping
//! them needs a bounded stack; text beyond is refused before it is built.

use std::collections::{HashMap, HashSet};

use saphyr::{Scalar, ScalarStyle, Tag};
use saphyr_parser::{Event, Marker, Parser, ScanError, Span, StrInput};

use super::value::NODE_WEIGHT;
use super::{DEPTH_MAX, Data, Entry, InvalidFrontmatter, Mapping, Repeated, Value, WEIGHT_MAX};
use crate::diagnostic::Location;

/// The YAML starts in the second line of the file, behind the line `---`.
const LINES_BEFORE: usize = 1;

/// A list or mapping whose end has not come yet.
struct Open {
    anchor: usize,
    location: Location,
    items: Items,
}

enum Items {
    List(Vec<Value>),
    Mapping {
        mapping: Mapping,
        seen: HashSet<Box<str>>,
        key: Option<(Box<str>, Location)>,
    },
}

/// A document in the making.
#[derive(Default)]
struct Loader {
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
    weight: usize,
    repeated: Vec<Repeated>,
    root: Option<Value>,
}

/// Reads the one mapping that `yaml` holds, and which of its keys are repeated.
pub(super) fn mapping(yaml: &str) -> Result<(Mapping, Vec<Repeated>), InvalidFrontmatter> {
    let mut parser = Parser::new_from_str(yaml);
    let mut loader = Loader::default();
    while let Some((event, span)) = next(&mut parser)? {
        loader.take(event, span)?;
    }
    let root = match loader.root {
        None => Mapping::default(),
        Some(Value {
            data: Data::Mapping(mapping),
            ..
        }) => mapping,
        Some(Value {
            data: Data::Null, ..
        }) => Mapping::default(),
        Some(other) => {
            let message = format!("frontmatter is {}, not keys with values", other.kind());
            let location = other.location;
            return Err(InvalidFrontmatter { location, message });
        }
    };
    Ok((root, loader.repeated))
}

fn next<'y>(
    parser: &mut Parser<'y, StrInput<'y>>,
) -> Result<Option<(Event<'y>, Span)>, InvalidFrontmatter> {
    let syntax = |error: ScanError| InvalidFrontmatter {
        location: point(*error.marker()),
        message: format!("this is not YAML: {}", error.info()),
    };
    parser.next_event().transpose().map_err(syntax)
}

/// A place without extent.
fn point(marker: Marker) -> Location {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Location {
        line: number(marker.line() + LINES_BEFORE),
        column: number(marker.col() + 1),
        length: 0,
    }
}

/// A place with its extent, when it does not go over the end of its line.
fn place(span: Span) -> Location {
    let length = if span.start.line() == span.end.line() {
        span.end.col().saturating_sub(span.start.col())
    } else {
        0
    };
    Location {
        length: u32::try_from(length).unwrap_or(0),
        ..point(span.start)
    }
}

// === impl Loader ===

impl Loader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), InvalidFrontmatter> {
        let location = place(span);
        let refuse = |message: &str| {
            Err(InvalidFrontmatter {
                location,
                message: message.to_owned(),
            })
        };
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                refuse("frontmatter is more than one document")
            }
            Event::Scalar(text, style, anchor, tag) => {
                let Some(data) = scalar(text.into_owned(), style, tag.as_deref()) else {
                    return refuse("this value is not of the type its tag names");
                };
                self.complete(Value { data, location }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.enter(anchor, location, Items::list()),
            Event::MappingStart(anchor, _) => self.enter(anchor, location, Items::mapping()),
            Event::SequenceEnd | Event::MappingEnd => self.leave(),
            Event::Alias(anchor) => {
                let Some(value) = self.anchors.get(&anchor) else {
                    return refuse("this alias stands inside of what it names");
                };
                if self.open.len() + value.depth() > DEPTH_MAX {
                    return refuse("this alias nests values too deep");
                }
                // Counted before it is copied.
                if self.weight + value.weight() > WEIGHT_MAX {
                    return refuse("this alias makes the frontmatter too large");
                }
                let value = Value {
                    data: value.data.clone(),
                    location,
                };
                self.complete(value, 0)
            }
            _ => Ok(()),
        }
    }

    fn enter(
        &mut self,
        anchor: usize,
        location: Location,
        items: Items,
    ) -> Result<(), InvalidFrontmatter> {
        if self.open.len() == DEPTH_MAX {
            let message = format!("values lie more than {DEPTH_MAX} levels deep");
            return Err(InvalidFrontmatter { location, message });
        }
        self.open.push(Open {
            anchor,
            location,
            items,
        });
        Ok(())
    }

    fn leave(&mut self) -> Result<(), InvalidFrontmatter> {
        let Open {
            anchor,
            location,
            items,
        } = self.open.pop().expect("an end follows its start");
        let data = match items {
            Items::List(items) => Data::List(items),
            Items::Mapping { mapping, .. } => Data::Mapping(mapping),
        };
        // What it holds was counted when it was complete.
        self.weight += NODE_WEIGHT;
        self.place(Value { data, location }, anchor)
    }

    /// Counts a value with all it holds, and places it.
    fn complete(&mut self, value: Value, anchor: usize) -> Result<(), InvalidFrontmatter> {
        self.weight += value.weight();
        self.place(value, anchor)
    }

    /// Puts a value where it belongs: as root, item, key or value.
    fn place(&mut self, value: Value, anchor: usize) -> Result<(), InvalidFrontmatter> {
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        let Some(Open { items, .. }) = self.open.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        match items {
            Items::List(items) => items.push(value),
            Items::Mapping { mapping, seen, key } => match key.take() {
                None => {
                    let location = value.location;
                    let Some(text) = key_text(&value) else {
                        let message = format!("{} cannot be a key", value.kind());
                        return Err(InvalidFrontmatter { location, message });
                    };
                    *key = Some((text, location));
                }
                Some((key, location)) => {
                    if seen.insert(key.clone()) {
                        mapping.push(Entry {
                            key,
                            location,
                            value,
                        });
                    } else {
                        self.repeated.push(Repeated { key, location });
                    }
                }
            },
        }
        Ok(())
    }
}

impl Items {
    fn list() -> Self {
        Self::List(Vec::new())
    }

    fn mapping() -> Self {
        Self::Mapping {
            mapping: Mapping::default(),
            seen: HashSet::new(),
            key: None,
        }
    }
}

fn key_text(value: &Value) -> Option<Box<str>> {
    match value.data {
        Data::Null => Some("null".into()),
        _ => value.scalar().map(Into::into),
    }
}

/// YAML 1.2.2 §10.3: what a scalar is by the core schema.
fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Option<Data> {
    let tag = tag.map(std::borrow::Cow::Borrowed);
    let parsed = Scalar::parse_from_cow_and_metadata((&*text).into(), style, tag.as_ref())?;
    Some(match parsed {
        Scalar::Null => Data::Null,
        Scalar::Boolean(value) => Data::Boolean(value),
        Scalar::Integer(_) | Scalar::FloatingPoint(_) => Data::Number(text.into()),
        Scalar::String(text) => Data::Text(text.into()),
    })
}

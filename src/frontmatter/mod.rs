//! Frontmatter: the YAML at the head of a Markdown file.
//!
//! Frontmatter is found by the same rule as in other programs that read skills and pages: the
//! file starts (after a byte order mark, if any) with a line `---`, and the YAML ends before the
//! next line that starts with `---`. A file whose start is only similar is an error: its
//! frontmatter may restrict the page, so the page must not be published without it.
//!
//! Values keep their place, so that a message can point at the line. The YAML is one mapping,
//! read by the core schema (`yes` is a text, `true` is not).
//!
//! **Limits.** The YAML has at most [`BYTES_MAX`] bytes and is nested at most [`DEPTH_MAX`]
//! deep; with its aliases expanded it has at most [`VALUES_MAX`] values and [`TEXT_BYTES_MAX`]
//! bytes of text.
//!
//! Sources: YAML 1.2.2 §10.3 (core schema); the expression by which the `skills` tool splits
//! files: `^\uFEFF?---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$`.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Location};
use crate::syntax::yaml::{self, Limits, Problem, ProblemKind};
use crate::syntax::{Data, FileId, LineIndex, Span, Value};

/// How many bytes the YAML may have.
pub const BYTES_MAX: usize = 64 << 10;
/// How deep lists and mappings may be nested, aliases expanded.
pub const DEPTH_MAX: usize = 32;
/// How many values there may be, aliases expanded.
pub const VALUES_MAX: usize = 100_000;
/// How many bytes of text there may be, aliases expanded.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

const LIMITS: Limits = Limits {
    depth: DEPTH_MAX,
    values: VALUES_MAX,
    text_bytes: TEXT_BYTES_MAX,
    // A second document is read only to report it.
    documents: 2,
    indentations: 32,
};

/// The frontmatter of a file.
#[derive(Clone, Debug)]
pub struct Frontmatter {
    /// The keys and values, always a map. If a key occurs twice, the map has the first value.
    pub mapping: Value,
    /// The second occurrences of keys: most readers of YAML reject a text that has them.
    pub repeated: Vec<Repeated>,
    /// Where in the text the body starts, in bytes.
    pub body_offset: usize,
    /// The text up to the body.
    head: Box<str>,
    lines: LineIndex,
}

/// A second occurrence of a key in its mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// The key.
    pub key: Box<str>,
    /// The place of the second occurrence.
    pub location: Location,
}

/// Why frontmatter could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidFrontmatter {
    /// Its place in the file.
    pub location: Location,
    /// The mistake.
    pub message: String,
}

/// Where frontmatter is in a text, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Split {
    yaml: Range<usize>,
    body_offset: usize,
}

/// Reads the frontmatter of a file; `None` if it has none.
///
/// ```
/// use waypost::frontmatter;
///
/// let text = "---\nname: search\n---\n# Search\n";
/// let found = frontmatter::read(text)?.expect("the file has frontmatter");
/// assert_eq!(found.mapping.get("name").and_then(|v| v.text()), Some("search"));
/// assert_eq!(&text[found.body_offset..], "# Search\n");
/// # Ok::<(), waypost::frontmatter::InvalidFrontmatter>(())
/// ```
///
/// # Errors
///
/// [`InvalidFrontmatter`] if the file starts like frontmatter but cannot be read as such.
pub fn read(text: &str) -> Result<Option<Frontmatter>, InvalidFrontmatter> {
    let Some(Split { yaml, body_offset }) = split(text)? else {
        return Ok(None);
    };
    if yaml.len() > BYTES_MAX {
        let message = format!(
            "frontmatter has {} bytes; {BYTES_MAX} are allowed",
            yaml.len()
        );
        return Err(InvalidFrontmatter::new(1, message));
    }
    let head = &text[..body_offset];
    let lines = LineIndex::new(head);
    let stream = yaml::parse(head, yaml, FileId::default(), &LIMITS);
    let invalid = |span: Span, message: String| InvalidFrontmatter {
        location: lines.locate(head, span.range()),
        message,
    };
    if let Some(Problem {
        kind,
        span,
        message,
    }) = stream.problem
    {
        return Err(invalid(
            span,
            match kind {
                ProblemKind::Syntax => format!("this is not YAML: {message}"),
                ProblemKind::Structure | ProblemKind::Limit => message,
            },
        ));
    }
    let mut documents = stream.documents.into_iter();
    let mapping = match documents.next() {
        Some(value) if value.is_map() => value,
        Some(value) if !value.is_null() => {
            let message = format!("frontmatter is {}, not keys with values", value.yaml_kind());
            return Err(invalid(value.span, message));
        }
        _ => empty_mapping(),
    };
    if let Some(second) = documents.next() {
        let message = "frontmatter is more than one document".to_owned();
        return Err(invalid(second.span, message));
    }
    let repeated = stream.duplicates.into_iter().map(|duplicate| Repeated {
        key: duplicate.key,
        location: lines.locate(head, duplicate.span.range()),
    });
    Ok(Some(Frontmatter {
        mapping,
        repeated: repeated.collect(),
        body_offset,
        head: head.into(),
        lines,
    }))
}

/// Finds the frontmatter of a text.
fn split(text: &str) -> Result<Option<Split>, InvalidFrontmatter> {
    let start = text.strip_prefix('\u{feff}').unwrap_or(text);
    let opened = start.strip_prefix("---").and_then(|rest| {
        rest.strip_prefix("\r\n")
            .or_else(|| rest.strip_prefix('\n'))
    });
    let Some(rest) = opened else {
        return unopened(start);
    };
    let yaml_start = text.len() - rest.len();
    // The closing line may follow the opening line directly.
    let Some(closing) = rest
        .starts_with("---")
        .then_some(0)
        .or_else(|| rest.find("\n---").map(|at| at + 1))
    else {
        let message = "frontmatter is not closed by a line `---`".to_owned();
        return Err(InvalidFrontmatter::new(1, message));
    };
    let body = &rest[closing + "---".len()..];
    let body = body
        .strip_prefix("\r\n")
        .or_else(|| body.strip_prefix('\n'))
        .unwrap_or(body);
    Ok(Some(Split {
        yaml: yaml_start..yaml_start + closing,
        body_offset: text.len() - body.len(),
    }))
}

/// Distinguishes a text without frontmatter from one whose frontmatter is misplaced.
fn unopened(start: &str) -> Result<Option<Split>, InvalidFrontmatter> {
    let mut lines = (1..).zip(start.lines());
    let Some((number, line)) = lines.find(|(_, line)| !line.trim().is_empty()) else {
        return Ok(None);
    };
    if line.trim() != "---" {
        return Ok(None);
    }
    let message = if number == 1 {
        "the first line is not exactly `---`, so the frontmatter is not found"
    } else {
        "frontmatter does not start in the first line, so it is not found"
    };
    Err(InvalidFrontmatter::new(number, message.to_owned()))
}

fn empty_mapping() -> Value {
    Value {
        span: Span::default(),
        data: Data::Map(Vec::new()),
    }
}

// === impl Frontmatter ===

impl Frontmatter {
    /// Returns line, column and length of a span of one of its values.
    #[must_use]
    pub fn locate(&self, span: Span) -> Location {
        self.lines.locate(&self.head, span.range())
    }
}

impl Default for Frontmatter {
    /// Returns the frontmatter of a file that has none: an empty map.
    fn default() -> Self {
        Self {
            mapping: empty_mapping(),
            repeated: Vec::new(),
            body_offset: 0,
            head: Box::default(),
            lines: LineIndex::new(""),
        }
    }
}

// === impl InvalidFrontmatter ===

impl InvalidFrontmatter {
    fn new(line: u32, message: String) -> Self {
        let location = Location {
            line,
            column: 1,
            length: 0,
        };
        Self { location, message }
    }

    /// Returns this as an error about a file; the caller may lower its severity.
    #[must_use]
    pub fn diagnostic(&self, rule: &'static str, file: &str) -> Diagnostic {
        let Location { line, column, .. } = self.location;
        Diagnostic::error(rule, file, self.message.clone()).at(line, column, 0)
    }
}

#[cfg(test)]
mod tests;

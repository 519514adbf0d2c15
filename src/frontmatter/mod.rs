//! Frontmatter: the YAML at the head of a Markdown file.
//!
//! A file has frontmatter exactly when the programs that read skills and pages find it:
//! the file starts (after a byte order mark, if any) with a line `---`, and the YAML ends
//! before the next line that starts with `---`. A file that starts with three dashes but
//! not so is not a file without frontmatter; it is a mistake, and told as one, because
//! what its author restricted there must not be read as unrestricted.
//!
//! What the YAML says keeps its position, so that whoever gives it meaning can point at
//! the line. It is read as YAML 1.2 with the core schema (`yes` is a text, `true` is
//! not), from one mapping.
//!
//! **Limits.** The text has at most [`BYTES_MAX`] bytes, nesting at most [`DEPTH_MAX`]
//! levels, aliases expand to at most [`WEIGHT_MAX`]: no input of a few lines becomes
//! gigabytes.
//!
//! Sources: YAML 1.2.2 §6.9.2 (anchors), §7.1 (aliases), §10.3 (core schema); the
//! expression by which the `skills` tool splits files:
//! `^\uFEFF?---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$`.

mod load;
mod value;

use crate::diagnostic::{Diagnostic, Location};

pub use value::{Data, Entry, Mapping, Value};

/// How many bytes the YAML may have.
pub const BYTES_MAX: usize = 64 << 10;
/// How deep lists and mappings may lie in each other, aliases expanded.
pub const DEPTH_MAX: usize = 32;
/// How much there may be once aliases are expanded: the bytes of all texts and
/// 32 for each value.
pub const WEIGHT_MAX: usize = 4 << 20;

/// What the head of a file says.
#[derive(Clone, Debug)]
pub struct Frontmatter {
    /// The keys and values. Of a key that stands there twice the first value.
    pub mapping: Mapping,
    /// The keys that stand there again: most readers of YAML refuse the whole text then.
    pub repeated: Vec<Repeated>,
    /// Where in the text the body starts, in bytes.
    pub body_offset: usize,
}

/// A key that stands in its mapping for the second time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// The key.
    pub key: Box<str>,
    /// Where it stands again.
    pub location: Location,
}

/// Why frontmatter could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidFrontmatter {
    /// Where in the file.
    pub location: Location,
    /// What was found there.
    pub message: String,
}

/// Where frontmatter stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Split<'t> {
    yaml: &'t str,
    body_offset: usize,
}

/// Reads the frontmatter of a file; `None` when it has none.
///
/// ```
/// use waypost::frontmatter;
///
/// let text = "---\nname: search\n---\n# Search\n";
/// let found = frontmatter::read(text)?.expect("the file has frontmatter");
/// assert_eq!(found.mapping.get("name").and_then(|v| v.as_str()), Some("search"));
/// assert_eq!(&text[found.body_offset..], "# Search\n");
/// # Ok::<(), waypost::frontmatter::InvalidFrontmatter>(())
/// ```
///
/// # Errors
///
/// [`InvalidFrontmatter`] when the file starts like frontmatter but cannot be read as such.
pub fn read(text: &str) -> Result<Option<Frontmatter>, InvalidFrontmatter> {
    let Some(Split { yaml, body_offset }) = split(text)? else {
        return Ok(None);
    };
    if yaml.len() > BYTES_MAX {
        let message = format!(
            "frontmatter has {} bytes; {BYTES_MAX} are allowed",
            yaml.len()
        );
        return Err(InvalidFrontmatter::new(1, 1, message));
    }
    let (mapping, repeated) = load::mapping(yaml)?;
    Ok(Some(Frontmatter {
        mapping,
        repeated,
        body_offset,
    }))
}

fn split(text: &str) -> Result<Option<Split<'_>>, InvalidFrontmatter> {
    let start = text.strip_prefix('\u{feff}').unwrap_or(text);
    let opened = start.strip_prefix("---").and_then(|rest| {
        rest.strip_prefix("\r\n")
            .or_else(|| rest.strip_prefix('\n'))
    });
    let Some(yaml_on) = opened else {
        return unopened(start);
    };
    let Some(end) = yaml_on.find("\n---") else {
        let message = "frontmatter is not closed by a line `---`".to_owned();
        return Err(InvalidFrontmatter::new(1, 1, message));
    };
    let yaml = &yaml_on[..end];
    let body = &yaml_on[end + "\n---".len()..];
    let body = body
        .strip_prefix("\r\n")
        .or_else(|| body.strip_prefix('\n'))
        .unwrap_or(body);
    Ok(Some(Split {
        yaml: yaml.strip_suffix('\r').unwrap_or(yaml),
        body_offset: text.len() - body.len(),
    }))
}

/// Tells a text that has no frontmatter from one that was meant to have some.
fn unopened(start: &str) -> Result<Option<Split<'_>>, InvalidFrontmatter> {
    let lines = start.lines().zip(1..);
    let Some((line, number)) = lines.into_iter().find(|(line, _)| !line.trim().is_empty()) else {
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
    Err(InvalidFrontmatter::new(number, 1, message.to_owned()))
}

// === impl InvalidFrontmatter ===

impl InvalidFrontmatter {
    fn new(line: u32, column: u32, message: String) -> Self {
        let location = Location {
            line,
            column,
            length: 0,
        };
        Self { location, message }
    }

    /// Returns this as a finding about a file, as an error; the caller decides otherwise
    /// by setting its severity.
    #[must_use]
    pub fn diagnostic(&self, rule: &'static str, file: &str) -> Diagnostic {
        let Location { line, column, .. } = self.location;
        Diagnostic::error(rule, file, self.message.clone()).at(line, column, 0)
    }
}

#[cfg(test)]
mod tests;

//! JSON and YAML, read into one kind of value that knows its place in the file.
//!
//! `docs.json`, the files it refers to, OpenAPI specifications, frontmatter, site records and
//! `waypost.yaml` are all read into the same [`Value`]. Every value and key keeps its
//! [`Span`], so that the code that interprets it can point at it.
//!
//! * [`json`] reads on after an error, so that one run reports all of them.
//! * [`yaml`] reads one or several documents; aliases and nesting are bounded.
//! * [`strict`] reads our own YAML files, in which an unknown key is an error.
//! * [`Files`] owns texts and converts spans to lines and columns when a message needs them;
//!   [`Diagnostics`] collects the messages.
//!
//! **Limits.** A file has at most [`FILE_BYTES_MAX`] bytes, its values are nested at most
//! [`DEPTH_MAX`] deep and there are at most [`VALUES_MAX`] of them. A file over a limit gets a
//! diagnostic, so code that walks a value needs no limit of its own.

mod diagnostics;
mod files;
pub mod json;
pub mod strict;
mod value;
pub mod yaml;

pub use diagnostics::{Diagnostics, SpanDiagnostic};
pub use files::{FileId, Files, LineIndex};
pub use value::{Data, Member, Span, Value};

use value::Keys;

/// The largest file of JSON or YAML, in bytes. The largest known `docs.json` has 2.4 MB, the
/// largest known specification 12 MB.
pub const FILE_BYTES_MAX: u64 = FILE_BYTES as u64;
const FILE_BYTES: usize = 32 << 20;
/// The deepest nesting of values. Known files reach 30 (specifications).
pub const DEPTH_MAX: usize = 128;
/// The most values in one file, including the values that references and aliases repeat.
pub const VALUES_MAX: usize = 2_000_000;

/// The rule for a key that its object contains twice.
pub const DUPLICATE_KEY: &str = "duplicate-key";
/// The rule for a file that exceeds a limit.
pub const LIMIT: &str = "limit";

/// Returns whether a path names a YAML file; any other file is read as JSON.
#[must_use]
pub fn is_yaml(path: &str) -> bool {
    let path = std::path::Path::new(path);
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("yaml") || e.eq_ignore_ascii_case("yml"))
}

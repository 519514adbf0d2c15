//! What a build says about itself: to the author, and to whoever promotes its release.

use std::fmt;

use crate::diagnostic::Diagnostic;
use crate::release::{Release, ReleaseId};
use crate::skills::Skill;

/// What is in a release, and what is wrong with what it was made from.
#[derive(Clone, Debug)]
pub struct Report {
    /// The release.
    pub release: ReleaseId,
    /// How many files it has.
    pub files: usize,
    /// How many bytes they have together.
    pub bytes: u64,
    /// The skills that it serves, by slug.
    pub skills: Vec<Served>,
    /// Findings, by file and place.
    pub diagnostics: Vec<Diagnostic>,
}

/// A skill that a release serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Its name in URLs.
    pub slug: Box<str>,
    /// The file it was made from.
    pub file: Box<str>,
}

/// Why a release must not be promoted.
#[derive(Debug, thiserror::Error)]
#[error("documentation has {}: {first}", count(*errors, "error"))]
pub struct BuildError {
    /// How many errors there are.
    pub errors: usize,
    /// The first of them.
    pub first: Diagnostic,
}

// === impl Report ===

impl Report {
    pub(super) fn new(release: &Release, skills: &[Skill], diagnostics: Vec<Diagnostic>) -> Self {
        let served = |skill: &Skill| Served {
            slug: skill.slug.as_str().into(),
            file: skill.path.as_str().into(),
        };
        let mut report = Self {
            release: release.id(),
            files: release.files().len(),
            bytes: release
                .files()
                .map(|(_, file)| file.bytes.len() as u64)
                .sum(),
            skills: skills.iter().map(served).collect(),
            diagnostics: Vec::new(),
        };
        report.add(diagnostics);
        report
    }

    /// Adds findings of those who read the tree.
    pub fn add(&mut self, diagnostics: Vec<Diagnostic>) {
        self.diagnostics.extend(diagnostics);
        self.diagnostics
            .sort_by(|one, other| (&one.file, one.location).cmp(&(&other.file, other.location)));
    }

    /// Returns how many errors there are.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.is_error()).count()
    }

    /// Returns how many warnings there are.
    #[must_use]
    pub fn warnings(&self) -> usize {
        self.diagnostics.len() - self.errors()
    }

    /// Lets a release pass that was made without errors.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when an author's mistake keeps the release from being served.
    pub fn refuse_if_errors(&self) -> Result<(), BuildError> {
        match self.diagnostics.iter().find(|d| d.is_error()) {
            None => Ok(()),
            Some(first) => Err(BuildError {
                errors: self.errors(),
                first: first.clone(),
            }),
        }
    }
}

/// Findings line by line, then what was built.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for diagnostic in &self.diagnostics {
            writeln!(f, "{diagnostic}")?;
        }
        for Served { slug, file } in &self.skills {
            writeln!(f, "skill {slug} from {file}")?;
        }
        let Self {
            release,
            files,
            bytes,
            ..
        } = self;
        write!(
            f,
            "release {release}: {}, {}, {bytes} bytes; {}, {}",
            count(self.skills.len(), "skill"),
            count(*files, "file"),
            count(self.errors(), "error"),
            count(self.warnings(), "warning"),
        )
    }
}

/// Writes a number of things: `1 file`, `2 files`.
fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

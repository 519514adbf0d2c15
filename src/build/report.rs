//! The report of a build, for the author and for the code that promotes the release.

use std::collections::BTreeMap;
use std::fmt;

use crate::diagnostic::{self, Diagnostic, Tally, count};
use crate::docs::Docs;
use crate::release::{Release, ReleaseId};
use crate::skills::Skill;

/// The content of a release, and the diagnostics of its input.
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
    /// The components that react to their reader when their scripts run, each with the number of
    /// its pages. These pages show the first render.
    pub interactive: BTreeMap<Box<str>, usize>,
    /// The diagnostics, sorted by file and place.
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

/// Why a release is not published.
#[derive(Debug, thiserror::Error)]
#[error("{}, the first is {first}", tally.error_summary().unwrap_or_default())]
pub struct NotPublishable {
    /// How many errors there are.
    pub tally: Tally,
    /// The first of them.
    pub first: Box<Diagnostic>,
}

/// Returns the components that react to their reader, each with the number of its pages.
fn interactive(docs: &Docs) -> BTreeMap<Box<str>, usize> {
    let mut found = BTreeMap::new();
    let pages = docs.pages.iter().filter_map(|page| page.read.as_ref().ok());
    for name in pages.flat_map(|page| &page.interactive) {
        *found.entry(name.clone()).or_default() += 1;
    }
    found
}

fn described(interactive: &BTreeMap<Box<str>, usize>) -> Option<String> {
    let each = interactive.iter();
    let each = each.map(|(name, pages)| format!("{name} ({})", count(*pages, "page")));
    let names = each.collect::<Vec<_>>().join(", ");
    let line = format!("interactive components show their first render: {names}");
    (!interactive.is_empty()).then_some(line)
}

/// Returns a line that lists the interactive components; `None` if there are none. A page shows only
/// the first render of such a component.
#[must_use]
pub fn first_renders(docs: &Docs) -> Option<String> {
    described(&interactive(docs))
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
            bytes: release.files().map(|(_, file)| file.length()).sum(),
            skills: skills.iter().map(served).collect(),
            interactive: BTreeMap::new(),
            diagnostics: Vec::new(),
        };
        report.add(diagnostics);
        report
    }

    /// Adds the components that react to their reader, from all pages.
    pub(super) fn add_interactive(&mut self, docs: &Docs) {
        self.interactive = interactive(docs);
    }

    /// Adds diagnostics that other code found in the same tree.
    pub fn add(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.diagnostics.extend(diagnostics);
        diagnostic::sort(&mut self.diagnostics);
    }

    /// Counts errors and warnings.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally::of(&self.diagnostics)
    }

    /// Returns an error unless the release was made without errors.
    ///
    /// # Errors
    ///
    /// [`NotPublishable`] if the authors' files have an error.
    pub fn publishable(&self) -> Result<(), NotPublishable> {
        match self.diagnostics.iter().find(|d| d.is_error()) {
            None => Ok(()),
            Some(first) => Err(NotPublishable {
                tally: self.tally(),
                first: Box::new(first.clone()),
            }),
        }
    }
}

/// The diagnostics line by line, then the release, then the reason why it cannot be published.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for diagnostic in &self.diagnostics {
            writeln!(f, "{diagnostic}")?;
        }
        for Served { slug, file } in &self.skills {
            writeln!(f, "skill {slug} from {file}")?;
        }
        if let Some(line) = described(&self.interactive) {
            writeln!(f, "{line}")?;
        }
        let Self { release, bytes, .. } = self;
        let (skills, files) = (count(self.skills.len(), "skill"), count(self.files, "file"));
        let tally = self.tally();
        write!(
            f,
            "release {release}: {skills}, {files}, {bytes} bytes; {tally}"
        )?;
        match tally.error_summary() {
            None => Ok(()),
            Some(error_summary) => write!(f, "\n{error_summary}"),
        }
    }
}

//! The generated skill of a build, and its replacement.
//!
//! A generated skill is its own file and its line in the summary; no other file of a release
//! depends on it. So when an operator's command writes a better one, these two files are replaced
//! and nothing is built again. The stored form of a written text is a third file, which is not served.
//!
//! **Invariant:** a build that generates the new skill itself makes an equal release.

use super::{Articles, Built, GENERATED, Report, insert, insert_skill, into_skill, listed};
use crate::discovery::{JSON, SUMMARY_PATH, skill_path};
use crate::release::site::WRITTEN_SKILL_FILE;
use crate::release::{Release, ReleaseFile};
use crate::response::Encoding;
use crate::skills::Generated;

/// The media type of the stored form, which is never served.
const BYTES: &str = "application/octet-stream";

// === impl Built ===

impl Built {
    /// Returns the text of the generated skill; `None` if authors wrote skills.
    #[must_use]
    pub fn generated(&self) -> Option<&str> {
        let served = self.report.skills.first()?;
        if *served.file != *GENERATED {
            return None;
        }
        let file = self
            .release
            .file(&skill_path(&served.slug, Encoding::Identity))?;
        str::from_utf8(&file.bytes).ok()
    }

    /// Gives up the content of all files but the generated skill and its line in the summary: the
    /// release has been written, and [`Built::with_skill`] needs only these.
    #[must_use]
    pub fn without_content(self) -> Self {
        let skill = self.report.skills.first();
        let skill = skill.map(|served| skill_path(&served.slug, Encoding::Identity));
        let mut release = Release::builder();
        for (path, file) in self.release.files() {
            let path = path.as_str();
            let is_needed = path == SUMMARY_PATH || Some(path) == skill.as_deref();
            let stored = self.release.inventory().get(path);
            let stored = stored.filter(|_| !is_needed).map(ReleaseFile::stored);
            insert(&mut release, path, stored.unwrap_or_else(|| file.clone()));
        }
        Self {
            release: release.finish(),
            articles: Articles::default(),
            ..self
        }
    }

    /// Replaces the generated skill by a skill that has passed
    /// [`skills::accept`](crate::skills::accept()). If authors wrote
    /// skills, nothing changes. The diagnostics stay as they are.
    #[must_use]
    pub fn with_skill(self, skill: Generated) -> Self {
        self.with(skill, None)
    }

    /// Replaces the generated skill as [`Built::with_skill`] does, and puts the `stored` form of the text
    /// into the release, for the next update on any machine.
    #[must_use]
    pub fn with_written(self, skill: Generated, stored: &[u8]) -> Self {
        self.with(skill, Some(stored))
    }

    fn with(self, skill: Generated, stored: Option<&[u8]>) -> Self {
        if self.generated().is_none() {
            return self;
        }
        let mut release = self.release.into_builder();
        for served in &self.report.skills {
            release.remove(&skill_path(&served.slug, Encoding::Identity));
        }
        let skill = into_skill(skill);
        insert_skill(&mut release, &skill);

        let mut summary = self.summary;
        summary.skills = vec![listed(&skill, true)];
        release.remove(SUMMARY_PATH);
        let file = ReleaseFile::new(summary.to_bytes(), JSON);
        insert(&mut release, SUMMARY_PATH, file);
        release.remove(WRITTEN_SKILL_FILE);
        if let Some(stored) = stored {
            let file = ReleaseFile::new(stored.to_vec(), BYTES);
            insert(&mut release, WRITTEN_SKILL_FILE, file);
        }

        let release = release.finish();
        let mut report = Report::new(&release, &[skill], self.report.diagnostics);
        report.interactive = self.report.interactive;
        Self {
            release,
            report,
            summary,
            ..self
        }
    }
}

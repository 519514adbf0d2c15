//! A build with another skill in the place of the one that nobody wrote.
//!
//! A generated skill is its own file and its line in the summary, and no other file of a
//! release says anything of it. So who comes with a better one, like an operator's command,
//! needs no second build: the two files are exchanged.
//!
//! **Invariant:** the release is the one of a build that had generated this skill itself.

use super::{Built, GENERATED, Report, as_skill, insert, insert_skill, listed};
use crate::discovery::{JSON, SUMMARY_PATH, Summary, skill_path};
use crate::release::ReleaseFile;
use crate::response::Encoding;
use crate::skills::Generated;

// === impl Built ===

impl Built {
    /// Returns the text of the skill that nobody wrote, when there is one. There is no other
    /// skill then.
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

    /// Puts a skill that has passed [`skills::accept`](crate::skills::accept()) for the same
    /// documentation in the place of the one that nobody wrote; where authors wrote theirs,
    /// nothing changes. What was found in the documentation stays.
    #[must_use]
    pub fn with_skill(self, skill: Generated) -> Self {
        if self.generated().is_none() {
            return self;
        }
        let Self { release, report } = self;
        let mut release = release.into_builder();
        for served in &report.skills {
            release.remove(&skill_path(&served.slug, Encoding::Identity));
        }
        let skill = as_skill(skill);
        insert_skill(&mut release, &skill);

        let summary = release
            .remove(SUMMARY_PATH)
            .expect("every build writes a summary");
        let mut summary = Summary::parse(&summary.bytes).expect("a build writes its own summary");
        summary.skills = vec![listed(&skill, true)];
        let summary = ReleaseFile::new(summary.to_bytes(), JSON);
        insert(&mut release, SUMMARY_PATH, summary);

        let release = release.finish();
        let report = Report::new(&release, &[skill], report.diagnostics);
        Self { release, report }
    }
}

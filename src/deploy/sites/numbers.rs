//! Reads the numbers of a site for its owner.

use std::sync::Arc;

use super::{Caller, Refused, SiteAdmin};
use crate::clock::Day;
use crate::error::chain;
use crate::numbers::{Document, Summary};
use crate::site::ProjectId;
use crate::store::SiteError;

/// The most days of one answer.
const DAYS_MAX: u32 = 92;
/// How many days an answer has if the caller does not say.
const DAYS: u32 = 28;

/// Writes the counts of a site that are in memory into the store.
pub type WriteCounts = Arc<dyn Fn(&ProjectId) + Send + Sync>;

/// The first and the last day that a caller wants; `None` for the usual ones.
type Days = (Option<Day>, Option<Day>);

impl SiteAdmin {
    /// Sets the function that writes the latest counts before numbers are read.
    #[must_use]
    pub fn with_numbers(self, write_counts: WriteCounts) -> Self {
        Self {
            write_counts: Some(write_counts),
            ..self
        }
    }

    /// Returns the numbers of a site, by default of this day and the 27 days before it.
    ///
    /// # Errors
    ///
    /// [`Refused::NoSite`], [`Refused::Invalid`] if the days are not in order or are more than
    /// [`DAYS_MAX`], or the error of the store.
    pub fn numbers(
        &self,
        caller: &Caller,
        project: &ProjectId,
        (first, last): Days,
    ) -> Result<Summary, Refused> {
        self.site(caller, project)?;
        let last = last.unwrap_or_else(|| Day::of(self.clock.now()));
        let first = first.unwrap_or_else(|| last.before(DAYS - 1));
        if first > last {
            let why = format!("`from` ({first}) is after `to` ({last})");
            return Err(Refused::Invalid(vec![why]));
        }
        if last.since(first) >= DAYS_MAX {
            let why = format!("{first} to {last} is more than {DAYS_MAX} days");
            return Err(Refused::Invalid(vec![why]));
        }
        if let Some(write_counts) = &self.write_counts {
            write_counts(project);
        }
        let days = self.store.numbers(project, first, last);
        let days = days.map_err(SiteError::from)?.into_iter();
        let days = days.filter_map(|(day, bytes)| match Document::parse(&bytes) {
            Ok(document) => Some((day, document)),
            Err(why) => {
                log::warn!(target: "numbers", project:%; "the numbers of {project} on {day} cannot be read: {}", chain(&why));
                None
            }
        });
        Ok(Summary::new(project.clone(), (first, last), days))
    }
}

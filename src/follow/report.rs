//! The report that an edge sends with each request for changes: how well it serves.

use std::sync::Arc;
use std::time::Instant;

use crate::telemetry::Metrics;

/// How an edge is, since its process has started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Sites whose current release or record it could not fetch or cannot serve.
    pub(super) failing: u64,
    /// The revision up to which it has the releases of all sites.
    pub(super) complete: u64,
    /// How long its process has run, in milliseconds.
    pub(super) up: u64,
    /// Requests that it has answered.
    pub(super) requests: u64,
    /// Requests that it has answered with an error of its own.
    pub(super) errors: u64,
    /// Why it could not use the last answer of the source, as [`FollowError::reason`] names it.
    ///
    /// [`FollowError::reason`]: super::FollowError::reason
    pub(super) refuses: Option<Reason>,
}

/// The name of a reason: at most 32 lower-case letters and underscores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reason([u8; 32]);

impl Reason {
    /// Reads a name; `None` for any other text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_valid = |byte: u8| byte == b'_' || byte.is_ascii_lowercase();
        let mut bytes = [0; 32];
        let place = bytes.get_mut(..text.len())?;
        place.copy_from_slice(text.as_bytes());
        (!text.is_empty() && text.bytes().all(is_valid)).then_some(Self(bytes))
    }

    pub(super) fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0);
        let name = &self.0[..end.unwrap_or(self.0.len())];
        std::str::from_utf8(name).unwrap_or_default()
    }
}

/// Makes reports.
#[derive(Debug)]
pub(super) struct Reporter {
    began: Instant,
    metrics: Arc<Metrics>,
}

impl Reporter {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        Self {
            began: Instant::now(),
            metrics: Arc::clone(metrics),
        }
    }

    /// Makes a report. `waiting` releases could not be fetched, and `refused` records cannot be
    /// served.
    pub(super) fn report(&self, waiting: usize, refused: usize, complete: u64) -> Report {
        let (requests, errors) = self.metrics.answers();
        let failing = u64::try_from(self.metrics.index_failing.get()).unwrap_or(0);
        let rejected = u64::try_from(self.metrics.site_records_rejected.get()).unwrap_or(0);
        Report {
            failing: failing.max(waiting as u64) + rejected + refused as u64,
            complete,
            up: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            requests,
            errors,
            refuses: None,
        }
    }
}

impl Report {
    /// Returns the end of a query.
    pub(super) fn to_query(self) -> String {
        let Self {
            failing,
            complete,
            up,
            requests,
            errors,
            refuses,
        } = self;
        let refuses = refuses.map(|reason| format!("&refuses={}", reason.as_str()));
        let refuses = refuses.unwrap_or_default();
        format!(
            "&failing={failing}&complete={complete}&up={up}&requests={requests}&errors={errors}{refuses}"
        )
    }

    /// Reads the members of a query; a member that is missing or is no number is 0.
    pub(super) fn of<'q>(query: impl Fn(&str) -> Option<&'q str>) -> Self {
        let number = |name| query(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        Self {
            failing: number("failing"),
            complete: number("complete"),
            up: number("up"),
            requests: number("requests"),
            errors: number("errors"),
            refuses: query("refuses").and_then(Reason::parse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for refuses in [None, Reason::parse("older")] {
            let report = Report {
                failing: 1,
                complete: 2,
                up: 3,
                requests: 4,
                errors: 5,
                refuses,
            };
            let query = report.to_query();
            let member = |name: &str| {
                let mut members = query.split('&');
                members.find_map(|member| member.strip_prefix(name)?.strip_prefix('='))
            };
            assert_eq!(Report::of(member), report);
        }
        let long = "a".repeat(33);
        for text in ["", "A", "a b", "\u{1b}", &long] {
            assert_eq!(Reason::parse(text), None, "{text}");
        }
    }
}

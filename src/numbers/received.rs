//! Counts of edges: the form in which an edge sends them, and how its source adds them.
//!
//! An edge sends *batches*. Each has the name of the edge, a random text of its cache (the *life*)
//! and a sequence number, which grows by one. An edge sends a batch until the source has
//! acknowledged it, and only then the next one. The document of each site and day remembers the
//! last batch of each edge that was added to it, in the same write. So a batch that is sent again,
//! or that arrives late, is added once.
//!
//! An edge is trusted to count, but not to keep the bounds: values that no correct edge sends are
//! removed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::document::{Document, InvalidDocument, Readers};
use super::reader::Reader;
use super::{stored, table, text};
use crate::clock::{Clock, Day};
use crate::error::chain;
use crate::site::ProjectId;
use crate::store::{FileError, Store};

/// The longest text of a life, in bytes.
const LIFE_BYTES_MAX: usize = 64;
/// The largest count in one batch.
const COUNT_MAX: u64 = u32::MAX as u64;
/// How many tools a document of an edge has.
const TOOLS_MAX: usize = 64;

/// Returns whether something is counted for a site.
pub type IsCounted = Box<dyn Fn(&ProjectId) -> bool + Send + Sync>;

/// Adds the counts of edges to those in the store.
pub struct Receiver {
    store: Arc<Store>,
    is_counted: IsCounted,
    keep_days: u32,
    clock: Clock,
}

/// The counts that an edge sends at once.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'b> {
    /// The name of the edge.
    pub edge: &'b str,
    /// The random text of its cache.
    pub life: &'b str,
    /// The number of the batch in this life.
    pub sequence: u64,
    /// The lines of [`line()`].
    pub content: &'b [u8],
}

/// The last batch of an edge that a document has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LastBatch {
    life: Box<str>,
    sequence: u64,
}

/// Why a batch was not added, or not all of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// It has another form.
    #[error("the counts of the edge are not valid: {0}")]
    Invalid(String),
    /// A newer program has written it.
    #[error("the counts of the edge are of a newer program")]
    Newer,
    /// The store cannot be written. The same batch may be sent again.
    #[error("write the counts of the edge")]
    Store(#[from] FileError),
}

/// A line of a batch.
#[derive(Serialize, Deserialize)]
struct Line<D> {
    project: String,
    day: String,
    numbers: D,
}

/// Returns the line of a batch for the document of a day, with its end. `stored` is the document as
/// a store keeps it.
///
/// # Errors
///
/// [`InvalidDocument`] if the bytes are not a document.
pub fn line(project: &ProjectId, day: Day, stored: &[u8]) -> Result<Vec<u8>, InvalidDocument> {
    let mut numbers = Document::parse(stored)?;
    // Batches have a number of their own.
    numbers.writers.clear();
    let line = Line {
        project: project.to_string(),
        day: day.to_string(),
        numbers,
    };
    let mut bytes = serde_json::to_vec(&line)?;
    bytes.push(b'\n');
    Ok(bytes)
}

// === impl Receiver ===

impl Receiver {
    /// Makes one. Counts of sites for which `is_counted` is false, and of days that are not kept,
    /// are left out.
    #[must_use]
    pub fn new(store: Arc<Store>, is_counted: IsCounted, keep_days: u32, clock: Clock) -> Self {
        Self {
            store,
            is_counted,
            keep_days,
            clock,
        }
    }

    /// Adds a batch. It blocks.
    ///
    /// # Errors
    ///
    /// [`ReceiveError`]. After [`ReceiveError::Store`], a part may be added, and the same batch
    /// adds the rest; after the others, nothing is added.
    pub fn receive(&self, batch: &Batch<'_>) -> Result<(), ReceiveError> {
        if batch.life.is_empty() || batch.life.len() > LIFE_BYTES_MAX {
            let why = format!("a life is a text of 1 to {LIFE_BYTES_MAX} bytes");
            return Err(ReceiveError::Invalid(why));
        }
        let lines = batch.content.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let lines: Vec<_> = lines.map(parse).collect::<Result<_, _>>()?;
        let today = Day::of(self.clock.now());
        for (project, day, document) in lines {
            // The clock of the edge may be ahead of this one, over midnight.
            let is_kept = today.since(day) <= self.keep_days && day.since(today) <= 1;
            if is_kept && (self.is_counted)(&project) {
                let more = bounded(document);
                stored::change(&self.store, &project, day, |there| {
                    there.add_batch(batch, more.clone())
                })?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

// === impl Document ===

impl Document {
    /// Adds a batch of an edge; returns `false` if it was added before.
    fn add_batch(&mut self, batch: &Batch<'_>, more: Self) -> bool {
        if let Some(last) = self.batches.get(batch.edge)
            && *last.life == *batch.life
            && batch.sequence <= last.sequence
        {
            return false;
        }
        let last = LastBatch {
            life: batch.life.into(),
            sequence: batch.sequence,
        };
        self.batches.insert(batch.edge.into(), last);
        self.add(more);
        true
    }
}

// === impl LastBatch ===

impl LastBatch {
    /// Returns whether this is a later batch of the same life.
    pub(super) fn is_after(&self, other: &Self) -> bool {
        self.life == other.life && self.sequence > other.sequence
    }
}

fn parse(line: &[u8]) -> Result<(ProjectId, Day, Document), ReceiveError> {
    let invalid = |why: &dyn fmt::Display| ReceiveError::Invalid(why.to_string());
    let line: Line<serde_json::Value> =
        serde_json::from_slice(line).map_err(|error| invalid(&error))?;
    let project = ProjectId::parse(&line.project).map_err(|error| invalid(&error))?;
    let day = Day::parse(&line.day).map_err(|error| invalid(&error))?;
    match Document::of(line.numbers) {
        Ok(document) => Ok((project, day, document)),
        Err(InvalidDocument::Newer(_)) => Err(ReceiveError::Newer),
        Err(error) => Err(ReceiveError::Invalid(chain(&error))),
    }
}

/// Removes values that no correct edge sends: names and texts that are too long or must not be
/// kept, unknown kinds of readers, impossible counts.
fn bounded(mut document: Document) -> Document {
    let is_kind = |name: &str| Reader::all().any(|known| known == name);
    let bound = |readers: &mut Readers, is_known: &dyn Fn(&str) -> bool| {
        readers.retain(|name, _| is_known(name));
        for count in readers.values_mut() {
            *count = (*count).min(COUNT_MAX);
        }
    };
    let is_short = |name: &str| name.len() <= table::NAME_BYTES_MAX;
    document.batches.clear();
    document.pages.retain(|path, _| is_short(path));
    for page in document.pages.values_mut() {
        bound(&mut page.html, &is_kind);
        bound(&mut page.markdown, &is_kind);
        page.yes = page.yes.min(COUNT_MAX);
        page.no = page.no.min(COUNT_MAX);
    }
    for lists in [&mut document.files, &mut document.skills] {
        lists.retain(|name, _| is_short(name));
        lists
            .values_mut()
            .for_each(|readers| bound(readers, &is_kind));
    }
    let mut tools = 0;
    document.tools.retain(|name, _| {
        tools += 1;
        name.len() <= text::NAME_BYTES_MAX && tools <= TOOLS_MAX
    });
    for readers in document.tools.values_mut() {
        bound(readers, &|name| is_kind(name) || text::is_name(name));
    }
    let searches = &mut document.searches;
    bound(&mut searches.texts, &|asked| {
        text::searched(asked).as_deref() == Some(asked)
    });
    let left_out = &mut document.left_out;
    for count in [
        &mut searches.asked,
        &mut searches.empty,
        &mut left_out.requests,
        &mut left_out.searches,
        &mut left_out.clients,
    ] {
        *count = (*count).min(COUNT_MAX);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::document::Page;
    use crate::numbers::reader::BROWSERS;

    const TODAY: u64 = 1_795_392_000;

    fn receiver(directory: &std::path::Path) -> Receiver {
        let store = Arc::new(Store::open_directory(directory.to_owned()).unwrap());
        let is_counted = Box::new(|project: &ProjectId| project.as_str() != "off");
        Receiver::new(store, is_counted, 30, Clock::fixed_at(TODAY))
    }

    fn lines(project: &str, day: &str, views: u64) -> Vec<u8> {
        let mut document = Document::default();
        let html = [(BROWSERS.into(), views)].into();
        let page = Page {
            html,
            ..Page::default()
        };
        document.pages.insert("/guide".into(), page);
        let (project, day) = (ProjectId::parse(project), Day::parse(day));
        line(&project.unwrap(), day.unwrap(), &document.to_bytes()).unwrap()
    }

    fn batch<'b>(edge: &'b str, life: &'b str, sequence: u64, content: &'b [u8]) -> Batch<'b> {
        Batch {
            edge,
            life,
            sequence,
            content,
        }
    }

    fn views(receiver: &Receiver, project: &str, day: &str) -> u64 {
        let (project, day) = (ProjectId::parse(project), Day::parse(day).unwrap());
        let days = receiver.store.numbers(&project.unwrap(), day, day).unwrap();
        let document = days
            .first()
            .map(|(_, bytes)| Document::parse(bytes).unwrap());
        document.map_or(0, |document| document.pages["/guide"].html[BROWSERS])
    }

    #[test]
    fn a_batch_that_is_sent_again_or_arrives_late_is_added_once() {
        let directory = tempfile::tempdir().unwrap();
        let receiver = receiver(directory.path());
        let day = "2026-11-23";
        let content = lines("acme", day, 2);
        for (edge, life, sequence, expected) in [
            ("paris", "a", 1, 2),
            ("paris", "a", 1, 2),
            ("paris", "a", 2, 4),
            ("paris", "a", 1, 4),
            // Another edge, and an edge whose cache was removed.
            ("tokyo", "b", 1, 6),
            ("paris", "c", 1, 8),
            ("paris", "c", 1, 8),
        ] {
            let sent = batch(edge, life, sequence, &content);
            receiver.receive(&sent).unwrap();
            assert_eq!(views(&receiver, "acme", day), expected, "{sent:?}");
        }
    }

    #[test]
    fn what_was_added_before_an_error_of_the_store_is_not_added_again() {
        let directory = tempfile::tempdir().unwrap();
        let receiver = receiver(directory.path());
        let day = "2026-11-23";
        let content = [lines("acme", day, 2), lines("beta", day, 3)].concat();
        let sent = batch("paris", "a", 1, &content);
        let blocked = {
            let beta = ProjectId::parse("beta").unwrap();
            let shard = crate::digest::Digest::of(beta.as_str().as_bytes()).as_bytes()[0];
            directory.path().join("numbers").join(hex::encode([shard]))
        };
        std::fs::create_dir_all(blocked.parent().unwrap()).unwrap();
        std::fs::write(&blocked, "in the way").unwrap();
        let why = receiver.receive(&sent).unwrap_err();
        assert!(matches!(why, ReceiveError::Store(_)), "{why}");
        std::fs::remove_file(&blocked).unwrap();
        receiver.receive(&sent).unwrap();
        receiver.receive(&sent).unwrap();
        assert_eq!(views(&receiver, "acme", day), 2);
        assert_eq!(views(&receiver, "beta", day), 3);
    }

    #[test]
    fn only_days_that_are_kept_and_sites_that_count_are_added() {
        let directory = tempfile::tempdir().unwrap();
        let receiver = receiver(directory.path());
        let content = [
            lines("acme", "2026-11-24", 1),
            lines("acme", "2026-11-25", 1),
            lines("acme", "2026-10-01", 1),
            lines("off", "2026-11-23", 1),
        ];
        receiver
            .receive(&batch("paris", "a", 1, &content.concat()))
            .unwrap();
        assert_eq!(views(&receiver, "acme", "2026-11-24"), 1);
        assert_eq!(receiver.store.numbered().unwrap().len(), 1);
    }

    #[test]
    fn a_damaged_batch_adds_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let receiver = receiver(directory.path());
        let good = lines("acme", "2026-11-23", 1);
        for wrong in [
            &b"{"[..],
            br#"{"project":"../x","day":"2026-11-23","numbers":{"version":1}}"#,
            br#"{"project":"acme","day":"today","numbers":{"version":1}}"#,
            br#"{"project":"acme","day":"2026-11-23","numbers":{"version":1,"pages":7}}"#,
        ] {
            let content = [&good[..], wrong].concat();
            let why = receiver.receive(&batch("paris", "a", 1, &content));
            assert!(matches!(why, Err(ReceiveError::Invalid(_))), "{why:?}");
        }
        let newer = br#"{"project":"acme","day":"2026-11-23","numbers":{"version":2}}"#;
        let why = receiver.receive(&batch("paris", "a", 1, newer));
        assert!(matches!(why, Err(ReceiveError::Newer)), "{why:?}");
        let why = receiver.receive(&batch("paris", "", 1, &good));
        assert!(matches!(why, Err(ReceiveError::Invalid(_))), "{why:?}");
        assert!(receiver.store.numbered().unwrap().is_empty());
    }

    #[test]
    fn an_edge_cannot_make_lists_or_counts_larger_than_their_bounds() {
        let long = "n".repeat(1000);
        let readers = |names: &[&str]| -> Readers {
            names
                .iter()
                .map(|name| ((*name).into(), u64::MAX))
                .collect()
        };
        let mut document = Document::default();
        let page = Page {
            html: readers(&[BROWSERS, "an invented kind"]),
            yes: u64::MAX,
            ..Page::default()
        };
        document.pages.insert("/guide".into(), page.clone());
        document.pages.insert(long.as_str().into(), page);
        for number in 0..1000 {
            let name = format!("tool {number}");
            document
                .tools
                .insert(name.into(), readers(&["claude-ai", &long]));
        }
        document.searches.texts = readers(&["rate limits", "jane@example.com", "Upper", &long]);
        document.searches.asked = u64::MAX;
        let mut sum = Document::default();
        for _ in 0..2 {
            sum.add(bounded(document.clone()));
        }
        assert_eq!(sum.pages.len(), 1);
        let page = &sum.pages["/guide"];
        assert_eq!(page.html, [(BROWSERS.into(), 2 * COUNT_MAX)].into());
        assert_eq!(
            (page.yes, sum.searches.asked),
            (2 * COUNT_MAX, 2 * COUNT_MAX)
        );
        assert_eq!(sum.tools.len(), TOOLS_MAX);
        assert!(sum.tools.values().all(|readers| readers.len() == 1));
        let texts: Vec<_> = sum.searches.texts.keys().map(|text| &**text).collect();
        assert_eq!(texts, ["rate limits"]);
    }
}

//! The numbers of one site on one day, as the store keeps them: JSON of a bounded size.
//!
//! Every process adds to the same document. After each addition the lists are cut to their bounds:
//! the entries with the highest counts stay, and [`LeftOut`] has the sum of the others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reader;
use super::received::LastBatch;

/// The version of the form.
const VERSION: u32 = 1;
/// How many pages a day has.
pub(super) const PAGES_MAX: usize = 2000;
/// How many files and skills a day has.
pub(super) const FILES_MAX: usize = 500;
/// How many texts of searches without result a day has.
pub(super) const TEXTS_MAX: usize = 200;
/// How many names of MCP clients a day has.
pub(super) const CLIENTS_MAX: usize = 64;

/// How many processes a day remembers.
pub(super) const WRITERS_MAX: usize = 64;

/// How often each kind of reader asked for something, by name.
pub(super) type Readers = BTreeMap<Box<str>, u64>;

/// The numbers of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    version: u32,
    /// Pages, by path.
    #[serde(default)]
    pub(super) pages: BTreeMap<Box<str>, Page>,
    /// Files for agents, by path.
    #[serde(default)]
    pub(super) files: BTreeMap<Box<str>, Readers>,
    /// Skills, by name.
    #[serde(default)]
    pub(super) skills: BTreeMap<Box<str>, Readers>,
    /// What MCP clients called, by the name of the tool.
    #[serde(default)]
    pub(super) tools: BTreeMap<Box<str>, Readers>,
    /// Searches.
    #[serde(default)]
    pub(super) searches: Searches,
    /// Counts that have no entry in the lists.
    #[serde(default)]
    pub(super) left_out: LeftOut,
    /// The last batch of each edge that was added, by the name of the edge.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) batches: BTreeMap<Box<str>, LastBatch>,
    /// The last addition of each process to this document, by the life of the process.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) writers: BTreeMap<Box<str>, u64>,
}

/// The numbers of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Page {
    /// Who asked for its HTML.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) html: Readers,
    /// Who asked for its Markdown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) markdown: Readers,
    /// How many readers found it helpful.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) yes: u64,
    /// How many did not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) no: u64,
}

/// The searches of a day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Searches {
    /// How many there were.
    #[serde(default)]
    pub(super) asked: u64,
    /// How many of them found nothing.
    #[serde(default)]
    pub(super) empty: u64,
    /// The texts that found nothing and were asked more than once.
    #[serde(default)]
    pub(super) texts: BTreeMap<Box<str>, u64>,
}

/// Counts that have no entry in the lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftOut {
    /// Requests and votes for pages, files and skills that had no place.
    #[serde(default)]
    pub(super) requests: u64,
    /// Searches without result whose text had no place or must not be kept.
    #[serde(default)]
    pub(super) searches: u64,
    /// Calls of MCP clients whose name had no place; they are counted as other agents.
    #[serde(default)]
    pub(super) clients: u64,
}

impl Default for Document {
    fn default() -> Self {
        Self {
            version: VERSION,
            pages: BTreeMap::new(),
            files: BTreeMap::new(),
            skills: BTreeMap::new(),
            tools: BTreeMap::new(),
            searches: Searches::default(),
            left_out: LeftOut::default(),
            batches: BTreeMap::new(),
            writers: BTreeMap::new(),
        }
    }
}

/// Why stored bytes are not a document.
#[derive(Debug, thiserror::Error)]
pub enum InvalidDocument {
    /// A newer program wrote it.
    #[error("it has version {0}; this program reads version {VERSION}")]
    Newer(u32),
    /// It is not JSON of this form.
    #[error("it is damaged")]
    Damaged(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

// === impl Document ===

impl Document {
    /// Reads the stored form.
    ///
    /// # Errors
    ///
    /// [`InvalidDocument`].
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidDocument> {
        let Version { version } = serde_json::from_slice(bytes)?;
        match version {
            VERSION => Ok(serde_json::from_slice(bytes)?),
            other => Err(InvalidDocument::Newer(other)),
        }
    }

    /// Reads it from a value of JSON.
    pub(super) fn of(value: Value) -> Result<Self, InvalidDocument> {
        let Version { version } = Version::deserialize(&value)?;
        match version {
            VERSION => Ok(serde_json::from_value(value)?),
            other => Err(InvalidDocument::Newer(other)),
        }
    }

    /// Returns the stored form.
    #[must_use]
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    /// Returns whether nothing was counted.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds the numbers of a process; returns `false` if this addition was made before.
    ///
    /// `life` begins with the time at which the process started. When there are too many processes,
    /// the document forgets the oldest process.
    pub(super) fn add_once(&mut self, life: &str, addition: u64, more: Self) -> bool {
        if self.writers.get(life).is_some_and(|last| addition <= *last) {
            return false;
        }
        self.writers.insert(life.into(), addition);
        self.add(more);
        true
    }

    /// Adds the numbers of another document, and cuts the lists to their bounds.
    pub(super) fn add(&mut self, other: Self) {
        for (path, page) in other.pages {
            let sum = self.pages.entry(path).or_default();
            add(&mut sum.html, page.html);
            add(&mut sum.markdown, page.markdown);
            sum.yes += page.yes;
            sum.no += page.no;
        }
        for (sums, more) in [
            (&mut self.files, other.files),
            (&mut self.skills, other.skills),
            (&mut self.tools, other.tools),
        ] {
            for (name, readers) in more {
                add(sums.entry(name).or_default(), readers);
            }
        }
        self.searches.asked += other.searches.asked;
        self.searches.empty += other.searches.empty;
        add(&mut self.searches.texts, other.searches.texts);
        self.left_out.add(other.left_out);
        self.bound();
    }

    /// Raises each count to that of another document, if that is larger, and cuts the lists to
    /// their bounds.
    pub(super) fn raise(&mut self, other: Self) {
        for (path, page) in other.pages {
            let there = self.pages.entry(path).or_default();
            raise(&mut there.html, page.html);
            raise(&mut there.markdown, page.markdown);
            there.yes = there.yes.max(page.yes);
            there.no = there.no.max(page.no);
        }
        for (there, more) in [
            (&mut self.files, other.files),
            (&mut self.skills, other.skills),
            (&mut self.tools, other.tools),
        ] {
            for (name, readers) in more {
                raise(there.entry(name).or_default(), readers);
            }
        }
        self.searches.asked = self.searches.asked.max(other.searches.asked);
        self.searches.empty = self.searches.empty.max(other.searches.empty);
        raise(&mut self.searches.texts, other.searches.texts);
        self.left_out.raise(other.left_out);
        for (edge, batch) in other.batches {
            let is_newer = self
                .batches
                .get(&edge)
                .is_none_or(|there| batch.is_after(there));
            if is_newer {
                self.batches.insert(edge, batch);
            }
        }
        for (life, addition) in other.writers {
            let there = self.writers.entry(life).or_default();
            *there = addition.max(*there);
        }
        self.bound();
    }

    fn bound(&mut self) {
        while self.writers.len() > WRITERS_MAX {
            self.writers.pop_first();
        }
        let LeftOut {
            requests,
            searches,
            clients,
        } = &mut self.left_out;
        *requests += keep(&mut self.pages, PAGES_MAX, Page::total);
        *requests += keep(&mut self.files, FILES_MAX, total);
        *requests += keep(&mut self.skills, FILES_MAX, total);
        *searches += keep(&mut self.searches.texts, TEXTS_MAX, |asked| *asked);
        let mut calls = Readers::new();
        for readers in self.tools.values() {
            add(&mut calls, readers.clone());
        }
        calls.remove(reader::OTHER);
        let all = calls.clone();
        let dropped = keep(&mut calls, CLIENTS_MAX, |count| *count);
        if dropped == 0 {
            return;
        }
        *clients += dropped;
        for readers in self.tools.values_mut() {
            let mut others = 0;
            readers.retain(|name, count| {
                let stays = !all.contains_key(name) || calls.contains_key(name);
                others += if stays { 0 } else { *count };
                stays
            });
            *readers.entry(reader::OTHER.into()).or_default() += others;
        }
    }
}

// === impl LeftOut ===

impl LeftOut {
    pub(super) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.searches += other.searches;
        self.clients += other.clients;
    }

    fn raise(&mut self, other: Self) {
        self.requests = self.requests.max(other.requests);
        self.searches = self.searches.max(other.searches);
        self.clients = self.clients.max(other.clients);
    }
}

// === impl Page ===

impl Page {
    /// Counts requests and votes.
    #[must_use]
    pub(super) fn total(&self) -> u64 {
        total(&self.html) + total(&self.markdown) + self.yes + self.no
    }
}

/// Counts the requests of all readers.
#[must_use]
pub(super) fn total(readers: &Readers) -> u64 {
    readers.values().sum()
}

/// Adds counts to others of the same names.
pub(super) fn add(sums: &mut Readers, more: Readers) {
    for (name, count) in more {
        *sums.entry(name).or_default() += count;
    }
}

/// Raises counts to others of the same names.
fn raise(counts: &mut Readers, others: Readers) {
    for (name, count) in others {
        let there = counts.entry(name).or_default();
        *there = count.max(*there);
    }
}

/// Drops the entries with the smallest counts. Returns the sum of their counts.
fn keep<V>(entries: &mut BTreeMap<Box<str>, V>, max: usize, count: impl Fn(&V) -> u64) -> u64 {
    if entries.len() <= max {
        return 0;
    }
    let mut order: Vec<_> = entries.iter().map(|(name, v)| (count(v), name)).collect();
    order.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let dropped: Vec<Box<str>> = order[max..]
        .iter()
        .map(|(_, name)| (*name).clone())
        .collect();
    let sum = order[max..].iter().map(|(count, _)| count).sum();
    for name in &dropped {
        entries.remove(name);
    }
    sum
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readers(counts: &[(&str, u64)]) -> Readers {
        let counts = counts.iter().map(|(name, count)| ((*name).into(), *count));
        counts.collect()
    }

    #[test]
    fn an_addition_of_a_process_counts_once_and_the_newest_processes_are_remembered() {
        let mut day = Document::default();
        let asked = || Document {
            searches: Searches {
                asked: 1,
                ..Searches::default()
            },
            ..Document::default()
        };
        for (life, addition, is_new) in [("a", 1, true), ("a", 1, false), ("a", 2, true)] {
            assert_eq!(day.add_once(life, addition, asked()), is_new);
        }
        for life in 0..WRITERS_MAX {
            assert!(day.add_once(&format!("b{life:02}"), 7, asked()));
        }
        assert_eq!(day.searches.asked, 2 + WRITERS_MAX as u64);
        let lives: Vec<&str> = day.writers.keys().map(|life| &**life).collect();
        assert_eq!((lives.len(), lives[0]), (WRITERS_MAX, "b00"));
    }

    #[test]
    fn documents_of_several_processes_add_up() {
        let one = |text: &str| {
            let mut document = Document::default();
            let page = document.pages.entry("/a".into()).or_default();
            page.html = readers(&[("browsers", 2)]);
            page.yes = 1;
            document.searches.empty = 1;
            document.searches.texts = readers(&[(text, 2)]);
            document
        };
        let mut sum = Document::parse(&one("x").to_bytes()).unwrap();
        sum.add(one("y"));
        assert_eq!(sum.pages["/a"].html, readers(&[("browsers", 4)]));
        assert_eq!((sum.pages["/a"].yes, sum.searches.empty), (2, 2));
        assert_eq!(sum.searches.texts, readers(&[("x", 2), ("y", 2)]));
        assert!(Document::default().is_empty() && !sum.is_empty());
    }

    #[test]
    fn a_full_document_keeps_what_was_counted_most() {
        let mut document = Document::default();
        for number in 0..PAGES_MAX as u64 + 10 {
            let page = Page {
                html: readers(&[("browsers", number + 1)]),
                ..Page::default()
            };
            document.pages.insert(format!("/{number}").into(), page);
        }
        let mut sum = Document::default();
        sum.add(document);
        assert_eq!(sum.pages.len(), PAGES_MAX);
        assert_eq!(sum.left_out.requests, (1..=10).sum::<u64>());
        assert!(!sum.pages.contains_key("/9") && sum.pages.contains_key("/10"));
    }

    #[test]
    fn names_of_clients_without_a_place_are_other_agents() {
        let mut more = Document::default();
        for number in 0..CLIENTS_MAX as u64 + 5 {
            for tool in ["fetch", "search"] {
                let tool = more.tools.entry(tool.into()).or_default();
                tool.insert(format!("agent {number}").into(), number + 1);
            }
        }
        let calls: u64 = more.tools.values().map(total).sum();
        let mut sum = Document::default();
        sum.add(more);
        assert_eq!(sum.left_out.clients, 2 * (1..=5).sum::<u64>());
        assert_eq!(sum.tools.values().map(total).sum::<u64>(), calls);
        for readers in sum.tools.values() {
            assert_eq!(readers.len(), CLIENTS_MAX + 1);
            assert_eq!(readers[reader::OTHER], 15);
        }
    }

    #[test]
    fn a_document_of_a_newer_program_is_not_read() {
        let newer = br#"{"version":2,"pages":[]}"#;
        let why = Document::parse(newer).unwrap_err();
        assert!(matches!(why, InvalidDocument::Newer(2)), "{why}");
        let why = Document::parse(b"{").unwrap_err();
        assert!(matches!(why, InvalidDocument::Damaged(_)), "{why}");
    }
}

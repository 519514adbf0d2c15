//! The counts of one site in this process, since they were last written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use foldhash::fast::RandomState;

use super::document::{Document, LeftOut};
use super::reader::{self, Reader};
use super::table::{Budget, Kind, Table};
use super::text;
use crate::search::Question;

/// How many texts of searches are in memory.
const TEXTS_MAX: usize = 500;
/// How many pairs of a tool and a client are in memory.
const CALLS_MAX: usize = 256;
/// How many pages with votes are in memory.
const VOTED_MAX: usize = 1000;
/// How often a text is asked before it is written.
const ASKED_MIN: u64 = 2;

/// The counts of a site. Requests add to them, and a [`Writer`](super::Writer) takes them.
///
/// Requests for pages and files are counted without a lock. The others are seldom, or wait for a
/// lock anyway.
#[derive(Debug)]
pub struct SiteNumbers {
    /// Made by the first request of a day.
    table: ArcSwapOption<Table>,
    rest: Mutex<Option<Box<Rest>>>,
    budget: Arc<Budget>,
}

/// The counts that a lock protects.
#[derive(Debug, Default)]
struct Rest {
    calls: HashMap<(&'static str, Box<str>), u64, RandomState>,
    votes: HashMap<Box<str>, [u64; 2], RandomState>,
    asked: u64,
    empty: u64,
    texts: HashMap<Box<str>, Text, RandomState>,
    left_out: LeftOut,
}

/// A text that found nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Text {
    /// How often it was asked since the day began.
    asked: u64,
    /// How much of this was taken already.
    taken: u64,
}

// === impl SiteNumbers ===

impl SiteNumbers {
    /// Makes empty counts.
    #[must_use]
    pub fn new(budget: Arc<Budget>) -> Self {
        Self {
            table: ArcSwapOption::empty(),
            rest: Mutex::default(),
            budget,
        }
    }

    /// Counts a request for a page, by its path below the base path, as HTML or as Markdown.
    /// Nothing is allocated, and no lock is taken, except for the first request of a name on a day.
    pub fn page(&self, path: &str, is_markdown: bool, reader: Reader) {
        let kind = if is_markdown {
            Kind::Markdown
        } else {
            Kind::Html
        };
        self.count(kind, path, reader);
    }

    /// Counts a request for a file for agents, by its path.
    pub fn file(&self, path: &str, reader: Reader) {
        self.count(Kind::File, path, reader);
    }

    /// Counts a request for the file of a skill, by its slug.
    pub fn skill(&self, slug: &str, reader: Reader) {
        self.count(Kind::Skill, slug, reader);
    }

    fn count(&self, kind: Kind, name: &str, reader: Reader) {
        if let Some(table) = &*self.table.load() {
            return table.count(kind, name, reader, &self.budget);
        }
        let new = Arc::new(Table::default());
        // Another thread may have been first.
        self.table
            .rcu(|table| Some(table.clone().unwrap_or_else(|| Arc::clone(&new))));
        if let Some(table) = &*self.table.load() {
            table.count(kind, name, reader, &self.budget);
        }
    }

    /// Counts a search and how many results it had; a question for the next page of results is no
    /// search. A text without results is kept if it was asked again on the same day, and if it can
    /// be kept at all ([`text`]).
    pub fn search(&self, question: &Question<'_>, results: usize) {
        if question.skip > 0 {
            return;
        }
        let mut rest = self.rest();
        let rest = rest.get_or_insert_default();
        rest.asked += 1;
        if results > 0 {
            return;
        }
        rest.empty += 1;
        let Some(text) = text::searched(question.text) else {
            rest.left_out.searches += 1;
            return;
        };
        if let Some(known) = rest.texts.get_mut(&*text) {
            known.asked += 1;
            return;
        }
        if rest.texts.len() >= TEXTS_MAX {
            rest.forget();
        }
        if rest.texts.len() >= TEXTS_MAX {
            rest.left_out.searches += 1;
            return;
        }
        let first = Text { asked: 1, taken: 0 };
        rest.texts.insert(text.into(), first);
    }

    /// Counts a call of an MCP client: the tool, and the name of the client. A client without a
    /// name counts as the kind `reader`.
    pub fn call(&self, tool: &'static str, client: Option<&str>, reader: Reader) {
        let name = match client {
            Some(name) if text::is_name(name) => name,
            Some(_other) => reader::OTHER,
            None => reader.name(),
        };
        let mut rest = self.rest();
        let rest = rest.get_or_insert_default();
        if let Some(count) = rest.calls.get_mut(&(tool, name.into())) {
            *count += 1;
            return;
        }
        let has_place = rest.calls.len() < CALLS_MAX || name == reader::OTHER;
        rest.left_out.clients += u64::from(!has_place);
        let name = if has_place { name } else { reader::OTHER };
        *rest.calls.entry((tool, name.into())).or_default() += 1;
    }

    /// Counts a vote on a page, by its path below the base path.
    pub fn vote(&self, path: &str, is_helpful: bool) {
        let mut rest = self.rest();
        let rest = rest.get_or_insert_default();
        if rest.votes.len() >= VOTED_MAX && !rest.votes.contains_key(path) {
            rest.left_out.requests += 1;
            return;
        }
        let votes = rest.votes.entry(path.into()).or_default();
        votes[usize::from(is_helpful)] += 1;
    }

    /// Returns whether there may be counts to take.
    #[must_use]
    pub fn has_counts(&self) -> bool {
        self.table.load().is_some() || self.rest().is_some()
    }

    /// Takes the counts. `ends_day` also forgets the names and texts of the day.
    pub(super) fn take(&self, ends_day: bool) -> Document {
        let mut document = Document::default();
        let table = match ends_day {
            true => self.table.swap(None),
            false => self.table.load_full(),
        };
        if let Some(table) = table {
            take_table(&table, &mut document);
            if ends_day {
                self.budget.give(table.len());
            }
        }
        let mut rest = self.rest();
        if let Some(rest) = &mut *rest {
            rest.take(&mut document);
        }
        if ends_day {
            *rest = None;
        }
        document
    }

    fn rest(&self) -> MutexGuard<'_, Option<Box<Rest>>> {
        // Every change is complete in itself.
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SiteNumbers {
    fn drop(&mut self) {
        if let Some(table) = self.table.swap(None) {
            self.budget.give(table.len());
        }
    }
}

fn take_table(table: &Table, document: &mut Document) {
    let left_out = table.take(|kind, name, reader, count| {
        let readers = match kind {
            Kind::Html => &mut document.pages.entry(name.into()).or_default().html,
            Kind::Markdown => &mut document.pages.entry(name.into()).or_default().markdown,
            Kind::File => document.files.entry(name.into()).or_default(),
            Kind::Skill => document.skills.entry(name.into()).or_default(),
        };
        readers.insert(reader.into(), count);
    });
    document.left_out.requests += left_out;
}

// === impl Rest ===

impl Rest {
    /// Makes room for other texts: removes the texts that were asked once, or else the texts that
    /// are in the store already.
    fn forget(&mut self) {
        let before = self.texts.len();
        self.texts.retain(|_, text| text.asked >= ASKED_MIN);
        self.left_out.searches += (before - self.texts.len()) as u64;
        if self.texts.len() == before {
            self.texts.retain(|_, text| text.taken < text.asked);
        }
    }

    fn take(&mut self, document: &mut Document) {
        for ((tool, client), count) in self.calls.drain() {
            let readers = document.tools.entry(tool.into()).or_default();
            *readers.entry(client).or_default() += count;
        }
        for (path, [no, yes]) in self.votes.drain() {
            let page = document.pages.entry(path).or_default();
            page.yes += yes;
            page.no += no;
        }
        let searches = &mut document.searches;
        searches.asked += std::mem::take(&mut self.asked);
        searches.empty += std::mem::take(&mut self.empty);
        for (text, count) in &mut self.texts {
            if count.asked >= ASKED_MIN && count.asked > count.taken {
                searches
                    .texts
                    .insert(text.clone(), count.asked - count.taken);
                count.taken = count.asked;
            }
        }
        document.left_out.add(std::mem::take(&mut self.left_out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> SiteNumbers {
        SiteNumbers::new(Arc::default())
    }

    #[test]
    fn a_text_is_written_when_it_was_asked_again() {
        let numbers = numbers();
        numbers.search(&Question::new("Kubernetes  Operator"), 0);
        numbers.search(&Question::new("found"), 3);
        let first = numbers.take(false);
        assert_eq!((first.searches.asked, first.searches.empty), (2, 1));
        assert!(first.searches.texts.is_empty());
        numbers.search(&Question::new("kubernetes operator"), 0);
        let second = numbers.take(false);
        assert_eq!(second.searches.texts["kubernetes operator"], 2);
        numbers.search(&Question::new("kubernetes operator"), 0);
        let third = numbers.take(false);
        assert_eq!(third.searches.texts["kubernetes operator"], 1);
        numbers.search(&Question::new("jane@example.com"), 0);
        numbers.search(&Question::new("jane@example.com"), 0);
        let fourth = numbers.take(true);
        assert_eq!((fourth.searches.empty, fourth.left_out.searches), (2, 2));
        assert!(fourth.searches.texts.is_empty());
        assert!(!numbers.has_counts());
    }

    #[test]
    fn a_client_that_invents_texts_and_names_fills_nothing() {
        let numbers = numbers();
        for number in 0..20_000_u32 {
            let letters: String = number
                .to_string()
                .bytes()
                .map(|digit| char::from(digit - b'0' + b'a'))
                .collect();
            numbers.search(&Question::new(&letters), 0);
            numbers.call("search", Some(&letters), Reader::of(""));
            numbers.vote(&letters, false);
        }
        for _ in 0..3 {
            numbers.search(&Question::new("a real question"), 0);
        }
        {
            let rest = numbers.rest();
            let rest = rest.as_ref().unwrap();
            assert!(rest.texts.len() <= TEXTS_MAX);
            assert!(rest.calls.len() <= CALLS_MAX + 1);
            assert!(rest.votes.len() <= VOTED_MAX);
        }
        let document = numbers.take(false);
        assert_eq!(document.searches.empty, 20_003);
        assert_eq!(document.searches.texts["a real question"], 3);
        assert_eq!(document.searches.texts.len(), 1);
        let calls: u64 = document.tools["search"].values().sum();
        assert_eq!(calls, 20_000);
        assert_eq!(document.left_out.clients, 20_000 - CALLS_MAX as u64);
        let votes: u64 = document.pages.values().map(|page| page.no).sum();
        assert_eq!(votes + document.left_out.requests, 20_000);
    }
}

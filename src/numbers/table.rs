//! Counts of pages and files by kind of reader, without locks.
//!
//! The table has levels of slots. A name belongs to a few slots of each level, which its hash
//! chooses; it takes the first free one and keeps it. So a name is found where it was put, by any
//! thread, and counting it is an atomic addition. If all its slots are taken by others, it is left
//! out, and the table counts that.

use std::hash::BuildHasher as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use foldhash::fast::RandomState;

use super::reader::{self, Reader};

/// How many slots each level has. A level is allocated when it is needed.
const LEVELS: [usize; 3] = [64, 1024, 8192];
/// How many slots of a level a name may have.
const PROBES: usize = 8;
/// The longest name, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 256;
/// How many names all sites of a process have at most; one takes about 300 bytes.
const NAMES_MAX: usize = 200_000;

/// The kind of thing that a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// The HTML of a page.
    Html,
    /// The Markdown of a page.
    Markdown,
    /// A file for agents.
    File,
    /// The file of a skill.
    Skill,
}

/// How many names the tables of all sites have.
#[derive(Debug, Default)]
pub struct Budget(AtomicUsize);

/// The counts of one site.
#[derive(Debug, Default)]
pub(super) struct Table {
    levels: [OnceLock<Box<[Slot]>>; LEVELS.len()],
    hasher: RandomState,
    left_out: AtomicU64,
}

/// A place for a name; once taken, it stays so.
type Slot = OnceLock<Box<Entry>>;

#[derive(Debug)]
struct Entry {
    kind: Kind,
    name: Box<str>,
    counts: [AtomicU32; reader::COUNT],
}

// === impl Budget ===

impl Budget {
    fn take(&self) -> bool {
        let taken = self.0.fetch_add(1, Ordering::Relaxed);
        let fits = taken < NAMES_MAX;
        if !fits {
            self.give(1);
        }
        fits
    }

    pub(super) fn give(&self, names: usize) {
        self.0.fetch_sub(names, Ordering::Relaxed);
    }
}

// === impl Table ===

impl Table {
    /// Counts one request.
    pub(super) fn count(&self, kind: Kind, name: &str, reader: Reader, budget: &Budget) {
        if let Some(entry) = self.entry(kind, name, budget) {
            entry.counts[reader.index()].fetch_add(1, Ordering::Relaxed);
        } else {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn entry(&self, kind: Kind, name: &str, budget: &Budget) -> Option<&Entry> {
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        let is_same = |entry: &&Entry| entry.kind == kind && *entry.name == *name;
        let hash = self.hasher.hash_one((kind, name));
        // The position needs only the low bits.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "any bits of a hash will do"
        )]
        let start = hash as usize;
        for (level, size) in self.levels.iter().zip(LEVELS) {
            let slots =
                level.get_or_init(|| std::iter::repeat_with(OnceLock::new).take(size).collect());
            for probe in 0..PROBES {
                let slot = &slots[start.wrapping_add(probe) % size];
                if slot.get().is_none() {
                    if !budget.take() {
                        return None;
                    }
                    let entry = Box::new(Entry::new(kind, name));
                    if slot.set(entry).is_err() {
                        // Another thread was first, perhaps with the same name.
                        budget.give(1);
                    }
                }
                if let Some(entry) = slot.get().map(|entry| &**entry).filter(is_same) {
                    return Some(entry);
                }
            }
        }
        None
    }

    /// Takes all counts, and calls `each` with every count that is not 0. Returns how many requests
    /// had no entry.
    pub(super) fn take(&self, mut each: impl FnMut(Kind, &str, &'static str, u64)) -> u64 {
        for entry in self.entries() {
            for (count, reader) in entry.counts.iter().zip(Reader::all()) {
                // Most counts are 0. Reading first avoids invalidating the cache line of other
                // cores.
                if count.load(Ordering::Relaxed) > 0 {
                    let count = count.swap(0, Ordering::Relaxed);
                    each(entry.kind, &entry.name, reader, u64::from(count));
                }
            }
        }
        self.left_out.swap(0, Ordering::Relaxed)
    }

    /// Counts the names.
    pub(super) fn len(&self) -> usize {
        self.entries().count()
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        let levels = self.levels.iter().filter_map(OnceLock::get);
        let slots = levels.flat_map(|slots| slots.iter());
        slots.filter_map(OnceLock::get).map(|entry| &**entry)
    }
}

// === impl Entry ===

impl Entry {
    fn new(kind: Kind, name: &str) -> Self {
        Self {
            kind,
            name: name.into(),
            counts: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn threads_count_the_same_names_without_losing_one() {
        let (table, budget) = (Table::default(), Budget::default());
        let (browser, agent) = (Reader::of("Firefox/1 Firefox"), Reader::of("GPTBot/1"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..20_000 {
                        let name = format!("/page-{}", number % 200);
                        let reader = if number % 2 == 0 { browser } else { agent };
                        table.count(Kind::Html, &name, reader, &budget);
                    }
                });
            }
        });
        let mut counts = BTreeMap::new();
        let left_out = table.take(|kind, name, reader, count| {
            assert_eq!(kind, Kind::Html);
            counts.insert((name.to_owned(), reader), count);
        });
        assert_eq!(left_out, 0);
        assert_eq!(counts.len(), 200);
        assert!(counts.values().all(|count| *count == 400), "{counts:?}");
        assert_eq!(budget.0.load(Ordering::Relaxed), 200);
        table.take(|_, name, _, _| panic!("{name} was taken twice"));
    }

    #[test]
    fn a_full_table_says_how_many_requests_it_left_out() {
        let (table, budget) = (Table::default(), Budget::default());
        let reader = Reader::of("");
        for number in 0..50_000 {
            table.count(Kind::File, &number.to_string(), reader, &budget);
        }
        table.count(Kind::File, &"n".repeat(NAME_BYTES_MAX + 1), reader, &budget);
        let mut counted = 0;
        let left_out = table.take(|_, _, _, count| counted += count);
        assert_eq!(counted + left_out, 50_001);
        assert_eq!(counted, table.len() as u64);
        assert!(table.len() <= LEVELS.iter().sum::<usize>());
        assert!(table.len() > 4096, "{}", table.len());
    }

    #[test]
    fn all_sites_together_have_a_bound() {
        let budget = Budget(AtomicUsize::new(NAMES_MAX - 1));
        let table = Table::default();
        let reader = Reader::of("");
        table.count(Kind::Html, "/first", reader, &budget);
        table.count(Kind::Html, "/second", reader, &budget);
        table.count(Kind::Html, "/first", reader, &budget);
        assert_eq!(table.len(), 1);
        assert_eq!(table.take(|_, _, _, count| assert_eq!(count, 2)), 1);
    }
}

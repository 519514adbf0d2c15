//! Does the search find the right page, how fast, and how large is its index?
//!
//! Each page has a description that its author wrote. The bench leaves the descriptions out of the
//! index and asks for each of them: its page must be found. The mean of the reciprocal ranks (MRR)
//! is shown beside the MRR of FTS5, the full-text search of SQLite, with the Porter stemmer and the
//! better of two weights of the title. Each page is asked in its own language and version. FTS5
//! knows no `boost`, so the boosts of pages are left out too.
//!
//! `questions.tsv` has forty questions that people ask of these sites, with the pages that answer
//! them. They were written before the first measurement.
//!
//! The bundled documentation is always measured, other checkouts if they are named:
//!
//! ```sh
//! cargo bench --bench search -- ~/checkouts/upstash+docs ~/checkouts/cosmos+docs
//! ```

#![expect(clippy::print_stdout, reason = "its figures are its purpose")]

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use waypost::build::{Articles, Input, Options, Preview, build};
use waypost::docs::navigation::language::{self, Code};
use waypost::docs::navigation::tree::Page;
use waypost::release::site::{SEARCH_FILE, page_file};
use waypost::search::{Index, LIMIT_MAX, Question, SearchResult, Storage};
use waypost::source::{Tree, TreePath, directory};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many questions of fifteen words the measurement of the time asks.
const TIMED: usize = 1000;
const WORDS: usize = 15;
const QUESTIONS: &str = include_str!("questions.tsv");

/// A page with the description that was left out.
struct Described {
    path: String,
    description: String,
    language: Option<String>,
    version: Option<String>,
}

/// A site, its index, and the texts of its pages.
struct Site {
    name: String,
    index: Index,
    file: IndexFile,
    texts: HashMap<String, Bytes>,
    titles: HashMap<String, String>,
    described: Vec<Described>,
    /// How long the index took to write, and the whole build, in which pages are written on all
    /// cores.
    written: Duration,
    built: Duration,
}

/// An index as the edge reads it.
struct IndexFile {
    file: File,
    length: u64,
}

impl Storage for IndexFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let length = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes.into())
    }
}

/// Removes the description and the boost from the frontmatter of a page: their lines, and the lines
/// that continue them.
fn undescribed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut fences = 0;
    let mut is_left_out = false;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            fences += 1;
        }
        let continues = line.starts_with([' ', '\t']) || line.trim().is_empty();
        let begins = ["description:", "boost:"].map(|key| line.starts_with(key));
        is_left_out = fences == 1 && (begins.contains(&true) || is_left_out && continues);
        if !is_left_out {
            out.push_str(line);
        }
    }
    out
}

fn open(path: &Path) -> Tree {
    let (root, docs) = directory::locate(path, None).expect("a checkout");
    let (tree, _) = directory::open(&root, &docs, directory::Limits::default()).expect("readable");
    tree
}

impl Site {
    fn new(path: &Path) -> Self {
        let names = path.iter().filter_map(|name| name.to_str());
        let is_asked = |name: &&str| QUESTIONS.contains(&format!("\n{name}\t"));
        let name = names.clone().find(is_asked).or(names.clone().next_back());
        let options = Options::default();
        let input = Input::read(open(path), &options);
        let mut described = Vec::new();
        let mut changed: Vec<(TreePath, Bytes)> = Vec::new();
        for (_, page) in input.docs.navigation.pages() {
            let Some(written) = input.docs.pages.get(&page.slug) else {
                continue;
            };
            changed.push((written.path.clone(), undescribed(&written.text).into()));
            if let Some(description) = &written.meta.description
                && page.is_listed()
            {
                described.push(asked(page, description));
            }
        }
        let input = Input::read(open(path).with_changed(changed), &options);
        let pages = input.docs.navigation.pages();
        let listed = pages.filter(|(_, page)| page.is_listed());
        let listed: Vec<(String, String)> = listed
            .map(|(_, page)| (path_of(page), page.title.to_string()))
            .collect();
        let pages = input.docs.navigation.pages();
        let public = pages.filter(|(_, page)| page.public);
        let public: Vec<String> = public.map(|(_, page)| path_of(page)).collect();
        let began = Instant::now();
        drop(build(&input, &options));
        let built = began.elapsed();
        let preview = Preview::new(input, &options, Articles::default());
        let mut texts = HashMap::new();
        for (path, _) in &listed {
            let (text, _) = preview.file(&page_file(path, "md")).expect("a page");
            texts.insert(path.clone(), text);
        }
        // The index has pages that are not listed, too. Their articles are not part of the indexing.
        for path in &public {
            preview.file(&page_file(path, "md")).expect("a page");
        }
        let began = Instant::now();
        let (bytes, _) = preview.file(SEARCH_FILE).expect("an index");
        let written = began.elapsed();
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(&bytes, 0).expect("write the index");
        let file = IndexFile {
            file,
            length: bytes.len() as u64,
        };
        Self {
            name: name.unwrap_or("site").to_owned(),
            index: Index::open(&file).expect("an index"),
            file,
            texts,
            titles: listed.into_iter().collect(),
            described,
            written,
            built,
        }
    }

    fn search(&self, question: &Question<'_>) -> SearchResult {
        let texts = |path: &str, range: Range<u64>| {
            let text = self.texts.get(path)?;
            let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(text.len());
            Some(text.slice(place(range.start)..place(range.end)))
        };
        let found = self.index.search(&self.file, &texts, question);
        found.expect("the index is not damaged")
    }

    /// Returns the ranks of the described pages: 0 is the first.
    fn ranks(&self) -> Vec<Option<usize>> {
        let rank = |of: &Described| {
            let found = self.search(&Question {
                limit: LIMIT_MAX,
                language: of.language.as_deref(),
                version: of.version.as_deref(),
                ..Question::new(&of.description)
            });
            found.hits.iter().position(|hit| hit.path == of.path)
        };
        self.described.iter().map(rank).collect()
    }

    /// Returns the same for FTS5, with a weight of the title.
    fn ranks_of_fts(&self, weight: f32) -> Vec<Option<usize>> {
        let database = rusqlite::Connection::open_in_memory().expect("SQLite");
        let mut tables: HashMap<(Option<String>, Option<String>), usize> = HashMap::new();
        // A page that has no description is in the table of its part too.
        let part_of = |path: &str| {
            let known = self.described.iter().find(|page| page.path == path);
            known.map(|page| (page.language.clone(), page.version.clone()))
        };
        let first = self.described.first();
        let default = first.map(|page| (page.language.clone(), page.version.clone()));
        for (path, text) in &self.texts {
            let part = part_of(path).or(default.clone()).unwrap_or_default();
            let next = tables.len();
            let table = *tables.entry(part).or_insert_with(|| {
                let create = format!(
                    "CREATE VIRTUAL TABLE part{next} USING fts5(path UNINDEXED, title, body, \
                     tokenize = 'porter unicode61')"
                );
                database.execute(&create, ()).expect("a table");
                next
            });
            let text = String::from_utf8_lossy(text);
            let insert = format!("INSERT INTO part{table} VALUES (?, ?, ?)");
            let title = self.titles[path].as_str();
            let row = (path.as_str(), title, text.as_ref());
            database.execute(&insert, row).expect("a row");
        }
        let rank = |of: &Described| {
            let table = tables[&(of.language.clone(), of.version.clone())];
            let words = of.description.split(|c: char| !c.is_alphanumeric());
            let words: Vec<String> = words
                .filter(|word| !word.is_empty())
                .map(|word| format!("\"{word}\""))
                .collect();
            let select = format!(
                "SELECT path FROM part{table} WHERE part{table} MATCH ? \
                 ORDER BY bm25(part{table}, 0, {weight}, 1) LIMIT {LIMIT_MAX}"
            );
            let mut select = database.prepare_cached(&select).expect("a query");
            let rows = select.query_map([words.join(" OR ")], |row| row.get::<_, String>(0));
            let mut rows = rows.ok()?.flatten();
            rows.position(|path| path == of.path)
        };
        self.described.iter().map(rank).collect()
    }

    /// Asks the questions of the file; returns how many were answered among the first one, three,
    /// and ten, and prints those that were not.
    fn judged(&self) -> [usize; 4] {
        let mut counts = [0; 4];
        for line in QUESTIONS.lines().filter(|line| !line.starts_with('#')) {
            let mut columns = line.split('\t');
            let (site, text, expected) = (columns.next(), columns.next(), columns.next());
            let (Some(text), Some(expected)) = (text, expected) else {
                continue;
            };
            if site != Some(self.name.as_str()) {
                continue;
            }
            let found = self.search(&Question::new(text));
            let rank = match expected {
                "-" => found.hits.is_empty().then_some(0),
                pages => {
                    let is_one = |path: &str| {
                        let mut pages = pages.split('|');
                        pages.any(|page| page == path || page.strip_suffix("/index") == Some(path))
                    };
                    found.hits.iter().position(|hit| is_one(&hit.path))
                }
            };
            counts[3] += 1;
            for (count, least) in counts.iter_mut().zip([1, 3, 10]) {
                *count += usize::from(rank.is_some_and(|rank| rank < least));
            }
            if rank != Some(0) {
                let first = found.hits.iter().take(3).map(|hit| hit.path.as_str());
                let first: Vec<&str> = first.collect();
                println!(
                    "    {text:?}: place {:?} after {first:?}",
                    rank.map(|rank| rank + 1)
                );
            }
        }
        counts
    }

    /// Measures questions of fifteen words that occur in the pages.
    fn times(&self) -> Vec<Duration> {
        let mut texts: Vec<&Bytes> = self.texts.values().collect();
        texts.sort();
        let mut questions = Vec::new();
        for (number, text) in texts.iter().cycle().take(TIMED).enumerate() {
            let text = String::from_utf8_lossy(text);
            let words: Vec<&str> = text.split_whitespace().collect();
            let start = number * 7919 % words.len().saturating_sub(WORDS).max(1);
            questions.push(words[start..words.len().min(start + WORDS)].join(" "));
        }
        let time = |question: &String| {
            let began = Instant::now();
            std::hint::black_box(self.search(&Question::new(question)));
            began.elapsed()
        };
        let mut times: Vec<Duration> = questions.iter().map(time).collect();
        times.sort_unstable();
        times
    }
}

/// Returns the path of a page, without leading slash.
fn path_of(page: &Page) -> String {
    page.url.trim_start_matches('/').to_owned()
}

fn asked(page: &Page, description: &str) -> Described {
    let place = page.place.as_ref();
    let code = place.and_then(|place| place.language.as_deref());
    let language = code.and_then(|code| match language::parse(code) {
        Code::Listed(language) | Code::Alias(language, _) => Some(language),
        Code::Unknown => None,
    });
    Described {
        path: path_of(page),
        description: description.to_owned(),
        language: language.map(|language| language.tag.to_string()),
        version: place
            .and_then(|place| place.version.as_deref())
            .map(str::to_owned),
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn mrr(ranks: &[Option<usize>]) -> f64 {
    let reciprocal = ranks.iter().flatten().map(|rank| 1.0 / (rank + 1) as f64);
    reciprocal.sum::<f64>() / ranks.len().max(1) as f64
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn share(part: usize, of: usize) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}

fn main() {
    let demo = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/conf/demo/docs"));
    let named = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'));
    let sites = std::iter::once(demo).chain(named.map(PathBuf::from));
    let mut medians = Vec::new();
    let mut judged = [0; 4];
    for path in sites {
        let site = Site::new(&path);
        let texts: usize = site.texts.values().map(Bytes::len).sum();
        let length = usize::try_from(site.file.length).unwrap_or(usize::MAX);
        println!(
            "{}: {} pages, {:.2} MB; index {:.2} MB ({:.1} %), written in {:.0?}",
            site.name,
            site.texts.len(),
            share(texts, 100 << 20),
            share(length, 100 << 20),
            share(length, texts),
            site.written,
        );
        println!(
            "    indexing: {:.1} % of the build, which takes {:.2?}",
            100.0 * site.written.as_secs_f64() / site.built.as_secs_f64(),
            site.built,
        );
        println!("    {:?}", site.index.sizes());
        let began = Instant::now();
        let opened = Index::open(&site.file).expect("an index");
        let open = began.elapsed();
        let began = Instant::now();
        let texts = |_: &str, _: Range<u64>| None;
        let first = opened.search(&site.file, &texts, &Question::new("first"));
        std::hint::black_box(first.expect("an answer"));
        println!(
            "    open {open:.2?}, first question {:.2?}",
            began.elapsed()
        );
        let times = site.times();
        let of = |share: usize| times[(times.len() * share / 1000).min(times.len() - 1)];
        println!(
            "    {WORDS} words: p50 {:.2?}, p99 {:.2?}, most {:.2?}",
            of(500),
            of(990),
            of(1000)
        );
        let ranks = site.ranks();
        let fts = [1.0, 5.0].map(|weight| mrr(&site.ranks_of_fts(weight)));
        let first = |count: usize| ranks.iter().flatten().filter(|rank| **rank < count).count();
        println!(
            "    {} descriptions: MRR {:.3} (FTS5 {:.3} and {:.3}), first {:.0} %, first five {:.0} %",
            ranks.len(),
            mrr(&ranks),
            fts[0],
            fts[1],
            share(first(1), ranks.len()),
            share(first(5), ranks.len()),
        );
        medians.push(mrr(&ranks));
        let counts = site.judged();
        if counts[3] > 0 {
            println!(
                "    questions: {} first, {} in three, {} in ten, of {}",
                counts[0], counts[1], counts[2], counts[3]
            );
        }
        for (sum, count) in judged.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    // The bundled documentation is not one of the repositories.
    let mut medians = medians.split_off(1);
    medians.sort_by(f64::total_cmp);
    if let Some(median) = medians.get(medians.len() / 2) {
        println!("median of the repositories: MRR {median:.3}");
    }
    println!(
        "questions: {} first, {} in three, {} in ten, of {}",
        judged[0], judged[1], judged[2], judged[3]
    );
}

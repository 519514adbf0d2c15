//! The numbers of several days, as the admin API and the command line show them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::document::{Document, Page, Readers, add, total};
use super::reader;
use crate::clock::Day;
use crate::site::ProjectId;

/// How many rows of a list the table for people has.
const ROWS: usize = 20;
/// The widest name in the table, in characters.
const NAME_CHARACTERS_MAX: usize = 48;

/// The sum of several days, and the sums of each.
#[derive(Clone, Debug)]
pub struct Summary {
    project: ProjectId,
    first: Day,
    last: Day,
    days: Vec<DaySum>,
    sum: Document,
}

/// The sums of one day, or of one reader.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    html: u64,
    markdown: u64,
    files: u64,
    calls: u64,
}

#[derive(Clone, Copy, Debug)]
struct DaySum {
    day: Day,
    browsers: u64,
    sums: Sums,
    asked: u64,
    empty: u64,
    yes: u64,
    no: u64,
}

// === impl Summary ===

impl Summary {
    /// Sums the days from `first` to `last`.
    #[must_use]
    pub fn new(
        project: ProjectId,
        (first, last): (Day, Day),
        days: impl IntoIterator<Item = (Day, Document)>,
    ) -> Self {
        let mut sum = Document::default();
        let mut sums = Vec::new();
        for (day, document) in days {
            sums.push(DaySum::of(day, &document));
            sum.add(document);
        }
        Self {
            project,
            first,
            last,
            days: sums,
            sum,
        }
    }

    /// Returns the JSON of the admin API: of each list the `limit` greatest entries, of pages those
    /// after the first `skip`. Also returns whether there are more pages.
    #[must_use]
    pub fn to_json(&self, skip: usize, limit: usize) -> (Value, bool) {
        let pages = self.pages();
        let end = skip.saturating_add(limit);
        let page = |(path, page): &(&str, &Page)| {
            json!({
                "path": path,
                "html": total(&page.html),
                "markdown": total(&page.markdown),
                "yes": page.yes,
                "no": page.no,
                "readers": readers_json(&both(page)),
            })
        };
        let named = |name: &'static str, list: &BTreeMap<Box<str>, Readers>| -> Vec<Value> {
            let rows = ordered(list, total).into_iter().take(limit);
            rows.map(|(key, readers)| {
                json!({ name: key, "requests": total(readers), "readers": readers_json(readers) })
            })
            .collect()
        };
        let texts = ordered(&self.sum.searches.texts, |asked| *asked);
        let texts = texts.into_iter().take(limit);
        let texts: Vec<_> = texts
            .map(|(text, asked)| json!({ "text": text, "asked": asked }))
            .collect();
        let readers = self.readers();
        let readers = readers.iter().take(limit).map(|(name, sums)| {
            json!({
                "name": name,
                "html": sums.html,
                "markdown": sums.markdown,
                "files": sums.files,
                "calls": sums.calls,
            })
        });
        let value = json!({
            "project": self.project.as_str(),
            "from": self.first.to_string(),
            "to": self.last.to_string(),
            "days": self.days.iter().map(DaySum::json).collect::<Vec<_>>(),
            "readers": readers.collect::<Vec<_>>(),
            "searches": {
                "asked": self.sum.searches.asked,
                "empty": self.sum.searches.empty,
                "texts": texts,
            },
            "files": named("path", &self.sum.files),
            "skills": named("name", &self.sum.skills),
            "tools": named("name", &self.sum.tools),
            "left_out": self.sum.left_out,
            "pages": pages.iter().skip(skip).take(limit).map(page).collect::<Vec<_>>(),
        });
        (value, pages.len() > end)
    }

    /// Returns the numbers as tables for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = format!(
            "{}, {} to {} (days in UTC)\n",
            self.project, self.first, self.last
        );
        let Document {
            searches, left_out, ..
        } = &self.sum;
        if self.days.is_empty() {
            out += "\nNothing was counted.\n";
            return out;
        }
        let sums = Sums::of(&self.sum);
        let (yes, no) = votes(&self.sum);
        let lines = [
            ("pages read as HTML", sums.html),
            ("pages read as Markdown", sums.markdown),
            ("files for agents, skills", sums.files),
            ("calls of MCP tools", sums.calls),
            ("searches", searches.asked),
            ("  that found nothing", searches.empty),
            ("votes: helpful", yes),
            ("votes: not helpful", no),
        ];
        out.push('\n');
        for (name, count) in lines {
            line(&mut out, name, &[count]);
        }
        let pages = self.pages().into_iter().map(|(path, page)| {
            let counts = [total(&page.html), total(&page.markdown), page.yes, page.no];
            (path.to_owned(), counts.to_vec())
        });
        let pages: Vec<_> = pages.collect();
        table(
            &mut out,
            "Pages",
            &["HTML", "Markdown", "yes", "no"],
            &pages,
        );
        let readers = self.readers().into_iter().map(|(name, sums)| {
            let Sums {
                html,
                markdown,
                files,
                calls,
            } = sums;
            (name.to_owned(), vec![html, markdown, files, calls])
        });
        let readers: Vec<_> = readers.collect();
        table(
            &mut out,
            "Readers",
            &["HTML", "Markdown", "files", "MCP"],
            &readers,
        );
        let texts = ordered(&searches.texts, |asked| *asked).into_iter();
        let texts: Vec<_> = texts
            .map(|(text, asked)| (text.to_owned(), vec![*asked]))
            .collect();
        table(&mut out, "Searches that found nothing", &["asked"], &texts);
        let named = |list: &BTreeMap<Box<str>, Readers>| -> Vec<(String, Vec<u64>)> {
            let rows = ordered(list, total).into_iter();
            rows.map(|(name, readers)| (name.to_owned(), vec![total(readers)]))
                .collect()
        };
        table(
            &mut out,
            "Files for agents",
            &["requests"],
            &named(&self.sum.files),
        );
        table(&mut out, "Skills", &["requests"], &named(&self.sum.skills));
        table(&mut out, "MCP tools", &["calls"], &named(&self.sum.tools));
        let left_out = [
            ("requests and votes", left_out.requests),
            ("searches whose text is not kept", left_out.searches),
            ("calls whose client has no name here", left_out.clients),
        ];
        if left_out.iter().any(|(_, count)| *count > 0) {
            out += "\nNot in these lists\n";
            for (name, count) in left_out.iter().filter(|(_, count)| *count > 0) {
                line(&mut out, name, &[*count]);
            }
        }
        out
    }

    fn pages(&self) -> Vec<(&str, &Page)> {
        ordered(&self.sum.pages, Page::total)
    }

    fn readers(&self) -> Vec<(&str, Sums)> {
        let mut sums: BTreeMap<&str, Sums> = BTreeMap::new();
        for page in self.sum.pages.values() {
            for (name, count) in &page.html {
                sums.entry(name).or_default().html += count;
            }
            for (name, count) in &page.markdown {
                sums.entry(name).or_default().markdown += count;
            }
        }
        for readers in self.sum.files.values().chain(self.sum.skills.values()) {
            for (name, count) in readers {
                sums.entry(name).or_default().files += count;
            }
        }
        for readers in self.sum.tools.values() {
            for (name, count) in readers {
                sums.entry(name).or_default().calls += count;
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.total()));
        sums
    }
}

// === impl Sums ===

impl Sums {
    fn of(document: &Document) -> Self {
        let pages = document.pages.values();
        let files = document.files.values().chain(document.skills.values());
        Self {
            html: pages.clone().map(|page| total(&page.html)).sum(),
            markdown: pages.map(|page| total(&page.markdown)).sum(),
            files: files.map(total).sum(),
            calls: document.tools.values().map(total).sum(),
        }
    }

    fn total(&self) -> u64 {
        self.html + self.markdown + self.files + self.calls
    }
}

// === impl DaySum ===

impl DaySum {
    fn of(day: Day, document: &Document) -> Self {
        let (yes, no) = votes(document);
        let browsers = |page: &Page| -> u64 {
            let of = |readers: &Readers| readers.get(reader::BROWSERS).copied();
            [&page.html, &page.markdown]
                .into_iter()
                .filter_map(of)
                .sum()
        };
        Self {
            day,
            browsers: document.pages.values().map(browsers).sum(),
            sums: Sums::of(document),
            asked: document.searches.asked,
            empty: document.searches.empty,
            yes,
            no,
        }
    }

    fn json(&self) -> Value {
        let Self {
            day,
            browsers,
            sums,
            asked,
            empty,
            yes,
            no,
        } = self;
        json!({
            "day": day.to_string(),
            "html": sums.html,
            "markdown": sums.markdown,
            "browsers": browsers,
            "files": sums.files,
            "calls": sums.calls,
            "searches": asked,
            "empty_searches": empty,
            "yes": yes,
            "no": no,
        })
    }
}

fn votes(document: &Document) -> (u64, u64) {
    let pages = document.pages.values();
    pages.fold((0, 0), |(yes, no), page| (yes + page.yes, no + page.no))
}

/// Returns who asked for a page, in either form.
fn both(page: &Page) -> Readers {
    let mut readers = page.html.clone();
    add(&mut readers, page.markdown.clone());
    readers
}

fn readers_json(readers: &Readers) -> Value {
    let members = readers.iter();
    members
        .map(|(name, count)| (name.to_string(), Value::from(*count)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Orders a list by count, the greatest first.
fn ordered<V>(list: &BTreeMap<Box<str>, V>, count: impl Fn(&V) -> u64) -> Vec<(&str, &V)> {
    let mut rows: Vec<_> = list.iter().map(|(name, value)| (&**name, value)).collect();
    rows.sort_by_key(|(_, value)| std::cmp::Reverse(count(value)));
    rows
}

/// Writes a table with a heading; nothing if it has no rows.
fn table(out: &mut String, heading: &str, columns: &[&str], rows: &[(String, Vec<u64>)]) {
    if rows.is_empty() {
        return;
    }
    let _infallible = write!(out, "\n{heading:<NAME_CHARACTERS_MAX$}");
    for column in columns {
        let _infallible = write!(out, " {column:>9}");
    }
    out.push('\n');
    for (name, counts) in rows.iter().take(ROWS) {
        line(out, name, counts);
    }
    if let Some(more) = rows.len().checked_sub(ROWS).filter(|more| *more > 0) {
        let _infallible = writeln!(out, "  and {more} more: --format json");
    }
}

fn line(out: &mut String, name: &str, counts: &[u64]) {
    let width = NAME_CHARACTERS_MAX - 2;
    let shown: String = match name.chars().count() > width {
        true => name.chars().take(width - 1).chain(['…']).collect(),
        false => name.to_owned(),
    };
    let _infallible = write!(out, "  {shown:<width$}");
    for count in counts {
        let _infallible = write!(out, " {count:>9}");
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readers(counts: &[(&str, u64)]) -> Readers {
        let counts = counts.iter().map(|(name, count)| ((*name).into(), *count));
        counts.collect()
    }

    fn summary() -> Summary {
        let mut document = Document::default();
        for (path, html, yes) in [("/guide", 7, 2), ("/", 3, 0)] {
            let page = Page {
                html: readers(&[("browsers", html)]),
                markdown: readers(&[("GPTBot", 1)]),
                yes,
                no: 1,
            };
            document.pages.insert(path.into(), page);
        }
        let skill = readers(&[("other agents", 4)]);
        document.files.insert("/skill.md".into(), skill);
        let called = readers(&[("claude-ai", 2)]);
        document.tools.insert("search".into(), called);
        document.searches.asked = 5;
        document.searches.empty = 3;
        document.searches.texts = readers(&[("webhooks", 3)]);
        document.left_out.searches = 1;
        let days = ["2026-11-22", "2026-11-23"].map(|day| Day::parse(day).unwrap());
        let project = ProjectId::parse("acme").unwrap();
        let each = days.map(|day| (day, document.clone()));
        Summary::new(project, (days[0], days[1]), each)
    }

    #[test]
    fn the_json_has_the_most_read_pages_first_and_says_whether_there_are_more() {
        let (json, has_more) = summary().to_json(0, 1);
        assert!(has_more);
        assert_eq!(json["pages"][0]["path"], "/guide");
        assert_eq!(json["pages"][0]["html"], 14);
        assert_eq!(json["pages"][0]["readers"]["GPTBot"], 2);
        assert_eq!(json["pages"].as_array().unwrap().len(), 1);
        assert_eq!(json["days"][1]["day"], "2026-11-23");
        assert_eq!(json["days"][1]["browsers"], 10);
        assert_eq!(json["searches"]["texts"][0]["text"], "webhooks");
        let (json, has_more) = summary().to_json(1, 1);
        assert!(!has_more);
        assert_eq!(json["pages"][0]["path"], "/");
    }

    #[test]
    fn the_text_says_in_words_what_each_number_is() {
        let text = summary().to_text();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        for row in [
            "acme, 2026-11-22 to 2026-11-23 (days in UTC)",
            "pages read as HTML 20",
            "that found nothing 6",
            "votes: not helpful 4",
            "Pages HTML Markdown yes no",
            "/guide 14 2 4 2",
            "claude-ai 0 0 0 4",
            "webhooks 6",
            "searches whose text is not kept 2",
        ] {
            let words: Vec<_> = row.split_whitespace().collect();
            assert!(rows.contains(&words), "{row}\n{text}");
        }
        let long = format!("/{}", "long/".repeat(20));
        let mut out = String::new();
        line(&mut out, &long, &[1]);
        assert_eq!(out.chars().count(), NAME_CHARACTERS_MAX + 11, "{out}");
        let project = ProjectId::parse("acme").unwrap();
        let day = Day::parse("2026-11-22").unwrap();
        let nothing = Summary::new(project, (day, day), []).to_text();
        assert!(nothing.ends_with("Nothing was counted.\n"), "{nothing}");
    }
}

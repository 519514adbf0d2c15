//! `grep`: exact text in the Markdown of all pages, by regular expression.
//!
//! There is no shell: an expression is all that a client can send. It is matched line by line, in
//! time that is linear in the length of the line (the crate `regex`: no backtracking), and its
//! compiled form is limited. A call that has worked for [`TIME_MAX`] ends with a cursor, so the
//! cost of one call is bounded for every expression.
//!
//! Long lines are searched up to [`LINE_BYTES_MAX`], and an answer says how many there were.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::excerpt::{Heading, headings};
use super::{BytesLeft, Called, Failure, Result, Scope, object, scope_schemas, tokens_schema};
use crate::mcp::{Call, ReadError};
use crate::release::announcements::{instructions_start, is_index_line};
use crate::release::pages::Page;

/// The longest expression, in bytes.
const PATTERN_BYTES_MAX: usize = 500;
/// The largest compiled form, in bytes, and the memory of its cache.
const COMPILED_BYTES_MAX: usize = 256 << 10;
/// How deep an expression may be nested.
const NESTING_MAX: u32 = 50;
/// How long a call searches.
const TIME_MAX: Duration = Duration::from_millis(250);
/// How much of a line is searched, and how much of a matching line is shown.
const LINE_BYTES_MAX: usize = 4 << 10;
const SHOWN_BYTES_MAX: usize = 400;
/// How many matches an answer has.
const MATCHES: usize = 50;
const MATCHES_MAX: usize = 500;
/// How many lines around a match may be shown.
const CONTEXT_MAX: usize = 10;
/// How many tokens an answer has if the client does not say.
const TOKENS: usize = 4_000;
/// The room for the members of an answer beside the matches: counts, a cursor and a note.
const FRAME_BYTES: usize = 320;

/// The state of a search.
struct Search<'s> {
    expression: Regex,
    context: usize,
    limit: usize,
    room: BytesLeft,
    /// How many lines were not searched to their end.
    long_lines: usize,
    ends_at: Instant,
    /// The text of the answer.
    text: String,
    matches: Vec<Value>,
    call: &'s Call<'s>,
}

/// A match in both forms of an answer.
struct Match {
    lines: String,
    structured: Value,
}

/// How the search of a page ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Searched {
    /// The whole page was searched.
    Whole,
    /// The answer is full, or the time is over, after this many lines of the page.
    Lines(usize),
}

pub(super) fn definition() -> (&'static str, &'static str, Value, Value) {
    let found = json!({
        "id": {"type": "string", "description": "The page, for `fetch`."},
        "url": {"type": "string"},
        "line": {"type": "integer", "description": "The line in the Markdown of the page, from 1."},
        "heading": {"type": "string", "description": "The heading above the line."},
        "text": {"type": "string", "description": "The line, with the lines around it."},
    });
    let mut input = scope_schemas();
    input.extend([
        ("pattern".to_owned(), json!({"type": "string", "maxLength": PATTERN_BYTES_MAX, "description": "A regular expression in the syntax of Rust's `regex` (like RE2: no lookaround, no backreferences). It is matched in each line."})),
        ("ignore_case".to_owned(), json!({"type": "boolean", "default": false})),
        ("literal".to_owned(), json!({"type": "boolean", "default": false, "description": "Search for the pattern as it is written, not as an expression."})),
        ("context".to_owned(), json!({"type": "integer", "minimum": 0, "maximum": CONTEXT_MAX, "default": 0, "description": "How many lines to show before and after each match."})),
        ("limit".to_owned(), json!({"type": "integer", "minimum": 1, "maximum": MATCHES_MAX, "default": MATCHES})),
        ("cursor".to_owned(), json!({"type": "string", "description": "`next_cursor` of an earlier answer."})),
        ("max_tokens".to_owned(), tokens_schema(TOKENS)),
    ]);
    (
        "Find exact text",
        "Finds the lines that match a regular expression in the Markdown of all pages of the \
         {site} documentation. Use it for exact names: functions, options, error codes.",
        json!({"type": "object", "properties": input, "required": ["pattern"]}),
        object(
            json!({
                "matches": {"type": "array", "items": object(found, &["id", "url", "line", "text"])},
                "searched": {"type": "integer", "description": "How many pages this call searched."},
                "pages": {"type": "integer", "description": "How many pages there are to search."},
                "next_cursor": {"type": "string", "description": "Present if not all pages were searched."},
                "long_lines": {"type": "integer", "description": "How many lines are longer than 4,096 bytes. Only their beginning was searched."},
            }),
            &["matches", "searched", "pages"],
        ),
    )
}

pub(super) fn call(call: &Call<'_>, arguments: &Arguments<'_>) -> Result<Called> {
    if !call.library.may_work() {
        return Err(ReadError::NotReady.into());
    }
    let budget = arguments.budget(TOKENS)?;
    let limit = arguments.number("limit", MATCHES, 1..=MATCHES_MAX)?;
    let context = arguments.number("context", 0, 0..=CONTEXT_MAX)?;
    let pattern = arguments.required("pattern", PATTERN_BYTES_MAX)?;
    let expression = compile(
        pattern,
        arguments.flag("literal")?,
        arguments.flag("ignore_case")?,
    )?;
    let pages = call.library.pages()?;
    let scope = Scope::of(arguments, &pages)?;
    let matching = scope.pages(&pages)?;
    let (start, skip) = match arguments.text("cursor", 2000)? {
        None => (0, 0),
        Some(cursor) => place(&matching, cursor)?,
    };
    let mut search = Search {
        expression,
        context,
        limit,
        room: BytesLeft::of(budget, FRAME_BYTES),
        long_lines: 0,
        ends_at: Instant::now() + TIME_MAX,
        text: String::new(),
        matches: Vec::new(),
        call,
    };
    let mut searched = 0;
    let mut next = None;
    for (nth, page) in matching.iter().enumerate().skip(start) {
        let skip = if nth == start { skip } else { 0 };
        if nth > start && Instant::now() >= search.ends_at {
            next = Some(cursor(page, 0));
            break;
        }
        let markdown = call.library.markdown(page.path())?;
        let text = markdown.as_deref().map(String::from_utf8_lossy);
        searched += 1;
        let ended = search.page(page, text.as_deref().unwrap_or_default(), skip);
        if let Searched::Lines(lines) = ended {
            next = Some(cursor(page, lines));
            break;
        }
    }
    let total = matching.len();
    let mut text = match search.matches.len() {
        0 => format!("No line matches in {searched} of {total} pages.\n"),
        count => format!("{count} matches in {searched} of {total} pages.\n"),
    };
    let mut structured = json!({
        "matches": search.matches, "searched": searched, "pages": total,
    });
    if let Some(next) = next {
        writeln!(text, "For the rest, call grep with the cursor \"{next}\".")
            .expect("a String takes every character");
        structured["next_cursor"] = json!(next);
    }
    if search.long_lines > 0 {
        writeln!(
            text,
            "{} lines are long: only the first 4,096 bytes of each were searched.",
            search.long_lines
        )
        .expect("a String takes every character");
        structured["long_lines"] = json!(search.long_lines);
    }
    Ok(Called::new(text + &search.text, structured))
}

/// Writes the place at which a search continues: after this many lines of a page.
fn cursor(page: &Page, lines: usize) -> String {
    format!("{lines}:{}", page.id)
}

fn place(pages: &[&Page], cursor: &str) -> Result<(usize, usize)> {
    let found = cursor.split_once(':').and_then(|(lines, id)| {
        let at = pages.iter().position(|page| *page.id == *id)?;
        Some((at, lines.parse().ok()?))
    });
    found.ok_or_else(|| {
        let sentence = "The cursor is not one of this search, or the documentation has changed. \
                        Call again without a cursor.";
        Failure::Input(sentence.to_owned())
    })
}

fn compile(pattern: &str, is_literal: bool, ignore_case: bool) -> Result<Regex> {
    let escaped = is_literal.then(|| regex::escape(pattern));
    RegexBuilder::new(escaped.as_deref().unwrap_or(pattern))
        .case_insensitive(ignore_case)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .nest_limit(NESTING_MAX)
        .build()
        .map_err(|error| {
            Failure::Input(match error {
                regex::Error::CompiledTooBig(_) => {
                    "The expression is too large: repeat less, or use fewer classes of characters \
                     such as \\w and \\p{L}."
                        .to_owned()
                }
                error => format!(
                    "`pattern` is not a regular expression of this server: {error}\n\
                     With `literal: true` it is searched as it is written."
                ),
            })
        })
}

// === impl Search ===

impl Search<'_> {
    /// Searches a page after its first `skip` lines.
    fn page(&mut self, page: &Page, text: &str, skip: usize) -> Searched {
        let mut above: Option<Vec<Heading<'_>>> = None;
        let mut start = 0;
        let mut unchecked = 0;
        // Every page has the same instructions, so they are not searched.
        let end = instructions_start(text);
        for (nth, line) in text.split_inclusive('\n').enumerate() {
            let here = start;
            start += line.len();
            if nth < skip {
                continue;
            }
            if here >= end {
                break;
            }
            let line = line.trim_end_matches(['\n', '\r']);
            let searched = &line[..line.floor_char_boundary(LINE_BYTES_MAX)];
            self.long_lines += usize::from(searched.len() < line.len());
            // Every page has this line about the list of pages, so it is not searched.
            if !is_index_line(searched) && self.expression.is_match(searched) {
                let headings = above.get_or_insert_with(|| headings(text));
                let heading = headings.iter().take_while(|heading| heading.start <= here);
                let heading = heading.last().map(|heading| heading.text);
                if !self.add(page, text, here, nth + 1, heading) {
                    return Searched::Lines(nth);
                }
                if self.matches.len() == self.limit {
                    return Searched::Lines(nth + 1);
                }
            }
            unchecked += searched.len() + 1;
            if unchecked >= LINE_BYTES_MAX {
                unchecked = 0;
                if Instant::now() >= self.ends_at {
                    return Searched::Lines(nth + 1);
                }
            }
        }
        Searched::Whole
    }

    /// Adds the line that begins at `here`. Returns whether there was room.
    fn add(
        &mut self,
        page: &Page,
        text: &str,
        here: usize,
        line: usize,
        heading: Option<&str>,
    ) -> bool {
        let mut found = self.found(page, text, here, line, heading, self.context);
        if !self
            .room
            .take(found.lines.len(), found.structured.to_string().len())
        {
            if !self.matches.is_empty() {
                return false;
            }
            // The first match is always there, without the lines around it.
            found = self.found(page, text, here, line, heading, 0);
            self.room = BytesLeft::of(0, 0);
        }
        self.text += &found.lines;
        self.matches.push(found.structured);
        true
    }

    /// Writes both forms of a match.
    fn found(
        &self,
        page: &Page,
        text: &str,
        here: usize,
        line: usize,
        heading: Option<&str>,
        context: usize,
    ) -> Match {
        let shown = shown(text, here, context);
        let address = format!("{}:{line}: ", page.id);
        let lines = shown.lines().map(|line| format!("{address}{line}\n"));
        let lines = lines.collect();
        let mut structured = json!({
            "id": page.id,
            "url": self.call.server.page_url(page.path()),
            "line": line,
            "text": shown,
        });
        if let Some(heading) = heading {
            structured["heading"] = json!(heading);
        }
        Match { lines, structured }
    }
}

/// Returns a line with the lines around it. Long lines are cut.
fn shown(text: &str, here: usize, context: usize) -> String {
    let before: Vec<&str> = text[..here].lines().rev().take(context).collect();
    let after = text[here..].lines().take(context + 1);
    let cut = |line: &str| line[..line.floor_char_boundary(SHOWN_BYTES_MAX)].to_owned();
    let lines: Vec<String> = before.into_iter().rev().chain(after).map(cut).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_limited_and_common_ones_fit() {
        for pattern in [
            r"max_tokens",
            r"\bE\d{4}\b",
            r"(?i)error:\s+\w+",
            r"--[a-z-]+(=\S+)?",
            r"\p{Han}+",
            r"^#{2,3} ",
        ] {
            assert!(compile(pattern, false, true).is_ok(), "{pattern}");
        }
        for pattern in [
            r"(a{1000}){1000}",
            r"(\w{100}){100}",
            r"(",
            r"(?=a)",
            r"\1",
            &"(".repeat(400),
            &format!("{}a{}", "(".repeat(200), ")".repeat(200)),
        ] {
            assert!(
                matches!(compile(pattern, false, false), Err(Failure::Input(_))),
                "{pattern}"
            );
            assert!(compile(&pattern[..pattern.len().min(200)], true, false).is_ok());
        }
    }
}

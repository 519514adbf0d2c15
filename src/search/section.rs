//! The sections of a page: each heading with its text is a unit of the search.
//!
//! The Markdown of a page is divided at its headings that have an anchor. A long section is divided
//! again, between two blocks, so that an excerpt comes from the right place, and a word that occurs
//! once in a long section still counts. A section is a range of the Markdown, so the index holds no
//! second copy of the text.
//!
//! Sources: CommonMark 0.31.2; GFM 0.29.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The length of Markdown from which a section is divided at the next block, in bytes.
const BYTES_TYPICAL: usize = 2400;
/// How many headings are compared to find the anchor of a heading.
const ANCHORS_AHEAD: usize = 64;

/// A section of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// Its bytes in the Markdown.
    pub(super) range: Range<usize>,
    /// The number of its heading in the list of headings; `None` for the beginning of the page.
    pub(super) heading: Option<usize>,
    /// Whether it continues the section before it.
    pub(super) continues: bool,
    /// Its text, without its heading and without markup.
    pub(super) text: String,
}

/// A heading with its anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading<'d> {
    /// Its anchor, without `#`.
    pub anchor: &'d str,
    /// Its text.
    pub text: &'d str,
}

/// Divides the Markdown of a page. The first section begins after the title, and after the
/// quote below it if `is_described`.
pub(super) fn sections(
    markdown: &str,
    headings: &[Heading<'_>],
    is_described: bool,
) -> Vec<Section> {
    let mut divided = Divided {
        headings: headings
            .iter()
            .map(|heading| letters(heading.text))
            .collect(),
        next: 0,
        done: Vec::new(),
        now: Section::default(),
    };
    let mut events = Parser::new_ext(markdown, options())
        .into_offset_iter()
        .peekable();
    if let Some((Event::Start(Tag::Heading { .. }), _)) = events.peek() {
        let end = events.find(|(event, _)| matches!(event, Event::End(TagEnd::Heading(_))));
        divided.now.range.start = end.map_or(0, |(_, place)| place.end);
    }
    if is_described && let Some((Event::Start(Tag::BlockQuote(_)), _)) = events.peek() {
        events.find(|(event, _)| matches!(event, Event::End(TagEnd::BlockQuote(_))));
    }
    let mut heading: Option<(usize, String)> = None;
    for (event, place) in events {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some((place.start, String::new())),
            Event::End(TagEnd::Heading(_)) => {
                if let Some((start, text)) = heading.take() {
                    divided.heading(start, &text);
                }
            }
            event => {
                if is_start(&event) {
                    divided.divide(place.start);
                }
                let out = match &mut heading {
                    Some((_, text)) => text,
                    None => &mut divided.now.text,
                };
                say(&event, out);
            }
        }
    }
    divided.end(markdown.len())
}

/// Returns the text of a part of a page without markup, and without the heading at its start.
pub(super) fn text_of(markdown: &str) -> String {
    let mut out = String::with_capacity(markdown.len());
    let with_head = with_head(markdown);
    let markdown = &*with_head;
    let mut is_heading = false;
    for (event, place) in Parser::new_ext(markdown, options()).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { .. }) if place.start == 0 => is_heading = true,
            Event::End(TagEnd::Heading(_)) if is_heading => is_heading = false,
            event if !is_heading => say(&event, &mut out),
            _ => {}
        }
    }
    out
}

/// Adds an empty head to rows of a table whose head is in the section before, because rows alone are
/// not a table (GFM 0.29 §4.10).
fn with_head(markdown: &str) -> Cow<'_, str> {
    let mut lines = markdown.lines();
    let first = lines.next().filter(|line| line.starts_with('|'));
    let is_delimiter =
        |line: &str| line.contains('-') && line.bytes().all(|b| b"|-: ".contains(&b));
    let Some(row) = first.filter(|_| !lines.next().is_some_and(is_delimiter)) else {
        return Cow::Borrowed(markdown);
    };
    let bars = row.replace("\\|", "").matches('|').count();
    let cells = bars.saturating_sub(1);
    if cells == 0 {
        return Cow::Borrowed(markdown);
    }
    let (head, delimiter) = (" |".repeat(cells), "-|".repeat(cells));
    Cow::Owned(format!("|{head}\n|{delimiter}\n{markdown}"))
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Adds the text of an event.
fn say(event: &Event<'_>, out: &mut String) {
    match event {
        Event::Text(text) | Event::Code(text) => out.push_str(text),
        Event::SoftBreak | Event::HardBreak | Event::InlineHtml(_) => out.push(' '),
        Event::End(TagEnd::TableCell) => out.push(' '),
        Event::End(
            TagEnd::Paragraph
            | TagEnd::Heading(_)
            | TagEnd::CodeBlock
            | TagEnd::Item
            | TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::HtmlBlock,
        ) if !out.ends_with('\n') => out.push('\n'),
        _ => {}
    }
}

/// Returns whether a long section may be divided before an event.
fn is_start(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Start(
            Tag::Paragraph
                | Tag::List(_)
                | Tag::Item
                | Tag::CodeBlock(_)
                | Tag::Table(_)
                | Tag::TableRow
                | Tag::BlockQuote(_)
        )
    )
}

/// Returns the letters of a heading, to compare it: the two writers of headings may differ in
/// spaces and signs.
fn letters(text: &str) -> String {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// The sections so far.
struct Divided {
    /// The letters of the headings.
    headings: Vec<String>,
    /// The first heading that was not met yet.
    next: usize,
    done: Vec<Section>,
    now: Section,
}

// === impl Divided ===

impl Divided {
    /// Begins a section at a heading. A heading without anchor is text of the current section.
    fn heading(&mut self, start: usize, text: &str) {
        let wanted = letters(text);
        let ahead = self.headings.iter().enumerate().skip(self.next);
        let mut ahead = ahead.take(ANCHORS_AHEAD);
        let Some((at, _)) = ahead.find(|(_, letters)| **letters == wanted) else {
            self.now.text.push_str(text);
            self.now.text.push('\n');
            return;
        };
        self.next = at + 1;
        let section = Section {
            heading: Some(at),
            ..Section::default()
        };
        self.replace(start, section);
    }

    /// Divides the current section if it is long.
    fn divide(&mut self, start: usize) {
        if start.saturating_sub(self.now.range.start) >= BYTES_TYPICAL {
            let section = Section {
                heading: self.now.heading,
                continues: true,
                ..Section::default()
            };
            self.replace(start, section);
        }
    }

    fn replace(&mut self, start: usize, section: Section) {
        let mut done = std::mem::replace(&mut self.now, section);
        done.range.end = start;
        self.now.range.start = start;
        self.done.push(done);
    }

    fn end(mut self, end: usize) -> Vec<Section> {
        self.now.range.end = end;
        self.done.push(self.now);
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADINGS: [Heading<'static>; 2] = [
        Heading {
            anchor: "set-up",
            text: "Set up",
        },
        Heading {
            anchor: "limits",
            text: "Limits `max`",
        },
    ];

    #[test]
    fn rows_from_the_middle_of_a_table_have_no_markup() {
        for (rows, text) in [
            (
                "| `a_b` | counter | |\n| c | x\\|y | z |\n",
                "a_b counter c x|y z",
            ),
            ("| a | b |\n|---|---|\n| 1 | 2 |\n", "a b 1 2"),
            ("|", "|"),
            ("Text.\n\n| `a` |\n|---|\n", "Text. a"),
        ] {
            let words = text_of(rows);
            let words: Vec<_> = words.split_whitespace().collect();
            assert_eq!(words.join(" "), text, "{rows}");
        }
    }

    #[test]
    fn sections_begin_at_headings_with_anchors_and_are_ranges_of_the_markdown() {
        let markdown = "# Title\n\n> About it\n\nFirst [text](x.md).\n\n## Set up\n\n### Step\n\nDo `it`.\n\n\
            ## Limits `max`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
        let sections = sections(markdown, &HEADINGS, true);
        let texts: Vec<_> = sections
            .iter()
            .map(|s| (s.heading, s.text.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (None, "First text.\n"),
                (Some(0), "Step\nDo it.\n"),
                (Some(1), "a b \n1 2 \n")
            ]
        );
        assert!(markdown[sections[1].range.clone()].starts_with("## Set up"));
        assert_eq!(
            text_of(&markdown[sections[1].range.clone()]),
            "Step\nDo it.\n"
        );
        assert_eq!(sections[2].range.end, markdown.len());
    }

    #[test]
    fn a_long_section_is_divided_between_blocks() {
        let markdown = format!("## Set up\n\n{}", "A paragraph of words.\n\n".repeat(500));
        let sections = sections(&markdown, &HEADINGS, false);
        assert!(sections.len() > 3);
        assert!(sections.iter().all(|s| s.range.len() < 2 * BYTES_TYPICAL));
        let whole: usize = sections.iter().map(|s| s.range.len()).sum();
        assert!(markdown.len() - whole < 12);
    }
}

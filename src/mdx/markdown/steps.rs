//! Limits the work of the Markdown parser that is not linear in the length of a text.
//!
//! `pulldown-cmark` reads most texts in linear time. Two kinds of text are exceptions:
//!
//! * At each line it checks all open containers. A line with 1000 quotation marks opens 1000
//!   quotations, and each line that continues the paragraph costs 1000 steps.
//! * At each line of a link's title it checks all earlier pieces of the paragraph. The title may
//!   lack its closing quote, and then it ends with the document.
//!
//! Both are counted before a text is parsed, in one pass.
//! Sources: CommonMark 0.31.2 §5 (containers), §6.3 (links); `pulldown-cmark` 0.13.

/// How many such steps the Markdown of one page may need. A real page of 2 MiB needs some hundred
/// thousand; this number of steps takes a fifth of a second.
pub const STEPS_MAX: usize = 64 << 20;

/// The steps of a page are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mdx) struct TooManySteps;

/// The steps that are left for a page.
#[derive(Debug)]
pub(in crate::mdx) struct Steps {
    left: usize,
}

// === impl Steps ===

impl Default for Steps {
    fn default() -> Self {
        Self { left: STEPS_MAX }
    }
}

impl Steps {
    /// Subtracts the steps of a text.
    pub(super) fn charge(&mut self, text: &str) -> Result<(), TooManySteps> {
        let steps = containers(text).saturating_add(titles(text));
        self.left = self.left.checked_sub(steps).ok_or(TooManySteps)?;
        Ok(())
    }
}

/// Counts how many containers are open at each line, at most.
fn containers(text: &str) -> usize {
    let (mut steps, mut open, mut was_blank) = (0_usize, 0, true);
    for line in text.as_bytes().split(|b| *b == b'\n') {
        let (columns, is_blank) = prefix(line);
        if !is_blank {
            // A line after a blank one is in no container that it does not name or is indented
            // for; any other line may continue a paragraph in all of them.
            open = if was_blank {
                columns
            } else {
                columns.max(open)
            };
        }
        was_blank = is_blank;
        steps = steps.saturating_add(open);
    }
    steps
}

/// Returns how many columns of a line come before its content, and whether it has no content.
///
/// Every container takes one column at least: the mark of a quotation, the mark of a list item
/// or a footnote, or the indentation under such a mark.
fn prefix(line: &[u8]) -> (usize, bool) {
    let (mut at, mut columns, mut marks) = (0, 0, 0);
    while let Some(byte) = line.get(at) {
        let length = match byte {
            b' ' => 1,
            b'\t' => {
                columns += 3;
                1
            }
            b'>' | b'-' | b'*' | b'+' => 1,
            b'0'..=b'9' | b'.' | b')' => 1,
            // The text between the brackets has no part that ends them.
            b'[' if line.get(at + 1) == Some(&b'^') => {
                match memchr::memchr2(b']', b'[', &line[at + 1..]) {
                    Some(n) if line[at + 1 + n..].starts_with(b"]:") => n + 3,
                    _ => break,
                }
            }
            _ => break,
        };
        at += length;
        columns += 1;
        marks += usize::from(!matches!(byte, b' ' | b'\t'));
    }
    (columns, at >= line.len() && marks == 0)
}

/// Counts the lines of each title that its paragraph may have to be searched for, times the
/// length of the paragraph.
fn titles(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_space = |b: u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b'>');
    let mut spaces = Next::new(bytes, is_space);
    let mut angles = Next::new(bytes, |b| matches!(b, b'>' | b'\n'));
    // The searches below ask only for places that move forward.
    let word = move |b| !is_space(b);
    let mut addresses = Next::new(bytes, word);
    let mut after_spaces = Next::new(bytes, word);
    let mut after_angles = Next::new(bytes, word);
    let mut steps = 0_usize;
    // The last quote that was counted, and its steps.
    let (mut counted, mut each) = (usize::MAX, 0);
    for at in memchr::memmem::find_iter(bytes, b"](") {
        let address = addresses.from(at + 2);
        let quote = match bytes.get(address) {
            Some(b'<') => after_angles.from(angles.from(address) + 1),
            _ => after_spaces.from(spaces.from(address)),
        };
        if !matches!(bytes.get(quote), Some(b'"' | b'\'')) {
            continue;
        }
        if quote != counted {
            (counted, each) = (quote, title(bytes, quote));
        }
        steps = steps.saturating_add(each);
    }
    steps
}

/// Counts the steps of the title that this quote opens.
fn title(bytes: &[u8], quote: usize) -> usize {
    let rest = &bytes[quote + 1..];
    let end = memchr::memchr(bytes[quote], rest).unwrap_or(rest.len());
    let lines = memchr::memchr_iter(b'\n', &rest[..end]).count();
    if lines < 2 {
        return 0;
    }
    let paragraph = memchr::memmem::find(&rest[..end], b"\n\n").unwrap_or(end);
    lines.saturating_mul(paragraph)
}

/// Finds the next byte of a kind from places that only move forward, in linear time together.
struct Next<'b, F> {
    bytes: &'b [u8],
    is: F,
    /// The first such byte from the last place on.
    found: usize,
}

// === impl Next ===

impl<'b, F: Fn(u8) -> bool> Next<'b, F> {
    fn new(bytes: &'b [u8], is: F) -> Self {
        let mut next = Self {
            bytes,
            is,
            found: 0,
        };
        next.search(0);
        next
    }

    fn search(&mut self, from: usize) {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let length = rest.iter().position(|b| (self.is)(*b));
        self.found = from + length.unwrap_or(rest.len());
    }

    fn from(&mut self, at: usize) -> usize {
        if self.found < at {
            self.search(at);
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_counts_the_containers_that_are_open() {
        assert_eq!(containers("text\ntext\n"), 0);
        assert_eq!(containers("> a"), 2);
        // The second line continues the paragraph, the one after a blank line does not.
        assert_eq!(containers("> a\nb\n\nc"), 2 + 2 + 2);
        assert_eq!(containers("> - 1. [^x]: a"), 9);
    }

    #[test]
    fn a_title_counts_if_it_has_many_lines() {
        assert_eq!(titles("[a](b \"c\")\n\n[a](b 'c\nd')"), 0);
        assert_eq!(titles("[a](b \"c\nd\ne"), 2 * 5);
        assert_eq!(titles("[a](<b c>\n'c\nd\ne\n\n\n'"), 5 * 5);
    }
}

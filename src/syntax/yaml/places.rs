//! Converts places: the parser counts characters of its text; spans count bytes of the file.

use std::borrow::Cow;
use std::ops::Range;

use crate::syntax::{FileId, Span};

/// A number of spaces that is more than the indentation of any key within the limits, with two
/// spaces a level.
const LINE_INDENTATION: usize = 256;

/// The text that the parser gets, and the conversion of its places.
///
/// Places are requested nearly in the order of the text, so a search starts at the last place.
#[derive(Debug)]
pub(super) struct Places<'t> {
    /// The part of the file that is YAML, perhaps with some lines indented.
    text: Cow<'t, str>,
    /// Where that part starts in the file, in bytes.
    start: usize,
    file: FileId,
    is_ascii: bool,
    /// The place that was found last, in characters and bytes of `text`.
    last: (usize, usize),
    /// The bytes of `text` that are not in the file: spaces that [`Places::indent`] put in.
    inserted: Vec<usize>,
}

// === impl Places ===

impl<'t> Places<'t> {
    /// Begins with a part of a file. A byte order mark is not part of the YAML.
    pub(super) fn new(file_text: &'t str, range: Range<usize>, file: FileId) -> Self {
        let part = &file_text[range.clone()];
        let text = part.strip_prefix('\u{feff}').unwrap_or(part);
        Self {
            text: Cow::Borrowed(text),
            start: range.start + part.len() - text.len(),
            file,
            is_ascii: text.is_ascii(),
            last: (0, 0),
            inserted: Vec::new(),
        }
    }

    /// Returns the text for the parser.
    pub(super) fn text(&self) -> Cow<'t, str> {
        self.text.clone()
    }

    /// Returns the span between two places of the parser.
    pub(super) fn span(&mut self, start: usize, end: usize) -> Span {
        let narrow = |at| u32::try_from(at).unwrap_or(u32::MAX);
        let (start, end) = (self.byte(start), self.byte(end.max(start)));
        Span {
            file: self.file,
            start: narrow(self.in_file(start)),
            end: narrow(self.in_file(end)),
        }
    }

    /// Indents the lines of the quoted text that starts at the character `quote`.
    ///
    /// They become deeper than the line in which the text starts. Returns `false` if this text was
    /// already indented.
    pub(super) fn indent(&mut self, quote: usize) -> bool {
        let quote = self.byte(quote);
        if self.inserted.last().is_some_and(|&last| last > quote) {
            return false;
        }
        let line_start = self.text[..quote].rfind('\n').map_or(0, |at| at + 1);
        let line = &self.text[line_start..quote];
        let indentation = line.len() - line.trim_start_matches([' ', '-']).len() + 1;
        let end = quote + quoted_length(&self.text[quote..]);
        let mut text = self.text[..quote].to_owned();
        for (number, line) in self.text[quote..end].split_inclusive('\n').enumerate() {
            if number > 0 {
                self.inserted.extend(text.len()..text.len() + indentation);
                text.extend(std::iter::repeat_n(' ', indentation));
            }
            text.push_str(line);
        }
        text.push_str(&self.text[end..]);
        self.text = Cow::Owned(text);
        self.last = (0, 0);
        true
    }

    /// Indents the line that has the character `at` in its indentation.
    ///
    /// Indentation is not part of a quoted text, so any number of spaces is correct.
    pub(super) fn indent_line(&mut self, at: usize) -> bool {
        let at = self.byte(at);
        let line_start = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        if self.inserted.last().is_some_and(|&last| last >= line_start) {
            return false;
        }
        let spaces = line_start..line_start + LINE_INDENTATION;
        self.text
            .to_mut()
            .insert_str(line_start, &" ".repeat(LINE_INDENTATION));
        self.inserted.extend(spaces);
        self.last = (0, 0);
        true
    }

    fn in_file(&self, at: usize) -> usize {
        let inserted = self.inserted.partition_point(|&inserted| inserted < at);
        self.start + at - inserted
    }

    /// Finds the byte at which a character starts.
    fn byte(&mut self, character: usize) -> usize {
        if self.is_ascii {
            return character.min(self.text.len());
        }
        if character < self.last.0 {
            self.last = (0, 0);
        }
        let (characters, bytes) = self.last;
        let rest = &self.text[bytes..];
        let ahead = rest.char_indices().nth(character - characters);
        let bytes = bytes + ahead.map_or(rest.len(), |(at, _)| at);
        self.last = (character, bytes);
        bytes
    }
}

/// Returns the length of a quoted text with its quotes, in bytes.
///
/// It is the length of the whole text if there is no closing quote.
fn quoted_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let quote = bytes[0];
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if quote == b'"' => at += 2,
            _ if byte != quote => at += 1,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            _ => return at + 1,
        }
    }
    bytes.len()
}

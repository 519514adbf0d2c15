//! Diagnostics for people: the source line with a caret below it, in the form that rustc uses.
//!
//! Only the line of the mistake is shown; if it is very long (a minified file), only the text
//! around the mistake. The first [`SHOWN_MAX`] diagnostics of each rule are shown, and the
//! others are counted: one mistake in a template can cause hundreds of diagnostics, and these
//! must not hide the diagnostics of other rules.

use std::collections::HashMap;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use super::{Diagnostic, Location, Severity};

/// How many diagnostics of one rule and severity are shown.
pub const SHOWN_MAX: usize = 20;
/// How many characters of a line are shown on either side of the place.
const AROUND_MAX: usize = 100;

/// Whether the output has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Colour {
    /// With colours, for a terminal.
    Styled,
    /// Without colours, for a file.
    Plain,
}

/// How many diagnostics of a rule are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// All.
    Unfolded,
    /// At most [`SHOWN_MAX`].
    Folded,
}

/// Writes diagnostics with their source lines; `source` returns the text of a file.
#[must_use]
pub fn render(
    found: &[Diagnostic],
    source: &dyn Fn(&str) -> Option<Arc<str>>,
    colour: Colour,
    folding: Folding,
) -> String {
    let renderer = match colour {
        Colour::Styled => Renderer::styled(),
        Colour::Plain => Renderer::plain(),
    };
    let mut texts: HashMap<&str, Option<Lines>> = HashMap::new();
    let mut drawn: HashMap<(&str, Severity), usize> = HashMap::new();
    let mut out = String::new();
    for diagnostic in found {
        let count = drawn
            .entry((diagnostic.rule, diagnostic.severity))
            .or_default();
        *count += 1;
        if folding == Folding::Folded && *count > SHOWN_MAX {
            continue;
        }
        let lines = texts
            .entry(&diagnostic.file)
            .or_insert_with(|| source(&diagnostic.file).map(Lines::new));
        out.push_str(&draw(diagnostic, lines.as_ref(), &renderer));
        out.push_str("\n\n");
    }
    if folding == Folding::Folded {
        out.push_str(&folded(&drawn));
    }
    out
}

/// Writes how many diagnostics are not shown.
fn folded(drawn: &HashMap<(&str, Severity), usize>) -> String {
    let mut left: Vec<_> = drawn
        .iter()
        .filter(|(_, count)| **count > SHOWN_MAX)
        .collect();
    left.sort_unstable();
    left.iter().fold(String::new(), |mut out, (key, count)| {
        let (rule, severity) = key;
        let more = *count - SHOWN_MAX;
        out.push_str(&format!(
            "note: {more} more {severity}s of rule {rule} are not shown; `--all` shows them\n"
        ));
        out
    })
}

fn draw(diagnostic: &Diagnostic, lines: Option<&Lines>, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.rule);
    let place = diagnostic
        .location
        .and_then(|location| Some((location, lines?.excerpt(location)?)));
    let mut group = match (&place, diagnostic.location) {
        (Some((location, excerpt)), _) => title.element(
            Snippet::source(excerpt.text.as_str())
                .line_start(location.line as usize)
                .path(&*diagnostic.file)
                .annotation(AnnotationKind::Primary.span(excerpt.caret.clone())),
        ),
        (None, Some(location)) => title.element(
            Origin::path(&*diagnostic.file)
                .line(location.line as usize)
                .char_column(location.column as usize),
        ),
        (None, None) => title.element(Origin::path(&*diagnostic.file)),
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

/// A text and the offsets of its lines.
struct Lines {
    text: Arc<str>,
    starts: Vec<usize>,
}

/// The shown part of a line, and the range of bytes that the caret marks.
struct Excerpt {
    text: String,
    caret: std::ops::Range<usize>,
}

// === impl Lines ===

impl Lines {
    fn new(text: Arc<str>) -> Self {
        let starts = std::iter::once(0)
            .chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1))
            .collect();
        Self { text, starts }
    }

    /// Returns the line of a location; `None` if the text has no such line.
    fn excerpt(&self, location: Location) -> Option<Excerpt> {
        let index = (location.line as usize).checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let end = self
            .starts
            .get(index + 1)
            .map_or(self.text.len(), |e| e - 1);
        let line = self.text[start..end].trim_end_matches('\r');
        let column = (location.column as usize).checked_sub(1)?;
        let skipped = column.saturating_sub(AROUND_MAX);
        let shown = column - skipped + location.length as usize + AROUND_MAX;
        let text: String = line.chars().skip(skipped).take(shown).collect();
        let byte_of = |count: usize| {
            let mut indices = text.char_indices();
            indices.nth(count).map_or(text.len(), |(at, _)| at)
        };
        let from = byte_of(column - skipped);
        let to = byte_of(column - skipped + (location.length as usize).max(1));
        Some(Excerpt {
            text,
            caret: from..to,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(found: &[Diagnostic], text: &'static str) -> String {
        let source = |_: &str| Some(Arc::from(text));
        render(found, &source, Colour::Plain, Folding::Folded)
    }

    #[test]
    fn the_caret_is_below_the_reported_characters() {
        let found = Diagnostic::warning("unknown-key", "docs.json", "`pags` is no key")
            .at(2, 4, 6)
            .help("did you mean `pages`?");
        let drawn = plain(&[found], "{\n \"é\", \"pags\"\n}");
        assert_eq!(
            drawn.trim_end(),
            "warning[unknown-key]: `pags` is no key\n --> docs.json:2:4\n  |\n2 |  \"é\", \"pags\"\n  |    ^^^^^^\n  |\n  = help: did you mean `pages`?"
        );
    }

    #[test]
    fn of_a_long_line_only_the_surroundings_are_shown() {
        let line: &'static str =
            Box::leak(format!("{}x{}", "a".repeat(9000), "b".repeat(9000)).into());
        let drawn = plain(&[Diagnostic::error("N1", "f", "m").at(1, 9001, 1)], line);
        assert!(drawn.len() < 1000, "{} bytes", drawn.len());
        assert!(drawn.contains("axb"));
    }

    #[test]
    fn a_place_outside_of_the_text_has_no_excerpt() {
        let drawn = plain(&[Diagnostic::error("N1", "f", "m").at(9, 1, 1)], "one line");
        assert!(drawn.contains("f:9:1"), "{drawn}");
    }

    #[test]
    fn hidden_diagnostics_are_counted() {
        let found = vec![Diagnostic::error("N1", "f", "m"); SHOWN_MAX + 3];
        let drawn = plain(&found, "");
        assert_eq!(drawn.matches("error[N1]").count(), SHOWN_MAX);
        assert!(drawn.contains("3 more errors of rule N1"), "{drawn}");
    }
}

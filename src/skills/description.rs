//! Cuts descriptions to the length that clients accept, and takes missing descriptions from
//! the body.
//!
//! A client in JavaScript counts UTF-16 code units and drops an entry that has more than
//! 1024. The discovery specification counts characters; 1024 code units are at most 1024
//! characters. A text is cut between two grapheme clusters, so that emoji and accents stay whole.
//!
//! Sources: Agent Skills Discovery 0.2.0 (1024 characters); Unicode Standard Annex 29
//! (grapheme clusters).

use unicode_segmentation::UnicodeSegmentation as _;

/// Returns the longest beginning of `text` that has at most `units_max` UTF-16 code units.
///
/// It ends between two grapheme clusters and without white space.
///
/// ```
/// use waypost::skills::cut;
///
/// assert_eq!(cut("one two", 5), "one t");
/// assert_eq!(cut("one two", 4), "one");
/// assert_eq!(cut("a👩‍🚀", 5), "a");
/// ```
#[must_use]
pub fn cut(text: &str, units_max: usize) -> &str {
    // A text has at least as many bytes as UTF-16 code units.
    if text.len() <= units_max {
        return text.trim_end();
    }
    let by_grapheme = fitting(text, text.graphemes(true), units_max);
    if !by_grapheme.is_empty() {
        return by_grapheme.trim_end();
    }
    // One grapheme cluster with many combining marks can be longer than the limit.
    fitting(text, text.split("").filter(|c| !c.is_empty()), units_max).trim_end()
}

/// Returns the beginning of `text` that contains as many `pieces` as fit.
fn fitting<'t>(text: &'t str, pieces: impl Iterator<Item = &'t str>, units_max: usize) -> &'t str {
    let mut units = 0;
    let mut end = 0;
    for piece in pieces {
        units += piece.encode_utf16().count();
        if units > units_max {
            break;
        }
        end += piece.len();
    }
    &text[..end]
}

/// Returns the first words of a Markdown body: its first paragraph, else its first heading.
pub(super) fn first_words(body: &str) -> Option<String> {
    let mut heading = None;
    let mut fenced = false;
    let mut paragraph: Vec<&str> = Vec::new();
    for line in body.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with("~~~") {
            fenced = !fenced;
        }
        let title = line.trim_start_matches('#');
        let is_heading = title.len() < line.len();
        if is_heading && heading.is_none() && !fenced {
            heading = Some(title.trim()).filter(|title| !title.is_empty());
        }
        let is_prose = !fenced && !is_heading && line.chars().any(char::is_alphanumeric);
        let is_markup = line.starts_with(['<', '`', '|', '!']);
        match (is_prose && !is_markup, paragraph.is_empty()) {
            (true, _) => paragraph.push(line),
            (false, true) => {}
            (false, false) => break,
        }
    }
    if paragraph.is_empty() {
        heading.map(str::to_owned)
    } else {
        Some(paragraph.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn units(text: &str) -> usize {
        text.encode_utf16().count()
    }

    #[test]
    fn emoji_count_as_clients_count_them_and_stay_whole() {
        let text = "🚀".repeat(600);
        let kept = cut(&text, 1024);
        assert_eq!(units(kept), 1024);
        assert_eq!(kept.chars().count(), 512);

        let family = "👨‍👩‍👧‍👦".repeat(200);
        let kept = cut(&family, 1024);
        assert_eq!(units(kept) % units("👨‍👩‍👧‍👦"), 0);
        assert!(units(kept) > 1000);
    }

    #[test]
    fn a_text_of_the_maximum_length_is_not_cut() {
        let text = "é".repeat(1024);
        assert_eq!(cut(&text, 1024), text);
        assert_eq!(units(cut(&format!("{text}x"), 1024)), 1024);
    }

    #[test]
    fn a_single_character_longer_than_the_limit_is_torn_rather_than_lost() {
        let text = format!("a{}", "\u{301}".repeat(2000));
        assert_eq!(units(cut(&text, 1024)), 1024);
    }

    #[test]
    fn first_words_are_the_first_paragraph_or_else_the_first_heading() {
        let words = |body| first_words(body).unwrap_or_default();
        assert_eq!(
            words("# Acme\r\n\r\nPays people.\r\nQuickly.\r\n\r\nMore."),
            "Pays people. Quickly."
        );
        assert_eq!(words("\n## Use it\n\n```sh\nacme pay\n```\n"), "Use it");
        assert_eq!(
            words("<Note>\n\n---\n\nProse at last\n# Title"),
            "Prose at last"
        );
        assert_eq!(words("```\n# comment\ncode\n```\n"), "");
        assert_eq!(first_words(" \n---\n"), None);
    }

    proptest! {
        #[test]
        fn a_cut_is_a_beginning_that_fits(text in "(\\PC|\\s|👩‍🚀|e\u{301}){0,60}", units_max in 1..40_usize) {
            let kept = cut(&text, units_max);
            prop_assert!(text.starts_with(kept));
            prop_assert!(units(kept) <= units_max);
            if units(&text) <= units_max {
                prop_assert_eq!(kept, text.trim_end());
            }
        }
    }
}

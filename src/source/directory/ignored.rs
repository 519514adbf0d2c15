//! The patterns of `.gitignore` and `.git/info/exclude`.
//!
//! The patterns of a directory apply to paths relative to it. The last matching pattern of the
//! deepest directory decides. A file in an ignored directory cannot be included again.
//!
//! Source: `gitignore(5)`.

use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// How many bytes of a pattern file are read; the rest is ignored.
pub(super) const PATTERN_BYTES_MAX: u64 = 1 << 20;

/// The patterns of a directory and of the directories above it, and `info/exclude`.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// From `info/exclude` down to the current directory, each with the number of segments in the
    /// path of its directory.
    levels: Vec<(usize, Gitignore)>,
}

// === impl Patterns ===

impl Patterns {
    /// Adds the patterns of a directory whose path has `depth` segments. Returns whether there are
    /// any; then [`Patterns::leave`] must be called after the directory.
    pub(super) fn enter(&mut self, depth: usize, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        // Paths are made relative to the directory before they are matched.
        let mut builder = GitignoreBuilder::new("");
        for line in text.lines() {
            // A line that is not a valid pattern matches nothing, as in git.
            let _invalid = builder.add_line(None, line);
        }
        match builder.build() {
            Ok(patterns) if !patterns.is_empty() => {
                self.levels.push((depth, patterns));
                true
            }
            _ => false,
        }
    }

    /// Removes the patterns of the last directory.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns whether a pattern ignores the path with these segments.
    pub(super) fn ignore(&self, segments: &[&str], is_directory: bool) -> bool {
        let decide = |(depth, patterns): &(usize, Gitignore)| {
            let path: PathBuf = segments.get(*depth..)?.iter().collect();
            match patterns.matched(Path::new(&path), is_directory) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            }
        };
        self.levels.iter().rev().find_map(decide).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(levels: &[(usize, &str)]) -> Patterns {
        let mut patterns = Patterns::default();
        for (depth, text) in levels {
            patterns.enter(*depth, text.as_bytes());
        }
        patterns
    }

    #[test]
    fn patterns_of_a_deeper_directory_have_precedence() {
        let patterns = patterns(&[(0, "*.log\n"), (1, "!kept.log\n")]);
        assert!(patterns.ignore(&["docs", "a.log"], false));
        assert!(!patterns.ignore(&["docs", "kept.log"], false));
    }

    #[test]
    fn a_pattern_with_a_slash_is_seen_from_its_own_directory() {
        let patterns = patterns(&[(1, "/build\n")]);
        assert!(patterns.ignore(&["docs", "build"], true));
        assert!(!patterns.ignore(&["docs", "sub", "build"], true));
    }

    #[test]
    fn a_pattern_that_ends_in_a_slash_matches_directories_only() {
        let patterns = patterns(&[(0, "node_modules/\r\n")]);
        assert!(patterns.ignore(&["a", "node_modules"], true));
        assert!(!patterns.ignore(&["a", "node_modules"], false));
    }

    #[test]
    fn comments_byte_order_marks_and_invalid_lines_are_no_patterns() {
        let patterns = patterns(&[(0, "\u{feff}# note\n\n[\n*.tmp\n")]);
        assert!(patterns.ignore(&["x.tmp"], false));
        assert!(!patterns.ignore(&["# note"], false));
    }

    #[test]
    fn a_directory_without_patterns_adds_no_level() {
        let mut patterns = Patterns::default();
        assert!(!patterns.enter(1, b"# nothing\n"));
        assert!(patterns.levels.is_empty());
    }
}

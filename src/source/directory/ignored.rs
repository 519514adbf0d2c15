//! What git would not record: the patterns of `.gitignore` and `.git/info/exclude`.
//!
//! Patterns of a directory see paths relative to it. The last matching pattern of the
//! deepest directory decides; what lies in an ignored directory cannot come back.
//!
//! Sources: `gitignore(5)`.

use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The longest pattern file that is read; the rest of a longer one does not count.
pub(super) const PATTERN_BYTES_MAX: u64 = 1 << 20;

/// The patterns that hold in a directory: its own, those above it, the repository's.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// From `info/exclude` (first) down to the directory at hand, each with the number of
    /// segments its directory's path has.
    levels: Vec<(usize, Gitignore)>,
}

// === impl Patterns ===

impl Patterns {
    /// Adds the patterns of a directory whose path has `depth` segments, and returns
    /// whether there are any: then [`Patterns::leave`] takes them away again.
    pub(super) fn enter(&mut self, depth: usize, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        // Relative to the directory: paths are cut accordingly before they are matched.
        let mut builder = GitignoreBuilder::new("");
        for line in text.lines() {
            // A line that is no pattern matches nothing, as in git.
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

    /// Takes the patterns of the last directory entered away.
    pub(super) fn leave(&mut self) {
        self.levels.pop();
    }

    /// Returns whether git leaves out what stands at `segments` from the root down.
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
    fn a_deeper_directory_decides_over_a_higher_one() {
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
    fn comments_marks_and_broken_lines_are_no_patterns() {
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

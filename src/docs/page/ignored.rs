//! Decides which files below the documentation's root are ignored.
//!
//! `.waypostignore` holds patterns in the syntax of `.gitignore`. `.mintignore` is read too,
//! for sites that move here. No pattern is needed for files and directories whose name begins
//! with a dot, for `node_modules`, and for the repository's own `README.md`, `LICENSE.md`,
//! `CHANGELOG.md` and `CONTRIBUTING.md`.
//!
//! Directories named `build`, `dist` or `tmp` are not ignored: they often contain pages, and
//! pages that the navigation lists must not disappear.
//!
//! Sources: `gitignore(5)`.

use std::fmt;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};

use crate::source::{Tree, TreePath};

/// The files that hold patterns.
const FILES: [&str; 2] = [".waypostignore", ".mintignore"];
/// How many bytes of each file are read at most.
const BYTES_MAX: u64 = 1 << 20;
/// The patterns that apply unless a later pattern such as `!README.md` reverses them.
const BUILT_IN: [&str; 5] = [
    "node_modules/",
    "README.md",
    "LICENSE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
];

/// The patterns of ignored paths.
#[derive(Debug)]
pub struct Ignored {
    patterns: Gitignore,
}

/// Why a path is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its name, or the name of a directory in its path, begins with a dot.
    Dot,
    /// A built-in pattern matches it.
    BuiltIn(Box<str>),
    /// A pattern that an author wrote matches it.
    Pattern {
        /// The pattern as it is written.
        pattern: Box<str>,
        /// The name of the file that contains the pattern.
        file: Box<str>,
    },
    /// Another file, which is named here, is the page at its URL.
    SameUrl(Box<str>),
}

// === impl Ignored ===

impl Default for Ignored {
    /// Makes an empty list of patterns; names that begin with a dot are still ignored.
    fn default() -> Self {
        Self {
            patterns: Gitignore::empty(),
        }
    }
}

impl Ignored {
    /// Reads the patterns of a tree; like git, it skips lines that are not patterns.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let mut builder = GitignoreBuilder::new("");
        let mut add = |file: Option<&str>, line: &str| {
            let _skipped = builder.add_line(file.map(PathBuf::from), line);
        };
        BUILT_IN.into_iter().for_each(|line| add(None, line));
        for name in FILES {
            let path = tree.docs_root().join(name);
            let bytes = path
                .ok()
                .and_then(|path| tree.read_at_most(&path, BYTES_MAX).ok());
            let text = bytes.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            text.lines().for_each(|line| add(Some(name), line));
        }
        builder
            .build()
            .map(|patterns| Self { patterns })
            .unwrap_or_default()
    }

    /// Returns whether a path below the documentation's root is ignored.
    #[must_use]
    pub fn is_ignored(&self, path: &str) -> bool {
        self.reason(path).is_some()
    }

    /// Returns why a path below the documentation's root is ignored; `None` when it is not.
    #[must_use]
    pub fn reason(&self, path: &str) -> Option<Reason> {
        if path.split('/').any(|segment| segment.starts_with('.')) {
            return Some(Reason::Dot);
        }
        let matched = self.patterns.matched_path_or_any_parents(path, false);
        match matched {
            ignore::Match::Ignore(glob) => Some(Reason::of(glob)),
            ignore::Match::None | ignore::Match::Whitelist(_) => None,
        }
    }

    /// Returns whether a path of the repository is ignored, or is outside of the documentation's
    /// root.
    #[must_use]
    pub fn is_path_ignored(&self, tree: &Tree, path: &TreePath) -> bool {
        path.strip_prefix(tree.docs_root())
            .is_none_or(|below| self.is_ignored(below))
    }
}

// === impl Reason ===

impl Reason {
    fn of(glob: &Glob) -> Self {
        let pattern = glob.original().into();
        match glob.from().and_then(Path::to_str) {
            None => Self::BuiltIn(pattern),
            Some(file) => Self::Pattern {
                pattern,
                file: file.into(),
            },
        }
    }

    /// Returns a text that says how an author can include the file at `path`.
    #[must_use]
    pub fn help(&self, path: &str) -> String {
        match self {
            Self::Dot => "give it a name that does not begin with a dot".to_owned(),
            Self::BuiltIn(_) => format!("write `!/{path}` in `{}`", FILES[0]),
            Self::Pattern { file, .. } => {
                format!("remove the pattern, or write `!/{path}` below it in `{file}`")
            }
            Self::SameUrl(_) => "rename one of the two".to_owned(),
        }
    }
}

/// Completes the sentence "it is ignored because …".
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dot => f.write_str("names that begin with a dot are"),
            Self::BuiltIn(pattern) => write!(f, "`{pattern}` always is"),
            Self::Pattern { pattern, file } => {
                write!(f, "it matches `{pattern}` in `{file}`")
            }
            Self::SameUrl(other) => write!(f, "`{other}` has the same URL"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(patterns: &str) -> Ignored {
        let path = TreePath::parse(".waypostignore").unwrap();
        Ignored::read(&Tree::from_files([(path, patterns.to_owned().into())], []))
    }

    #[test]
    fn directories_that_tools_also_write_to_are_read() {
        let ignored = ignored("");
        for directory in ["build", "dist", "coverage", "tmp", "temp"] {
            let path = format!("guides/{directory}/start.mdx");
            assert_eq!(ignored.reason(&path), None);
        }
    }

    #[test]
    fn a_reason_names_the_pattern_and_the_file_that_has_it() {
        let ignored = ignored("# drafts\n/drafts/\n");
        let reason = |path: &str| ignored.reason(path).map(|reason| reason.to_string());
        assert_eq!(
            reason("drafts/a.mdx").as_deref(),
            Some("it matches `/drafts/` in `.waypostignore`")
        );
        assert_eq!(
            reason("x/node_modules/a.mdx").as_deref(),
            Some("`node_modules/` always is")
        );
        assert_eq!(
            reason("x/.git/a.mdx").as_deref(),
            Some("names that begin with a dot are")
        );
        assert_eq!(reason("a.mdx"), None);
    }

    #[test]
    fn the_suggested_pattern_includes_the_file() {
        for (patterns, path) in [("drafts/\n", "drafts/a.mdx"), ("", "api/README.md")] {
            let reason = ignored(patterns).reason(path).unwrap();
            let help = reason.help(path);
            let line = help.split('`').find(|part| part.starts_with('!')).unwrap();
            assert_eq!(ignored(&format!("{patterns}{line}\n")).reason(path), None);
        }
    }
}

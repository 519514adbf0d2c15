//! Which files below the documentation's root are not documentation.
//!
//! `.waypostignore` holds patterns as `.gitignore` does. `.mintignore` is read too, for sites
//! that move here. Files and directories whose name begins with a dot, `node_modules`, and
//! the repository's own `README.md` and the like are ignored without being named.
//!
//! A directory named `build`, `dist` or `tmp` is read: it holds pages as often as it holds
//! what a tool made, and pages that the navigation lists must not disappear.
//!
//! Sources: `gitignore(5)`.

use std::fmt;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};

use crate::source::{Tree, TreePath};

/// The files that hold patterns.
const FILES: [&str; 2] = [".waypostignore", ".mintignore"];
/// How many bytes one of them may have.
const BYTES_MAX: u64 = 1 << 20;
/// What is ignored unless a pattern such as `!README.md` says otherwise.
const BUILT_IN: [&str; 5] = [
    "node_modules/",
    "README.md",
    "LICENSE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
];

/// Which paths are ignored.
#[derive(Debug)]
pub struct Ignored {
    patterns: Gitignore,
}

/// Why a path is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its name, or that of a directory around it, begins with a dot.
    Dot,
    /// A pattern of this program matches it.
    BuiltIn(Box<str>),
    /// A pattern of the authors matches it.
    Pattern {
        /// The pattern as it is written.
        pattern: Box<str>,
        /// The name of the file that it stands in.
        file: Box<str>,
    },
}

// === impl Ignored ===

impl Default for Ignored {
    /// No pattern; names that begin with a dot are ignored.
    fn default() -> Self {
        Self {
            patterns: Gitignore::empty(),
        }
    }
}

impl Ignored {
    /// Reads the patterns of a tree. A line that is no pattern is skipped, as git does.
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

    /// Returns whether a path of the repository is ignored, or lies outside of the
    /// documentation's root.
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

    /// Returns what an author does to have the file at `path` read.
    #[must_use]
    pub fn help(&self, path: &str) -> String {
        match self {
            Self::Dot => "give it a name that does not begin with a dot".to_owned(),
            Self::BuiltIn(_) => format!("write `!/{path}` in `{}`", FILES[0]),
            Self::Pattern { file, .. } => {
                format!("remove the pattern, or write `!/{path}` below it in `{file}`")
            }
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
    fn what_the_help_says_makes_the_file_be_read() {
        for (patterns, path) in [("drafts/\n", "drafts/a.mdx"), ("", "api/README.md")] {
            let reason = ignored(patterns).reason(path).unwrap();
            let help = reason.help(path);
            let line = help.split('`').find(|part| part.starts_with('!')).unwrap();
            assert_eq!(ignored(&format!("{patterns}{line}\n")).reason(path), None);
        }
    }
}

//! What of a documentation's root is not documentation.
//!
//! `.waypostignore` holds patterns as `.gitignore` does; `.mintignore` is read too, for the
//! sites that move here. Dotfiles, the folders of tools and the repository's own
//! README and the like are ignored without being named.
//!
//! Sources: `gitignore(5)`.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::source::{Tree, TreePath};

/// The files that hold patterns.
const FILES: [&str; 2] = [".waypostignore", ".mintignore"];
/// How many bytes one of them may have.
const BYTES_MAX: u64 = 1 << 20;
/// What is ignored in any case. Dotfiles are too, see [`Ignored::is_ignored`].
const ALWAYS: [&str; 10] = [
    "node_modules/",
    "build/",
    "dist/",
    "coverage/",
    "tmp/",
    "temp/",
    "README.md",
    "LICENSE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
];

/// What is ignored.
#[derive(Debug)]
pub struct Ignored {
    patterns: Gitignore,
}

// === impl Ignored ===

impl Ignored {
    /// Reads the patterns of a tree. A pattern that is none is no pattern, as for git.
    #[must_use]
    pub fn read(tree: &Tree) -> Self {
        let mut builder = GitignoreBuilder::new("");
        let mut add = |line: &str| {
            let _no_pattern = builder.add_line(None, line);
        };
        ALWAYS.into_iter().for_each(&mut add);
        for name in FILES {
            let path = tree.docs_root().join(name);
            let bytes = path
                .ok()
                .and_then(|path| tree.read_at_most(&path, BYTES_MAX).ok());
            let text = bytes.unwrap_or_default();
            String::from_utf8_lossy(&text).lines().for_each(&mut add);
        }
        Self {
            patterns: builder
                .build()
                .unwrap_or_else(|_no_pattern| Gitignore::empty()),
        }
    }

    /// Returns whether a path below the documentation's root is ignored.
    #[must_use]
    pub fn is_ignored(&self, path: &str) -> bool {
        path.split('/').any(|segment| segment.starts_with('.'))
            || self
                .patterns
                .matched_path_or_any_parents(path, false)
                .is_ignore()
    }

    /// As [`Ignored::is_ignored`].
    #[must_use]
    pub fn is_path_ignored(&self, tree: &Tree, path: &TreePath) -> bool {
        path.strip_prefix(tree.docs_root())
            .is_none_or(|below| self.is_ignored(below))
    }
}

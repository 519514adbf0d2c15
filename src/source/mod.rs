//! Source: one commit of a repository, read-only.
//!
//! The rest of the program reads what an author wrote through a [`Tree`] only. Its *listing*
//! (names, kinds, link targets) is read once, when the tree is opened. The *contents* of files
//! are read on demand, from memory, a directory, or the object database of git. So a build sees
//! the same names from beginning to end, and opening a repository of a million files reads only
//! their names.
//!
//! **Links.** Git records a symbolic link as a file that contains a path. A tree resolves links
//! itself, in memory, over its own listing ([`Listing::lookup`]); the operating system never
//! follows one. So a link can lead only to an entry of the listing.
//!
//! * **Invariant:** no link leads out of the repository. A link with an absolute target, or with
//!   more `..` than there are directories above it, is a [`LookupError::LeavesRepository`],
//!   wherever it leads.
//! * **Invariant:** resolution ends. It follows at most [`LINK_HOPS_MAX`] links.
//! * Every segment of a path may be a link: `a/b/c` works when `a` is a link to a directory.
//! * `..` in a target is the parent of the directory that was reached after following links, as
//!   in POSIX.
//!
//! **Files elsewhere.** A documentation may name files by URL. Where the configuration allows it,
//! they are fetched ([`remote`]) and become part of the tree: [`Tree::remote`].
//!
//! **Days.** A documentation may ask for the days on which its files were last changed. They are
//! read from the history of the commit ([`history`]) and become part of the tree:
//! [`Tree::history`].
//!
//! **The same commit gives the same tree.** A tree contains only what git records: no empty
//! directories, sockets, devices or modes. [`directory`] leaves out files that git ignores. Every
//! reader leaves out names that are not valid paths (not UTF-8), with a diagnostic.
//!
//! Sources: POSIX.1-2024 §4.16 (pathname resolution), `gitrepository-layout(5)`,
//! `gitignore(5)`; `internals/decisions#links-inside-a-repository`.

mod path;
mod listing;
pub mod directory;
pub mod git;
pub mod history;
pub mod remote;

use std::collections::HashMap;
use std::io;

use bytes::Bytes;

use history::History;
pub use listing::{Conflict, EntryKind, Found, Kind, LINK_HOPS_MAX, Listing, LookupError, Node};
pub use path::{InvalidTreePath, TreePath};
use remote::Remote;

/// One commit of a repository, read-only.
#[derive(Debug)]
pub struct Tree {
    listing: Listing,
    contents: Contents,
    docs_root: TreePath,
    remote: Remote,
    history: Option<History>,
    /// Files whose bytes replace the bytes in `contents`, by path without links.
    changed: HashMap<TreePath, Bytes>,
}

/// Where the contents of a tree's files are.
#[derive(Debug)]
enum Contents {
    /// In memory, by path without links.
    Memory(HashMap<TreePath, Bytes>),
    /// In a directory of the file system.
    Directory(directory::Reader),
    /// In the object database of a mirror.
    Git(git::Reader),
}

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The path does not lead to anything.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// The path leads to a directory or a submodule.
    #[error("{path} is not a file")]
    NotAFile {
        /// Where the path leads.
        path: TreePath,
    },
    /// The file is too long.
    #[error("{bytes} bytes are more than the {limit} allowed")]
    TooLarge {
        /// Its length, in bytes.
        bytes: u64,
        /// The largest length, in bytes.
        limit: u64,
    },
    /// The file could not be read, or is no longer what the listing says.
    #[error("read {path}")]
    Io {
        /// The file.
        path: TreePath,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

// === impl Tree ===

impl Tree {
    /// Makes a tree of files in memory, with links from path to target.
    ///
    /// ```
    /// use waypost::source::{Tree, TreePath};
    ///
    /// let skill = TreePath::parse("shared/SKILL.md")?;
    /// let link = TreePath::parse("docs/skill.md")?;
    /// let tree = Tree::from_files(
    ///     [(skill.clone(), "---\nname: acme\n---".into())],
    ///     [(link.clone(), "../shared/SKILL.md".into())],
    /// );
    /// assert_eq!(tree.lookup(&link).unwrap().path, skill);
    /// # Ok::<(), waypost::source::InvalidTreePath>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When a path is given twice, or is below a file or link.
    #[must_use]
    pub fn from_files(
        files: impl IntoIterator<Item = (TreePath, Bytes)>,
        links: impl IntoIterator<Item = (TreePath, Box<str>)>,
    ) -> Self {
        let mut listing = Listing::default();
        let mut contents = HashMap::new();
        let mut insert = |path: &TreePath, node| {
            listing
                .insert(path.clone(), node)
                .expect("a file has nothing below it, and a path is given once");
        };
        for (path, bytes) in files {
            insert(&path, Node::File);
            contents.insert(path, bytes);
        }
        for (path, target) in links {
            insert(&path, Node::Link(target));
        }
        Self::new(listing, Contents::Memory(contents))
    }

    fn new(listing: Listing, contents: Contents) -> Self {
        Self {
            listing,
            contents,
            docs_root: TreePath::root(),
            remote: Remote::default(),
            history: None,
            changed: HashMap::new(),
        }
    }

    /// Sets the directory of the repository that contains the documentation.
    #[must_use]
    pub fn with_docs_root(self, docs_root: TreePath) -> Self {
        Self { docs_root, ..self }
    }

    /// Adds the files that the documentation names by URL.
    #[must_use]
    pub fn with_remote(self, remote: Remote) -> Self {
        Self { remote, ..self }
    }

    /// Adds the days on which files were last changed.
    #[must_use]
    pub fn with_history(self, history: History) -> Self {
        Self {
            history: Some(history),
            ..self
        }
    }

    /// Returns the same tree with other bytes in some of its files.
    ///
    /// # Panics
    ///
    /// If one of the paths does not lead to a file.
    #[must_use]
    pub fn with_changed(mut self, files: impl IntoIterator<Item = (TreePath, Bytes)>) -> Self {
        for (path, bytes) in files {
            let found = self.lookup(&path).expect("the caller has read the file");
            self.changed.insert(found.path, bytes);
        }
        self
    }

    /// Returns the files that the documentation names by URL.
    #[must_use]
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Returns the days on which files were last changed, if they were read.
    #[must_use]
    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// Returns the directory of the repository that contains the documentation.
    #[must_use]
    pub fn docs_root(&self) -> &TreePath {
        &self.docs_root
    }

    /// Resolves a path, following links at every segment.
    ///
    /// # Errors
    ///
    /// [`LookupError`] names the path or link that leads nowhere, and says why.
    pub fn lookup(&self, path: &TreePath) -> Result<Found, LookupError> {
        self.listing.lookup(path)
    }

    /// Reads the file that a path leads to.
    ///
    /// # Errors
    ///
    /// See [`ReadError`]. The limit of the reader on the length of files applies.
    pub fn read(&self, path: &TreePath) -> Result<Bytes, ReadError> {
        self.read_at_most(path, u64::MAX)
    }

    /// Reads the file that a path leads to, unless it is longer than `bytes_max`.
    ///
    /// # Errors
    ///
    /// See [`ReadError`].
    pub fn read_at_most(&self, path: &TreePath, bytes_max: u64) -> Result<Bytes, ReadError> {
        let found = self.lookup(path)?;
        if found.kind != Kind::File {
            return Err(ReadError::NotAFile { path: found.path });
        }
        let in_memory = |bytes: &Bytes| {
            let length = bytes.len() as u64;
            if length > bytes_max {
                return Err(ReadError::TooLarge {
                    bytes: length,
                    limit: bytes_max,
                });
            }
            Ok(bytes.clone())
        };
        if let Some(bytes) = self.changed.get(&found.path) {
            return in_memory(bytes);
        }
        match &self.contents {
            Contents::Memory(files) => {
                let bytes = files.get(&found.path);
                in_memory(bytes.expect("every listed file of a tree in memory has its bytes"))
            }
            Contents::Directory(reader) => reader.read(&found.path, bytes_max),
            Contents::Git(reader) => reader.read(&found.path, bytes_max),
        }
    }

    /// Returns the entries of a directory by name; links are not followed.
    ///
    /// # Errors
    ///
    /// [`LookupError`] when the path does not lead to a directory.
    pub fn list(&self, directory: &TreePath) -> Result<Vec<(Box<str>, EntryKind)>, LookupError> {
        self.listing.list(directory)
    }

    /// Returns all regular files and links in path order; links are not followed.
    pub fn files_and_links(&self) -> impl Iterator<Item = &TreePath> {
        self.listing.files_and_links()
    }

    /// Returns all regular files in path order; links are not followed.
    pub fn files(&self) -> impl Iterator<Item = &TreePath> {
        self.listing.files()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    fn tree() -> Tree {
        Tree::from_files(
            [
                (path("docs/a.mdx"), "alpha".into()),
                (path("b"), "b".into()),
            ],
            [(path("docs/link.mdx"), "a.mdx".into())],
        )
    }

    #[test]
    fn reading_follows_links() {
        let bytes = tree().read(&path("docs/link.mdx")).unwrap();
        assert_eq!(bytes, "alpha");
    }

    #[test]
    fn a_directory_is_not_read() {
        let error = tree().read(&path("docs")).unwrap_err();
        assert!(matches!(error, ReadError::NotAFile { path } if path.as_str() == "docs"));
    }

    #[test]
    fn a_file_over_the_limit_is_an_error_with_both_lengths() {
        let error = tree().read_at_most(&path("docs/a.mdx"), 4).unwrap_err();
        assert!(matches!(error, ReadError::TooLarge { bytes: 5, limit: 4 }));
    }

    #[test]
    fn files_are_listed_in_path_order_without_links() {
        let tree = tree();
        let files: Vec<_> = tree.files().map(TreePath::as_str).collect();
        assert_eq!(files, ["b", "docs/a.mdx"]);
    }
}

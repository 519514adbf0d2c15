//! Source: one commit of a repository, read-only.
//!
//! A [`Tree`] is the only way the rest of the program sees what an author wrote. Its
//! *listing* (names, kinds, link targets) is taken once, when the tree is opened; the
//! *contents* of files are read on demand from wherever they are: memory, a directory, a
//! git object database. So a build sees one state of names throughout, and a repository
//! of a million files costs what its names cost.
//!
//! **Links.** Git records a symbolic link as a file that holds a path. A tree resolves
//! links itself, in memory, over its own listing ([`Listing::lookup`]): the operating
//! system never follows one. A link can therefore lead only to what is listed.
//!
//! * **Invariant:** no link leads out of the repository. An absolute target and one with
//!   more `..` than there are directories above it are
//!   [`LookupError::LeavesRepository`], whatever stands at the far end.
//! * **Invariant:** resolution ends. It follows at most [`LINK_HOPS_MAX`] links.
//! * Every segment may be a link: `a/b/c` works when `a` leads elsewhere.
//! * `..` in a target means the directory that holds the place reached so far, after
//!   links, as POSIX has it.
//!
//! **What is elsewhere.** A documentation may name files by URL. Where the configuration
//! allows it they are fetched ([`remote`]) and part of the tree: [`Tree::remote`].
//!
//! **The same commit gives the same tree.** What git does not record is not here: empty
//! directories, sockets and devices, modes. What is not committed because git ignores it
//! is left out by [`directory`]; what is no valid path (names that are not UTF-8) is left
//! out with a diagnostic by every reader.
//!
//! Sources: POSIX.1-2024 §4.16 (pathname resolution), `gitrepository-layout(5)`,
//! `gitignore(5)`; `internals/decisions#links-inside-a-repository`.

mod path;
mod listing;
pub mod directory;
pub mod git;
pub mod remote;

use std::collections::HashMap;
use std::io;

use bytes::Bytes;

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
    /// The files whose bytes are not those of `contents`, by real path.
    changed: HashMap<TreePath, Bytes>,
}

/// Where the bytes of a tree's files are.
#[derive(Debug)]
enum Contents {
    /// In memory, by real path.
    Memory(HashMap<TreePath, Bytes>),
    /// Below a directory of the file system.
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
        /// Where the path led.
        path: TreePath,
    },
    /// The file is longer than it may be.
    #[error("{bytes} bytes are more than the {limit} allowed")]
    TooLarge {
        /// How long it is.
        bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// The file could not be read, or is no longer what the listing says.
    #[error("read {path}")]
    Io {
        /// Which file.
        path: TreePath,
        /// What the system said.
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
    /// When one path lies below another that is no directory: the caller's mistake.
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
            changed: HashMap::new(),
        }
    }

    /// Names the directory of the repository that holds the documentation.
    #[must_use]
    pub fn with_docs_root(self, docs_root: TreePath) -> Self {
        Self { docs_root, ..self }
    }

    /// Adds what came of the URLs that the documentation names.
    #[must_use]
    pub fn with_remote(self, remote: Remote) -> Self {
        Self { remote, ..self }
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

    /// Returns what came of the URLs that the documentation names.
    #[must_use]
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Returns the directory of the repository that holds the documentation.
    #[must_use]
    pub fn docs_root(&self) -> &TreePath {
        &self.docs_root
    }

    /// Finds what a path leads to, following links at every segment.
    ///
    /// # Errors
    ///
    /// [`LookupError`] says which path or link leads nowhere, and why.
    pub fn lookup(&self, path: &TreePath) -> Result<Found, LookupError> {
        self.listing.lookup(path)
    }

    /// Reads the file that a path leads to.
    ///
    /// # Errors
    ///
    /// See [`ReadError`]. A directory's own limit on the length of files applies.
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

    /// Returns what a directory holds, by name, links unresolved.
    ///
    /// # Errors
    ///
    /// [`LookupError`] when the path leads nowhere or to something else.
    pub fn list(&self, directory: &TreePath) -> Result<Vec<(Box<str>, EntryKind)>, LookupError> {
        self.listing.list(directory)
    }

    /// Returns every regular file and every link in path order, links not followed.
    pub fn files_and_links(&self) -> impl Iterator<Item = &TreePath> {
        self.listing.files_and_links()
    }

    /// Returns every regular file in path order, links not followed.
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
    fn a_file_over_the_limit_is_refused_with_both_lengths() {
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

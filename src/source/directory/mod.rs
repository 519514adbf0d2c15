//! A directory of the file system, read as git would have recorded it.
//!
//! `waypost build`, `check`, `preview` and `publish` read a directory: mostly a working tree,
//! sometimes an export without `.git`. The names are listed in one walk; a file is opened when its
//! content is read.
//!
//! * **Invariant:** no content outside the root is read. Only git's own directory may be elsewhere,
//!   as for a linked working tree. The root is opened once, and every path is opened below it,
//!   segment by segment, with `O_NOFOLLOW`. So a directory or file that is replaced by a link after
//!   the walk gives an error.
//! * Left out, as by git: `.git`; files that a `.gitignore` of the repository or `info/exclude`
//!   matches, unless git has recorded them; empty directories; sockets, pipes and devices; the
//!   files of a nested repository or a submodule (a [`Node::Submodule`]).
//! * Left out with a diagnostic: names and link targets that are not UTF-8 (`source-name`).
//! * The user's own file of patterns (`core.excludesFile`) is not read, because a build must not
//!   depend on the user who runs it.
//!
//! Sources: `gitignore(5)`, `gitrepository-layout(5)`, `open(2)` on `O_NOFOLLOW`.

mod ignored;
mod tracked;
mod walk;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};

use super::{Contents, LookupError, Node, ReadError, Tree, TreePath};
use crate::diagnostic::Diagnostic;
use tracked::GitDirectory;

/// The limits of a directory that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many files, links and directories are listed.
    pub entries_max: usize,
    /// The longest file that is read, in bytes.
    pub file_bytes_max: u64,
    /// How deep directories may be nested. One file descriptor is open for each level.
    pub depth_max: usize,
}

/// Why a directory could not be opened as a repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A directory could not be read.
    #[error("read directory {}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// There are too many entries.
    #[error("repository has more than {limit} files and directories")]
    TooManyEntries {
        /// How many are allowed.
        limit: usize,
    },
    /// Directories are nested too deep.
    #[error("directory {path} is nested more than {limit} levels deep")]
    TooDeep {
        /// The first directory that is too deep.
        path: TreePath,
        /// How many levels are allowed.
        limit: usize,
    },
    /// The documentation is not below the root.
    #[error("{} is not in the repository {}", docs.display(), root.display())]
    Outside {
        /// Where the documentation is.
        docs: PathBuf,
        /// Where the repository is.
        root: PathBuf,
    },
    /// The path of the documentation is not a valid path of a repository.
    #[error("{} cannot be a path of a repository", docs.display())]
    DocsPath {
        /// Where the documentation is.
        docs: PathBuf,
    },
    /// There is no directory of the documentation.
    #[error("find the documentation")]
    Docs(#[source] LookupError),
}

/// Reads files below a root directory that stays open.
#[derive(Debug)]
pub(super) struct Reader {
    root: OwnedFd,
    file_bytes_max: u64,
}

// === impl Limits ===

impl Default for Limits {
    /// Ten times the size of the largest documentation repositories that we have seen.
    fn default() -> Self {
        Self {
            entries_max: 1_000_000,
            file_bytes_max: 100 << 20,
            depth_max: 128,
        }
    }
}

// === impl Reader ===

impl Reader {
    /// Reads the file at a path without links.
    pub(super) fn read(&self, path: &TreePath, bytes_max: u64) -> Result<bytes::Bytes, ReadError> {
        let limit = bytes_max.min(self.file_bytes_max);
        let failed = |source: io::Error| ReadError::Io {
            path: path.clone(),
            source,
        };
        let too_large = |bytes| ReadError::TooLarge { bytes, limit };

        let file = self.open(path).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| failed(errno.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let message = "it is no longer a regular file";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, message)));
        }
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        if length > limit {
            return Err(too_large(length));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        // One byte more than allowed, to notice a file that has grown.
        let mut file = file.take(limit.saturating_add(1));
        file.read_to_end(&mut bytes).map_err(failed)?;
        let length = bytes.len() as u64;
        if length > limit {
            return Err(too_large(length));
        }
        Ok(bytes.into())
    }

    fn open(&self, path: &TreePath) -> io::Result<File> {
        let Some(parent) = path.parent() else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let mut directory = None;
        for segment in parent.segments() {
            let above = directory.as_ref().unwrap_or(&self.root);
            directory = Some(walk::open_directory(above, segment)?);
        }
        let directory = directory.as_ref().unwrap_or(&self.root);
        // `NONBLOCK`: opening a pipe that has replaced the file must not block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, path.name(), flags, Mode::empty())?;
        Ok(file.into())
    }
}

// === opening ===

/// Opens a directory as a repository with its documentation at `docs`.
///
/// Names that are not valid paths are left out, with a diagnostic. A `docs` that leads through
/// links is replaced by the path without links.
///
/// # Errors
///
/// [`OpenError`] when a part of the directory cannot be read, or a limit is exceeded.
pub fn open(
    root: &Path,
    docs: &TreePath,
    limits: Limits,
) -> Result<(Tree, Vec<Diagnostic>), OpenError> {
    let failed = |source| OpenError::Io {
        path: root.to_owned(),
        source,
    };
    // The root itself may be reached through links, because the user of the program names it.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let descriptor =
        rustix::fs::open(root, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    let (listing, diagnostics) = walk::list(root, &descriptor, limits)?;
    let reader = Reader {
        root: descriptor,
        file_bytes_max: limits.file_bytes_max,
    };
    let tree = Tree::new(listing, Contents::Directory(reader));
    let found = tree.lookup(docs).map_err(OpenError::Docs)?;
    if found.kind != super::Kind::Directory {
        let path = found.path;
        return Err(OpenError::Docs(LookupError::NotADirectory { path }));
    }
    Ok((tree.with_docs_root(found.path), diagnostics))
}

/// Returns the root of the repository that contains `path`: the nearest directory, from `path`
/// upwards, with a `.git`.
#[must_use]
pub fn find_root(path: &Path) -> Option<PathBuf> {
    // In a linked worktree and in a submodule `.git` is a file.
    path.ancestors()
        .find(|directory| directory.join(".git").symlink_metadata().is_ok())
        .map(Path::to_owned)
}

/// Splits the directory of the documentation into the root of its repository and the path below the
/// root.
///
/// The root is `root` when it is given, or the result of [`find_root`], or the directory itself.
///
/// # Errors
///
/// [`OpenError`] when a directory does not exist or the documentation is not below the root.
pub fn locate(docs: &Path, root: Option<&Path>) -> Result<(PathBuf, TreePath), OpenError> {
    let canonical = |path: &Path| {
        path.canonicalize().map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source,
        })
    };
    let docs = canonical(docs)?;
    let root = match root {
        Some(root) => canonical(root)?,
        None => find_root(&docs).unwrap_or_else(|| docs.clone()),
    };
    let Ok(below) = docs.strip_prefix(&root) else {
        return Err(OpenError::Outside { docs, root });
    };
    match below.to_str().map(TreePath::parse) {
        Some(Ok(path)) => Ok((root, path)),
        _ => Err(OpenError::DocsPath { docs }),
    }
}

/// Returns the files outside of a working tree that [`open`] reads: in a linked working tree,
/// git's own files are in another directory, which the file `.git` names.
#[must_use]
pub fn files_of_git(root: &Path) -> Vec<PathBuf> {
    let Some((own, _)) = GitDirectory::directories(root) else {
        return Vec::new();
    };
    let mut files = vec![own.join("commondir")];
    files.extend(
        GitDirectory::of(root)
            .into_iter()
            .flat_map(GitDirectory::files),
    );
    files
}

/// Returns the directories in which git keeps the commits of a working tree.
#[must_use]
pub fn directories_of_git(root: &Path) -> Vec<PathBuf> {
    let Some((own, common)) = GitDirectory::directories(root) else {
        return Vec::new();
    };
    // The file `.git` is the author's: it must not open any directory of this machine.
    let is_git = own.join("HEAD").is_file() && common.join("objects").is_dir();
    match is_git {
        true => vec![own, common],
        false => Vec::new(),
    }
}

/// Returns the directories in which git keeps the commits of a linked working tree, if its
/// repository names the working tree, too (`git-worktree(1)`).
#[must_use]
pub fn linked_directories_of_git(root: &Path) -> Vec<PathBuf> {
    let dot_git = root.join(".git");
    let Some((own, _)) = GitDirectory::directories(root).filter(|_| dot_git.is_file()) else {
        return Vec::new();
    };
    let named = std::fs::read_to_string(own.join("gitdir")).unwrap_or_default();
    match (
        dot_git.canonicalize(),
        Path::new(named.trim()).canonicalize(),
    ) {
        (Ok(own), Ok(named)) if own == named => directories_of_git(root),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

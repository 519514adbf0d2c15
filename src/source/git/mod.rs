//! A branch of a git repository, read from the object database of a mirror.
//!
//! A *mirror* is a bare repository in our directory; each URL has one. It has the newest commit
//! of each branch that was fetched. [`fetch`] updates one branch; [`Head::open`] lists the tree
//! of the commit and reads blobs on demand. There is no working tree, so no file, link or program
//! of an author is ever created on this disk.
//!
//! **Why the git program and not a library.** Operators know its transports and credentials (`ssh`
//! with its keys, https with its proxies), and security fixes come with the system. A fetch that
//! hangs is a process that can be killed, with all processes that it has started. A hostile pack is
//! parsed under the limits of that process. The cost is a few milliseconds for each call, and a
//! build makes five calls.
//!
//! * **Invariant:** git reads only our configuration: no settings of the system, the user or the
//!   repository, no hooks, no attributes, no prompts ([`program`]).
//! * **Invariant:** only the transports of [`Config`] are used. [`address`] checks this before
//!   the fetch, and git checks it during the fetch, also for redirects.
//! * **Invariant:** no credential is on a command line, in an error or in a log. Credentials are
//!   in files; a URL with a password is refused.
//! * A mirror is a cache: when a crash or a full disk has damaged it, it is created again.
//!
//! Contents are as committed: `.gitattributes` (line ends, filters, `export-ignore`) is not
//! applied. A Git LFS pointer is read as the committed text and gets a diagnostic. A submodule is
//! listed, but its files are not.
//!
//! Sources: `git-fetch(1)`, `git-ls-tree(1)`, `git-cat-file(1)`, `git(1)` on
//! `GIT_ALLOW_PROTOCOL`, `git-credential-store(1)`.

mod address;
mod failure;
pub mod local;
mod program;
mod reader;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{LookupError, Tree, TreePath};
use crate::diagnostic::Diagnostic;
use crate::digest::Digest;

pub use address::{Address, InvalidAddress};
pub use failure::{FetchError, GitError};
use program::Git;
pub(super) use reader::Reader;

/// The most paths in each list of changes.
const CHANGES_MAX: usize = 2000;

/// The directory of the mirrors, the allowed transports, and the limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The directory of mirrors.
    pub mirrors: PathBuf,
    /// The git program.
    pub program: PathBuf,
    /// Directories of this machine whose repositories may be fetched. By default there are none.
    pub local: Vec<PathBuf>,
    /// Whether `http://` is allowed; by default only `https` and `ssh` are allowed.
    pub plaintext: bool,
    /// The credentials for each host.
    pub credentials: Vec<Credential>,
    /// The largest number of files in a repository.
    pub entries_max: usize,
    /// The longest file that is read, in bytes.
    pub file_bytes_max: u64,
}

/// The files with the credentials for a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    /// The host, as in URLs.
    pub host: Box<str>,
    /// For https: a file in the format of `git-credential-store(1)`, a line
    /// `https://user:token@host`.
    pub https: Option<PathBuf>,
    /// For ssh: a private key that only its owner may read.
    pub ssh_key: Option<PathBuf>,
    /// For ssh: a file with the host keys that are accepted.
    pub ssh_known_hosts: Option<PathBuf>,
}

/// The newest commit of a branch, after a fetch.
#[derive(Debug)]
pub struct Head {
    git: Git,
    /// The commit's object id.
    pub commit: Box<str>,
    /// Its whole message.
    pub message: Box<str>,
    /// Its author's name.
    pub author: Box<str>,
    entries_max: usize,
    file_bytes_max: u64,
}

/// The changes between two commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths of new files.
    pub added: Vec<Box<str>>,
    /// Paths of files whose content or mode has changed.
    pub modified: Vec<Box<str>>,
    /// Paths of removed files.
    pub removed: Vec<Box<str>>,
}

/// Why the tree of a commit could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// git could not read the objects of the mirror.
    #[error("read the commit")]
    Git(#[from] GitError),
    /// The repository has too many files.
    #[error("repository has more than {limit} files")]
    TooManyEntries {
        /// How many are allowed.
        limit: usize,
    },
    /// The directory of the documentation does not exist.
    #[error("find the documentation")]
    Docs(#[source] LookupError),
}

/// Updates one branch in the mirror of a repository.
///
/// It blocks until the host has responded. The caller limits the time by killing the process
/// group.
///
/// # Errors
///
/// [`FetchError`] says what failed, and whether another attempt may succeed.
pub fn fetch(config: &Config, address: &Address) -> Result<Head, FetchError> {
    let directory = config.mirrors.join(mirror_name(address.url()));
    std::fs::create_dir_all(&config.mirrors).map_err(|source| FetchError::Mirror {
        path: config.mirrors.clone(),
        source,
    })?;
    // Several projects may share a repository, and git fails instead of waiting for its own
    // locks.
    let lock = lock(&directory.with_extension("lock"))?;
    let git = Git::new(config, &directory, address);
    let fetched = update(&git, &directory, address).or_else(|error| match error {
        FetchError::Damaged(_) => {
            log::warn!(target: "source", "a mirror is damaged and is created again: {error}");
            remove(&directory)?;
            update(&git, &directory, address)
        }
        error => Err(error),
    });
    drop(lock);
    fetched?;
    let [commit, author, message] = git.head(address.branch())?;
    Ok(Head {
        git,
        commit,
        message,
        author,
        entries_max: config.entries_max,
        file_bytes_max: config.file_bytes_max,
    })
}

fn update(git: &Git, directory: &Path, address: &Address) -> Result<(), FetchError> {
    if !directory.join("HEAD").exists() {
        remove(directory)?;
        git.init()?;
    }
    clear_locks(directory);
    git.fetch(address)?;
    git.collect_garbage();
    Ok(())
}

/// Returns the name of a mirror's directory.
///
/// It is a digest, because a URL may contain any character.
fn mirror_name(url: &str) -> String {
    let digest = Digest::of(url.as_bytes()).to_string();
    format!("{}.git", &digest[..32])
}

/// Waits until no other process fetches into the mirror.
fn lock(path: &Path) -> Result<File, FetchError> {
    let lock = || -> io::Result<File> {
        let file = File::create(path)?;
        file.lock()?;
        Ok(file)
    };
    lock().map_err(|source| FetchError::Mirror {
        path: path.to_owned(),
        source,
    })
}

/// Removes the lock files of killed git processes. We hold our own lock, so no git is running.
fn clear_locks(directory: &Path) {
    let own = [
        "HEAD.lock",
        "config.lock",
        "packed-refs.lock",
        "shallow.lock",
    ];
    let mut locks = Vec::from(own.map(|name| directory.join(name)));
    let mut directories = vec![directory.join("refs")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                directories.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "lock")
            {
                // No branch has such a name: git-check-ref-format(1), rule 1.
                locks.push(path);
            }
        }
    }
    for lock in locks {
        // Usually there is no lock file. If one cannot be removed, git reports it.
        let _ = std::fs::remove_file(lock);
    }
}

fn remove(directory: &Path) -> Result<(), FetchError> {
    match std::fs::remove_dir_all(directory) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(FetchError::Mirror {
            path: directory.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

// === impl Config ===

impl Config {
    /// Returns the default configuration with this directory of mirrors.
    #[must_use]
    pub fn new(mirrors: &Path) -> Self {
        Self {
            mirrors: mirrors.to_owned(),
            program: "git".into(),
            local: Vec::new(),
            plaintext: false,
            credentials: Vec::new(),
            entries_max: 1_000_000,
            file_bytes_max: 100 << 20,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Path::new("var/git"))
    }
}

// === impl Head ===

impl Head {
    /// Opens the commit's tree, with its documentation at `docs`.
    ///
    /// # Errors
    ///
    /// [`OpenError`]. Files that are left out get a diagnostic.
    pub fn open(&self, docs: &TreePath) -> Result<(Tree, Vec<Diagnostic>), OpenError> {
        let (reader, listing, diagnostics) = Reader::open(
            &self.git,
            &self.commit,
            self.entries_max,
            self.file_bytes_max,
        )?;
        let tree = Tree::new(listing, super::Contents::Git(reader));
        let found = tree.lookup(docs).map_err(OpenError::Docs)?;
        if found.kind != super::Kind::Directory {
            let path = found.path;
            return Err(OpenError::Docs(LookupError::NotADirectory { path }));
        }
        Ok((tree.with_docs_root(found.path), diagnostics))
    }

    /// Returns the changes since an earlier commit.
    ///
    /// Returns `None` when the mirror no longer has that commit, for example after a rewritten
    /// history.
    #[must_use]
    pub fn changes_since(&self, commit: &str) -> Option<Changes> {
        let listed = self.git.changes(commit, &self.commit).ok()?;
        let mut changes = Changes::default();
        let mut fields = listed.split(|byte| *byte == 0);
        while let (Some(kind), Some(path)) = (fields.next(), fields.next()) {
            let paths = match kind {
                b"A" => &mut changes.added,
                b"D" => &mut changes.removed,
                _ => &mut changes.modified,
            };
            if paths.len() < CHANGES_MAX {
                paths.push(String::from_utf8_lossy(path).into());
            }
        }
        Some(changes)
    }
}

//! The entries of git's index in a working tree, as far as a listing needs them.
//!
//! The index is needed for two cases. A file that was added although a pattern ignores it is part
//! of the repository; without the index it would be in a build from git and missing in a build
//! from the directory. And a submodule that is not checked out looks like an empty directory.
//!
//! The parser is our own. `git ls-files` would need git to be installed for `check` and
//! `preview`, starts programs that `.git/config` names (`core.fsmonitor`), and rejects a tree
//! of another user, as in a container. `gix-index` would add 28 crates for these 150 lines.
//! For 1,100 files the parser takes under 0.5 ms (a debug build), a git process 3 to 5 ms.
//!
//! **Limits.** An index that is split over two files (`core.splitIndex`), or larger than
//! [`INDEX_BYTES_MAX`], is not read. A diagnostic says so, and the patterns alone decide.
//!
//! Sources: `gitformat-index(5)`, `gitrepository-layout(5)`, `gitmodules(5)`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The largest index, in bytes: about two million files.
const INDEX_BYTES_MAX: u64 = 256 << 20;
/// How many bytes of git's small files are read; the rest is ignored.
const SMALL_BYTES_MAX: u64 = 1 << 20;
/// The bytes of the times, device, inode, mode, owner and size (`gitformat-index(5)`).
const STAT_BYTES: usize = 40;
const MODE_OFFSET: usize = 24;
/// The mode of a commit of another repository.
const GITLINK: u32 = 0o160_000;
/// The flag of an entry that has two more bytes of flags.
const EXTENDED: u16 = 0x4000;

/// The paths that git has recorded, in byte order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tracked {
    paths: Vec<(Vec<u8>, Kind)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    FileOrLink,
    Submodule,
}

/// The paths of git's files for a working tree.
#[derive(Debug)]
pub(super) struct GitDirectory {
    index: PathBuf,
    exclude: PathBuf,
    config: PathBuf,
}

/// Why an index was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum IndexError {
    #[error("read the git index")]
    Io(#[from] io::Error),
    #[error("the git index has more than {INDEX_BYTES_MAX} bytes")]
    TooLarge,
    #[error("the git index is split over two files")]
    Split,
    #[error("the git index has a form that this program does not know")]
    Unknown,
}

// === impl GitDirectory ===

impl GitDirectory {
    /// Finds git's directory of a working tree; `None` when there is none.
    pub(super) fn of(root: &Path) -> Option<Self> {
        let (own, common) = Self::directories(root)?;
        Some(Self {
            index: own.join("index"),
            exclude: common.join("info/exclude"),
            config: common.join("config"),
        })
    }

    /// Returns the directory of a working tree, and the one of its repository.
    pub(super) fn directories(root: &Path) -> Option<(PathBuf, PathBuf)> {
        let dot_git = root.join(".git");
        // `gitrepository-layout(5)`: in a linked working tree and in a submodule `.git` is
        // a file that names the directory, which names the one shared by all.
        let own = if dot_git.is_dir() {
            dot_git
        } else {
            let text = read_small(&dot_git).ok()?;
            root.join(text.strip_prefix("gitdir:")?.trim())
        };
        let common = match read_small(&own.join("commondir")) {
            Ok(text) => own.join(text.trim()),
            Err(_) => own.clone(),
        };
        Some((own, common))
    }

    /// Returns the files that are read.
    pub(super) fn files(self) -> [PathBuf; 3] {
        [self.index, self.exclude, self.config]
    }

    /// Returns the patterns for all working trees of the repository.
    pub(super) fn exclude(&self) -> String {
        // Most repositories have no such file. An unreadable file excludes nothing, as in git.
        read_small(&self.exclude).unwrap_or_default()
    }

    /// Reads the index; a repository without commits has none.
    pub(super) fn tracked(&self) -> Result<Tracked, IndexError> {
        let file = match open_regular(&self.index) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tracked::default()),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        file.take(INDEX_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > INDEX_BYTES_MAX {
            return Err(IndexError::TooLarge);
        }
        Tracked::parse(&bytes, self.digest_bytes())
    }

    /// Returns the length of object names: `extensions.objectFormat` in the configuration.
    fn digest_bytes(&self) -> usize {
        let config = read_small(&self.config).unwrap_or_default();
        let is_sha256 = config.lines().any(|line| {
            line.split_once('=').is_some_and(|(key, value)| {
                key.trim().eq_ignore_ascii_case("objectformat") && value.trim() == "sha256"
            })
        });
        if is_sha256 { 32 } else { 20 }
    }
}

// === impl Tracked ===

impl Tracked {
    /// Returns whether git has recorded a file or link at a path.
    pub(super) fn is_recorded(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// Returns whether git has recorded a commit of another repository at a path.
    pub(super) fn is_submodule(&self, path: &str) -> bool {
        self.find(path) == Some(Kind::Submodule)
    }

    /// Returns whether git has recorded anything below a directory.
    pub(super) fn is_recorded_below(&self, directory: &str) -> bool {
        let beneath = format!("{directory}/");
        let from = self
            .paths
            .partition_point(|(path, _)| **path < *beneath.as_bytes());
        self.paths
            .get(from)
            .is_some_and(|(path, _)| path.starts_with(beneath.as_bytes()))
    }

    fn find(&self, path: &str) -> Option<Kind> {
        let index = self
            .paths
            .binary_search_by(|(other, _)| (**other).cmp(path.as_bytes()))
            .ok()?;
        Some(self.paths[index].1)
    }

    fn parse(bytes: &[u8], digest_bytes: usize) -> Result<Self, IndexError> {
        Reader { bytes, at: 0 }
            .index(digest_bytes)
            .unwrap_or(Err(IndexError::Unknown))
    }
}

/// The bytes of an index and how far they are read; `None` when they end too early.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

// === impl Reader ===

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?.try_into().ok()?;
        Some(u16::from_be_bytes(bytes))
    }

    fn until_nul(&mut self) -> Option<&'b [u8]> {
        let length = memchr::memchr(0, self.bytes.get(self.at..)?)?;
        let taken = self.take(length)?;
        self.at += 1;
        Some(taken)
    }

    fn index(&mut self, digest_bytes: usize) -> Option<Result<Tracked, IndexError>> {
        let signature = self.take(4)?;
        let version = self.u32()?;
        if signature != b"DIRC" || !(2..=4).contains(&version) {
            return None;
        }
        let mut tracked = Tracked::default();
        let mut path = Vec::new();
        for _ in 0..self.u32()? {
            let kind = self.entry(version, digest_bytes, &mut path)?;
            tracked.paths.push((path.clone(), kind));
        }
        // Stages of a merge repeat a path, and order is by path first.
        tracked.paths.dedup_by(|one, other| one.0 == other.0);
        if self.has_extension(b"link", digest_bytes)? {
            return Some(Err(IndexError::Split));
        }
        tracked.paths.is_sorted().then_some(Ok(tracked))
    }

    /// Reads an entry: `path` becomes its path.
    fn entry(&mut self, version: u32, digest_bytes: usize, path: &mut Vec<u8>) -> Option<Kind> {
        let start = self.at;
        let stat = self.take(STAT_BYTES)?;
        let mode = stat[MODE_OFFSET..].first_chunk::<4>()?;
        self.take(digest_bytes)?;
        let flags = self.u16()?;
        if flags & EXTENDED != 0 {
            self.u16()?;
        }
        if version == 4 {
            // The path shares its beginning with the one before.
            let dropped = self.variable()?;
            path.truncate(path.len().checked_sub(dropped)?);
            path.extend_from_slice(self.until_nul()?);
        } else {
            path.clear();
            path.extend_from_slice(self.until_nul()?);
            // One to eight NULs fill the entry up to a multiple of eight.
            self.take((8 - (self.at - start) % 8) % 8)?;
        }
        Some(if u32::from_be_bytes(*mode) == GITLINK {
            Kind::Submodule
        } else {
            Kind::FileOrLink
        })
    }

    /// Reads a number in the variable width that pack files use for offsets.
    fn variable(&mut self) -> Option<usize> {
        let mut byte = *self.take(1)?.first()?;
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = *self.take(1)?.first()?;
            value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
        }
        Some(value)
    }

    fn has_extension(&mut self, wanted: &[u8; 4], digest_bytes: usize) -> Option<bool> {
        // The file ends with the digest of everything before it.
        while self.bytes.len().checked_sub(self.at)? > digest_bytes {
            let signature = self.take(4)?;
            if signature == wanted {
                return Some(true);
            }
            let length = usize::try_from(self.u32()?).ok()?;
            self.take(length)?;
        }
        Some(false)
    }
}

/// Opens a regular file. A pipe in its place is an error and does not block.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

fn read_small(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = open_regular(path)?;
    file.take(SMALL_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;

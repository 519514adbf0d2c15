//! The walk that lists the names in a directory.
//!
//! One file descriptor is open for each level, and each directory is opened by name below its
//! parent, without following links. Names are visited in byte order, so two walks of the same
//! files give the same result, also when a limit ends them.
//!
//! Sources: `openat(2)`, `readdir(3)` (`d_type` may be unknown), `gitignore(5)`.

use std::ffi::CString;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::ignored::{PATTERN_BYTES_MAX, Patterns};
use super::tracked::{GitDirectory, Tracked};
use super::{Limits, Node, OpenError, TreePath};
use crate::diagnostic::Diagnostic;
use crate::source::Listing;

/// How many names that are left out are reported; a last diagnostic says that there are more.
const DIAGNOSTICS_MAX: usize = 100;

/// The state of a walk.
struct Walk<'w> {
    root: &'w Path,
    limits: Limits,
    patterns: Patterns,
    tracked: Tracked,
    /// Whether the walk is in an ignored directory, where only recorded files are listed.
    only_recorded: bool,
    listing: Listing,
    entries: usize,
    diagnostics: Vec<Diagnostic>,
}

/// Whether git tracks an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TrackingStatus {
    /// No pattern ignores it.
    NotIgnored,
    /// A pattern ignores it, but git has recorded it or a file below it.
    Recorded,
    /// A pattern ignores it.
    Ignored,
}

/// Lists what git would record below `root`.
pub(super) fn list(
    root: &Path,
    descriptor: &OwnedFd,
    limits: Limits,
) -> Result<(Listing, Vec<Diagnostic>), OpenError> {
    let mut walk = Walk {
        root,
        limits,
        patterns: Patterns::default(),
        tracked: Tracked::default(),
        only_recorded: false,
        listing: Listing::default(),
        entries: 0,
        diagnostics: Vec::new(),
    };
    if let Some(git) = GitDirectory::of(root) {
        walk.read_git(&git);
    }
    walk.directory(descriptor, &TreePath::root())?;
    Ok((walk.listing, walk.diagnostics))
}

/// Opens a directory below another, without following a link.
pub(super) fn open_directory(above: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(above, name, flags, Mode::empty())?)
}

fn read_patterns(file: std::fs::File) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(PATTERN_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

// === impl Walk ===

impl Walk<'_> {
    /// Reads the index and the patterns in git's own directory.
    fn read_git(&mut self, git: &GitDirectory) {
        self.patterns.enter(0, git.exclude().as_bytes());
        match git.tracked() {
            Ok(tracked) => self.tracked = tracked,
            Err(error) => {
                let message =
                    format!("{error}; ignored files are left out even if git records them");
                self.diagnostics
                    .push(Diagnostic::warning("source-index", ".git/index", message));
            }
        }
    }

    fn tracking_status(&self, path: &TreePath, is_directory: bool) -> TrackingStatus {
        let segments: Vec<&str> = path.segments().collect();
        if !self.only_recorded && !self.patterns.ignore(&segments, is_directory) {
            return TrackingStatus::NotIgnored;
        }
        // `gitignore(5)`: patterns do not apply to recorded files.
        let path = path.as_str();
        if self.tracked.is_recorded(path) || is_directory && self.tracked.is_recorded_below(path) {
            TrackingStatus::Recorded
        } else {
            TrackingStatus::Ignored
        }
    }

    /// Lists one directory and all below it.
    fn directory(&mut self, directory: &OwnedFd, path: &TreePath) -> Result<(), OpenError> {
        let depth = path.segments().count();
        if depth > self.limits.depth_max {
            return Err(OpenError::TooDeep {
                path: path.clone(),
                limit: self.limits.depth_max,
            });
        }
        let failed = |walk: &Self, source| walk.failed(path, source);
        let entries = entries(directory).map_err(|source| failed(self, source))?;
        let entered = entries
            .iter()
            .any(|(name, kind)| name.as_bytes() == b".gitignore" && *kind == FileType::RegularFile)
            && {
                let text = self::open_file(directory, ".gitignore")
                    .and_then(read_patterns)
                    .map_err(|source| failed(self, source))?;
                self.patterns.enter(depth, &text)
            };
        for (name, kind) in entries {
            self.entry(directory, path, &name, kind)?;
        }
        if entered {
            self.patterns.leave();
        }
        Ok(())
    }

    /// Lists one entry of a directory.
    fn entry(
        &mut self,
        directory: &OwnedFd,
        above: &TreePath,
        name: &CString,
        kind: FileType,
    ) -> Result<(), OpenError> {
        // git records no file of this name, in upper or lower case.
        if name.as_bytes().eq_ignore_ascii_case(b".git") {
            return Ok(());
        }
        let Ok(text) = name.to_str() else {
            self.unnameable(above, &name.to_string_lossy(), "its name is not UTF-8");
            return Ok(());
        };
        let path = above
            .join(text)
            .expect("a name in a directory is a segment");
        let status = self.tracking_status(&path, kind == FileType::Directory);
        if status == TrackingStatus::Ignored {
            return Ok(());
        }
        self.entries += 1;
        if self.entries > self.limits.entries_max {
            return Err(OpenError::TooManyEntries {
                limit: self.limits.entries_max,
            });
        }
        match kind {
            FileType::RegularFile => self.insert(path, Node::File),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new())
                    .map_err(|errno| self.failed(&path, errno.into()))?;
                match target.to_str() {
                    Ok(target) => self.insert(path, Node::Link(target.into())),
                    Err(_) => self.unnameable(above, text, "the target of this link is not UTF-8"),
                }
            }
            FileType::Directory => {
                let below =
                    open_directory(directory, text).map_err(|source| self.failed(&path, source))?;
                let is_repository =
                    || rustix::fs::statat(&below, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok();
                if self.tracked.is_submodule(path.as_str()) || is_repository() {
                    self.insert(path, Node::Submodule);
                } else {
                    let only_recorded = status == TrackingStatus::Recorded;
                    let above = std::mem::replace(&mut self.only_recorded, only_recorded);
                    self.directory(&below, &path)?;
                    self.only_recorded = above;
                }
            }
            // git records no sockets, pipes and devices.
            _ => {}
        }
        Ok(())
    }

    fn insert(&mut self, path: TreePath, node: Node) {
        self.listing
            .insert(path, node)
            .expect("a walk meets each name once, directories before what they hold");
    }

    /// Reports an entry that is left out.
    fn unnameable(&mut self, above: &TreePath, name: &str, why: &str) {
        let path = if above.is_root() {
            name.to_owned()
        } else {
            format!("{above}/{name}")
        };
        let message = match self.diagnostics.len() {
            DIAGNOSTICS_MAX => format!("there are more than {DIAGNOSTICS_MAX} such names"),
            0..DIAGNOSTICS_MAX => format!("this is left out: {why}"),
            _ => return,
        };
        self.diagnostics
            .push(Diagnostic::warning("source-name", &path, message));
    }

    fn failed(&self, path: &TreePath, source: io::Error) -> OpenError {
        OpenError::Io {
            path: self.root.join(path.as_str()),
            source,
        }
    }
}

/// Returns a directory's entries in byte order of their names.
fn entries(directory: &OwnedFd) -> io::Result<Vec<(CString, FileType)>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            known => known,
        };
        entries.push((name.to_owned(), kind));
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries)
}

fn open_file(directory: &OwnedFd, name: &str) -> io::Result<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?.into())
}

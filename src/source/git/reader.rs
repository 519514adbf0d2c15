//! The tree of a commit: a listing, and a process that reads blobs.
//!
//! Sources: `git-ls-tree(1)` "OUTPUT FORMAT", `git-cat-file(1)` "BATCH OUTPUT", the Git LFS
//! specification (pointer files).

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::OpenError;
use super::failure::GitError;
use super::program::Git;
use crate::diagnostic::Diagnostic;
use crate::source::{Listing, Node, ReadError, TreePath};

/// How many diagnostics are reported; one more then says that there are more.
const DIAGNOSTICS_MAX: usize = 100;
/// The longest link target, in bytes: no file system allows a longer one.
const LINK_BYTES_MAX: u64 = 4096;
/// A pointer has a version, a digest and a size: 126 to 137 bytes.
const LFS_POINTER_BYTES: std::ops::RangeInclusive<u64> = 120..=200;
const LFS_POINTER_START: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Reads the blobs of a commit.
#[derive(Debug)]
pub(in crate::source) struct Reader {
    blobs: HashMap<TreePath, Blob>,
    objects: Mutex<Objects>,
    file_bytes_max: u64,
}

#[derive(Clone, Debug)]
struct Blob {
    id: Box<str>,
    bytes: u64,
}

/// A `git cat-file --batch` that runs as long as the reader exists.
#[derive(Debug)]
struct Objects {
    process: Child,
    requests: ChildStdin,
    responses: BufReader<ChildStdout>,
}

/// One line of the listing.
struct Entry<'l> {
    mode: &'l [u8],
    id: &'l str,
    bytes: u64,
    path: &'l [u8],
}

// === impl Reader ===

impl Reader {
    /// Lists a commit and starts the process that reads its blobs.
    pub(super) fn open(
        git: &Git,
        commit: &str,
        entries_max: usize,
        file_bytes_max: u64,
    ) -> Result<(Self, Listing, Vec<Diagnostic>), OpenError> {
        let mut listed = git.list(commit)?;
        let mut reader = Self {
            blobs: HashMap::new(),
            objects: Mutex::new(Objects::start(git)?),
            file_bytes_max,
        };
        let mut listing = Listing::default();
        let mut diagnostics = DiagnosticList::default();
        let mut number = 0;
        while let Some(line) = listed.next()? {
            if number == entries_max {
                return Err(OpenError::TooManyEntries { limit: entries_max });
            }
            number += 1;
            let entry = Entry::read(line).ok_or_else(|| GitError::unreadable("ls-tree"))?;
            reader.enter(&entry, &mut listing, &mut diagnostics)?;
        }
        Ok((reader, listing, diagnostics.entries))
    }

    fn enter(
        &mut self,
        entry: &Entry<'_>,
        listing: &mut Listing,
        diagnostics: &mut DiagnosticList,
    ) -> Result<(), OpenError> {
        let shown = String::from_utf8_lossy(entry.path);
        let path = match std::str::from_utf8(entry.path).map(TreePath::parse) {
            Ok(Ok(path)) => path,
            Ok(Err(invalid)) => {
                diagnostics.name(&shown, &invalid.to_string());
                return Ok(());
            }
            Err(_not_utf8) => {
                diagnostics.name(&shown, "its name is not UTF-8");
                return Ok(());
            }
        };
        let node = match entry.mode {
            b"160000" => Node::Submodule,
            b"120000" => {
                let target = self.blob(entry.id, entry.bytes, LINK_BYTES_MAX);
                match target.as_ref().map(|target| std::str::from_utf8(target)) {
                    Ok(Ok(target)) => Node::Link(target.into()),
                    Ok(Err(_not_utf8)) => {
                        diagnostics.name(&shown, "the target of this link is not UTF-8");
                        return Ok(());
                    }
                    Err(_unreadable) => {
                        diagnostics.name(&shown, "the target of this link cannot be read");
                        return Ok(());
                    }
                }
            }
            _ => {
                let blob = Blob {
                    id: entry.id.into(),
                    bytes: entry.bytes,
                };
                if LFS_POINTER_BYTES.contains(&entry.bytes) && self.is_pointer(&blob) {
                    diagnostics.pointer(&shown);
                }
                self.blobs.insert(path.clone(), blob);
                Node::File
            }
        };
        // git has checked that a tree has each entry only once, and that no file is also a
        // directory.
        listing
            .insert(path, node)
            .map_err(|conflict| GitError::damaged("ls-tree", &conflict.to_string()).into())
    }

    fn is_pointer(&self, blob: &Blob) -> bool {
        self.blob(&blob.id, blob.bytes, blob.bytes)
            .is_ok_and(|bytes| bytes.starts_with(LFS_POINTER_START))
    }

    /// Reads the file at a path in which all links are resolved.
    pub(in crate::source) fn read(
        &self,
        path: &TreePath,
        bytes_max: u64,
    ) -> Result<Bytes, ReadError> {
        let blob = self
            .blobs
            .get(path)
            .expect("every listed file of a commit is a blob");
        let limit = bytes_max.min(self.file_bytes_max);
        if blob.bytes > limit {
            return Err(ReadError::TooLarge {
                bytes: blob.bytes,
                limit,
            });
        }
        let read = self.blob(&blob.id, blob.bytes, limit);
        read.map(Bytes::from).map_err(|source| ReadError::Io {
            path: path.clone(),
            source,
        })
    }

    fn blob(&self, id: &str, bytes: u64, limit: u64) -> io::Result<Vec<u8>> {
        if bytes > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.read(id, bytes)
    }
}

// === impl Objects ===

impl Objects {
    fn start(git: &Git) -> Result<Self, GitError> {
        let mut process = git
            .objects()
            .spawn()
            .map_err(|error| GitError::damaged("cat-file", &error.to_string()))?;
        let pipes = (process.stdin.take(), process.stdout.take());
        let (Some(requests), Some(responses)) = pipes else {
            return Err(GitError::unreadable("cat-file"));
        };
        Ok(Self {
            process,
            requests,
            responses: BufReader::with_capacity(64 << 10, responses),
        })
    }

    /// Requests one object and reads it: `id type size`, a line end, the bytes, a line end.
    fn read(&mut self, id: &str, bytes: u64) -> io::Result<Vec<u8>> {
        self.requests.write_all(format!("{id}\n").as_bytes())?;
        let mut head = String::new();
        self.responses.read_line(&mut head)?;
        if head.trim_end() != format!("{id} blob {bytes}") {
            let message = format!("git responded {:?}", head.trim_end());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let length = usize::try_from(bytes).map_err(io::Error::other)?;
        let mut content = vec![0; length];
        self.responses.read_exact(&mut content)?;
        let mut end = [0];
        self.responses.read_exact(&mut end)?;
        Ok(content)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // The process only reads, so killing it loses nothing. Waiting for it prevents a zombie.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

// === impl Entry ===

impl<'l> Entry<'l> {
    /// Reads `mode type id size<TAB>path`; the size is `-` when the object is not a blob.
    fn read(line: &'l [u8]) -> Option<Self> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let (fields, path) = (&line[..tab], &line[tab + 1..]);
        let mut fields = fields
            .split(|byte| *byte == b' ')
            .filter(|field| !field.is_empty());
        let (mode, _kind) = (fields.next()?, fields.next()?);
        let id = std::str::from_utf8(fields.next()?).ok()?;
        let bytes = std::str::from_utf8(fields.next()?).ok()?;
        Some(Self {
            mode,
            id,
            bytes: if bytes == "-" { 0 } else { bytes.parse().ok()? },
            path,
        })
    }
}

/// The diagnostics that were found up to now.
#[derive(Default)]
struct DiagnosticList {
    entries: Vec<Diagnostic>,
}

// === impl DiagnosticList ===

impl DiagnosticList {
    /// Reports an entry that is left out because of its name or its target.
    fn name(&mut self, path: &str, why: &str) {
        self.report(
            "source-name",
            path,
            format!("this is left out: {why}"),
            None,
        );
    }

    fn pointer(&mut self, path: &str) {
        let message = "this is a Git LFS pointer: the content is not in the repository".to_owned();
        let help = "commit the file itself, or link to where it is served";
        self.report("source-lfs", path, message, Some(help));
    }

    fn report(&mut self, rule: &'static str, path: &str, message: String, help: Option<&str>) {
        let diagnostic = match self.entries.len() {
            DIAGNOSTICS_MAX => {
                let message = format!("there are more than {DIAGNOSTICS_MAX} such files");
                Diagnostic::warning(rule, path, message)
            }
            0..DIAGNOSTICS_MAX => Diagnostic {
                help: help.map(str::to_owned),
                ..Diagnostic::warning(rule, path, message)
            },
            _ => return,
        };
        self.entries.push(diagnostic);
    }
}

//! The file of a copy.
//!
//! ```text
//! waypost copy 1 {SHA-256 of everything after this line}
//! {description, JSON on one line}
//! {field lines, each with CRLF}{content}
//! ```
//!
//! It is written beside its place and moved there, and is not synced: a file that a crash has cut
//! has another digest. Before a copy is sent, the whole file is compared with its digest.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::policy::Terms;
use super::request::TargetKey;
use crate::digest::{Digest, Hasher};
use crate::response::{Encoding, Pieces, StoredContent};
use crate::site::ProjectId;

const FIRST_WORDS: &str = "waypost copy 1 ";
/// The length of the first line.
const FIRST_LINE_BYTES: usize = FIRST_WORDS.len() + 64 + 1;
/// The longest description.
const DESCRIPTION_BYTES_MAX: usize = 4 << 10;
/// The longest header section.
pub(super) const FIELDS_BYTES_MAX: usize = 32 << 10;
/// How many bytes one read gets.
const READ_BYTES: usize = 64 << 10;
/// How many bytes of the name of a file are random to anybody who does not know the target.
const NAME_BYTES: usize = 16;

/// The name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name([u8; NAME_BYTES]);

/// What a file says about its copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) project: String,
    /// The digest of the site record.
    pub(super) record: Digest,
    /// The target of the request, in hexadecimal digits.
    target: String,
    /// The name of the content coding; empty for none.
    coding: String,
    /// When the response was received, in seconds after the Unix epoch.
    pub(super) received: u64,
    /// See [`Terms`].
    pub(super) age: u64,
    pub(super) fresh: u64,
    pub(super) stale: u64,
    /// How many bytes of fields and content follow.
    pub(super) fields: usize,
    pub(super) content: u64,
}

/// A copy that was read and has its digest.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) description: Description,
    pub(super) fields: Vec<(HeaderName, HeaderValue)>,
    pub(super) content: Arc<CopiedContent>,
}

/// The content of a copy, in its open file.
#[derive(Debug)]
pub(super) struct CopiedContent {
    file: Arc<File>,
    at: u64,
    length: u64,
}

struct CopiedPieces {
    file: Arc<File>,
    left: Range<u64>,
}

// === impl Name ===

impl Name {
    pub(super) fn of(
        project: &ProjectId,
        record: &Digest,
        target: &TargetKey,
        coding: Encoding,
    ) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(record.as_bytes());
        hasher.update(target.as_bytes());
        hasher.update(&[coding as u8]);
        hasher.update(project.as_str().as_bytes());
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&hasher.finish().as_bytes()[..NAME_BYTES]);
        Self(name)
    }

    /// Returns the path below the directory of copies.
    pub(super) fn path(&self, directory: &Path) -> PathBuf {
        let name = hex::encode(self.0);
        directory.join(&name[..2]).join(format!("{name}.copy"))
    }

    /// Reads the name of a file.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let mut name = [0; NAME_BYTES];
        hex::decode_to_slice(file.strip_suffix(".copy")?, &mut name).ok()?;
        Some(Self(name))
    }
}

// === impl Description ===

impl Description {
    pub(super) fn new(
        project: &ProjectId,
        record: Digest,
        target: &TargetKey,
        terms: &Terms,
        received: u64,
    ) -> Self {
        Self {
            project: project.as_str().to_owned(),
            record,
            target: hex::encode(target.as_bytes()),
            coding: terms.coding.coding().unwrap_or_default().to_owned(),
            received,
            age: terms.age,
            fresh: terms.fresh,
            stale: terms.stale,
            fields: 0,
            content: 0,
        }
    }

    /// Returns the age at a time, in seconds after the Unix epoch.
    pub(super) fn age_at(&self, now: u64) -> u64 {
        self.age.saturating_add(now.saturating_sub(self.received))
    }

    /// Returns whether the copy may be used at a time.
    pub(super) fn is_usable(&self, now: u64) -> bool {
        self.age_at(now) < self.fresh.saturating_add(self.stale)
    }

    /// Returns the requested address, and the coding.
    pub(super) fn key(&self) -> Option<(TargetKey, Encoding)> {
        let mut target = [0; 16];
        hex::decode_to_slice(&self.target, &mut target).ok()?;
        let mut codings = Encoding::CODED.into_iter().chain([Encoding::Identity]);
        let coding = codings.find(|it| it.coding().unwrap_or_default() == self.coding)?;
        Some((TargetKey::from_bytes(target), coding))
    }
}

/// Writes a copy into a new file; it is not moved to its place yet.
///
/// # Errors
///
/// When the disk is full, or does not work. A part of the file may be there.
pub(super) fn write(
    path: &Path,
    description: &mut Description,
    fields: &[u8],
    content: &[u8],
) -> io::Result<u64> {
    description.fields = fields.len();
    description.content = content.len() as u64;
    let mut described = serde_json::to_vec(description)?;
    described.push(b'\n');
    let mut hasher = Hasher::default();
    for part in [&described[..], fields, content] {
        hasher.update(part);
    }
    let first = format!("{FIRST_WORDS}{}\n", hasher.finish());
    let mut file = File::create(path)?;
    let mut bytes = 0;
    for part in [first.as_bytes(), &described, fields, content] {
        file.write_all(part)?;
        bytes += part.len() as u64;
    }
    Ok(bytes)
}

/// Reads the description of a file, and returns it with the length of the file. The digest is not
/// computed.
pub(super) fn describe(path: &Path) -> io::Result<(Description, u64)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut start = vec![0; FIRST_LINE_BYTES + DESCRIPTION_BYTES_MAX];
    let read = read_up_to(&file, &mut start)?;
    let (_digest, described) = split(&start[..read])?;
    let (description, rest) = described_in(described)?;
    let before = (read - rest.len()) as u64;
    let expected = before + description.fields as u64 + description.content;
    if expected != length {
        return Err(damaged("its length is wrong"));
    }
    Ok((description, length))
}

/// Opens a copy, and compares all of it with its digest.
///
/// # Errors
///
/// When it cannot be read, or is damaged.
pub(super) fn open(path: &Path) -> io::Result<Opened> {
    let file = File::open(path)?;
    let front_max = FIRST_LINE_BYTES + DESCRIPTION_BYTES_MAX + FIELDS_BYTES_MAX;
    let mut front = vec![0; front_max];
    let read = read_up_to(&file, &mut front)?;
    front.truncate(read);
    let (digest, described) = split(&front)?;
    let mut hasher = Hasher::default();
    hasher.update(described);
    let mut at = read as u64;
    if read == front_max {
        let mut piece = vec![0; READ_BYTES];
        loop {
            match file.read_at(&mut piece, at)? {
                0 => break,
                length => {
                    hasher.update(&piece[..length]);
                    at += length as u64;
                }
            }
        }
    }
    if hasher.finish() != digest {
        return Err(damaged("its digest is wrong"));
    }
    let (description, rest) = described_in(described)?;
    let fields = rest
        .get(..description.fields)
        .ok_or_else(|| damaged("its fields are not complete"))?;
    let content = (read - rest.len() + description.fields) as u64;
    if content + description.content != at {
        return Err(damaged("its length is wrong"));
    }
    Ok(Opened {
        fields: parsed(fields)?,
        content: Arc::new(CopiedContent {
            file: Arc::new(file),
            at: content,
            length: description.content,
        }),
        description,
    })
}

/// Removes a file; it may have gone already.
pub(super) fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            log::warn!(target: "copies", "cannot remove {}: {error}", path.display());
        }
        _ => {}
    }
}

/// Fills the buffer, or reads to the end of the file.
fn read_up_to(mut file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read(&mut buffer[read..])? {
            0 => break,
            length => read += length,
        }
    }
    Ok(read)
}

/// Splits the first line from the rest, and reads the digest in it.
fn split(start: &[u8]) -> io::Result<(Digest, &[u8])> {
    let found = start
        .split_at_checked(FIRST_LINE_BYTES)
        .and_then(|(line, rest)| {
            let line = str::from_utf8(line).ok()?;
            let digest = line.strip_prefix(FIRST_WORDS)?.strip_suffix('\n')?;
            Some((Digest::parse(digest).ok()?, rest))
        });
    found.ok_or_else(|| damaged("its first line is wrong"))
}

/// Reads the description, and returns what follows it.
fn described_in(described: &[u8]) -> io::Result<(Description, &[u8])> {
    let found = memchr::memchr(b'\n', described).and_then(|end| {
        let description = serde_json::from_slice(&described[..end]).ok()?;
        Some((description, &described[end + 1..]))
    });
    found.ok_or_else(|| damaged("its description cannot be read"))
}

fn parsed(fields: &[u8]) -> io::Result<Vec<(HeaderName, HeaderValue)>> {
    let lines = fields.split_inclusive(|&byte| byte == b'\n');
    let fields = lines.map(|line| {
        let line = line.strip_suffix(b"\r\n")?;
        let colon = memchr::memchr(b':', line)?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
        Some((name, value))
    });
    let fields: Option<Vec<_>> = fields.collect();
    fields.ok_or_else(|| damaged("its fields cannot be read"))
}

fn damaged(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

// === impl CopiedContent, CopiedPieces ===

impl StoredContent for CopiedContent {
    fn length(&self) -> u64 {
        self.length
    }

    fn open(&self, range: Range<u64>, _client: Option<IpAddr>) -> io::Result<Box<dyn Pieces>> {
        Ok(Box::new(CopiedPieces {
            file: Arc::clone(&self.file),
            left: self.at + range.start..self.at + range.end,
        }))
    }
}

impl Pieces for CopiedPieces {
    fn next(&mut self, bytes_max: usize) -> io::Result<Bytes> {
        let length = self.left.end - self.left.start;
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(bytes_max);
        let mut piece = BytesMut::zeroed(length);
        let read = self.file.read_at(&mut piece, self.left.start)?;
        piece.truncate(read);
        self.left.start += read as u64;
        Ok(piece.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &Path, content: &[u8]) -> Description {
        let terms = Terms {
            coding: Encoding::Gzip,
            age: 1,
            fresh: 2,
            stale: 3,
            length: None,
        };
        let (project, target) = (
            ProjectId::parse("acme").unwrap(),
            TargetKey::from_bytes([7; 16]),
        );
        let mut description =
            Description::new(&project, Digest::of(b"record"), &target, &terms, 1000);
        let fields = b"Content-Type: text/html\r\nX-A: \xe9 b\r\n";
        let bytes = write(path, &mut description, fields, content).unwrap();
        assert_eq!(bytes, fs::metadata(path).unwrap().len());
        description
    }

    #[test]
    fn a_copy_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        for length in [0, 1, FIELDS_BYTES_MAX + DESCRIPTION_BYTES_MAX, 300_000] {
            let content: Vec<u8> = (0_u8..251).cycle().take(length).collect();
            let description = written(&path, &content);
            let opened = open(&path).unwrap();
            assert_eq!(opened.description, description);
            let key = (TargetKey::from_bytes([7; 16]), Encoding::Gzip);
            assert_eq!(opened.description.key(), Some(key));
            assert_eq!(opened.fields[1].1.as_bytes(), b"\xe9 b");
            let body =
                crate::response::Body::Stored(crate::response::Stored::whole(opened.content));
            assert_eq!(body.read_all().unwrap(), content);
            let described = describe(&path).unwrap();
            assert_eq!(described.0, description);
        }
    }

    #[test]
    fn a_file_with_one_wrong_byte_or_without_its_end_is_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        written(&path, b"content");
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            fs::write(&path, &wrong).unwrap();
            assert!(open(&path).is_err(), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert!(open(&path).is_err(), "cut at {at}");
            assert!(describe(&path).is_err(), "cut at {at}");
        }
        fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
        assert!(open(&path).is_err());
    }
}

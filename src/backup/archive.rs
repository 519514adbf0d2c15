//! The archive of a backup: a stream of files, encrypted in blocks.
//!
//! The plain stream is one line of JSON for each file ([`Entry`]) and the bytes of the file after
//! it. The stream is cut into blocks of a mebibyte. A block is a line of JSON: the text that
//! [`SealKey`] has encrypted. Each block is authenticated with the name of the backup, its number,
//! and whether it is the last one. So no block can be changed, removed, or put in another place.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::store::documents::{SealKey, Sealed};

/// How many bytes a block has before it is encrypted.
const BLOCK_BYTES: usize = 1 << 20;
/// The longest line of a block that is read.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// The longest line that describes a file.
const ENTRY_BYTES_MAX: u64 = 64 << 10;

/// The place of the rows of a queue in a database.
pub(super) const QUEUE_ROWS: &str = "queue-rows";

/// What a file of an archive is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// The place that it belongs to: `configuration`, `store`, `pointer`, `queue`, `queue-rows`,
    /// `sites`, `certificates`, `tls`, `file`.
    pub place: Box<str>,
    /// Its path below the place; the key of the configuration that names it, for `file`.
    pub path: Box<str>,
    /// Its permissions.
    pub mode: u32,
    /// How many bytes follow.
    pub bytes: u64,
}

/// Writes an archive.
pub(super) struct Writer<'k> {
    out: BufWriter<File>,
    key: &'k SealKey,
    name: String,
    block: Vec<u8>,
    number: u64,
}

/// Reads an archive.
pub(super) struct Reader<'k> {
    plain: BufReader<Plain<'k>>,
}

/// The plain stream of an archive.
struct Plain<'k> {
    lines: BufReader<File>,
    key: &'k SealKey,
    name: String,
    block: Vec<u8>,
    /// How many bytes of the block were read.
    at: usize,
    number: u64,
    is_last: bool,
}

/// Returns what a block is authenticated with.
fn context(name: &str, number: u64, is_last: bool) -> String {
    let which = if is_last { "last block" } else { "block" };
    format!("waypost backup {name}, {which} {number}")
}

// === impl Writer ===

impl<'k> Writer<'k> {
    /// Begins an archive in a new file.
    pub(super) fn create(path: &Path, name: &str, key: &'k SealKey) -> Result<Self, Error> {
        let file = File::create_new(path).map_err(Error::on("create", path))?;
        Ok(Self {
            out: BufWriter::new(file),
            key,
            name: name.to_owned(),
            block: Vec::with_capacity(BLOCK_BYTES),
            number: 0,
        })
    }

    /// Adds a file. `bytes` must give as many bytes as the entry says.
    pub(super) fn add(&mut self, entry: &Entry, bytes: &mut dyn Read) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.append(&mut &*line, line.len() as u64)?;
        self.append(bytes, entry.bytes)
    }

    fn append(&mut self, from: &mut dyn Read, bytes: u64) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let room = (BLOCK_BYTES - self.block.len()) as u64;
            let read = from.take(left.min(room)).read_to_end(&mut self.block)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= read as u64;
            if self.block.len() == BLOCK_BYTES {
                self.write_block(false)?;
            }
        }
        Ok(())
    }

    fn write_block(&mut self, is_last: bool) -> io::Result<()> {
        let context = context(&self.name, self.number, is_last);
        let sealed = self.key.seal(&self.block, &context);
        let sealed = sealed.map_err(io::Error::other)?;
        serde_json::to_writer(&mut self.out, &sealed)?;
        self.out.write_all(b"\n")?;
        self.block.clear();
        self.number += 1;
        Ok(())
    }

    /// Writes the last block and flushes the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.write_block(true)?;
        let file = self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    }
}

// === impl Reader ===

impl<'k> Reader<'k> {
    /// Opens an archive.
    pub(super) fn open(path: &Path, name: &str, key: &'k SealKey) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::on("open", path))?;
        Ok(Self {
            plain: BufReader::with_capacity(
                64 << 10,
                Plain {
                    lines: BufReader::new(file),
                    key,
                    name: name.to_owned(),
                    block: Vec::new(),
                    at: 0,
                    number: 0,
                    is_last: false,
                },
            ),
        })
    }

    /// Returns the next file and a reader of its bytes; `None` at the end.
    ///
    /// The caller reads all bytes of a file before the next one.
    pub(super) fn next(&mut self) -> io::Result<Option<(Entry, io::Take<&mut dyn Read>)>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.plain).take(ENTRY_BYTES_MAX);
        limited.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let entry: Entry = serde_json::from_slice(&line)?;
        let bytes = entry.bytes;
        let plain: &mut dyn Read = &mut self.plain;
        Ok(Some((entry, plain.take(bytes))))
    }
}

impl Read for Plain<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at == self.block.len() {
            if self.is_last {
                return Ok(0);
            }
            self.read_block()?;
        }
        let left = &self.block[self.at..];
        let count = left.len().min(into.len());
        into[..count].copy_from_slice(&left[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Plain<'_> {
    fn read_block(&mut self) -> io::Result<()> {
        let mut line = Vec::new();
        let mut limited = (&mut self.lines).take(LINE_BYTES_MAX);
        limited.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Err(damaged("the archive ends too early"));
        }
        let sealed: Sealed = serde_json::from_slice(&line)?;
        self.is_last = self.lines.fill_buf()?.is_empty();
        let context = context(&self.name, self.number, self.is_last);
        let plain = self.key.unseal(&sealed, &context).map_err(|error| {
            let number = self.number;
            damaged(&format!("block {number} of the archive: {error}"))
        })?;
        self.block = plain;
        self.at = 0;
        self.number += 1;
        Ok(())
    }
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn entry(path: &str, bytes: u64) -> Entry {
        Entry {
            place: "store".into(),
            path: path.into(),
            mode: 0o600,
            bytes,
        }
    }

    fn read_all(path: &Path, name: &str, key: &SealKey) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut reader = Reader::open(path, name, key).map_err(io::Error::other)?;
        let mut files = Vec::new();
        while let Some((entry, mut from)) = reader.next()? {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes)?;
            files.push((entry.path.into(), bytes));
        }
        Ok(files)
    }

    #[test]
    fn an_archive_is_read_as_it_was_written_and_not_when_it_was_changed() {
        let root = tempfile::tempdir().unwrap();
        let key = root.path().join("key");
        SealKey::create(&key).unwrap();
        let key = SealKey::read(&key).unwrap().unwrap();
        let path = root.path().join("archive");
        let large: Vec<u8> = (0_u8..251).cycle().take(3 * BLOCK_BYTES + 5).collect();
        let mut writer = Writer::create(&path, "one", &key).unwrap();
        for (name, bytes) in [("a", &b"secret"[..]), ("empty", b""), ("large", &large)] {
            let entry = entry(name, bytes.len() as u64);
            writer.add(&entry, &mut &*bytes).unwrap();
        }
        // A file that became shorter is noticed.
        assert!(writer.add(&entry("short", 7), &mut &b"123"[..]).is_err());
        drop(writer);
        fs::remove_file(&path).unwrap();
        let mut writer = Writer::create(&path, "one", &key).unwrap();
        for (name, bytes) in [("a", &b"secret"[..]), ("empty", b""), ("large", &large)] {
            let entry = entry(name, bytes.len() as u64);
            writer.add(&entry, &mut &*bytes).unwrap();
        }
        writer.finish().unwrap();
        let files = read_all(&path, "one", &key).unwrap();
        assert_eq!(files.len(), 3);
        assert_eq!(files[0], ("a".to_owned(), b"secret".to_vec()));
        assert!(files[2].1 == large);

        assert!(read_all(&path, "two", &key).is_err(), "of another backup");
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("secret"));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        for changed in [
            format!("{}\n", lines[..3].join("\n")),
            format!("{}\n{}\n{}\n", lines[0], lines[2], lines[3]),
            format!("{}\n{}\n{}\n{}\n", lines[1], lines[0], lines[2], lines[3]),
            text[..text.len() - 1].to_owned(),
            String::new(),
        ] {
            fs::write(&path, changed).unwrap();
            assert!(read_all(&path, "one", &key).is_err());
        }
    }
}

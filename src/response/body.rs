//! The content of a response: bytes in memory, or a file that is read while it is sent.
//!
//! A file of any size costs the memory of one piece for each reader: a piece is read when the
//! piece before it has been written. Nothing is read for `HEAD`, 304 and the bytes outside a
//! range, because a file is opened only when its first piece is sent.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

/// How many bytes of a file one reader gets at once. A thousand slow readers hold 8 MiB.
pub const PIECE_BYTES: usize = 8 << 10;

/// The content of a response.
#[derive(Clone, Debug)]
pub enum Body {
    /// Bytes in memory; clones share them.
    Memory(Bytes),
    /// Bytes that are read while they are sent.
    Stored(Stored),
}

/// A part of a file, or all of it.
#[derive(Clone, Debug)]
pub struct Stored {
    content: Arc<dyn Content>,
    range: Range<u64>,
}

/// A file that can be sent.
pub trait Content: Debug + Send + Sync {
    /// Returns how many bytes it has, without reading it.
    fn length(&self) -> u64;

    /// Opens it, to read these bytes. It counts for the client, if there is one. It may block.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is known to be damaged; [`TooManyOpenFiles`].
    fn open(&self, range: Range<u64>, client: Option<IpAddr>) -> io::Result<Box<dyn Pieces>>;
}

/// A file was not opened, because the process has as many files open as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many files are open at the moment")]
pub struct TooManyOpenFiles;

/// The bytes of an open file, one piece after the other.
pub trait Pieces: Send {
    /// Reads the next bytes, at most `bytes_max`; an empty result is the end. It may block.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged. The damage may be found with the last piece,
    /// which is not returned then, so the client sees that the content is not complete.
    fn next(&mut self, bytes_max: usize) -> io::Result<Bytes>;
}

// === impl TooManyOpenFiles ===

impl TooManyOpenFiles {
    /// Returns whether it is the cause of an error.
    #[must_use]
    pub fn is_cause(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}

// === impl Body ===

impl Body {
    /// Returns how many bytes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::Stored(stored) => usize::try_from(stored.length()).unwrap_or(usize::MAX),
        }
    }

    /// Returns whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes if they are in memory.
    #[must_use]
    pub fn memory(&self) -> Option<&Bytes> {
        match self {
            Self::Memory(bytes) => Some(bytes),
            Self::Stored(_) => None,
        }
    }

    /// Returns a part.
    ///
    /// # Panics
    ///
    /// If the body does not have these bytes.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len());
        match self {
            Self::Memory(bytes) => Self::Memory(bytes.slice(range)),
            Self::Stored(stored) => {
                let start = stored.range.start;
                Self::Stored(Stored {
                    content: Arc::clone(&stored.content),
                    range: start + range.start as u64..start + range.end as u64,
                })
            }
        }
    }

    /// Reads all bytes into memory. It may block, and is for callers without an untrusted client:
    /// the preview and tests.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn read_all(&self) -> io::Result<Bytes> {
        let stored = match self {
            Self::Memory(bytes) => return Ok(bytes.clone()),
            Self::Stored(stored) => stored,
        };
        let mut pieces = stored.open(None)?;
        let mut all = BytesMut::with_capacity(self.len());
        loop {
            let piece = pieces.next(PIECE_BYTES)?;
            if piece.is_empty() {
                return Ok(all.freeze());
            }
            all.extend_from_slice(&piece);
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::Memory(Bytes::new())
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

// === impl Stored ===

impl Stored {
    /// Makes the body of a whole file.
    #[must_use]
    pub fn whole(content: Arc<dyn Content>) -> Self {
        Self {
            range: 0..content.length(),
            content,
        }
    }

    /// Returns how many bytes there are.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Opens the file for a client: its address, or the first one of its IPv6 prefix. It may block.
    ///
    /// # Errors
    ///
    /// See [`Content::open`].
    pub fn open(&self, client: Option<IpAddr>) -> io::Result<Box<dyn Pieces>> {
        self.content.open(self.range.clone(), client)
    }
}

//! Reading files of the store while they are sent.
//!
//! A read of a file may block, so it runs on the runtime's blocking pool. Only a few reads run at
//! once ([`READS_PER_PROCESSOR`]): with a slow disk, more readers wait without a thread. A reader
//! holds one piece ([`PIECE_BYTES`]), and gets the next piece when the client has taken it.

use std::io;
use std::net::IpAddr;
use std::num::NonZero;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::response::{PIECE_BYTES, Pieces, Stored};

/// How many reads run at once for each processor: a small part of the blocking pool, which has 512
/// threads. Each thread keeps memory of its own: with 16 threads on two processors, 1,000 slow
/// readers cost up to 73 MB, with six at most 49 MB.
const READS_PER_PROCESSOR: usize = 3;

/// Runs reads of files.
#[derive(Debug)]
pub(super) struct Reads {
    permits: Semaphore,
}

/// A file that is being sent.
pub(super) struct Sending {
    /// `None` after an error.
    pieces: Option<Box<dyn Pieces>>,
    /// How many bytes have not been read.
    left: u64,
}

// === impl Reads ===

impl Default for Reads {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(2, NonZero::get);
        Self {
            permits: Semaphore::new(processors * READS_PER_PROCESSOR),
        }
    }
}

impl Reads {
    /// Runs a function that may block. Returns `None` if it panics.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let _permit = self.permits.acquire().await.ok()?;
        match tokio::task::spawn_blocking(read).await {
            Ok(read) => Some(read),
            Err(error) => {
                log::error!(target: "gateway", "cannot read a file: {error}");
                None
            }
        }
    }

    /// Opens a file for a client.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub(super) async fn open(&self, stored: &Stored, client: IpAddr) -> io::Result<Sending> {
        let (stored, left) = (stored.clone(), stored.length());
        let opened = self.run(move || stored.open(Some(client))).await;
        Ok(Sending {
            pieces: Some(opened.unwrap_or_else(|| Err(panicked()))?),
            left,
        })
    }

    /// Returns the next piece; it is empty at the end.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is damaged.
    pub(super) async fn next(&self, sending: &mut Sending) -> io::Result<Bytes> {
        if sending.is_done() {
            return Ok(Bytes::new());
        }
        let mut reading = sending.pieces.take().ok_or_else(panicked)?;
        let read = self
            .run(move || {
                let piece = reading.next(PIECE_BYTES);
                (reading, piece)
            })
            .await;
        let (reading, piece) = read.ok_or_else(panicked)?;
        let piece = piece?;
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        sending.left = sending.left.saturating_sub(piece.len() as u64);
        sending.pieces = Some(reading);
        Ok(piece)
    }
}

fn panicked() -> io::Error {
    io::Error::other("the reading thread ended")
}

// === impl Sending ===

impl Sending {
    /// Returns whether all pieces have been taken.
    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }
}

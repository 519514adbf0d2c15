//! Responses that the kernel sends without a copy.
//!
//! Sending a long body from the memory of the process costs mostly the copy to the kernel. The
//! kernel sends the content of a file without one (`sendfile`). So a response with a long body that
//! is sent again and again gets a file in memory (`memfd`), with its head and its body. The file is
//! sealed, so its bytes cannot change while a client receives them. The head contains the date, so
//! each second needs a new file. Only a response that is sent many times in a second gets one.
//!
//! Each thread has a few places, so there are few files and no locks. A body belongs to one place,
//! by its address. Each response with the body that has the place adds a point; each response with
//! another body takes one away, and at zero the other one gets the place. So a place belongs to the
//! body that is sent most, and pages of an old release lose theirs.
//!
//! A slow client holds the file of its response, so old files may live longer than a second. The
//! process has a limit of files ([`FILES_MAX`]); beyond it, responses are copied.
//!
//! With TLS or HTTP/2 other bytes are sent, so those connections do not use this.
//!
//! Sources: `memfd_create(2)`, `fcntl(2)` (seals), `sendfile(2)`.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use tokio::sync::{Semaphore, SemaphorePermit};

/// A response with a shorter body is sent as fast with a copy.
const BODY_BYTES_MIN: usize = 16 << 10;
/// How many files this process has at most. A body that is in memory has at most 256 KiB.
pub const FILES_MAX: usize = 32;
/// How many places a thread has.
const PLACES_MAX: usize = 8;
/// The most points of a body.
const POINTS_MAX: u8 = 64;
/// How often a response is sent with a copy before it gets a file. Making the file takes as long as
/// a few copies.
const COPIES: u8 = 15;

thread_local! {
    static PLACES: RefCell<[Place; PLACES_MAX]> = RefCell::default();
}

/// The files that this process may still make.
static FILES: Semaphore = Semaphore::const_new(FILES_MAX);

/// A file in memory that nothing can change.
#[derive(Debug)]
pub(super) struct MemoryFile {
    file: File,
    /// Held until the file is dropped.
    _permit: SemaphorePermit<'static>,
}

/// A response that may be sent often.
#[derive(Debug, Default)]
struct Place {
    body: Bytes,
    points: u8,
    head: Vec<u8>,
    /// How often the response was sent with a copy.
    copies: u8,
    file: Option<Arc<MemoryFile>>,
}

/// Returns the file in memory with a response, if its body is long and it is sent often.
pub(super) fn of(head: &[u8], body: &Bytes) -> Option<Arc<MemoryFile>> {
    if body.len() < BODY_BYTES_MIN {
        return None;
    }
    // Allocations of this length begin at multiples of a page or of a large power of two.
    let number = (body.as_ptr().addr() >> 12) ^ (body.as_ptr().addr() >> 16);
    PLACES.with_borrow_mut(|places| places[number % PLACES_MAX].file_of(head, body))
}

// === impl Place ===

impl Place {
    fn file_of(&mut self, head: &[u8], body: &Bytes) -> Option<Arc<MemoryFile>> {
        if self.body.as_ptr() != body.as_ptr() || self.body.len() != body.len() {
            self.points = self.points.saturating_sub(1);
            if self.points > 0 {
                return None;
            }
            *self = Self {
                body: body.clone(),
                ..Self::default()
            };
        }
        self.points = (self.points + 1).min(POINTS_MAX);
        if self.head != head {
            self.head.clear();
            self.head.extend_from_slice(head);
            self.copies = 0;
            self.file = None;
        }
        if self.file.is_none() && self.copies == COPIES {
            match MemoryFile::new(&FILES, &[head, body]) {
                Ok(file) => self.file = file.map(Arc::new),
                Err(error) => log::debug!(target: "gateway", "a page is sent with a copy: {error}"),
            }
        }
        self.copies = (self.copies + 1).min(COPIES + 1);
        self.file.clone()
    }
}

// === impl MemoryFile ===

impl MemoryFile {
    /// Makes a file of these parts; `None` if there are too many files.
    ///
    /// # Errors
    ///
    /// When the system makes no such file.
    fn new(files: &'static Semaphore, parts: &[&[u8]]) -> io::Result<Option<Self>> {
        let Ok(permit) = files.try_acquire() else {
            return Ok(None);
        };
        let create = |flags| rustix::fs::memfd_create("waypost-response", flags);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = match create(flags | MemfdFlags::NOEXEC_SEAL) {
            // Linux before 6.3 does not know the flag that forbids to execute the file.
            Err(Errno::INVAL) => create(flags),
            created => created,
        };
        let mut file = File::from(file?);
        for part in parts {
            file.write_all(part)?;
        }
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        Ok(Some(Self {
            file,
            _permit: permit,
        }))
    }
}

impl Deref for MemoryFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn body(byte: u8) -> Bytes {
        vec![byte; BODY_BYTES_MIN].into()
    }

    #[test]
    fn a_response_that_is_sent_often_gets_a_file_that_cannot_change() {
        let body = body(b'x');
        for head in ["first\r\n\r\n", "a second later\r\n\r\n"] {
            for _ in 0..COPIES {
                assert!(of(head.as_bytes(), &body).is_none());
            }
            let file = of(head.as_bytes(), &body).unwrap();
            let mut content = vec![0; head.len() + BODY_BYTES_MIN + 1];
            let length = file.read_at(&mut content, 0).unwrap();
            assert!(content[..length] == [head.as_bytes(), &body[..]].concat());
            assert!(file.write_at(b"y", 0).is_err());
            assert!(file.set_len(0).is_err());
            let again = of(head.as_bytes(), &body).unwrap();
            assert!(Arc::ptr_eq(&file, &again));
        }
    }

    #[test]
    fn the_body_that_is_sent_most_has_the_place() {
        let (old, new) = (body(b'a'), body(b'b'));
        let mut place = Place::default();
        let mut send = |body: &Bytes, times: u8| {
            let files = (0..times).map(|_| place.file_of(b"head", body));
            files.last().unwrap().is_some()
        };
        assert!(send(&old, POINTS_MAX));
        assert!(!send(&new, POINTS_MAX - 1));
        assert!(send(&old, 1), "it is still there");
        // The old body has two points. The second response with the new one takes the place.
        assert!(!send(&new, 1 + COPIES));
        assert!(send(&new, 1));
        assert!(!send(&old, 1));
    }

    #[test]
    fn a_process_has_few_files() {
        static FILES: Semaphore = Semaphore::const_new(FILES_MAX);
        let new = || MemoryFile::new(&FILES, &[b"x"]).unwrap();
        let mut files: Vec<_> = (0..FILES_MAX).map(|_| new().unwrap()).collect();
        assert!(new().is_none() && new().is_none());
        files.pop();
        files.push(new().unwrap());
        assert!(new().is_none());
        drop(files);
        assert_eq!(FILES.available_permits(), FILES_MAX);
    }

    #[test]
    fn a_short_body_gets_no_file() {
        let short = Bytes::from(vec![b'x'; BODY_BYTES_MIN - 1]);
        assert!((0..100).all(|_| of(b"head", &short).is_none()));
    }
}

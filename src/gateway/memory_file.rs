//! Bodies that the kernel sends without a copy.
//!
//! Sending a long body from the memory of the process costs mostly the copy to the kernel. The
//! kernel sends the content of a file without one (`sendfile`). So a long body that is sent again
//! and again gets a file in memory (`memfd`). The file is sealed: what is on its way to a client
//! cannot change.
//!
//! Each thread has a few places, so there are few files and no locks. A body belongs to one place,
//! by its address. Each response with the body that has the place adds a point; each response with
//! another body takes one away, and at zero the other one gets the place. So a place belongs to the
//! body that is sent most, and pages of an old release lose theirs.
//!
//! With TLS or HTTP/2 the bytes of the body are not what is sent, so those connections do not use
//! this.
//!
//! Sources: `memfd_create(2)`, `fcntl(2)` (seals), `sendfile(2)`.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{MemfdFlags, SealFlags};

/// A shorter body is sent as fast with a copy.
const BODY_BYTES_MIN: usize = 16 << 10;
/// How many files a thread has at most.
pub const FILES_PER_THREAD: usize = 8;
/// A body gets a file when it has this many points.
const POINTS_MIN: u8 = 16;
/// The most points of a body.
const POINTS_MAX: u8 = 64;

thread_local! {
    static PLACES: RefCell<[Place; FILES_PER_THREAD]> = RefCell::default();
}

/// A body that may be sent often.
#[derive(Debug, Default)]
struct Place {
    body: Bytes,
    points: u8,
    file: Option<Arc<File>>,
}

/// Returns the file in memory with a body, if the body is long and is sent often.
pub(super) fn of(body: &Bytes) -> Option<Arc<File>> {
    if body.len() < BODY_BYTES_MIN {
        return None;
    }
    // Allocations of this length begin at multiples of a page or of a large power of two.
    let number = (body.as_ptr().addr() >> 12) ^ (body.as_ptr().addr() >> 16);
    PLACES.with_borrow_mut(|places| places[number % FILES_PER_THREAD].file_of(body))
}

// === impl Place ===

impl Place {
    fn file_of(&mut self, body: &Bytes) -> Option<Arc<File>> {
        if self.body.as_ptr() != body.as_ptr() || self.body.len() != body.len() {
            self.points = self.points.saturating_sub(1);
            if self.points == 0 {
                *self = Self {
                    body: body.clone(),
                    points: 1,
                    file: None,
                };
            }
            return None;
        }
        self.points = (self.points + 1).min(POINTS_MAX);
        if self.file.is_none() && self.points >= POINTS_MIN {
            match make(body) {
                Ok(file) => self.file = Some(Arc::new(file)),
                Err(error) => {
                    log::debug!(target: "gateway", "a page is sent with a copy: {error}");
                    self.points = 1;
                }
            }
        }
        self.file.clone()
    }
}

/// Makes a file in memory that nothing can change.
fn make(body: &[u8]) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("waypost-body", flags)?);
    file.write_all(body)?;
    let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    fn body(byte: u8) -> Bytes {
        vec![byte; BODY_BYTES_MIN].into()
    }

    #[test]
    fn a_body_that_is_sent_often_gets_a_file_that_cannot_change() {
        let body = body(b'x');
        let sent: Vec<_> = (0..POINTS_MIN).map(|_| of(&body)).collect();
        let (last, before) = sent.split_last().unwrap();
        assert!(before.iter().all(Option::is_none));
        let file = last.as_ref().unwrap();
        let mut content = vec![0; BODY_BYTES_MIN + 1];
        let length = file.read_at(&mut content, 0).unwrap();
        assert_eq!(content[..length], body[..]);
        assert!(file.write_at(b"y", 0).is_err());
        assert!(file.set_len(0).is_err());
    }

    #[test]
    fn the_body_that_is_sent_most_has_the_place() {
        let (old, new) = (body(b'a'), body(b'b'));
        let mut place = Place::default();
        let mut send = |body: &Bytes, times: u8| {
            let files = (0..times).map(|_| place.file_of(body));
            files.last().unwrap().is_some()
        };
        assert!(send(&old, POINTS_MAX));
        assert!(!send(&new, POINTS_MAX - 1));
        assert!(send(&old, 1), "it is still there");
        // Two points are left: they go, and then the new body collects its own.
        assert!(!send(&new, POINTS_MIN));
        assert!(send(&new, 1));
        assert!(!send(&old, 1));
    }

    #[test]
    fn a_short_body_gets_no_file() {
        let short = Bytes::from(vec![b'x'; BODY_BYTES_MIN - 1]);
        assert!((0..100).all(|_| of(&short).is_none()));
    }
}

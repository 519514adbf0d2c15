//! Bytes that a connection holds back, to write them together.
//!
//! A connection has the memory only while it holds bytes back: during one poll of its task, or
//! longer if the client does not read. Then the next connection on the same thread uses the memory.
//! So an idle connection needs none, and a busy one allocates nothing.

use std::cell::RefCell;

/// How many unused buffers a thread keeps.
const UNUSED_MAX: usize = 8;
/// How large a buffer that is kept may be, in bytes.
const KEPT_BYTES_MAX: usize = 128 << 10;
/// How large a new buffer is, in bytes.
const NEW_BYTES: usize = 16 << 10;

thread_local! {
    static UNUSED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that are not written yet, in their order.
#[derive(Debug, Default)]
pub(super) struct HeldBytes {
    buffer: Vec<u8>,
    /// How many bytes at the front of the buffer are written.
    written: usize,
}

// === impl HeldBytes ===

impl HeldBytes {
    pub(super) fn len(&self) -> usize {
        self.buffer.len() - self.written
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    /// Adds bytes at the end.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.buffer.capacity() == 0 {
            let unused = UNUSED.with_borrow_mut(Vec::pop);
            self.buffer = unused.unwrap_or_else(|| Vec::with_capacity(NEW_BYTES));
        }
        // A slow client may never empty the buffer: the written bytes are removed.
        if self.written > self.len() {
            self.buffer.drain(..self.written);
            self.written = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Removes bytes at the front, which are written.
    pub(super) fn advance(&mut self, written: usize) {
        self.written += written;
        if self.is_empty() {
            self.clear();
        }
    }

    /// Removes all bytes.
    pub(super) fn clear(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.written = 0;
        if !(1..=KEPT_BYTES_MAX).contains(&buffer.capacity()) {
            return;
        }
        buffer.clear();
        UNUSED.with_borrow_mut(|unused| {
            if unused.len() < UNUSED_MAX {
                unused.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_in_which_they_came() {
        let mut held = HeldBytes::default();
        let (mut came, mut left) = (Vec::new(), Vec::new());
        for round in 0..200_u8 {
            let bytes = vec![round; 700 + usize::from(round)];
            held.push(&bytes);
            came.extend_from_slice(&bytes);
            // The client reads less than comes, and then everything.
            let written = if round % 50 == 49 { held.len() } else { 650 };
            left.extend_from_slice(&held.bytes()[..written]);
            held.advance(written);
            assert_eq!(held.len(), came.len() - left.len());
        }
        assert_eq!(came, left);
        assert!(held.is_empty() && held.buffer.capacity() == 0);
    }

    #[test]
    fn the_memory_is_used_again() {
        let mut held = HeldBytes::default();
        held.push(b"a");
        let place = held.bytes().as_ptr();
        held.advance(1);
        let mut other = HeldBytes::default();
        other.push(b"b");
        assert_eq!(other.bytes().as_ptr(), place);
    }
}

//! Encoded forms of large texts.
//!
//! `llms-full.txt` contains the address of its site, so it cannot be encoded when the release is
//! built. Encoding a text of several MiB takes up to a second, and no request may wait that long.
//! So a large text is sent without coding until its encoded form exists. One thread makes encoded
//! forms, one at a time. After each it pauses nine times as long as it worked, so requests for many
//! texts use at most a tenth of one core.
//!
//! Encoded forms are in memory. Their bytes are limited together, also those that are no longer
//! in the cache but are still being sent to slow readers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::cache::{Bounded, Coded, bounded};
use crate::digest::Digest;

/// The encoder pauses for this many times the time that it worked.
const REST_FACTOR: u32 = 9;

/// The encoded forms of large texts.
#[derive(Debug)]
pub(super) struct Texts {
    /// `None` for a text that its coding does not make smaller.
    map: Bounded<Digest, Option<Coded>>,
    bytes_max: usize,
    /// How many bytes of encoded forms are in memory.
    live: Arc<AtomicUsize>,
    encoder: Mutex<Encoder>,
}

/// The state of the only encoder.
#[derive(Debug)]
enum Encoder {
    /// It may start at this time; at once if there is none.
    Resting(Option<Instant>),
    /// It runs.
    Working,
}

/// Bytes that are counted as long as somebody holds them.
struct Counted {
    bytes: Vec<u8>,
    live: Arc<AtomicUsize>,
}

/// The right to use the encoder. Dropping it begins the pause.
pub(super) struct EncoderPermit {
    texts: Arc<Texts>,
    since: Instant,
}

// === impl Texts ===

impl Texts {
    /// Makes room for this many bytes of encoded forms.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            map: bounded(bytes_max, 1),
            bytes_max,
            live: Arc::default(),
            encoder: Mutex::new(Encoder::Resting(None)),
        }
    }

    /// Looks up an encoded form. `None`: it is unknown. `Some(None)`: encoding does not make the
    /// text smaller.
    pub(super) fn get(&self, name: &Digest) -> Option<Option<Coded>> {
        self.map.get(name)
    }

    /// Returns the right to use the encoder; `None` while it works or pauses.
    pub(super) fn encoder_permit(self: &Arc<Self>) -> Option<EncoderPermit> {
        let since = Instant::now();
        let mut encoder = self.encoder();
        match *encoder {
            Encoder::Resting(until) if until.is_none_or(|until| until <= since) => {}
            _ => return None,
        }
        if self.bytes_max == 0 {
            return None;
        }
        *encoder = Encoder::Working;
        let texts = Arc::clone(self);
        Some(EncoderPermit { texts, since })
    }

    fn encoder(&self) -> MutexGuard<'_, Encoder> {
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl EncoderPermit ===

impl EncoderPermit {
    /// Stores an encoded form, if there is room; `bytes` is `None` if the coding does not make the
    /// text smaller.
    pub(super) fn put(
        &self,
        name: Digest,
        bytes: Option<Vec<u8>>,
        form: impl FnOnce(Bytes) -> Coded,
    ) {
        let texts = &self.texts;
        let Some(bytes) = bytes else {
            texts.map.insert(name, None);
            return;
        };
        let live = texts.live.load(Ordering::Relaxed);
        // Evicted forms that are still being sent may use as much memory as the cache.
        if live.saturating_add(bytes.len()) > 2 * texts.bytes_max {
            return;
        }
        texts.live.fetch_add(bytes.len(), Ordering::Relaxed);
        let live = Arc::clone(&texts.live);
        let counted = Bytes::from_owner(Counted { bytes, live });
        texts.map.insert(name, Some(form(counted)));
    }
}

impl Drop for EncoderPermit {
    fn drop(&mut self) {
        let rest = self.since.elapsed().saturating_mul(REST_FACTOR);
        let until = Instant::now().checked_add(rest.min(Duration::from_secs(3600)));
        *self.texts.encoder() = Encoder::Resting(until);
    }
}

// === impl Counted ===

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Encoding;

    fn form(digest: Digest) -> impl FnOnce(Bytes) -> Coded {
        move |bytes| Coded {
            bytes,
            encoding: Encoding::Gzip,
            digest,
        }
    }

    #[test]
    fn one_text_is_encoded_at_a_time_and_then_the_encoder_rests() {
        let texts = Arc::new(Texts::new(1 << 20));
        let permit = texts.encoder_permit().unwrap();
        assert!(texts.encoder_permit().is_none());
        // The pause is nine times as long as the work, so it has not ended yet.
        while permit.since.elapsed() < Duration::from_millis(100) {
            std::thread::yield_now();
        }
        drop(permit);
        assert!(texts.encoder_permit().is_none());
    }

    #[test]
    fn bytes_count_as_long_as_a_reader_holds_them() {
        let texts = Arc::new(Texts::new(1000));
        let permit = texts.encoder_permit().unwrap();
        let name = |n: u8| Digest::of(&[n]);
        let mut held = Vec::new();
        for n in 0..10 {
            permit.put(name(n), Some(vec![0; 600]), form(name(n)));
            held.extend(texts.get(&name(n)).flatten());
        }
        // The cache has room for one; readers hold others.
        assert_eq!(texts.live.load(Ordering::Relaxed), 600 * held.len());
        assert!(held.len() <= 3, "{}", held.len());
        drop(held);
        assert!(texts.live.load(Ordering::Relaxed) <= 1000);
        permit.put(name(20), Some(vec![0; 600]), form(name(20)));
        assert!(texts.get(&name(20)).flatten().is_some());
    }
}

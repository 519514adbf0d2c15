//! The limit on interim responses (1xx) of an upstream to one request.
//!
//! Over HTTP/2 no window limits the heads of responses: they wait in memory while the client reads
//! nothing. A response has few interim ones before it, so a response with more is invalid, also for a
//! client of HTTP/1.1.
//!
//! Sources: RFC 9110 §15.2 (interim responses), RFC 9113 §5.2.1 (what flow control limits).

/// How many interim responses a request may get.
const RESPONSES_MAX: u32 = 16;
/// How many bytes their heads may have together.
const BYTES_MAX: usize = 64 << 10;

/// The description of a response that exceeds the limit.
pub(super) const TOO_MANY: &str = "the response has too many interim responses before it";

/// Counts the interim responses to one request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interim {
    responses: u32,
    bytes: usize,
}

// === impl Interim ===

impl Interim {
    /// Counts one more, whose head has this length in bytes. Returns whether the client may get it.
    #[must_use]
    pub(super) fn add(&mut self, bytes: usize) -> bool {
        self.responses = self.responses.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
        self.responses <= RESPONSES_MAX && self.bytes <= BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_and_the_bytes_of_interim_responses_are_limited() {
        let admitted = |bytes: usize| {
            let mut interim = Interim::default();
            (0..100).take_while(|_| interim.add(bytes)).count()
        };
        assert_eq!(admitted(30), 16);
        assert_eq!(admitted(16 << 10), 4);
        assert_eq!(admitted(BYTES_MAX + 1), 0);
    }
}

//! The trace that a request belongs to.
//!
//! Source: W3C Trace Context, Level 1 (`traceparent`). A version after 00 is read as 00 (§4.3).

use std::cell::Cell;

/// The length of a value of version 00.
const BYTES: usize = 55;

/// The value of `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The id of the trace.
    pub trace: [u8; 16],
    /// The id of the caller's span.
    pub parent: [u8; 8],
    /// The flags; 1: the caller records the trace.
    pub flags: u8,
}

/// The id of a request, as `X-Request-Id` has it: 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(pub [u8; 16]);

/// What was made for a request that has no trace or no id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// A new trace. It replaces the fields of the request.
    pub trace: Option<TraceContext>,
    /// A new value of `X-Request-Id`.
    pub request_id: Option<RequestId>,
}

// === impl RequestId ===

impl RequestId {
    /// Returns the id of a request of this trace: that of the trace. Without a trace it is random.
    #[must_use]
    pub fn of(trace: Option<TraceContext>) -> Self {
        Self(trace.map_or_else(random_id, |trace| trace.trace))
    }

    /// Appends the value of `X-Request-Id`.
    pub fn write(&self, out: &mut Vec<u8>) {
        encode(&self.0, out);
    }
}

// === impl TraceContext ===

impl TraceContext {
    /// Reads the value of `traceparent`; `None` if it is not valid.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (known, rest) = value.split_at_checked(BYTES)?;
        let [v0, v1, b'-', known @ ..] = known else {
            return None;
        };
        let version = [*v0, *v1];
        let mut version_byte = [0];
        decode(&version, &mut version_byte)?;
        let is_longer_than_it_may_be = version == *b"00" && !rest.is_empty();
        let is_another_word = !rest.is_empty() && rest[0] != b'-';
        if version == *b"ff" || is_longer_than_it_may_be || is_another_word {
            return None;
        }
        let mut context = Self {
            trace: [0; 16],
            parent: [0; 8],
            flags: 0,
        };
        let mut flags = [0];
        decode(known.get(..32)?, &mut context.trace)?;
        decode(known.get(33..49)?, &mut context.parent)?;
        decode(known.get(50..52)?, &mut flags)?;
        context.flags = flags[0];
        let is_separated = known[32] == b'-' && known[49] == b'-';
        let is_named = context.trace != [0; 16] && context.parent != [0; 8];
        (is_separated && is_named).then_some(context)
    }

    /// Makes the context of a new trace. Its flag says that the caller does not record the trace.
    ///
    /// The ids are not secret: they come from a generator that starts with random bits of the
    /// system.
    #[must_use]
    pub fn random() -> Self {
        Self {
            trace: random_id(),
            parent: next().to_be_bytes(),
            flags: 0,
        }
    }

    /// Appends the id of the trace as it is written in `traceparent`.
    pub fn write_trace(&self, out: &mut Vec<u8>) {
        encode(&self.trace, out);
    }

    /// Appends the value of `traceparent`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"00-");
        self.write_trace(out);
        out.push(b'-');
        encode(&self.parent, out);
        out.push(b'-');
        encode(&[self.flags], out);
    }
}

/// Reads lower-case hexadecimal digits.
fn decode(digits: &[u8], into: &mut [u8]) -> Option<()> {
    if digits.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    hex::decode_to_slice(digits, into).ok()
}

fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Returns 128 random bits; not all are 0.
fn random_id() -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&next().to_be_bytes());
    id[8..].copy_from_slice(&next().to_be_bytes());
    id
}

/// Returns the next number of this thread that is not 0: SplitMix64.
fn next() -> u64 {
    thread_local! {
        static STATE: Cell<Option<u64>> = const { Cell::new(None) };
    }
    let state = STATE.get().unwrap_or_else(|| {
        let mut seed = [0; 8];
        // Without random bits, the address of a value of this thread distinguishes it.
        if getrandom::fill(&mut seed).is_err() {
            seed = (std::ptr::from_ref(&seed) as usize as u64).to_be_bytes();
        }
        u64::from_be_bytes(seed)
    });
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(Some(state));
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_value_is_read_and_written() {
        let context = TraceContext::parse(VALUE.as_bytes()).unwrap();
        assert_eq!(context.flags, 1);
        let mut out = Vec::new();
        context.write(&mut out);
        assert_eq!(out, VALUE.as_bytes());
        let later = VALUE.replacen("00", "cc", 1);
        for value in [later.clone(), format!("{later}-more")] {
            assert_eq!(TraceContext::parse(value.as_bytes()), Some(context));
        }
    }

    #[test]
    fn a_value_that_is_not_valid_is_none() {
        for value in [
            "",
            "00",
            &VALUE[..54],
            &format!("{VALUE}-more"),
            &format!("{VALUE}0"),
            &VALUE.replacen("00", "ff", 1),
            &VALUE.replacen("4b", "4B", 1),
            &VALUE.replacen("4b", "4x", 1),
            &VALUE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &VALUE.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &VALUE.replace("-01", "_01"),
            &VALUE.replace("-00f0", "_00f0"),
        ] {
            assert_eq!(TraceContext::parse(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn new_traces_differ_and_are_valid() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let context = TraceContext::random();
            let mut out = Vec::new();
            context.write(&mut out);
            assert_eq!(TraceContext::parse(&out), Some(context));
            assert!(seen.insert(context.trace));
        }
    }
}

//! Ranges of a file, for media players and resumed downloads.
//!
//! The response to one range of bytes is a 206. A request for several ranges gets the whole file,
//! which a server may always send (RFC 9110 §14.2): no request can ask for a thousand small pieces.
//!
//! Sources: RFC 9110 §13.1.5 (`If-Range`), §14 (ranges), §15.3.7, §15.5.17.

use std::ops::Range;

use http::header::{self, HeaderValue};

use super::{ETag, Problem, Response};

/// The part of a file that a `Range` selects.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selection {
    /// The whole file: there is no range, several, or an invalid one.
    Whole,
    /// These bytes.
    Part(Range<usize>),
    /// Bytes beyond the end.
    Nothing,
}

// === impl Response ===

impl Response {
    /// Turns a 200 without coding into the response to `Range` and `If-Range`.
    #[must_use]
    pub fn ranged(self, range: Option<&[u8]>, if_range: Option<&[u8]>) -> Self {
        if self.status != 200 {
            return self;
        }
        let whole = self.with(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let Some(range) = range.filter(|_| whole.is_meant(if_range)) else {
            return whole;
        };
        let length = whole.body.len();
        match select(range, length) {
            Selection::Whole => whole,
            Selection::Part(part) => {
                let text = format!("bytes {}-{}/{length}", part.start, part.end - 1);
                let body = whole.body.slice(part);
                let part = Self {
                    status: 206,
                    body,
                    ..whole
                };
                part.with(header::CONTENT_RANGE, made(&text))
            }
            Selection::Nothing => {
                let rejected = Problem::new(416, "the file has no such bytes").response();
                rejected.with(header::CONTENT_RANGE, made(&format!("bytes */{length}")))
            }
        }
    }

    /// RFC 9110 §13.1.5: the range belongs to the version that the client has a part of. A date
    /// does not prove that it is the same, so only a strong entity tag counts.
    fn is_meant(&self, if_range: Option<&[u8]>) -> bool {
        let is_this = |tag: &[u8], etag: &ETag| {
            let mut text = Vec::new();
            etag.write(&mut text);
            tag.trim_ascii() == text
        };
        match (if_range, &self.etag) {
            (None, _) => true,
            (Some(tag), Some(etag)) => is_this(tag, etag),
            (Some(_), None) => false,
        }
    }
}

fn made(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and punctuation")
}

/// Reads `Range` for a file of this length (RFC 9110 §14.1.2).
fn select(range: &[u8], length: usize) -> Selection {
    let Ok(text) = std::str::from_utf8(range) else {
        return Selection::Whole;
    };
    let Some((unit, set)) = text.split_once('=') else {
        return Selection::Whole;
    };
    let (set, number) = (set.trim(), |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        // A number that is too large for the type is beyond the end.
        is_number.then(|| digits.parse().unwrap_or(usize::MAX))
    });
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return Selection::Whole;
    }
    let Some((first, last)) = set.split_once('-') else {
        return Selection::Whole;
    };
    let part = match (first, number(first), last, number(last)) {
        // The last bytes.
        ("", _, _, Some(count)) => length.saturating_sub(count)..length,
        (_, Some(first), "", _) => first..length,
        (_, Some(first), _, Some(last)) if first <= last => {
            first..last.saturating_add(1).min(length)
        }
        _ => return Selection::Whole,
    };
    if part.is_empty() {
        Selection::Nothing
    } else {
        Selection::Part(part)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::digest::Digest;
    use crate::response::Encoding;

    #[test]
    fn a_single_range_is_parsed_as_specified() {
        for (range, expected) in [
            ("bytes=0-3", Selection::Part(0..4)),
            ("bytes=2-", Selection::Part(2..10)),
            ("bytes=-3", Selection::Part(7..10)),
            ("bytes=-30", Selection::Part(0..10)),
            ("bytes=8-99", Selection::Part(8..10)),
            ("Bytes = 0-0", Selection::Part(0..1)),
            ("bytes=0-99999999999999999999999", Selection::Part(0..10)),
            ("bytes=10-", Selection::Nothing),
            ("bytes=-0", Selection::Nothing),
            ("bytes=5-4", Selection::Whole),
            ("bytes=0-1,3-4", Selection::Whole),
            ("lines=0-1", Selection::Whole),
            ("bytes=a-1", Selection::Whole),
            ("bytes=+1-2", Selection::Whole),
            ("bytes=-", Selection::Whole),
            ("bytes", Selection::Whole),
        ] {
            assert_eq!(select(range.as_bytes(), 10), expected, "{range}");
        }
        assert_eq!(select(b"bytes=0-", 0), Selection::Nothing);
    }

    #[test]
    fn if_range_needs_the_current_tag() {
        let body = Bytes::from_static(b"0123456789");
        let etag = ETag::new(&Digest::of(&body), Encoding::Identity);
        let whole = Response {
            etag: Some(etag),
            ..Response::new(200, "video/mp4", body)
        };
        let mut tag = Vec::new();
        etag.write(&mut tag);
        let part = whole.clone().ranged(Some(b"bytes=2-3"), Some(&tag));
        let body = part.body.memory().unwrap();
        assert_eq!((part.status, &body[..]), (206, &b"23"[..]));
        for other in [b"\"other\"".as_slice(), b"Sun, 06 Nov 1994 08:49:37 GMT"] {
            let whole = whole.clone().ranged(Some(b"bytes=2-3"), Some(other));
            assert_eq!((whole.status, whole.body.len()), (200, 10));
        }
        let rejected = whole.ranged(Some(b"bytes=10-"), None);
        assert_eq!(rejected.status, 416);
    }
}

//! Content codings: which of them a client accepts, and the encoders.
//!
//! Documents are compressed when a release is built, never while a request waits. An encoded
//! variant exists if the document is longer than [`ENCODED_ABOVE_BYTES`] and the variant is at least
//! a fifth smaller.
//!
//! Sources: RFC 9110 §12.5.3 (`Accept-Encoding`), RFC 7932 (br), RFC 8878 (zstd),
//! RFC 1952 (gzip).

use std::io::Write as _;

/// Bodies up to this size fit in the first packet anyway.
pub const ENCODED_ABOVE_BYTES: usize = 1024;

/// A content coding, in the order of our preference: the smaller first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Encoding {
    /// Brotli.
    Brotli = 0,
    /// Zstandard.
    Zstd = 1,
    /// gzip.
    Gzip = 2,
    /// The bytes as they are.
    Identity = 3,
}

/// How much time an encoder may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Once, when a release is built: a few milliseconds for every document.
    Release,
    /// When a site is built: it has many pages, and each is seldom requested.
    Page,
    /// Whenever a site is loaded into the index: tens of microseconds.
    Load,
}

/// The codings that a client takes, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accepted(u8);

// === impl Encoding ===

impl Encoding {
    /// The codings that change the bytes, best first.
    pub const CODED: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Returns the name in `Content-Encoding`; `None` for the identity.
    #[must_use]
    pub fn coding(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some("br"),
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }

    /// Returns what a release appends to the path of an encoded file; empty for the identity.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
            Self::Identity => "",
        }
    }

    /// Encodes `bytes`; `None` if the result is not small enough, or for the identity.
    ///
    /// The same bytes and effort give the same result on every machine: releases are
    /// compared by digest.
    #[must_use]
    pub fn encode(self, bytes: &[u8], effort: Effort) -> Option<Vec<u8>> {
        if bytes.len() <= ENCODED_ABOVE_BYTES {
            return None;
        }
        let encoded = match self {
            Self::Brotli => brotli(bytes, effort),
            Self::Zstd => zstd(bytes, effort),
            Self::Gzip => gzip(bytes, effort),
            Self::Identity => return None,
        };
        (encoded.len() <= bytes.len() / 5 * 4).then_some(encoded)
    }
}

fn brotli(bytes: &[u8], effort: Effort) -> Vec<u8> {
    let quality = match effort {
        Effort::Release => 11,
        Effort::Page => 5,
        Effort::Load => 4,
    };
    let parameters = brotli::enc::BrotliEncoderParams {
        quality,
        lgwin: window(bytes.len()),
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut out = Vec::with_capacity(bytes.len() / 2);
    brotli::BrotliCompress(&mut &*bytes, &mut out, &parameters).expect("a Vec takes every byte");
    out
}

/// Returns the logarithm of the smallest window that a text fits into: the encoder clears
/// all of its window, which for a page is most of the work.
fn window(length: usize) -> i32 {
    let bits = usize::BITS - length.leading_zeros();
    i32::try_from(bits.clamp(16, 22)).unwrap_or(22)
}

fn zstd(bytes: &[u8], effort: Effort) -> Vec<u8> {
    let level = match effort {
        Effort::Release => 19,
        Effort::Page => 6,
        Effort::Load => 3,
    };
    zstd::bulk::compress(bytes, level).expect("compressing from memory to memory cannot fail")
}

fn gzip(bytes: &[u8], effort: Effort) -> Vec<u8> {
    let level = match effort {
        Effort::Release => flate2::Compression::best(),
        Effort::Page => flate2::Compression::default(),
        Effort::Load => flate2::Compression::fast(),
    };
    // No name and no time in the header: the same bytes give the same file.
    let mut encoder = flate2::GzBuilder::new()
        .mtime(0)
        .write(Vec::with_capacity(bytes.len() / 2), level);
    encoder.write_all(bytes).expect("a Vec takes every byte");
    encoder.finish().expect("a Vec takes every byte")
}

// === impl Accepted ===

impl Accepted {
    /// A client without `Accept-Encoding` gets the identity: it may be a tool that cannot decode
    /// (RFC 9110 §12.5.3 would allow any coding).
    pub const IDENTITY_ONLY: Self = Self(0);

    /// Reads `Accept-Encoding`. Of the codings that a client accepts, the smallest is the best
    /// for it, so weights do not matter, except `;q=0`, which excludes a coding. An invalid
    /// member is not accepted.
    ///
    /// ```
    /// use waypost::response::encoding::{Accepted, Encoding};
    ///
    /// let accepted = Accepted::parse(b"gzip;q=1.0, br;q=0, *;q=0.1");
    /// assert!(!accepted.takes(Encoding::Brotli));
    /// assert!(accepted.takes(Encoding::Gzip) && accepted.takes(Encoding::Zstd));
    /// ```
    #[must_use]
    pub fn parse(field: &[u8]) -> Self {
        let mut accepted = 0;
        let mut excluded = 0;
        let mut any = None;
        for item in field.split(|&b| b == b',') {
            let mut parts = item.split(|&b| b == b';');
            let name = parts.next().unwrap_or_default().trim_ascii();
            let wanted = !parts.any(is_zero_weight);
            let bit = match name {
                _ if name.eq_ignore_ascii_case(b"br") => 1 << Encoding::Brotli as u8,
                _ if name.eq_ignore_ascii_case(b"zstd") => 1 << Encoding::Zstd as u8,
                _ if name.eq_ignore_ascii_case(b"gzip") || name.eq_ignore_ascii_case(b"x-gzip") => {
                    1 << Encoding::Gzip as u8
                }
                b"*" => {
                    any = Some(wanted);
                    continue;
                }
                _ => continue,
            };
            if wanted {
                accepted |= bit
            } else {
                excluded |= bit
            }
        }
        if any == Some(true) {
            accepted |= 0b111;
        }
        Self(accepted & !excluded)
    }

    /// Returns whether the client accepts this coding. The identity is always sent: a client that
    /// excludes it gets more from the content than from a 406.
    #[must_use]
    pub fn takes(self, encoding: Encoding) -> bool {
        encoding == Encoding::Identity || self.0 & 1 << encoding as u8 != 0
    }
}

/// Recognises `q=0`, `q=0.`, `q=0.000` with optional white space (RFC 9110 §12.4.2).
fn is_zero_weight(parameter: &[u8]) -> bool {
    let Some(equals) = memchr::memchr(b'=', parameter) else {
        return false;
    };
    let (name, value) = (
        parameter[..equals].trim_ascii(),
        parameter[equals + 1..].trim_ascii(),
    );
    let Some((b'0', rest)) = value.split_first() else {
        return false;
    };
    name.eq_ignore_ascii_case(b"q")
        && rest
            .strip_prefix(b".")
            .unwrap_or(rest)
            .iter()
            .all(|&b| b == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(field: &str, expected: &[Encoding]) {
        let accepted = Accepted::parse(field.as_bytes());
        let taken: Vec<_> = Encoding::CODED
            .into_iter()
            .filter(|&e| accepted.takes(e))
            .collect();
        assert_eq!(taken, expected, "{field:?}");
    }

    #[test]
    fn accept_encoding_is_read_as_clients_write_it() {
        use Encoding::{Brotli, Gzip, Zstd};
        check("", &[]);
        check("gzip, deflate, br, zstd", &[Brotli, Zstd, Gzip]);
        check("gzip,deflate", &[Gzip]);
        check("GZIP;q=0.5 , BR ; Q=0.000", &[Gzip]);
        check("*", &[Brotli, Zstd, Gzip]);
        check("*;q=0", &[]);
        check("br;q=0, *", &[Zstd, Gzip]);
        check("identity", &[]);
        check("gzip;q=0.001", &[Gzip]);
        check("gzip;q=", &[Gzip]);
        check(",,;,", &[]);
        check("gzipped, brx", &[]);
    }

    /// Bytes that nothing makes smaller, the same in each run.
    fn noise() -> impl Iterator<Item = u8> {
        let mut state = 1_u32;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
    }

    #[test]
    fn an_encoding_that_saves_two_fifths_is_kept() {
        // One of eight letters in each byte: three bits of eight.
        let text: Vec<u8> = noise().take(4096).map(|byte| b'a' + byte % 8).collect();
        for encoding in Encoding::CODED {
            let encoded = encoding.encode(&text, Effort::Release).unwrap();
            let saved = text.len() - encoded.len();
            assert!(
                (text.len() / 5 * 2..text.len() / 5 * 4).contains(&saved),
                "{encoding:?}: {saved}"
            );
        }
    }

    #[test]
    fn the_window_of_brotli_is_the_smallest_that_the_text_fits_into() {
        for (length, bits) in [
            (0, 16),
            (65_535, 16),
            (65_536, 17),
            (1 << 21, 22),
            (1 << 30, 22),
        ] {
            assert_eq!(window(length), bits, "{length}");
        }
        // RFC 7932 §9.1: a stream that begins with a zero bit has a window of 16 bits.
        let short = brotli(&b"Use the SDK. ".repeat(50), Effort::Release);
        assert_eq!(short[0] & 1, 0);
        let long = brotli(&b"Use the SDK. ".repeat(50_000), Effort::Load);
        assert_eq!(long[0] & 1, 1);
    }

    #[test]
    fn more_effort_makes_fewer_bytes() {
        let text: Vec<u8> = noise()
            .take(20_000)
            .flat_map(|byte| format!("{} ", byte % 64).into_bytes())
            .collect();
        for encoding in Encoding::CODED {
            let length = |effort| encoding.encode(&text, effort).unwrap().len();
            assert!(
                length(Effort::Release) < length(Effort::Load),
                "{encoding:?}"
            );
        }
    }

    #[test]
    fn an_encoding_that_saves_less_than_a_fifth_is_dropped() {
        let noise: Vec<u8> = noise().take(4096).collect();
        let prose = "Use the SDK to create a charge. ".repeat(100);
        for encoding in Encoding::CODED {
            assert_eq!(encoding.encode(&noise, Effort::Load), None);
            assert!(encoding.encode(prose.as_bytes(), Effort::Load).is_some());
            assert_eq!(
                encoding.encode(&prose.as_bytes()[..ENCODED_ABOVE_BYTES], Effort::Load),
                None
            );
        }
    }

    #[test]
    fn encoding_the_same_bytes_twice_gives_the_same_bytes() {
        let prose = "Read the guide, then call the endpoint. ".repeat(100);
        for encoding in Encoding::CODED {
            for effort in [Effort::Release, Effort::Load] {
                assert_eq!(
                    encoding.encode(prose.as_bytes(), effort),
                    encoding.encode(prose.as_bytes(), effort)
                );
            }
        }
    }
}

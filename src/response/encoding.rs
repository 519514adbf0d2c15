//! Content codings: which of them a client accepts, and the encoders.
//!
//! Documents are compressed when a release is built, never while a request waits. An encoded
//! variant exists if the document is longer than [`ENCODED_ABOVE_BYTES`] and the variant is at
//! least a fifth smaller.
//!
//! Sources: RFC 9110 §12.5.3 (`Accept-Encoding`), RFC 7932 (br), RFC 8878 (zstd),
//! RFC 1952 (gzip).

use std::io::Write as _;

use brotli::enc::StandardAlloc;
use flate2::Compression;

use super::encoder_memory::Memory;

/// Bodies up to this size fit in the first packet anyway.
pub const ENCODED_ABOVE_BYTES: usize = 1024;

/// The quality of brotli for pages.
pub(super) const PAGE_QUALITY: i32 = 5;
/// The level of gzip for pages. Level 6 takes nearly twice as long for 1.4 % less.
pub(super) const PAGE_GZIP_LEVEL: u32 = 4;

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

/// The codings that a client accepts, in the order of its preference.
///
/// Three numbers of two bits each, the most preferred coding in the lowest bits. Each is the number
/// of an [`Encoding`]; the identity ends the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Accepted(u8);

/// The weight of a member of `Accept-Encoding` without `q`, in thousandths (RFC 9110 §12.4.2).
const WEIGHT_MAX: u16 = 1000;

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
        let mut encoded = match self {
            Self::Brotli => brotli(bytes, effort),
            Self::Zstd => zstd(bytes, effort),
            Self::Gzip => gzip(bytes, effort),
            Self::Identity => return None,
        };
        // The encoders reserve more than they need, and a release keeps thousands of results.
        encoded.shrink_to_fit();
        is_small_enough(&encoded, bytes).then_some(encoded)
    }
}

/// Returns whether an encoding is at least a fifth smaller than the bytes.
pub(super) fn is_small_enough(encoded: &[u8], bytes: &[u8]) -> bool {
    encoded.len() <= bytes.len() / 5 * 4
}

fn brotli(bytes: &[u8], effort: Effort) -> Vec<u8> {
    let quality = match effort {
        Effort::Release => 11,
        Effort::Page => PAGE_QUALITY,
        Effort::Load => 4,
    };
    let parameters = brotli::enc::BrotliEncoderParams {
        quality,
        lgwin: window(bytes.len(), effort),
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut out = Vec::with_capacity(bytes.len() / 2);
    let (mut input, mut output) = ([0; 4096], [0; 4096]);
    let (from, to) = (&mut &*bytes, &mut out);
    let (input, output) = (&mut input[..], &mut output[..]);
    match effort {
        // A build encodes thousands of pages, one after the other.
        Effort::Page => {
            brotli::BrotliCompressCustomAlloc(from, to, input, output, &parameters, Memory)
        }
        Effort::Release | Effort::Load => {
            let memory = StandardAlloc::default();
            brotli::BrotliCompressCustomAlloc(from, to, input, output, &parameters, memory)
        }
    }
    .expect("a Vec takes every byte");
    out
}

/// Returns the logarithm of the smallest window that a text fits into: the encoder clears
/// all of its window.
///
/// For a window of 16 bits, the encoder has only tables of 32 MiB at our quality for pages
/// (brotli 9.1, `ChooseHasher`: it lacks type 40); from 17 bits on they have 1 MiB.
fn window(length: usize, effort: Effort) -> i32 {
    let least = match effort {
        Effort::Page => 17,
        Effort::Release | Effort::Load => 16,
    };
    let bits = usize::BITS - length.leading_zeros();
    i32::try_from(bits.clamp(least, 22)).unwrap_or(22)
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
        Effort::Release => Compression::best(),
        Effort::Page => Compression::new(PAGE_GZIP_LEVEL),
        Effort::Load => Compression::fast(),
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
    pub const IDENTITY_ONLY: Self = Self(0b11_11_11);

    /// Reads `Accept-Encoding`.
    ///
    /// The coding with the greatest weight is preferred. If several codings have the same weight,
    /// we prefer the coding with the smaller result, and any coding to the identity. A weight that
    /// cannot be read counts as 1.
    ///
    /// ```
    /// use waypost::response::encoding::{Accepted, Encoding};
    ///
    /// let accepted = Accepted::parse(b"gzip;q=1.0, br;q=0, *;q=0.1");
    /// assert!(accepted.preferred().eq([Encoding::Gzip, Encoding::Zstd]));
    /// ```
    #[must_use]
    pub fn parse(field: &[u8]) -> Self {
        // In the order of the numbers of the encodings.
        let mut weights: [Option<u16>; 4] = [None; 4];
        let mut others = None;
        for item in field.split(|&b| b == b',') {
            let mut parts = item.split(|&b| b == b';');
            let name = parts.next().unwrap_or_default().trim_ascii();
            let weight = parts.find_map(weight).unwrap_or(WEIGHT_MAX);
            let is = |coding: &[u8]| name.eq_ignore_ascii_case(coding);
            let encoding = if is(b"br") {
                Encoding::Brotli
            } else if is(b"zstd") {
                Encoding::Zstd
            } else if is(b"gzip") || is(b"x-gzip") {
                Encoding::Gzip
            } else if is(b"identity") {
                Encoding::Identity
            } else {
                if is(b"*") {
                    others = Some(weight);
                }
                continue;
            };
            let known = &mut weights[encoding as usize];
            // If any member of the list excludes a coding, the coding is excluded.
            *known = Some(known.map_or(weight, |known| known.min(weight)));
        }
        let identity = weights[Encoding::Identity as usize].unwrap_or(0);
        let weight_of = |encoding: Encoding| weights[encoding as usize].or(others).unwrap_or(0);
        let mut codings = Encoding::CODED.map(|encoding| (weight_of(encoding), encoding));
        // The sort is stable: equal weights stay in our order.
        codings.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let mut places = 0;
        for (at, (weight, encoding)) in codings.into_iter().enumerate() {
            let is_taken = weight > 0 && weight >= identity;
            let place = if is_taken {
                encoding
            } else {
                Encoding::Identity
            };
            places |= (place as u8) << (2 * at);
        }
        Self(places)
    }

    /// Returns the codings that the client prefers to the identity, the best first.
    ///
    /// If there is none, the identity is sent, even to a client that excludes it: content is more
    /// useful to the client than a 406.
    pub fn preferred(self) -> impl Iterator<Item = Encoding> {
        let places = (0..3).map(move |at| self.0 >> (2 * at) & 0b11);
        places.map_while(|number| Encoding::CODED.get(usize::from(number)).copied())
    }

    /// Returns whether the client accepts this coding.
    #[must_use]
    pub fn takes(self, encoding: Encoding) -> bool {
        encoding == Encoding::Identity || self.preferred().any(|taken| taken == encoding)
    }
}

/// Reads `q=0.5` as thousandths, with optional white space (RFC 9110 §12.4.2).
fn weight(parameter: &[u8]) -> Option<u16> {
    let equals = memchr::memchr(b'=', parameter)?;
    let name = parameter[..equals].trim_ascii();
    if !name.eq_ignore_ascii_case(b"q") {
        return None;
    }
    let value = parameter[equals + 1..].trim_ascii();
    let (whole, fraction) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] => (whole, fraction),
        _ => return None,
    };
    let has_digits = fraction.iter().all(u8::is_ascii_digit);
    match whole {
        b'1' => Some(WEIGHT_MAX),
        b'0' if has_digits => {
            let digit = |at: usize| fraction.get(at).map_or(0, |digit| u16::from(digit - b'0'));
            let thousandths = digit(0) * 100 + digit(1) * 10 + digit(2);
            // More digits than the grammar allows; a weight above zero stays above zero.
            let is_above = fraction.iter().any(|digit| *digit != b'0');
            Some(thousandths.max(u16::from(is_above)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(field: &str, expected: &[Encoding]) {
        let accepted = Accepted::parse(field.as_bytes());
        let taken: Vec<_> = accepted.preferred().collect();
        assert_eq!(taken, expected, "{field:?}");
        for encoding in Encoding::CODED {
            assert_eq!(accepted.takes(encoding), expected.contains(&encoding));
        }
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
        check("gzip;q=1.0, br;q=0.1", &[Gzip, Brotli]);
        check("br;q=0.5, zstd;q=0.50, gzip;q=0.501", &[Gzip, Brotli, Zstd]);
        check("*;q=0.2, gzip", &[Gzip, Brotli, Zstd]);
        check("identity, gzip;q=0.9", &[]);
        check("identity;q=0.5, gzip;q=0.5, br;q=0.4", &[Gzip]);
        check("identity;q=0, gzip;q=0.1", &[Gzip]);
        check("gzip, gzip;q=0", &[]);
        check("br;q=0.0001, gzip;q=0.0", &[Brotli]);
        check(",,;,", &[]);
        check("gzipped, brx", &[]);
    }

    /// Bytes that no encoder makes smaller, the same in each run.
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
            assert_eq!(window(length, Effort::Release), bits, "{length}");
            assert_eq!(window(length, Effort::Page), bits.max(17), "{length}");
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
    fn an_encoder_that_was_used_before_gives_the_same_bytes_as_a_new_one() {
        for length in [1_100, 30_000, 70_000, 400_000, 3_000, 1_200_000, 90_000] {
            let text: Vec<u8> = noise()
                .take(length)
                .enumerate()
                .map(|(at, byte)| b'a' + if at % 90 < 60 { byte % 5 } else { byte % 20 })
                .collect();
            let parameters = brotli::enc::BrotliEncoderParams {
                quality: PAGE_QUALITY,
                lgwin: window(length, Effort::Page),
                size_hint: length,
                ..Default::default()
            };
            let mut new = Vec::new();
            brotli::BrotliCompress(&mut &*text, &mut new, &parameters).unwrap();
            assert!(brotli(&text, Effort::Page) == new, "{length}");
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

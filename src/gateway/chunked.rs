//! Where chunks and a chunked body end.
//!
//! The gateway has to know where a request ends before pingora sees it, and forwards only chunk
//! lines that every server reads the same way. A [`Scanner`] reads the bytes as they come, any
//! number at a time, and keeps only its position.
//!
//! It is stricter than the grammar: a size has at most 15 digits and no white space around it, a
//! line never ends in a bare LF, extensions and trailers have a limit and no control characters.
//! For each rejected form there is a server in use that reads it differently.
//!
//! Source: RFC 9112 §7.1.

use std::ops::Range;

/// How long one chunk line or the trailer section may be.
const LINE_BYTES_MAX: usize = 4096;
/// 15 hexadecimal digits count to an exabyte and cannot overflow.
const SIZE_DIGITS_MAX: u8 = 15;

/// A place in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanner {
    place: Place,
    /// Bytes of the current line or trailer section.
    line: usize,
    /// Whether white space may follow a size.
    may_pad: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Size {
        size: u64,
        digits: u8,
    },
    /// White space after the size.
    Padding {
        size: u64,
    },
    Extension {
        size: u64,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// At the start of a trailer line.
    Trailer,
    TrailerLine,
    TrailerLf,
    EndLf,
    End,
}

/// The error for a chunked body that servers may read in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunked body is malformed")]
pub struct Malformed;

// === impl Scanner ===

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// Makes a scanner at the beginning of a body.
    #[must_use]
    pub fn new() -> Self {
        Self {
            place: Place::Size { size: 0, digits: 0 },
            line: 0,
            may_pad: false,
        }
    }

    /// Makes a scanner at the beginning of the body of a response. Some servers pad sizes with
    /// white space. These lines are not forwarded: the client gets new ones.
    #[must_use]
    pub fn of_response() -> Self {
        Self {
            may_pad: true,
            ..Self::new()
        }
    }

    /// Returns whether the body has ended.
    #[must_use]
    pub fn is_done(self) -> bool {
        self.place == Place::End
    }

    /// Reads `bytes` and returns how many of them belong to the body.
    ///
    /// # Errors
    ///
    /// [`Malformed`] at the first byte that no strict server accepts.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            at += self.content(&bytes[at..])?.end;
        }
        Ok(at)
    }

    /// Walks over `bytes` to the end of the next piece of content, and returns where it is. It is
    /// empty if there is none, or if the body has ended; then its end is the end of the body, or
    /// of `bytes`.
    ///
    /// # Errors
    ///
    /// As [`Scanner::advance`].
    pub fn content(&mut self, bytes: &[u8]) -> Result<Range<usize>, Malformed> {
        let mut at = 0;
        while at < bytes.len() && !self.is_done() {
            if let Place::Data { left } = self.place {
                let rest = bytes.len() - at;
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(rest);
                self.place = match left - taken as u64 {
                    0 => Place::DataCr,
                    left => Place::Data { left },
                };
                return Ok(at..at + taken);
            }
            self.place = self.step(bytes[at])?;
            at += 1;
        }
        Ok(at..at)
    }

    fn step(&mut self, byte: u8) -> Result<Place, Malformed> {
        self.line += 1;
        if self.line > LINE_BYTES_MAX {
            return Err(Malformed);
        }
        let is_text = byte == b'\t' || byte >= b' ' && byte != 0x7f;
        Ok(match (self.place, byte) {
            (Place::Size { size, digits }, _)
                if byte.is_ascii_hexdigit() && digits < SIZE_DIGITS_MAX =>
            {
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                Place::Size {
                    size: size << 4 | u64::from(digit),
                    digits: digits + 1,
                }
            }
            (Place::Size { size, digits: 1.. }, b' ' | b'\t') if self.may_pad => {
                Place::Padding { size }
            }
            (Place::Padding { size }, b' ' | b'\t') => Place::Padding { size },
            (
                Place::Size { size, digits: 1.. }
                | Place::Padding { size }
                | Place::Extension { size },
                b'\r',
            ) => Place::SizeLf { size },
            (Place::Size { size, digits: 1.. } | Place::Padding { size }, b';') => {
                Place::Extension { size }
            }
            (Place::Extension { size }, _) if is_text => Place::Extension { size },
            (Place::SizeLf { size }, b'\n') => {
                self.line = 0;
                if size == 0 {
                    Place::Trailer
                } else {
                    Place::Data { left: size }
                }
            }
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => {
                self.line = 0;
                Place::Size { size: 0, digits: 0 }
            }
            (Place::Trailer, b'\r') => Place::EndLf,
            (Place::TrailerLine, b'\r') => Place::TrailerLf,
            (Place::Trailer | Place::TrailerLine, _) if is_text => Place::TrailerLine,
            (Place::TrailerLf, b'\n') => Place::Trailer,
            (Place::EndLf, b'\n') => Place::End,
            _ => return Err(Malformed),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds a body and returns how many bytes were taken and whether it ended.
    fn scan(bytes: &[u8], piece: usize) -> Result<(usize, bool), Malformed> {
        let mut scanner = Scanner::new();
        let mut taken = 0;
        for piece in bytes.chunks(piece.max(1)) {
            taken += scanner.advance(piece)?;
        }
        Ok((taken, scanner.is_done()))
    }

    #[test]
    fn a_body_ends_with_its_last_chunk() {
        for body in [
            "0\r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            "A;x=\"y\"\r\n0123456789\r\n00\r\nX-Sum: 1\r\nY: 2\r\n\r\n",
        ] {
            let followed = format!("{body}GET / HTTP/1.1\r\n");
            assert_eq!(
                scan(followed.as_bytes(), usize::MAX),
                Ok((body.len(), true)),
                "{body:?}"
            );
            assert_eq!(
                scan(&body.as_bytes()[..body.len() - 1], 3),
                Ok((body.len() - 1, false)),
                "{body:?}"
            );
        }
    }

    #[test]
    fn a_line_over_the_limit_is_rejected() {
        // The size, the semicolon and the line's end count too.
        let line = |length: usize| format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(length - 4));
        let longest = line(LINE_BYTES_MAX);
        assert_eq!(scan(longest.as_bytes(), 7), Ok((longest.len(), true)));
        let over = line(LINE_BYTES_MAX + 1);
        assert_eq!(scan(over.as_bytes(), 7), Err(Malformed));
    }

    #[test]
    fn the_digits_of_a_size_may_arrive_separately() {
        let body = |size: usize| format!("{size:x}\r\n{}\r\n0\r\n\r\n", "y".repeat(size));
        for size in [0x11, 0x1f, 0xff, 0x101, 0x3f1] {
            let body = body(size);
            assert_eq!(scan(body.as_bytes(), 5), Ok((body.len(), true)), "{size:x}");
        }
    }

    #[test]
    fn no_byte_is_read_after_the_body() {
        let mut scanner = Scanner::new();
        assert_eq!(scanner.advance(b"0\r\n\r\n"), Ok(5));
        assert_eq!(scanner.advance(b"GET"), Ok(0));
        assert_eq!(scanner.advance(b""), Ok(0));
        assert!(scanner.is_done());
    }

    #[test]
    fn ambiguous_chunks_are_rejected() {
        for body in [
            "5 \r\nhello\r\n0\r\n\r\n",
            " 5\r\nhello\r\n0\r\n\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhelloX\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "-1\r\n\r\n",
            "\r\n0\r\n\r\n",
            "0\r\n\n",
            "1000000000000000\r\n",
            "0\r\nX: \u{1}\r\n\r\n",
        ] {
            assert_eq!(scan(body.as_bytes(), 1), Err(Malformed), "{body:?}");
        }
        assert_eq!(
            scan(
                format!("5;{}\r\n", "x".repeat(LINE_BYTES_MAX)).as_bytes(),
                100
            ),
            Err(Malformed)
        );
    }

    proptest! {
        #[test]
        fn the_sizes_of_reads_do_not_change_the_result(bytes in "[0-9a-fx;\r\n ]{0,60}", piece in 1_usize..8) {
            let whole = scan(bytes.as_bytes(), usize::MAX);
            prop_assert_eq!(scan(bytes.as_bytes(), piece), whole);
        }

        #[test]
        fn chunks_of_any_size_are_accepted(chunks in prop::collection::vec(1_usize..300, 0..5)) {
            let mut body = String::new();
            for length in chunks {
                body += &format!("{length:x}\r\n{}\r\n", "z".repeat(length));
            }
            body += "0\r\n\r\n";
            prop_assert_eq!(scan(body.as_bytes(), 7), Ok((body.len(), true)));
        }
    }
}

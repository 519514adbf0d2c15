//! The content of an upstream's response.
//!
//! It is read in pieces. A chunked response gets new chunks: one for each piece, so that chunk
//! extensions and trailers stay behind, as on the proxy path. A response that ends with its
//! connection becomes a chunked one, so that the client sees whether it is complete.
//!
//! Source: RFC 9112 §6.3, §7.1.

use bytes::BytesMut;

use crate::gateway::chunked::{Malformed, Scanner};

/// The content that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// None.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks; the client gets chunks too.
    Chunked(Scanner),
    /// Everything until the upstream closes the connection; the client gets chunks.
    Rechunked,
}

impl Content {
    pub(super) fn chunked() -> Self {
        Self::Chunked(Scanner::of_response())
    }

    /// Returns whether the client gets chunks.
    pub(super) fn is_chunked(self) -> bool {
        matches!(self, Self::Chunked(_) | Self::Rechunked)
    }

    /// Returns whether the content has ended.
    pub(super) fn is_done(self) -> bool {
        match self {
            Self::None => true,
            Self::Length(left) => left == 0,
            Self::Chunked(scanner) => scanner.is_done(),
            Self::Rechunked => false,
        }
    }

    /// Returns whether the content may end when the upstream closes the connection.
    pub(super) fn may_end(self) -> bool {
        self == Self::Rechunked
    }

    /// Moves the content to the front of the bytes that were read, and returns its length. What
    /// is left behind it after the end is not part of the response.
    ///
    /// # Errors
    ///
    /// When a chunk is malformed.
    pub(super) fn take(&mut self, read: &mut BytesMut) -> Result<usize, Malformed> {
        Ok(match self {
            Self::None => 0,
            Self::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(read.len());
                *left -= taken as u64;
                taken
            }
            Self::Rechunked => read.len(),
            Self::Chunked(scanner) => {
                let (mut taken, mut at) = (0, 0);
                while at < read.len() && !scanner.is_done() {
                    let content = scanner.content(&read[at..])?;
                    let (from, to) = (at + content.start, at + content.end);
                    read.copy_within(from..to, taken);
                    taken += content.len();
                    at = to;
                }
                let length = read.len();
                read.copy_within(at.., taken);
                read.truncate(taken + length - at);
                taken
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a body in pieces of this size; returns the content and what follows it.
    fn read(
        mut content: Content,
        body: &[u8],
        piece: usize,
    ) -> Result<(Vec<u8>, usize), Malformed> {
        let (mut got, mut rest) = (Vec::new(), 0);
        for piece in body.chunks(piece) {
            if content.is_done() {
                rest += piece.len();
                continue;
            }
            let mut buffer = BytesMut::from(piece);
            let taken = content.take(&mut buffer)?;
            got.extend_from_slice(&buffer[..taken]);
            rest += buffer.len() - taken;
        }
        assert!(content.is_done() || content.may_end());
        Ok((got, rest))
    }

    #[test]
    fn the_content_is_the_same_however_it_arrives() {
        let chunks =
            b"3;a=b\r\nabc\r\n10 \t\r\n0123456789abcdef\r\n1\r\n!\r\n0\r\nX: y\r\n\r\nrest";
        for piece in 1..=chunks.len() {
            let got = read(Content::chunked(), chunks, piece).unwrap();
            assert_eq!(got, (b"abc0123456789abcdef!".to_vec(), 4), "{piece}");
            let got = read(Content::Length(5), b"helloGET", piece).unwrap();
            assert_eq!(got, (b"hello".to_vec(), 3), "{piece}");
            let got = read(Content::Rechunked, b"hello", piece).unwrap();
            assert_eq!(got, (b"hello".to_vec(), 0), "{piece}");
        }
    }

    #[test]
    fn a_malformed_chunk_is_an_error_however_it_arrives() {
        for chunks in [
            &b"3\r\nabcd\r\n"[..],
            b"3\nabc\r\n",
            b"g\r\n",
            b" 3\r\nabc\r\n",
            b"3 a\r\n",
        ] {
            for piece in 1..=chunks.len() {
                assert_eq!(
                    read(Content::chunked(), chunks, piece),
                    Err(Malformed),
                    "{chunks:?}"
                );
            }
        }
    }

    #[test]
    fn the_framing_of_the_upstream_decides_the_framing_for_the_client() {
        // Whether the client gets chunks, the content has ended, and it may end with the connection
        // of the upstream.
        for (content, expected) in [
            (Content::None, [false, true, false]),
            (Content::Length(0), [false, true, false]),
            (Content::Length(1), [false, false, false]),
            (Content::chunked(), [true, false, false]),
            (Content::Rechunked, [true, false, true]),
        ] {
            let actual = [content.is_chunked(), content.is_done(), content.may_end()];
            assert_eq!(actual, expected, "{content:?}");
        }
    }

    #[test]
    fn a_response_without_content_has_none_and_its_chunks_end_once() {
        let mut none = Content::None;
        assert_eq!(none.take(&mut BytesMut::from("next")), Ok(0));
        let mut chunked = Content::chunked();
        let mut bytes = BytesMut::from("1\r\na\r\n0\r\n\r\nnext");
        assert_eq!(chunked.take(&mut bytes), Ok(1));
        assert_eq!(&bytes[..], b"anext");
        assert!(chunked.is_done());
        assert_eq!(chunked.take(&mut BytesMut::from("next")), Ok(0));
    }
}

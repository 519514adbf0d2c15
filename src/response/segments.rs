//! Documents that have long texts in common, which are encoded once.
//!
//! On a large site nine tenths of each page are the navigation, which is nearly the same on all
//! pages of a directory. Such a document is divided into segments, and each segment is encoded by
//! itself: the encoded document is one after the other. A segment that is in a [`Common`] text is
//! encoded when the first document has it.
//!
//! **Invariant:** the encoding of a segment depends only on its own text and on the text before it
//! that it may refer to ([`Segment::follows`]). So a document has the same encoding whether parts
//! of it were encoded before or not.
//!
//! Every segment ends at a byte, and refers to nothing before it except that text. In brotli it
//! also uses no distance of an earlier segment, and neither the static dictionary, whose distances
//! depend on the place.
//!
//! Sources: RFC 7932 §2, §4, §9.2 (brotli); RFC 1951 §3.2.3, RFC 1952 §2.2 (gzip).

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use brotli::enc::UnionHasher;
use brotli::enc::encode::{
    BrotliEncoderDestroyInstance, BrotliEncoderOperation, BrotliEncoderStateStruct,
};
use flate2::{Compress, Compression, FlushCompress};

use super::Encoding;
use super::encoder_memory::Memory;
use super::encoding::{ENCODED_ABOVE_BYTES, PAGE_GZIP_LEVEL, PAGE_QUALITY, is_small_enough};

/// A document of fewer bytes is encoded as a whole.
pub const COMMON_BYTES_MIN: usize = 64 << 10;
/// The usual length of a segment of a common text. Shorter ones make longer documents, longer ones
/// more work for what differs from document to document.
pub const SEGMENT_BYTES: usize = 24 << 10;
/// How many bytes before its beginning a segment may refer to.
const BEFORE_BYTES: usize = 16 << 10;
/// The window of brotli, as a power of two: more than a segment and the bytes before it.
const WINDOW: i32 = 18;
/// The header of gzip: no name and no time, so the same bytes give the same file.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
/// The last byte of a brotli stream: an empty last meta-block.
const BROTLI_END: u8 = 0b11;

/// The longest stored segment: the length of a meta-block in four nibbles.
pub const STORED_BYTES_MAX: usize = 1 << 16;
/// The length of the header of a stored meta-block, which ends at a byte: ISLAST, MNIBBLES, four
/// nibbles of MLEN, ISUNCOMPRESSED and four bits of padding (RFC 7932 §9.2).
const STORED_HEADER_BYTES: usize = 3;

/// A text that several documents have in common, possibly with insertions.
#[derive(Debug)]
pub struct Common {
    text: String,
    /// Where each segment starts; the first one at 0.
    starts: Vec<usize>,
    encoded: Vec<Encoded>,
}

/// The encodings of a segment, by coding, and by whether it may refer to the one before it.
type Encoded = [[OnceLock<Box<[u8]>>; 2]; 2];

/// A part of a document.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Where it is in the document.
    pub range: Range<usize>,
    /// Whether it may refer to the segment before it.
    pub follows: bool,
    /// The common text that has the same segment at this index. If the segment follows another one,
    /// this text has that one, too.
    pub same: Option<(Arc<Common>, usize)>,
    /// Whether its bytes are in the encoded document as they are, so that [`replace_stored`] finds
    /// them. Only brotli has such segments, of at most [`STORED_BYTES_MAX`] bytes, and none is the
    /// first.
    pub stored: bool,
}

// === impl Common ===

impl Common {
    /// Makes a common text from its segments; `starts` says where they start.
    #[must_use]
    pub fn new(text: String, starts: Vec<usize>) -> Self {
        Self {
            encoded: starts.iter().map(|_| Encoded::default()).collect(),
            text,
            starts,
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns where each segment is in the text.
    pub fn segments(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.starts.iter().skip(1).copied();
        let ends = ends.chain([self.text.len()]);
        self.starts
            .iter()
            .copied()
            .zip(ends)
            .map(|(from, to)| from..to)
    }
}

// === impl Encoding ===

impl Encoding {
    /// Encodes a document by its segments; `None` if the result is not small enough, or for a
    /// coding that releases of pages do not have.
    ///
    /// The segments are all of the document, in order.
    #[must_use]
    pub fn encode_segments(self, text: &[u8], segments: &[Segment]) -> Option<Vec<u8>> {
        if text.len() <= ENCODED_ABOVE_BYTES {
            return None;
        }
        let coding = match self {
            Self::Brotli => 0,
            Self::Gzip => 1,
            Self::Zstd | Self::Identity => return None,
        };
        let mut out = Vec::with_capacity(text.len() / 4);
        if self == Self::Gzip {
            out.extend_from_slice(&GZIP_HEADER);
        }
        for (at, segment) in segments.iter().enumerate() {
            let is_last = at + 1 == segments.len();
            let before = match at.checked_sub(1).filter(|_| segment.follows) {
                Some(previous) => {
                    let range = segments[previous].range.clone();
                    &text[range.start.max(range.end.saturating_sub(BEFORE_BYTES))..range.end]
                }
                None => &[],
            };
            let part = &text[segment.range.clone()];
            if segment.stored && self == Self::Brotli && at > 0 && !part.is_empty() {
                store(part, &mut out);
                continue;
            }
            let encode = |out: &mut Vec<u8>| match self {
                Self::Brotli => brotli(part, before, at == 0, out),
                _ => deflate(part, before, is_last, out),
            };
            match &segment.same {
                Some((common, index)) if !is_last => {
                    let known = &common.encoded[*index][usize::from(segment.follows)][coding];
                    out.extend_from_slice(known.get_or_init(|| {
                        let mut out = Vec::with_capacity(part.len() / 4);
                        encode(&mut out);
                        out.into()
                    }));
                }
                _ => encode(&mut out),
            }
        }
        match self {
            Self::Brotli => out.push(BROTLI_END),
            _ => {
                let mut crc = flate2::Crc::new();
                crc.update(text);
                out.extend_from_slice(&crc.sum().to_le_bytes());
                // RFC 1952 §2.3.1: the length modulo 2^32.
                out.extend_from_slice(&crc.amount().to_le_bytes());
            }
        }
        out.shrink_to_fit();
        is_small_enough(&out, text).then_some(out)
    }
}

// === impl Segment ===

impl Segment {
    /// Makes a segment that no other document has.
    #[must_use]
    pub fn own(range: Range<usize>, follows: bool) -> Self {
        Self {
            range,
            follows,
            same: None,
            stored: false,
        }
    }

    /// Makes a segment whose bytes can be replaced in the encoded document.
    #[must_use]
    pub fn stored(range: Range<usize>) -> Self {
        Self {
            stored: true,
            ..Self::own(range, false)
        }
    }
}

/// Appends bytes as an uncompressed meta-block.
fn store(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&stored_header(bytes.len()));
    out.extend_from_slice(bytes);
}

fn stored_header(length: usize) -> [u8; STORED_HEADER_BYTES] {
    assert!((1..=STORED_BYTES_MAX).contains(&length), "a short segment");
    let length = u32::try_from(length - 1).expect("less than 2^16");
    // RFC 7932 §1.5: the first bit is the lowest one.
    let [low, middle, high, _] = ((length << 3) | (1 << 19)).to_le_bytes();
    [low, middle, high]
}

/// Replaces the stored segment that begins with `start` in a document in brotli, and nothing else
/// of it. Returns `None` if there is no such segment, or the new one is too long.
#[must_use]
pub fn replace_stored(
    encoded: &[u8],
    start: &[u8],
    replace: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Option<Vec<u8>> {
    let at = memchr::memmem::find(encoded, start)?;
    let header_at = at.checked_sub(STORED_HEADER_BYTES)?;
    let header = &encoded[header_at..at];
    let bits = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let length = usize::try_from((bits >> 3) & 0xffff).ok()? + 1;
    let end = at.checked_add(length).filter(|end| *end <= encoded.len())?;
    if header != stored_header(length) {
        return None;
    }
    let segment = replace(&encoded[at..end]);
    if !(1..=STORED_BYTES_MAX).contains(&segment.len()) {
        return None;
    }
    let mut out = Vec::with_capacity(encoded.len() + segment.len() - length);
    out.extend_from_slice(&encoded[..header_at]);
    store(&segment, &mut out);
    out.extend_from_slice(&encoded[end..]);
    Some(out)
}

/// Appends the meta-blocks of a segment, up to the end of a byte.
fn brotli(text: &[u8], before: &[u8], is_first: bool, out: &mut Vec<u8>) {
    let mut encoder = BrotliEncoderStateStruct::new(Memory);
    let parameters = &mut encoder.params;
    parameters.quality = PAGE_QUALITY;
    parameters.lgwin = WINDOW;
    parameters.size_hint = text.len();
    // No last meta-block, and without `catable` the header of the stream.
    parameters.bare_stream = true;
    parameters.byte_align = true;
    parameters.appendable = true;
    parameters.catable = !is_first;
    parameters.use_dictionary = is_first;
    if !before.is_empty() {
        let hasher = UnionHasher::Uninit;
        encoder.set_custom_dictionary_with_optional_precomputed_hasher(
            before.len(),
            before,
            hasher,
            true,
        );
    }
    let (mut left, mut read, mut written) = (text.len(), 0, out.len());
    loop {
        out.resize(written + left / 2 + 4096, 0);
        let mut space = out.len() - written;
        let is_done = encoder.compress_stream(
            BrotliEncoderOperation::BROTLI_OPERATION_FINISH,
            &mut left,
            text,
            &mut read,
            &mut space,
            out,
            &mut written,
            &mut None,
            &mut |_, _, _, _| (),
        );
        assert!(is_done, "the parameters are valid");
        if encoder.is_finished() {
            break;
        }
    }
    out.truncate(written);
    BrotliEncoderDestroyInstance(&mut encoder);
}

/// Appends the blocks of a segment, up to the end of a byte.
fn deflate(text: &[u8], before: &[u8], is_last: bool, out: &mut Vec<u8>) {
    // Not one that was used before: zlib-ng also compares bytes of earlier streams beyond the end
    // of its input, and may then choose other matches.
    let mut deflate = Compress::new(Compression::new(PAGE_GZIP_LEVEL), false);
    if !before.is_empty() {
        deflate
            .set_dictionary(before)
            .expect("no byte was compressed yet");
    }
    let flush = match is_last {
        true => FlushCompress::Finish,
        false => FlushCompress::Sync,
    };
    let mut read = 0;
    loop {
        // The encoder would find other matches if it had to stop for want of space.
        out.reserve(text.len() + text.len() / 8 + 4096);
        let before = deflate.total_in();
        let status = deflate.compress_vec(&text[read..], out, flush);
        let status = status.expect("compressing from memory to memory cannot fail");
        read += usize::try_from(deflate.total_in() - before).unwrap_or(usize::MAX);
        // With space left, everything was written.
        let is_written = read == text.len() && out.len() < out.capacity();
        if status == flate2::Status::StreamEnd || (!is_last && is_written) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn decoded(encoding: Encoding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let read = match encoding {
            Encoding::Brotli => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut out),
            _ => flate2::read::GzDecoder::new(bytes).read_to_end(&mut out),
        };
        read.unwrap();
        out
    }

    /// Similar entries, as in a navigation.
    fn entries(range: Range<usize>) -> String {
        range
            .map(|n| {
                let word = n.wrapping_mul(2_654_435_761) % 100_003;
                format!("<li><a href=\"node-{word}\">Node {word} of {n}</a></li>")
            })
            .collect()
    }

    fn common() -> Arc<Common> {
        let text = entries(0..2400);
        let starts = (0..text.len()).step_by(SEGMENT_BYTES).collect();
        Arc::new(Common::new(text, starts))
    }

    /// A document with the common text, with an insertion in one of its segments.
    fn document(
        common: &Arc<Common>,
        head: &str,
        changed: usize,
        tail: &str,
    ) -> (String, Vec<Segment>) {
        let mut text = head.to_owned();
        let mut segments = vec![Segment::own(0..head.len(), false)];
        for (index, range) in common.segments().enumerate() {
            let start = text.len();
            let is_changed = index == changed;
            let follows = index > 0 && index != changed + 1;
            text += &common.text()[range];
            if is_changed {
                text.insert_str(start + 100, " aria-current=page");
            }
            segments.push(Segment {
                range: start..text.len(),
                follows,
                same: (!is_changed).then(|| (Arc::clone(common), index)),
                stored: false,
            });
        }
        let start = text.len();
        text += tail;
        segments.push(Segment::own(start..text.len(), true));
        (text, segments)
    }

    #[test]
    fn a_document_decodes_to_its_text_whether_its_segments_were_known_or_not() {
        for encoding in [Encoding::Brotli, Encoding::Gzip] {
            let shared = common();
            let count = shared.segments().count();
            assert!(count > 4);
            for changed in 0..=count {
                let (head, tail) = (entries(9000..9010), entries(changed * 7..changed * 7 + 90));
                let (text, segments) = document(&shared, &head, changed, &tail);
                let text = text.as_bytes();
                let encoded = encoding.encode_segments(text, &segments).unwrap();
                assert!(
                    decoded(encoding, &encoded) == text,
                    "{encoding:?} {changed}"
                );
                // Nothing of it is known.
                let (_, segments) = document(&common(), &head, changed, &tail);
                let again = encoding.encode_segments(text, &segments).unwrap();
                assert!(again == encoded, "{encoding:?} {changed}");
                let alone = segments.into_iter().map(|segment| Segment {
                    same: None,
                    ..segment
                });
                let alone: Vec<_> = alone.collect();
                let again = encoding.encode_segments(text, &alone).unwrap();
                assert!(again == encoded, "{encoding:?} {changed}");
                // It is not much longer than encoded as a whole.
                let whole = encoding.encode(text, crate::response::encoding::Effort::Page);
                let whole = whole.unwrap().len();
                assert!(
                    encoded.len() < whole + whole / 6,
                    "{} {whole}",
                    encoded.len()
                );
            }
        }
    }

    #[test]
    fn segments_that_are_empty_or_cannot_be_made_smaller_decode_to_their_text() {
        let mut state = 7_u64;
        let noise: String = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(32 + u8::try_from(state >> 57).unwrap() % 90)
        })
        .take(20_000)
        .collect();
        let shared = common();
        for encoding in [Encoding::Brotli, Encoding::Gzip] {
            for (head, tail) in [("", ""), ("a", ""), ("", "b"), (&*noise, &*noise)] {
                let (text, segments) = document(&shared, head, 2, tail);
                let encoded = encoding
                    .encode_segments(text.as_bytes(), &segments)
                    .unwrap();
                assert!(
                    decoded(encoding, &encoded) == text.as_bytes(),
                    "{encoding:?}"
                );
            }
        }
    }

    #[test]
    fn a_stored_segment_is_replaced_and_the_rest_decodes_as_before() {
        let (head, tail) = (entries(0..3), entries(5..900));
        for before in ["<meta x.invalid/a>", &"<meta x.invalid/a>".repeat(900)] {
            let text = format!("{head}{before}{tail}");
            let end = head.len() + before.len();
            let segments = [
                Segment::own(0..head.len(), false),
                Segment::stored(head.len()..end),
                Segment::own(end..text.len(), false),
            ];
            let encoded = Encoding::Brotli.encode_segments(text.as_bytes(), &segments);
            let encoded = encoded.unwrap();
            assert!(decoded(Encoding::Brotli, &encoded) == text.as_bytes());
            for after in ["<meta y.test>".to_owned(), "z".repeat(STORED_BYTES_MAX)] {
                let replaced = replace_stored(&encoded, b"<meta x", |found| {
                    assert!(found == before.as_bytes());
                    after.clone().into()
                });
                let text = format!("{head}{after}{tail}");
                assert!(decoded(Encoding::Brotli, &replaced.unwrap()) == text.as_bytes());
            }
            let too_long = |_: &[u8]| vec![b'z'; STORED_BYTES_MAX + 1];
            assert!(replace_stored(&encoded, b"<meta x", too_long).is_none());
            let other = |_: &[u8]| -> Vec<u8> { panic!("there is no such segment") };
            assert!(replace_stored(&encoded, b"<meta y", other).is_none());
            // Bytes that only look like the start of a segment.
            assert!(replace_stored(b"..<meta x and more", b"<meta x", other).is_none());
            assert!(replace_stored(b"\0\0\x08<meta x", b"<meta x", |_| vec![1]).is_some());
            assert!(replace_stored(b"\xff\xff\x0f<meta x", b"<meta x", other).is_none());
        }
    }
}

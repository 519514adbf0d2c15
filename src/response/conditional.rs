//! Entity tags and the conditions that name them.
//!
//! An entity tag is the first half of the content's digest and the coding it is sent in.
//! It is strong (RFC 9110 §8.8.1: it changes whenever the bytes do, and differs between
//! codings) and equal on all nodes, because it is made of nothing but content.
//!
//! Sources: RFC 9110 §8.8.3 and §13.

use super::Encoding;
use crate::digest::Digest;

/// How many bytes of a digest identify an entity: 128 bits.
const TAG_BYTES: usize = 16;
const HEX: &[u8; 16] = b"0123456789abcdef";
/// `"` + 32 digits + `-zstd` + `"`.
const TAG_LENGTH_MAX: usize = 2 + 2 * TAG_BYTES + 5;

/// A strong entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ETag {
    identity: [u8; TAG_BYTES],
    encoding: Encoding,
}

/// The conditional fields of a request, as they were sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conditions<'r> {
    /// `If-Match`.
    pub if_match: Option<&'r [u8]>,
    /// `If-None-Match`; several field lines joined by commas are one.
    pub if_none_match: Option<&'r [u8]>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<&'r [u8]>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<&'r [u8]>,
}

/// The result of the conditions of a `GET` or `HEAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Send the entity.
    Send,
    /// 304: the client has it.
    NotModified,
    /// 412: the condition of the client names another entity.
    Failed,
}

// === impl ETag ===

impl ETag {
    /// Makes the tag of content with this digest, sent in this coding.
    #[must_use]
    pub fn new(digest: &Digest, encoding: Encoding) -> Self {
        let mut identity = [0; TAG_BYTES];
        identity.copy_from_slice(&digest.as_bytes()[..TAG_BYTES]);
        Self { identity, encoding }
    }

    /// Makes a tag from the part of a digest that [`ETag::identity`] returned.
    #[must_use]
    pub fn from_identity(identity: [u8; TAG_BYTES], encoding: Encoding) -> Self {
        Self { identity, encoding }
    }

    /// Returns the part of the digest that the tag is made of.
    #[must_use]
    pub fn identity(&self) -> [u8; TAG_BYTES] {
        self.identity
    }

    /// Appends the tag with its quotes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (text, length) = self.text();
        out.extend_from_slice(&text[..length]);
    }

    /// Returns the tag with its quotes: it is as long as the number says.
    pub(super) fn text(&self) -> ([u8; TAG_LENGTH_MAX], usize) {
        let mut text = [b'"'; TAG_LENGTH_MAX];
        let mut at = 1;
        for byte in self.identity {
            text[at] = HEX[usize::from(byte >> 4)];
            text[at + 1] = HEX[usize::from(byte & 15)];
            at += 2;
        }
        if let Some(coding) = self.encoding.coding() {
            text[at] = b'-';
            text[at + 1..at + 1 + coding.len()].copy_from_slice(coding.as_bytes());
            at += 1 + coding.len();
        }
        text[at] = b'"';
        (text, at + 1)
    }

    /// Returns whether a list of entity tags names this one. With `weak`, a `W/` in front
    /// does not matter (RFC 9110 §8.8.3.2).
    fn is_in(&self, list: &[u8], weak: bool) -> bool {
        let (text, length) = self.text();
        list.trim_ascii() == b"*" || has_tag(list, &text[..length], weak)
    }
}

/// Returns whether a list of entity tags names a tag, which may be weak itself. With `weak`, a
/// `W/` in front does not matter (RFC 9110 §8.8.3.2).
#[must_use]
pub fn has_tag(list: &[u8], wanted: &[u8], weak: bool) -> bool {
    let split = |tag| match <[u8]>::strip_prefix(tag, b"W/") {
        Some(tag) => (true, tag),
        None => (false, tag),
    };
    let (is_wanted_weak, wanted) = split(wanted);
    let mut rest = list;
    // RFC 9110 §8.8.3: a tag is `W/` and a quoted string; the quotes may contain a comma.
    loop {
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b",") {
            rest = after;
            continue;
        }
        let (is_weak, tag) = split(rest);
        let Some(end) = tag
            .strip_prefix(b"\"")
            .and_then(|inner| memchr::memchr(b'"', inner))
        else {
            return false;
        };
        let (tag, after) = tag.split_at(end + 2);
        if tag == wanted && (weak || !(is_weak || is_wanted_weak)) {
            return true;
        }
        rest = after;
    }
}

// === impl Conditions ===

impl Conditions<'_> {
    /// Evaluates the conditions for a `GET` or `HEAD` of an entity that exists, in the
    /// order of RFC 9110 §13.2.2. A date that cannot be read is not a condition (§13.1.3).
    #[must_use]
    pub fn evaluate(&self, etag: &ETag, last_modified: Option<u64>) -> Outcome {
        if let Some(list) = self.if_match {
            // §13.1.1: a strong comparison.
            if !etag.is_in(list, false) {
                return Outcome::Failed;
            }
        } else if let Some((since, modified)) = self
            .if_unmodified_since
            .and_then(read_date)
            .zip(last_modified)
            && modified > since
        {
            return Outcome::Failed;
        }
        if let Some(list) = self.if_none_match {
            // §13.1.2: a weak comparison.
            if etag.is_in(list, true) {
                return Outcome::NotModified;
            }
        } else if let Some((since, modified)) = self
            .if_modified_since
            .and_then(read_date)
            .zip(last_modified)
            && modified <= since
        {
            return Outcome::NotModified;
        }
        Outcome::Send
    }
}

/// Reads any of the three date formats of RFC 9110 §5.6.7, as seconds after the Unix epoch.
#[must_use]
pub fn read_date(field: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(str::from_utf8(field).ok()?.trim()).ok()?;
    Some(crate::clock::unix_seconds(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(encoding: Encoding) -> ETag {
        ETag::new(&Digest::of(b"skill"), encoding)
    }

    fn text(etag: &ETag) -> String {
        let mut out = Vec::new();
        etag.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[track_caller]
    fn check(conditions: Conditions<'_>, expected: Outcome) {
        assert_eq!(
            conditions.evaluate(&tag(Encoding::Gzip), Some(1_000_000_000)),
            expected,
            "{conditions:?}"
        );
    }

    #[test]
    fn a_tag_is_restored_from_its_part_of_the_digest() {
        let digest = Digest::of(b"skill");
        let tag = tag(Encoding::Brotli);
        assert_eq!(tag.identity(), digest.as_bytes()[..TAG_BYTES]);
        assert_eq!(ETag::from_identity(tag.identity(), Encoding::Brotli), tag);
    }

    #[test]
    fn a_tag_is_the_digest_and_the_coding_in_quotes() {
        let digest = Digest::of(b"skill").to_string();
        assert_eq!(
            text(&tag(Encoding::Identity)),
            format!("\"{}\"", &digest[..32])
        );
        assert_eq!(
            text(&tag(Encoding::Zstd)),
            format!("\"{}-zstd\"", &digest[..32])
        );
    }

    #[test]
    fn if_none_match_finds_the_tag_in_a_list_weak_or_not() {
        let own = text(&tag(Encoding::Gzip));
        let other = text(&tag(Encoding::Brotli));
        for (list, expected) in [
            (own.clone(), Outcome::NotModified),
            (format!("W/{own}"), Outcome::NotModified),
            (format!("{other}, {own}"), Outcome::NotModified),
            (format!("\"a,b\" ,,W/\"c\",{own}"), Outcome::NotModified),
            (" * ".to_owned(), Outcome::NotModified),
            (other, Outcome::Send),
            (own.replace('"', ""), Outcome::Send),
            (own[..own.len() - 1].to_owned(), Outcome::Send),
            (String::new(), Outcome::Send),
        ] {
            check(
                Conditions {
                    if_none_match: Some(list.as_bytes()),
                    ..Conditions::default()
                },
                expected,
            );
        }
    }

    #[test]
    fn if_match_compares_strongly() {
        let own = text(&tag(Encoding::Gzip));
        check(
            Conditions {
                if_match: Some(own.as_bytes()),
                ..Conditions::default()
            },
            Outcome::Send,
        );
        check(
            Conditions {
                if_match: Some(format!("W/{own}").as_bytes()),
                ..Conditions::default()
            },
            Outcome::Failed,
        );
        check(
            Conditions {
                if_match: Some(b"*"),
                ..Conditions::default()
            },
            Outcome::Send,
        );
    }

    #[test]
    fn dates_count_only_without_tags_and_only_when_they_are_dates() {
        let at = |seconds| {
            let mut out = Vec::new();
            super::super::push_date(&mut out, seconds);
            out
        };
        let (before, same) = (at(999_999_999), at(1_000_000_000));
        let modified = |field: &[u8], if_none_match| {
            Conditions {
                if_modified_since: Some(field),
                if_none_match,
                ..Conditions::default()
            }
            .evaluate(&tag(Encoding::Gzip), Some(1_000_000_000))
        };
        assert_eq!(modified(&same, None), Outcome::NotModified);
        assert_eq!(modified(&before, None), Outcome::Send);
        assert_eq!(modified(b"yesterday", None), Outcome::Send);
        assert_eq!(modified(&same, Some(b"\"other\"")), Outcome::Send);
        check(
            Conditions {
                if_unmodified_since: Some(&before),
                ..Conditions::default()
            },
            Outcome::Failed,
        );
        check(
            Conditions {
                if_unmodified_since: Some(&same),
                ..Conditions::default()
            },
            Outcome::Send,
        );
    }
}

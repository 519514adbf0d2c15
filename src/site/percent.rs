//! Percent-encoding of URLs.
//!
//! Bytes that are not UTF-8 are never replaced: two texts that differ would become equal.
//! [`decode_utf8`] rejects them, for names that decide something; [`decode_or_keep`] does not decode
//! the text, for names that are only looked up or shown.
//!
//! Sources: RFC 3986 §2.1 (percent-encoding), §2.3 (unreserved characters), §3.3 (paths).

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All characters except the unreserved ones.
const COMPONENT: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// All characters that a path must not contain unencoded.
const PATH: AsciiSet = COMPONENT
    .remove(b'/')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// Encodes a path; slashes stay.
///
/// ```
/// use waypost::site::percent::encode;
///
/// assert_eq!(encode("guides/a b?.md"), "guides/a%20b%3F.md");
/// ```
#[must_use]
pub fn encode(path: &str) -> String {
    utf8_percent_encode(path, &PATH).to_string()
}

/// Encodes a text for one component of a URL: all characters except the unreserved ones.
#[must_use]
pub fn encode_component(text: &str) -> String {
    utf8_percent_encode(text, &COMPONENT).to_string()
}

/// Decodes every `%xx`; `None` if the result is not UTF-8.
///
/// ```
/// use waypost::site::percent::decode_utf8;
///
/// assert_eq!(decode_utf8("%C3%A9%20x").as_deref(), Some("é x"));
/// assert_eq!(decode_utf8("100%").as_deref(), Some("100%"));
/// assert_eq!(decode_utf8("%FF"), None);
/// ```
#[must_use]
pub fn decode_utf8(text: &str) -> Option<Cow<'_, str>> {
    percent_decode_str(text).decode_utf8().ok()
}

/// Decodes every `%xx`; if the result is not UTF-8, returns the text unchanged.
///
/// ```
/// use waypost::site::percent::decode_or_keep;
///
/// assert_eq!(decode_or_keep("%C3%A9%20x"), "é x");
/// assert_eq!(decode_or_keep("%FF"), "%FF");
/// ```
#[must_use]
pub fn decode_or_keep(text: &str) -> Cow<'_, str> {
    decode_utf8(text).unwrap_or(Cow::Borrowed(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triplets_are_decoded_and_the_rest_stays() {
        for (text, decoded) in [
            ("a b", "a b"),
            ("%C3%A9%20x", "é x"),
            ("100%", "100%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
            ("%+1", "%+1"),
        ] {
            assert_eq!(decode_utf8(text).as_deref(), Some(decoded), "{text}");
            assert_eq!(decode_or_keep(text), decoded, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_rejected_or_kept() {
        for text in ["a%ff", "%C3", "%41%80", "%ED%A0%80"] {
            assert_eq!(decode_utf8(text), None, "{text}");
            assert_eq!(decode_or_keep(text), text);
        }
    }

    #[test]
    fn decoding_reverses_encoding() {
        let text: String = (0..=0x7f_u8).map(char::from).chain("é漢".chars()).collect();
        for encoded in [encode(&text), encode_component(&text)] {
            assert_eq!(decode_utf8(&encoded).as_deref(), Some(&*text));
            assert!(encoded.is_ascii());
        }
        assert_eq!(encode_component("a/b c~"), "a%2Fb%20c~");
    }
}

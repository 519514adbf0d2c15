//! Percent-encoding of URL paths.
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

/// Decodes every `%xx`; if the result is not UTF-8, returns the text unchanged.
///
/// ```
/// use waypost::site::percent::decode;
///
/// assert_eq!(decode("%C3%A9%20x"), "é x");
/// assert_eq!(decode("100%"), "100%");
/// ```
#[must_use]
pub fn decode(text: &str) -> Cow<'_, str> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.unwrap_or(Cow::Borrowed(text))
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
            ("a%ff", "a%ff"),
        ] {
            assert_eq!(decode(text), decoded, "{text}");
        }
    }

    #[test]
    fn decoding_reverses_encoding() {
        let text: String = (0..=0x7f_u8).map(char::from).chain("é漢".chars()).collect();
        for encoded in [encode(&text), encode_component(&text)] {
            assert_eq!(decode(&encoded), text);
            assert!(encoded.is_ascii());
        }
        assert_eq!(encode_component("a/b c~"), "a%2Fb%20c~");
    }
}

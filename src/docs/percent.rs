//! Percent-encoding, undone.
//!
//! Sources: RFC 3986 §2.1.

use std::borrow::Cow;

/// Decodes every `%xx`; what is no UTF-8 then becomes U+FFFD.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return text.into();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match bytes.get(at + 1..at + 3).and_then(octet) {
            Some(octet) if byte == b'%' => {
                out.push(octet);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned().into()
}

fn octet(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low] = digits else {
        return None;
    };
    u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
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
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(decode(text), decoded, "{text}");
        }
    }
}

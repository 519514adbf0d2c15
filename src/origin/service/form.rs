//! Pairs of names and values in a query or in the content of a form.
//!
//! Source: WHATWG URL §5.1 (`application/x-www-form-urlencoded`).

use crate::site::percent::decode_or_keep;

/// Returns the pairs: each name as it is written, and the value as it is written. A value that is
/// not there is empty.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = text.split('&');
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Decodes a value.
pub(super) fn decoded(value: &str) -> String {
    decode_or_keep(&value.replace('+', " ")).into_owned()
}

/// Returns the first value with a name, decoded.
pub(super) fn value(text: &str, name: &str) -> Option<String> {
    let found = pairs(text).find(|(known, _)| *known == name);
    found.map(|(_, value)| decoded(value))
}

//! Values of fields that are not plain ASCII.
//!
//! Source: Model Context Protocol 2026-07-28, `basic/transports/streamable-http`, "Value
//! Encoding".

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Rejection;
use super::version::mismatch;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Returns the value of a field that may be encoded.
pub(super) fn decoded(field: &str) -> Result<Cow<'_, str>, Rejection> {
    let Some(encoded) = field
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
    else {
        return Ok(field.into());
    };
    let bytes = STANDARD.decode(encoded).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Cow::Owned)
        .ok_or_else(|| mismatch("the field Mcp-Name is not valid Base64".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_value_is_decoded_and_a_plain_one_stays() {
        assert_eq!(decoded("search").unwrap(), "search");
        assert_eq!(
            decoded("=?base64?SGVsbG8sIOS4lueVjA==?=").unwrap(),
            "Hello, 世界"
        );
        assert_eq!(
            decoded("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=").unwrap(),
            "=?base64?literal?="
        );
        for wrong in ["=?base64?!?=", "=?base64?/w==?=", "=?base64?QQ?="] {
            assert!(decoded(wrong).is_err(), "{wrong}");
        }
        assert_eq!(decoded("=?base64?QQ==").unwrap(), "=?base64?QQ==");
    }
}

//! Scalars: converts a plain, quoted or tagged text into a value.
//!
//! Sources: YAML 1.2.2 §10.3.2 (core schema: resolution of tags), §6.8.2.1 (the prefix of the
//! tags of the specification).

use saphyr_parser::{ScalarStyle, Tag};

use crate::syntax::{Data, Value};

/// Resolves a scalar; `None` if it does not fit its tag.
pub(super) fn resolve(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Option<Data> {
    let tag = tag.filter(|tag| tag.is_yaml_core_schema());
    let Some(tag) = tag else {
        return Some(match style {
            ScalarStyle::Plain => plain(text),
            _ => Data::Text(text.into()),
        });
    };
    let data = plain(text);
    let fits = match (tag.suffix.as_ref(), &data) {
        ("null", Data::Null) | ("bool", Data::Flag(_)) | ("float", Data::Number(_)) => true,
        ("int", Data::Number(number)) => is_integer(number),
        ("str", _) => {
            return Some(Data::Text(match data {
                Data::Text(text) | Data::Number(text) => text,
                Data::Flag(flag) => flag.to_string().into(),
                _ => Box::default(),
            }));
        }
        _ => false,
    };
    fits.then_some(data)
}

/// Returns the text of a key. Status codes and versions are keys too: `200:` means "200".
pub(super) fn key(value: &Value) -> Option<Box<str>> {
    match value.is_null() {
        true => Some("null".into()),
        false => value.scalar().map(Box::from),
    }
}

fn plain(text: String) -> Data {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Flag(true),
        "false" | "False" | "FALSE" => Data::Flag(false),
        _ if is_number(&text) => Data::Number(text.into()),
        _ => Data::Text(text.into()),
    }
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    is_integer(text) || is_decimal(unsigned)
}

fn is_integer(text: &str) -> bool {
    let all =
        |digits: &str, is: fn(&u8) -> bool| !digits.is_empty() && digits.bytes().all(|b| is(&b));
    if let Some(digits) = text.strip_prefix("0x") {
        return all(digits, u8::is_ascii_hexdigit);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return all(digits, |byte| matches!(byte, b'0'..=b'7'));
    }
    all(
        text.strip_prefix(['-', '+']).unwrap_or(text),
        u8::is_ascii_digit,
    )
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_decimal(text: &str) -> bool {
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    });
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits && is_digits(whole) && is_digits(fraction) && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_resolved_by_the_core_schema() {
        for number in [
            "0", "-19", "+12", "0o7", "0x3A", "1.5", "1.", ".5", "-.5", "12e03", "-2E+05", ".inf",
            "-.Inf", ".NAN", "91e16528", "1.10",
        ] {
            assert_eq!(plain(number.into()), Data::Number(number.into()));
        }
        for text in [
            "yes",
            "on",
            ".",
            "-",
            "+",
            "1.2.3",
            "1e",
            "e5",
            "0x",
            "0o8",
            "-0x1",
            "1_000",
            "12:30",
            "2026-01-02",
            "-.nan",
            "inf",
        ] {
            assert_eq!(plain(text.into()), Data::Text(text.into()));
        }
        assert_eq!(plain("Null".into()), Data::Null);
        assert_eq!(plain("TRUE".into()), Data::Flag(true));
    }
}

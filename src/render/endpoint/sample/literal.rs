//! Values as literals of JSON and of programming languages.

use std::borrow::Cow;

use crate::syntax::{Data, Value as Json};

/// How a language writes values.
pub(super) struct Style {
    /// `true`, `false` and `null`.
    words: [&'static str; 3],
    /// The indentation of one level.
    indent: &'static str,
}

const JSON: Style = Style {
    words: ["true", "false", "null"],
    indent: "  ",
};
pub(super) const PYTHON: Style = Style {
    words: ["True", "False", "None"],
    indent: "    ",
};

/// Writes a string literal, which Python, JavaScript and Go read as JSON does.
pub(super) fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes a member of an object of Python or JavaScript.
pub(super) fn member(name: &str, value: &str) -> String {
    format!("{}: {value}", string(name))
}

/// Writes a text before an expression, with the sign that joins them; an empty text is left out.
pub(super) fn after_text(text: &str, sign: &str, expression: &str) -> String {
    match text {
        "" => expression.to_owned(),
        text => format!("{}{sign}{expression}", string(text)),
    }
}

pub(super) fn json(value: &Json) -> String {
    let mut out = String::new();
    write_literal(value, 0, &JSON, &mut out);
    out
}

/// Writes a value in one line: a text as it is, another value as JSON.
pub(in crate::render::endpoint) fn in_one_line(value: &Json) -> String {
    if let Some(scalar) = value.scalar() {
        return scalar.to_owned();
    }
    let mut out = String::new();
    // Line breaks in texts are escaped, so these lines are the layout.
    for line in json(value).lines() {
        if out.ends_with(',') {
            out.push(' ');
        }
        out.push_str(line.trim_start());
    }
    out
}

/// Returns a number as JSON writes it (RFC 8259 §6).
///
/// YAML has more spellings: `.5`, `+1`, `0x1f`, `0o17`. JSON has no infinity, so `.inf` is
/// `null`, as JavaScript writes it.
fn json_number(number: &str) -> Cow<'_, str> {
    if serde_json::from_str::<serde_json::Number>(number).is_ok() {
        return Cow::Borrowed(number);
    }
    let digits = number.strip_prefix('+').unwrap_or(number);
    let integer = match (digits.strip_prefix("0x"), digits.strip_prefix("0o")) {
        (Some(digits), _) => u128::from_str_radix(digits, 16).ok(),
        (_, Some(digits)) => u128::from_str_radix(digits, 8).ok(),
        _ => digits.parse().ok(),
    };
    let decimal = || {
        let is_decimal = digits.bytes().any(|byte| byte.is_ascii_digit());
        let value: f64 = digits.parse().ok().filter(|_| is_decimal)?;
        serde_json::Number::from_f64(value)
    };
    match integer {
        Some(integer) => integer.to_string().into(),
        None => decimal().map_or("null".into(), |decimal| decimal.to_string().into()),
    }
}

/// Writes a value as a literal of JSON, or of a language with other words.
pub(super) fn write_literal(value: &Json, depth: usize, style: &Style, out: &mut String) {
    let words = style.words;
    let indent = style.indent.repeat(depth + 1);
    let end = style.indent.repeat(depth);
    match &value.data {
        Data::Flag(flag) => out.push_str(words[usize::from(!*flag)]),
        Data::Number(number) => out.push_str(&json_number(number)),
        _ if value.is_map() && value.members().is_empty() => out.push_str("{}"),
        _ if value.is_map() => {
            out.push('{');
            for (n, member) in value.members().iter().enumerate() {
                out.push_str(if n == 0 { "\n" } else { ",\n" });
                out.push_str(&indent);
                out.push_str(&serde_json::Value::from(&*member.key).to_string());
                out.push_str(": ");
                write_literal(&member.value, depth + 1, style, out);
            }
            out.push_str(&format!("\n{end}}}"));
        }
        _ if value.text().is_some() => {
            let text = value.text().unwrap_or_default();
            out.push_str(&serde_json::Value::from(text).to_string());
        }
        Data::Null => out.push_str(words[2]),
        _ if value.items().is_empty() => out.push_str("[]"),
        _ => {
            out.push('[');
            for (n, item) in value.items().iter().enumerate() {
                out.push_str(if n == 0 { "\n" } else { ",\n" });
                out.push_str(&indent);
                write_literal(item, depth + 1, style, out);
            }
            out.push_str(&format!("\n{end}]"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_yaml_is_a_number_of_json() {
        for (yaml, json) in [
            ("1.10", "1.10"),
            ("-0", "-0"),
            ("+12", "12"),
            ("012", "12"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("1.", "1.0"),
            ("0x1f", "31"),
            ("0o17", "15"),
            ("-.inf", "null"),
            (".NaN", "null"),
        ] {
            assert_eq!(json_number(yaml), json, "{yaml}");
        }
    }
}

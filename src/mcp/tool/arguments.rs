//! The arguments of a call. If one is wrong, the error is a sentence for the model.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::{Failure, Result, TOKENS_MAX};
use crate::mcp::shortened;
use crate::release::pages::BYTES_PER_TOKEN;

/// The arguments of a call. Unknown arguments are ignored; `null` counts as absent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arguments<'a>(pub(super) &'a Map<String, Value>);

// === impl Arguments ===

impl<'a> Arguments<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Reads a text of at most `bytes_max` bytes.
    pub(super) fn text(&self, name: &str, bytes_max: usize) -> Result<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= bytes_max => Ok(Some(text)),
            Some(Value::String(text)) => Err(Failure::Input(format!(
                "`{name}` has {} bytes; at most {bytes_max} are allowed.",
                text.len()
            ))),
            Some(other) => Err(wrong(name, "a text", other)),
        }
    }

    /// Reads a text that is required; spaces around it stay.
    pub(super) fn required(&self, name: &str, bytes_max: usize) -> Result<&'a str> {
        let text = self.text(name, bytes_max)?;
        text.filter(|text| !text.trim().is_empty())
            .ok_or_else(|| Failure::Input(format!("The argument `{name}` is missing or empty.")))
    }

    /// Reads a list of texts.
    pub(super) fn texts(&self, name: &str, bytes_max: usize) -> Result<Vec<&'a str>> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let items = value
            .as_array()
            .ok_or_else(|| wrong(name, "a list of texts", value))?;
        let text = |item: &'a Value| {
            let text = item.as_str().filter(|text| text.len() <= bytes_max);
            text.ok_or_else(|| wrong(name, "a list of texts", item))
        };
        items.iter().map(text).collect()
    }

    /// Reads a whole number; models write some as texts.
    pub(super) fn number(
        &self,
        name: &str,
        default: usize,
        range: RangeInclusive<usize>,
    ) -> Result<usize> {
        let Some(value) = self.get(name) else {
            return Ok(default);
        };
        let number = match value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64(),
        };
        let number = number.and_then(|number| usize::try_from(number).ok());
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let expected = match *range.end() {
                    usize::MAX => format!("a whole number, at least {}", range.start()),
                    end => format!("a whole number from {} to {end}", range.start()),
                };
                wrong(name, &expected, value)
            })
    }

    /// Reads `true` or `false`.
    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }

    /// Reads `max_tokens`, and returns how many bytes of text that is.
    pub(super) fn budget(&self, default: usize) -> Result<usize> {
        let tokens = self.number("max_tokens", default, 1..=TOKENS_MAX)?;
        Ok(tokens * BYTES_PER_TOKEN)
    }
}

fn wrong(name: &str, expected: &str, value: &Value) -> Failure {
    let value = value.to_string();
    let value = shortened(&value);
    Failure::Input(format!("`{name}` must be {expected}, but it is {value}."))
}

//! Kinds of values: each function reads a value, or returns which value was expected.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::syntax::{Data, Value};

use super::Expected;

/// Reads text.
///
/// # Errors
///
/// Returns the expected value, in words. A number or boolean needs quotes to be text.
pub fn text(value: &Value) -> Result<Box<str>, Expected> {
    match &value.data {
        Data::Text(text) => Ok(text.clone()),
        Data::List(_) | Data::Map(_) => Err("text".into()),
        _ => Err("text, in quotes".into()),
    }
}

/// Reads text and parses it. The error of `parse` becomes part of the message.
pub fn parsed<T, E: std::fmt::Display>(
    parse: impl Fn(&str) -> Result<T, E>,
) -> impl Fn(&Value) -> Result<T, Expected> {
    move |value| {
        let text = text(value)?;
        parse(&text).map_err(|error| format!("other text: {error}"))
    }
}

/// Reads one of several words.
pub fn one_of<T: Copy>(words: &[(&str, T)]) -> impl Fn(&Value) -> Result<T, Expected> {
    move |value| {
        let text = text(value).unwrap_or_default();
        let found = words.iter().find(|(word, _)| **word == *text);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let words: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            words.join(" or ")
        })
    }
}

/// Reads `true` or `false`.
///
/// # Errors
///
/// Returns the expected value, in words.
pub fn boolean(value: &Value) -> Result<bool, Expected> {
    value.flag().ok_or_else(|| "true or false".into())
}

/// Reads a whole number in a range.
pub fn number<T>(range: RangeInclusive<T>) -> impl Fn(&Value) -> Result<T, Expected>
where
    T: Copy + PartialOrd + TryFrom<i64> + std::fmt::Display,
{
    move |value| {
        let number = value.integer().and_then(|n| T::try_from(n).ok());
        number
            .filter(|n| range.contains(n))
            .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Reads a number of seconds in a range.
pub fn seconds(range: RangeInclusive<u64>) -> impl Fn(&Value) -> Result<Duration, Expected> {
    let number = number(range);
    move |value| number(value).map(Duration::from_secs)
}

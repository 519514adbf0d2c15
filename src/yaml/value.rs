//! Kinds of values: each reads a node, or says what was expected in its place.

use std::ops::RangeInclusive;
use std::time::Duration;

use saphyr::{Scalar, YamlData};

use super::{Expected, Node};

/// Reads text.
///
/// # Errors
///
/// Returns what was expected; also for a number, whose spelling YAML does not keep.
pub fn text(node: &Node<'_>) -> Result<Box<str>, Expected> {
    match &node.data {
        YamlData::Value(Scalar::String(text)) => Ok(text.as_ref().into()),
        YamlData::Value(_) => Err("text, in quotes".into()),
        _ => Err("text".into()),
    }
}

/// Reads text and makes something of it; its refusal is reported as it stands.
pub fn parsed<T, E: std::fmt::Display>(
    parse: impl Fn(&str) -> Result<T, E>,
) -> impl Fn(&Node<'_>) -> Result<T, Expected> {
    move |node| {
        let text = text(node)?;
        parse(&text).map_err(|error| format!("other text: {error}"))
    }
}

/// Reads one of several words.
pub fn one_of<T: Copy>(words: &[(&str, T)]) -> impl Fn(&Node<'_>) -> Result<T, Expected> {
    move |node| {
        let text = text(node).unwrap_or_default();
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
/// Returns what was expected.
pub fn boolean(node: &Node<'_>) -> Result<bool, Expected> {
    node.data.as_bool().ok_or_else(|| "true or false".into())
}

/// Reads a whole number in a range.
pub fn number<T>(range: RangeInclusive<T>) -> impl Fn(&Node<'_>) -> Result<T, Expected>
where
    T: Copy + PartialOrd + TryFrom<i64> + std::fmt::Display,
{
    move |node| {
        let number = node.data.as_integer().and_then(|n| T::try_from(n).ok());
        number
            .filter(|n| range.contains(n))
            .ok_or_else(|| format!("a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Reads a number of seconds in a range.
pub fn seconds(range: RangeInclusive<u64>) -> impl Fn(&Node<'_>) -> Result<Duration, Expected> {
    let number = number(range);
    move |node| number(node).map(Duration::from_secs)
}

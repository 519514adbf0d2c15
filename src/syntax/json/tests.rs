//! Tests with correct, repaired and hostile JSON.

use proptest::prelude::*;

use super::scalar::is_number;
use super::*;
use crate::diagnostic::{self, Diagnostic};

fn read_all(text: &str) -> (Option<Value>, Vec<Diagnostic>) {
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.files.add("docs.json", text.into());
    let value = read(file, &mut diagnostics);
    (value, diagnostics.finish())
}

/// Reads a text, and compares the result with the correct JSON `means`, read by a strict reader.
#[track_caller]
fn check(text: &str, messages: &[&str], means: &str) {
    let (value, found) = read_all(text);
    let found: Vec<_> = found
        .iter()
        .map(|d| {
            let place = d.location.unwrap();
            format!("{}:{} {}", place.line, place.column, d.message)
        })
        .collect();
    assert_eq!(found, messages);
    assert_eq!(
        plain(&value.unwrap()),
        serde_json::from_str::<serde_json::Value>(means).unwrap()
    );
}

fn plain(value: &Value) -> serde_json::Value {
    match &value.data {
        Data::Null => serde_json::Value::Null,
        Data::Flag(flag) => (*flag).into(),
        Data::Number(number) => serde_json::from_str(number).unwrap(),
        Data::Text(text) => (**text).into(),
        Data::List(items) => items.iter().map(plain).collect(),
        Data::Unresolved => unreachable!("JSON has no references"),
        Data::Map(members) => members
            .iter()
            .map(|member| (member.key.to_string(), plain(&member.value)))
            .collect(),
    }
}

#[test]
fn commas_too_many_and_too_few_are_repaired() {
    check("[1,]", &["1:3 a comma before `]`"], "[1]");
    check("{\"a\":1,}", &["1:7 a comma before `}`"], r#"{"a":1}"#);
    check("[1 2]", &["1:3 a comma is missing"], "[1,2]");
    check("[1,,2]", &["1:4 a comma with nothing before it"], "[1,2]");
    check("[,1]", &["1:2 a comma with nothing before it"], "[1]");
}

#[test]
fn the_edits_make_json_of_it() {
    let text = "{a: 1,\n \"b\": [True, 2 3,],}";
    let (_, found) = read_all(text);
    let edits: Vec<_> = found
        .iter()
        .filter_map(|d| d.edit.as_deref().cloned())
        .collect();
    let (fixed, _) = diagnostic::apply(text, &edits);
    assert_eq!(fixed, "{\"a\": 1,\n \"b\": [true, 2, 3]}");
}

#[test]
fn comments_and_other_quotes_are_skipped_with_an_error() {
    check(
        "{ // one\n \"a\": /* two */ 'x' }",
        &[
            "1:3 JSON has no comments",
            "2:7 JSON has no comments",
            "2:17 strings are written in double quotes",
        ],
        r#"{"a":"x"}"#,
    );
}

#[test]
fn a_string_without_its_quote_ends_with_its_line() {
    check(
        "{\"a\": \"x,\n\"b\": 1}",
        &[
            "1:7 this string is not closed in its line",
            "1:10 a comma is missing",
        ],
        r#"{"a":"x,","b":1}"#,
    );
}

#[test]
fn the_first_value_of_a_repeated_key_is_kept() {
    check(
        r#"{"a":1,"b":2,"a":3}"#,
        &["1:14 the key `a` is repeated"],
        r#"{"a":1,"b":2}"#,
    );
    let many: String = (0..100).map(|n| format!("\"k{n}\":{n},")).collect();
    let (_, found) = read_all(&format!("{{{many}\"k50\":0}}"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].rule, DUPLICATE_KEY);
}

#[test]
fn a_merge_conflict_is_one_diagnostic() {
    let (_, found) = read_all("{\n<<<<<<< HEAD\n\"a\":1\n=======\n\"a\":2\n>>>>>>> b\n}");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "unresolved merge conflict");
}

#[test]
fn mismatched_brackets_are_reported_at_their_place() {
    for (text, message) in [
        ("[1", "1:1 this array is not closed"),
        ("{\"a\":[1}", "1:8 expected `]`"),
        ("[1]]", "1:4 there is text after the end of the value"),
        ("", "1:1 the file is empty"),
        ("{\"a\"}", "1:2 `a` has no value: expected `:`"),
    ] {
        let (_, found) = read_all(text);
        let place = found[0].location.unwrap();
        assert_eq!(
            format!("{}:{} {}", place.line, place.column, found[0].message),
            message
        );
    }
}

#[test]
fn escapes_follow_the_grammar() {
    check(r#""\u00e9\ud83d\ude00\n\/""#, &[], "\"é😀\\n/\"");
    check(
        r#""\ud83d x""#,
        &["1:2 this escape names no character"],
        "\"\u{fffd} x\"",
    );
    check(r#""\x""#, &["1:2 JSON knows no such escape"], r#""\\x""#);
}

#[test]
fn numbers_follow_the_grammar() {
    for good in ["0", "-0", "10", "1.5", "1e9", "-1.5E-3"] {
        assert!(is_number(good), "{good}");
    }
    for bad in [
        "", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x10", "1.5.1", "NaN",
    ] {
        assert!(!is_number(bad), "{bad}");
    }
}

#[test]
fn ten_thousand_levels_are_one_diagnostic() {
    let text = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let (value, found) = read_all(&text);
    assert!(value.is_some());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].rule, LIMIT);
}

/// The error after which the rest is not read may be inside a string.
#[test]
fn a_string_full_of_control_characters_ends_after_some_errors() {
    let text = format!("[\"{}\", {{]", "\u{1f}".repeat(100));
    let (_, found) = read_all(&text);
    assert_eq!(found.len(), ERRORS_MAX + 1);
}

#[test]
fn a_text_that_is_not_json_ends_after_some_errors() {
    let (_, found) = read_all(&"[?".repeat(1000));
    assert_eq!(found.len(), ERRORS_MAX + 1);
}

proptest! {
    #[test]
    fn valid_json_has_no_diagnostics(value in any_json(), pretty: bool) {
        let text = if pretty {
            serde_json::to_string_pretty(&value).unwrap()
        } else {
            value.to_string()
        };
        let (read, found) = read_all(&text);
        prop_assert_eq!(found, vec![]);
        prop_assert_eq!(plain(&read.unwrap()), value);
    }

    #[test]
    fn the_reader_ends_for_any_text(text in "[\\[\\]{},:\"'/* a1tn\\\\u\n\u{1}ü-]{0,200}") {
        let (_, found) = read_all(&text);
        let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
        prop_assert!(is_json || !found.is_empty(), "{:?} is no JSON", text);
    }
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

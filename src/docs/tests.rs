//! A hostile documentation gives a diagnostic, within the limits.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::*;

fn tree(files: &[(&str, Bytes)]) -> Tree {
    let files = files
        .iter()
        .map(|(path, bytes)| (TreePath::parse(path).unwrap(), bytes.clone()));
    Tree::from_files(files, [])
}

fn found(config: impl Into<Bytes>) -> Vec<Diagnostic> {
    let tree = tree(&[("docs.json", config.into()), ("a.mdx", "# A".into())]);
    read(&tree, &Options::default()).1
}

/// Reads a hostile documentation, which must give an error within a short time.
#[track_caller]
fn ends_in(rule: &str, config: impl Into<Bytes>) {
    let config = config.into();
    let start = Instant::now();
    let found = found(config);
    assert!(
        found
            .iter()
            .any(|found| found.is_error() && found.rule == rule),
        "{found:?}"
    );
    assert!(found.len() < 100, "{} diagnostics", found.len());
    // Tests are not optimised; without the limits, reading takes minutes.
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn files_over_the_limit_are_not_read() {
    ends_in(NO_CONFIG, vec![b' '; 100 << 20]);
}

#[test]
fn nesting_has_a_limit() {
    ends_in("limit", "[".repeat(10_000));
    ends_in("limit", "{\"navigation\":".repeat(10_000));
    let groups = "{\"group\":\"g\",\"pages\":[".repeat(10_000);
    ends_in("limit", format!("{{\"navigation\":{{\"pages\":[{groups}"));
}

#[test]
fn the_number_of_values_is_bounded() {
    ends_in(
        "limit",
        format!("[{}0]", "0,".repeat(crate::syntax::VALUES_MAX)),
    );
}

#[test]
fn bytes_that_are_not_utf_8_are_reported_with_their_line() {
    ends_in(
        reference::ENCODING,
        Bytes::from_static(b"{\n\"name\": \"\xff\"}"),
    );
    let reported = found(Bytes::from_static(b"{\n\"name\": \"\xff\"}"));
    assert_eq!(reported[0].location.unwrap().line, 2);
}

#[test]
fn paths_with_dots_or_control_characters_name_no_page() {
    let config =
        |path: &str| format!(r#"{{"name": "A", "navigation": {{"pages": ["a", "{path}"]}}}}"#);
    for path in [
        "../../etc/passwd",
        "a/../../b",
        "..",
        "\\u0000",
        "a\\u0000.mdx",
        "\\u001b[2J",
    ] {
        ends_in("page-path", config(path));
    }
    let openapi = |path: &str| {
        format!(
            r#"{{"name": "A", "navigation": {{"groups": [{{"group": "G", "openapi": "{path}"}}]}}}}"#
        )
    };
    for path in ["../../etc/passwd", "a\\u0000", "."] {
        ends_in("N6", openapi(path));
    }
}

#[test]
fn many_diagnostics_of_a_long_file_are_found_in_linear_time() {
    let pages: Vec<_> = (0..20_000).map(|n| format!("\"absent-{n}\"")).collect();
    let config = format!(
        r#"{{"name": "A", "navigation": {{"pages": [{}]}}}}"#,
        pages.join(",")
    );
    let start = Instant::now();
    assert_eq!(found(config).len(), 20_000);
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_tree_without_configuration_has_no_documentation() {
    assert!(!has_documentation(&tree(&[("a.mdx", "".into())])));
    assert!(has_documentation(&tree(&[("docs.json", "{".into())])));
}

#[test]
fn variables_are_filled_into_pages_and_snippets() {
    let files = [
        (
            "docs.json",
            r#"{"name": "A", "variables": {"version": "2.1", "a b": "x"}, "navigation": {"pages": ["index"]}}"#,
        ),
        (
            "index.mdx",
            "---\ntitle: Acme {{version}}\n---\n\n`run {{version}}` {{versoin}}\n\n<Snippet file=\"s.mdx\" />\n",
        ),
        ("snippets/s.mdx", "Snippet {{ version }}."),
    ];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let (docs, found) = read(&Tree::from_files(files, []), &Options::default());
    let page = docs.pages.get("index").unwrap();
    assert_eq!(&*page.title(), "Acme 2.1");
    assert!(page.body().contains("`run 2.1`"));
    let nodes = format!("{:?}", page.read.as_ref().unwrap().nodes);
    assert!(nodes.contains("Snippet 2.1."), "{nodes}");
    let found: Vec<_> = found
        .iter()
        .filter(|found| found.rule == "variable")
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let place = found[0].location.unwrap();
    assert_eq!((place.line, place.column, place.length), (5, 19, 11));
}

//! Tests of finding and reading frontmatter.

use super::*;
use crate::syntax::Member;

#[track_caller]
fn found(text: &str) -> Frontmatter {
    read(text).unwrap().unwrap()
}

#[track_caller]
fn error_of(text: &str) -> (u32, u32, String) {
    let InvalidFrontmatter { location, message } = read(text).unwrap_err();
    (location.line, location.column, message)
}

fn place(found: &Frontmatter, member: &Member) -> (u32, u32, u32) {
    let Location {
        line,
        column,
        length,
    } = found.locate(member.span);
    (line, column, length)
}

#[test]
fn line_ends_and_byte_order_marks_do_not_matter() {
    for text in [
        "---\nname: a\n---\nbody",
        "---\r\nname: a\r\n---\r\nbody",
        "\u{feff}---\nname: a\n---\nbody",
    ] {
        let found = found(text);
        assert_eq!(found.mapping.get("name").unwrap().text(), Some("a"));
        assert_eq!(&text[found.body_offset..], "body", "{text:?}");
    }
}

#[test]
fn the_yaml_ends_at_the_first_line_that_starts_with_three_dashes() {
    for (text, body) in [
        ("---\na: 1\n---", ""),
        ("---\na: 1\n----\nb", "-\nb"),
        ("---\na: 1\n--- b: 2\n---\n", " b: 2\n---\n"),
        ("---\n\n---\nb", "b"),
    ] {
        assert_eq!(&text[found(text).body_offset..], body, "{text:?}");
    }
    // A line `---` inside a block text ends the frontmatter, unless the line is indented.
    let text = "---\na: b --- c\nd: |\n  ---\n---\n";
    assert_eq!(
        found(text).mapping.get("a").unwrap().text(),
        Some("b --- c")
    );
}

#[test]
fn a_file_without_dashes_in_its_first_line_has_no_frontmatter() {
    for text in [
        "",
        "\n\n",
        "# Title\n\n---\n",
        "name: a\n",
        "-- -\n",
        "----\na\n---\n",
    ] {
        assert!(read(text).unwrap().is_none(), "{text:?}");
    }
}

#[test]
fn misplaced_frontmatter_is_an_error() {
    assert_eq!(error_of("--- \ngroups: [a]\n---\n").0, 1);
    assert_eq!(error_of("\n\n---\ngroups: [a]\n---\n").0, 3);
    assert_eq!(error_of("---\ngroups: [a]\n").0, 1);
}

#[test]
fn places_count_lines_of_the_file_and_characters() {
    let found = found("---\r\n# ü\r\nname: é\r\nmetadata:\r\n  'ключ': [x, 2]\r\n---\r\n");
    let name = found.mapping.member("name").unwrap();
    assert_eq!(place(&found, name), (3, 1, 4));
    let metadata = found.mapping.get("metadata").unwrap();
    let member = metadata.member("ключ").unwrap();
    assert_eq!(place(&found, member), (5, 3, 6));
    let second = found.locate(member.value.items()[1].span);
    assert_eq!((second.line, second.column), (5, 15));
}

#[test]
fn scalars_follow_the_core_schema() {
    let found = found(
        "---\ntext: yes\nquoted: 'true'\ntruth: true\nnumber: 1.0\nversion: 1.0.0\ndate: 2026-01-02\n\
         nothing: ~\nempty:\ntagged: !!str 5\n---\n",
    );
    let data = |key: &str| found.mapping.get(key).unwrap().data.clone();
    let text = |text: &str| Data::Text(text.into());
    assert_eq!(data("text"), text("yes"));
    assert_eq!(data("quoted"), text("true"));
    assert_eq!(data("truth"), Data::Flag(true));
    assert_eq!(data("number"), Data::Number("1.0".into()));
    assert_eq!(data("version"), text("1.0.0"));
    assert_eq!(data("date"), text("2026-01-02"));
    assert_eq!(data("nothing"), Data::Null);
    assert_eq!(data("empty"), Data::Null);
    assert_eq!(data("tagged"), text("5"));
}

#[test]
fn block_scalars_fold_keep_and_strip() {
    let found = found(
        "---\nfolded: >\n  one\n  two\n\n  three\nstripped: >-\n  a\n  b\nliteral: |\n  x\n   y\nplain:\n  over\n  lines\n---\n",
    );
    let text = |key: &str| found.mapping.get(key).unwrap().text().unwrap();
    assert_eq!(text("folded"), "one two\nthree\n");
    assert_eq!(text("stripped"), "a b");
    assert_eq!(text("literal"), "x\n y\n");
    assert_eq!(text("plain"), "over lines");
}

#[test]
fn the_first_value_of_a_repeated_key_is_used() {
    let found = found("---\nname: a\nmeta: {k: 1, k: 2}\nname: b\n---\n");
    assert_eq!(found.mapping.get("name").unwrap().text(), Some("a"));
    let reported = found.repeated.iter().map(|r| (&*r.key, r.location.line));
    assert!(reported.eq([("k", 3), ("name", 4)]));
}

#[test]
fn empty_frontmatter_is_an_empty_mapping() {
    for text in [
        "---\n---\n",
        "---\r\n---\r\n",
        "---\n\n---\n",
        "---\r\n\r\n---\r\n",
        "---\n  \n---\n",
        "---\n\t\n---\n",
        "---\n \t\n\n---\n",
        "---\n# only a comment\n---\n",
        "---\n~\n---\n",
    ] {
        assert!(found(text).mapping.members().is_empty(), "{text:?}");
    }
}

#[test]
fn a_yaml_error_has_its_place() {
    assert_eq!(error_of("---\nname:\n\t- c\n---\n").0, 3);
    assert_eq!(
        error_of("---\nname: a\ndescription: Use when: asked\n---\n").0,
        3
    );
    assert_eq!(error_of("---\nname: \"open\n---\n").0, 2);
    assert_eq!(error_of("---\na: [1, 2\n---\n").0, 3);
    assert_eq!(error_of("---\na: *unknown\n---\n").0, 2);
    assert_eq!(error_of("---\na: !!int b\n---\n").0, 2);
    assert_eq!(
        error_of("---\n- a\n---\n"),
        (2, 1, "frontmatter is a list, not keys with values".into())
    );
    assert_eq!(
        error_of("---\n? [a]\n: b\n---\n").2,
        "a list cannot be a key"
    );
    assert_eq!(
        error_of("---\na: 1\n...\nb: 2\n---\n").2,
        "frontmatter is more than one document"
    );
}

#[test]
fn a_quoted_text_may_go_over_several_lines() {
    for (text, expected) in [
        ("title: \"one\ntwo\"\nicon: x", "one two"),
        ("title: 'one\ntwo'\nicon: x", "one two"),
        ("title: \"one\n\n  two\"\nicon: x", "one\ntwo"),
        ("title: \"one \\\ntwo\"\nicon: x", "one two"),
        ("title: 'one\n\ttwo'\nicon: x", "one two"),
        (
            "title: \"one\n  two: 'three'\n\"\nicon: x",
            "one two: 'three' ",
        ),
    ] {
        let found = found(&format!("---\n{text}\n---\n"));
        assert_eq!(
            found.mapping.get("title").unwrap().text(),
            Some(expected),
            "{text}"
        );
        assert_eq!(
            found.mapping.get("icon").unwrap().text(),
            Some("x"),
            "{text}"
        );
    }
    let nested = found("---\nmeta:\n  title: \"one\ntwo\"\n  icon: x\n---\n");
    let meta = nested.mapping.get("meta").unwrap();
    assert_eq!(meta.get("title").unwrap().text(), Some("one two"));
    assert_eq!(meta.get("icon").unwrap().text(), Some("x"));
}

#[test]
fn aliases_are_copied() {
    let found = found("---\na: &x [1, two]\nb: *x\n---\n");
    assert_eq!(found.mapping.get("a"), found.mapping.get("b"));
    let location = found.locate(found.mapping.get("b").unwrap().span);
    assert_eq!(location.line, 3);
}

#[test]
fn aliases_do_not_multiply_without_bound() {
    let mut text = String::from("---\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        let below = format!("*a{}", level - 1);
        let list = [below.as_str(); 8].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    text.push_str("---\n");
    assert!(error_of(&text).2.contains("values, those that aliases"));

    let large = format!(
        "---\na: &a {}\nb: [{}]\n---\n",
        "x".repeat(40_000),
        "*a, ".repeat(5_000)
    );
    assert!(error_of(&large).2.contains("bytes of text, those that"));
}

#[test]
fn aliases_do_not_nest_without_bound() {
    let nest = |inner: &str| format!("{}{inner}{}", "[".repeat(20), "]".repeat(20));
    let text = format!("---\na: &a {}\nb: {}\n---\n", nest("x"), nest("*a"));
    assert_eq!(error_of(&text).2, "values are nested more than 32 deep");
    assert_eq!(
        error_of("---\na: &a [*a]\n---\n").2,
        "this alias is inside the value that it names"
    );
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = |levels| format!("---\na: {}\n---\n", "[".repeat(levels));
    assert!(error_of(&deep(100)).2.contains("nested more than 32 deep"));
    // This nesting exceeds the parser's own limit first.
    assert!(error_of(&deep(60_000)).2.contains("recursion limit"));
    let blocks: String = (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(
        error_of(&format!("---\n{blocks}---\n"))
            .2
            .contains("nested more than 32 deep")
    );
    let long = format!("---\na: {}\n---\n", "x".repeat(BYTES_MAX));
    assert!(error_of(&long).2.contains("bytes"));
}

proptest::proptest! {
    #[test]
    fn the_reader_never_panics(yaml in "[-:\\[\\]{}&*!|>'\"%@#a \n\t,?.~0é\\\\]{0,80}") {
        let text = format!("---\n{yaml}\n---\nbody");
        if let Ok(Some(found)) = read(&text) {
            proptest::prop_assert!(text.is_char_boundary(found.body_offset));
        }
    }
}

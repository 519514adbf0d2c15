//! Tests of YAML that is read and YAML that is rejected.

use super::*;
use crate::diagnostic::Diagnostic;

fn read_all(text: &str) -> (Option<Value>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.files.add("api.yaml", text.into());
    let value = read(file, &mut diagnostics);
    (value, diagnostics)
}

fn diagnostics_of(text: &str) -> Vec<Diagnostic> {
    read_all(text).1.finish()
}

/// Two levels, ten values, a hundred bytes.
const SMALL: Limits = Limits {
    depth: 2,
    values: 10,
    text_bytes: 100,
    documents: usize::MAX,
    indentations: 2,
};

fn small(text: &str) -> Stream {
    parse(text, 0..text.len(), FileId::default(), &SMALL)
}

#[test]
fn scalars_are_resolved_by_the_core_schema() {
    let (value, _) = read_all("a: yes\nb: true\nc: 1.10\nd: \"1\"\ne: ~\n200: x\nf: !!str 5\n");
    let value = value.unwrap();
    assert_eq!(value.get("a").unwrap().text(), Some("yes"));
    assert_eq!(value.get("b").unwrap().flag(), Some(true));
    assert_eq!(value.get("c").unwrap().data, Data::Number("1.10".into()));
    assert_eq!(value.get("d").unwrap().text(), Some("1"));
    assert_eq!(value.get("e").unwrap().data, Data::Null);
    assert_eq!(value.get("200").unwrap().text(), Some("x"));
    assert_eq!(value.get("f").unwrap().text(), Some("5"));
}

#[test]
fn spans_are_bytes_of_the_text_beyond_ascii_too() {
    for text in ["é: ü\nkey: välue\n", "\u{feff}é: ü\nkey: välue\n"] {
        let (value, diagnostics) = read_all(text);
        let value = value.unwrap();
        let member = value.member("key").unwrap();
        assert_eq!(diagnostics.files.source(member.span), "key");
        assert_eq!(diagnostics.files.source(member.value.span), "välue");
    }
}

#[test]
fn a_part_of_a_text_has_the_spans_of_the_text() {
    let text = "é\n---\nkey: value\n---\n";
    let stream = parse(text, 7..text.len() - 4, FileId::default(), &SMALL);
    let member = stream.documents[0].member("key").unwrap();
    assert_eq!(&text[member.span.range()], "key");
    assert_eq!(&text[member.value.span.range()], "value");
}

#[test]
fn the_lines_of_a_quoted_text_may_be_indented_too_little() {
    let text = "é:\n  a: \"one\ntwo\n\nthree\"\n  b: 'it''s\n here'\n  key: value\n";
    let (value, diagnostics) = read_all(text);
    let value = value.unwrap();
    let inner = value.get("é").unwrap();
    assert_eq!(inner.get("a").unwrap().text(), Some("one two\nthree"));
    assert_eq!(inner.get("b").unwrap().text(), Some("it's here"));
    let member = inner.member("key").unwrap();
    assert_eq!(diagnostics.files.source(member.span), "key");
    assert_eq!(diagnostics.files.source(member.value.span), "value");
    assert_eq!(diagnostics.finish(), []);
}

#[test]
fn how_many_quoted_texts_are_indented_is_limited() {
    let stream = small(&"- - 'a\n b'\n".repeat(3));
    let problem = stream.problem.unwrap();
    assert_eq!(problem.kind, ProblemKind::Syntax);
    assert_eq!(problem.span.range(), 26..26);
}

#[test]
fn a_text_may_have_several_documents() {
    let stream = small("a: 1\n---\n- 2\n...\n---\n");
    assert_eq!(stream.problem, None);
    let kinds: Vec<_> = stream.documents.iter().map(Value::yaml_kind).collect();
    assert_eq!(kinds, ["a mapping", "a list", "empty"]);
    let first = Limits {
        documents: 1,
        ..SMALL
    };
    let text = "a: 1\n---\n[";
    let stream = parse(text, 0..text.len(), FileId::default(), &first);
    assert_eq!((stream.documents.len(), stream.problem), (1, None));
}

#[test]
fn aliases_repeat_their_value() {
    let (value, _) = read_all("a: &x {b: 1}\nc: *x\n");
    let value = value.unwrap();
    assert_eq!(value.get("a"), value.get("c"));
}

#[test]
fn aliases_count_against_the_limits() {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for n in 1..12 {
        let of = format!("*a{},", n - 1).repeat(9);
        text.push_str(&format!("a{n}: &a{n} [{of}]\n"));
    }
    let diagnostics = diagnostics_of(&text);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].rule, LIMIT);

    let limit = |text: &str| small(text).problem.map(|problem| problem.kind);
    let long = "x".repeat(45);
    assert_eq!(limit(&format!("- &a {long}\n")), None);
    assert_eq!(
        limit(&format!("- &a {long}\n- *a\n")),
        Some(ProblemKind::Limit)
    );
    assert_eq!(limit("- &a [1]\n- *a\n"), None);
    assert_eq!(limit("- [*a]\n"), Some(ProblemKind::Syntax));
    assert_eq!(limit("- &a [1]\n- [*a]\n"), Some(ProblemKind::Limit));
    assert_eq!(limit("- &a [*a]\n"), Some(ProblemKind::Structure));
}

#[test]
fn depth_is_limited() {
    let blocks = diagnostics_of(&format!("{}x", "- ".repeat(1000)));
    assert_eq!(blocks.len(), 1);
    assert_eq!(blocks[0].rule, LIMIT);
    // The parser itself rejects brackets that are nested so deeply.
    assert_eq!(
        diagnostics_of(&format!("a: {}", "[".repeat(10_000))).len(),
        1
    );
}

#[test]
fn an_error_of_syntax_has_its_place() {
    let diagnostics = diagnostics_of("a: 1\nb: [1, 2\nc: 3\n");
    assert_eq!(diagnostics[0].rule, SYNTAX);
    assert!(diagnostics[0].location.unwrap().line >= 2);
}

#[test]
fn a_repeated_key_is_an_error() {
    assert_eq!(diagnostics_of("a: 1\na: 2\n")[0].rule, DUPLICATE_KEY);
    assert_eq!(diagnostics_of("? [a]\n: b\n")[0].rule, SYNTAX);
}

#[test]
fn many_keys_are_read_in_linear_time() {
    let text: String = (0..200_000).map(|n| format!("key{n}: {n}\n")).collect();
    let (value, _) = read_all(&text);
    assert_eq!(value.unwrap().members().len(), 200_000);
}

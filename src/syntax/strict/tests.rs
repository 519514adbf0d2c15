//! Every mistake is reported at its place, and hostile files end in a diagnostic.

use super::*;

fn diagnostics_of(text: &str) -> Vec<String> {
    let report = Report::new("conf", "a.yaml", text);
    let documents = report.documents();
    for document in documents.iter().flatten() {
        let Some(mut mapping) = Mapping::of(document, &report) else {
            continue;
        };
        mapping.get("name", super::text);
        mapping.require("count", number(1..=9));
        mapping.list("words", one_of(&[("a", 1), ("b", 2)]));
        if let Some(mut section) = mapping.section("section") {
            section.set("on", &mut false, boolean);
            section.finish();
        }
        mapping.finish();
    }
    report.into_vec().iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_without_mistakes_has_no_diagnostics() {
    let text = "name: \"1\"\ncount: 3\nwords: [a, b]\nsection: { on: true }\n";
    assert_eq!(diagnostics_of(text), [""; 0]);
    assert_eq!(
        diagnostics_of("count: 3\nname:\nwords:\nsection:\n"),
        [""; 0]
    );
}

#[test]
fn every_mistake_is_found_with_its_place() {
    let text = "nam: x\ncount: 30\nwords: [a, c, 4]\nsection:\n  on: maybe\n  off: 1\n";
    assert_eq!(
        diagnostics_of(text),
        [
            "a.yaml:1:1: error[conf]: `nam` is not a known key (did you mean `name`?)",
            "a.yaml:2:8: error[conf]: `count` is 30, expected a whole number from 1 to 9",
            "a.yaml:3:12: error[conf]: `words` is \"c\", expected `a` or `b`",
            "a.yaml:3:15: error[conf]: `words` is 4, expected `a` or `b`",
            "a.yaml:5:7: error[conf]: `section.on` is \"maybe\", expected true or false",
            "a.yaml:6:3: error[conf]: `section.off` is not a known key (known keys: on)",
        ]
    );
}

#[test]
fn a_missing_key_is_reported_where_it_should_be() {
    assert_eq!(
        diagnostics_of("name: x\n"),
        ["a.yaml:1:1: error[conf]: `count` is missing"]
    );
}

#[test]
fn invalid_yaml_is_reported_with_its_place() {
    let found = diagnostics_of("count: 3\nname: [a\nb: c\n");
    assert!(found[0].starts_with("a.yaml:"), "{found:?}");
    let found = diagnostics_of("count: 3\ncount: 4\n");
    assert!(found[0].starts_with("a.yaml:2:1: "), "{found:?}");
    assert_eq!(
        diagnostics_of("- 1\n"),
        ["a.yaml:1:1: error[conf]: `the document` is a list, expected a mapping"]
    );
}

#[test]
fn hostile_nesting_and_aliases_end_in_a_diagnostic() {
    let deep = format!("count: {}", "[".repeat(100_000));
    assert!(diagnostics_of(&deep)[0].contains("recursion limit"));
    let deep: String = (0..2000)
        .map(|n| format!("{}a:\n", " ".repeat(n)))
        .collect();
    assert!(!diagnostics_of(&deep).is_empty());
    let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let before = format!("*a{}, ", n - 1).repeat(9);
        aliases.push_str(&format!("a{n}: &a{n} [{before}*a{}]\n", n - 1));
    }
    assert!(!diagnostics_of(&aliases).is_empty());
}

#[test]
fn lines_count_from_the_start_of_the_file() {
    let report = Report::after_lines("conf", "a.yaml", "x: 1\n", 10);
    let documents = report.documents().unwrap();
    Mapping::of(&documents[0], &report).unwrap().finish();
    assert_eq!(report.into_vec()[0].location.unwrap().line, 11);
}

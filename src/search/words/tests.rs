//! Tests of the words of texts and of their stems.

use super::*;

/// Returns the terms of a text, in order.
fn terms_of(language: &str, text: &str) -> Vec<String> {
    let stemmer = Stemmer::of(language);
    let mut all = Vec::new();
    runs(text, |place, kind| {
        terms(&text[place], kind, &stemmer, |_, term| {
            all.push(term.to_owned())
        });
    });
    all
}

#[test]
fn words_are_stems_in_lower_case() {
    assert_eq!(
        terms_of("en", "Deployments, deploying!"),
        ["deploy", "deploy"]
    );
    assert_eq!(
        terms_of("fr", "Déploiements"),
        terms_of("fr", "déploiement")
    );
    assert_eq!(terms_of("de", "Größe"), ["gross"]);
    assert_eq!(terms_of("xx", "Łódź naïve"), ["łodz", "naive"]);
}

#[test]
fn identifiers_are_found_whole_and_in_parts_in_every_spelling() {
    let whole = &terms_of("en", "max_tokens")[0];
    for text in [
        "max_tokens",
        "maxTokens",
        "max-tokens",
        "MAX_TOKENS",
        "MaxTokens",
        "max.tokens",
    ] {
        let terms = terms_of("en", text);
        assert_eq!(&terms[0], whole, "{text}");
        assert_eq!(terms[1..], ["max", "token"], "{text}");
    }
    assert_eq!(
        terms_of("en", "HTTPServer"),
        ["httpserver", "http", "server"]
    );
    assert_eq!(terms_of("en", "OAuth"), ["oauth"]);
    assert_eq!(terms_of("en", "docs.json."), ["docsjson", "doc", "json"]);
}

#[test]
fn flags_codes_versions_and_languages_with_signs_are_terms() {
    assert_eq!(
        terms_of("en", "use --dry-run")[1..3],
        ["--dryrun", "dryrun"]
    );
    assert_eq!(terms_of("en", "-H"), ["-h", "h"]);
    assert_eq!(terms_of("en", "a - b -- c"), ["a", "b", "c"]);
    assert_eq!(
        terms_of("en", "E0308 v1.2 0.47"),
        ["e0308", "v1.2", "v1", "0.47", "47"]
    );
    assert_eq!(terms_of("en", "C++ and C#"), ["c++", "and", "c#"]);
}

#[test]
fn scripts_without_spaces_give_pairs() {
    assert_eq!(terms_of("zh", "部署文档"), ["部署", "署文", "文档"]);
    assert_eq!(terms_of("ja", "APIを使う"), ["api", "を使", "使う"]);
    assert_eq!(terms_of("ko", "설정"), ["설정"]);
    assert_eq!(terms_of("zh", "的"), ["的"]);
}

#[test]
fn any_text_gives_terms_without_a_panic() {
    for text in [
        "",
        "-",
        "--",
        "'",
        "a'",
        "’a",
        "_a_",
        "a..b",
        "\u{301}a",
        "ｆｕｌｌ",
        "🦀c🦀",
        "c+",
        "ﬁ",
    ] {
        terms_of("en", text);
        terms_of("tr", text);
    }
    assert!(terms_of("en", &"x".repeat(5000)).is_empty());
}

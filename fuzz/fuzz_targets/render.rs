//! Any text as a page: it becomes an article, and nothing in the article runs.
//!
//! What comes before the first zero byte is the page, what comes after it a snippet that
//! the page may import. It is run as `docs` is (`fuzz_targets/docs.rs`), with `--bin render`;
//! the cases of `tests/rendering` are its corpus as they are.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost::diagnostic::Diagnostic;
use waypost::render::article::{self, Source};
use waypost::render::link::Map;

/// Elements that no article has, however a page is written.
const ELEMENTS: [&str; 8] = [
    "script", "style", "object", "embed", "form", "base", "meta", "template",
];

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (page, snippet) = text.split_once('\0').unwrap_or((text, ""));
    let source = Source {
        file: "guides/page.mdx",
        title: "Page",
        description: None,
        language: "en",
        text: page,
    };
    let article = article::render(&source, &Map::default(), &|_| Some(snippet.to_owned()));
    // Rendering catches what panics in it, so that a page harms no build; here it is a find.
    let caught = article.diagnostics.iter();
    let caught = caught.filter(|found| is_panic(found));
    assert_eq!(caught.count(), 0, "a panic was caught");
    article.html.as_str().split('<').skip(1).for_each(check);
});

/// Returns whether a finding tells of a panic; authors' words stand in the messages of others.
fn is_panic(found: &Diagnostic) -> bool {
    let failed = "reading it failed in a way nobody thought of";
    found.rule == "page-limit" && found.message.starts_with(failed)
}

/// Checks a tag. Text is written without angle brackets, so every one begins a tag.
fn check(tag: &str) {
    let lower = tag.to_ascii_lowercase();
    let name = lower.split([' ', '>', '/']).next().unwrap_or_default();
    assert!(!ELEMENTS.contains(&name), "<{tag}");
    // What stands between quotes is a value.
    let names: String = lower.split('"').step_by(2).collect();
    let names = names.split('>').next().unwrap_or_default();
    for attribute in names.split(' ').skip(1) {
        let is_event = attribute.starts_with("on") && attribute.contains('=');
        assert!(!is_event && !attribute.starts_with("srcdoc"), "<{tag}");
    }
}

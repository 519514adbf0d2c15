//! Any text as a page: it becomes an article, and nothing in the article runs.
//!
//! What comes before the first zero byte is the page, what comes after it a snippet that
//! the page may import.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost::render::article::{self, Source};
use waypost::render::link::Map;

/// What no article has, however a page is written.
const FORBIDDEN: [&str; 8] = [
    "<script", "<style", "<object", "<embed", "<form", "<base", "<meta", " srcdoc=",
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
        text: page,
    };
    let article = article::render(&source, &Map::default(), &|_| Some(snippet.to_owned()));
    let html = article.html.as_str().to_lowercase();
    for forbidden in FORBIDDEN {
        assert!(!html.contains(forbidden), "{forbidden} in {html}");
    }
});

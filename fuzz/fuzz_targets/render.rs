//! Any text as a page: it becomes an article, and nothing in the article runs.
//!
//! The page is the text before the first zero byte; the text after it is a snippet that the page
//! may import. To run it, see `fuzz_targets/docs.rs`, with `--bin render`; the corpus is the
//! unchanged cases of `tests/rendering`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost::diagnostic::Diagnostic;
use waypost::mdx;
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
    let source = mdx::Source {
        title: "Page",
        ..mdx::Source::new("guides/page.mdx", page)
    };
    let read = mdx::read(&source, &|_| Some(snippet.into()));
    let map = Map::default();
    let article = article::render(&Source::alone(&source, &read), &map);
    let all = ids(article.html.as_str());
    let outside = ids(&without_drawings(article.html.as_str()));
    if let Ok(page) = &read {
        // Every anchor is the id of an element, and of one only: the parts of a drawing refer to
        // each other by ids, which authors repeat when they repeat a drawing.
        for anchor in page.outline.anchors.iter() {
            let count = |ids: &[String]| ids.iter().filter(|id| **id == *anchor).count();
            assert!(count(&all) >= 1, "{anchor:?} is missing");
            assert!(count(&outside) <= 1, "{anchor:?} is repeated");
        }
    }
    // Rendering catches panics, so that no page can stop a build. Here a panic is a failure.
    let caught = article.diagnostics.iter();
    let caught = caught.filter(|found| is_panic(found));
    assert_eq!(caught.count(), 0, "a panic was caught");
    article.html.as_str().split('<').skip(1).for_each(check);
});

/// Returns whether a diagnostic reports a panic; other messages may contain authors' text.
fn is_panic(found: &Diagnostic) -> bool {
    let failed = "an unexpected error occurred while it was read";
    found.rule == "page-limit" && found.message.starts_with(failed)
}

/// Returns an article without its drawings.
fn without_drawings(html: &str) -> String {
    let mut parts = html.split("<svg");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let after = part.split_once("</svg>").map_or("", |(_, after)| after);
        text + after
    })
}

/// Returns the ids of an article as a parser reads them.
fn ids(html: &str) -> Vec<String> {
    let attributes = html.split(" id=\"").skip(1);
    let written = attributes.filter_map(|rest| rest.split('"').next());
    let read = |id: &str| {
        id.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&amp;", "&")
    };
    written.map(read).collect()
}

/// Checks a tag. Text is written without angle brackets, so every one begins a tag.
fn check(tag: &str) {
    let lower = tag.to_ascii_lowercase();
    let name = lower.split([' ', '>', '/']).next().unwrap_or_default();
    assert!(!ELEMENTS.contains(&name), "<{tag}");
    // Text between quotes is a value.
    let names: String = lower.split('"').step_by(2).collect();
    let names = names.split('>').next().unwrap_or_default();
    for attribute in names.split(' ').skip(1) {
        let is_event = attribute.starts_with("on") && attribute.contains('=');
        assert!(!is_event && !attribute.starts_with("srcdoc"), "<{tag}");
    }
}

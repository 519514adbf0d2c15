//! A damaged search index, and any question.
//!
//! The first byte is a number of changes. Each change is three bytes: a place in a small index, and
//! the byte that is put there. The rest is the question. Nothing may panic, and whatever is found
//! keeps to the limits.

#![no_main]

use std::ops::Range;
use std::sync::LazyLock;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use waypost::search::{Document, Heading, Index, LIMIT_MAX, Part, Question, write};

const MARKDOWN: &str = "# Limits\n\n> What is counted.\n\nThe option `max_tokens` counts tokens.\n\n\
    ## Errors\n\nThe code E0308 says 部署文档 that a key is wrong. See `--dry-run` too.\n";

static INDEX: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let heading = Heading {
        anchor: "errors",
        text: "Errors",
    };
    let names: Vec<String> = (0..80).map(|n| format!("guides/page-{n}")).collect();
    let page = |path| Document {
        path,
        title: "Limits",
        breadcrumb: vec!["Guides"],
        keywords: vec!["quota"],
        description: Some("What is counted."),
        markdown: MARKDOWN,
        headings: vec![heading],
        ..Document::default()
    };
    let documents = names.iter().map(|name| page(name.as_str())).collect();
    let other = vec![page("v1/limits")];
    let part = |version, is_default, documents| Part {
        language: "en",
        version,
        is_default,
        documents,
    };
    write(&[part(None, true, documents), part(Some("v1"), false, other)])
});

fuzz_target!(|data: &[u8]| {
    let Some((count, rest)) = data.split_first() else {
        return;
    };
    let (changes, question) = rest.split_at(rest.len().min(3 * usize::from(*count)));
    let mut file = INDEX.clone();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % file.len();
        file[at] = change[2];
    }
    let file = Bytes::from(file);
    let Ok(index) = Index::open(&file) else {
        return;
    };
    let texts = |_: &str, range: Range<u64>| {
        let place = |at: u64| {
            usize::try_from(at)
                .unwrap_or(usize::MAX)
                .min(MARKDOWN.len())
        };
        Some(Bytes::from_static(
            &MARKDOWN.as_bytes()[place(range.start)..place(range.end)],
        ))
    };
    let text = String::from_utf8_lossy(question);
    for is_typing in [false, true] {
        let question = Question {
            is_typing,
            limit: LIMIT_MAX,
            ..Question::new(&text)
        };
        if let Ok(found) = index.search(&file, &texts, &question) {
            assert!(found.hits.len() <= LIMIT_MAX && found.total >= found.hits.len());
        }
    }
});

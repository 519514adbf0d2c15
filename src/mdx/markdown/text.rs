//! Plain text in Markdown: addresses that become links, and character references.
//!
//! Sources: GitHub Flavored Markdown 0.29 §6.9; CommonMark 0.31.2 §2.5.

use pulldown_cmark::{Event, Parser};

use super::{MARK, MARK_END};

/// Resolves the character references of a quoted attribute, as HTML and JSX do.
pub(in crate::mdx) fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    // The Markdown parser knows all character references and leaves plain text unchanged.
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest
            .bytes()
            .skip(1)
            .take(32)
            .position(|b| !b.is_ascii_alphanumeric() && b != b'#')
            .map(|n| n + 1)
            .filter(|n| rest.as_bytes()[*n] == b';');
        let reference = &rest[..end.map_or(1, |n| n + 1)];
        for event in Parser::new(reference) {
            if let Event::Text(text) = event {
                out.push_str(&text);
            }
        }
        rest = &rest[reference.len()..];
    }
    out.push_str(rest);
    out
}

/// Splits a text at its first address (GFM §6.9).
pub(super) fn split_url(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("http")?;
        let before = text[..start].chars().next_back();
        let rest = &text[start..];
        let scheme = ["https://", "http://"]
            .iter()
            .find(|s| rest.starts_with(**s));
        let (Some(scheme), false) = (scheme, before.is_some_and(char::is_alphanumeric)) else {
            from = start + "http".len();
            continue;
        };
        let end = rest
            .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | MARK | MARK_END))
            .unwrap_or(rest.len());
        let mut url = rest[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
        if url.ends_with(')') && url.matches(')').count() > url.matches('(').count() {
            url = &url[..url.len() - 1];
        }
        if url.len() <= scheme.len() {
            from = start + scheme.len();
            continue;
        }
        return Some((&text[..start], url, &rest[url.len()..]));
    }
}

//! The path of a generated endpoint page.
//!
//! `<directory>/<tag>/<summary>`, spelled as on the platform that sites move here from, so
//! that their links and search results stay valid.

use super::Endpoint;

/// The directory of endpoint pages if `directory` is not set.
const DIRECTORY: &str = "api-reference";

/// Returns the path of an endpoint's page. The caller numbers pages of the same path.
#[must_use]
pub fn slug(endpoint: &Endpoint, directory: Option<&str>) -> String {
    if let Some(href) = &endpoint.href {
        return href.trim_matches('/').to_owned();
    }
    let directory = directory.unwrap_or(DIRECTORY).trim_matches('/');
    let name = match &endpoint.summary {
        Some(summary) if !spelled(summary).is_empty() => spelled(summary),
        _ => spelled(&format!("{}-{}", endpoint.method.key(), endpoint.path)),
    };
    let tag = endpoint
        .tags
        .first()
        .map(|tag| spelled(tag))
        .unwrap_or_default();
    let parts = [directory, &tag, &name];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// Replaces spaces and `{param}` by `-`, removes other punctuation and one `-` at each end,
/// replaces two `-` by one, and changes letters to lower case.
fn spelled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let parameter = rest
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'));
        if let Some((_, after)) = parameter {
            out.push('-');
            rest = after;
            continue;
        }
        match c {
            ' ' => out.push('-'),
            '{' | '}' | '(' | ')' | ',' | '.' | '\'' | '\n' | '/' => {}
            // These characters have a meaning in a URL.
            '?' | '#' | '%' | '\\' => {}
            c if c.is_control() => {}
            c => out.extend(c.to_lowercase()),
        }
        rest = &rest[c.len_utf8()..];
    }
    let out = out.strip_prefix('-').unwrap_or(&out);
    let out = out.strip_suffix('-').unwrap_or(out);
    out.replace("--", "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_spelled_as_links_have_them() {
        for (text, slug) in [
            ("List all users", "list-all-users"),
            ("Get user's plan (v2.1)", "get-users-plan-v21"),
            ("get-/users/{id}", "get-users"),
            ("get-/users/{id}/items", "get-users-items"),
            (" Create ", "create"),
            ("A / B", "a-b"),
            ("Über?", "über"),
        ] {
            assert_eq!(spelled(text), slug, "{text}");
        }
    }
}

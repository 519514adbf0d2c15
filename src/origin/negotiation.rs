//! Decides whether a client prefers Markdown over HTML.
//!
//! Browsers list `text/html` and end with `*/*`. Agents list `text/markdown` (or `text/plain`)
//! first or alone. A client that lists neither gets HTML.
//!
//! Sources: RFC 9110 §12.5.1.

/// Returns whether an `Accept` field prefers Markdown.
///
/// ```
/// use waypost::origin::prefers_markdown;
///
/// assert!(prefers_markdown(b"text/markdown, text/html;q=0.9, */*;q=0.1"));
/// assert!(!prefers_markdown(b"text/html,application/xhtml+xml,*/*;q=0.8"));
/// assert!(!prefers_markdown(b"*/*"));
/// ```
#[must_use]
pub fn prefers_markdown(accept: &[u8]) -> bool {
    let Ok(accept) = std::str::from_utf8(accept) else {
        return false;
    };
    let mut markdown = Preference::default();
    let mut html = Preference::default();
    for (place, item) in accept.split(',').enumerate() {
        let mut parts = item.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_one = |kinds: [&str; 2]| kinds.iter().any(|known| kind.eq_ignore_ascii_case(known));
        let weight = parts
            .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
            .map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        if is_one(["text/markdown", "text/plain"]) {
            markdown.add(weight, place);
        } else if is_one(["text/html", "application/xhtml+xml"]) {
            html.add(weight, place);
        }
    }
    // If both weights are equal, the type that comes first in the list is preferred.
    markdown.weight > 0.0
        && (markdown.weight > html.weight
            || markdown.weight >= html.weight && markdown.place < html.place)
}

/// The weight of a media type, and its position in the list.
#[derive(Clone, Copy, Debug)]
struct Preference {
    weight: f32,
    place: usize,
}

// === impl Preference ===

impl Default for Preference {
    fn default() -> Self {
        Self {
            weight: 0.0,
            place: usize::MAX,
        }
    }
}

impl Preference {
    fn add(&mut self, weight: f32, place: usize) {
        if weight > self.weight {
            *self = Self { weight, place };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_a_type_that_they_accept() {
        for (accept, markdown) in [
            ("text/markdown", true),
            ("text/plain", true),
            ("text/markdown, text/html, */*", true),
            ("text/html, text/markdown", false),
            ("text/html;q=0.8, text/markdown;q=0.9", true),
            ("text/markdown;q=0", false),
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
                false,
            ),
            ("text/html, text/plain;q=0.5", false),
            ("application/json", false),
            ("", false),
            ("text/markdown;q=x", false),
            ("Text/Markdown, TEXT/HTML;q=0.9", true),
        ] {
            assert_eq!(prefers_markdown(accept.as_bytes()), markdown, "{accept}");
        }
        assert!(!prefers_markdown(b"\xff"));
    }
}

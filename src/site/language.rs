//! Tags of languages.
//!
//! Source: RFC 5646 (BCP 47) §2.1.

/// Returns the first subtag, which names the language: `pt` of `pt-BR`. Authors also write `pt_BR`.
#[must_use]
pub fn primary(tag: &str) -> &str {
    tag.split(['-', '_']).next().unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_named_by_the_first_subtag() {
        for (tag, language) in [("pt-BR", "pt"), ("pt_BR", "pt"), ("de", "de"), ("", "")] {
            assert_eq!(primary(tag), language, "{tag}");
        }
    }
}

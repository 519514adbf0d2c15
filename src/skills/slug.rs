//! Slugs: the names of skills in URLs.
//!
//! Authors write names for people: `Acme SDK`, `Überweisungen`, `文档`. A slug is the name
//! transliterated to ASCII, in lower case, with a hyphen for everything between words. Clients
//! check the form and drop skills whose names have another.
//!
//! Sources: Agent Skills specification, `name`; Agent Skills Discovery 0.2.0.

use std::fmt;

/// How many characters a slug may have.
const LENGTH_MAX: usize = 64;

/// A skill's name in URLs: `[a-z0-9]+(-[a-z0-9]+)*`, at most 64 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slug(Box<str>);

/// Why a text is not a slug.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not 1 to {LENGTH_MAX} lower-case letters and digits with single hyphens between")]
pub struct InvalidSlug(Box<str>);

// === impl Slug ===

impl Slug {
    /// Reads a slug.
    ///
    /// # Errors
    ///
    /// [`InvalidSlug`] when the text does not have this form.
    pub fn parse(text: &str) -> Result<Self, InvalidSlug> {
        let word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        if text.len() <= LENGTH_MAX && text.split('-').all(word) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidSlug(text.chars().take(80).collect()))
        }
    }

    /// Makes a slug of a name; `None` when no character of it can become a letter or digit.
    ///
    /// ```
    /// use waypost::skills::Slug;
    ///
    /// let slug = |name| Slug::from_name(name).map(|slug| slug.to_string());
    /// assert_eq!(slug("Acme SDK (v2)"), Some("acme-sdk-v2".into()));
    /// assert_eq!(slug("Größe & Maß"), Some("grosse-mass".into()));
    /// assert_eq!(slug("!?"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut slug = String::new();
        // An apostrophe is part of a word: `what's` is one word.
        let letters = name.chars().filter(|c| !matches!(c, '\'' | '’'));
        for c in letters.flat_map(|c| deunicode::deunicode_char(c).unwrap_or(" ").chars()) {
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
            if slug.len() > LENGTH_MAX {
                break;
            }
        }
        slug.truncate(LENGTH_MAX);
        let slug = slug.trim_end_matches('-');
        Self::parse(slug).ok()
    }

    /// Returns this slug with a number at its end, shortened to the greatest length.
    #[must_use]
    pub fn numbered(&self, number: usize) -> Self {
        let ending = format!("-{number}");
        let kept = LENGTH_MAX.saturating_sub(ending.len()).min(self.0.len());
        let stem = self.0[..kept].trim_end_matches('-');
        Self(format!("{stem}{ending}").into())
    }

    /// Returns the slug.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(name: &str, expected: &str) {
        let slug = Slug::from_name(name).unwrap();
        assert_eq!(slug.as_str(), expected, "{name:?}");
    }

    #[test]
    fn names_become_readable_slugs() {
        check("acme-sdk", "acme-sdk");
        check(
            "Broken Authentication Testing",
            "broken-authentication-testing",
        );
        check("Invalid--Name", "invalid-name");
        check("  _docs_/v2.1 ", "docs-v2-1");
        check("What's new?", "whats-new");
        check("Überweisungen für Köln", "uberweisungen-fur-koln");
        check("Документация", "dokumentatsiia");
        check("文档", "wen-dang");
        check("C++ / C#", "c-c");
    }

    #[test]
    fn a_name_without_letters_and_digits_has_no_slug() {
        for name in ["", "---", "!?", " \t", "\u{200d}"] {
            assert_eq!(Slug::from_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn long_names_end_at_the_limit_without_a_hyphen() {
        check(&"a".repeat(100), &"a".repeat(64));
        check(&format!("{}-b", "a".repeat(63)), &"a".repeat(63));
    }

    #[test]
    fn numbers_fit_within_the_limit() {
        let slug = Slug::from_name(&format!("{}-bc", "a".repeat(61))).unwrap();
        let numbered = slug.numbered(2);
        assert_eq!(numbered.as_str(), format!("{}-2", "a".repeat(61)));
        assert!(Slug::parse(numbered.as_str()).is_ok());
    }

    #[test]
    fn slugs_that_clients_would_drop_are_rejected() {
        for text in ["", "A", "a_b", "-a", "a-", "a--b", "ü", &"a".repeat(65)] {
            assert!(Slug::parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_made_slug_is_valid_and_stable(name in "\\PC{0,90}") {
            if let Some(slug) = Slug::from_name(&name) {
                prop_assert_eq!(Slug::parse(slug.as_str()), Ok(slug.clone()));
                prop_assert_eq!(Slug::from_name(slug.as_str()), Some(slug.clone()));
                prop_assert!(Slug::parse(slug.numbered(1000).as_str()).is_ok());
            }
        }
    }
}

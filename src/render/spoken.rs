//! The languages that this program speaks.
//!
//! What nobody wrote, from the name of a callout to the words of the search, is said in the
//! language of the page, and in English where that language is not here. Each table of words
//! matches all of [`Spoken`], so a language comes to every table or to none.
//!
//! Sources: BCP 47 (RFC 5646) §2.1.

/// A language that this program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoken {
    /// `ar`
    Arabic,
    /// `de`
    German,
    /// `en`, and every language that is not here.
    English,
    /// `es`
    Spanish,
    /// `fr`
    French,
    /// `he`
    Hebrew,
}

// === impl Spoken ===

impl Spoken {
    /// Returns the language of a BCP 47 tag; a region speaks its language.
    pub(super) fn of(tag: &str) -> Self {
        match tag.split('-').next().unwrap_or_default() {
            "ar" => Self::Arabic,
            "de" => Self::German,
            "es" => Self::Spanish,
            "fr" => Self::French,
            "he" => Self::Hebrew,
            _ => Self::English,
        }
    }
}

//! Stemming by the language of a page.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pagefind_stem::Algorithm;

use super::folded;
use crate::site::language::primary;

/// The shortest word that is stemmed, in bytes.
const STEMMED_BYTES_MIN: usize = 3;

/// Converts words to terms by the rules of a language.
pub(in crate::search) struct Stemmer {
    stemmer: Option<pagefind_stem::Stemmer>,
}

// === impl Stemmer ===

impl std::fmt::Debug for Stemmer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stemmer").finish_non_exhaustive()
    }
}

impl Stemmer {
    /// Makes the stemmer of a language, given by its BCP 47 tag. A language without rules has
    /// none.
    pub(in crate::search) fn of(language: &str) -> Self {
        Self {
            stemmer: algorithm(language).map(pagefind_stem::Stemmer::create),
        }
    }

    /// Returns the term of a word in lower case.
    pub(in crate::search) fn term(&self, word: &str) -> String {
        let is_stemmed = word.len() >= STEMMED_BYTES_MIN && word.chars().all(char::is_alphabetic);
        let Some(stemmer) = self.stemmer.as_ref().filter(|_| is_stemmed) else {
            return folded(word);
        };
        if word.is_ascii() {
            return stemmer.stem(word).into_owned();
        }
        // The rules are generated code that counts bytes. If it panics at a word, the word stays
        // whole.
        let stem = catch_unwind(AssertUnwindSafe(|| stemmer.stem(word).into_owned()));
        folded(stem.as_deref().unwrap_or(word))
    }
}

fn algorithm(language: &str) -> Option<Algorithm> {
    Some(match primary(language) {
        "ar" => Algorithm::Arabic,
        "hy" => Algorithm::Armenian,
        "eu" => Algorithm::Basque,
        "ca" => Algorithm::Catalan,
        "da" => Algorithm::Danish,
        "nl" => Algorithm::Dutch,
        // Pages in these languages contain English names.
        "en" | "zh" | "ja" | "ko" | "cn" | "jp" | "th" => Algorithm::English,
        "et" => Algorithm::Estonian,
        "fi" => Algorithm::Finnish,
        "fr" => Algorithm::French,
        "de" => Algorithm::German,
        "el" => Algorithm::Greek,
        "hi" => Algorithm::Hindi,
        "hu" => Algorithm::Hungarian,
        "id" => Algorithm::Indonesian,
        "ga" => Algorithm::Irish,
        "it" => Algorithm::Italian,
        "lt" => Algorithm::Lithuanian,
        "ne" => Algorithm::Nepali,
        "no" | "nb" | "nn" => Algorithm::Norwegian,
        "pl" => Algorithm::Polish,
        "pt" => Algorithm::Portuguese,
        "ro" => Algorithm::Romanian,
        "ru" => Algorithm::Russian,
        "sr" => Algorithm::Serbian,
        "es" => Algorithm::Spanish,
        "sv" => Algorithm::Swedish,
        "ta" => Algorithm::Tamil,
        "tr" => Algorithm::Turkish,
        _ => return None,
    })
}

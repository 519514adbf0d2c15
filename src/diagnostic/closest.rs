//! Finds the known name that is most similar to a misspelled one ("did you mean").

/// The longest text that is compared, in bytes; the cost grows with the square of the length.
const LENGTH_MAX: usize = 200;

/// Returns the word that the author probably meant by `typed`.
///
/// At most a third of its letters are wrong, missing, added or swapped, or only letter case and
/// separators differ.
pub fn closest<'w>(typed: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if typed.len() > LENGTH_MAX {
        return None;
    }
    let plain = plain(typed);
    let allowed = (typed.chars().count() / 3).clamp(1, 3);
    words
        .into_iter()
        // A letter has at most four bytes, so no more letters than this can differ.
        .filter(|word| word.len().abs_diff(typed.len()) <= allowed * 4)
        .filter_map(|word| {
            // A letter is inserted, removed, replaced or swapped with the next.
            let distance = match strsim::osa_distance(typed, word) {
                far if far > 1 && self::plain(word) == plain => 1,
                distance => distance,
            };
            (distance <= allowed).then_some((distance, word))
        })
        .min()
        .map(|(_, word)| word)
}

/// Returns a word without separators and in lower case.
fn plain(word: &str) -> String {
    word.chars()
        .filter(|c| c.is_alphanumeric() || *c == '/')
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_recognised_and_another_word_is_not() {
        let words = ["domains", "domain", "owner", "origin"];
        assert_eq!(closest("domians", words), Some("domains"));
        assert_eq!(closest("origni", words), Some("origin"));
        assert_eq!(closest("domain", words), Some("domain"));
        assert_eq!(closest("repository", words), None);
        assert_eq!(closest("", words), None);
    }

    #[test]
    fn case_and_separators_are_ignored() {
        let pages = ["get-started/quickstart", "get-started/install"];
        assert_eq!(closest("Get_Started/Quick-Start", pages), Some(pages[0]));
        assert_eq!(closest("openApi", ["openapi", "open"]), Some("openapi"));
    }
}

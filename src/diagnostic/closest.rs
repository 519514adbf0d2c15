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
    let letters = letters(typed);
    words
        .into_iter()
        // A letter has at most four bytes, so no more letters than this can differ.
        .filter(|word| word.len().abs_diff(typed.len()) <= allowed * 4)
        // A letter that only one of them has needs a correction of its own. Nearly all words end
        // here, which is much cheaper than their distance.
        .filter(|word| {
            let (Some(one), Some(other)) = (letters, self::letters(word)) else {
                return true;
            };
            let only_one = (one & !other).count_ones().max((other & !one).count_ones());
            only_one as usize <= allowed
        })
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

/// Returns the set of the letters and digits of an ASCII word, in lower case; `None` for other
/// words.
fn letters(word: &str) -> Option<u64> {
    let bit = |byte: u8| match byte.to_ascii_lowercase() {
        letter @ b'a'..=b'z' => 1 << (letter - b'a'),
        digit @ b'0'..=b'9' => 1 << (26 + digit - b'0'),
        _ => 0,
    };
    let bits = || word.bytes().fold(0, |all, byte| all | bit(byte));
    word.is_ascii().then(bits)
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
    fn no_word_is_passed_over_that_is_close_enough() {
        let words = [
            "get-started",
            "get_started",
            "GetStarted",
            "gestarted",
            "getstarter",
            "guides/api",
            "guide/api",
            "api",
            "apis",
            "v1/api2",
            "überblick",
            "Überblick",
            "uberblick",
            "a-b-c",
        ];
        // The definition, without the shortcut.
        let slow = |typed: &str| {
            let allowed = (typed.chars().count() / 3).clamp(1, 3);
            let distance = |word: &&str| match strsim::osa_distance(typed, word) {
                far if far > 1 && plain(word) == plain(typed) => 1,
                distance => distance,
            };
            let near = words.iter().filter(|word| distance(word) <= allowed);
            near.map(|word| (distance(word), *word))
                .min()
                .map(|(_, word)| word)
        };
        for typed in words
            .iter()
            .chain(&["get", "GET-STARTED", "ap", "v2/api1", "ABC", "x"])
        {
            assert_eq!(closest(typed, words), slow(typed), "{typed}");
        }
    }

    #[test]
    fn case_and_separators_are_ignored() {
        let pages = ["get-started/quickstart", "get-started/install"];
        assert_eq!(closest("Get_Started/Quick-Start", pages), Some(pages[0]));
        assert_eq!(closest("openApi", ["openapi", "open"]), Some("openapi"));
    }
}

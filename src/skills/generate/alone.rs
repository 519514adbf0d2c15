//! Whether a sentence can be understood without the text around it.

use super::role::{has, normal};

/// How many words at the beginning of a sentence may point to the sentence before it.
const FIRST_WORDS: usize = 5;
/// The first words of a sentence that needs another sentence to be understood.
const PRONOUNS: [&str; 14] = [
    "it", "they", "this", "these", "those", "that", "both", "either", "here", "can", "its", "so",
    "such", "but",
];
/// Words before the name of a place or a value: `past that range`.
const BEFORE_NAMES: [&str; 11] = [
    "above", "at", "below", "beyond", "for", "from", "in", "on", "outside", "over", "past",
];
/// Words after "that" that begin a clause: `in that it`, `on that you`.
const CLAUSES: [&str; 14] = [
    "a", "an", "and", "are", "can", "has", "have", "is", "it", "of", "the", "they", "we", "you",
];

/// Returns whether a sentence needs another sentence to be understood.
pub(super) fn is_open(sentence: &str) -> bool {
    let words = normal(sentence);
    PRONOUNS
        .iter()
        .any(|word| words.starts_with(&format!(" {word} ")))
}

/// Returns whether a sentence only names another page.
pub(super) fn is_reference(sentence: &str) -> bool {
    let words = normal(sentence);
    let starts = [
        " see ",
        " please see ",
        " for more ",
        " please refer ",
        " refer ",
        " read ",
    ];
    starts.iter().any(|start| words.starts_with(start))
}

/// Returns whether a sentence refers to another place on its page.
pub(super) fn refers_outside(sentence: &str) -> bool {
    has(
        &normal(sentence),
        &["below", "above", "the following", "as follows"],
    )
}

/// Returns whether a sentence has no meaning without the one before it: "To avoid this behavior,
/// …", "You can close it.".
pub(super) fn refers_back(sentence: &str) -> bool {
    const BACK: [&str; 12] = [
        "this behavior",
        "this behaviour",
        "this case",
        "this step",
        "this problem",
        "this issue",
        "this value",
        "this setting",
        "this option",
        "this section",
        "this change",
        "this error",
    ];
    let words = normal(sentence);
    if words.starts_with(" with it ") {
        return true;
    }
    // "If it stays at the default …", "Use this panel when …".
    let first: Vec<&str> = words.split_whitespace().take(FIRST_WORDS).collect();
    let points = |at: usize, word: &str| {
        let next = first.get(at + 1).copied().unwrap_or_default();
        match word {
            "it" => {
                at == 1
                    && matches!(
                        first[0],
                        "if" | "when"
                            | "once"
                            | "while"
                            | "because"
                            | "since"
                            | "although"
                            | "though"
                            | "unless"
                    )
            }
            "this" | "these" | "those" => at > 0 && !matches!(next, "is" | "are" | "means" | ""),
            _ => false,
        }
    };
    if (0..).zip(&first).any(|(at, word)| points(at, word)) {
        return true;
    }
    // "Requesting one where it is disabled …"
    if let [verb, "one" | "them", ..] = first[..]
        && verb.ends_with("ing")
    {
        return true;
    }
    if names_unsaid(&words) {
        return true;
    }
    let early = words
        .split_whitespace()
        .take(8)
        .collect::<Vec<_>>()
        .join(" ");
    let early = format!(" {early} ");
    let object =
        |verb: &str| words.starts_with(verb) && words.split_whitespace().nth(3) == Some("it");
    has(&early, &BACK) || object(" you can ") || object(" you must ") || object(" you should ")
}

/// Returns whether normal words name something by "that" which they have not said before: `return an
/// error past that range`.
fn names_unsaid(words: &str) -> bool {
    let all: Vec<&str> = words.split_whitespace().collect();
    (0..).zip(all.windows(3)).any(|(at, three): (usize, _)| {
        let stem = |word: &str| word.trim_end_matches('s').to_lowercase();
        let name = stem(three[2]);
        three[1] == "that"
            && BEFORE_NAMES.contains(&three[0])
            && !CLAUSES.contains(&three[2])
            && !all[..at].iter().any(|word| stem(word) == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_point_to_others_are_told_from_whole_ones() {
        for sentence in [
            "Although it is not suited for this purpose, people use it for bars.",
            "Requesting one where it is not enabled returns an error.",
            "Some chains also enforce a limit, and return an error past that range.",
            "You can close it.",
            "Use this panel when a job fails.",
        ] {
            assert!(refers_back(sentence), "{sentence}");
        }
        for sentence in [
            "Deleting a space deletes all of the content in that space.",
            "Keys differ from passwords in that they expire.",
            "Use one key for each project.",
        ] {
            assert!(!refers_back(sentence), "{sentence}");
        }
        assert!(is_open("It is deleted.") && !is_open("Boxes are deleted."));
    }
}

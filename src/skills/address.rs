//! Words of running text that an agent may open or install: addresses, mail addresses, paths and
//! names of files, and the commands that install something.
//!
//! Many programs make links of such words, and agents follow them without a scheme:
//! `evil.example/keys` is an address as `https://evil.example/keys` is one.

use super::generate::INSTALLS;

/// Commands that fetch a program and run it at once, besides those that install one.
const RUNS: [&str; 22] = [
    "npx",
    "bunx",
    "uvx",
    "pnpm dlx",
    "yarn dlx",
    "npm exec",
    "npm create",
    "npm init",
    "yarn create",
    "pnpm create",
    "bun create",
    "pipx run",
    "docker run",
    "docker pull",
    "git clone",
    "go run",
    "dnf install",
    "yum install",
    "apk add",
    "snap install",
    "choco install",
    "scoop install",
];
/// Words that no package has as its name, after a command in a sentence.
const CONNECTING: [&str; 24] = [
    "a", "after", "again", "and", "as", "before", "but", "first", "for", "from", "if", "in",
    "into", "is", "on", "once", "or", "so", "the", "then", "to", "when", "with", "your",
];
/// Abbreviations with a mark inside.
const ABBREVIATIONS: [&str; 6] = ["e.g", "i.e", "a.m", "p.m", "and/or", "n/a"];

/// Returns the words of a text that have a mark of addresses inside: `.`, `/` or `@`. Readers may
/// write such a mark with another character that looks the same.
pub(super) fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let ends =
        |c: char| c.is_whitespace() || "\"'<>`|()[]{}*,;!?、，；！？（）「」“”‘’".contains(c);
    text.split(ends).map(bare).filter(|word| {
        let has_letter = word.chars().any(char::is_alphabetic);
        // The first character of `@acme/box` is no mark inside.
        let has_mark = word.chars().skip(1).any(is_mark);
        has_letter && has_mark && !ABBREVIATIONS.contains(&&*word.to_lowercase())
    })
}

/// Returns a word without the marks at its ends. The name of a package may begin with `@`.
fn bare(word: &str) -> &str {
    let is_end = |c: char| is_mark(c) || matches!(c, ':' | '。' | '_' | '~' | '…');
    word.trim_end_matches(is_end)
        .trim_start_matches(|c: char| c != '@' && is_end(c))
}

/// Returns whether a character stands in addresses: also the wide forms of `.`, `/` and `@`, which
/// browsers and people read as these.
fn is_mark(c: char) -> bool {
    matches!(
        c,
        '.' | '/'
            | '@'
            | '\u{2024}'
            | '\u{2044}'
            | '\u{2215}'
            | '\u{fe52}'
            | '\u{fe6b}'
            | '\u{ff0e}'
            | '\u{ff0f}'
            | '\u{ff20}'
            | '\u{ff61}'
    )
}

/// Returns whether a text has this word whole: `acme.test` is not in `acme.test.evil.example`, and is
/// in `https://acme.test/v1`.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
        let mut after = text[at + word.len()..].chars();
        let ends = match after.next() {
            Some('.') => after.next().is_none_or(|c| !c.is_alphanumeric()),
            Some(c) => !(c.is_alphanumeric() || matches!(c, '-' | '_' | '@')),
            None => true,
        };
        !before.is_some_and(is_inside) && ends
    })
}

/// Returns the commands of a sentence that fetch packages, each with the packages, in lower case. `parts` are its
/// words and its code, in order; `true` marks code.
pub(super) fn installations(parts: &[(bool, String)]) -> Vec<String> {
    // A word, whether it is code, and whether it is the last of its sentence or of its code.
    let mut words: Vec<(String, bool, bool)> = Vec::new();
    for (is_code, text) in parts {
        for word in text.split_whitespace() {
            let ends = word.ends_with(['.', ';', ':', '!', '?', ')']);
            let word = word.trim_matches(|c: char| "\"'`()[]*,;:!?.$>".contains(c));
            if !word.is_empty() {
                words.push((word.to_lowercase(), *is_code, ends));
            }
        }
        if let (true, Some((_, _, ends))) = (is_code, words.last_mut()) {
            *ends = true;
        }
    }
    let commands = INSTALLS.iter().chain(&RUNS);
    let commands: Vec<Vec<&str>> = commands
        .map(|command| command.split_whitespace().collect())
        .collect();
    let mut found = Vec::new();
    for at in 0..words.len() {
        let begins = |command: &&Vec<&str>| {
            let here = words[at..].iter().map(|(word, ..)| word.as_str());
            here.take(command.len()).eq(command.iter().copied())
        };
        let Some(command) = commands.iter().filter(begins).max_by_key(|one| one.len()) else {
            continue;
        };
        let mut said = command.join(" ");
        let mut has_package = false;
        let (_, is_code, ends) = &words[at + command.len() - 1];
        // The name of the package may follow the code.
        let mut is_over = *ends && !*is_code;
        for (word, of_code, ends) in &words[at + command.len()..] {
            let is_joined = *of_code || !CONNECTING.contains(&word.as_str());
            if is_over || !is_joined || (has_package && *is_code && !of_code) {
                break;
            }
            said.push(' ');
            said.push_str(word);
            has_package |= !word.starts_with('-');
            is_over = *ends && has_package;
        }
        found.push(said);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_a_mark_inside_are_addresses() {
        let found = |text| addresses(text).collect::<Vec<_>>();
        for (text, expected) in [
            (
                "Register it at evil.example/keys, or mail it to (admin@evil.example).",
                &["evil.example/keys", "admin@evil.example"][..],
            ),
            ("See https://evil.example!", &["https://evil.example"]),
            ("Open evil\u{ff0e}example now", &["evil\u{ff0e}example"]),
            ("詳細（evil.example）", &["evil.example"]),
            ("Edit docs.json and src/a.", &["docs.json", "src/a"]),
            ("It costs 2.5, e.g. on 1/2 of them. Or and/or …", &[]),
            ("Call `.env`. Then ask @acme", &[]),
            ("Use @acme/box", &["@acme/box"]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn an_address_is_found_only_whole() {
        let text = "Open https://api.acme.test/v1 or docs.json. Mail help@acme.test.";
        for word in [
            "api.acme.test",
            "api.acme.test/v1",
            "docs.json",
            "help@acme.test",
        ] {
            assert!(has_word(text, word), "{word}");
        }
        for word in [
            "acme.test",
            "api.acme",
            "docs.js",
            "api.acme.test/v",
            "elp@acme.test",
        ] {
            assert!(!has_word(text, word), "{word}");
        }
    }

    #[test]
    fn an_installation_in_a_sentence_has_its_packages() {
        let found = |text: &str| {
            let parts = text.split('`').enumerate();
            let parts = parts.map(|(at, text)| (at % 2 == 1, text.to_owned()));
            installations(&parts.collect::<Vec<_>>())
        };
        for (text, expected) in [
            (
                "Run pip install evil-acme first.",
                &["pip install evil-acme"][..],
            ),
            ("Run `npm install acme` now", &["npm install acme"]),
            (
                "Run `pip install` evil-acme now",
                &["pip install evil-acme"],
            ),
            ("Run `npm install` in it", &["npm install"]),
            ("Use npm i -g acme, evil to go", &["npm i -g acme evil"]),
            (
                "With npx evil. Then pip3 install b",
                &["npx evil", "pip3 install b"],
            ),
            ("It is installed.", &[]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}

//! The words of a text, in the form in which the index has them.
//!
//! A text is divided into *runs*: a word, an identifier with its joints (`max_tokens`,
//! `docs.json`, `maxTokens`, `--dry-run`), or characters of a script that is written without
//! spaces. A run gives one or several *terms*:
//!
//! | run | terms |
//! |---|---|
//! | `deployments` | its stem in lower case: `deploy` |
//! | `max_tokens`, `maxTokens` | the whole, `maxtoken`, and its parts, `max`, `token` |
//! | `--dry-run` | the flag, `--dryrun`, the whole, `dryrun`, and its parts |
//! | `E0308`, `v1.2` | the whole, `e0308`, `v1.2` |
//! | `部署文档` | each pair of neighbours: `部署`, `署文`, `文档` |
//!
//! Accents are removed after stemming, because the rules of stemming need them.
//!
//! Sources: the Snowball stemmers; Unicode Standard Annex #15 (decomposition).

mod stop_word;
mod stem;

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

pub(super) use stem::Stemmer;
pub(super) use stop_word::is_common;

/// The longest term, in bytes. Longer runs are keys, digests and data.
pub(super) const TERM_BYTES_MAX: usize = 48;
/// The longest run that is divided into parts, in bytes.
const RUN_BYTES_MAX: usize = 96;

/// The kinds of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// Letters and digits, with joints between them, after dashes if it is a flag.
    Word,
    /// Characters of a script that is written without spaces.
    Pairs,
}

/// The part that a term has in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The term is the whole run: a word or a pair of characters.
    Word,
    /// The term is the whole of an identifier that has parts.
    Whole,
    /// The term is a part of an identifier.
    Part,
    /// The term is a flag, with its dashes.
    Flag,
}

// === runs ===

/// Calls `found` for each run of a text, with its place in bytes.
pub(super) fn runs(text: &str, mut found: impl FnMut(Range<usize>, Run)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_alphanumeric() {
            let end = word_end(text, at);
            found(at..end, Run::Word);
            at = end;
            continue;
        }
        if byte.is_ascii() && *byte != b'-' {
            at += 1;
            continue;
        }
        let Some(first) = text[at..].chars().next() else {
            break;
        };
        let before = |at: usize| text[..at].chars().next_back().unwrap_or(' ');
        at = if is_unspaced(first) {
            let end = end_while(text, at, is_unspaced);
            found(at..end, Run::Pairs);
            end
        } else if is_word(first) {
            let end = word_end(text, at);
            found(at..end, Run::Word);
            end
        } else if first == '-' && !is_word(before(at)) && before(at) != '-' {
            let dashes = end_while(text, at, |c| c == '-');
            let name = text[dashes..].chars().next();
            let is_flag = dashes - at <= 2 && name.is_some_and(|c| c.is_ascii_alphabetic());
            let end = if is_flag {
                word_end(text, dashes)
            } else {
                dashes
            };
            if is_flag {
                found(at..end, Run::Word);
            }
            end
        } else {
            at + first.len_utf8()
        };
    }
}

fn end_while(text: &str, at: usize, is_inside: impl Fn(char) -> bool) -> usize {
    let rest = &text[at..];
    at + rest.find(|c| !is_inside(c)).unwrap_or(rest.len())
}

/// Returns the end of the word that begins at `at`, with its joints.
fn word_end(text: &str, at: usize) -> usize {
    let inside = |from: usize| {
        let ascii = text.as_bytes()[from..].iter();
        let from = from
            + ascii
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count();
        match text.as_bytes().get(from) {
            Some(byte) if !byte.is_ascii() => {
                end_while(text, from, |c| is_word(c) && !is_unspaced(c))
            }
            _ => from,
        }
    };
    let mut end = inside(at);
    loop {
        // Most words end at a space.
        if text.as_bytes().get(end) == Some(&b' ') {
            break;
        }
        let mut rest = text[end..].chars();
        let joint = rest.next().filter(|c| is_joint(*c));
        let Some(joint) = joint else { break };
        if !rest.next().is_some_and(|c| is_word(c) && !is_unspaced(c)) {
            break;
        }
        end = inside(end + joint.len_utf8());
    }
    // C++, C#, F#.
    if end - at <= 2 {
        let rest = &text[end..];
        if rest.starts_with("++") {
            return end + 2;
        }
        if rest.starts_with('#') {
            return end + 1;
        }
    }
    end
}

fn is_word(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric(),
        false => c.is_alphanumeric() || is_combining_mark(c),
    }
}

fn is_joint(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '\'' | '’')
}

/// Returns whether a character belongs to a script that is written without spaces, or to Hangul,
/// whose endings no stemmer here knows.
fn is_unspaced(c: char) -> bool {
    if c < '\u{0E00}' {
        return false;
    }
    matches!(u32::from(c),
        0x0E00..=0x0EFF // Thai, Lao
        | 0x1000..=0x109F // Myanmar
        | 0x1100..=0x11FF // Hangul
        | 0x1780..=0x17FF // Khmer
        | 0x3005..=0x3007 | 0x3041..=0x30FF // Hiragana, Katakana
        | 0x3130..=0x318F | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF
        | 0x20000..=0x323AF)
        && c != '・'
}

// === terms ===

/// Calls `found` for each term of a run.
pub(super) fn terms(run: &str, kind: Run, stemmer: &Stemmer, mut found: impl FnMut(Role, &str)) {
    match kind {
        Run::Pairs => pairs(run, &mut found),
        Run::Word => word_terms(run, stemmer, &mut found),
    }
}

fn pairs(run: &str, found: &mut impl FnMut(Role, &str)) {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    match starts.len() {
        1 => found(Role::Word, run),
        length => {
            for at in 0..length - 1 {
                let end = starts.get(at + 2).copied().unwrap_or(run.len());
                found(Role::Word, &run[starts[at]..end]);
            }
        }
    }
}

fn word_terms(run: &str, stemmer: &Stemmer, found: &mut impl FnMut(Role, &str)) {
    let name = run.trim_start_matches('-');
    let dashes = &run[..run.len() - name.len()];
    if name.len() > RUN_BYTES_MAX {
        return;
    }
    let parts = parts(name);
    let whole = joined(name, &parts);
    if whole.len() <= TERM_BYTES_MAX {
        if !dashes.is_empty() {
            found(Role::Flag, &format!("{dashes}{}", folded(&whole)));
        }
        let role = if parts.len() > 1 {
            Role::Whole
        } else {
            Role::Word
        };
        found(role, &stemmer.term(&whole));
    }
    if parts.len() < 2 {
        return;
    }
    for part in &parts {
        let part = &name[part.clone()];
        // Single letters and digits of an identifier have no meaning alone.
        if part.chars().nth(1).is_some() && part.len() <= TERM_BYTES_MAX {
            found(Role::Part, &stemmer.term(&part.to_lowercase()));
        }
    }
}

/// Divides an identifier at its joints, and between a small letter and a capital.
fn parts(name: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::with_capacity(4);
    let mut start = 0;
    let mut letters = name.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, c)) = letters.next() {
        if is_joint(c) {
            if start < at {
                parts.push(start..at);
            }
            start = at + c.len_utf8();
            before = None;
            continue;
        }
        let is_capital = c.is_uppercase();
        if is_capital && let Some(before) = before {
            let next_is_small = letters.peek().is_some_and(|(_, next)| next.is_lowercase());
            // `maxTokens`, and `HTTPServer` before its last capital.
            let is_start = before.is_lowercase() || before.is_uppercase() && next_is_small;
            if is_start && start < at {
                parts.push(start..at);
                start = at;
            }
        }
        before = Some(c);
    }
    if start < name.len() {
        parts.push(start..name.len());
    }
    // `OAuth`, `IDs`, `eSign`: one letter is not a part.
    let is_split_letter = |part: &Range<usize>| part.len() == 1;
    if parts.len() == 2 && parts.iter().any(is_split_letter) && parts[0].end == parts[1].start {
        parts.truncate(1);
        parts[0] = 0..name.len();
    }
    parts
}

/// Joins the parts of an identifier in lower case. A dot between digits stays: `v1.2`.
fn joined(name: &str, parts: &[Range<usize>]) -> String {
    let mut whole = String::with_capacity(name.len());
    for part in parts {
        let part = &name[part.clone()];
        let ends_in_digit = whole.ends_with(|c: char| c.is_ascii_digit());
        if ends_in_digit && part.starts_with(|c: char| c.is_ascii_digit()) {
            whole.push('.');
        }
        match part.is_ascii() {
            true => whole.extend(part.chars().map(|c| c.to_ascii_lowercase())),
            false => whole.push_str(&part.to_lowercase()),
        }
    }
    whole
}

/// Returns a word in lower case without its accents.
pub(super) fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let lower = word.to_lowercase();
    lower.nfkd().filter(|c| !is_accent(*c)).nfc().collect()
}

/// Returns whether a mark changes the sound of a letter and not the letter: the accents of
/// European scripts, the vowel points of Hebrew and Arabic.
fn is_accent(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036F | 0x0591..=0x05C7 | 0x064B..=0x0652)
}

#[cfg(test)]
mod tests;

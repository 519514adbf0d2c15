//! Decides which texts of clients may be kept: searched texts, and names of MCP clients.
//!
//! A text that could name a person or contain a secret is not kept. The rules are coarse on
//! purpose: a lost search is better than a kept address.

use std::net::IpAddr;

/// The longest text of a search that is kept, in bytes. A longer one is cut.
const TEXT_BYTES_MAX: usize = 80;
/// The longest name of a client that is kept, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 64;
/// A text with so many digits may be a number of a telephone, an account or a card.
const DIGITS_MAX: usize = 6;
/// A word of letters and digits that is as long as this may be a key.
const KEY_BYTES_MIN: usize = 20;
/// A word that is longer than this may be a key, whatever it consists of.
const WORD_BYTES_MAX: usize = 40;
/// How keys of well-known services begin, in lower case.
const KEY_STARTS: [&str; 12] = [
    "aiza",
    "akia",
    "asia",
    "bearer:",
    "eyj",
    "ghp_",
    "github_pat_",
    "glpat-",
    "pk_",
    "sk-",
    "sk_",
    "xox",
];

/// Returns the form in which a searched text is kept: lower case, single spaces, cut to
/// [`TEXT_BYTES_MAX`]. `None` if it must not be kept.
pub(super) fn searched(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    if words.is_empty() || lower.chars().any(is_odd) || is_private(&lower) {
        return None;
    }
    let mut text = words.join(" ");
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    Some(text.trim_end().to_owned())
}

/// Returns whether the name of a client is kept as it is.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._-/()".contains(c);
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.trim() == name
        && name.chars().all(is_plain)
        && !is_private(&name.to_ascii_lowercase())
}

fn is_odd(c: char) -> bool {
    // Controls, and characters that change the direction of a text on a terminal.
    (c.is_control() && !c.is_whitespace())
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a text in lower case looks like an address, a number of a person or a secret.
fn is_private(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    digits > DIGITS_MAX || text.split_whitespace().any(is_private_word)
}

fn is_private_word(word: &str) -> bool {
    let plain = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
    let is_mixed = has(char::is_ascii_digit) && has(char::is_ascii_alphabetic);
    word.contains('@')
        || word.contains("://")
        || word.parse::<IpAddr>().is_ok()
        || plain.parse::<IpAddr>().is_ok()
        || word.len() > WORD_BYTES_MAX
        || (is_mixed && word.len() >= KEY_BYTES_MIN)
        || KEY_STARTS.iter().any(|start| {
            let rest = plain.strip_prefix(start);
            rest.is_some_and(|rest| rest.len() >= 4)
        }) && is_mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_kept_in_one_form_and_cut() {
        assert_eq!(
            searched("  Rate   LIMITS\n").as_deref(),
            Some("rate limits")
        );
        assert_eq!(searched("größe").as_deref(), Some("größe"));
        assert_eq!(searched("http2 v1.2.3").as_deref(), Some("http2 v1.2.3"));
        let long = searched(&"größe ".repeat(40)).unwrap();
        assert!(long.len() <= TEXT_BYTES_MAX && long.starts_with("größe größe"));
        assert_eq!(searched(" \t"), None);
        assert_eq!(searched("a\u{1b}[2Jb"), None);
    }

    #[test]
    fn what_may_be_an_address_or_a_secret_is_not_kept() {
        for text in [
            "mail to jane.doe@example.com",
            "+49 171 234 5678",
            "192.0.2.7",
            "(2001:db8::1)",
            "https://example.com/reset?token=x",
            "4111 1111 1111 1111",
            "sk-proj4abc9",
            "ghp_a1b2c3d4",
            "my key is 9f86d081884c7d659a2feaa0",
            &"k".repeat(41),
        ] {
            assert_eq!(searched(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_of_a_client_is_short_and_plain() {
        for name in ["claude-ai", "Visual Studio Code", "mcp-remote/0.1 (cursor)"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "",
            " padded",
            "jane@example.com",
            "a\nb",
            "10.1.2.3",
            "größe",
            &"n".repeat(65),
            "agent-9f86d081884c7d659a2feaa0",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }
}

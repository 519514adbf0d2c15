//! Finds texts that look like secrets.
//!
//! Documentation often shows keys as examples. So a word is reported only if it has the prefix
//! and the length of the keys of a well-known service and looks random: it has digits and
//! letters, and enough different characters.
//!
//! Sources: the prefixes that the services publish for secret scanning.

/// The prefix of the keys of well-known services, the least length of the rest, and the kind.
const PREFIXES: [(&str, usize, &str); 20] = [
    ("AKIA", 16, "an AWS access key"),
    ("ASIA", 16, "an AWS access key"),
    ("AIza", 35, "a Google API key"),
    ("ghp_", 36, "a GitHub token"),
    ("gho_", 36, "a GitHub token"),
    ("ghu_", 36, "a GitHub token"),
    ("ghs_", 36, "a GitHub token"),
    ("github_pat_", 22, "a GitHub token"),
    ("glpat-", 20, "a GitLab token"),
    ("npm_", 36, "an npm token"),
    ("pypi-", 60, "a PyPI token"),
    ("xoxb-", 20, "a Slack token"),
    ("xoxp-", 20, "a Slack token"),
    ("sk_live_", 16, "an API key"),
    ("rk_live_", 16, "an API key"),
    ("sk-ant-", 24, "an API key"),
    ("sk-proj-", 24, "an API key"),
    ("SG.", 40, "an API key"),
    ("hf_", 30, "an API key"),
    ("dop_v1_", 40, "an API key"),
];
/// The least number of different characters in a random word of this length.
const DIFFERENT_MIN: usize = 8;
/// The number of hexadecimal digits of 32 random bytes: Waypost's admin keys have as many.
const HEXADECIMAL_MIN: usize = 64;

/// Finds the first line that contains a possible secret; returns its kind and the line number.
pub(super) fn find(text: &str) -> Option<(&'static str, usize)> {
    text.lines()
        .zip(1..)
        .find_map(|(line, number)| Some((find_in_line(line)?, number)))
}

fn find_in_line(line: &str) -> Option<&'static str> {
    // The form of RFC 7468 §2, which OpenSSH also uses.
    if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
        return Some("a private key");
    }
    if has_password(line) {
        return Some("a password in a URL");
    }
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    line.split(|c| !inside(c)).find_map(secret_in_word)
}

fn secret_in_word(word: &str) -> Option<&'static str> {
    let known = PREFIXES.iter().find(|(prefix, length_min, _)| {
        let rest = word.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.len() >= *length_min && looks_random(rest))
    });
    if let Some((_, _, kind)) = known {
        return Some(kind);
    }
    // RFC 7519 §3: two JSON objects in base64url and a signature.
    if word.starts_with("eyJ") && word.contains(".eyJ") && word.matches('.').count() == 2 {
        return Some("a JSON Web Token");
    }
    let (_, digits) = word.rsplit_once('_')?;
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hexadecimal && digits.len() >= HEXADECIMAL_MIN && looks_random(digits))
        .then_some("an admin key")
}

fn looks_random(word: &str) -> bool {
    let mut seen = [false; 128];
    for byte in word.bytes().filter(u8::is_ascii) {
        seen[usize::from(byte)] = true;
    }
    let different = seen.iter().filter(|seen| **seen).count();
    word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
        && different >= DIFFERENT_MIN
        && !word.contains("EXAMPLE")
}

/// Returns whether a line has a URL with `user:password@` before the host (RFC 3986 §3.2.1).
fn has_password(line: &str) -> bool {
    line.match_indices("://").any(|(at, found)| {
        let rest = &line[at + found.len()..];
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '`' | '"' | ')');
        let authority = rest.split(ends).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _host)| user);
        let password = user.and_then(|user| user.split_once(':'));
        // `https://USER:PASSWORD@host` and `{user}:{password}` are placeholders: they have no
        // digit.
        password.is_some_and(|(_, password)| password.bytes().any(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_placeholders_are_not() {
        for (line, kind) in [
            ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "a GitHub token"),
            ("key=AKIA2E0A8F3B244C9986,", "an AWS access key"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
            ("https://bot:hunter2@git.test/x", "a password in a URL"),
            ("Bearer eyJhbGciOi.eyJzdWIi.c2ln", "a JSON Web Token"),
            (
                "waypost_0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
                "an admin key",
            ),
        ] {
            assert_eq!(find(&format!("\n{line}")), Some((kind, 2)), "{line}");
        }
        for line in [
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "AKIAIOSFODNN7EXAMPLE",
            "sk_live_...",
            "npm_config_registry",
            "https://USER:PASSWORD@git.test/x",
            "https://docs.acme.test:8080/a@b",
            "Authorization: Bearer <token>",
            "-----BEGIN CERTIFICATE-----",
        ] {
            assert_eq!(find(line), None, "{line}");
        }
    }

    #[test]
    fn a_word_looks_random_from_eight_different_characters_on() {
        assert!(looks_random("1234567a"));
        for word in ["123456aa", "12345678", "abcdefgh", "1234567aEXAMPLE"] {
            assert!(!looks_random(word), "{word}");
        }
    }

    #[test]
    fn a_secret_has_the_length_and_the_form_of_its_kind() {
        let digits = "0f1e2d3c4b5a6978".repeat(4);
        for word in [
            "AKIA2E0A8F3B244C9986",
            "eyJhbGci.eyJzdWIi.c2ln",
            &format!("x_{digits}"),
        ] {
            assert!(secret_in_word(word).is_some(), "{word}");
        }
        for word in [
            "AKIA2E0A8F3B244C998",
            "eyJhbGci.eyJzdWIi",
            "eyJhbGci.eyJzdWIi.c2ln.c2ln",
            "eyJhbGci.c2ln.c2ln",
            "c2ln.eyJhbGci.eyJzdWIi",
            &digits,
            &format!("x_{}", &digits[1..]),
            &format!("x_g{digits}"),
            &format!("x_{}", "0".repeat(64)),
        ] {
            assert_eq!(secret_in_word(word), None, "{word}");
        }
        for line in [
            "BEGIN OPENSSH PRIVATE KEY",
            "https://bot:hunter@git.test/x",
            "https://git.test/bot:hunter2@x",
            "bot:hunter2@git.test",
        ] {
            assert_eq!(find(line), None, "{line}");
        }
    }
}

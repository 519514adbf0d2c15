//! Makes anchors from words.

/// Characters that separate words and become a hyphen in an anchor.
const BETWEEN: &str = ".!~*()_-";
/// Characters that are removed from an anchor.
const LEFT_OUT: &str = "?,;:!'\"()[]{}";

/// Makes an anchor from words.
///
/// White space, `.`, `_`, `-` and a few others between words become one hyphen. Brackets,
/// quotes, question marks, commas, colons and emoji are removed. All other characters stay.
///
/// ```
/// use waypost::mdx::anchor::slug;
///
/// assert_eq!(slug("config.json options"), "config-json-options");
/// assert_eq!(slug("Fees & billing"), "fees-&-billing");
/// assert_eq!(slug("What's new in 1.1.1?"), "whats-new-in-1-1-1");
/// ```
#[must_use]
pub fn slug(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let mut words = String::with_capacity(lower.len());
    let mut chars = lower.chars().peekable();
    while let Some(c) = chars.next() {
        let is_between = match c {
            // In `don't` and `what's` the apostrophe is removed; elsewhere it ends a word.
            '\'' => {
                let joins = words.ends_with(|c: char| c.is_ascii_alphanumeric())
                    && matches!(chars.peek(), Some('s' | 't'))
                    && !chars
                        .clone()
                        .nth(1)
                        .is_some_and(|c| c.is_ascii_alphanumeric());
                if joins {
                    continue;
                }
                true
            }
            c => c.is_whitespace() || BETWEEN.contains(c),
        };
        match is_between {
            true if words.ends_with('-') => {}
            true => words.push('-'),
            false => words.push(c),
        }
    }
    let kept = |c: &char| !LEFT_OUT.contains(*c) && !is_emoji(*c);
    words.trim_matches('-').chars().filter(kept).collect()
}

/// Returns whether a character is an emoji or joins several emoji into one.
///
/// Source: Unicode 16, `emoji-data.txt`, by blocks.
fn is_emoji(c: char) -> bool {
    matches!(
        u32::from(c),
        0xa9 | 0xae | 0x200d | 0xfe0e..=0xfe0f | 0x203c | 0x2049 | 0x2122 | 0x2139
            | 0x2194..=0x2199 | 0x21a9..=0x21aa | 0x231a..=0x231b | 0x2328 | 0x23cf
            | 0x23e9..=0x23f3 | 0x23f8..=0x23fa | 0x24c2 | 0x25aa..=0x25ab | 0x25b6 | 0x25c0
            | 0x25fb..=0x25fe | 0x2600..=0x27bf | 0x2934..=0x2935 | 0x2b05..=0x2b07
            | 0x2b1b..=0x2b1c | 0x2b50 | 0x2b55 | 0x3030 | 0x303d | 0x3297 | 0x3299
            | 0x1f000..=0x1faff
    ) && !is_dingbat(c)
}

/// Returns whether a character in an emoji block is not an emoji.
fn is_dingbat(c: char) -> bool {
    matches!(
        u32::from(c),
        0x2605..=0x2606 | 0x2701 | 0x2718 | 0x2776..=0x2794 | 0x2798..=0x27a0 | 0x27a2..=0x27af
    )
}

/// Makes an anchor from words as GitHub does.
#[must_use]
pub fn github(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars().flat_map(char::to_lowercase) {
        match c {
            ' ' | '\n' | '-' => out.push('-'),
            c if c.is_alphanumeric() || c == '_' => out.push(c),
            _ => {}
        }
    }
    out
}

/// Makes a part of an anchor from the name of a field: `userId` and `user_id` give `user-id`.
pub(super) fn of_name(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (n, c) in chars.iter().enumerate() {
        let before = n.checked_sub(1).map(|n| chars[n]);
        let after = chars.get(n + 1);
        let starts_word = c.is_uppercase()
            && match before {
                Some(before) if before.is_lowercase() || before.is_ascii_digit() => true,
                Some(before) => {
                    before.is_uppercase() && after.is_some_and(|c| c.is_lowercase() && *c != 's')
                }
                None => false,
            };
        if (starts_word || !c.is_alphanumeric()) && !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        }
    }
    out.trim_end_matches('-').to_owned()
}

/// Makes an anchor of ASCII letters and digits from words: `&` becomes `and`.
pub(super) fn in_letters(text: &str) -> String {
    let spelled = deunicode::deunicode(&text.replace('&', " and "));
    let mut out = String::with_capacity(spelled.len());
    for c in spelled.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if c != '\'' && !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

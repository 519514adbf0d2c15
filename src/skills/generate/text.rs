//! Plain text from MDX: one line, without markup that is useless to an agent.

use crate::mdx::Node;
use crate::mdx::drawing::is_part;
use crate::skills::unsafe_text::{is_unseen, says_instruction};

use super::role::{has, normal};

/// The longest line taken from a page, in characters.
const CHARACTERS_MAX: usize = 200;

/// The most words of a text that only names a version: `New in version 2.1.4`.
const VERSION_WORDS_MAX: usize = 7;

/// Makes one plain line of inline Markdown or MDX.
///
/// Tags, expressions and link targets are dropped, white space becomes single spaces, and `---`
/// becomes a dash, because it could end the frontmatter.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '<', '{', '[', '!', ']', '*']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let skipped = match rest.as_bytes() {
            [b'<', next, ..]
                if next.is_ascii_alphabetic() || matches!(next, b'/' | b'>' | b'!') =>
            {
                rest.find('>').map(|end| end + 1)
            }
            // Code is copied unchanged.
            [b'`', ..] => {
                let end = rest[1..].find('`').map_or(1, |end| end + 2);
                out.push_str(&rest[..end]);
                Some(end)
            }
            [b'{', ..] => rest.find('}').map(|end| end + 1),
            // An agent that reads text cannot see an image.
            [b'!', b'[', ..] => rest.find(')').map(|end| end + 1),
            [b']', b'(', ..] => rest.find(')').map(|end| end + 1),
            [b'[' | b']' | b'*', ..] => Some(1),
            _ => None,
        };
        match skipped {
            Some(end) => rest = &rest[end..],
            None => {
                let mut letters = rest.chars();
                out.extend(letters.next());
                rest = letters.as_str();
            }
        }
    }
    out.push_str(rest);
    one_line(&out)
}

/// Makes one plain line of nodes: code stays in backticks, images and the code of fences are
/// left out.
pub(super) fn words(nodes: &[Node]) -> String {
    let mut out = String::new();
    titled(nodes, &mut out);
    one_line(&out)
}

fn gather(nodes: &[Node], out: &mut String) {
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Code(code) => {
                out.push('`');
                out.push_str(code);
                out.push('`');
            }
            Node::Formula { tex, .. } => out.push_str(tex),
            Node::Image { .. } | Node::Fence { .. } => {}
            Node::Element(element) if is_silent(&element.name) => {}
            Node::Break => out.push(' '),
            node => {
                if let Node::Paragraph(line) | Node::Heading { children: line, .. } = node {
                    begin(out);
                    titled(line, out);
                    continue;
                }
                if node.is_block() {
                    out.push(' ');
                }
                node.each_children(&mut |children| {
                    gather(children, out);
                });
            }
        }
    }
}

/// Joins paragraphs to one line, each with a mark at its end.
pub(super) fn joined(paragraphs: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for paragraph in paragraphs.filter(|paragraph| !paragraph.is_empty()) {
        begin(&mut out);
        out.push_str(&paragraph);
    }
    out
}

/// Ends the sentence before a new paragraph.
fn begin(out: &mut String) {
    let before = out.trim_end();
    if before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '`' | ')' | '"' | '”')) {
        out.truncate(before.len());
        out.push('.');
    }
    if !out.is_empty() {
        out.push(' ');
    }
}

/// Writes a line. Bold words with a line break after them are a title.
fn titled(line: &[Node], out: &mut String) {
    let Some((Node::Strong(title), rest)) = line.split_first() else {
        return gather(line, out);
    };
    gather(title, out);
    let is_title = match rest.first() {
        Some(Node::Text(text)) => text.starts_with('\n'),
        Some(Node::Break) => true,
        _ => false,
    };
    if is_title {
        begin(out);
    }
    gather(rest, out);
}

/// Returns whether the text of an element is not prose: drawings, style sheets, scripts.
pub(super) fn is_silent(name: &str) -> bool {
    is_part(name) || matches!(name, "style" | "script")
}

/// Returns whether a text only says since which version something is there: `New in version 2.1`.
pub(super) fn says_version(text: &str) -> bool {
    const STARTS: [&str; 5] = [
        "new in",
        "added in",
        "introduced in",
        "available since",
        "since version",
    ];
    let words = normal(text);
    let mut starts = STARTS.iter();
    starts.any(|start| words.starts_with(&format!(" {start} ")))
        && words.split_whitespace().count() <= VERSION_WORDS_MAX
}

/// Writes a text as one line in which YAML and Markdown readers find no markup.
fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    while line.contains("---") {
        line = line.replace("---", "–");
    }
    line.retain(|c| !c.is_control() && !is_unseen(c));
    match says_instruction(&line) {
        None => line,
        // A sentence that instructs agents against their users is not repeated. If the whole line is one
        // only together, none of it is.
        Some(_) => {
            let mut kept = sentences(&line);
            kept.retain(|sentence| says_instruction(sentence).is_none());
            let kept = kept.join(" ");
            match says_instruction(&kept) {
                None => kept,
                Some(_) => String::new(),
            }
        }
    }
}

/// Returns the first sentences of a text that fit, else its first words.
pub(super) fn short(text: &str) -> String {
    shorten(&plain(text))
}

/// Returns the first sentences of a line that fit, else its first words.
pub(super) fn shorten(line: &str) -> String {
    fit(line, CHARACTERS_MAX)
}

/// Escapes a text for a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns the first sentences of a line with at most this many characters, else a part of its first
/// sentence that says something whole, else its first words.
pub(super) fn fit(line: &str, characters_max: usize) -> String {
    if line.chars().count() <= characters_max {
        return line.to_owned();
    }
    let out = first_sentences(line, characters_max);
    if out.chars().count() > characters_max / 4 {
        return out;
    }
    let cut: String = line
        .chars()
        .take(characters_max.saturating_sub(1))
        .collect();
    if let Some(clause) = clause(&cut).filter(|one| one.chars().count() > characters_max / 4) {
        return clause.to_owned();
    }
    let words = cut.rsplit_once(' ').map_or(&*cut, |(words, _)| words);
    format!("{}…", words.trim_end_matches([',', ';', ':', ' ']))
}

/// Returns the first sentences of a line with at most this many characters; `None` if the first one is
/// longer.
pub(super) fn whole(line: &str, characters_max: usize) -> Option<String> {
    let out = first_sentences(line, characters_max);
    (!out.is_empty()).then_some(out)
}

fn first_sentences(line: &str, characters_max: usize) -> String {
    let mut out = String::new();
    for sentence in sentences(line) {
        let space = if out.is_empty() { "" } else { " " };
        if out.chars().count() + space.len() + sentence.chars().count() > characters_max {
            break;
        }
        out.push_str(space);
        out.push_str(sentence);
    }
    out
}

/// Returns the beginning of a cut sentence up to its last phrase that only adds something: a purpose, a
/// means, examples. `None` if the rest could change what the beginning says.
fn clause(cut: &str) -> Option<&str> {
    const ADDS: [&str; 12] = [
        " including ",
        " such as ",
        " with ",
        " using ",
        " through ",
        " via ",
        " for ",
        " to ",
        " so that ",
        " — ",
        " – ",
        "; ",
    ];
    const CHANGES: [&str; 18] = [
        "not", "no", "never", "only", "unless", "if", "except", "cannot", "without", "don t",
        "doesn t", "won t", "can t", "isn t", "must", "when", "before", "until",
    ];
    if has(&normal(cut), &CHANGES) {
        return None;
    }
    let end = ADDS.iter().filter_map(|adds| cut.rfind(adds)).max()?;
    // "from A to B" is one phrase.
    let is_range = cut[end..].starts_with(" to ");
    let start = cut[..end].rfind(" from ").filter(|_| is_range);
    let kept = cut[..start.unwrap_or(end)].trim_end_matches([',', ';', ':', ' ', '—', '–']);
    let even = |mark: char| kept.matches(mark).count().is_multiple_of(2);
    (is_balanced(kept) && even('`') && even('"')).then_some(kept)
}

/// Returns whether a text closes each parenthesis that it opens.
pub(super) fn is_balanced(text: &str) -> bool {
    let mut open = 0_usize;
    for c in text.chars() {
        match c {
            '(' => open += 1,
            ')' if open == 0 => return false,
            ')' => open -= 1,
            _ => {}
        }
    }
    open == 0
}

/// Splits a plain line into its sentences.
pub(super) fn sentences(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut in_code = false;
    let mut in_quote = false;
    // An odd number of quotes does not show where a quote ends.
    let has_quotes = line.matches('"').count().is_multiple_of(2);
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        in_code ^= c == '`';
        let mut closes = false;
        if !in_code {
            let was_inside = in_quote;
            in_quote = match c {
                '"' if has_quotes => !in_quote,
                '“' if line[end..].contains('”') => true,
                '”' => false,
                _ => in_quote,
            };
            closes = was_inside && !in_quote && matches!(before, '.' | '!' | '?');
        }
        before = c;
        let is_wide = matches!(c, '。' | '！' | '？');
        let is_end = closes || is_wide || matches!(c, '.' | '!' | '?');
        if in_code || in_quote || !is_end {
            continue;
        }
        let mut after = line[end..].chars();
        let ends = match (after.next(), after.next()) {
            (None, _) => true,
            (Some(' '), next) => {
                !next.is_some_and(char::is_lowercase) && !is_shortened(&line[start..at])
            }
            _ => is_wide,
        };
        if ends {
            out.push(line[start..end].trim());
            start = end;
        }
    }
    if !line[start..].trim().is_empty() {
        out.push(line[start..].trim());
    }
    out
}

/// Returns whether the last word of a text is an abbreviation, whose full stop does not end a
/// sentence.
fn is_shortened(text: &str) -> bool {
    let last = text.rsplit(' ').next().unwrap_or_default();
    let last = last.trim_start_matches('(').to_ascii_lowercase();
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        || matches!(
            &*last,
            "e.g" | "i.e" | "etc" | "vs" | "approx" | "no" | "fig"
        )
}

/// Quotes a line for YAML, so that every reader reads the same text.
pub(in crate::skills) fn quoted(line: &str) -> String {
    format!("\"{}\"", line.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_dropped_and_words_stay() {
        for (text, expected) in [
            ("See [the guide](/a/b) **now**", "See the guide now"),
            ("<Card title=\"x\">Pay</Card> {/* no */} us", "Pay us"),
            ("![logo](/a.png) Acme", "Acme"),
            ("`GET /a/{id}` <b>and</b> `x", "`GET /a/{id}` and `x"),
            ("a < b, 3 > 2", "a < b, 3 > 2"),
            ("one\n  two --- three", "one two – three"),
            ("open [ {never", "open {never"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn a_long_sentence_ends_before_a_phrase_that_only_adds_something() {
        for (text, max, expected) in [
            (
                "Configure lists of addresses and of domains to control who can use a node",
                60,
                "Configure lists of addresses and of domains",
            ),
            (
                "Requirements of a server of your own, including memory, storage, and a cluster of nodes",
                70,
                "Requirements of a server of your own",
            ),
            (
                "Add skills that teach an agent about the product, from writing models to making charts of data",
                80,
                "Add skills that teach an agent about the product",
            ),
            // Without its end, the sentence would say something else.
            (
                "The key can be left out if both of the variables are set to values",
                50,
                "The key can be left out if both of the variables…",
            ),
            (
                "Boxes (small machines for code that a model writes) are kept for a day",
                50,
                "Boxes (small machines for code that a model…",
            ),
        ] {
            assert_eq!(fit(text, max), expected);
        }
        assert_eq!(whole("One. Two three.", 8).as_deref(), Some("One."));
        assert_eq!(whole("One two three.", 8), None);
    }

    #[test]
    fn characters_that_nobody_sees_are_left_out() {
        assert_eq!(plain("a\u{200b}b `\u{200b}from` c\u{2060}"), "ab `from` c");
    }

    #[test]
    fn a_long_text_ends_with_a_sentence_or_a_word() {
        let text = format!(
            "{}. And then more {}",
            "word ".repeat(20).trim(),
            "x".repeat(200)
        );
        assert!(short(&text).ends_with("word."));
        assert!(short(&"word ".repeat(100)).ends_with("word…"));
    }

    #[test]
    fn sentences_end_where_readers_see_an_end() {
        let split = |line| sentences(line);
        assert_eq!(
            split("Use `a. B` now. It costs 2.5 units, e.g. Two! 完了。次"),
            [
                "Use `a. B` now.",
                "It costs 2.5 units, e.g. Two!",
                "完了。",
                "次"
            ]
        );
        assert_eq!(split(""), [""; 0]);
        assert_eq!(split("An odd \" one. Two"), ["An odd \" one.", "Two"]);
        assert_eq!(
            split("The error: \"Failed. Reject\". It says \"No.\" Then"),
            ["The error: \"Failed. Reject\".", "It says \"No.\"", "Then"]
        );
    }
}

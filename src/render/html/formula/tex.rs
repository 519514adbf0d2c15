//! Rewrites LaTeX into commands that the converter knows.
//!
//! The converter knows the symbols, fonts and environments of formulas. Other commands that authors
//! use are rewritten: `\textbf{a}` becomes `\text{a}`, `\bm{x}` becomes `\boldsymbol{x}`, and
//! `\tag{1}` becomes a space and `(1)`. Commands that only lay out a page are removed.
//!
//! Two kinds of formula would overflow the stack of the converter, so it does not get them:
//! definitions of commands, which may be recursive, and long sequences of commands without braces,
//! in which each command may be the argument of the previous command.
//!
//! Sources: the LaTeX Project, `usrguide` and `amsldoc`.

/// How many commands may follow each other. `\hat\hat\hat x` is three calls deep.
const COMMANDS_IN_A_ROW_MAX: usize = 64;

/// The characters that replace escaped characters of text, which have a meaning in a formula.
pub(super) const ESCAPED: [(char, char); 7] = [
    ('_', '\u{e012}'),
    ('%', '\u{e013}'),
    ('&', '\u{e014}'),
    ('#', '\u{e015}'),
    ('$', '\u{e016}'),
    ('{', '\u{e017}'),
    ('}', '\u{e018}'),
];

/// Commands that define others.
const DEFINITIONS: [&str; 11] = [
    "def",
    "edef",
    "gdef",
    "xdef",
    "let",
    "futurelet",
    "newcommand",
    "renewcommand",
    "providecommand",
    "DeclareMathOperator",
    "newenvironment",
];

/// The replacement of a command.
#[derive(Clone, Copy)]
enum Rewrite {
    /// Another command or text.
    To(&'static str),
    /// The command is removed, with this number of arguments.
    Nothing(usize),
    /// Its argument between two texts.
    Around(&'static str, &'static str),
}

fn rewrite(command: &str) -> Option<Rewrite> {
    Some(match command {
        "textbf" | "textit" | "texttt" | "textrm" | "textsf" | "textnormal" | "textup"
        | "textsc" | "emph" | "mbox" | "hbox" | "fbox" | "url" | "intertext" => {
            Rewrite::To("\\text")
        }
        "mathscr" => Rewrite::To("\\mathcal"),
        "bm" | "pmb" => Rewrite::To("\\boldsymbol"),
        "mathbbm" | "mathds" | "Bbb" => Rewrite::To("\\mathbb"),
        "bold" => Rewrite::To("\\mathbf"),
        "bcancel" | "xcancel" => Rewrite::To("\\cancel"),
        "hphantom" => Rewrite::To("\\phantom"),
        "mathop" => Rewrite::To("\\operatorname"),
        "argmax" => Rewrite::To("\\operatorname*{argmax}"),
        "argmin" => Rewrite::To("\\operatorname*{argmin}"),
        "mod" => Rewrite::To("\\quad\\text{mod }"),
        "space" => Rewrite::To("\\ "),
        "boxed" | "smash" | "llap" | "rlap" | "mathllap" | "mathrlap" | "nonumber" | "notag"
        | "newline" | "mathstrut" | "tiny" | "scriptsize" | "footnotesize" | "small"
        | "normalsize" | "large" | "Large" | "LARGE" | "huge" | "Huge" | "hline" => {
            Rewrite::Nothing(0)
        }
        "label" | "vspace" | "vphantom" | "require" | "href" | "raisebox" => Rewrite::Nothing(1),
        "tag" => Rewrite::Around("\\qquad(\\text{", "})"),
        "pod" => Rewrite::Around("\\quad(", ")"),
        "substack" => Rewrite::Around("\\begin{gathered}", "\\end{gathered}"),
        "xlongequal" => Rewrite::Around("\\overset{", "}{=}"),
        _ => return None,
    })
}

/// Rewrites a formula with commands that the converter knows.
///
/// Returns `None` if the converter must not read the formula.
pub(super) fn rewritten(tex: &str) -> Option<String> {
    let mut out = String::with_capacity(tex.len());
    let mut in_a_row = 0;
    let mut rest = tex;
    while let Some(at) = rest.find('\\') {
        let (before, after) = rest.split_at(at);
        if !before.trim().is_empty() {
            in_a_row = 0;
        }
        in_a_row += 1;
        out.push_str(before);
        let name = &after[1..];
        let length = name.find(|c: char| !c.is_ascii_alphabetic());
        let (name, following) = name.split_at(length.unwrap_or(name.len()));
        if DEFINITIONS.contains(&name) || in_a_row > COMMANDS_IN_A_ROW_MAX {
            return None;
        }
        rest = match rewrite(name) {
            // `\\`, `\{`, `\,`: the character belongs to the backslash.
            None if name.is_empty() => {
                let end = following.chars().next().map_or(0, char::len_utf8);
                out.push('\\');
                out.push_str(&following[..end]);
                &following[end..]
            }
            Some(Rewrite::Nothing(arguments)) => (0..arguments).fold(following, |rest, _| {
                argument(rest).map_or(rest, |(_, rest)| rest)
            }),
            Some(Rewrite::Around(start, end)) => match argument(following) {
                Some((inner, rest)) => {
                    out.push_str(start);
                    out.push_str(&rewritten(inner)?);
                    out.push_str(end);
                    rest
                }
                None => following,
            },
            other => {
                let command = match other {
                    Some(Rewrite::To(command)) => command.to_owned(),
                    _ => format!("\\{name}"),
                };
                out.push_str(&command);
                match argument(following).filter(|_| command == "\\text") {
                    Some((inner, rest)) => {
                        out.push('{');
                        out.push_str(&unescaped(inner));
                        out.push('}');
                        rest
                    }
                    None => following,
                }
            }
        };
    }
    out.push_str(rest);
    let out = out.replace("{eqnarray}", "{align}");
    Some(out.replace("{eqnarray*}", "{align*}"))
}

/// Splits an argument in braces from what follows it.
fn argument(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start().strip_prefix('{')?;
    let mut depth = 1;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
    }
    None
}

/// Replaces escaped characters of text by their substitutes.
fn unescaped(text: &str) -> String {
    ESCAPED
        .iter()
        .fold(text.to_owned(), |text, (character, stand_in)| {
            text.replace(&format!("\\{character}"), &stand_in.to_string())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_rewritten_for_the_converter() {
        for (tex, is) in [
            ("\\textbf{a b}", "\\text{a b}"),
            ("\\text{a\\_b}", "\\text{a\u{e012}b}"),
            ("x \\label{eq:{1}} y", "x  y"),
            ("\\href{https://a.test}{x}", "{x}"),
            ("\\tag{\\textbf{1}}", "\\qquad(\\text{\\text{1}})"),
            ("a \\\\ b \\{ \\, \\alpha", "a \\\\ b \\{ \\, \\alpha"),
            ("\\label{a", "{a"),
            ("\\", "\\"),
        ] {
            assert_eq!(rewritten(tex).as_deref(), Some(is), "{tex}");
        }
    }

    #[test]
    fn a_formula_that_would_overflow_the_stack_is_rejected() {
        assert_eq!(rewritten("\\def\\a{\\a}\\a"), None);
        assert_eq!(rewritten("\\newcommand{\\a}{b} \\a"), None);
        assert_eq!(rewritten(&format!("{}x", "\\hat ".repeat(65))), None);
        assert!(rewritten(&"\\hat x ".repeat(65)).is_some());
    }
}

//! Colours for code: classes by the meaning of each piece.
//!
//! The grammars name hundreds of meanings; eight of them get a class, which the stylesheet colours
//! in light and dark. [`grammar`] prepares the grammars, and [`state`] runs them line by line with
//! limits that count steps. Code with a line that costs more than the limit, and code that is too
//! large, is shown without colours.
//!
//! Grammars take most of the time of a build, and examples in documentation repeat the same
//! lines: imports, braces, headers of requests. So each thread caches the lines that it has
//! coloured ([`Cache`]). The colours of a line depend only on the line and on the state of the
//! grammar before it, so the cache does not change the output.
//!
//! Sources: TextMate scope naming conventions.

mod grammar;
mod state;

use std::cell::RefCell;
use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::OnceLock;

use syntect::parsing::{Scope, ScopeStack};

use self::grammar::Context;
use self::state::State;
use crate::markup::Html;

/// How many bytes of code are coloured.
const CODE_BYTES_MAX: usize = 64 << 10;
/// How many bytes a coloured line may have: expressions backtrack within a line.
const LINE_BYTES_MAX: usize = 2000;
/// How many lines and states a thread caches; then it drops them all.
const CACHED_LINES_MAX: usize = 20_000;

/// Classes by scope; the first entry that fits the innermost scope is used.
const CLASSES: [(&str, &str); 18] = [
    ("comment", "<span class=c>"),
    ("string", "<span class=s>"),
    ("constant.numeric", "<span class=n>"),
    ("constant.language", "<span class=n>"),
    ("constant.character.escape", "<span class=n>"),
    ("entity.name.function", "<span class=f>"),
    ("support.function", "<span class=f>"),
    ("variable.function", "<span class=f>"),
    ("entity.name.tag", "<span class=t>"),
    ("entity.other.attribute-name", "<span class=a>"),
    ("entity.name", "<span class=y>"),
    ("support.type", "<span class=y>"),
    ("storage", "<span class=k>"),
    ("keyword", "<span class=k>"),
    ("markup.inserted", "<span class=s>"),
    ("markup.deleted", "<span class=d>"),
    ("meta.diff.range", "<span class=c>"),
    ("meta.diff.header", "<span class=c>"),
];

/// The lines that a thread has coloured. States of grammars have numbers, so that a line that
/// is cached costs one look-up.
#[derive(Default)]
struct Cache {
    /// The state that the code of a language begins in.
    starts: HashMap<Box<str>, Option<usize>>,
    states: Vec<(State, ScopeStack)>,
    /// The states by the scopes that they are in.
    numbers: HashMap<Box<[Scope]>, Vec<usize>>,
    lines: HashMap<Box<str>, Vec<Coloured>>,
    count: usize,
}

/// A coloured line, and the states of the grammar before and after it.
struct Coloured {
    from: usize,
    html: Html,
    to: usize,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

fn classes() -> &'static [(Scope, &'static str)] {
    static SCOPES: OnceLock<Vec<(Scope, &'static str)>> = OnceLock::new();
    SCOPES.get_or_init(|| {
        let scope = |(name, class): &(&str, &'static str)| {
            let scope = Scope::from_str(name).expect("the scopes are constants");
            (scope, *class)
        };
        CLASSES.iter().map(scope).collect()
    })
}

/// Finds where the grammar of a language begins, by the names that fences use.
fn start(language: &str) -> Option<&'static Context> {
    let token = match language.to_ascii_lowercase().as_str() {
        "" | "text" | "txt" | "plain" | "plaintext" | "mermaid" => return None,
        "shell" | "console" | "curl" | "terminal" | "shellscript" | "zsh" => "bash".to_owned(),
        "jsonc" | "json5" => "json".to_owned(),
        "jsx" | "mjs" | "node" => "js".to_owned(),
        "mdx" => "md".to_owned(),
        "golang" => "go".to_owned(),
        "csharp" => "cs".to_owned(),
        "kt" => "kotlin".to_owned(),
        other => other.to_owned(),
    };
    grammar::start(&token)
}

/// Returns the lines of some code, coloured, each with its end.
pub(super) fn lines(language: &str, code: &str) -> Vec<Html> {
    let lines: Vec<&str> = code.split_inclusive('\n').collect();
    let plain = || {
        let plain = |line: &&str| {
            let mut html = Html::default();
            html.text(line);
            html
        };
        lines.iter().map(plain).collect()
    };
    if code.len() > CODE_BYTES_MAX || lines.iter().any(|line| line.len() > LINE_BYTES_MAX) {
        return plain();
    }
    CACHE.with_borrow_mut(|cache| cache.lines(language, &lines).unwrap_or_else(plain))
}

// === impl Cache ===

impl Cache {
    /// Colours lines; `None` when the language has no grammar or a line is too costly.
    fn lines(&mut self, language: &str, lines: &[&str]) -> Option<Vec<Html>> {
        if self.count > CACHED_LINES_MAX {
            *self = Self::default();
        }
        let mut state = self.start(language)?;
        let mut coloured = Vec::with_capacity(lines.len());
        for line in lines {
            let (html, next) = self.line(state, line)?;
            coloured.push(html);
            state = next;
        }
        Some(coloured)
    }

    fn start(&mut self, language: &str) -> Option<usize> {
        if let Some(cached) = self.starts.get(language) {
            return *cached;
        }
        let first = start(language);
        let state = first.map(|context| self.number(State::new(context), ScopeStack::new()));
        self.starts.insert(language.into(), state);
        self.count += 1;
        state
    }

    fn line(&mut self, from: usize, line: &str) -> Option<(Html, usize)> {
        let mut cached = self.lines.get(line).into_iter().flatten();
        if let Some(coloured) = cached.find(|coloured| coloured.from == from) {
            return Some((coloured.html.clone(), coloured.to));
        }
        let (mut state, mut stack) = self.states[from].clone();
        let html = colour_line(&mut state, &mut stack, line)?;
        let to = self.number(state, stack);
        self.lines.entry(line.into()).or_default().push(Coloured {
            from,
            html: html.clone(),
            to,
        });
        self.count += 1;
        Some((html, to))
    }

    /// Returns the number of a state.
    fn number(&mut self, state: State, stack: ScopeStack) -> usize {
        let same = self.numbers.entry(stack.as_slice().into()).or_default();
        let mut numbers = same.iter().copied();
        let reached = (state, stack);
        match numbers.find(|number| self.states[*number] == reached) {
            Some(number) => number,
            None => {
                let number = self.states.len();
                same.push(number);
                self.states.push(reached);
                number
            }
        }
    }
}

/// Colours a line, and takes the state of the grammar to its end.
fn colour_line(state: &mut State, stack: &mut ScopeStack, line: &str) -> Option<Html> {
    let changes = state.line(line).ok()?;
    let mut html = Html::default();
    let mut at = 0;
    let mut pending = (0, "");
    for (position, change) in changes {
        if position > at {
            let class = class(stack);
            if class != pending.1 {
                colour(&mut html, &line[pending.0..at], pending.1);
                pending = (at, class);
            }
            at = position;
        }
        stack.apply(&change).ok()?;
    }
    let class = class(stack);
    if class != pending.1 {
        colour(&mut html, &line[pending.0..at], pending.1);
        pending = (at, class);
    }
    colour(&mut html, &line[pending.0..], pending.1);
    Some(html)
}

/// Returns the class of the innermost scope that has one.
fn class(stack: &ScopeStack) -> &'static str {
    let class = |scope: &Scope| {
        let mut classes = classes().iter();
        let found = classes.find(|(prefix, _)| prefix.is_prefix_of(*scope));
        found.map(|(_, class)| *class)
    };
    stack.as_slice().iter().rev().find_map(class).unwrap_or("")
}

fn colour(html: &mut Html, text: &str, class: &'static str) {
    if class.is_empty() || text.trim().is_empty() {
        html.text(text);
    } else {
        html.markup(class).text(text).markup("</span>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Html]) -> Vec<&str> {
        lines.iter().map(Html::as_str).collect()
    }

    #[test]
    fn a_cached_line_has_the_colours_of_the_state_before_it() {
        // The same line inside a text, after it, and in another language.
        let code = "x = \"\"\"\n# import a\n\"\"\"\n# import a\n";
        let first = lines("python", code);
        assert_ne!(first[1], first[3]);
        let other = lines("rust", "# import a\n");
        assert_ne!(other[0], first[3]);
        assert_eq!(lines("python", code), first);
        assert_eq!(lines("rust", "# import a\n"), other);
        // Nothing is cached on another thread.
        let anew = std::thread::spawn(move || lines("python", code));
        assert_eq!(text(&anew.join().unwrap()), text(&first));
    }

    #[test]
    fn lines_of_a_diff_are_coloured() {
        let coloured = lines("diff", "@@ -1 +1 @@\n-a\n+b\n c\n");
        let coloured = text(&coloured);
        for (line, class) in
            coloured
                .iter()
                .zip(["<span class=c>", "<span class=d>", "<span class=s>"])
        {
            assert!(line.starts_with(class), "{coloured:?}");
        }
        assert_eq!(coloured[3], " c\n");
    }

    #[test]
    fn a_full_cache_is_dropped() {
        let mut cache = Cache::default();
        cache.lines("json", &["1\n", "2\n"]).unwrap();
        cache.count = CACHED_LINES_MAX;
        cache.lines("json", &["2\n", "3\n"]).unwrap();
        assert_eq!(cache.lines.len(), 3);
        cache.lines("json", &["4\n"]).unwrap();
        assert_eq!(cache.lines.len(), 1);
        assert!(cache.lines("no-such-language", &["x"]).is_none());
    }

    #[test]
    fn a_comment_after_an_expression_without_semicolon_ends_and_is_a_comment() {
        for language in ["js", "javascript", "jsx", "ts", "tsx", "typescript"] {
            let coloured = lines(language, "foo\n  /* x */\n");
            let coloured = text(&coloured);
            assert!(
                coloured[1].contains("<span class=c>/* x */</span>"),
                "{language}"
            );
        }
    }

    #[test]
    fn code_has_the_scopes_that_syntect_gives_it() {
        let set = two_face::syntax::extra_newlines();
        for (language, code) in [
            ("rs", "fn main() {\n    let s = r#\"a\nb\"#; // c\n}\n"),
            (
                "py",
                "@a.b\ndef f(x: int = 1) -> str:\n    return f\"{x!r:>{10}}\"\n",
            ),
            (
                "sh",
                "cat <<'EOF' > \"$x\"\na $b\nEOF\ncurl -H 'a: b' \\\n  \"$(ls)\"\n",
            ),
            (
                "html",
                "<p style=\"a: b\">x<script>let a = `x${1}`;</script></p>\n",
            ),
            ("md", "# a\n\n```rust\nlet a = 1;\n```\n*b* `c`\n"),
            ("rb", "x = <<~A\n  b #{c}\nA\nputs :d\n"),
            ("php", "<?php\n$a = \"b $c\"; // d\n?><b>\n"),
            ("yaml", "a: &b\n  - c: |\n      d\n  - !!e f # g\n"),
        ] {
            let syntax = set.find_syntax_by_token(language).unwrap();
            let mut model = syntect::parsing::ParseState::new(syntax);
            let mut state = State::new(start(language).unwrap());
            for line in code.split_inclusive('\n') {
                let expected = model.parse_line(line, &set).unwrap();
                let Ok(changes) = state.line(line) else {
                    panic!("{language}: {line} is too costly");
                };
                assert_eq!(changes, expected, "{language}: {line}");
            }
        }
    }

    /// Lines with the characters that grammars react to, in any order: strings that do not end,
    /// brackets that do not close, comments in the middle of everything.
    #[test]
    fn hostile_code_ends() {
        const PIECES: [&str; 48] = [
            "foo", "  ", "/*", "*/", "//", "/", "\"", "'", "`", "${", "}", "{", "(", ")", "[", "]",
            "<", ">", "=>", "=", ";", ",", ":", "::", "#", "-", "--", "<!--", "|", "&", "@", "\\",
            "<<EOF", "EOF", "function", "class", "return", "async", "import", "1", "0x", "é", "\t",
            "%", "$", "!", "?", "...",
        ];
        const LANGUAGES: [&str; 16] = [
            "javascript",
            "js",
            "ts",
            "tsx",
            "py",
            "rb",
            "sh",
            "rs",
            "go",
            "java",
            "php",
            "md",
            "html",
            "css",
            "yaml",
            "c",
        ];
        let (done, waiting) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut number = 1_u64;
            let mut next = |bound: usize| {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                usize::try_from(number >> 33).unwrap() % bound
            };
            for language in LANGUAGES {
                for _ in 0..40 {
                    let mut code = String::new();
                    for _ in 0..60 {
                        code.push_str(PIECES[next(PIECES.len())]);
                        if next(6) == 0 {
                            code.push('\n');
                        }
                    }
                    let coloured = lines(language, &code);
                    let count = code.split_inclusive('\n').count();
                    assert_eq!(coloured.len(), count, "{language}: {code:?}");
                }
                // One long line that repeats a piece, so contexts nest or expressions backtrack.
                for piece in PIECES.iter().step_by(5) {
                    let code = piece.repeat(LINE_BYTES_MAX / piece.len());
                    assert_eq!(lines(language, &code).len(), 1, "{language}: {piece}");
                }
            }
            done.send(()).unwrap();
        });
        let ended = waiting.recv_timeout(std::time::Duration::from_secs(240));
        assert!(ended.is_ok(), "a line does not end, or the thread failed");
    }
}

//! Colours for code: classes by the meaning of each piece.
//!
//! The grammars name hundreds of meanings; eight of them get a class, which the stylesheet colours
//! in light and dark. [`grammar`] prepares the grammars, and [`state`] runs them line by line with
//! limits that count steps. Code with a line that costs more than the limit, and code that is too
//! large, is shown without colours, and so is code after the lines of its page have cost more than
//! [`PAGE_COST_MAX`] ([`Uncoloured`]).
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
/// How much the coloured lines of a page may cost together, in the unit of
/// [`state::LINE_COST_MAX`]: more than 10,000 lines of usual code.
const PAGE_COST_MAX: usize = 50_000_000;
/// How many lines and states a thread caches; then it drops them all.
const CACHED_LINES_MAX: usize = 20_000;

/// Classes by scope; the first entry that fits the innermost scope is used.
const CLASSES: [(&str, &str); 19] = [
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
    // Options of commands in a shell.
    ("variable.parameter.option", "<span class=a>"),
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

/// A coloured line, and the state of the grammar before it.
struct Coloured {
    from: usize,
    /// The line, and the state after it; `None` if the line costs too much.
    result: Option<(Html, usize)>,
    cost: usize,
}

/// The work that colouring the code of a page may still cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work(usize);

/// Why code is shown without colours, although its language has a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Uncoloured {
    #[error("it has {0} bytes, and at most {CODE_BYTES_MAX} are coloured")]
    TooLarge(usize),
    #[error("a line has {0} bytes, and lines of at most {LINE_BYTES_MAX} are coloured")]
    LongLine(usize),
    #[error("colouring one of its lines would cost too much work")]
    CostlyLine,
    #[error("colouring all code of this page would cost too much work")]
    CostlyPage,
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

/// Finds the reason why code has no colours, without colouring it.
///
/// # Errors
///
/// [`Uncoloured::TooLarge`], [`Uncoloured::LongLine`].
pub(super) fn check(language: &str, code: &str) -> Result<(), Uncoloured> {
    let longest = || code.split_inclusive('\n').map(str::len).max().unwrap_or(0);
    let reason = match code.len() {
        length if length > CODE_BYTES_MAX => Uncoloured::TooLarge(length),
        _ if longest() > LINE_BYTES_MAX => Uncoloured::LongLine(longest()),
        _ => return Ok(()),
    };
    match start(language) {
        Some(_) => Err(reason),
        None => Ok(()),
    }
}

/// Returns the lines of some code, coloured, each with its end.
///
/// # Errors
///
/// The reason why it has no colours; [`plain`] returns its lines then.
pub(super) fn lines(language: &str, code: &str, work: &mut Work) -> Result<Vec<Html>, Uncoloured> {
    check(language, code)?;
    let lines: Vec<&str> = code.split_inclusive('\n').collect();
    let is_long = |line: &&str| line.len() > LINE_BYTES_MAX;
    if code.len() > CODE_BYTES_MAX || lines.iter().any(is_long) {
        // There is no grammar.
        return Ok(plain(code));
    }
    CACHE.with_borrow_mut(|cache| cache.lines(language, &lines, work))
}

/// Returns the lines of some code without colours, each with its end.
pub(super) fn plain(code: &str) -> Vec<Html> {
    let plain = |line: &str| {
        let mut html = Html::default();
        html.text(line);
        html
    };
    code.split_inclusive('\n').map(plain).collect()
}

// === impl Work ===

impl Default for Work {
    fn default() -> Self {
        Self(PAGE_COST_MAX)
    }
}

// === impl Cache ===

impl Cache {
    /// Colours lines; a language without a grammar has no colours.
    fn lines(
        &mut self,
        language: &str,
        lines: &[&str],
        work: &mut Work,
    ) -> Result<Vec<Html>, Uncoloured> {
        if self.count > CACHED_LINES_MAX {
            *self = Self::default();
        }
        let Some(mut state) = self.start(language) else {
            return Ok(plain(&lines.concat()));
        };
        let mut coloured = Vec::with_capacity(lines.len());
        for line in lines {
            // A cached line costs the same, so the cache does not change the output.
            let (result, cost) = self.line(state, line);
            work.0 = work.0.checked_sub(cost).ok_or(Uncoloured::CostlyPage)?;
            let (html, next) = result.ok_or(Uncoloured::CostlyLine)?;
            coloured.push(html);
            state = next;
        }
        Ok(coloured)
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

    /// Returns the coloured line and the state after it, or `None` if it costs too much; and what
    /// it costs.
    fn line(&mut self, from: usize, line: &str) -> (Option<(Html, usize)>, usize) {
        let mut cached = self.lines.get(line).into_iter().flatten();
        if let Some(coloured) = cached.find(|coloured| coloured.from == from) {
            return (coloured.result.clone(), coloured.cost);
        }
        let (mut state, mut stack) = self.states[from].clone();
        let mut cost = 0;
        let html = colour_line(&mut state, &mut stack, line, &mut cost);
        let result = html.map(|html| (html, self.number(state, stack)));
        self.lines.entry(line.into()).or_default().push(Coloured {
            from,
            result: result.clone(),
            cost,
        });
        self.count += 1;
        (result, cost)
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
fn colour_line(
    state: &mut State,
    stack: &mut ScopeStack,
    line: &str,
    cost: &mut usize,
) -> Option<Html> {
    let changes = state.line(line, cost).ok()?;
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
    use super::state::LINE_COST_MAX;
    use super::*;

    /// Colours code that keeps the limits.
    fn lines(language: &str, code: &str) -> Vec<Html> {
        super::lines(language, code, &mut Work::default()).unwrap()
    }

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
    fn options_of_a_command_are_coloured() {
        let coloured = lines("bash", "curl -s --fail \"$URL\" -- a-b # -c\n");
        let line = coloured[0].as_str();
        assert!(line.contains("<span class=a> -s --fail</span>"), "{line}");
        assert_eq!(line.matches("<span class=a>").count(), 1, "{line}");
    }

    #[test]
    fn a_full_cache_is_dropped() {
        let (mut cache, mut work) = (Cache::default(), Work::default());
        cache.lines("json", &["1\n", "2\n"], &mut work).unwrap();
        cache.count = CACHED_LINES_MAX;
        cache.lines("json", &["2\n", "3\n"], &mut work).unwrap();
        assert_eq!(cache.lines.len(), 3);
        cache.lines("json", &["4\n"], &mut work).unwrap();
        assert_eq!(cache.lines.len(), 1);
        let left = work.0;
        cache.lines("no-such-language", &["x"], &mut work).unwrap();
        assert_eq!(work.0, left);
    }

    #[test]
    fn code_that_is_too_large_for_its_grammar_has_a_reason() {
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        let large = "let a = 1;\n".repeat(CODE_BYTES_MAX / 10);
        for (language, code, reason) in [
            ("js", &long, Err(Uncoloured::LongLine(long.len()))),
            ("js", &large, Err(Uncoloured::TooLarge(large.len()))),
            ("text", &long, Ok(())),
            ("", &large, Ok(())),
            ("no-such-language", &large, Ok(())),
        ] {
            assert_eq!(check(language, code), reason);
            let coloured = super::lines(language, code, &mut Work::default());
            assert_eq!(coloured.map(drop), reason);
        }
    }

    /// A line that backtracks a little at each of its positions.
    fn costly_line(number: usize) -> String {
        format!("{} {number}_0\n", "a.".repeat(950))
    }

    #[test]
    fn a_costly_line_is_cached_and_the_work_for_a_page_ends() {
        let mut work = Work::default();
        let code = costly_line(0);
        let first = super::lines("r", &code, &mut work);
        let spent = PAGE_COST_MAX - work.0;
        // Many times the cost of its bytes.
        assert!((100_000..2 * LINE_COST_MAX).contains(&spent), "{spent}");
        // From the cache, at the same price.
        assert_eq!(super::lines("r", &code, &mut work), first);
        assert_eq!(PAGE_COST_MAX - work.0, 2 * spent);
        let mut work = Work(10 * spent);
        let results: Vec<_> = (0..20)
            .map(|number| super::lines("r", &costly_line(number % 3), &mut work))
            .collect();
        assert_ne!(results[0], Err(Uncoloured::CostlyPage));
        assert_eq!(results[19], Err(Uncoloured::CostlyPage));
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
                let Ok(changes) = state.line(line, &mut 0) else {
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
                    let mut work = Work::default();
                    let count = code.split_inclusive('\n').count();
                    if let Ok(coloured) = super::lines(language, &code, &mut work) {
                        assert_eq!(coloured.len(), count, "{language}: {code:?}");
                    }
                    let cost = PAGE_COST_MAX - work.0;
                    assert!(cost < count * LINE_COST_MAX, "{language}: {code:?}: {cost}");
                }
                // One long line that repeats a piece, so contexts nest or expressions backtrack.
                for piece in PIECES.iter().step_by(5) {
                    let code = piece.repeat(LINE_BYTES_MAX / piece.len());
                    let mut work = Work::default();
                    if let Ok(coloured) = super::lines(language, &code, &mut work) {
                        assert_eq!(coloured.len(), 1, "{language}: {piece}");
                    }
                    let cost = PAGE_COST_MAX - work.0;
                    assert!(cost < 2 * LINE_COST_MAX, "{language}: {piece}: {cost}");
                }
            }
            done.send(()).unwrap();
        });
        let ended = waiting.recv_timeout(std::time::Duration::from_secs(60));
        assert!(ended.is_ok(), "a line does not end, or the thread failed");
    }
}

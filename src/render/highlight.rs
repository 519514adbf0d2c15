//! Colours for code: classes by the meaning of each piece.
//!
//! The grammars name hundreds of meanings; eight of them get a class, which the stylesheet
//! colours in light and dark. A fence over a limit is shown without colours.
//!
//! Running a grammar is most of the work of a build, and documentation repeats itself: the
//! import, the brace, the header of a request stand in every other example. So each thread
//! remembers what became of the lines it has seen ([`Memory`]). What a line becomes depends on
//! the line and the state of the grammar before it, and on nothing else, so the same is
//! written with and without.
//!
//! Sources: TextMate scope naming conventions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::str::FromStr as _;
use std::sync::OnceLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::escape::Html;

/// How many bytes of a fence are coloured.
const FENCE_BYTES_MAX: usize = 64 << 10;
/// How many bytes a coloured line may have: grammars backtrack within a line.
const LINE_BYTES_MAX: usize = 2000;
/// How many lines a thread remembers; then it forgets them all.
const LINES_MAX: usize = 20_000;

/// Classes by scope; the first that fits the innermost scope wins.
const CLASSES: [(&str, &str); 14] = [
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
];

struct Grammars {
    set: SyntaxSet,
    classes: Vec<(Scope, &'static str)>,
}

/// The lines that a thread has seen. States of grammars have numbers, so that a line that is
/// known costs one look-up.
#[derive(Default)]
struct Memory {
    /// The state that the code of a language begins in.
    starts: HashMap<Box<str>, Option<usize>>,
    states: Vec<(ParseState, ScopeStack)>,
    /// The states by the scopes that they are in.
    numbers: HashMap<Box<[Scope]>, Vec<usize>>,
    lines: HashMap<Box<str>, Vec<Step>>,
    count: usize,
}

/// What became of a line.
struct Step {
    from: usize,
    html: Html,
    to: usize,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

fn grammars() -> &'static Grammars {
    static GRAMMARS: OnceLock<Grammars> = OnceLock::new();
    GRAMMARS.get_or_init(|| Grammars {
        set: two_face::syntax::extra_newlines(),
        classes: CLASSES
            .iter()
            .map(|(scope, class)| {
                let scope = Scope::from_str(scope).expect("the scopes are constants");
                (scope, *class)
            })
            .collect(),
    })
}

/// Finds the grammar of a language as fences name it.
fn syntax(language: &str) -> Option<&'static SyntaxReference> {
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
    grammars().set.find_syntax_by_token(&token)
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
    if code.len() > FENCE_BYTES_MAX || lines.iter().any(|line| line.len() > LINE_BYTES_MAX) {
        return plain();
    }
    MEMORY.with_borrow_mut(|memory| memory.lines(language, &lines).unwrap_or_else(plain))
}

// === impl Memory ===

impl Memory {
    /// Colours lines; `None` when there is no grammar, or it fails.
    fn lines(&mut self, language: &str, lines: &[&str]) -> Option<Vec<Html>> {
        if self.count > LINES_MAX {
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
        if let Some(known) = self.starts.get(language) {
            return *known;
        }
        let start = |syntax| self.number(ParseState::new(syntax), ScopeStack::new());
        let state = syntax(language).map(start);
        self.starts.insert(language.into(), state);
        self.count += 1;
        state
    }

    fn line(&mut self, from: usize, line: &str) -> Option<(Html, usize)> {
        let mut known = self.lines.get(line).into_iter().flatten();
        if let Some(step) = known.find(|step| step.from == from) {
            return Some((step.html.clone(), step.to));
        }
        let (mut state, mut stack) = self.states[from].clone();
        let html = grammars().run(&mut state, &mut stack, line)?;
        let to = self.number(state, stack);
        self.lines.entry(line.into()).or_default().push(Step {
            from,
            html: html.clone(),
            to,
        });
        self.count += 1;
        Some((html, to))
    }

    /// Returns the number of a state.
    fn number(&mut self, state: ParseState, stack: ScopeStack) -> usize {
        let same = self.numbers.entry(stack.as_slice().into()).or_default();
        let mut known = same.iter().copied();
        let reached = (state, stack);
        match known.find(|n| self.states[*n] == reached) {
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

fn colour(html: &mut Html, text: &str, class: &'static str) {
    if class.is_empty() || text.trim().is_empty() {
        html.text(text);
    } else {
        html.markup(class).text(text).markup("</span>");
    }
}

// === impl Grammars ===

impl Grammars {
    /// Colours a line, and takes the grammar to the next.
    fn run(&self, state: &mut ParseState, stack: &mut ScopeStack, line: &str) -> Option<Html> {
        let changes = state.parse_line(line, &self.set).ok()?;
        let mut html = Html::default();
        let mut at = 0;
        let mut pending = (0, "");
        for (position, change) in changes {
            if position > at {
                let class = self.class(stack);
                if class != pending.1 {
                    colour(&mut html, &line[pending.0..at], pending.1);
                    pending = (at, class);
                }
                at = position;
            }
            stack.apply(&change).ok()?;
        }
        let class = self.class(stack);
        if class != pending.1 {
            colour(&mut html, &line[pending.0..at], pending.1);
            pending = (at, class);
        }
        colour(&mut html, &line[pending.0..], pending.1);
        Some(html)
    }

    fn class(&self, stack: &ScopeStack) -> &'static str {
        let class = |scope: &Scope| {
            let found = self
                .classes
                .iter()
                .find(|(known, _)| known.is_prefix_of(*scope));
            found.map(|(_, class)| *class)
        };
        stack.as_slice().iter().rev().find_map(class).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Html]) -> Vec<&str> {
        lines.iter().map(Html::as_str).collect()
    }

    #[test]
    fn a_line_that_is_remembered_is_coloured_as_in_the_state_before_it() {
        // The same line within a text, behind it, and in another language.
        let code = "x = \"\"\"\n# import a\n\"\"\"\n# import a\n";
        let first = lines("python", code);
        assert_ne!(first[1], first[3]);
        let other = lines("rust", "# import a\n");
        assert_ne!(other[0], first[3]);
        assert_eq!(lines("python", code), first);
        assert_eq!(lines("rust", "# import a\n"), other);
        // Nothing is remembered on another thread.
        let anew = std::thread::spawn(move || lines("python", code));
        assert_eq!(text(&anew.join().unwrap()), text(&first));
    }

    #[test]
    fn a_thread_forgets_what_it_cannot_hold() {
        let mut memory = Memory::default();
        memory.lines("json", &["1\n", "2\n"]).unwrap();
        memory.count = LINES_MAX;
        memory.lines("json", &["2\n", "3\n"]).unwrap();
        assert_eq!(memory.lines.len(), 3);
        memory.lines("json", &["4\n"]).unwrap();
        assert_eq!(memory.lines.len(), 1);
        assert!(memory.lines("no-such-language", &["x"]).is_none());
    }
}

//! Colours for code: classes by the meaning of each piece.
//!
//! The grammars name hundreds of meanings; eight of them get a class, which the stylesheet
//! colours in light and dark. A fence over a limit is shown without colours.
//!
//! Sources: TextMate scope naming conventions.

use std::str::FromStr as _;
use std::sync::OnceLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use super::escape::Html;

/// How many bytes of a fence are coloured.
const FENCE_BYTES_MAX: usize = 64 << 10;
/// How many bytes a coloured line may have: grammars backtrack within a line.
const LINE_BYTES_MAX: usize = 2000;

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
    let Some(syntax) = syntax(language) else {
        return plain();
    };
    let grammars = grammars();
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut coloured = Vec::with_capacity(lines.len());
    for line in &lines {
        let Ok(changes) = state.parse_line(line, &grammars.set) else {
            return plain();
        };
        let mut html = Html::default();
        let mut at = 0;
        let mut pending = (0, "");
        for (position, change) in changes {
            let class = grammars.class(&stack);
            if position > at {
                if class != pending.1 {
                    colour(&mut html, &line[pending.0..at], pending.1);
                    pending = (at, class);
                }
                at = position;
            }
            if stack.apply(&change).is_err() {
                return plain();
            }
        }
        let class = grammars.class(&stack);
        if class != pending.1 {
            colour(&mut html, &line[pending.0..at], pending.1);
            pending = (at, class);
        }
        colour(&mut html, &line[pending.0..], pending.1);
        coloured.push(html);
    }
    coloured
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

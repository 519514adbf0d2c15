//! `import` and `export` at the top of a page.
//!
//! They are replaced by spaces in the text, so the other bytes stay at their offsets. Each
//! statement is read as far as it has a meaning without being run.
//!
//! Sources: MDX 3, "ESM"; ECMA-262 §16.2.

use std::borrow::Cow;
use std::ops::Range;

use super::scan::{balanced, fence};
use super::value::{Parameters, braced};

/// A statement of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement<'t> {
    /// `import Default, { name as local } from "path"`.
    Import {
        default: Option<&'t str>,
        names: Vec<(&'t str, &'t str)>,
        from: &'t str,
    },
    /// `export const name = value`.
    Value { name: &'t str, source: &'t str },
    /// `export const Name = (props) => <div>…</div>`.
    Component {
        name: &'t str,
        parameters: Parameters,
        body: &'t str,
    },
    /// A statement that has a meaning only when it is run.
    Other { name: &'t str },
}

/// Replaces the statements of a text by spaces; returns them with their offsets.
pub(super) fn split(text: &str) -> (Cow<'_, str>, Vec<(usize, Statement<'_>)>) {
    let mut found: Vec<(Range<usize>, Statement<'_>)> = Vec::new();
    let mut at = 0;
    let mut open_fence: Option<(u8, usize)> = None;
    while at < text.len() {
        let line_end = text[at..].find('\n').map_or(text.len(), |n| at + n);
        let line = &text[at..line_end];
        match (open_fence, fence(line.as_bytes())) {
            (None, Some((mark, length, _))) => open_fence = Some((mark, length)),
            (Some((mark, length)), Some((other, n, rest)))
                if other == mark && n >= length && rest.trim_ascii().is_empty() =>
            {
                open_fence = None;
            }
            (None, None) if is_statement(line) => {
                let end = statement_end(text, at);
                found.push((at..end, read(&text[at..end])));
                at = (end + 1).min(text.len());
                continue;
            }
            _ => {}
        }
        at = line_end + 1;
    }
    if found.is_empty() {
        return (Cow::Borrowed(text), Vec::new());
    }
    let mut masked = String::with_capacity(text.len());
    let mut copied = 0;
    for (range, _) in &found {
        masked.push_str(&text[copied..range.start]);
        // Blanks have the length of the statement, so the rest stays at its offsets and lines.
        let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
        masked.extend(text[range.clone()].bytes().map(blank));
        copied = range.end;
    }
    masked.push_str(&text[copied..]);
    let statements = found.into_iter().map(|(range, s)| (range.start, s));
    (Cow::Owned(masked), statements.collect())
}

/// Returns whether a line starts a statement, and not a sentence with the same first word.
fn is_statement(line: &str) -> bool {
    if let Some(rest) = line.strip_prefix("import ") {
        let rest = rest.trim_start();
        return rest.starts_with(['{', '*', '"', '\''])
            || rest.contains(" from ") && rest.contains(['"', '\'']);
    }
    line.strip_prefix("export ").is_some_and(|rest| {
        let word = rest.trim_start();
        [
            "const ",
            "let ",
            "var ",
            "function ",
            "default ",
            "async ",
            "class ",
            "{",
        ]
        .iter()
        .any(|keyword| word.starts_with(keyword))
    })
}

/// Returns the end of the statement: the first line end outside all brackets at which the
/// statement can be complete.
fn statement_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'(' | b'[' => {
                // A bracket that is never closed ends with the paragraph.
                at = balanced(bytes, at)
                    .unwrap_or_else(|_| text[at..].find("\n\n").map_or(text.len(), |n| at + n));
                continue;
            }
            b'`' => {
                let close = text[at + 1..].find('`');
                at = close.map_or(bytes.len(), |n| at + 1 + n);
            }
            b'\n' => {
                let so_far = text[start..at].trim_end();
                let goes_on = ["=", "=>", ",", "?", ":", "&&", "||", "+"];
                if !goes_on.iter().any(|end| so_far.ends_with(end)) {
                    return at;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

fn read(source: &str) -> Statement<'_> {
    let source = source.trim().trim_end_matches(';');
    let other = Statement::Other {
        name: source.lines().next().unwrap_or_default(),
    };
    if let Some(rest) = source.strip_prefix("import") {
        return read_import(rest.trim()).unwrap_or(other);
    }
    let rest = source.strip_prefix("export").unwrap_or(source).trim_start();
    if let Some(function) = read_function(rest) {
        return function;
    }
    let declared = ["const ", "let ", "var "]
        .iter()
        .find_map(|keyword| rest.strip_prefix(keyword));
    declared
        .and_then(|rest| rest.split_once('='))
        .map_or(other, |(name, value)| {
            read_export(name.trim(), value.trim())
        })
}

fn read_import(rest: &str) -> Option<Statement<'_>> {
    let quote = rest.find(['"', '\''])?;
    let from = rest[quote + 1..].strip_suffix(['"', '\''])?;
    let clause = rest[..quote].trim().trim_end_matches("from").trim();
    let (default, named) = match clause.split_once('{') {
        Some((before, after)) => (before, after.trim_end().trim_end_matches('}')),
        None => (clause, ""),
    };
    let default = Some(default.trim().trim_end_matches(',').trim())
        .filter(|name| !name.is_empty() && !name.starts_with('*'));
    let names = named
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(|item| match item.split_once(" as ") {
            Some((name, local)) => (name.trim(), local.trim()),
            None => (item, item),
        });
    Some(Statement::Import {
        default,
        names: names.collect(),
        from,
    })
}

fn read_export<'t>(name: &'t str, value: &'t str) -> Statement<'t> {
    let Some((parameters, arrow)) = read_parameters(value) else {
        return Statement::Value {
            name,
            source: value,
        };
    };
    component(name, parameters, arrow)
}

/// Reads the body of a component: JSX, or a block that only returns JSX.
fn component<'t>(name: &'t str, parameters: Parameters, body: &'t str) -> Statement<'t> {
    let bare = |text: &'t str| text.trim().trim_end_matches(';').trim_end();
    let returned = |block: &'t str| {
        let inner = block.strip_prefix('{')?.strip_suffix('}')?;
        let value = inner.trim().strip_prefix("return")?;
        value
            .starts_with(|c: char| !c.is_alphanumeric())
            .then_some(value)
    };
    let body = bare(body);
    let body = bare(returned(body).unwrap_or(body));
    let inner = body
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .unwrap_or(body)
        .trim();
    if inner.starts_with('<') {
        Statement::Component {
            name,
            parameters,
            body: inner,
        }
    } else {
        Statement::Other { name }
    }
}

/// Reads `function Name(…) { … }`, which may be the default export.
fn read_function(rest: &str) -> Option<Statement<'_>> {
    let rest = rest.strip_prefix("default ").unwrap_or(rest).trim_start();
    let rest = rest.strip_prefix("function ")?.trim_start();
    let (name, rest) = rest.split_at(rest.find('(')?);
    let (list, body) = braced(rest)?;
    Some(component(name.trim(), parameters(list), body.trim()))
}

/// Reads `(…) =>` or `name =>`; returns `None` if the value is not a function.
fn read_parameters(value: &str) -> Option<(Parameters, &str)> {
    let (list, rest) = if value.starts_with('(') {
        braced(value)?
    } else {
        let end = value.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (&value[..end], &value[end..])
    };
    let body = rest.trim_start().strip_prefix("=>")?;
    Some((parameters(list), body))
}

fn parameters(list: &str) -> Parameters {
    let list = list.trim();
    match list.strip_prefix('{') {
        None if list.is_empty() => Parameters::Named(Vec::new()),
        None => Parameters::Whole(list.into()),
        Some(inner) => {
            let inner = inner.split('}').next().unwrap_or_default();
            let names = inner.split(',').map(str::trim).filter(|n| !n.is_empty());
            let named = names.map(|item| match item.split_once('=') {
                Some((name, default)) => (name.trim().into(), Some(default.trim().into())),
                None => (item.into(), None),
            });
            Parameters::Named(named.collect())
        }
    }
}

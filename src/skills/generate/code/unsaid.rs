//! What code leaves out: values that other code of the page makes, and gaps for the reader to fill.

use std::collections::HashSet;

use super::Block;
use super::line::{is_import, is_remark};
use crate::skills::generate::role::{has, normal};

/// Values that every program in these languages has.
const GIVEN: [&str; 28] = [
    "Array",
    "Bun",
    "Deno",
    "URL",
    "bytes",
    "dict",
    "int",
    "performance",
    "str",
    "Buffer",
    "Date",
    "JSON",
    "Math",
    "Number",
    "Object",
    "Promise",
    "Response",
    "String",
    "console",
    "crypto",
    "document",
    "globalThis",
    "localStorage",
    "module",
    "process",
    "self",
    "this",
    "window",
];
/// Marks of a gap.
const GAPS: [&str; 4] = ["[...]", "(...)", "{...}", "{ ... }"];
/// Words of a remark about other code that comes before.
const CONTINUES: [&str; 8] = [
    "assume",
    "assumes",
    "assuming",
    "from above",
    "defined above",
    "created above",
    "from the previous",
    "as before",
];
/// Words of these languages that are no names of values.
const WORDS: [&str; 12] = [
    "False",
    "None",
    "True",
    "async",
    "await",
    "false",
    "new",
    "null",
    "return",
    "true",
    "typeof",
    "undefined",
];
/// Beginnings of statements that declare names.
const DECLARES: [&str; 4] = ["const ", "let ", "var ", "export const "];
/// The languages whose code is read, and in which a value is made before it is used.
const READ: [&str; 2] = ["python", "ts"];

// === impl Block ===

impl<'d> Block<'d> {
    /// Returns whether the code has gaps that the reader must fill before it runs, or says that it
    /// continues other code.
    pub(in crate::skills::generate) fn has_gaps(&self) -> bool {
        let is_gap = |line: &str| match is_remark(line.trim()) {
            true => has(&normal(line), &CONTINUES),
            false => GAPS.iter().any(|gap| line.contains(gap)),
        };
        self.is_program() && self.code.lines().any(is_gap)
    }

    /// Returns whether the code passes a value that it neither makes nor imports: `key` of
    /// `client.get(key)`.
    pub(in crate::skills::generate) fn passes_unmade(&self) -> bool {
        if !READ.iter().any(|language| self.is_in(language)) {
            return false;
        }
        let statements = statements(self.code);
        let made: HashSet<&str> = statements.iter().flat_map(|one| made(one)).collect();
        statements.iter().any(|one| {
            names(one).any(|(name, after)| {
                let before = one[..one.len() - after.len() - name.len()].trim_end();
                let is_passed = before.ends_with(['(', ',', '{', '[', ':'])
                    && after.trim_start().starts_with([',', ')', '}', ']']);
                let is_known =
                    made.contains(name) || GIVEN.contains(&name) || WORDS.contains(&name);
                is_passed && !is_known
            })
        })
    }

    /// Returns the name of a value whose methods the code calls, but which the code neither makes nor
    /// imports nor gets: `client` of `client.pay(1)`.
    pub(in crate::skills::generate) fn unsaid(&self) -> Option<&'d str> {
        if !READ.iter().any(|language| self.is_in(language)) {
            return None;
        }
        let lines = self.code.lines().map(str::trim);
        let lines: Vec<&'d str> = lines.filter(|line| !is_remark(line)).collect();
        let calls = lines.iter().filter(|line| !is_import(line));
        let mut called = calls.flat_map(|line| names(line).filter(|(_, after)| is_called(after)));
        let makes = |line: &&&str| !only_enters(line);
        let is_said = |name: &str| {
            let mut all = lines.iter().filter(makes).flat_map(|line| names(line));
            all.any(|(other, after)| other == name && !after.starts_with(['.', '?']))
        };
        let is_unsaid = |name: &&str| !GIVEN.contains(name) && !is_said(name);
        called.find_map(|(name, _)| Some(name).filter(is_unsaid))
    }
}

/// Returns the code with each import and each declaration on one line, without remarks and without what
/// is between quotes.
fn statements(code: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut open = false;
    for line in code.lines().map(str::trim) {
        if line.is_empty() || is_remark(line) {
            continue;
        }
        let line = without_texts(line);
        match out.last_mut().filter(|_| open) {
            Some(last) => {
                last.push(' ');
                last.push_str(&line);
            }
            None => out.push(line),
        }
        let last = out.last().map_or("", |last| &**last);
        let count = |c: char| last.matches(c).count();
        let starts = is_import(last) || DECLARES.iter().any(|start| last.starts_with(start));
        open = starts && (count('{') > count('}') || count('(') > count(')'));
    }
    out
}

/// Returns a line without the text between quotes and without the remark at its end.
fn without_texts(line: &str) -> String {
    let mut out = String::new();
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => continue,
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, _) => {}
        }
        out.push(c);
    }
    let end = [" // ", " # "]
        .iter()
        .filter_map(|mark| out.find(mark))
        .min();
    out.truncate(end.unwrap_or(out.len()));
    out
}

/// Returns the names that a statement makes: those it imports or declares, and the parameters of a
/// function.
fn made(statement: &str) -> Vec<&str> {
    let has_parameters = ["=>", "function", "def ", "lambda ", "for ", "catch", " as "];
    let is_declared = DECLARES.iter().any(|start| statement.starts_with(start));
    if is_import(statement) || has_parameters.iter().any(|mark| statement.contains(mark)) {
        return names(statement).map(|(name, _)| name).collect();
    }
    let left = statement.split_once('=').map_or("", |(left, _)| left);
    let assigns = names(statement).filter(|(_, after)| {
        let after = after.trim_start();
        after.starts_with('=') && !after.starts_with("==")
    });
    let assigns = assigns.map(|(name, _)| name);
    match is_declared {
        true => names(left).map(|(name, _)| name).chain(assigns).collect(),
        false => assigns.collect(),
    }
}

/// Lists the names in a line that are no parts of others, each with the text after it.
fn names(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut rest = 0;
    std::iter::from_fn(move || {
        loop {
            let start = rest + line[rest..].find(inside)?;
            let tail = &line[start..];
            let end = start + tail.find(|c| !inside(c)).unwrap_or(tail.len());
            rest = end;
            let before = line[..start].chars().next_back();
            let is_first = tail.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$');
            let is_part = before.is_some_and(|c| matches!(c, '.' | '"' | '\'' | '/' | '-' | '@'));
            let is_spread = line[..start].ends_with("...");
            if is_first && (!is_part || is_spread) {
                return Some((&line[start..end], &line[end..]));
            }
        }
    })
}

/// Returns whether a line only enters a value that other code has made: `async with client:`.
fn only_enters(line: &str) -> bool {
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.starts_with("with ") && !line.contains(" as ") && !line.contains('(')
}

/// Returns whether the text after a name calls a method of it: `.pay(1)`, `.charges.create(…)`.
fn is_called(after: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let end = after.find(|c| !inside(c)).unwrap_or(after.len());
    after.starts_with('.') && end > 1 && after[end..].starts_with('(')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_code_does_not_make_are_found() {
        let unsaid = |language: &str, code: &str| {
            let block = Block::of(language, code, "");
            block.unsaid().map(str::to_owned)
        };
        for (language, code, name) in [
            ("python", "import acme\nr = client.pay(1)", "client"),
            ("python", "x = grpc.channel()\nr = stub.Method(x)", "grpc"),
            ("ts", "const a = await redis.bits.count(1)", "redis"),
            (
                "python",
                "from acme import E\nasync with client:\n  await client.pay(1)",
                "client",
            ),
        ] {
            assert_eq!(unsaid(language, code).as_deref(), Some(name), "{code}");
        }
        for (language, code) in [
            (
                "python",
                "import os\nfrom acme import Box as B\nos.getenv('A')\nB.create()",
            ),
            (
                "python",
                "with Box() as box:\n  box.run(\"a\")\nfrom acme import Box",
            ),
            (
                "ts",
                "import { Box } from 'a'\nconst box = await Box.create()\nbox.run()",
            ),
            ("ts", "export function pay(client) {\n  client.pay(1)\n}"),
            ("ts", "console.log(JSON.stringify({ a: 1 }))"),
            (
                "ts",
                "const r = await fetch('https://docs.acme.test/pay(1)')\nr.json()",
            ),
            ("go", "client.Pay(1)"),
        ] {
            assert_eq!(unsaid(language, code), None, "{code}");
        }
    }

    #[test]
    fn a_value_that_the_code_passes_is_made_or_imported() {
        let passes = |language, code| Block::of(language, code, "").passes_unmade();
        for (language, code) in [
            (
                "ts",
                "import { Acme } from 'a'\nconst acme = new Acme()\nawait acme.get(key)",
            ),
            (
                "ts",
                "import { tools } from 'a'\nawait tools({ userId, model: \"a, b, c\" })",
            ),
            ("python", "from acme import Box\nBox.run(code, 1)"),
        ] {
            assert!(passes(language, code), "{code}");
        }
        for (language, code) in [
            (
                "ts",
                "import {\n  Acme,\n  Box,\n} from 'a'\nconst { a, b } = new Acme({ box: Box })\nrun(a, b, true)",
            ),
            (
                "ts",
                "import { run } from 'a'\nlist.map((one) => run(one))\nrun('a, b, c') // (x)",
            ),
            (
                "python",
                "from a import run\nkey = 1\ndef pay(a, b):\n  return run(a, b)\nrun(key, name=key)\nfor x in run(key):\n  run(x)",
            ),
            ("go", "acme.Pay(key)"),
        ] {
            assert!(!passes(language, code), "{code}");
        }
    }

    #[test]
    fn gaps_are_told_from_rests() {
        let has_gaps = |code| Block::of("ts", code, "").has_gaps();
        assert!(has_gaps("index.upsert({ vector: [...], id: 1 })"));
        assert!(has_gaps("// Assumes the app from above\nrun(app)"));
        assert!(!has_gaps(
            "const all = [...one, 2]\nrun(...all)\n// [...] above 1"
        ));
    }
}

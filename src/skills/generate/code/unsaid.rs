//! What code leaves out: values that other code of the page makes, and gaps for the reader to fill.

use super::Block;
use super::line::{is_import, is_remark};

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
/// The languages whose code is read, and in which a value is made before it is used.
const READ: [&str; 2] = ["python", "ts"];

// === impl Block ===

impl<'d> Block<'d> {
    /// Returns whether the code has gaps that the reader must fill before it runs.
    pub(in crate::skills::generate) fn has_gaps(&self) -> bool {
        let mut lines = self.code.lines().filter(|line| !is_remark(line.trim()));
        self.is_program() && lines.any(|line| GAPS.iter().any(|gap| line.contains(gap)))
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
        let is_said = |name: &str| {
            let mut all = lines.iter().flat_map(|line| names(line));
            all.any(|(other, after)| other == name && !after.starts_with(['.', '?']))
        };
        let is_unsaid = |name: &&str| !GIVEN.contains(name) && !is_said(name);
        called.find_map(|(name, _)| Some(name).filter(is_unsaid))
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
    fn gaps_are_told_from_rests() {
        let has_gaps = |code| Block::of("ts", code, "").has_gaps();
        assert!(has_gaps("index.upsert({ vector: [...], id: 1 })"));
        assert!(!has_gaps("const all = [...one, 2]\nrun(...all)\n// [...]"));
    }
}

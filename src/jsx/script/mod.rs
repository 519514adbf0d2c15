//! JavaScript in pages: parsed by the crate `oxc`, within limits.
//!
//! `oxc` reads ECMAScript with JSX and TypeScript. It is a recursive parser: deep source needs
//! much stack. [`nesting::bound`] finds before parsing how deep a source can be at most; a
//! source over [`NESTING_MAX`] is not parsed, and for the others the stack grows as far as the
//! bound demands. Nothing here runs the code.
//!
//! Sources: ECMA-262 (2025); JSX; TypeScript 5.

mod nesting;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Expression, Program};
use oxc_parser::{Parser, ParserReturn};
use oxc_span::SourceType;

/// How deep brackets, tags and operators of one expression or statement may be nested in each
/// other.
pub const NESTING_MAX: usize = 8192;
/// How many bytes of JavaScript are parsed for one page; code inside of code counts each time
/// that it is parsed.
pub const BYTES_MAX: usize = 8 << 20;
/// How many bytes of stack one level needs; the largest that was measured is 2000.
const LEVEL_BYTES: usize = 8 << 10;
/// How many bytes of stack parsing needs besides its levels.
const BASE_BYTES: usize = 128 << 10;

/// The reason why a source was not parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The mistake, without a full stop.
    pub message: String,
    /// The byte of the source with the mistake.
    pub at: usize,
}

/// Parses an expression, which may end with semicolons.
///
/// # Errors
///
/// [`Broken`] when the source is not an expression.
pub fn expression<'a>(allocator: &'a Allocator, source: &'a str) -> Result<Expression<'a>, Broken> {
    let source = source.trim_end().trim_end_matches(';');
    within_stack(source, || {
        let parser = Parser::new(allocator, source, SourceType::tsx());
        parser.parse_expression().map_err(|found| {
            let first = found.first();
            let label = first.and_then(|first| first.labels.first());
            let message = first.map(|first| &*first.message);
            Broken::new(message, label.map(|label| label.span().start))
        })
    })
}

/// Parses the statements of a module. `.ts` is the only kind of file without JSX.
///
/// # Errors
///
/// [`Broken`] when the source is not a module.
pub fn module<'a>(
    allocator: &'a Allocator,
    source: &'a str,
    file: &str,
) -> Result<Program<'a>, Broken> {
    let kind = match file.ends_with(".ts") {
        true => SourceType::ts(),
        false => SourceType::tsx(),
    };
    within_stack(source, || {
        let parsed = Parser::new(allocator, source, kind).parse();
        Broken::of(&parsed).map_or(Ok(parsed.program), Err)
    })
}

/// Calls a function with the stack that reading a source may need.
///
/// # Errors
///
/// [`Broken`] when the source is over [`NESTING_MAX`], or what the function returns.
pub(super) fn within_stack<R>(
    source: &str,
    parse: impl FnOnce() -> Result<R, Broken>,
) -> Result<R, Broken> {
    let depth = nesting::bound(source);
    if depth > NESTING_MAX {
        return Err(Broken {
            message: format!(
                "brackets, tags and operators are nested more than {NESTING_MAX} levels deep"
            ),
            at: 0,
        });
    }
    let bytes = BASE_BYTES + depth * LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes, parse)
}

// === impl Broken ===

impl Broken {
    /// Returns the first mistake that the parser found.
    pub(super) fn of(parsed: &ParserReturn<'_>) -> Option<Self> {
        if parsed.diagnostics.is_empty() && !parsed.panicked {
            return None;
        }
        let first = parsed.diagnostics.first();
        let label = first.and_then(|first| first.labels.first());
        let message = first.map(|first| &*first.message);
        Some(Self::new(message, label.map(|label| label.span().start)))
    }

    fn new(message: Option<&str>, at: Option<u32>) -> Self {
        let mut letters = message.unwrap_or("this cannot be parsed").chars();
        let start = letters.next().map(|letter| letter.to_ascii_lowercase());
        Self {
            message: start.into_iter().chain(letters).collect(),
            at: at.unwrap_or(0) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses on a thread with the stack that threads have by default.
    fn parse(source: String) -> Result<(), String> {
        let parse = move || {
            let allocator = Allocator::default();
            let as_expression = expression(&allocator, &source).map(drop);
            let as_module = module(&allocator, &source, "a.tsx").map(drop);
            as_expression.or(as_module).map_err(|broken| broken.message)
        };
        std::thread::spawn(parse).join().unwrap()
    }

    #[test]
    fn no_depth_overflows_the_stack() {
        let pieces = [
            ("(", "a", ")"),
            ("[", "", "]"),
            ("({a:", "1", "})"),
            ("<a>", "", "</a>"),
            ("<a b=", "<c/>", "/>"),
            ("{<a>", "", "</a>}"),
            ("!", "a", ""),
            ("- ", "a", ""),
            ("-/*a*/", "a", ""),
            ("typeof ", "a", ""),
            ("a=>", "a", ""),
            ("a?b:", "c", ""),
            ("a?", "b", ":c"),
            ("a=", "b", ""),
            ("a**", "b", ""),
            ("`${", "a", "}`"),
            ("(function*(){yield ", "", "})"),
            ("new ", "a", ""),
            ("a(", "b", ")"),
            ("a<", "b", ">"),
            ("a<b,", "b", ">"),
            ("if(a)", "b", ""),
            ("if(a);else ", "b", ""),
            ("if(a){}else ", "b", ""),
            ("do ", "a", ""),
            ("{", "a", "}"),
            ("a:", "b", ""),
            ("a:/**/", "b", ""),
            ("class{a=", "1", "}"),
            ("type A=B<", "c", ">"),
            ("let a:keyof ", "b", ""),
            ("namespace a.", "b", "{}"),
            ("let a:b.", "b", ""),
            ("<a.b.", "c/>", ""),
            ("a?.5:", "b", ""),
            ("typeof\u{a0}", "a", ""),
            ("//\u{2028}(", "a", ")"),
            ("a,<b>'", "", "'</b>"),
            ("/[/]", "/", ""),
        ];
        for (open, inner, close) in pieces {
            for count in [100, 1000, 4000, NESTING_MAX, 100_000] {
                let source = open.repeat(count) + inner + &close.repeat(count);
                // Without the bound, the process would end here.
                let _answer = parse(source);
            }
        }
        let deep = parse("[".repeat(NESTING_MAX + 1)).unwrap_err();
        assert!(deep.contains("8192 levels deep"), "{deep}");
    }

    #[test]
    fn long_data_is_not_deep() {
        let row = "{ name: \"it's [{(\", url: 'https://a.example/b', list: [1, 2, a ? b : c] },\n";
        let source = format!("[{}]", row.repeat(20_000));
        assert!(nesting::bound(&source) < 20, "{}", nesting::bound(&source));
        assert_eq!(parse(source), Ok(()));
    }

    #[test]
    fn a_mistake_is_named_at_its_byte() {
        let allocator = Allocator::default();
        let broken = expression(&allocator, "a b").unwrap_err();
        assert_eq!((&*broken.message, broken.at), ("unexpected token", 2));
    }
}

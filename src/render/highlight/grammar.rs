//! The grammars, with the rules of a context in one list.
//!
//! `two-face` carries the grammars of Sublime Text that `bat` ships, linked into one set by
//! `syntect`. A context of the set includes other contexts, and names the contexts that follow a
//! match. Here the included rules are copied into one list the first time that a context is
//! entered, and each rule compiles its expression the first time that it is tried. Contexts live as
//! long as the process, like the set that they refer to.
//!
//! Sources: the `.sublime-syntax` format, `syntect::parsing` 5.3.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use onig::{MatchParam, Regex, RegexOptions, Region, SearchOptions, Syntax};
use serde::Deserialize as _;
use serde_json::{Value, json};
use syntect::parsing::syntax_definition::{
    Context as Definition, ContextId, ContextReference, MatchOperation, MatchPattern, context_iter,
};
use syntect::parsing::{ClearAmount, Scope, SyntaxSet};

/// How often an expression may backtrack at one position of a line before it counts as not
/// matching. The expressions of the grammars need a few hundred on real code.
const BACKTRACKS_MAX: u32 = 10_000;
/// How often a search may backtrack at all positions together. A search that needs more begins
/// again with the next number, so its cost is known within a factor; after the last one it counts
/// as not matching.
const SEARCH_BACKTRACKS: [u32; 4] = [256, 2_048, 16_384, 131_072];

/// A context: the rules that are tried at a position of the code.
pub(super) struct Context {
    id: ContextId,
    pub(super) meta_scope: &'static [Scope],
    pub(super) meta_content_scope: &'static [Scope],
    pub(super) clear_scopes: Option<ClearAmount>,
    /// The context whose rules are tried first.
    prototype: OnceLock<Option<&'static Context>>,
    /// Whether a rule refers to the groups of the match that led here.
    pub(super) uses_backrefs: bool,
    definition: &'static Definition,
    rules: Vec<&'static Rule>,
}

/// The prepared part of the set.
#[derive(Default)]
struct Prepared {
    contexts: HashMap<ContextId, &'static Context>,
    /// Rules by the address of their pattern. Contexts that include each other share rules.
    rules: HashMap<usize, &'static Rule>,
}

/// A rule: an expression, and the contexts that follow its match.
pub(super) struct Rule {
    pub(super) pattern: &'static MatchPattern,
    pub(super) operation: Operation,
    regex: OnceLock<Option<Regex>>,
    targets: OnceLock<Vec<&'static Context>>,
    with_prototype: OnceLock<Option<&'static Context>>,
}

/// The error of a search that backtracks more often than the limit.
#[derive(Debug)]
pub(super) struct SearchLimit;

/// The result of a search.
pub(super) struct Searched {
    pub(super) found: Result<Option<Region>, SearchLimit>,
    /// How often it has backtracked, at least.
    pub(super) backtracks: usize,
}

/// The change of the stack of contexts by a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Pushes the targets.
    Push,
    /// Replaces the topmost context by the targets.
    Set,
    /// Removes the topmost context.
    Pop,
    /// Changes nothing.
    Stay,
}

fn set() -> &'static SyntaxSet {
    static SET: OnceLock<SyntaxSet> = OnceLock::new();
    SET.get_or_init(two_face::syntax::extra_newlines)
}

/// Returns the context that the code of a language begins in; `None` when there is no
/// grammar of that name.
pub(super) fn start(token: &str) -> Option<&'static Context> {
    let grammar = set().find_syntax_by_token(token)?;
    let mut grammars = set().syntaxes().iter();
    let number = grammars.position(|known| std::ptr::eq(known, grammar))?;
    // syntect does not publish the identity of the first context. It is the only context
    // whose one rule is the empty expression, which pushes the context `main`.
    let is_start = |definition: &Definition| {
        definition.meta_content_scope == [grammar.scope]
            && definition.patterns.len() == 1
            && definition.match_at(0).is_ok_and(|rule| {
                rule.regex().regex_str().is_empty()
                    && matches!(rule.operation, MatchOperation::Push(_))
            })
    };
    let mut ids = (0..).map_while(|context| {
        let id = ContextId::deserialize(json!({"syntax_index": number, "context_index": context}));
        let id = id.ok()?;
        Some((id, definition(id)?))
    });
    let (id, _) = ids.find(|(_, definition)| is_start(definition))?;
    context(id)
}

/// Finds the definition of a context in the set.
fn definition(id: ContextId) -> Option<&'static Definition> {
    let id = serde_json::to_value(id).ok()?;
    let reference = Value::Object([("Direct".to_owned(), id)].into_iter().collect());
    let reference = ContextReference::deserialize(reference).ok()?;
    reference.resolve(set()).ok()
}

/// Returns a context, preparing it when it is entered first.
fn context(id: ContextId) -> Option<&'static Context> {
    static PREPARED: Mutex<Option<Prepared>> = Mutex::new(None);
    let mut prepared = PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
    let prepared = prepared.get_or_insert_default();
    if let Some(known) = prepared.contexts.get(&id) {
        return Some(known);
    }
    let definition = definition(id)?;
    let mut rules = Vec::new();
    for (holder, at) in context_iter(set(), definition) {
        let pattern = holder.match_at(at).ok()?;
        let rule = prepared.rules.entry(std::ptr::from_ref(pattern).addr());
        rules.push(*rule.or_insert_with(|| Box::leak(Box::new(Rule::of(pattern)))));
    }
    let context: &Context = Box::leak(Box::new(Context::of(id, definition, rules)));
    prepared.contexts.insert(id, context);
    Some(context)
}

// === impl Context ===

impl Context {
    fn of(id: ContextId, definition: &'static Definition, rules: Vec<&'static Rule>) -> Self {
        Self {
            id,
            meta_scope: &definition.meta_scope,
            meta_content_scope: &definition.meta_content_scope,
            clear_scopes: definition.clear_scopes,
            prototype: OnceLock::new(),
            uses_backrefs: definition.uses_backrefs,
            definition,
            rules,
        }
    }

    pub(super) fn rules(&self) -> &[&'static Rule] {
        &self.rules
    }

    pub(super) fn prototype(&self) -> Option<&'static Self> {
        *self
            .prototype
            .get_or_init(|| self.definition.prototype.and_then(context))
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.id.fmt(f)
    }
}

// === impl Rule ===

impl Rule {
    fn of(pattern: &'static MatchPattern) -> Self {
        Self {
            pattern,
            operation: match pattern.operation {
                MatchOperation::Push(_) => Operation::Push,
                MatchOperation::Set(_) => Operation::Set,
                MatchOperation::Pop => Operation::Pop,
                MatchOperation::None => Operation::Stay,
            },
            regex: OnceLock::new(),
            targets: OnceLock::new(),
            with_prototype: OnceLock::new(),
        }
    }

    /// Returns the contexts that a match pushes or sets.
    pub(super) fn targets(&self) -> &[&'static Context] {
        self.targets.get_or_init(|| match &self.pattern.operation {
            MatchOperation::Push(targets) | MatchOperation::Set(targets) => {
                targets.iter().filter_map(resolved).collect()
            }
            MatchOperation::Pop | MatchOperation::None => Vec::new(),
        })
    }

    /// Returns the context whose rules are tried first in the last target and all that it
    /// leads to.
    pub(super) fn with_prototype(&self) -> Option<&'static Context> {
        *self
            .with_prototype
            .get_or_init(|| self.pattern.with_prototype.as_ref().and_then(resolved))
    }

    /// Searches a line from a position on.
    pub(super) fn search(&self, line: &str, from: usize) -> Searched {
        let regex = self
            .regex
            .get_or_init(|| compile(self.pattern.regex().regex_str()));
        search(regex.as_ref(), line, from)
    }

    /// Searches as [`search`](Self::search), with the groups of an earlier match in the
    /// places of the expression that refer to them.
    pub(super) fn search_with(
        &self,
        groups: &[Option<Box<str>>],
        line: &str,
        from: usize,
    ) -> Searched {
        let expression = substitute(self.pattern.regex().regex_str(), groups);
        search(compile(&expression).as_ref(), line, from)
    }
}

fn resolved(reference: &ContextReference) -> Option<&'static Context> {
    context(reference.id().ok()?)
}

fn compile(expression: &str) -> Option<Regex> {
    Regex::with_options(
        expression,
        RegexOptions::REGEX_OPTION_CAPTURE_GROUP,
        Syntax::default(),
    )
    .ok()
}

/// Searches a line; an expression that cannot be compiled matches nothing.
fn search(regex: Option<&Regex>, line: &str, from: usize) -> Searched {
    let mut backtracks = 0;
    let mut found = Ok(None);
    for backtracks_max in SEARCH_BACKTRACKS {
        let Some(regex) = regex else { break };
        let mut region = Region::with_capacity(8);
        let searched = regex.search_with_param(
            line,
            from,
            line.len(),
            SearchOptions::SEARCH_OPTION_NONE,
            Some(&mut region),
            bounds(backtracks_max),
        );
        match searched {
            Ok(place) => {
                found = Ok(place.map(|_| region));
                break;
            }
            Err(error) => {
                found = Err(SearchLimit);
                backtracks += backtracks_max as usize;
                if error.code() != onig_sys::ONIGERR_RETRY_LIMIT_IN_SEARCH_OVER {
                    break;
                }
            }
        }
    }
    Searched { found, backtracks }
}

#[expect(unsafe_code, reason = "a function of Oniguruma, which is written in C")]
fn bounds(backtracks_max: u32) -> MatchParam {
    let mut bounds = MatchParam::default();
    bounds.set_retry_limit_in_match(BACKTRACKS_MAX);
    // SAFETY: `bounds` owns the value that the pointer leads to, and only this function uses it.
    unsafe {
        onig_sys::onig_set_retry_limit_in_search_of_match_param(
            bounds.as_raw(),
            backtracks_max.into(),
        );
    }
    bounds
}

/// Replaces `\1` to `\9` of an expression by the text of the groups.
fn substitute(expression: &str, groups: &[Option<Box<str>>]) -> String {
    let mut out = String::with_capacity(expression.len());
    let mut characters = expression.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let escaped = characters.next();
        match escaped.and_then(|escaped| escaped.to_digit(10)) {
            Some(number) => {
                let group = groups.get(number as usize).and_then(Option::as_deref);
                for c in group.unwrap_or_default().chars() {
                    if c.is_ascii_punctuation() {
                        out.push('\\');
                    }
                    out.push(c);
                }
            }
            None => {
                out.push('\\');
                out.extend(escaped);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grammar_has_the_context_that_code_begins_in() {
        for grammar in set().syntaxes() {
            let Some(extension) = grammar.file_extensions.first() else {
                continue;
            };
            assert!(start(extension).is_some(), "{}", grammar.name);
        }
    }

    #[test]
    fn groups_are_put_into_an_expression_as_text() {
        let groups = [None, Some("a.b".into()), None];
        assert_eq!(substitute(r"^\1\s\\1\2\w$", &groups), r"^a\.b\s\\1\w$");
    }

    #[test]
    fn a_search_with_too_many_backtracks_ends() {
        let regex = compile(r"(a|aa)+$");
        let line = format!("{}b", "a".repeat(60));
        let found = |line: &str| search(regex.as_ref(), line, 0).found;
        assert!(matches!(found(&line), Err(SearchLimit)));
        assert!(matches!(found("aaa"), Ok(Some(_))));
    }

    #[test]
    fn the_backtracks_at_all_positions_together_are_counted_and_limited() {
        // Few at each position. The second set is a part of the first one: otherwise Oniguruma sees
        // that no backtrack can help.
        let regex = compile(r"[\w.]+[xy]!");
        let backtracks = |length: usize| {
            let line = "a.".repeat(length / 2) + " x!";
            let Searched { found, backtracks } = search(regex.as_ref(), &line, 0);
            (found.is_err(), backtracks)
        };
        assert_eq!(backtracks(10), (false, 0));
        // 60 * 60 / 2 of them.
        assert_eq!(backtracks(60), (false, 256));
        assert_eq!(backtracks(1900), (true, 256 + 2_048 + 16_384 + 131_072));
    }
}

//! The state of a grammar between two lines, and how a line changes it.
//!
//! The state is a stack of contexts. At each position all rules of the topmost context are tried,
//! and the earliest match is used. If two matches begin at the same position, the match of the
//! earlier rule is used. A match gives scopes to its text, and may push contexts, replace the
//! topmost or pop it.
//!
//! **Bounds.** A match may be empty, so contexts can lead to each other at one position for ever:
//! the JavaScript grammar does at the comment of `foo`, newline, `  /* x */`. Two rules end every
//! line after a number of steps that depends only on the line:
//!
//! * At one position at most [`EMPTY_MATCHES_MAX`] matches in a row are empty. After that only a
//!   match that contains text is used there.
//! * A line costs at most [`LINE_COST_MAX`]. If a line costs more, its whole block of code has no
//!   colours. The lines of a page cost at most
//!   [`PAGE_COST_MAX`](super::PAGE_COST_MAX) together.
//!
//! Sources: the `.sublime-syntax` format; the rules of Sublime Text for a pop that undoes
//! an empty push.

use std::collections::HashMap;
use std::rc::Rc;

use onig::Region;
use syntect::parsing::{Scope, ScopeStackOp};

use super::grammar::{Context, Operation, Rule, SearchLimit};

/// How many matches in a row may be empty at one position. Grammars need up to about 20.
const EMPTY_MATCHES_MAX: usize = 60;
/// The highest cost of a line. Each rule that is tried costs one; each search costs [`SEARCH_COST`],
/// one for each byte that it passes and one for every [`BACKTRACKS`] times that it backtracks.
///
/// The most expensive line in 28,600 examples of public documentation costs 225,000.
pub(super) const LINE_COST_MAX: usize = 2_000_000;
/// The cost of a search, in addition to the bytes that it passes.
const SEARCH_COST: usize = 16;
/// How many backtracks cost as much as a byte that is passed.
const BACKTRACKS: usize = 4;
/// The additional cost of a search for which an expression is compiled.
const COMPILE_COST: usize = 2_000;
/// The additional cost of a search that is stopped at its limit.
const GIVEN_UP_COST: usize = 50_000;
/// How many contexts the stack may have.
const STACK_MAX: usize = 100;

/// The state of a grammar between two lines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    stack: Vec<Level>,
    /// The heights of the stack above which the rules of `with_prototype` no longer apply.
    prototype_floors: Vec<usize>,
    is_first_line: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Level {
    context: &'static Context,
    /// The contexts of `with_prototype` that apply from here up.
    prototypes: Vec<&'static Context>,
    /// The groups of the match that led here, when a rule refers to them.
    groups: Option<Rc<[Option<Box<str>>]>>,
}

/// The best match at a position.
struct BestMatch {
    rule: &'static Rule,
    region: Region,
    /// Whether the rule is one of `with_prototype`.
    of_prototype: bool,
    /// Whether it pops a state that was pushed at this position.
    undoes_push: bool,
}

/// A line that is being read.
struct Line<'l> {
    text: &'l str,
    /// The next match of each rule, by the rule's address.
    matches: HashMap<usize, Option<Region>, foldhash::fast::FixedState>,
    cost: usize,
}

/// The error of a line that costs more than the limit.
pub(super) struct TooCostly;

// === impl State ===

impl State {
    /// Returns the state before the first line.
    pub(super) fn new(start: &'static Context) -> Self {
        Self {
            stack: vec![Level {
                context: start,
                prototypes: Vec::new(),
                groups: None,
            }],
            prototype_floors: Vec::new(),
            is_first_line: true,
        }
    }

    /// Reads a line, and returns the changes of the scopes with their positions, in order.
    ///
    /// Adds what the line costs to `cost`.
    pub(super) fn line(
        &mut self,
        text: &str,
        cost: &mut usize,
    ) -> Result<Vec<(usize, ScopeStackOp)>, TooCostly> {
        let mut line = Line {
            text,
            matches: HashMap::default(),
            cost: 0,
        };
        let changes = self.read(&mut line);
        *cost += line.cost;
        changes
    }

    fn read(&mut self, line: &mut Line<'_>) -> Result<Vec<(usize, ScopeStackOp)>, TooCostly> {
        let text = line.text;
        let mut changes = Vec::new();
        if std::mem::take(&mut self.is_first_line) {
            push(&mut changes, 0, self.top().context.meta_content_scope);
        }
        let mut at = 0;
        let mut empty_matches = 0;
        // The position of the last empty match that pushed, and the height of the stack then.
        let mut pushed = None;
        loop {
            while self.prototype_floors.last() >= Some(&self.stack.len()) {
                self.prototype_floors.pop();
            }
            let after_push = pushed == Some((at, self.stack.len()));
            let must_take = empty_matches >= EMPTY_MATCHES_MAX;
            let Some(found) = self.best(line, at, after_push, must_take)? else {
                return Ok(changes);
            };
            if found.undoes_push {
                // The next position is tried in the context that was pushed.
                let mut next = text[at..].char_indices().skip(1);
                let Some((length, _)) = next.next() else {
                    return Ok(changes);
                };
                at += length;
                empty_matches = 0;
                continue;
            }
            let (_, end) = found.span();
            if end > at {
                empty_matches = 0;
            } else {
                empty_matches += 1;
                if found.rule.operation == Operation::Push {
                    pushed = Some((end, self.stack.len() + 1));
                }
            }
            at = end;
            if found.of_prototype {
                self.prototype_floors.push(self.stack.len());
            }
            scopes(self.top().context, &found, &mut changes);
            self.go(text, &found);
        }
    }

    fn top(&self) -> &Level {
        self.stack.last().expect("the first context is not popped")
    }

    /// Finds the earliest match; at the same position, the match of the first rule.
    fn best(
        &self,
        line: &mut Line<'_>,
        at: usize,
        after_push: bool,
        must_take: bool,
    ) -> Result<Option<BestMatch>, TooCostly> {
        let top = self.top();
        let floor = self.prototype_floors.last().copied().unwrap_or(0);
        let levels = self.stack[floor..].iter();
        let inherited = levels.flat_map(|level| {
            let contexts = level.prototypes.iter();
            contexts.map(move |context| (true, *context, level.groups.as_deref()))
        });
        let prototype = top.context.prototype().into_iter();
        let prototype = prototype.map(|context| (false, context, None));
        let own = (false, top.context, top.groups.as_deref());
        let mut best: Option<(usize, BestMatch)> = None;
        for (of_prototype, context, groups) in inherited.chain(prototype).chain([own]) {
            for &rule in context.rules() {
                let is_last = self.stack.len() == 1;
                let Some(region) = line.next_match(rule, groups, at, self.stack.len())? else {
                    continue;
                };
                let (start, end) = region.pos(0).unwrap_or((at, at));
                if must_take && end == at || is_last && rule.operation == Operation::Pop {
                    continue;
                }
                let is_better = best.as_ref().is_none_or(|(earliest, found)| {
                    start < *earliest || start == *earliest && found.undoes_push
                });
                if !is_better {
                    continue;
                }
                if rule.operation == Operation::Push && self.stack.len() >= STACK_MAX {
                    return Ok(None);
                }
                let undoes_push = after_push && end == at && rule.operation == Operation::Pop;
                let found = BestMatch {
                    rule,
                    region,
                    of_prototype,
                    undoes_push,
                };
                if start == at && !undoes_push {
                    return Ok(Some(found));
                }
                best = Some((start, found));
            }
        }
        Ok(best.map(|(_, found)| found))
    }

    /// Changes the stack as a match says.
    fn go(&mut self, line: &str, found: &BestMatch) {
        let mut inherited = match found.rule.operation {
            Operation::Stay => return,
            Operation::Push => Vec::new(),
            Operation::Pop => {
                self.stack.pop();
                return;
            }
            // `with_prototype` stays until the level that it was set on is popped.
            Operation::Set => self.stack.pop().map_or(Vec::new(), |top| top.prototypes),
        };
        let targets = found.rule.targets();
        for (index, context) in targets.iter().enumerate() {
            let mut prototypes = std::mem::take(&mut inherited);
            if index + 1 == targets.len() {
                prototypes.extend(found.rule.with_prototype());
            }
            let uses_groups = |context: &&Context| context.uses_backrefs;
            let uses_groups = uses_groups(context) || prototypes.iter().any(uses_groups);
            self.stack.push(Level {
                context,
                prototypes,
                groups: uses_groups.then(|| found.groups(line)),
            });
        }
    }
}

// === impl Found ===

impl BestMatch {
    fn span(&self) -> (usize, usize) {
        self.region.pos(0).expect("a match has a place")
    }

    fn groups(&self, line: &str) -> Rc<[Option<Box<str>>]> {
        let groups = (0..self.region.len()).map(|group| {
            let (start, end) = self.region.pos(group)?;
            Some(line[start..end].into())
        });
        groups.collect()
    }
}

// === impl Line ===

impl Line<'_> {
    /// Returns the next match of a rule that changes something.
    fn next_match(
        &mut self,
        rule: &'static Rule,
        groups: Option<&[Option<Box<str>>]>,
        at: usize,
        height: usize,
    ) -> Result<Option<Region>, TooCostly> {
        self.spend(1)?;
        let address = std::ptr::from_ref(rule).addr();
        match self.matches.get(&address) {
            Some(None) => return Ok(None),
            Some(Some(region)) if region.pos(0).is_some_and(|(start, _)| start >= at) => {
                return Ok(Some(region.clone()));
            }
            _ => {}
        }
        let groups = groups.filter(|_| rule.pattern.has_captures);
        let searched = match groups {
            Some(groups) => {
                self.spend(COMPILE_COST)?;
                rule.search_with(groups, self.text, at)
            }
            None => rule.search(self.text, at),
        };
        self.spend(searched.backtracks / BACKTRACKS)?;
        let region = match searched.found {
            Ok(region) => region,
            Err(SearchLimit) => {
                self.spend(GIVEN_UP_COST)?;
                None
            }
        };
        let place = region.as_ref().and_then(|region| region.pos(0));
        self.spend(SEARCH_COST + place.map_or(self.text.len(), |(_, end)| end) - at)?;
        let changes_something = place.is_none_or(|(start, end)| match rule.operation {
            Operation::Stay => start != end,
            Operation::Push => height < STACK_MAX,
            Operation::Set | Operation::Pop => true,
        });
        if !changes_something {
            return Ok(None);
        }
        if groups.is_none() {
            self.matches.insert(address, region.clone());
        }
        Ok(region)
    }

    fn spend(&mut self, cost: usize) -> Result<(), TooCostly> {
        self.cost += cost;
        match self.cost > LINE_COST_MAX {
            true => Err(TooCostly),
            false => Ok(()),
        }
    }
}

/// Adds the changes that a match makes to the scopes. The scopes of its text and its groups are
/// inside the scopes of its contexts.
fn scopes(current: &Context, found: &BestMatch, changes: &mut Vec<(usize, ScopeStackOp)>) {
    let (start, end) = found.span();
    enter(current, found.rule, start, changes);
    let pattern = found.rule.pattern;
    push(changes, start, &pattern.scope);
    let mut groups = Vec::new();
    for (group, scopes) in pattern.captures.iter().flatten() {
        let Some((start, end)) = found.region.pos(*group) else {
            continue;
        };
        if start == end {
            continue;
        }
        // If two scopes begin together, the outer one comes first. An end comes before a beginning.
        let begin = (start, 1, std::cmp::Reverse(end));
        groups.extend(
            scopes
                .iter()
                .map(|scope| (begin, ScopeStackOp::Push(*scope))),
        );
        let ends = (end, 0, std::cmp::Reverse(end));
        groups.push((ends, ScopeStackOp::Pop(scopes.len())));
    }
    groups.sort_by_key(|(order, _)| *order);
    changes.extend(groups.into_iter().map(|((at, ..), change)| (at, change)));
    pop(changes, end, pattern.scope.len());
    leave(current, found.rule, end, changes);
}

/// Adds the scopes that the text of a match gets from the contexts around it.
fn enter(current: &Context, rule: &Rule, at: usize, changes: &mut Vec<(usize, ScopeStackOp)>) {
    match rule.operation {
        Operation::Stay => {}
        Operation::Pop => pop(changes, at, current.meta_content_scope.len()),
        Operation::Push => {
            for target in rule.targets() {
                clear(changes, at, target);
                push(changes, at, target.meta_scope);
            }
        }
        Operation::Set => {
            if current.clear_scopes.is_some() {
                changes.push((at, ScopeStackOp::Restore));
            }
            for target in rule.targets() {
                push(changes, at, target.meta_scope);
            }
        }
    }
}

/// Adds the scopes that the text after a match gets from the contexts that it led to.
fn leave(current: &Context, rule: &Rule, at: usize, changes: &mut Vec<(usize, ScopeStackOp)>) {
    let is_set = match rule.operation {
        Operation::Stay => return,
        Operation::Pop => {
            pop(changes, at, current.meta_scope.len());
            if current.clear_scopes.is_some() {
                changes.push((at, ScopeStackOp::Restore));
            }
            return;
        }
        Operation::Push => false,
        Operation::Set => true,
    };
    let replaced = match is_set {
        true => current.meta_scope.len() + current.meta_content_scope.len(),
        false => 0,
    };
    let changes_order = |target: &&Context| {
        !target.meta_content_scope.is_empty() || is_set && target.clear_scopes.is_some()
    };
    let targets = rule.targets();
    if replaced == 0 && !targets.iter().copied().any(|target| changes_order(&target)) {
        return;
    }
    let entered: usize = targets.iter().map(|target| target.meta_scope.len()).sum();
    pop(changes, at, entered + replaced);
    for target in targets {
        if is_set {
            clear(changes, at, target);
        }
        push(changes, at, target.meta_scope);
        push(changes, at, target.meta_content_scope);
    }
}

fn push(changes: &mut Vec<(usize, ScopeStackOp)>, at: usize, scopes: &[Scope]) {
    changes.extend(scopes.iter().map(|scope| (at, ScopeStackOp::Push(*scope))));
}

fn pop(changes: &mut Vec<(usize, ScopeStackOp)>, at: usize, count: usize) {
    if count > 0 {
        changes.push((at, ScopeStackOp::Pop(count)));
    }
}

fn clear(changes: &mut Vec<(usize, ScopeStackOp)>, at: usize, context: &Context) {
    if let Some(amount) = context.clear_scopes {
        changes.push((at, ScopeStackOp::Clear(amount)));
    }
}

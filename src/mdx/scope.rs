//! The names that a file, or the body of a component, can use.
//!
//! All scopes of a page are in one list and refer to each other by number, so that a component
//! can see the names of its file without copying them, also those declared after it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::span::Origin;
use super::value::Value;

/// A scope, by its number in [`Scopes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scope(usize);

/// All scopes of a page.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    list: Vec<Names>,
}

/// The names of one scope.
#[derive(Debug, Default)]
struct Names {
    /// The scope around it.
    outer: Option<Scope>,
    values: HashMap<Box<str>, Value>,
    components: HashMap<Box<str>, Arc<Template>>,
    /// Imported names without a value, which were already reported.
    missing: HashSet<Box<str>>,
}

/// A file or an export that is used as a component.
#[derive(Debug)]
pub(super) struct Template {
    /// The file that contains it.
    pub file: Box<str>,
    /// The MDX that it shows.
    pub body: Arc<str>,
    /// Maps the cleaned text of that file to the original.
    pub origin: Arc<Origin>,
    /// The byte of the cleaned text of that file at which the body starts.
    pub at: usize,
    /// How the body names its props.
    pub parameters: Parameters,
    /// The names that are known where it was written; `None` for a whole file.
    pub scope: Option<Scope>,
}

/// How a component names its props.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parameters {
    /// For a whole file: each prop by its own name, and all as `props`.
    Implicit,
    /// `props => …`
    Whole(Box<str>),
    /// `({ title, href = "/", ...rest }) => …`
    Named {
        names: Vec<Parameter>,
        rest: Option<Box<str>>,
    },
}

/// A prop with a name of its own: `{ title: heading = "None" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// The name of the prop.
    pub prop: Box<str>,
    /// The name in the body.
    pub local: Box<str>,
    /// The source of the default, and the byte of the cleaned text of its file.
    pub default: Option<(Box<str>, usize)>,
}

// === impl Scope ===

impl Scope {
    /// Returns whether this is the scope of the page itself, which is the first.
    pub(super) fn is_page(self) -> bool {
        self.0 == 0
    }
}

// === impl Scopes ===

impl Scopes {
    /// Adds a scope.
    pub(super) fn add(&mut self, outer: Option<Scope>) -> Scope {
        self.list.push(Names {
            outer,
            ..Names::default()
        });
        Scope(self.list.len() - 1)
    }

    /// Returns how many scopes there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Removes the scopes that were added after there were `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        self.list.truncate(count);
    }

    fn each(&self, scope: Scope) -> impl Iterator<Item = &Names> {
        let first = self.list.get(scope.0);
        std::iter::successors(first, |names| self.list.get(names.outer?.0))
    }

    /// Returns the value of a name.
    pub(super) fn value(&self, scope: Scope, name: &str) -> Option<&Value> {
        self.each(scope).find_map(|names| names.values.get(name))
    }

    /// Returns the component of a name.
    pub(super) fn component(&self, scope: Scope, name: &str) -> Option<&Arc<Template>> {
        let mut all = self.each(scope);
        all.find_map(|names| names.components.get(name))
    }

    /// Returns the component whose name is the first in the alphabet, of this scope alone.
    pub(super) fn first_component(&self, scope: Scope) -> Option<&Arc<Template>> {
        let components = self.list.get(scope.0)?.components.iter();
        let first = components.min_by(|(one, _), (other, _)| one.cmp(other));
        first.map(|(_, component)| component)
    }

    /// Returns whether a name was reported as missing.
    pub(super) fn is_missing(&self, scope: Scope, name: &str) -> bool {
        self.each(scope).any(|names| names.missing.contains(name))
    }

    pub(super) fn set_value(&mut self, scope: Scope, name: &str, value: Value) {
        self.list[scope.0].values.insert(name.into(), value);
    }

    pub(super) fn set_component(&mut self, scope: Scope, name: &str, component: Arc<Template>) {
        self.list[scope.0].components.insert(name.into(), component);
    }

    pub(super) fn set_missing(&mut self, scope: Scope, name: &str) {
        self.list[scope.0].missing.insert(name.into());
    }
}

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
    /// The names that the modules of the scope declare or import: the engine knows their values.
    declared: HashSet<Box<str>>,
    /// Imported names without a value, which were already reported.
    missing: HashSet<Box<str>>,
    /// The props of a file that is used as a component.
    props: Option<Vec<(Box<str>, Value)>>,
}

/// A Markdown file that is used as a component.
#[derive(Debug)]
pub(super) struct Template {
    /// The file.
    pub file: Box<str>,
    /// Its text after the frontmatter.
    pub body: Arc<str>,
    /// Maps the cleaned text of that file to the original.
    pub origin: Arc<Origin>,
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

    /// Returns whether a module of the scope declares or imports a name.
    pub(super) fn is_declared(&self, scope: Scope, name: &str) -> bool {
        self.each(scope).any(|names| names.declared.contains(name))
    }

    /// Returns the props of the file that the scope belongs to; `None` for a page.
    pub(super) fn props(&self, scope: Scope) -> Option<&[(Box<str>, Value)]> {
        self.list.get(scope.0)?.props.as_deref()
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

    pub(super) fn set_props(&mut self, scope: Scope, props: Vec<(Box<str>, Value)>) {
        self.list[scope.0].props = Some(props);
    }

    pub(super) fn declare(&mut self, scope: Scope, name: &str) {
        self.list[scope.0].declared.insert(name.into());
    }

    pub(super) fn set_missing(&mut self, scope: Scope, name: &str) {
        self.list[scope.0].missing.insert(name.into());
    }
}

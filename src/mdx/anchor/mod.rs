//! The anchors of a page: the names that a link can have after `#`.
//!
//! [`Anchors`] is the only allocator of anchors. It walks the tree of a page in reading
//! order and writes its anchor into each heading, step, tab, accordion, update and field.
//! The HTML writer writes these anchors, and the link check looks them up, so both always
//! agree.
//!
//! An anchor is made from the words of a heading by the rules of the hosted service that most
//! documentation comes from ([`slug()`]), so that existing links keep working. A repeated
//! anchor is numbered from 2: `setup`, `setup-2`, `setup-3`.
//!
//! A place also has *aliases*: the anchor that GitHub makes from the same words, and other
//! names that links in public repositories use. A name that is both an alias of one place and
//! the anchor of another leads to the anchor.
//!
//! Sources: the behaviour of the npm package `@sindresorhus/slugify` 3.0 on percent-encoded
//! words; WHATWG HTML §3.2.6 (`id`).

mod assign;
mod slug;

use std::collections::HashMap;

pub use assign::{of_footnote, of_headings};
pub use slug::{github, slug};

/// The anchor of a place on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The anchor; it is unique on the page.
    pub id: Box<str>,
    /// Other names of the same place; each is unique on the page.
    pub aliases: Vec<Box<str>>,
}

/// The anchors of a page.
#[derive(Clone, Debug, Default)]
pub struct Anchors {
    taken: Names,
    /// The anchors that GitHub would give, to number them as GitHub does.
    github: Names,
    /// Whether a place has an anchor that is only known after a script runs.
    has_unknown: bool,
}

/// A set of names, each assigned once.
#[derive(Clone, Debug, Default)]
struct Names {
    /// The names, and how often each was requested.
    asked: HashMap<Box<str>, u32>,
}

// === impl Anchors ===

impl Anchors {
    /// Returns whether this is the anchor or an alias of a place.
    #[must_use]
    pub fn contains(&self, anchor: &str) -> bool {
        self.taken.asked.contains_key(anchor)
    }

    /// Returns whether the anchor of some place is unknown, because it contains an expression
    /// that was not evaluated.
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        self.has_unknown
    }

    /// Returns all anchors and aliases, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.taken.asked.keys().map(|name| &**name)
    }
}

// === impl Names ===

impl Names {
    /// Takes a name if it is free; returns whether it was.
    fn claim(&mut self, name: &str) -> bool {
        match self.asked.contains_key(name) {
            true => false,
            false => self.asked.insert(name.into(), 1).is_none(),
        }
    }

    /// Takes a name, with a number appended if it is already taken.
    fn take(&mut self, wanted: &str) -> Box<str> {
        let mut name: Box<str> = wanted.into();
        while !self.claim(&name) {
            let count = self.asked.entry(wanted.into()).or_default();
            *count += 1;
            name = format!("{wanted}-{count}").into();
        }
        name
    }
}

#[cfg(test)]
mod tests;

//! The anchors of a page: what a link can name after `#`.
//!
//! There is one allocator of anchors, [`Anchors`]. It walks the tree of a page in the order
//! in which readers see it and writes into each heading, step, tab, accordion, update and
//! field the anchor that it has. HTML writes what stands there, and the check of links looks
//! it up: what is checked is what is written.
//!
//! An anchor is made of the words of a heading as the hosted service does that most
//! documentations come from ([`slug()`]): links that were written for it keep working. A
//! repeated anchor is numbered from 2: `setup`, `setup-2`, `setup-3`.
//!
//! Beside its anchor a place has *aliases*: what GitHub makes of the same words, and other
//! names that links in public repositories use. An alias that is the anchor of another place
//! leads there.
//!
//! Sources: the behaviour of the npm package `@sindresorhus/slugify` 3.0 on percent-encoded
//! words; WHATWG HTML §3.2.6 (`id`).

mod assign;
mod slug;

use std::collections::HashMap;

pub use assign::of_footnote;
pub use slug::{github, slug};

/// The anchor of a place on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The anchor, which no other place on the page has.
    pub id: Box<str>,
    /// Other names of the same place; no other place on the page has one of them.
    pub aliases: Vec<Box<str>>,
}

/// The anchors of a page.
#[derive(Clone, Debug, Default)]
pub struct Anchors {
    taken: Names,
    /// What GitHub would have numbered.
    github: Names,
    /// Whether a place has an anchor that is known only when a script is run.
    has_unknown: bool,
}

/// Names that are given once each.
#[derive(Clone, Debug, Default)]
struct Names {
    /// The names, and how often each was asked for.
    asked: HashMap<Box<str>, u32>,
}

// === impl Anchors ===

impl Anchors {
    /// Returns whether a place has this anchor, or it is an alias of one.
    #[must_use]
    pub fn contains(&self, anchor: &str) -> bool {
        self.taken.asked.contains_key(anchor)
    }

    /// Returns whether there is a place whose anchor is not known, because an expression that
    /// was not evaluated is a part of it.
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
    /// Gives a name when nobody has it.
    fn claim(&mut self, name: &str) -> bool {
        match self.asked.contains_key(name) {
            true => false,
            false => self.asked.insert(name.into(), 1).is_none(),
        }
    }

    /// Gives a name, numbered when somebody has it.
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

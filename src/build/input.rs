//! What a release is built from.
//!
//! Every command and every update goes the same way: a tree is opened, [`Input::fetch`] reads
//! its documentation and brings the specifications that are named by URL, and the value
//! goes to [`build`](super::build()) or to a [`Preview`](super::Preview). Nobody reads the
//! documentation a second time.

use std::convert::Infallible;

use super::Options;
use crate::diagnostic::Diagnostic;
use crate::docs::page::Pages;
use crate::docs::{self, Docs};
use crate::source::Tree;
use crate::source::remote::Remote;

/// A tree, and the documentation that was read from it.
#[derive(Debug)]
pub struct Input {
    /// The tree, with the specifications that were fetched.
    pub tree: Tree,
    /// The documentation; empty when the tree has none, which may still have skills.
    pub docs: Docs,
    /// What was wrong with the files that were read.
    pub diagnostics: Vec<Diagnostic>,
}

// === impl Input ===

impl Input {
    /// Reads the documentation of a tree, without what it names by URL.
    #[must_use]
    pub fn read(tree: Tree, options: &Options) -> Self {
        let nothing = |_urls: &[Box<str>]| Ok::<_, Infallible>(None);
        match Self::fetch(tree, options, &Pages::default(), nothing) {
            Ok(input) => input,
            Err(never) => match never {},
        }
    }

    /// Reads the documentation of a tree. Pages that stand in `before` with the same path and
    /// text are taken from there. `fetch` brings the specifications that are named by URL,
    /// and is asked only when some are; with `None` they stay unknown.
    ///
    /// # Errors
    ///
    /// What `fetch` fails with.
    pub fn fetch<E>(
        tree: Tree,
        options: &Options,
        before: &Pages,
        fetch: impl FnOnce(&[Box<str>]) -> Result<Option<Remote>, E>,
    ) -> Result<Self, E> {
        if !docs::has_documentation(&tree) {
            return Ok(Self {
                tree,
                docs: Docs::default(),
                diagnostics: Vec::new(),
            });
        }
        let reading = docs::Options {
            lenient: options.lenient,
            ..docs::Options::default()
        };
        let parsed = docs::parse(&tree, &reading, before);
        let urls = parsed.urls();
        let fetched = match urls.is_empty() {
            true => None,
            false => fetch(&urls)?,
        };
        let tree = match fetched {
            Some(fetched) => tree.with_remote(fetched),
            None => tree,
        };
        let (docs, diagnostics) = parsed.resolve(&tree);
        Ok(Self {
            tree,
            docs,
            diagnostics,
        })
    }

    /// Returns whether there is a site to build: a documentation whose navigation could be
    /// read.
    #[must_use]
    pub fn has_site(&self) -> bool {
        self.docs.navigation.content.is_some()
    }
}

//! The input of a build.
//!
//! Every command and every update opens a tree and calls [`Input::fetch`], which reads the
//! documentation and the inputs that are not files of the tree. The result is the input of
//! [`build`](super::build()) or of a [`Preview`](super::Preview). So the documentation is read only
//! once.

use std::convert::Infallible;

use super::Options;
use crate::diagnostic::Diagnostic;
use crate::docs::page::Pages;
use crate::docs::{self, Docs, Fetched, Needs};
use crate::source::Tree;

/// A tree, and the documentation that was read from it.
#[derive(Debug)]
pub struct Input {
    /// The tree, with the specifications that were fetched.
    pub tree: Tree,
    /// The documentation; empty if the tree has none. Such a tree may still have skills.
    pub docs: Docs,
    /// The diagnostics of the files that were read.
    pub diagnostics: Vec<Diagnostic>,
}

// === impl Input ===

impl Input {
    /// Reads the documentation of a tree, without specifications that it names by URL and without
    /// the days of its commits.
    #[must_use]
    pub fn read(tree: Tree, options: &Options) -> Self {
        let nothing = |_needs: &Needs| Ok::<_, Infallible>(Fetched::default());
        match Self::fetch(tree, options, &Pages::default(), nothing) {
            Ok(input) => input,
            Err(never) => match never {},
        }
    }

    /// Reads the documentation of a tree.
    ///
    /// A page of `before` with the same path and text is reused. `fetch` gets the inputs that are
    /// not files of the tree: specifications that are named by URL, and the days on which pages
    /// were last changed. It is called only if there are any. Inputs that it does not return stay
    /// unknown.
    ///
    /// # Errors
    ///
    /// The error of `fetch`.
    pub fn fetch<E>(
        tree: Tree,
        options: &Options,
        before: &Pages,
        fetch: impl FnOnce(&Needs) -> Result<Fetched, E>,
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
        let needs = parsed.needs(&tree);
        let fetched = match needs.is_empty() {
            true => Fetched::default(),
            false => fetch(&needs)?,
        };
        let tree = fetched.into_tree(tree);
        let (docs, diagnostics) = parsed.resolve(&tree);
        Ok(Self {
            tree,
            docs,
            diagnostics,
        })
    }

    /// Returns whether there is a site to build: documentation whose navigation could be read.
    #[must_use]
    pub fn has_site(&self) -> bool {
        self.docs.navigation.content.is_some()
    }
}

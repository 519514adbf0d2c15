//! The input of a build.
//!
//! Every command and every update opens a tree and calls [`Input::fetch`], which reads the
//! documentation and fetches the specifications that it names by URL. The result is the input of
//! [`build`](super::build()) or of a [`Preview`](super::Preview). So the documentation is read only
//! once.

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
    /// The documentation; empty if the tree has none. Such a tree may still have skills.
    pub docs: Docs,
    /// The diagnostics of the files that were read.
    pub diagnostics: Vec<Diagnostic>,
}

// === impl Input ===

impl Input {
    /// Reads the documentation of a tree, without specifications that it names by URL.
    #[must_use]
    pub fn read(tree: Tree, options: &Options) -> Self {
        let nothing = |_urls: &[Box<str>]| Ok::<_, Infallible>(None);
        match Self::fetch(tree, options, &Pages::default(), nothing) {
            Ok(input) => input,
            Err(never) => match never {},
        }
    }

    /// Reads the documentation of a tree.
    ///
    /// A page of `before` with the same path and text is reused. `fetch` gets the specifications
    /// that are named by URL; it is called only if there are any. With `None` they stay unknown.
    ///
    /// # Errors
    ///
    /// The error of `fetch`.
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

    /// Returns whether there is a site to build: documentation whose navigation could be read.
    #[must_use]
    pub fn has_site(&self) -> bool {
        self.docs.navigation.content.is_some()
    }
}

//! A site that is looked at while it is written.
//!
//! A build makes every file of a release before anybody sees one; a draft makes a file when
//! it is asked for, so that a page of a thousand is there as soon as its own text is read.
//! The files are those of [`build`](super::build()), to the byte; a draft is never stored.

use std::collections::HashMap;

use bytes::Bytes;

use super::site::{self, Articles, File, Plan, Site};
use super::{Described, Options, documentation};
use crate::diagnostic::Diagnostic;
use crate::discovery::{Listed, Summary};
use crate::docs::page::Pages;
use crate::docs::{self, Docs};
use crate::release::site::SiteDescription;
use crate::source::Tree;

/// The files of a site, each made when it is asked for.
#[derive(Debug)]
pub struct Draft {
    tree: Tree,
    docs: Docs,
    plan: Plan,
    files: HashMap<String, File>,
    description: SiteDescription,
    summary: Summary,
    skills: Vec<Bytes>,
    /// What reading the documentation found.
    found: Vec<Diagnostic>,
}

/// What a draft may take over from the one before: most of the time a single page has
/// changed. The default is nothing.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Pages as they were written.
    pages: Pages,
    /// Pages as they are shown, those that were asked for.
    articles: Articles,
}

// === impl Draft ===

impl Draft {
    /// Reads a documentation. Nothing is rendered yet, and what did not change is taken over.
    #[must_use]
    pub fn new(tree: Tree, options: &Options, before: Known) -> Self {
        let (docs, mut found) = documentation(&tree, &before.pages);
        let described = Described::new(&tree, &docs, options);
        found.extend(described.found);
        let plan = Plan::new(&tree, &docs, options, before.articles);
        let site = Site::new(&tree, &docs, &plan);
        let is_there = docs.navigation.content.is_some();
        let files = site.of_pages().into_iter().chain(site.of_site());
        let files = files.filter(|_| is_there).collect();
        let description = site.description();
        let of = |listed: &Listed| {
            let mut skills = described.skills.iter();
            let skill = skills.find(|skill| skill.slug.as_str() == &*listed.slug);
            skill.map(|skill| skill.bytes.clone()).unwrap_or_default()
        };
        Self {
            files,
            description,
            skills: described.summary.skills.iter().map(of).collect(),
            summary: described.summary,
            found,
            plan,
            tree,
            docs,
        }
    }

    /// Returns whether there is a site to look at: a documentation whose navigation can be
    /// read.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.docs.navigation.content.is_some()
    }

    /// Returns whether a path of a release leads to a file.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.found_late(path).is_some()
    }

    /// Makes the file at a path of a release: its bytes and its media type.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<(Bytes, &'static str)> {
        let file = match self.files.get(path) {
            Some(file) => file.clone(),
            None => self.found_late(path)?,
        };
        self.site().make(&file)
    }

    /// A file that rendered pages load; or one of the repository that pages may show, whether
    /// one does or not: finding out would mean rendering all of them.
    fn found_late(&self, path: &str) -> Option<File> {
        if let Some(made) = path.strip_prefix("static/") {
            return self.plan.made(made);
        }
        let path = path.strip_prefix("assets/")?;
        self.plan.may_show(path).then(|| File::Asset(path.into()))
    }

    /// Returns what no file name of the site says.
    #[must_use]
    pub fn description(&self) -> &SiteDescription {
        &self.description
    }

    /// Returns what discovery says, and the skill files in its order.
    #[must_use]
    pub fn skills(&self) -> (&Summary, &[Bytes]) {
        (&self.summary, &self.skills)
    }

    /// Returns what the next draft may take over.
    #[must_use]
    pub fn known(&self) -> Known {
        Known {
            pages: self.docs.pages.clone(),
            articles: self.plan.articles(),
        }
    }

    /// Returns the tree that the draft was read from.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Renders all pages and tells everything that is wrong, by file and place.
    #[must_use]
    pub fn check(&self) -> Vec<Diagnostic> {
        let site = self.site();
        site.render_all();
        let mut found = self.found.clone();
        found.extend(docs::check::check(&self.docs, &self.tree));
        found.extend(site::found(&site));
        found.sort_by(|one, other| (&one.file, one.location).cmp(&(&other.file, other.location)));
        found
    }

    fn site(&self) -> Site<'_> {
        Site::new(&self.tree, &self.docs, &self.plan)
    }
}

//! A site whose files are made on demand.
//!
//! A build makes every file of a release in advance. A preview makes a file when it is requested,
//! so that one page of a thousand is ready as soon as its own text is read. The files have the same
//! bytes as the files of [`build`](super::build()); a preview is never stored.

use std::collections::HashMap;

use bytes::Bytes;

use super::site::{Articles, File, Plan, Site};
use super::{Described, Input, Options, diagnostics};
use crate::diagnostic::{self, Diagnostic};
use crate::discovery::{Listed, Summary};
use crate::docs::page::Pages;
use crate::release::site::SiteDescription;

/// The files of a site, each made on demand.
#[derive(Debug)]
pub struct Preview {
    input: Input,
    plan: Plan,
    files: HashMap<String, File>,
    description: SiteDescription,
    described: Described,
    skills: Vec<Bytes>,
}

/// The state that the next preview reuses, because usually a single page has changed. The default
/// is empty.
#[derive(Clone, Debug, Default)]
pub struct PreviewCache {
    /// The pages as they were read.
    pub pages: Pages,
    /// The rendered pages, as far as they were requested.
    pub articles: Articles,
}

// === impl Preview ===

impl Preview {
    /// Prepares the files of the documentation. Nothing is rendered yet; `articles` comes from the
    /// previous preview.
    #[must_use]
    pub fn new(input: Input, options: &Options, articles: Articles) -> Self {
        let plan = Plan::new(&input, options, articles);
        let site = Site::new(&input, &plan);
        let described = Described::new(&input, options, Some(&site).filter(|_| input.has_site()));
        let files = site.page_files().into_iter().chain(site.site_files());
        let files = files.filter(|_| input.has_site()).collect();
        let description = site.description().clone();
        let of = |listed: &Listed| {
            let mut skills = described.skills.iter();
            let skill = skills.find(|skill| skill.slug.as_str() == &*listed.slug);
            skill.map(|skill| skill.bytes.clone()).unwrap_or_default()
        };
        Self {
            files,
            description,
            skills: described.summary.skills.iter().map(of).collect(),
            described,
            plan,
            input,
        }
    }

    /// Returns the input of the preview.
    #[must_use]
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Returns whether a path of a release leads to a file.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.static_file(path).is_some()
    }

    /// Makes the file at a path of a release: its bytes and its media type.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<(Bytes, &'static str)> {
        let file = match self.files.get(path) {
            Some(file) => file.clone(),
            None => self.static_file(path)?,
        };
        self.site().make(&file)
    }

    /// Finds a file that a rendered page loads, or a file of the repository that pages may show. To
    /// know whether a page does show it, all pages would have to be rendered.
    fn static_file(&self, path: &str) -> Option<File> {
        if let Some(made) = path.strip_prefix("static/") {
            return self.plan.made(made);
        }
        let path = path.strip_prefix("assets/")?;
        self.plan.may_show(path).then(|| File::Asset(path.into()))
    }

    /// Returns the description of the site, which a release has as a file.
    #[must_use]
    pub fn description(&self) -> &SiteDescription {
        &self.description
    }

    /// Returns the summary for discovery, and the skill files in its order.
    #[must_use]
    pub fn skills(&self) -> (&Summary, &[Bytes]) {
        (&self.described.summary, &self.skills)
    }

    /// Returns the state that the next preview may reuse.
    #[must_use]
    pub fn cache(&self) -> PreviewCache {
        PreviewCache {
            pages: self.input.docs.pages.clone(),
            articles: self.plan.articles(),
        }
    }

    /// Renders all pages and returns all diagnostics, by file and place.
    #[must_use]
    pub fn check(&self) -> Vec<Diagnostic> {
        let site = self.site();
        site.render_all();
        let mut found = diagnostics(&self.input, &self.described, Some(&site));
        diagnostic::sort(&mut found);
        found
    }

    fn site(&self) -> Site<'_> {
        Site::new(&self.input, &self.plan)
    }
}

//! Pages that bind an endpoint in their frontmatter.

use std::collections::HashSet;

use crate::diagnostic::Diagnostic;
use crate::docs::openapi::{Endpoint, Method, NotFetched, Specifications, discover, find, is_url};
use crate::docs::page::Pages;
use crate::docs::page::ignored::Ignored;
use crate::source::TreePath;

use super::super::tree::{EndpointId, PageId};
use super::Compiler;
use super::endpoints::{Absent, Named, absent, named};

/// An endpoint that a page binds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    method: Method,
    path: Box<str>,
}

/// Why a page has no endpoint.
enum Unbound {
    /// What it names is not there.
    Absent(Absent),
    /// What it names by URL is not at hand.
    NotFetched(NotFetched),
}

/// Returns the endpoints that pages bind.
pub(super) fn bound(pages: Option<&Pages>) -> HashSet<Bound> {
    let pages = pages.map(Pages::iter).into_iter().flatten();
    pages
        .filter_map(|page| {
            let (text, _) = page.meta.openapi.as_ref()?;
            let Named { method, path, .. } = named(text)?;
            Some(Bound::new(method, path))
        })
        .collect()
}

// === impl Bound ===

impl Bound {
    pub(super) fn new(method: Method, path: &str) -> Self {
        let path = path
            .strip_suffix('/')
            .filter(|path| !path.is_empty())
            .unwrap_or(path);
        Self {
            method,
            path: path.into(),
        }
    }
}

// === impl Unbound ===

impl Unbound {
    fn diagnostic(self, page: &TreePath) -> Diagnostic {
        let page = page.as_str();
        match self {
            Self::Absent((message, None)) => Diagnostic::error("N6", page, message),
            Self::Absent((message, Some(help))) => {
                Diagnostic::error("N6", page, message).help(help)
            }
            Self::NotFetched(NotFetched::NotAllowed { message, help }) => {
                Diagnostic::warning("N6", page, message).help(help)
            }
            Self::NotFetched(NotFetched::Failed { rule, message }) => {
                Diagnostic::error(rule, page, message)
            }
        }
    }
}

impl From<Absent> for Unbound {
    fn from(absent: Absent) -> Self {
        Self::Absent(absent)
    }
}

impl From<NotFetched> for Unbound {
    fn from(not_fetched: NotFetched) -> Self {
        Self::NotFetched(not_fetched)
    }
}

// === impl Compiler ===

impl Compiler<'_> {
    /// Gives the pages that bind an endpoint theirs.
    pub(super) fn bind(&mut self) {
        self.table.add_unlisted();
        let Some(files) = self.table.files() else {
            return;
        };
        for file in files.iter() {
            let Some((text, location)) = &file.meta.openapi else {
                continue;
            };
            let Some(page) = self.table.by_slug(&file.slug) else {
                continue;
            };
            match self.binding(text, &file.path, page) {
                Ok(Some(id)) => {
                    let read = &self.specifications.all()[id.specification];
                    let endpoint: &Endpoint = &read.endpoints[id.endpoint];
                    let page = &mut self.table.pages_mut()[page.0];
                    page.endpoint = Some(id);
                    page.deprecated |= endpoint.deprecated;
                    if file.meta.title.is_none()
                        && let Some(summary) = &endpoint.summary
                    {
                        page.title = summary.clone();
                    }
                }
                Ok(None) => {}
                Err(unbound) => {
                    let diagnostic = unbound.diagnostic(&file.path);
                    let diagnostic = diagnostic.at(location.line, location.column, location.length);
                    self.diagnostics.add(diagnostic);
                }
            }
        }
    }

    /// Reads the specifications that nobody names, once.
    fn load_discovered(&mut self) {
        if std::mem::replace(&mut self.discovered, true) {
            return;
        }
        let tree = self.input.tree;
        for path in discover(tree, &Ignored::read(tree)) {
            // One that cannot be read has no endpoints; nobody asked for it by name.
            let _unreadable = self.specifications.load(tree, &path, self.diagnostics);
        }
    }

    /// Finds the endpoint that frontmatter names: in the file it names, else in the
    /// specification that applies to the page, else in `api.openapi`, else in the only one
    /// of the documentation that has it. `Ok(None)` when nothing is known of the specification.
    fn binding(
        &mut self,
        text: &str,
        path: &TreePath,
        page: PageId,
    ) -> Result<Option<EndpointId>, Unbound> {
        let Some(Named {
            file,
            method,
            path: of,
        }) = named(text)
        else {
            let help =
                "write `METHOD /path`, with the specification before it where several have it";
            let message = format!("`openapi: {text}` names no endpoint");
            return Err((message, Some(help.to_owned())).into());
        };
        let tree = self.input.tree;
        if let Some(file) = file {
            if is_url(file) {
                return match self.specifications.fetched(tree, file, self.diagnostics)? {
                    Some(index) => {
                        Ok(in_specification(self.specifications, index, method, of).map(Some)?)
                    }
                    None => Ok(None),
                };
            }
            let directory = path.parent().unwrap_or_default();
            let Some(found) = find(tree, &directory, file) else {
                return Err((format!("there is no specification `{file}`"), None).into());
            };
            let loaded = self.specifications.load(tree, &found, self.diagnostics);
            return match loaded.map_err(|(_, message)| (message, None))? {
                Some(index) => {
                    Ok(in_specification(self.specifications, index, method, of).map(Some)?)
                }
                None => Ok(None),
            };
        }
        let applied = self.table.specification(page);
        let mut candidates: Vec<usize> = applied.into_iter().collect();
        let mut remote = false;
        for (source, span) in self.input.api {
            remote |= is_url(source);
            candidates.extend(self.specifications.open(
                tree,
                tree.docs_root(),
                (source, *span),
                self.diagnostics,
            ));
        }
        let all = self.specifications.all();
        let has = |&index: &usize| all[index].find(method, of).is_some();
        if let Some(index) = candidates.iter().copied().find(|index| has(index)) {
            return Ok(in_specification(self.specifications, index, method, of).map(Some)?);
        }
        let mut others: Vec<usize> = (0..all.len()).filter(has).collect();
        if others.is_empty() && candidates.is_empty() {
            self.load_discovered();
            let all = self.specifications.all();
            let has = |&index: &usize| all[index].find(method, of).is_some();
            others = (0..all.len()).filter(has).collect();
        }
        let all = self.specifications.all();
        match (&others[..], candidates.first()) {
            ([only], _) => Ok(in_specification(self.specifications, *only, method, of).map(Some)?),
            ([], Some(&index)) => {
                Ok(in_specification(self.specifications, index, method, of).map(Some)?)
            }
            ([], None) if remote => Ok(None),
            ([], None) => {
                let help = "name the specification before the method, or set `api.openapi`";
                let message = format!("no specification has the endpoint `{method} {of}`");
                Err((message, Some(help.to_owned())).into())
            }
            (several, _) => {
                let names: Vec<_> = several
                    .iter()
                    .map(|&index| format!("`{}`", all[index].path))
                    .collect();
                let message = format!(
                    "several specifications have `{method} {of}`: {}",
                    names.join(", ")
                );
                let help = "name one of them before the method";
                Err((message, Some(help.to_owned())).into())
            }
        }
    }
}

fn in_specification(
    specifications: &Specifications,
    index: usize,
    method: Method,
    path: &str,
) -> Result<EndpointId, Absent> {
    let read = &specifications.all()[index];
    match read.find(method, path) {
        Some(endpoint) => Ok(EndpointId {
            specification: index,
            endpoint,
        }),
        None => Err(absent(read, method, path)),
    }
}

//! Pages that bind an endpoint in their frontmatter.

use std::collections::HashSet;

use crate::diagnostic::Diagnostic;
use crate::docs::openapi::{Endpoint, Method, Specifications, discover, find};
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
                Err((message, help)) => {
                    let finding = Diagnostic::error("N6", file.path.as_str(), message);
                    let finding = finding.at(location.line, location.column, location.length);
                    self.findings.add(match help {
                        Some(help) => finding.help(help),
                        None => finding,
                    });
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
            let _unreadable = self.specifications.load(tree, &path, self.findings);
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
    ) -> Result<Option<EndpointId>, Absent> {
        let Some(Named {
            file,
            method,
            path: of,
        }) = named(text)
        else {
            let help =
                "write `METHOD /path`, with the specification before it where several have it";
            return Err((
                format!("`openapi: {text}` names no endpoint"),
                Some(help.to_owned()),
            ));
        };
        let tree = self.input.tree;
        if let Some(file) = file {
            if file.contains("://") {
                return Ok(None);
            }
            let directory = path.parent().unwrap_or_default();
            let Some(found) = find(tree, &directory, file) else {
                return Err((format!("there is no specification `{file}`"), None));
            };
            let loaded = self.specifications.load(tree, &found, self.findings);
            return match loaded.map_err(|(_, message)| (message, None))? {
                Some(index) => in_specification(self.specifications, index, method, of).map(Some),
                None => Ok(None),
            };
        }
        let applied = self.table.specification(page);
        let mut candidates: Vec<usize> = applied.into_iter().collect();
        let mut remote = false;
        for (source, span) in self.input.api {
            remote |= source.contains("://");
            candidates.extend(self.specifications.open(
                tree,
                tree.docs_root(),
                (source, *span),
                self.findings,
            ));
        }
        let all = self.specifications.all();
        let has = |&index: &usize| all[index].find(method, of).is_some();
        if let Some(index) = candidates.iter().copied().find(|index| has(index)) {
            return in_specification(self.specifications, index, method, of).map(Some);
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
            ([only], _) => in_specification(self.specifications, *only, method, of).map(Some),
            ([], Some(&index)) => {
                in_specification(self.specifications, index, method, of).map(Some)
            }
            ([], None) if remote => Ok(None),
            ([], None) => Err((
                format!("no specification has the endpoint `{method} {of}`"),
                Some("name the specification before the method, or set `api.openapi`".to_owned()),
            )),
            (several, _) => {
                let names: Vec<_> = several
                    .iter()
                    .map(|&index| format!("`{}`", all[index].path))
                    .collect();
                let message = format!(
                    "several specifications have `{method} {of}`: {}",
                    names.join(", ")
                );
                Err((
                    message,
                    Some("name one of them before the method".to_owned()),
                ))
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

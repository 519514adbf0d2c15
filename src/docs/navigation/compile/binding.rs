//! Binds pages to the endpoint or schema that their frontmatter names.
//!
//! The keys are `openapi: [file] METHOD /path` and `openapi-schema: [file] Name`. If they name
//! no file, specifications are searched in this order:
//!
//! 1. the specification that applies at the page's place in the navigation;
//! 2. the specifications of `api.openapi`; the first match is used;
//! 3. all other specifications that the documentation names;
//! 4. every file that declares itself a specification.
//!
//! A page that describes its endpoint by hand (`api: METHOD URL`) gets a specification of its own.
//!
//! If several specifications of steps 3 or 4 match, the one nearest to the documentation's root
//! is used, with a warning.
//!
//! If the specification was not fetched, or no specification has the endpoint, there is a warning
//! and the page shows only method and path, beside its own text: one such page must not hold back
//! all others.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Location, closest};
use crate::docs::openapi::{Method, NotFetched, Specification, discover, find, is_url};
use crate::docs::page::{Page, Pages};
use crate::source::TreePath;

use super::super::tree::{EndpointId, PageId, SchemaId, Subject};
use super::Compiler;
use super::endpoints::{Absent, Named, absent, named};
use super::written;

/// An endpoint that a page binds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    method: Method,
    path: Box<str>,
}

/// The endpoint or schema that a page names.
#[derive(Clone, Copy)]
enum Reference<'t> {
    Endpoint(Method, &'t str),
    Schema(&'t str),
}

/// The reason why a page has no subject.
enum Unbound {
    /// The specification, or every specification, lacks it.
    Absent(Absent),
    /// The specification was not fetched.
    NotFetched(NotFetched),
    /// The file is not a specification; this has a diagnostic of its own.
    Unreadable,
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

// === impl Reference ===

impl Reference<'_> {
    fn is_in(self, specification: &Specification) -> bool {
        match self {
            Self::Endpoint(method, path) => specification.find(method, path).is_some(),
            Self::Schema(name) => specification.named_schema(name).is_some(),
        }
    }

    /// Returns the endpoint or schema of that name in a specification.
    fn subject(self, number: usize, specification: &Specification) -> Result<Subject, Unbound> {
        match self {
            Self::Endpoint(method, path) => match specification.find(method, path) {
                Some(endpoint) => Ok(Subject::Endpoint(EndpointId {
                    specification: number,
                    endpoint,
                })),
                None => Err(Unbound::Absent(absent(specification, method, path))),
            },
            Self::Schema(name) if specification.named_schema(name).is_some() => {
                Ok(Subject::Schema(SchemaId {
                    specification: number,
                    name: name.into(),
                }))
            }
            Self::Schema(name) => {
                let near = closest(name, specification.schema_names());
                let message = format!("{} has no schema `{name}`", specification.path);
                let help = near.map(|near| format!("did you mean `{near}`?"));
                Err(Unbound::Absent((message, help)))
            }
        }
    }

    /// Returns the subject that is known without its specification.
    fn without_specification(self) -> Option<Subject> {
        match self {
            Self::Endpoint(method, path) => Some(Subject::Unresolved {
                method,
                path: path.into(),
            }),
            Self::Schema(_) => None,
        }
    }
}

impl std::fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Endpoint(method, path) => write!(f, "endpoint `{method} {path}`"),
            Self::Schema(name) => write!(f, "schema `{name}`"),
        }
    }
}

// === impl Unbound ===

impl Unbound {
    fn diagnostic(self, reference: Reference<'_>, page: &TreePath) -> Option<Diagnostic> {
        let page = page.as_str();
        Some(match self {
            Self::Absent((message, help)) => {
                let message = match reference {
                    Reference::Endpoint(method, path) => {
                        format!("the page shows only `{method} {path}`: {message}")
                    }
                    Reference::Schema(_) => message,
                };
                let diagnostic = Diagnostic::warning("N6", page, message);
                match help {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                }
            }
            Self::NotFetched(NotFetched::NotAllowed { message, help }) => {
                let message = match reference {
                    Reference::Endpoint(method, path) => {
                        format!("the page shows only `{method} {path}`: {message}")
                    }
                    Reference::Schema(name) => {
                        format!("the page does not show schema `{name}`: {message}")
                    }
                };
                Diagnostic::warning("N6", page, message).help(help)
            }
            Self::NotFetched(NotFetched::Failed { rule, message }) => {
                Diagnostic::error(rule, page, message)
            }
            Self::Unreadable => return None,
        })
    }
}

impl From<NotFetched> for Unbound {
    fn from(not_fetched: NotFetched) -> Self {
        Self::NotFetched(not_fetched)
    }
}

// === impl Compiler ===

impl Compiler<'_> {
    /// Binds each page that names an endpoint or a schema.
    pub(super) fn bind(&mut self) {
        self.table.add_unlisted();
        let Some(files) = self.table.files() else {
            return;
        };
        self.read_api(files);
        for file in files.iter() {
            let Some(page) = self.table.by_slug(&file.slug) else {
                continue;
            };
            if let Some((text, location)) = &file.meta.openapi {
                let Some(Named {
                    file: of,
                    method,
                    path,
                }) = named(text)
                else {
                    let message = format!("`openapi: {text}` names no endpoint");
                    let help = "write `METHOD /path`, with the specification before it where several have it";
                    let diagnostic = Diagnostic::warning("N6", file.path.as_str(), message);
                    self.report(diagnostic.help(help), *location);
                    continue;
                };
                self.bind_page(file, page, of, Reference::Endpoint(method, path), *location);
            } else if let Some((text, location)) = &file.meta.openapi_schema {
                let (of, name) = match text.split_once(char::is_whitespace) {
                    Some((of, name)) => (Some(of), name.trim_start()),
                    None => (None, &**text),
                };
                self.bind_page(file, page, of, Reference::Schema(name), *location);
            } else if let Some((text, location)) = &file.meta.api {
                let settings = self.input.mdx;
                match written::specification(file, text, settings, self.diagnostics) {
                    Some(specification) => {
                        let specification = self.specifications.add(specification);
                        let endpoint = 0;
                        let id = EndpointId {
                            specification,
                            endpoint,
                        };
                        self.set_subject(file, page, Subject::Endpoint(id));
                    }
                    None => {
                        let message = format!("`api: {text}` names no endpoint");
                        let diagnostic = Diagnostic::warning("N6", file.path.as_str(), message);
                        let help = "write `METHOD https://host/path`, or `METHOD /path` with `api.mdx.server`";
                        self.report(diagnostic.help(help), *location);
                    }
                }
            }
        }
    }

    fn report(&mut self, diagnostic: Diagnostic, at: Location) {
        let diagnostic = diagnostic.at(at.line, at.column, at.length);
        self.diagnostics.add(diagnostic);
    }

    /// Binds a page to the endpoint or schema that it names, or reports why it cannot.
    fn bind_page(
        &mut self,
        file: &Page,
        page: PageId,
        of: Option<&str>,
        reference: Reference<'_>,
        location: Location,
    ) {
        let found = match of {
            Some(name) => self.find_in_named(name, file, reference),
            None => self.find_in_any(file, page, reference, location),
        };
        let found = found.and_then(|number| {
            let specification = &self.specifications.all()[number];
            reference.subject(number, specification)
        });
        match found {
            Ok(subject) => self.set_subject(file, page, subject),
            Err(unbound) => {
                self.table.pages_mut()[page.0].subject = reference.without_specification();
                if let Some(diagnostic) = unbound.diagnostic(reference, &file.path) {
                    self.report(diagnostic, location);
                }
            }
        }
    }

    fn set_subject(&mut self, file: &Page, page: PageId, subject: Subject) {
        let page = &mut self.table.pages_mut()[page.0];
        match &subject {
            Subject::Endpoint(id) => {
                let read = &self.specifications.all()[id.specification];
                let endpoint = &read.endpoints[id.endpoint];
                page.deprecated |= endpoint.deprecated;
                if file.meta.title.is_none()
                    && let Some(summary) = &endpoint.summary
                {
                    page.title = summary.clone();
                }
                if page.description.is_none() {
                    page.description = endpoint.description.clone();
                }
            }
            Subject::Schema(id) => {
                if file.meta.title.is_none() {
                    page.title = id.name.clone();
                }
            }
            Subject::Unresolved { .. } => {}
        }
        page.subject = Some(subject);
    }

    /// Reads the specifications of `api.openapi`, if a page may need them.
    fn read_api(&mut self, pages: &Pages) {
        let names_one =
            |page: &Page| page.meta.openapi.is_some() || page.meta.openapi_schema.is_some();
        if !pages.iter().any(names_one) {
            return;
        }
        let tree = self.input.tree;
        for (source, span) in self.input.api {
            let source = (&**source, *span);
            let opened = self
                .specifications
                .open(tree, tree.docs_root(), source, self.diagnostics);
            self.api.extend(opened);
        }
    }

    /// Reads the specifications that nothing names, once. Errors in them become warnings, because
    /// no author named these files.
    fn read_discovered(&mut self) {
        if std::mem::replace(&mut self.discovered, true) {
            return;
        }
        let tree = self.input.tree;
        let before = self.diagnostics.count();
        for path in discover(tree, self.input.ignored) {
            // A specification that cannot be read has no endpoints.
            let _unreadable = self.specifications.load(tree, &path, self.diagnostics);
        }
        self.diagnostics.errors_to_warnings(before);
    }

    /// Returns the specification that frontmatter names by path or URL.
    fn find_in_named(
        &mut self,
        name: &str,
        page: &Page,
        reference: Reference<'_>,
    ) -> Result<usize, Unbound> {
        let tree = self.input.tree;
        let read = if is_url(name) {
            self.specifications.fetched(tree, name, self.diagnostics)?
        } else {
            let directory = page.path.parent().unwrap_or_default();
            let Some(path) = find(tree, &directory, name) else {
                let message = format!("there is no specification `{name}` with {reference}");
                return Err(Unbound::Absent((message, None)));
            };
            let loaded = self.specifications.load(tree, &path, self.diagnostics);
            loaded.map_err(|(_, message)| Unbound::Absent((message, None)))?
        };
        read.ok_or(Unbound::Unreadable)
    }

    fn path(&self, number: usize) -> &str {
        &self.specifications.all()[number].path
    }

    /// Returns the specification that matches, for a page that names none.
    fn find_in_any(
        &mut self,
        page: &Page,
        id: PageId,
        reference: Reference<'_>,
        location: Location,
    ) -> Result<usize, Unbound> {
        let applied = self.table.applied(id);
        let applied_to_it = applied.and_then(|applied| applied.specification);
        // The specifications that apply to the page, including those that could not be read.
        let sources = applied.map(|applied| &*applied.source).into_iter();
        let sources = sources.chain(self.input.api.iter().map(|(source, _)| &**source));
        let mut not_fetched =
            sources.filter_map(|source| self.specifications.not_fetched_from(source));
        let mut not_fetched = not_fetched.next().cloned();
        let candidates: Vec<usize> = applied_to_it
            .into_iter()
            .chain(self.api.iter().copied())
            .collect();
        if candidates.is_empty() && not_fetched.is_none() {
            not_fetched = self.specifications.not_fetched().cloned();
        }
        let has = |compiler: &Self, number: &usize| {
            reference.is_in(&compiler.specifications.all()[*number])
        };
        if let Some(first) = candidates.iter().find(|number| has(self, number)) {
            return Ok(*first);
        }
        let others = |compiler: &Self| {
            let all = 0..compiler.specifications.all().len();
            all.filter(|number| has(compiler, number))
                .collect::<Vec<usize>>()
        };
        let mut found = others(self);
        if found.is_empty() {
            self.read_discovered();
            found = others(self);
        }
        match (&found[..], not_fetched) {
            ([only], _) => Ok(*only),
            (_, Some(not_fetched)) => Err(not_fetched.into()),
            ([], None) => match (reference, &candidates[..]) {
                // Only one specification applies: it reports that the name is missing.
                (_, [only]) => Ok(*only),
                _ => {
                    let message = format!("no specification has the {reference}");
                    let help = "name the specification before it, or set `api.openapi`";
                    Err(Unbound::Absent((message, Some(help.to_owned()))))
                }
            },
            (several, None) => {
                let names = several
                    .iter()
                    .map(|number| format!("`{}`", self.path(*number)));
                let names: Vec<_> = names.collect();
                let nearest = several.iter().copied().min_by_key(|number| {
                    let path = self.path(*number);
                    (path.matches('/').count(), path)
                });
                let nearest = nearest.expect("there are several");
                let message = format!(
                    "several specifications have the {reference}: {}; `{}` is used",
                    names.join(", "),
                    self.path(nearest)
                );
                let diagnostic = Diagnostic::warning("N6", page.path.as_str(), message);
                self.report(diagnostic.help("name one of them before it"), location);
                Ok(nearest)
            }
        }
    }
}

//! Rule N6: endpoints that are listed, generated, and bound by pages.
//!
//! `openapi` applies to an element and its descendants until it is set again. If a descendant
//! entry names an endpoint, only such entries make pages. Otherwise the element that sets
//! `openapi` gets a page for every endpoint, in groups by tag after its own entries. If its
//! children are divisions, the divisions without children of their own get these pages.
//!
//! A page may name an endpoint in its frontmatter ([`super::binding`]). It is then the page of
//! that endpoint, and no page is generated for it.

use std::collections::HashMap;

use crate::diagnostic::closest;
use crate::docs::config::sources;
use crate::docs::openapi::{Method, Specification, slug};
use crate::syntax::{Data, Span, SpanDiagnostic, Value};

use super::super::tree::{EndpointId, Entry, Group, Open, PageId};
use super::binding::Bound;
use super::{Compiler, Scope};

/// The group of endpoints without a tag.
const UNTAGGED: &str = "API Reference";

/// A specification that applies to an element and its descendants.
#[derive(Debug)]
pub(super) struct Applied {
    /// Its path or URL, as it is written.
    pub(super) source: Box<str>,
    /// Its index; `None` if it could not be read, which has a diagnostic at `openapi`.
    pub(super) specification: Option<usize>,
    /// The directory of the pages of its endpoints.
    directory: Option<Box<str>>,
    /// Whether descendant entries name endpoints, so that only these have pages.
    listed: bool,
    /// Whether its pages have been generated.
    generated: std::cell::Cell<bool>,
}

/// `[file] METHOD path`.
pub(super) struct Named<'t> {
    pub(super) file: Option<&'t str>,
    pub(super) method: Method,
    pub(super) path: &'t str,
}

/// Reads an endpoint as written in an entry or in frontmatter.
pub(super) fn named(text: &str) -> Option<Named<'_>> {
    let mut words = text.split_whitespace();
    let (one, two, three) = (words.next()?, words.next()?, words.next());
    if words.next().is_some() {
        return None;
    }
    match three {
        None => Some(Named {
            file: None,
            method: Method::parse(one)?,
            path: two,
        }),
        Some(path) => Some(Named {
            file: Some(one),
            method: Method::parse(two)?,
            path,
        }),
    }
}

/// Returns whether a descendant entry names an endpoint of the applied specification.
fn lists_endpoints(value: &Value) -> bool {
    match &value.data {
        Data::List(items) => items.iter().any(|item| match item.text() {
            Some(text) => named(text).is_some_and(|named| named.file.is_none()),
            None => item.get("openapi").is_none() && lists_endpoints(item),
        }),
        Data::Map(members) => members.iter().any(|member| {
            matches!(member.value.data, Data::List(_))
                && &*member.key != "openapi"
                && lists_endpoints(&member.value)
        }),
        _ => false,
    }
}

// === impl Applied ===

impl Applied {
    /// Returns whether its endpoints are unknown.
    pub(super) fn is_unknown(&self) -> bool {
        self.specification.is_none()
    }
}

// === impl Compiler ===

impl Compiler<'_> {
    /// Reads the `openapi` of an element; an empty text ends the inherited specification.
    pub(super) fn apply(
        &mut self,
        value: &Value,
        element: &Value,
        inherits: bool,
    ) -> Option<std::rc::Rc<Applied>> {
        let sources = sources(value);
        let Some((source, span)) = sources.first() else {
            if matches!(value.data, Data::Map(_) | Data::List(_)) {
                let message = "`openapi` names no specification";
                let help = "write its path, or an object with `source`";
                self.diagnostics
                    .push(SpanDiagnostic::error("N6", value.span, message).help(help));
            }
            return None;
        };
        if source.is_empty() {
            if !inherits {
                let help = "remove it, or write the path of a specification";
                let message =
                    "`openapi` is empty, but there is no inherited specification to remove";
                self.diagnostics
                    .push(SpanDiagnostic::warning("N6", *span, message).help(help));
            }
            return None;
        }
        if sources.len() > 1 {
            let message = "of several specifications only the first is used";
            self.warn("N6", sources[1].1, message);
        }
        let directory = value.get("directory").and_then(Value::text);
        let specification = match self.input.pages {
            Some(_) => {
                let tree = self.input.tree;
                let root = tree.docs_root();
                self.specifications
                    .open(tree, root, (source, *span), self.diagnostics)
            }
            None => None,
        };
        Some(std::rc::Rc::new(Applied {
            source: source.clone(),
            specification,
            directory: directory.map(Box::from),
            listed: lists_endpoints(element),
            generated: std::cell::Cell::new(false),
        }))
    }

    /// Compiles an entry that names an endpoint; `None` when it names a page.
    pub(super) fn endpoint_entry(
        &mut self,
        text: &str,
        span: Span,
        scope: &Scope,
    ) -> Option<Option<PageId>> {
        let Named { file, method, path } = named(text)?;
        // `get started` names a page if that page exists.
        if self.table.is_file(text) || (!path.starts_with('/') && method != Method::Webhook) {
            return None;
        }
        let specification = match (file, &scope.applied) {
            (Some(file), _) if self.input.pages.is_some() => {
                let tree = self.input.tree;
                let found = self.specifications.open(
                    tree,
                    tree.docs_root(),
                    (file, span),
                    self.diagnostics,
                );
                let Some(found) = found else {
                    return Some(None);
                };
                found
            }
            (Some(_), _) => return Some(None),
            (None, Some(applied)) => match applied.specification {
                Some(specification) => specification,
                None => return Some(None),
            },
            (None, None) => {
                let message =
                    format!("`{text}` names an endpoint, but no specification applies here");
                let help = "set `openapi` on this element or one around it";
                self.diagnostics
                    .push(SpanDiagnostic::error("N6", span, message).help(help));
                return Some(None);
            }
        };
        let read = &self.specifications.all()[specification];
        let Some(endpoint) = read.find(method, path) else {
            let diagnostic = absent(read, method, path);
            self.diagnostics
                .push(SpanDiagnostic::error("N6", span, diagnostic.0).help_if(diagnostic.1));
            return Some(None);
        };
        if read.endpoints[endpoint].excluded {
            let message = format!("`{method} {path}` is excluded by `x-excluded`");
            self.diagnostics
                .push(SpanDiagnostic::error("N6", span, message));
            return Some(None);
        }
        let id = EndpointId {
            specification,
            endpoint,
        };
        let directory = scope
            .applied
            .as_ref()
            .and_then(|applied| applied.directory.clone());
        Some(Some(self.endpoint_page(
            id,
            directory.as_deref(),
            span,
            scope,
        )))
    }

    fn endpoint_page(
        &mut self,
        id: EndpointId,
        directory: Option<&str>,
        span: Span,
        scope: &Scope,
    ) -> PageId {
        let endpoint = &self.specifications.all()[id.specification].endpoints[id.endpoint];
        let slug = slug(endpoint, directory);
        let page = self.table.endpoint(id, endpoint, slug, scope);
        self.table.place(page, span, scope, self.diagnostics);
        page
    }

    /// Returns the endpoints that get generated pages here, by the label of their first tag, in
    /// the order of the specification. Later calls for the same specification return none.
    fn generated(&mut self, scope: &Scope) -> Vec<(Box<str>, Vec<usize>)> {
        let Some(applied) = &scope.applied else {
            return Vec::new();
        };
        let Some(specification) = applied.specification else {
            return Vec::new();
        };
        if applied.listed || applied.generated.replace(true) {
            return Vec::new();
        }
        let read = &self.specifications.all()[specification];
        let labels = read.group_labels();
        let mut groups: Vec<(Box<str>, Vec<usize>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (index, endpoint) in read.endpoints.iter().enumerate() {
            let bound = self
                .bound
                .contains(&Bound::new(endpoint.method, &endpoint.path));
            if endpoint.hidden || endpoint.excluded || bound {
                continue;
            }
            let label = match endpoint.tags.first() {
                Some(tag) => labels.get(&**tag).copied().unwrap_or(tag),
                None => UNTAGGED,
            };
            let place = *places.entry(label).or_insert_with(|| {
                groups.push((label.into(), Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(index);
        }
        groups
    }

    /// Returns the generated pages of an element, in groups by tag.
    pub(super) fn generated_groups(&mut self, scope: &Scope, open: Open) -> Vec<Group> {
        let groups = self.generated(scope);
        let mut generated = Vec::with_capacity(groups.len());
        for (label, endpoints) in groups {
            let mut scope = scope.clone();
            scope.breadcrumb.push(label.clone());
            generated.push(Group {
                label,
                icon: None,
                tag: None,
                root: None,
                open,
                directory: scope.directory,
                hidden: scope.hidden,
                entries: self.generated_pages(&endpoints, &scope),
            });
        }
        generated
    }

    fn generated_pages(&mut self, endpoints: &[usize], scope: &Scope) -> Vec<Entry> {
        let Some(applied) = scope.applied.clone() else {
            return Vec::new();
        };
        let Some(specification) = applied.specification else {
            return Vec::new();
        };
        let directory = applied.directory.as_deref();
        let mut entries = Vec::with_capacity(endpoints.len());
        for &endpoint in endpoints {
            let id = EndpointId {
                specification,
                endpoint,
            };
            let page = self.endpoint_page(id, directory, Span::default(), scope);
            entries.push(Entry::Page(page));
        }
        entries
    }
}

/// The message that a specification lacks an endpoint, and the help.
pub(super) type Absent = (String, Option<String>);

pub(super) fn absent(read: &Specification, method: Method, path: &str) -> Absent {
    let methods: Vec<_> = read
        .methods(path)
        .map(|method| method.to_string())
        .collect();
    if !methods.is_empty() {
        let message = format!("`{path}` has no {method} in {}", read.path);
        return (message, Some(format!("it has {}", methods.join(", "))));
    }
    let near = closest(path, read.endpoints.iter().map(|endpoint| &*endpoint.path));
    let message = format!("{} has no endpoint `{method} {path}`", read.path);
    (message, near.map(|near| format!("did you mean `{near}`?")))
}

//! OpenAPI specifications and their endpoints.
//!
//! The reader is tolerant: it skips what it does not understand. Real specifications break
//! the schema of OpenAPI in many ways, and a mistake in one endpoint must not hide the
//! others. [`Endpoint`] holds what identifies and places an endpoint (method, path, summary,
//! tags, extensions). Everything else (parameters, bodies, responses, schemas, servers,
//! security) stays in the specification, and an [`Operation`] reads it from there.
//!
//! References are followed when they are read ([`Specification::resolve`]), at most
//! [`REFERENCE_HOPS_MAX`] in a row. A schema may contain itself; code that walks schemas
//! stops at a [`Schema::name`] that encloses the current schema.
//!
//! A specification that is named by URL is read from the tree ([`Tree::remote`]); this module
//! makes no requests.
//!
//! [`Tree::remote`]: crate::source::Tree::remote
//!
//! **Limits.** Versions 3.0 and 3.1. A reference into another file is not followed and gets a
//! warning.
//!
//! Sources: OpenAPI 3.0.4 and 3.1.1 §4.8.8 to §4.8.24; RFC 6901 (JSON pointers).

mod lookup;
mod operation;
mod read;
mod slug;

use std::collections::HashMap;

use crate::site::percent::decode_or_keep;
use crate::syntax::{Span, Value};

pub use lookup::Lookup;
pub use operation::{Body, Media, Operation, Parameter, Response, Schema, Security, Server};
pub use read::{NotFetched, SPECIFICATION, Specifications, discover, find, is_url, read};
pub use slug::slug;

/// How long a chain of references may be.
pub const REFERENCE_HOPS_MAX: usize = 32;

/// A specification.
#[derive(Debug)]
pub struct Specification {
    /// Its file, from the root of the repository, or its URL.
    pub path: Box<str>,
    /// Its `info.title`.
    pub title: Box<str>,
    /// Its endpoints: paths in the order of the file, methods in the order of [`Method`],
    /// then webhooks.
    pub endpoints: Vec<Endpoint>,
    /// The whole document.
    pub root: Value,
    /// Whether it was made from a page that describes its endpoint by hand. The page shows only
    /// what its author cannot write: method, address, samples and form.
    pub from_page: bool,
    /// The indices of `root` and `endpoints`.
    pub lookup: Lookup,
}

/// The part of an endpoint that identifies and places it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its method.
    pub method: Method,
    /// Its path, or the name of a webhook.
    pub path: Box<str>,
    /// Its summary, in one line.
    pub summary: Option<Box<str>>,
    /// The title of its page, from `x-mint.metadata.title`.
    pub title: Option<Box<str>>,
    /// The description of its page, from `x-mint.metadata.description`.
    pub description: Option<Box<str>>,
    /// The path of its page, from `x-mint.href`.
    pub href: Option<Box<str>>,
    /// Its tags; the first names its group.
    pub tags: Vec<Box<str>>,
    /// Whether it is deprecated.
    pub deprecated: bool,
    /// `x-hidden`: no page unless the navigation lists it.
    pub hidden: bool,
    /// `x-excluded`: no page at all.
    pub excluded: bool,
    /// Its place in the file.
    pub span: Span,
}

/// The method of an endpoint, in the order in which a path's endpoints are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// GET.
    Get,
    /// PUT.
    Put,
    /// POST.
    Post,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
    /// HEAD.
    Head,
    /// PATCH.
    Patch,
    /// TRACE.
    Trace,
    /// A request that the service makes to its user (3.1 `webhooks`).
    Webhook,
}

// === impl Method ===

impl Method {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Get,
        Self::Put,
        Self::Post,
        Self::Delete,
        Self::Options,
        Self::Head,
        Self::Patch,
        Self::Trace,
        Self::Webhook,
    ];

    /// Reads a method in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|method| method.key().eq_ignore_ascii_case(text))
    }

    /// Returns the key of a path item that holds it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Put => "put",
            Self::Post => "post",
            Self::Delete => "delete",
            Self::Options => "options",
            Self::Head => "head",
            Self::Patch => "patch",
            Self::Trace => "trace",
            Self::Webhook => "webhook",
        }
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.key().to_ascii_uppercase())
    }
}

// === impl Specification ===

impl Specification {
    /// Finds an endpoint by its exact path, or else by its path without a slash at the end.
    #[must_use]
    pub fn find(&self, method: Method, path: &str) -> Option<usize> {
        self.lookup.endpoint(&self.endpoints, method, path)
    }

    /// Returns one of `components.schemas`.
    #[must_use]
    pub fn named_schema(&self, name: &str) -> Option<&Value> {
        let schemas = self.root.get("components")?.get("schemas")?;
        self.lookup.get(&self.root, schemas, name)
    }

    /// Returns the names of `components.schemas`.
    pub fn schema_names(&self) -> impl Iterator<Item = &str> {
        let components = self.root.get("components");
        let schemas = components.and_then(|components| components.get("schemas"));
        let members = schemas.map_or(&[][..], Value::members);
        members.iter().map(|member| &*member.key)
    }

    /// Returns the methods that a path has.
    pub fn methods<'s>(&'s self, path: &'s str) -> impl Iterator<Item = Method> + 's {
        let of_path = move |endpoint: &&Endpoint| plain(&endpoint.path) == plain(path);
        let endpoints = self.endpoints.iter().filter(of_path);
        endpoints.map(|endpoint| endpoint.method)
    }

    /// Returns the reader of an endpoint's details.
    #[must_use]
    pub fn operation(&self, endpoint: &Endpoint) -> Option<Operation<'_>> {
        Operation::find(self, endpoint)
    }

    /// Follows references to the final value; `None` if a target does not exist, the references
    /// form a cycle, or a reference names another file.
    #[must_use]
    pub fn resolve<'s>(&'s self, value: &'s Value) -> Option<&'s Value> {
        let mut value = value;
        for _ in 0..REFERENCE_HOPS_MAX {
            if value.get("$ref").and_then(Value::text).is_none() {
                return Some(value);
            }
            value = self.target(value)?;
        }
        None
    }

    /// Returns the value of a key of an object that may be a reference. A value beside a reference
    /// overrides that of its target.
    ///
    /// In 3.1, schemas (JSON Schema 2020-12 core §8.2.3.1) and the descriptions of references
    /// (§4.8.23) may have them. In 3.0 they have no effect by the standard, but authors who write
    /// them expect one.
    #[must_use]
    pub fn stated<'s>(&'s self, value: &'s Value, key: &str) -> Option<&'s Value> {
        let mut value = value;
        for _ in 0..REFERENCE_HOPS_MAX {
            if let Some(stated) = value.get(key) {
                return Some(stated);
            }
            value = self.target(value)?;
        }
        None
    }

    /// Returns the target of a reference; `None` also if this is not one.
    fn target<'s>(&'s self, value: &'s Value) -> Option<&'s Value> {
        let reference = value.get("$ref")?.text()?;
        self.pointer(reference.strip_prefix('#')?)
    }

    /// RFC 6901 §4: evaluates a pointer.
    fn pointer(&self, pointer: &str) -> Option<&Value> {
        let mut value = &self.root;
        if pointer.is_empty() {
            return Some(value);
        }
        for token in pointer.strip_prefix('/')?.split('/') {
            let token = unescaped(token);
            value = match self.lookup.get(&self.root, value, &token) {
                Some(value) => value,
                None => value.items().get(token.parse::<usize>().ok()?)?,
            };
        }
        Some(value)
    }

    /// Returns the labels of the groups of the listed tags, by tag: their `x-group`, else their name.
    #[must_use]
    pub fn group_labels(&self) -> HashMap<&str, &str> {
        let tags = self.root.get("tags").map_or(&[][..], Value::items);
        let mut labels = HashMap::new();
        for tag in tags {
            let name = tag.get("name").and_then(Value::text);
            let label = tag.get("x-group").and_then(Value::text);
            if let Some(name) = name {
                labels.entry(name).or_insert(label.unwrap_or(name));
            }
        }
        labels
    }
}

fn plain(path: &str) -> &str {
    match path.strip_suffix('/') {
        Some(rest) if !rest.is_empty() => rest,
        _ => path,
    }
}

/// RFC 6901 §6: in a URI fragment a token is percent-encoded; §4: then `~1` is `/`.
fn unescaped(token: &str) -> String {
    decode_or_keep(token).replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests;

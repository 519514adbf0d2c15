//! Reads specifications; each file and each URL is read once.

use std::collections::HashMap;

use crate::diagnostic::closest;
use crate::docs::CONFIG;
use crate::docs::page::ignored::Ignored;
use crate::docs::reference::{self, OpenError};
use crate::error::chain;
use crate::source::{Tree, TreePath};
use crate::syntax::{
    Data, Diagnostics, FILE_BYTES_MAX, FileId, LIMIT, Span, SpanDiagnostic, Value, is_yaml, json,
    yaml,
};

use super::{Endpoint, Lookup, Method, Specification};

/// The rule about mistakes inside a specification.
pub const SPECIFICATION: &str = "openapi";
/// How many dangling references of one specification get a diagnostic.
const DANGLING_MAX: usize = 20;
/// How many bytes at the start of a file are searched for the key `openapi`.
const HEAD_BYTES: usize = 4096;
/// How many specifications the documentation may have.
const SPECIFICATIONS_MAX: usize = 2000;

/// The specifications that the documentation names.
#[derive(Debug, Default)]
pub struct Specifications {
    read: Vec<Specification>,
    by_path: HashMap<TreePath, Option<usize>>,
    by_url: HashMap<Box<str>, Result<Option<usize>, NotFetched>>,
    /// The URLs, in the order in which they were first named.
    urls: Vec<Box<str>>,
}

/// The reason why the specification at a URL is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFetched {
    /// No request was made, because the configuration does not allow one: a warning.
    NotAllowed {
        /// The message, which names the URL.
        message: String,
        /// How to make the specification available.
        help: &'static str,
    },
    /// The request failed, or the response is not a text: an error.
    Failed {
        /// The rule that this breaks.
        rule: &'static str,
        /// The message, which names the URL.
        message: String,
    },
}

// === impl Specifications ===

impl Specifications {
    /// Returns the specifications that could be read.
    #[must_use]
    pub fn all(&self) -> &[Specification] {
        &self.read
    }

    /// Adds a specification that was made from a page; returns its number.
    pub fn add(&mut self, specification: Specification) -> usize {
        self.read.push(specification);
        self.read.len() - 1
    }

    /// Returns the specifications that could be read, by value.
    #[must_use]
    pub fn into_all(self) -> Vec<Specification> {
        self.read
    }

    /// Returns the reason for the first named URL that is not available.
    #[must_use]
    pub fn not_fetched(&self) -> Option<&NotFetched> {
        let mut urls = self.urls.iter();
        urls.find_map(|url| self.not_fetched_from(url))
    }

    /// Returns why a named URL is not available.
    #[must_use]
    pub fn not_fetched_from(&self, url: &str) -> Option<&NotFetched> {
        self.by_url.get(url)?.as_ref().err()
    }

    /// Returns the specification that a text names, and reads it at the first call.
    ///
    /// A path starts at the documentation's root or in `directory`. Returns `None` if the
    /// specification cannot be read; every place that names it then gets a diagnostic.
    pub fn open(
        &mut self,
        tree: &Tree,
        directory: &TreePath,
        (text, span): (&str, Span),
        diagnostics: &mut Diagnostics,
    ) -> Option<usize> {
        if is_url(text) {
            return match self.fetched(tree, text, diagnostics) {
                Ok(index) => index,
                Err(NotFetched::NotAllowed { message, help }) => {
                    diagnostics.push(SpanDiagnostic::warning("N6", span, message).help(help));
                    None
                }
                Err(NotFetched::Failed { rule, message }) => {
                    diagnostics.push(SpanDiagnostic::error(rule, span, message));
                    None
                }
            };
        }
        let Some(path) = find(tree, directory, text) else {
            let message = format!("there is no specification `{text}`");
            diagnostics
                .push(SpanDiagnostic::error("N6", span, message).help_if(suggestion(tree, text)));
            return None;
        };
        match self.load(tree, &path, diagnostics) {
            Ok(index) => index,
            Err((rule, message)) => {
                let message = format!("the specification `{text}` cannot be read: {message}");
                diagnostics.push(SpanDiagnostic::error(rule, span, message));
                None
            }
        }
    }

    /// Returns the specification at a URL; `None` if the response is not a specification, which
    /// is reported with a place in the response.
    ///
    /// # Errors
    ///
    /// [`NotFetched`], at every call with this URL.
    pub fn fetched(
        &mut self,
        tree: &Tree,
        url: &str,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<usize>, NotFetched> {
        if let Some(result) = self.by_url.get(url) {
            return result.clone();
        }
        let result = self.read_fetched(tree, url, diagnostics);
        self.urls.push(url.into());
        self.by_url.insert(url.into(), result.clone());
        result
    }

    fn read_fetched(
        &mut self,
        tree: &Tree,
        url: &str,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<usize>, NotFetched> {
        let failed = |rule, message: String| NotFetched::Failed {
            rule,
            message: format!("the specification `{url}` cannot be read: {message}"),
        };
        let bytes = match tree.remote().get(url) {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) if error.is_not_allowed() => {
                return Err(NotFetched::NotAllowed {
                    message: format!("`{url}` is not fetched: {error}"),
                    help: "nothing is generated from it; keep a copy in the repository",
                });
            }
            Some(Err(error)) => return Err(failed("N6", chain(error))),
            None => {
                return Err(NotFetched::NotAllowed {
                    message: format!("`{url}` is remote; nothing is generated from it"),
                    help: "keep a copy of the specification in the repository",
                });
            }
        };
        if self.by_path.len() + self.by_url.len() >= SPECIFICATIONS_MAX {
            let message = format!("there are more than {SPECIFICATIONS_MAX} specifications");
            return Err(failed(LIMIT, message));
        }
        let file = reference::text(url, bytes, diagnostics)
            .map_err(|error| failed(reference::ENCODING, error.to_string()))?;
        Ok(read(file, diagnostics).map(|specification| {
            self.read.push(specification);
            self.read.len() - 1
        }))
    }

    /// Returns the specification in a file, and reads it at the first call; `None` if the file is
    /// not a specification, which is reported with a place in the file.
    ///
    /// # Errors
    ///
    /// The rule and the reason why the file cannot be read, at the first call only.
    pub fn load(
        &mut self,
        tree: &Tree,
        path: &TreePath,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<usize>, (&'static str, String)> {
        if let Some(&known) = self.by_path.get(path) {
            return Ok(known);
        }
        if self.by_path.len() + self.by_url.len() >= SPECIFICATIONS_MAX {
            let message = format!("there are more than {SPECIFICATIONS_MAX} specifications");
            return Err((LIMIT, message));
        }
        let opened = reference::open(tree, path, diagnostics);
        let index = match &opened {
            Ok(file) => read(*file, diagnostics).map(|specification| {
                self.read.push(specification);
                self.read.len() - 1
            }),
            Err(_) => None,
        };
        self.by_path.insert(path.clone(), index);
        match opened {
            Ok(_) => Ok(index),
            Err(error @ OpenError::Encoding { .. }) => {
                Err((reference::ENCODING, error.to_string()))
            }
            Err(error) => Err(("N6", error.to_string())),
        }
    }
}

/// Returns whether a text names a specification by URL.
#[must_use]
pub fn is_url(text: &str) -> bool {
    text.contains("://")
}

/// Finds the file that a text names, relative to the documentation's root or a directory; the
/// text may omit the extension.
#[must_use]
pub fn find(tree: &Tree, directory: &TreePath, text: &str) -> Option<TreePath> {
    let text = text.trim_start_matches('/');
    let directories = [tree.docs_root(), directory];
    let paths = directories.into_iter().flat_map(|directory| {
        let endings = ["", ".json", ".yaml", ".yml"];
        endings.map(|ending| reference::relative(directory, &format!("{text}{ending}")))
    });
    paths.flatten().find(|path| {
        path.strip_prefix(tree.docs_root()).is_some()
            && tree
                .lookup(path)
                .is_ok_and(|found| found.kind == crate::source::Kind::File)
    })
}

/// Finds the files of the documentation that have the key `openapi` at their start, for pages that
/// name an endpoint without its specification.
#[must_use]
pub fn discover(tree: &Tree, ignored: &Ignored) -> Vec<TreePath> {
    let is_specification = |path: &&TreePath| {
        let Some(below) = path.strip_prefix(tree.docs_root()) else {
            return false;
        };
        let named = is_yaml(below) || below.ends_with(".json");
        // `docs.json` may have the key `openapi` too.
        if !named || below == CONFIG || ignored.is_ignored(below) {
            return false;
        }
        let Ok(bytes) = tree.read_at_most(path, FILE_BYTES_MAX) else {
            return false;
        };
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD_BYTES)]);
        let mut lines = head
            .lines()
            .map(|line| line.trim_start_matches(['{', ' ', '\t']));
        lines.any(|line| line.starts_with("openapi:") || line.starts_with("\"openapi\":"))
    };
    tree.files().filter(is_specification).cloned().collect()
}

fn suggestion(tree: &Tree, text: &str) -> Option<String> {
    let text = text.trim_start_matches('/');
    let files = tree
        .files()
        .filter_map(|path| path.strip_prefix(tree.docs_root()));
    let files = files.filter(|path| is_yaml(path) || path.ends_with(".json"));
    let near = closest(text, files)?;
    Some(format!("did you mean `{near}`?"))
}

/// Reads a file as a specification; `None`, with a diagnostic, if it is not one.
#[must_use]
pub fn read(file: FileId, diagnostics: &mut Diagnostics) -> Option<Specification> {
    let path: Box<str> = diagnostics.files.path(file).into();
    // The path of a URL often does not show the format.
    let is_json = match is_url(&path) {
        true => diagnostics.files.text(file).trim_start().starts_with('{'),
        false => !is_yaml(&path),
    };
    let root = match is_json {
        true => json::read(file, diagnostics)?,
        false => yaml::read(file, diagnostics)?,
    };
    version(&root, diagnostics)?;
    let title = root
        .get("info")
        .and_then(|info| info.get("title")?.scalar());
    let mut specification = Specification {
        title: title.unwrap_or_default().into(),
        endpoints: Vec::new(),
        path,
        root,
        from_page: false,
        lookup: Lookup::default(),
    };
    specification.endpoints = endpoints(&specification);
    dangling(&specification, diagnostics);
    Some(specification)
}

fn version(root: &Value, diagnostics: &mut Diagnostics) -> Option<()> {
    let place = Span {
        end: root.span.start + 1,
        ..root.span
    };
    let found = match root.get("openapi") {
        Some(version) => match version.scalar() {
            Some(text) if text.starts_with("3.") => return Some(()),
            _ => {
                SpanDiagnostic::error(SPECIFICATION, version.span, "the version is not 3.0 or 3.1")
            }
        },
        None if root.get("swagger").is_some() => {
            SpanDiagnostic::error(SPECIFICATION, place, "this is Swagger 2.0")
                .help("convert it to OpenAPI 3.0 or 3.1")
        }
        None => SpanDiagnostic::error(SPECIFICATION, place, "this is not an OpenAPI specification")
            .help("it starts with `openapi: 3.1.0` or `\"openapi\": \"3.1.0\"`"),
    };
    diagnostics.push(found);
    None
}

fn endpoints(specification: &Specification) -> Vec<Endpoint> {
    let of = |key| specification.root.get(key).map_or(&[][..], Value::members);
    let mut endpoints = Vec::new();
    for path in of("paths") {
        let Some(item) = specification.resolve(&path.value) else {
            continue;
        };
        for method in Method::ALL {
            if let Some(member) = item.member(method.key())
                && member.value.is_map()
            {
                endpoints.push(endpoint(method, &path.key, &member.value, member.span));
            }
        }
    }
    for webhook in of("webhooks") {
        let Some(item) = specification.resolve(&webhook.value) else {
            continue;
        };
        let operation = Method::ALL.iter().find_map(|method| item.get(method.key()));
        if let Some(operation) = operation {
            endpoints.push(endpoint(
                Method::Webhook,
                &webhook.key,
                operation,
                webhook.span,
            ));
        }
    }
    endpoints
}

fn endpoint(method: Method, path: &str, operation: &Value, span: Span) -> Endpoint {
    let text = |value: Option<&Value>| {
        let text = value.and_then(Value::scalar).map(str::trim);
        text.filter(|text| !text.is_empty()).map(Box::from)
    };
    let flag = |key| operation.get(key).and_then(Value::flag).unwrap_or(false);
    let mint = operation.get("x-mint");
    let metadata = mint.and_then(|mint| mint.get("metadata"));
    let tags = operation.get("tags").map_or(&[][..], Value::items);
    Endpoint {
        method,
        path: path.into(),
        summary: text(operation.get("summary")),
        title: text(metadata.and_then(|metadata| metadata.get("title"))),
        description: text(metadata.and_then(|metadata| metadata.get("description"))),
        href: text(mint.and_then(|mint| mint.get("href"))),
        tags: tags
            .iter()
            .filter_map(Value::scalar)
            .map(Box::from)
            .collect(),
        deprecated: flag("deprecated"),
        hidden: flag("x-hidden"),
        excluded: flag("x-excluded"),
        span,
    }
}

/// Adds a warning for each reference to a value that does not exist.
fn dangling(specification: &Specification, diagnostics: &mut Diagnostics) {
    let mut waiting = vec![&specification.root];
    let mut reported_count = 0;
    let mut known: HashMap<&str, bool> = HashMap::new();
    while let Some(value) = waiting.pop() {
        if reported_count == DANGLING_MAX {
            return;
        }
        match &value.data {
            Data::List(items) => waiting.extend(items),
            Data::Map(members) => waiting.extend(members.iter().map(|member| &member.value)),
            _ => continue,
        }
        let Some(reference) = value.get("$ref") else {
            continue;
        };
        let Some(text) = reference.text() else {
            continue;
        };
        let leads = *known
            .entry(text)
            .or_insert_with(|| specification.resolve(value).is_some());
        if !leads {
            reported_count += 1;
            let message = if text.starts_with('#') {
                format!("the reference `{text}` leads nowhere")
            } else {
                format!("the reference `{text}` leads out of the file and is not followed")
            };
            diagnostics.push(SpanDiagnostic::warning(
                SPECIFICATION,
                reference.span,
                message,
            ));
        }
    }
}

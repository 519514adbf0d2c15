//! Sample requests of an endpoint: the author's samples, then a sample in each language.
//!
//! A credential is an environment variable in a sample, so that it can be pasted as it is. A sample
//! has the values of the query and header that are required. A body or value without an example
//! gets one that is made from its schema. Required cookies that are no credentials are left out.
//!
//! Sources: OpenAPI 3.1.1 §4.8.5 (servers), §4.8.14 (media types), §4.8.19 (examples).

mod body;
mod curl;
mod example;
mod go;
mod javascript;
mod literal;
mod python;
mod query;

use super::Writer;
use super::node::{element, fence};
use crate::docs::config::Language;
use crate::docs::openapi::{Endpoint, Method, Operation, Response, Server};
use crate::mdx::Node;
use crate::site::percent::encode_component;
use crate::syntax::Value as Json;

pub(super) use body::is_file;
pub(super) use example::{Sketch, parameter_example, written_bytes, written_examples};
pub(super) use literal::in_one_line;
pub(super) use query::NO_HEADERS;

use body::Body;

/// How many servers get a curl command of their own.
const SERVERS_MAX: usize = 6;
/// The server that is shown if the specification names none.
const NO_SERVER: &str = "https://api.example.com";

// === impl Writer ===

impl Writer<'_> {
    /// Makes the element with the author's samples, then a sample in each language.
    pub(super) fn samples(&self, endpoint: &Endpoint, operation: &Operation<'_>) -> Option<Node> {
        let samples = ["x-codeSamples", "x-code-samples"]
            .into_iter()
            .find_map(|key| operation.value().get(key));
        let mut fences: Vec<Node> = samples
            .map_or(&[][..], Json::items)
            .iter()
            .filter_map(|sample| {
                let language = sample.get("lang")?.text()?;
                let label = sample.get("label").and_then(Json::text);
                let code = sample.get("source")?.text()?;
                let known = language.to_lowercase();
                self.has_part(code.len()).then_some(())?;
                Some(fence(&known, label.unwrap_or(language), code))
            })
            .collect();
        if endpoint.method != Method::Webhook {
            let servers = operation.servers();
            let first = servers.first().map_or(NO_SERVER.to_owned(), address);
            let mut written = |id: &str, title: &str, code: String| {
                if self.has_part(code.len()) {
                    fences.push(fence(id, title, &code));
                }
            };
            for language in self.languages {
                let request = Request::of(endpoint, operation, &first, self.request_sketch());
                let (id, name) = language.names();
                if *language != Language::Curl || servers.len() < 2 {
                    written(id, name, request.written(*language));
                    continue;
                }
                for server in servers.iter().take(SERVERS_MAX) {
                    let address = address(server);
                    let request = Request::of(endpoint, operation, &address, self.request_sketch());
                    let server = server.description.unwrap_or(server.url);
                    let title = format!("{name} ({server})");
                    written(id, &title, request.written(*language));
                }
            }
        }
        (!fences.is_empty()).then(|| element("RequestExample", Vec::new(), fences))
    }

    fn request_sketch(&self) -> Sketch<'_> {
        Sketch {
            is_required_only: self.is_required_only,
            ..Sketch::request(self.specification).within(self.room.get())
        }
    }
}

/// A request that samples show.
#[derive(Debug)]
struct Request<'r> {
    method: Method,
    /// Its URL, with the required values of the query.
    url: String,
    credentials: Vec<Credential<'r>>,
    /// The required fields of its header.
    headers: Vec<(&'r str, String)>,
    /// The media type of the body; `None` also if the client makes it.
    kind: Option<&'r str>,
    body: Option<Body<'r>>,
}

/// A credential of a request, from environment variables.
#[derive(Debug)]
enum Credential<'r> {
    /// HTTP Basic (RFC 7617), from `USER` and `PASSWORD`.
    Basic,
    /// A bearer token (RFC 6750), from `TOKEN`.
    Bearer,
    /// A header field with a value from the variable, after a text.
    Header {
        name: &'r str,
        before: String,
        variable: String,
    },
    /// A value of the query from the variable.
    Query { name: &'r str, variable: String },
}

/// A piece of a text: itself, or the value of an environment variable.
#[derive(Debug)]
enum Piece {
    Text(String),
    Variable(String),
}

// === impl Request ===

impl<'r> Request<'r> {
    fn of(
        endpoint: &Endpoint,
        operation: &Operation<'r>,
        server: &str,
        sketch: Sketch<'r>,
    ) -> Self {
        let security = operation.security();
        // All schemes of a set are required.
        let set = security.iter().find(|set| !set.schemes.is_empty());
        let schemes = set.map_or(&[][..], |set| &set.schemes[..]).iter();
        let credentials: Vec<_> = schemes
            .filter_map(|&(name, scheme)| Credential::of(name, scheme))
            .collect();
        let mut url = format!("{}{}", server.trim_end_matches('/'), endpoint.path);
        let query = query::query(operation, &credentials, sketch);
        if !query.is_empty() {
            url.push(separator(&url));
            url.push_str(&query);
        }
        let body = operation.body();
        let media = body.as_ref().and_then(|body| body.content.first());
        let own_kind = media.filter(|media| !body::is_multipart(media));
        Self {
            method: endpoint.method,
            url,
            headers: query::headers(operation, &credentials, sketch),
            credentials,
            kind: own_kind.map(|media| media.kind),
            body: media.and_then(|media| Body::of(media, sketch)),
        }
    }

    /// Returns its URL with the credentials of the query.
    fn address(&self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut text = self.url.clone();
        let mut separator = separator(&text);
        for credential in &self.credentials {
            if let Credential::Query { name, variable } = credential {
                text += &format!("{separator}{}=", encode_component(name));
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Variable(variable.clone()));
                separator = '&';
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        pieces
    }

    fn written(&self, language: Language) -> String {
        match language {
            Language::Curl => self.curl(),
            Language::Python => self.python(),
            Language::JavaScript => self.javascript(),
            Language::Go => self.go(),
        }
    }
}

// === impl Credential ===

impl<'r> Credential<'r> {
    /// Reads a security scheme (§4.8.27); `None` for one that no text of a request holds.
    fn of(scheme_name: &str, scheme: &'r Json) -> Option<Self> {
        let field = |key| scheme.get(key).and_then(Json::text);
        let is_basic = || field("scheme").is_some_and(|s| s.eq_ignore_ascii_case("basic"));
        let variable = variable(scheme_name);
        Some(match (field("type")?, field("in"), field("name")) {
            ("http", ..) if is_basic() => Self::Basic,
            ("http" | "oauth2" | "openIdConnect", ..) => Self::Bearer,
            ("apiKey", Some("header"), Some(name)) => Self::Header {
                name,
                before: String::new(),
                variable,
            },
            ("apiKey", Some("cookie"), Some(name)) => Self::Header {
                name: "Cookie",
                before: format!("{name}="),
                variable,
            },
            ("apiKey", Some("query"), Some(name)) => Self::Query { name, variable },
            _ => return None,
        })
    }
}

/// Returns the environment variable for a scheme (POSIX.1-2024 XBD §8.1: capital letters, digits and
/// `_`, not a digit first).
fn variable(scheme: &str) -> String {
    let allowed = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = scheme.chars().map(allowed).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

/// Returns the character before the next value of the query of a URL.
fn separator(url: &str) -> char {
    if url.contains('?') { '&' } else { '?' }
}

/// Returns the URL of a server with default values for its variables (§4.8.6).
pub(super) fn address(server: &Server<'_>) -> String {
    let mut url = server.url.to_owned();
    for member in server.value.get("variables").map_or(&[][..], Json::members) {
        if let Some(default) = member.value.get("default").and_then(Json::scalar) {
            url = url.replace(&format!("{{{}}}", member.key), default);
        }
    }
    url
}

/// Returns the status line of a response (RFC 9112 §4) and the type of its body, for a response
/// without an example; `None` for a range of statuses.
pub(super) fn status_line(response: &Response<'_>) -> Option<String> {
    let status = http::StatusCode::from_bytes(response.status.as_bytes()).ok()?;
    let reason = status.canonical_reason().unwrap_or_default();
    let mut line = format!("HTTP/1.1 {} {reason}", response.status)
        .trim_end()
        .to_owned();
    if let Some(media) = response.content.first() {
        line += &format!("\nContent-Type: {}", media.kind);
    }
    Some(line)
}

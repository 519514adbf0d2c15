//! Sample requests of an endpoint: the author's samples, then a sample in each language.
//!
//! A credential is an environment variable in a sample, so that it can be pasted as it is. A body
//! without an example gets one that is made from its schema.
//!
//! Sources: OpenAPI 3.1.1 §4.8.5 (servers), §4.8.14 (media types), §4.8.19 (examples).

mod curl;
mod example;
mod go;
mod javascript;
mod literal;
mod python;

use std::borrow::Cow;

use super::{Writer, element, fence};
use crate::docs::config::Language;
use crate::docs::openapi::{Endpoint, Method, Operation, Response, Server};
use crate::mdx::Node;
use crate::site::percent::encode_component;
use crate::syntax::Value as Json;

pub(super) use example::{Sketch, written_examples};
pub(super) use literal::in_one_line;

use literal::json;

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
                Some(fence(&known, label.unwrap_or(language), code))
            })
            .collect();
        if endpoint.method != Method::Webhook {
            let servers = operation.servers();
            let first = servers.first().map_or(NO_SERVER.to_owned(), address);
            for language in self.languages {
                let request = Request::of(endpoint, operation, &first, self.request_sketch());
                let (id, name) = language.names();
                if *language != Language::Curl || servers.len() < 2 {
                    fences.push(fence(id, name, &request.written(*language)));
                    continue;
                }
                for server in servers.iter().take(SERVERS_MAX) {
                    let address = address(server);
                    let request = Request::of(endpoint, operation, &address, self.request_sketch());
                    let server = server.description.unwrap_or(server.url);
                    let title = format!("{name} ({server})");
                    fences.push(fence(id, &title, &request.written(*language)));
                }
            }
        }
        (!fences.is_empty()).then(|| element("RequestExample", Vec::new(), fences))
    }

    fn request_sketch(&self) -> Sketch<'_> {
        Sketch {
            is_required_only: self.is_required_only,
            ..Sketch::request(self.specification)
        }
    }
}

/// A request that samples show.
#[derive(Debug)]
struct Request<'r> {
    method: Method,
    url: String,
    credential: Option<Credential<'r>>,
    /// The media type of the body.
    kind: Option<&'r str>,
    body: Option<Cow<'r, Json>>,
}

/// A credential of a request, from environment variables.
#[derive(Debug)]
enum Credential<'r> {
    /// HTTP Basic (RFC 7617), from `USER` and `PASSWORD`.
    Basic,
    /// A bearer token (RFC 6750), from `TOKEN`.
    Bearer,
    /// A header with a value from the variable.
    Header(&'r str, String),
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
        let mut schemes = security.iter().flat_map(|set| &set.schemes);
        let credential = schemes.next().and_then(|(name, scheme)| {
            let field = |key| scheme.get(key).and_then(Json::text);
            let is_basic = || field("scheme").is_some_and(|s| s.eq_ignore_ascii_case("basic"));
            match (field("type"), field("in"), field("name")) {
                (Some("http"), ..) if is_basic() => Some(Credential::Basic),
                (Some("http" | "oauth2" | "openIdConnect"), ..) => Some(Credential::Bearer),
                (Some("apiKey"), Some("header"), Some(header)) => {
                    Some(Credential::Header(header, name.to_uppercase()))
                }
                _ => None,
            }
        });
        let body = operation.body();
        let media = body.as_ref().and_then(|body| body.content.first());
        Self {
            method: endpoint.method,
            url: format!("{}{}", server.trim_end_matches('/'), endpoint.path),
            credential,
            kind: media.map(|media| media.kind),
            body: media.and_then(|media| Some(sketch.examples(media).into_iter().next()?.1)),
        }
    }

    fn written(&self, language: Language) -> String {
        match language {
            Language::Curl => self.curl(),
            Language::Python => self.python(),
            Language::JavaScript => self.javascript(),
            Language::Go => self.go(),
        }
    }

    fn has_json(&self) -> bool {
        self.kind.is_some_and(is_json)
    }

    /// Returns the body as text: JSON, a form, or the example as its author wrote it.
    fn text(&self) -> Option<String> {
        let body = self.body.as_deref()?;
        Some(match body.text() {
            Some(text) if !self.has_json() => text.to_owned(),
            _ if self.kind.is_some_and(is_form) && body.is_map() => form(body),
            _ => json(body),
        })
    }
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

/// Returns whether a body is JSON (RFC 8259 §11, RFC 6839 §3.1).
fn is_json(kind: &str) -> bool {
    kind.contains("json")
}

/// Returns whether a body is a form (WHATWG URL §5).
fn is_form(kind: &str) -> bool {
    kind.starts_with("application/x-www-form-urlencoded")
}

/// Writes the fields of an object as a form.
fn form(object: &Json) -> String {
    let pairs = object.members().iter().map(|member| {
        let value = member.value.scalar();
        let value = value.map_or_else(|| json(&member.value), ToOwned::to_owned);
        format!(
            "{}={}",
            encode_component(&member.key),
            encode_component(&value)
        )
    });
    pairs.collect::<Vec<_>>().join("&")
}

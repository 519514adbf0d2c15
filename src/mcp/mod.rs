//! The Model Context Protocol: a site's documentation and skills for agents.
//!
//! The functions here are pure: a message and a [`Server`] give a [`MessageResponse`]. They know
//! no connections and no stores; a tool reads from a [`Library`].
//!
//! One address serves both eras of the protocol, without sessions and without streams:
//!
//! | era | revisions | how a client begins |
//! |---|---|---|
//! | handshake | 2025-03-26, 2025-06-18, 2025-11-25 | `initialize` |
//! | stateless | 2026-07-28 | any request; each carries its version in `_meta` |
//!
//! | module | contains |
//! |---|---|
//! | [`transport`] | the rules of Streamable HTTP: methods, origins, fields, statuses |
//! | `message` | JSON-RPC messages |
//! | `version` | the revisions, and the revision of a request |
//! | `server` | the description of a server; lists of skills |
//! | `resource` | skills and pages as resources |
//! | `tool` | the tools |
//! | `card` | documents that announce a server |
//!
//! Nothing is kept between two requests: a request on another node gets the same answer.
//!
//! **Prepared answers.** When a release is compiled, the texts of its skills and the description of
//! the server are written once ([`SkillTexts`], [`information`]): `skills/list` joins nothing, and a
//! list of resources begins with a text that exists. Every other answer without parameters
//! (`initialize`, `server/discover`, `tools/list`, lists of pages, files of skills as JSON) is written
//! at its first request and then cached ([`Library::keep`]), because a compiled release stays in
//! memory as long as it is served: these answers take about 12 KB for a site, 12 GB for a million
//! sites, and few of the sites are asked. The cache has a bound for all sites together.
//!
//! **Limits.** A message has at most [`BODY_BYTES_MAX`] bytes and is nested at most 127 deep (the
//! parser's limit). The text of a tool's answer has at most as many tokens as the client allows,
//! and never more than [`tool::TOKENS_MAX`].
//!
//! Sources: Model Context Protocol 2025-11-25 and 2026-07-28 (specification pages
//! `basic/transports`, `basic/versioning`, `server/tools`, `server/resources`,
//! `server/utilities/caching`); SEP-2640 (skills).

mod card;
mod encoded;
mod message;
mod resource;
mod server;
pub mod tool;
pub mod transport;
mod version;

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::release::pages::Pages;
use crate::response::McpFields;
use crate::search::{Question, SearchResult};

use message::{Content, Id, Malformed, Message};
pub use message::{count_messages, is_search};
pub use server::{Server, Skill, SkillTexts, information};
pub use version::{Era, LATEST, REVISIONS, negotiated};

/// The longest message, in bytes.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// How long a client may use a list or a resource before it requests it again, in milliseconds. It
/// is the time for which HTTP caches store a discovery document.
const TTL_MS: u32 = 60_000;

/// 2026-07-28, `basic`, "Per-request protocol fields".
const CLIENT_KEY: &str = "io.modelcontextprotocol/clientInfo";

/// The source of the pages of a site.
pub trait Library: Debug {
    /// Returns the list of pages.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read now.
    fn pages(&self) -> Result<Arc<Pages>, ReadError>;

    /// Returns the Markdown of the page at a path, with the addresses of the site; `None` if
    /// there is no such page.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read now.
    fn markdown(&self, path: &str) -> Result<Option<Bytes>, ReadError>;

    /// Returns where the section with an anchor begins in the Markdown of a page, in bytes, if the
    /// search index has the page and the anchor.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read now.
    fn section(&self, path: &str, anchor: &str) -> Result<Option<usize>, ReadError>;

    /// Returns where the site redirects a path that has no page.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read now.
    fn redirect(&self, path: &str) -> Result<Option<String>, ReadError>;

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the index cannot be read now.
    fn search(&self, question: &Question<'_>) -> Result<SearchResult, ReadError>;

    /// Returns the part of an answer that was cached under this name. Such a part depends only on
    /// the site's release and record.
    fn kept(&self, name: &str) -> Option<Bytes>;

    /// Caches a part of an answer.
    fn keep(&self, name: &str, part: &str);

    /// Returns whether long work is allowed. On a thread that serves connections it is not.
    fn may_work(&self) -> bool;
}

/// Why something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// It is not in memory, or the work is long. It can be read on a thread that may block.
    NotReady,
    /// The store cannot read it. The cause is in the log.
    Failed,
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageResponse {
    /// The status of the HTTP response.
    pub status: u16,
    /// A JSON-RPC response; empty for a notification.
    pub body: Vec<u8>,
    /// The calls among the messages.
    pub calls: Vec<CallName>,
}

/// A call, as the numbers of a site name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallName {
    /// The tool, or `connect` or `resources/read`.
    pub tool: &'static str,
    /// The name that the client gives itself. Only the stateless revision has it in every request.
    pub client: Option<Box<str>>,
}

/// The methods of a server. [`respond`] does the rest of the protocol.
///
/// A site has the methods that [`answer`] uses. The tests have a server with the tools that the
/// official conformance suite calls.
pub trait Methods {
    /// Returns the `Implementation` of the server, as JSON.
    fn information(&self) -> String;

    /// Returns the result of a request.
    ///
    /// # Errors
    ///
    /// The [`Rejection`] to answer with.
    fn result(&self, request: &Request<'_>) -> Result<Outcome, Rejection>;
}

/// A request that keeps the rules of its era.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// How the client and the server agree on a revision.
    pub era: Era,
    /// The method.
    pub method: &'r str,
    /// The parameters; empty if there are none.
    pub params: &'r Map<String, Value>,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// See [`ReadError::NotReady`].
    NotReady,
    /// A JSON-RPC error.
    Error {
        /// The status of the HTTP response.
        status: u16,
        /// The code of the error.
        code: i32,
        /// A sentence for people.
        message: String,
        /// More about it; its form depends on the code.
        data: Option<Value>,
    },
}

/// A result of a method, before it is an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The members of an object as JSON, without its braces. A client may cache it.
    Cacheable(String),
    /// The same, as a [`Library`] kept them.
    Stored(Bytes),
    /// The same as [`Outcome::Cacheable`], but a client must request it each time.
    Once(String),
}

/// The methods of a site.
struct Site<'s> {
    server: &'s Server<'s>,
    library: &'s dyn Library,
}

/// The parts of a request that all methods need.
struct Call<'c> {
    server: &'c Server<'c>,
    library: &'c dyn Library,
    era: Era,
    params: &'c Map<String, Value>,
}

/// Answers a message.
///
/// # Errors
///
/// [`ReadError::NotReady`] if the answer needs a thread that may block.
pub fn answer(
    server: &Server<'_>,
    library: &dyn Library,
    fields: &McpFields<'_>,
    body: &[u8],
) -> Result<MessageResponse, ReadError> {
    respond(&Site { server, library }, fields, body)
}

/// Answers a message to a server with these methods.
///
/// # Errors
///
/// [`ReadError::NotReady`] if the answer needs a thread that may block.
pub fn respond(
    methods: &impl Methods,
    fields: &McpFields<'_>,
    body: &[u8],
) -> Result<MessageResponse, ReadError> {
    match Content::parse(body, version::has_batches(fields)) {
        Ok(Content::One(message)) => respond_to(methods, fields, message),
        Ok(Content::Batch(messages)) => respond_to_all(methods, fields, messages),
        Err(malformed) => Ok(MessageResponse::malformed(&malformed)),
    }
}

/// Answers the messages of a batch, in their order (2025-03-26, `basic/transports`, "Sending
/// Messages").
fn respond_to_all(
    methods: &impl Methods,
    fields: &McpFields<'_>,
    messages: Vec<Result<Message, Malformed>>,
) -> Result<MessageResponse, ReadError> {
    let mut body = Vec::new();
    let mut calls = Vec::new();
    for message in messages {
        let answer = match message {
            Ok(message) => respond_to(methods, fields, message)?,
            Err(malformed) => MessageResponse::malformed(&malformed),
        };
        if answer.body.is_empty() {
            continue;
        }
        body.push(if body.is_empty() { b'[' } else { b',' });
        body.extend_from_slice(&answer.body);
        calls.extend(answer.calls);
    }
    if body.is_empty() {
        return Ok(MessageResponse::accepted());
    }
    body.push(b']');
    Ok(MessageResponse {
        status: 200,
        body,
        calls,
    })
}

fn respond_to(
    methods: &impl Methods,
    fields: &McpFields<'_>,
    message: Message,
) -> Result<MessageResponse, ReadError> {
    let (id, method, params) = match message {
        Message::Request { id, method, params } => (id, method, params),
        // Nothing is subscribed, and no request runs longer than its response.
        Message::Notification | Message::Response => return Ok(MessageResponse::accepted()),
    };
    let era = match Era::of(fields, &method, &params) {
        Ok(era) => era,
        Err(rejection) => return Ok(MessageResponse::error(Some(&id), rejection)),
    };
    let request = Request {
        era,
        method: &method,
        params: &params,
    };
    let (answer, has_result) = match methods.result(&request) {
        Ok(result) => (MessageResponse::result(&id, era, methods, result), true),
        Err(Rejection::NotReady) => return Err(ReadError::NotReady),
        Err(rejection) => (MessageResponse::error(Some(&id), rejection), false),
    };
    Ok(MessageResponse {
        calls: CallName::of(&request, has_result).into_iter().collect(),
        ..answer
    })
}

// === impl CallName ===

impl CallName {
    /// Names a call; `None` for a request that is not one. `has_result`: whether the server has
    /// answered it with a result.
    fn of(request: &Request<'_>, has_result: bool) -> Option<Self> {
        let params = request.params;
        let tool = match request.method {
            "initialize" | "server/discover" => "connect",
            "resources/read" => "resources/read",
            "tools/call" => tool::known_name(params.get("name")?.as_str()?, has_result)?,
            _ => return None,
        };
        let client = match request.era {
            Era::Handshake => params.get("clientInfo"),
            Era::Stateless => params.get("_meta").and_then(|meta| meta.get(CLIENT_KEY)),
        };
        let name = client.and_then(|client| client.get("name"));
        Some(Self {
            tool,
            client: name.and_then(Value::as_str).map(Box::from),
        })
    }
}

// === impl Site ===

impl Methods for Site<'_> {
    fn information(&self) -> String {
        self.server.information.to_owned()
    }

    fn result(&self, request: &Request<'_>) -> Result<Outcome, Rejection> {
        let call = Call {
            server: self.server,
            library: self.library,
            era: request.era,
            params: request.params,
        };
        call.result(request.method)
    }
}

// === impl Call ===

impl Call<'_> {
    fn result(&self, method: &str) -> Result<Outcome, Rejection> {
        let is_stateless = self.era == Era::Stateless;
        match method {
            "initialize" if !is_stateless => self.initialize(),
            "ping" if !is_stateless => Ok(Outcome::Once(String::new())),
            "server/discover" if is_stateless => Ok(self.discover()),
            "tools/list" => self.tools(),
            "tools/call" => self.call_tool(),
            "resources/list" => self.resources(),
            "resources/templates/list" => self.templates(),
            "resources/read" => self.read(),
            "resources/directory/read" => self.directory(),
            "skills/list" => self.skills(),
            "skills/get" => self.skill(),
            _ => Err(Rejection::unknown_method(self.era, method)),
        }
    }

    /// Returns a kept part of an answer, or makes and keeps it. It depends only on the site and on
    /// the name.
    fn kept_or(&self, name: &str, make: impl FnOnce() -> String) -> Outcome {
        if let Some(kept) = self.library.kept(name) {
            return Outcome::Stored(kept);
        }
        let members = make();
        self.library.keep(name, &members);
        Outcome::Cacheable(members)
    }

    /// Returns a text parameter.
    fn text(&self, name: &str) -> Result<&str, Rejection> {
        let value = self.params.get(name).and_then(Value::as_str);
        value.ok_or_else(|| Rejection::invalid(format!("The parameter `{name}` must be a text.")))
    }

    /// Rejects a cursor, because the list has only one page.
    fn first_page(&self) -> Result<(), Rejection> {
        match self.params.get("cursor") {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(Rejection::cursor()),
        }
    }
}

// === impl MessageResponse ===

impl MessageResponse {
    /// 202 without content (`basic/transports`, "Sending Messages").
    fn accepted() -> Self {
        Self {
            status: 202,
            body: Vec::new(),
            calls: Vec::new(),
        }
    }

    fn result(id: &Id, era: Era, methods: &impl Methods, result: Outcome) -> Self {
        let (members, is_kept) = match &result {
            Outcome::Cacheable(members) => (members.as_bytes(), true),
            Outcome::Stored(members) => (&members[..], true),
            Outcome::Once(members) => (members.as_bytes(), false),
        };
        let mut body = Vec::with_capacity(members.len() + 320);
        body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        body.extend_from_slice(id.as_json().as_bytes());
        body.extend_from_slice(br#","result":{"#);
        body.extend_from_slice(members);
        if era == Era::Stateless {
            if !members.is_empty() {
                body.push(b',');
            }
            body.extend_from_slice(br#""resultType":"complete","#);
            if is_kept {
                // `server/utilities/caching`. The result is public, so it is the same for every
                // client.
                let hints = format!(r#""ttlMs":{TTL_MS},"cacheScope":"public","#);
                body.extend_from_slice(hints.as_bytes());
            }
            body.extend_from_slice(br#""_meta":{"io.modelcontextprotocol/serverInfo":"#);
            body.extend_from_slice(methods.information().as_bytes());
            body.push(b'}');
        }
        body.extend_from_slice(b"}}");
        Self {
            status: 200,
            body,
            calls: Vec::new(),
        }
    }

    fn malformed(malformed: &Malformed) -> Self {
        Self::error(malformed.id.as_ref(), malformed.rejection())
    }

    fn error(id: Option<&Id>, rejection: Rejection) -> Self {
        let Rejection::Error {
            status,
            code,
            message,
            data,
        } = rejection
        else {
            return Self::error(id, Rejection::failed());
        };
        let mut error = json!({"code": code, "message": message});
        if let Some(data) = data {
            error["data"] = data;
        }
        let id = id.map_or_else(String::new, |id| format!(r#""id":{},"#, id.as_json()));
        let body = format!(r#"{{"jsonrpc":"2.0",{id}"error":{error}}}"#);
        Self {
            status,
            body: body.into_bytes(),
            calls: Vec::new(),
        }
    }
}

// === impl Rejection ===

impl Rejection {
    /// A method that the server does not have.
    #[must_use]
    pub fn unknown_method(era: Era, method: &str) -> Self {
        Self::Error {
            // 2026-07-28, `basic/transports/streamable-http`, "Protocol Version Header".
            status: if era == Era::Stateless { 404 } else { 200 },
            code: message::METHOD_NOT_FOUND,
            message: format!("Method not found: {}", shortened(method)),
            data: None,
        }
    }

    /// Parameters that are wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Error {
            status: 200,
            code: message::INVALID_PARAMS,
            message: message.into(),
            data: None,
        }
    }

    fn cursor() -> Self {
        Self::invalid(
            "The cursor is not one of this list, or the list has changed since. \
             Begin again without a cursor.",
        )
    }

    fn failed() -> Self {
        Self::Error {
            status: 200,
            code: message::INTERNAL_ERROR,
            message: "The documentation cannot be read at the moment. Try again later.".into(),
            data: None,
        }
    }
}

impl From<ReadError> for Rejection {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotReady => Self::NotReady,
            ReadError::Failed => Self::failed(),
        }
    }
}

/// Cuts a text that a client sent, for a message about it.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(100)]
}

/// Writes a text as JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

//! Requests and answers, in the format of each provider.
//!
//! The conversation knows messages, calls and results; a format writes them as the body of a
//! request and reads an answer. The messages of the model are sent back unchanged, because
//! providers sign parts of them.

mod anthropic;
mod openai;
mod stream;

use serde_json::{Value, json};

use super::Key;
use super::config::{Config, Provider};
pub(super) use stream::StreamError;

/// A tool that the model may call.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// The JSON Schema of its input.
    pub(super) schema: Value,
}

/// A part of the conversation.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// A text of ours.
    User(String),
    /// An answer of the model, in the format of the provider.
    Model(Value),
    /// The results of the tools.
    Results(Vec<ToolResult>),
}

/// The result of a tool.
#[derive(Clone, Debug)]
pub(super) struct ToolResult {
    /// The id of the call.
    pub(super) id: String,
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// A request, independent of a format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'r> {
    pub(super) system: &'r str,
    pub(super) tools: &'r [Tool],
    pub(super) messages: &'r [Message],
    /// How many tokens the answer may have.
    pub(super) output_tokens: u64,
}

/// An answer of the model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    /// The message as it is sent back in later requests.
    pub(super) raw: Value,
    pub(super) calls: Vec<Call>,
    pub(super) end: End,
    pub(super) usage: Usage,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// The input, or why it cannot be read.
    pub(super) input: Result<Value, String>,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has said everything, or calls tools.
    Done,
    /// The answer was longer than allowed.
    Cut,
    /// The provider paused it; the conversation goes on.
    Paused,
    /// It declined, or a filter of the provider did.
    Refused,
    /// The conversation is longer than the model can read.
    Full,
}

/// How many tokens a request and its answer had, as the server says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) output: u64,
}

/// An answer is not in the format of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer of the server {0}")]
pub(super) struct Malformed(pub(super) &'static str);

/// A provider and what it wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format<'c> {
    config: &'c Config,
}

// === impl Format ===

impl<'c> Format<'c> {
    pub(super) fn of(config: &'c Config) -> Self {
        Self { config }
    }

    /// Returns the address of requests.
    pub(super) fn url(&self) -> String {
        let base = self.config.url.as_ref().map_or("", |url| url.as_str());
        match self.config.provider {
            Provider::Anthropic => format!("{base}/v1/messages"),
            Provider::OpenAi => format!("{base}/chat/completions"),
        }
    }

    /// Returns the header fields of requests, besides those of every JSON request.
    pub(super) fn fields(&self, key: &Key) -> Vec<(&'static str, String)> {
        let key = key.expose();
        match self.config.provider {
            Provider::Anthropic => {
                let mut fields = vec![("anthropic-version", anthropic::VERSION.to_owned())];
                fields.extend(key.map(|key| ("x-api-key", key.to_owned())));
                fields
            }
            Provider::OpenAi => {
                let field = |key: &str| ("authorization", format!("Bearer {key}"));
                key.map(field).into_iter().collect()
            }
        }
    }

    /// Writes the body of a request.
    pub(super) fn body(&self, request: Request<'_>) -> Vec<u8> {
        let mut body = match self.config.provider {
            Provider::Anthropic => anthropic::body(&self.config.model, request),
            Provider::OpenAi => {
                let host = self.config.url.as_ref().map_or("", |url| url.host());
                openai::body(&self.config.model, host, request)
            }
        };
        if self.config.stream {
            body["stream"] = true.into();
            if self.config.provider == Provider::OpenAi {
                // Without it the tokens are not reported.
                body["stream_options"] = json!({ "include_usage": true });
            }
        }
        serde_json::to_vec(&body).expect("values are written as JSON")
    }

    /// Joins the events of an answer with status 200 that comes as a stream.
    pub(super) fn joined(&self, text: &str) -> Result<Value, StreamError> {
        stream::joined(self.config.provider, text)
    }

    /// Reads an answer with status 200.
    pub(super) fn reply(&self, body: &Value) -> Result<Reply, Malformed> {
        match self.config.provider {
            Provider::Anthropic => anthropic::reply(body),
            Provider::OpenAi => openai::reply(body),
        }
    }
}

/// Returns the kind of an error, as both providers write it: a short word, or nothing.
pub(super) fn error_kind(body: &Value) -> String {
    let error = body.get("error");
    let kind = ["type", "code"]
        .iter()
        .find_map(|key| error?.get(key)?.as_str());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let kind = kind.unwrap_or_default();
    match kind.len() <= 60 && kind.chars().all(is_word) {
        true => kind.to_owned(),
        false => String::new(),
    }
}

/// Returns the message of an error, for the log.
pub(super) fn error_message(body: &Value) -> &str {
    let error = body.get("error");
    let message = error.and_then(|error| error.get("message")?.as_str());
    message
        .or_else(|| error.and_then(Value::as_str))
        .unwrap_or_default()
}

fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// The tool of the requests in the tests of both formats.
#[cfg(test)]
fn example_tool() -> Tool {
    Tool {
        name: "search",
        description: "Searches.",
        schema: serde_json::json!({ "type": "object" }),
    }
}

/// A request of the tests of both formats.
#[cfg(test)]
fn example<'r>(tools: &'r [Tool], messages: &'r [Message]) -> Request<'r> {
    Request {
        system: "Be brief.",
        tools,
        messages,
        output_tokens: 1000,
    }
}

//! JSON-RPC messages.
//!
//! Sources: JSON-RPC 2.0; Model Context Protocol 2026-07-28, `basic`, "Messages": an id is a text
//! or a whole number. Revision 2025-03-26, `basic`, "Batching": a server must accept batches. The
//! other revisions have none.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::Rejection;

/// The most messages of a batch. Each may take as long as a call of a tool takes.
const BATCH_MAX: usize = 8;

/// The text is not JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// The JSON is not a message.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are wrong.
pub(super) const INVALID_PARAMS: i32 = -32602;
/// The server failed.
pub(super) const INTERNAL_ERROR: i32 = -32603;

/// The content of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// One message.
    One(Message),
    /// Some messages, each read for itself.
    Batch(Vec<Result<Message, Malformed>>),
}

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// It needs a response.
    Request {
        id: Id,
        method: String,
        params: Map<String, Value>,
    },
    /// It needs no response.
    Notification,
    /// A response. This server sends no requests, so it expects none.
    Response,
}

/// The id of a request, as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id(Box<str>);

/// Why a body is not a valid message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    code: i32,
    message: String,
    /// The id, if it could be read.
    pub(super) id: Option<Id>,
}

/// Counts the messages of a content without reading them: at least one.
#[must_use]
pub fn count_messages(body: &[u8]) -> u32 {
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    if body.iter().find(|byte| !is_space(byte)) != Some(&b'[') {
        return 1;
    }
    let messages: Vec<IgnoredAny> = serde_json::from_slice(body).unwrap_or_default();
    u32::try_from(messages.len().clamp(1, BATCH_MAX)).unwrap_or(1)
}

/// Returns whether a content is a call of the tool that searches, and nothing else.
#[must_use]
pub fn is_search(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Call<'b> {
        #[serde(borrow)]
        method: Cow<'b, str>,
        #[serde(borrow)]
        params: Named<'b>,
    }
    #[derive(Deserialize)]
    struct Named<'b> {
        #[serde(borrow)]
        name: Cow<'b, str>,
    }
    let call = serde_json::from_slice::<Call<'_>>(body).ok();
    call.is_some_and(|call| {
        call.method == "tools/call" && super::tool::is_search(&call.params.name)
    })
}

// === impl Content ===

impl Content {
    /// Reads a content. `has_batches`: whether the revision has batches.
    pub(super) fn parse(body: &[u8], has_batches: bool) -> Result<Self, Malformed> {
        let value: Value = serde_json::from_slice(body).map_err(|error| Malformed {
            code: PARSE_ERROR,
            message: format!("Parse error: {error}"),
            id: None,
        })?;
        let messages = match value {
            Value::Array(messages) => messages,
            value => return Message::of(value).map(Self::One),
        };
        if !has_batches {
            let message = "Batches are not supported in this revision. \
                           Send one message in each request.";
            return Err(Malformed::invalid(message, None));
        }
        if messages.is_empty() || messages.len() > BATCH_MAX {
            let message = format!("A batch has from 1 to {BATCH_MAX} messages.");
            return Err(Malformed::invalid(&message, None));
        }
        let mut read = Vec::with_capacity(messages.len());
        for message in messages {
            read.push(match Message::of(message) {
                // 2025-03-26, `basic/lifecycle`, "Initialization".
                Ok(Message::Request { id, method, .. }) if method == "initialize" => {
                    let message = "`initialize` is not part of a batch.";
                    Err(Malformed::invalid(message, Some(id)))
                }
                other => other,
            });
        }
        Ok(Self::Batch(read))
    }
}

// === impl Message ===

impl Message {
    fn of(value: Value) -> Result<Self, Malformed> {
        let Value::Object(mut members) = value else {
            return Err(Malformed::invalid("A message is a JSON object.", None));
        };
        let id = match members.get("id") {
            None => None,
            Some(id) => Some(Id::of(id).ok_or_else(|| {
                Malformed::invalid("The id of a request is a text or a whole number.", None)
            })?),
        };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(Malformed::invalid("`jsonrpc` must be \"2.0\".", id));
        }
        let method = match members.remove("method") {
            Some(Value::String(method)) => method,
            Some(_) => return Err(Malformed::invalid("`method` must be a text.", id)),
            None if members.contains_key("result") || members.contains_key("error") => {
                return Ok(Self::Response);
            }
            None => return Err(Malformed::invalid("The message has no `method`.", id)),
        };
        let params = match members.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(Malformed::invalid("`params` must be an object.", id)),
        };
        Ok(match id {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification,
        })
    }
}

// === impl Id ===

impl Id {
    fn of(value: &Value) -> Option<Self> {
        let is_id = match value {
            Value::String(_) => true,
            Value::Number(number) => number.is_i64() || number.is_u64(),
            _ => false,
        };
        is_id.then(|| Self(value.to_string().into()))
    }

    pub(super) fn as_json(&self) -> &str {
        &self.0
    }
}

// === impl Malformed ===

impl Malformed {
    fn invalid(message: &str, id: Option<Id>) -> Self {
        Self {
            code: INVALID_REQUEST,
            message: format!("Invalid request: {message}"),
            id,
        }
    }

    pub(super) fn rejection(&self) -> Rejection {
        Rejection::Error {
            status: 400,
            code: self.code,
            message: self.message.clone(),
            data: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &[u8]) -> Result<Message, Malformed> {
        match Content::parse(body, false)? {
            Content::One(message) => Ok(message),
            Content::Batch(_) => panic!("a batch"),
        }
    }

    #[test]
    fn a_call_of_the_search_is_known_before_it_is_answered() {
        for search in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":"a"}}}"#,
            r#"{"params":{"arguments":{},"name":"search_acme"},"method":"tools\/call"}"#,
        ] {
            assert!(is_search(search.as_bytes()), "{search}");
        }
        for other in [
            "",
            "{",
            r#"{"method":"tools/call","params":{"name":"grep"}}"#,
            r#"{"method":"tools/call","params":{"name":1}}"#,
            r#"{"method":"tools/call"}"#,
            r#"{"method":"tools/list","params":{"name":"search"}}"#,
            r#"[{"method":"tools/call","params":{"name":"search"}}]"#,
        ] {
            assert!(!is_search(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn messages_are_counted_without_being_read() {
        for (body, count) in [
            ("{}", 1),
            ("", 1),
            ("[", 1),
            (" \n[{}, 1]", 2),
            ("[]", 1),
            ("[1,1,1,1,1,1,1,1,1,1,1,1]", 8),
        ] {
            assert_eq!(count_messages(body.as_bytes()), count, "{body}");
        }
    }

    #[test]
    fn an_id_is_a_text_or_a_whole_number() {
        let id = |id: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            match parse(text.as_bytes()) {
                Ok(Message::Request { id, .. }) => Ok(id.as_json().to_owned()),
                Ok(other) => panic!("{other:?}"),
                Err(malformed) => Err(malformed.code),
            }
        };
        for whole in [
            "1",
            "-7",
            "0",
            "18446744073709551615",
            "\"a\\u0001\"",
            "\"\"",
        ] {
            assert_eq!(id(whole).as_deref(), Ok(whole), "{whole}");
        }
        for wrong in ["null", "1.5", "1e3", "true", "[1]", "{}"] {
            assert_eq!(id(wrong), Err(INVALID_REQUEST), "{wrong}");
        }
    }

    #[test]
    fn a_deep_message_is_a_parse_error() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}{}}}}}"#,
            "[".repeat(20_000),
            "]".repeat(20_000)
        );
        let malformed = parse(deep.as_bytes()).unwrap_err();
        assert_eq!(malformed.code, PARSE_ERROR);
    }

    #[test]
    fn what_is_not_a_message_is_rejected() {
        for (text, code) in [
            ("", PARSE_ERROR),
            ("{", PARSE_ERROR),
            ("\u{0}", PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            ("1", INVALID_REQUEST),
            ("{}", INVALID_REQUEST),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                INVALID_REQUEST,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
                INVALID_REQUEST,
            ),
        ] {
            let malformed = parse(text.as_bytes()).unwrap_err();
            assert_eq!(malformed.code, code, "{text}");
        }
        let notification = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(parse(notification), Ok(Message::Notification));
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(parse(response), Ok(Message::Response));
    }
}

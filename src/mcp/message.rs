//! JSON-RPC messages.
//!
//! Sources: JSON-RPC 2.0; Model Context Protocol 2026-07-28, `basic`, "Messages": an id is a text
//! or a whole number. Batches existed in revision 2025-03-26 only and are rejected.

use serde_json::{Map, Value};

use super::Rejection;

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

// === impl Message ===

impl Message {
    /// Reads a message.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let value: Value = serde_json::from_slice(body).map_err(|error| Malformed {
            code: PARSE_ERROR,
            message: format!("Parse error: {error}"),
            id: None,
        })?;
        let Value::Object(mut members) = value else {
            let message = match value {
                Value::Array(_) => "Batches are not supported. Send one message in each request.",
                _ => "A message is a JSON object.",
            };
            return Err(Malformed::invalid(message, None));
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

    #[test]
    fn an_id_is_a_text_or_a_whole_number() {
        let id = |id: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            match Message::parse(text.as_bytes()) {
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
        let malformed = Message::parse(deep.as_bytes()).unwrap_err();
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
            let malformed = Message::parse(text.as_bytes()).unwrap_err();
            assert_eq!(malformed.code, code, "{text}");
        }
        let notification = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(Message::parse(notification), Ok(Message::Notification));
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(Message::parse(response), Ok(Message::Response));
    }
}

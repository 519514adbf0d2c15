//! Answers that come as a stream of events are joined to the answer that the same server gives at
//! once.
//!
//! | provider | events |
//! |---|---|
//! | Anthropic | `message_start`, `content_block_start`, `content_block_delta`, `content_block_stop`, `message_delta`, `message_stop`; `ping`, `error` |
//! | `OpenAI` | unnamed chunks with a `delta`, and `[DONE]` |
//!
//! A stream without its last event is cut, so it is no answer. Events and members that are not
//! known are skipped: providers add some.
//!
//! Sources: HTML, "Server-sent events", §9.2.6 (interpreting an event stream); Anthropic API,
//! "Streaming Messages"; `OpenAI` API reference, "Chat Completions", "Streaming".

use serde_json::{Map, Value, json};

use super::super::config::Provider;
use super::{Malformed, error_kind};

/// The highest index of a block or a call. An index is a place in a list that we make.
const INDEX_MAX: usize = 1000;

/// Why a stream has no complete answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::deploy::writer) enum StreamError {
    /// The server reports an error in the middle of its answer.
    #[error("the server of the model ended its answer with an error ({kind})")]
    Broken { kind: String, message: String },
    #[error("{0}")]
    Malformed(#[from] Malformed),
}

/// Joins the events of a stream.
pub(super) fn joined(provider: Provider, text: &str) -> Result<Value, StreamError> {
    match provider {
        Provider::Anthropic => messages(text),
        Provider::OpenAi => completions(text),
    }
}

/// Returns the data of each event.
fn events(text: &str) -> Vec<String> {
    let mut events = Vec::new();
    let mut data: Option<String> = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    for line in text.split('\n') {
        if line.is_empty() {
            events.extend(data.take());
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            }
        }
    }
    // An event without an empty line after it is not complete.
    events
}

fn parsed(data: &str) -> Result<Value, StreamError> {
    let event: Value =
        serde_json::from_str(data).map_err(|_error| Malformed("has an event that is not JSON"))?;
    if event.get("error").is_some_and(|error| !error.is_null()) {
        let message = super::error_message(&event);
        return Err(StreamError::Broken {
            kind: error_kind(&event),
            message: message.to_owned(),
        });
    }
    Ok(event)
}

fn index(event: &Value) -> Result<usize, Malformed> {
    let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
    let index = usize::try_from(index).ok();
    index
        .filter(|index| *index <= INDEX_MAX)
        .ok_or(Malformed("has an index that is too high"))
}

/// Adds a text to a member that is a text.
fn append(object: &mut Map<String, Value>, key: &str, more: &str) {
    match object.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            object.insert(key.to_owned(), more.into());
        }
    }
}

/// Copies the members of an object over those of another.
fn merge(object: &mut Map<String, Value>, more: Option<&Value>) {
    for (key, value) in more.and_then(Value::as_object).into_iter().flatten() {
        if !value.is_null() {
            object.insert(key.clone(), value.clone());
        }
    }
}

fn messages(text: &str) -> Result<Value, StreamError> {
    let mut message = Map::new();
    let mut usage = Map::new();
    let mut blocks: Vec<Map<String, Value>> = Vec::new();
    let mut inputs: Vec<Option<String>> = Vec::new();
    let mut is_whole = false;
    for data in events(text) {
        let event = parsed(&data)?;
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                let started = event.get("message");
                merge(&mut message, started);
                merge(&mut usage, started.and_then(|started| started.get("usage")));
            }
            Some("content_block_start") => {
                if index(&event)? != blocks.len() {
                    return Err(Malformed("has blocks that are not in order").into());
                }
                let block = event.get("content_block").and_then(Value::as_object);
                blocks.push(block.cloned().unwrap_or_default());
                inputs.push(None);
            }
            Some("content_block_delta") => {
                let at = index(&event)?;
                let (Some(block), Some(input)) = (blocks.get_mut(at), inputs.get_mut(at)) else {
                    return Err(Malformed("continues a block that has not begun").into());
                };
                let delta = event.get("delta").unwrap_or(&Value::Null);
                for (key, value) in delta.as_object().into_iter().flatten() {
                    let Some(text) = value.as_str().filter(|_| key != "type") else {
                        continue;
                    };
                    match key.as_str() {
                        "partial_json" => input.get_or_insert_default().push_str(text),
                        key => append(block, key, text),
                    }
                }
            }
            Some("message_delta") => {
                merge(&mut message, event.get("delta"));
                merge(&mut usage, event.get("usage"));
            }
            Some("message_stop") => is_whole = true,
            _ => {}
        }
    }
    if !is_whole {
        return Err(Malformed("ends before its last event").into());
    }
    for (block, input) in blocks.iter_mut().zip(inputs) {
        let Some(input) = input.filter(|input| !input.trim().is_empty()) else {
            continue;
        };
        // Arguments that are not JSON stay a text: the model gets an error that an object is
        // expected.
        let input = serde_json::from_str(&input).unwrap_or(Value::String(input));
        block.insert("input".to_owned(), input);
    }
    let blocks = blocks.into_iter().map(Value::Object).collect();
    message.insert("content".to_owned(), Value::Array(blocks));
    message.insert("usage".to_owned(), Value::Object(usage));
    Ok(Value::Object(message))
}

fn completions(text: &str) -> Result<Value, StreamError> {
    let mut message = Map::new();
    let mut calls: Vec<Map<String, Value>> = Vec::new();
    let mut reason = Value::Null;
    let mut usage = Value::Null;
    let mut is_whole = false;
    for data in events(text) {
        if data == "[DONE]" {
            is_whole = true;
            break;
        }
        let event = parsed(&data)?;
        if let Some(given) = event.get("usage").filter(|usage| usage.is_object()) {
            usage = given.clone();
        }
        let choice = event.get("choices").and_then(|choices| choices.get(0));
        let Some(choice) = choice else {
            continue;
        };
        if let Some(given) = choice
            .get("finish_reason")
            .filter(|given| given.is_string())
        {
            reason = given.clone();
        }
        let delta = choice.get("delta").unwrap_or(&Value::Null);
        for key in ["content", "refusal"] {
            if let Some(more) = delta.get(key).and_then(Value::as_str) {
                append(&mut message, key, more);
            }
        }
        let given = delta.get("tool_calls").and_then(Value::as_array);
        for piece in given.into_iter().flatten() {
            add_call(&mut calls, piece)?;
        }
    }
    if !is_whole {
        return Err(Malformed("ends before its last event").into());
    }
    if !calls.is_empty() {
        let calls = calls.into_iter().map(Value::Object).collect();
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Ok(json!({
        "choices": [{ "message": message, "finish_reason": reason }],
        "usage": usage,
    }))
}

/// Adds a piece of a call: the first has its id and name, the others continue its arguments.
fn add_call(calls: &mut Vec<Map<String, Value>>, piece: &Value) -> Result<(), StreamError> {
    let at = index(piece)?;
    if at > calls.len() {
        return Err(Malformed("has calls that are not in order").into());
    }
    if at == calls.len() {
        let mut call = Map::new();
        call.insert("type".to_owned(), "function".into());
        call.insert("function".to_owned(), json!({ "arguments": "" }));
        calls.push(call);
    }
    let call = &mut calls[at];
    if let Some(id) = piece.get("id").filter(|id| id.is_string()) {
        call.insert("id".to_owned(), id.clone());
    }
    let function = piece.get("function").unwrap_or(&Value::Null);
    if let Some(known) = call.get_mut("function").and_then(Value::as_object_mut) {
        if let Some(name) = function.get("name").filter(|name| name.is_string()) {
            known.insert("name".to_owned(), name.clone());
        }
        if let Some(more) = function.get("arguments").and_then(Value::as_str) {
            append(known, "arguments", more);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{End, Usage, anthropic, openai};
    use super::*;

    /// Writes events as a server does.
    fn stream(events: &[Value]) -> String {
        let event = |event: &Value| {
            let name = event["type"].as_str().unwrap_or_default();
            format!("event: {name}\r\n: a comment\r\ndata: {event}\r\n\r\n")
        };
        events.iter().map(event).collect()
    }

    #[test]
    fn events_are_split_at_empty_lines() {
        let text =
            "\u{feff}data: a\ndata:b\n\nevent: x\n\ndata: c\r\r: only a comment\n\ndata: cut";
        assert_eq!(events(text), ["a\nb", "c"]);
    }

    #[test]
    fn a_stream_of_messages_is_the_answer_in_one_piece() {
        let text = stream(&[
            json!({ "type": "message_start", "message": { "role": "assistant", "content": [], "stop_reason": null, "usage": { "input_tokens": 25, "output_tokens": 1 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "Hm" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "sig" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "ping" }),
            json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "tool_use", "id": "toolu_1", "name": "search", "input": {} } }),
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "" } }),
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "{\"query\": \"p" } }),
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "input_json_delta", "partial_json": "ay\"}" } }),
            json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "tool_use", "id": "toolu_2", "name": "list_pages", "input": {} } }),
            json!({ "type": "new_event" }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use", "stop_sequence": null }, "usage": { "output_tokens": 89 } }),
            json!({ "type": "message_stop" }),
        ]);
        let joined = joined(Provider::Anthropic, &text).unwrap();
        assert_eq!(
            joined["content"],
            json!([
                { "type": "thinking", "thinking": "Hm", "signature": "sig" },
                { "type": "tool_use", "id": "toolu_1", "name": "search", "input": { "query": "pay" } },
                { "type": "tool_use", "id": "toolu_2", "name": "list_pages", "input": {} },
            ])
        );
        let reply = anthropic::reply(&joined).unwrap();
        assert_eq!(reply.end, End::Done);
        let usage = Usage {
            input: 25,
            output: 89,
        };
        assert_eq!(reply.usage, usage);
    }

    #[test]
    fn a_stream_of_chunks_is_the_answer_in_one_piece() {
        let chunk = |delta: Value, reason: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }], "usage": null });
        let call = |piece: Value| chunk(json!({ "tool_calls": [piece] }), Value::Null);
        let mut text = stream(&[
            chunk(json!({ "role": "assistant", "content": null }), Value::Null),
            chunk(json!({ "content": "I " }), Value::Null),
            chunk(json!({ "content": "search." }), Value::Null),
            call(
                json!({ "index": 0, "id": "call_1", "type": "function", "function": { "name": "search", "arguments": "" } }),
            ),
            call(json!({ "index": 0, "function": { "arguments": "{\"query\":" } })),
            call(json!({ "index": 0, "function": { "arguments": "\"pay\"}" } })),
            call(
                json!({ "index": 1, "id": "call_2", "function": { "name": "list_pages", "arguments": "{}" } }),
            ),
            chunk(json!({}), "tool_calls".into()),
            json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 7 } }),
        ]);
        assert!(joined(Provider::OpenAi, &text).is_err(), "it is cut");
        text.push_str("data: [DONE]\n\n");
        let reply = openai::reply(&joined(Provider::OpenAi, &text).unwrap()).unwrap();
        assert_eq!(reply.calls.len(), 2);
        assert_eq!(reply.calls[0].input, Ok(json!({ "query": "pay" })));
        assert_eq!(reply.raw["content"], "I search.");
        let usage = Usage {
            input: 10,
            output: 7,
        };
        assert_eq!(reply.usage, usage);
    }

    #[test]
    fn a_stream_that_is_cut_broken_or_wrong_is_no_answer() {
        let started = json!({ "type": "message_start", "message": { "content": [] } });
        let overloaded =
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Busy" } });
        let broken = joined(Provider::Anthropic, &stream(&[started.clone(), overloaded]));
        let expected = StreamError::Broken {
            kind: "overloaded_error".to_owned(),
            message: "Busy".to_owned(),
        };
        assert_eq!(broken, Err(expected));
        let delta = |index: u64| json!({ "type": "content_block_delta", "index": index, "delta": { "text": "x" } });
        let begin = |index: u64| json!({ "type": "content_block_start", "index": index, "content_block": {} });
        let stop = json!({ "type": "message_stop" });
        for events in [
            vec![started.clone()],
            vec![started.clone(), delta(0), stop.clone()],
            vec![started.clone(), begin(1), stop.clone()],
            vec![started.clone(), begin(u64::MAX), stop.clone()],
        ] {
            let text = stream(&events);
            assert!(joined(Provider::Anthropic, &text).is_err(), "{text}");
        }
        for text in [
            "",
            "data: {\n\ndata: [DONE]\n\n",
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":5}]}}]}\n\ndata: [DONE]\n\n",
            "data: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n",
        ] {
            assert!(joined(Provider::OpenAi, text).is_err(), "{text}");
        }
        // Arguments that are not JSON are a mistake of the model, not of the server.
        let cut = json!({ "type": "content_block_delta", "index": 0, "delta": { "partial_json": "{\"a\":" } });
        let call = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "t", "name": "n", "input": {} } });
        let end = json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } });
        let text = stream(&[started, call, cut, end, stop]);
        let reply = anthropic::reply(&joined(Provider::Anthropic, &text).unwrap()).unwrap();
        assert!(reply.calls[0].input.is_err());
    }
}

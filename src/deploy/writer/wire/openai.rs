//! The Chat Completions of `OpenAI`, which most local servers speak too.
//!
//! Source: `OpenAI` API reference, "Chat Completions".

use serde_json::{Map, Value, json};

use super::{Call, End, Malformed, Message, Reply, Request, Usage, number};

/// The hosts whose newer models accept only the newer name of the limit of an answer. Other
/// servers know only the older name.
const NEWER_NAME: [&str; 2] = ["openai.com", "openai.azure.com"];

pub(super) fn body(model: &str, host: &str, request: Request<'_>) -> Value {
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                },
            })
        })
        .collect();
    let mut messages = vec![json!({ "role": "system", "content": request.system })];
    for message in request.messages {
        match message {
            Message::User(text) => messages.push(json!({ "role": "user", "content": text })),
            Message::Model(message) => messages.push(message.clone()),
            Message::Results(results) => messages.extend(results.iter().map(|result| {
                json!({
                    "role": "tool",
                    "tool_call_id": result.id,
                    "content": result.text,
                })
            })),
        }
    }
    let is_newer = NEWER_NAME.iter().any(|name| host.ends_with(name));
    let limit = if is_newer {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    json!({
        "model": model,
        limit: request.output_tokens,
        "messages": messages,
        "tools": tools,
    })
}

pub(super) fn reply(body: &Value) -> Result<Reply, Malformed> {
    let choice = body.get("choices").and_then(|choices| choices.get(0));
    let choice = choice.ok_or(Malformed("has no `choices`"))?;
    let message = choice.get("message").filter(|message| message.is_object());
    let message = message.ok_or(Malformed("has no `message`"))?;
    let no_calls = Vec::new();
    let given = match message.get("tool_calls") {
        None | Some(Value::Null) => &no_calls,
        Some(Value::Array(calls)) => calls,
        Some(_other) => return Err(Malformed("has no list `tool_calls`")),
    };
    let calls = given.iter().map(call).collect::<Result<Vec<_>, _>>()?;
    let is_refused = message
        .get("refusal")
        .and_then(Value::as_str)
        .is_some_and(|refusal| !refusal.is_empty());
    let end = match choice.get("finish_reason").and_then(Value::as_str) {
        _ if is_refused => End::Refused,
        Some("content_filter") => End::Refused,
        Some("length") => End::Cut,
        Some(_done) => End::Done,
        None => return Err(Malformed("has no `finish_reason`")),
    };
    let usage = body.get("usage").unwrap_or(&Value::Null);
    Ok(Reply {
        raw: said(message),
        calls,
        end,
        usage: Usage {
            input: number(usage, "prompt_tokens"),
            output: number(usage, "completion_tokens"),
        },
    })
}

fn call(call: &Value) -> Result<Call, Malformed> {
    let function = call.get("function").unwrap_or(&Value::Null);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let (Some(id), Some(name)) = (text(call, "id"), text(function, "name")) else {
        return Err(Malformed("calls a tool without `id` or `name`"));
    };
    let input = match function.get("arguments") {
        Some(Value::String(arguments)) if arguments.trim().is_empty() => Ok(json!({})),
        Some(Value::String(arguments)) => serde_json::from_str::<Value>(arguments)
            .map_err(|error| format!("`arguments` is not JSON: {error}")),
        // Some local servers give the object itself.
        Some(object @ Value::Object(_)) => Ok(object.clone()),
        _ => Err("`arguments` is missing".to_owned()),
    };
    let input = input.and_then(|input| match input.is_object() {
        true => Ok(input),
        false => Err("`arguments` is not an object".to_owned()),
    });
    Ok(Call { id, name, input })
}

/// Returns the members of a message that a server accepts back.
fn said(message: &Value) -> Value {
    let mut said = Map::new();
    said.insert("role".to_owned(), "assistant".into());
    let content = message.get("content").cloned().unwrap_or(Value::Null);
    said.insert("content".to_owned(), content);
    if let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) {
        said.insert("tool_calls".to_owned(), calls.clone());
    }
    Value::Object(said)
}

#[cfg(test)]
mod tests {
    use super::super::{ToolResult, example, example_tool};
    use super::*;

    #[test]
    fn a_request_has_the_form_of_the_reference() {
        let said = json!({ "role": "assistant", "content": null, "tool_calls": [] });
        let messages = [
            Message::User("Write.".to_owned()),
            Message::Model(said.clone()),
            Message::Results(vec![ToolResult {
                id: "call_1".to_owned(),
                text: "found".to_owned(),
                is_error: true,
            }]),
        ];
        let tools = [example_tool()];
        let request = example(&tools, &messages);
        let expected = json!({
            "model": "gpt",
            "max_tokens": 1000,
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Write." },
                said,
                { "role": "tool", "tool_call_id": "call_1", "content": "found" },
            ],
            "tools": [{ "type": "function", "function": { "name": "search", "description": "Searches.", "parameters": { "type": "object" } } }],
        });
        assert_eq!(body("gpt", "localhost", request), expected);
        let newer = body("gpt", "api.openai.com", request);
        assert_eq!(newer["max_completion_tokens"], 1000);
        assert!(newer.get("max_tokens").is_none());
    }

    #[test]
    fn an_answer_is_read_with_its_calls_and_its_end() {
        let answer = json!({
            "choices": [{
                "message": {
                    "role": "assistant",
                    "content": null,
                    "reasoning_content": "x",
                    "tool_calls": [
                        { "id": "call_1", "type": "function", "function": { "name": "search", "arguments": "{\"query\":\"pay\"}" } },
                        { "id": "call_2", "type": "function", "function": { "name": "search", "arguments": "{\"query\":" } },
                        { "id": "call_3", "type": "function", "function": { "name": "list_pages", "arguments": "" } },
                    ],
                },
                "finish_reason": "tool_calls",
            }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 7 },
        });
        let read = reply(&answer).unwrap();
        assert_eq!(read.calls[0].input, Ok(json!({ "query": "pay" })));
        assert!(
            read.calls[1]
                .input
                .as_ref()
                .unwrap_err()
                .contains("not JSON")
        );
        assert_eq!(read.calls[2].input, Ok(json!({})));
        assert!(read.raw.get("reasoning_content").is_none());
        assert_eq!(
            read.usage,
            Usage {
                input: 10,
                output: 7
            }
        );
        let end = |message: Value, reason: &str| {
            reply(&json!({ "choices": [{ "message": message, "finish_reason": reason }] }))
                .unwrap()
                .end
        };
        assert_eq!(end(json!({}), "length"), End::Cut);
        assert_eq!(end(json!({}), "content_filter"), End::Refused);
        assert_eq!(end(json!({ "refusal": "No." }), "stop"), End::Refused);
        assert_eq!(end(json!({ "refusal": null }), "stop"), End::Done);
        for answer in [
            json!({}),
            json!({ "choices": [] }),
            json!({ "choices": [{ "message": {} }] }),
            json!({ "choices": [{ "message": { "tool_calls": [{}] }, "finish_reason": "stop" }] }),
        ] {
            assert!(reply(&answer).is_err(), "{answer}");
        }
    }
}

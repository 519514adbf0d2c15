//! Anthropic's Messages.
//!
//! Source: Anthropic API, "Messages", "Tool use", "Stop reasons" and "Prompt caching", version
//! 2023-06-01.

use serde_json::{Value, json};

use super::{Call, End, Malformed, Message, Reply, Request, Usage, number};

/// The version of the API.
pub(super) const VERSION: &str = "2023-06-01";

pub(super) fn body(model: &str, request: Request<'_>) -> Value {
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.schema,
            })
        })
        .collect();
    let mut messages: Vec<Value> = request.messages.iter().map(message).collect();
    // The tools, the system prompt and the first message are the same in all requests of a
    // conversation, so the server may keep them ("Prompt caching").
    if let (Some(first), Some(Message::User(text))) =
        (messages.first_mut(), request.messages.first())
    {
        first["content"] = json!([kept(text)]);
    }
    json!({
        "model": model,
        "max_tokens": request.output_tokens,
        "system": [kept(request.system)],
        "tools": tools,
        "messages": messages,
    })
}

/// Writes a text up to which the server may keep the request.
fn kept(text: &str) -> Value {
    json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } })
}

fn message(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Model(content) => json!({ "role": "assistant", "content": content }),
        Message::Results(results) => {
            let blocks: Vec<Value> = results
                .iter()
                .map(|result| {
                    json!({
                        "type": "tool_result",
                        "tool_use_id": result.id,
                        "content": result.text,
                        "is_error": result.is_error,
                    })
                })
                .collect();
            json!({ "role": "user", "content": blocks })
        }
    }
}

pub(super) fn reply(body: &Value) -> Result<Reply, Malformed> {
    let content = body.get("content").and_then(Value::as_array);
    let content = content.ok_or(Malformed("has no list `content`"))?;
    let mut calls = Vec::new();
    for block in content {
        if block.get("type").and_then(Value::as_str) != Some("tool_use") {
            continue;
        }
        let text = |key: &str| block.get(key).and_then(Value::as_str);
        let (Some(id), Some(name)) = (text("id"), text("name")) else {
            return Err(Malformed("calls a tool without `id` or `name`"));
        };
        calls.push(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            input: match block.get("input") {
                Some(input) if input.is_object() => Ok(input.clone()),
                _ => Err("`input` is not an object".to_owned()),
            },
        });
    }
    let end = match body.get("stop_reason").and_then(Value::as_str) {
        Some("max_tokens") => End::Cut,
        Some("refusal") => End::Refused,
        Some("pause_turn") => End::Paused,
        Some("model_context_window_exceeded") => End::Full,
        Some(_done) => End::Done,
        None => return Err(Malformed("has no `stop_reason`")),
    };
    let usage = body.get("usage").unwrap_or(&Value::Null);
    let input = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    ];
    let input = input.iter().map(|key| number(usage, key));
    Ok(Reply {
        raw: Value::Array(content.clone()),
        calls,
        end,
        usage: Usage {
            input: input.fold(0, u64::saturating_add),
            output: number(usage, "output_tokens"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ToolResult, example, example_tool};
    use super::*;

    #[test]
    fn a_request_has_the_form_of_the_reference() {
        let messages = [
            Message::User("Write.".to_owned()),
            Message::Model(json!([{ "type": "thinking", "thinking": "x", "signature": "s" }])),
            Message::Results(vec![ToolResult {
                id: "toolu_1".to_owned(),
                text: "found".to_owned(),
                is_error: false,
            }]),
        ];
        let tools = [example_tool()];
        let request = example(&tools, &messages);
        assert_eq!(
            body("claude", request),
            json!({
                "model": "claude",
                "max_tokens": 1000,
                "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }],
                "tools": [{ "name": "search", "description": "Searches.", "input_schema": { "type": "object" } }],
                "messages": [
                    { "role": "user", "content": [{ "type": "text", "text": "Write.", "cache_control": { "type": "ephemeral" } }] },
                    { "role": "assistant", "content": [{ "type": "thinking", "thinking": "x", "signature": "s" }] },
                    { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "toolu_1", "content": "found", "is_error": false }] },
                ],
            })
        );
    }

    #[test]
    fn an_answer_is_read_with_its_calls_and_its_end() {
        let answer = json!({
            "content": [
                { "type": "text", "text": "Searching." },
                { "type": "tool_use", "id": "toolu_1", "name": "search", "input": { "query": "pay" } },
                { "type": "tool_use", "id": "toolu_2", "name": "search", "input": "pay" },
            ],
            "stop_reason": "tool_use",
            "usage": { "input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 7 },
        });
        let read = reply(&answer).unwrap();
        assert_eq!(read.calls[0].input, Ok(json!({ "query": "pay" })));
        assert!(read.calls[1].input.is_err());
        assert_eq!(
            read.usage,
            Usage {
                input: 15,
                output: 7
            }
        );
        for (reason, end) in [
            ("max_tokens", End::Cut),
            ("refusal", End::Refused),
            ("pause_turn", End::Paused),
            ("end_turn", End::Done),
            ("model_context_window_exceeded", End::Full),
        ] {
            let answer = json!({ "content": [], "stop_reason": reason });
            assert_eq!(reply(&answer).unwrap().end, end);
        }
        for answer in [
            json!({}),
            json!({ "content": "text", "stop_reason": "end_turn" }),
            json!({ "content": [] }),
            json!({ "content": [{ "type": "tool_use", "name": "x" }], "stop_reason": "tool_use" }),
        ] {
            assert!(reply(&answer).is_err(), "{answer}");
        }
    }
}

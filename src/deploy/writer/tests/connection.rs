//! Servers that fail, are slow, lie about lengths, or send streams.

use super::*;

#[test]
fn failures_that_may_end_are_tried_again_and_others_are_not() {
    let provider = Provider::Anthropic;
    let config = config(provider);
    let begun = Instant::now();
    let answers = vec![
        error("529 Overloaded", "retry-after: 0\r\n", "overloaded_error"),
        error("429 Too Many", "retry-after-ms: 10\r\n", "rate_limit_error"),
        plan(provider),
        calls(provider, "submit_draft", &draft(FACT)),
    ];
    let (report, lines, _) = talk(&config, answers);
    assert!(matches!(report.outcome, Outcome::Draft(_)), "{report:?}");
    assert!(
        lines[0].contains("answered 529 (overloaded_error); asking again in 0 s"),
        "{lines:?}"
    );

    let (report, _, got) = talk(&config, vec![error("401 No", "", "authentication_error")]);
    let why = failed(&report);
    assert_eq!(
        why.why,
        "the server of the model answered 401 (authentication_error)"
    );
    assert!(!why.is_final && got.len() == 1);

    let busy = || error("503 Busy", "retry-after: 0\r\n", "busy");
    let (report, _, got) = talk(&config, vec![busy(), busy(), busy(), plan(provider)]);
    assert!(failed(&report).why.contains("answered 503"));
    assert_eq!(got.len(), 3);

    // A server that asks to wait longer than the time that is left.
    let limited = error("429 Too Many", "retry-after: 3600\r\n", "rate_limit_error");
    let (report, _, _) = talk(&config, vec![limited]);
    assert!(
        failed(&report).why.contains("asks to wait 3600 s"),
        "{report:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn answers_that_lie_about_their_length_or_do_not_end_are_dropped() {
    let provider = Provider::Anthropic;
    let mut config = config(provider);
    config.limits.retries = 0;
    let whole = plan(provider).body;
    let with = |fields: &'static str, body: Vec<u8>| Answer {
        status: "200 OK",
        fields,
        body,
    };
    for (answer, expected) in [
        // More was announced than comes.
        (
            with("content-length: 5000\r\n", whole.clone()),
            "cannot be reached",
        ),
        // Less was announced, so the JSON is cut.
        (with("content-length: 20\r\n", whole.clone()), "is not JSON"),
        (with("", b"<html>".to_vec()), "is not JSON"),
        (with("", b"{}".to_vec()), "has no list `content`"),
        (
            with("content-length: 99999999999\r\n", vec![b' '; 2 << 20]),
            "answered more than 1048576 bytes",
        ),
    ] {
        let (report, _, _) = talk(&config, vec![answer]);
        let why = failed(&report);
        assert!(
            why.why.contains(expected) && !why.is_final,
            "{expected}: {why}"
        );
    }
    // Nested so deeply that a recursive reader would overflow its stack.
    let deep = "[".repeat(500_000).into_bytes();
    let (report, _, _) = talk(&config, vec![with("", deep)]);
    assert!(failed(&report).why.contains("is not JSON"));
}

#[test]
fn a_slow_server_and_an_endless_conversation_end() {
    let provider = Provider::Anthropic;
    let mut slow = config(provider);
    slow.limits.request = Duration::from_millis(300);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut link = Direct {
        address: listener.local_addr().unwrap(),
        lines: Vec::new(),
        spent: Spent::default(),
    };
    let begun = Instant::now();
    let report = converse(
        &slow,
        &Key(None),
        slow.update,
        &material(),
        Bytes::new(),
        &mut link,
    );
    assert!(
        failed(&report).why.contains("did not answer within"),
        "{report:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(5));

    let mut short = config(provider);
    short.limits.steps = 3;
    let list = || calls(provider, "list_pages", &json!({}));
    let (report, _, got) = talk(&short, (0..5).map(|_| list()).collect());
    assert_eq!(got.len(), 3);
    assert!(failed(&report).is_final && failed(&report).why.contains("more than 3 requests"));

    let mut poor = config(provider);
    poor.update.tokens = 12_000;
    let (report, _, _) = talk(&poor, (0..40).map(|_| list()).collect());
    assert!(
        failed(&report).why.starts_with("the budget is used up"),
        "{report:?}"
    );
    assert!(report.spent.tokens() <= 12_000);

    let wrong = || {
        calls(
            provider,
            "submit_draft",
            &draft("At most 900 calls in a minute."),
        )
    };
    let mut strict = config(provider);
    strict.limits.corrections = 1;
    let (report, _, _) = talk(&strict, vec![plan(provider), wrong(), wrong(), wrong()]);
    let why = failed(&report);
    let expected =
        "no draft passed after 1 corrections; the last draft: context[0]: \"900\" is not on /";
    assert!(why.is_final && why.why == expected, "{why}");
}

#[test]
fn the_key_is_shown_nowhere() {
    let key = Key(Some("sk-secret-1".to_owned()));
    assert_eq!(format!("{key:?}"), "Key(true)");
    assert_eq!(key.hide("bad key sk-secret-1!"), "bad key [key]!");
    let provider = Provider::OpenAi;
    let (report, lines, _) = talk(
        &config(provider),
        vec![error("400 No", "", "sk-secret-1 is bad")],
    );
    let shown = format!("{report:?} {lines:?}");
    assert!(!shown.contains("sk-secret-1"), "{shown}");
}

/// The same answer as a stream of events, as the provider sends it.
fn streamed(provider: Provider, name: &str, input: &Value) -> Answer {
    let input = input.to_string();
    let (start, end) = input.split_at(input.len() / 2);
    let mut events: Vec<Value> = match provider {
        Provider::Anthropic => {
            let piece = |part: &str| json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": part } });
            let block = json!({ "type": "tool_use", "id": "toolu_1", "name": name, "input": {} });
            vec![
                json!({ "type": "message_start", "message": { "role": "assistant", "content": [], "usage": { "input_tokens": 5000, "output_tokens": 1 } } }),
                json!({ "type": "content_block_start", "index": 0, "content_block": block }),
                piece(start),
                piece(end),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 100 } }),
                json!({ "type": "message_stop" }),
            ]
        }
        Provider::OpenAi => {
            let chunk = |call: Value| json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] }, "finish_reason": null }] });
            vec![
                chunk(
                    json!({ "index": 0, "id": "call_1", "type": "function", "function": { "name": name, "arguments": "" } }),
                ),
                chunk(json!({ "index": 0, "function": { "arguments": start } })),
                chunk(json!({ "index": 0, "function": { "arguments": end } })),
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] }),
                json!({ "choices": [], "usage": { "prompt_tokens": 5000, "completion_tokens": 100 } }),
            ]
        }
    };
    let mut body = String::new();
    for event in events.drain(..) {
        let kind = event["type"].as_str().unwrap_or("message");
        body.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
    }
    if provider == Provider::OpenAi {
        body.push_str("data: [DONE]\n\n");
    }
    Answer {
        status: "200 OK",
        fields: "content-type: text/event-stream; charset=utf-8\r\n",
        body: body.into_bytes(),
    }
}

#[test]
fn answers_may_come_as_streams_in_both_formats() {
    for provider in [Provider::Anthropic, Provider::OpenAi] {
        let plan = json!({ "tasks": ["charge a card"], "pages": ["/"] });
        let mut config = config(provider);
        config.stream = true;
        config.limits.retries = 1;
        // The second stream is cut before its last event, so it is asked for again.
        let mut cut = streamed(provider, "submit_draft", &draft(FACT));
        let length = cut.body.len();
        cut.body.truncate(length - 20);
        cut.fields = "retry-after: 0\r\ncontent-type: text/event-stream\r\n";
        let answers = vec![
            streamed(provider, "submit_plan", &plan),
            cut,
            streamed(provider, "submit_draft", &draft(FACT)),
        ];
        let (report, lines, got) = talk(&config, answers);
        assert!(
            matches!(report.outcome, Outcome::Draft(_)),
            "{report:?} {lines:?}"
        );
        assert_eq!(got[0].body["stream"], true);
        let options = &got[0].body["stream_options"];
        assert_eq!(options.is_object(), provider == Provider::OpenAi);
        assert!(
            lines
                .iter()
                .any(|line| line.contains("ends before its last event")),
            "{lines:?}"
        );
        // The cut stream counts too.
        assert_eq!(report.spent.requests, 3);
        assert!(report.spent.input >= 10_000 && report.spent.output >= 200);
    }
    // A server that knows no streams answers at once.
    let provider = Provider::OpenAi;
    let mut config = config(provider);
    config.stream = true;
    let answers = vec![
        plan(provider),
        calls(provider, "submit_draft", &draft(FACT)),
    ];
    let (report, _, _) = talk(&config, answers);
    assert!(matches!(report.outcome, Outcome::Draft(_)), "{report:?}");
}

#[test]
fn a_stream_that_reports_an_error_is_asked_for_again_and_an_endless_one_is_dropped() {
    let provider = Provider::Anthropic;
    let mut config = config(provider);
    config.stream = true;
    config.limits.retries = 0;
    let with = |body: String| Answer {
        status: "200 OK",
        fields: "content-type: text/event-stream\r\n",
        body: body.into_bytes(),
    };
    let broken = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"sk-secret-1\"}}\n\n";
    let (report, lines, _) = talk(&config, vec![with(broken.to_owned())]);
    let why = failed(&report);
    assert!(
        !why.is_final
            && why
                .why
                .contains("ended its answer with an error (overloaded_error)"),
        "{why}"
    );
    assert!(!format!("{report:?} {lines:?}").contains("sk-secret-1"));
    let endless = "event: ping\ndata: {\"type\":\"ping\"}\n\n".repeat(40_000);
    let (report, _, _) = talk(&config, vec![with(endless)]);
    let why = failed(&report);
    assert!(
        why.why.contains("answered more than 1048576 bytes"),
        "{why}"
    );
}

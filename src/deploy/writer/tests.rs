//! Conversations with a small server on a real socket, in the formats of both providers.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};

use super::config::{Price, StepLimits};
use super::*;
use crate::skills::SourceText;

const HOME: &str = "# Acme\n\nAcme charges cards from any program.\n\n```sh\nnpm install acme\n```\n\nA key may make at most 100 calls in a minute.\n";

fn material() -> Material {
    Material {
        base_url: "https://base.test".to_owned(),
        name: "acme".to_owned(),
        skill: "---\nname: \"acme\"\ndescription: \"x\"\nmetadata:\n  project: \"Acme\"\n  version: \"1\"\n---\n\n# Acme\n\nGenerated.\n".to_owned(),
        pages: vec![SourceText {
            path: "/".to_owned(),
            title: "Acme".to_owned(),
            text: HOME.to_owned(),
            ..SourceText::default()
        }],
        paths: ["/".to_owned()].into(),
        ..Material::default()
    }
}

/// A draft that passes; `fact` is one of its statements.
fn draft(fact: &str) -> Value {
    let said = |text: &str| {
        let quote = "charges cards from any program";
        json!({ "kind": "bullet", "text": text, "page": "/", "quote": quote })
    };
    let limit = "at most 100 calls in a minute";
    json!({
        "description": said("Use it to charge cards."),
        "about": said("Acme charges cards."),
        "capabilities": [said("It charges cards.")],
        "skills": [{ "kind": "code", "text": "npm install acme", "language": "sh", "page": "/" }],
        "workflows": [said("Charge the cards.")],
        "integration": [said("It works with any program.")],
        "context": [{ "kind": "bullet", "text": fact, "page": "/", "quote": limit }],
    })
}

const FACT: &str = "At most 100 calls in a minute.";

/// Answers of a server, one for each request: the head fields after the status, and the body.
#[derive(Clone)]
struct Answer {
    status: &'static str,
    fields: &'static str,
    body: Vec<u8>,
}

fn ok(body: &Value) -> Answer {
    Answer {
        status: "200 OK",
        fields: "",
        body: body.to_string().into_bytes(),
    }
}

fn error(status: &'static str, fields: &'static str, kind: &str) -> Answer {
    let body = json!({ "type": "error", "error": { "type": kind, "message": "the key sk-secret-1 is bad" } });
    Answer {
        status,
        fields,
        body: body.to_string().into_bytes(),
    }
}

/// An answer of the model with one call.
fn calls(provider: Provider, name: &str, input: &Value) -> Answer {
    ok(&match provider {
        Provider::Anthropic => json!({
            "content": [{ "type": "tool_use", "id": "toolu_1", "name": name, "input": input }],
            "stop_reason": "tool_use",
            "usage": { "input_tokens": 5000, "output_tokens": 100 },
        }),
        Provider::OpenAi => json!({
            "choices": [{
                "message": { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "call_1", "type": "function", "function": { "name": name, "arguments": input.to_string() } }
                ] },
                "finish_reason": "tool_calls",
            }],
            "usage": { "prompt_tokens": 5000, "completion_tokens": 100 },
        }),
    })
}

fn plan(provider: Provider) -> Answer {
    let plan = json!({ "tasks": ["charge a card"], "pages": ["/"] });
    calls(provider, "submit_plan", &plan)
}

/// A request as the server got it.
struct Got {
    head: String,
    body: Value,
}

/// Reads one request; `None` if the client closes the connection.
fn read_request(socket: &TcpStream) -> Option<Got> {
    let mut reader = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length?];
    reader.read_exact(&mut body).ok()?;
    Some(Got {
        head,
        body: serde_json::from_slice(&body).ok()?,
    })
}

/// A server that gives its answers in order, and then none.
struct Server {
    address: std::net::SocketAddr,
    thread: thread::JoinHandle<Vec<Got>>,
}

impl Server {
    fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = thread::spawn(move || {
            let mut got = Vec::new();
            for answer in answers {
                let mut socket = listener.accept().unwrap().0;
                let Some(request) = read_request(&socket) else {
                    break;
                };
                got.push(request);
                let Answer {
                    status,
                    fields,
                    body,
                } = answer;
                let length = match fields.contains("content-length") {
                    true => String::new(),
                    false => format!("content-length: {}\r\n", body.len()),
                };
                let head = format!("HTTP/1.1 {status}\r\n{length}{fields}\r\n");
                // A client may have read enough and close.
                let _sent = socket
                    .write_all(head.as_bytes())
                    .and_then(|()| socket.write_all(&body));
            }
            got
        });
        Self { address, thread }
    }
}

struct Direct {
    address: std::net::SocketAddr,
    lines: Vec<String>,
    spent: Spent,
}

impl Link for Direct {
    fn connect(&mut self) -> io::Result<TcpStream> {
        TcpStream::connect(self.address)
    }

    fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    fn spent(&mut self, spent: Spent) {
        self.spent = spent;
    }
}

fn config(provider: Provider) -> Config {
    Config {
        provider,
        // The address is not resolved: the link connects.
        url: Some("http://127.0.0.1:9/v1".parse().unwrap()),
        model: "test".into(),
        price_input: Price(1_000_000),
        price_output: Price(2_000_000),
        limits: StepLimits {
            total: Duration::from_secs(20),
            request: Duration::from_secs(5),
            answer_bytes: 1 << 20,
            retries: 2,
            ..StepLimits::default()
        },
        ..Config::default()
    }
}

/// Talks with a server; returns the report, the lines of the record and what the server got.
fn talk(config: &Config, answers: Vec<Answer>) -> (Report, Vec<String>, Vec<Got>) {
    let server = Server::start(answers);
    let mut link = Direct {
        address: server.address,
        lines: Vec::new(),
        spent: Spent::default(),
    };
    let key = Key(Some("sk-secret-1".to_owned()));
    let report = converse(
        config,
        &key,
        config.update,
        &material(),
        Bytes::new(),
        &mut link,
    );
    assert_eq!(link.spent, report.spent);
    // The next connection ends a server that still waits.
    drop(TcpStream::connect(server.address));
    (report, link.lines, server.thread.join().unwrap())
}

#[track_caller]
fn failed(report: &Report) -> &Failed {
    match &report.outcome {
        Outcome::Failed(failed) => failed,
        Outcome::Draft(_) => panic!("a draft has passed"),
    }
}

#[test]
fn a_draft_is_corrected_until_it_passes_in_both_formats() {
    for provider in [Provider::Anthropic, Provider::OpenAi] {
        let answers = vec![
            calls(provider, "read_page", &json!({ "page": "/" })),
            calls(provider, "submit_draft", &draft(FACT)),
            plan(provider),
            calls(
                provider,
                "submit_draft",
                &draft("At most 900 calls in a minute."),
            ),
            calls(provider, "submit_draft", &draft(FACT)),
        ];
        let (report, lines, got) = talk(&config(provider), answers);
        assert!(
            matches!(&report.outcome, Outcome::Draft(draft) if draft.context[0].text == FACT),
            "{report:?}"
        );
        assert_eq!(report.spent.requests, 5);
        assert_eq!(report.spent.cost, Price(5 * (5000 + 200)));
        let last = got[4].body["messages"].to_string();
        assert!(last.contains("submit the plan first"), "{last}");
        assert!(
            last.contains("context[0]: \\\"900\\\" is not on /"),
            "{last}"
        );
        // The text of a page is sent only as the result of a tool.
        assert!(!got[0].body.to_string().contains("charges cards from any"));
        assert!(last.contains("charges cards from any"));
        assert!(
            lines
                .iter()
                .any(|line| line.contains("draft 1 is rejected: context[0]")),
            "{lines:?}"
        );
        let head = got[0].head.to_ascii_lowercase();
        match provider {
            Provider::Anthropic => {
                assert!(head.starts_with("post /v1/v1/messages "), "{head}");
                assert!(
                    head.contains("x-api-key: sk-secret-1")
                        && head.contains("anthropic-version: 2023-06-01")
                );
            }
            Provider::OpenAi => {
                assert!(head.starts_with("post /v1/chat/completions "), "{head}");
                assert!(head.contains("authorization: bearer sk-secret-1"));
            }
        }
    }
}

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
fn useless_answers_between_useful_ones_do_not_end_the_conversation() {
    let provider = Provider::Anthropic;
    let wrong = || calls(provider, "read_page", &json!({ "page": "/nowhere" }));
    let right = || calls(provider, "read_page", &json!({ "page": "/" }));
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.extend([wrong(), wrong(), right()]);
    }
    answers.extend([
        plan(provider),
        calls(provider, "submit_draft", &draft(FACT)),
    ]);
    let (report, _, got) = talk(&config(provider), answers);
    assert!(matches!(report.outcome, Outcome::Draft(_)), "{report:?}");
    // The model knows what is left.
    let last = got.last().unwrap().body["messages"].to_string();
    assert!(
        last.contains("(Left: ") && last.contains(" corrections.)"),
        "{last}"
    );
}

#[test]
fn a_budget_that_ends_before_a_possible_correction_is_asked_for_again() {
    let provider = Provider::Anthropic;
    let wrong = draft("At most 900 calls in a minute.");
    let mut config = config(provider);
    config.update.tokens = 12_000;
    let answers = vec![plan(provider), calls(provider, "submit_draft", &wrong)];
    let (report, ..) = talk(&config, answers.clone());
    let budget = failed(&report);
    assert!(budget.why.contains("the budget is used up"), "{budget:?}");
    assert!(!budget.is_final, "{budget:?}");
    config.limits.corrections = 0;
    let (report, ..) = talk(&config, answers);
    assert!(failed(&report).is_final, "{report:?}");
}

#[test]
fn refusals_cut_answers_and_useless_ones_end_the_conversation() {
    let anthropic = |reason: &str| {
        ok(&json!({ "content": [{ "type": "text", "text": "x" }], "stop_reason": reason }))
    };
    let openai = |reason: &str, message: Value| {
        ok(&json!({ "choices": [{ "message": message, "finish_reason": reason }] }))
    };
    let declined = "the model declined to write";
    for (provider, answer) in [
        (Provider::Anthropic, anthropic("refusal")),
        (
            Provider::OpenAi,
            openai("content_filter", json!({ "content": "" })),
        ),
        (
            Provider::OpenAi,
            openai("stop", json!({ "refusal": "I cannot." })),
        ),
    ] {
        let (report, _, _) = talk(&config(provider), vec![answer]);
        assert_eq!(failed(&report), &Failed::last(declined));
    }
    let many = |answer: &dyn Fn() -> Answer| (0..5).map(|_| answer()).collect::<Vec<_>>();
    for (provider, answers, expected) in [
        (
            Provider::Anthropic,
            many(&|| anthropic("max_tokens")),
            "too many answers that are too long",
        ),
        (
            Provider::OpenAi,
            many(&|| openai("length", json!({ "content": "x" }))),
            "too many answers that are too long",
        ),
        (
            Provider::Anthropic,
            many(&|| anthropic("end_turn")),
            "too many answers without a call",
        ),
        (
            Provider::Anthropic,
            many(&|| calls(Provider::Anthropic, "run_shell", &json!({}))),
            "too many answers with only wrong calls",
        ),
    ] {
        let (report, _, got) = talk(&config(provider), answers);
        let why = failed(&report);
        assert!(why.is_final && why.why.contains(expected), "{why}");
        assert_eq!(got.len(), 5, "{expected}");
    }
    // Arguments that are no JSON get an answer that says so.
    let broken = openai(
        "tool_calls",
        json!({ "tool_calls": [{ "id": "c", "function": { "name": "search", "arguments": "{\"query\":" } }] }),
    );
    let answers = vec![
        broken,
        plan(Provider::OpenAi),
        calls(Provider::OpenAi, "submit_draft", &draft(FACT)),
    ];
    let (report, _, got) = talk(&config(Provider::OpenAi), answers);
    assert!(matches!(report.outcome, Outcome::Draft(_)), "{report:?}");
    assert!(got[1].body.to_string().contains("`arguments` is not JSON"));
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

#[test]
fn a_judgement_is_shown_and_decides_nothing() {
    for provider in [Provider::Anthropic, Provider::OpenAi] {
        let mut config = config(provider);
        config.evaluation_model = "judge".into();
        let written = || {
            vec![
                plan(provider),
                calls(provider, "submit_draft", &draft(FACT)),
            ]
        };
        let judged = |score: u8| {
            let judgement =
                json!({ "score": score, "tasks": [{ "is_enough": false, "missing": "refunds" }] });
            calls(provider, "submit_evaluation", &judgement)
        };
        for (answer, expected) in [
            (
                judged(2),
                "evaluation by judge: 2 of 10; the file is enough for 0 of 1 tasks; missing: refunds",
            ),
            (
                judged(200),
                "evaluation by judge: there is none: the model submitted a wrong one",
            ),
            (
                calls(provider, "submit_draft", &json!({})),
                "there is none: the model submitted none",
            ),
            (
                error("400 No", "", "invalid_request_error"),
                "there is none: the server of the model answered 400",
            ),
        ] {
            let (report, lines, got) = talk(&config, [written(), vec![answer]].concat());
            assert!(matches!(report.outcome, Outcome::Draft(_)), "{report:?}");
            assert!(
                lines.iter().any(|line| line.contains(expected)),
                "{lines:?}"
            );
            assert_eq!(got[2].body["model"], "judge");
            let said = got[2].body.to_string();
            assert!(
                said.contains("charge a card") && said.contains("npm install acme"),
                "{said}"
            );
        }
        // Without budget, no request is sent.
        config.limits.steps = 2;
        let (report, lines, got) = talk(&config, written());
        assert!(matches!(report.outcome, Outcome::Draft(_)), "{report:?}");
        assert!(
            got.len() == 2
                && lines
                    .iter()
                    .any(|line| line.contains("there is none: the model needed more")),
            "{lines:?}"
        );
    }
}

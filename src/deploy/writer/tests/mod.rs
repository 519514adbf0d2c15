//! Conversations with a small server on a real socket, in the formats of both providers.

mod connection;

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
        assert!(!got[0].body.to_string().contains("Generated."));
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

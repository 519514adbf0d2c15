//! Language models that write skills, as their providers and their users know them: over TLS,
//! through a proxy, in streams, beside independent mocks, and with the types of the providers' own
//! SDKs.
//!
//! The models that lie and spend are in [`crate::hostile`].

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use crate::certificates::Authority;
use crate::clients::client;
use crate::hostile::models::{
    FACT, KEY, Model, QUOTE, asking, asking_at, asking_with, call, draft, skill, update, writing,
};
use crate::repository::setup;

/// Accepts TLS connections and passes their content on to a server in clear.
fn encrypted(config: Arc<ServerConfig>, server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let acceptor = TlsAcceptor::from(config);
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust the certificate hangs up.
                    let mut client = acceptor.accept(socket).await.ok()?;
                    let mut server = tokio::net::TcpStream::connect(server).await.ok()?;
                    let copied = tokio::io::copy_bidirectional(&mut client, &mut server);
                    copied.await.ok()
                });
            }
        });
    });
    address
}

/// A proxy that connects every CONNECT to one server; returns its address and the heads that it
/// got.
fn proxy(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let got = Arc::clone(&heads);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let got = Arc::clone(&got);
            thread::spawn(move || tunnel(client, server, &got));
        }
    });
    (address, heads)
}

fn tunnel(mut client: TcpStream, server: SocketAddr, heads: &Mutex<Vec<String>>) -> io::Result<()> {
    // No bytes follow the head before its response.
    let mut reader = BufReader::new(client.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    heads.lock().unwrap().push(head);
    let mut server = TcpStream::connect(server)?;
    client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || io::copy(&mut from_server, &mut to_client));
    io::copy(&mut client, &mut server)?;
    Ok(())
}

#[test]
fn a_model_is_asked_over_tls_and_through_a_proxy() {
    let authority = Authority::new();
    let model = writing(FACT, QUOTE);
    let config = authority.server(&["localhost", "model.test"], &[]);
    let address = encrypted(config, model.address);
    let (proxy, heads) = proxy(address);
    let trusting = || {
        let setup = setup();
        let file = setup.path("authority.pem");
        authority.write(&file);
        setup.wrapped_by(&["env", &format!("SSL_CERT_FILE={}", file.display())])
    };
    let direct = format!("https://localhost:{}", address.port());
    let (edge, key) = asking_with(trusting(), &direct, "anthropic", "", "");
    let logs = update(&edge, &key);
    assert!(skill(&edge).contains(FACT), "{logs}");
    assert_eq!(model.requests(), 3);

    // Only the proxy knows the name. It sees neither the key nor a text.
    let conf = format!("proxy: \"http://me:password1@{proxy}\"");
    let (edge, key) = asking_with(trusting(), "https://model.test:8443", "openai", &conf, "");
    let logs = update(&edge, &key);
    assert!(skill(&edge).contains(FACT), "{logs}");
    assert_eq!(model.requests(), 6);
    let heads = heads.lock().unwrap();
    assert_eq!(heads.len(), 3);
    for head in heads.iter() {
        assert!(
            head.starts_with("CONNECT model.test:8443 HTTP/1.1\r\n"),
            "{head}"
        );
        let fields = head.to_ascii_lowercase();
        // `me:password1` in Base64.
        assert!(head.contains("Basic bWU6cGFzc3dvcmQx"), "{head}");
        assert!(
            fields.contains("proxy-authorization: ") && !head.contains(KEY),
            "{head}"
        );
    }
    drop(heads);
    let lines = json!(edge.stop()).to_string();
    assert!(!lines.contains("password1") && !logs.contains("password1"));

    // A certificate of an authority that the machine does not trust, and one for another name.
    let stranger = encrypted(Authority::new().server(&["localhost"], &[]), model.address);
    let other = encrypted(authority.server(&["other.test"], &[]), model.address);
    for address in [stranger, other] {
        let url = format!("https://localhost:{}", address.port());
        let (edge, key) = asking_with(trusting(), &url, "anthropic", "", "");
        let logs = update(&edge, &key);
        assert!(
            logs.contains("the server of the model cannot be reached"),
            "{logs}"
        );
        assert!(!skill(&edge).contains(FACT));
    }
    assert_eq!(model.requests(), 6, "nothing was sent");
}

#[test]
fn requests_tokens_and_cost_are_counted_with_and_without_streams() {
    for (provider, stream) in [
        ("anthropic", "true"),
        ("openai", "true"),
        ("openai", "false"),
    ] {
        let model = writing(FACT, QUOTE);
        let conf = format!("stream: {stream}");
        let (edge, key) = asking(&model, provider, &conf, "", "{}");
        let logs = update(&edge, &key);
        assert!(skill(&edge).contains(FACT), "{logs}");
        let spent = "3 requests, 6000 tokens in, 900 tokens out, cost 0.031500";
        assert!(logs.contains(spent), "{logs}");
        let is_streamed = model
            .got
            .lock()
            .unwrap()
            .iter()
            .all(|(_, body)| body["stream"] == true);
        assert_eq!(is_streamed.to_string(), stream);
        for (metric, expected) in [
            ("deploy_model_requests_total", 3.0),
            ("deploy_model_tokens_total{direction=\"input\"}", 6000.0),
            ("deploy_model_tokens_total{direction=\"output\"}", 900.0),
            ("deploy_model_cost_total", 0.0315),
        ] {
            edge.wait_for_metric(metric, expected - 1e-9);
            assert!((edge.metric(metric) - expected).abs() < 1e-9, "{metric}");
        }
    }
}

#[test]
fn the_judgement_of_a_model_is_shown_in_the_record() {
    let model = Model::start(
        |answered, request| match (request["model"].as_str(), answered) {
            (Some("judge"), _) => call(
                request,
                "submit_evaluation",
                &json!({ "score": 1, "tasks": [{ "is_enough": false, "missing": "refunds" }] }),
            ),
            (_, 0) => call(
                request,
                "submit_plan",
                &json!({ "tasks": ["charge"], "pages": ["/"] }),
            ),
            _ => call(request, "submit_draft", &draft(FACT, QUOTE)),
        },
    );
    let (edge, key) = asking(&model, "openai", "evaluation_model: judge", "", "{}");
    let logs = update(&edge, &key);
    let judged =
        "evaluation by judge: 1 of 10; the file is enough for 0 of 1 tasks; missing: refunds";
    assert!(logs.contains(judged), "{logs}");
    assert!(
        skill(&edge).contains(FACT),
        "a bad judgement decides nothing"
    );
    assert_eq!(model.requests(), 3);
}

/// The formats of both providers, as people who know them have written them down.
#[test]
fn an_independent_mock_of_the_providers_is_understood() {
    const SCRIPT: &str = "import { pathToFileURL } from 'node:url';
const [file, calls] = process.argv.slice(2);
const { LLMock } = await import(pathToFileURL(file));
const mock = new LLMock({ port: 0 });
JSON.parse(calls).forEach(([name, input], turnIndex) => mock.addFixture({
  match: { turnIndex },
  response: { toolCalls: [{ name, arguments: JSON.stringify(input) }] },
}));
await mock.start();
console.log(mock.url);
";
    let client = client("aimock", "@copilotkit/aimock@1.43.0");
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("mock.mjs");
    fs::write(&script, SCRIPT).unwrap();
    let calls = json!([
        ["search", { "query": "charge cards" }],
        ["submit_plan", { "tasks": ["charge"], "pages": ["/"] }],
        ["submit_draft", draft(FACT, QUOTE)],
    ]);
    for (provider, below) in [("anthropic", ""), ("openai", "/v1")] {
        let mut mock = Command::new(client.join("node_modules/.bin/node"))
            .arg(&script)
            .arg(client.join("node_modules/@copilotkit/aimock/dist/index.js"))
            .arg(calls.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let output = mock.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut url).unwrap();
        let url = format!("{}{below}", url.trim());
        let (edge, key) = asking_at(&url, provider, "", "", "{}");
        let logs = update(&edge, &key);
        assert!(logs.contains("and searched 1 times"), "{logs}");
        assert!(skill(&edge).contains(FACT), "{logs}");
        mock.kill().unwrap();
        mock.wait().unwrap();
    }
}

/// The mock from `PyPI`, with a rule for each turn.
struct FakeLlm(Child);

impl FakeLlm {
    fn start(directory: &Path, calls: &Value) -> (Self, String) {
        const SCRIPT: &str = "
import os, socket, sys, uvicorn
os.environ['FAKELLM_CONFIG'] = sys.argv[1]
from fakellm.server import app
listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level='error')).run(sockets=[listener])
";
        let rule = |(nth, call): (usize, &Value)| {
            json!({
                "name": format!("turn {nth}"), "when": { "turn": nth + 1 },
                "respond": { "tool_calls": [{ "name": call[0], "arguments": call[1] }] },
            })
        };
        let rules: Vec<Value> = calls
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
            .map(rule)
            .collect();
        let file = directory.join("fakellm.yaml");
        // JSON is YAML.
        fs::write(&file, json!({ "version": 1, "rules": rules }).to_string()).unwrap();
        let mut child = Command::new(client("fakellm", "fakellm==0.3.5").join("bin/python"))
            .args(["-c", SCRIPT])
            .arg(file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut port).unwrap();
        (Self(child), format!("http://127.0.0.1:{}", port.trim()))
    }
}

impl Drop for FakeLlm {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _status = self.0.wait();
    }
}

#[test]
fn another_mock_of_the_providers_is_understood_in_streams_too() {
    let calls = json!([
        ["search", { "query": "charge cards" }],
        ["submit_plan", { "tasks": ["charge"], "pages": ["/"] }],
        ["submit_draft", draft(FACT, QUOTE)],
    ]);
    for (provider, below) in [("anthropic", ""), ("openai", "/v1")] {
        for stream in ["false", "true"] {
            let directory = tempfile::tempdir().unwrap();
            // It counts the turns of conversations that begin with the same text.
            let (mock, url) = FakeLlm::start(directory.path(), &calls);
            let conf = format!("stream: {stream}");
            let (edge, key) = asking_at(&format!("{url}{below}"), provider, &conf, "", "{}");
            let logs = update(&edge, &key);
            assert!(
                logs.contains("and searched 1 times"),
                "{provider} {stream}: {logs}"
            );
            assert!(skill(&edge).contains(FACT), "{provider} {stream}: {logs}");
            drop(mock);
        }
    }
}

/// The types of the providers' SDKs accept the requests, and their clients read what the servers of
/// these tests answer.
#[test]
fn the_sdks_of_the_providers_accept_requests_and_answers() {
    let folder = client("model-sdks", "@anthropic-ai/sdk@1.12.0");
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(
        folder.join("node_modules"),
        directory.path().join("node_modules"),
    )
    .unwrap();
    let node = folder.join("node_modules/.bin/node");
    let mut types = String::from(
        "import type Anthropic from '@anthropic-ai/sdk';\nimport type OpenAI from 'openai';\n",
    );
    for (provider, kind) in [
        ("anthropic", "Anthropic.MessageCreateParams"),
        ("openai", "OpenAI.ChatCompletionCreateParams"),
    ] {
        for stream in ["false", "true"] {
            // A wrong draft first, so that results with and without an error are sent.
            let model = Model::start(|answered, request| match answered {
                0 => call(request, "read_page", &json!({ "page": "/none" })),
                1 => call(
                    request,
                    "submit_plan",
                    &json!({ "tasks": ["charge"], "pages": ["/"] }),
                ),
                _ => call(request, "submit_draft", &draft(FACT, QUOTE)),
            });
            let (edge, key) = asking(&model, provider, &format!("stream: {stream}"), "", "{}");
            let logs = update(&edge, &key);
            assert!(skill(&edge).contains(FACT), "{logs}");
            let bodies: Vec<Value> = {
                let got = model.got.lock().unwrap();
                got.iter().map(|(_, body)| body.clone()).collect()
            };
            assert_eq!(bodies.len(), 3);
            for body in &bodies {
                types += &format!("({body}) satisfies {kind};\n");
                let mut wrong = body.clone();
                wrong["messages"][0]["role"] = json!("author");
                types += &format!("// @ts-expect-error\n({wrong}) satisfies {kind};\n");
                let mut wrong = body.clone();
                wrong["temprature"] = json!(1);
                types += &format!("// @ts-expect-error\n({wrong}) satisfies {kind};\n");
            }
            let script = directory.path().join("ask.mjs");
            fs::write(&script, ASK).unwrap();
            let asked = Command::new(&node)
                .arg(&script)
                .args([
                    provider,
                    &format!("http://{}", model.address),
                    &bodies[2].to_string(),
                ])
                .output()
                .unwrap();
            assert!(asked.status.success(), "{asked:?}");
            let read: Value = serde_json::from_slice(&asked.stdout).unwrap();
            let expected = json!({
                "name": "submit_draft", "input": draft(FACT, QUOTE), "tokens": [2000, 300],
            });
            assert_eq!(read, expected, "{provider} {stream}");
        }
    }
    fs::write(directory.path().join("requests.ts"), types).unwrap();
    let checked = Command::new(&node)
        .arg(folder.join("node_modules/typescript/bin/tsc"))
        .args([
            "--noEmit",
            "--strict",
            "--skipLibCheck",
            "--target",
            "es2022",
        ])
        .args(["--module", "nodenext", "--moduleResolution", "nodenext"])
        .arg("requests.ts")
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

/// Asks a server with the SDK of a provider.
const ASK: &str = "
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
const [provider, baseURL, text] = process.argv.slice(2);
const { stream, ...body } = JSON.parse(text);
const options = { apiKey: 'k', baseURL, maxRetries: 0 };
let call, usage;
if (provider === 'anthropic') {
  const { messages } = new Anthropic(options);
  const message = stream ? await messages.stream(body).finalMessage() : await messages.create(body);
  const use = message.content.find(({ type }) => type === 'tool_use');
  call = { name: use.name, input: use.input };
  usage = [message.usage.input_tokens, message.usage.output_tokens];
} else {
  const { completions } = new OpenAI(options).chat;
  const completion = stream ? await completions.stream(body).finalChatCompletion() : await completions.create(body);
  const { function: { name, arguments: input } } = completion.choices[0].message.tool_calls[0];
  call = { name, input: JSON.parse(input) };
  usage = [completion.usage.prompt_tokens, completion.usage.completion_tokens];
}
console.log(JSON.stringify({ ...call, tokens: usage }));
";

//! The fast path is an optimisation: both paths give the same response.
//!
//! Random requests, most of them nearly discovery requests and many of them hostile, go to two
//! gateways over the same sites, one with the fast path and one without. Status, fields and body
//! must be equal (without `Date`, `Connection` and the order of fields), and so must the end of
//! the connection. `WAYPOST_LONG_TESTS=1` makes a long run.

use std::sync::LazyLock;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};

use crate::certificates::Authority;
use crate::edge::{Edge, Setup};
use crate::http::{Connection, Response};
use crate::http2::Client;
use crate::origin::Origin;
use crate::presets::SKILL;
use crate::tls::encrypted;

/// How many connections a run makes, each with some requests.
fn cases() -> u32 {
    match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 40_000,
        None => 5000,
    }
}

const HOSTS: &[&str] = &[
    "docs.acme.test",
    "docs.acme.test",
    "one.waypost.localhost",
    "DOCS.acme.test",
    "docs.acme.test.",
    "docs.acme.test:8080",
    "docs.acme.test:",
    "based.acme.test",
    "many.acme.test",
    "hidden.acme.test",
    "empty.acme.test",
    "pages.acme.test",
    "unknown.test",
    "api.waypost.localhost",
    "127.0.0.1",
    "[::1]",
    "a b",
    "a,b",
    "user@docs.acme.test",
    "",
];

const PATHS: &[&str] = &[
    "/skill.md",
    "/skill.md",
    "/.well-known/agent-card.json",
    "/.well-known/agent-skills/index.json",
    "/.well-known/agent-skills/sdk/SKILL.md",
    "/.well-known/agent-skills/sdk/skill.md",
    "/.well-known/agent-skills/other/SKILL.md",
    "/.well-known/skills/index.json",
    "/.well-known/skills/sdk/SKILL.md",
    "/.well-known/skills/sdk/skill.md",
    "/.well-known/skills/none/skill.md",
    "/.well-known/skills",
    "/.well-known/skills/",
    "/.well-known/agent-skills",
    "/.well-known/agent-card.json/",
    "/.well-known/acme-challenge/x",
    "/docs/skill.md",
    "/docs/.well-known/agent-card.json",
    "/docs/.well-known/skills/index.json",
    "/docs/docs/skill.md",
    "/docs",
    "/",
    "/guide",
    "/guide",
    "/guide.md",
    "/guide/",
    "/guide.mdx",
    "/guide.html",
    "/guide.html.br",
    "/guides",
    "/docs/guide",
    "/llms.txt",
    "/.well-known/llms.txt",
    "/sitemap.xml",
    "/image.svg",
    "/image.svg.br",
    "/old",
    "/skill.mdx",
    "/SKILL.md",
    "/mcp",
    "/mcp",
    "/mcp/",
    "/docs/mcp",
];

/// Changes to a path before it is sent.
const SPELLINGS: &[fn(&str) -> String] = &[
    |path| format!("{path}?a=b"),
    |path| format!("{path}?"),
    |path| path.replacen('s', "%73", 1),
    |path| path.replacen('.', "%2e", 1),
    |path| path.replacen('/', "//", 1),
    |path| format!("/x/..{path}"),
    |path| format!("/.{path}"),
    |path| format!("{path}/."),
    |path| format!("{path}/../skill.md"),
    |path| path.replace('/', "%2F"),
    |path| format!("{path}%00"),
    |path| format!("{path};v=1"),
    |path| format!("{path}%"),
    |path| format!("{path}\\"),
    |path| format!("{path}#a"),
    |path| format!("{path}\u{e9}"),
    |path| format!("http://docs.acme.test{path}"),
];

const METHODS: &[&str] = &[
    "HEAD", "HEAD", "OPTIONS", "POST", "DELETE", "PURGE", "get", "TRACE",
];

/// Fields that one of the paths reads. `{etag}` is an entity tag of a document.
const FIELDS: &[(&str, &str)] = &[
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Accept-Encoding", "gzip;q=0.5, br;q=0"),
    ("Accept-Encoding", "*;q=0"),
    ("Accept-Encoding", "identity;q=0, *"),
    ("Accept-Encoding", "br;q=zz,,gzip"),
    ("Accept-Encoding", ""),
    ("If-None-Match", "{etag}"),
    ("If-None-Match", "W/{etag}, \"other\""),
    ("If-None-Match", "*"),
    ("If-None-Match", "\"other\""),
    ("If-None-Match", "not a tag"),
    ("If-None-Match", ""),
    ("If-Match", "{etag}"),
    ("If-Match", "\"other\""),
    ("If-Match", "*"),
    ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("If-Modified-Since", "Sun, 06 Nov 2044 08:49:37 GMT"),
    ("If-Modified-Since", "yesterday"),
    ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("Range", "bytes=0-3"),
    ("If-Range", "{etag}"),
    ("Origin", "https://agent.test"),
    ("Access-Control-Request-Method", "GET"),
    ("Accept", "application/json"),
    ("Accept", "text/markdown, */*;q=0.1"),
    ("Accept", "text/html"),
    ("User-Agent", "node"),
    ("X-Forwarded-Host", "unknown.test"),
    ("Cookie", "a=b"),
    ("Authorization", "Bearer x"),
    ("Cache-Control", "no-cache"),
    ("Accept", "text/event-stream"),
    ("Origin", "http://agent.test"),
];

/// Fields that only HTTP/1.1 defines or allows.
const FIELDS_OF_HTTP1: &[(&str, &str)] = &[
    ("Connection", "keep-alive"),
    ("Connection", "Keep-Alive"),
    ("Connection", "close"),
    ("Connection", "x-own"),
    ("Connection", "upgrade"),
    ("Connection", "cookie"),
    ("Upgrade", "websocket"),
    ("Upgrade", "h2c"),
    ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"),
    ("TE", "trailers"),
    ("Trailer", "X-Sum"),
    ("Content-Length", "0"),
    ("Content-Length", "00"),
    ("Content-Length", "x"),
    ("Transfer-Encoding", "gzip"),
    ("Host", "docs.acme.test"),
    ("Host ", "docs.acme.test"),
    ("X\u{e9}", "a"),
    ("X-Bell", "\u{7}"),
];

/// A request before it is written as text.
#[derive(Clone, Debug)]
struct TestRequest {
    method: &'static str,
    target: String,
    version: &'static str,
    host: &'static str,
    fields: Vec<(&'static str, String)>,
    /// The content, with its length in a field, unless it is chunked.
    body: Option<&'static str>,
    is_chunked: bool,
}

/// Valid and invalid messages to the MCP server.
const BODIES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"resources/list"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"skill://sdk/SKILL.md"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"https://docs.acme.test/guide.md"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fetch","arguments":{"id":"guide","max_tokens":50}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"grep","arguments":{"pattern":"on"}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    "{",
    "GET /skill.md HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
    r#"{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"initialize"}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"search","arguments":{"query":"read on"}}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"search_a","arguments":{"query":"raed","limit":1}}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"skill","arguments":{}}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"skills/list"}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"skills/get","params":{"uri":"skill://sdk/SKILL.md"}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"skills/get","params":{"uri":"skill://none/SKILL.md"}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"search","arguments":{"query":"on"}}}]"#,
];

/// The lengths of messages that are longer than others: around the longest that the fast path
/// answers (16 KiB), and around the longest that is allowed (64 KiB).
const LENGTHS: [usize; 5] = [16_384, 16_385, 40_000, 65_536, 65_537];

/// All contents: those above, and long ones.
static CONTENTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let long = |length: usize| -> &'static str {
        let start = r#"{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":""#;
        let rest = length - start.len() - 3;
        Box::leak(format!("{start}{}\"}}}}", "a".repeat(rest)).into_boxed_str())
    };
    let mut contents = BODIES.repeat(2);
    contents.extend(LENGTHS.map(long));
    contents
});

impl TestRequest {
    fn to_http1(&self) -> String {
        let mut head = format!(
            "{} {} {}\r\nHost: {}\r\n",
            self.method, self.target, self.version, self.host
        );
        for (name, value) in &self.fields {
            head += &format!("{name}: {value}\r\n");
        }
        match self.body {
            Some(body) if self.is_chunked => {
                head += "Transfer-Encoding: chunked\r\n\r\n";
                // No chunk is empty: such a chunk ends the content.
                for chunk in body.as_bytes().chunks(20_000) {
                    let chunk = std::str::from_utf8(chunk).unwrap();
                    head += &format!("{:x}\r\n{chunk}\r\n", chunk.len());
                }
                head + "0\r\n\r\n"
            }
            Some(body) => format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()),
            None => head + "\r\n",
        }
    }
}

/// A request to the MCP server of a site, or nearly.
fn any_message() -> impl Strategy<Value = TestRequest> {
    const FIELDS: &[(&str, &str)] = &[
        ("Content-Type", "application/json; charset=utf-8"),
        ("Content-Type", "text/plain"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("MCP-Protocol-Version", "2025-03-26"),
        ("MCP-Protocol-Version", "1"),
        ("Mcp-Method", "server/discover"),
        ("Mcp-Name", "fetch"),
        ("Origin", "https://agent.test"),
        ("Origin", "http://agent.test"),
        ("Accept-Encoding", "gzip"),
        ("Content-Length", "7"),
    ];
    let field = select(FIELDS).prop_map(|(name, value)| (name, value.to_owned()));
    let target = select(
        &[
            "/mcp",
            "/mcp",
            "/mcp",
            "/docs/mcp",
            "/mcp?a=b",
            "/mcp/",
            "/x/../mcp",
        ][..],
    );
    let method = prop_oneof![8 => Just("POST"), 1 => Just("GET"), 1 => Just("PUT")];
    let version = prop_oneof![20 => Just("HTTP/1.1"), 1 => Just("HTTP/1.0")];
    let host = prop_oneof![4 => Just("docs.acme.test"), 3 => select(HOSTS)];
    let fields = prop::collection::vec(field, 0..3);
    let body = (select(&**CONTENTS), prop::bool::weighted(0.2));
    (method, target, version, host, fields, body).prop_map(
        |(method, target, version, host, mut fields, (body, is_chunked))| {
            fields.push(("Content-Type", "application/json".to_owned()));
            TestRequest {
                method,
                target: target.to_owned(),
                version,
                host,
                fields,
                body: Some(body),
                is_chunked,
            }
        },
    )
}

fn any_test_request(
    etags: Vec<String>,
    fields: Vec<(&'static str, &'static str)>,
) -> impl Strategy<Value = TestRequest> {
    let field =
        (select(fields), select(etags), 0..20_u32).prop_map(|((name, value), etag, longer)| {
            // Sometimes longer than the fast path reads.
            let padding = if longer == 0 {
                " ".repeat(300) + ","
            } else {
                String::new()
            };
            (name, value.replace("{etag}", &etag) + &padding)
        });
    // Most requests change one thing only, so that the fast path responds to many.
    let version = prop_oneof![20 => Just("HTTP/1.1"), 1 => Just("HTTP/1.0"), 1 => Just("HTTP/1.2")];
    let plain: fn(&str) -> String = str::to_owned;
    let spelling = prop_oneof![2 => Just(plain), 1 => select(SPELLINGS)];
    let target = (select(PATHS), spelling).prop_map(|(path, spell)| spell(path));
    let host = prop_oneof![4 => Just("docs.acme.test"), 3 => select(HOSTS)];
    (
        prop_oneof![2 => Just("GET"), 1 => select(METHODS)],
        target,
        version,
        host,
        prop::collection::vec(field, 0..3),
    )
        .prop_map(|(method, target, version, host, fields)| TestRequest {
            method,
            target,
            version,
            host,
            fields,
            body: None,
            is_chunked: false,
        })
}

/// Sites of every kind, and two gateways that differ only in the fast path.
fn gateways(origin: &Origin, setup: Setup) -> [Edge; 2] {
    let many = [
        ("skill.md", SKILL),
        (
            ".waypost/skills/other/SKILL.md",
            "---\nname: other\ndescription: Another.\n---\n# Other\n",
        ),
    ];
    let long = format!("{SKILL}\n{}", "Nothing new here. ".repeat(1500));
    let setup = setup
        .site("one", "domains: [docs.acme.test]")
        .site("based", "domains: [based.acme.test]\nbase_path: /docs")
        .site("many", "domains: [many.acme.test]")
        .site("hidden", "domains: [hidden.acme.test]\nvisibility: private")
        .site("empty", "domains: [empty.acme.test]")
        .site(
            "pages",
            &format!("domains: [pages.acme.test]\n{}", origin.record()),
        );
    let guide = format!("![](image.svg)\n\n{}", "Read on. ".repeat(2000));
    let config = r#"{"name": "A", "navigation": {"pages": ["guide"]},
        "redirects": [{"source": "/old", "destination": "/guide"}]}"#;
    let pages = [
        ("docs.json", config),
        ("guide.mdx", &guide),
        ("image.svg", "<svg/>"),
    ];
    let with_pages = |skill| [&[("skill.md", skill)][..], &pages].concat();
    for (project, files) in [
        ("one", &with_pages(&*long)[..]),
        ("based", &with_pages(SKILL)),
        ("many", &many),
        ("hidden", &many),
        ("pages", &[("skill.md", SKILL)]),
    ] {
        setup.publish(project, files);
    }
    // Both gateways would count the same requests, but at different moments.
    let setup = setup.conf(
        "clients",
        "{ mcp_requests_per_second: 0, mcp_site_requests_per_second: 0 }",
    );
    let second = setup.beside().conf("connections", "{ fast_path: false }");
    [setup.start(), second.start()]
}

/// Entity tags for conditions.
fn etags(edge: &Edge) -> Vec<String> {
    ["identity", "br"]
        .iter()
        .flat_map(|coding| {
            ["/skill.md", "/.well-known/agent-card.json"].map(|path| {
                let response = edge.request(
                    "GET",
                    "docs.acme.test",
                    path,
                    &[("Accept-Encoding", coding)],
                );
                response.field("etag").unwrap().to_owned()
            })
        })
        .collect()
}

/// Returns what a client sees of a connection with some requests.
///
/// These are the responses and how the connection ended.
fn responses_over_http1(edge: &Edge, test_requests: &[TestRequest]) -> Vec<Option<Response>> {
    let mut connection = Connection::open(edge.http);
    let text: String = test_requests.iter().map(TestRequest::to_http1).collect();
    connection.send(text.as_bytes());
    let mut responses = Vec::new();
    for test_request in test_requests {
        let response = connection.receive(test_request.method);
        let is_last = response.as_ref().is_none_or(|response| {
            response.status == 101
                || response
                    .field("connection")
                    .is_some_and(|it| it.eq_ignore_ascii_case("close"))
        });
        if let Some(response) = &response
            && response.field("via").is_none()
        {
            response.check(test_request.method);
        }
        responses.push(response.map(Response::normalised));
        if is_last {
            break;
        }
    }
    responses
}

fn run<T: std::fmt::Debug>(
    cases: u32,
    strategy: &impl Strategy<Value = T>,
    test: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let config = Config {
        cases,
        max_shrink_iters: 400,
        failure_persistence: None,
        ..Config::default()
    };
    if let Err(failure) = TestRunner::new(config).run(strategy, test) {
        panic!("{failure}");
    }
}

#[test]
fn both_paths_give_the_same_response_to_every_http_1_1_request() {
    let origin = Origin::start();
    let [fast, proxy] = gateways(&origin, Setup::new());
    let fields = [FIELDS, FIELDS_OF_HTTP1].concat();
    let any = prop_oneof![
        3 => any_test_request(etags(&fast), fields),
        1 => any_message(),
    ];
    let test_requests = prop::collection::vec(any, 1..6);
    run(cases(), &test_requests, |test_requests| {
        prop_assert_eq!(
            responses_over_http1(&fast, &test_requests),
            responses_over_http1(&proxy, &test_requests)
        );
        Ok(())
    });
    // If the fast path took no request, nothing was compared.
    let taken = fast.metric("gateway_request_duration_seconds_count{route=\"fast_path\"}");
    assert!(
        taken > f64::from(cases()) / 25.0,
        "the fast path answered {taken} requests"
    );
    assert!(proxy.metric("gateway_request_duration_seconds_count{route=\"fast_path\"}") < 0.5);
}

/// Makes the HTTP/2 request; `None` if the library rejects it.
fn to_http2(test_request: &TestRequest) -> Option<http::Request<()>> {
    let uri = http::Uri::builder()
        .scheme("https")
        .authority(test_request.host)
        .path_and_query(&*test_request.target)
        .build()
        .ok()?;
    let mut request = http::Request::builder()
        .method(test_request.method)
        .uri(uri);
    for (name, value) in &test_request.fields {
        // The library compares the length with the content, and resets the stream at any moment.
        if test_request.body.is_none() || *name != "Content-Length" {
            request = request.header(*name, value.trim());
        }
    }
    if let Some(body) = test_request.body.filter(|_| !test_request.is_chunked) {
        request = request.header("Content-Length", body.len());
    }
    request.body(()).ok()
}

/// Returns what a client sees of some concurrent requests.
async fn responses_over_http2(
    client: &mut Client,
    test_requests: &[TestRequest],
) -> Vec<Result<Response, String>> {
    let mut exchanges = Vec::new();
    for test_request in test_requests {
        let Some(request) = to_http2(test_request) else {
            continue;
        };
        let mut exchange = client.begin(request, test_request.body.is_none()).await;
        if let (Ok(exchange), Some(body)) = (&mut exchange, test_request.body) {
            // This fails if the gateway has reset the stream. The response shows it.
            let _reset = exchange
                .body
                .send_data(Bytes::from_static(body.as_bytes()), true);
        }
        exchanges.push(exchange);
    }
    let mut responses = Vec::new();
    for exchange in exchanges {
        let response = match exchange {
            Ok(exchange) => crate::http2::receive(exchange.response).await,
            Err(error) => Err(error),
        };
        // Resets are compared by their reason, without the number of the stream.
        let response = response.map(Response::normalised);
        responses.push(response.map_err(|error| format!("{:?}", error.reason())));
    }
    responses
}

#[test]
fn both_paths_give_the_same_response_to_every_http_2_request() {
    let origin = Origin::start();
    let authority = Authority::new();
    let [fast, proxy] = gateways(&origin, encrypted(&authority, Setup::new()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let any = prop_oneof![
        3 => any_test_request(etags(&fast), FIELDS.to_vec()),
        1 => any_message(),
    ];
    let test_requests = prop::collection::vec(any, 1..16);
    run(cases() / 10, &test_requests, |test_requests| {
        let [first, second] = [&fast, &proxy].map(|edge| {
            runtime.block_on(async {
                // A connection for each gateway: errors of one must not end the other.
                let config = authority.client(&["h2"]);
                let mut settings = h2::client::Builder::new();
                // Responses are read in the order of the requests and arrive in any order: one
                // that is not read yet must not use up the window of the connection.
                settings.initial_connection_window_size(1 << 24);
                let address = edge.https.unwrap();
                let mut client =
                    Client::open_with(address, "docs.acme.test", config, settings).await;
                responses_over_http2(&mut client, &test_requests).await
            })
        });
        prop_assert_eq!(first, second);
        Ok(())
    });
    let taken = fast.metric("gateway_request_duration_seconds_count{route=\"fast_path\"}");
    assert!(
        taken > f64::from(cases()) / 50.0,
        "the fast path answered {taken} requests"
    );
    assert!(proxy.metric("gateway_request_duration_seconds_count{route=\"fast_path\"}") < 0.5);
}

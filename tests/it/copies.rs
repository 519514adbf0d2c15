//! Copies of responses, for the time in which a site's own server fails: on the direct path, on the
//! proxy path and over HTTP/2.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::certificates::Authority;
use crate::clients::{client, resolver};
use crate::edge::{Edge, LOCAL_UPSTREAMS, Setup};
use crate::http::{Response, TIMEOUT, request};
use crate::http2::Client;
use crate::origin::{After, Origin};
use crate::ports::free_port;
use crate::presets::DOMAIN;
use crate::tls::encrypted;

/// The server closes each connection without a response.
const CLOSES: u16 = 0;
/// The server takes requests and never responds.
const SILENT: u16 = 1;
/// The server responds with something that is not HTTP.
const NONSENSE: u16 = 2;

/// The server responds with a transfer coding that the request did not ask for.
const CODED: u16 = 3;

/// A server of a site whose state the test sets.
pub struct Server {
    pub origin: Origin,
    /// A status, or one of the constants above.
    pub state: Arc<AtomicU16>,
    /// The field lines of its pages.
    pub fields: Arc<Mutex<String>>,
}

impl Server {
    pub fn start() -> Self {
        let state = Arc::new(AtomicU16::new(200));
        let fields = Arc::new(Mutex::new(String::new()));
        let (current, lines) = (Arc::clone(&state), Arc::clone(&fields));
        let origin = Origin::responding(move |request, stream| {
            match current.load(Ordering::SeqCst) {
                CLOSES => return After::Close,
                SILENT => {
                    // Until the gateway gives up.
                    let _closed = stream.read(&mut [0]);
                    return After::Close;
                }
                NONSENSE => {
                    let _closed = stream.write_all(b"220 mail.acme.test ESMTP\r\n\r\n");
                    return After::Close;
                }
                CODED => {
                    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
                    let body = "5\r\nhello\r\n0\r\n\r\n";
                    let _closed = stream.write_all(format!("{head}{body}").as_bytes());
                    return After::Close;
                }
                200 => {
                    let body = format!("{} at {}", request.target, request.all("host")[0]);
                    let lines = lines.lock().unwrap().clone();
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{lines}\r\n",
                        body.len()
                    );
                    let body = if request.method == "HEAD" { "" } else { &body };
                    let _closed = stream.write_all(format!("{head}{body}").as_bytes());
                }
                status => {
                    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 4\r\n\r\nfail");
                    let _closed = stream.write_all(head.as_bytes());
                }
            }
            After::Keep
        });
        Self {
            origin,
            state,
            fields,
        }
    }

    pub fn set(&self, state: u16) {
        self.state.store(state, Ordering::SeqCst);
    }

    /// Sets the field lines of its pages, each with its line end.
    pub fn respond_with(&self, fields: &str) {
        *self.fields.lock().unwrap() = fields.to_owned();
    }
}

/// Makes a gateway that keeps copies, with more keys of `upstream.copies`.
pub fn setup(fast_path: bool, more: &str) -> Setup {
    let setup = Setup::new();
    let directory = setup.path("copies").display().to_string();
    setup
        .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
        .conf(
            "upstream",
            &format!(
                "{{ copies: {{ directory: {directory}, free_bytes_min: 0{more} }}, \
                 read_seconds: 1, retries_max: 0, {LOCAL_UPSTREAMS} }}"
            ),
        )
}

/// Waits until the gateway keeps copies.
#[track_caller]
pub fn ready(edge: &Edge) {
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("copies of earlier responses")
    });
}

/// Returns how often something has happened to copies.
pub fn count(edge: &Edge, outcome: &str) -> f64 {
    edge.metric(&format!("gateway_copies_total{{outcome=\"{outcome}\"}}"))
}

/// Waits until this many copies have been written.
#[track_caller]
pub fn wait_for(edge: &Edge, outcome: &str, least: f64) {
    let deadline = Instant::now() + TIMEOUT;
    while count(edge, outcome) < least {
        assert!(
            Instant::now() < deadline,
            "{outcome}: {} of {least}",
            count(edge, outcome)
        );
        crate::http::pause();
    }
}

pub fn get(edge: &Edge, path: &str, fields: &[(&str, &str)]) -> Response {
    request(edge.http, "GET", DOMAIN, path, fields)
}

/// Returns the files of copies.
pub fn files(edge: &Edge) -> Vec<PathBuf> {
    let list = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let nested = list(edge.setup.path("copies")).flat_map(|entry| list(entry.path()));
    let mut files: Vec<_> = nested.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// Returns the access line of a request that got a copy.
#[track_caller]
fn line_of_copy(edge: &Edge, path: &str) -> serde_json::Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let text = fs::read_to_string(edge.setup.path("access.log")).unwrap_or_default();
        let lines = text.lines();
        let mut lines =
            lines.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        if let Some(line) = lines.find(|line| line["path"] == path && line["copy_age_s"].is_u64()) {
            return line;
        }
        assert!(Instant::now() < deadline, "{text}");
        crate::http::pause();
    }
}

#[test]
fn whatever_fails_the_client_gets_the_last_good_copy() {
    for fast_path in [true, false] {
        let server = Server::start();
        server.respond_with(
            "Content-Type: text/html\r\nETag: W/\"a,b\"\r\nCache-Control: max-age=1\r\nX-Own: x\r\n\
             Keep-Alive: timeout=5\r\nConnection: x-hop\r\nX-Hop: 1\r\n",
        );
        let edge = setup(fast_path, "").acme(&server.origin.record()).start();
        ready(&edge);
        let failures = [
            (CLOSES, "upstream_closed"),
            (SILENT, "upstream_first_byte_timeout"),
            (NONSENSE, "upstream_invalid"),
            (CODED, "upstream_invalid"),
            (500, "upstream_error"),
            (502, "upstream_error"),
            (503, "upstream_error"),
            (504, "upstream_error"),
        ];
        let paths: Vec<_> = (0..failures.len()).map(|at| format!("/{at}?q")).collect();
        for path in &paths {
            let fresh = get(&edge, path, &[]);
            assert_eq!((fresh.status, fresh.field("age")), (200, None));
        }
        wait_for(&edge, "stored", paths.len() as f64);
        for ((failure, ended), path) in failures.into_iter().zip(&paths) {
            server.set(failure);
            let what = format!("fast path {fast_path}, {failure}");
            let copy = get(&edge, path, &[("Range", "bytes=0-1")]);
            assert_eq!(copy.status, 200, "{what}: {}", copy.text());
            assert_eq!(copy.text(), format!("{path} at {DOMAIN}"), "{what}");
            let age: u64 = copy.field("age").expect("an age").parse().unwrap();
            assert!(age < 60, "{what}");
            let status = copy.field("cache-status").unwrap().to_owned();
            assert!(
                status.starts_with("\"waypost.localhost\"; fwd="),
                "{status}"
            );
            assert!(status.ends_with(&format!("; detail={ended}")), "{status}");
            let code = format!("; fwd-status={failure};");
            assert_eq!(status.contains(&code), failure >= 500, "{status}");
            assert_eq!(copy.field("via"), Some("1.1 waypost.localhost"), "{what}");
            assert_eq!(copy.field("etag"), Some("W/\"a,b\""));
            assert_eq!(copy.field("x-own"), Some("x"));
            assert_eq!(copy.field("cache-control"), Some("max-age=1"));
            assert_eq!(
                (copy.field("x-hop"), copy.field("keep-alive")),
                (None, None)
            );
            let line = line_of_copy(&edge, path.trim_end_matches("?q"));
            assert_eq!(
                (&line["ended"], &line["status"]),
                (&ended.into(), &200.into())
            );
        }
        let path = &paths[0];
        server.set(503);
        let head = request(edge.http, "HEAD", DOMAIN, path, &[]);
        let length = format!("{path} at {DOMAIN}").len().to_string();
        assert_eq!(
            (head.status, head.field("content-length")),
            (200, Some(&*length))
        );
        let known = get(&edge, path, &[("If-None-Match", "\"x\", \"a,b\"")]);
        assert_eq!((known.status, known.body.len()), (304, 0));
        assert_eq!(known.field("etag"), Some("W/\"a,b\""));
        assert!(known.field("age").is_some());
        let unknown = get(&edge, path, &[("If-None-Match", "\"a\"")]);
        assert_eq!(unknown.status, 200);
        // A page without a copy fails as before, and so does another method.
        assert_eq!(get(&edge, "/other", &[]).status, 503);
        let post = request(edge.http, "POST", DOMAIN, path, &[("Content-Length", "0")]);
        assert_eq!((post.status, post.text()), (503, "fail"));
        assert_eq!(edge.metric("gateway_copies_served_total"), 11.0);
        // A server that responds is always asked.
        server.set(200);
        assert_eq!(get(&edge, path, &[]).field("age"), None);
    }
}

#[test]
fn a_server_that_refuses_connections_is_replaced_over_every_version() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Responds to four requests, then it is gone.
    let serving = std::thread::spawn(move || {
        for _ in 0..4 {
            let (mut stream, _) = listener.accept().unwrap();
            let _request = stream.read(&mut [0; 4096]).unwrap();
            let page = "x".repeat(200_000);
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
            let body = format!("{:x}\r\n{page}\r\n0\r\n\r\n", page.len());
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .unwrap();
        }
    });
    let record = format!("origin: {{ url: \"http://{address}\" }}");
    let authority = Authority::new();
    let edge = encrypted(&authority, setup(true, "")).acme(&record).start();
    ready(&edge);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let over_http2 = |requests: &[(&str, &str)]| -> Vec<Response> {
        runtime.block_on(async {
            let config = authority.client(&["h2"]);
            let mut client = Client::open(edge.https.unwrap(), DOMAIN, config).await;
            let mut responses = Vec::new();
            for (method, path) in requests {
                let mut request = crate::http2::get(DOMAIN, path);
                *request.method_mut() = method.parse().unwrap();
                responses.push(client.request(request).await.unwrap());
            }
            responses
        })
    };
    for path in ["/a", "/b"] {
        assert_eq!(get(&edge, path, &[]).body.len(), 200_000);
    }
    for response in over_http2(&[("GET", "/a"), ("GET", "/b")]) {
        assert_eq!(
            (response.body.len(), response.field("age")),
            (200_000, None)
        );
    }
    serving.join().unwrap();
    wait_for(&edge, "stored", 4.0);
    // The proxy path takes requests with such a field.
    for fields in [&[][..], &[("X_Own", "a")]] {
        for path in ["/a", "/b"] {
            let copy = get(&edge, path, fields);
            assert_eq!((copy.status, copy.body.len()), (200, 200_000));
            assert!(
                copy.field("cache-status")
                    .unwrap()
                    .contains("upstream_refused")
            );
        }
    }
    // A kept connection serves many of them.
    let mut connection = crate::http::Connection::open(edge.http);
    for _ in 0..3 {
        let line = format!("GET /a HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
        connection.send(line.as_bytes());
        assert_eq!(connection.receive("GET").unwrap().body.len(), 200_000);
    }
    let copies = over_http2(&[("GET", "/a"), ("GET", "/b"), ("HEAD", "/a")]);
    assert_eq!(
        copies.iter().map(|it| it.status).collect::<Vec<_>>(),
        [200; 3]
    );
    let lengths: Vec<_> = copies.iter().map(|it| it.body.len()).collect();
    assert_eq!(lengths, [200_000, 200_000, 0]);
    assert!(copies.iter().all(|it| it.field("age").is_some()));
}

#[test]
fn only_what_may_be_kept_is_kept() {
    let kept = [
        "",
        "Cache-Control: public, max-age=60\r\n",
        "Cache-Control: max-age=60, must-revalidate\r\n",
        "Cache-Control: s-maxage=0, stale-if-error=60\r\n",
        "Vary: Accept-Encoding\r\n",
        "Expires: 0\r\n",
    ];
    let not_kept = [
        "Cache-Control: no-store\r\n",
        "Cache-Control: private\r\n",
        "Cache-Control: no-cache\r\n",
        "Cache-Control: s-maxage=0\r\n",
        "Cache-Control: max-age=0, must-revalidate\r\n",
        "Cache-Control: proxy-revalidate\r\n",
        "Cache-Control: stale-if-error=0\r\n",
        "Vary: Cookie\r\n",
        "Vary: *\r\n",
        "Set-Cookie: a=b\r\n",
        "Content-Encoding: unknown\r\n",
    ];
    for fast_path in [true, false] {
        let server = Server::start();
        let edge = setup(fast_path, "").acme(&server.origin.record()).start();
        ready(&edge);
        let all: Vec<_> = not_kept.iter().chain(&kept).copied().collect();
        for (at, fields) in all.iter().enumerate() {
            server.respond_with(fields);
            assert_eq!(get(&edge, &format!("/{at}"), &[]).status, 200);
        }
        // They are written in their order.
        wait_for(&edge, "stored", kept.len() as f64);
        server.set(503);
        for (at, fields) in all.iter().enumerate() {
            let status = get(&edge, &format!("/{at}"), &[]).status;
            let expected = if at < not_kept.len() { 503 } else { 200 };
            assert_eq!(status, expected, "fast path {fast_path}: {fields}");
        }
        assert_eq!(files(&edge).len(), kept.len());
    }
}

#[test]
fn a_page_that_has_gone_or_was_changed_has_no_copy() {
    for fast_path in [true, false] {
        let server = Server::start();
        let edge = setup(fast_path, "").acme(&server.origin.record()).start();
        ready(&edge);
        for (at, status) in [404, 410, 401, 302].into_iter().enumerate() {
            let path = format!("/{status}");
            server.set(200);
            assert_eq!(get(&edge, &path, &[]).status, 200);
            wait_for(&edge, "stored", (at + 1) as f64);
            server.set(status);
            assert_eq!(get(&edge, &path, &[]).status, status);
            server.set(503);
            assert_eq!(get(&edge, &path, &[]).status, 503, "after {status}");
        }
        server.set(200);
        assert_eq!(get(&edge, "/form", &[]).status, 200);
        wait_for(&edge, "stored", 5.0);
        let post = |status| {
            server.set(status);
            let fields = [("Content-Length", "0")];
            assert_eq!(
                request(edge.http, "POST", DOMAIN, "/form", &fields).status,
                status
            );
            server.set(503);
            get(&edge, "/form", &[]).status
        };
        assert_eq!((post(400), post(200)), (200, 503));
        wait_for(&edge, "forgotten", 5.0);
    }
}

#[test]
fn copies_outlive_the_process_and_belong_to_the_record() {
    let server = Server::start();
    let edge = setup(true, "").acme(&server.origin.record()).start();
    ready(&edge);
    for path in ["/a", "/b", "/c"] {
        assert_eq!(get(&edge, path, &[]).status, 200);
    }
    wait_for(&edge, "stored", 3.0);
    let before = files(&edge);
    let mut damaged = fs::read(&before[0]).unwrap();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    fs::write(&before[0], damaged).unwrap();
    // What a crash may leave, and what is not ours.
    fs::write(edge.setup.path("copies/new.tmp"), b"half").unwrap();
    fs::write(before[1].with_file_name("notes.txt"), b"mine").unwrap();
    let text = fs::read(&before[1]).unwrap();
    let cut = before[1].with_file_name("00000000000000000000000000000000.copy");
    fs::write(&cut, &text[..text.len() - 1]).unwrap();
    edge.signal("KILL");
    let edge = edge.ended().start();
    ready(&edge);
    assert!(!edge.setup.path("copies/new.tmp").exists() && !cut.exists());
    assert!(before[1].with_file_name("notes.txt").exists());
    assert_eq!(edge.metric("gateway_copies"), 3.0);
    server.set(503);
    let mut statuses = ["/a", "/b", "/c"].map(|path| get(&edge, path, &[]).status);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 503]);
    assert_eq!(count(&edge, "damaged"), 1.0);

    // The site gets another server: what the earlier one has said does not count any more.
    let other = Server::start();
    other.set(503);
    edge.write_site(
        "acme",
        &format!("domains: [{DOMAIN}]\n{}", other.origin.record()),
    );
    assert_eq!(get(&edge, "/b", &[]).status, 503);
    let deadline = Instant::now() + TIMEOUT;
    let copies = |edge: &Edge| {
        let is_copy = |path: &PathBuf| path.extension().is_some_and(|it| it == "copy");
        files(edge).into_iter().filter(is_copy).count()
    };
    while copies(&edge) > 0 {
        assert!(Instant::now() < deadline, "{:?}", files(&edge));
        crate::http::pause();
    }
    other.set(200);
    assert_eq!(get(&edge, "/b", &[]).status, 200);
    wait_for(&edge, "stored", 1.0);
    edge.remove_site("acme");
    while copies(&edge) > 0 {
        assert!(Instant::now() < deadline, "{:?}", files(&edge));
        crate::http::pause();
    }
}

/// The server of the test suite, until it is dropped.
struct TestServer(Child);

impl Drop for TestServer {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// The cases of <https://cache-tests.fyi> that concern stored responses and servers that fail.
#[test]
fn the_public_cases_about_failing_servers_pass() {
    let suite = client("http-cache-tests", "http-cache-tests@0.4.5");
    let package = suite.join("node_modules/http-cache-tests");
    let node = client("skills", "skills@1.7.4").join("node_modules/.bin/node");
    let port = free_port();
    let fields = ", request_fields: [\"test-name\", \"test-id\", \"req-num\"]";
    let record = format!("origin: {{ url: \"http://127.0.0.1:{port}\", http: \"1.1\" }}");
    for fast_path in [true, false] {
        let edge = setup(fast_path, fields).acme(&record).start();
        ready(&edge);
        let server = Command::new(&node)
            .arg(package.join("server/server.mjs"))
            .env("npm_config_protocol", "http")
            .env("npm_config_port", port.to_string())
            .env("npm_config_pidfile", edge.setup.path("server.pid"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let _server = TestServer(server);
        let deadline = Instant::now() + TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                Instant::now() < deadline,
                "the server of the suite does not start"
            );
            crate::http::pause();
        }
        let package = package.display();
        // `Warning` fields do not exist any more (RFC 9111 §5.5).
        let script = format!(
            "import {{ runTests, getResults }} from '{package}/client/runner.mjs';\n\
             import fetch from '{}/node_modules/node-fetch/lib/index.mjs';\n\
             import stale from '{package}/tests/stale.mjs';\n\
             const tests = stale.tests.filter(test => !test.id.startsWith('stale-warning'));\n\
             const last = {{}};\n\
             const watched = async (url, init) => {{\n\
               const response = await fetch(url, init);\n\
               const id = init?.headers?.find?.(field => field[0] === 'Test-ID')?.[1];\n\
               if (id) last[id] = [response.status, response.headers.has('cache-status')];\n\
               return response;\n\
             }};\n\
             await runTests([{{ ...stale, tests }}], watched, false, process.argv[2]);\n\
             console.log(JSON.stringify([getResults(), last]));\n",
            suite.display()
        );
        let path = edge.setup.path("run.mjs");
        fs::write(&path, script).unwrap();
        let output = Command::new(&node)
            .arg("--require")
            .arg(resolver(&edge))
            .arg(&path)
            .arg(format!(
                "http://acme.waypost.localhost:{}",
                edge.http.port()
            ))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let results = text.lines().last().unwrap_or_default();
        let results: serde_json::Value =
            serde_json::from_str(results).unwrap_or_else(|_| panic!("{output:?}"));
        let (results, last) = (results[0].as_object().unwrap(), &results[1]);
        assert_eq!(results.len(), 8, "{results:?}");
        for (case, result) in results {
            let is_prohibited = ["revalidate", "no-cache", "s-maxage"]
                .iter()
                .any(|directive| case.contains(directive));
            let what = format!("fast path {fast_path}: {case}: {result}");
            match is_prohibited {
                // The suite takes each response without a field of its server for a stored one, and
                // our error has none of its fields.
                true => assert_eq!(last[case], serde_json::json!([502, false]), "{what}"),
                false => {
                    assert_eq!(*result, true, "{what}");
                    assert_eq!(last[case], serde_json::json!([200, true]), "{what}");
                }
            }
        }
    }
}

#[test]
fn without_a_directory_nothing_is_kept() {
    let server = Server::start();
    let edge = Setup::new().acme(&server.origin.record()).start();
    assert_eq!(get(&edge, "/a", &[]).status, 200);
    server.set(503);
    let failed = get(&edge, "/a", &[]);
    assert_eq!((failed.status, failed.field("cache-status")), (503, None));
}

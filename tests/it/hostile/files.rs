//! Files: slow readers, ranges and large files cost the gateway little.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::certificates::Authority;
use crate::edge::{Edge, Setup};
use crate::http::{Connection, Response, TIMEOUT, wait_until};
use crate::http2::{self, Client};
use crate::presets::{DOMAIN, SUBDOMAIN};
use crate::tls::encrypted;

/// The path of the large file.
const VIDEO: &str = "/video.mp4";
const CONFIG: &str = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;

/// The bytes of a large file: no two parts are equal.
fn video(length: usize) -> Vec<u8> {
    let numbers = (0..).flat_map(|n: u32| n.to_be_bytes());
    numbers.take(length).collect()
}

/// A gateway with TLS and a site with a file of this length.
struct Site {
    authority: Authority,
    edge: Edge,
    video: Vec<u8>,
}

impl Site {
    fn start(connections: &str, length: usize) -> Self {
        let authority = Authority::new();
        let setup = encrypted(&authority, Setup::new())
            .conf("connections", connections)
            .conf("clients", "{ connections_max: 5000 }")
            .acme("");
        let video = video(length);
        let docs = setup.documentation(&[
            ("docs.json", CONFIG),
            ("index.mdx", "[The video](/video.mp4)"),
        ]);
        fs::write(docs.join(&VIDEO[1..]), &video).unwrap();
        setup.publish_directory("acme", &docs);
        Self {
            authority,
            edge: setup.start(),
            video,
        }
    }

    async fn http2(&self) -> Client {
        let config = self.authority.client(&["h2"]);
        Client::open(self.edge.https.unwrap(), DOMAIN, config).await
    }

    /// The path of the large file in the store.
    fn stored(&self) -> PathBuf {
        let digest = waypost::digest::Digest::of(&self.video).to_string();
        let (shard, rest) = digest.split_at(2);
        let content = self.edge.setup.path("store").join("content");
        content.join(shard).join(rest)
    }

    fn request(&self, method: &str, fields: &[(&str, &str)]) -> Response {
        self.edge.request(method, DOMAIN, VIDEO, fields)
    }
}

/// Opens a connection with a small receive buffer, so that the gateway sees early that the client
/// reads slowly.
fn slow_connection(address: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

fn ask(stream: &mut TcpStream) {
    let head = format!("GET {VIDEO} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
}

/// Returns a number of a process from `/proc`, in bytes: resident memory, or bytes read.
fn process(edge: &Edge, file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/{file}", edge.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let mut words = line.unwrap().split_whitespace();
    let number: u64 = words.next().unwrap().parse().unwrap();
    number * if words.next() == Some("kB") { 1024 } else { 1 }
}

/// Returns how much the memory of the gateway grows with slow readers over HTTP/1.1 and streams
/// with closed windows on one connection with HTTP/2.
async fn memory_of(length: usize, readers: usize, streams: usize) -> u64 {
    let site = Site::start("{ write_rate_min: 0 }", length);
    // One request of each kind allocates the values that exist once.
    assert_eq!(site.request("GET", &[]).body.len(), length);
    let response = site.http2().await.get(DOMAIN, VIDEO).await.unwrap();
    assert_eq!(response.body.len(), length);
    let idle = process(&site.edge, "status", "VmRSS:");

    let mut slow: Vec<_> = (0..readers)
        .map(|_| slow_connection(site.edge.http))
        .collect();
    slow.iter_mut().for_each(ask);
    let mut settings = h2::client::Builder::new();
    settings.initial_window_size(0);
    let config = site.authority.client(&["h2"]);
    let mut client = Client::open_with(site.edge.https.unwrap(), DOMAIN, config, settings).await;
    let mut closed = Vec::new();
    for _ in 0..streams {
        let exchange = client.begin(http2::get(DOMAIN, VIDEO), true).await.unwrap();
        let response = exchange.response.await.unwrap();
        assert_eq!(response.status(), 200);
        closed.push(response);
    }
    // Each reader has the head and a part of the body: its response has begun.
    for stream in &mut slow {
        let mut part = [0; 4096];
        stream.read_exact(&mut part).unwrap();
    }
    process(&site.edge, "status", "VmRSS:").saturating_sub(idle)
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_a_large_file_cost_little_memory() {
    let is_long = std::env::var_os("WAYPOST_LONG_TESTS").is_some();
    let (length, readers, streams) = if is_long {
        (60 << 20, 1000, 100)
    } else {
        (8 << 20, 60, 40)
    };
    let grown = memory_of(length, readers, streams).await;
    // The whole files of the short run would take 800 MiB of memory.
    let allowed = if is_long { 64 << 20 } else { 32 << 20 };
    println!("{readers} readers and {streams} streams of {length} bytes: {grown} bytes");
    assert!(grown < allowed, "{grown}");
}

#[test]
fn a_head_a_304_and_a_range_read_no_more_of_the_file_than_they_send() {
    let site = Site::start("{}", 8 << 20);
    let whole = site.request("GET", &[]);
    assert!(whole.body == site.video);
    let tag = whole.field("etag").unwrap();
    let before = process(&site.edge, "io", "rchar:");
    for _ in 0..20 {
        let head = site.request("HEAD", &[]);
        assert_eq!(head.field("content-length"), Some("8388608"));
        assert_eq!(site.request("GET", &[("If-None-Match", tag)]).status, 304);
        let part = site.request("GET", &[("Range", "bytes=5000000-5000003")]);
        assert_eq!(
            (part.status, &part.body[..]),
            (206, &site.video[5_000_000..5_000_004])
        );
    }
    let read = process(&site.edge, "io", "rchar:") - before;
    assert!(read < 1 << 20, "{read}");
}

#[test]
fn a_file_that_is_sent_often_has_the_same_bytes_each_time_also_for_slow_readers() {
    // It is short enough to be cached, and longer than what a socket takes at once.
    let site = Site::start("{}", 250 << 10);
    let get = format!("GET {VIDEO} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    let mut connection = Connection::open(site.edge.http);
    let mut receive = |requests: usize| {
        connection.send(get.repeat(requests).as_bytes());
        for _ in 0..requests {
            let response = connection.receive("GET").unwrap();
            assert!(response.status == 200 && response.body == site.video);
        }
    };
    // The file in memory is for the responses of one second.
    wait_until("the gateway has a file in memory", || {
        (0..50).for_each(|_| receive(1));
        let open = fs::read_dir(format!("/proc/{}/fd", site.edge.id())).unwrap();
        let mut targets = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        targets.any(|target| target.starts_with("/memfd:waypost-response (deleted)"))
    });
    receive(3);
    receive(1);

    let mut slow = slow_connection(site.edge.http);
    ask(&mut slow);
    let mut slow = Connection::over(slow);
    let response = slow.receive_head().unwrap();
    assert_eq!(response.field("content-length"), Some("256000"));
    // Meanwhile others get the file.
    for _ in 0..20 {
        assert!(site.request("GET", &[]).body == site.video);
    }
    assert!(slow.receive_bytes(site.video.len()) == site.video);
}

#[test]
fn parts_of_a_file_are_selected_as_rfc_9110_says() {
    let site = Site::start("{}", 1 << 20);
    let length = site.video.len();
    let tag = site.request("HEAD", &[]).field("etag").unwrap().to_owned();
    let part = |range: &str, if_range: &str| {
        let mut fields = vec![("Range", range)];
        if !if_range.is_empty() {
            fields.push(("If-Range", if_range));
        }
        site.request("GET", &fields)
    };
    for (range, if_range, status, expected) in [
        ("bytes=10-19", "", 206, 10..20),
        ("bytes=-5", "", 206, length - 5..length),
        ("bytes=1048570-", "", 206, 1_048_570..length),
        ("bytes=100000-300000", &*tag, 206, 100_000..300_001),
        ("bytes=0-9", "\"other\"", 200, 0..length),
        // Several ranges get the whole file, which is always allowed (§14.2).
        ("bytes=0-1,5-6", "", 200, 0..length),
        ("bytes=0-,0-,0-,0-", "", 200, 0..length),
    ] {
        let response = part(range, if_range);
        assert_eq!(response.status, status, "{range}");
        assert!(response.body == site.video[expected.clone()], "{range}");
        let text = format!("bytes {}-{}/{length}", expected.start, expected.end - 1);
        let field = (status == 206).then_some(text.as_str());
        assert_eq!(response.field("content-range"), field);
    }
    let beyond = part("bytes=1048576-", "");
    assert_eq!(beyond.status, 416);
    assert_eq!(beyond.field("content-range"), Some("bytes */1048576"));
}

#[test]
fn a_connection_serves_more_requests_after_a_file_and_each_is_logged() {
    let site = Site::start("{}", 1 << 20);
    let mut connection = Connection::open(site.edge.http);
    let request = |path: &str, version: &str, fields: &str| {
        format!("GET {path} HTTP/{version}\r\nHost: {DOMAIN}\r\n{fields}\r\n")
    };
    let pipelined = [
        request(VIDEO, "1.1", ""),
        request("/", "1.1", ""),
        request("/video.mp4?x", "1.1", "Range: bytes=5-300004\r\n"),
        request("/skill.md", "1.1", ""),
        request(VIDEO, "1.0", "Connection: keep-alive\r\n"),
    ];
    connection.send(pipelined.concat().as_bytes());
    for (status, body) in [
        (200, Some(&site.video[..])),
        (200, None),
        (206, Some(&site.video[5..300_005])),
        (200, None),
        (200, Some(&site.video[..])),
    ] {
        let response = connection.receive("GET").unwrap();
        assert_eq!(response.status, status);
        assert!(body.is_none_or(|body| response.body == body));
    }
    // A file ends the connection of a client with HTTP/1.0.
    assert_eq!(connection.receive_rest(), b"");
    let mut lines = site.edge.stop();
    lines.retain(|line| line["path"] == VIDEO);
    let logged: Vec<_> = lines
        .iter()
        .map(|line| (line["status"].as_u64(), line["bytes"].as_u64()))
        .collect();
    let whole = (Some(200), Some(1 << 20));
    assert_eq!(logged, [whole, (Some(206), Some(300_000)), whole]);
    assert_eq!(lines[1]["host"], DOMAIN);
}

#[test]
fn a_file_that_cannot_be_read_is_rejected_and_a_damaged_one_is_cut_then_rejected() {
    let site = Site::start("{}", 1 << 20);
    let path = site.stored();
    let mut damaged = site.video.clone();
    damaged[500_000] ^= 1;
    fs::write(&path, &damaged).unwrap();
    // The response ends before its length: the client sees that it is not complete.
    let mut connection = Connection::open(site.edge.http);
    let head = format!("GET {VIDEO} HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
    connection.send(head.as_bytes());
    let cut = connection.receive_head().unwrap();
    assert_eq!(cut.field("content-length"), Some("1048576"));
    assert!(connection.receive_rest().len() < site.video.len());
    let names_it = |line: &serde_json::Value| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("a file of a release is damaged") && line["level"] == "error"
    };
    site.edge.wait_for_log(names_it);
    assert_eq!(site.request("GET", &[]).status, 503);
    assert_eq!(site.request("GET", &[("Range", "bytes=0-0")]).status, 503);
    // A release that is put again repairs it.
    fs::remove_file(&path).unwrap();
    assert_eq!(site.request("GET", &[]).status, 503);
    assert_eq!(site.request("HEAD", &[]).status, 200);
    fs::write(&path, &site.video).unwrap();
    assert!(site.request("GET", &[]).body == site.video);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_above_the_minimum_rate_ends_whole_however_long_it_takes() {
    // The whole download takes several times as long as one write may make no progress.
    let site = Arc::new(Site::start(
        "{ write_seconds: 2, write_rate_min: 20000 }",
        2 << 20,
    ));
    let began = Instant::now();
    let http1 = tokio::task::spawn_blocking({
        let site = Arc::clone(&site);
        move || {
            let mut stream = slow_connection(site.edge.http);
            ask(&mut stream);
            let mut all = Vec::new();
            let mut part = [0; 16 << 10];
            while all.len() < site.video.len() {
                let read = stream.read(&mut part).unwrap();
                assert!(read > 0, "cut after {} bytes", all.len());
                all.extend_from_slice(&part[..read]);
                // This pause sets the speed of the client.
                std::thread::sleep(Duration::from_micros(3 * read as u64));
            }
            assert!(all.ends_with(&site.video[site.video.len() - 1000..]));
        }
    });
    let mut client = site.http2().await;
    let exchange = client.begin(http2::get(DOMAIN, VIDEO), true).await.unwrap();
    let mut body = exchange.response.await.unwrap().into_body();
    let mut all = Vec::new();
    while let Some(part) = body.data().await {
        let part = part.unwrap();
        all.extend_from_slice(&part);
        tokio::time::sleep(Duration::from_micros(3 * part.len() as u64)).await;
        body.flow_control().release_capacity(part.len()).unwrap();
    }
    assert!(all == site.video);
    http1.await.unwrap();
    assert!(began.elapsed() > Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_below_the_minimum_rate_is_closed_and_counted_and_no_error_is_logged() {
    let site = Site::start("{ write_seconds: 2, write_rate_min: 100000 }", 8 << 20);
    let is_error = |line: &serde_json::Value| line["level"] == "error" || line["level"] == "warn";
    // The limits of this machine are warnings of the start.
    let of_start = site.edge.count_log(is_error);
    let slow = "gateway_slow_clients_total{reason=\"slow\"}";
    let stalled = "gateway_slow_clients_total{reason=\"stalled\"}";

    // Over HTTP/1.1 one client reads and one does not.
    let mut reader = slow_connection(site.edge.http);
    ask(&mut reader);
    let mut part = [0; 2048];
    while reader.read(&mut part).is_ok_and(|read| read > 0) {
        std::thread::sleep(Duration::from_millis(50));
    }
    // On a busy machine this client may seem to read nothing.
    assert!(site.edge.metric(slow) + site.edge.metric(stalled) >= 1.0);
    let before = site.edge.metric(stalled);
    let mut idle = slow_connection(site.edge.http);
    ask(&mut idle);
    site.edge.wait_for_metric(stalled, before + 1.0);
    let (slow_before, stalled_before) = (site.edge.metric(slow), site.edge.metric(stalled));

    // Over HTTP/2 one window stays closed, and another opens byte by byte.
    let mut settings = h2::client::Builder::new();
    settings.initial_window_size(1);
    let config = site.authority.client(&["h2"]);
    let mut client = Client::open_with(site.edge.https.unwrap(), DOMAIN, config, settings).await;
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let exchange = client.begin(http2::get(DOMAIN, VIDEO), true).await.unwrap();
        bodies.push(exchange.response.await.unwrap().into_body());
    }
    let (mut byte_by_byte, mut closed) = (bodies.remove(0), bodies.remove(0));
    let error = loop {
        match byte_by_byte.data().await.unwrap() {
            Ok(part) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                // The stream may have been reset meanwhile.
                let _reset = byte_by_byte.flow_control().release_capacity(part.len());
            }
            Err(error) => break error,
        }
    };
    assert!(error.is_reset(), "{error}");
    let error = loop {
        if let Err(error) = closed.data().await.unwrap() {
            break error;
        }
    };
    assert!(error.is_reset(), "{error}");
    site.edge.wait_for_metric(slow, slow_before + 1.0);
    site.edge.wait_for_metric(stalled, stalled_before + 1.0);
    // The connection serves the next stream.
    let head = http::Request::head(format!("https://{DOMAIN}{VIDEO}"))
        .body(())
        .unwrap();
    assert_eq!(client.request(head).await.unwrap().status, 200);
    assert_eq!(site.edge.count_log(is_error), of_start);
}

#[test]
fn a_large_text_is_never_encoded_while_a_request_waits() {
    // About 1.5 MiB of text with many links of the site.
    let paragraph = "[Read on](/index). ".repeat(50) + "\n\n";
    let page = format!("---\ntitle: Long\n---\n\n{}", paragraph.repeat(1500));
    let edge = Setup::new().acme("").start();
    edge.publish("acme", &[("docs.json", CONFIG), ("index.mdx", &page)]);
    let get = |coding: &str, fields: &[(&str, &str)]| {
        let fields = [&[("Accept-Encoding", coding)], fields].concat();
        edge.request("GET", DOMAIN, "/llms-full.txt", &fields)
    };
    let plain = get("identity", &[]);
    assert_eq!((plain.status, plain.field("content-encoding")), (200, None));
    assert!(plain.body.len() > 1 << 20, "{}", plain.body.len());
    assert!(plain.text().contains(&format!("https://{DOMAIN}")));
    assert!(!plain.text().contains("base-url.invalid"));
    let tag = plain.field("etag").unwrap();
    assert_eq!(get("identity", &[("If-None-Match", tag)]).status, 304);
    // The first response that accepts a coding is not encoded; a later one is.
    assert!(get("gzip", &[]).body == plain.body);
    let deadline = Instant::now() + TIMEOUT;
    let encoded = loop {
        let response = get("gzip", &[]);
        if response.field("content-encoding") == Some("gzip") {
            break response;
        }
        assert!(response.body == plain.body);
        assert!(Instant::now() < deadline, "no encoded form was made");
    };
    let mut decoded = Vec::new();
    flate2::read::GzDecoder::new(&encoded.body[..])
        .read_to_end(&mut decoded)
        .unwrap();
    assert!(decoded == plain.body);
    assert_ne!(encoded.field("etag"), plain.field("etag"));
}

#[test]
fn a_redirect_leads_to_no_other_host_that_the_path_names() {
    let edge = Setup::new().acme("").start();
    let config = r#"{"name": "Acme", "navigation": {"pages": ["index"]},
        "redirects": [{"source": "/docs/:slug*", "destination": "/:slug*"}]}"#;
    edge.publish("acme", &[("docs.json", config), ("index.mdx", "Hello.")]);
    for (path, location) in [
        ("/docs/%252Fevil.example/x", "/%252Fevil.example/x"),
        ("/docs/%2Fevil.example/x", "/evil.example/x"),
        ("/docs//evil.example/x", "/evil.example/x"),
        ("/docs/%5Cevil.example", "/%5Cevil.example"),
        ("/docs/%2525", "/%2525"),
        ("/docs/a%20b%3Fc", "/a%20b%3Fc"),
    ] {
        let response = edge.get(DOMAIN, path);
        assert_eq!(response.status, 308, "{path}");
        assert_eq!(response.field("location"), Some(location), "{path}");
    }
}

#[test]
fn redirects_that_would_make_each_missing_page_slow_are_an_error_with_its_limit() {
    let setup = Setup::new().acme("");
    let long = "/a".repeat(349);
    let redirects: Vec<_> = (0..2000)
        .map(|n| serde_json::json!({"source": format!("{long}/:x/{n}"), "destination": "/index"}))
        .collect();
    let config = serde_json::json!({
        "name": "Acme", "navigation": {"pages": ["index"]}, "redirects": redirects,
    });
    let docs = setup.documentation(&[("docs.json", &config.to_string()), ("index.mdx", "Hello.")]);
    let docs = docs.to_str().unwrap();
    let output = setup.run(&["publish", docs, "--root", docs, "--project", "acme"]);
    assert!(!output.status.success());
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(
        text.contains("351 segments") && text.contains("limit"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_host_answers_as_a_host_that_no_site_has() {
    let site = Site::start("{}", 1000);
    site.edge.write_site("acme", "visibility: private");
    let mut client = site.http2().await;
    for path in [
        "/",
        VIDEO,
        "/skill.md",
        "/.well-known/agent-card.json",
        "/none",
    ] {
        let seen = |mut response: Response| {
            response.fields.retain(|(name, _)| name != "date");
            response
        };
        for method in ["GET", "HEAD", "OPTIONS", "POST"] {
            let [private, unknown] = [SUBDOMAIN, "nobody.waypost.localhost"]
                .map(|host| seen(site.edge.request(method, host, path, &[])));
            assert_eq!(private.status, 404);
            assert_eq!(private, unknown, "{method} {path}");
        }
        let private = seen(client.get(SUBDOMAIN, path).await.unwrap());
        let unknown = seen(client.get("nobody.waypost.localhost", path).await.unwrap());
        assert_eq!(private, unknown, "{path}");
    }
}

#[test]
fn the_coding_that_a_client_prefers_is_sent() {
    let edge = Setup::new().acme("").start();
    let page = "Words to read. ".repeat(500);
    edge.publish("acme", &[("docs.json", CONFIG), ("index.mdx", &page)]);
    for (accepted, coding) in [
        ("gzip;q=1.0, br;q=0.1", Some("gzip")),
        ("gzip, br", Some("br")),
        ("br;q=0.2, *;q=0.1, gzip;q=0.3", Some("gzip")),
        ("identity, gzip;q=0.5", None),
    ] {
        for path in ["/", "/index.md", "/llms-full.txt"] {
            let response = edge.request("GET", DOMAIN, path, &[("Accept-Encoding", accepted)]);
            assert_eq!(
                response.field("content-encoding"),
                coding,
                "{path} {accepted}"
            );
        }
    }
}

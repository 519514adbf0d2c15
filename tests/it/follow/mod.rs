//! Edges that follow a node: they serve what it serves, from their own cache, also while it is
//! away, and nobody between can make them serve anything else.

mod faults;
mod figures;
mod limits;
mod numbers;
mod relay;
mod rollout;
mod secrets;
mod shared;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use waypost::release::INVENTORY_BYTES_MAX;

use crate::certificates::Authority;
use crate::edge::{Edge, Setup};
use crate::http::{self, TIMEOUT, wait_until};
use crate::ports::free_address;
use crate::presets::{DOMAIN, PAY, SKILL};

/// The navigation of documentation with one page beside its skill.
const NAVIGATION: &str = r#"{ "name": "Acme", "navigation": { "pages": ["guide"] } }"#;

/// Changes an answer of the source on its way to an edge.
type Lie = Box<dyn Fn(&str, &mut Vec<u8>) + Send>;

/// A word of a path, and the status of the response to requests with it.
type Answer = (&'static str, u16);

/// A server between an edge and its source. It closes each connection after one response.
#[derive(Clone)]
pub struct Between {
    pub address: SocketAddr,
    lie: Arc<Mutex<Option<Lie>>>,
    answer: Arc<Mutex<Option<Answer>>>,
    /// Everything that went through.
    seen: Arc<Mutex<Vec<u8>>>,
}

/// Returns the setup of a source with the site `acme`.
fn source(listen: SocketAddr) -> Setup {
    let edges = format!("{{ listen: \"{listen}\", allow_http: true }}");
    Setup::new().acme("").conf("edges", &edges)
}

fn output(setup: &Setup, arguments: &[&str]) -> String {
    let output = setup.run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes a file that only its user can read: others are refused at the start.
fn write_private(path: PathBuf, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Returns the setup of an edge of a source, with more keys of `store.follow`.
pub fn edge_of(source: &Setup, url: &str, name: &str, more: &str) -> Setup {
    let edge = Setup::new();
    let token = output(source, &["edge", "add", name]);
    write_private(edge.path("token"), &token);
    following(source, edge, url, more)
}

/// Starts a source with a skill and one edge that serves it.
fn source_and_edge() -> (SocketAddr, Edge, Edge) {
    source_and_edge_with("")
}

/// The same with more keys of `store.follow`.
fn source_and_edge_with(more: &str) -> (SocketAddr, Edge, Edge) {
    let listen = free_address();
    let source = source(listen).with_skill().start();
    let edge = edge_of(&source.setup, &url(listen), "paris", more).start();
    wait_until_serves(&edge, SKILL);
    (listen, source, edge)
}

/// The same with a server between them.
fn source_between_edge() -> (SocketAddr, Edge, Between, Edge) {
    let listen = free_address();
    let source = source(listen).with_skill().start();
    let between = Between::start(listen);
    let edge = edge_of(&source.setup, &url(between.address), "paris", "").start();
    wait_until_serves(&edge, SKILL);
    (listen, source, between, edge)
}

fn following(source: &Setup, edge: Setup, url: &str, more: &str) -> Setup {
    let key = output(source, &["edge", "key"]);
    trusting(edge, url, &[&key], more)
}

/// Lets an edge follow a source with one of these keys.
fn trusting(edge: Setup, url: &str, keys: &[&str], more: &str) -> Setup {
    let keys = keys.join("\", \"");
    let (token, cache) = (edge.path("token"), edge.path("cache"));
    let (token, cache) = (token.display(), cache.display());
    let store = format!(
        "{{ follow: {{ url: \"{url}\", token_file: {token}, public_keys: [\"{keys}\"], \
         cache: {cache}, allow_http: true{more} }} }}"
    );
    edge.conf("store", &store)
}

pub fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn skill(version: usize) -> String {
    format!("---\nname: sdk\ndescription: Version {version}.\n---\n\n# Version {version}\n")
}

fn served(edge: &Edge, host: &str) -> String {
    http::request(edge.http, "GET", host, "/skill.md", &[])
        .text()
        .to_owned()
}

#[track_caller]
fn wait_until_serves(edge: &Edge, text: &str) {
    wait_until(text, || served(edge, DOMAIN) == text);
}

/// Returns whether an edge has the site of a host, with or without a release.
fn knows(edge: &Edge, host: &str) -> bool {
    let body = |host| http::request(edge.http, "GET", host, "/", &[]).body;
    body(host) != body("nobody.test")
}

fn readiness(edge: &Edge) -> serde_json::Value {
    http::request(edge.operator, "GET", "operator", "/readyz?full", &[]).json()
}

/// Asks the running source for its edges with the command.
fn fleet(source: &Edge) -> String {
    let conf = source.setup.path("waypost.yaml");
    let text = std::fs::read_to_string(conf).unwrap();
    let known = text.replace(
        "operator: \"127.0.0.1:0\"",
        &format!("operator: \"{}\"", source.operator),
    );
    let path = source.setup.path("known.yaml");
    std::fs::write(&path, known).unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["fleet", "--conf"])
        .arg(path)
        .output()
        .unwrap();
    // It is 1 if an edge is not well.
    assert!(status.status.code().unwrap() < 2, "{status:?}");
    String::from_utf8(status.stdout).unwrap()
}

fn cause(edge: &Edge) -> String {
    readiness(edge)["follow"]["cause"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn kill(edge: Edge) -> Setup {
    edge.signal("KILL");
    edge.ended()
}

/// Returns the files of releases in a store, by path.
fn content(store: PathBuf) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for part in ["content", "inventories"] {
        for shard in std::fs::read_dir(store.join(part)).unwrap() {
            for file in std::fs::read_dir(shard.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let bytes = std::fs::read(&path).unwrap();
                found.push((path.strip_prefix(&store).unwrap().to_owned(), bytes));
            }
        }
    }
    found.sort();
    found
}

impl Between {
    pub fn start(source: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let between = Self {
            address: listener.local_addr().unwrap(),
            lie: Arc::default(),
            answer: Arc::default(),
            seen: Arc::default(),
        };
        let server = between.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = server.clone();
                std::thread::spawn(move || server.forward(stream, source));
            }
        });
        between
    }

    pub fn lie(&self, lie: impl Fn(&str, &mut Vec<u8>) + Send + 'static) {
        *self.lie.lock().unwrap() = Some(Box::new(lie));
    }

    /// From now on, answers requests whose path contains a word itself. The source does not get them.
    fn answer(&self, word: &'static str, status: u16) {
        *self.answer.lock().unwrap() = Some((word, status));
    }

    pub fn be_honest(&self) {
        *self.lie.lock().unwrap() = None;
        *self.answer.lock().unwrap() = None;
    }

    /// Forwards one request and its response. Either side may be gone.
    fn forward(&self, mut client: TcpStream, source: SocketAddr) -> Option<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.parse().unwrap())
        });
        let mut content = vec![0; length.unwrap_or(0)];
        client.read_exact(&mut content).ok()?;
        let answer = *self.answer.lock().unwrap();
        if let Some((_, status)) = answer.filter(|(word, _)| path.contains(word)) {
            return client.write_all(&empty(status)).ok();
        }
        let mut server = TcpStream::connect(source).ok()?;
        let closing = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        server.write_all(closing.as_bytes()).ok()?;
        server.write_all(&content).ok()?;
        let mut response = Vec::new();
        server.read_to_end(&mut response).ok()?;
        if let Some(lie) = &*self.lie.lock().unwrap() {
            lie(&path, &mut response);
        }
        self.seen.lock().unwrap().extend_from_slice(&response);
        client.write_all(&response).ok()
    }
}

/// Returns a response without a body. It says that the connection ends. Otherwise the edge would send
/// its next request on it.
fn empty(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} Status\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        .into_bytes()
}

/// Changes the last byte of a response.
fn change_end(response: &mut [u8]) {
    if let Some(last) = response.last_mut() {
        *last ^= 1;
    }
}

#[test]
fn what_a_node_serves_is_served_by_its_edges() {
    let listen = free_address();
    let source = source(listen).start();
    let edges = ["paris", "tokyo"].map(|name| {
        let setup = edge_of(&source.setup, &url(listen), name, "");
        setup.start()
    });
    source.publish("acme", &[("skill.md", SKILL)]);
    edges.iter().for_each(|edge| wait_until_serves(edge, SKILL));
    // An update, a site of a file, a site of the store.
    let files = [
        ("skill.md", PAY),
        ("docs.json", NAVIGATION),
        ("guide.md", "# Guide\n"),
    ];
    source.publish("acme", &files);
    source.write_site("files", "domains: [files.test]");
    source.publish("files", &[("skill.md", SKILL)]);
    for edge in &edges {
        wait_until_serves(edge, PAY);
        wait_until("a site of a file", || served(edge, "files.test") == SKILL);
        // A release is visible as a whole, and never changed on the way.
        for path in ["/guide.md", "/.well-known/agent-skills/index.json"] {
            assert_eq!(
                edge.get(DOMAIN, path).body,
                source.get(DOMAIN, path).body,
                "{path}"
            );
        }
        let api = edge.get("api.waypost.localhost", "/v1/project/update/acme");
        assert_eq!(api.status, 503, "{}", api.text());
        assert!(
            api.text().contains("this node is an edge"),
            "{}",
            api.text()
        );
        let ready = readiness(edge);
        assert_eq!(ready["status"], "ready", "{ready}");
        assert!(
            ready["follow"]["age_seconds"].as_u64().unwrap() <= 60,
            "{ready}"
        );
        assert!(edge.metric("follow_fetched_bytes_total") > 0.0);
    }
    // A private site is hidden, and a removed one is gone.
    source.write_site("files", "domains: [files.test]\nvisibility: private");
    for edge in &edges {
        wait_until("private", || served(edge, "files.test") != SKILL);
    }
    source.remove_site("files");
    for edge in &edges {
        let gone = |edge: &Edge| http::request(edge.http, "GET", "files.test", "/", &[]).status;
        let expected = gone(&source);
        wait_until("removed", || gone(edge) == expected);
    }
    wait_until("both follow", || {
        let status = fleet(&source);
        status.matches("  ring 0  following  0 behind").count() == 2
    });
}

#[test]
fn an_edge_serves_from_its_cache_while_its_source_is_away() {
    let (listen, source, edge) = source_and_edge();
    wait_until("filled", || readiness(&edge)["status"] == "ready");
    let source = kill(source);
    let edge = kill(edge).start();
    assert_eq!(served(&edge, DOMAIN), SKILL);
    wait_until("it says why", || cause(&edge).contains(&listen.to_string()));
    assert_eq!(readiness(&edge)["status"], "degraded");
    assert!(readiness(&edge)["follow"]["age_seconds"].is_u64());
    // The source has another life, and has changed meanwhile.
    source.publish("acme", &[("skill.md", PAY)]);
    source.write_site("more", "domains: [more.test]");
    let source = source.start();
    wait_until_serves(&edge, PAY);
    wait_until("compared", || {
        edge.metric("follow_comparisons_total") >= 1.0
    });
    wait_until("more", || knows(&edge, "more.test"));
    // And once more, with a site less.
    let source = kill(source);
    source.remove_site("more");
    let _source = source.start();
    wait_until("removed", || !knows(&edge, "more.test"));
    assert_eq!(served(&edge, DOMAIN), PAY);
}

#[test]
fn an_edge_without_a_cache_is_not_ready_before_it_has_everything() {
    let listen = free_address();
    let setup = source(listen).with_skill();
    let edge = edge_of(&setup, &url(listen), "paris", "").start();
    let ready = || http::request(edge.operator, "GET", "operator", "/readyz", &[]).status;
    assert_eq!(ready(), 503);
    let _source = setup.start();
    wait_until("ready", || ready() == 200);
    wait_until_serves(&edge, SKILL);
}

#[test]
fn a_removed_edge_and_a_wrong_token_are_refused() {
    let (listen, source, edge) = source_and_edge();
    let asked = |fields: &[(&str, &str)]| {
        let path = "/v1/follow/snapshot";
        http::request(listen, "GET", "source", path, fields).status
    };
    assert_eq!(asked(&[]), 401);
    assert_eq!(
        asked(&[("Authorization", "Bearer waypost_edge_paris_00")]),
        401
    );
    output(&source.setup, &["edge", "remove", "paris"]);
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until("it says why", || cause(&edge).contains("401"));
    assert_eq!(served(&edge, DOMAIN), SKILL);
    // Another token is used without a restart.
    let token = output(&source.setup, &["edge", "add", "paris"]);
    write_private(edge.setup.path("token"), &token);
    wait_until_serves(&edge, PAY);
}

#[test]
fn a_forged_message_changes_nothing() {
    let (listen, source, between, edge) = source_between_edge();
    between.lie(|path, response| {
        if path.contains("changes") && response.starts_with(b"HTTP/1.1 200") {
            change_end(response);
        }
    });
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until("it says why", || {
        cause(&edge).contains("has signed the message")
    });
    assert_eq!(served(&edge, DOMAIN), SKILL);
    assert!(edge.metric("follow_failures_total{reason=\"signature\"}") >= 1.0);
    between.be_honest();
    wait_until_serves(&edge, PAY);

    // An edge that trusts another key accepts nothing at all.
    let other = source_of_another_key();
    let setup = edge_of(&source.setup, &url(listen), "tokyo", "");
    let setup = following(&other, setup, &url(listen), "");
    let edge = setup.start();
    wait_until("it says why", || {
        cause(&edge).contains("has signed the message")
    });
    assert!(!knows(&edge, DOMAIN));
}

#[test]
fn the_key_of_a_source_is_replaced_without_an_outage() {
    let (listen, source, edge) = source_and_edge();
    let address = url(listen);
    let old = output(&source.setup, &["edge", "key"]);
    let file = source.setup.path("edges-key.new");
    let path = file.display().to_string();
    let new = output(&source.setup, &["edge", "key", "--file", &path]);
    assert_ne!(new, old);
    assert_eq!(
        output(&source.setup, &["edge", "key", "--file", &path]),
        new
    );
    // An edge that knows only the new key refuses what the old one has signed, says so, and serves.
    let edge = trusting(kill(edge), &address, &[&new], "").start();
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until("it says why", || {
        assert_eq!(served(&edge, DOMAIN), SKILL);
        cause(&edge).contains("no key of `store.follow.public_keys` has signed the message")
    });
    assert!(edge.metric("follow_failures_total{reason=\"signature\"}") >= 1.0);
    wait_until("the source knows it", || {
        fleet(&source).contains("cannot use what this node sends (signature)")
    });
    assert_eq!(served(&edge, DOMAIN), SKILL);
    let edge = trusting(kill(edge), &address, &[&old, &new], "").start();
    wait_until_serves(&edge, PAY);
    let source = kill(source);
    std::fs::rename(file, source.path("store/edges-key")).unwrap();
    let source = source.start();
    assert_eq!(output(&source.setup, &["edge", "key"]), new);
    source.publish("acme", &[("skill.md", SKILL)]);
    wait_until_serves(&edge, SKILL);
    let edge = trusting(kill(edge), &address, &[&new], "").start();
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&edge, PAY);
    let refused = edge.setup.run(&["edge", "key", "--file", &path]);
    assert!(!refused.status.success());
}

fn source_of_another_key() -> Setup {
    source(free_address())
}

/// Returns the snapshot that a source sends to an edge.
fn snapshot_of(source: SocketAddr, edge: &Edge) -> Vec<u8> {
    let snapshot = ask_for_everything(source, edge);
    assert!(snapshot.starts_with(b"HTTP/1.1 200"));
    snapshot
}

/// Returns the answer of a source to the request of an edge for everything.
fn ask_for_everything(source: SocketAddr, edge: &Edge) -> Vec<u8> {
    let token = std::fs::read_to_string(edge.setup.path("token")).unwrap();
    let mut stream = TcpStream::connect(source).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let request = format!(
        "GET /v1/follow/snapshot HTTP/1.1\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        token.trim()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut kept = Vec::new();
    stream.read_to_end(&mut kept).unwrap();
    kept
}

#[test]
fn an_edge_that_must_compare_again_and_again_pauses() {
    let (_, source, between, edge) = source_between_edge();
    // The source would wait for a change before it answers.
    between.answer("changes", 410);
    let compared = || edge.metric("follow_comparisons_total");
    let before = compared();
    // Ends the request that waits for a change.
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until("a comparison", || compared() >= before + 2.0);
    http::silence(Duration::from_secs(4));
    assert!(compared() <= before + 8.0, "{}", compared());
    between.be_honest();
    wait_until("it follows", || readiness(&edge)["status"] == "ready");
}

#[test]
fn an_earlier_state_is_not_accepted_again() {
    let (listen, source, between, edge) = source_between_edge();
    // A snapshot of this life is kept by the server between, and sent again later.
    let kept = snapshot_of(listen, &edge);
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&edge, PAY);
    between.lie(move |path, response| match path.contains("snapshot") {
        true => response.clone_from(&kept),
        false if path.contains("changes") => {
            *response = empty(410);
        }
        false => {}
    });
    source.publish(
        "acme",
        &[
            ("skill.md", SKILL),
            ("docs.json", NAVIGATION),
            ("guide.md", "# A\n"),
        ],
    );
    wait_until("it says why", || cause(&edge).contains("earlier state"));
    assert_eq!(served(&edge, DOMAIN), PAY);
    // The edge asks, and still it is not well.
    wait_until("the source knows it", || {
        fleet(&source).contains("cannot use what this node sends (older)")
    });
    between.be_honest();
    wait_until_serves(&edge, SKILL);
    wait_until("it is well", || !fleet(&source).contains("cannot use"));
}

#[test]
fn an_object_with_other_bytes_or_no_end_is_refused_and_fetched_again() {
    let (_, source, between, edge) = source_between_edge();
    between.lie(|path, response| {
        if path.contains("objects") {
            change_end(response);
        }
    });
    source.publish("acme", &[("skill.md", PAY)]);
    let waiting = || readiness(&edge)["follow"]["waiting_releases"].as_u64();
    wait_until("it waits", || {
        waiting() == Some(1) && cause(&edge).contains("other bytes")
    });
    assert_eq!(served(&edge, DOMAIN), SKILL);
    // Another project is not held up by it, though its files are changed too: only the record is.
    source.write_site("more", "domains: [more.test]");
    wait_until("more", || knows(&edge, "more.test"));
    between.lie(|path, response| {
        if path.contains("objects") {
            let endless = vec![b'x'; usize::try_from(INVENTORY_BYTES_MAX).unwrap() + 1];
            *response = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
            response.extend_from_slice(&endless);
        }
    });
    wait_until("too large", || cause(&edge).contains("more than"));
    assert_eq!(served(&edge, DOMAIN), SKILL);
    between.be_honest();
    wait_until_serves(&edge, PAY);
    wait_until("whole", || readiness(&edge)["status"] == "ready");
}

#[test]
fn a_snapshot_that_is_too_large_or_removes_too_much_changes_nothing() {
    let listen = free_address();
    let source = source(listen).with_skill();
    for number in 0..12 {
        source.write_site(&format!("s{number}"), "");
    }
    let source = source.start();
    let edge = edge_of(&source.setup, &url(listen), "paris", "").start();
    wait_until("all", || knows(&edge, "s7.waypost.localhost"));
    let small = edge_of(
        &source.setup,
        &url(listen),
        "tokyo",
        ", snapshot_bytes_max: 1024",
    );
    let small = small.start();
    wait_until("too large", || {
        cause(&small).contains("more than 1024 bytes")
    });
    // The source comes back with one site.
    let setup = kill(source);
    for number in 0..12 {
        setup.remove_site(&format!("s{number}"));
    }
    let _source = setup.start();
    wait_until("refused", || cause(&edge).contains("12 of 13 sites"));
    assert!(knows(&edge, "s7.waypost.localhost"));
    let operator = edge.operator;
    let token = std::fs::read_to_string(edge.setup.path("cache/operator-token")).unwrap();
    let token = format!("Bearer {}", token.trim());
    let fields = [("Authorization", &*token)];
    let host = operator.to_string();
    let accepted = http::request(operator, "POST", &host, "/reload?accept-removals", &fields);
    assert_eq!(accepted.status, 202);
    wait_until("removed", || !knows(&edge, "s7.waypost.localhost"));
    assert_eq!(served(&edge, DOMAIN), SKILL);
}

#[test]
fn a_snapshot_that_no_edge_would_read_is_not_sent_and_the_source_says_so() {
    let listen = free_address();
    let edges = format!("{{ listen: \"{listen}\", allow_http: true, snapshot_bytes_max: 2048 }}");
    let source = Setup::new().acme("").with_skill().conf("edges", &edges);
    for number in 0..12 {
        let domain = format!("{}.{}.s{number}.test", "a".repeat(60), "b".repeat(60));
        source.write_site(&format!("s{number}"), &format!("domains: [{domain}]"));
    }
    let source = source.start();
    assert_eq!(readiness(&source)["status"], "ready");
    let edge = edge_of(&source.setup, &url(listen), "paris", "").start();
    wait_until("it says why", || cause(&edge).contains("500"));
    let ready = readiness(&source);
    assert_eq!(ready["status"], "degraded", "{ready}");
    assert!(
        ready.to_string().contains("`edges.snapshot_bytes_max`"),
        "{ready}"
    );
    assert!(source.metric("follow_source_snapshot_bytes{ring=\"0\"}") > 2048.0);
    // Fewer sites can be read. More removals at once need an operator.
    for number in 0..9 {
        source.remove_site(&format!("s{number}"));
    }
    wait_until_serves(&edge, SKILL);
    wait_until("ready", || readiness(&source)["status"] == "ready");
}

#[test]
fn a_cache_has_a_bound_and_keeps_what_is_current() {
    let (_, source, edge) = source_and_edge_with(", cache_bytes_max: 1048576, keep_releases: 100");
    let large = |seed: u64| {
        let mut state = seed;
        let mut text = "# Guide\n\n".to_owned();
        // Random letters: no copy of the page is compressed well.
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            text.push(char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap()));
            if state >> 60 == 0 {
                text.push('\n');
            }
        }
        text
    };
    let bytes = || -> usize {
        let files = content(edge.setup.path("cache")).into_iter();
        let files = files.filter(|(path, _)| path.starts_with("content"));
        files.map(|(_, bytes)| bytes.len()).sum()
    };
    let publish = |pages: std::ops::Range<u64>, text: &str| {
        let pages: Vec<_> = pages
            .map(|seed| (format!("p{seed}"), large(seed)))
            .collect();
        let names: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
        let navigation = serde_json::json!({ "name": "A", "navigation": { "pages": names } });
        let navigation = navigation.to_string();
        let mut files = vec![("docs.json", &*navigation), ("skill.md", text)];
        let named: Vec<_> = names.iter().map(|name| format!("{name}.md")).collect();
        let texts = pages.iter().map(|(_, text)| &**text);
        files.extend(named.iter().map(|name| &**name).zip(texts));
        source.publish("acme", &files);
    };
    for round in 1..=6 {
        let text = skill(usize::try_from(round).unwrap());
        publish(10 * round..10 * round + 3, &text);
        wait_until_serves(&edge, &text);
        assert!(bytes() <= 1 << 20, "{}", bytes());
        assert!(edge.metric("follow_cache_bytes") <= 1_048_576.0);
    }
    // More was fetched than the cache holds, so some was removed.
    let fetched = edge.metric("follow_fetched_bytes_total");
    assert!(fetched > 1_048_576.0, "{fetched}");
    // A release that does not fit at all is rejected, and the previous release is still served.
    publish(100..140, SKILL);
    wait_until("full", || cause(&edge).contains("the cache is full"));
    assert_eq!(served(&edge, DOMAIN), skill(6));
    assert!(bytes() <= 1 << 20, "{}", bytes());
    publish(10..13, PAY);
    wait_until_serves(&edge, PAY);
}

#[test]
fn an_edge_follows_over_tls_and_changes_nothing_by_itself() {
    let authority = Authority::new();
    let listen = free_address();
    let setup = source(listen).with_skill();
    let pair = authority.issue(&["localhost"]);
    let (chain, key) = (setup.path("chain.pem"), setup.path("key.pem"));
    std::fs::write(&chain, pair.certificate.pem()).unwrap();
    write_private(key.clone(), &pair.key.serialize_pem());
    let edges = format!(
        "{{ listen: \"{listen}\", certificate: {}, key: {} }}",
        chain.display(),
        key.display()
    );
    let source = setup.conf("edges", &edges).start();
    let address = format!("https://localhost:{}", listen.port());
    let setup = edge_of(&source.setup, &address, "paris", "");
    let ca = setup.path("ca.pem");
    authority.write(&ca);
    let setup = following(
        &source.setup,
        setup,
        &address,
        &format!(", ca_file: {}", ca.display()),
    );
    let edge = setup.start();
    wait_until_serves(&edge, SKILL);
    let refused = edge.setup.run(&["promote", "acme", &"0".repeat(64)]);
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && why.contains("of an edge"),
        "{why}"
    );
    // Another authority is not trusted.
    let other = edge_of(&source.setup, &address, "tokyo", "").start();
    wait_until("it says why", || {
        cause(&other).contains("ask https://localhost")
    });
    assert!(!knows(&other, DOMAIN));
}

#[test]
fn kills_at_any_moment_leave_every_edge_equal_to_its_source() {
    let listen = free_address();
    let mut source = source(listen).with_skill().start();
    let mut edge = edge_of(&source.setup, &url(listen), "paris", "").start();
    let long = std::env::var_os("WAYPOST_LONG_TESTS").is_some();
    let rounds = if long { 400 } else { 20 };
    for round in 1..=rounds {
        let text = skill(round);
        source.setup.publish(
            "acme",
            &[
                ("skill.md", &*text),
                ("docs.json", NAVIGATION),
                ("guide.md", &*text),
            ],
        );
        // Kills strike while the release is on its way, at another point in each round.
        let moment = Instant::now();
        while moment.elapsed().as_millis() < (round as u128 * 7) % 60 {
            crate::http::pause();
        }
        if round % 2 == 0 {
            edge = kill(edge).start();
        }
        if round % 3 == 0 {
            source = kill(source).start();
        }
    }
    wait_until_serves(&edge, &skill(rounds));
    let guide = edge.get(DOMAIN, "/guide.md");
    assert_eq!(guide.body, source.get(DOMAIN, "/guide.md").body);
    assert!(guide.text().contains("Version"), "{}", guide.text());
    wait_until("whole", || readiness(&edge)["status"] == "ready");
    let kept = content(source.setup.path("store"));
    for file in content(edge.setup.path("cache")) {
        assert!(
            kept.contains(&file),
            "{:?} is not a file of the source",
            file.0
        );
    }
}

#[test]
fn a_cache_that_cannot_be_written_serves_its_last_state() {
    let (listen, source, edge) = source_and_edge();
    // More than any disk has free.
    let setup = kill(edge);
    let full = following(
        &source.setup,
        setup,
        &url(listen),
        ", free_bytes_min: 1125899906842624",
    );
    let edge = full.start();
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until("it says why", || {
        cause(&edge).contains("bytes must stay free")
    });
    assert_eq!(served(&edge, DOMAIN), SKILL);
    assert!(edge.metric("follow_failures_total{reason=\"disk_full\"}") >= 1.0);
}

#[test]
fn a_removed_token_does_not_come_back_after_a_power_cut() {
    let setup = source(free_address());
    output(&setup, &["edge", "add", "paris"]);
    let trace = setup.path("trace");
    let options = ["-y", "-e", "trace=?unlink,unlinkat,fsync", "-o"];
    let options = [&options[..], &[trace.to_str().unwrap()]].concat();
    let removed = crate::faults::strace(&setup, &options, &["edge", "remove", "paris"]);
    assert!(removed.status.success(), "{removed:?}");
    let calls = std::fs::read_to_string(trace).unwrap();
    let removal = calls.find("paris.json\"").expect(&calls);
    // The name is gone from the disk before the command says that the token is gone.
    assert!(calls[removal..].contains("fsync("), "{calls}");
}

#[test]
fn an_edge_that_was_away_serves_no_release_of_a_former_owner() {
    let listen = free_address();
    let source = source(listen).conf("verification", "{ required: false }");
    let source = source.with_skill().start();
    let record = source.setup.path("record.json");
    let create = |owner: &str| {
        let text = format!(r#"{{"owner":"{owner}","subdomain":"second"}}"#);
        std::fs::write(&record, text).unwrap();
        source.change_sites(|| {
            let path = record.to_str().unwrap();
            output(&source.setup, &["site", "set", "second", path]);
        });
    };
    create("acme");
    source.publish("second", &[("skill.md", PAY)]);
    let edge = edge_of(&source.setup, &url(listen), "paris", "").start();
    let host = "second.waypost.localhost";
    wait_until("the edge serves it", || served(&edge, host) == PAY);
    let edge = kill(edge);
    source.change_sites(|| {
        output(&source.setup, &["site", "delete", "second"]);
    });
    create("globex");
    let edge = edge.start();
    wait_until("the release is gone", || served(&edge, host) != PAY);
    assert!(knows(&edge, host));
    assert_eq!(served(&edge, DOMAIN), SKILL);
}

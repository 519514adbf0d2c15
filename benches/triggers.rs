//! How many durable triggers a second, and what do readers notice of them?
//!
//! ```text
//! cargo bench --bench triggers -- SECONDS CLIENTS PROJECTS    # default: 10 64 10000
//! ```
//!
//! The release binary serves the projects; clients trigger over kept connections, each its
//! own projects in turn, first two thousand a second together, then as fast as they are
//! answered. Every 202 is durable. Meanwhile one
//! reader asks for a discovery document two hundred times a second, at fixed times, so that
//! a late answer delays no question; its latencies are also taken before, without triggers.
//!
//! The sites name no repository, so a claimed update ends without a build: what is measured
//! is the queue and the API, with the worker's own claims and ends in the same queue.
//!
//! Then one site of a hundred pages is pushed, triggered and fetched, again and again:
//! from the push to its bytes on a custom domain.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]
#![expect(clippy::print_stdout, reason = "its figures are its purpose")]

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_waypost");
const API: &str = "api.waypost.localhost";
/// What must be possible; a caller that is answered late does not ask more often.
const TRIGGERS_A_SECOND: u32 = 2000;
const READS_A_SECOND: u32 = 200;
const PAGES: usize = 100;
const PUSHES: usize = 20;

/// A gateway in a directory of its own.
struct Edge {
    root: tempfile::TempDir,
    process: Child,
    address: SocketAddr,
    key: String,
}

impl Edge {
    fn start(projects: usize) -> Self {
        let root = tempfile::tempdir_in(".").unwrap();
        let at = root.path().canonicalize().unwrap().display().to_string();
        let conf = format!(
            "listen: {{ http: [\"127.0.0.1:0\"], operator: false }}\n\
             store: {{ local: {{ path: {at}/store }} }}\n\
             queue: {{ sqlite: {{ path: {at}/updates.sqlite }} }}\n\
             git: {{ mirrors: {at}/mirrors, local: [{at}] }}\n\
             sites: {at}/sites\naccess_log: off\nlog: {{ format: json, filter: \"info,audit=off,deploy=warn\" }}\n\
             admin: {{ triggers_max: 1000000, triggers_seconds: 1 }}\n"
        );
        fs::write(root.path().join("waypost.yaml"), conf).unwrap();
        fs::create_dir(root.path().join("sites")).unwrap();
        let record = |n| format!("---\nproject: p{n}\nowner: acme\nsubdomain: p{n}\n");
        let records: String = (0..projects).map(record).collect();
        fs::write(root.path().join("sites/many.yaml"), records).unwrap();
        let docs = format!(
            "project: docs\nowner: acme\nsubdomain: docs\ndomains: [docs.acme.test]\n\
             repository: {{ url: \"file://{at}/docs\", branch: main }}\n"
        );
        fs::write(root.path().join("sites/docs.yaml"), docs).unwrap();
        let key = run(root.path(), &["key", "create", "--owner", "acme"]);
        let mut process = Command::new(BINARY)
            .args(["serve", "--conf"])
            .arg(root.path().join("waypost.yaml"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(&line).ok())
            .find_map(|line| line["address"].as_str()?.parse().ok())
            .unwrap();
        // Somebody has to read on, or the log's pipe fills.
        std::thread::spawn(move || lines.count());
        Self {
            root,
            process,
            address,
            key,
        }
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn run(root: &Path, arguments: &[&str]) -> String {
    let conf = root.join("waypost.yaml");
    let output = Command::new(BINARY)
        .args(arguments)
        .arg("--conf")
        .arg(conf)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A kept connection.
struct Client(BufReader<TcpStream>);

impl Client {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends a head and returns the status and the body of the answer.
    fn ask(&mut self, head: &str) -> (u16, String) {
        self.0.get_mut().write_all(head.as_bytes()).unwrap();
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            let line = line.trim_end();
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some((_, value)) = line
                .split_once(": ")
                .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.parse().unwrap();
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }

    fn trigger(&mut self, key: &str, project: &str) -> (u16, String) {
        self.ask(&format!(
            "POST /v1/project/update/{project} HTTP/1.1\r\nHost: {API}\r\nAuthorization: Bearer {key}\r\nContent-Length: 0\r\n\r\n"
        ))
    }
}

/// The latencies of one kind of request.
struct Latencies(Vec<Duration>);

impl Latencies {
    fn at(&mut self, percent: usize) -> Duration {
        self.0.sort_unstable();
        self.0[(self.0.len() - 1) * percent / 100]
    }

    fn tell(&mut self, what: &str) {
        let (p50, p99) = (self.at(50), self.at(99));
        println!("{what}: p50 {p50:.1?}, p99 {p99:.1?} over {}", self.0.len());
    }
}

/// Asks for the manifest at fixed times until `stop` is raised.
fn read(address: SocketAddr, stop: &AtomicBool) -> Latencies {
    let mut client = Client::open(address);
    let mut latencies = Vec::new();
    let began = Instant::now();
    for nth in 0.. {
        let due = began + Duration::from_secs(1) / READS_A_SECOND * nth;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let head = "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n";
        let (status, _) = client.ask(head);
        assert_eq!(status, 200);
        latencies.push(due.elapsed());
    }
    Latencies(latencies)
}

/// Triggers at fixed times, or as fast as it is answered; returns ids and latencies.
fn trigger(
    edge: &Edge,
    projects: std::ops::Range<usize>,
    every: Option<Duration>,
    until: Instant,
) -> (Vec<String>, Vec<Duration>) {
    let mut client = Client::open(edge.address);
    let (mut ids, mut latencies) = (Vec::new(), Vec::new());
    let began = Instant::now();
    for (nth, project) in (0..).zip(projects.cycle()) {
        let due = every.map_or_else(Instant::now, |every| began + every * nth);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if due > until {
            break;
        }
        let (status, body) = client.trigger(&edge.key, &format!("p{project}"));
        assert_eq!(status, 202, "{body}");
        latencies.push(due.elapsed());
        ids.push(body);
    }
    (ids, latencies)
}

fn quiet(edge: &Edge, seconds: u64) {
    let stop = AtomicBool::new(false);
    let mut before = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(edge.address, &stop));
        std::thread::sleep(Duration::from_secs(seconds.min(5)));
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap()
    });
    before.tell("discovery without triggers");
}

fn triggers(edge: &Edge, every: Option<Duration>, seconds: u64, clients: usize, projects: usize) {
    let (stop, began) = (AtomicBool::new(false), Instant::now());
    let until = began + Duration::from_secs(seconds);
    let share = projects / clients;
    let (answers, mut during) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(edge.address, &stop));
        let own = |nth: usize| nth * share..(nth + 1) * share;
        let triggering: Vec<_> = (0..clients)
            .map(|nth| scope.spawn(move || trigger(edge, own(nth), every, until)))
            .collect();
        let answers: Vec<_> = triggering
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        stop.store(true, Ordering::Relaxed);
        (answers, reader.join().unwrap())
    });
    let took = began.elapsed().as_secs_f64();
    let (ids, latencies): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let total: usize = ids.iter().map(Vec::len).sum();
    let new = ids.into_iter().flatten().collect::<HashSet<_>>().len();
    println!(
        "triggers: {total} in {took:.1} s, {:.0}/s",
        total as f64 / took
    );
    println!(
        "  new updates: {:.0}/s, coalesced: {:.0}/s",
        new as f64 / took,
        (total - new) as f64 / took
    );
    Latencies(latencies.into_iter().flatten().collect()).tell("  answered");
    during.tell("  discovery meanwhile");
}

fn git(docs: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .current_dir(docs)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@acme.test"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Writes a hundred pages and commits them with this skill.
fn push(docs: &Path, skill: &str) {
    for page in 0..PAGES {
        let text = format!(
            "---\ntitle: Page {page}\n---\n\n# Page {page}\n\n{}",
            "Words about it. ".repeat(200)
        );
        fs::write(docs.join(format!("page{page}.mdx")), text).unwrap();
    }
    let pages: Vec<String> = (0..PAGES).map(|page| format!("page{page}")).collect();
    let config = serde_json::json!({ "name": "Acme", "navigation": { "pages": pages }, "theme": "mint", "colors": { "primary": "#112233" } });
    fs::write(docs.join("docs.json"), config.to_string()).unwrap();
    fs::write(docs.join("skill.md"), skill).unwrap();
    git(docs, &["add", "--all"]);
    git(docs, &["commit", "--quiet", "--message", "Change"]);
}

fn pushes(edge: &Edge) {
    let docs = edge.root.path().join("docs");
    let mut client = Client::open(edge.address);
    let (mut served, mut own) = (Vec::new(), Vec::new());
    for nth in 0..PUSHES {
        let skill = format!("---\nname: acme\ndescription: Number {nth}.\n---\n");
        push(&docs, &skill);
        let pushed = Instant::now();
        let (status, body) = client.trigger(&edge.key, "docs");
        assert_eq!(status, 202, "{body}");
        let head = "GET /skill.md HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n";
        while client.ask(head).1 != skill {
            assert!(pushed.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(1));
        }
        served.push(pushed.elapsed());
        let id: serde_json::Value = serde_json::from_str(&body).unwrap();
        let record = run(
            edge.root.path(),
            &["update", "status", id["statusId"].as_str().unwrap()],
        );
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        let logs = record["logs"].to_string();
        let fetched = logs
            .split(" ms)")
            .next()
            .unwrap()
            .rsplit('(')
            .next()
            .unwrap();
        own.push(
            pushed
                .elapsed()
                .min(served[nth])
                .saturating_sub(Duration::from_millis(fetched.parse().unwrap())),
        );
    }
    Latencies(served).tell("push to served");
    Latencies(own).tell("  of it without the fetch");
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok());
    let seconds = arguments.next().unwrap_or(10);
    let clients = usize::try_from(arguments.next().unwrap_or(64)).unwrap();
    let projects = usize::try_from(arguments.next().unwrap_or(10_000)).unwrap();
    let edge = Edge::start(projects);
    let docs = edge.root.path().join("docs");
    fs::create_dir(&docs).unwrap();
    git(&docs, &["init", "--quiet", "--initial-branch=main"]);
    pushes(&edge);
    quiet(&edge, seconds);
    let share = u32::try_from(clients).unwrap();
    let paced = Duration::from_secs(1) * share / TRIGGERS_A_SECOND;
    triggers(&edge, Some(paced), seconds, clients, projects);
    triggers(&edge, None, seconds, clients, projects);
}

//! How many durable triggers are possible in a second, and how much do they delay requests?
//!
//! ```text
//! cargo bench --bench triggers -- ROUNDS CLIENTS PROJECTS    # default: 10 64 10000
//! ```
//!
//! The release binary serves the projects. Each client has a persistent connection and triggers its
//! own projects: first all clients together 2,000 times a second, then as fast as responses come.
//! Every 202 is durable. Meanwhile one reader requests a discovery document 500 times a second, at
//! fixed times, so that a late response delays no request. Rounds with and without triggers
//! alternate, and a ratio is computed for each pair.
//!
//! `WAYPOST_QUEUE` names another queue, as the value of the key `queue`. Run `waypost queue init`
//! first. For example:
//! `{ postgres: { url: "postgres://waypost@/bench?host=/run/postgresql", tls: false } }`
//!
//! The repository of the sites is one that this gateway does not fetch, so an update ends without a
//! build: the queue and the API are measured, with a worker that claims and ends updates in the same
//! queue.
//!
//! Then a site of 100 pages is pushed, triggered and requested several times: the time from
//! the push until the new bytes are served on a custom domain.

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
/// The rate of triggers that must be possible. A late response does not delay later triggers.
const TRIGGERS_A_SECOND: u32 = 2000;
const READS_A_SECOND: u32 = 500;
/// How long each round lasts, with triggers and without.
const TURN: Duration = Duration::from_secs(2);
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
        let queue = std::env::var("WAYPOST_QUEUE")
            .unwrap_or_else(|_| format!("{{ sqlite: {{ path: {at}/updates.sqlite }} }}"));
        let conf = format!(
            "listen: {{ http: [\"127.0.0.1:0\"], operator: false }}\n\
             store: {{ local: {{ path: {at}/store }} }}\n\
             queue: {queue}\n\
             git: {{ mirrors: {at}/mirrors, local: [{at}] }}\n\
             sites: {at}/sites\naccess_log: off\nlog: {{ format: json, filter: \"info,audit=off,deploy=warn\" }}\n\
             admin: {{ triggers_max: 1000000, triggers_seconds: 1 }}\n"
        );
        fs::write(root.path().join("waypost.yaml"), conf).unwrap();
        fs::create_dir(root.path().join("sites")).unwrap();
        let record = |n| {
            format!(
                "---\nproject: p{n}\nowner: acme\nsubdomain: p{n}\n\
                 repository: {{ url: /etc, branch: main }}\n"
            )
        };
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
        // Keep reading, or the pipe of the log fills.
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

/// A persistent connection.
struct Client(BufReader<TcpStream>);

impl Client {
    fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends a head and returns the status and the body of the response.
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

    fn print(&mut self, what: &str) {
        let (p50, p99) = (self.at(50), self.at(99));
        println!("{what}: p50 {p50:.1?}, p99 {p99:.1?} over {}", self.0.len());
    }
}

/// Requests the manifest at fixed times until `stop` is set.
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

/// Triggers at fixed times, or as fast as responses come; returns ids and latencies.
fn trigger(
    edge: &Edge,
    projects: std::ops::Range<usize>,
    every: Option<Duration>,
    (began, until): (Instant, Instant),
) -> (Vec<String>, Vec<Duration>) {
    let mut client = Client::open(edge.address);
    let (mut ids, mut latencies) = (Vec::new(), Vec::new());
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

/// Sets a flag when it is dropped, also by a panic.
struct Stop<'f>(&'f AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Measures the reader while `act` runs.
fn beside<T>(edge: &Edge, act: impl FnOnce() -> T) -> (Latencies, T) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(edge.address, &stop));
        let ends = Stop(&stop);
        let done = act();
        drop(ends);
        (reader.join().unwrap(), done)
    })
}

/// The responses to clients that triggered at the same time.
#[derive(Default)]
struct Answered {
    ids: Vec<String>,
    latencies: Vec<Duration>,
    took: Duration,
}

/// Triggers by many clients, at fixed times or as fast as responses come.
fn triggers(edge: &Edge, load: &Load, every: Option<Duration>, time: Duration) -> Answered {
    let began = Instant::now();
    let share = load.projects / load.clients;
    let answers: Vec<_> = std::thread::scope(|scope| {
        let own = |nth: usize| nth * share..(nth + 1) * share;
        let triggering: Vec<_> = (0..load.clients)
            .map(|nth| {
                scope.spawn(move || {
                    // Real clients run on other machines, so they must not slow readers down.
                    rustix::process::setpriority_process(None, 19).unwrap();
                    // Clients start at different moments, as independent ones do.
                    let nth_part = u32::try_from(nth).unwrap() * every.unwrap_or_default();
                    let own_began = began + nth_part / u32::try_from(load.clients).unwrap();
                    trigger(edge, own(nth), every, (own_began, began + time))
                })
            })
            .collect();
        let joined = triggering.into_iter().map(|thread| thread.join().unwrap());
        joined.collect()
    });
    let mut answered = Answered {
        took: began.elapsed(),
        ..Answered::default()
    };
    for (ids, latencies) in answers {
        answered.ids.extend(ids);
        answered.latencies.extend(latencies);
    }
    answered
}

impl Answered {
    fn add(&mut self, other: Self) {
        self.ids.extend(other.ids);
        self.latencies.extend(other.latencies);
        self.took += other.took;
    }

    fn print(self) {
        let (total, took) = (self.ids.len(), self.took.as_secs_f64());
        let new = self.ids.into_iter().collect::<HashSet<_>>().len();
        println!(
            "triggers: {total} in {took:.1} s, {:.0}/s",
            total as f64 / took
        );
        println!(
            "  new updates: {:.0}/s, coalesced: {:.0}/s",
            new as f64 / took,
            (total - new) as f64 / took
        );
        Latencies(self.latencies).print("  answered");
    }
}

/// Measures a reader without and with paced triggers, in alternation, because the speed of
/// the machine changes from minute to minute.
fn alternate(edge: &Edge, load: &Load, rounds: u32) {
    let every = Duration::from_secs(1) * u32::try_from(load.clients).unwrap() / TRIGGERS_A_SECOND;
    let (mut alone, mut besides) = (Vec::new(), Vec::new());
    let (mut answered, mut ratios) = (Answered::default(), Vec::new());
    for _ in 0..rounds {
        let (mut quiet, ()) = beside(edge, || std::thread::sleep(TURN));
        let (mut loud, triggered) = beside(edge, || triggers(edge, load, Some(every), TURN));
        answered.add(triggered);
        ratios.push(loud.at(99).as_secs_f64() / quiet.at(99).as_secs_f64());
        alone.extend(quiet.0);
        besides.extend(loud.0);
    }
    Latencies(alone).print("discovery without triggers");
    answered.print();
    Latencies(besides).print("  discovery meanwhile");
    ratios.sort_by(f64::total_cmp);
    println!(
        "  its p99 is {:.2} times the one without (median of {rounds}; {:.2} to {:.2})",
        ratios[ratios.len() / 2],
        ratios[0],
        ratios[ratios.len() - 1]
    );
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

/// Pushes and waits until the push is served; returns the times, whole and without the fetch.
fn pushes(edge: &Edge, times: usize) -> (Latencies, Latencies) {
    let docs = edge.root.path().join("docs");
    let mut client = Client::open(edge.address);
    let (mut served, mut own) = (Vec::new(), Vec::new());
    for nth in 0..times {
        let skill = format!("---\nname: acme\ndescription: Number {nth} of {times}.\n---\n");
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
    (Latencies(served), Latencies(own))
}

/// Which client triggers which projects.
struct Load {
    clients: usize,
    projects: usize,
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok());
    let rounds = arguments.next().unwrap_or(10);
    let load = Load {
        clients: arguments.next().unwrap_or(64) as usize,
        projects: arguments.next().unwrap_or(10_000) as usize,
    };
    let edge = Edge::start(load.projects);
    let docs = edge.root.path().join("docs");
    fs::create_dir(&docs).unwrap();
    git(&docs, &["init", "--quiet", "--initial-branch=main"]);
    // Wait for the first release before measuring.
    pushes(&edge, 1);
    let (mut during, (mut served, mut own)) = beside(&edge, || pushes(&edge, PUSHES));
    served.print("push to served");
    own.print("  of it without the fetch");
    during.print("  discovery meanwhile");
    alternate(&edge, &load, rounds);
    let time = TURN * rounds.min(4);
    let (mut during, answered) = beside(&edge, || triggers(&edge, &load, None, time));
    answered.print();
    during.print("  discovery meanwhile");
}

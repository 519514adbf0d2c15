//! Measures the real program with many sites: the time of a start, the time until a new release is
//! served, and how much promotions delay requests.
//!
//! ```text
//! cargo bench --bench platform -- SITES SECONDS RUNS     # default: 100,000 sites, 60 s, 5 runs
//! ```
//!
//! The store is filled through the library, in a file system in memory if there is one; then
//! the program is started. The load is open-loop: every request has a fixed time, and its
//! latency counts from then even if an earlier response is late. So a stall counts for every
//! request that waits.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]
#![expect(clippy::print_stdout, reason = "its figures are its purpose")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use waypost::build::{Input, Options, build};
use waypost::clock::Clock;
use waypost::release::Release;
use waypost::site::ProjectId;
use waypost::source::{Tree, TreePath};
use waypost::store::{Fence, Local, Retention, Store, local};

/// Connections of the load.
const CONNECTIONS: usize = 16;
/// Promotions a second while requests are measured.
const PROMOTIONS_PER_SECOND: u32 = 100;
const REPUBLISHED: usize = 50;

fn release(number: usize, text: &str) -> Release {
    let skill =
        format!("---\nname: site-{number}\ndescription: Use site {number}.\n---\n\n# {text}\n");
    let tree = Tree::from_files([(TreePath::parse("skill.md").unwrap(), skill.into())], []);
    let options = Options::default();
    build(&Input::read(tree, &options), &options).release
}

fn project(number: usize) -> ProjectId {
    ProjectId::parse(&format!("site-{number}")).unwrap()
}

fn open(root: &Path) -> Store {
    let retention = Retention {
        releases: 1,
        unnamed_seconds: 86_400,
    };
    let config = local::Config {
        path: root.join("store"),
        retention,
        free_bytes_min: 0,
        owner_bytes_max: 0,
        audit_bytes_max: 0,
    };
    Store::Local(Local::open(&config, Clock::System).unwrap())
}

fn fill(root: &Path, sites: usize) {
    let store = open(root);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let store = &store;
            scope.spawn(move || {
                for number in (thread..sites).step_by(threads) {
                    let id = store.put(&release(number, "first")).unwrap();
                    store
                        .promote(
                            &project(number),
                            id,
                            Fence {
                                generation: 1,
                                epoch: 0,
                            },
                        )
                        .unwrap();
                }
            });
        }
    });
    let mut records = String::new();
    for number in 0..sites {
        writeln!(records, "---\nproject: site-{number}\nsubdomain: site-{number}\ndomains: [docs.customer-{number}.example]").unwrap();
    }
    fs::create_dir(root.join("sites")).unwrap();
    fs::write(root.join("sites/all.yaml"), records).unwrap();
}

/// Starts the program; returns it with its address and the time that the start took.
fn start(root: &Path) -> (Child, SocketAddr, Duration) {
    let at = root.display();
    let conf = format!(
        "listen: {{ http: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\" }}\nstore: {{ local: {{ path: {at}/store }} }}\n\
         queue: {{ sqlite: {{ path: {at}/updates.sqlite }} }}\nsites: {at}/sites\naccess_log: off\n\
         log: {{ format: json }}\nserver: {{ threads: 1 }}\n"
    );
    fs::write(root.join("waypost.yaml"), conf).unwrap();
    let since = Instant::now();
    let mut process = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["serve", "--conf"])
        .arg(root.join("waypost.yaml"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let address = lines.by_ref().find_map(|line| {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).ok()?;
        (line["scheme"] == "http").then(|| line["address"].as_str().unwrap().parse().unwrap())
    });
    // Read its later output too, or it would block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    (
        process,
        address.expect("the program listens"),
        since.elapsed(),
    )
}

/// A connection that asks for one site's skill.
struct Client {
    stream: TcpStream,
    request: String,
    buffer: Vec<u8>,
}

impl Client {
    fn new(address: SocketAddr, number: usize) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let request =
            format!("GET /skill.md HTTP/1.1\r\nHost: docs.customer-{number}.example\r\n\r\n");
        Self {
            stream,
            request,
            buffer: vec![0; 16 << 10],
        }
    }

    /// Sends a request and returns the whole response.
    fn ask(&mut self) -> &str {
        self.stream.write_all(self.request.as_bytes()).unwrap();
        let mut length = 0;
        loop {
            length += self.stream.read(&mut self.buffer[length..]).unwrap();
            let text = str::from_utf8(&self.buffer[..length]).unwrap();
            let Some(end) = text.find("\r\n\r\n") else {
                continue;
            };
            let body: usize = text
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .unwrap()
                .parse()
                .unwrap();
            if length == end + 4 + body {
                assert!(text.starts_with("HTTP/1.1 200"), "{text}");
                return str::from_utf8(&self.buffer[..length]).unwrap();
            }
        }
    }
}

/// Returns the most requests a second, closed loop.
fn capacity(address: SocketAddr, sites: usize) -> f64 {
    let stop = AtomicBool::new(false);
    let since = Instant::now();
    let done: u64 = std::thread::scope(|scope| {
        let stop = &stop;
        let load = |connection: usize| {
            scope.spawn(move || {
                let mut client = Client::new(address, connection * 7919 % sites);
                let mut done = 0;
                while !stop.load(Ordering::Relaxed) {
                    client.ask();
                    done += 1;
                }
                done
            })
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(load).collect();
        std::thread::sleep(Duration::from_secs(3));
        stop.store(true, Ordering::Relaxed);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let done = done as f64;
    done / since.elapsed().as_secs_f64()
}

/// Returns the p99 of an open loop at `rate` requests a second.
fn p99(address: SocketAddr, sites: usize, rate: f64, length: Duration) -> Duration {
    let interval = Duration::from_secs_f64(f64::from(u32::try_from(CONNECTIONS).unwrap()) / rate);
    let start = Instant::now() + Duration::from_millis(100);
    let mut latencies: Vec<Duration> = std::thread::scope(|scope| {
        let load = |connection: usize| {
            scope.spawn(move || {
                let mut client = Client::new(address, connection * 7919 % sites);
                let mut latencies = Vec::new();
                let mut due = start
                    + interval.mul_f64(
                        f64::from(u32::try_from(connection).unwrap())
                            / f64::from(u32::try_from(CONNECTIONS).unwrap()),
                    );
                while due < start + length {
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    client.ask();
                    latencies.push(due.elapsed());
                    due += interval;
                }
                latencies
            })
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(load).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    latencies.sort();
    latencies[latencies.len() * 99 / 100]
}

fn median(mut figures: Vec<Duration>) -> Duration {
    figures.sort();
    figures[figures.len() / 2]
}

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let (sites, seconds, runs) = match numbers[..] {
        [sites, seconds, runs] => (sites, seconds as u64, runs),
        _ => (100_000, 60, 5),
    };
    let base = if Path::new("/dev/shm").is_dir() {
        Path::new("/dev/shm").to_owned()
    } else {
        std::env::temp_dir()
    };
    let root = tempfile::TempDir::new_in(base).unwrap();
    let since = Instant::now();
    fill(root.path(), sites);
    println!("{sites} sites put and promoted in {:.1?}", since.elapsed());
    let (mut process, address, took) = start(root.path());
    println!("started and serving after {took:.2?}");

    let store = open(root.path());
    let generation = std::sync::atomic::AtomicU64::new(2);
    let promote = |number: usize, release: &Release| {
        let id = store.put(release).unwrap();
        let fence = Fence {
            generation: generation.fetch_add(1, Ordering::Relaxed),
            epoch: 0,
        };
        store.promote(&project(number), id, fence).unwrap();
    };
    let mut seen = Vec::new();
    for round in 0..REPUBLISHED {
        let number = round * (sites / REPUBLISHED).max(1) % sites;
        let text = format!("round {round}");
        let release = release(number, &text);
        let mut client = Client::new(address, number);
        let since = Instant::now();
        promote(number, &release);
        while !client.ask().contains(&text) {}
        seen.push(since.elapsed());
    }
    seen.sort();
    println!(
        "republished, from put to served: median {:.1?}, slowest of {REPUBLISHED} {:.1?}",
        seen[REPUBLISHED / 2],
        seen[REPUBLISHED - 1]
    );

    let rate = capacity(address, sites) / 2.0;
    println!("half of capacity: {rate:.0} requests/s");
    let (mut idle, mut busy) = (Vec::new(), Vec::new());
    for run in 0..runs {
        idle.push(p99(address, sites, rate, Duration::from_secs(seconds)));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (stop, promote) = (&stop, &promote);
            scope.spawn(move || {
                let mut due = Instant::now();
                for number in 0_usize.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    promote(
                        number * 31 % sites,
                        &release(number * 31 % sites, &format!("run {run}, {number}")),
                    );
                    due += Duration::from_secs(1) / PROMOTIONS_PER_SECOND;
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                }
            });
            busy.push(p99(address, sites, rate, Duration::from_secs(seconds)));
            stop.store(true, Ordering::Relaxed);
        });
    }
    let (idle, busy) = (median(idle), median(busy));
    println!(
        "p99 at that rate: {idle:.0?} idle, {busy:.0?} with {PROMOTIONS_PER_SECOND} promotions a second: {:.2} times",
        busy.as_secs_f64() / idle.as_secs_f64()
    );
    process.kill().unwrap();
    process.wait().unwrap();
}

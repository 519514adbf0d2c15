//! A gateway for one test: the real binary, in a directory of its own.
//!
//! ```no_run
//! let edge = Setup::new().site("acme", "domains: [docs.acme.test]").start();
//! edge.publish("acme", &[("skill.md", SKILL)]);
//! let card = edge.get("docs.acme.test", "/.well-known/agent-card.json");
//! ```
//!
//! Nothing here sleeps. The test waits for an event: a line of the process log, or a document
//! that shows the change.

use std::collections::BTreeMap;
use std::fs;
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::http::{self, Response, TIMEOUT};

/// The key of the section `upstream` that lets sites have servers on this machine.
pub const LOCAL_UPSTREAMS: &str = "private_hosts: [\"127.0.0.0/8\", \"::1\"]";

/// The configuration and the files of a gateway before it starts.
#[derive(Debug)]
pub struct Setup {
    directory: TempDir,
    /// Lines of the configuration, by top-level key.
    conf: BTreeMap<String, String>,
    wrapper: Vec<String>,
    /// How long a test waits for a line of its log.
    timeout: Duration,
    /// A socket that the gateway gets, as from systemd.
    socket: Option<TcpListener>,
    binary: PathBuf,
}

/// A running gateway.
#[derive(Debug)]
pub struct Edge {
    pub setup: Setup,
    process: Child,
    lines: Arc<Lines>,
    /// The address of the HTTP listener.
    pub http: SocketAddr,
    /// The address of the HTTPS listener, if there is one.
    pub https: Option<SocketAddr>,
    /// The address of the operator's listener.
    pub operator: SocketAddr,
}

/// The release that a command has promoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub release: String,
    pub generation: u64,
}

/// The lines of the process log so far.
#[derive(Debug, Default)]
struct Lines {
    seen: Mutex<(Vec<serde_json::Value>, bool)>,
    more: Condvar,
}

impl Setup {
    pub fn new() -> Self {
        let setup = Self {
            directory: directory(),
            conf: BTreeMap::new(),
            wrapper: Vec::new(),
            timeout: TIMEOUT,
            socket: None,
            binary: env!("CARGO_BIN_EXE_waypost").into(),
        };
        fs::create_dir(setup.path("sites")).unwrap();
        let root = setup.directory.path().display().to_string();
        setup
            .conf(
                "listen",
                "{ http: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\" }",
            )
            .conf("store", &format!("{{ local: {{ path: {root}/store }} }}"))
            .conf(
                "queue",
                &format!("{{ sqlite: {{ path: {root}/updates.sqlite }} }}"),
            )
            .conf("sites", &format!("{root}/sites"))
            .conf("access_log", &format!("{{ file: {root}/access.log }}"))
            .conf(
                "log",
                "{ format: json, filter: \"debug,notify=info,h2=info,rustls=info\" }",
            )
            .conf("server", "{ threads: 2 }")
            .conf("upstream", &format!("{{ {LOCAL_UPSTREAMS} }}"))
            .conf("worker", "{}")
            .conf("connections", "{}")
    }

    /// Sets one top-level key of the configuration.
    pub fn conf(mut self, key: &str, value: &str) -> Self {
        let mut value = value.to_owned();
        if key == "worker" && !value.contains("directory:") {
            // No test leaves files in the directory of the sources.
            let builds = self.path("builds").display().to_string();
            value = value.replacen('{', &format!("{{ directory: {builds}, "), 1);
        }
        if key == "connections" && !value.contains("drain_idle_seconds") {
            // A test that keeps a connection does not wait for it at its end.
            let keys = value.trim().trim_end_matches('}').trim_end();
            let comma = if keys.ends_with(['{', ',']) { "" } else { "," };
            value = format!("{keys}{comma} drain_idle_seconds: 0 }}");
        }
        self.conf.insert(key.to_owned(), value);
        self
    }

    /// Returns the setup of a second gateway with the store and the site records of this one.
    pub fn beside(&self) -> Self {
        let mut second = Self::new();
        second.conf.clone_from(&self.conf);
        let log = second.path("access.log").display().to_string();
        second.conf("access_log", &format!("{{ file: {log} }}"))
    }

    /// Adds a site whose subdomain is its project, with more lines of its record.
    pub fn site(self, project: &str, record: &str) -> Self {
        self.write_site(project, record);
        self
    }

    /// Lets a test wait longer for each line of the log, for example while a million sites are
    /// loaded.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Starts the gateway under another program, such as `strace`.
    pub fn wrapped_by(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(ToString::to_string).collect();
        self
    }

    /// Passes a listening socket to the gateway, as systemd does (`sd_listen_fds(3)`).
    pub fn inheriting(mut self, socket: TcpListener) -> Self {
        self.socket = Some(socket);
        let script = "exec 3<&0 </dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$@\"";
        self.wrapped_by(&["sh", "-c", script, "sh"])
    }

    /// Starts another build of the program.
    pub fn binary(mut self, binary: impl Into<PathBuf>) -> Self {
        self.binary = binary.into();
        self
    }

    /// Writes the record of a site whose subdomain is its project.
    pub fn write_site(&self, project: &str, record: &str) {
        let record = format!("project: {project}\nsubdomain: {project}\n{record}\n");
        self.write_records(project, &record);
    }

    /// Writes a file of site records, by renaming a temporary file.
    pub fn write_records(&self, file: &str, text: &str) {
        let name = self.path("sites").join(format!("{file}.yaml"));
        let partial = name.with_extension("partial");
        fs::write(&partial, text).unwrap();
        fs::rename(partial, name).unwrap();
    }

    pub fn remove_site(&self, project: &str) {
        fs::remove_file(self.path("sites").join(format!("{project}.yaml"))).unwrap();
    }

    /// Returns a path in the directory of this gateway.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes documentation into a new directory and returns its path.
    pub fn documentation(&self, files: &[(&str, &str)]) -> PathBuf {
        let root = tempfile::Builder::new()
            .prefix("docs-")
            .tempdir_in(self.directory.path())
            .unwrap()
            .keep();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// Runs a subcommand with this configuration.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.write_conf();
        Command::new(&self.binary)
            .args(arguments)
            .arg("--conf")
            .arg(self.path("waypost.yaml"))
            .output()
            .unwrap()
    }

    /// Runs a subcommand with this configuration and another value of one key.
    pub fn run_with(&self, key: &str, value: &str, arguments: &[&str]) -> Output {
        let mut conf = self.conf.clone();
        conf.insert(key.to_owned(), value.to_owned());
        let lines = conf.iter().map(|(key, value)| format!("{key}: {value}\n"));
        let path = self.path("other.yaml");
        fs::write(&path, lines.collect::<String>()).unwrap();
        let mut command = Command::new(&self.binary);
        command.args(arguments).arg("--conf").arg(path);
        command.output().unwrap()
    }

    /// The directory for temporary files of the gateway.
    pub fn temporary(&self) -> PathBuf {
        let directory = self.path("temporary");
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// Publishes files as a project, and returns the release.
    #[track_caller]
    pub fn publish(&self, project: &str, files: &[(&str, &str)]) -> Published {
        let docs = self.documentation(files);
        self.publish_directory(project, &docs)
    }

    #[track_caller]
    pub fn publish_directory(&self, project: &str, docs: &Path) -> Published {
        let docs = docs.to_str().unwrap();
        let output = self.run(&["publish", docs, "--root", docs, "--project", project]);
        assert!(output.status.success(), "{output:?}");
        Published::read(str::from_utf8(&output.stdout).unwrap())
    }

    /// Promotes a stored release again.
    #[track_caller]
    pub fn promote(&self, project: &str, release: &str) -> Published {
        let output = self.run(&["promote", project, release]);
        assert!(output.status.success(), "{output:?}");
        Published::read(str::from_utf8(&output.stdout).unwrap())
    }

    /// Writes the configuration; [`Setup::run`] and [`Setup::start`] do this too.
    pub fn write_conf(&self) {
        let text: String = self
            .conf
            .iter()
            .map(|(key, value)| format!("{key}: {value}\n"))
            .collect();
        fs::write(self.path("waypost.yaml"), text).unwrap();
    }

    /// Starts the gateway and waits until it is ready and all its listeners take connections.
    #[track_caller]
    pub fn start(self) -> Edge {
        let (process, lines) = self.spawn();
        let mut edge = Edge {
            setup: self,
            process,
            lines,
            http: ([0, 0, 0, 0], 0).into(),
            https: None,
            operator: ([0, 0, 0, 0], 0).into(),
        };
        let is_http = |line: &serde_json::Value| line["scheme"] == "http";
        edge.http = edge.wait_for_log(is_http)["address"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        edge.operator = edge.wait_for_log(|line| line["operator"].is_string())["operator"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        if edge.setup.conf["listen"].contains("https: [\"") {
            let is_https = |line: &serde_json::Value| line["scheme"] == "https";
            edge.https = Some(
                edge.wait_for_log(is_https)["address"]
                    .as_str()
                    .unwrap()
                    .parse()
                    .unwrap(),
            );
        }
        let is_source = edge.setup.conf.get("edges");
        if is_source.is_some_and(|edges| edges.contains("listen:")) {
            edge.wait_for_log(|line| line["edges"].is_string());
        }
        edge.wait_for_log(|line| line["ready"] == true);
        edge
    }

    /// Starts the gateway, which must fail; returns its exit status and standard error.
    pub fn start_expecting_failure(&self) -> (ExitStatus, String) {
        let output = self.run(&["serve"]);
        (output.status, String::from_utf8(output.stderr).unwrap())
    }

    fn spawn(&self) -> (Child, Arc<Lines>) {
        self.write_conf();
        let program: Vec<_> = self
            .wrapper
            .iter()
            .cloned()
            .chain([self.binary.display().to_string()])
            .collect();
        let mut command = Command::new(&program[0]);
        if !self.wrapper.is_empty() {
            // The program must end with its wrapper.
            command.process_group(0);
        }
        if let Some(socket) = &self.socket {
            command.stdin(OwnedFd::from(socket.try_clone().unwrap()));
        }
        let mut process = command
            .args(&program[1..])
            .args(["serve", "--conf"])
            .arg(self.path("waypost.yaml"))
            // Its own directory, so that a test sees which temporary files it leaves.
            .env("TMPDIR", self.temporary())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("start {}: {error}", program[0]));
        let lines = Arc::new(Lines::default());
        let stderr = BufReader::new(process.stderr.take().unwrap());
        std::thread::spawn({
            let lines = Arc::clone(&lines);
            move || lines.gather(stderr)
        });
        (process, lines)
    }
}

impl Edge {
    #[track_caller]
    pub fn get(&self, host: &str, path: &str) -> Response {
        self.request("GET", host, path, &[])
    }

    /// Sends a request over plain HTTP and checks the rules for every response.
    #[track_caller]
    pub fn request(
        &self,
        method: &str,
        host: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Response {
        let response = http::request(self.http, method, host, path, fields);
        response.check(method);
        response
    }

    /// Publishes files, and waits until the gateway serves them.
    #[track_caller]
    pub fn publish(&self, project: &str, files: &[(&str, &str)]) -> Published {
        let published = self.setup.publish(project, files);
        self.wait_until_served(project, published.generation);
        published
    }

    /// Promotes a stored release again, and waits until it is served.
    #[track_caller]
    pub fn promote(&self, project: &str, release: &str) -> Published {
        let published = self.setup.promote(project, release);
        self.wait_until_served(project, published.generation);
        published
    }

    /// Waits until the gateway serves this generation of a project, or has loaded that the project
    /// is private.
    #[track_caller]
    pub fn wait_until_served(&self, project: &str, generation: u64) {
        self.wait_for_log(|line| {
            serves(line, project)
                && (line["generation"] == generation || line["generation"].is_null())
        });
    }

    /// Writes the record of a site whose subdomain is its project, and waits until the gateway
    /// has loaded it.
    #[track_caller]
    pub fn write_site(&self, project: &str, record: &str) {
        self.change_sites(|| self.setup.write_site(project, record));
    }

    #[track_caller]
    pub fn remove_site(&self, project: &str) {
        self.change_sites(|| self.setup.remove_site(project));
    }

    /// Makes changes of site records, and waits until the gateway has loaded them.
    #[track_caller]
    pub fn change_sites(&self, change: impl FnOnce()) {
        let is_loaded = |line: &serde_json::Value| line["message"] == "site records loaded";
        let already = self.count_log(is_loaded);
        change();
        self.wait_for_nth_log(already + 1, is_loaded);
    }

    /// Waits for a line of the process log.
    #[track_caller]
    pub fn wait_for_log(&self, matches: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        self.wait_for_nth_log(1, matches)
    }

    #[track_caller]
    pub fn wait_for_nth_log(
        &self,
        nth: usize,
        matches: impl Fn(&serde_json::Value) -> bool,
    ) -> serde_json::Value {
        let deadline = Instant::now() + self.setup.timeout;
        let mut seen = self.lines.seen.lock().unwrap();
        loop {
            if let Some(line) = seen.0.iter().filter(|line| matches(line)).nth(nth - 1) {
                return line.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if seen.1 || left.is_zero() {
                drop(seen);
                panic!("the log has no such line:\n{}", self.log());
            }
            seen = self.lines.more.wait_timeout(seen, left).unwrap().0;
        }
    }

    /// Returns all lines of the process log.
    pub fn log(&self) -> String {
        let seen = self.lines.seen.lock().unwrap();
        let lines: Vec<String> = seen.0.iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    pub fn count_log(&self, matches: impl Fn(&serde_json::Value) -> bool) -> usize {
        self.lines
            .seen
            .lock()
            .unwrap()
            .0
            .iter()
            .filter(|line| matches(line))
            .count()
    }

    /// Returns the value of one line of the metrics.
    #[track_caller]
    pub fn metric(&self, name: &str) -> f64 {
        let text = http::request(self.operator, "GET", "localhost", "/metrics", &[]);
        let line = text
            .text()
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .map(str::to_owned);
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Returns the `Authorization` of requests that change the state of the gateway.
    pub fn operator_token(&self) -> String {
        let token = fs::read_to_string(self.setup.path("store/operator-token")).unwrap();
        format!("Bearer {}", token.trim())
    }

    /// Waits until a counter has reached a value: the end of a connection is counted a moment
    /// after its client has seen it.
    #[track_caller]
    pub fn wait_for_metric(&self, name: &str, least: f64) {
        let deadline = Instant::now() + TIMEOUT;
        while self.metric(name) < least {
            assert!(Instant::now() < deadline, "{name}: {}", self.metric(name));
            crate::http::pause();
        }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Waits until the process has ended, and returns its setup, which can be started again.
    pub fn ended(mut self) -> Setup {
        self.process.wait().unwrap();
        std::mem::replace(&mut self.setup, Setup::new())
    }

    /// Waits until the process has ended.
    pub fn wait(mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }

    /// Asks the process to stop, waits, and returns the access log's lines.
    #[track_caller]
    pub fn stop(self) -> Vec<serde_json::Value> {
        self.signal("TERM");
        self.stopped()
    }

    /// Waits for a process that was asked to stop, and returns the access log's lines.
    #[track_caller]
    pub fn stopped(mut self) -> Vec<serde_json::Value> {
        let path = self.setup.path("access.log");
        assert!(self.process.wait().unwrap().success());
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let is_alive = matches!(self.process.try_wait(), Ok(None));
        if is_alive && !self.setup.wrapper.is_empty() {
            // A killed `strace` detaches from the gateway, which would then run for ever.
            let group = format!("-{}", self.id());
            let _ended = Command::new("kill").args(["-KILL", "--", &group]).status();
        }
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Creates a directory, in memory if possible: every test creates a store, and on a disk its
/// thousand directories and flushes take a second.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => TempDir::new_in(memory),
        false => TempDir::new(),
    }
    .unwrap()
}

impl Published {
    /// Reads `promoted {release} of {project} as {generation}.{epoch}`.
    #[track_caller]
    fn read(output: &str) -> Self {
        let words: Vec<&str> = output.lines().last().unwrap().split(' ').collect();
        let ["promoted", release, "of", _, "as", fence] = words[..] else {
            panic!("{output}")
        };
        Self {
            release: release.to_owned(),
            generation: fence.split_once('.').unwrap().0.parse().unwrap(),
        }
    }
}

impl Lines {
    fn gather(&self, from: impl std::io::BufRead) {
        for line in from.lines().map_while(Result::ok) {
            let line = serde_json::from_str(&line)
                .unwrap_or_else(|_not_ours| serde_json::json!({ "message": line }));
            self.seen.lock().unwrap().0.push(line);
            self.more.notify_all();
        }
        self.seen.lock().unwrap().1 = true;
        self.more.notify_all();
    }
}

fn serves(line: &serde_json::Value, project: &str) -> bool {
    line["project"] == project
        && line["message"]
            .as_str()
            .is_some_and(|message| message.starts_with("serving"))
}

//! The processes of an update.
//!
//! The content of customers is fetched and parsed in child processes. They are the same binary.
//! Each reads its order from standard input, enters its walls
//! ([`isolation`](crate::isolation)), and reports on standard output:
//!
//! | process | network | reads | writes |
//! |---|---|---|---|
//! | fetch | the repository's host | its mirror | its mirror |
//! | build | none | its mirror, its workspace | the files of its workspace |
//! | specifications | the ports of the URLs | certificates | one file of the workspace |
//! | command | only if configured | its input, configured files | its own directory |
//!
//! Each has an empty environment, limits of memory, file size, open files and processes, and, if
//! configured, another user. A repository that exhausts memory, recurses without end or crashes a
//! parser ends its own build only; the gateway in the parent continues.
//!
//! A child leads a process group, to which git and ssh belong; its walls keep them from leaving
//! it. Its standard input is also its **parent-death pipe**: it stays open as long as the parent
//! lives. When it closes, for any reason, the child kills its group. So even a parent that is
//! killed with `kill -9` leaves no process behind.

use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::job::{Answer, Event, Order, Stopped};
use super::{fetch, generate, prepare, specifications};
use crate::isolation::{InForce, Mode, User, UserError, Walls};
use crate::telemetry::logging;

/// The subcommand that starts a child.
pub const SUBCOMMAND: &str = "build-child";
/// How many bytes of events a child may write.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// How much rather than others a child is ended when memory is short, from 0 to 1000
/// (`proc_pid_oom_score_adj(5)`).
const OOM_SCORE: &str = "500";
/// Where programs are looked for if the service has no search path.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The variables of the service that a process with network gets.
const NETWORK_VARIABLES: [&str; 6] = [
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// The limits of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The address space of the child, and of each program that it starts.
    pub memory_bytes: u64,
    /// The largest file that a fetch may write; in practice a pack file of the mirror.
    pub file_bytes: u64,
    /// How many bytes a build may write: its release and its cache.
    pub output_bytes: u64,
    /// How many files it may have open.
    pub open_files: u64,
    /// How many processes and threads may be added to those that its user has.
    pub processes: u64,
    /// How long the fetch of the branch may take.
    pub fetch: Duration,
    /// The least number of bytes per second that a fetch must bring on average; 0 for any.
    pub fetch_rate_min: u64,
    /// How long a fetch may take before its rate is considered.
    pub fetch_grace: Duration,
    /// How long the whole update may take.
    pub total: Duration,
}

/// How the processes of builds are isolated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// Whether builds run without Landlock and seccomp.
    pub mode: Mode,
    /// The name of the user that they run as; `None`: the user of the service.
    pub user: Option<Box<str>>,
    /// The directory for what the processes of an update write.
    pub directory: PathBuf,
}

/// Starts the processes of builds.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program of the child process: this program.
    pub program: PathBuf,
    /// The limits of a process.
    pub limits: Limits,
    /// Whether processes run without isolation.
    pub mode: Mode,
    /// The user with whose rights they run.
    pub user: Option<User>,
    /// Where the workspaces of updates are.
    pub directory: PathBuf,
    /// How processes log.
    pub log: Option<logging::Config>,
}

/// What the parent writes to the child, as one line.
#[derive(Serialize, Deserialize)]
struct Envelope {
    order: Order,
    walls: Walls,
    mode: Mode,
    limits: Limits,
    /// Whether it runs as another user than its parent.
    is_other_user: bool,
    log: Option<logging::Config>,
}

/// A running child process.
#[derive(Debug)]
pub(super) struct Running {
    process: Child,
    events: BufReader<tokio::io::Take<ChildStdout>>,
    line: Vec<u8>,
    /// The parent-death pipe: open as long as this process lives.
    input: ChildStdin,
}

/// Why no build can run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The user of builds cannot be used.
    #[error("worker.user")]
    User(#[from] UserError),
    /// A process cannot be started, or does not report.
    #[error("start a process for builds")]
    Start(#[source] io::Error),
    /// The process refuses to run.
    #[error("worker.isolation: {0}")]
    Refused(String),
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 4 << 30,
            file_bytes: 4 << 30,
            output_bytes: 2 << 30,
            open_files: 1024,
            processes: 256,
            fetch: Duration::from_secs(300),
            fetch_rate_min: 20_000,
            fetch_grace: Duration::from_secs(20),
            total: Duration::from_secs(600),
        }
    }
}

impl Limits {
    /// Sets the limits for this process and the processes that it starts.
    fn apply(&self, order: &Order) -> io::Result<()> {
        let set = |resource, limit: u64| {
            // An operator may have set a lower limit; then the lower limit stays.
            let before = rustix::process::getrlimit(resource);
            let limit = before.maximum.map_or(limit, |maximum| maximum.min(limit));
            let both = Some(limit);
            rustix::process::setrlimit(
                resource,
                Rlimit {
                    current: both,
                    maximum: both,
                },
            )
        };
        let file_bytes = match order {
            Order::Fetch(job) => self.file_bytes.min(job.bytes_max),
            _ => self.output_bytes,
        };
        set(Resource::As, self.memory_bytes)?;
        set(Resource::Fsize, file_bytes)?;
        set(Resource::Nofile, self.open_files)?;
        // The data of customers must not end up in a core file.
        set(Resource::Core, 0)?;
        // The kernel counts all processes and threads of the user, and exempts root.
        let own = rustix::process::getuid();
        if !own.is_root() {
            let running = tasks_of(own.as_raw());
            set(Resource::Nproc, running.saturating_add(self.processes))?;
        }
        Ok(())
    }
}

/// Counts the processes and threads of a user.
fn tasks_of(user: u32) -> u64 {
    let mut tasks = 0;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let is_process = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_process {
            continue;
        }
        // A process that has ended meanwhile has no file.
        let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let field = |name: &str| {
            let mut lines = status.lines();
            let value = lines.find_map(|line| line.strip_prefix(name))?;
            value.split_whitespace().next()?.parse::<u64>().ok()
        };
        if field("Uid:") == Some(u64::from(user)) {
            tasks += field("Threads:").unwrap_or(1);
        }
    }
    tasks
}

// === impl Isolation ===

impl Default for Isolation {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            user: None,
            directory: "var/builds".into(),
        }
    }
}

// === impl Launcher ===

impl Launcher {
    /// Returns a launcher with the user of the configuration.
    ///
    /// # Errors
    ///
    /// [`LaunchError::User`].
    pub fn new(
        program: PathBuf,
        limits: Limits,
        isolation: &Isolation,
        log: Option<logging::Config>,
    ) -> Result<Self, LaunchError> {
        let user = isolation.user.as_deref().map(User::of_builds).transpose()?;
        Ok(Self {
            program,
            limits,
            mode: isolation.mode,
            user,
            directory: isolation.directory.clone(),
            log,
        })
    }

    /// Starts a process that enters the walls of a build, and returns what is in force.
    ///
    /// # Errors
    ///
    /// [`LaunchError`], in particular when isolation is required and the kernel lacks a feature.
    pub fn probe(&self) -> Result<InForce, LaunchError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LaunchError::Start)?;
        runtime.block_on(async {
            let started = self.start(Order::Probe, Walls::new(), Path::new("/"));
            let mut running = started.await.map_err(LaunchError::Start)?;
            loop {
                match running.event().await.map_err(LaunchError::Start)? {
                    Some(Event::InForce(in_force)) => return Ok(in_force),
                    Some(Event::Stopped(stopped)) => {
                        return Err(LaunchError::Refused(stopped.summary));
                    }
                    Some(_other) => {}
                    None => {
                        let how = io::Error::other(running.ended().await);
                        return Err(LaunchError::Start(how));
                    }
                }
            }
        })
    }

    /// Starts a child and writes its order.
    pub(super) async fn start(
        &self,
        order: Order,
        mut walls: Walls,
        home: &Path,
    ) -> io::Result<Running> {
        let has_network = matches!(order, Order::Fetch(_) | Order::Specifications(_));
        let mut process = std::process::Command::new(&self.program);
        process
            .arg(SUBCOMMAND)
            .env_clear()
            .env(
                "PATH",
                std::env::var_os("PATH").unwrap_or_else(|| PATH.into()),
            )
            .env("LANG", "C.UTF-8")
            .env("HOME", home)
            .env("TMPDIR", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The message of a panic goes to the log of the service.
            .stderr(Stdio::inherit())
            .process_group(0);
        if has_network {
            for name in NETWORK_VARIABLES {
                if let Some(value) = std::env::var_os(name) {
                    if name.starts_with("SSL_CERT") {
                        walls.read.push(PathBuf::from(&value));
                    }
                    process.env(name, value);
                }
            }
        }
        if let Some(user) = self.user
            && rustix::process::geteuid().is_root()
        {
            process.uid(user.id).gid(user.group);
        }
        let mut process = Command::from(process).kill_on_drop(true).spawn()?;
        let missing = || io::Error::other("the child has no pipes");
        let mut input = process.stdin.take().ok_or_else(missing)?;
        let output = process.stdout.take().ok_or_else(missing)?;
        let envelope = Envelope {
            order,
            walls,
            mode: self.mode,
            limits: self.limits.clone(),
            is_other_user: self.user.is_some(),
            log: self.log.clone(),
        };
        let mut line = serde_json::to_vec(&envelope)?;
        line.push(b'\n');
        input.write_all(&line).await?;
        input.flush().await?;
        Ok(Running {
            process,
            events: BufReader::new(output.take(OUTPUT_BYTES_MAX)),
            line: Vec::new(),
            input,
        })
    }
}

// === impl Running ===

impl Running {
    /// Returns the next event; `None` when there are no more events.
    ///
    /// Safe to cancel: the part of a line that was read stays in the buffer.
    pub(super) async fn event(&mut self) -> io::Result<Option<Event>> {
        self.events.read_until(b'\n', &mut self.line).await?;
        if !self.line.ends_with(b"\n") {
            return Ok(None);
        }
        let event = serde_json::from_slice(&self.line)?;
        self.line.clear();
        Ok(Some(event))
    }

    /// Lets a process go on that waits.
    pub(super) async fn answer(&mut self) -> io::Result<()> {
        let mut line = serde_json::to_vec(&Answer)?;
        line.push(b'\n');
        self.input.write_all(&line).await?;
        self.input.flush().await
    }

    /// Waits for the process to end, and returns a sentence that says how it ended.
    pub(super) async fn ended(&mut self) -> String {
        use std::os::unix::process::ExitStatusExt as _;

        match self.process.wait().await {
            Ok(status) => match status.signal() {
                Some(signal) => format!("the build process was killed by signal {signal}"),
                None => format!("the build process ended early with {status}"),
            },
            Err(error) => format!("the build process cannot be waited for: {error}"),
        }
    }

    /// Kills the child and every process that it started, and waits for the child to end.
    pub(super) async fn kill(&mut self) {
        self.kill_group();
        if let Err(error) = self.process.wait().await {
            log::error!(target: "deploy", "wait for a killed build: {error}");
        }
    }

    fn kill_group(&self) {
        // A process without an id has been waited for, and the system may have reused its number.
        let id = self
            .process
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            // The group may have ended already.
            let _ = rustix::process::kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// What a process in its walls uses to talk to its parent.
pub(super) struct Parent<'p> {
    report: &'p mut dyn FnMut(Event),
    answers: mpsc::Receiver<Answer>,
}

// === impl Parent ===

impl Parent<'_> {
    /// Reports an event.
    pub(super) fn report(&mut self, event: Event) {
        (self.report)(event);
    }

    /// Reports an event, and waits until the parent has answered it.
    pub(super) fn ask(&mut self, event: Event) {
        (self.report)(event);
        // Without a parent, this process is ended at once.
        let _answered = self.answers.recv();
    }
}

/// Runs the child: reads its order and carries it out in its walls.
///
/// # Errors
///
/// The order is missing or the limits cannot be set. Nothing has been done then.
pub fn serve() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let envelope: Envelope = serde_json::from_str(&line)?;
    drop(line);
    let Envelope { order, walls, .. } = &envelope;
    if let Err(error) = fs::write("/proc/self/oom_score_adj", OOM_SCORE) {
        log::debug!(target: "deploy", "set the priority of ending when memory is short: {error}");
    }
    // Other processes of the user cannot read its memory, in which secrets may be.
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        log::debug!(target: "deploy", "hide the memory of a build: {error}");
    }
    envelope.limits.apply(order)?;
    let mut output = io::stdout().lock();
    let mut report = |event: Event| {
        let mut line = serde_json::to_vec(&event).expect("strings, numbers and lists of them");
        line.push(b'\n');
        // If the parent has closed this pipe, it has closed the parent-death pipe too.
        let _ = output.write_all(&line).and_then(|()| output.flush());
    };
    // Before any thread is started: the walls restrict this thread and what it starts.
    let mut in_force = match walls.enter(envelope.mode) {
        Ok(in_force) => in_force,
        Err(error) => {
            report(Event::Stopped(Stopped::transient(&error)));
            return Ok(());
        }
    };
    // The log may start a thread, so it starts within the walls.
    if let Some(log) = &envelope.log {
        // Only a logger that is there already is an error.
        let _started = logging::start(log);
    }
    in_force.user = envelope.is_other_user;
    in_force.processes = !rustix::process::getuid().is_root();
    report(Event::InForce(in_force));
    let (answer, answers) = mpsc::channel();
    std::thread::Builder::new()
        .name("parent-death".to_owned())
        .spawn(move || listen(&answer))?;
    let mut parent = Parent {
        report: &mut report,
        answers,
    };
    match order {
        Order::Fetch(job) => fetch::fetch(job, &mut parent),
        Order::Build(job) => prepare::prepare(job, &mut parent),
        Order::Specifications(job) => specifications::fetch(job, &mut parent),
        Order::Command(job) => generate::run(job, &mut parent),
        Order::Probe => {}
    }
    Ok(())
}

/// Passes the answers of the parent on. When standard input closes, which happens when the parent
/// ends, it kills the group.
fn listen(answer: &mpsc::Sender<Answer>) {
    let mut line = String::new();
    loop {
        line.clear();
        match io::stdin().lock().read_line(&mut line) {
            Ok(read) if read > 0 => {
                if let Ok(read) = serde_json::from_str(&line) {
                    // The process may have ended its work.
                    let _received = answer.send(read);
                }
            }
            _ => break,
        }
    }
    if let Err(error) = rustix::process::kill_current_process_group(Signal::KILL) {
        log::error!(target: "deploy", "end with the parent: {error}");
    }
}

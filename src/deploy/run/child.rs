//! A separate process for each build.
//!
//! The content of customers is parsed in a child process. It is the same binary. It reads its
//! order from standard input and reports on standard output, and the system limits its memory,
//! file size and open files. A repository that exhausts memory, recurses without end or crashes a
//! parser ends its own build only; the gateway in the parent continues.
//!
//! The child leads a process group, to which git and ssh belong. Its standard input is also its
//! **parent-death pipe**: it stays open as long as the parent lives. When it closes, for any
//! reason, the child kills its group. So even a parent that is killed with `kill -9` leaves no
//! process behind.

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::job::{Event, Job};
use super::prepare::prepare;

/// The subcommand that starts a child.
pub const SUBCOMMAND: &str = "build-child";
/// How many bytes of events a child may write.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;

/// The limits of a build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The address space of the child, and of each program that it starts.
    pub memory_bytes: u64,
    /// The largest file that it may write; in practice a pack file of the mirror.
    pub file_bytes: u64,
    /// How many files it may have open.
    pub open_files: u64,
    /// How long the fetch of the branch may take.
    pub fetch: Duration,
    /// How long the whole update may take.
    pub total: Duration,
}

/// What the parent writes to the child, as one line.
#[derive(Serialize, Deserialize)]
struct Order {
    job: Job,
    limits: Limits,
}

/// A running child process.
#[derive(Debug)]
pub(super) struct Running {
    process: Child,
    events: BufReader<tokio::io::Take<ChildStdout>>,
    line: Vec<u8>,
    /// The parent-death pipe: open as long as this process lives.
    _input: ChildStdin,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 4 << 30,
            file_bytes: 4 << 30,
            open_files: 1024,
            fetch: Duration::from_secs(300),
            total: Duration::from_secs(600),
        }
    }
}

impl Limits {
    /// Sets the limits for this process and the processes that it starts.
    fn apply(&self) -> io::Result<()> {
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
        set(Resource::As, self.memory_bytes)?;
        set(Resource::Fsize, self.file_bytes)?;
        set(Resource::Nofile, self.open_files)?;
        // The data of customers must not end up in a core file.
        set(Resource::Core, 0)?;
        Ok(())
    }
}

// === impl Running ===

impl Running {
    /// Starts a child and writes its order.
    pub(super) async fn start(program: &PathBuf, job: Job, limits: &Limits) -> io::Result<Self> {
        let mut process = Command::new(program)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The message of a panic goes to the log of the service.
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::other("the child has no pipes");
        let mut input = process.stdin.take().ok_or_else(missing)?;
        let output = process.stdout.take().ok_or_else(missing)?;
        let order = Order {
            job,
            limits: limits.clone(),
        };
        let mut line = serde_json::to_vec(&order)?;
        line.push(b'\n');
        input.write_all(&line).await?;
        input.flush().await?;
        Ok(Self {
            process,
            events: BufReader::new(output.take(OUTPUT_BYTES_MAX)),
            line: Vec::new(),
            _input: input,
        })
    }

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

    /// Returns the process id, until the process has been waited for.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.id()
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

/// Runs the child: reads its order and carries it out under its limits.
///
/// # Errors
///
/// The order is missing or the limits cannot be set. Nothing has been done then.
pub fn serve() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    order.limits.apply()?;
    std::thread::Builder::new()
        .name("parent-death".to_owned())
        .spawn(end_with_parent)?;
    let mut output = io::stdout().lock();
    prepare(&order.job, &mut |event| {
        let mut line = serde_json::to_vec(&event).expect("strings, numbers and lists of them");
        line.push(b'\n');
        // If the parent has closed this pipe, it has closed the parent-death pipe too.
        let _ = output.write_all(&line).and_then(|()| output.flush());
    });
    Ok(())
}

/// Waits until standard input closes, which happens when the parent ends, and kills the group.
fn end_with_parent() {
    let mut rest = [0; 64];
    while io::stdin()
        .lock()
        .read(&mut rest)
        .is_ok_and(|read| read > 0)
    {}
    if let Err(error) = rustix::process::kill_current_process_group(Signal::KILL) {
        log::error!(target: "deploy", "end with the parent: {error}");
    }
}

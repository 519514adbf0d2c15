//! A sandboxed process: the same program, started with an order, that reports events.
//!
//! The starting process ([`Launcher`]) gives an order on standard input. The started process
//! ([`serve`]) limits itself, enters its [`Sandbox`], carries the order out and reports on standard
//! output. Orders and events are values of one line of JSON each.
//!
//! It has an empty environment, limits of memory, file size, open files and processes, and, if
//! configured, another user. Hostile input can end only this process; its parent continues.
//!
//! It leads a process group. The programs that it starts belong to this group, and its sandbox
//! prevents them from leaving it. Its standard input is also its **parent-death pipe**: it stays
//! open as long as the parent lives. When it closes, for any reason, the process kills its group.
//! So even a parent that is killed with `kill -9` leaves no process behind.

mod child;
mod limits;

use std::io::{self, IoSlice};
use std::marker::PhantomData;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use super::{InForce, IsolationError, Mode, Sandbox, User};
use crate::telemetry::logging;

pub use child::{Parent, serve, serve_with_listener};
pub use limits::Limits;

/// How many bytes of events a process may write. One that writes more is to be killed: nobody reads
/// on, so it waits until it can write.
const EVENTS_BYTES_MAX: u64 = 64 << 20;
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

/// The events that a sandboxed process reports.
pub trait Report: Serialize + DeserializeOwned {
    /// The first event: the process is in its sandbox, and these restrictions are in force.
    fn in_force(in_force: InForce) -> Self;

    /// The only event of a process that could not enter its sandbox.
    fn refused(error: &IsolationError) -> Self;

    /// The last event of a process that works on a page for longer than [`Limits::page`]. The sentence
    /// names the page.
    fn late(sentence: String) -> Self;
}

/// Starts sandboxed processes.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program of the process: this program.
    pub program: PathBuf,
    /// Whether processes run without Landlock and seccomp.
    pub mode: Mode,
    /// The user whose rights they have; `None`: the user of this process.
    pub user: Option<User>,
    /// How processes log; `None` if they do not.
    pub log: Option<logging::Config>,
}

/// A process to start.
#[derive(Debug)]
pub struct Start<'a, O> {
    /// The subcommand of the program, which calls [`serve`].
    pub subcommand: &'static str,
    /// The order for the process.
    pub order: &'a O,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// Its home and its directory for temporary files.
    pub home: &'a Path,
    /// How much it may use.
    pub limits: Limits,
    /// Whether it gets the variables that programs with network read.
    pub has_network: bool,
    /// A socket on which it accepts connections. Its subcommand calls [`serve_with_listener`].
    pub listener: Option<&'a TcpListener>,
}

/// The first line that the parent writes to the process.
#[derive(Serialize, Deserialize)]
struct Envelope<O> {
    order: O,
    sandbox: Sandbox,
    mode: Mode,
    limits: Limits,
    /// Whether it runs as another user than its parent.
    is_other_user: bool,
    log: Option<logging::Config>,
}

/// The message of the parent to a process that waits: the result that it asked for is ready, or is
/// refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ResultMessage {
    /// Why the parent does not give what the process asked for.
    refused: Option<String>,
}

/// A running process.
#[derive(Debug)]
pub struct Running<E> {
    process: Child,
    events: BufReader<tokio::io::Take<ChildStdout>>,
    line: Vec<u8>,
    /// Whether the limit of bytes is for each event, and not for all.
    is_lasting: bool,
    /// The parent-death pipe: open as long as this process lives.
    input: tokio::net::UnixStream,
    of: PhantomData<fn() -> E>,
}

// === impl Launcher ===

impl Launcher {
    /// Starts a process and writes its order.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub async fn start<O: Serialize, E: Report>(
        &self,
        start: Start<'_, O>,
    ) -> io::Result<Running<E>> {
        let mut sandbox = start.sandbox;
        let mut process = std::process::Command::new(&self.program);
        let (input, its_input) = UnixStream::pair()?;
        process
            .arg(start.subcommand)
            .env_clear()
            .env(
                "PATH",
                std::env::var_os("PATH").unwrap_or_else(|| PATH.into()),
            )
            .env("LANG", "C.UTF-8")
            .env("HOME", start.home)
            .env("TMPDIR", start.home)
            .stdin(Stdio::from(OwnedFd::from(its_input)))
            .stdout(Stdio::piped())
            // The message of a panic goes to the log of the service.
            .stderr(Stdio::inherit())
            .process_group(0);
        if start.has_network {
            for name in NETWORK_VARIABLES {
                if let Some(value) = std::env::var_os(name) {
                    if name.starts_with("SSL_CERT") {
                        sandbox.read.push(PathBuf::from(&value));
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
        let output = process.stdout.take();
        let output = output.ok_or_else(|| io::Error::other("the process has no pipe"))?;
        if let Some(listener) = start.listener {
            give(&input, listener, child::LISTENER)?;
        }
        input.set_nonblocking(true)?;
        let mut input = tokio::net::UnixStream::from_std(input)?;
        let envelope = Envelope {
            order: start.order,
            sandbox,
            mode: self.mode,
            limits: start.limits,
            is_other_user: self.user.is_some(),
            log: self.log.clone(),
        };
        let mut line = serde_json::to_vec(&envelope)?;
        line.push(b'\n');
        input.write_all(&line).await?;
        Ok(Running {
            process,
            events: BufReader::new(output.take(EVENTS_BYTES_MAX)),
            line: Vec::new(),
            is_lasting: start.listener.is_some(),
            input,
            of: PhantomData,
        })
    }
}

/// Gives a socket to the process at the other end, with the bytes that it belongs to (`unix(7)`,
/// `SCM_RIGHTS`).
fn give(input: &impl AsFd, socket: &impl AsFd, bytes: &[u8]) -> io::Result<()> {
    let descriptors = [socket.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no space for a descriptor"));
    }
    // A descriptor can only be sent together with at least one byte.
    let sent = [IoSlice::new(bytes)];
    let sent = rustix::net::sendmsg(input, &sent, &mut message, SendFlags::NOSIGNAL)?;
    match sent == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

// === impl Running ===

impl<E: Report> Running<E> {
    /// Returns the next event; `None` when there are no more events.
    ///
    /// Safe to cancel: the part of a line that was read stays in the buffer.
    ///
    /// # Errors
    ///
    /// The error of the pipe, or the process has written something else or too much.
    pub async fn event(&mut self) -> io::Result<Option<E>> {
        self.events.read_until(b'\n', &mut self.line).await?;
        if !self.line.ends_with(b"\n") {
            return match self.events.get_ref().limit() {
                0 => Err(io::Error::other(format!(
                    "the process reports more than {EVENTS_BYTES_MAX} bytes"
                ))),
                _ => Ok(None),
            };
        }
        let event = serde_json::from_slice(&self.line)?;
        self.line.clear();
        if self.is_lasting {
            self.events.get_mut().set_limit(EVENTS_BYTES_MAX);
        }
        Ok(Some(event))
    }
}

impl<E> Running<E> {
    /// Lets a waiting process continue ([`Parent::ask`]).
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub async fn answer(&mut self) -> io::Result<()> {
        self.write(&ResultMessage::default()).await
    }

    /// Gives a connection to a process that waits for one ([`Parent::ask_for_socket`]), or the
    /// reason why it gets none.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub async fn answer_with(&mut self, socket: Result<TcpStream, String>) -> io::Result<()> {
        match socket {
            Ok(socket) => {
                let mut line = serde_json::to_vec(&ResultMessage::default())?;
                line.push(b'\n');
                self.input.writable().await?;
                give(&self.input, &socket, &line)
            }
            Err(why) => self.write(&ResultMessage { refused: Some(why) }).await,
        }
    }

    async fn write(&mut self, answer: &ResultMessage) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        self.input.write_all(&line).await
    }

    /// Returns a sentence that says how a process without further events ended. What it started is
    /// killed, and the process too if it still runs.
    pub async fn ended(&mut self) -> String {
        use std::os::unix::process::ExitStatusExt as _;

        // Before the wait: the group is unknown after it. A process that is ending keeps its status.
        self.kill_group();
        match self.process.wait().await {
            Ok(status) => match status.signal() {
                Some(signal) => format!("the build process was killed by signal {signal}"),
                None => format!("the build process ended early with {status}"),
            },
            Err(error) => format!("the build process cannot be waited for: {error}"),
        }
    }

    /// Sets the priority of the process and of every process and thread that it started, as
    /// `nice(1)` does. The kernel uses it for the disk, too.
    pub fn set_niceness(&self, niceness: i32) {
        let Some(id) = self.group() else { return };
        if let Err(error) = rustix::process::setpriority_pgrp(Some(id), niceness) {
            log::debug!(target: "isolation", "set the priority of a process: {error}");
        }
    }

    /// Kills the process and every process that it started, and waits for it to end.
    pub async fn kill(&mut self) {
        self.kill_group();
        if let Err(error) = self.process.wait().await {
            log::error!(target: "isolation", "cannot wait for a killed process: {error}");
        }
    }

    /// Returns the process group. A process without an id has been waited for, and the system may
    /// have reused its number.
    fn group(&self) -> Option<Pid> {
        let id = self.process.id()?;
        Pid::from_raw(id.cast_signed())
    }

    fn kill_group(&self) {
        if let Some(id) = self.group() {
            // The group may have ended already.
            let _ = rustix::process::kill_process_group(id, Signal::KILL);
        }
    }
}

impl<E> Drop for Running<E> {
    fn drop(&mut self) {
        self.kill_group();
    }
}

#[cfg(test)]
mod tests;

//! Replaces the program of a running gateway without refusing or resetting a connection.
//!
//! `waypost upgrade` asks the running gateway over a unix socket to start its successor. The
//! running process starts it, because a supervisor must see the new process as one of its own:
//! systemd stops processes outside the control group of a service. The steps:
//!
//! 1. The new process gets the listening sockets ([`handover`]), reads configuration, store and
//!    site records, and sends a request to itself.
//! 2. It accepts connections, beside the old process, and tells the old process.
//! 3. The old process stops accepting and drains. Its worker finishes its builds.
//! 4. When the old worker has ended, the new one begins. So one worker builds at a time.
//!
//! If the new process fails before it has accepted connections, the old one continues to serve.
//!
//! Only the user of the process can connect to the socket. A request names the program to start,
//! so a return to an earlier version is the same command of the earlier program.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sd_notify::NotifyState;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::handover::{self, Message, Passed};
use crate::gateway::drain::{Drain, Phase};

/// The argument of a process that an earlier one has started.
pub(super) const SUCCESSOR: &str = "--successor";
/// How long a client of the socket may take to send its request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);
/// The pause after an error of `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The longest request, in bytes: a path is at most 4,096.
const REQUEST_BYTES_MAX: u64 = 8 << 10;

/// The request of `waypost upgrade`: one line of JSON.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Request {
    /// The program of the new process.
    pub(crate) program: PathBuf,
}

/// The response, when the new process serves or has failed: one line of JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The process that serves from now on.
    Serving {
        /// Its process id.
        process: u32,
    },
    /// Why the running process goes on alone.
    Failed {
        /// A sentence for the operator.
        reason: String,
    },
}

/// The listening sockets of this process, for its successor. They are closed when the process
/// stops accepting. If a copy stayed open, the kernel would queue connections that no process
/// accepts.
#[derive(Clone, Debug, Default)]
pub(super) struct ListeningSockets(Arc<Mutex<Vec<Passed>>>);

/// The socket for `waypost upgrade`.
pub(super) struct UpgradeSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The number of the file, while the listener is open.
    inode: u64,
}

/// Starts successors on request.
pub(super) struct Upgrades {
    pub(super) sockets: ListeningSockets,
    pub(super) drain: Drain,
    /// How long a successor may take until it serves.
    pub(super) time_max: Duration,
    /// Cancelled when a successor serves.
    pub(super) handed_over: CancellationToken,
    /// Disconnected when the worker of this process has ended.
    pub(super) worker_ended: Receiver<()>,
}

// === impl ListeningSockets ===

impl ListeningSockets {
    /// Adds a copy of a socket.
    pub(super) fn add(&self, passed: Passed) {
        self.lock().push(passed);
    }

    /// Closes the copies.
    pub(super) fn close(&self) {
        self.lock().clear();
    }

    /// Every change is one insertion or removal, so the list is whole after a panic too.
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Passed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl UpgradeSocket ===

impl UpgradeSocket {
    /// Opens the socket at this path. A successor takes the path of its predecessor over.
    ///
    /// # Errors
    ///
    /// When another gateway answers there, or the path cannot be used.
    pub(super) fn open(path: &Path, is_successor: bool) -> io::Result<Self> {
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                return Err(io::Error::other("this file is not a socket"));
            }
            Ok(_) if !is_successor && UnixStream::connect(path).is_ok() => {
                return Err(io::Error::other(
                    "another gateway uses this socket; give each its own",
                ));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // Renamed, so that there is a socket at the path at every moment.
        let mut new = path.as_os_str().to_owned();
        new.push(format!(".{}", std::process::id()));
        let new = PathBuf::from(new);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&new)?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
        let inode = fs::symlink_metadata(&new)?.ino();
        fs::rename(&new, path)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            inode,
        })
    }

    /// Takes the path back from a successor that took it over and ended before it served.
    fn take_back(&mut self) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.path);
        if !found.is_ok_and(|found| found.ino() == self.inode) {
            *self = Self::open(&self.path, true)?;
        }
        Ok(())
    }
}

// === impl Upgrades ===

impl Upgrades {
    /// Responds to requests until a successor serves.
    pub(super) fn run(self, mut socket: UpgradeSocket) {
        loop {
            let mut stream = match socket.listener.accept() {
                Ok((stream, _address)) => stream,
                Err(error) => {
                    log::warn!(target: "upgrade", "cannot accept a connection: {error}");
                    std::thread::sleep(ACCEPT_PAUSE);
                    continue;
                }
            };
            let started = match read_request(&stream) {
                Ok(Some(request)) => self.start(&request.program),
                // Another gateway has looked whether this one lives ([`UpgradeSocket::open`]).
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            let (reply, successor) = match started {
                Ok((child, link)) => {
                    let process = child.id();
                    (Reply::Serving { process }, Some((process, link)))
                }
                Err(error) => {
                    let reason = error.to_string();
                    log::error!(target: "upgrade", "this process goes on: {reason}");
                    if let Err(error) = socket.take_back() {
                        log::error!(target: "upgrade", "this process cannot be upgraded: {error}");
                    }
                    (Reply::Failed { reason }, None)
                }
            };
            let _client_gone = respond(&mut stream, &reply);
            if let Some((process, link)) = successor {
                return self.hand_over(process, &link);
            }
        }
    }

    /// Starts a successor, and returns when it serves.
    fn start(&self, program: &Path) -> io::Result<(Child, UnixStream)> {
        if self.drain.phase() > Phase::Serving {
            return Err(io::Error::other("this process is stopping"));
        }
        let (link, end) = UnixStream::pair()?;
        let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        arguments.retain(|argument| argument != SUCCESSOR);
        arguments.push(SUCCESSOR.into());
        let spawned = Command::new(program)
            .args(arguments)
            .stdin(Stdio::from(OwnedFd::from(end)))
            // These describe sockets that systemd has passed to this process.
            .env_remove("LISTEN_PID")
            .env_remove("LISTEN_FDS")
            .env_remove("LISTEN_FDNAMES")
            .spawn();
        let mut child = spawned.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("start {}: {error}", program.display()),
            )
        })?;
        let process = child.id();
        log::info!(target: "upgrade", process; "started {} as process {process}", program.display());
        let ready = || {
            handover::send(&link, &self.sockets.lock())?;
            link.set_read_timeout(Some(self.time_max))?;
            handover::wait_for(&link, Message::Serving)
        };
        match ready() {
            Ok(()) => Ok((child, link)),
            Err(error) => {
                let reason = match error.kind() {
                    io::ErrorKind::WouldBlock => format!(
                        "the new process did not serve within {} s (connections.upgrade_seconds)",
                        self.time_max.as_secs()
                    ),
                    io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionReset => {
                        "the new process ended before it served; the log has its messages"
                            .to_owned()
                    }
                    _ => format!("the new process: {error}"),
                };
                let _already_ended = child.kill();
                let _reaped = child.wait();
                Err(io::Error::other(reason))
            }
        }
    }

    /// Stops this process, which has a successor.
    fn hand_over(self, process: u32, link: &UnixStream) {
        log::info!(target: "upgrade", process; "process {process} serves from now on");
        // Without systemd this does nothing.
        if let Err(error) = sd_notify::notify(&[NotifyState::MainPid(process)]) {
            log::warn!(target: "upgrade", "cannot notify systemd of the main process: {error}");
        }
        self.handed_over.cancel();
        // It never sends: this waits until the sender is dropped.
        let _disconnected = self.worker_ended.recv();
        // This fails if the new process has ended.
        let _ended = handover::notify(link, Message::WorkerEnded);
    }
}

/// Reads a request; `None` if the client has closed its connection at once.
fn read_request(stream: &UnixStream) -> io::Result<Option<Request>> {
    stream.set_read_timeout(Some(REQUEST_TIME_MAX))?;
    let mut line = String::new();
    BufReader::new(stream.take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    match line.is_empty() {
        true => Ok(None),
        false => Ok(Some(serde_json::from_str(&line)?)),
    }
}

fn respond(stream: &mut UnixStream, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    stream.write_all(&line)
}

//! The started process: it enters its sandbox and carries out its order.

use std::fs;
use std::io::{self, BufRead as _, IoSliceMut, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::Signal;
use serde::de::DeserializeOwned;

use super::{Envelope, Report, ResultMessage};
use crate::telemetry::logging;
use crate::watchdog;

/// The byte that goes with a socket.
pub(super) const LISTENER: &[u8] = b"\n";
/// How likely the kernel is to end this process before others when memory is short, from 0 to 1000
/// (`proc_pid_oom_score_adj(5)`).
const OOM_SCORE: &str = "500";

/// The connection of a sandboxed process to its parent.
pub struct Parent<'p, E> {
    report: &'p mut dyn FnMut(E),
    answers: mpsc::Receiver<Received>,
}

/// An answer of the parent, and the socket that came with it.
type Received = (ResultMessage, Option<OwnedFd>);

// === impl Parent ===

impl<E> std::fmt::Debug for Parent<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parent").finish_non_exhaustive()
    }
}

impl<E> Parent<'_, E> {
    /// Reports an event.
    pub fn report(&mut self, event: E) {
        (self.report)(event);
    }

    /// Reports an event, and waits until the parent has answered it.
    pub fn ask(&mut self, event: E) {
        (self.report)(event);
        // Without a parent, this process is ended at once.
        let _answered = self.answers.recv();
    }

    /// Asks for a connection that this process may not open itself, and waits for it.
    ///
    /// # Errors
    ///
    /// The parent has opened none, for the reason in the error.
    pub fn ask_for_socket(&mut self, event: E) -> io::Result<TcpStream> {
        (self.report)(event);
        // Without a parent, this process is ended at once.
        let (answer, socket) = self.answers.recv().map_err(io::Error::other)?;
        match (answer.refused, socket) {
            (None, Some(socket)) => Ok(TcpStream::from(socket)),
            (Some(why), _) => Err(io::Error::other(why)),
            (None, None) => Err(io::Error::other("the parent gave no socket")),
        }
    }
}

/// Reads the order of this process and carries it out in its sandbox.
///
/// # Errors
///
/// The order is missing or the limits cannot be set. Nothing has been done then.
pub fn serve<O: DeserializeOwned, E: Report + 'static>(
    act: impl FnOnce(O, &mut Parent<'_, E>),
) -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let envelope: Envelope<O> = serde_json::from_str(&line)?;
    drop(line);
    if let Err(error) = fs::write("/proc/self/oom_score_adj", OOM_SCORE) {
        log::debug!(target: "isolation", "set the priority of ending when memory is short: {error}");
    }
    // Other processes of the user cannot read its memory, in which secrets may be.
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        log::debug!(target: "isolation", "hide the memory of this process: {error}");
    }
    envelope.limits.apply()?;
    // Before any thread is started: the sandbox restricts this thread and what it starts.
    let mut in_force = match envelope.sandbox.enter(envelope.mode) {
        Ok(in_force) => in_force,
        Err(error) => {
            write(&E::refused(&error));
            return Ok(());
        }
    };
    // The log may start a thread, so it starts in the sandbox.
    if let Some(log) = &envelope.log {
        // This fails only if a logger exists already.
        let _started = logging::start(log);
    }
    in_force.user = envelope.is_other_user;
    in_force.processes = !rustix::process::getuid().is_root();
    write(&E::in_force(in_force));
    let limit = envelope.limits.page;
    watchdog::start(limit, move |page| {
        let seconds = limit.as_secs();
        write(&E::late(format!(
            "{page}: reading this page takes longer than {seconds} s"
        )));
    })?;
    let (answer, answers) = mpsc::channel();
    std::thread::Builder::new()
        .name("parent-death".to_owned())
        .spawn(move || listen(&answer))?;
    let mut parent = Parent {
        report: &mut |event: E| write(&event),
        answers,
    };
    act(envelope.order, &mut parent);
    Ok(())
}

/// Writes an event to the parent.
fn write<E: Report>(event: &E) {
    let mut line = serde_json::to_vec(event).expect("strings, numbers and lists of them");
    line.push(b'\n');
    let mut output = io::stdout().lock();
    // If the parent has closed this pipe, it has closed the parent-death pipe too.
    let _ = output.write_all(&line).and_then(|()| output.flush());
}

/// As [`serve`], for a process that accepts connections on a socket of its parent.
///
/// # Errors
///
/// As [`serve`], or the parent gave no socket.
pub fn serve_with_listener<O: DeserializeOwned, E: Report + 'static>(
    act: impl FnOnce(O, TcpListener, &mut Parent<'_, E>),
) -> io::Result<()> {
    let listener = take()?;
    serve(|order, parent| act(order, listener, parent))
}

/// Takes the socket that the parent gives before the order.
fn take() -> io::Result<TcpListener> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0; LISTENER.len()];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(
        io::stdin(),
        &mut bytes,
        &mut message,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let given = message.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let given = given.ok_or_else(|| io::Error::other("the parent gave no socket"))?;
    Ok(TcpListener::from(given))
}

/// Forwards the answers of the parent, with their sockets. When standard input closes because the
/// parent has ended, it kills the process group.
fn listen(answer: &mpsc::Sender<Received>) {
    let mut line = Vec::new();
    let mut socket = None;
    while let Ok(read) = receive(&mut line, &mut socket) {
        if read == 0 {
            break;
        }
        // The parent gives one answer at a time.
        while let Some(end) = line.iter().position(|&byte| byte == b'\n') {
            let rest = line.split_off(end + 1);
            if let Ok(read) = serde_json::from_slice(&line) {
                // The process may have ended its work.
                let _received = answer.send((read, socket.take()));
            }
            line = rest;
        }
    }
    if let Err(error) = rustix::process::kill_current_process_group(Signal::KILL) {
        log::error!(target: "isolation", "cannot end with the parent: {error}");
    }
}

/// Reads more of standard input, and a socket if one comes with it.
fn receive(line: &mut Vec<u8>, socket: &mut Option<OwnedFd>) -> io::Result<usize> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 1024];
    let read = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(io::stdin(), &mut parts, &mut message, flags) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    for message in message.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            *socket = descriptors.into_iter().next().or(socket.take());
        }
    }
    line.extend_from_slice(&bytes[..read]);
    Ok(read)
}

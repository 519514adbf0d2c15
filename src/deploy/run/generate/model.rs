//! The process of the model, and what its parent does for it.
//!
//! The process has no network. It asks for each connection ([`Event::Connect`]); the parent
//! resolves the name of the configuration, connects, and gives it the socket. So the process, if a
//! server or a page takes it over, reaches that host and no other.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use super::super::child::Parent;
use super::super::job::Event;
use crate::deploy::writer::{self, Link, Outcome, Spent, converse};

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How many connections one run may open.
const CONNECTIONS_MAX: u32 = 2000;

/// The state of a running model, as its parent knows it.
#[derive(Debug)]
pub(in crate::deploy::run) struct Running {
    host: String,
    port: u16,
    connections: u32,
    /// The spending until now.
    pub(in crate::deploy::run) spent: Spent,
}

// === impl Running ===

impl Running {
    /// Returns `None` if no model is configured.
    pub(in crate::deploy::run) fn of(config: &writer::Config) -> Option<Self> {
        let server = config.proxy.as_ref().or(config.url.as_ref())?;
        Some(Self {
            host: server.host().to_owned(),
            port: server.port(),
            connections: 0,
            spent: Spent::default(),
        })
    }

    /// Opens a connection to the server of the configuration.
    ///
    /// # Errors
    ///
    /// A sentence for the process. It names no address.
    pub(in crate::deploy::run) async fn connect(&mut self) -> Result<TcpStream, String> {
        self.connections += 1;
        if self.connections > CONNECTIONS_MAX {
            return Err(format!("more than {CONNECTIONS_MAX} connections"));
        }
        let connecting = tokio::net::TcpStream::connect((&*self.host, self.port));
        let socket = match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(socket) => socket.map_err(|error| error.to_string())?,
            Err(_late) => return Err("the connection took too long".to_owned()),
        };
        let prepare = || {
            socket.set_nodelay(true)?;
            let socket = socket.into_std()?;
            // The process waits for the server, and does nothing else.
            socket.set_nonblocking(false)?;
            Ok::<_, std::io::Error>(socket)
        };
        prepare().map_err(|error| error.to_string())
    }
}

/// The process, as the loop uses it.
struct Process<'a, 'p> {
    parent: &'a mut Parent<'p>,
}

impl Link for Process<'_, '_> {
    fn connect(&mut self) -> std::io::Result<TcpStream> {
        self.parent.ask_for_socket(Event::Connect)
    }

    fn line(&mut self, line: String) {
        self.parent.report(Event::Line(line));
    }

    fn spent(&mut self, spent: Spent) {
        self.parent.report(Event::Spent(spent));
    }
}

/// Runs the model in its process, and writes the outcome.
pub(in crate::deploy::run) fn run(job: &writer::Job, parent: &mut Parent<'_>) {
    let failed = |act: &str, error: &dyn std::fmt::Display| {
        log::error!(target: "writer", "cannot {act}: {error}");
        Event::SkillStays(format!("this machine could not {act}"))
    };
    let material = match fs::read(&job.material) {
        Ok(material) => material,
        Err(error) => return parent.report(failed("read the pages", &error)),
    };
    let material = match serde_json::from_slice(&material) {
        Ok(material) => material,
        Err(error) => return parent.report(failed("read the pages", &error)),
    };
    let index = match fs::read(&job.index) {
        Ok(index) => index.into(),
        Err(error) => return parent.report(failed("read the search index", &error)),
    };
    let mut process = Process { parent };
    let config = &job.config;
    let report = converse(config, &job.key, job.budget, &material, index, &mut process);
    let line = format!("generate: {}", report.spent);
    parent.report(Event::Line(line));
    let outcome: &Outcome = &report.outcome;
    let bytes = match serde_json::to_vec(outcome) {
        Ok(bytes) => bytes,
        Err(error) => return parent.report(failed("write the draft", &error)),
    };
    parent.report(match fs::write(&job.output, bytes) {
        Ok(()) => Event::Done,
        Err(error) => failed("write the draft", &error),
    });
}

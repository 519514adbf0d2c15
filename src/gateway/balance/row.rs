//! A server in the list that operators see.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

/// The state of a server, as operators see it.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) project: Box<str>,
    /// Its address, as a URL.
    pub(super) server: String,
    pub(super) state: &'static str,
    /// How many requests have failed in a row.
    pub(super) failures: u32,
    pub(super) ejections: u32,
    pub(super) pause: Option<Duration>,
    /// How many requests it has now.
    pub(super) requests: usize,
    pub(super) queued: usize,
    pub(super) is_backup: bool,
    /// Why its last check failed.
    pub(super) check_error: Option<Arc<str>>,
}

// === impl Row ===

impl Row {
    /// Sorts servers with failures to the front.
    pub(super) fn order(&self) -> (bool, &str, &str) {
        (self.state == "up", &self.project, &self.server)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "project": self.project,
            "server": self.server,
            "backup": self.is_backup,
            "state": self.state,
            "failures": self.failures,
            "ejections": self.ejections,
            "pause_seconds": self.pause.map(|pause| pause.as_secs()),
            "requests": self.requests,
            "queued": self.queued,
            "check_error": self.check_error.as_deref(),
        })
    }
}

//! How much a sandboxed process may use.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

/// The limits of a process, which hold for each program that it starts, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Its address space.
    pub memory_bytes: u64,
    /// The largest file that it may write.
    pub file_bytes: u64,
    /// How many files it may have open.
    pub open_files: u64,
    /// How many processes and threads may be added to those that its user has.
    pub processes: u64,
    /// How long it may work on one page ([`watchdog`](crate::watchdog)), in whole seconds.
    pub page: Duration,
}

// === impl Limits ===

impl Limits {
    /// Sets the limits for this process and the processes that it starts.
    pub(super) fn apply(&self) -> io::Result<()> {
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

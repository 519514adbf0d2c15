//! File descriptors as a budget.
//!
//! The soft limit of open files is raised to the hard one. Client connections get only a part of
//! it: the rest is for the store, the queue, builds, the operator's listener and upstreams, which
//! must work when no more clients fit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The descriptors that the store, the queue, logs and the operator's listener may need.
const RESERVED: u64 = 192;
/// The descriptors that one build may need in this process.
const PER_BUILD: u64 = 8;
/// The part of all descriptors that is for connections to upstreams.
const UPSTREAM_SHARE: u64 = 5;

/// Raises the soft limit to the hard one, and returns it; `None` if there is no limit.
pub(super) fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let raised = Rlimit {
            current: maximum,
            maximum,
        };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            log::warn!(target: "serve", "cannot raise the limit of open files: {error}");
        }
    }
    getrlimit(Resource::Nofile).current
}

/// Returns how many client connections a limit of descriptors has room for.
pub(super) fn connections_max(limit: u64, builds_max: usize) -> usize {
    let builds = PER_BUILD.saturating_mul(builds_max as u64);
    let reserved = RESERVED.saturating_add(builds).min(limit / 2);
    let left = limit.saturating_sub(reserved);
    let connections = left - left / UPSTREAM_SHARE;
    usize::try_from(connections).unwrap_or(usize::MAX).max(1)
}

/// Returns the configured number of connections, or the number that the limit of descriptors has
/// room for; then the log says so.
pub(super) fn clamp(configured: usize, builds_max: usize) -> usize {
    let Some(limit) = raise() else {
        return configured;
    };
    let room = connections_max(limit, builds_max);
    if configured <= room {
        return configured;
    }
    log::warn!(
        target: "serve", limit, configured, connections_max = room;
        "this process may open {limit} files, which is not enough for `connections.connections_max: {configured}`; it accepts {room} connections (raise the limit: LimitNOFILE= of systemd, `ulimit -Hn`)"
    );
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_reserved() {
        for (limit, least, most) in [
            (16, 1, 8),
            (256, 80, 128),
            (1024, 600, 700),
            (65_536, 50_000, 53_000),
            (1 << 20, 800_000, 900_000),
        ] {
            let room = connections_max(limit, 2);
            assert!((least..=most).contains(&room), "{limit}: {room}");
        }
        assert_eq!(connections_max(0, 2), 1);
    }
}

//! File descriptors as a budget.
//!
//! The soft limit of open files is raised to the hard one. A part of it is reserved for the store,
//! the queue, builds, files in memory and the operator's listener, which must work whatever clients
//! do. The rest is divided: 70 % for the connections of clients, 20 % for connections to sites' own
//! servers, 10 % for files that are sent. No address gets more than half of the first part, and no
//! server of a site more than half of the second.

use pingora::server::configuration::ServerConf;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;
use crate::gateway::FILES_MAX;

/// The descriptors that the store, the queue, logs, the operator's listener and files in memory may
/// need.
const RESERVED: u64 = 192 + FILES_MAX as u64;
/// The descriptors that one build may need in this process.
const PER_BUILD: u64 = 8;
/// The part of the rest that is for connections to upstreams.
const UPSTREAM_SHARE: u64 = 5;
/// The part of the rest that is for files that are sent.
const FILES_SHARE: u64 = 10;

/// The parts of a limit of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shares {
    /// Connections of clients.
    connections: usize,
    /// Requests to upstreams at once; each may have one connection.
    pub(super) upstream_requests: usize,
    /// Idle connections to upstreams, in each of the two pools.
    idle: usize,
    /// Files that are sent.
    pub(super) files: usize,
}

// === impl Shares ===

impl Shares {
    fn of(limit: u64, builds_max: usize) -> Self {
        let builds = PER_BUILD.saturating_mul(builds_max as u64);
        let reserved = RESERVED.saturating_add(builds).min(limit / 2);
        let left = limit.saturating_sub(reserved);
        let (upstream, files) = (left / UPSTREAM_SHARE, left / FILES_SHARE);
        let number = |room| usize::try_from(room).unwrap_or(usize::MAX).max(1);
        Self {
            connections: number(left - upstream - files),
            upstream_requests: number(upstream / 2),
            idle: number(upstream / 4),
            files: number(files),
        }
    }

    /// For a process without a limit.
    const UNLIMITED: Self = Self {
        connections: usize::MAX,
        upstream_requests: usize::MAX,
        idle: usize::MAX,
        files: usize::MAX,
    };

    /// Lowers what the configuration allows to what there is room for. The log says so.
    fn lower(self, limit: u64, config: &mut Config, conf: &mut ServerConf) {
        let conf_idle = &mut conf.upstream_keepalive_pool_size;
        *conf_idle = self.idle.min(*conf_idle);
        let requests_max = &mut config.upstream.requests_max;
        let half = (self.upstream_requests / 2).max(1);
        if *requests_max > half {
            log::warn!(
                target: "serve", limit, configured = *requests_max, requests_max = half;
                "this process may open {limit} files, which is not enough for `upstream.requests_max: {requests_max}`; a server of a site gets {half} requests at once (raise the limit: LimitNOFILE= of systemd, `ulimit -Hn`)"
            );
            *requests_max = half;
        }
        let configured = config.connections.limits.connections_max;
        let room = self.connections;
        if configured <= room {
            return;
        }
        config.connections.limits.connections_max = room;
        let of_address = &mut config.clients.connections_max;
        *of_address = u32::try_from(room / 2)
            .unwrap_or(u32::MAX)
            .max(1)
            .min(*of_address);
        log::warn!(
            target: "serve", limit, configured, connections_max = room, of_address = *of_address;
            "this process may open {limit} files, which is not enough for `connections.connections_max: {configured}`; it accepts {room} connections, {of_address} from one address (raise the limit: LimitNOFILE= of systemd, `ulimit -Hn`)"
        );
    }
}

/// Raises the soft limit to the hard one, and returns it; `None` if there is no limit.
fn raise() -> Option<u64> {
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

/// Raises the limit of descriptors, and lowers what the configuration allows to what it has room
/// for.
pub(super) fn divide(config: &mut Config, conf: &mut ServerConf) -> Shares {
    let Some(limit) = raise() else {
        return Shares::UNLIMITED;
    };
    let room = Shares::of(limit, config.worker.fetches_max);
    room.lower(limit, config, conf);
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
            (1024, 550, 600),
            (65_536, 45_000, 46_000),
            (1 << 20, 700_000, 800_000),
        ] {
            let Shares {
                connections,
                upstream_requests,
                idle,
                files,
            } = Shares::of(limit, 2);
            assert!(
                (least..=most).contains(&connections),
                "{limit}: {connections}"
            );
            let all = connections + upstream_requests + 2 * idle + files;
            let reserved = usize::try_from(limit).unwrap() - all;
            assert!(
                limit < 200 || reserved >= 128,
                "{limit}: {reserved} are left"
            );
        }
        assert_eq!(Shares::of(0, 2).connections, 1);
    }

    #[test]
    fn no_address_gets_more_than_half_of_what_a_low_limit_has_room_for() {
        let (mut config, mut conf) = (Config::default(), ServerConf::default());
        let room = Shares::of(1024, 2);
        room.lower(1024, &mut config, &mut conf);
        let connections_max = config.connections.limits.connections_max;
        assert_eq!(connections_max, room.connections);
        assert_eq!(config.clients.connections_max as usize, connections_max / 2);
        assert_eq!(config.upstream.requests_max, room.upstream_requests / 2);
        assert_eq!(conf.upstream_keepalive_pool_size, room.idle);
        let (mut config, mut conf) = (Config::default(), ServerConf::default());
        // The owner of a load balancer has switched the limit off.
        config.clients.connections_max = 0;
        room.lower(1024, &mut config, &mut conf);
        assert_eq!(config.clients.connections_max, 0);
        let (mut config, mut conf) = (Config::default(), ServerConf::default());
        Shares::of(1 << 20, 2).lower(1 << 20, &mut config, &mut conf);
        assert_eq!(config, Config::default());
        assert_eq!(conf, ServerConf::default());
    }
}

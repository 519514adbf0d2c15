//! Checks with DNS whether domains belong to the owners of their sites.
//!
//! One of the processes that share the store checks. It writes the result beside the site records,
//! and changes the state of a domain in the site's record (see [`OwnershipState`]).
//!
//! * **V1** A domain is proven by the TXT record `_waypost-challenge.{host}` with the token of its
//!   owner, or by an alias whose *direct* target is the name of the edge with this token. That a
//!   name leads here proves nothing: a forgotten alias of somebody else leads here too.
//! * **V2** Tokens are made for one owner and one host, so a wildcard record, a chain of aliases or
//!   a token of another owner proves nothing.
//! * **V3** Only an answer of the servers that there is no proof takes a proof away. No answer
//!   changes nothing for [`Config::unanswered`].
//! * **V4** A name below a domain of another owner also needs that owner's agreement, in DNS, up to
//!   the registrable domain (publicsuffix.org).
//! * **V5** Each check is bounded in time and questions, each owner in checks at the same time, and
//!   owners are served round-robin, so the domains of one owner do not delay those of others.
//!
//! | what | module |
//! |---|---|
//! | the questions to DNS | `lookup` |
//! | from the answers to a verdict, and to the next state | `judge` |
//! | which domain is next | `schedule` |
//! | the loop | [`Verifier`] |
//!
//! Source: draft-ietf-dnsop-domain-verification-techniques.

mod judge;
mod lookup;
mod metrics;
mod schedule;
mod verifier;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::site::{Host, ProjectId, Service};
use crate::store::{Ownership, OwnershipState, Store};

pub use metrics::Metrics;
pub use verifier::{Changes, Verifier};

/// The label of the default edge domain.
const EDGE: &str = "edge";
/// The version of the stored result. A result of another version is ignored: it can be lost.
const VERSION: u64 = 1;

/// The settings of the proof of ownership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether domains of sites that are kept in the store need a proof.
    pub is_required: bool,
    /// The domain below which each token is a name of the edge; `None`: `edge.` and the service's
    /// domain.
    pub edge_domain: Option<Host>,
    /// The addresses of the edge; empty: they are not known, and every address counts.
    pub addresses: Vec<IpAddr>,
    /// The only servers that are asked; empty: the servers of each zone.
    pub resolvers: Vec<SocketAddr>,
    /// The longest time of one check.
    pub check_timeout: Duration,
    /// The waits after the first, second, … check of a domain that waits for something; the last
    /// one repeats.
    pub retries: Vec<Duration>,
    /// The time between two checks of a domain that waits for nothing.
    pub recheck: Duration,
    /// How long a domain is served without proof.
    pub dangling: Duration,
    /// How long the name servers of a domain may not answer before its proof is taken as gone.
    pub unanswered: Duration,
    /// How long a host that its owner has lost stays in quarantine.
    pub quarantine: Duration,
    /// How long a caller waits between two checks that it asks for.
    pub pause: Duration,
    /// How many checks run at the same time.
    pub parallel_max: usize,
    /// How many of them for one owner.
    pub parallel_owner_max: usize,
}

/// The result of the last check of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    version: u64,
    /// The token of that time: the domain may have been removed and added since.
    token: Box<str>,
    /// When, in seconds after the Unix epoch.
    pub(super) checked_at: u64,
    /// When the next check is.
    pub(super) next_at: u64,
    /// When the proof was last seen.
    proven_at: Option<u64>,
    /// How many checks in a row have found something in the way.
    attempts: u32,
    /// What the owner has to correct: sentences.
    pub(super) in_the_way: Vec<String>,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        let seconds = |seconds: &[u64]| seconds.iter().copied().map(Duration::from_secs).collect();
        const DAY: Duration = Duration::from_secs(86_400);
        Self {
            is_required: true,
            edge_domain: None,
            addresses: Vec::new(),
            resolvers: Vec::new(),
            check_timeout: Duration::from_secs(20),
            retries: seconds(&[15, 60, 300, 1800, 14_400, 86_400]),
            recheck: DAY,
            dangling: 30 * DAY,
            unanswered: 3 * DAY,
            // As long as the longest certificate of public authorities.
            quarantine: 90 * DAY,
            pause: Duration::from_secs(10),
            parallel_max: 32,
            parallel_owner_max: 4,
        }
    }
}

impl Config {
    /// Returns the domain below which each token is a name of the edge.
    #[must_use]
    pub fn edge(&self, service: &Service) -> Host {
        let default = || Host::parse(&format!("{EDGE}.{}", service.domain));
        let edge = self.edge_domain.clone();
        // The reader of the configuration has checked the default one.
        edge.unwrap_or_else(|| default().unwrap_or_else(|_long| service.domain.clone()))
    }
}

// === impl Check ===

impl Check {
    /// Reads the result of the last check of a domain; `None` if the domain was not checked since
    /// it was added, or if the result cannot be read.
    pub(super) fn read(
        store: &Store,
        project: &ProjectId,
        host: &Host,
        ownership: Option<&Ownership>,
    ) -> Option<Self> {
        let bytes = store.domain_check(project, host).ok().flatten()?;
        let check: Self = serde_json::from_slice(&bytes).ok()?;
        // The domain may have been removed and added since.
        let is_old = ownership.is_some_and(|ownership| {
            ownership.token != check.token
                || ownership.state == OwnershipState::Pending && check.checked_at < ownership.since
        });
        (check.version == VERSION && !is_old).then_some(check)
    }

    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers and texts are JSON")
    }
}

//! Checks of a customer's own servers, on request of its site record.

use std::time::Duration;

/// How the servers of a site are asked whether they work.
///
/// The defaults are those of common programs: the numbers of checks of `HAProxy` (`rise 2`,
/// `fall 3`), and the interval of the probes of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// The path of the `GET` request, with its query if it has one.
    pub path: Box<str>,
    /// The time between two requests.
    pub interval: Duration,
    /// How long one of them may take, its connection included.
    pub timeout: Duration,
    /// The status of a server that works; `None`: any from 200 to 299.
    pub status: Option<u16>,
    /// After how many successes in a row a server that has failed gets requests of readers again.
    pub healthy_threshold: u32,
    /// After how many failures in a row a server gets no more requests of readers.
    pub unhealthy_threshold: u32,
}

// === impl Check ===

impl Check {
    /// Makes a check of a path, with the default values.
    #[must_use]
    pub fn new(path: Box<str>) -> Self {
        Self {
            path,
            interval: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            status: None,
            healthy_threshold: 2,
            unhealthy_threshold: 3,
        }
    }

    /// Returns whether a response with this status is a success.
    #[must_use]
    pub fn accepts(&self, status: u16) -> bool {
        match self.status {
            Some(expected) => status == expected,
            None => (200..300).contains(&status),
        }
    }
}

//! Deployments: from an authenticated call to a promoted release.
//!
//! ```text
//!   api ──▶ keys        who may ask
//!    │
//!    ▼
//!   queue ──▶ update    what was asked for, durable before it is acknowledged
//!    ▲
//!    │ claim, heartbeat, finish
//!   worker ──▶ run      fetch, build, put, promote
//! ```
//!
//! **Guarantees**
//!
//! * D1: an acknowledged trigger is on disk. No crash loses it.
//! * D2: every acknowledged status id ends as `success` or `failure`, exactly once.
//! * D3: `success` means that a build which *began after* the trigger is live, or that
//!   something newer is. A trigger that finds an update queued gets that update's id; one
//!   that finds only a running build queues another, because the running one may have read
//!   the branch too early.
//! * D4: of one project at most one build runs and at most one waits.
//! * D5: what is published never goes backwards, whatever clocks and zombies do: the store
//!   compares (generation, epoch). Leases only decide when somebody else may try.
//!
//! Delivery to a worker is at least once; nothing here promises more.
//!
//! The whole path of an update: `internals/architecture#an-update`.

pub mod api;
pub mod keys;
pub mod queue;
pub mod record;
pub mod run;
mod status_id;
mod timestamp;
pub mod update;
pub mod worker;

use std::sync::Arc;

use crate::site::{ProjectId, Site};

pub use status_id::{InvalidStatusId, StatusId};
pub use timestamp::{InvalidTimestamp, Timestamp};

/// How much less than those that answer readers the threads of deployments ask of a
/// processor, on the scale of `nice(1)`.
const NICENESS: i32 = 10;

/// Finds the site of a project, as it is now.
pub type FindSite = Arc<dyn Fn(&ProjectId) -> Option<Arc<Site>> + Send + Sync>;

/// Makes the calling thread, and what it will start, step behind those that answer readers.
///
/// Where there are not processors enough for all, nobody notices an update that is a little
/// later; an answer that is, they do.
///
/// Sources: `setpriority(2)`: on Linux the niceness is a thread's own.
pub fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        log::warn!(target: "deploy", "lower the priority of a thread: {error}");
    }
}

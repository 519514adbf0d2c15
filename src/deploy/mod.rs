//! Deployments: from an authenticated call to a promoted release.
//!
//! ```text
//!   api ──▶ keys        who may trigger an update
//!    │
//!    ▼
//!   queue ──▶ update    what was triggered, on disk before the answer
//!    ▲
//!    │ claim, heartbeat, finish
//!   worker ──▶ run      fetch, build, put, promote
//! ```
//!
//! **Guarantees**
//!
//! * D1: an acknowledged trigger is on disk. No crash loses it.
//! * D2: the update of every acknowledged status id ends exactly once, as `success` or `failure`.
//! * D3: `success` means that a build which *began after* the trigger is served, or a newer
//!   one. A trigger that finds a queued update gets that update's id. A trigger that finds
//!   only a running build queues another update, because the running build may have read the
//!   branch before the trigger.
//! * D4: each project has at most one running build and at most one waiting update.
//! * D5: a project never goes back to an older release, even when a clock is wrong or a
//!   worker that lost its lease comes back: the store compares generation and epoch. Leases
//!   only decide when another worker may try.
//!
//! A language model may write the skills of sites whose authors wrote none: see [`writer`].
//!
//! An update is given to workers at least once, not exactly once.
//!
//! The whole path of an update: `internals/architecture#an-update`.

pub mod api;
pub mod keys;
pub mod presence;
pub mod queue;
pub mod record;
pub mod run;
pub mod sites;
pub mod slots;
mod status_id;
mod timestamp;
pub mod update;
pub mod worker;
pub mod writer;

use std::sync::Arc;

use self::run::Stopped;
use crate::site::{ProjectId, Site};

pub use status_id::{InvalidStatusId, StatusId};
pub use timestamp::{InvalidTimestamp, Timestamp};

/// The niceness of threads that deploy, on the scale of `nice(1)`.
const NICENESS: i32 = 10;
/// The niceness of the processes of owners whose updates take long, while others work. The lowest
/// priority would stop them on a busy machine, and their time would run out.
const NICENESS_OF_HEAVY: i32 = 15;

/// Returns the current site of a project.
pub type FindSite = Arc<dyn Fn(&ProjectId) -> Option<Arc<Site>> + Send + Sync>;
/// Reads the site of a project whose update begins; `None` if there is no such site. The update
/// waits for another attempt while the record cannot be read. It may block.
pub type ReadSite = Arc<dyn Fn(&ProjectId) -> Result<Option<Arc<Site>>, Stopped> + Send + Sync>;

/// Lowers the priority of the calling thread and of the threads and processes it will start.
///
/// When all processors are busy, responses go first: a reader notices a late response, but
/// an update may end a little later.
///
/// Source: `setpriority(2)`: on Linux each thread has its own niceness.
pub fn lower_priority() {
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        log::warn!(target: "deploy", "cannot lower the priority of a thread: {error}");
    }
}

//! With a shared store: a thread of a gateway that writes into the database how far
//! its edges are. The other gateways read it before they record that an update is visible.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::reload::lock_reloader;
use crate::deploy::queue::Queue;
use crate::follow::Fleet;
use crate::index::reload::Reloader;
use crate::site::ProjectId;
use crate::store::shared::{ALIVE, OtherGateway, WaitingProjects};
use crate::store::{Fence, Shared, Store};

/// How often it looks.
const STEP: Duration = Duration::from_millis(200);
/// How long a release may take until this gateway serves it. One that takes longer cannot be loaded
/// here, so no edge of this gateway is waited for.
const UNSERVED_TIME: Duration = Duration::from_secs(30);
/// How often the gateways tell each other which edges follow them.
const EDGES_TIME: Duration = Duration::from_secs(5);
/// What a release waits for that this gateway does not serve yet.
const THIS_GATEWAY: &str = "the index";

/// How far the edges of this gateway are.
pub(super) struct Progress {
    pub(super) store: Arc<Store>,
    /// The name of this process.
    pub(super) name: String,
    pub(super) fleet: Arc<Fleet>,
    pub(super) reloader: Arc<Mutex<Reloader>>,
    pub(super) queue: Arc<Queue>,
}

/// What was looked at.
#[derive(Default)]
struct Looked {
    /// The revision up to which changes were read; `None` at first.
    revision: Option<u64>,
    /// The promotions that are perhaps not on all edges, and when they were read.
    pending: BTreeMap<ProjectId, (Fence, Instant)>,
    /// What the database was told, and when.
    told: Option<(u64, WaitingProjects, Instant)>,
    /// The other gateways, and until when each was announced at first.
    gateways: BTreeMap<String, u64>,
    /// When the edges were exchanged.
    exchanged: Option<Instant>,
}

impl Progress {
    /// Reports until the process ends. It can be stopped at any point.
    pub(super) fn run(&self) {
        let Store::Shared(shared) = &*self.store else {
            return;
        };
        let mut looked = Looked::default();
        // What an earlier process of this machine did not see on all edges.
        for project in self.queue.not_yet_visible().unwrap_or_default() {
            if let Some(fence) = lock_reloader(&self.reloader).served(&project) {
                looked.pending.insert(project, (fence, Instant::now()));
            }
        }
        loop {
            self.step(shared, &mut looked);
            std::thread::sleep(STEP);
        }
    }

    /// Reads what was followed since the last step, and reports. While the database is away, the
    /// other gateways record nothing.
    fn step(&self, shared: &Shared, looked: &mut Looked) {
        let followed = shared.followed();
        let revision = match looked.revision {
            Some(before) if before != followed => match shared.changes_since(before) {
                Ok(Some(changes)) => {
                    for change in changes.changes {
                        if let (true, Some(current)) = (change.revision <= followed, change.current)
                        {
                            let pending = (current.fence(), Instant::now());
                            looked.pending.insert(change.project, pending);
                        }
                    }
                    changes.place.revision.min(followed)
                }
                Ok(None) => followed,
                Err(_away) => return,
            },
            _ => followed,
        };
        looked.revision = Some(revision);
        let waiting = self.waiting(&mut looked.pending);
        let is_told = looked.told.as_ref().is_some_and(|(told, last, at)| {
            *told == revision && *last == waiting && at.elapsed() < ALIVE
        });
        let is_exchanged = looked
            .exchanged
            .is_some_and(|exchanged| exchanged.elapsed() < EDGES_TIME);
        let following = (!is_exchanged).then(|| self.fleet.following());
        if is_told && is_exchanged {
            return;
        }
        let edges = following.as_deref();
        let reported = shared.report_edges(&self.name, revision, &waiting, edges);
        if reported.is_err() {
            return;
        }
        looked.told = Some((revision, waiting, Instant::now()));
        if let (false, Ok(gateways)) = (is_exchanged, shared.edges_elsewhere(&self.name)) {
            // One that has ended since it was first looked at is no gateway of an edge: it may have
            // been the process before this one.
            let runs = |gateway: &OtherGateway| {
                let first = looked.gateways.entry(gateway.name.clone());
                gateway.ends_at > *first.or_insert(gateway.ends_at)
            };
            let gateways: Vec<_> = gateways.into_iter().filter(runs).collect();
            self.fleet.follow_elsewhere(&gateways);
            looked.exchanged = Some(Instant::now());
        }
    }

    /// Returns what waits, and forgets what does not.
    fn waiting(&self, pending: &mut BTreeMap<ProjectId, (Fence, Instant)>) -> WaitingProjects {
        if pending.is_empty() {
            return WaitingProjects::new();
        }
        let mut waiting = WaitingProjects::new();
        let mut served = Vec::new();
        pending.retain(|project, (fence, since)| {
            let has = lock_reloader(&self.reloader).served(project);
            if has.is_some_and(|has| has >= *fence) {
                served.push((project.clone(), *fence));
                return true;
            }
            waiting.insert(project.clone(), THIS_GATEWAY.to_owned());
            since.elapsed() < UNSERVED_TIME
        });
        let wanted = served.iter().map(|(project, fence)| (project, *fence));
        let edges = self.fleet.wait_for_each(wanted);
        for (project, _) in &served {
            if let Some(edge) = edges.get(project) {
                waiting.insert(project.clone(), edge.clone());
            } else {
                pending.remove(project);
            }
        }
        waiting
    }
}

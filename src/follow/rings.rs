//! Rings of edges: a change reaches the edges of ring 0 first, and those of the next ring when it
//! has been there for a time and the edges of the ring before are well.
//!
//! ```text
//! index ─▶ ring 0 ── hold, health ──▶ ring 1 ── hold, health ──▶ ring 2 …
//! ```
//!
//! Each ring has a [`ChangeLog`] of its own, so an edge cannot see what its ring does not have yet.
//! What waits for a ring is not kept on disk: after a start of the source, each further ring gets
//! nothing at all until the ring before it has been well for the time. Its edges serve what they
//! have.
//!
//! * **R1** A change waits in the form in which it came. If another change of the project comes
//!   meanwhile, it waits after it; if the ring before is not well, the later one replaces it.
//! * **R2** A site that was removed or made private, and a release that the ring has served before
//!   with the same record, do not wait.
//! * **R3** While the node is frozen, no ring gets anything.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::changes::{ChangeLog, ProjectState};
use crate::index::reload::Observer;
use crate::release::ReleaseId;
use crate::site::{ProjectId, Site, Visibility};
use crate::store::Promotion;

/// The most rings.
pub const RINGS_MAX: usize = 10;
/// How many releases of a project a ring remembers.
const SERVED_MAX: usize = 4;

/// The rings of a source.
#[derive(Debug)]
pub struct Rings {
    rings: Vec<Ring>,
    hold: Duration,
    /// The file that an operator makes to freeze.
    frozen: PathBuf,
    state: Mutex<Vec<State>>,
    /// What this node has of the shared store, while the first ring does not have it
    /// yet: the identity and the revision.
    held: Mutex<Option<(String, u64)>>,
}

#[derive(Debug)]
struct Ring {
    log: Arc<ChangeLog>,
}

/// The state of a ring: its changes that wait.
#[derive(Debug)]
struct State {
    /// Whether its edges get responses.
    has_begun: bool,
    /// When it began, and the revision that it had then.
    began: (Instant, u64),
    /// Why the last step has left something waiting.
    reason: Option<String>,
    waiting: HashMap<ProjectId, Waiting>,
    served: HashMap<ProjectId, VecDeque<ReleaseId>>,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    /// The revision of the ring before.
    revision: u64,
    change: Change,
    next: Option<(u64, Change)>,
}

#[derive(Clone, Debug)]
enum Change {
    Loaded(Arc<Site>, Option<Promotion>),
    Removed,
}

/// How the edges of a ring are.
#[derive(Clone, Debug)]
pub(super) struct Health {
    /// All edges that follow have this revision.
    pub(super) revision: u64,
    /// Changes from before this moment have waited long enough; `None` if there are none.
    pub(super) since: Option<Instant>,
    /// Why changes do not go on.
    pub(super) reason: Option<String>,
}

// === impl Rings ===

impl Rings {
    /// Makes the rings of a life: one for each log.
    #[must_use]
    pub fn new(logs: Vec<ChangeLog>, hold: Duration, frozen: PathBuf) -> Self {
        let now = Instant::now();
        let state = |_: &ChangeLog| State {
            has_begun: false,
            began: (now, 0),
            reason: None,
            waiting: HashMap::new(),
            served: HashMap::new(),
        };
        let states = logs.iter().map(state).collect();
        let rings = logs.into_iter().map(|log| Ring { log: Arc::new(log) });
        Self {
            rings: rings.collect(),
            hold,
            frozen,
            state: Mutex::new(states),
            held: Mutex::default(),
        }
    }

    /// Says that this node begins to serve changes of a shared store, up to a revision.
    /// `id` is the identity of the store.
    pub fn begins(&self, id: &str, newest: u64) {
        self.rings[0].log.store().begins(id, newest);
    }

    /// Says that the first ring has all changes of the store up to the revision that is held.
    fn release_held(&self, state: &[State]) {
        if self.is_frozen() || !state[0].waiting.is_empty() {
            return;
        }
        let held = self
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((id, revision)) = held {
            self.rings[0].log.store().has(&id, revision);
        }
    }

    /// Returns the log of a ring; of the last one, if there are fewer.
    #[must_use]
    pub fn log(&self, ring: u8) -> &Arc<ChangeLog> {
        &self.rings[usize::from(ring).min(self.rings.len() - 1)].log
    }

    /// Returns how many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// Returns how long a change stays in a ring before the next one gets it.
    #[must_use]
    pub fn hold(&self) -> Duration {
        self.hold
    }

    /// Returns whether an operator has frozen this node.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen.exists()
    }

    pub(super) fn frozen_file(&self) -> &Path {
        &self.frozen
    }

    /// Returns whether the edges of a ring get responses, how many projects wait for it, and why.
    pub(super) fn waiting(&self, ring: u8) -> (bool, usize, Option<String>) {
        let state = self.state();
        let state = &state[usize::from(ring).min(self.rings.len() - 1)];
        (state.has_begun, state.waiting.len(), state.reason.clone())
    }

    /// Passes on what may go on. `health` returns how the edges of a ring are.
    pub(super) fn step(&self, health: impl Fn(u8) -> Health) {
        let now = Instant::now();
        let is_frozen = self.is_frozen();
        for ring in 0..self.rings.len() {
            let mut state = self.state();
            if is_frozen {
                state[ring].reason = Some("an operator has frozen this node".to_owned());
                continue;
            }
            let before = match ring {
                // The node itself serves it.
                0 => Health {
                    revision: u64::MAX,
                    since: Some(now),
                    reason: None,
                },
                _ if state[ring].waiting.is_empty() && state[ring].has_begun => {
                    state[ring].reason = None;
                    continue;
                }
                _ => {
                    drop(state);
                    let before = health(u8::try_from(ring - 1).unwrap_or(u8::MAX));
                    state = self.state();
                    before
                }
            };
            let hold = if ring == 0 { Duration::ZERO } else { self.hold };
            let may_go = |waiting: &Waiting| {
                before.reason.is_none()
                    && waiting.revision <= before.revision
                    && before.since.is_some_and(|since| waiting.since <= since)
                    && now.saturating_duration_since(waiting.since) >= hold
            };
            let due: Vec<ProjectId> = state[ring]
                .waiting
                .iter()
                .filter(|(_, waiting)| may_go(waiting))
                .map(|(project, _)| project.clone())
                .collect();
            for project in due {
                let Some(waiting) = state[ring].waiting.remove(&project) else {
                    continue;
                };
                if let Some((revision, change)) = waiting.next {
                    let next = Waiting {
                        since: now,
                        revision,
                        change,
                        next: None,
                    };
                    state[ring].waiting.insert(project.clone(), next);
                }
                self.apply(&mut state, ring, &project, waiting.change);
            }
            if before.reason.is_some() {
                // R1: the previous ring is unhealthy, so the later change replaces the waiting one.
                for waiting in state[ring].waiting.values_mut() {
                    if let Some((revision, change)) = waiting.next.take() {
                        *waiting = Waiting {
                            since: now,
                            revision,
                            change,
                            next: None,
                        };
                    }
                }
            }
            let first = match ring {
                0 => u64::MAX,
                _ => state[ring - 1].began.1,
            };
            let before_has_begun = ring == 0 || state[ring - 1].has_begun;
            let mut left = state[ring].waiting.values();
            let is_complete = !left.any(|waiting| waiting.revision <= first);
            let was_well = ring == 0
                || (before.reason.is_none()
                    && before.revision >= first
                    && now.saturating_duration_since(state[ring - 1].began.0) >= hold);
            if !state[ring].has_begun && before_has_begun && is_complete && was_well {
                state[ring].has_begun = true;
                state[ring].began = (now, self.rings[ring].log.revision());
                self.rings[ring].log.wake();
            }
            state[ring].reason = before.reason;
            if ring == 0 {
                self.release_held(&state);
            }
        }
    }

    /// Gives a change to a ring, and lets it wait for the next one.
    fn apply(&self, state: &mut [State], ring: usize, project: &ProjectId, change: Change) {
        let log = &self.rings[ring].log;
        match &change {
            Change::Loaded(site, current) => log.loaded(site, *current),
            Change::Removed => log.removed(std::slice::from_ref(project)),
        }
        let Some(changed) = log.state(project) else {
            return;
        };
        if ring > 0
            && let Some(current) = changed.1.current
        {
            let served = state[ring].served.entry(project.clone()).or_default();
            served.retain(|release| *release != current.release);
            served.push_front(current.release);
            served.truncate(SERVED_MAX);
        }
        if ring + 1 < self.rings.len() {
            self.offer(state, ring + 1, project, &changed);
        }
    }

    /// Lets a change wait for a ring, or gives it to the ring at once (R2).
    fn offer(
        &self,
        state: &mut [State],
        ring: usize,
        project: &ProjectId,
        (revision, changed): &(u64, ProjectState),
    ) {
        let has = self.rings[ring].log.state(project);
        let has = has.map(|(_, state)| state);
        if has.as_ref() == Some(changed) {
            state[ring].waiting.remove(project);
            return;
        }
        let change = match &changed.site {
            Some(site) => Change::Loaded(Arc::clone(site), changed.current),
            None => Change::Removed,
        };
        let was_served = changed.current.is_some_and(|current| {
            let served = state[ring].served.get(project);
            served.is_some_and(|served| served.contains(&current.release))
                && has.is_some_and(|has| has.site == changed.site)
        });
        let is_hidden = changed
            .site
            .as_ref()
            .is_none_or(|site| site.visibility == Visibility::Private);
        if was_served || is_hidden {
            state[ring].waiting.remove(project);
            self.apply(state, ring, project, change);
            return;
        }
        let revision = *revision;
        match state[ring].waiting.get_mut(project) {
            Some(waiting) => waiting.next = Some((revision, change)),
            None => {
                let waiting = Waiting {
                    since: Instant::now(),
                    revision,
                    change,
                    next: None,
                };
                state[ring].waiting.insert(project.clone(), waiting);
            }
        }
    }

    /// Takes what the node serves.
    fn take(&self, project: &ProjectId, change: Change) {
        let mut state = self.state();
        if !self.is_frozen() && !state[0].waiting.contains_key(project) {
            self.apply(&mut state, 0, project, change);
            return;
        }
        // The newest state alone goes on later.
        let change = match (change, state[0].waiting.remove(project)) {
            // If the pointer cannot be read now, the last known pointer is used.
            (Change::Loaded(site, None), Some(before)) => match before.change {
                Change::Loaded(_, current) => Change::Loaded(site, current),
                Change::Removed => Change::Loaded(site, None),
            },
            (change, _) => change,
        };
        let waiting = Waiting {
            since: Instant::now(),
            revision: 0,
            change,
            next: None,
        };
        state[0].waiting.insert(project.clone(), waiting);
    }

    fn state(&self) -> MutexGuard<'_, Vec<State>> {
        // A panic leaves at most a change that waits longer.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Rings {
    fn loaded(&self, site: &Arc<Site>, current: Option<Promotion>) {
        self.take(&site.project, Change::Loaded(Arc::clone(site), current));
    }

    fn removed(&self, projects: &[ProjectId]) {
        for project in projects {
            self.take(project, Change::Removed);
        }
    }

    fn followed(&self, id: &str, revision: u64) {
        let held = Some((id.to_owned(), revision));
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
        self.release_held(&self.state());
    }
}

#[cfg(test)]
mod tests {
    use super::super::changes::tests::{log, promotion, site};
    use super::*;

    const HOLD: Duration = Duration::from_millis(20);

    struct Fleet {
        rings: Rings,
        _directory: tempfile::TempDir,
    }

    fn fleet(count: usize) -> Fleet {
        let directory = tempfile::tempdir().unwrap();
        let logs = (0..count).map(|_| log()).collect();
        let rings = Rings::new(logs, HOLD, directory.path().join("frozen"));
        Fleet {
            rings,
            _directory: directory,
        }
    }

    fn well(_ring: u8) -> Health {
        Health {
            revision: u64::MAX,
            since: Some(Instant::now()),
            reason: None,
        }
    }

    fn ill(_ring: u8) -> Health {
        Health {
            reason: Some("it is ill".to_owned()),
            ..well(0)
        }
    }

    fn generation(fleet: &Fleet, ring: u8) -> Option<u64> {
        let (_, state) = fleet.rings.log(ring).state(&site("one", "a").project)?;
        Some(state.current?.generation)
    }

    /// Lets the hold pass.
    fn pass(fleet: &Fleet, health: impl Fn(u8) -> Health) {
        let since = Instant::now();
        while since.elapsed() < HOLD {
            std::thread::yield_now();
        }
        fleet.rings.step(health);
    }

    #[test]
    fn a_change_reaches_the_next_ring_after_the_hold_and_never_from_an_ill_ring() {
        let fleet = fleet(3);
        fleet.rings.loaded(&site("one", "a"), promotion(1));
        assert_eq!(generation(&fleet, 0), Some(1));
        fleet.rings.step(well);
        assert_eq!(generation(&fleet, 1), None);
        assert!(!fleet.rings.waiting(1).0, "a ring begins after the hold");
        pass(&fleet, well);
        assert_eq!(
            (generation(&fleet, 1), generation(&fleet, 2)),
            (Some(1), None)
        );
        assert!(fleet.rings.waiting(1).0 && !fleet.rings.waiting(2).0);
        pass(&fleet, well);
        assert_eq!(generation(&fleet, 2), Some(1));
        // A bad release stays in ring 0, whatever time passes.
        fleet.rings.loaded(&site("one", "a"), promotion(2));
        pass(&fleet, ill);
        pass(&fleet, ill);
        assert_eq!(
            (generation(&fleet, 0), generation(&fleet, 1)),
            (Some(2), Some(1))
        );
        assert_eq!(fleet.rings.waiting(1).2.as_deref(), Some("it is ill"));
        // The one after it replaces it, and waits for the whole hold.
        fleet.rings.loaded(&site("one", "a"), promotion(3));
        fleet.rings.step(ill);
        fleet.rings.step(well);
        assert_eq!(generation(&fleet, 1), Some(1));
        pass(&fleet, well);
        assert_eq!(generation(&fleet, 1), Some(3));
    }

    #[test]
    fn a_project_that_changes_all_the_time_reaches_every_ring() {
        let fleet = fleet(2);
        fleet.rings.loaded(&site("one", "a"), promotion(1));
        for next in 2..6 {
            fleet.rings.loaded(&site("one", "a"), promotion(next));
            pass(&fleet, well);
        }
        assert!(generation(&fleet, 1).unwrap() >= 4);
    }

    #[test]
    fn the_revision_of_the_store_counts_when_the_first_ring_has_its_changes() {
        let fleet = fleet(1);
        let revision = || Some(fleet.rings.log(0).store().get()?.revision);
        fleet.rings.begins("a/1", 1);
        fleet.rings.loaded(&site("one", "a"), promotion(1));
        assert_eq!(revision(), Some(0));
        fleet.rings.followed("a/1", 1);
        assert_eq!(revision(), Some(1));
        std::fs::write(&fleet.rings.frozen, "").unwrap();
        fleet.rings.begins("a/1", 2);
        fleet.rings.loaded(&site("one", "a"), promotion(2));
        fleet.rings.followed("a/1", 2);
        fleet.rings.step(well);
        assert_eq!((generation(&fleet, 0), revision()), (Some(1), Some(1)));
        std::fs::remove_file(&fleet.rings.frozen).unwrap();
        fleet.rings.step(well);
        assert_eq!((generation(&fleet, 0), revision()), (Some(2), Some(2)));
    }

    #[test]
    fn rollbacks_and_removals_do_not_wait_and_nothing_goes_while_frozen() {
        let fleet = fleet(2);
        fleet.rings.loaded(&site("one", "a"), promotion(1));
        pass(&fleet, well);
        fleet.rings.loaded(&site("one", "a"), promotion(2));
        let back = promotion(1).map(|first| Promotion {
            generation: 3,
            ..first
        });
        fleet.rings.loaded(&site("one", "a"), back);
        assert_eq!(generation(&fleet, 1), Some(3));
        std::fs::write(&fleet.rings.frozen, "").unwrap();
        fleet.rings.step(well);
        fleet.rings.loaded(&site("one", "a"), promotion(4));
        fleet.rings.loaded(&site("one", "a"), None);
        pass(&fleet, well);
        assert_eq!(generation(&fleet, 0), Some(3));
        std::fs::remove_file(&fleet.rings.frozen).unwrap();
        fleet.rings.step(well);
        assert_eq!(generation(&fleet, 0), Some(4));
        fleet.rings.removed(&[site("one", "a").project.clone()]);
        assert_eq!(generation(&fleet, 1), None);
    }
}

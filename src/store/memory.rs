//! A store in memory: the model that the others are compared with.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;

use super::{Fence, Pointer, PromoteError, Promotion, ReadError, Retention, Swept, next_pointer};
use crate::clock::{Clock, unix_seconds};
use crate::digest::Digest;
use crate::release::{Inventory, Item, Release, ReleaseId};
use crate::site::ProjectId;

/// A store that ends with its process.
#[derive(Debug)]
pub struct Memory {
    clock: Clock,
    retention: Retention,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// With the second each was last put or promoted.
    releases: HashMap<ReleaseId, (Inventory, u64)>,
    content: HashMap<Digest, (Bytes, u64)>,
    pointers: HashMap<ProjectId, Pointer>,
}

// === impl Memory ===

impl Memory {
    /// Makes an empty store.
    #[must_use]
    pub fn new(retention: Retention, clock: Clock) -> Self {
        Self {
            clock,
            retention,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change below is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, release: &Release) -> ReleaseId {
        let now = self.clock.unix_seconds();
        let mut state = self.state();
        for (path, file) in release.files() {
            if let Some(item) = release.inventory().get(path.as_str()) {
                let bytes = file.bytes.clone();
                state.content.entry(item.digest).or_insert((bytes, now)).1 = now;
            }
        }
        let inventory = release.inventory().clone();
        state.releases.insert(release.id(), (inventory, now));
        release.id()
    }

    pub(super) fn promote(
        &self,
        project: &ProjectId,
        release: ReleaseId,
        fence: Fence,
    ) -> Result<Pointer, PromoteError> {
        let now = self.clock.unix_seconds();
        let mut state = self.state();
        let before = state.pointers.get(project).cloned();
        let offered = Promotion {
            release,
            generation: fence.generation,
            epoch: fence.epoch,
            promoted_at: now,
        };
        let Some(after) = next_pointer(before.clone(), offered, self.retention.releases)? else {
            return before.ok_or(PromoteError::UnknownRelease(release));
        };
        state.touch(release, now)?;
        state.pointers.insert(project.clone(), after.clone());
        Ok(after)
    }

    pub(super) fn current(&self, project: &ProjectId) -> Option<Pointer> {
        self.state().pointers.get(project).cloned()
    }

    pub(super) fn inventory(&self, release: ReleaseId) -> Result<Inventory, ReadError> {
        let state = self.state();
        let (inventory, _) = state
            .releases
            .get(&release)
            .ok_or(ReadError::UnknownRelease(release))?;
        Ok(inventory.clone())
    }

    pub(super) fn read(&self, item: &Item) -> Result<Bytes, ReadError> {
        let state = self.state();
        let (bytes, _) = state
            .content
            .get(&item.digest)
            .ok_or(ReadError::UnknownContent(item.digest))?;
        if bytes.len() as u64 == item.length {
            Ok(bytes.clone())
        } else {
            Err(ReadError::Damaged {
                what: format!("content {}", item.digest),
                why: format!("it has {} bytes, not {}", bytes.len(), item.length),
            })
        }
    }

    pub(super) fn pointers(&self) -> Vec<ProjectId> {
        self.state().pointers.keys().cloned().collect()
    }

    pub(super) fn forget(&self, project: &ProjectId) -> bool {
        self.state().pointers.remove(project).is_some()
    }

    pub(super) fn sweep(&self, now: SystemTime) -> Swept {
        let oldest = unix_seconds(now).saturating_sub(self.retention.unnamed_seconds);
        let mut state = self.state();
        let named: HashSet<ReleaseId> = state
            .pointers
            .values()
            .flat_map(|pointer| pointer.promotions().map(|kept| kept.release))
            .collect();
        let before = state.releases.len();
        state
            .releases
            .retain(|id, (_, touched)| named.contains(id) || *touched >= oldest);
        let mut swept = Swept {
            releases: (before - state.releases.len()) as u64,
            ..Swept::default()
        };
        let kept: HashSet<Digest> = state
            .releases
            .values()
            .flat_map(|(inventory, _)| inventory.iter().map(|(_, item)| item.digest))
            .collect();
        state.content.retain(|digest, (bytes, touched)| {
            let keep = kept.contains(digest) || *touched >= oldest;
            if !keep {
                swept.files += 1;
                swept.bytes += bytes.len() as u64;
            }
            keep
        });
        swept
    }
}

// === impl State ===

impl State {
    fn touch(&mut self, release: ReleaseId, now: u64) -> Result<(), PromoteError> {
        let Self {
            releases, content, ..
        } = self;
        let (inventory, touched) = releases
            .get_mut(&release)
            .ok_or(PromoteError::UnknownRelease(release))?;
        *touched = now;
        for (_, item) in inventory.iter() {
            if let Some((_, touched)) = content.get_mut(&item.digest) {
                *touched = now;
            }
        }
        Ok(())
    }
}

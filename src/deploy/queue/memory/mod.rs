//! A queue in memory: for tests and previews, and the model the others are compared with.
//!
//! Plain maps under one lock. It is durable for as long as the process lives.

mod shelves;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::site::ProjectId;
use crate::store::Fence;

use super::super::record::Record;
use super::super::update::{Source, State, Update, WorkerId};
use super::super::{StatusId, Timestamp};
use super::{
    Claim, Depth, Enqueued, Held, Outcome, Policy, Progress, QueueError, Served, Swept, Trigger,
    after,
};
use shelves::Shelves;

/// A queue in memory.
#[derive(Debug, Default)]
pub struct Memory {
    shelves: Mutex<Shelves>,
}

// === impl Memory ===

impl Memory {
    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        // Every method leaves the shelves consistent before it can panic.
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enqueue(
        &self,
        trigger: &Trigger,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        self.shelves().enqueue(trigger, policy, now)
    }

    pub(super) fn record(&self, id: &StatusId) -> Result<Option<Record>, QueueError> {
        let shelves = self.shelves();
        let Some(entry) = shelves.updates.get(id) else {
            return Ok(None);
        };
        let mut logs = entry.logs.clone();
        let mut leader = None;
        if let State::Follows { leader: id } = &entry.update.state {
            let entry = shelves
                .updates
                .get(id)
                .ok_or_else(|| QueueError::Corrupt(format!("the leader {id} is missing")))?;
            logs.extend_from_slice(&entry.logs);
            leader = Some(Box::new(entry.update.clone()));
        }
        Ok(Some(Record {
            update: entry.update.clone(),
            leader,
            logs,
        }))
    }

    pub(super) fn claim(
        &self,
        worker: &WorkerId,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Claim>, QueueError> {
        let mut shelves = self.shelves();
        while let Some(id) = shelves.due(now) {
            if let Some(claim) = shelves.take(&id, worker, policy, now)? {
                return Ok(Some(claim));
            }
        }
        Ok(None)
    }

    pub(super) fn heartbeat(
        &self,
        claim: &Claim,
        progress: Progress,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let mut shelves = self.shelves();
        let Some(entry) = shelves.held(claim) else {
            return Ok(Held::Lost);
        };
        entry.update.renew(now.after(policy.lease))?;
        for text in &progress.lines {
            entry.log(now, text);
        }
        if let Some(commit) = progress.commit {
            entry.update.commit = Some(commit.bounded());
        }
        Ok(Held::Yes)
    }

    pub(super) fn lift(&self, claim: &Claim, at_least: u64) -> Result<Held, QueueError> {
        let mut shelves = self.shelves();
        let Some(entry) = shelves.held(claim) else {
            return Ok(Held::Lost);
        };
        entry.update.generation = entry.update.generation.max(at_least);
        let project = shelves.projects.entry(claim.project().clone()).or_default();
        project.generation = project.generation.max(at_least);
        Ok(Held::Yes)
    }

    pub(super) fn finish(
        &self,
        claim: &Claim,
        outcome: &Outcome,
        summary: &str,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let mut shelves = self.shelves();
        let waiting = shelves.queued(claim.project());
        let served = shelves
            .projects
            .get(claim.project())
            .and_then(|project| project.served);
        let Some(entry) = shelves.held(claim) else {
            return Ok(Held::Lost);
        };
        let update = &mut entry.update;
        after(update, outcome, summary, waiting.as_ref(), policy, now)?;
        if let Some(served) = served {
            served.tell(update);
        }
        let (state, commit) = (update.state.clone(), update.commit.clone());
        entry.log(now, summary);
        match state {
            State::Follows { leader } => shelves.lead(claim.id(), &leader)?,
            State::Success { .. } | State::Failure { .. } => shelves.end_followers(claim.id())?,
            _ => {}
        }
        if let (Outcome::Success { .. }, Some(commit)) = (outcome, commit)
            && let Some(project) = shelves.projects.get_mut(claim.project())
        {
            project.commit = Some(commit.sha);
        }
        Ok(Held::Yes)
    }

    pub(super) fn cancel(
        &self,
        project: &ProjectId,
        summary: &str,
        now: Timestamp,
    ) -> Result<bool, QueueError> {
        let mut shelves = self.shelves();
        let Some(id) = shelves.queued(project) else {
            return Ok(false);
        };
        let state = State::Failure {
            ended_at: now,
            dead: false,
        };
        let entry = shelves.entry(&id)?;
        entry.update.end(state, summary)?;
        entry.log(now, summary);
        shelves.end_followers(&id)?;
        Ok(true)
    }

    pub(super) fn served(
        &self,
        project: &ProjectId,
        fence: Fence,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        let mut shelves = self.shelves();
        let Some(shelf) = shelves.projects.get_mut(project) else {
            return Ok(());
        };
        let served = Served::then(shelf.served, fence, now);
        shelf.served = Some(served);
        let updates = shelves.updates.values_mut().map(|entry| &mut entry.update);
        updates
            .filter(|update| update.project == *project)
            .for_each(|update| served.tell(update));
        Ok(())
    }

    pub(super) fn unseen(&self) -> Result<Vec<ProjectId>, QueueError> {
        let shelves = self.shelves();
        let unseen: BTreeSet<_> = shelves
            .updates
            .values()
            .map(|entry| &entry.update)
            .filter(|update| {
                matches!(
                    update.state,
                    State::Success {
                        visible_at: None,
                        ..
                    }
                )
            })
            .map(|update| update.project.clone())
            .collect();
        Ok(unseen.into_iter().collect())
    }

    pub(super) fn dead(&self, limit: u32) -> Result<Vec<Update>, QueueError> {
        let is_dead = |update: &Update| matches!(update.state, State::Failure { dead: true, .. });
        Ok(self.latest(is_dead, limit))
    }

    pub(super) fn recent(
        &self,
        project: &ProjectId,
        limit: u32,
    ) -> Result<Vec<Update>, QueueError> {
        Ok(self.latest(|update| update.project == *project, limit))
    }

    fn latest(&self, wanted: impl Fn(&Update) -> bool, limit: u32) -> Vec<Update> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let shelves = self.shelves();
        let updates = shelves.updates.values().rev().map(|entry| &entry.update);
        updates
            .filter(|update| wanted(update))
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn revive(
        &self,
        project: &ProjectId,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Enqueued>, QueueError> {
        let mut shelves = self.shelves();
        let dead = shelves
            .updates
            .values()
            .rev()
            .map(|entry| &entry.update)
            .find(|update| {
                update.project == *project
                    && matches!(update.state, State::Failure { dead: true, .. })
            });
        let Some(dead) = dead else {
            return Ok(None);
        };
        let trigger = Trigger {
            project: project.clone(),
            owner: dead.owner.clone(),
            subdomain: dead.subdomain.clone(),
            source: Source::Internal,
            idempotency: None,
        };
        shelves.enqueue(&trigger, policy, now).map(Some)
    }

    pub(super) fn sweep(&self, policy: &Policy, now: Timestamp) -> Result<Swept, QueueError> {
        let mut shelves = self.shelves();
        let (updates, keys) = (shelves.updates.len(), shelves.keys.len());
        let oldest = now.before(policy.retention);
        shelves.updates.retain(|_, entry| {
            entry
                .update
                .ended_at()
                .is_none_or(|ended_at| ended_at >= oldest)
        });
        shelves.keys.retain(|_, key| key.kept_until > now);
        Ok(Swept {
            updates: (updates - shelves.updates.len()) as u64,
            idempotency_keys: (keys - shelves.keys.len()) as u64,
        })
    }

    pub(super) fn generation(&self, project: &ProjectId) -> Result<u64, QueueError> {
        let shelves = self.shelves();
        Ok(shelves
            .projects
            .get(project)
            .map_or(0, |project| project.generation))
    }

    pub(super) fn depth(&self) -> Result<Depth, QueueError> {
        let mut depth = Depth::default();
        for entry in self.shelves().updates.values() {
            match entry.update.state {
                State::Queued { .. } => depth.queued += 1,
                State::InProgress(_) => depth.in_progress += 1,
                State::Failure { dead: true, .. } => depth.dead += 1,
                _ => {}
            }
        }
        Ok(depth)
    }
}

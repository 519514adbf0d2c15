//! The model of the queue: plain maps in memory, searched from end to end.
//!
//! It is slow, but so small that a reader can check it. The random histories compare every backend
//! with it. It has the methods of [`Queue`](super::Queue) and uses the same moves between states,
//! but finds and orders the updates in its own way.

mod tables;

use std::cell::{RefCell, RefMut};
use std::collections::BTreeSet;

use super::super::super::update::State;
use super::super::{Served, finish_attempt};
use super::*;
use tables::Tables;

/// The model of the queue.
#[derive(Debug)]
pub(super) struct Model {
    policy: Policy,
    tables: RefCell<Tables>,
}

// === impl Model ===

impl Model {
    pub(super) fn new(policy: Policy) -> Self {
        Self {
            policy,
            tables: RefCell::default(),
        }
    }

    fn tables(&self) -> RefMut<'_, Tables> {
        self.tables.borrow_mut()
    }

    pub(super) fn enqueue(
        &self,
        trigger: &Trigger,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        self.tables().enqueue(trigger, &self.policy, now)
    }

    pub(super) fn record(&self, id: &StatusId) -> Result<Option<Record>, QueueError> {
        let tables = self.tables();
        let Some(entry) = tables.updates.get(id) else {
            return Ok(None);
        };
        let mut logs = entry.logs.clone();
        let mut newer = None;
        if let State::Superseded { by: id } = &entry.update.state {
            let entry = tables
                .updates
                .get(id)
                .ok_or_else(|| QueueError::Corrupt(format!("the update {id} is missing")))?;
            logs.extend_from_slice(&entry.logs);
            newer = Some(Box::new(entry.update.clone()));
        }
        Ok(Some(Record {
            update: entry.update.clone(),
            newer,
            logs,
        }))
    }

    pub(super) fn claim(
        &self,
        worker: &WorkerId,
        owners: Owners,
        now: Timestamp,
    ) -> Result<Option<Claim>, QueueError> {
        let mut tables = self.tables();
        while let Some(id) = tables.due(owners, now) {
            if let Some(claim) = tables.take(&id, worker, &self.policy, now)? {
                return Ok(Some(claim));
            }
        }
        Ok(None)
    }

    pub(super) fn correct_times(&self, now: Timestamp) -> Result<usize, QueueError> {
        let mut tables = self.tables();
        let updates = tables.updates.values_mut().map(|entry| &mut entry.update);
        Ok(updates
            .filter_map(|update| self.policy.correct(update, now).then_some(()))
            .count())
    }

    pub(super) fn end_leases(
        &self,
        has_ended: impl Fn(&WorkerId) -> bool,
        now: Timestamp,
    ) -> Result<usize, QueueError> {
        let mut ended = 0;
        for entry in self.tables().updates.values_mut() {
            if let State::InProgress(holder) = &mut entry.update.state
                && has_ended(&holder.worker)
            {
                holder.lease_until = now;
                ended += 1;
            }
        }
        Ok(ended)
    }

    pub(super) fn heartbeat(
        &self,
        claim: &Claim,
        progress: Progress,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let mut tables = self.tables();
        let Some(entry) = tables.held(claim) else {
            return Ok(Held::Lost);
        };
        entry.update.renew(now.after(self.policy.lease))?;
        for text in &progress.lines {
            entry.log(now, text);
        }
        if let Some(commit) = progress.commit {
            entry.update.commit = Some(commit.bounded());
        }
        Ok(Held::Yes)
    }

    pub(super) fn raise_generation(
        &self,
        claim: &mut Claim,
        at_least: u64,
    ) -> Result<Held, QueueError> {
        claim.update.generation = claim.update.generation.max(at_least);
        let mut tables = self.tables();
        let Some(entry) = tables.held(claim) else {
            return Ok(Held::Lost);
        };
        entry.update.generation = entry.update.generation.max(at_least);
        let row = tables.projects.entry(claim.project().clone()).or_default();
        row.generation = row.generation.max(at_least);
        Ok(Held::Yes)
    }

    pub(super) fn finish(
        &self,
        claim: &Claim,
        outcome: &Outcome,
        summary: &str,
        now: Timestamp,
    ) -> Result<Held, QueueError> {
        let mut tables = self.tables();
        let waiting = tables.queued(claim.project());
        let served = tables
            .projects
            .get(claim.project())
            .and_then(|project| project.served);
        if tables.has_ended(claim) {
            return Ok(Held::Yes);
        }
        let Some(entry) = tables.held(claim) else {
            return Ok(Held::Lost);
        };
        let update = &mut entry.update;
        finish_attempt(
            update,
            outcome,
            summary,
            waiting.as_ref(),
            &self.policy,
            now,
        )?;
        update.token.clone_from(&claim.update.token);
        if let Some(served) = served {
            served.mark_visible(update);
        }
        let (state, commit) = (update.state.clone(), update.commit.clone());
        entry.log(now, summary);
        match state {
            State::Superseded { by } => tables.forward(claim.id(), &by)?,
            State::Success { .. } | State::Failure { .. } => {
                tables.end_superseded(claim.id())?;
                tables.remove_old_logs(claim.project(), &self.policy);
            }
            _ => {}
        }
        if let (Outcome::Success { .. }, Some(commit)) = (outcome, commit)
            && let Some(project) = tables.projects.get_mut(claim.project())
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
        let mut tables = self.tables();
        let Some(id) = tables.queued(project) else {
            return Ok(false);
        };
        tables.cancel(&id, summary, now)?;
        Ok(true)
    }

    pub(super) fn record_served(
        &self,
        project: &ProjectId,
        fence: Fence,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        let mut tables = self.tables();
        let tables = &mut *tables;
        let Some(row) = tables.projects.get_mut(project) else {
            return Ok(());
        };
        let served = Served::advance(row.served, fence, now);
        row.served = Some(served);
        let updates = tables.updates.values_mut().map(|entry| &mut entry.update);
        updates
            .filter(|update| update.project == *project)
            .for_each(|update| served.mark_visible(update));
        Ok(())
    }

    pub(super) fn not_yet_visible(&self) -> Result<Vec<ProjectId>, QueueError> {
        let tables = self.tables();
        let not_yet_visible: BTreeSet<_> = tables
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
        Ok(not_yet_visible.into_iter().collect())
    }

    pub(super) fn dead_letters(&self, limit: u32) -> Result<Vec<Update>, QueueError> {
        let is_dead = |update: &Update| {
            matches!(
                update.state,
                State::Failure {
                    dead_letter: true,
                    ..
                }
            )
        };
        Ok(self.latest(is_dead, limit))
    }

    pub(super) fn recent(
        &self,
        project: &ProjectId,
        limit: u32,
    ) -> Result<Vec<Update>, QueueError> {
        Ok(self.latest(|update| update.project == *project, limit))
    }

    fn latest(&self, requested: impl Fn(&Update) -> bool, limit: u32) -> Vec<Update> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let tables = self.tables();
        let updates = tables.updates.values().rev().map(|entry| &entry.update);
        updates
            .filter(|update| requested(update))
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn requeue(
        &self,
        project: &ProjectId,
        now: Timestamp,
    ) -> Result<Option<Enqueued>, QueueError> {
        let mut tables = self.tables();
        let dead_letter = tables
            .updates
            .values()
            .rev()
            .map(|entry| &entry.update)
            .find(|update| {
                update.project == *project
                    && matches!(
                        update.state,
                        State::Failure {
                            dead_letter: true,
                            ..
                        }
                    )
            });
        let Some(dead_letter) = dead_letter else {
            return Ok(None);
        };
        let trigger = Trigger {
            project: project.clone(),
            owner: dead_letter.owner.clone(),
            subdomain: dead_letter.subdomain.clone(),
            source: Source::Internal,
            idempotency: None,
        };
        tables.enqueue(&trigger, &self.policy, now).map(Some)
    }

    pub(super) fn sweep(&self, now: Timestamp) -> Result<Swept, QueueError> {
        let mut tables = self.tables();
        let (updates, keys) = (tables.updates.len(), tables.keys.len());
        let oldest = now.before(self.policy.retention);
        tables.updates.retain(|_, entry| {
            entry
                .update
                .ended_at()
                .is_none_or(|ended_at| ended_at >= oldest)
        });
        tables.keys.retain(|_, key| key.kept_until > now);
        Ok(Swept {
            updates: (updates - tables.updates.len()) as u64,
            idempotency_keys: (keys - tables.keys.len()) as u64,
        })
    }

    pub(super) fn generation(&self, project: &ProjectId) -> Result<u64, QueueError> {
        let tables = self.tables();
        Ok(tables
            .projects
            .get(project)
            .map_or(0, |project| project.generation))
    }

    pub(super) fn depth(&self) -> Result<Depth, QueueError> {
        let mut depth = Depth::default();
        for entry in self.tables().updates.values() {
            match entry.update.state {
                State::Queued { .. } => depth.queued += 1,
                State::InProgress(_) => depth.in_progress += 1,
                State::Failure {
                    dead_letter: true, ..
                } => depth.dead_letters += 1,
                _ => {}
            }
        }
        Ok(depth)
    }
}

//! The tables of the model, and how rows are found and moved.

use std::collections::{BTreeMap, HashMap};

use super::super::super::super::update::Holder;
use super::super::super::{claim_token, end_as_dead_letter, log_line};
use super::*;

#[derive(Debug, Default)]
pub(super) struct Tables {
    /// By creation, as ids sort.
    pub(super) updates: BTreeMap<StatusId, Entry>,
    pub(super) projects: HashMap<ProjectId, Project>,
    pub(super) keys: HashMap<(Box<str>, Digest), Key>,
    /// The round-robin position of each owner; the lowest is next. Owners without updates that
    /// wait or run may still be here.
    positions: HashMap<Box<str>, u64>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) update: Update,
    pub(super) logs: Vec<Box<str>>,
}

#[derive(Debug, Default)]
pub(super) struct Project {
    pub(super) generation: u64,
    pub(super) epoch: u64,
    pub(super) commit: Option<Box<str>>,
    pub(super) served: Option<Served>,
}

#[derive(Debug)]
pub(super) struct Key {
    pub(super) project: ProjectId,
    pub(super) id: StatusId,
    pub(super) kept_until: Timestamp,
}

// === impl Tables ===

impl Tables {
    pub(super) fn enqueue(
        &mut self,
        trigger: &Trigger,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Enqueued, QueueError> {
        let key = trigger
            .idempotency
            .map(|digest| (trigger.owner.clone(), digest));
        if let Some(known) = key.as_ref().and_then(|key| self.keys.get(key))
            && known.kept_until > now
        {
            return if known.project == trigger.project {
                Ok(Enqueued {
                    id: known.id.clone(),
                    coalesced: true,
                })
            } else {
                Err(QueueError::KeyReused)
            };
        }
        let waiting = self.queued(&trigger.project);
        let enqueued = match waiting.filter(|id| self.updates[id].update.owner == trigger.owner) {
            Some(id) => {
                self.entry(&id)?.update.expedite(now);
                Enqueued {
                    id,
                    coalesced: true,
                }
            }
            None => Enqueued {
                id: self.insert(trigger, policy, now)?,
                coalesced: false,
            },
        };
        self.clear_dead_letters(&trigger.project);
        if let Some(key) = key {
            let remembered = Key {
                project: trigger.project.clone(),
                id: enqueued.id.clone(),
                kept_until: now.after(policy.idempotency),
            };
            self.keys.insert(key, remembered);
        }
        Ok(enqueued)
    }

    pub(super) fn insert(
        &mut self,
        trigger: &Trigger,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<StatusId, QueueError> {
        let is_queued = |entry: &&Entry| matches!(entry.update.state, State::Queued { .. });
        if self.updates.values().filter(is_queued).count() as u64 >= policy.waiting_max {
            return Err(QueueError::Full {
                limit: policy.waiting_max,
            });
        }
        self.end_former(trigger, now)?;
        let id = StatusId::generate(now).map_err(QueueError::unavailable)?;
        self.join_line(&trigger.owner);
        let project = self.projects.entry(trigger.project.clone()).or_default();
        project.generation += 1;
        let update = Update::queued(id.clone(), trigger, project.generation, now);
        let logs = Vec::new();
        self.updates.insert(id.clone(), Entry { update, logs });
        Ok(id)
    }

    /// Ends the updates of a project that wait or run for a former owner.
    fn end_former(&mut self, trigger: &Trigger, now: Timestamp) -> Result<(), QueueError> {
        let live = self.updates.values().map(|entry| &entry.update);
        let live = live.filter(|update| {
            update.project == trigger.project
                && update.owner != trigger.owner
                && matches!(update.state, State::Queued { .. } | State::InProgress(_))
        });
        let former: Vec<_> = live.map(|update| update.id.clone()).collect();
        for id in former {
            self.cancel(&id, OWNER_CHANGED, now)?;
        }
        Ok(())
    }

    pub(super) fn cancel(
        &mut self,
        id: &StatusId,
        summary: &str,
        now: Timestamp,
    ) -> Result<(), QueueError> {
        let state = State::Failure {
            ended_at: now,
            dead_letter: false,
        };
        let entry = self.entry(id)?;
        entry.update.end(state, summary)?;
        entry.log(now, summary);
        self.end_superseded(id)
    }

    /// Puts an owner at the end of the line, unless an update of theirs waits or runs already.
    fn join_line(&mut self, owner: &str) {
        let is_live = |entry: &&Entry| {
            let state = &entry.update.state;
            matches!(state, State::Queued { .. } | State::InProgress(_))
        };
        let mut live = self.updates.values().filter(is_live);
        if !live.any(|entry| &*entry.update.owner == owner) {
            self.send_to_the_end(owner);
        }
    }

    fn send_to_the_end(&mut self, owner: &str) {
        let last = self.positions.values().max().copied().unwrap_or(0);
        self.positions.insert(owner.into(), last + 1);
    }

    /// A new trigger of the project means that the failure of its last update was noticed.
    pub(super) fn clear_dead_letters(&mut self, project: &ProjectId) {
        for entry in self.updates.values_mut() {
            if let State::Failure { dead_letter, .. } = &mut entry.update.state
                && entry.update.project == *project
            {
                *dead_letter = false;
            }
        }
    }

    pub(super) fn entry(&mut self, id: &StatusId) -> Result<&mut Entry, QueueError> {
        self.updates
            .get_mut(id)
            .ok_or_else(|| QueueError::Corrupt(format!("the update {id} is missing")))
    }

    pub(super) fn held(&mut self, claim: &Claim) -> Option<&mut Entry> {
        let entry = self.updates.get_mut(claim.id())?;
        let is_held = claim.is_of(&entry.update) && entry.update.is_held_by(claim.epoch);
        is_held.then_some(entry)
    }

    pub(super) fn has_ended(&self, claim: &Claim) -> bool {
        let entry = self.updates.get(claim.id());
        entry.is_some_and(|entry| {
            claim.is_of(&entry.update) && !entry.update.is_held_by(claim.epoch)
        })
    }

    pub(super) fn queued(&self, project: &ProjectId) -> Option<StatusId> {
        let found = self
            .updates
            .values()
            .map(|entry| &entry.update)
            .find(|update| {
                update.project == *project && matches!(update.state, State::Queued { .. })
            });
        found.map(|update| update.id.clone())
    }

    pub(super) fn running(&self, project: &ProjectId) -> Option<&Update> {
        let mut updates = self.updates.values().map(|entry| &entry.update);
        updates.find(|update| {
            update.project == *project && matches!(update.state, State::InProgress(_))
        })
    }

    /// Returns the update that has been due longest, of the first owner with a due update: one
    /// that is queued and need not wait for a running build, or one whose lease has ended.
    ///
    /// Owners with a running update come after the others, or are left out.
    pub(super) fn due(&self, owners: Owners, now: Timestamp) -> Option<StatusId> {
        let due_at = |update: &Update| match &update.state {
            State::Queued { ready_at } => {
                let blocked = self.running(&update.project).is_some_and(|running| {
                    matches!(&running.state, State::InProgress(holder) if holder.lease_until > now)
                });
                (!blocked).then_some(*ready_at)
            }
            State::InProgress(holder) => Some(holder.lease_until),
            _ => None,
        };
        let busy: BTreeSet<&str> = self
            .updates
            .values()
            .filter(|entry| match &entry.update.state {
                State::InProgress(holder) => holder.lease_until > now,
                _ => false,
            })
            .map(|entry| &*entry.update.owner)
            .collect();
        let updates = self.updates.values().map(|entry| &entry.update);
        let due = updates.filter_map(|update| {
            let at = due_at(update).filter(|at| *at <= now)?;
            let is_busy = busy.contains(&*update.owner);
            (owners == Owners::All || !is_busy).then_some((
                is_busy,
                self.positions.get(&update.owner),
                at,
                &update.id,
            ))
        });
        due.min().map(|(_, _, _, id)| id.clone())
    }

    /// Claims an update that is due. Returns `None` when it was superseded or ended instead.
    pub(super) fn take(
        &mut self,
        id: &StatusId,
        worker: &WorkerId,
        policy: &Policy,
        now: Timestamp,
    ) -> Result<Option<Claim>, QueueError> {
        let update = &self.entry(id)?.update;
        let project = update.project.clone();
        if let Some(running) = self.running(&project) {
            let running = running.id.clone();
            if let Some(newer) = self.queued(&project) {
                let entry = self.entry(&running)?;
                entry.update.mark_superseded(&newer)?;
                let summary = entry.update.summary.clone();
                entry.log(now, &summary);
                self.forward(&running, &newer)?;
                return Ok(None);
            }
            let entry = self.entry(id)?;
            if entry.update.attempts >= policy.attempts_max {
                end_as_dead_letter(&mut entry.update, now)?;
                let summary = entry.update.summary.clone();
                entry.log(now, &summary);
                self.end_superseded(id)?;
                self.remove_old_logs(&project, policy);
                return Ok(None);
            }
        }
        let row = self.projects.entry(project).or_default();
        row.epoch += 1;
        let (epoch, commit_before) = (row.epoch, row.commit.clone());
        let owner = self.entry(id)?.update.owner.clone();
        self.send_to_the_end(&owner);
        let entry = self.entry(id)?;
        let holder = Holder {
            worker: worker.clone(),
            epoch,
            lease_until: now.after(policy.lease),
        };
        entry.update.claim(holder, claim_token()?)?;
        Ok(Some(Claim {
            update: entry.update.clone(),
            epoch,
            commit_before,
        }))
    }

    /// Marks the updates that `id` had superseded as superseded by `newer`, as `id` itself is.
    pub(super) fn forward(&mut self, id: &StatusId, newer: &StatusId) -> Result<(), QueueError> {
        for older in self.superseded(id) {
            self.entry(&older)?.update.mark_superseded(newer)?;
        }
        Ok(())
    }

    pub(super) fn superseded(&self, id: &StatusId) -> Vec<StatusId> {
        let updates = self.updates.values().map(|entry| &entry.update);
        let superseded =
            updates.filter(|update| matches!(&update.state, State::Superseded { by } if by == id));
        superseded.map(|update| update.id.clone()).collect()
    }

    /// Removes the logs of the project's ended updates, except for the newest ones.
    pub(super) fn remove_old_logs(&mut self, project: &ProjectId, policy: &Policy) {
        let ended =
            self.updates.values_mut().rev().filter(|entry| {
                entry.update.project == *project && entry.update.ended_at().is_some()
            });
        let newest = usize::try_from(policy.logs_max).unwrap_or(usize::MAX);
        ended.skip(newest).for_each(|entry| entry.logs.clear());
    }

    pub(super) fn end_superseded(&mut self, id: &StatusId) -> Result<(), QueueError> {
        let newer = self.entry(id)?.update.clone();
        for older in self.superseded(id) {
            self.entry(&older)?.update.end_as(&newer)?;
        }
        Ok(())
    }
}

// === impl Entry ===

impl Entry {
    pub(super) fn log(&mut self, now: Timestamp, text: &str) {
        if self.logs.len() < LOG_LINES_MAX {
            self.logs.push(log_line(now, text));
        }
    }
}

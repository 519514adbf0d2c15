//! The operations of the writer: each finds rows, moves updates, and saves them.
//!
//! Every function here runs in a transaction that is undone if the function fails. The moves in
//! `update` and the decisions in `policy` determine the next state of an update; this module only
//! applies them.

use super::super::super::update::{Holder, Source, State, Update, WorkerId};
use super::super::super::{StatusId, Timestamp};
use super::super::{
    Claim, Enqueued, Held, LOG_LINES_MAX, OWNER_CHANGED, Outcome, Owners, Policy, Progress,
    QueueError, Swept, Trigger, claim_token, end_as_dead_letter, finish_attempt, log_line,
};
use super::Value::{self, Bytes, Integer, Text};
use super::row::{find, find_locked, insert, list_locked, save};
use super::{Cells, Tables, visible};
use crate::digest::Digest;
use crate::site::ProjectId;

/// The most records removed in one transaction, so that triggers do not wait long for a sweep.
const SWEEP_ROWS_MAX: i64 = 500;

/// The most logs removed when an update has ended.
const LOGS_REMOVED_MAX: i64 = 100;

/// Counts the generations of a project.
const COUNT_UP: &str = "INSERT INTO projects (project, generation) VALUES (?1, 1) \
     ON CONFLICT (project) DO UPDATE SET generation = projects.generation + 1 \
     RETURNING generation";

pub(in super::super) fn enqueue(
    tables: &dyn Tables,
    trigger: &Trigger,
    policy: &Policy,
    now: Timestamp,
) -> Result<Enqueued, QueueError> {
    if let Some(digest) = &trigger.idempotency
        && let Some((project, id)) = remembered(tables, &trigger.owner, digest, now)?
    {
        return if project == trigger.project.as_str() {
            Ok(Enqueued {
                id: StatusId::parse(&id).map_err(|_invalid| {
                    QueueError::Corrupt(format!("the id {id:?} of an idempotency key"))
                })?,
                coalesced: true,
            })
        } else {
            Err(QueueError::KeyReused)
        };
    }
    let waiting = queued(tables, &trigger.project)?;
    let enqueued = match waiting.filter(|waiting| waiting.owner == trigger.owner) {
        Some(mut update) => {
            let before = update.state.clone();
            update.expedite(now);
            if update.state != before {
                save(tables, &update)?;
            }
            Enqueued {
                id: update.id,
                coalesced: true,
            }
        }
        None => Enqueued {
            id: add(tables, trigger, policy, now)?,
            coalesced: false,
        },
    };
    // A new trigger of the project means that the failure of its last update was noticed.
    const CLEAR: &str = "UPDATE updates SET dead_letter = 0 WHERE project = ?1 AND dead_letter = 1";
    tables.execute(CLEAR, &[Text(trigger.project.as_str())])?;
    if let Some(digest) = &trigger.idempotency {
        const REMEMBER: &str = "INSERT INTO idempotency_keys \
             (owner, digest, project, id, kept_until) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (owner, digest) DO UPDATE SET project = excluded.project, \
             id = excluded.id, kept_until = excluded.kept_until";
        let values = [
            Text(&trigger.owner),
            Bytes(digest.as_bytes()),
            Text(trigger.project.as_str()),
            Text(enqueued.id.as_str()),
            now.after(policy.idempotency).into(),
        ];
        tables.execute(REMEMBER, &values)?;
    }
    Ok(enqueued)
}

fn remembered(
    tables: &dyn Tables,
    owner: &str,
    digest: &Digest,
    now: Timestamp,
) -> Result<Option<(String, String)>, QueueError> {
    const SQL: &str = "SELECT project, id FROM idempotency_keys \
         WHERE owner = ?1 AND digest = ?2 AND kept_until > ?3";
    let values = [Text(owner), Bytes(digest.as_bytes()), now.into()];
    let found = tables.rows(SQL, &values)?;
    let pair = |mut row: Cells| Ok((row.text()?, row.text()?));
    found.into_iter().next().map(pair).transpose()
}

fn add(
    tables: &dyn Tables,
    trigger: &Trigger,
    policy: &Policy,
    now: Timestamp,
) -> Result<StatusId, QueueError> {
    const COUNT: &str = "SELECT updates FROM totals WHERE state = 'queued'";
    // Nothing may be written before this: a batch goes on after this error.
    if number(tables, COUNT, &[])? >= policy.waiting_max {
        return Err(QueueError::Full {
            limit: policy.waiting_max,
        });
    }
    end_former(tables, trigger, now)?;
    let generation = number(tables, COUNT_UP, &[Text(trigger.project.as_str())])?;
    let id = StatusId::generate(now).map_err(QueueError::unavailable)?;
    insert(
        tables,
        &Update::queued(id.clone(), trigger, generation, now),
    )?;
    Ok(id)
}

/// Ends the updates of a project that wait or run for a former owner.
fn end_former(tables: &dyn Tables, trigger: &Trigger, now: Timestamp) -> Result<(), QueueError> {
    const FORMER: &str = "WHERE project = ?1 AND owner <> ?2 AND due_at IS NOT NULL";
    let values = [Text(trigger.project.as_str()), Text(&trigger.owner)];
    for mut former in list_locked(tables, FORMER, &values)? {
        cancel_update(tables, &mut former, OWNER_CHANGED, now)?;
    }
    Ok(())
}

/// Stores an update again that the database has lost, under the same id. If another update of the
/// project waits, the stored update is superseded, because the other one builds the same branch.
/// Does nothing if the database has the update. Returns whether it was lost.
pub(in super::super) fn restore(
    tables: &dyn Tables,
    id: &StatusId,
    trigger: &Trigger,
    now: Timestamp,
) -> Result<bool, QueueError> {
    if find(tables, "WHERE id = ?1", &[Text(id.as_str())])?.is_some() {
        return Ok(false);
    }
    let waiting = queued(tables, &trigger.project)?;
    let generation = number(tables, COUNT_UP, &[Text(trigger.project.as_str())])?;
    let mut lost = Update::queued(id.clone(), trigger, generation, now);
    match waiting {
        Some(waiting) if waiting.owner == lost.owner => lost.restore_superseded(&waiting.id)?,
        Some(_of_another_owner) => {
            let state = State::Failure {
                ended_at: now,
                dead_letter: false,
            };
            lost.end(state, OWNER_CHANGED)?;
        }
        None => {}
    }
    insert(tables, &lost)?;
    Ok(true)
}

/// Returns the number that a statement returns.
fn number(tables: &dyn Tables, sql: &str, values: &[Value<'_>]) -> Result<u64, QueueError> {
    let missing = || QueueError::Corrupt("a row is missing".to_owned());
    let found = tables.rows(sql, values)?.into_iter().next();
    Ok(found.ok_or_else(missing)?.number()?)
}

pub(in super::super) fn claim(
    tables: &dyn Tables,
    worker: &WorkerId,
    owners: Owners,
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<Claim>, QueueError> {
    // Finds the update that has been due longest, of the first owner with a due update. Owners
    // without a running update come first. A queued update is not due while another update of its
    // project is being built and the lease of that update has not ended.
    //
    // An update that another transaction has locked is about to get a longer lease: it is left out.
    // The outer condition on `due_at` is checked again if that transaction has just ended.
    const DUE: &str = "WHERE due_at <= ?1 AND id = (SELECT next FROM (SELECT position, \
         CASE WHEN EXISTS (\
             SELECT 1 FROM updates AS held WHERE held.owner = owners.owner \
             AND held.due_at > ?1 AND held.state = 'in_progress') THEN 1 ELSE 0 END AS busy, (\
             SELECT due.id FROM updates AS due \
             WHERE due.owner = owners.owner AND due.due_at <= ?1 \
             AND NOT (due.state = 'queued' AND EXISTS (\
                 SELECT 1 FROM updates AS running WHERE running.project = due.project \
                 AND running.state = 'in_progress' AND running.due_at > ?1)) \
             ORDER BY due.due_at, due.id LIMIT 1) AS next FROM owners) AS line \
         WHERE next IS NOT NULL AND busy <= ?2 ORDER BY busy, position LIMIT 1)";
    let busy_max = match owners {
        Owners::All => 1,
        Owners::Idle => 0,
    };
    let due = format!("{DUE}{}", tables.skipping_locked());
    while let Some(update) = find(tables, &due, &[now.into(), Integer(busy_max)])? {
        if let Some(claim) = take(tables, update, worker, policy, now)? {
            return Ok(Some(claim));
        }
    }
    Ok(None)
}

/// Claims an update that is due. Returns `None` when it was superseded or ended instead: then
/// the caller looks again.
fn take(
    tables: &dyn Tables,
    mut update: Update,
    worker: &WorkerId,
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<Claim>, QueueError> {
    if let Some(mut running) = running(tables, &update.project)? {
        if let Some(newer) = queued(tables, &update.project)? {
            running.mark_superseded(&newer.id)?;
            save(tables, &running)?;
            log(tables, &running.id, now, &running.summary)?;
            forward(tables, &running.id, &newer.id)?;
            return Ok(None);
        }
        if update.attempts >= policy.attempts_max {
            end_as_dead_letter(&mut update, now)?;
            save(tables, &update)?;
            log(tables, &update.id, now, &update.summary)?;
            end_superseded(tables, &update)?;
            remove_old_logs(tables, &update.project, policy)?;
            return Ok(None);
        }
    }
    const CLAIM: &str = "UPDATE projects SET epoch = epoch + 1 WHERE project = ?1 \
         RETURNING epoch, commit_sha";
    let claimed = tables.rows(CLAIM, &[Text(update.project.as_str())])?;
    let mut counted = claimed
        .into_iter()
        .next()
        .ok_or_else(|| QueueError::Corrupt(format!("the project {:?}", update.project)))?;
    let (epoch, commit) = (counted.number()?, counted.next_text()?);
    const MOVE_TO_END: &str = "UPDATE owners SET position = (SELECT max(position) + 1 FROM owners) \
         WHERE owner = ?1";
    tables.execute(MOVE_TO_END, &[Text(&update.owner)])?;
    let holder = Holder {
        worker: worker.clone(),
        epoch,
        lease_until: now.after(policy.lease),
    };
    update.claim(holder, claim_token()?)?;
    save(tables, &update)?;
    Ok(Some(Claim {
        update,
        epoch,
        commit_before: commit.map(Into::into),
    }))
}

/// Makes the updates due that [`Policy::correct`] changes. Returns how many there were.
pub(in super::super) fn correct_times(
    tables: &dyn Tables,
    policy: &Policy,
    now: Timestamp,
) -> Result<usize, QueueError> {
    let mut corrected = 0;
    for mut update in list_locked(tables, "WHERE due_at > ?1", &[now.into()])? {
        if policy.correct(&mut update, now) {
            save(tables, &update)?;
            corrected += 1;
        }
    }
    Ok(corrected)
}

/// Ends a lease, if the claim with this epoch still holds it. Returns whether it did.
pub(in super::super) fn end_lease(
    tables: &dyn Tables,
    id: &StatusId,
    epoch: u64,
    now: Timestamp,
) -> Result<bool, QueueError> {
    let update = find_locked(tables, "WHERE id = ?1", &[Text(id.as_str())])?;
    let Some(mut update) = update.filter(|update| update.is_held_by(epoch)) else {
        return Ok(false);
    };
    update.renew(now)?;
    save(tables, &update)?;
    Ok(true)
}

pub(in super::super) fn heartbeat(
    tables: &dyn Tables,
    claim: &Claim,
    progress: &Progress,
    policy: &Policy,
    now: Timestamp,
) -> Result<Held, QueueError> {
    let Some(mut update) = held(tables, claim)? else {
        return Ok(Held::Lost);
    };
    update.renew(now.after(policy.lease))?;
    if let Some(commit) = &progress.commit {
        update.commit = Some(commit.clone().bounded());
    }
    save(tables, &update)?;
    if !progress.lines.is_empty() {
        const STORED: &str = "SELECT coalesce(max(seq), 0) FROM logs WHERE id = ?1";
        let stored = number(tables, STORED, &[Text(claim.id().as_str())])?;
        let left = (LOG_LINES_MAX as u64).saturating_sub(stored);
        let left = usize::try_from(left).unwrap_or(LOG_LINES_MAX);
        for text in progress.lines.iter().take(left) {
            log(tables, claim.id(), now, text)?;
        }
    }
    Ok(Held::Yes)
}

pub(in super::super) fn raise_generation(
    tables: &dyn Tables,
    claim: &Claim,
    at_least: u64,
) -> Result<Held, QueueError> {
    let Some(mut update) = held(tables, claim)? else {
        return Ok(Held::Lost);
    };
    update.generation = update.generation.max(at_least);
    save(tables, &update)?;
    const RAISE: &str =
        "UPDATE projects SET generation = ?2 WHERE project = ?1 AND generation < ?2";
    tables.execute(RAISE, &[Text(claim.project().as_str()), at_least.into()])?;
    Ok(Held::Yes)
}

pub(in super::super) fn finish(
    tables: &dyn Tables,
    claim: &Claim,
    outcome: &Outcome,
    summary: &str,
    policy: &Policy,
    now: Timestamp,
) -> Result<Held, QueueError> {
    let Some(mut update) = of_claim(tables, claim)? else {
        return Ok(Held::Lost);
    };
    if !update.is_held_by(claim.epoch) {
        // This claim has ended it in an earlier call, whose answer was lost.
        return Ok(Held::Yes);
    }
    let waiting = queued(tables, claim.project())?.map(|waiting| waiting.id);
    finish_attempt(&mut update, outcome, summary, waiting.as_ref(), policy, now)?;
    update.token.clone_from(&claim.update.token);
    if let Some(served) = visible::served(tables, claim.project())? {
        served.mark_visible(&mut update);
    }
    save(tables, &update)?;
    log(tables, claim.id(), now, summary)?;
    match &update.state {
        State::Superseded { by } => forward(tables, claim.id(), by)?,
        State::Success { .. } | State::Failure { .. } => {
            end_superseded(tables, &update)?;
            remove_old_logs(tables, claim.project(), policy)?;
        }
        State::Queued { .. } | State::InProgress(_) => {}
    }
    if let (Outcome::Success { .. }, Some(commit)) = (outcome, &update.commit) {
        const LIVE: &str = "UPDATE projects SET commit_sha = ?2 WHERE project = ?1";
        let values = [Text(claim.project().as_str()), Text(&commit.sha)];
        tables.execute(LIVE, &values)?;
    }
    Ok(Held::Yes)
}

pub(in super::super) fn cancel(
    tables: &dyn Tables,
    project: &ProjectId,
    summary: &str,
    now: Timestamp,
) -> Result<Option<StatusId>, QueueError> {
    let Some(mut update) = queued(tables, project)? else {
        return Ok(None);
    };
    cancel_update(tables, &mut update, summary, now)?;
    Ok(Some(update.id))
}

/// Returns the update that an earlier run of a transaction has made or cancelled, if that run was
/// stored though its answer was lost.
pub(in super::super) fn stored_before(
    tables: &dyn Tables,
    id: Option<&StatusId>,
) -> Result<Option<Update>, QueueError> {
    id.map_or(Ok(None), |id| {
        find(tables, "WHERE id = ?1", &[Text(id.as_str())])
    })
}

fn cancel_update(
    tables: &dyn Tables,
    update: &mut Update,
    summary: &str,
    now: Timestamp,
) -> Result<(), QueueError> {
    let state = State::Failure {
        ended_at: now,
        dead_letter: false,
    };
    update.end(state, summary)?;
    save(tables, update)?;
    log(tables, &update.id, now, summary)?;
    end_superseded(tables, update)
}

pub(in super::super) fn requeue(
    tables: &dyn Tables,
    project: &ProjectId,
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<Enqueued>, QueueError> {
    const LATEST: &str = "WHERE project = ?1 AND dead_letter = 1 ORDER BY id DESC LIMIT 1";
    let Some(dead_letter) = find_locked(tables, LATEST, &[Text(project.as_str())])? else {
        return Ok(None);
    };
    let trigger = Trigger {
        project: dead_letter.project,
        owner: dead_letter.owner,
        subdomain: dead_letter.subdomain,
        source: Source::Internal,
        idempotency: None,
    };
    enqueue(tables, &trigger, policy, now).map(Some)
}

/// Removes a batch of records and idempotency keys that are older than the policy allows.
pub(in super::super) fn sweep(
    tables: &dyn Tables,
    policy: &Policy,
    now: Timestamp,
) -> Result<Swept, QueueError> {
    const UPDATES: &str = "DELETE FROM updates WHERE id IN \
         (SELECT id FROM updates WHERE ended_at < ?1 LIMIT ?2)";
    const KEYS: &str = "DELETE FROM idempotency_keys WHERE (owner, digest) IN \
         (SELECT owner, digest FROM idempotency_keys WHERE kept_until <= ?1 LIMIT ?2)";
    let most = Integer(SWEEP_ROWS_MAX);
    let oldest = now.before(policy.retention);
    let updates = tables.execute(UPDATES, &[oldest.into(), most])?;
    let keys = tables.execute(KEYS, &[now.into(), most])?;
    Ok(Swept {
        updates: updates as u64,
        idempotency_keys: keys as u64,
    })
}

fn queued(tables: &dyn Tables, project: &ProjectId) -> Result<Option<Update>, QueueError> {
    find_locked(
        tables,
        "WHERE project = ?1 AND state = 'queued'",
        &[Text(project.as_str())],
    )
}

fn running(tables: &dyn Tables, project: &ProjectId) -> Result<Option<Update>, QueueError> {
    find_locked(
        tables,
        "WHERE project = ?1 AND state = 'in_progress'",
        &[Text(project.as_str())],
    )
}

/// Finds the update of a claim; `None` when the claim has lost its lease. A database that has lost
/// a claim in a fail-over gives its epoch to another one.
fn held(tables: &dyn Tables, claim: &Claim) -> Result<Option<Update>, QueueError> {
    let update = of_claim(tables, claim)?;
    Ok(update.filter(|update| update.is_held_by(claim.epoch)))
}

/// Finds the update that a claim holds or has ended.
fn of_claim(tables: &dyn Tables, claim: &Claim) -> Result<Option<Update>, QueueError> {
    let update = find_locked(tables, "WHERE id = ?1", &[Text(claim.id().as_str())])?;
    Ok(update.filter(|update| claim.is_of(update)))
}

/// Marks the updates that `id` had superseded as superseded by `newer`, as `id` itself is now.
/// So no superseded update refers to another superseded one.
fn forward(tables: &dyn Tables, id: &StatusId, newer: &StatusId) -> Result<(), QueueError> {
    for mut older in list_locked(tables, "WHERE superseded_by = ?1", &[Text(id.as_str())])? {
        older.mark_superseded(newer)?;
        save(tables, &older)?;
    }
    Ok(())
}

fn end_superseded(tables: &dyn Tables, newer: &Update) -> Result<(), QueueError> {
    for mut older in list_locked(
        tables,
        "WHERE superseded_by = ?1",
        &[Text(newer.id.as_str())],
    )? {
        older.end_as(newer)?;
        save(tables, &older)?;
    }
    Ok(())
}

/// Removes the logs of the project's ended updates, except for the newest ones.
fn remove_old_logs(
    tables: &dyn Tables,
    project: &ProjectId,
    policy: &Policy,
) -> Result<(), QueueError> {
    const SQL: &str = "DELETE FROM logs WHERE id IN \
         (SELECT id FROM updates WHERE project = ?1 AND ended_at IS NOT NULL \
         ORDER BY id DESC LIMIT ?2 OFFSET ?3)";
    let values = [
        Text(project.as_str()),
        Integer(LOGS_REMOVED_MAX),
        Integer(policy.logs_max.into()),
    ];
    tables.execute(SQL, &values).map(|_lines| ())
}

fn log(tables: &dyn Tables, id: &StatusId, now: Timestamp, text: &str) -> Result<(), QueueError> {
    const SQL: &str = "INSERT INTO logs (id, seq, line) \
         SELECT CAST(?1 AS TEXT), coalesce(max(seq), 0) + 1, CAST(?2 AS TEXT) FROM logs \
         WHERE id = ?1 HAVING coalesce(max(seq), 0) < ?3";
    let line = log_line(now, text);
    let limit = LOG_LINES_MAX as u64;
    let values = [Text(id.as_str()), Text(&line), limit.into()];
    tables.execute(SQL, &values).map(|_one| ())
}

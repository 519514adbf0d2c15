//! The operations of the writer: each finds rows, moves updates, and saves them.
//!
//! Every function here runs in a savepoint of the writer. The moves in `update` and the decisions
//! in `policy` determine the next state of an update; this module only applies them.

use rusqlite::{Connection, OptionalExtension, params};

use super::super::super::update::{Holder, Source, State, Update, WorkerId};
use super::super::super::{StatusId, Timestamp};
use super::super::{
    Claim, Enqueued, Held, LOG_LINES_MAX, Outcome, Owners, Policy, Progress, QueueError, Swept,
    Trigger, end_as_dead_letter, finish_attempt, log_line,
};
use super::row::{execute, find, insert, list, save, stored};
use super::visible;
use crate::digest::Digest;
use crate::site::ProjectId;

/// The most records removed in one transaction, so that triggers do not wait long for a sweep.
const SWEEP_ROWS_MAX: u32 = 500;

pub(super) fn enqueue(
    connection: &Connection,
    trigger: &Trigger,
    policy: &Policy,
    now: Timestamp,
) -> Result<Enqueued, QueueError> {
    if let Some(digest) = &trigger.idempotency
        && let Some((project, id)) = remembered(connection, &trigger.owner, digest, now)?
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
    let enqueued = match queued(connection, &trigger.project)? {
        Some(mut update) => {
            let before = update.state.clone();
            update.expedite(now);
            if update.state != before {
                save(connection, &update)?;
            }
            Enqueued {
                id: update.id,
                coalesced: true,
            }
        }
        None => Enqueued {
            id: add(connection, trigger, policy, now)?,
            coalesced: false,
        },
    };
    // A new trigger of the project means that the failure of its last update was noticed.
    const CLEAR: &str = "UPDATE updates SET dead_letter = 0 WHERE project = ?1 AND dead_letter = 1";
    execute(connection, CLEAR, [trigger.project.as_str()])?;
    if let Some(digest) = &trigger.idempotency {
        const REMEMBER: &str = "INSERT OR REPLACE INTO idempotency_keys \
             (owner, digest, project, id, kept_until) VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![
            trigger.owner,
            digest.as_bytes(),
            trigger.project.as_str(),
            enqueued.id.as_str(),
            stored(now.after(policy.idempotency).millis()),
        ];
        execute(connection, REMEMBER, values)?;
    }
    Ok(enqueued)
}

fn remembered(
    connection: &Connection,
    owner: &str,
    digest: &Digest,
    now: Timestamp,
) -> Result<Option<(String, String)>, QueueError> {
    const SQL: &str = "SELECT project, id FROM idempotency_keys \
         WHERE owner = ?1 AND digest = ?2 AND kept_until > ?3";
    let values = params![owner, digest.as_bytes(), stored(now.millis())];
    connection
        .prepare_cached(SQL)
        .and_then(|mut statement| {
            statement
                .query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })
        .map_err(QueueError::unavailable)
}

fn add(
    connection: &Connection,
    trigger: &Trigger,
    policy: &Policy,
    now: Timestamp,
) -> Result<StatusId, QueueError> {
    const COUNT: &str = "SELECT updates FROM totals WHERE state = 'queued'";
    const COUNT_UP: &str = "INSERT INTO projects (project, generation) VALUES (?1, 1) \
         ON CONFLICT DO UPDATE SET generation = generation + 1 RETURNING generation";
    let number = |sql, values: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<u64> {
        connection
            .prepare_cached(sql)?
            .query_row(values, |row| row.get(0))
    };
    if number(COUNT, &[]).map_err(QueueError::unavailable)? >= policy.waiting_max {
        return Err(QueueError::Full {
            limit: policy.waiting_max,
        });
    }
    let generation =
        number(COUNT_UP, &[&trigger.project.as_str()]).map_err(QueueError::unavailable)?;
    let id = StatusId::generate(now).map_err(QueueError::unavailable)?;
    insert(
        connection,
        &Update::queued(id.clone(), trigger, generation, now),
    )?;
    Ok(id)
}

pub(super) fn claim(
    connection: &Connection,
    worker: &WorkerId,
    owners: Owners,
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<Claim>, QueueError> {
    // Finds the update that has been due longest, of the first owner with a due update. Owners
    // without a running update come first. A queued update is not due while another update of its
    // project is being built and the lease of that update has not ended.
    const DUE: &str = "WHERE id = (SELECT next FROM (SELECT position, EXISTS (\
             SELECT 1 FROM updates AS held WHERE held.owner = owners.owner \
             AND held.due_at > ?1 AND held.state = 'in_progress') AS busy, (\
             SELECT due.id FROM updates AS due \
             WHERE due.owner = owners.owner AND due.due_at <= ?1 \
             AND NOT (due.state = 'queued' AND EXISTS (\
                 SELECT 1 FROM updates AS running WHERE running.project = due.project \
                 AND running.state = 'in_progress' AND running.due_at > ?1)) \
             ORDER BY due.due_at, due.id LIMIT 1) AS next FROM owners) \
         WHERE next IS NOT NULL AND busy <= ?2 ORDER BY busy, position LIMIT 1)";
    let busy_max = match owners {
        Owners::All => 1,
        Owners::Idle => 0,
    };
    while let Some(update) = find(connection, DUE, [stored(now.millis()), busy_max])? {
        if let Some(claim) = take(connection, update, worker, policy, now)? {
            return Ok(Some(claim));
        }
    }
    Ok(None)
}

/// Claims an update that is due. Returns `None` when it was superseded or ended instead: then
/// the caller looks again.
fn take(
    connection: &Connection,
    mut update: Update,
    worker: &WorkerId,
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<Claim>, QueueError> {
    if let Some(mut running) = running(connection, &update.project)? {
        if let Some(newer) = queued(connection, &update.project)? {
            running.mark_superseded(&newer.id)?;
            save(connection, &running)?;
            log(connection, &running.id, now, &running.summary)?;
            forward(connection, &running.id, &newer.id)?;
            return Ok(None);
        }
        if update.attempts >= policy.attempts_max {
            end_as_dead_letter(&mut update, now)?;
            save(connection, &update)?;
            log(connection, &update.id, now, &update.summary)?;
            end_superseded(connection, &update)?;
            return Ok(None);
        }
    }
    const CLAIM: &str = "UPDATE projects SET epoch = epoch + 1 WHERE project = ?1 \
         RETURNING epoch, commit_sha";
    let (epoch, commit): (u64, Option<String>) = connection
        .prepare_cached(CLAIM)
        .and_then(|mut statement| {
            statement.query_row([update.project.as_str()], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        })
        .map_err(QueueError::unavailable)?;
    const MOVE_TO_END: &str = "UPDATE owners SET position = (SELECT max(position) + 1 FROM owners) \
         WHERE owner = ?1";
    execute(connection, MOVE_TO_END, [&*update.owner])?;
    update.claim(Holder {
        worker: worker.clone(),
        epoch,
        lease_until: now.after(policy.lease),
    })?;
    save(connection, &update)?;
    Ok(Some(Claim {
        update,
        epoch,
        commit_before: commit.map(Into::into),
    }))
}

/// Makes the updates due that [`Policy::correct`] changes. Returns how many there were.
pub(super) fn correct_times(
    connection: &Connection,
    policy: &Policy,
    now: Timestamp,
) -> Result<usize, QueueError> {
    let mut corrected = 0;
    for mut update in list(connection, "WHERE due_at > ?1", [stored(now.millis())])? {
        if policy.correct(&mut update, now) {
            save(connection, &update)?;
            corrected += 1;
        }
    }
    Ok(corrected)
}

/// Ends a lease, if the claim with this epoch still holds it. Returns whether it did.
pub(super) fn end_lease(
    connection: &Connection,
    id: &StatusId,
    epoch: u64,
    now: Timestamp,
) -> Result<bool, QueueError> {
    let update = find(connection, "WHERE id = ?1", [id.as_str()])?;
    let Some(mut update) = update.filter(|update| update.is_held_by(epoch)) else {
        return Ok(false);
    };
    update.renew(now)?;
    save(connection, &update)?;
    Ok(true)
}

pub(super) fn heartbeat(
    connection: &Connection,
    claim: &Claim,
    progress: Progress,
    policy: &Policy,
    now: Timestamp,
) -> Result<Held, QueueError> {
    let Some(mut update) = held(connection, claim)? else {
        return Ok(Held::Lost);
    };
    update.renew(now.after(policy.lease))?;
    if let Some(commit) = progress.commit {
        update.commit = Some(commit.bounded());
    }
    save(connection, &update)?;
    for text in &progress.lines {
        log(connection, claim.id(), now, text)?;
    }
    Ok(Held::Yes)
}

pub(super) fn raise_generation(
    connection: &Connection,
    claim: &Claim,
    at_least: u64,
) -> Result<Held, QueueError> {
    let Some(mut update) = held(connection, claim)? else {
        return Ok(Held::Lost);
    };
    update.generation = update.generation.max(at_least);
    save(connection, &update)?;
    const RAISE: &str = "UPDATE projects SET generation = max(generation, ?2) WHERE project = ?1";
    let values = params![claim.project().as_str(), stored(at_least)];
    execute(connection, RAISE, values)?;
    Ok(Held::Yes)
}

pub(super) fn finish(
    connection: &Connection,
    claim: &Claim,
    outcome: &Outcome,
    summary: &str,
    policy: &Policy,
    now: Timestamp,
) -> Result<Held, QueueError> {
    let Some(mut update) = held(connection, claim)? else {
        return Ok(Held::Lost);
    };
    let waiting = queued(connection, claim.project())?.map(|waiting| waiting.id);
    finish_attempt(&mut update, outcome, summary, waiting.as_ref(), policy, now)?;
    if let Some(served) = visible::served(connection, claim.project())? {
        served.mark_visible(&mut update);
    }
    save(connection, &update)?;
    log(connection, claim.id(), now, summary)?;
    match &update.state {
        State::Superseded { by } => forward(connection, claim.id(), by)?,
        State::Success { .. } | State::Failure { .. } => end_superseded(connection, &update)?,
        State::Queued { .. } | State::InProgress(_) => {}
    }
    if let (Outcome::Success { .. }, Some(commit)) = (outcome, &update.commit) {
        const LIVE: &str = "UPDATE projects SET commit_sha = ?2 WHERE project = ?1";
        execute(
            connection,
            LIVE,
            params![claim.project().as_str(), commit.sha],
        )?;
    }
    Ok(Held::Yes)
}

pub(super) fn cancel(
    connection: &Connection,
    project: &ProjectId,
    summary: &str,
    now: Timestamp,
) -> Result<bool, QueueError> {
    let Some(mut update) = queued(connection, project)? else {
        return Ok(false);
    };
    let state = State::Failure {
        ended_at: now,
        dead_letter: false,
    };
    update.end(state, summary)?;
    save(connection, &update)?;
    log(connection, &update.id, now, summary)?;
    end_superseded(connection, &update)?;
    Ok(true)
}

pub(super) fn requeue(
    connection: &Connection,
    project: &ProjectId,
    policy: &Policy,
    now: Timestamp,
) -> Result<Option<Enqueued>, QueueError> {
    const LATEST: &str = "WHERE project = ?1 AND dead_letter = 1 ORDER BY id DESC LIMIT 1";
    let Some(dead_letter) = find(connection, LATEST, [project.as_str()])? else {
        return Ok(None);
    };
    let trigger = Trigger {
        project: dead_letter.project,
        owner: dead_letter.owner,
        subdomain: dead_letter.subdomain,
        source: Source::Internal,
        idempotency: None,
    };
    enqueue(connection, &trigger, policy, now).map(Some)
}

/// Removes a batch of records and idempotency keys that are older than the policy allows.
pub(super) fn sweep(
    connection: &Connection,
    policy: &Policy,
    now: Timestamp,
) -> Result<Swept, QueueError> {
    const UPDATES: &str = "DELETE FROM updates WHERE id IN \
         (SELECT id FROM updates WHERE ended_at < ?1 LIMIT ?2)";
    const KEYS: &str = "DELETE FROM idempotency_keys WHERE (owner, digest) IN \
         (SELECT owner, digest FROM idempotency_keys WHERE kept_until <= ?1 LIMIT ?2)";
    let oldest = stored(now.before(policy.retention).millis());
    let updates = execute(connection, UPDATES, params![oldest, SWEEP_ROWS_MAX])?;
    let keys = execute(
        connection,
        KEYS,
        params![stored(now.millis()), SWEEP_ROWS_MAX],
    )?;
    Ok(Swept {
        updates: updates as u64,
        idempotency_keys: keys as u64,
    })
}

fn queued(connection: &Connection, project: &ProjectId) -> Result<Option<Update>, QueueError> {
    find(
        connection,
        "WHERE project = ?1 AND state = 'queued'",
        [project.as_str()],
    )
}

fn running(connection: &Connection, project: &ProjectId) -> Result<Option<Update>, QueueError> {
    find(
        connection,
        "WHERE project = ?1 AND state = 'in_progress'",
        [project.as_str()],
    )
}

/// Finds the update of a claim; `None` when the claim has lost its lease.
fn held(connection: &Connection, claim: &Claim) -> Result<Option<Update>, QueueError> {
    let update = find(connection, "WHERE id = ?1", [claim.id().as_str()])?;
    Ok(update.filter(|update| update.is_held_by(claim.epoch)))
}

/// Marks the updates that `id` had superseded as superseded by `newer`, as `id` itself is now.
/// So no superseded update refers to another superseded one.
fn forward(connection: &Connection, id: &StatusId, newer: &StatusId) -> Result<(), QueueError> {
    for mut older in list(connection, "WHERE superseded_by = ?1", [id.as_str()])? {
        older.mark_superseded(newer)?;
        save(connection, &older)?;
    }
    Ok(())
}

fn end_superseded(connection: &Connection, newer: &Update) -> Result<(), QueueError> {
    for mut older in list(connection, "WHERE superseded_by = ?1", [newer.id.as_str()])? {
        older.end_as(newer)?;
        save(connection, &older)?;
    }
    Ok(())
}

fn log(
    connection: &Connection,
    id: &StatusId,
    now: Timestamp,
    text: &str,
) -> Result<(), QueueError> {
    const SQL: &str = "INSERT INTO logs (id, seq, line) \
         SELECT ?1, coalesce(max(seq), 0) + 1, ?2 FROM logs WHERE id = ?1 \
         HAVING coalesce(max(seq), 0) < ?3";
    let limit = stored(LOG_LINES_MAX as u64);
    execute(
        connection,
        SQL,
        params![id.as_str(), log_line(now, text), limit],
    )
    .map(|_one| ())
}

//! Orders: begins the orders that are due and allowed, writes issued certificates, and records
//! failures.

use std::sync::Arc;

use super::names::{EARLY_PART, Entry};
use super::{Done, Manager};
use crate::acme::authority::Authorities;
use crate::acme::failure::{Cause, Failure};
use crate::acme::leaf::Life;
use crate::acme::order::{Job, Shared};
use crate::acme::queue::{Lane, Turn};
use crate::acme::quota::domain_of;
use crate::acme::record::Record;
use crate::acme::schedule::{part_of, seed_of, wait_after};
use crate::acme::state::{OrderState, Versioned as _};
use crate::acme::transport::{EXCHANGE, Exchange};
use crate::error::chain;
use crate::store::documents::{Kind, key_of};
use crate::telemetry::panics;

// === impl Manager ===

impl Manager {
    /// Begins the orders that are due and allowed.
    pub(super) fn begin_orders(&mut self, now: u64) {
        self.owners.expire(now);
        while self.orders < self.shared.config.parallel_max {
            let mut authorities = self.authorities.iter();
            if !authorities.any(|authority| authority.budget().is_usable(now, Lane::Uncounted)) {
                return;
            }
            let may_begin = self.authorities.iter().any(|authority| {
                let mut budget = authority.budget();
                budget.is_usable(now, Lane::Counted) && budget.left(now) > 0
            });
            let has_room = |owner: &str| {
                let mut authorities = self.authorities.iter();
                let may_order = authorities.any(|authority| {
                    let budget = authority.budget();
                    budget.is_usable_for(now, Lane::Counted, Some(owner))
                });
                self.owners.has_room(owner) && may_order
            };
            let Some((name, wait)) = self.state.queue.take(now, !may_begin, has_room) else {
                return;
            };
            let held = self.ordered.exactly(&name);
            let Some(entry) = self.state.entries.get_mut(&name) else {
                continue;
            };
            let kinds = self.shared.config.kinds(&name);
            let turn = usize::try_from(entry.failures).unwrap_or(0);
            let Some(kind) = kinds.get(turn % kinds.len().max(1)).copied() else {
                continue;
            };
            entry.is_running = true;
            if let Some(Turn { owner, .. }) = wait.turn {
                if self.owners.begin(&owner, now) {
                    let seconds = self.shared.config.orders_window.as_secs();
                    log::warn!(target: "acme", owner:% = &*owner; "the owner {owner} has begun as many new orders as it may in {seconds} s (`acme.orders_owner_max`): its other new names wait");
                }
                entry.counted_for = Some(owner);
            }
            let replaces = held.and_then(|held| {
                let id = held.leaf()?.renewal_id?;
                Some((Arc::clone(&held.authority), id))
            });
            let job = Job {
                name: Arc::clone(&name),
                owner: entry.owner.clone(),
                kind,
                replaces,
            };
            let (shared, authorities) = (Arc::clone(&self.shared), Arc::clone(&self.authorities));
            self.orders += 1;
            self.running.spawn(async move {
                let ordering = order_anywhere(&shared, &authorities, &job);
                let outcome = panics::caught(ordering).await.unwrap_or_else(|panic| {
                    let why = format!("a panic: {}", panics::message(&*panic));
                    Err(Failure::new(Cause::Authority, why))
                });
                Done::Order(job.name, outcome.map(Box::new))
            });
        }
    }

    /// Writes the record of a new certificate, and serves it.
    pub(super) fn issued(&mut self, name: &Arc<str>, mut record: Record, now: u64) {
        self.metrics.orders.with_label_values(&["issued"]).inc();
        let before = self.ordered.exactly(name);
        // Two certificates of one second: the later one is newer for every process.
        if let Some(held) = &before {
            record.issued_at = record.issued_at.max(held.issued_at + 1);
        }
        let expires =
            jiff::Timestamp::from_second(i64::try_from(record.leaf.not_after).unwrap_or(0));
        let expires = expires.map_or_else(|_| String::new(), |at| at.to_string());
        let (id, authority) = (&*record.id, &*record.authority);
        let replaces = before.as_ref().map_or("", |held| &*held.id);
        log::info!(target: "acme", name:% = &**name, id, authority, replaces, expires; "the certificate of {name} was issued");
        if let Some(entry) = self.state.entries.get_mut(name) {
            let is_early = before.is_some_and(|held| {
                let Life {
                    not_before,
                    not_after,
                    ..
                } = held.life;
                now.saturating_sub(not_before) < (not_after - not_before) / EARLY_PART
            });
            *entry = Entry {
                owner: entry.owner.take(),
                since: entry.since,
                ask_at: entry.ask_at,
                early: match is_early {
                    true => entry.early + 1,
                    false => 0,
                },
                ..Entry::default()
            };
        }
        self.state.trouble = None;
        let removed = self
            .shared
            .vault
            .documents
            .remove(Kind::Order, &key_of(name));
        if let Err(error) = removed {
            log::warn!(target: "acme", "cannot remove the failures of {name}: {}", chain(&error));
        }
        // It is served even if it cannot be written now.
        if let Err(error) = self.ordered.serve(&record) {
            log::error!(target: "acme", "cannot serve the new certificate of {name}: {}", chain(&error));
        }
        if !self.write(&record) {
            self.state.unwritten.push(record);
        }
        self.reschedule(name);
    }

    /// Notes a failed order.
    pub(super) async fn failed(&mut self, name: &Arc<str>, failure: &Failure, now: u64) {
        let result = match failure.cause {
            Cause::Authority | Cause::Account => "authority",
            Cause::Limit | Cause::Quota | Cause::Budget => "limited",
            Cause::Name | Cause::Forbidden | Cause::Replaced => "name",
            Cause::Ourselves | Cause::Command => "ourselves",
        };
        self.metrics.orders.with_label_values(&[result]).inc();
        let Some(entry) = self.state.entries.get_mut(name) else {
            return;
        };
        entry.is_running = false;
        let counted_for = entry.counted_for.take();
        let was_asked = matches!(failure.cause, Cause::Name | Cause::Limit | Cause::Replaced);
        if let Some(owner) = counted_for.filter(|_| !was_asked) {
            self.owners.give_back(&owner);
        }
        entry.is_begun = self.shared.has_begun(name);
        let retries = &self.shared.config.retries;
        let is_of_name = matches!(
            failure.cause,
            Cause::Name
                | Cause::Forbidden
                | Cause::Limit
                | Cause::Quota
                | Cause::Replaced
                // It may work for other names: they are in other zones.
                | Cause::Command
        );
        if is_of_name {
            entry.failures = entry.failures.saturating_add(1);
            let wait = wait_after(entry.failures, retries);
            let wait = failure.wait.map_or(wait, |asked| asked.max(wait)).as_secs();
            // Names that failed together are not tried together again.
            entry.retry_at = now + wait + part_of(wait / 10, seed_of(name));
            let state = OrderState::new(name, entry.failures, now, entry.retry_at, &failure.text);
            let put = self
                .shared
                .vault
                .documents
                .put(Kind::Order, &key_of(name), &state.write());
            if let Err(error) = put {
                log::warn!(target: "acme", "cannot record the failure of {name}: {}", chain(&error));
            }
            let again = entry.retry_at - now;
            let failures = entry.failures;
            log::warn!(target: "acme", name:% = &**name, failures, again; "no certificate for {name}, the next try is in {again} s: {failure}");
        } else {
            // The cause is the authority or this machine, so this does not count as a failure of
            // the name.
            let wait = wait_after(1, retries).as_secs().max(1);
            entry.retry_at = now + wait.min(60);
            let known = self.state.trouble.as_ref();
            let is_new = known.is_none_or(|known| known.text != failure.text);
            if is_new {
                log::error!(target: "acme", name:% = &**name; "certificates are not ordered now, those in use stay: {failure}");
            }
            self.state.trouble = Some(failure.clone());
        }
        self.reschedule(name);
    }

    /// Writes a record. If that fails, the certificate is served from memory, and the record is
    /// written when the disk works again.
    fn write(&self, record: &Record) -> bool {
        let documents = &self.shared.vault.documents;
        match documents.put(Kind::Certificate, &record.key(), &record.to_bytes()) {
            Ok(()) => {
                self.shared.forget(&record.name);
                self.remove_records(&record.name, 2);
                true
            }
            Err(error) => {
                let name = &record.name;
                let why = format!(
                    "the new certificate of {name} is served from memory until it can be written: {}",
                    chain(&error)
                );
                self.part.fail(why);
                false
            }
        }
    }

    pub(super) fn write_again(&mut self) {
        if self.state.unwritten.is_empty() {
            return;
        }
        let unwritten = std::mem::take(&mut self.state.unwritten);
        for record in unwritten {
            if !self.write(&record) {
                self.state.unwritten.push(record);
            }
        }
        if self.state.unwritten.is_empty() {
            self.part.recover();
        }
    }

    /// Removes the older records of a name; `keep` of them stay.
    pub(super) fn remove_records(&self, name: &str, keep: usize) {
        let documents = &self.shared.vault.documents;
        let keys = documents.keys_of(Kind::Certificate, &key_of(name));
        let mut records: Vec<_> = keys
            .unwrap_or_default()
            .into_iter()
            .filter_map(|key| {
                let bytes = documents.get(Kind::Certificate, &key).ok().flatten()?;
                // A record of a newer program is left alone.
                let record = Record::parse(&bytes).ok()?;
                (*record.name == *name).then_some((record.issued_at, key))
            })
            .collect();
        records.sort_unstable_by(|a, b| b.cmp(a));
        for (_, key) in records.into_iter().skip(keep) {
            if let Err(error) = documents.remove(Kind::Certificate, &key) {
                log::warn!(target: "acme", "cannot remove an old certificate: {}", chain(&error));
            }
        }
    }
}

/// Orders a certificate at the first authority that works.
async fn order_anywhere(
    shared: &Shared,
    authorities: &Authorities,
    job: &Job,
) -> Result<Record, Failure> {
    let mut last = None;
    let mut is_one_left_out = false;
    for authority in authorities.iter() {
        let now = shared.clock.unix_seconds();
        let lane = shared.lane(authority, job);
        let owner = job.owner.as_deref();
        if !authority.budget().is_usable_for(now, lane, owner) {
            is_one_left_out = true;
            continue;
        }
        let exchange = Arc::new(Exchange::default());
        let ordering = EXCHANGE.scope(exchange, Box::pin(shared.order(authority, job)));
        let failure = match ordering.await {
            Ok(record) => {
                authority.budget().works(lane);
                return Ok(record);
            }
            Err(failure) => failure,
        };
        let text = format!("{}: {failure}", authority.config.directory);
        let failure = Failure { text, ..failure };
        let now = shared.clock.unix_seconds();
        match failure.cause {
            // The authority has placed the order, and another one needs the same command.
            Cause::Name | Cause::Replaced | Cause::Command => {
                authority.budget().works(lane);
                return Err(failure);
            }
            Cause::Ourselves => return Err(failure),
            Cause::Budget => {}
            // Another authority that does not work now may accept the name sooner.
            Cause::Quota | Cause::Forbidden if last.is_some() => continue,
            Cause::Quota if is_one_left_out => {
                last = Some(Failure {
                    wait: None,
                    ..failure
                });
                continue;
            }
            Cause::Quota | Cause::Forbidden => {}
            Cause::Limit => {
                log::warn!(target: "acme", name:% = &*job.name; "an authority refuses an order because of a limit: {failure}");
                let (owner, domain) = (job.owner.as_deref(), domain_of(&job.name));
                authority.budget().limits(now, owner, domain, failure.wait);
            }
            Cause::Authority | Cause::Account => {
                authority.forget(failure.cause == Cause::Account).await;
                let failures = authority.budget().failures() + 1;
                let wait = wait_after(failures, &shared.config.retries);
                // It is not asked for a while, so this is logged once for many names.
                log::warn!(target: "acme", "an authority does not work, the next one is used if there is one: {failure}");
                authority.budget().fails(now, wait, failure.wait);
            }
        }
        last = Some(failure);
    }
    Err(last.unwrap_or_else(|| Failure::new(Cause::Authority, "no authority accepts an order now")))
}

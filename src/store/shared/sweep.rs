//! The sweep: removes releases and objects that no pointer names and that are old.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use super::lease::{Lease, millis};
use super::releases::ROWS;
use super::{Shared, list, records, store_error};
use crate::database::{DatabaseError, READ, Repeat, Value, WRITE};
use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::store::{FileError, ReadError, Swept, audit};

/// How long a sweep waits for another one, which may have just ended.
const SWEEP_WAIT: Duration = Duration::from_secs(5);
/// For how long changes are kept.
const CHANGES_KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// How often objects are looked for that no row names, and how old they must be: older than any
/// put that is running.
const LEFTOVERS: Duration = Duration::from_secs(24 * 60 * 60);

/// The beginning of the oldest transaction that runs, in milliseconds since the Unix epoch. A put
/// or a promotion that this sweep cannot see yet keeps its rows at a later time. So they stay, even
/// if the retention time is shorter than a transaction.
const OLDEST_TRANSACTION: &str = "SELECT (extract(epoch FROM min(xact_start)) * 1000)::bigint \
     FROM pg_stat_activity WHERE datname = current_database()";

impl Shared {
    /// Removes releases, objects and rows that are old enough. Does nothing while another process
    /// sweeps. Only tests pass a `now` that differs from the clock.
    pub(in crate::store) fn sweep(&self, now: SystemTime) -> Result<Swept, ReadError> {
        let lease = Lease::wait(&self.database, "sweep", SWEEP_WAIT).map_err(store_error)?;
        let Some(_lease) = lease else {
            return Ok(Swept::default());
        };
        self.prune()?;
        let ahead = now.duration_since(self.clock.now()).unwrap_or_default();
        let retention = self.retention.unnamed_seconds * 1000;
        let times = self.database.transact(READ, Repeat::Always, |link, now| {
            Ok((now, link.one(OLDEST_TRANSACTION, &[])?.number()?))
        });
        let (database_now, running_since) = times.map_err(store_error)?;
        let oldest = database_now
            .saturating_add(millis(ahead))
            .saturating_sub(retention)
            .min(running_since);
        let mut swept = Swept::default();
        let kept = self.kept_digests(oldest)?;
        let removed = self.remove_releases(oldest)?;
        swept.releases = removed.len() as u64;
        let inventories: HashSet<Digest> = removed.iter().map(|id| *id.digest()).collect();
        for digests in self.old_digests(oldest)?.chunks(ROWS) {
            let unused = digests.iter().filter(|digest| !kept.contains(digest));
            self.remove_objects(unused, oldest, &inventories, &mut swept)?;
        }
        if Lease::once_in(&self.database, "leftovers", LEFTOVERS).map_err(store_error)? {
            swept.leftovers = self.remove_leftovers(self.clock.now() - LEFTOVERS)?;
        }
        // What this machine has of removed releases.
        self.cache.sweep(now)?;
        Ok(swept)
    }

    /// Removes old changes, leases of owners, and entries of the audit log: the oldest of the owners
    /// that have the most.
    fn prune(&self) -> Result<(), FileError> {
        // The time of a change is that of the begin of its transaction, so times are not in the
        // order of revisions. Everything before the first young revision goes, and no hole stays,
        // but for the last one before it: a reader that has it proves by its mark that it needs no
        // comparison.
        const CHANGES: &str = "DELETE FROM changes WHERE revision < coalesce( \
             (SELECT min(revision) FROM changes WHERE at >= ?1), \
             (SELECT n + 1 FROM revision)) - 1";
        const LEASES: &str = "DELETE FROM leases WHERE name LIKE 'owner/%' AND ends_at < ?1";
        const GATEWAYS: &str = "DELETE FROM edge_progress WHERE ends_at < ?1";
        const AUDIT: &str = "SELECT sum(octet_length(entry))::bigint FROM audit GROUP BY owner";
        // The last entry has the number after which the next one is counted.
        const SHORTEN: &str = "DELETE FROM audit WHERE id IN (SELECT id FROM (SELECT id, \
             sum(octet_length(entry)) OVER (PARTITION BY owner ORDER BY id DESC) AS bytes \
             FROM audit) AS entries WHERE bytes > ?1) AND id < (SELECT max(id) FROM audit)";
        let pruned = self.database.transact(WRITE, Repeat::Always, |link, now| {
            let oldest = now.saturating_sub(millis(CHANGES_KEPT));
            link.execute(CHANGES, &[oldest.into()])?;
            link.execute(LEASES, &[oldest.into()])?;
            link.execute(GATEWAYS, &[oldest.into()])?;
            super::documents::SharedDocuments::prune(link, now)?;
            if self.audit_bytes_max > 0 {
                let rows = link.rows(AUDIT, &[])?.into_iter();
                let owners = rows.map(|mut row| row.number());
                let owners = owners.collect::<Result<Vec<_>, _>>()?;
                let each = audit::share_of(owners.into_iter(), self.audit_bytes_max);
                if each < u64::MAX {
                    link.execute(SHORTEN, &[each.into()])?;
                }
            }
            Ok(())
        });
        pruned.map_err(store_error)
    }

    /// Returns the digests of the releases that a pointer names or that are young. If an inventory
    /// of them cannot be read, the sweep ends and nothing is removed.
    fn kept_digests(&self, oldest: u64) -> Result<HashSet<Digest>, ReadError> {
        const KEPT: &str = "SELECT release FROM releases WHERE kept_at >= ?1 \
             UNION SELECT release FROM named";
        let releases = self.digests(KEPT, oldest)?;
        let mut kept = HashSet::new();
        for release in releases {
            match self.inventory(ReleaseId::of(release)) {
                Ok(inventory) => {
                    kept.insert(release);
                    kept.extend(inventory.iter().map(|(_, item)| item.digest));
                }
                // A pointer of another store was restored before its release.
                Err(ReadError::UnknownRelease(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(kept)
    }

    fn old_digests(&self, oldest: u64) -> Result<Vec<Digest>, ReadError> {
        self.digests("SELECT digest FROM objects WHERE kept_at < ?1", oldest)
    }

    fn digests(&self, sql: &'static str, oldest: u64) -> Result<Vec<Digest>, ReadError> {
        let found = self.database.transact(READ, Repeat::Always, |link, _now| {
            let rows = link.rows(sql, &[oldest.into()])?.into_iter();
            rows.map(|mut row| records::digest(&row.text()?))
                .collect::<Result<Vec<_>, DatabaseError>>()
        });
        Ok(found.map_err(store_error)?)
    }

    fn remove_releases(&self, oldest: u64) -> Result<Vec<ReleaseId>, ReadError> {
        // A promotion locks the row before it names the release.
        const REMOVE: &str = "DELETE FROM releases WHERE kept_at < ?1 \
             AND NOT EXISTS (SELECT 1 FROM named WHERE named.release = releases.release) \
             RETURNING release";
        let removed = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            let rows = link.rows(REMOVE, &[oldest.into()])?.into_iter();
            rows.map(|mut row| Ok(ReleaseId::of(records::digest(&row.text()?)?)))
                .collect::<Result<Vec<_>, DatabaseError>>()
        });
        Ok(removed.map_err(store_error)?)
    }

    /// Removes the rows of objects that are still old, and then these objects.
    fn remove_objects<'d>(
        &self,
        digests: impl Iterator<Item = &'d Digest>,
        oldest: u64,
        inventories: &HashSet<Digest>,
        swept: &mut Swept,
    ) -> Result<(), ReadError> {
        const REMOVE: &str = "DELETE FROM objects WHERE kept_at < ?2 AND digest IN \
             (SELECT json_array_elements_text(?1::text::json)) RETURNING digest, object, length";
        let digests = list(digests);
        let removed = self.database.transact(WRITE, Repeat::Always, |link, _now| {
            let rows = link.rows(REMOVE, &[Value::Text(&digests), oldest.into()])?;
            rows.into_iter()
                .map(|mut row| {
                    let digest = records::digest(&row.text()?)?;
                    Ok((digest, row.text()?, row.number()?))
                })
                .collect::<Result<Vec<_>, DatabaseError>>()
        });
        let mut names = Vec::new();
        for (digest, name, length) in removed.map_err(store_error)? {
            if !inventories.contains(&digest) {
                swept.files += 1;
                swept.bytes += length;
            }
            names.push(name);
        }
        Ok(self.objects()?.remove(&names)?)
    }

    /// Removes objects that no row names and that are older than any put that is running.
    pub(super) fn remove_leftovers(&self, before: SystemTime) -> Result<u64, ReadError> {
        const NAMED: &str = "SELECT object FROM objects WHERE object IN \
             (SELECT json_array_elements_text(?1::text::json))";
        let mut removed = 0;
        for names in self.objects()?.list(before)?.chunks(ROWS) {
            let listed = list(names);
            let named = self.database.transact(READ, Repeat::Always, |link, _now| {
                let rows = link.rows(NAMED, &[Value::Text(&listed)])?.into_iter();
                rows.map(|mut row| row.text())
                    .collect::<Result<HashSet<_>, _>>()
            });
            let named = named.map_err(store_error)?;
            let unnamed = names.iter().filter(|name| !named.contains(*name));
            let unnamed: Vec<String> = unnamed.cloned().collect();
            self.objects.remove(&unnamed)?;
            removed += unnamed.len() as u64;
        }
        Ok(removed)
    }
}

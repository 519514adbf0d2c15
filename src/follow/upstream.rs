//! Where a follower gets changes and files from: a node, or the shared store itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::client::{Changes, Client, FollowError};
use super::message::{Entry, Head, Identity, Kind, Message, VERSION};
use super::position::Position;
use super::report::Report;
use super::store_revision::{StoreRevision, store_of};
use crate::digest::Digest;
use crate::store::shared::{Change, Changes as Stored, Life, Place};
use crate::store::{Shared, Store};

/// The source or the store that is followed.
#[derive(Debug)]
pub(super) enum Upstream {
    /// A node, over HTTPS.
    Node(Client),
    /// A database and an object store.
    Store(OfStore),
}

/// A shared store.
#[derive(Debug)]
pub(super) struct OfStore {
    pub(super) store: Arc<Store>,
    pub(super) service: String,
}

// === impl Upstream ===

impl Upstream {
    /// Asks for the changes after a position, and waits for them. A node also gets the report.
    pub(super) fn changes(
        &self,
        known: &Position,
        wait: Duration,
        report: &Report,
    ) -> Result<Changes, FollowError> {
        let identity = &known.identity.id;
        match self {
            Self::Node(client) => client.changes(identity, known.revision, wait, report),
            Self::Store(store) => {
                let (revision, mark) = (known.revision, known.mark.clone());
                store.changes(identity, &Place { revision, mark }, wait)
            }
        }
    }

    /// Asks for everything. Also returns how many bytes were read.
    pub(super) fn snapshot(&self) -> Result<(Message, u64), FollowError> {
        match self {
            Self::Node(client) => client.snapshot(),
            Self::Store(store) => Ok((store.snapshot()?, 0)),
        }
    }

    /// Fetches an object of at most this length, and checks its digest.
    pub(super) fn object(&self, digest: &Digest, length_max: u64) -> Result<Vec<u8>, FollowError> {
        match self {
            Self::Node(client) => client.object(digest, length_max),
            Self::Store(store) => store.object(digest),
        }
    }

    /// Refuses everything of a source that must not replace what the cache has.
    pub(super) fn accept(&self, known: &Position, head: &Head) -> Result<(), FollowError> {
        let is_back = head.identity == known.identity && head.revision < known.revision;
        let is_back_in_another_ring = head.identity.life == known.identity.life
            && head.source_revision < known.source_revision;
        match self {
            Self::Node(_)
                if is_back
                    || is_back_in_another_ring
                    || head.identity.life < known.identity.life =>
            {
                Err(FollowError::Older)
            }
            Self::Node(_) => accept_store(known, head),
            Self::Store(_) => {
                if store_of(&known.identity.id) != store_of(&head.identity.id) {
                    return Err(FollowError::OtherStore);
                }
                if is_back || head.identity != known.identity {
                    let (now, before) = (head.revision, known.revision);
                    log::error!(target: "follow", "the database has another history than before (revision {now} after {before}): everything is compared, and sites may go back to an earlier state");
                }
                Ok(())
            }
        }
    }

    /// Says that the cache has everything up to a revision.
    pub(super) fn has_followed(&self, revision: u64) {
        if let Self::Store(store) = self
            && let Ok(shared) = store.shared()
        {
            shared.has_followed(revision);
        }
    }
}

// === impl OfStore ===

impl OfStore {
    fn shared(&self) -> Result<&Shared, FollowError> {
        match &*self.store {
            Store::Shared(shared) => Ok(shared),
            Store::Local(_) => Err(FollowError::OtherStore),
        }
    }

    fn changes(
        &self,
        identity: &str,
        after: &Place,
        wait: Duration,
    ) -> Result<Changes, FollowError> {
        let shared = self.shared()?;
        shared
            .wait_for_change(after, wait)
            .map_err(FollowError::Store)?;
        let Some(changes) = shared.changes(after).map_err(FollowError::Store)? else {
            return Ok(Changes::Gone);
        };
        if id(&changes.life) != identity {
            return Ok(Changes::Gone);
        }
        let after = after.revision;
        match changes.place.revision == after {
            true => Ok(Changes::None),
            false => Ok(Changes::Some(self.message(Kind::Changes, after, changes))),
        }
    }

    fn snapshot(&self) -> Result<Message, FollowError> {
        let everything = self.shared()?.snapshot().map_err(FollowError::Store)?;
        Ok(self.message(Kind::Snapshot, 0, everything))
    }

    fn object(&self, digest: &Digest) -> Result<Vec<u8>, FollowError> {
        let found = self.shared()?.fetch(digest).map_err(FollowError::Store)?;
        found
            .map(Vec::from)
            .ok_or_else(|| FollowError::Missing(*digest))
    }

    fn message(&self, kind: Kind, after: u64, stored: Stored) -> Message {
        let entry = |change: Change| {
            let Change {
                revision,
                project,
                record,
                current,
            } = change;
            let (record, ownership) = match record {
                Some(stored) => (Some(stored.record), stored.ownership),
                None => (None, BTreeMap::new()),
            };
            let entry = Entry {
                // A snapshot does not say when a project has changed. If one cannot be applied, an
                // edge that starts again compares everything.
                revision: match kind {
                    Kind::Changes => revision,
                    Kind::Snapshot => 0,
                },
                project: project.to_string(),
                record,
                current,
                ownership,
            };
            (project, entry)
        };
        let entries: Vec<_> = stored.changes.into_iter().map(entry).collect();
        let id = id(&stored.life);
        let Place { revision, mark } = stored.place;
        Message {
            head: Head {
                version: VERSION,
                kind,
                service: self.service.clone(),
                identity: Identity {
                    life: 0,
                    id: id.clone(),
                },
                ring: 0,
                source_revision: 0,
                store: Some(StoreRevision {
                    id,
                    revision,
                    newest: stored.latest,
                }),
                mark,
                after,
                revision,
                latest: stored.latest,
                entries: entries.len() as u64,
            },
            entries,
        }
    }
}

/// Returns the identity of a life: the store, and its server.
fn id(life: &Life) -> String {
    format!("{}/{}", life.store, life.server)
}

/// Refuses a source that may lack changes of a shared store which the cache has.
fn accept_store(known: &Position, head: &Head) -> Result<(), FollowError> {
    let (Some(before), Some(now)) = (&known.store, &head.store) else {
        return Ok(());
    };
    // The revisions of a life have an order of their own, unless its database has gone back.
    let is_behind = match known.identity == head.identity {
        true => now.id == before.id && now.newest < before.newest,
        false => now.may_lack(before),
    };
    if is_behind {
        return Err(FollowError::Behind {
            found: now.revision,
            known: before.newest,
        });
    }
    if now.has_other_history(before) {
        let (found, known) = (now.newest, before.newest);
        log::error!(target: "follow", "the database of the source has another history than before (revision {found} after {known}), and sites may go back to an earlier state");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(life: u64, store: Option<(&str, u64, u64)>) -> Head {
        Head {
            version: VERSION,
            kind: Kind::Snapshot,
            service: "waypost.localhost".to_owned(),
            identity: Identity {
                life,
                id: format!("life {life}"),
            },
            ring: 0,
            source_revision: 0,
            store: store.map(|(id, revision, newest)| StoreRevision {
                id: id.to_owned(),
                revision,
                newest,
            }),
            mark: None,
            after: 0,
            revision: 1,
            latest: 1,
            entries: 0,
        }
    }

    #[test]
    fn a_source_that_may_lack_changes_of_the_same_store_is_refused() {
        let known = Position::of("", head(1, Some(("store/1", 5, 7))));
        let accept = |life, store| accept_store(&known, &head(life, store)).is_ok();
        // Another gateway has everything, or perhaps not.
        assert!(accept(2, Some(("store/1", 7, 9))));
        assert!(!accept(2, Some(("store/1", 6, 9))));
        // The same gateway goes on, while a change is on its way; or its database has gone back.
        assert!(accept(1, Some(("store/1", 5, 8))));
        assert!(!accept(1, Some(("store/1", 5, 6))));
        // Nothing can be compared after a fail-over, with another store, or with none.
        assert!(accept(2, Some(("store/2", 1, 1))));
        assert!(accept(2, Some(("other/1", 1, 1))));
        assert!(accept(2, None));
        let known = Position::of("", head(1, None));
        accept_store(&known, &head(2, Some(("store/1", 1, 1)))).unwrap();
    }
}

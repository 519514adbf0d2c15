//! Where a follower gets changes and files from: a node, or the store of several machines itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::client::{Changes, Client, FollowError};
use super::message::{Entry, Head, Identity, Kind, Message, VERSION};
use super::position::Position;
use super::report::Report;
use crate::digest::Digest;
use crate::store::shared::{Change, Changes as Stored, Life};
use crate::store::{Shared, Store};

/// The source or the store that is followed.
#[derive(Debug)]
pub(super) enum Upstream {
    /// A node, over HTTPS.
    Node(Client),
    /// A database and an object store.
    Store(OfStore),
}

/// A store of several machines.
#[derive(Debug)]
pub(super) struct OfStore {
    pub(super) store: Arc<Store>,
    pub(super) service: String,
}

// === impl Upstream ===

impl Upstream {
    /// Asks for the changes after a revision, and waits for them. A node also gets the report.
    pub(super) fn changes(
        &self,
        identity: &str,
        after: u64,
        wait: Duration,
        report: &Report,
    ) -> Result<Changes, FollowError> {
        match self {
            Self::Node(client) => client.changes(identity, after, wait, report),
            Self::Store(store) => store.changes(identity, after, wait),
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
            Self::Node(_) => Ok(()),
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

    fn changes(&self, identity: &str, after: u64, wait: Duration) -> Result<Changes, FollowError> {
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
        match changes.revision == after {
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
        Message {
            head: Head {
                version: VERSION,
                kind,
                service: self.service.clone(),
                identity: Identity {
                    life: 0,
                    id: id(&stored.life),
                },
                ring: 0,
                source_revision: 0,
                after,
                revision: stored.revision,
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

/// Returns the store of an identity.
fn store_of(id: &str) -> &str {
    id.split('/').next().unwrap_or_default()
}

//! The follower of secrets: a thread of an edge that keeps its certificates, ticket keys and
//! answers to challenges equal to those of its source.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{CERTIFICATES, CERTIFICATES_MAX, FollowedTickets, Head, ITEMS, Item, SecretKind};
use super::{Certificate, OPEN, SEALED, VERSION};
use crate::error::chain;
use crate::follow::Config;
use crate::follow::client::{Client, FollowError};
use crate::follow::edge::{PAUSE, PAUSE_MAX, REMOVALS_FREE, REMOVALS_SHARE, WAIT};
use crate::follow::position::Position;
use crate::follow::sealing::EdgeKey;
use crate::follow::status::Status;
use crate::jitter;
use crate::store::documents::{Documents, Kind};
use crate::telemetry::Part;

/// Makes the record of a certificate, which is encrypted with the key of the edge.
pub type ToRecord = Box<dyn Fn(&Certificate) -> Result<Vec<u8>, String> + Send>;

/// Returns whether the key of the edge decrypts a record.
pub type IsUsable = Box<dyn Fn(&[u8]) -> bool + Send>;

/// The keys of an edge, and what uses them.
pub struct EdgeKeys {
    /// The key pair.
    pub key: EdgeKey,
    /// Makes a record of a certificate.
    pub to_record: ToRecord,
    /// Says whether a record of the cache can be used.
    pub is_usable: IsUsable,
    /// The keys of session tickets.
    pub tickets: FollowedTickets,
    /// Called after certificates have changed.
    pub changed: Box<dyn Fn() + Send>,
}

/// The parts that a follower of secrets needs.
#[derive(Debug)]
pub struct SecretFollowerParts {
    /// How the edge follows.
    pub config: Config,
    /// The domain of the service.
    pub service: String,
    /// Where certificates and answers to challenges are kept.
    pub documents: Arc<dyn Documents>,
    /// The file of the position.
    pub position: PathBuf,
    /// `None` if the edge has no key: then it gets only answers to challenges.
    pub edge_keys: Option<EdgeKeys>,
    /// Counts failures.
    pub status: Arc<Status>,
    /// Reports why the edge does not have what it needs.
    pub part: Part,
}

/// Follows the secrets of a source.
#[derive(Debug)]
pub struct SecretFollower {
    parts: SecretFollowerParts,
    client: Client,
    position: Option<Position>,
    /// Why a certificate could not be used.
    unusable: Option<String>,
}

// === impl EdgeKeys ===

impl std::fmt::Debug for EdgeKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EdgeKeys")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

// === impl SecretFollower ===

impl SecretFollower {
    /// Makes a follower.
    ///
    /// # Errors
    ///
    /// When the file of authorities cannot be used.
    pub fn new(parts: SecretFollowerParts) -> Result<Self, FollowError> {
        let client = Client::new(&parts.config, &parts.service).map_err(FollowError::File)?;
        let position = Position::read(&parts.position, &parts.config.url);
        Ok(Self {
            client,
            position,
            parts,
            unusable: None,
        })
    }

    /// Follows until the process ends. It can be stopped at any point.
    pub fn run(mut self) {
        let mut pause = PAUSE;
        let mut wait = Duration::ZERO;
        loop {
            match self.round(wait) {
                Ok(()) => {
                    pause = PAUSE;
                    wait = WAIT;
                    match &self.unusable {
                        Some(why) => self.parts.part.fail(why),
                        None => self.parts.part.recover(),
                    }
                }
                Err(error) => {
                    self.parts.part.fail(self.parts.status.count(&error));
                    wait = Duration::ZERO;
                    std::thread::sleep(jitter::pause(pause));
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Asks once, and applies the answer.
    fn round(&mut self, wait: Duration) -> Result<(), FollowError> {
        let position = self.position.clone();
        let known = position.as_ref();
        let (identity, after) = known.map_or(("", 0), |at| (&*at.identity.id, at.revision));
        // The edge has got its key, or another one, after it had got these secrets.
        let key = self.parts.edge_keys.as_ref();
        let key = key.map(|edge_keys| edge_keys.key.public().to_string());
        let known_key = known.and_then(|known| known.key.clone());
        let wants_all = known_key != key;
        let asked = self.client.secrets(identity, after, wants_all, wait)?;
        let Some(content) = asked else {
            return Ok(());
        };
        let text = self.open(&content, ITEMS)?;
        let is_sealed = content.first() == Some(&SEALED);
        let (head, items) = read(&text)?;
        if head.service != self.parts.service {
            return Err(FollowError::Service {
                found: head.service,
                expected: self.parts.service.clone(),
            });
        }
        if head.after != after || (!head.is_complete && head.identity.id != identity) {
            return Err(FollowError::OtherRequest);
        }
        if known.is_some_and(|known| {
            head.identity.life < known.identity.life
                || (head.identity == known.identity && head.revision < known.revision)
        }) {
            return Err(FollowError::Older);
        }
        self.apply(&head, items, wants_all)?;
        let has_all = !wants_all || head.is_complete;
        let key = key.filter(|_| is_sealed && has_all);
        let (url, now) = (&self.parts.config.url, self.parts.status.now());
        let mut at = Position::new(url, head.identity, head.revision, now);
        at.key = key;
        at.write(&self.parts.position).map_err(FollowError::File)?;
        self.position = Some(at);
        Ok(())
    }

    /// Decrypts a content.
    fn open(&mut self, content: &[u8], purpose: &str) -> Result<Vec<u8>, FollowError> {
        match (content.split_first(), &self.parts.edge_keys) {
            (Some((&SEALED, sealed)), Some(edge_keys)) => {
                self.unusable = None;
                edge_keys
                    .key
                    .open(purpose, sealed)
                    .ok_or(FollowError::Sealed)
            }
            // The source knows no key of this edge. What it sends is public.
            (Some((&OPEN, text)), edge_keys) => {
                self.unusable = edge_keys.as_ref().map(|edge_keys| {
                    format!(
                        "the source knows no key of this edge, so it sends no certificates; run \
                         `waypost edge set NAME --key {}` there",
                        edge_keys.key.public()
                    )
                });
                Ok(text.to_vec())
            }
            // It was sealed, and this edge has no key.
            (Some((&SEALED, _)), None) => Err(FollowError::Sealed),
            _ => Err(FollowError::OtherRequest),
        }
    }

    /// Applies a message. With `is_key_new`, a certificate that was encrypted with another key is
    /// fetched again.
    fn apply(
        &mut self,
        head: &Head,
        items: Vec<Item>,
        is_key_new: bool,
    ) -> Result<(), FollowError> {
        let documents = Arc::clone(&self.parts.documents);
        if head.is_complete {
            self.remove_others(&items)?;
        }
        let mut wanted = Vec::new();
        let mut has_changed = head.is_complete;
        for item in items {
            match (item.kind, item.content) {
                (SecretKind::Challenge, Some(content)) => {
                    documents.put(Kind::Challenge, &item.key, content.as_bytes())?;
                }
                (SecretKind::Challenge, None) => documents.remove(Kind::Challenge, &item.key)?,
                (SecretKind::Certificate, _) if item.is_removed => {
                    documents.remove(Kind::Certificate, &item.key)?;
                    has_changed = true;
                }
                (SecretKind::Certificate, _) => {
                    let known = documents.get(Kind::Certificate, &item.key)?;
                    if !known.is_some_and(|known| !is_key_new || self.is_usable(&known)) {
                        wanted.push(item.key);
                    }
                }
                (SecretKind::Tickets, Some(content)) => {
                    if let Some(edge_keys) = &self.parts.edge_keys {
                        edge_keys
                            .tickets
                            .replace(&content)
                            .map_err(FollowError::File)?;
                    }
                }
                (SecretKind::Tickets, None) => {}
            }
        }
        has_changed |= !wanted.is_empty();
        for keys in wanted.chunks(CERTIFICATES_MAX) {
            self.fetch(keys)?;
        }
        if let Some(edge_keys) = self.parts.edge_keys.as_ref().filter(|_| has_changed) {
            (edge_keys.changed)();
        }
        Ok(())
    }

    fn is_usable(&self, record: &[u8]) -> bool {
        let edge_keys = self.parts.edge_keys.as_ref();
        edge_keys.is_none_or(|edge_keys| (edge_keys.is_usable)(record))
    }

    /// Fetches certificates. An unusable certificate is reported, and the others are kept.
    fn fetch(&mut self, keys: &[String]) -> Result<(), FollowError> {
        let content = self.client.certificates(keys)?;
        let text = self.open(&content, CERTIFICATES)?;
        let Some(edge_keys) = &self.parts.edge_keys else {
            return Ok(());
        };
        for line in text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let certificate: Certificate = serde_json::from_slice(line)
                .map_err(|error| FollowError::Message(error.to_string()))?;
            let key = &certificate.key;
            if !keys.contains(key) {
                return Err(FollowError::OtherRequest);
            }
            match (edge_keys.to_record)(&certificate) {
                Ok(record) => self.parts.documents.put(Kind::Certificate, key, &record)?,
                Err(why) => {
                    log::error!(target: "follow", "the certificate {key} of the source cannot be used: {why}");
                    let name = &certificate.name;
                    self.unusable =
                        Some(format!("the certificate of {name} cannot be used: {why}"));
                }
            }
        }
        Ok(())
    }

    /// Removes all items that are not in a complete message. If that would remove very many
    /// certificates, they are kept: they serve until they expire.
    fn remove_others(&self, items: &[Item]) -> Result<(), FollowError> {
        let documents = &self.parts.documents;
        for (kind, of) in [
            (SecretKind::Certificate, Kind::Certificate),
            (SecretKind::Challenge, Kind::Challenge),
        ] {
            let named: HashSet<&str> = items
                .iter()
                .filter(|item| item.kind == kind)
                .map(|item| &*item.key)
                .collect();
            let known = documents.keys(of)?;
            let count = known.len();
            let removed = known.into_iter().filter(|key| !named.contains(&**key));
            let removed: Vec<Box<str>> = removed.collect();
            let many = removed.len();
            if of == Kind::Certificate && many >= REMOVALS_FREE && many * REMOVALS_SHARE > count {
                log::error!(target: "follow", "the source has {many} of {count} certificates no more; they are used until they expire");
                continue;
            }
            for key in removed {
                documents.remove(of, &key)?;
            }
        }
        Ok(())
    }
}

/// Reads a message.
fn read(text: &[u8]) -> Result<(Head, Vec<Item>), FollowError> {
    let invalid = |error: &dyn std::error::Error| FollowError::Message(chain(error));
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    if let Some(newer) = crate::version::newer_than(VERSION.into(), first) {
        let why = format!("it has version {newer}; this program reads version {VERSION}");
        return Err(FollowError::Message(why));
    }
    let head: Head = serde_json::from_slice(first).map_err(|error| invalid(&error))?;
    let items = lines
        .map(serde_json::from_slice)
        .collect::<Result<Vec<Item>, _>>();
    let items = items.map_err(|error| invalid(&error))?;
    match items.len() as u64 == head.items {
        true => Ok((head, items)),
        false => Err(FollowError::OtherRequest),
    }
}

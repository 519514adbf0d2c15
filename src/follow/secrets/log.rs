//! The items of a source, numbered in the order of their last change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Head, Item, SecretKind, VERSION};
use crate::follow::message::{Identity, push_line};
use crate::follow::revisions::Revisions;

type Key = (SecretKind, Box<str>);

/// The log of items.
#[derive(Debug)]
pub struct SecretLog {
    identity: Identity,
    service: String,
    items: Mutex<Revisions<Key, ItemState>>,
    latest: watch::Sender<u64>,
}

/// The last state of an item.
#[derive(Clone, Debug)]
struct ItemState {
    is_removed: bool,
    content: Option<Arc<str>>,
}

// === impl SecretLog ===

impl SecretLog {
    pub(in crate::follow) fn new(identity: Identity, service: &str) -> Self {
        Self {
            identity,
            service: service.to_owned(),
            items: Mutex::default(),
            latest: watch::Sender::new(0),
        }
    }

    /// Puts an item. Nothing changes if it is there with this content.
    pub fn put(&self, kind: SecretKind, key: &str, content: Option<&str>) {
        let mut items = self.items();
        let id = (kind, Box::from(key));
        let known = items.get(&id);
        let is_known = known
            .is_some_and(|(_, known)| !known.is_removed && known.content.as_deref() == content);
        if !is_known {
            let state = ItemState {
                is_removed: false,
                content: content.map(Arc::from),
            };
            items.set(id, false, state);
            self.latest.send_replace(items.latest());
        }
    }

    /// Removes an item, if it is there.
    pub fn remove(&self, kind: SecretKind, key: &str) {
        let mut items = self.items();
        let id = (kind, Box::from(key));
        if items.get(&id).is_some_and(|(_, known)| !known.is_removed) {
            let removed = ItemState {
                is_removed: true,
                content: None,
            };
            items.set(id, true, removed);
            self.latest.send_replace(items.latest());
        }
    }

    /// Returns the newest revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        *self.latest.borrow()
    }

    pub(in crate::follow) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(in crate::follow) fn latest(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// Returns the message after a revision of an identity: with everything for another identity, for
    /// a revision that is too old, or with `wants_all`; `None` if nothing has changed. With `only`,
    /// items of other kinds are left out.
    pub(in crate::follow) fn after(
        &self,
        identity: &str,
        after: u64,
        wants_all: bool,
        only: Option<SecretKind>,
    ) -> Option<Vec<u8>> {
        let kept = self.items();
        let revision = kept.latest();
        let is_complete = wants_all || identity != self.identity.id || !kept.continues(after);
        if !is_complete && after == revision {
            return None;
        }
        let from = if is_complete { 0 } else { after };
        let items = kept.after(from).filter_map(|(_, id, known)| {
            let is_wanted = only.is_none_or(|only| only == id.0);
            (is_wanted && !(is_complete && known.is_removed)).then(|| Item {
                kind: id.0,
                key: id.1.to_string(),
                is_removed: known.is_removed,
                content: known.content.as_deref().map(str::to_owned),
            })
        });
        let items: Vec<Item> = items.collect();
        let head = Head {
            version: VERSION,
            service: self.service.clone(),
            identity: self.identity.clone(),
            after,
            revision,
            is_complete,
            items: items.len() as u64,
        };
        drop(kept);
        let mut message = Vec::with_capacity(256 + 128 * items.len());
        push_line(&mut message, &head);
        for item in items {
            push_line(&mut message, &item);
        }
        Some(message)
    }

    fn items(&self) -> MutexGuard<'_, Revisions<Key, ItemState>> {
        // A panic cannot leave the value in an inconsistent state.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::revisions::REMOVED_MAX;

    fn log() -> SecretLog {
        let identity = Identity {
            life: 1,
            id: "a".to_owned(),
        };
        SecretLog::new(identity, "waypost.localhost")
    }

    fn read(message: Option<Vec<u8>>) -> (Head, Vec<Item>) {
        let message = String::from_utf8(message.unwrap()).unwrap();
        let (head, items) = message.split_once('\n').unwrap();
        let items = items.lines();
        let items = items.map(|line| serde_json::from_str(line).unwrap());
        (serde_json::from_str(head).unwrap(), items.collect())
    }

    #[test]
    fn each_item_is_sent_once_with_its_last_state() {
        let log = log();
        log.put(SecretKind::Certificate, "docs.acme.com~1", None);
        log.put(SecretKind::Challenge, "http~x", Some("answer"));
        log.put(SecretKind::Challenge, "http~x", Some("answer"));
        assert_eq!(log.revision(), 2);
        let (head, items) = read(log.after("a", 0, false, None));
        assert!(!head.is_complete && head.revision == 2 && items.len() == 2);
        assert_eq!(items[1].content.as_deref(), Some("answer"));
        assert_eq!(log.after("a", 2, false, None), None);
        log.remove(SecretKind::Challenge, "http~x");
        log.remove(SecretKind::Challenge, "http~x");
        let (_, items) = read(log.after("a", 2, false, None));
        assert!(items.len() == 1 && items[0].is_removed && items[0].content.is_none());
        // Another life gets everything that there is.
        let (head, items) = read(log.after("b", 3, false, None));
        assert!(head.is_complete && items.len() == 1, "{items:?}");
        let (_, items) = read(log.after("b", 0, false, Some(SecretKind::Challenge)));
        assert_eq!(items, []);
        // So does an edge that asks for everything.
        let (head, items) = read(log.after("a", 3, true, None));
        assert!(head.is_complete && items.len() == 1, "{items:?}");
    }

    #[test]
    fn a_forgotten_removal_leads_to_a_complete_message() {
        let log = log();
        for number in 0..=REMOVED_MAX {
            let key = format!("http~{number}");
            log.put(SecretKind::Challenge, &key, Some("a"));
            log.remove(SecretKind::Challenge, &key);
        }
        assert!(read(log.after("a", 1, false, None)).0.is_complete);
        assert!(!read(log.after("a", 2, false, None)).0.is_complete);
    }
}

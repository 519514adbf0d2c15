//! The items of a source, numbered in the order of their last change.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Head, Item, SecretKind, VERSION};
use crate::follow::message::{Identity, push_line};

/// How many removed items are remembered.
const REMOVED_MAX: usize = 10_000;

type Key = (SecretKind, Box<str>);

/// The log of items.
#[derive(Debug)]
pub struct SecretLog {
    identity: Identity,
    service: String,
    state: Mutex<State>,
    latest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    /// An edge with a smaller revision may have missed a removal.
    oldest: u64,
    items: HashMap<Key, Known>,
    /// The item of each revision.
    order: BTreeMap<u64, Key>,
    removed: BTreeMap<u64, Key>,
}

#[derive(Clone, Debug)]
struct Known {
    revision: u64,
    is_removed: bool,
    content: Option<Arc<str>>,
}

// === impl SecretLog ===

impl SecretLog {
    pub(in crate::follow) fn new(identity: Identity, service: &str) -> Self {
        Self {
            identity,
            service: service.to_owned(),
            state: Mutex::default(),
            latest: watch::Sender::new(0),
        }
    }

    /// Puts an item. Nothing changes if it is there with this content.
    pub fn put(&self, kind: SecretKind, key: &str, content: Option<&str>) {
        let mut state = self.state();
        let id = (kind, Box::from(key));
        let known = state.items.get(&id);
        let is_known =
            known.is_some_and(|known| !known.is_removed && known.content.as_deref() == content);
        if !is_known {
            state.set(id, false, content.map(Arc::from));
            self.latest.send_replace(state.revision);
        }
    }

    /// Removes an item, if it is there.
    pub fn remove(&self, kind: SecretKind, key: &str) {
        let mut state = self.state();
        let id = (kind, Box::from(key));
        if state.items.get(&id).is_some_and(|known| !known.is_removed) {
            state.set(id, true, None);
            self.latest.send_replace(state.revision);
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

    /// Returns the message after a revision of an identity: with everything for another identity or
    /// a revision that is too old; `None` if nothing has changed. With `only`, items of other kinds
    /// are left out.
    pub(in crate::follow) fn after(
        &self,
        identity: &str,
        after: u64,
        only: Option<SecretKind>,
    ) -> Option<Vec<u8>> {
        let state = self.state();
        let is_complete =
            identity != self.identity.id || after > state.revision || after < state.oldest;
        if !is_complete && after == state.revision {
            return None;
        }
        let from = if is_complete { 0 } else { after + 1 };
        let items = state.order.range(from..).filter_map(|(_, id)| {
            let known = &state.items[id];
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
            revision: state.revision,
            is_complete,
            items: items.len() as u64,
        };
        drop(state);
        let mut message = Vec::with_capacity(256 + 128 * items.len());
        push_line(&mut message, &head);
        for item in items {
            push_line(&mut message, &item);
        }
        Some(message)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the value in an inconsistent state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn set(&mut self, id: Key, is_removed: bool, content: Option<Arc<str>>) {
        self.revision += 1;
        let revision = self.revision;
        let known = Known {
            revision,
            is_removed,
            content,
        };
        if let Some(before) = self.items.insert(id.clone(), known) {
            self.order.remove(&before.revision);
            self.removed.remove(&before.revision);
        }
        if is_removed {
            self.removed.insert(revision, id.clone());
        }
        self.order.insert(revision, id);
        while self.removed.len() > REMOVED_MAX {
            let Some((oldest, id)) = self.removed.pop_first() else {
                break;
            };
            self.order.remove(&oldest);
            self.items.remove(&id);
            self.oldest = oldest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (head, items) = read(log.after("a", 0, None));
        assert!(!head.is_complete && head.revision == 2 && items.len() == 2);
        assert_eq!(items[1].content.as_deref(), Some("answer"));
        assert_eq!(log.after("a", 2, None), None);
        log.remove(SecretKind::Challenge, "http~x");
        log.remove(SecretKind::Challenge, "http~x");
        let (_, items) = read(log.after("a", 2, None));
        assert!(items.len() == 1 && items[0].is_removed && items[0].content.is_none());
        // Another life gets everything that there is.
        let (head, items) = read(log.after("b", 3, None));
        assert!(head.is_complete && items.len() == 1, "{items:?}");
        let (_, items) = read(log.after("b", 0, Some(SecretKind::Challenge)));
        assert_eq!(items, []);
    }

    #[test]
    fn a_forgotten_removal_leads_to_a_complete_message() {
        let log = log();
        for number in 0..=REMOVED_MAX {
            let key = format!("http~{number}");
            log.put(SecretKind::Challenge, &key, Some("a"));
            log.remove(SecretKind::Challenge, &key);
        }
        assert!(read(log.after("a", 1, None)).0.is_complete);
        assert!(!read(log.after("a", 2, None)).0.is_complete);
    }
}

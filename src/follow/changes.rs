//! The changes of a source, numbered in the order in which they became visible.
//!
//! There is one entry for each project, with the revision of its last change. So a project that
//! changed a hundred times is sent once, and the log needs no more memory than the sites. Removed
//! projects are remembered up to a number; an edge that is older than the oldest of them takes a
//! snapshot.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use tokio::sync::watch;

use super::files;
use super::message::{Entry, Head, Identity, Kind, VERSION, push_line};
use super::revisions::Revisions;
use super::secrets::SecretLog;
use super::store_revision::{ServedRevision, StoreRevision};
use crate::deploy::sites::Representation;
use crate::index::reload::Observer;
use crate::site::{ProjectId, Site};
use crate::store::Promotion;

/// A message of changes ends with the entry with which its entries have this length. An edge reads
/// several times as much, and one entry is never longer than the rest of that.
const CHANGES_BYTES: usize = 8 << 20;
/// How many entries of a snapshot are written together.
const CHUNK: usize = 4096;
/// The shortest entry has more bytes than this.
const ENTRY_BYTES_MIN: usize = 32;

/// The log of changes of a source.
#[derive(Debug)]
pub struct ChangeLog {
    identity: Identity,
    service: String,
    ring: u8,
    /// The revision of the first ring, which all rings of a life share.
    source_revision: Arc<AtomicU64>,
    /// The revision of the shared store; all rings share it.
    store: Arc<ServedRevision>,
    projects: Mutex<Revisions<ProjectId, ProjectState>>,
    latest: watch::Sender<u64>,
}

/// The last state of a project.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProjectState {
    /// `None` if it was removed.
    pub(super) site: Option<Arc<Site>>,
    pub(super) current: Option<Promotion>,
}

/// A changed project: the revision of the change, and its last state.
type ChangedProject = (u64, ProjectId, ProjectState);

/// Entries of a message.
struct Lines {
    bytes: Vec<u8>,
    entries: u64,
    /// The revision of the last one.
    revision: Option<u64>,
}

/// The result of asking for changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    /// There are none yet.
    Nothing,
    /// The edge must compare everything.
    Gone,
    /// A message, and the revision of an edge that has applied it.
    Message { content: Vec<u8>, revision: u64 },
}

// === impl ChangeLog ===

impl ChangeLog {
    /// Begins a life of the source, and returns a log for each ring. The number of the life is
    /// kept in a file, and is greater than that of every earlier life.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or written, or the system has no random bytes.
    pub fn begin(file: &Path, service: &str, now: u64, rings: usize) -> io::Result<Vec<Self>> {
        let before = match fs::read_to_string(file) {
            Ok(text) => text.trim().parse().unwrap_or(0_u64),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let life = before.saturating_add(1).max(now);
        files::replace_durably(file, format!("{life}\n").as_bytes())?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let id = hex::encode(random);
        let source_revision: Arc<AtomicU64> = Arc::default();
        let store: Arc<ServedRevision> = Arc::default();
        let logs = (0..rings).map(|ring| {
            let id = match ring {
                0 => id.clone(),
                // An edge that comes from another ring compares everything.
                _ => format!("{id}-{ring}"),
            };
            let ring = u8::try_from(ring).unwrap_or(u8::MAX);
            Self {
                ring,
                source_revision: Arc::clone(&source_revision),
                store: Arc::clone(&store),
                ..Self::new(Identity { life, id }, service)
            }
        });
        Ok(logs.collect())
    }

    /// Makes the log of secrets of the same life.
    #[must_use]
    pub fn secrets(&self) -> SecretLog {
        SecretLog::new(self.identity.clone(), &self.service)
    }

    fn new(identity: Identity, service: &str) -> Self {
        Self {
            identity,
            service: service.to_owned(),
            ring: 0,
            source_revision: Arc::default(),
            store: Arc::default(),
            projects: Mutex::default(),
            latest: watch::Sender::new(0),
        }
    }

    /// Returns the last state of a project, and the revision of its last change.
    pub(super) fn state(&self, project: &ProjectId) -> Option<(u64, ProjectState)> {
        self.projects().get(project).cloned()
    }

    /// Lets those who wait look again.
    pub(super) fn wake(&self) {
        self.latest.send_modify(|_same| {});
    }

    /// Returns the text that names this life.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity.id
    }

    /// Returns the newest revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        *self.latest.borrow()
    }

    /// Returns the revision of the first ring.
    pub(super) fn source_revision(&self) -> u64 {
        self.source_revision.load(Ordering::Acquire)
    }

    /// Returns the revision of the shared store.
    pub(super) fn store(&self) -> &ServedRevision {
        &self.store
    }

    /// Returns how many projects have a site.
    #[must_use]
    pub fn sites(&self) -> usize {
        self.projects().present()
    }

    pub(super) fn latest(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// Returns the changes after a revision of an identity.
    pub(super) fn after(&self, identity: &str, after: u64) -> After {
        self.after_within(identity, after, CHANGES_BYTES)
    }

    /// The same, in a message that ends with the entry that reaches this length.
    fn after_within(&self, identity: &str, after: u64, bytes_max: usize) -> After {
        // Before the entries: a message may be newer than it says, and never older.
        let before = (self.source_revision(), self.store.get());
        let projects = self.projects();
        if identity != self.identity.id || !projects.continues(after) {
            return After::Gone;
        }
        let latest = projects.latest();
        if after == latest {
            return After::Nothing;
        }
        // The lines are made without the lock.
        let found = projects.after(after).take(bytes_max / ENTRY_BYTES_MIN + 1);
        let found: Vec<ChangedProject> = found
            .map(|(revision, project, known)| (revision, project.clone(), known.clone()))
            .collect();
        drop(projects);
        let lines = Lines::of(&found, bytes_max);
        let revision = lines.revision.unwrap_or(latest);
        let revisions = (after, revision, latest);
        After::Message {
            content: self.message(Kind::Changes, before, revisions, &lines),
            revision,
        }
    }

    /// Returns the revision of this ring, the revision of the first ring, and a message with all
    /// projects.
    pub(super) fn snapshot(&self) -> (u64, u64, Vec<u8>) {
        let source_revision = self.source_revision();
        let store = self.store.get();
        let projects = self.projects();
        let revision = projects.latest();
        let found: Vec<ChangedProject> = projects
            .after(0)
            .filter(|(.., known)| known.site.is_some())
            .map(|(revision, project, known)| (revision, project.clone(), known.clone()))
            .collect();
        drop(projects);
        let revisions = (0, revision, revision);
        let lines = Lines::all(&found);
        let before = (source_revision, store);
        let message = self.message(Kind::Snapshot, before, revisions, &lines);
        (revision, source_revision, message)
    }

    fn message(
        &self,
        kind: Kind,
        (source_revision, store): (u64, Option<StoreRevision>),
        (after, revision, latest): (u64, u64, u64),
        lines: &Lines,
    ) -> Vec<u8> {
        let head = Head {
            version: VERSION,
            kind,
            service: self.service.clone(),
            identity: self.identity.clone(),
            ring: self.ring,
            source_revision,
            store: self.store.since(store),
            mark: None,
            after,
            revision,
            latest,
            entries: lines.entries,
        };
        let mut message = Vec::with_capacity(1024 + lines.bytes.len());
        push_line(&mut message, &head);
        message.extend_from_slice(&lines.bytes);
        message
    }

    fn projects(&self) -> MutexGuard<'_, Revisions<ProjectId, ProjectState>> {
        // A panic cannot leave the value in an inconsistent state.
        self.projects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the new revision to those who wait. The lock is held, so revisions only grow.
    fn publish(&self, projects: &Revisions<ProjectId, ProjectState>) {
        if self.ring == 0 {
            let latest = projects.latest();
            self.source_revision.store(latest, Ordering::Release);
        }
        self.latest.send_replace(projects.latest());
    }
}

// === impl Lines ===

impl Lines {
    /// Writes all changes, on all processors.
    fn all(found: &[ChangedProject]) -> Self {
        let parts: Vec<Self> = found
            .par_chunks(CHUNK)
            .map(|chunk| Self::of(chunk, usize::MAX))
            .collect();
        let mut all = Self {
            bytes: Vec::with_capacity(parts.iter().map(|part| part.bytes.len()).sum()),
            entries: 0,
            revision: None,
        };
        for part in parts {
            all.bytes.extend_from_slice(&part.bytes);
            all.entries += part.entries;
            all.revision = part.revision;
        }
        all
    }

    /// Writes changes until the lines have this length; the first one always.
    fn of(found: &[ChangedProject], bytes_max: usize) -> Self {
        let mut lines = Self {
            bytes: Vec::with_capacity(ENTRY_BYTES_MIN * found.len()),
            entries: 0,
            revision: None,
        };
        for (changed, project, known) in found {
            let record = known.site.as_ref().map(|site| {
                let mut members = Representation::of_site(site).members;
                // An edge keeps the record in its own store.
                for key in ["project", "kept_in", "file"] {
                    members.shift_remove(key);
                }
                members
            });
            let entry = Entry {
                revision: *changed,
                project: project.to_string(),
                record,
                current: known.current,
                ownership: BTreeMap::new(),
            };
            push_line(&mut lines.bytes, &entry);
            lines.entries += 1;
            lines.revision = Some(*changed);
            if lines.bytes.len() >= bytes_max {
                break;
            }
        }
        lines
    }
}

impl Observer for ChangeLog {
    fn loaded(&self, site: &Arc<Site>, current: Option<Promotion>) {
        let mut projects = self.projects();
        let known = projects.get(&site.project).map(|(_, known)| known);
        // If the pointer cannot be read now, the last known pointer is used, but never that of a
        // former owner.
        let of_owner = known.filter(|known| {
            let before = known.site.as_ref();
            before.is_some_and(|before| before.owner == site.owner)
        });
        let current = current.or(of_owner.and_then(|known| known.current));
        let is_known = known.is_some_and(|known| {
            known.current == current && known.site.as_deref() == Some(&**site)
        });
        if !is_known {
            let state = ProjectState {
                site: Some(Arc::clone(site)),
                current,
            };
            projects.set(site.project.clone(), false, state);
            self.publish(&projects);
        }
    }

    fn removed(&self, removed: &[ProjectId]) {
        let mut projects = self.projects();
        for project in removed {
            let known = projects.get(project);
            if known.is_some_and(|(_, known)| known.site.is_some()) {
                let none = ProjectState {
                    site: None,
                    current: None,
                };
                projects.set(project.clone(), true, none);
            }
        }
        self.publish(&projects);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::message::Message;
    use super::super::revisions::REMOVED_MAX;
    use super::*;
    use crate::clock::Clock;
    use crate::digest::Digest;
    use crate::release::ReleaseId;
    use crate::site::{PrivateHosts, Service};
    use crate::store::SiteRecord;
    use crate::store::sites::read_record;

    pub(in crate::follow) fn log() -> ChangeLog {
        let identity = Identity {
            life: 1,
            id: "a".to_owned(),
        };
        ChangeLog::new(identity, "waypost.localhost")
    }

    pub(in crate::follow) fn site(project: &str, owner: &str) -> Arc<Site> {
        let record = serde_json::json!({ "subdomain": project, "owner": owner });
        let stored = SiteRecord {
            project: ProjectId::parse(project).unwrap(),
            changed_at: 0,
            ownership: BTreeMap::new(),
            record: record.as_object().unwrap().clone(),
        };
        read_record(&stored, &Service::default(), &PrivateHosts::default()).unwrap()
    }

    pub(in crate::follow) fn promotion(generation: u64) -> Option<Promotion> {
        Some(Promotion {
            release: ReleaseId::of(Digest::of(&generation.to_be_bytes())),
            generation,
            epoch: 0,
            promoted_at: 7,
        })
    }

    fn projects(after: After) -> (u64, Vec<(String, bool)>) {
        let After::Message { content, .. } = after else {
            panic!("{after:?}");
        };
        read(&content)
    }

    fn read(content: &[u8]) -> (u64, Vec<(String, bool)>) {
        let message = Message::parse(content).unwrap();
        let entries = message.entries.iter();
        let entries = entries.map(|(project, entry)| (project.to_string(), entry.record.is_some()));
        (message.head.revision, entries.collect())
    }

    #[test]
    fn each_project_is_sent_once_in_the_order_of_its_last_change() {
        let log = log();
        log.loaded(&site("one", "a"), promotion(1));
        log.loaded(&site("two", "a"), None);
        log.loaded(&site("one", "a"), promotion(2));
        // Nothing has changed, or the pointer cannot be read.
        log.loaded(&site("one", "a"), promotion(2));
        log.loaded(&site("one", "a"), None);
        assert_eq!(log.revision(), 3);
        let expected = vec![("two".to_owned(), true), ("one".to_owned(), true)];
        assert_eq!(projects(log.after("a", 0)), (3, expected));
        assert_eq!(log.after("a", 3), After::Nothing);
        log.removed(&[ProjectId::parse("two").unwrap()]);
        assert_eq!(
            projects(log.after("a", 3)),
            (4, vec![("two".into(), false)])
        );
        assert_eq!(log.sites(), 1);
        let (revision, source_revision, snapshot) = log.snapshot();
        assert_eq!(source_revision, revision);
        assert_eq!(read(&snapshot).1, [("one".into(), true)]);
        assert_eq!(revision, 4);
    }

    #[test]
    fn a_message_ends_when_its_entries_are_long_and_the_next_one_continues() {
        let log = log();
        for project in ["one", "two", "three"] {
            log.loaded(&site(project, "a"), None);
        }
        let (mut after, mut sent) = (0, Vec::new());
        while let After::Message { content, revision } = log.after_within("a", after, 100) {
            let (of_message, entries) = read(&content);
            assert_eq!((of_message, entries.len()), (revision, 1));
            sent.extend(entries.into_iter().map(|(project, _)| project));
            after = revision;
        }
        assert_eq!(sent, ["one", "two", "three"]);
        assert_eq!(log.after("a", after), After::Nothing);
        assert_eq!(projects(log.after("a", 0)).1.len(), 3);
    }

    #[test]
    fn another_life_and_other_revisions_need_a_comparison() {
        let log = log();
        log.loaded(&site("one", "a"), None);
        assert_eq!(log.after("b", 1), After::Gone);
        assert_eq!(log.after("a", 2), After::Gone);
    }

    #[test]
    fn a_forgotten_removal_needs_a_comparison() {
        let log = log();
        for number in 0..=REMOVED_MAX {
            let site = site(&format!("p{number}"), "a");
            log.loaded(&site, None);
            log.removed(std::slice::from_ref(&site.project));
        }
        assert_eq!(log.after("a", 1), After::Gone);
        assert!(matches!(log.after("a", 2), After::Message { .. }));
        assert_eq!(log.sites(), 0);
    }

    #[test]
    fn each_life_has_a_greater_number() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("life");
        let now = Clock::System.unix_seconds();
        let lives: Vec<_> = [now, now, 5]
            .into_iter()
            .map(|now| {
                let logs = ChangeLog::begin(&file, "x", now, 2).unwrap();
                assert_ne!(logs[0].identity, logs[1].identity);
                logs[0].identity.clone()
            })
            .collect();
        assert!(lives[0].life < lives[1].life && lives[1].life < lives[2].life);
        assert_ne!(lives[0].id, lives[1].id);
    }
}

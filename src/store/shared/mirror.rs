//! A copy of documents in directories of this machine.
//!
//! A gateway serves certificates, answers challenges and checks keys from the copy. So no request
//! and no handshake waits for the database, and a gateway starts and serves while the database is
//! away. A thread keeps the copy up to date; what processes of this machine change goes to the
//! database first.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::documents::{ROWS, Row};
use super::{Place, SharedDocuments};
use crate::clock::Clock;
use crate::error::chain;
use crate::store::FileError;
use crate::store::documents::{Change, Documents, Kind, KnownKeys, Lead, LocalDocuments};
use crate::store::durable::{self, Together};
use crate::store::local::WriterLock;
use crate::telemetry::Part;

/// How often the database is asked for changes without a `NOTIFY`.
const POLL: Duration = Duration::from_millis(200);
/// How often a gateway says that it runs, for itself and for its edges.
pub const ALIVE: Duration = Duration::from_secs(2);
/// The largest file with a position.
const POSITION_BYTES_MAX: u64 = 4096;
/// The version of that file.
const VERSION: u64 = 1;

/// A copy of documents.
#[derive(Debug)]
pub struct Mirror {
    documents: SharedDocuments,
    /// The name of this process. A process that waits for all gateways reads it.
    name: String,
    places: HashMap<&'static str, Destination>,
    position_file: PathBuf,
    store: PathBuf,
    state: Mutex<State>,
    /// The revision up to which the copy is complete; 0 at first.
    copied: Mutex<u64>,
    moved: Condvar,
}

/// The documents of certificates. Documents that every gateway serves are read from the copy.
#[derive(Debug)]
pub struct MirroredDocuments {
    mirror: Arc<Mirror>,
    local: Arc<LocalDocuments>,
}

/// Where the documents of a set are copied to.
enum Destination {
    /// Documents of a kind.
    Documents(Arc<LocalDocuments>, Kind),
    /// A file for each, named by its key and an ending.
    Files(PathBuf, &'static str),
}

#[derive(Debug, Default)]
struct State {
    position: Option<Position>,
    /// The revision that this process has reported last, and when.
    said: Option<(u64, Instant)>,
}

/// Which changes the copy has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Position {
    version: u64,
    /// The sets, the store and its life.
    history: String,
    revision: u64,
    /// The mark of that change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
}

// === impl Mirror ===

impl Mirror {
    /// Makes a copy below a directory, which is made if it does not exist and which only its owner
    /// can read. It copies nothing until a place is added. `name` tells this process from others,
    /// and `store` is the directory of a store on the same file system, which has the temporary
    /// files.
    ///
    /// # Errors
    ///
    /// When the directory cannot be made.
    pub fn new(
        documents: SharedDocuments,
        name: &str,
        directory: &Path,
        store: PathBuf,
    ) -> Result<Self, FileError> {
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(directory);
        made.map_err(FileError::on("make directory", directory))?;
        Ok(Self {
            documents,
            name: name.to_owned(),
            places: HashMap::new(),
            position_file: directory.join("position"),
            store,
            state: Mutex::default(),
            copied: Mutex::default(),
            moved: Condvar::new(),
        })
    }

    /// Waits until the copy is complete up to another revision than this one, at most for a time.
    /// Returns the revision.
    #[must_use]
    pub fn wait_for_other(&self, revision: u64, time: Duration) -> u64 {
        let copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .moved
            .wait_timeout_while(copied, time, |copied| *copied == revision);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Copies the certificates and the challenges into a directory of documents.
    ///
    /// # Errors
    ///
    /// As [`LocalDocuments::open`].
    pub fn with_certificates(
        mut self,
        directory: &Path,
        clock: Clock,
    ) -> Result<(Self, Arc<LocalDocuments>), FileError> {
        let local = Arc::new(LocalDocuments::open(directory, clock)?);
        for kind in Kind::ALL.into_iter().filter(|kind| is_copied(*kind)) {
            let place = Destination::Documents(Arc::clone(&local), kind);
            self.places.insert(kind.directory(), place);
        }
        Ok((self, local))
    }

    /// Copies a set into files of a directory, with an ending after their keys.
    #[must_use]
    pub fn with_files(
        mut self,
        set: &'static str,
        directory: PathBuf,
        ending: &'static str,
    ) -> Self {
        self.places
            .insert(set, Destination::Files(directory, ending));
        self
    }

    /// Reads how far an earlier process has copied.
    fn begin(&self) -> Option<Position> {
        let bytes = durable::read(&self.position_file, POSITION_BYTES_MAX).ok()??;
        let position: Position = serde_json::from_slice(&bytes).ok()?;
        (position.version == VERSION).then_some(position)
    }

    /// Returns the names of the sets that are copied, and the life of the database. When the sets
    /// change, the copy lacks documents that did not change since then, and must be made again.
    fn history(&self, life: &str) -> String {
        let mut sets: Vec<_> = self.places.keys().copied().collect();
        sets.sort_unstable();
        format!("{} of {life}", sets.join(","))
    }

    /// Copies the changed documents. Returns the revision up to which the copy is complete.
    ///
    /// # Errors
    ///
    /// When the database cannot be read or a file cannot be written: the next call goes on.
    pub fn sync(&self) -> Result<u64, FileError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let life = self.documents.history()?;
            let history = self.history(&life);
            let before = state.position.take().or_else(|| self.begin());
            let known = before.filter(|position| position.history == history);
            let page = match &known {
                Some(position) => self.documents.after(&position.place())?,
                None => None,
            };
            let (rows, place, is_last) = match page {
                Some(page) => (page.rows, page.place, page.is_last),
                None => (
                    Vec::new(),
                    durable::together(|changes| self.compare(changes))?,
                    true,
                ),
            };
            if self.documents.history()? != life {
                // The new connection is to a database with another history.
                continue;
            }
            let Place { revision, mark } = place;
            let position = Position {
                version: VERSION,
                history,
                revision,
                mark,
            };
            // A copy that is complete is not written, so its disk may be read-only.
            if !rows.is_empty() || known.as_ref() != Some(&position) {
                let writer = WriterLock::take(&self.store)?;
                durable::together(|changes| {
                    let mut rows = rows.into_iter();
                    rows.try_for_each(|row| self.apply(changes, &writer, row))
                })?;
                let text = serde_json::to_vec(&position).expect("texts and numbers are JSON");
                durable::replace(writer.temp(), &self.position_file, &text)?;
            }
            state.position = Some(position);
            *self.copied.lock().unwrap_or_else(PoisonError::into_inner) = revision;
            self.moved.notify_all();
            if is_last {
                return Ok(revision);
            }
        }
    }

    fn apply(
        &self,
        changes: &mut Together,
        writer: &WriterLock,
        row: Row,
    ) -> Result<(), FileError> {
        let Some(place) = self.places.get(&*row.kind) else {
            return Ok(());
        };
        if !is_file_name(&row.key) {
            log::error!(target: "store", "the database has a document {:?} whose key cannot be used", row.key);
            return Ok(());
        }
        match row.content {
            Some(bytes) => place.put(changes, writer, &row.key, &bytes),
            None => place.remove(changes, &row.key),
        }
    }

    /// Compares everything. Returns the place at the beginning.
    fn compare(&self, changes: &mut Together) -> Result<Place, FileError> {
        let (place_in_changes, keys) = self.documents.keys()?;
        let mut listed: HashMap<&str, HashSet<&str>> = HashMap::new();
        for (set, key) in &keys {
            listed.entry(set).or_default().insert(key);
        }
        for (set, place) in &self.places {
            let wanted = listed.remove(set).unwrap_or_default();
            let mut has = HashSet::new();
            for key in place.keys()? {
                match wanted.contains(&*key) {
                    true => has.insert(key),
                    false => {
                        place.remove(changes, &key)?;
                        continue;
                    }
                };
            }
            let missing = wanted.into_iter();
            // The bytes under the key of a certificate are always the same.
            let missing: Vec<_> = missing
                .filter(|key| !place.is_immutable() || !has.contains(*key))
                .collect();
            for keys in missing.chunks(usize::try_from(ROWS).unwrap_or(usize::MAX)) {
                let rows = self.documents.some_in(set, keys)?;
                let writer = WriterLock::take(&self.store)?;
                for row in rows {
                    self.apply(changes, &writer, row)?;
                }
            }
        }
        Ok(place_in_changes)
    }

    /// Says up to which revision this process has the documents, so that others can wait for it.
    fn say(&self, revision: u64) -> Result<(), FileError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_said = state
            .said
            .is_some_and(|(said, at)| said == revision && at.elapsed() < ALIVE);
        if !is_said {
            self.documents.has_read(&self.name, revision)?;
            state.said = Some((revision, Instant::now()));
        }
        Ok(())
    }

    /// Registers this process as a server of the copy, and copies what has changed until then. From
    /// now on, commands that change a document wait for this process too.
    ///
    /// # Errors
    ///
    /// As [`sync`](Self::sync), or when the database cannot be written.
    pub fn announce(&self) -> Result<(), FileError> {
        let copied = *self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        self.say(copied)?;
        let revision = self.sync()?;
        self.say(revision)
    }

    /// Keeps the copy up to date. It never returns.
    pub fn run(&self, part: &Part) {
        loop {
            let seen = self.documents.hints.count();
            let done = self.sync().and_then(|revision| self.say(revision));
            match done {
                Ok(()) => part.recover(),
                Err(error) => part.fail(chain(&error)),
            }
            self.documents.hints.wait(seen, POLL);
        }
    }
}

// === impl Position ===

impl Position {
    fn place(&self) -> Place {
        Place {
            revision: self.revision,
            mark: self.mark.clone(),
        }
    }
}

// === impl Destination ===

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Documents(_, kind) => f.debug_tuple("Documents").field(kind).finish(),
            Self::Files(directory, _) => f.debug_tuple("Files").field(directory).finish(),
        }
    }
}

impl Destination {
    fn is_immutable(&self) -> bool {
        matches!(self, Self::Documents(_, Kind::Certificate))
    }

    fn keys(&self) -> Result<Vec<Box<str>>, FileError> {
        match self {
            Self::Documents(local, kind) => local.keys(*kind),
            Self::Files(directory, ending) => {
                let on = || FileError::on("list", directory);
                let entries = match fs::read_dir(directory) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
                    entries => entries.map_err(on())?,
                };
                let mut keys = Vec::new();
                for entry in entries {
                    let name = entry.map_err(on())?.file_name();
                    let key = name.to_str().and_then(|name| name.strip_suffix(ending));
                    keys.extend(key.map(Box::from));
                }
                Ok(keys)
            }
        }
    }

    fn put(
        &self,
        changes: &mut Together,
        writer: &WriterLock,
        key: &str,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        match self {
            Self::Documents(local, kind) => local.put_in(changes, *kind, key, bytes),
            Self::Files(directory, ending) => {
                fs::create_dir_all(directory)
                    .map_err(FileError::on("make directory", directory))?;
                changes.replace(
                    writer.temp(),
                    &directory.join(format!("{key}{ending}")),
                    bytes,
                )
            }
        }
    }

    fn remove(&self, changes: &mut Together, key: &str) -> Result<(), FileError> {
        match self {
            Self::Documents(local, kind) => local.remove_in(changes, *kind, key),
            Self::Files(directory, ending) => {
                changes.remove(&directory.join(format!("{key}{ending}")))
            }
        }
    }
}

/// Returns whether documents of a kind are copied: every gateway serves certificates and
/// challenges.
fn is_copied(kind: Kind) -> bool {
    matches!(kind, Kind::Certificate | Kind::Challenge)
}

/// Returns whether a key is the name of a file, and no path to another one.
fn is_file_name(key: &str) -> bool {
    !key.is_empty() && !key.starts_with('.') && !key.contains(['/', '\0']) && key.len() <= 240
}

// === impl MirroredDocuments ===

impl MirroredDocuments {
    /// Makes it of a copy and its directory.
    #[must_use]
    pub fn new(mirror: Arc<Mirror>, local: Arc<LocalDocuments>) -> Self {
        Self { mirror, local }
    }

    fn shared(&self) -> &SharedDocuments {
        &self.mirror.documents
    }

    /// Copies a change of this process at once.
    fn changed(&self, kind: Kind) {
        if is_copied(kind)
            && let Err(error) = self.mirror.sync()
        {
            // The thread of the copy tries again.
            log::debug!(target: "store", "copy documents: {}", chain(&error));
        }
    }
}

impl Documents for MirroredDocuments {
    fn get(&self, kind: Kind, key: &str) -> Result<Option<Vec<u8>>, FileError> {
        match is_copied(kind) {
            true => self.local.get(kind, key),
            false => self.shared().get(kind, key),
        }
    }

    fn put(&self, kind: Kind, key: &str, bytes: &[u8]) -> Result<(), FileError> {
        self.shared().put(kind, key, bytes)?;
        self.changed(kind);
        Ok(())
    }

    fn remove(&self, kind: Kind, key: &str) -> Result<(), FileError> {
        self.shared().remove(kind, key)?;
        self.changed(kind);
        Ok(())
    }

    fn changes(&self, kind: Kind, known: &mut KnownKeys) -> Result<Vec<Change>, FileError> {
        match is_copied(kind) {
            true => self.local.changes(kind, known),
            false => self.shared().changes(kind, known),
        }
    }

    fn keys_of(&self, kind: Kind, name: &str) -> Result<Vec<Box<str>>, FileError> {
        match is_copied(kind) {
            true => self.local.keys_of(kind, name),
            false => self.shared().keys_of(kind, name),
        }
    }

    fn lead(&self) -> Result<Option<Box<dyn Lead>>, FileError> {
        let Some(lead) = self.shared().lead()? else {
            return Ok(None);
        };
        // The previous leader writes nothing more, so this copies its last writes.
        self.mirror.sync()?;
        Ok(Some(lead))
    }

    fn has_space(&self, bytes: u64) -> Result<bool, FileError> {
        self.local.has_space(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::shared::testing;

    #[test]
    fn a_change_waits_for_a_process_that_has_announced_itself() {
        let directory = tempfile::tempdir().unwrap();
        let shared = testing(directory.path());
        let documents = shared.documents();
        let (copy, store) = (directory.path().join("copy"), directory.path().to_owned());
        fs::create_dir_all(store.join("temp")).unwrap();
        let mirror = Mirror::new(documents.clone(), "a gateway", &copy, store).unwrap();
        let mirror = mirror.with_files("set", copy.clone(), ".json");
        let change = |key| {
            let bytes = || Some(b"content".to_vec());
            documents.change_in("set", key, |_there| bytes()).unwrap();
            let behind = documents.wait_until_read(false, Duration::ZERO).unwrap();
            (behind, copy.join(format!("{key}.json")).exists())
        };
        // The copy is of an earlier moment, as after a start that takes long.
        mirror.sync().unwrap();
        assert_eq!(change("before"), (Vec::new(), false));
        mirror.announce().unwrap();
        assert!(copy.join("before.json").exists());
        let named = vec!["a gateway".to_owned()];
        assert_eq!(change("after"), (named, false));
    }
}

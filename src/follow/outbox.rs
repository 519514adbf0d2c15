//! Counts that an edge has not sent yet, in files of its cache.
//!
//! ```text
//! numbers/{ab}/{project}/{day}.json ─▶ numbers-outbox/{sequence}/{project}~{day}.json ─▶ source
//! ```
//!
//! The counts of an edge are documents of its cache, as on a node, until they are sent. Then they
//! are moved into a directory, which is a batch: nothing is added to it any more, and it is removed
//! when the source has acknowledged it. So no count is in two batches, whatever is killed: a file
//! is in one of the two places, also after a power cut, and a number is never used for a second
//! batch.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files;
use crate::clock::Day;
use crate::error::chain;
use crate::numbers::received;
use crate::site::ProjectId;
use crate::store::{FileError, Local};

/// The directory, below that of the cache.
const OUTBOX: &str = "numbers-outbox";
/// The file with the life and the next number.
const STATE: &str = "state";
/// The directory of the batch that is being made.
const NEW: &str = "new";
/// The file that a process which sends has locked.
const LOCK: &str = "lock";
const VERSION: u32 = 1;
/// Random bytes of a life.
const LIFE_BYTES: usize = 16;
/// How many files a batch has.
const FILES_MAX: usize = 1000;
/// After how many bytes a batch gets no further file.
const BYTES_MAX: u64 = 4 << 20;
/// How many bytes of counts wait at most; the oldest days are removed.
const WAITING_BYTES_MAX: u64 = 256 << 20;

/// The directory of batches.
#[derive(Debug)]
pub(super) struct Outbox {
    directory: PathBuf,
}

/// A batch.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) life: String,
    pub(super) sequence: u64,
    pub(super) content: Vec<u8>,
    directory: PathBuf,
}

/// A process that sends has it.
#[derive(Debug)]
pub(super) struct Sending {
    _file: File,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    version: u32,
    life: String,
    next: u64,
}

// === impl Outbox ===

impl Outbox {
    /// Names it in the directory of a cache.
    pub(super) fn new(cache: &Path) -> Self {
        Self {
            directory: cache.join(OUTBOX),
        }
    }

    /// Takes the lock of the process that sends; `None` if another process has it.
    pub(super) fn lock(&self) -> io::Result<Option<Sending>> {
        fs::create_dir_all(&self.directory)?;
        let mut options = OpenOptions::new();
        let path = self.directory.join(LOCK);
        let file = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Sending { _file: file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns the batch to send next: the one that was prepared before, or a new one; `None` if
    /// there are no counts.
    pub(super) fn next(&self, cache: &Local, _sending: &Sending) -> io::Result<Option<Prepared>> {
        let mut state = self.state()?;
        loop {
            let prepared = self.batches()?.into_iter().next();
            let (sequence, directory) = match prepared {
                Some(prepared) => prepared,
                None => match self.prepare(cache, &mut state)? {
                    Some(prepared) => prepared,
                    None => return Ok(None),
                },
            };
            let content = content(&directory)?;
            if !content.is_empty() {
                return Ok(Some(Prepared {
                    life: state.life,
                    sequence,
                    content,
                    directory,
                }));
            }
            fs::remove_dir_all(&directory)?;
        }
    }

    /// Moves counts of the cache into a new batch.
    fn prepare(&self, cache: &Local, state: &mut State) -> io::Result<Option<(u64, PathBuf)>> {
        let new = self.directory.join(NEW);
        fs::create_dir_all(&new)?;
        let is_empty = || Ok::<_, io::Error>(fs::read_dir(&new)?.next().is_none());
        // A killed process may have moved files here. They are sent first: a new file of the same
        // name would replace them.
        if is_empty()? {
            let moved = cache.move_numbers(&new, FILES_MAX, BYTES_MAX);
            moved.map_err(io::Error::other)?;
        }
        if is_empty()? {
            return Ok(None);
        }
        let sequence = state.next;
        state.next += 1;
        self.write(state)?;
        let directory = self.directory.join(sequence.to_string());
        fs::rename(&new, &directory)?;
        files::flush_directory(&self.directory)?;
        Ok(Some((sequence, directory)))
    }

    /// Removes a batch that needs not be sent again.
    pub(super) fn remove(&self, batch: &Prepared) -> io::Result<()> {
        fs::remove_dir_all(&batch.directory)
    }

    /// Returns how many bytes of counts wait, and removes the oldest if there are too many.
    pub(super) fn bound(&self, cache: &Local) -> Result<u64, FileError> {
        let (bytes, removed) = cache.bound_numbers(WAITING_BYTES_MAX)?;
        if removed > 0 {
            log::warn!(target: "numbers", removed; "{removed} days of counts that could not be sent are lost: at most {WAITING_BYTES_MAX} bytes are kept");
        }
        Ok(bytes)
    }

    /// Lists the batches, the first one first.
    fn batches(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(sequence) = name.and_then(|name| name.parse().ok()) {
                found.push((sequence, path));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    fn state(&self) -> io::Result<State> {
        match fs::read(self.directory.join(STATE)) {
            Ok(bytes) => match serde_json::from_slice::<State>(&bytes) {
                Ok(state) if state.version == VERSION => return Ok(state),
                Ok(_) | Err(_) => {
                    log::warn!(target: "numbers", "the numbers of batches of counts begin again: {} cannot be used", self.directory.join(STATE).display());
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut random = [0; LIFE_BYTES];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        // Batches that were prepared before keep their numbers.
        let last = self.batches()?.last().map_or(0, |(sequence, _)| *sequence);
        let state = State {
            version: VERSION,
            life: hex::encode(random),
            next: last + 1,
        };
        self.write(&state)?;
        Ok(state)
    }

    fn write(&self, state: &State) -> io::Result<()> {
        files::replace_durably(&self.directory.join(STATE), &serde_json::to_vec(state)?)
    }
}

/// Returns the lines of the files of a batch. A damaged file is left out.
fn content(directory: &Path) -> io::Result<Vec<u8>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.sort_unstable();
    let mut lines = Vec::new();
    for path in paths {
        let named = || {
            let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
            let (project, day) = name.split_once('~')?;
            Some((ProjectId::parse(project).ok()?, Day::parse(day).ok()?))
        };
        let Some((project, day)) = named() else {
            continue;
        };
        match received::line(&project, day, &fs::read(&path)?) {
            Ok(line) => lines.extend_from_slice(&line),
            Err(why) => {
                log::error!(target: "numbers", project:%; "the counts of {project} on {day} are lost: {}", chain(&why));
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::local;

    fn cache(directory: &Path) -> Local {
        let config = local::Config {
            path: directory.to_owned(),
            ..local::Config::default()
        };
        Local::open(&config, Clock::System).unwrap()
    }

    fn count(cache: &Path, project: &str, day: &str) {
        let store = crate::store::Store::open_directory(cache.to_owned()).unwrap();
        let project = ProjectId::parse(project).unwrap();
        let text = br#"{"version":1,"searches":{"asked":1}}"#;
        let mut put = |before: Option<&[u8]>| {
            assert_eq!(before, None, "it was taken");
            Some(text.to_vec())
        };
        let day = Day::parse(day).unwrap();
        store.change_numbers(&project, day, &mut put).unwrap();
    }

    fn next(cache: &Path) -> Option<Prepared> {
        let outbox = Outbox::new(cache);
        let sending = outbox.lock().unwrap().unwrap();
        outbox.next(&self::cache(cache), &sending).unwrap()
    }

    #[test]
    fn a_batch_stays_the_same_until_it_is_removed_and_its_number_is_not_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        cache(path);
        assert!(next(path).is_none());
        count(path, "acme", "2026-11-23");
        let first = next(path).unwrap();
        count(path, "acme", "2026-11-23");
        count(path, "beta", "2026-11-23");
        // Each time as after a restart.
        let again = next(path).unwrap();
        assert_eq!(
            (&again.life, again.sequence, &again.content),
            (&first.life, first.sequence, &first.content)
        );
        Outbox::new(path).remove(&again).unwrap();
        let second = next(path).unwrap();
        assert_eq!(second.life, first.life);
        assert!(second.sequence > first.sequence);
        assert_eq!(second.content.split(|byte| *byte == b'\n').count(), 3);
        Outbox::new(path).remove(&second).unwrap();
        assert!(next(path).is_none());
    }

    #[test]
    fn a_batch_that_was_begun_by_a_killed_process_is_sent_and_damage_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        cache(path);
        count(path, "acme", "2026-11-23");
        let first = next(path).unwrap();
        fs::write(path.join(OUTBOX).join(STATE), "{").unwrap();
        fs::write(first.directory.join("beta~2026-11-23.json"), "{").unwrap();
        let again = next(path).unwrap();
        assert_eq!(
            (again.sequence, &again.content),
            (first.sequence, &first.content)
        );
        // The numbers of earlier batches are not known any more, so a new life begins.
        assert_ne!(again.life, first.life);
        Outbox::new(path).remove(&again).unwrap();
        fs::create_dir(path.join(OUTBOX).join("7")).unwrap();
        assert!(next(path).is_none(), "an empty batch");
    }

    #[test]
    fn one_process_sends() {
        let directory = tempfile::tempdir().unwrap();
        let outbox = Outbox::new(directory.path());
        let sending = outbox.lock().unwrap();
        assert!(sending.is_some());
        assert!(outbox.lock().unwrap().is_none());
        drop(sending);
        assert!(outbox.lock().unwrap().is_some());
    }
}

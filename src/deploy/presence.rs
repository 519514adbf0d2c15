//! Detects which workers of this machine are alive.
//!
//! Each worker holds a lock on a file of its own, beside the queue, as long as its process lives.
//! The kernel releases the lock when the process ends, however it ends. So another worker of the
//! machine, or the same one after a restart, can end the leases of a process that was killed and
//! need not wait for them. A process that is only stopped keeps its lock.
//!
//! A worker without a file is unknown, and its leases end by themselves.
//!
//! Source: `flock(2)`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::update::WorkerId;

/// The directory of the files of all workers of a queue.
#[derive(Clone, Debug)]
pub struct Presence {
    directory: PathBuf,
}

/// The lock of a living worker.
#[derive(Debug)]
pub struct Present {
    _file: File,
    path: PathBuf,
}

// === impl Presence ===

impl Presence {
    /// Names the directory. It is created when the first worker needs it.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Declares a worker alive until the value is dropped or the process ends.
    ///
    /// # Errors
    ///
    /// The file could not be created or locked.
    pub fn enter(&self, worker: &WorkerId) -> io::Result<Present> {
        fs::create_dir_all(&self.directory)?;
        let path = self.path(worker);
        // Locked before it gets its name, so that no other process finds it without a lock.
        let unnamed = path.with_extension("new");
        let file = File::create(&unnamed)?;
        file.lock()?;
        fs::rename(&unnamed, &path)?;
        Ok(Present { _file: file, path })
    }

    /// Returns whether the process of a worker has ended.
    #[must_use]
    pub fn has_ended(&self, worker: &WorkerId) -> bool {
        is_unlocked(&self.path(worker))
    }

    /// Returns whether a worker of this machine is alive.
    #[must_use]
    pub fn is_any_alive(&self) -> bool {
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        let mut paths = entries.flatten().map(|entry| entry.path());
        paths.any(|path| path.extension().is_some_and(|end| end == "lock") && !is_unlocked(&path))
    }

    /// Removes the files of workers that have ended. Call it when their leases have been ended.
    pub fn sweep(&self) {
        let entries = fs::read_dir(&self.directory);
        for entry in entries.into_iter().flatten().flatten() {
            let path = entry.path();
            if is_unlocked(&path) {
                // The next sweep tries again.
                let _ = fs::remove_file(path);
            }
        }
    }

    fn path(&self, worker: &WorkerId) -> PathBuf {
        // The name of a machine may contain any character.
        let name = worker.as_str().replace(['/', '\0'], "_");
        self.directory.join(format!("{name}.lock"))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        // If it stays, a sweep removes it.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_unlocked(path: &Path) -> bool {
    let Ok(file) = OpenOptions::new().read(true).open(path) else {
        return false;
    };
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_worker_has_ended_when_its_lock_is_released() {
        let directory = tempfile::tempdir().unwrap();
        let presence = Presence::new(directory.path().join("workers"));
        let (one, other) = (WorkerId::new("host-1-a"), WorkerId::new("host/2"));
        let present = presence.enter(&one).unwrap();
        let mut killed = presence.enter(&other).unwrap();
        assert!(!presence.has_ended(&one) && !presence.has_ended(&other));
        assert!(presence.is_any_alive());
        assert!(!presence.has_ended(&WorkerId::new("another machine's")));

        // This is the state after `kill -9`: the lock is released, and the file is still there.
        let path = std::mem::take(&mut killed.path);
        drop(killed);
        assert!(presence.has_ended(&other) && !presence.has_ended(&one));
        presence.sweep();
        assert!(!path.exists() && presence.path(&one).exists());
        assert!(presence.is_any_alive());
        drop(present);
        assert!(!presence.is_any_alive());
    }
}

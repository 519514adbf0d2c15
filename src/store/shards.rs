//! Which directories of a store have changed since they were read.
//!
//! The files of projects are divided among the directories by the digests of the names, and each
//! file is replaced by a rename. So while a directory has the same metadata, it has the same files
//! with the same content. A comparison of a million sites that have not changed looks at 256
//! directories instead of a million files.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::stamp::{Stamp, unchanged_before};
use crate::digest::Digest;

/// How many directories the files of projects are divided among.
const SHARDS: usize = 256;

/// The directories as they were when they were last read.
#[derive(Debug, Default)]
pub struct SeenShards {
    stamps: HashMap<u8, Stamp>,
}

/// The directories that may have changed.
#[derive(Debug)]
pub struct ChangedShards([bool; SHARDS]);

/// Returns the number of the directory of a name.
pub(super) fn shard_of(name: &str) -> u8 {
    Digest::of(name.as_bytes()).as_bytes()[0]
}

// === impl SeenShards ===

impl SeenShards {
    /// Finds the directories that may have changed since the last call, and notes how they are now.
    /// The caller reads them afterwards.
    pub(super) fn compare(
        &mut self,
        directories: impl Iterator<Item = PathBuf>,
        now: SystemTime,
    ) -> ChangedShards {
        let unchanged_before = unchanged_before(now);
        let mut changed = ChangedShards::all();
        for (shard, directory) in (0..=u8::MAX).zip(directories) {
            // The caller reports a directory that cannot be read.
            let stamp = fs::metadata(&directory).ok().as_ref().map(Stamp::of);
            changed.0[usize::from(shard)] =
                stamp.is_none() || self.stamps.get(&shard) != stamp.as_ref();
            // Two changes within one step of the clock look the same, so a directory that has just
            // changed is read again the next time.
            match stamp.filter(|stamp| stamp.is_older_than(unchanged_before)) {
                Some(stamp) => self.stamps.insert(shard, stamp),
                None => self.stamps.remove(&shard),
            };
        }
        changed
    }

    /// Forgets the directory of a name, whose file could not be read.
    pub fn forget(&mut self, name: &str) {
        self.stamps.remove(&shard_of(name));
    }

    /// Forgets all directories.
    pub fn clear(&mut self) {
        self.stamps.clear();
    }
}

// === impl ChangedShards ===

impl ChangedShards {
    /// Every directory.
    pub(super) fn all() -> Self {
        Self([true; SHARDS])
    }

    /// Returns whether no directory has changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }

    /// Returns whether the directory of a name may have changed.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0[usize::from(shard_of(name))]
    }

    /// Keeps the directories that may have changed; `directories` has all of them in order.
    pub(super) fn of<T>(&self, directories: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        let both = directories.zip(self.0);
        both.filter_map(|(directory, has_changed)| has_changed.then_some(directory))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_directory_has_changed_after_a_rename_into_it_or_a_removal() {
        let root = tempfile::tempdir().unwrap();
        let names: Vec<PathBuf> = (0..=u8::MAX)
            .map(|shard| root.path().join(hex::encode([shard])))
            .collect();
        names.iter().for_each(|name| fs::create_dir(name).unwrap());
        let mut seen = SeenShards::default();
        let later = Clock::System.now() + Duration::from_secs(60);
        let changed = |seen: &mut SeenShards| -> Vec<PathBuf> {
            let changed = seen.compare(names.iter().cloned(), later);
            changed.of(names.iter().cloned()).collect()
        };
        assert_eq!(changed(&mut seen), names);
        assert_eq!(changed(&mut seen), [] as [PathBuf; 0]);

        let (file, from) = (names[7].join("a.json"), root.path().join("new"));
        for text in ["one", "two"] {
            fs::write(&from, text).unwrap();
            fs::rename(&from, &file).unwrap();
            assert_eq!(changed(&mut seen), names[7..8]);
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(changed(&mut seen), names[7..8]);
        // A directory that is missing, and then is there again.
        fs::remove_dir(&names[9]).unwrap();
        assert_eq!(changed(&mut seen), names[9..10]);
        assert_eq!(changed(&mut seen), names[9..10]);
        fs::create_dir(&names[9]).unwrap();
        assert_eq!(changed(&mut seen), names[9..10]);
        assert_eq!(changed(&mut seen), [] as [PathBuf; 0]);

        seen.forget("acme");
        let shard = usize::from(shard_of("acme"));
        assert_eq!(changed(&mut seen), names[shard..=shard]);
        seen.clear();
        assert_eq!(changed(&mut seen), names);
    }

    #[test]
    fn a_directory_that_has_just_changed_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let mut seen = SeenShards::default();
        let mut changed = || {
            let only = std::iter::once(root.path().to_owned());
            seen.compare(only, Clock::System.now()).0[0]
        };
        assert!(changed() && changed());
    }
}

//! Mirrors on the disk: one for each project, within limits of bytes.
//!
//! ```text
//! {mirrors}/
//!   {project}-{URL}.git/    the mirror; both parts begin digests
//!   {project}-{URL}.lock    locked while an update uses the mirror; holds its size in bytes
//!   {project}-{URL}-2.git   the same for an update that finds the first one locked
//!   {project}-{…}.cache     the cache of the last build, which counts like a mirror
//! ```
//!
//! When the URL of a project changes, the mirror of the earlier URL is removed. So a project cannot
//! fill the disk, or remove the mirrors of others, with new URLs.
//!
//! Projects do not share mirrors, also if they have the same repository. So what one project may
//! read comes from its own fetch, with its own credentials, and no update waits for another.
//!
//! Only one update of a project runs, so a locked mirror belongs to a process that has lost its
//! update: it is frozen, or about to end. The update does not wait for it and uses a second mirror.
//!
//! The size of a mirror is limited, and the size of all together. While an update uses a mirror,
//! the lock file holds the limit, because the mirror may grow to it. Afterwards it holds the size.
//! If there is no room, the mirrors that were used least recently are removed.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::Config;
use super::failure::FetchError;
use crate::digest::Digest;
use crate::isolation::{User, make_directory, make_passage};

/// How often a lock is taken again when its file was removed meanwhile.
const ATTEMPTS_MAX: u32 = 16;
/// How the names of a project's mirrors end.
const PLACES: [&str; 2] = ["", "-2"];
/// The extension of the caches of builds.
pub(super) const CACHE: &str = "cache";
/// With less room than this, there is no room for a mirror.
const ROOM_BYTES_MIN: u64 = 64 << 10;

/// A mirror that this process holds. Dropping it lets others use the mirror.
#[derive(Debug)]
pub struct Mirror {
    directory: PathBuf,
    lock: File,
    bytes_max: u64,
}

/// A mirror that another update may use, or the cache of a build.
struct Other {
    /// The lock of the mirror, or the cache.
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

// === impl Mirror ===

impl Mirror {
    /// Takes the mirror of a project's repository, and makes room for it.
    ///
    /// The directory exists afterwards and belongs to `owner`, if there is one.
    ///
    /// # Errors
    ///
    /// [`FetchError::Busy`] when other processes use both places for it, [`FetchError::Full`] when
    /// there is no room for it, [`FetchError::Mirror`] when the disk fails.
    pub fn take(
        config: &Config,
        project: &str,
        url: &str,
        owner: Option<User>,
    ) -> Result<Self, FetchError> {
        let root = &config.mirrors;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| FetchError::Mirror { path, source }
        };
        make_passage(root, owner.is_some()).map_err(failed(root))?;
        let name = name(project, url);
        let mut free = None;
        for place in PLACES {
            let path = root.join(format!("{name}{place}.lock"));
            if let Some(lock) = lock(&path).map_err(failed(&path))? {
                free = Some((path, lock));
                break;
            }
        }
        let (path, lock) = free.ok_or(FetchError::Busy)?;
        let directory = path.with_extension("git");
        remove_earlier(&path).map_err(failed(root))?;
        let bytes_max = make_room(config, &path).map_err(failed(root))?;
        if bytes_max < ROOM_BYTES_MIN {
            return Err(FetchError::Full);
        }
        let mirror = Self {
            directory,
            lock,
            bytes_max,
        };
        mirror.write_size(bytes_max).map_err(failed(&path))?;
        make_directory(&mirror.directory, owner).map_err(failed(&mirror.directory))?;
        Ok(mirror)
    }

    /// Returns the directory of the mirror.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the largest size that it may have, in bytes.
    #[must_use]
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn write_size(&self, bytes: u64) -> io::Result<()> {
        let mut file = &self.lock;
        file.rewind()?;
        file.set_len(0)?;
        write!(file, "{bytes}")
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        if let Err(error) = self.write_size(size(&self.directory)) {
            log::warn!(target: "source", "cannot record the size of {}: {error}", self.directory.display());
        }
        // A process that another thread is starting has a copy of the descriptor until its
        // `exec`. Closing ours would leave the mirror locked until then.
        if let Err(error) = self.lock.unlock() {
            log::warn!(target: "source", "cannot unlock {}: {error}", self.directory.display());
        }
    }
}

/// Returns how the names of the files of a project begin: 16 digits and a hyphen.
#[must_use]
pub fn prefix(project: &str) -> String {
    let digest = Digest::of(project.as_bytes()).to_string();
    format!("{}-", &digest[..16])
}

/// Returns the name of a mirror. It has a digest, because a URL may contain any character.
pub(super) fn name(project: &str, url: &str) -> String {
    let digest = Digest::of(url.as_bytes()).to_string();
    prefix(project) + &digest[..32]
}

/// Returns the digests in the name of a mirror or a cache: of its project, and of its repository.
fn digests(path: &Path) -> Option<(&str, &str)> {
    let mut parts = path.file_stem()?.to_str()?.split('-');
    Some((parts.next()?, parts.next()?))
}

/// Removes the other mirrors, or the other caches, of the project that `own` belongs to: those of
/// earlier repositories. A mirror that is in use stays. `own` is the lock of a mirror, or a cache.
///
/// # Errors
///
/// When the directory cannot be read, or a file cannot be removed.
pub fn remove_earlier(own: &Path) -> io::Result<()> {
    let (Some((project, repository)), Some(root)) = (digests(own), own.parent()) else {
        return Ok(());
    };
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        let is_earlier = path.extension() == own.extension()
            && digests(&path).is_some_and(|(of, other)| of == project && other != repository);
        if is_earlier {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Takes a lock without waiting; `None` when another process has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..ATTEMPTS_MAX {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The file is removed together with the mirror; then the lock protects nothing.
        let is_there = match fs::metadata(path) {
            Ok(found) => found.ino() == file.metadata()?.ino(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if is_there {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Removes mirrors until one more of the largest size has room, and returns the room for it.
fn make_room(config: &Config, own: &Path) -> io::Result<u64> {
    let mut others = others(&config.mirrors, own)?;
    others.sort_by_key(|other| std::cmp::Reverse(other.used));
    let requested = config.mirror_bytes_max;
    let mut sum: u64 = others.iter().map(|other| other.bytes).sum();
    let mut free = free_space(&config.mirrors)?;
    let is_enough = |sum: u64, free: u64| {
        sum.saturating_add(requested) <= config.mirrors_bytes_max && free > config.free_bytes_min
    };
    // The least recently used mirror is last.
    while !is_enough(sum, free)
        && let Some(oldest) = others.pop()
    {
        if remove(&oldest.path)? {
            log::info!(target: "source", "removed {}, which was used least recently", oldest.path.display());
            sum -= oldest.bytes;
            free = free_space(&config.mirrors)?;
        }
    }
    let own_bytes = size(&own.with_extension("git"));
    let room = config.mirrors_bytes_max.saturating_sub(sum);
    // Objects that the mirror already has need no new space.
    let space = free.saturating_sub(config.free_bytes_min);
    let space = match space {
        0 => 0,
        space => space.saturating_add(own_bytes),
    };
    Ok(requested.min(room).min(space))
}

fn others(root: &Path, own: &Path) -> io::Result<Vec<Other>> {
    let mut others = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        let is = |kind: &str| path.extension().is_some_and(|extension| extension == kind);
        if path == own || !is("lock") && !is(CACHE) {
            continue;
        }
        // Another process may have removed it.
        let Ok(found) = fs::metadata(&path) else {
            continue;
        };
        let Ok(used) = found.modified() else { continue };
        let bytes = match is(CACHE) {
            true => found.len(),
            false => recorded_size(&path),
        };
        others.push(Other { path, bytes, used });
    }
    Ok(others)
}

/// Returns the size that the lock of a mirror holds.
fn recorded_size(lock: &Path) -> u64 {
    let mut text = String::new();
    let read = File::open(lock).and_then(|file| file.take(20).read_to_string(&mut text));
    let bytes = text.trim().parse();
    match (read, bytes) {
        (Ok(_length), Ok(bytes)) => bytes,
        _ => size(&lock.with_extension("git")),
    }
}

/// Removes a mirror that no update uses, or a cache. Returns whether it was removed.
fn remove(path: &Path) -> io::Result<bool> {
    if path.extension().is_some_and(|extension| extension == CACHE) {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(true),
        };
    }
    let Some(_lock) = lock(path)? else {
        return Ok(false);
    };
    let directory = path.with_extension("git");
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_file(path)?;
    Ok(true)
}

fn free_space(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Returns how many bytes the files below a directory use on the disk.
///
/// git writes a file under a temporary name, links it to its own name, and removes the temporary
/// one, while the directories are read here. So a file counts once, also if it is found under two
/// names. Files that disappear meanwhile do not count.
pub(super) fn size(directory: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut counted = HashSet::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else {
                continue;
            };
            if found.is_dir() {
                directories.push(entry.path());
            } else if counted.insert((found.dev(), found.ino())) {
                // `stat(2)`: the unit is always 512 bytes.
                bytes = bytes.saturating_add(found.blocks().saturating_mul(512).max(found.len()));
            }
        }
    }
    bytes
}

/// Removes everything in a directory.
pub(super) fn clear(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(root: &Path) -> Config {
        Config {
            mirror_bytes_max: 1 << 20,
            mirrors_bytes_max: 5 << 19,
            free_bytes_min: 0,
            ..Config::new(root)
        }
    }

    fn filled(config: &Config, project: &str, bytes: usize) -> PathBuf {
        let mirror = Mirror::take(config, project, "u", None).unwrap();
        fs::write(mirror.directory().join("pack"), vec![0; bytes]).unwrap();
        mirror.directory().to_owned()
    }

    #[test]
    fn a_mirror_in_use_is_taken_by_nobody_else_and_a_second_one_only_once() {
        let root = tempfile::tempdir().unwrap();
        let config = config(root.path());
        let held = Mirror::take(&config, "a", "u", None).unwrap();
        let second = Mirror::take(&config, "a", "u", None).unwrap();
        assert_ne!(held.directory(), second.directory());
        let third = Mirror::take(&config, "a", "u", None);
        assert!(matches!(third, Err(FetchError::Busy)));
        let first = held.directory().to_owned();
        drop(held);
        let again = Mirror::take(&config, "a", "u", None).unwrap();
        assert_eq!(again.directory(), first);
    }

    #[test]
    fn the_mirror_that_was_used_least_recently_makes_room() {
        let root = tempfile::tempdir().unwrap();
        let config = config(root.path());
        let old = filled(&config, "old", 900 << 10);
        let lock = old.with_extension("lock");
        let file = File::options().write(true).open(&lock).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let new = filled(&config, "new", 900 << 10);
        assert!(old.exists() && new.exists());
        let newest = filled(&config, "newest", 900 << 10);
        assert!(
            !old.exists() && !lock.exists(),
            "it was used least recently"
        );
        assert!(new.exists() && newest.exists());
    }

    #[test]
    fn a_project_has_a_mirror_of_its_present_url_only() {
        let root = tempfile::tempdir().unwrap();
        let config = config(root.path());
        let other = filled(&config, "other", 1000);
        let mut before: Option<PathBuf> = None;
        for url in ["a", "b", "c"] {
            let mirror = Mirror::take(&config, "acme", url, None).unwrap();
            assert!(before.is_none_or(|before| !before.exists()), "{url}");
            before = Some(mirror.directory().to_owned());
        }
        // A frozen process may hold a mirror of an earlier URL.
        let held = Mirror::take(&config, "acme", "d", None).unwrap();
        let present = filled(&config, "acme", 1000);
        assert!(held.directory().exists() && present.exists() && other.exists());
    }

    #[test]
    fn caches_of_builds_count_and_make_room() {
        let root = tempfile::tempdir().unwrap();
        let config = config(root.path());
        let cache = |name: &str, used: u64| {
            let path = root.path().join(name).with_extension(CACHE);
            fs::write(&path, vec![0; 700 << 10]).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            let used = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(used);
            file.set_modified(used).unwrap();
            path
        };
        let caches = [3, 1, 2].map(|used| cache(&format!("cache-{used}"), used));
        // Two and a half mebibytes are allowed: one for the mirror, the rest for two caches.
        let _mirror = Mirror::take(&config, "a", "u", None).unwrap();
        assert_eq!(caches.map(|cache| cache.exists()), [true, false, true]);
    }

    #[test]
    fn mirrors_in_use_count_with_what_they_may_become_and_are_not_removed() {
        let root = tempfile::tempdir().unwrap();
        let config = config(root.path());
        let held: Vec<_> = ["a", "b", "c"]
            .map(|project| Mirror::take(&config, project, "u", None).unwrap())
            .into();
        let full = Mirror::take(&config, "d", "u", None);
        assert!(matches!(full, Err(FetchError::Full)));
        assert!(held.iter().all(|mirror| mirror.directory().exists()));
        drop(held);
        Mirror::take(&config, "d", "u", None).unwrap();
    }

    #[test]
    fn a_file_with_two_names_counts_once() {
        let root = tempfile::tempdir().unwrap();
        let (written, linked) = (root.path().join("tmp_obj_a"), root.path().join("d/a"));
        fs::create_dir(root.path().join("d")).unwrap();
        fs::write(&written, vec![1; 900 << 10]).unwrap();
        let bytes = size(root.path());
        assert!(bytes >= 900 << 10);
        fs::hard_link(&written, &linked).unwrap();
        assert_eq!(size(root.path()), bytes);
        fs::remove_file(&written).unwrap();
        assert_eq!(size(root.path()), bytes);
    }

    #[test]
    fn without_free_space_nothing_is_fetched() {
        let root = tempfile::tempdir().unwrap();
        let config = Config {
            free_bytes_min: u64::MAX,
            ..config(root.path())
        };
        let full = Mirror::take(&config, "a", "u", None);
        assert!(matches!(full, Err(FetchError::Full)));
    }
}

//! The directory of one update: what its processes exchange, besides the mirror.
//!
//! The parent makes the directory and all files in it. The processes of the update can change
//! these files and make no others, so the longest file that the kernel allows
//! ([`Limits`](super::Limits)) limits what they can write.
//!
//! | file | written by | read by |
//! |---|---|---|
//! | `previous`, `navigation`, `skill-before` | parent: of the release that is served | build |
//! | `specifications` | specifications | build |
//! | `inventory`, `content` | build: the release | parent |
//! | `inventory-2`, `content-2` | build: the release with the skill of a writer | parent |
//! | `cache`, `skill`, `skill-rejected` | build: what the next build may use | parent |
//! | `writer-input`, `search-index` | build | command, model |
//! | `writer-output` | command, model | build |
//! | `home/` | fetch: the keys of ssh; command: anything | the same |

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::content::Content;
use crate::isolation::{User, make_directory, make_passage};
use crate::release::{FILES_MAX, INVENTORY_BYTES_MAX, Inventory, ReleaseId};
use crate::store::{PutError, Store};

pub(super) const PREVIOUS: &str = "previous";
pub(super) const NAVIGATION: &str = "navigation";
pub(super) const SKILL_BEFORE: &str = "skill-before";
pub(super) const SPECIFICATIONS: &str = "specifications";
pub(super) const CACHE: &str = "cache";
pub(super) const SKILL: &str = "skill";
pub(super) const SKILL_REJECTED: &str = "skill-rejected";
pub(super) const WRITER_INPUT: &str = "writer-input";
pub(super) const WRITER_OUTPUT: &str = "writer-output";
pub(super) const SEARCH_INDEX: &str = "search-index";
const HOME: &str = "home";
const FILES: [&str; 14] = [
    PREVIOUS,
    NAVIGATION,
    SKILL_BEFORE,
    SPECIFICATIONS,
    CACHE,
    SKILL,
    SKILL_REJECTED,
    WRITER_INPUT,
    WRITER_OUTPUT,
    SEARCH_INDEX,
    Part::First.inventory(),
    Part::First.content(),
    Part::Second.inventory(),
    Part::Second.content(),
];

/// The directory of one update. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    /// Locked while the workspace is used, so that other processes know it.
    lock: Option<File>,
}

/// The two releases that one update may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The release of the documentation.
    First,
    /// The release with the skill that a writer has written.
    Second,
}

// === impl Part ===

impl Part {
    pub(super) const fn inventory(self) -> &'static str {
        match self {
            Self::First => "inventory",
            Self::Second => "inventory-2",
        }
    }

    pub(super) const fn content(self) -> &'static str {
        match self {
            Self::First => "content",
            Self::Second => "content-2",
        }
    }
}

// === impl Workspace ===

impl Workspace {
    /// Makes the directory in `above`, for processes of `user`.
    pub(super) fn make(above: &Path, user: Option<User>) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        make_passage(above, user.is_some())?;
        let above = std::path::absolute(above)?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = above.join(format!("{}-{count}", std::process::id()));
        // A process with the same number may have been killed before it could remove it.
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut workspace = Self { path, lock: None };
        make_directory(&workspace.path, user)?;
        let lock = File::open(&workspace.path)?;
        lock.lock()?;
        workspace.lock = Some(lock);
        make_directory(&workspace.path.join(HOME), user)?;
        for name in FILES {
            workspace.make_file(name, user)?;
        }
        Ok(workspace)
    }

    fn make_file(&self, name: &str, user: Option<User>) -> io::Result<()> {
        let path = self.path.join(name);
        let mut options = fs::OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        match user {
            Some(user) => std::os::unix::fs::chown(&path, Some(user.id), Some(user.group)),
            None => Ok(()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the directory in which a process may do everything.
    pub(super) fn home(&self) -> PathBuf {
        self.path.join(HOME)
    }

    /// Empties all files and the directory, so that another process can begin anew.
    pub(super) fn clear(&self, user: Option<User>) -> io::Result<()> {
        for name in FILES {
            let mut options = fs::OpenOptions::new();
            options.write(true).truncate(true);
            options.custom_flags(no_follow()).open(self.file(name))?;
        }
        self.clear_home(user)
    }

    /// Removes what a process has left in its directory, for the next one.
    pub(super) fn clear_home(&self, user: Option<User>) -> io::Result<()> {
        fs::remove_dir_all(self.home())?;
        make_directory(&self.home(), user)
    }

    /// Returns how many bytes the processes have written.
    pub(super) fn bytes(&self) -> u64 {
        let mut bytes = 0_u64;
        let mut directories = vec![self.path.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(found) if found.is_dir() => directories.push(entry.path()),
                    Ok(found) => bytes = bytes.saturating_add(found.len()),
                    // The file was removed meanwhile.
                    Err(_removed) => {}
                }
            }
        }
        bytes
    }

    /// Writes a file that a process reads.
    pub(super) fn give(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // The file exists, so its owner does not change.
        fs::write(self.file(name), bytes)
    }

    /// Moves a file that a process has written to another directory of the service. An empty
    /// file is not moved.
    pub(super) fn take(&self, name: &str, to: &Path) -> io::Result<()> {
        let from = self.file(name);
        let found = fs::symlink_metadata(&from)?;
        if !found.is_file() || found.len() == 0 {
            return Ok(());
        }
        if fs::rename(&from, to).is_err() {
            // The target is on another file system. The copy gets its name when it is complete.
            let partial = to.with_extension("partial");
            fs::copy(&from, &partial)?;
            fs::rename(&partial, to)?;
        }
        Ok(())
    }

    /// Reads the inventory that a process has written, and checks that it is the one of `release`.
    pub(super) fn inventory(&self, part: Part, release: ReleaseId) -> Result<Inventory, PutError> {
        let invalid = |why: String| PutError::Release(why);
        let unreadable = |error: io::Error| invalid(error.to_string());
        let file = open_file(&self.file(part.inventory())).map_err(unreadable)?;
        PutError::check_inventory(file.metadata().map_err(unreadable)?.len())?;
        let mut bytes = Vec::new();
        // The process that wrote it may still run, and write more.
        let most = INVENTORY_BYTES_MAX;
        file.take(most)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let inventory = Inventory::parse(&bytes).map_err(|error| invalid(error.to_string()))?;
        if inventory.id() != release {
            return Err(invalid("its inventory is another one".to_owned()));
        }
        if inventory.len() > FILES_MAX {
            return Err(invalid(format!("it has more than {FILES_MAX} files")));
        }
        Ok(inventory)
    }

    /// Puts the release that a process has written. Files of the `known` inventories are in the
    /// store; the process has written all others.
    pub(super) fn put(
        &self,
        store: &Store,
        part: Part,
        inventory: &Inventory,
        known: &[&Inventory],
    ) -> Result<(), PutError> {
        let content = self.content(part, known)?;
        store.put_files(inventory, &mut |item| content.read(item))?;
        Ok(())
    }

    /// Opens the files of the release that a process has written.
    pub(super) fn content(&self, part: Part, known: &[&Inventory]) -> Result<Content, PutError> {
        let file = open_file(&self.file(part.content()));
        let content = file.and_then(|file| Content::open(file, known));
        content.map_err(|error| PutError::Release(error.to_string()))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(self.lock.take());
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                log::warn!(target: "deploy", "cannot remove {}: {error}", self.path.display());
            }
            _ => {}
        }
    }
}

/// Removes the workspaces of processes that no longer run.
pub fn clear_leftovers(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        // The kernel releases the lock when a process ends, however it ends.
        let is_left = File::open(entry.path()).is_ok_and(|open| open.try_lock().is_ok());
        if is_left && let Err(error) = fs::remove_dir_all(entry.path()) {
            log::warn!(target: "deploy", "cannot remove {}: {error}", entry.path().display());
        }
    }
}

/// Returns the flags that follow no link, and wait for no reader or writer of a pipe.
fn no_follow() -> i32 {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    flags.bits().cast_signed()
}

/// Opens a regular file, and follows no link.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(no_follow());
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Output as _;
    use crate::deploy::run::content::{COUNT_BYTES, DIGEST_BYTES, PLACE_BYTES, Writer};
    use crate::release::{Release, ReleaseFile, ReleasePath};

    fn release(files: &[(&str, &str)]) -> Release {
        let mut builder = Release::builder();
        for (path, text) in files {
            let file = ReleaseFile::new((*text).to_owned(), "text/plain");
            builder
                .insert(ReleasePath::parse(path).unwrap(), file)
                .unwrap();
        }
        builder.finish()
    }

    fn write(directory: &Path, release: &Release, known: &[&Inventory]) {
        let writer = Writer::new(directory, Part::First, known).unwrap();
        // A build hands over the files of a site; the others are still in memory at the end.
        for (_, file) in release.files().skip(1) {
            assert!(writer.take(file.clone()).bytes.is_empty());
        }
        writer.finish(release).unwrap();
    }

    fn store(root: &Path) -> Store {
        Store::open_directory(root.join("store")).unwrap()
    }

    #[test]
    fn what_a_process_writes_is_put_whole_and_what_is_stored_is_not_written_again() {
        let root = tempfile::tempdir().unwrap();
        let (store, above) = (store(root.path()), root.path().join("builds"));
        let before = release(&[("a", "one"), ("b", "two")]);
        store.put(&before).unwrap();
        let after = release(&[("a", "one"), ("b", "three"), ("c", "three")]);
        let workspace = Workspace::make(&above, None).unwrap();
        let known = [before.inventory()];
        write(workspace.path(), &after, &known);
        let content = fs::read(workspace.file("content")).unwrap();
        assert_eq!(content.len(), b"three".len() + PLACE_BYTES + COUNT_BYTES);
        let inventory = workspace.inventory(Part::First, after.id()).unwrap();
        workspace
            .put(&store, Part::First, &inventory, &known)
            .unwrap();
        let stored = store.inventory(after.id()).unwrap();
        assert_eq!(store.read(stored.get("c").unwrap()).unwrap(), "three");
        let path = workspace.path().to_owned();
        drop(workspace);
        assert!(!path.exists());
    }

    #[test]
    fn a_process_puts_nothing_that_is_not_what_it_says() {
        let root = tempfile::tempdir().unwrap();
        let (store, above) = (store(root.path()), root.path().join("builds"));
        let foreign = release(&[("secret", "of another project")]);
        store.put(&foreign).unwrap();
        let workspace = Workspace::make(&above, None).unwrap();
        let put = |release: &Release| {
            let inventory = workspace.inventory(Part::First, release.id())?;
            workspace.put(&store, Part::First, &inventory, &[])
        };
        // The digest of a file is not enough to get the file.
        write(workspace.path(), &foreign, &[foreign.inventory()]);
        assert!(matches!(put(&foreign), Err(PutError::Missing(_))));
        // The bytes do not match the inventory.
        let ours = release(&[("a", "ours")]);
        write(workspace.path(), &ours, &[]);
        let written = fs::read(workspace.file("content")).unwrap();
        let with = |from: usize, bytes: &[u8]| {
            let mut content = written.clone();
            content[from..from + bytes.len()].copy_from_slice(bytes);
            workspace.give("content", &content).unwrap();
        };
        with(0, b"else");
        assert!(matches!(put(&ours), Err(PutError::Digest(_))));
        // The file would lie outside of the bytes, or in the list.
        let start = b"ours".len() + DIGEST_BYTES;
        for outside in [1, u64::MAX - 1] {
            with(start, &outside.to_le_bytes());
            assert!(matches!(put(&ours), Err(PutError::Missing(_))));
        }
        // The list is longer than the content, or there is none.
        for count in [2, u64::MAX] {
            with(start + COUNT_BYTES, &count.to_le_bytes());
            assert!(matches!(put(&ours), Err(PutError::Release(_))));
        }
        workspace.give("content", b"ours").unwrap();
        assert!(matches!(put(&ours), Err(PutError::Release(_))));
        // Two files share their bytes, so more would be read than was written.
        let two = release(&[("a", "ours"), ("b", "theirs")]);
        write(workspace.path(), &two, &[]);
        let mut content = b"theirs".to_vec();
        for (_, file) in two.files() {
            content.extend_from_slice(file.digest().as_bytes());
            content.extend_from_slice(&0_u64.to_le_bytes());
        }
        content.extend_from_slice(&2_u64.to_le_bytes());
        workspace.give("content", &content).unwrap();
        put(&two).unwrap_err();
        // The inventory is another one.
        assert!(matches!(put(&foreign), Err(PutError::Release(_))));
        // A link leads out of the workspace.
        fs::remove_file(workspace.file("content")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", workspace.file("content")).unwrap();
        assert!(matches!(put(&ours), Err(PutError::Release(_))));
        // The inventory is longer than an edge fetches. It is not read.
        let long = workspace.file(Part::First.inventory());
        let long = File::options().write(true).open(long).unwrap();
        long.set_len(INVENTORY_BYTES_MAX + 1).unwrap();
        let rejected = put(&ours).unwrap_err();
        assert!(matches!(rejected, PutError::Inventory(_)), "{rejected}");
        assert!(store.inventory(ours.id()).is_err());
    }
}

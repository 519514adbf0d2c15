//! The thread that writes copies and removes them.
//!
//! Only one process at a time uses a directory: the holder of its lock. During an upgrade the
//! new process gets the lock when the old one drains.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::collect::Collecting;
use super::file::{self, Description, Name};
use super::{Shared, may_keep_of};
use crate::clock::Clock;
use crate::gateway::drain::Drain;
use crate::index::Index;
use crate::site::{ProjectId, Site};

/// How often the thread looks for changed sites and for files that are to be removed.
const INTERVAL: Duration = Duration::from_millis(500);
/// How often copies that may not be used any more are removed.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(600);
/// How long nothing is written after the disk has failed.
const PAUSE: Duration = Duration::from_secs(10);
/// The file that is being written.
const NEW_FILE: &str = "new.tmp";
/// The file with the lock.
const LOCK_FILE: &str = "lock";

/// The state of the thread.
pub(super) struct Keeper {
    pub(super) shared: Arc<Shared>,
    pub(super) jobs: Receiver<Box<Collecting>>,
    pub(super) index: Arc<Index>,
    pub(super) drain: Drain,
    pub(super) clock: Clock,
}

// === impl Keeper ===

impl Keeper {
    /// Runs until the process drains.
    pub(super) fn run(self) {
        let Some(lock) = self.wait_for_lock() else {
            return;
        };
        let generation = self.index.generation();
        self.load();
        self.shared.set_active(true);
        let (count, bytes) = self.shared.table().size();
        log::info!(target: "copies", count, bytes; "{count} copies of earlier responses, {bytes} bytes");
        self.serve(generation);
        self.shared.set_active(false);
        drop(lock);
    }

    /// Returns the locked file; `None` if the process drains.
    fn wait_for_lock(&self) -> Option<File> {
        let path = self.shared.directory.join(LOCK_FILE);
        loop {
            if self.drain.is_draining() {
                return None;
            }
            let locked = File::create(&path).map(|file| (file.try_lock(), file));
            match locked {
                Ok((Ok(()), file)) => return Some(file),
                Ok((Err(TryLockError::WouldBlock), _)) => {}
                Ok((Err(TryLockError::Error(error)), _)) | Err(error) => {
                    log::warn!(target: "copies", "cannot lock {}: {error}", path.display());
                }
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Writes and removes copies.
    fn serve(&self, mut generation: u64) {
        let mut paused_until: Option<Instant> = None;
        let mut expired_at = Instant::now();
        while !self.drain.is_draining() {
            match self.jobs.recv_timeout(INTERVAL) {
                Ok(_) if paused_until.is_some_and(|until| Instant::now() < until) => {
                    self.shared.count("dropped", 1);
                }
                Ok(collected) => {
                    paused_until = None;
                    if let Err(error) = self.write(*collected) {
                        self.shared.count("failed", 1);
                        let directory = self.shared.directory.display();
                        log::warn!(target: "copies", "cannot write a copy to {directory}: {error}");
                        paused_until = Some(Instant::now() + PAUSE);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = self.index.generation();
            if generation != now {
                generation = now;
                self.forget_sites();
            }
            if expired_at.elapsed() > EXPIRY_INTERVAL {
                expired_at = Instant::now();
                self.forget_expired();
            }
            self.remove_files();
        }
    }

    fn write(&self, mut collected: Collecting) -> io::Result<()> {
        let Shared {
            directory, config, ..
        } = &*self.shared;
        let (project, description, fields, content) = collected.parts();
        let needed = (fields.len() + content.len()) as u64;
        let disk = rustix::fs::statvfs(directory)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free.saturating_sub(needed) < config.free_bytes_min {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let new = directory.join(NEW_FILE);
        let bytes = match file::write(&new, description, fields, content) {
            Ok(bytes) => bytes,
            Err(error) => {
                file::remove(&new);
                return Err(error);
            }
        };
        let put = self.shared.table().put(config, project, description, bytes);
        let Some((name, removed)) = put else {
            file::remove(&new);
            return Ok(());
        };
        self.shared.count("evicted", removed);
        self.remove_files();
        let place = name.path(directory);
        let parent = place.parent().unwrap_or(directory);
        let moved = match fs::rename(&new, &place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(parent).and_then(|()| fs::rename(&new, &place))
            }
            moved => moved,
        };
        if let Err(error) = moved {
            self.shared.table().forget_written(project, description);
            file::remove(&new);
            return Err(error);
        }
        self.shared.count("stored", 1);
        Ok(())
    }

    /// Reads which copies there are. Files that cannot be used are removed.
    fn load(&self) {
        let directory = &self.shared.directory;
        file::remove(&directory.join(NEW_FILE));
        let now = self.clock.unix_seconds();
        let mut sites: HashMap<ProjectId, Option<Arc<Site>>> = HashMap::new();
        let mut found = Vec::new();
        for path in files(directory) {
            match file::describe(&path) {
                Ok((description, bytes)) => match self.usable(&description, now, &mut sites) {
                    Some((project, name)) if name.path(directory) == path => {
                        found.push((description.received, project, description, bytes));
                    }
                    _ => file::remove(&path),
                },
                Err(error) => {
                    log::debug!(target: "copies", "{}: {error}", path.display());
                    file::remove(&path);
                }
            }
        }
        found.sort_by_key(|(received, ..)| *received);
        for (_, project, description, bytes) in found {
            let put = self
                .shared
                .table()
                .put(&self.shared.config, &project, &description, bytes);
            if put.is_none()
                && let Some((target, coding)) = description.key()
            {
                let name = Name::of(&project, &description.record, &target, coding);
                file::remove(&name.path(directory));
            }
        }
        self.remove_files();
    }

    /// Returns the project and the name of a copy, if it belongs to a site as it is now.
    fn usable(
        &self,
        description: &Description,
        now: u64,
        sites: &mut HashMap<ProjectId, Option<Arc<Site>>>,
    ) -> Option<(ProjectId, Name)> {
        let project = ProjectId::parse(&description.project).ok()?;
        let (target, coding) = description.key()?;
        let site = sites
            .entry(project.clone())
            .or_insert_with(|| self.site(&project));
        let record = self.shared.table().record(site.as_ref()?);
        let name = Name::of(&project, &record, &target, coding);
        (record == description.record && description.is_usable(now)).then_some((project, name))
    }

    fn site(&self, project: &ProjectId) -> Option<Arc<Site>> {
        let served = self.index.served_by(project)?;
        may_keep_of(&served.site).then(|| Arc::clone(&served.site))
    }

    fn forget_sites(&self) {
        let forgotten = self
            .shared
            .table()
            .forget_sites(|project| self.site(project));
        self.shared.count("forgotten", forgotten);
    }

    fn forget_expired(&self) {
        let now = self.clock.unix_seconds();
        // One site at a time: requests wait for the table.
        let projects = self.shared.table().projects();
        for project in projects {
            let expired = self.shared.table().forget_expired(&project, now);
            self.shared.count("forgotten", expired);
        }
    }

    fn remove_files(&self) {
        let (to_remove, size) = {
            let mut table = self.shared.table();
            (table.take_files_to_remove(), table.size())
        };
        for name in to_remove {
            file::remove(&name.path(&self.shared.directory));
        }
        self.shared.show_size(size);
    }
}

/// Returns the files of copies below a directory.
fn files(directory: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    let list = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten();
    let is_copy = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(Name::parse).is_some()
    };
    list(directory)
        .flat_map(move |entry| list(&entry.path()).map(|file| file.path()))
        .filter(move |path| is_copy(path))
}

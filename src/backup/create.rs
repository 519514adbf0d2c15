//! Making a backup.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::archive::{Entry, QUEUE_ROWS, Writer};
use super::directory::{ARCHIVE, VERSION};
use super::{Database, Directory, Error, Manifest, NamedFile, Places};
use crate::clock::Clock;
use crate::deploy::queue::{Postgres, QueueError, Sqlite};
use crate::error::chain;
use crate::release::ReleaseId;
use crate::site::ProjectId;
use crate::store::documents::SealKey;
use crate::store::{Local, Pointer, PutError, ReadError, Store};

/// How often a pointer is read again whose releases were removed while they were copied.
const POINTER_READS_MAX: u32 = 5;
/// How often a file is read again that became shorter meanwhile.
const FILE_READS_MAX: u32 = 5;
/// Files up to this size are read at once, so that they are of one moment.
const WHOLE_BYTES_MAX: u64 = 16 << 20;
/// How deep directories are followed: links may form a cycle.
const DEPTH_MAX: usize = 12;
/// Entries that are never copied: the temporary files and the lock of certificates by ACME.
const VOLATILE: [&str; 2] = ["temp", "leader"];

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its name.
    pub name: String,
    /// What it has.
    pub manifest: Manifest,
    /// How many releases were not in the directory before.
    pub copied: u64,
    /// What the store could not give, in a sentence each. The rest is in the backup.
    pub damages: Vec<String>,
    /// How many older backups were removed.
    pub removed: usize,
}

/// The state of a backup that is being made.
struct Making<'b> {
    store: &'b Store,
    releases: Store,
    archive: Writer<'b>,
    /// The releases that were checked, and whether each is in the backup.
    seen: HashMap<ReleaseId, bool>,
    copied: u64,
    files: u64,
    damages: Vec<String>,
}

/// Makes a backup in a directory, and removes all but the newest `keep` (0: none).
///
/// # Errors
///
/// [`Error`]; the earlier backups are as they were. Damaged releases are not an error: see
/// [`Created::damages`].
pub fn create(
    directory: &Directory,
    places: &Places,
    store: &Store,
    key: &SealKey,
    keep: usize,
    clock: &Clock,
) -> Result<Created, Error> {
    let _locked = directory.lock()?;
    let begun_at = time(clock);
    // Names sort as times do, and a colon is not allowed on every file system.
    let name = begun_at.replace([':', '-'], "");
    let part = directory.begin(&name)?;
    let mut making = Making {
        store,
        releases: directory.releases()?,
        archive: Writer::create(&part.join(ARCHIVE), &name, key)?,
        seen: HashMap::new(),
        copied: 0,
        files: 0,
        damages: Vec::new(),
    };
    if let Some(path) = &places.configuration {
        making.file("configuration", "configuration", path)?;
    }
    match &places.database {
        Some(database) => making.database(database, &part)?,
        None => making.queue(&places.queue)?,
    }
    let projects = making.pointers()?;
    making.others(places)?;
    let Making {
        archive,
        seen,
        copied,
        files,
        damages,
        releases,
        ..
    } = making;
    let path = part.join(ARCHIVE);
    archive.finish().map_err(Error::on("write", &path))?;
    let (kept, missing): (BTreeSet<_>, BTreeSet<_>) =
        seen.into_iter().partition(|(_, is_copied)| *is_copied);
    let ids = |set: BTreeSet<(ReleaseId, bool)>| set.into_iter().map(|(id, _)| id).collect();
    let manifest = Manifest {
        version: VERSION,
        waypost: env!("CARGO_PKG_VERSION").to_owned(),
        begun_at,
        configuration: match &places.configuration {
            Some(path) => Some(std::path::absolute(path).map_err(Error::on("find", path))?),
            None => None,
        },
        projects,
        files,
        directories: places.directories(),
        releases: ids(kept),
        missing: ids(missing),
    };
    directory.end(&name, &manifest)?;
    let removed = match keep {
        0 => 0,
        keep => prune(directory, &releases, keep)?,
    };
    Ok(Created {
        name,
        manifest,
        copied,
        damages,
        removed,
    })
}

/// Removes all but the newest backups, and the releases that only they had.
fn prune(directory: &Directory, releases: &Store, keep: usize) -> Result<usize, Error> {
    let names = directory.names()?;
    let old = &names[..names.len().saturating_sub(keep)];
    if old.is_empty() {
        return Ok(0);
    }
    // Those that stay are read first: nothing is removed if one of them cannot be read.
    let mut named = HashSet::new();
    for name in &names[old.len()..] {
        named.extend(directory.backup(Some(name))?.manifest.releases);
    }
    for name in old {
        directory.remove(name)?;
    }
    releases.keep_only(&named)?;
    Ok(old.len())
}

fn time(clock: &Clock) -> String {
    let now = clock.now().duration_since(std::time::UNIX_EPOCH);
    let millis = i64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    format!("{time:.3}")
}

// === impl Making ===

impl Making<'_> {
    fn queue(&mut self, path: &Path) -> Result<(), Error> {
        if !path.exists() {
            return Ok(());
        }
        // Beside the queue, so that a kill leaves its content nowhere else.
        let mut copy = path.to_owned().into_os_string();
        copy.push(".backup");
        let copy = PathBuf::from(copy);
        let remove = || match fs::remove_file(&copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::on("remove", &copy)(error))
            }
            _ => Ok(()),
        };
        remove()?;
        let copied = Sqlite::copy(path, &copy)
            .map_err(Error::from)
            .and_then(|()| self.file("queue", "queue", &copy));
        remove()?;
        copied
    }

    /// Copies the queue in a database. If it cannot be reached, the rest is worth a backup.
    fn database(&mut self, database: &Database, part: &Path) -> Result<(), Error> {
        let rows = tempfile::tempfile_in(part).map_err(Error::on("make a file in", part))?;
        let mut rows = io::BufWriter::new(rows);
        let Database { config, service } = database;
        let copied = Postgres::copy(config, service, |line| -> Result<(), Error> {
            let written = rows.write_all(line.as_bytes());
            let written = written.and_then(|()| rows.write_all(b"\n"));
            written.map_err(Error::on("write", part))
        });
        match copied {
            Ok(()) => {}
            Err(Error::Queue(error @ (QueueError::Unavailable(_) | QueueError::Rejected(_)))) => {
                self.damages.push(format!("the queue: {}", chain(&error)));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let copy = || -> io::Result<()> {
            let mut rows = rows.into_inner().map_err(io::IntoInnerError::into_error)?;
            let entry = Entry {
                place: QUEUE_ROWS.into(),
                path: "queue".into(),
                mode: 0o600,
                bytes: rows.stream_position()?,
            };
            rows.rewind()?;
            self.archive.add(&entry, &mut rows)
        };
        copy().map_err(Error::on("copy the queue to", part))?;
        self.files += 1;
        Ok(())
    }

    fn pointers(&mut self) -> Result<u64, Error> {
        let mut projects = self.store.pointers()?;
        projects.sort_unstable();
        let mut count = 0;
        for project in &projects {
            count += u64::from(self.pointer(project)?);
        }
        Ok(count)
    }

    /// Copies a pointer after the releases that it names. Returns whether there is one.
    fn pointer(&mut self, project: &ProjectId) -> Result<bool, Error> {
        let mut before: Option<Pointer> = None;
        for _ in 0..POINTER_READS_MAX {
            let pointer = match self.store.current(project) {
                Ok(Some(pointer)) => pointer,
                Ok(None) => return Ok(false),
                Err(error @ ReadError::Damaged { .. }) => {
                    self.damages.push(chain(&error));
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            };
            let mut errors = Vec::new();
            for promotion in pointer.promotions() {
                errors.extend(self.release(promotion.release)?);
            }
            let is_same = before.as_ref() == Some(&pointer);
            if errors.is_empty() || is_same {
                for error in errors {
                    self.damages
                        .push(format!("a release of {project}: {error}"));
                }
                let bytes = pointer.to_bytes(project);
                let entry = Entry {
                    place: "pointer".into(),
                    path: project.as_str().into(),
                    mode: 0o600,
                    bytes: bytes.len() as u64,
                };
                let added = self.archive.add(&entry, &mut &*bytes);
                added.map_err(Error::on(
                    "copy the pointer of",
                    Path::new(project.as_str()),
                ))?;
                return Ok(true);
            }
            // The release may have left the history and been removed.
            for promotion in pointer.promotions() {
                if self.seen.get(&promotion.release) == Some(&false) {
                    self.seen.remove(&promotion.release);
                }
            }
            before = Some(pointer);
        }
        self.damages.push(format!(
            "the pointer of {project} changed each time it was copied"
        ));
        Ok(false)
    }

    /// Copies a release. Returns why the store could not give it.
    fn release(&mut self, release: ReleaseId) -> Result<Option<String>, Error> {
        match self.seen.get(&release) {
            Some(true) => return Ok(None),
            Some(false) => return Ok(Some(format!("{release} is damaged or missing"))),
            None => {}
        }
        if self.releases.has_release(release)? {
            self.seen.insert(release, true);
            return Ok(None);
        }
        let copied = self.copy(release);
        self.seen.insert(release, copied.is_ok());
        match copied {
            Ok(()) => {
                self.copied += 1;
                Ok(None)
            }
            Err(Error::Read(error) | Error::Put(PutError::Existing(error))) => {
                Ok(Some(chain(&error)))
            }
            Err(error) => Err(error),
        }
    }

    fn copy(&self, release: ReleaseId) -> Result<(), Error> {
        let inventory = self.store.inventory(release)?;
        let releases = self.releases.directory().map_err(ReadError::from)?;
        // Files of other releases are in the directory already. One that is damaged there is
        // copied again.
        let mut next = |item: &crate::release::Item| {
            if releases.has_content(item)? && self.releases.read(item).is_ok() {
                return Ok(None);
            }
            Ok(Some(self.store.read(item)?))
        };
        self.releases.put_files(&inventory, &mut next)?;
        Ok(())
    }

    fn others(&mut self, places: &Places) -> Result<(), Error> {
        let store = self.store.directory().map_err(ReadError::from)?;
        self.store_files(store, &places.certificates)?;
        self.records(store)?;
        self.tree("certificates", &places.certificates)?;
        self.tree("sites", &places.sites)?;
        if let Some(tls) = &places.tls {
            self.tree("tls", tls)?;
        }
        for NamedFile { key, path, .. } in &places.files {
            if path.is_file() {
                self.file("file", key, path)?;
            }
        }
        Ok(())
    }

    /// Copies the files of the store that need no lock.
    fn store_files(&mut self, store: &Local, certificates: &Path) -> Result<(), Error> {
        let audit = store.audit_directory();
        for path in store.other_state()? {
            let is_lock = path
                .extension()
                .is_some_and(|extension| extension == "lock");
            let is_of_records = path == audit || store.record_state().any(|of| of == path);
            if is_lock || is_of_records || path == certificates {
                continue;
            }
            self.store_file(&path)?;
        }
        Ok(())
    }

    /// Copies the site records, and the audit log of exactly these. No site can be changed while
    /// the records are copied, so they are copied alone.
    fn records(&mut self, store: &Local) -> Result<(), Error> {
        let locked = self.store.lock_sites()?;
        let entries = store.audit_lengths()?;
        for path in store.record_state() {
            self.store_file(&path)?;
        }
        drop(locked);
        let audit = store.audit_directory();
        let directory = Path::new(audit.file_name().unwrap_or_default());
        for (path, length) in entries {
            let name = directory.join(path.file_name().unwrap_or_default());
            if let Some(name) = name.to_str() {
                self.file_up_to("store", name, &path, length)?;
            }
        }
        Ok(())
    }

    fn store_file(&mut self, path: &Path) -> Result<(), Error> {
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        self.walk("store", &name, path, DEPTH_MAX)
    }

    /// Copies all files of a directory, or one file.
    fn tree(&mut self, place: &str, path: &Path) -> Result<(), Error> {
        self.walk(place, Path::new(""), path, DEPTH_MAX)
    }

    /// Copies the file or directory at `path`; `name` is its path below the place. Links are
    /// followed.
    fn walk(&mut self, place: &str, name: &Path, path: &Path, depth: usize) -> Result<(), Error> {
        let Ok(found) = fs::metadata(path) else {
            // Removed meanwhile, or a link to nothing.
            return Ok(());
        };
        if found.is_file() {
            let Some(name) = name.to_str() else {
                let damage = format!("{}: its name is not UTF-8", path.display());
                self.damages.push(damage);
                return Ok(());
            };
            return self.file(place, name, path);
        }
        if !found.is_dir() || depth == 0 {
            return Ok(());
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(Error::on("list", path))? {
            entries.push(entry.map_err(Error::on("list", path))?.file_name());
        }
        entries.sort();
        for entry in entries {
            if depth == DEPTH_MAX && VOLATILE.iter().any(|volatile| entry == *volatile) {
                continue;
            }
            self.walk(place, &name.join(&entry), &path.join(&entry), depth - 1)?;
        }
        Ok(())
    }

    /// Copies a file. A file that was removed meanwhile is left out.
    fn file(&mut self, place: &str, name: &str, path: &Path) -> Result<(), Error> {
        self.file_up_to(place, name, path, u64::MAX)
    }

    /// Copies the first bytes of a file.
    fn file_up_to(
        &mut self,
        place: &str,
        name: &str,
        path: &Path,
        length: u64,
    ) -> Result<(), Error> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.read_file(place, name, path, length) {
                Ok(()) => {
                    self.files += 1;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error)
                    if error.kind() == io::ErrorKind::Interrupted && attempt < FILE_READS_MAX => {}
                Err(error) => return Err(Error::on("copy", path)(error)),
            }
        }
    }

    fn read_file(&mut self, place: &str, name: &str, path: &Path, length: u64) -> io::Result<()> {
        let file = fs::File::open(path)?;
        let found = file.metadata()?;
        let known = found.len().min(length);
        let mut entry = Entry {
            place: place.into(),
            path: name.into(),
            mode: found.permissions().mode() & 0o777,
            bytes: known,
        };
        if known > WHOLE_BYTES_MAX {
            return self.archive.add(&entry, &mut file.take(known));
        }
        let mut bytes = Vec::new();
        let limit = (WHOLE_BYTES_MAX + 1).min(length);
        file.take(limit).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > WHOLE_BYTES_MAX {
            // It grows while it is read: the next attempt sees its new length.
            return Err(io::ErrorKind::Interrupted.into());
        }
        entry.bytes = bytes.len() as u64;
        self.archive.add(&entry, &mut &*bytes)
    }
}

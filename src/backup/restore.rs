//! Restoring a backup.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead as _, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use super::archive::{Entry, QUEUE_ROWS};
use super::{Backup, Database, Directory, Error, Places};
use crate::clock::Clock;
use crate::deploy::queue::Postgres;
use crate::digest::Digest;
use crate::error::chain;
use crate::release::ReleaseId;
use crate::site::ProjectId;
use crate::store::documents::SealKey;
use crate::store::{InvalidPointer, Local, Pointer, ReadError, Store};

/// The longest pointer that is read.
const POINTER_BYTES_MAX: u64 = 1 << 20;
/// The longest configuration that is read.
const CONFIGURATION_BYTES_MAX: u64 = 16 << 20;

/// The longest file that is read to connect to the database of the queue.
const CONNECTING_BYTES_MAX: u64 = 1 << 20;
/// The keys of the configuration that name files without which this database cannot be reached:
/// its password, and the authorities of its certificate.
const CONNECTING: [&str; 2] = ["queue.postgres.password_file", "queue.postgres.ca_file"];

/// A backup that was read and found to be whole.
#[derive(Clone, Debug, Default)]
pub struct CheckedBackup {
    /// The configuration, if the backup has one.
    pub configuration: Option<Vec<u8>>,
    /// How many projects have a pointer.
    pub projects: u64,
    /// How many other files there are.
    pub files: u64,
    /// How many releases there are.
    pub releases: u64,
    /// Whether the backup holds a queue of PostgreSQL.
    pub has_queue_rows: bool,
    /// The names of the files at the place `file`.
    named: HashSet<Box<str>>,
    /// The files without which the database of the queue cannot be reached.
    connecting: HashMap<Box<str>, Vec<u8>>,
}

/// What a restore has written.
#[derive(Clone, Debug, Default)]
pub struct Restored {
    /// The files and directories that were there before, and where they are now.
    pub moved: Vec<(PathBuf, PathBuf)>,
    /// The files of the backup that the configuration of this machine has no place for.
    pub left_out: Vec<String>,
    /// The files of the machine that were there before, and are as they were.
    pub stayed: Vec<PathBuf>,
}

/// Reads all of a backup and checks every digest. Nothing is written.
///
/// # Errors
///
/// [`Error::Damaged`] with everything that is damaged or missing; [`Error::Newer`] when a newer
/// program wrote a pointer.
pub fn check(
    directory: &Directory,
    backup: &Backup,
    key: &SealKey,
) -> Result<CheckedBackup, Error> {
    let releases = directory.releases()?;
    let mut checked = CheckedBackup::default();
    let mut damages = Vec::new();
    let mut seen = HashMap::new();
    let missing: HashSet<_> = backup.manifest.missing.iter().collect();
    let mut archive = backup.archive(key)?;
    let path = backup.archive_path();
    let on = || Error::on("read", &path);
    while let Some((entry, mut bytes)) = archive.next().map_err(on())? {
        match &*entry.place {
            "configuration" => {
                let mut text = Vec::new();
                let mut limited = (&mut bytes).take(CONFIGURATION_BYTES_MAX);
                limited.read_to_end(&mut text).map_err(on())?;
                checked.configuration = Some(text);
            }
            "pointer" => {
                let (project, pointer) = pointer(&entry, &mut bytes)?;
                for promotion in pointer.promotions() {
                    let release = promotion.release;
                    if missing.contains(&release) || seen.contains_key(&release) {
                        continue;
                    }
                    let damage = damage_of(&releases, release)?;
                    seen.insert(release, damage.is_none());
                    damages.extend(damage.map(|why| format!("a release of {project}: {why}")));
                }
                checked.projects += 1;
            }
            QUEUE_ROWS => checked.has_queue_rows = true,
            "file" => {
                checked.named.insert(entry.path.clone());
                if CONNECTING.contains(&&*entry.path) {
                    let mut text = Vec::new();
                    let mut limited = (&mut bytes).take(CONNECTING_BYTES_MAX);
                    limited.read_to_end(&mut text).map_err(on())?;
                    checked.connecting.insert(entry.path.clone(), text);
                }
            }
            _ => {}
        }
        let read = io::copy(&mut bytes, &mut io::sink()).map_err(on())?;
        let is_whole = bytes.limit() == 0;
        let _rest = read;
        if !is_whole {
            return Err(Error::Damaged(vec![format!(
                "{}: it ends in the middle of {}",
                path.display(),
                entry.path
            )]));
        }
        checked.files += u64::from(&*entry.place != "pointer");
    }
    checked.releases = seen.len() as u64;
    match damages.is_empty() {
        true => Ok(checked),
        false => Err(Error::Damaged(damages)),
    }
}

/// Returns the damaged files of a release.
fn damage_of(releases: &Store, release: ReleaseId) -> Result<Option<String>, Error> {
    let inventory = match releases.inventory(release) {
        Ok(inventory) => inventory,
        Err(error @ ReadError::Newer { .. }) => return Err(error.into()),
        Err(error) => return Ok(Some(chain(&error))),
    };
    let mut read: HashSet<Digest> = HashSet::new();
    for (_, item) in inventory.iter() {
        if read.insert(item.digest)
            && let Err(error) = releases.read(item)
        {
            return Ok(Some(chain(&error)));
        }
    }
    Ok(None)
}

fn pointer(entry: &Entry, bytes: &mut dyn Read) -> Result<(ProjectId, Pointer), Error> {
    let what = || format!("the pointer of {}", entry.path);
    let damaged = |why: String| Error::Damaged(vec![format!("{}: {why}", what())]);
    let mut text = Vec::new();
    let read = bytes.take(POINTER_BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| damaged(error.to_string()))?;
    let project = ProjectId::parse(&entry.path).map_err(|error| damaged(error.to_string()))?;
    match Pointer::parse(&text, &project) {
        Ok(pointer) => Ok((project, pointer)),
        Err(InvalidPointer::Newer(version)) => Err(Error::Newer {
            what: what(),
            version,
            known: 1,
        }),
        Err(error) => Err(damaged(chain(&error))),
    }
}

/// Restores a backup that [`check`] has read. With `replace`, existing files and directories are
/// moved aside. Without it, nothing may exist at the places of the backup.
///
/// # Errors
///
/// [`Error::Occupied`] with everything that is in the way: nothing is written then. Another error
/// may leave some places written; then the store cannot be opened, and the restore can be
/// repeated.
pub fn restore(
    directory: &Directory,
    backup: &Backup,
    key: &SealKey,
    checked: &CheckedBackup,
    places: &Places,
    replace: bool,
) -> Result<Restored, Error> {
    let mut restored = Restored {
        stayed: staying(places),
        ..Restored::default()
    };
    // A restore of this backup that was interrupted has written everything that is there. What one
    // of another backup has written is in the way.
    let is_repeated = Local::is_incomplete(&places.store.path, &backup.name);
    let database = places.database.as_ref();
    let database = database.filter(|_| checked.has_queue_rows);
    let reachable = database.map(|database| Reachable::new(database, checked));
    let reachable = reachable.transpose()?;
    let database = reachable.as_ref().map(|reachable| &reachable.database);
    if !is_repeated {
        let occupied = occupied(checked, places);
        let occupied_database = match database {
            Some(Database { config, service }) => Postgres::is_occupied(config, service)?,
            None => false,
        };
        if !replace && (occupied_database || !occupied.is_empty()) {
            let lines = occupied.iter();
            let lines = lines.map(|path| format!("{} is not empty", path.display()));
            let database = "the queue in the database of `queue.postgres` is not empty";
            let database = occupied_database.then(|| database.to_owned());
            return Err(Error::Occupied(lines.chain(database).collect()));
        }
        if let Some(Database { config, .. }) = database.filter(|_| occupied_database) {
            let schema = Postgres::move_aside(config, &backup.name)?;
            let (from, to) = ("the schema waypost_queue".into(), schema.into());
            restored.moved.push((from, to));
        }
        for path in occupied {
            let aside = aside(&path, &backup.name);
            fs::rename(&path, &aside).map_err(Error::on("move aside", &path))?;
            restored.moved.push((path, aside));
        }
    }
    let store = Local::restoring(&places.store, &backup.name, Clock::System)?;
    let root = places.store.path.clone();
    let store = Store::Local(store);
    let releases = directory.releases()?;
    let missing: HashSet<_> = backup.manifest.missing.iter().collect();
    let mut written = HashSet::new();
    let mut archive = backup.archive(key)?;
    let path = backup.archive_path();
    let on = || Error::on("read", &path);
    let mut to_flush = vec![root.clone()];
    while let Some((entry, mut bytes)) = archive.next().map_err(on())? {
        if &*entry.place == "pointer" {
            let (project, pointer) = pointer(&entry, &mut bytes)?;
            for promotion in pointer.promotions() {
                let release = promotion.release;
                if missing.contains(&release) || !written.insert(release) {
                    continue;
                }
                let inventory = releases.inventory(release)?;
                store.put_files(&inventory, &mut |item| Ok(Some(releases.read(item)?)))?;
            }
            store.restore_pointer(&project, &pointer)?;
            continue;
        }
        if &*entry.place == QUEUE_ROWS {
            match database {
                Some(Database { config, service }) => {
                    let mut lines = io::BufReader::new(&mut bytes).lines();
                    Postgres::put_back(config, service, || lines.next().transpose().map_err(on()))?;
                }
                None => restored.left_out.push("the queue".to_owned()),
            }
            io::copy(&mut bytes, &mut io::sink()).map_err(on())?;
            continue;
        }
        let Some(to) = place_of(&entry, places)? else {
            restored.left_out.push(entry.path.to_string());
            io::copy(&mut bytes, &mut io::sink()).map_err(on())?;
            continue;
        };
        if restored.stayed.contains(&to) {
            io::copy(&mut bytes, &mut io::sink()).map_err(on())?;
            continue;
        }
        if &*entry.place == "queue" {
            for rest in ["-wal", "-shm"] {
                let mut beside = to.clone().into_os_string();
                beside.push(rest);
                // They belong to another file, or do not exist.
                let _removed = fs::remove_file(&beside);
            }
        }
        write(&to, entry.mode, &mut bytes)?;
        if let Some(above) = to.parent()
            && !to.starts_with(&root)
            && to_flush.last().map(PathBuf::as_path) != Some(above)
        {
            to_flush.push(above.to_owned());
        }
    }
    for (name, path) in places.trees() {
        let directories = &backup.manifest.directories;
        if directories.iter().any(|known| **known == *name) && !path.exists() {
            make_directory(path).map_err(Error::on("make directory", path))?;
            to_flush.push(path.to_owned());
        }
    }
    for directory in &to_flush {
        let open = File::open(directory).map_err(Error::on("open", directory))?;
        let flushed = rustix::fs::syncfs(&open).map_err(io::Error::from);
        flushed.map_err(Error::on("flush the disk of", directory))?;
    }
    store.directory()?.restored()?;
    Ok(restored)
}

/// A database, with copies of the files without which it cannot be reached: the files themselves are
/// moved and written meanwhile.
struct Reachable {
    database: Database,
    _copies: Vec<tempfile::NamedTempFile>,
}

impl Reachable {
    /// It uses the files of this machine. One that is missing is taken from the backup.
    fn new(database: &Database, checked: &CheckedBackup) -> Result<Self, Error> {
        let mut database = database.clone();
        let mut copies = Vec::new();
        let config = &mut database.config;
        let paths = [&mut config.password_file, &mut config.ca_file];
        for (key, path) in CONNECTING.into_iter().zip(paths) {
            let Some(path) = path else {
                continue;
            };
            let copy = || -> io::Result<tempfile::NamedTempFile> {
                let known = match (fs::read(&*path), checked.connecting.get(key)) {
                    (Ok(known), _) => known,
                    (Err(_), Some(known)) => known.clone(),
                    (Err(error), None) => return Err(error),
                };
                let mut file = tempfile::NamedTempFile::new()?;
                file.write_all(&known)?;
                Ok(file)
            };
            let copied = copy().map_err(Error::on("read", path))?;
            *path = copied.path().to_owned();
            copies.push(copied);
        }
        Ok(Self {
            database,
            _copies: copies,
        })
    }
}

/// Returns the files of the machine that are there and stay.
fn staying(places: &Places) -> Vec<PathBuf> {
    let staying = places.files.iter();
    let staying = staying.filter(|file| file.stays && file.path.exists());
    staying.map(|file| file.path.clone()).collect()
}

/// Returns the places of a backup that are not empty.
fn occupied(checked: &CheckedBackup, places: &Places) -> Vec<PathBuf> {
    let mut all = vec![
        places.store.path.clone(),
        places.queue.clone(),
        places.sites.clone(),
        places.certificates.clone(),
    ];
    all.extend(places.tls.clone());
    let named = places.files.iter();
    let named = named.filter(|file| !file.stays && checked.named.contains(&file.key));
    all.extend(named.map(|file| file.path.clone()));
    if let (Some(path), Some(text)) = (&places.configuration, &checked.configuration)
        && fs::read(path).ok().as_ref() != Some(text)
    {
        all.push(path.clone());
    }
    let mut occupied: Vec<PathBuf> = Vec::new();
    all.sort();
    for path in all {
        let is_inside = occupied.iter().any(|above| path.starts_with(above));
        if !is_inside && is_occupied(&path) {
            occupied.push(path);
        }
    }
    occupied
}

fn is_occupied(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.any(|entry| {
            let name = entry.map(|entry| entry.file_name());
            // A package leaves a note in a directory of site records.
            name.map_or(true, |name| name != "lost+found" && name != "README")
        }),
        Err(_not_a_directory) => fs::symlink_metadata(path).is_ok(),
    }
}

/// Returns where a file goes that is in the way.
fn aside(path: &Path, backup: &str) -> PathBuf {
    let named = |suffix: &str| {
        let mut name = path.to_owned().into_os_string();
        name.push(format!(".before-{backup}{suffix}"));
        PathBuf::from(name)
    };
    let numbered = (2..).map(|number| named(&format!("-{number}")));
    let mut names = std::iter::once(named("")).chain(numbered);
    names
        .find(|path| fs::symlink_metadata(path).is_err())
        .expect("some number is free")
}

/// Returns where a file of an archive goes; `None` if the configuration has no place for it.
fn place_of(entry: &Entry, places: &Places) -> Result<Option<PathBuf>, Error> {
    let below = |root: &Path| -> Result<Option<PathBuf>, Error> {
        let path = Path::new(&*entry.path);
        let is_below = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_below {
            let why = format!("{:?} is not a path below its place", entry.path);
            return Err(Error::Damaged(vec![why]));
        }
        Ok(Some(match entry.path.is_empty() {
            true => root.to_owned(),
            false => root.join(path),
        }))
    };
    match &*entry.place {
        "configuration" => Ok(places.configuration.clone()),
        "store" => below(&places.store.path),
        "queue" => Ok(Some(places.queue.clone())),
        "sites" => below(&places.sites),
        "certificates" => below(&places.certificates),
        "tls" => places.tls.as_deref().map_or(Ok(None), below),
        "file" => {
            let mut named = places.files.iter();
            let found = named.find(|file| file.key == entry.path);
            Ok(found.map(|file| file.path.clone()))
        }
        other => Err(Error::Damaged(vec![format!(
            "the archive has files of an unknown kind, {other:?}"
        )])),
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path)
}

/// Replaces a file.
fn write(path: &Path, mode: u32, bytes: &mut dyn Read) -> Result<(), Error> {
    let write = |bytes: &mut dyn Read| {
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            make_directory(above)?;
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".restoring");
        let partial = PathBuf::from(name);
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)?;
        io::copy(bytes, &mut file)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        fs::rename(&partial, path)
    };
    write(bytes).map_err(Error::on("write", path))
}

//! The files of site records, of the claims of hosts, and of the audit log.
//!
//! A change writes several files, so it is first written durably into a journal. The next process
//! that locks the records completes a change that a killed process has begun. Each step of it can
//! be repeated. Readers take no lock: they see the record before or the record after.
//!
//! If a disk becomes full after the journal was written, the caller gets an error, and the change
//! is completed once there is space.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layout::{Access, Lock, WriterLock};
use super::pointers::copy_of;
use super::{Local, project_of, read_whole};
use crate::site::{Host, ProjectId};
use crate::store::audit::{self, Entry, Filter, Page};
use crate::store::durable::{self, FileError, Temp};
use crate::store::record::{
    HostClaim, InvalidRecord, SiteChange, SiteRecord, SitesHold, SitesLock,
};
use crate::store::{ChangedShards, ReadError, SiteError};

/// The longest file of a record that is read: the largest record, with room for escapes.
const RECORD_BYTES_MAX: u64 = 4 << 20;
/// A file of the audit log with more bytes is followed by another one.
const AUDIT_FILE_BYTES_MAX: u64 = 4 << 20;
/// A smaller log has at least this many files, so that only a part of it is removed at once.
const AUDIT_FILES_MIN: u64 = 8;
/// The longest journal that is read: records before and after a change, several times.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// The version of the journal that is written, and the highest that is read.
const JOURNAL_VERSION: u32 = 1;

/// A lock on all site records.
#[derive(Debug)]
pub struct SitesFileLock {
    _lock: Lock,
}

/// A change that has begun: the files that it replaces, and its entry in the audit log.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    version: u32,
    /// Paths below the store, and their content; `None` for a file that is removed.
    files: Vec<(PathBuf, Option<String>)>,
    entry: Entry,
}

impl Local {
    /// Reads the record of a project, or its copy if the record is damaged.
    pub(in crate::store) fn site_record(
        &self,
        project: &ProjectId,
    ) -> Result<Option<SiteRecord>, ReadError> {
        let path = self.layout.site_record(project);
        let damaged = match read_record(&path, project) {
            Err(error @ ReadError::Damaged { .. }) => error,
            read => return read,
        };
        match read_record(&copy_of(&path), project) {
            Ok(Some(record)) => {
                log::error!(
                    target: "store", project:%;
                    "the site record of {project} is damaged, and its copy is used; the next change of it repairs it: {damaged}"
                );
                Ok(Some(record))
            }
            _ => Err(damaged),
        }
    }

    /// Lists the projects that have a record, in no particular order.
    pub(in crate::store) fn site_records(&self) -> Result<Vec<ProjectId>, ReadError> {
        self.site_records_in(&ChangedShards::all())
    }

    /// Lists the projects that have a record in one of these directories.
    pub(in crate::store) fn site_records_in(
        &self,
        changed: &ChangedShards,
    ) -> Result<Vec<ProjectId>, ReadError> {
        let mut projects = Vec::new();
        for shard in changed.of(self.layout.site_shards()) {
            // A store that was opened to be read may lack it.
            if !shard.exists() {
                continue;
            }
            for entry in fs::read_dir(&shard).map_err(FileError::on("list", &shard))? {
                let entry = entry.map_err(FileError::on("list", &shard))?;
                projects.extend(project_of(Path::new(&entry.file_name())));
            }
        }
        Ok(projects)
    }

    /// Returns the directories that hold site records.
    pub fn site_record_directories(&self) -> impl Iterator<Item = PathBuf> {
        self.layout.site_shards()
    }

    /// Returns the claim of a host.
    pub(in crate::store) fn host_claim(&self, host: &Host) -> Result<Option<HostClaim>, ReadError> {
        let path = self.layout.host_claim(host);
        let Some(bytes) = read_whole(&path, RECORD_BYTES_MAX)? else {
            return Ok(None);
        };
        let claim = HostClaim::parse(&bytes, host).map_err(invalid(&path))?;
        Ok(Some(claim))
    }

    /// Returns the claims of all hosts.
    pub(in crate::store) fn host_claims(&self) -> Result<Vec<HostClaim>, ReadError> {
        let mut claims = Vec::new();
        for shard in self.layout.host_shards() {
            if !shard.is_dir() {
                continue;
            }
            for path in super::sweep::list(&shard)? {
                let Some(bytes) = read_whole(&path, RECORD_BYTES_MAX)? else {
                    continue;
                };
                claims.push(HostClaim::parse_any(&bytes).map_err(invalid(&path))?);
            }
        }
        Ok(claims)
    }

    /// Waits until no other process changes site records, and completes a change that was
    /// interrupted.
    pub(in crate::store) fn lock_sites(&self) -> Result<SitesLock, SiteError> {
        let lock = self
            .layout
            .lock_file(&self.layout.sites_lock(), Access::Exclusive)?;
        let path = self.layout.sites_journal();
        if let Some(bytes) = read_whole(&path, JOURNAL_BYTES_MAX)? {
            let journal: Journal =
                serde_json::from_slice(&bytes).map_err(|error| ReadError::Damaged {
                    what: path.display().to_string(),
                    why: error.to_string(),
                })?;
            if journal.version > JOURNAL_VERSION {
                return Err(SiteError::Read(ReadError::Newer {
                    what: path.display().to_string(),
                    why: format!("it has version {}", journal.version),
                }));
            }
            self.complete(&self.layout.lock_for_writer()?, &journal)?;
            log::warn!(target: "store", "an interrupted change of the site {} is completed", journal.entry.project);
        }
        Ok(SitesLock {
            hold: SitesHold::File {
                _lock: SitesFileLock { _lock: lock },
            },
        })
    }

    /// Applies a change.
    pub(in crate::store) fn change_site(
        &self,
        _lock: &SitesLock,
        change: &SiteChange,
    ) -> Result<(), SiteError> {
        let mut change = change.clone();
        change.entry.id = self.last_entry()?.map_or(1, |last| last.saturating_add(1));
        let journal = self.journal(&change);
        let bytes = serde_json::to_vec(&journal).expect("texts and numbers are JSON");
        let writer = self.layout.lock_for_writer()?;
        durable::replace(writer.temp(), &self.layout.sites_journal(), &bytes)?;
        self.complete(&writer, &journal)?;
        if change.record.is_none() {
            self.remove_numbers(&change.project)?;
        }
        Ok(())
    }

    /// Writes a file of a record again. The caller has the lock.
    pub(super) fn write_again(&self, path: &Path, text: &str) -> Result<(), FileError> {
        durable::replace(self.layout.lock_for_writer()?.temp(), path, text.as_bytes())
    }

    /// Returns the steps of a change.
    pub(super) fn journal(&self, change: &SiteChange) -> Journal {
        let root = self.layout.root();
        let below = |path: PathBuf| path.strip_prefix(root).map_or(path.clone(), Path::to_owned);
        let record = below(self.layout.site_record(&change.project));
        let text = change.record.as_ref().map(SiteRecord::to_text);
        let mut files = vec![(copy_of(&record), text.clone()), (record, text)];
        for (host, claim) in change.claims() {
            let text = claim.map(|claim| claim.to_text());
            files.push((below(self.layout.host_claim(host)), text));
        }
        Journal {
            version: JOURNAL_VERSION,
            files,
            entry: change.entry.clone(),
        }
    }

    /// Makes all steps of a change, and removes its journal.
    fn complete(&self, writer: &WriterLock, journal: &Journal) -> Result<(), SiteError> {
        let root = self.layout.root();
        let mut directories = BTreeSet::new();
        for (path, content) in &journal.files {
            let path = root.join(path);
            let directory = path.parent().unwrap_or(root);
            match content {
                Some(text) => {
                    fs::create_dir_all(directory)
                        .map_err(FileError::on("make directory", directory))?;
                    Temp::write(writer.temp(), text.as_bytes())?.rename(&path)?;
                    directories.insert(directory.to_owned());
                }
                None => {
                    if durable::remove(&path)? {
                        directories.insert(directory.to_owned());
                    }
                }
            }
        }
        for directory in &directories {
            durable::flush_directory(directory)?;
        }
        self.append(writer, &journal.entry)?;
        let path = self.layout.sites_journal();
        durable::remove(&path)?;
        Ok(durable::flush_directory(root)?)
    }

    /// Adds an entry to the audit log, unless it is there.
    fn append(&self, writer: &WriterLock, entry: &Entry) -> Result<(), SiteError> {
        let directory = self.layout.audit();
        if !directory.is_dir() {
            fs::create_dir_all(&directory).map_err(FileError::on("make directory", &directory))?;
            durable::flush_directory(self.layout.root())?;
        }
        let last = self.audit_files()?.pop();
        let (path, length) = match last {
            Some((_, path)) => {
                let bytes = read_log(&path)?;
                // A killed process may have left a part of a line.
                let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
                if last_id(&bytes[..whole]).is_some_and(|last| last >= entry.id) {
                    return Ok(());
                }
                (path, whole as u64)
            }
            None => (directory.join(file_name(entry.id)), 0),
        };
        let is_full = length > self.audit_file_bytes_max();
        if is_full {
            self.shorten_audit(writer)?;
        }
        let (path, length) = match is_full {
            true => (directory.join(file_name(entry.id)), 0),
            false => (path, length),
        };
        let mut line = serde_json::to_vec(entry).expect("texts and numbers are JSON");
        line.push(b'\n');
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true);
            let mut file = options.open(&path)?;
            file.set_len(length)?;
            file.seek(SeekFrom::Start(length))?;
            file.write_all(&line)?;
            file.sync_all()
        };
        write().map_err(FileError::on("write", &path))?;
        if length == 0 {
            durable::flush_directory(&directory)?;
        }
        Ok(())
    }

    /// Removes entries of the audit log until there is room for another file. The owners with the most
    /// bytes lose their oldest entries, so an owner cannot remove entries of others. Files that become
    /// small are joined.
    fn shorten_audit(&self, writer: &WriterLock) -> Result<(), SiteError> {
        if self.audit_bytes_max == 0 {
            return Ok(());
        }
        let part = self.audit_bytes_max / AUDIT_FILES_MIN;
        let mut files = self.audit_files()?;
        let mut bytes = 0_u64;
        for (_, path) in &files {
            let metadata = fs::metadata(path).map_err(FileError::on("look at", path))?;
            bytes += metadata.len();
        }
        if bytes <= part * (AUDIT_FILES_MIN - 2) {
            return Ok(());
        }
        let keep = part * (AUDIT_FILES_MIN - 3);
        let mut excess = excess_by_owner(&files, keep)?;
        let mut too_many = bytes - keep;
        // The newest file has the number of the last entry.
        files.pop();
        let mut rest = Rest::default();
        for (_, path) in files {
            let read = read_log(&path)?;
            let mut kept = Vec::with_capacity(read.len());
            for line in read.split_inclusive(|byte| *byte == b'\n') {
                let length = line.len() as u64;
                let of_owner = match too_many {
                    0 => None,
                    _ => excess.get_mut(&owner_of(line)),
                };
                match of_owner.filter(|excess| **excess > 0) {
                    Some(excess) => {
                        *excess = excess.saturating_sub(length);
                        too_many = too_many.saturating_sub(length);
                    }
                    // A part of a line is not kept.
                    None if line.ends_with(b"\n") => kept.extend_from_slice(line),
                    None => {}
                }
            }
            let is_changed = kept.len() < read.len();
            let together = (rest.bytes.len() + kept.len()) as u64;
            if (is_changed || rest.is_changed) && together <= self.audit_file_bytes_max() {
                rest.add(path, &kept);
                continue;
            }
            std::mem::take(&mut rest).write(writer)?;
            if too_many == 0 && !is_changed {
                return Ok(());
            }
            rest = Rest {
                files: vec![path],
                bytes: kept,
                is_changed,
            };
        }
        rest.write(writer)
    }

    /// A file of the audit log with more bytes is followed by another one.
    fn audit_file_bytes_max(&self) -> u64 {
        match self.audit_bytes_max {
            0 => AUDIT_FILE_BYTES_MAX,
            all => AUDIT_FILE_BYTES_MAX.min(all / AUDIT_FILES_MIN),
        }
    }

    /// Returns the number of the last entry of the audit log.
    fn last_entry(&self) -> Result<Option<u64>, SiteError> {
        for (first, path) in self.audit_files()?.into_iter().rev() {
            let last = last_id(&read_log(&path)?);
            // A file without a whole line was begun by a killed process.
            if let Some(last) = last.or(first.checked_sub(1).filter(|before| *before > 0)) {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    /// Lists the entries of the audit log, the newest first.
    pub(in crate::store) fn audit(&self, filter: &Filter) -> Result<Page, ReadError> {
        let mut page = Page::default();
        let (mut bytes_read, mut last) = (0_u64, u64::MAX);
        for (first, path) in self.audit_files()?.into_iter().rev() {
            if filter.before.is_some_and(|before| first >= before) {
                continue;
            }
            if filter.bytes_max > 0 && bytes_read >= filter.bytes_max {
                page.before = Some(last);
                return Ok(page);
            }
            let bytes = match read_log(&path) {
                Ok(bytes) => bytes,
                // It was removed meanwhile, or an older file has its entries now.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            bytes_read += bytes.len() as u64;
            for line in bytes.split_inclusive(|byte| *byte == b'\n').rev() {
                if page.entries.len() >= filter.limit {
                    return Ok(page);
                }
                // The last line may not be complete yet.
                if !line.ends_with(b"\n") || !may_match(line, filter) {
                    continue;
                }
                let entry: Entry =
                    serde_json::from_slice(line).map_err(|error| ReadError::Damaged {
                        what: path.display().to_string(),
                        why: error.to_string(),
                    })?;
                // An older file may have entries of a newer one that is about to be removed.
                if filter.matches(&entry) && entry.id < last {
                    last = entry.id;
                    page.entries.push(entry);
                }
            }
            last = last.min(first);
        }
        Ok(page)
    }

    /// Lists the files of the audit log with the number of their first entry, in order.
    pub(super) fn audit_files(&self) -> Result<Vec<(u64, PathBuf)>, FileError> {
        let directory = self.layout.audit();
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FileError::on("list", &directory)(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(FileError::on("list", &directory))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let first = name.and_then(|name| name.strip_suffix(".jsonl"));
            if let Some(first) = first.and_then(|first| first.parse().ok()) {
                files.push((first, path));
            }
        }
        files.sort_unstable();
        Ok(files)
    }
}

/// Returns how many bytes of the entries of each owner are too many, if all owners together keep at
/// most `keep`.
fn excess_by_owner(
    files: &[(u64, PathBuf)],
    keep: u64,
) -> Result<HashMap<Box<str>, u64>, SiteError> {
    let mut bytes: HashMap<Box<str>, u64> = HashMap::new();
    for (_, path) in files {
        for line in read_log(path)?.split_inclusive(|byte| *byte == b'\n') {
            *bytes.entry(owner_of(line)).or_default() += line.len() as u64;
        }
    }
    let each = audit::share_of(bytes.values().copied(), keep);
    bytes.retain(|_, bytes| {
        *bytes = bytes.saturating_sub(each);
        *bytes > 0
    });
    Ok(bytes)
}

/// Some files of the audit log that become one file: the entries of them that stay.
#[derive(Default)]
struct Rest {
    /// The files; the entries are written into the first one.
    files: Vec<PathBuf>,
    /// The entries.
    bytes: Vec<u8>,
    /// Whether the first file has other entries than these now.
    is_changed: bool,
}

impl Rest {
    fn add(&mut self, path: PathBuf, kept: &[u8]) {
        self.files.push(path);
        self.bytes.extend_from_slice(kept);
        self.is_changed = true;
    }

    /// Writes the file, and then removes the others. A process that is killed in between leaves
    /// entries twice, which readers do not show.
    fn write(self, writer: &WriterLock) -> Result<(), SiteError> {
        let mut files = self.files.into_iter();
        if !self.is_changed {
            return Ok(());
        }
        if !self.bytes.is_empty()
            && let Some(path) = files.next()
        {
            durable::replace(writer.temp(), &path, &self.bytes)?;
        }
        for path in files {
            durable::remove(&path)?;
        }
        Ok(())
    }
}

/// Returns the name of a file of the audit log: the number of its first entry.
fn file_name(first: u64) -> String {
    format!("{first:020}.jsonl")
}

fn read_log(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(FileError::on("read", path))?;
    Ok(bytes)
}

/// Returns the number of the last whole line.
fn last_id(bytes: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        id: u64,
    }
    let whole = &bytes[..memchr::memrchr(b'\n', bytes)?];
    let start = memchr::memrchr(b'\n', whole).map_or(0, |end| end + 1);
    let numbered: Numbered = serde_json::from_slice(&whole[start..]).ok()?;
    Some(numbered.id)
}

/// Returns the owner of an entry; an empty text for a line that is no entry.
fn owner_of(line: &[u8]) -> Box<str> {
    #[derive(Deserialize)]
    struct Owned {
        owner: Box<str>,
    }
    serde_json::from_slice(line).map_or_else(|_| Box::default(), |owned: Owned| owned.owner)
}

/// Returns whether a line may be of the project and the owner of a filter, without parsing it.
fn may_match(line: &[u8], filter: &Filter) -> bool {
    let has = |name: &Option<Box<str>>| {
        // A name with an escape is written in another way.
        let plain = name.as_deref().filter(|name| {
            name.bytes()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
        });
        plain.is_none_or(|name| memchr::memmem::find(line, name.as_bytes()).is_some())
    };
    has(&filter.project) && has(&filter.owner)
}

pub(super) fn read_record(
    path: &Path,
    project: &ProjectId,
) -> Result<Option<SiteRecord>, ReadError> {
    let Some(bytes) = read_whole(path, RECORD_BYTES_MAX)? else {
        return Ok(None);
    };
    let record = SiteRecord::parse(&bytes, project).map_err(invalid(path))?;
    Ok(Some(record))
}

fn invalid(path: &Path) -> impl FnOnce(InvalidRecord) -> ReadError + use<'_> {
    |error| {
        let what = path.display().to_string();
        match error {
            InvalidRecord::Newer(_) => ReadError::Newer {
                what,
                why: error.to_string(),
            },
            error => ReadError::Damaged {
                what,
                why: crate::error::chain(&error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_line_of_a_log_has_the_last_number() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"{\"id\":7}", None),
            (b"{\"id\":7}\n", Some(7)),
            (b"{\"id\":7}\n{\"id\":8}\n", Some(8)),
            (b"{\"id\":7}\n{\"id\":8}\n{\"id\":", Some(8)),
            (b"{\"id\":7}\nno entry\n", None),
        ] {
            assert_eq!(last_id(bytes), expected);
        }
    }

    #[test]
    fn a_line_without_the_names_of_a_filter_is_not_parsed() {
        let of = |project: Option<&str>, owner: Option<&str>| {
            let filter = Filter {
                project: project.map(Into::into),
                owner: owner.map(Into::into),
                ..Filter::default()
            };
            may_match(br#"{"project":"docs","owner":"acme"}"#, &filter)
        };
        assert!(of(None, None) && of(Some("docs"), Some("acme")));
        assert!(!of(Some("blog"), Some("acme")) && !of(Some("docs"), Some("other")));
        assert!(!of(Some("blog"), None) && !of(None, Some("other")));
        // Such names are written with an escape.
        assert!(of(None, Some("a\"b")) && of(None, Some("a\\b")) && of(None, Some("é")));
    }

    #[test]
    fn the_names_of_log_files_are_in_the_order_of_their_entries() {
        assert_eq!(file_name(7), "00000000000000000007.jsonl");
        assert!(file_name(9) < file_name(10) && file_name(10) < file_name(u64::MAX));
    }
}

//! The files of the verification of domains: the last check of each domain, requests to check now,
//! the key that tokens are made with, and the lock of the process that checks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Local, read_whole};
use crate::site::{Host, ProjectId};
use crate::store::ReadError;
use crate::store::durable::{self, FileError};

/// The largest file that is read.
const BYTES_MAX: u64 = 256 << 10;
/// The length of the key, in bytes.
const KEY_BYTES: usize = 32;

/// The lock of the process that checks domains, until this is dropped.
#[derive(Debug)]
pub struct VerificationLead {
    file: File,
    path: PathBuf,
}

/// A request to check a domain now.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFile {
    project: String,
    host: String,
}

impl Local {
    /// Returns the record of the last check of a domain.
    pub(in crate::store) fn domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        Ok(read_whole(
            &self.layout.domain_check(project, host),
            BYTES_MAX,
        )?)
    }

    /// Replaces the record of the last check of a domain; `None` removes it.
    pub(in crate::store) fn put_domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
        bytes: Option<&[u8]>,
    ) -> Result<(), FileError> {
        let path = self.layout.domain_check(project, host);
        let Some(bytes) = bytes else {
            durable::remove(&path)?;
            return Ok(());
        };
        if let Some(directory) = path.parent() {
            super::layout::make(directory)?;
        }
        durable::replace(self.layout.lock_for_writer()?.temp(), &path, bytes)
    }

    /// Asks the process that checks domains to check one now.
    pub(in crate::store) fn request_domain_check(
        &self,
        project: &ProjectId,
        host: &Host,
    ) -> Result<(), FileError> {
        let path = self.layout.domain_check_request(project, host);
        if let Some(directory) = path.parent() {
            super::layout::make(directory)?;
        }
        let request = RequestFile {
            project: project.to_string(),
            host: host.to_string(),
        };
        let bytes = serde_json::to_vec(&request).expect("texts are JSON");
        durable::replace(self.layout.lock_for_writer()?.temp(), &path, &bytes)
    }

    /// Takes the requests to check domains now.
    pub(in crate::store) fn take_domain_check_requests(
        &self,
    ) -> Result<Vec<(ProjectId, Host)>, FileError> {
        let directory = self.layout.domain_check_requests();
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(FileError::on("list", &directory)(error)),
        };
        let mut requests = Vec::new();
        for entry in entries {
            let path = entry.map_err(FileError::on("list", &directory))?.path();
            let request = durable::read(&path, BYTES_MAX)?;
            let request = request.and_then(|bytes| serde_json::from_slice(&bytes).ok());
            // A damaged request is lost: the domain is checked when its time comes.
            if let Some(RequestFile { project, host }) = request
                && let (Ok(project), Ok(host)) = (ProjectId::parse(&project), Host::parse(&host))
            {
                requests.push((project, host));
            }
            durable::remove(&path)?;
        }
        Ok(requests)
    }

    /// Makes this process the checker of domains, if no other process is.
    pub(in crate::store) fn lead_verification(
        &self,
    ) -> Result<Option<VerificationLead>, FileError> {
        let path = self.layout.verification_lock();
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(&path).map_err(FileError::on("open", &path))?;
        match file.try_lock() {
            Ok(()) => {
                let lead = VerificationLead { file, path };
                // The file may have been replaced between the two calls.
                Ok(lead.holds().then_some(lead))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(FileError::on("lock", &path)(error)),
        }
    }

    /// Returns the key that tokens are made with; it is made if it does not exist.
    pub(in crate::store) fn verification_key(&self) -> Result<Vec<u8>, FileError> {
        let path = self.layout.verification_key();
        for _ in 0..2 {
            if let Some(bytes) = durable::read(&path, BYTES_MAX)? {
                let key = hex::decode(bytes.trim_ascii());
                return match key {
                    Ok(key) if key.len() == KEY_BYTES => Ok(key),
                    _ => {
                        let why = io::Error::other("it is not a key of 32 bytes in base 16");
                        Err(FileError::on("read", &path)(why))
                    }
                };
            }
            let mut key = [0; KEY_BYTES];
            getrandom::fill(&mut key)
                .map_err(|error| FileError::on("make a key for", &path)(io::Error::other(error)))?;
            self.create_private(&path, hex::encode(key).as_bytes())?;
        }
        let why = io::Error::other("it was removed while it was made");
        Err(FileError::on("read", &path)(why))
    }

    /// Replaces the key that tokens are made with.
    pub(in crate::store) fn replace_verification_key(&self, key: &[u8]) -> Result<(), FileError> {
        let text = hex::encode(key);
        let path = self.layout.verification_key();
        durable::replace(
            self.layout.lock_for_writer()?.temp(),
            &path,
            text.as_bytes(),
        )
    }

    /// Creates a file that only its owner can read, with all its bytes, unless it exists.
    fn create_private(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| FileError::on("make", path)(io::Error::other(error)))?;
        let writer = self.layout.lock_for_writer()?;
        let temporary = writer.temp().join(format!("key-{}", hex::encode(random)));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut file = options
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        let linked = write().and_then(|()| fs::hard_link(&temporary, path));
        let _removed = fs::remove_file(&temporary);
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(FileError::on("make", path)(error))
            }
            _ => durable::flush_directory(self.layout.root()),
        }
    }
}

// === impl VerificationLead ===

impl VerificationLead {
    /// Returns whether this process still leads. It loses the leadership if the lock file is
    /// removed.
    #[must_use]
    pub fn holds(&self) -> bool {
        let ours = self.file.metadata();
        let named = fs::metadata(&self.path);
        match (ours, named) {
            (Ok(ours), Ok(named)) => (ours.dev(), ours.ino()) == (named.dev(), named.ino()),
            _ => false,
        }
    }
}

//! An open file: the connection that writes, and the connections that read.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::super::QueueError;
use super::schema;
use super::writer::Writer;

/// How long to wait while another process writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How many prepared statements a connection caches: room for all of them.
const STATEMENTS_CACHED: usize = 64;
/// The most idle connections for reading.
const READERS_IDLE_MAX: usize = 8;

/// A file of the queue that is open.
pub(super) struct OpenFile {
    path: PathBuf,
    /// Device and inode of the file.
    identity: (u64, u64),
    pub(super) writer: Writer,
    readers: Mutex<Vec<Connection>>,
}

// === impl OpenFile ===

impl OpenFile {
    /// Opens the file, and creates it if it is missing.
    pub(super) fn open(path: &Path) -> Result<Self, QueueError> {
        let directory = directory_of(path);
        fs::create_dir_all(directory).map_err(QueueError::unavailable)?;
        reject_network_file_system(directory)?;
        let mut connection = connect(path)?;
        schema::migrate(&mut connection)?;
        let found = fs::metadata(path).map_err(QueueError::unavailable)?;
        Ok(Self {
            path: path.to_owned(),
            identity: identity(&found),
            writer: Writer::start(connection).map_err(QueueError::unavailable)?,
            readers: Mutex::default(),
        })
    }

    /// Returns an error when the path leads to another file now, or to none.
    ///
    /// SQLite goes on with the file that it has open, even if that has been deleted: what it
    /// writes then is lost.
    pub(super) fn check(&self) -> Result<(), QueueError> {
        match fs::metadata(&self.path) {
            Ok(found) if identity(&found) == self.identity => Ok(()),
            Ok(_) => Err(QueueError::Replaced),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(QueueError::Replaced),
            Err(error) => Err(QueueError::unavailable(error)),
        }
    }

    /// Runs a query on a connection that no other thread uses at the same time.
    pub(super) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
        let lock = || self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.path)?;
                connection
                    .pragma_update(None, "query_only", true)
                    .map_err(QueueError::unavailable)?;
                connection
            }
        };
        let result = query(&connection);
        // A connection that has failed is not used again.
        if result.is_ok() {
            let mut readers = lock();
            if readers.len() < READERS_IDLE_MAX {
                readers.push(connection);
            }
        }
        result
    }
}

fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Returns the directory of a file; the current one for a name without a directory.
fn directory_of(path: &Path) -> &Path {
    path.parent()
        .filter(|directory| !directory.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn connect(path: &Path) -> Result<Connection, QueueError> {
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        Ok(connection)
    };
    open().map_err(QueueError::unavailable)
}

/// Checks the version of a file.
pub(super) fn check(path: &Path) -> Result<(), QueueError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let version = Connection::open_with_flags(path, flags).and_then(|connection| {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
    });
    schema::check(version.map_err(QueueError::unavailable)?)
}

/// Copies a file of any version. `VACUUM INTO` reads in one transaction and does not stop writers.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), QueueError> {
    let copy = || -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(from, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
        Ok(())
    };
    copy().map_err(QueueError::unavailable)
}

/// SQLite's locks and shared memory do not work between machines.
#[cfg(target_os = "linux")]
fn reject_network_file_system(directory: &Path) -> Result<(), QueueError> {
    /// `f_type` as `statfs(2)` lists them.
    const NETWORK: [(i64, &str); 4] = [
        (0x6969, "NFS"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x517b, "SMB"),
    ];
    let found = rustix::fs::statfs(directory)
        .map_err(|error| QueueError::unavailable(std::io::Error::from(error)))?;
    match NETWORK.iter().find(|(kind, _)| *kind == found.f_type) {
        Some((_, name)) => Err(QueueError::NetworkFileSystem(name)),
        None => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reject_network_file_system(_directory: &Path) -> Result<(), QueueError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads with this many connections at once.
    fn read(file: &OpenFile, depth: usize) -> Result<(), QueueError> {
        file.read(|_connection| match depth {
            1 => Ok(()),
            _ => read(file, depth - 1),
        })
    }

    #[test]
    fn a_limited_number_of_idle_connections_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = OpenFile::open(&directory.path().join("updates.sqlite")).unwrap();
        let idle = || file.readers.lock().unwrap().len();
        for (depth, expected) in [(1, 1), (3, 3), (READERS_IDLE_MAX + 2, READERS_IDLE_MAX)] {
            read(&file, depth).unwrap();
            assert_eq!(idle(), expected, "{depth}");
        }
        // A connection that has failed is not used again.
        let failed = file.read(|_connection| Err::<(), _>(QueueError::Replaced));
        assert!(failed.is_err());
        assert_eq!(idle(), READERS_IDLE_MAX - 1);
    }

    #[test]
    fn a_connection_for_reading_cannot_write() {
        let directory = tempfile::tempdir().unwrap();
        let file = OpenFile::open(&directory.path().join("updates.sqlite")).unwrap();
        let written = file.read(|connection| {
            let written = connection.execute("DELETE FROM totals", []);
            written.map_err(QueueError::unavailable)
        });
        assert_eq!(written.unwrap_err().reason(), "its file cannot be written");
    }
}

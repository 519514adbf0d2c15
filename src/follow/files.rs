//! Files that are replaced whole: a kill leaves the old bytes or the new ones.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes bytes to a temporary file of a directory and flushes it. The caller gives it its name.
pub(super) fn written(directory: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Replaces a file. After a power cut it may have its old bytes again.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    written(directory_of(path), bytes)?.persist(path)?;
    Ok(())
}

/// Replaces a file durably: a power cut does not bring the old bytes back.
pub(super) fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, bytes)?;
    flush_directory(directory_of(path))
}

/// Flushes the names of a directory.
pub(super) fn flush_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

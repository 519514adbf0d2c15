//! The metadata that tells whether a file or a directory has changed since it was read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use crate::clock::unix_seconds;

/// The coarsest step of a file system's clock (FAT).
const CLOCK_STEP: Duration = Duration::from_secs(2);

/// The metadata of a file or a directory. While it is the same, the content of the file is the
/// same, and the names in the directory lead to the same files.
///
/// The inode shows that another file was renamed over this one; the change time shows a change
/// after which the modification time was set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

// === impl Stamp ===

impl Stamp {
    pub(super) fn of(found: &fs::Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            length: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    /// The length of the file, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns whether it was unchanged since before that second.
    pub(super) fn is_older_than(&self, second: i64) -> bool {
        self.modified.0 < second && self.changed.0 < second
    }
}

/// Returns a time, as a second. If a file's last change is older, any later change gets a different
/// timestamp.
pub(super) fn unchanged_before(now: SystemTime) -> i64 {
    let then = now.checked_sub(CLOCK_STEP).unwrap_or(now);
    i64::try_from(unix_seconds(then)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_older_only_if_content_and_metadata_are() {
        for (modified, changed, expected) in
            [(4, 4, true), (5, 4, false), (4, 5, false), (6, 6, false)]
        {
            let stamp = Stamp {
                device: 1,
                inode: 2,
                length: 3,
                modified: (modified, 9),
                changed: (changed, 9),
            };
            assert_eq!(stamp.is_older_than(5), expected, "{modified} {changed}");
        }
    }
}

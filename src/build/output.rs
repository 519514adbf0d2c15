//! Where the bytes of a release go while it is made.
//!
//! The pages of a large site have a gigabyte of HTML, most of it the same navigation on each page.
//! So a build hands each file over as soon as it is finished, and keeps only its digest and length
//! if the output has stored the bytes.

use crate::release::ReleaseFile;

/// Takes the files of a site while a build makes them, from several threads.
pub trait Output: Sync {
    /// Takes a finished file, and returns what the release keeps of it: the file itself, or the
    /// file without its bytes.
    ///
    /// An output whose disk fails takes the other files too, and its owner reports the failure
    /// after the build.
    fn take(&self, file: ReleaseFile) -> ReleaseFile;
}

/// The release keeps the bytes of all files in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InMemory;

// === impl InMemory ===

impl Output for InMemory {
    fn take(&self, file: ReleaseFile) -> ReleaseFile {
        file
    }
}

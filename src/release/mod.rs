//! Releases: the output of a build, which the edge serves.
//!
//! A release is an immutable set of files. A [`Builder`] makes it, a [`ReleaseId`] identifies it
//! and an [`Inventory`] lists its files. The id is the digest of the inventory's canonical bytes,
//! and the inventory contains the digest of every file. So two releases with the same id have the
//! same bytes, wherever they were built.
//!
//! **Invariant:** a release contains no domain, base path or visibility. A change of these needs
//! no build.

pub mod announcements;
mod inventory;
pub mod pages;
mod path;
pub mod site;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, InvalidDigest};

pub use inventory::{InvalidInventory, Inventory, Item, VERSION};
pub use path::{InvalidReleasePath, PATH_LENGTH_MAX, ReleasePath, SEGMENT_LENGTH_MAX};

/// The most files a release may have.
pub const FILES_MAX: usize = 1_000_000;
/// The longest inventory that is put, and that an edge fetches, in bytes. It has space for
/// [`FILES_MAX`] files with paths of a hundred bytes. An edge fetches it whole, into memory.
pub const INVENTORY_BYTES_MAX: u64 = 256 << 20;

/// An immutable set of files.
#[derive(Clone, Debug)]
pub struct Release {
    id: ReleaseId,
    inventory: Inventory,
    inventory_bytes: Bytes,
    files: BTreeMap<ReleasePath, ReleaseFile>,
}

/// One file of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseFile {
    /// Its content.
    pub bytes: Bytes,
    /// Its media type, as in a `Content-Type` field.
    pub media_type: Box<str>,
    digest: Digest,
    length: u64,
}

/// The id of a release: the digest of its inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReleaseId(Digest);

/// A release that is being built.
#[derive(Debug, Default)]
pub struct Builder {
    files: BTreeMap<ReleasePath, ReleaseFile>,
}

/// Why a file cannot be added to a release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// Another file has this path.
    #[error("{0} is in the release already")]
    Taken(ReleasePath),
    /// A path is a file and also the directory of another file.
    #[error("{0} is a file and a directory")]
    FileAndDirectory(Box<str>),
    /// The media type is not a valid value of a `Content-Type` field.
    #[error("{0:?} is not a media type")]
    MediaType(Box<str>),
    /// The release has too many files.
    #[error("a release has at most {FILES_MAX} files")]
    TooMany,
}

// === impl Release ===

impl Release {
    /// Starts a release.
    ///
    /// ```
    /// use waypost::release::{Release, ReleaseFile, ReleasePath};
    ///
    /// let mut builder = Release::builder();
    /// builder.insert(
    ///     ReleasePath::parse("skills/a/SKILL.md")?,
    ///     ReleaseFile::new("# A", "text/markdown"),
    /// )?;
    /// let release = builder.finish();
    /// assert_eq!(release.id(), release.inventory().id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the id of the release.
    #[must_use]
    pub fn id(&self) -> ReleaseId {
        self.id
    }

    /// Returns the list of its files.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Returns the inventory's canonical bytes, whose digest is the id.
    #[must_use]
    pub fn inventory_bytes(&self) -> &Bytes {
        &self.inventory_bytes
    }

    /// Returns one file.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&ReleaseFile> {
        self.files.get(path)
    }

    /// Returns every file, in the byte order of the paths.
    pub fn files(&self) -> impl ExactSizeIterator<Item = (&ReleasePath, &ReleaseFile)> {
        self.files.iter()
    }

    /// Returns a builder with these files, to make a release that differs in some of them.
    #[must_use]
    pub fn into_builder(self) -> Builder {
        Builder { files: self.files }
    }
}

// === impl ReleaseFile ===

impl ReleaseFile {
    /// Makes a file.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>, media_type: &str) -> Self {
        let bytes = bytes.into();
        let digest = Digest::of(&bytes);
        Self::of_digest(bytes, media_type, digest)
    }

    /// Makes a file from bytes whose digest is known, because they come from a store.
    #[must_use]
    pub fn of_digest(bytes: Bytes, media_type: &str, digest: Digest) -> Self {
        Self {
            length: bytes.len() as u64,
            bytes,
            media_type: media_type.into(),
            digest,
        }
    }

    /// Makes a file whose bytes are only in the store. Its `bytes` are empty.
    #[must_use]
    pub fn stored(item: &Item) -> Self {
        Self {
            bytes: Bytes::new(),
            media_type: item.media_type.clone(),
            digest: item.digest,
            length: item.length,
        }
    }

    /// Returns the same file without its bytes, after they were written elsewhere.
    #[must_use]
    pub fn without_bytes(self) -> Self {
        Self {
            bytes: Bytes::new(),
            ..self
        }
    }

    /// Returns whether the bytes are here, and not only in the store.
    #[must_use]
    pub fn has_bytes(&self) -> bool {
        self.bytes.len() as u64 == self.length
    }

    /// Returns the length of its content, in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the digest of its content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

// === impl ReleaseId ===

impl ReleaseId {
    /// Reads the 64 lower-case hexadecimal digits of an id.
    ///
    /// # Errors
    ///
    /// [`InvalidDigest`] when the text is anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidDigest> {
        Digest::parse(text).map(Self)
    }

    /// Makes the id from the digest of an inventory.
    #[must_use]
    pub fn of(inventory: Digest) -> Self {
        Self(inventory)
    }

    /// Returns the digest of the inventory.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Display for ReleaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Builder ===

impl Builder {
    /// Adds a file.
    ///
    /// # Errors
    ///
    /// [`InsertError`] says why the file cannot be added. The release does not change then.
    pub fn insert(&mut self, path: ReleasePath, file: ReleaseFile) -> Result<(), InsertError> {
        if self.files.len() >= FILES_MAX {
            return Err(InsertError::TooMany);
        }
        if !inventory::is_media_type(&file.media_type) {
            return Err(InsertError::MediaType(file.media_type));
        }
        if self.files.contains_key(&path) {
            return Err(InsertError::Taken(path));
        }
        if let Some(directory) = path.directories().find(|d| self.files.contains_key(*d)) {
            return Err(InsertError::FileAndDirectory(directory.into()));
        }
        let beneath = format!("{path}/");
        let beneath = beneath.as_str();
        let from = (Bound::Included(beneath), Bound::Unbounded);
        let next = self.files.range::<str, _>(from).next();
        if next.is_some_and(|(next, _)| next.as_str().starts_with(beneath)) {
            return Err(InsertError::FileAndDirectory(path.as_str().into()));
        }
        self.files.insert(path, file);
        Ok(())
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) -> Option<ReleaseFile> {
        self.files.remove(path)
    }

    /// Makes the inventory and the id of the release.
    #[must_use]
    pub fn finish(self) -> Release {
        let item = |file: &ReleaseFile| Item {
            digest: file.digest,
            length: file.length,
            media_type: file.media_type.clone(),
        };
        let items = self
            .files
            .iter()
            .map(|(path, file)| (path.clone(), item(file)));
        let inventory = Inventory::new(items.collect());
        let inventory_bytes = Bytes::from(inventory.to_bytes());
        Release {
            id: ReleaseId(Digest::of(&inventory_bytes)),
            inventory,
            inventory_bytes,
            files: self.files,
        }
    }
}

#[cfg(test)]
mod tests;

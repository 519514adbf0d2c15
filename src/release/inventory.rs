//! The inventory: the list of the files of a release.
//!
//! It holds the digest, length and media type of every file. Its bytes are canonical (paths in
//! byte order, no white space, a fixed order of members), so equal releases have equal bytes. The
//! digest of these bytes is the id of the release:
//!
//! ```json
//! {"version":1,"files":{"skills/a/SKILL.md":{"digest":"…","length":7,"media_type":"text/markdown"}}}
//! ```
//!
//! `version` counts incompatible changes. A reader rejects a higher version: it is better to
//! serve the previous release than half of a new one.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{ReleaseId, ReleasePath};
use crate::digest::Digest;
use crate::version::newer_than;

/// The format version that this program writes, and the highest that it reads.
pub const VERSION: u32 = 1;

/// The list of a release's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    files: Files,
}

/// One entry of an inventory: a file without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The digest of its bytes.
    pub digest: Digest,
    /// The length of the file, in bytes.
    pub length: u64,
    /// Its media type, as in a `Content-Type` field.
    #[serde(deserialize_with = "media_type")]
    pub media_type: Box<str>,
}

/// Why bytes are not an inventory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidInventory {
    /// The inventory was written by a newer program.
    #[error("inventory has version {version}; this program reads versions up to {VERSION}")]
    Newer {
        /// The version of the inventory.
        version: u64,
    },
    /// The bytes are not the JSON that [`Inventory::to_bytes`] writes.
    #[error("inventory is not valid")]
    Json(#[from] serde_json::Error),
}

/// The file, for writing.
#[derive(Serialize)]
struct InventoryDocument<'a> {
    version: u32,
    files: &'a BTreeMap<ReleasePath, Item>,
}

/// The file, for reading.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    version: u32,
    files: Files,
}

/// The map of files. Its paths must be in ascending order, so no path can occur twice.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Files(BTreeMap<ReleasePath, Item>);

// === impl Inventory ===

impl Inventory {
    /// Makes the inventory of these files.
    pub(super) fn new(files: BTreeMap<ReleasePath, Item>) -> Self {
        Self {
            files: Files(files),
        }
    }

    /// Writes the canonical bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let written = InventoryDocument {
            version: VERSION,
            files: &self.files.0,
        };
        serde_json::to_vec(&written).expect("numbers and texts under text keys are JSON")
    }

    /// Reads the bytes that [`Inventory::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// [`InvalidInventory::Newer`] for a later version of the format, even if the bytes have
    /// other errors too.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidInventory> {
        match serde_json::from_slice::<Read>(bytes) {
            Ok(read) if read.version == VERSION => Ok(Self { files: read.files }),
            Ok(Read { version, .. }) if version > VERSION => Err(InvalidInventory::Newer {
                version: version.into(),
            }),
            Ok(Read { version, .. }) => Err(InvalidInventory::Json(de::Error::custom(format!(
                "there is no version {version}"
            )))),
            Err(error) => Err(invalid(bytes, error)),
        }
    }

    /// Returns the id of the release that has this inventory.
    #[must_use]
    pub fn id(&self) -> ReleaseId {
        ReleaseId(Digest::of(&self.to_bytes()))
    }

    /// Returns the entry of one file.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Item> {
        self.files.0.get(path)
    }

    /// Returns every file, in the byte order of the paths.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ReleasePath, &Item)> {
        self.files.0.iter()
    }

    /// Returns the longest file and its length in bytes, if that is more than `length`.
    #[must_use]
    pub fn longer_than(&self, length: u64) -> Option<(&ReleasePath, u64)> {
        let longest = self.iter().max_by_key(|(_, item)| item.length);
        let (path, item) = longest.filter(|(_, item)| item.length > length)?;
        Some((path, item.length))
    }

    /// Returns how many files there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.0.len()
    }

    /// Returns whether the release is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.0.is_empty()
    }
}

// === impl Files ===

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ascending;

        impl<'de> Visitor<'de> for Ascending {
            type Value = Files;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of files in the order of their paths")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Files, M::Error> {
                let mut files = BTreeMap::<ReleasePath, Item>::new();
                while let Some((path, item)) = map.next_entry()? {
                    if files
                        .last_key_value()
                        .is_some_and(|(last, _)| *last >= path)
                    {
                        return Err(de::Error::custom(format!("{path} is out of order")));
                    }
                    files.insert(path, item);
                }
                Ok(Files(files))
            }
        }

        deserializer.deserialize_map(Ascending)
    }
}

/// Returns whether a text can be the value of a `Content-Type` field.
///
/// RFC 9110 §5.5: visible ASCII and single spaces inside.
pub(super) fn is_media_type(text: &str) -> bool {
    text.contains('/') && text.trim() == text && text.bytes().all(|b| matches!(b, b' '..=b'~'))
}

fn media_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    let text = Box::<str>::deserialize(deserializer)?;
    if is_media_type(&text) {
        Ok(text)
    } else {
        Err(de::Error::custom(format!("{text:?} is not a media type")))
    }
}

/// Distinguishes a later version, which may have unknown members, from a damaged file.
fn invalid(bytes: &[u8], error: serde_json::Error) -> InvalidInventory {
    match newer_than(VERSION.into(), bytes) {
        Some(version) => InvalidInventory::Newer { version },
        None => InvalidInventory::Json(error),
    }
}

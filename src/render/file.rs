//! Files that a build generates for pages: stylesheets, scripts, frames.
//!
//! Their names contain their digest. So browsers may cache them for ever, and a cached page
//! loads the files that it was written with.

use bytes::Bytes;

use crate::digest::Digest;
use crate::release::site::STATIC;

/// How many hexadecimal digits of the digest are in a name.
const DIGITS: usize = 16;

/// The media type of a stylesheet (RFC 2318).
pub const CSS: &str = "text/css; charset=utf-8";

/// A file whose name contains its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in URLs.
    pub path: String,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its media type.
    pub media_type: &'static str,
}

// === impl File ===

impl File {
    /// Names a file by its content.
    #[must_use]
    pub fn new(name: &str, extension: &str, bytes: Bytes, media_type: &'static str) -> Self {
        let digest = Digest::of(&bytes).to_string();
        Self {
            path: format!("{STATIC}/{name}.{}.{extension}", &digest[..DIGITS]),
            bytes,
            media_type,
        }
    }

    /// Returns whether this is a stylesheet.
    #[must_use]
    pub fn is_stylesheet(&self) -> bool {
        self.media_type == CSS
    }
}

/// Serialises stylesheets: their paths and texts. Other files are left out.
pub mod stylesheets {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{CSS, File};

    /// Writes the stylesheets among some files.
    ///
    /// # Errors
    ///
    /// The options of the serialiser.
    pub fn serialize<S: Serializer>(files: &[File], to: S) -> Result<S::Ok, S::Error> {
        let sheets = files.iter().filter(|file| file.is_stylesheet());
        let sheets: Vec<(&str, &[u8])> = sheets.map(|file| (&*file.path, &*file.bytes)).collect();
        sheets.serialize(to)
    }

    /// Reads what [`serialize`] wrote.
    ///
    /// # Errors
    ///
    /// The options of the deserialiser.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<File>, D::Error> {
        let sheets = Vec::<(String, Vec<u8>)>::deserialize(from)?.into_iter();
        let file = |(path, bytes): (String, Vec<u8>)| File {
            path,
            bytes: bytes.into(),
            media_type: CSS,
        };
        Ok(sheets.map(file).collect())
    }
}

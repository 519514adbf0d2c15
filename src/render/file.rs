//! Files that a build generates for pages: stylesheets, scripts, frames.
//!
//! Their names contain their digest. So browsers may cache them for ever, and a cached page
//! loads the files that it was written with.

use bytes::Bytes;

use crate::digest::Digest;
use crate::release::site::STATIC;

/// How many hexadecimal digits of the digest are in a name.
const DIGITS: usize = 16;

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
}

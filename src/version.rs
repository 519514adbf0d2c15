//! Versions of the formats of files.

use serde::Deserialize;

/// Returns the `version` of a JSON object if it is greater than `known`, the highest that this
/// program reads.
///
/// A file of a newer program may have members that this program does not know, so it cannot be
/// parsed as a whole. This distinguishes it from a damaged file.
///
/// ```
/// use waypost::version::newer_than;
///
/// assert_eq!(newer_than(1, br#"{"version":2,"colour":"red"}"#), Some(2));
/// assert_eq!(newer_than(1, br#"{"version":1}"#), None);
/// assert_eq!(newer_than(1, b"{"), None);
/// ```
#[must_use]
pub fn newer_than(known: u64, bytes: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    let versioned: Versioned = serde_json::from_slice(bytes).ok()?;
    (versioned.version > known).then_some(versioned.version)
}

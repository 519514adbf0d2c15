//! Paths of files inside a release.
//!
//! A release is written to disks, read by other machines and served under URLs. The check of a
//! path is here only: a path cannot lead out of the release, and a file has only one path.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest path, in bytes.
///
/// With the directory that the release is written to, it stays within the limit of common file
/// systems for a whole path.
pub const PATH_LENGTH_MAX: usize = 3072;
/// The longest segment, in bytes: `NAME_MAX` of common file systems.
pub const SEGMENT_LENGTH_MAX: usize = 255;

/// The name of a file in a release: relative, `/`-separated, without empty, `.` and `..`
/// segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReleasePath(Box<str>);

/// Why a text is not a path in a release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidReleasePath {
    /// The path or a segment is empty; a leading, trailing or double slash makes an empty
    /// segment.
    #[error("path {0:?} has an empty segment")]
    Empty(Box<str>),
    /// `.` and `..` would give a file a second path, or lead out of the release.
    #[error("path {0:?} has a `.` or `..` segment")]
    Dots(Box<str>),
    /// No file system allows NUL in a name.
    #[error("path {0:?} contains NUL")]
    Nul(Box<str>),
    /// The path or a segment is longer than its limit.
    #[error(
        "path is longer than {PATH_LENGTH_MAX} bytes or has a segment longer than {SEGMENT_LENGTH_MAX}"
    )]
    TooLong,
}

// === impl ReleasePath ===

impl ReleasePath {
    /// Reads a path.
    ///
    /// ```
    /// use waypost::release::ReleasePath;
    ///
    /// assert!(ReleasePath::parse("skills/search/SKILL.md").is_ok());
    /// assert!(ReleasePath::parse("skills/../../etc/passwd").is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidReleasePath`] says which rule is broken.
    pub fn parse(text: &str) -> Result<Self, InvalidReleasePath> {
        if text.len() > PATH_LENGTH_MAX {
            return Err(InvalidReleasePath::TooLong);
        }
        if text.contains('\0') {
            return Err(InvalidReleasePath::Nul(text.into()));
        }
        for segment in text.split('/') {
            match segment {
                "" => return Err(InvalidReleasePath::Empty(text.into())),
                "." | ".." => return Err(InvalidReleasePath::Dots(text.into())),
                _ if segment.len() > SEGMENT_LENGTH_MAX => return Err(InvalidReleasePath::TooLong),
                _ => {}
            }
        }
        Ok(Self(text.into()))
    }

    /// Returns the path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directories above the file, outermost first: `a` and `a/b` of `a/b/c`.
    pub(super) fn directories(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(slash, _)| &self.0[..slash])
    }
}

impl fmt::Display for ReleasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for ReleasePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for ReleasePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ReleasePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_over_the_limits_is_rejected() {
        let segment = "s".repeat(SEGMENT_LENGTH_MAX);
        assert!(ReleasePath::parse(&segment).is_ok());
        let over = format!("{segment}s");
        assert_eq!(ReleasePath::parse(&over), Err(InvalidReleasePath::TooLong));
        let mut longest = "a/".repeat(PATH_LENGTH_MAX / 2 - 1) + "ab";
        assert_eq!(longest.len(), PATH_LENGTH_MAX);
        assert!(ReleasePath::parse(&longest).is_ok());
        longest.push('c');
        assert_eq!(
            ReleasePath::parse(&longest),
            Err(InvalidReleasePath::TooLong)
        );
    }

    #[test]
    fn a_path_has_one_spelling_and_cannot_lead_outside() {
        for wrong in ["", "/a", "a/", "a//b", ".", "..", "a/./b", "a/../b", "a\0b"] {
            assert!(ReleasePath::parse(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(
            ReleasePath::parse(&"a/".repeat(PATH_LENGTH_MAX)),
            Err(InvalidReleasePath::TooLong)
        );
        assert_eq!(
            ReleasePath::parse(&"a".repeat(SEGMENT_LENGTH_MAX + 1)),
            Err(InvalidReleasePath::TooLong)
        );
    }

    #[test]
    fn names_with_spaces_dots_and_other_scripts_are_paths() {
        for text in ["...", "a b/ü.md", ".well-known/x", "a\\b"] {
            assert_eq!(ReleasePath::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn the_directories_of_a_path_are_its_proper_prefixes() {
        let path = ReleasePath::parse("a/b/c").unwrap();
        assert_eq!(path.directories().collect::<Vec<_>>(), ["a", "a/b"]);
    }
}

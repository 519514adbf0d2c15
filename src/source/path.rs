//! Paths inside a repository.
//!
//! A [`TreePath`] is a path as git records it: segments joined by `/`, relative to the root of
//! the repository. It has no leading slash and no `..`, so it cannot name anything outside, and
//! joining two of them needs no check. Only a link can lead elsewhere, and [`super::Tree`]
//! resolves links.
//!
//! Sources: `verify_path` of git (the valid paths of index entries), POSIX.1-2024 §3.254.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A path relative to the root of a repository; the root itself is empty.
///
/// Paths are ordered segment by segment, in the order of a walk through the repository:
/// `a/b` comes before `a-b`, although `-` is the smaller byte.
#[derive(Clone, Default)]
pub struct TreePath(Box<str>);

/// Why a text is not a path inside a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTreePath {
    /// It begins with a slash.
    #[error("path {0:?} is absolute")]
    Absolute(Box<str>),
    /// It has two slashes in a row, or one at the end.
    #[error("path {0:?} has an empty segment")]
    EmptySegment(Box<str>),
    /// It has a `.` or `..` segment.
    #[error("path {0:?} has a `.` or `..` segment")]
    DotSegment(Box<str>),
    /// It has a NUL character, which no file system allows.
    #[error("path {0:?} contains a NUL character")]
    Nul(Box<str>),
}

// === impl TreePath ===

impl TreePath {
    /// Reads a path; the empty text is the root.
    ///
    /// ```
    /// use waypost::source::TreePath;
    ///
    /// let path = TreePath::parse("docs/skill.md")?;
    /// assert_eq!(path.name(), "skill.md");
    /// assert!(TreePath::parse("../secrets").is_err());
    /// # Ok::<(), waypost::source::InvalidTreePath>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidTreePath`] says which rule is broken.
    pub fn parse(text: &str) -> Result<Self, InvalidTreePath> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        if text.starts_with('/') {
            return Err(InvalidTreePath::Absolute(text.into()));
        }
        for segment in text.split('/') {
            match segment {
                "" => return Err(InvalidTreePath::EmptySegment(text.into())),
                "." | ".." => return Err(InvalidTreePath::DotSegment(text.into())),
                _ if segment.contains('\0') => return Err(InvalidTreePath::Nul(text.into())),
                _ => {}
            }
        }
        Ok(Self(text.into()))
    }

    /// Returns the root of the repository.
    #[must_use]
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns whether this is the root of the repository.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the path as text; the root is empty.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of `below`, which is relative to this one.
    ///
    /// # Errors
    ///
    /// As [`TreePath::parse`] for `below`, which may have several segments.
    pub fn join(&self, below: &str) -> Result<Self, InvalidTreePath> {
        let below = Self::parse(below)?;
        Ok(match (self.is_root(), below.is_root()) {
            (true, _) => below,
            (_, true) => self.clone(),
            _ => Self(format!("{self}/{below}").into()),
        })
    }

    /// Returns the directory that holds this path; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let (parent, _name) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        Some(Self(parent.into()))
    }

    /// Returns the last segment; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0
            .rsplit_once('/')
            .map_or(&*self.0, |(_parent, name)| name)
    }

    /// Returns the segments from the root down.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|segment| !segment.is_empty())
    }

    /// Returns this path relative to `directory`; `None` when it is not `directory` or below it.
    #[must_use]
    pub fn strip_prefix(&self, directory: &Self) -> Option<&str> {
        if directory.is_root() {
            return Some(&self.0);
        }
        let rest = self.0.strip_prefix(&*directory.0)?;
        if rest.is_empty() {
            Some(rest)
        } else {
            rest.strip_prefix('/')
        }
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl PartialEq for TreePath {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for TreePath {}

impl Ord for TreePath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.segments().cmp(other.segments())
    }
}

impl PartialOrd for TreePath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for TreePath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> TreePath {
        TreePath::parse(text).unwrap()
    }

    #[test]
    fn paths_are_equal_if_their_text_is() {
        use std::collections::HashSet;
        use std::hash::{BuildHasher as _, RandomState};

        let (one, other) = (path("a/b"), path("a/c"));
        assert_ne!(one, other);
        assert_eq!(one, path("a/b"));
        assert_eq!(format!("{one:?} {one}"), "\"a/b\" a/b");
        let state = RandomState::new();
        assert_ne!(state.hash_one(&one), state.hash_one(&other));
        let set: HashSet<TreePath> = [one.clone(), other, path("a/b")].into();
        assert_eq!((set.len(), set.contains(&one)), (2, true));
    }

    #[test]
    fn paths_that_could_lead_outside_are_rejected() {
        let owned = |text: &str| Box::<str>::from(text);
        for (text, why) in [
            ("/etc", InvalidTreePath::Absolute(owned("/etc"))),
            ("a//b", InvalidTreePath::EmptySegment(owned("a//b"))),
            ("a/", InvalidTreePath::EmptySegment(owned("a/"))),
            ("..", InvalidTreePath::DotSegment(owned(".."))),
            ("a/./b", InvalidTreePath::DotSegment(owned("a/./b"))),
            ("a\0", InvalidTreePath::Nul(owned("a\0"))),
        ] {
            assert_eq!(TreePath::parse(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn names_with_three_dots_or_a_leading_dot_are_valid() {
        for text in [".waypost/skills", "a/...", "..a", "c:\\d", "日本/x y"] {
            assert_eq!(path(text).as_str(), text);
        }
    }

    #[test]
    fn a_path_is_its_parent_joined_with_its_name() {
        for text in ["a", "a/b", "a/b/c.md"] {
            let path = path(text);
            assert_eq!(path.parent().unwrap().join(path.name()), Ok(path), "{text}");
        }
        assert_eq!(TreePath::root().parent(), None);
        assert_eq!(TreePath::root().name(), "");
    }

    #[test]
    fn joining_with_the_root_changes_nothing() {
        assert_eq!(path("a").join(""), Ok(path("a")));
        assert_eq!(TreePath::root().join("a/b"), Ok(path("a/b")));
        assert!(path("a").join("../b").is_err());
    }

    #[test]
    fn paths_are_ordered_as_in_a_depth_first_walk() {
        let mut paths = ["a-b", "a/c", "", "a", "a/b/z", "a.md"].map(path);
        paths.sort();
        assert_eq!(
            paths.map(|p| p.to_string()),
            ["", "a", "a/b/z", "a/c", "a-b", "a.md"]
        );
    }

    #[test]
    fn stripping_ends_at_a_segment() {
        let docs = path("docs");
        assert_eq!(path("docs/a/b").strip_prefix(&docs), Some("a/b"));
        assert_eq!(path("docs").strip_prefix(&docs), Some(""));
        assert_eq!(path("docsish/a").strip_prefix(&docs), None);
        assert_eq!(path("a/b").strip_prefix(&TreePath::root()), Some("a/b"));
    }
}

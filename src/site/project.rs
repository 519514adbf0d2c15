//! Names that customers choose and that are checked once: project ids and base paths.

use std::fmt;

use serde::{Serialize, Serializer};

/// The longest project id.
const PROJECT_LENGTH_MAX: usize = 128;
/// The longest base path.
const BASE_PATH_LENGTH_MAX: usize = 128;

/// Paths directly below a host that the platform itself serves, or that reverse proxies commonly
/// route: they cannot be base paths.
const RESERVED_BASE_PATHS: [&str; 13] = [
    "/.well-known",
    "/_next",
    "/_sites",
    "/_waypost",
    "/api",
    "/feedback",
    "/llms-full.txt",
    "/llms.txt",
    "/mcp",
    "/robots.txt",
    "/sitemap.xml",
    "/skill.md",
    "/v1",
];

/// The id of a project in admin calls: `[A-Za-z0-9_-]{1,128}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectId(Box<str>);

/// Why a text is not a project id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a project id is 1 to {PROJECT_LENGTH_MAX} letters, digits, hyphens and underscores")]
pub struct InvalidProjectId;

/// The path of a site on each of its hosts: empty, or `/docs`, `/a/b`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BasePath(Box<str>);

/// Why a text is not a base path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBasePath {
    /// It must be empty or start with a slash and not end in one.
    #[error("a base path is empty or starts with `/` and does not end in one")]
    Slashes,
    /// Longer than the limit.
    #[error("a base path has at most {BASE_PATH_LENGTH_MAX} characters")]
    TooLong,
    /// An empty, `.` or `..` segment.
    #[error("a base path has no empty, `.` or `..` segments")]
    Segment,
    /// A character that URLs would have to escape.
    #[error("a base path contains {0:?}; letters, digits, `-`, `_`, `.` and `~` are allowed")]
    Character(char),
    /// A path that the platform itself serves.
    #[error("{0} is served by the platform itself")]
    Reserved(&'static str),
}

// === impl ProjectId ===

impl ProjectId {
    /// Reads a project id.
    ///
    /// # Errors
    ///
    /// [`InvalidProjectId`] when it is empty, too long or has other characters.
    pub fn parse(text: &str) -> Result<Self, InvalidProjectId> {
        let fits = (1..=PROJECT_LENGTH_MAX).contains(&text.len());
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        if fits && plain {
            Ok(Self(text.into()))
        } else {
            Err(InvalidProjectId)
        }
    }

    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ProjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

// === impl BasePath ===

impl BasePath {
    /// Reads a base path. `/` means the empty base path.
    ///
    /// # Errors
    ///
    /// Says which rule of [`InvalidBasePath`] is broken.
    pub fn parse(text: &str) -> Result<Self, InvalidBasePath> {
        if text.is_empty() || text == "/" {
            return Ok(Self::default());
        }
        if text.len() > BASE_PATH_LENGTH_MAX {
            return Err(InvalidBasePath::TooLong);
        }
        let Some(inner) = text.strip_prefix('/').filter(|inner| !inner.ends_with('/')) else {
            return Err(InvalidBasePath::Slashes);
        };
        let invalid_character =
            |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '/'));
        if let Some(c) = inner.chars().find(invalid_character) {
            return Err(InvalidBasePath::Character(c));
        }
        if inner
            .split('/')
            .any(|segment| matches!(segment, "" | "." | ".."))
        {
            return Err(InvalidBasePath::Segment);
        }
        let beneath = |path: &&&str| {
            text.strip_prefix(**path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(path) = RESERVED_BASE_PATHS.iter().find(beneath) {
            return Err(InvalidBasePath::Reserved(path));
        }
        Ok(Self(text.into()))
    }

    /// Returns the path: empty, or with a leading and without a trailing slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the rest of `path` after the base path; `None` if `path` is not below it.
    #[must_use]
    pub fn strip<'p>(&self, path: &'p str) -> Option<&'p str> {
        // Most sites have no base path, and each request asks several times.
        let rest = match self.0.is_empty() {
            true => path,
            false => path.strip_prefix(&*self.0)?,
        };
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_id_is_letters_digits_hyphens_and_underscores() {
        assert!(ProjectId::parse("acme_Docs-2").is_ok());
        for wrong in ["", "a/b", "a.b", "ü", "a b", &"a".repeat(129)] {
            assert_eq!(ProjectId::parse(wrong), Err(InvalidProjectId), "{wrong}");
        }
    }

    #[test]
    fn a_slash_is_the_empty_base_path() {
        assert_eq!(BasePath::parse("/"), BasePath::parse(""));
    }

    #[test]
    fn an_invalid_base_path_is_explained() {
        for (text, why) in [
            ("docs", InvalidBasePath::Slashes),
            ("/docs/", InvalidBasePath::Slashes),
            ("/a//b", InvalidBasePath::Segment),
            ("/a/../b", InvalidBasePath::Segment),
            ("/a b", InvalidBasePath::Character(' ')),
            ("/a?b", InvalidBasePath::Character('?')),
            ("/.well-known", InvalidBasePath::Reserved("/.well-known")),
            ("/v1/docs", InvalidBasePath::Reserved("/v1")),
        ] {
            assert_eq!(BasePath::parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn stripping_ends_at_a_segment() {
        let base = BasePath::parse("/docs").unwrap();
        assert_eq!(base.strip("/docs/skill.md"), Some("/skill.md"));
        assert_eq!(base.strip("/docs"), Some(""));
        assert_eq!(base.strip("/docsish/skill.md"), None);
    }
}

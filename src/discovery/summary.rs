//! The summary of a release for the index: the file `discovery.json`.
//!
//! The index serves discovery documents from this file and the skill files beside it, without
//! reading a page. It holds no domain, base path or visibility: those belong to the site.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::response::Encoding;

/// The path of the summary in a release.
pub const SUMMARY_PATH: &str = "discovery.json";
/// The version of the file that this program writes, and the newest it reads.
const VERSION: u32 = 1;

/// The text that the documents of a site are made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    version: u32,
    /// The site's title: the card's `name` and its provider's `organization`.
    pub title: Box<str>,
    /// The subject of the documentation: the card's `description`.
    pub description: Box<str>,
    /// The version of the documentation that is shown by default: the card's `version`.
    pub documentation_version: Box<str>,
    /// The public skills, sorted by slug.
    pub skills: Vec<Listed>,
}

/// A public skill as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// Its name in URLs: `[a-z0-9]+(-[a-z0-9]+)*`, at most 64 characters.
    pub slug: Box<str>,
    /// Its name as the author wrote it.
    pub name: Box<str>,
    /// When to use it: at most 1024 UTF-16 code units, never empty.
    pub description: Box<str>,
    /// The digest of the skill file in the release.
    pub digest: Digest,
    /// Whether the file carries [`super::BASE_URL_PLACEHOLDER`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generated: bool,
}

/// Why a summary cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableSummary {
    /// The file is not the JSON that this program writes.
    #[error("read {SUMMARY_PATH}")]
    Syntax(#[source] serde_json::Error),
    /// Written by a newer program.
    #[error("{SUMMARY_PATH} has version {0}, this program reads up to {VERSION}")]
    Newer(u32),
}

// === impl Summary ===

impl Summary {
    /// Makes a summary; skills are sorted by slug.
    #[must_use]
    pub fn new(
        title: &str,
        description: &str,
        documentation_version: &str,
        mut skills: Vec<Listed>,
    ) -> Self {
        skills.sort_by(|a, b| a.slug.cmp(&b.slug));
        Self {
            version: VERSION,
            title: title.into(),
            description: description.into(),
            documentation_version: documentation_version.into(),
            skills,
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// When it is not a summary, or has a newer version.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnreadableSummary> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let Version { version } =
            serde_json::from_slice(bytes).map_err(UnreadableSummary::Syntax)?;
        if version > VERSION {
            return Err(UnreadableSummary::Newer(version));
        }
        serde_json::from_slice(bytes).map_err(UnreadableSummary::Syntax)
    }

    /// Returns the file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        serde_json::to_vec(self)
            .expect("strings and digests are JSON")
            .into()
    }
}

/// Returns the path in a release of the file of a skill, in one of its encodings.
#[must_use]
pub fn skill_path(slug: &str, encoding: Encoding) -> String {
    format!("skills/{slug}/SKILL.md{}", encoding.suffix())
}

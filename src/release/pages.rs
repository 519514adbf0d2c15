//! The list of a site's pages, for programs (`texts/_waypost/pages` in a release).
//!
//! A build writes it. The embedded origin serves it at `/_waypost/pages`, and MCP finds pages
//! with it. It has the pages that `llms.txt` and the sitemap may name, of all languages and
//! versions, in the order of the navigation.

use serde::{Deserialize, Serialize};

/// The path of the list in a release.
pub const PAGES_FILE: &str = "texts/_waypost/pages";
/// Where the list is served, in URLs below the base path.
pub const PAGES: &str = "_waypost/pages";
/// The path of the description of the site's own API (OpenAPI 3.1), in URLs below the base path.
pub const API_DESCRIPTION: &str = "_waypost/openapi.json";
/// The id of the page at the root, whose path is empty.
const ROOT: &str = "index";
/// How many bytes of text count as one token. The number of tokens is an estimate: a tokenizer
/// of a language model makes about one token of four letters of English.
pub const BYTES_PER_TOKEN: usize = 4;

/// The list of the pages of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// The language that readers see first, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Box<str>>,
    /// The version that readers see first, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Box<str>>,
    /// The pages, in the order of the navigation.
    pub pages: Vec<Page>,
}

/// A page as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Its path, without leading slash; `index` for the page at the root.
    pub id: Box<str>,
    /// Its title.
    pub title: Box<str>,
    /// Its description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Box<str>>,
    /// Its address, which begins with the placeholder of the base URL.
    pub url: Box<str>,
    /// The tag of its language (BCP 47), if the documentation has several languages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Box<str>>,
    /// Its version, if the documentation has several versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Box<str>>,
    /// The labels of the navigation above it, the outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub section: Vec<Box<str>>,
    /// How many tokens its Markdown has, estimated ([`BYTES_PER_TOKEN`]).
    pub tokens: u32,
}

// === impl Pages ===

impl Pages {
    /// Reads the list.
    ///
    /// # Errors
    ///
    /// When the bytes are not the JSON that [`Pages::to_bytes`] writes.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Returns the file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    /// Returns the page with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Page> {
        self.pages.iter().find(|page| *page.id == *id)
    }
}

// === impl Page ===

impl Page {
    /// Returns the path of the page in URLs, without leading slash.
    #[must_use]
    pub fn path(&self) -> &str {
        path_of(&self.id)
    }
}

/// Returns the id of the page at a path.
#[must_use]
pub fn id_of(path: &str) -> &str {
    if path.is_empty() { ROOT } else { path }
}

/// Returns the path of the page with an id.
#[must_use]
pub fn path_of(id: &str) -> &str {
    if id == ROOT { "" } else { id }
}

/// Estimates how many tokens a text of this many bytes has.
#[must_use]
pub fn tokens(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u32::MAX)
}

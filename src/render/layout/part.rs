//! Parts of a site with a search index of their own: one for each language and version.
//!
//! A reader of version 2 in French does not look for a page of version 1 in English, and
//! each language has its own rules for splitting and stemming words.

use super::Layout;
use crate::digest::Digest;
use crate::docs::navigation::tree::{DivisionKind, PageId};
use crate::release::site::STATIC;

/// A language and version of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part<'d> {
    /// The BCP 47 tag of the language of its pages.
    pub language: &'d str,
    /// The label of the version, on a site that has several.
    pub version: Option<&'d str>,
}

// === impl Part ===

impl Part<'_> {
    /// Returns the path in URLs of the directory of its search index. The name has no digest,
    /// because every page names it and would change with every word of any other page.
    ///
    /// ```
    /// use waypost::render::layout::Part;
    ///
    /// let part = Part { language: "fr", version: None };
    /// assert_eq!(part.directory(), "_waypost/search/fr");
    /// ```
    #[must_use]
    pub fn directory(&self) -> String {
        let language = self.language;
        match self.version {
            None => format!("{STATIC}/search/{language}"),
            // A label can be any text, so it is hashed.
            Some(version) => {
                let digest = Digest::of(version.as_bytes()).to_string();
                format!("{STATIC}/search/{language}-{}", &digest[..8])
            }
        }
    }
}

// === impl Layout ===

impl<'d> Layout<'d> {
    /// Returns the part whose index has a page. A page that is not listed belongs to the part
    /// of the sidebar that is shown beside it.
    #[must_use]
    pub fn part(&self, id: Option<PageId>) -> Part<'d> {
        let selected = self.sidebar(id).selected.iter();
        let mut versions = selected.filter(|(of, _)| of.kind == DivisionKind::Versions);
        Part {
            language: self.language_tag(id),
            version: versions.next().map(|(of, at)| &*of.list[*at].label),
        }
    }

    /// Returns the BCP 47 tag of the language of a page.
    pub(super) fn language_tag(&self, id: Option<PageId>) -> &'d str {
        self.language(id).map_or("en", |parts| &*parts.language.tag)
    }
}

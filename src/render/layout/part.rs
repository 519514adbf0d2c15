//! Parts of a site that are searched separately: one for each language and version.
//!
//! A reader of version 2 in French does not look for a page of version 1 in English, and
//! each language has its own rules for splitting and stemming words.

use super::Layout;
use crate::docs::navigation::tree::{DivisionKind, PageId};

/// A language and version of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part<'d> {
    /// The BCP 47 tag of the language of its pages.
    pub language: &'d str,
    /// The label of the version, on a site that has several.
    pub version: Option<&'d str>,
    /// Whether the version is the default of its list, or there is none.
    pub is_default: bool,
}

// === impl Layout ===

impl<'d> Layout<'d> {
    /// Returns the part of a page. A page that is not listed belongs to the part
    /// of the sidebar that is shown beside it.
    #[must_use]
    pub fn part(&self, id: Option<PageId>) -> Part<'d> {
        let selected = self.sidebar(id).selected.iter();
        let mut versions = selected.filter(|(of, _)| of.kind == DivisionKind::Versions);
        let version = versions.next();
        Part {
            language: self.language_tag(id),
            version: version.map(|(of, at)| &*of.list[*at].label),
            is_default: version.is_none_or(|(of, at)| of.default == *at),
        }
    }

    /// Returns the BCP 47 tag of the language of a page.
    pub(super) fn language_tag(&self, id: Option<PageId>) -> &'d str {
        self.language(id).map_or("en", |parts| &*parts.language.tag)
    }
}

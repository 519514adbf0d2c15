//! The 404 pages of a site.
//!
//! They are files of the release. A 404 page is shown at any path, so its links begin with
//! the placeholder of the base path.
//!
//! A reader who follows a dead link below `/fr` expects French. So each language and version
//! whose pages are in one directory has its own 404 page: in its language, with its sidebar,
//! and with suggestions of the search in its language. The origin serves the one of the
//! deepest directory that contains the path. A script could choose instead, but then readers
//! without scripts would get English.
//!
//! **Limit.** A language whose pages have no directory in common uses the 404 page of the site.

use std::collections::BTreeMap;

use super::{Layout, Mode, PageWriter};
use crate::docs::navigation::tree::{Division, DivisionKind, PageId};
use crate::release::site;

// === impl Layout ===

impl<'d> Layout<'d> {
    /// Returns the directories that contain a language or a version, each with its first page.
    #[must_use]
    pub fn directories(&self) -> BTreeMap<&'d str, PageId> {
        // In the order of the navigation, so that the outer of two divisions comes first.
        let mut held: Vec<(&Division, &str)> = Vec::new();
        for (id, page) in self.navigation().pages().filter(|(_, page)| page.public) {
            let directory = page.slug.rsplit_once('/').map_or("", |(parent, _)| parent);
            for division in self.divisions(id) {
                let mut known = held.iter_mut();
                match known.find(|(known, _)| std::ptr::eq(*known, division)) {
                    Some((_, held)) => *held = common(held, directory),
                    None => held.push((division, directory)),
                }
            }
        }
        let mut directories = BTreeMap::new();
        for (division, directory) in held {
            let depth = directory.split('/').count();
            // If another division lists the first page earlier, the page would show the sidebar of
            // that division.
            let opens = |first: &PageId| self.divisions(*first).any(|d| std::ptr::eq(d, division));
            if let Some(first) = division.first.filter(opens)
                && !directory.is_empty()
                && depth <= site::NOT_FOUND_DEPTH_MAX
            {
                directories.entry(directory).or_insert(first);
            }
        }
        directories
    }

    /// Returns the languages and versions that a listed page belongs to.
    fn divisions(&self, id: PageId) -> impl Iterator<Item = &'d Division> {
        let selected = self
            .listed(id)
            .into_iter()
            .flat_map(|sidebar| &sidebar.selected);
        let of_kind = selected.filter(|(divisions, _)| {
            matches!(
                divisions.kind,
                DivisionKind::Languages | DivisionKind::Versions
            )
        });
        of_kind.map(|(divisions, at)| &divisions.list[*at])
    }

    /// Writes a 404 page with the language and sidebar of the page `beside`, or else of the
    /// first page of the site.
    #[must_use]
    pub fn not_found(&self, beside: Option<PageId>) -> String {
        let mut writer = PageWriter::anywhere(self, beside);
        let messages = writer.messages;
        let own = &self.config().errors.not_found;
        let is_own = self.is_in_first_language(beside);
        let title = own.title.as_deref().filter(|_| is_own);
        let title = title.unwrap_or(messages.not_found);
        let home = beside.map_or(self.home(), |id| self.path(id));
        if own.redirect {
            writer.redirect = Some(home);
        }
        writer.head(title, None, false);
        writer.top(true);
        writer.out.markup(Mode::Wide.columns());
        writer.sidebar(true);
        writer
            .out
            .markup("<main id=_content><article class=missing><h1>");
        writer.out.text(title).markup("</h1>");
        match own.description.as_deref().filter(|_| is_own) {
            Some(text) => {
                writer.out.markup("<div class=lead>");
                writer.markdown(text);
                writer.out.markup("</div>");
            }
            None => {
                writer.out.markup("<p class=lead>");
                writer.out.text(messages.not_found_text).markup("</p>");
            }
        }
        writer.question("");
        writer.out.markup("<div id=_suggestions></div><p><a");
        writer.href(home);
        writer.out.markup(">").text(messages.go_to_first_page);
        writer.out.markup("</a></p></article></main></div>\n");
        writer.bottom();
        writer.out.into_string()
    }
}

/// Returns the deepest directory that contains two others.
fn common<'p>(one: &'p str, other: &str) -> &'p str {
    let segments = one.split('/').zip(other.split('/'));
    let same = segments.take_while(|(one, other)| one == other);
    let length: usize = same.map(|(segment, _)| segment.len() + 1).sum();
    &one[..length.saturating_sub(1)]
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn directories_are_compared_by_their_segments() {
        for (one, other, both) in [
            ("fr/guides/a", "fr/guides", "fr/guides"),
            ("fr/guides", "fr/guide", "fr"),
            ("fr", "french", ""),
            ("", "fr", ""),
            ("", "", ""),
        ] {
            assert_eq!(common(one, other), both);
            assert_eq!(common(other, one), both);
        }
    }
}

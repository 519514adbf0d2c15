//! The page for paths at which there is nothing.
//!
//! It is a file of the release, made before anybody asks, and shown at any depth: its links
//! start at the placeholder of the base path. What was looked for nobody knows before; but
//! below `/fr` it was something French. So each language and version whose pages lie in a
//! directory has such a page for what is missing there: in its language, beside its sidebar,
//! and with suggestions from its part of the search. The origin takes the one of the nearest
//! directory. Were it the script that chose, whoever has none would read English, and the
//! script would have to know where every part lies.
//!
//! **Limit.** A language whose own pages have no directory in common is one with the site.

use std::collections::BTreeMap;

use super::{Layout, Mode, PageWriter};
use crate::docs::navigation::tree::{Division, DivisionKind, PageId};
use crate::release::site;

// === impl Layout ===

impl<'d> Layout<'d> {
    /// Returns the directories that hold a language or a version, each with the page that
    /// opens it.
    #[must_use]
    pub fn directories(&self) -> BTreeMap<&'d str, PageId> {
        // In the order of the navigation: of two that hold the same the outer one comes first.
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
            // A page that is listed elsewhere before opens that, and not this.
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

    /// The languages and versions that a page that is listed is of.
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

    /// Writes the page for what is missing beside a page; without one, beside the first of
    /// the site.
    #[must_use]
    pub fn not_found(&self, beside: Option<PageId>) -> String {
        let mut writer = PageWriter::anywhere(self, beside);
        let messages = writer.messages;
        writer.head(messages.not_found, None, false);
        writer.top(true);
        writer.out.markup(Mode::Wide.columns());
        writer.sidebar();
        writer
            .out
            .markup("<main id=content><article class=missing><h1>");
        writer
            .out
            .text(messages.not_found)
            .markup("</h1><p class=lead>");
        writer.out.text(messages.not_found_text);
        writer.out.markup("</p><div id=suggestions></div><p><a");
        writer.href(beside.map_or(self.home(), |id| self.path(id)));
        writer.out.markup(">").text(messages.go_to_first_page);
        writer.out.markup("</a></p></article></main></div>\n");
        writer.bottom();
        writer.out.into_string()
    }
}

/// Returns the directory that holds two others.
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

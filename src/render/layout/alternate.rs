//! The alternate page: the page that opens when a reader switches the version or language.
//!
//! It is the first of these that exists:
//!
//! 1. the same page, if the other version or language lists it too;
//! 2. the page whose path differs only in the segment that names the version or language:
//!    replaced, added or left out;
//! 3. the first page of the deepest directory that both have;
//! 4. the first page of the other version or language.
//!
//! Two pages are [translations](Layout::translations) for search engines only if rule 1 or 2
//! holds in both directions.
//!
//! Sources: RFC 8288 §3.4.1 (`hreflang`); `internals/decisions#alternate-pages`.

use std::collections::{HashMap, HashSet};

use super::Layout;
use crate::docs::navigation::tree::{Division, DivisionKind, Divisions, PageId};
use crate::release::site::Translation;

/// How many segments of a path may come before the one that names a version or language.
const DEPTH_MAX: usize = 4;

/// The paths of a version or a language, in the order of the navigation.
#[derive(Debug, Default)]
pub(super) struct Members<'d> {
    ordered: Vec<&'d str>,
    known: HashSet<&'d str>,
    /// The first of them in each directory. A page is also in the directory of its own path.
    first_in: HashMap<&'d str, &'d str>,
}

/// The members of each version and language. The key is the address of the division in
/// memory, because two divisions can have the same label.
#[derive(Debug, Default)]
pub(super) struct Alternates<'d>(HashMap<usize, Members<'d>>);

// === impl Alternates ===

impl<'d> Alternates<'d> {
    pub(super) fn insert(&mut self, division: &Division, path: &'d str) {
        let members = self.0.entry(address(division)).or_default();
        if members.known.insert(path) {
            members.ordered.push(path);
            let ends = path.match_indices('/').map(|(at, _)| at);
            for end in ends.chain([path.len()]) {
                members.first_in.entry(&path[..end]).or_insert(path);
            }
        }
    }

    fn of(&self, division: &Division) -> Option<&Members<'d>> {
        self.0.get(&address(division))
    }
}

fn address(division: &Division) -> usize {
    std::ptr::from_ref(division).addr()
}

// === impl Layout ===

impl<'d> Layout<'d> {
    /// Finds the alternate page of a path in another version or language (rules 1 to 4).
    pub(super) fn alternate(&self, path: &str, list: &'d Divisions, at: usize) -> Option<&'d str> {
        let division = &list.list[at];
        let nearest = || {
            let spellings = spellings(path, list, at);
            self.alternates().of(division)?.nearest(&spellings)
        };
        let first = || division.first.map(|id: PageId| self.path(id));
        self.same(path, list, at).or_else(nearest).or_else(first)
    }

    /// Finds the page with the same content in another version or language (rules 1 and 2).
    pub(super) fn same(&self, path: &str, list: &Divisions, at: usize) -> Option<&'d str> {
        let members = self.alternates().of(&list.list[at])?;
        let mut spellings = spellings(path, list, at).into_iter();
        spellings.find_map(|spelling| members.known.get(spelling.as_str()).copied())
    }

    /// Returns the sets of pages that are translations of each other, in the order of the
    /// navigation. A page is in one set at most, so all pages of a set name the same set.
    #[must_use]
    pub fn translations(&self, is_shown: impl Fn(&str) -> bool) -> Vec<Vec<Translation>> {
        let mut sets = Vec::new();
        let mut taken: HashSet<&str> = HashSet::new();
        let mut seen: HashSet<usize> = HashSet::new();
        let selected = self.sidebars().iter().flat_map(|sidebar| &sidebar.selected);
        for (languages, at) in selected.filter(|(list, _)| list.kind == DivisionKind::Languages) {
            if !seen.insert(address(&languages.list[*at])) {
                continue;
            }
            let members = self.alternates().of(&languages.list[*at]);
            for path in members.into_iter().flat_map(|members| &members.ordered) {
                let is_free = |path: &str| is_shown(path) && !taken.contains(path);
                let set = self.translations_of(path, languages, *at, is_free);
                if set.len() > 1 {
                    taken.extend(set.iter().map(|(_, path)| *path));
                    sets.push(set.iter().map(|of| translation(languages, *of)).collect());
                }
            }
        }
        sets
    }

    /// Returns the translations of a page and the page itself, each with the index of its
    /// language.
    fn translations_of(
        &self,
        path: &'d str,
        languages: &Divisions,
        at: usize,
        is_free: impl Fn(&str) -> bool,
    ) -> Vec<(usize, &'d str)> {
        let mut set: Vec<(usize, &'d str)> = Vec::new();
        if !is_free(path) {
            return set;
        }
        for n in 0..languages.list.len() {
            let found = match n == at {
                true => Some(path),
                false => self.same(path, languages, n).filter(|found| {
                    let back = self.same(found, languages, at);
                    is_free(found) && back == Some(path)
                }),
            };
            // A page that two languages share is a translation in neither of them.
            set.extend(
                found
                    .filter(|found| set.iter().all(|(_, other)| other != found))
                    .map(|found| (n, found)),
            );
        }
        set
    }
}

fn translation(languages: &Divisions, (n, path): (usize, &str)) -> Translation {
    let division = &languages.list[n];
    let tag = division.language.as_ref().map(|parts| &*parts.language.tag);
    Translation {
        language: tag.unwrap_or_default().into(),
        path: path.into(),
        default: n == languages.default,
    }
}

// === impl Members ===

impl<'d> Members<'d> {
    /// Finds the first page of the deepest directory that contains one of the spellings.
    fn nearest(&self, spellings: &[String]) -> Option<&'d str> {
        let mut best: Option<(usize, &'d str)> = None;
        for spelling in spellings {
            let mut directory = spelling.as_str();
            while let Some((parent, _)) = directory.rsplit_once('/') {
                directory = parent;
                let depth = directory.split('/').count();
                if best.is_some_and(|(deepest, _)| deepest >= depth) {
                    break;
                }
                if let Some(found) = self.first_in.get(directory) {
                    best = Some((depth, found));
                    break;
                }
            }
        }
        best.map(|(_, path)| path)
    }
}

/// Returns the paths that a page may have in a version or language, the likeliest first.
/// Only a segment that names another version or language is replaced or left out.
fn spellings(path: &str, list: &Divisions, at: usize) -> Vec<String> {
    let mut spellings = vec![path.to_owned()];
    let segments: Vec<&str> = path.split('/').filter(|s| !s.is_empty()).collect();
    let own = names(&list.list[at]);
    let others = list.list.iter().enumerate().filter(|(n, _)| *n != at);
    let others: Vec<String> = others.flat_map(|(_, other)| names(other)).collect();
    let is_other = |segment: &str| others.iter().any(|name| name.eq_ignore_ascii_case(segment));
    for depth in 0..=segments.len().min(DEPTH_MAX) {
        let (before, rest) = segments.split_at(depth);
        let after = rest.split_first().filter(|(first, _)| is_other(first));
        for name in &own {
            if let Some((_, after)) = after {
                spellings.push([before, &[name.as_str()], after].concat().join("/"));
            }
            spellings.push([before, &[name.as_str()], rest].concat().join("/"));
        }
        if let Some((_, after)) = after {
            spellings.push([before, after].concat().join("/"));
        }
    }
    spellings
}

/// Returns the segments that may name the version or language.
fn names(division: &Division) -> Vec<String> {
    let label = division.label.to_lowercase();
    let mut names = match &division.language {
        Some(parts) => {
            let (code, tag) = (&parts.language.code, &parts.language.tag);
            vec![code.to_string(), tag.to_string(), tag.to_lowercase()]
        }
        None => vec![
            label.replace(' ', "-"),
            format!("v{}", label.trim_start_matches('v')),
            label.trim_start_matches('v').to_owned(),
        ],
    };
    names.push(label);
    names.dedup();
    names
}

//! Finds what [`super::Site::found`] finds, without making a site.

use std::collections::HashSet;

use rayon::prelude::*;

use super::{art, authors, canonical, files, public, with_repository_path};
use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::render::article::{self, Source};
use crate::render::icon::Library;
use crate::render::layout::{broken_related, missing_images, path_of, unknown_icons};
use crate::render::link::Map;
use crate::source::Tree;

/// Finds the problems that a build of the site would report.
pub(in crate::build) fn check(docs: &Docs, tree: &Tree) -> Vec<Diagnostic> {
    let map = Map {
        pages: public(docs).map(|(_, page)| path_of(page).into()).collect(),
        assets: files::named(tree, docs),
        library: Library::parse(docs.config.icons.library.as_deref()),
        ..Map::default()
    };
    let pages: Vec<&Page> = public(docs).map(|(_, page)| page).collect();
    let mut found: Vec<_> = pages
        .par_iter()
        .flat_map_iter(|page| article::check(&Source::of(docs, page), &map))
        .map(|found| with_repository_path(tree, found))
        .collect();
    found.extend(unknown_icons(docs, &map));
    found.extend(canonical::invalid_addresses(docs, &map));
    found.extend(missing_images(docs, &map));
    found.extend(art::read(tree, docs, &map).1);
    found.extend(broken_related(docs, &map));
    let authors = authors(tree, docs, &map).diagnostics.into_iter();
    found.extend(authors.map(|found| with_repository_path(tree, found)));
    found
}

/// Returns whether files with the extension of this path may be published.
pub(in crate::build) fn is_of_published_kind(path: &str) -> bool {
    files::kind(path).is_some()
}

/// Returns the files that pages may show or link, as paths from the documentation's root.
pub(in crate::build) fn published_files(docs: &Docs, tree: &Tree) -> HashSet<Box<str>> {
    files::named(tree, docs).into_keys().collect()
}

//! The specifications that are published for agents.
//!
//! A specification is published unchanged or not at all. So it must not contain anything that
//! no public page shows:
//!
//! * a page about one of its endpoints or schemas is listed, and every such page is public;
//! * none of its endpoints is hidden or excluded;
//! * it refers to no other file, which would not be published with it;
//! * its file is below the documentation's root and is not ignored. A specification that is
//!   named by URL stays at its URL.
//!
//! Source: `internals/decisions#public-files`.

use std::collections::BTreeMap;

use super::Docs;
use super::navigation::tree::PageId;
use super::openapi::{Specification, is_url};
use crate::source::{Tree, TreePath};
use crate::syntax::{Data, Value};

/// A specification that is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its index in [`Docs::specifications`].
    pub specification: usize,
    /// The first listed page about it.
    pub page: PageId,
    /// The address at which it is published.
    pub address: Address,
}

/// The address of a published specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A file of the site: its path below the documentation's root.
    File(Box<str>),
    /// Another server: its URL.
    Elsewhere(Box<str>),
}

// === impl Published ===

impl Published {
    /// Returns the path below the documentation's root if it is a file of the site.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match &self.address {
            Address::File(path) => Some(path),
            Address::Elsewhere(_) => None,
        }
    }
}

/// Finds the specifications that are published, in the order of their first pages.
pub(super) fn find(docs: &Docs, tree: &Tree) -> Vec<Published> {
    let mut first: BTreeMap<usize, PageId> = BTreeMap::new();
    for (id, page) in docs.navigation.pages().filter(|(_, page)| page.is_listed()) {
        if let Some(number) = page.specification() {
            first.entry(number).or_insert(id);
        }
    }
    let published = first.into_iter().filter_map(|(number, page)| {
        let specification = docs.specifications.get(number)?;
        if specification.from_page {
            return None;
        }
        let is_published = is_open(docs, number) && is_whole(&specification.root);
        Some(Published {
            specification: number,
            page,
            address: address(specification, tree, docs).filter(|_| is_published)?,
        })
    });
    let mut published: Vec<Published> = published.collect();
    published.sort_by_key(|published| published.page);
    published
}

/// Returns whether all endpoints and pages of a specification are public.
fn is_open(docs: &Docs, number: usize) -> bool {
    let mut endpoints = docs.specifications[number].endpoints.iter();
    let mut pages = docs.navigation.pages.iter();
    endpoints.all(|endpoint| !endpoint.hidden && !endpoint.excluded)
        && pages.all(|page| page.specification() != Some(number) || page.public)
}

/// Returns whether a specification refers to no other file.
fn is_whole(value: &Value) -> bool {
    match &value.data {
        Data::Map(members) => members.iter().all(|member| {
            let target = member.value.text().filter(|_| &*member.key == "$ref");
            target.is_none_or(|target| target.starts_with('#')) && is_whole(&member.value)
        }),
        Data::List(items) => items.iter().all(is_whole),
        _ => true,
    }
}

fn address(specification: &Specification, tree: &Tree, docs: &Docs) -> Option<Address> {
    if is_url(&specification.path) {
        return Some(Address::Elsewhere(specification.path.clone()));
    }
    let path = TreePath::parse(&specification.path).ok()?;
    let below = path.strip_prefix(tree.docs_root())?;
    (!docs.ignored.is_path_ignored(tree, &path)).then(|| Address::File(below.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs;

    const OPEN: &str = r##"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"}, "paths": {"/pay": {"get": {"summary": "Look"}, "post": {"summary": "Pay", "responses": {"200": {"$ref": "#/components/responses/Done"}}}}}, "components": {"responses": {"Done": {"description": "Done"}}}}"##;

    /// The address of the published specification, with a file beside it.
    fn published(specification: &str, beside: &[(&str, &str)]) -> Vec<(String, Address)> {
        let config = r#"{"name": "Acme", "navigation": {"groups": [{"group": "API", "openapi": "api/pay.json", "pages": ["index", "own", "GET /pay", "POST /pay"]}]}}"#;
        let files = [("docs.json", config), ("api/pay.json", specification)];
        let pages = [("index.mdx", "# Acme"), ("own.mdx", "# Own")];
        let pages = pages
            .iter()
            .filter(|(path, _)| !beside.iter().any(|(own, _)| own == path));
        let files = files
            .iter()
            .chain(pages)
            .chain(beside)
            .map(|(path, text)| (TreePath::parse(path).unwrap(), (*text).to_owned().into()));
        let tree = Tree::from_files(files.collect::<Vec<_>>(), []);
        let (docs, _found) = docs::read(&tree, &docs::Options::default());
        let named = docs.published.iter().map(|published| {
            let page = docs.navigation.page(published.page);
            (page.url.to_string(), published.address.clone())
        });
        named.collect()
    }

    #[test]
    fn public_divisions_are_published_with_their_first_page() {
        let [(url, address)] = &published(OPEN, &[])[..] else {
            panic!("one");
        };
        assert_eq!(address, &Address::File("api/pay.json".into()));
        assert!(url.ends_with("/look"), "{url}");
    }

    #[test]
    fn restricted_or_incomplete_divisions_are_not_published() {
        let hidden = OPEN.replace(
            "\"summary\": \"Look\"",
            "\"summary\": \"Look\", \"x-hidden\": true",
        );
        assert_eq!(published(&hidden, &[]), []);
        let excluded = OPEN.replace("\"summary\": \"Look\"", "\"x-excluded\": true");
        assert_eq!(published(&excluded, &[]), []);
        let in_parts = OPEN.replace("#/components/responses/Done", "done.json#/Done");
        assert_eq!(published(&in_parts, &[]), []);
        let for_staff = "---\nopenapi: GET /pay\ngroups: [staff]\n---\n";
        assert_eq!(published(OPEN, &[("own.mdx", for_staff)]), []);
        assert_eq!(published(OPEN, &[(".waypostignore", "api/\n")]), []);
    }
}

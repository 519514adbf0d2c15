//! Compares the verdicts of the check about links with the HTML of a build.
//!
//! The check knows anchors without writing HTML. Here the pages are made as a preview makes
//! them, a parser of HTML reads their ids, and each link to an anchor is looked up twice.

use std::collections::{HashMap, HashSet};

use scraper::{Html, Selector};
use waypost::build::check::{AnchorLink, Verdict, anchors};
use waypost::build::{Articles, Input, Options, Preview};
use waypost::release::site::page_file;
use waypost::source::Tree;

/// The result of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    /// How many different links the check accepted and the HTML has.
    pub(crate) found: usize,
    /// How many the check warned about and the HTML lacks.
    pub(crate) missing: usize,
    /// How many have a target that the check cannot know.
    pub(crate) unknown: usize,
    /// How many lead to private pages, which are not built.
    pub(crate) private: usize,
    /// Links that the check accepted and whose anchor is not in the HTML.
    pub(crate) dead: Vec<AnchorLink>,
    /// Links that the check warned of and whose anchor is in the HTML.
    pub(crate) alive: Vec<AnchorLink>,
}

/// Compares check and HTML of the documentation.
pub(crate) fn compare(tree: Tree) -> Compared {
    let options = Options::default();
    let input = Input::read(tree, &options);
    let links = anchors(&input.docs, &input.tree);
    let preview = Preview::new(input, &options, Articles::default());
    let mut pages: HashMap<Box<str>, Option<HashSet<String>>> = HashMap::new();
    let mut seen = HashSet::new();
    let mut compared = Compared::default();
    for link in links {
        if !seen.insert(link.clone()) {
            continue;
        }
        let read = || {
            let path = page_file(link.to.trim_matches('/'), "html");
            let (bytes, _) = preview.file(&path)?;
            Some(ids(std::str::from_utf8(&bytes).expect("HTML is UTF-8")))
        };
        let Some(ids) = pages.entry(link.to.clone()).or_insert_with(read) else {
            compared.private += 1;
            continue;
        };
        match (link.verdict, ids.contains(&*link.anchor)) {
            (Verdict::Found, true) => compared.found += 1,
            (Verdict::Missing, false) => compared.missing += 1,
            (Verdict::Unknown, _) => compared.unknown += 1,
            (Verdict::Found, false) => compared.dead.push(link),
            (Verdict::Missing, true) => compared.alive.push(link),
        }
    }
    compared
}

/// Returns the ids of the article of a page. An id that is repeated is a mistake.
fn ids(html: &str) -> HashSet<String> {
    let parsed = Html::parse_document(html);
    let article = Selector::parse("article [id]").expect("a constant selector");
    let mut ids = HashSet::new();
    for element in parsed.select(&article) {
        let id = element.value().id().unwrap_or_default();
        assert!(ids.insert(id.to_owned()), "the id {id:?} is repeated");
    }
    ids
}

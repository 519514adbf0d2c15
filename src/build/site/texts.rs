//! The lists of a site's pages, for agents and search engines.
//!
//! No list contains a page that is hidden, excluded from indexing, private or not in the
//! navigation. The sitemap also contains no page with another canonical address. Addresses begin
//! with the placeholder of the base URL.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::llms::{self, AGENTS, Lists};
use super::{canonical, catalog, feeds};
use crate::discovery::{BASE_URL_PLACEHOLDER, JSON};
use crate::docs::Docs;
use crate::docs::config::Indexing;
use crate::docs::navigation::tree::{Page, PageId};
use crate::release::pages::{self, Pages, id_of};
use crate::release::site::is_feed;
use crate::render::article::Article;
use crate::render::layout::path_of;
use crate::render::link::Map;
use crate::render::markdown;
use crate::site::percent::encode;

/// How many bytes `llms-full.txt` may have.
const LLMS_FULL_BYTES_MAX: usize = 8 << 20;
/// sitemaps.org: at most 50,000 addresses.
const SITEMAP_MAX: usize = 50_000;

const PLAIN: &str = "text/plain; charset=utf-8";
const XML: &str = "application/xml; charset=utf-8";

const LLMS_FULL: &str = "llms-full.txt";
const SITEMAP: &str = "sitemap.xml";
const ROBOTS: &str = "robots.txt";
const CATALOG: &str = "api-catalog";
const PAGES: &str = pages::PAGES;
const API_DESCRIPTION: &str = pages::API_DESCRIPTION;

/// Returns the names of the lists, which are their paths. The API catalog is served below
/// `.well-known`.
pub(super) fn names(docs: &Docs, lists: &Lists) -> Vec<String> {
    let others = [
        AGENTS,
        LLMS_FULL,
        SITEMAP,
        ROBOTS,
        CATALOG,
        PAGES,
        API_DESCRIPTION,
    ];
    let names = others.into_iter().chain(lists.names());
    let names = names.map(str::to_owned);
    names.chain(feeds::names(docs)).collect()
}

/// Writes a list by its name; returns its text and media type.
pub(super) fn write(
    name: &str,
    docs: &Docs,
    lists: &Lists,
    articles: &[Option<&Article>],
    map: &Map,
) -> (String, &'static str) {
    let pages = docs.navigation.pages.iter().zip(articles);
    let listed: Vec<(&Page, &Article)> = pages
        .filter(|(page, _)| page.is_listed())
        .filter_map(|(page, article)| Some((page, (*article)?)))
        .collect();
    let of_first = |(page, _): &(&Page, &Article)| {
        first(docs).is_none_or(|first| Some(first) == division(page))
    };
    match name {
        AGENTS => (llms::agents(docs, lists), PLAIN),
        LLMS_FULL => {
            let of_first: Vec<_> = listed.into_iter().filter(of_first).collect();
            (llms_full(&of_first), PLAIN)
        }
        SITEMAP => {
            let pages = docs.navigation.pages.iter().zip(articles);
            let rendered = pages.filter_map(|(page, article)| article.map(|_| page));
            let found = rendered.filter(|page| {
                // With `seo.indexing`, search engines find pages that no sidebar lists.
                let is_all = docs.config.seo.indexing == Indexing::All;
                let is_listed = page.is_listed() || is_all && page.link.is_none();
                is_listed && docs.is_found(page)
            });
            let own = found.filter(|page| canonical::is_own(docs, page, map));
            (sitemap(docs, own), XML)
        }
        ROBOTS => (robots(), PLAIN),
        CATALOG => (catalog::write(docs), catalog::LINKSET),
        PAGES => (page_list(docs, &listed), JSON),
        API_DESCRIPTION => (catalog::api_description(docs), JSON),
        feed if is_feed(feed) => (
            feeds::write(feed, docs, map).unwrap_or_default(),
            feeds::RSS,
        ),
        list => {
            let places: HashMap<PageId, &Article> = docs
                .navigation
                .pages()
                .zip(articles)
                .filter_map(|((id, _), article)| Some((id, (*article)?)))
                .collect();
            let text = llms::write(list, docs, lists, &|id| places.get(&id).copied());
            (text.unwrap_or_default(), PLAIN)
        }
    }
}

/// Returns the language and the version of a listed page.
fn division(page: &Page) -> Option<(Option<&str>, Option<&str>)> {
    let place = page.place.as_ref()?;
    Some((place.language.as_deref(), place.version.as_deref()))
}

/// Returns the default language and version.
fn first(docs: &Docs) -> Option<(Option<&str>, Option<&str>)> {
    division(docs.navigation.page(docs.navigation.first()?))
}

fn llms_full(listed: &[(&Page, &Article)]) -> String {
    let mut out = String::new();
    for (page, article) in listed {
        let source = format!("Source: {}\n\n", markdown::address(path_of(page)));
        let (title, rest) = article.markdown.split_once("\n\n").unwrap_or(("", ""));
        if out.len() + source.len() + article.markdown.len() > LLMS_FULL_BYTES_MAX {
            break;
        }
        out += &format!("{title}\n\n{source}{rest}\n");
    }
    out
}

fn page_list(docs: &Docs, listed: &[(&Page, &Article)]) -> String {
    let page = |(page, article): &(&Page, &Article)| {
        let path = path_of(page);
        let place = page.place.as_ref();
        pages::Page {
            id: id_of(path).into(),
            title: page.title.clone(),
            description: article.summary.as_deref().map(Box::from),
            url: format!("{BASE_URL_PLACEHOLDER}/{}", encode(path)).into(),
            language: place.and_then(|place| place.language.clone()),
            version: place.and_then(|place| place.version.clone()),
            section: place.map_or_else(Vec::new, |place| place.breadcrumb.clone()),
            tokens: pages::tokens(article.markdown.len()),
        }
    };
    let (language, version) = first(docs).unwrap_or_default();
    let list = Pages {
        language: language.map(Box::from),
        version: version.map(Box::from),
        pages: listed.iter().map(page).collect(),
    };
    let list = list.to_bytes();
    String::from_utf8(list).expect("JSON is UTF-8")
}

fn sitemap<'p>(docs: &Docs, listed: impl Iterator<Item = &'p Page>) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for page in listed.take(SITEMAP_MAX) {
        // sitemaps.org: five characters are escaped as entities; a path can have only these two.
        let path = encode(path_of(page))
            .replace('&', "&amp;")
            .replace('\'', "&apos;");
        let updated = docs
            .updated(page)
            .map(|day| format!("<lastmod>{day}</lastmod>"));
        let updated = updated.unwrap_or_default();
        writeln!(
            out,
            "<url><loc>{BASE_URL_PLACEHOLDER}/{path}</loc>{updated}</url>"
        )
        .expect("a String takes every character");
    }
    out + "</urlset>\n"
}

fn robots() -> String {
    format!(
        "User-agent: *\nContent-Signal: search=yes, ai-input=yes, ai-train=yes\nAllow: /\n\n\
         Sitemap: {BASE_URL_PLACEHOLDER}/sitemap.xml\n"
    )
}

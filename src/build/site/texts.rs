//! The lists of a site's pages, for agents and search engines.
//!
//! What is hidden, asked not to be indexed, not public or not in the navigation is in none
//! of them. Addresses are on the placeholder of the base URL.

use std::fmt::Write as _;

use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::render::article::Article;
use crate::render::layout::path_of;
use crate::render::link::encode;
use crate::render::markdown;

/// How many characters `llms.txt` may have: what the tools that read it take.
const LLMS_CHARS_MAX: usize = 100_000;
/// How many bytes `llms-full.txt` may have.
const LLMS_FULL_BYTES_MAX: usize = 8 << 20;
/// sitemaps.org: at most 50,000 addresses.
const SITEMAP_MAX: usize = 50_000;

const PLAIN: &str = "text/plain; charset=utf-8";
const XML: &str = "application/xml; charset=utf-8";

/// The lists, by the name that each is served under.
pub(super) const NAMES: [&str; 4] = [LLMS, LLMS_FULL, SITEMAP, ROBOTS];
const LLMS: &str = "llms.txt";
const LLMS_FULL: &str = "llms-full.txt";
const SITEMAP: &str = "sitemap.xml";
const ROBOTS: &str = "robots.txt";

/// Writes the list of a name: its text and its media type.
pub(super) fn write(
    name: &str,
    docs: &Docs,
    articles: &[Option<&Article>],
) -> (String, &'static str) {
    let pages = docs.navigation.pages.iter().zip(articles);
    let listed: Vec<(&Page, &Article)> = pages
        .filter(|(page, _)| !page.hidden && !page.noindex && page.link.is_none())
        .filter(|(page, _)| page.place.is_some())
        .filter_map(|(page, article)| Some((page, (*article)?)))
        .collect();
    match name {
        LLMS => (llms(docs, &listed), PLAIN),
        LLMS_FULL => (llms_full(docs, &listed), PLAIN),
        SITEMAP => (sitemap(&listed), XML),
        _ => (robots(), PLAIN),
    }
}

/// Returns whether a page is of the version and language that are shown first.
fn is_default(docs: &Docs, page: &Page) -> bool {
    let first = docs.navigation.first().map(|id| docs.navigation.page(id));
    let of = |page: &Page| {
        let place = page.place.as_ref();
        place.map(|place| (place.language.clone(), place.version.clone()))
    };
    first.is_none_or(|first| of(first) == of(page))
}

fn llms(docs: &Docs, listed: &[(&Page, &Article)]) -> String {
    let name = if docs.config.name.is_empty() {
        "Documentation"
    } else {
        &docs.config.name
    };
    let mut out = format!("# {name}\n\n");
    if let Some(description) = &docs.config.description {
        out += &format!("> {}\n\n", description.replace('\n', " "));
    }
    let mut section: Option<&str> = None;
    for (page, article) in listed.iter().filter(|(page, _)| is_default(docs, page)) {
        let mut line = String::new();
        let place = page.place.as_ref();
        let here = place.and_then(|place| place.breadcrumb.first());
        let here = here.map_or("Pages", |label| label);
        if section != Some(here) {
            let space = if section.is_some() { "\n" } else { "" };
            line += &format!("{space}## {here}\n\n");
        }
        line += &format!("- [{}]({})", page.title, markdown::address(path_of(page)));
        if let Some(summary) = &article.summary {
            line += &format!(": {}", summary.replace('\n', " "));
        }
        line.push('\n');
        if out.len() + line.len() > LLMS_CHARS_MAX {
            break;
        }
        section = Some(here);
        out += &line;
    }
    out
}

fn llms_full(docs: &Docs, listed: &[(&Page, &Article)]) -> String {
    let mut out = String::new();
    for (page, article) in listed.iter().filter(|(page, _)| is_default(docs, page)) {
        let source = format!("Source: {}\n\n", markdown::address(path_of(page)));
        let (title, rest) = article.markdown.split_once("\n\n").unwrap_or(("", ""));
        if out.len() + source.len() + article.markdown.len() > LLMS_FULL_BYTES_MAX {
            break;
        }
        out += &format!("{title}\n\n{source}{rest}\n");
    }
    out
}

fn sitemap(listed: &[(&Page, &Article)]) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n",
    );
    for (page, _) in listed.iter().take(SITEMAP_MAX) {
        // sitemaps.org: entity-escaped; of the five characters a path can have these two.
        let path = encode(path_of(page))
            .replace('&', "&amp;")
            .replace('\'', "&apos;");
        writeln!(out, "<url><loc>{BASE_URL_PLACEHOLDER}/{path}</loc></url>")
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

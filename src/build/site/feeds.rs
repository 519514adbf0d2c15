//! Feeds of changelogs: an RSS file for each page with `Update` elements.
//!
//! Addresses begin with the placeholder of the base URL. An entry has a date if its label or its
//! description is one.
//!
//! Sources: RSS 2.0; RFC 5322 §3.3 (dates).

use std::fmt::Write as _;

use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::markup::Html;
use crate::mdx::Element;
use crate::release::site::feed_path;
use crate::render::html;
use crate::render::layout::path_of;
use crate::render::link::{Map, Start};
use crate::render::messages::Messages;
use crate::site::percent::encode;

/// The media type of a feed.
pub(super) const RSS: &str = "application/rss+xml; charset=utf-8";

/// The ways in which authors write days.
const DAYS: [&str; 5] = ["%Y-%m-%d", "%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%Y/%m/%d"];

/// Returns the pages that have a feed.
fn pages(docs: &Docs) -> impl Iterator<Item = &Page> {
    let pages = docs.navigation.pages.iter();
    pages.filter(|page| docs.has_feed(page))
}

/// Returns the names of all feeds, which are their paths.
pub(super) fn names(docs: &Docs) -> impl Iterator<Item = String> {
    pages(docs).map(|page| feed_path(path_of(page)))
}

/// Writes a feed by its name; `None` if no page has it.
pub(super) fn write(name: &str, docs: &Docs, map: &Map) -> Option<String> {
    let page = pages(docs).find(|page| feed_path(path_of(page)) == name)?;
    let written = docs.written(page)?;
    let address = format!("{BASE_URL_PLACEHOLDER}/{}", encode(path_of(page)));
    let feed = format!("{BASE_URL_PLACEHOLDER}/{}", encode(name));
    let title = match &*docs.config.name {
        "" => page.title.to_string(),
        site => format!("{} - {site}", page.title),
    };
    let description = page.description.as_deref().unwrap_or(&title);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel>\n\
         <title>{}</title>\n<link>{}</link>\n<description>{}</description>\n\
         <atom:link href=\"{}\" rel=\"self\" type=\"application/rss+xml\"/>\n",
        escaped(&title),
        escaped(&address),
        escaped(description),
        escaped(&feed),
    );
    let language = page
        .place
        .as_ref()
        .and_then(|place| place.language.as_deref());
    let messages = Messages::of(language.unwrap_or_default());
    for update in written.updates() {
        let file = format!("{}.mdx", page.slug);
        let content = html::write(
            &file,
            Start::Anywhere,
            &update.children,
            map,
            messages,
            true,
        );
        item(&mut out, update, &address, content.html.as_str());
    }
    Some(out + "</channel></rss>\n")
}

fn item(out: &mut String, update: &Element, address: &str, content: &str) {
    let label = update.words("label").unwrap_or_default();
    let description = update.words("description").unwrap_or_default();
    let title = match (&*label, &*description) {
        ("", description) => description.to_owned(),
        (label, "") => label.to_owned(),
        (label, description) => format!("{label}: {description}"),
    };
    let link = match &update.anchor {
        Some(anchor) => format!("{address}#{}", encode(&anchor.id)),
        None => address.to_owned(),
    };
    write!(
        out,
        "<item><title>{}</title><link>{}</link><guid>{}</guid>",
        escaped(&title),
        escaped(&link),
        escaped(&link),
    )
    .expect("a String takes every character");
    if let Some(day) = day(&label).or_else(|| day(&description)) {
        let date = day.strftime("%a, %d %b %Y 00:00:00 +0000");
        write!(out, "<pubDate>{date}</pubDate>").expect("a String takes every character");
    }
    // The HTML is a text inside the element.
    writeln!(
        out,
        "<description>{}</description></item>",
        escaped(content)
    )
    .expect("a String takes every character");
}

fn day(text: &str) -> Option<jiff::civil::Date> {
    let text = text.trim();
    DAYS.iter()
        .find_map(|form| jiff::civil::Date::strptime(form, text).ok())
}

/// Returns a text as XML 1.0 has it: escaped, without characters that it does not allow.
fn escaped(text: &str) -> String {
    let is_allowed = |c: &char| *c >= ' ' || matches!(c, '\n' | '\t');
    let text: String = text.chars().filter(is_allowed).collect();
    let mut out = Html::default();
    out.text(&text);
    out.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_authors_write_them() {
        for (text, expected) in [
            ("2026-01-31", Some("Sat, 31 Jan 2026")),
            ("January 31, 2026", Some("Sat, 31 Jan 2026")),
            ("Jan 5, 2026", Some("Mon, 05 Jan 2026")),
            ("5 January 2026", Some("Mon, 05 Jan 2026")),
            ("v1.2", None),
            ("January 2026", None),
            ("", None),
        ] {
            let found = day(text).map(|day| day.strftime("%a, %d %b %Y").to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}

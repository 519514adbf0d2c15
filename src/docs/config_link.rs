//! The links of `docs.json`: in navigation, navbar, footer, logo, redirects and the images of `seo`.
//!
//! A link with a scheme leads to another site and is written only if the scheme is safe. Any
//! other link leads to a page, to a file of the documentation or to the source of a redirect.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Location};
use crate::docs::Docs;
use crate::docs::link::{LINK, is_service_path, without_ending};
use crate::docs::navigation::has_scheme;
use crate::source::{Kind, Tree};
use crate::syntax::{Span, Value};

/// The schemes that a link may have; `javascript:` and `data:` could run an author's code.
pub const SCHEMES: [&str; 4] = ["http", "https", "mailto", "tel"];
/// The rule for a link whose scheme is not one of [`SCHEMES`].
pub const SCHEME: &str = "link-scheme";

/// A link in `docs.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigLink {
    /// The address, as written.
    pub href: Box<str>,
    /// The file that contains it.
    pub file: Box<str>,
    /// The place in that file.
    pub location: Location,
    /// Whether it is part of the navigation, whose reader checks schemes and relative paths.
    pub in_navigation: bool,
}

/// Finds the links of `docs.json`: address, place, and whether each is in the navigation.
pub(super) fn find(root: &Value) -> Vec<(Box<str>, Span, bool)> {
    let mut links = Vec::new();
    for (key, in_navigation) in [
        ("navigation", true),
        ("navbar", false),
        ("footer", false),
        ("logo", false),
    ] {
        if let Some(part) = root.get(key) {
            gather(part, in_navigation, &mut links);
        }
    }
    let redirects = root.get("redirects").map_or(&[][..], Value::items);
    for destination in redirects
        .iter()
        .filter_map(|redirect| redirect.get("destination"))
    {
        // A destination with parameters leads to many paths.
        let path = destination
            .text()
            .filter(|path| path.starts_with('/') && !path.contains([':', '*']));
        if let Some(path) = path {
            links.push((path.trim().into(), destination.span, false));
        }
    }
    if let Some(seo) = root.get("seo") {
        gather_images(seo, &mut links);
    }
    links
}

/// Collects the images of the tags of `seo`.
fn gather_images(seo: &Value, links: &mut Vec<(Box<str>, Span, bool)>) {
    let below = seo.get("paths").map_or(&[][..], Value::items);
    for tags in [seo]
        .into_iter()
        .chain(below)
        .filter_map(|value| value.get("metatags"))
    {
        for tag in tags.members() {
            if let Some(href) = tag.value.text().filter(|_| is_image_tag(&tag.key)) {
                links.push((href.trim().into(), tag.value.span, false));
            }
        }
    }
}

/// Returns whether the content of a tag is the address of an image.
#[must_use]
pub fn is_image_tag(name: &str) -> bool {
    matches!(
        name,
        "og:image" | "og:image:url" | "twitter:image" | "twitter:image:src"
    )
}

/// Collects the links of a value. The recursion is bounded: values are at most `DEPTH_MAX` deep.
fn gather(value: &Value, in_navigation: bool, links: &mut Vec<(Box<str>, Span, bool)>) {
    for member in value.members() {
        match member.value.text().map(str::trim) {
            Some(href) if &*member.key == "href" && !href.is_empty() => {
                links.push((href.into(), member.value.span, in_navigation));
            }
            Some(_) => {}
            None if &*member.key == "socials" => {
                for social in member.value.members() {
                    if let Some(href) = social.value.text() {
                        links.push((href.trim().into(), social.value.span, in_navigation));
                    }
                }
            }
            // A language may have its own navbar and footer.
            None => {
                let is_page_part = matches!(&*member.key, "navbar" | "footer");
                gather(&member.value, in_navigation && !is_page_part, links);
            }
        }
    }
    for item in value.items() {
        gather(item, in_navigation, links);
    }
}

/// Checks that the links of `docs.json` lead to something.
#[must_use]
pub fn check(docs: &Docs, tree: &Tree) -> Vec<Diagnostic> {
    let pages = docs.navigation.pages.iter();
    let urls: HashSet<&str> = pages.map(|page| page.url.trim_matches('/')).collect();
    let links = docs.links.iter();
    let wrong = links.filter_map(|link| {
        let href = &*link.href;
        let diagnostic = if has_scheme(href) {
            let scheme = href.split(':').next().unwrap_or_default();
            let is_safe = href.starts_with("//")
                || SCHEMES.iter().any(|safe| safe.eq_ignore_ascii_case(scheme));
            if is_safe || link.in_navigation {
                return None;
            }
            let message = format!("`{href}` is not an address that pages may link; it is left out");
            let help = format!(
                "write a path of this site, or one of {}",
                SCHEMES.join(", ")
            );
            Diagnostic::warning(SCHEME, &link.file, message).help(help)
        } else {
            let is_checked = link.in_navigation && !href.starts_with('/');
            if is_checked || href.starts_with('#') || is_resolved(href, docs, tree, &urls) {
                return None;
            }
            let message =
                format!("`{href}` leads nowhere: there is no such page, file or redirect");
            Diagnostic::warning(LINK, &link.file, message)
        };
        let Location {
            line,
            column,
            length,
        } = link.location;
        Some(diagnostic.at(line, column, length))
    });
    wrong.collect()
}

fn is_resolved(href: &str, docs: &Docs, tree: &Tree, urls: &HashSet<&str>) -> bool {
    let path = href.split(['#', '?']).next().unwrap_or(href);
    let path = path.strip_prefix("./").unwrap_or(path).trim_matches('/');
    let slug = without_ending(path);
    let bare = slug.strip_suffix("/index").unwrap_or(slug);
    let is_file = || {
        let path = tree.docs_root().join(path);
        path.is_ok_and(|path| {
            tree.lookup(&path)
                .is_ok_and(|found| found.kind == Kind::File)
        })
    };
    path.is_empty()
        || docs.pages.at(slug).is_some()
        || urls.contains(bare)
        || is_service_path(path)
        || docs.redirects.matches(slug)
        || is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::{Options, read};
    use crate::source::TreePath;

    fn diagnostics_of(config: &str) -> Vec<String> {
        let files = [
            ("docs.json", config),
            ("index.mdx", "# Welcome"),
            ("files/terms.pdf", "x"),
        ];
        let files = files.map(|(path, text)| {
            (
                TreePath::parse(path).unwrap(),
                bytes::Bytes::from(text.to_owned()),
            )
        });
        let tree = Tree::from_files(files, []);
        let (docs, errors) = read(&tree, &Options::default());
        assert_eq!(errors, []);
        check(&docs, &tree)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_redirect_to_nothing_is_reported() {
        let config = r#"{"name": "A", "navigation": {"pages": ["index"]}, "redirects": [
            {"source": "/a", "destination": "/gone"}, {"source": "/b", "destination": "/a"},
            {"source": "/c/:x", "destination": "/gone/:x"}, {"source": "/d", "destination": "/"},
            {"source": "/e", "destination": "https://e.test"}, {"source": "/f", "destination": "/files/terms.pdf"}]}"#;
        assert_eq!(
            diagnostics_of(config),
            [
                "docs.json:2:45: warning[link]: `/gone` leads nowhere: there is no such page, file or redirect"
            ]
        );
    }

    #[test]
    fn a_broken_link_in_docs_json_is_a_warning() {
        let config = r#"{"name": "A", "navigation": {"pages": ["index"], "global": {"anchors": [
            {"anchor": "Nowhere", "href": "/nope"}, {"anchor": "Home", "href": "/index"}]}},
            "redirects": [{"source": "/old", "destination": "/"}],
            "logo": {"light": "/files/terms.pdf", "href": "/gone"},
            "navbar": {"links": [{"label": "Terms", "href": "/files/terms.pdf"},
                {"label": "Old", "href": "/old#x"}, {"label": "Agents", "href": "/llms.txt"}]},
            "footer": {"links": [{"items": [{"label": "None", "href": "absent"}]}]}}"#;
        assert_eq!(
            diagnostics_of(config),
            [
                "docs.json:2:43: warning[link]: `/nope` leads nowhere: there is no such page, file or redirect",
                "docs.json:7:71: warning[link]: `absent` leads nowhere: there is no such page, file or redirect",
                "docs.json:4:59: warning[link]: `/gone` leads nowhere: there is no such page, file or redirect",
            ]
        );
    }

    #[test]
    fn a_link_of_docs_json_to_a_script_is_a_warning() {
        let config = r#"{"name": "A", "navigation": {"pages": ["index"]},
            "navbar": {"links": [{"label": "Run", "href": "JavaScript:alert(1)"}],
                "primary": {"label": "Mail", "href": "mailto:a@b.test"}},
            "footer": {"socials": {"x": "data:text/html,x"}}}"#;
        let diagnostics = diagnostics_of(config);
        assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
        assert!(diagnostics[0].starts_with("docs.json:2:59: warning[link-scheme]: `JavaScript:"));
        assert!(diagnostics[1].starts_with("docs.json:4:41: warning[link-scheme]: `data:"));
    }
}

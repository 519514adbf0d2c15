//! Redirects from the old paths of pages.
//!
//! A source is a path whose segments may be `:name` (one segment), `:name*` or `*` (the
//! rest). If a page has the path of a source, the page is served. A chain of redirects is
//! resolved here ([`resolve`]), so a client is sent directly to its end. A cycle is an error.
//!
//! **Limits.** A chain is resolved only if source and destination are plain paths. If the
//! source is a pattern, or the destination uses parts of the source, the client follows each
//! redirect.
//!
//! Sources: RFC 9110 §15.4.8 (307), §15.4.9 (308).

use std::collections::{HashMap, HashSet};

use crate::docs::Extent;
use crate::docs::config::Redirect;
use crate::docs::navigation::{Navigation, has_scheme};
use crate::site::redirect::{self as pattern, NAME_ENDS, Patterns, is_pattern, name_of};
use crate::syntax::{Diagnostics, SpanDiagnostic};

/// The rule about redirects that cannot work.
pub const REDIRECT: &str = "redirect";
/// How many redirects a site may have; further ones are ignored.
pub const COUNT_MAX: usize = 20_000;

/// How many redirects of a chain are followed; a client follows the rest.
const CHAIN_MAX: usize = 32;

/// The redirects of the documentation; chains are resolved.
#[derive(Debug, Default)]
pub struct Redirects {
    list: Vec<Redirect>,
    sources: Patterns,
}

// === impl Redirects ===

impl Redirects {
    fn new(list: Vec<Redirect>) -> Self {
        let sources = Patterns::new(list.iter().map(|redirect| &*redirect.source));
        Self { list, sources }
    }

    /// Returns the redirects in the order of `docs.json`.
    #[must_use]
    pub fn list(&self) -> &[Redirect] {
        &self.list
    }

    /// Returns whether a request for a path is redirected.
    ///
    /// The answer is the same as when the site is served.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.sources.find(plain(path)).is_some()
    }
}

/// Replaces the destination of each redirect by the end of its chain.
///
/// A resolved redirect is permanent if every redirect of the chain is. A fragment or query
/// stays unless a later redirect sets another.
#[must_use]
pub(super) fn resolve(redirects: &[Redirect], navigation: &Navigation) -> Redirects {
    let pages = navigation.pages.iter().map(|page| plain(&page.url));
    let pages: HashSet<&str> = pages.collect();
    let mut exact: HashMap<&str, &Redirect> = HashMap::new();
    for redirect in redirects.iter().take(COUNT_MAX) {
        if !is_pattern(&redirect.source) {
            exact.entry(plain(&redirect.source)).or_insert(redirect);
        }
    }
    let end = |redirect: &Redirect| {
        let mut resolved = redirect.clone();
        let mut seen = HashSet::from([plain(&redirect.source)]);
        for _ in 0..CHAIN_MAX {
            let path = plain(&resolved.destination);
            if has_scheme(&resolved.destination) || pages.contains(path) {
                break;
            }
            let Some(&next) = exact.get(path) else {
                break;
            };
            if !seen.insert(plain(&next.source)) {
                return redirect.clone();
            }
            resolved.destination = with_query_of(&resolved.destination, &next.destination);
            resolved.permanent &= next.permanent;
        }
        resolved
    };
    Redirects::new(redirects.iter().take(COUNT_MAX).map(end).collect())
}

/// RFC 9110 §10.2.2: the target of a redirect inherits a fragment unless it has one.
fn with_query_of(from: &str, to: &str) -> Box<str> {
    let parts = |url| {
        let (rest, fragment) = split(url, '#');
        let (path, query) = split(rest, '?');
        (path, query, fragment)
    };
    let (_, query, fragment) = parts(from);
    let (path, own_query, own_fragment) = parts(to);
    let mut url = path.to_owned();
    for (mark, part) in [('?', own_query.or(query)), ('#', own_fragment.or(fragment))] {
        if let Some(part) = part {
            url.push(mark);
            url.push_str(part);
        }
    }
    url.into()
}

fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// Checks redirects for cycles, for sources that are pages or that no request matches, and for
/// names in a destination that the source lacks.
pub(super) fn check(
    redirects: &[Redirect],
    navigation: &Navigation,
    extent: Extent,
    diagnostics: &mut Diagnostics,
) {
    if redirects.len() > COUNT_MAX {
        let message = format!(
            "there are more than {COUNT_MAX} redirects; this one and those after it are left out"
        );
        let diagnostic =
            SpanDiagnostic::error(crate::syntax::LIMIT, redirects[COUNT_MAX].span, message);
        diagnostics.push(diagnostic);
    }
    let redirects = &redirects[..redirects.len().min(COUNT_MAX)];
    limits(redirects, diagnostics);
    let pages: HashSet<&str> = navigation
        .pages
        .iter()
        .map(|page| plain(&page.url))
        .collect();
    let mut exact: HashMap<&str, &Redirect> = HashMap::new();
    for redirect in redirects {
        let warn = |message: String| SpanDiagnostic::warning(REDIRECT, redirect.span, message);
        let optional = redirect.source.split('/').find(|segment| {
            let name = segment.strip_prefix(':');
            name.is_some_and(|name| name.len() > 1 && name.ends_with('?'))
        });
        if let Some(part) = optional {
            let message = format!("`{part}` is optional, which a redirect does not support");
            let help = "write two redirects, one with the part and one without it";
            diagnostics.push(warn(message).help(help));
            continue;
        }
        if redirect.source.contains(['#', '?']) {
            let message = format!(
                "no request matches `{}`, because a path has no `?` and no `#`",
                redirect.source
            );
            diagnostics.push(warn(message).help("a source is a path, without `?` and `#`"));
            continue;
        }
        if has_scheme(&redirect.source) {
            diagnostics.push(warn(format!(
                "`{}` is a URL; a source is a path of this site",
                redirect.source
            )));
            continue;
        }
        let source = plain(&redirect.source);
        if let Some(segment) = source.split('/').find(|segment| holds_name(segment)) {
            let message = format!("`{segment}` is no variable segment: a name is a whole segment");
            let help = "write `*` for a part of a segment, such as `beta-*`";
            diagnostics.push(warn(message).help(help));
        }
        if is_pattern(source) {
            captures(redirect, diagnostics);
            continue;
        }
        if extent == Extent::Everything && pages.contains(source) {
            let message = format!("`/{source}` is a page; the redirect has no effect");
            diagnostics.push(warn(message).help("remove the redirect, or the page"));
        }
        if let Some(other) = exact.insert(source, redirect)
            && other.destination != redirect.destination
        {
            diagnostics.push(warn(format!(
                "`/{source}` is redirected more than once; the first redirect counts"
            )));
            exact.insert(source, other);
        }
    }
    find_cycles(redirects, &exact, diagnostics);
}

/// Checks the limits of a pattern, which keep the cost of a request for a missing page small.
fn limits(redirects: &[Redirect], diagnostics: &mut Diagnostics) {
    let mut shapes: HashSet<pattern::Shape> = HashSet::new();
    for redirect in redirects {
        let source = redirect.source.trim_matches('/');
        let segments = source.split('/').count();
        let mut error = |span, message: String, help: &str| {
            let diagnostic = SpanDiagnostic::error(crate::syntax::LIMIT, span, message);
            diagnostics.push(diagnostic.help(help));
        };
        if source.len() > pattern::SOURCE_BYTES_MAX {
            let message = format!(
                "the source of this redirect has {} bytes; {} are allowed",
                source.len(),
                pattern::SOURCE_BYTES_MAX
            );
            error(redirect.span, message, "shorten the source");
            continue;
        }
        if redirect.destination.len() > pattern::DESTINATION_BYTES_MAX {
            let message = format!(
                "the destination of this redirect has {} bytes; {} are allowed",
                redirect.destination.len(),
                pattern::DESTINATION_BYTES_MAX
            );
            error(
                redirect.destination_span,
                message,
                "shorten the destination",
            );
        }
        if !is_pattern(source) {
            continue;
        }
        if segments > pattern::SEGMENTS_MAX {
            let message = format!(
                "the source of this redirect has {segments} segments; a source with a variable \
                 segment may have {}",
                pattern::SEGMENTS_MAX
            );
            error(
                redirect.span,
                message,
                "end the source with `:name*`, which matches the rest of a path",
            );
            continue;
        }
        let (shape, _) = pattern::Shape::of(source);
        if shapes.len() < pattern::SHAPES_MAX {
            shapes.insert(shape);
        } else if !shapes.contains(&shape) {
            let message = format!(
                "the sources of the redirects have their variable segments in more than {} \
                 different places",
                pattern::SHAPES_MAX
            );
            error(
                redirect.span,
                message,
                "write a redirect without variable segments for each page, or use the places that \
                 another redirect has",
            );
            return;
        }
    }
}

/// Checks that the source has every name that the destination uses.
fn captures(redirect: &Redirect, diagnostics: &mut Diagnostics) {
    let names: HashSet<&str> = redirect.source.split('/').filter_map(name_of).collect();
    let destination = match redirect.destination.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => &redirect.destination,
    };
    for used in destination.split(NAME_ENDS).filter_map(name_of) {
        if !names.contains(used) {
            let message = format!("`:{used}` is in the destination but not in the source");
            diagnostics.push(SpanDiagnostic::error(
                REDIRECT,
                redirect.destination_span,
                message,
            ));
        }
    }
}

/// Returns whether a segment has a name after other text, such as `beta-:name`. A title such as
/// `Special:Pages` has none.
fn holds_name(segment: &str) -> bool {
    let mut colons = segment.match_indices(':');
    colons.any(|(at, _)| {
        let is_joined = segment[..at].ends_with(['-', '_', '.', '~']);
        is_joined && segment[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic())
    })
}

fn find_cycles(
    redirects: &[Redirect],
    exact: &HashMap<&str, &Redirect>,
    diagnostics: &mut Diagnostics,
) {
    let mut settled: HashSet<&str> = HashSet::new();
    for redirect in redirects {
        let mut visited: Vec<&str> = Vec::new();
        let mut at = plain(&redirect.source);
        while let Some(next) = exact.get(at) {
            if settled.contains(at) {
                break;
            }
            if let Some(start) = visited.iter().position(|seen| *seen == at) {
                let cycle: Vec<_> = visited[start..]
                    .iter()
                    .map(|path| format!("/{path}"))
                    .collect();
                let message = format!("the redirects form a cycle: {} → /{at}", cycle.join(" → "));
                diagnostics.push(SpanDiagnostic::error(REDIRECT, exact[at].span, message));
                break;
            }
            visited.push(at);
            if has_scheme(&next.destination) {
                break;
            }
            at = plain(&next.destination);
        }
        settled.extend(visited);
    }
}

fn plain(path: &str) -> &str {
    path.split(['?', '#'])
        .next()
        .unwrap_or(path)
        .trim_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::navigation::tree::Page;
    use crate::syntax::Span;

    fn redirects(pairs: &[(&str, &str)]) -> Vec<Redirect> {
        let redirects = pairs.iter().map(|(source, destination)| Redirect {
            source: (*source).into(),
            destination: (*destination).into(),
            permanent: true,
            span: Span::default(),
            destination_span: Span::default(),
        });
        redirects.collect()
    }

    fn navigation(urls: &[&str]) -> Navigation {
        let pages = urls.iter();
        let pages = pages.map(|url| Page::of_file(url.trim_matches('/'), false));
        Navigation {
            pages: pages.collect(),
            ..Navigation::default()
        }
    }

    fn found(pairs: &[(&str, &str)]) -> Vec<String> {
        found_beside(pairs, &[], Extent::Everything)
    }

    /// Checks redirects beside the pages of these URLs.
    fn found_beside(pairs: &[(&str, &str)], pages: &[&str], extent: Extent) -> Vec<String> {
        let mut diagnostics = Diagnostics::default();
        diagnostics.files.add("docs.json", "".into());
        check(
            &redirects(pairs),
            &navigation(pages),
            extent,
            &mut diagnostics,
        );
        diagnostics
            .finish()
            .into_iter()
            .map(|d| d.message)
            .collect()
    }

    #[test]
    fn a_cycle_is_one_error_and_a_chain_is_valid() {
        assert_eq!(
            found(&[("/a", "/b"), ("/b", "/c"), ("/c", "/a"), ("/d", "/a")]),
            ["the redirects form a cycle: /a → /b → /c → /a"]
        );
        assert_eq!(found(&[("/a", "/b"), ("/b", "/c")]), Vec::<String>::new());
    }

    #[test]
    fn the_last_query_and_fragment_of_a_chain_count() {
        for (from, to, expected) in [
            ("/b", "/c", "/c"),
            ("/b#x", "/c", "/c#x"),
            ("/b#x", "/c#y", "/c#y"),
            ("/b?q#x", "/c", "/c?q#x"),
            ("/b?q", "/c?r", "/c?r"),
        ] {
            assert_eq!(&*super::with_query_of(from, to), expected);
        }
    }

    #[test]
    fn a_link_is_redirected_as_the_served_site_redirects_it() {
        let redirects = redirects(&[("/old/:x", "/a"), ("/b?page=1", "/a"), ("/c#top", "/a")]);
        let redirects = resolve(&redirects, &Navigation::default());
        for (path, expected) in [
            ("old/x", true),
            ("/old/x/", true),
            ("/old/x?page=1#top", true),
            ("old/x/y", false),
            // A source with a query or a fragment matches no request.
            ("b", false),
            ("b?page=1", false),
            ("c#top", false),
        ] {
            assert_eq!(redirects.matches(path), expected, "{path}");
        }
    }

    #[test]
    fn a_source_has_one_destination() {
        assert_eq!(found(&[("/a", "/b"), ("/a/", "/c")]).len(), 1);
        assert_eq!(found(&[("/a", "/b"), ("/a", "/b")]).len(), 0);
    }

    #[test]
    fn an_optional_part_is_named() {
        assert_eq!(
            found(&[("/:backend?", "/a"), ("/docs/:page?/x", "/b")]),
            [
                "`:backend?` is optional, which a redirect does not support",
                "`:page?` is optional, which a redirect does not support",
            ]
        );
    }

    #[test]
    fn sources_over_the_limits_are_errors_that_say_the_limit() {
        let long = "/a".repeat(350) + "/:x";
        assert_eq!(
            found(&[(&long, "/b")]),
            [
                "the source of this redirect has 351 segments; a source with a variable segment may have 32"
            ]
        );
        // Without a variable segment the number of segments costs nothing.
        assert_eq!(found(&[(&"/a".repeat(350), "/b")]).len(), 0);
        let bytes = "/".to_owned() + &"a".repeat(1025);
        assert_eq!(
            found(&[(&bytes, "/b")]),
            ["the source of this redirect has 1025 bytes; 1024 are allowed"]
        );
        let shapes: Vec<String> = (0..200).map(|n| format!("/x{n}-*")).collect();
        let shapes: Vec<_> = shapes
            .iter()
            .map(|source| (source.as_str(), "/b"))
            .collect();
        assert_eq!(
            found(&shapes),
            [
                "the sources of the redirects have their variable segments in more than 128 different places"
            ]
        );
        assert_eq!(found(&shapes[..128]).len(), 0);
    }

    #[test]
    fn names_in_a_destination_come_from_the_source() {
        assert_eq!(
            found(&[("/a/:x", "/b/:x"), ("/c/:rest*", "https://d.e:80/:rest*")]).len(),
            0
        );
        assert_eq!(
            found(&[("/a/:x", "/b/:y")]),
            ["`:y` is in the destination but not in the source"]
        );
    }

    /// Resolves redirects beside the page `/page`.
    fn resolved(redirects: &[Redirect]) -> Vec<(String, bool)> {
        let resolved = resolve(redirects, &navigation(&["/page"]));
        let ends = resolved.list().iter();
        ends.map(|redirect| (redirect.destination.to_string(), redirect.permanent))
            .collect()
    }

    #[test]
    fn a_chain_is_replaced_by_its_end() {
        let mut chain = redirects(&[
            ("/a", "/b/"),
            ("/b", "/c?q"),
            ("/c", "/d"),
            // A chain ends at a page, at another site, and where a pattern would match.
            ("/to-page", "/page"),
            ("/page", "/d"),
            ("/to-site", "https://b.test/a"),
            ("/to-network", "//b.test/a"),
            ("/to-pattern", "/old/x"),
            ("/old/:x", "/d"),
            // If two redirects have the same source, the first one is used.
            ("/a", "/wrong"),
        ]);
        chain[1].permanent = false;
        let ends = resolved(&chain);
        let ends: Vec<_> = ends.iter().map(|(end, is)| (end.as_str(), *is)).collect();
        assert_eq!(
            ends,
            [
                ("/d?q", false),
                ("/d?q", false),
                ("/d", true),
                ("/page", true),
                ("/d", true),
                ("https://b.test/a", true),
                ("//b.test/a", true),
                ("/old/x", true),
                ("/d", true),
                ("/wrong", true),
            ]
        );
    }

    #[test]
    fn a_cycle_is_left_as_it_is_and_a_long_chain_is_resolved_in_part() {
        let cycle = redirects(&[("/a", "/b"), ("/b", "/c"), ("/c", "/b")]);
        let ends = resolved(&cycle);
        assert_eq!(ends[0].0, "/b");
        assert_eq!(ends[1].0, "/c");

        let pairs: Vec<_> = (0..40)
            .map(|n| (format!("/{n}"), format!("/{}", n + 1)))
            .collect();
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        let ends = resolved(&redirects(&pairs));
        assert_eq!(ends[0].0, format!("/{}", CHAIN_MAX + 1));
        assert_eq!(ends[39].0, "/40");
    }

    #[test]
    fn redirects_over_the_limit_are_an_error_and_match_nothing() {
        let pairs: Vec<_> = (0..=COUNT_MAX).map(|n| format!("/{n}")).collect();
        let pairs: Vec<_> = pairs.iter().map(|source| (source.as_str(), "/x")).collect();
        assert_eq!(found(&pairs[..COUNT_MAX]), Vec::<String>::new());
        assert_eq!(
            found(&pairs),
            ["there are more than 20000 redirects; this one and those after it are left out"]
        );
        let resolved = resolve(&redirects(&pairs), &Navigation::default());
        assert!(resolved.matches("19999"));
        assert!(!resolved.matches("20000"));
    }

    #[test]
    fn a_source_that_never_matches_is_a_warning() {
        for (source, expected) in [
            (
                "/a?b",
                "no request matches `/a?b`, because a path has no `?` and no `#`",
            ),
            (
                "/a#b",
                "no request matches `/a#b`, because a path has no `?` and no `#`",
            ),
            (
                "https://a.test/b",
                "`https://a.test/b` is a URL; a source is a path of this site",
            ),
        ] {
            assert_eq!(found(&[(source, "/c")]), [expected]);
        }
        let beside = |source, extent| found_beside(&[(source, "/b")], &["/guides/a"], extent);
        assert_eq!(
            beside("/guides/a/", Extent::Everything),
            ["`/guides/a` is a page; the redirect has no effect"]
        );
        // Which pages exist is known only if all files were read. A pattern may match other paths.
        assert_eq!(beside("/guides/a", Extent::Config), Vec::<String>::new());
        assert_eq!(
            beside("/guides/:x", Extent::Everything),
            Vec::<String>::new()
        );
        assert_eq!(beside("/guides", Extent::Everything), Vec::<String>::new());
        // `:?` has no name, so it is not an optional part.
        assert_eq!(
            found(&[("/a:b", "/c"), ("/:?", "/c")]),
            ["no request matches `/:?`, because a path has no `?` and no `#`"]
        );
    }

    #[test]
    fn the_first_of_two_different_redirects_counts() {
        assert_eq!(
            found(&[("/a", "/b"), ("/a", "/c"), ("/a", "/b"), ("/b", "/a")]),
            [
                "the redirects form a cycle: /a → /b → /a",
                "`/a` is redirected more than once; the first redirect counts",
            ]
        );
    }

    #[test]
    fn a_redirect_to_another_site_ends_a_chain() {
        let pairs = [("/a", "https://b.test/a"), ("/https:/b.test/a", "/a")];
        assert_eq!(found(&pairs), Vec::<String>::new());
        assert_eq!(
            found(&[("/a", "/a")]),
            ["the redirects form a cycle: /a → /a"]
        );
    }

    #[test]
    fn the_limits_are_the_documented_ones() {
        let bytes = |length: usize| "/".to_owned() + &"a".repeat(length);
        let within = bytes(pattern::SOURCE_BYTES_MAX);
        assert_eq!(found(&[(&within, "/b")]), Vec::<String>::new());
        let destination = bytes(pattern::DESTINATION_BYTES_MAX - 1);
        assert_eq!(found(&[("/a", &destination)]), Vec::<String>::new());
        assert_eq!(
            found(&[("/a", &bytes(pattern::DESTINATION_BYTES_MAX))]),
            ["the destination of this redirect has 4097 bytes; 4096 are allowed"]
        );
        let segments = |count: usize| "/a".repeat(count - 1) + "/:x";
        assert_eq!(
            found(&[(&segments(pattern::SEGMENTS_MAX), "/b")]),
            Vec::<String>::new()
        );
        assert_eq!(
            found(&[(&segments(pattern::SEGMENTS_MAX + 1), "/b")]).len(),
            1
        );
        // A shape that another redirect has stays allowed, and the error is reported once.
        let shapes: Vec<_> = (0..=pattern::SHAPES_MAX + 1)
            .map(|n| format!("/x{n}-*"))
            .collect();
        let mut pairs: Vec<_> = shapes[..pattern::SHAPES_MAX]
            .iter()
            .map(|source| (source.as_str(), "/b"))
            .collect();
        pairs.push(("/x0-*", "/b"));
        assert_eq!(found(&pairs), Vec::<String>::new());
        pairs.push((&shapes[pattern::SHAPES_MAX], "/b"));
        assert_eq!(found(&pairs).len(), 1);
        pairs.push((&shapes[pattern::SHAPES_MAX + 1], "/b"));
        assert_eq!(found(&pairs).len(), 1);
    }

    #[test]
    fn a_name_within_a_segment_is_a_warning() {
        assert_eq!(
            found(&[("/a/b-:x", "/b"), ("/wiki/Special:Pages", "/b")]),
            ["`b-:x` is no variable segment: a name is a whole segment"]
        );
    }

    #[test]
    fn names_in_queries_and_fragments_come_from_the_source_too() {
        assert_eq!(
            found(&[("/a/:x", "/b?c=:x&d=:y#:z")]),
            [
                "`:y` is in the destination but not in the source",
                "`:z` is in the destination but not in the source",
            ]
        );
        // The host and the port of a URL are not names, and `:` alone is none.
        assert_eq!(
            found(&[
                ("/a/:x", "https://:y:80"),
                ("/b/:x", "/c/:"),
                ("/d/:x+", "/e/:x*")
            ]),
            Vec::<String>::new()
        );
    }
}

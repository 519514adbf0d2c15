//! Any text as the source of a redirect, a path and a destination.
//!
//! The parts are separated by zero bytes. A source without variable segments matches only itself, a
//! filled destination is not longer than its values allow, and a path is found among patterns if
//! its source matches it. The check of the documentation accepts a link exactly if the served site
//! redirects it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost::docs::{self, Docs, Options};
use waypost::release::site::{Redirect, SiteDescription};
use waypost::site::redirect::{Patterns, SEGMENTS_MAX, SOURCE_BYTES_MAX, captures, is_pattern};
use waypost::source::{Tree, TreePath};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let mut parts = text.splitn(3, '\0');
    let (Some(source), Some(path)) = (parts.next(), parts.next()) else {
        return;
    };
    let destination = parts.next().unwrap_or_default();
    // Sources and paths have no slash at either end.
    let (source, path) = (source.trim_matches('/'), path.trim_matches('/'));
    let found = captures(source, path);
    let is_within_limits =
        source.len() <= SOURCE_BYTES_MAX && source.split('/').count() <= SEGMENTS_MAX;
    if is_within_limits {
        let is_found = source == path || found.is_some();
        assert_eq!(Patterns::new([source]).find(path).is_some(), is_found);
    }
    if !is_pattern(source) {
        assert_eq!(found.is_some(), source == path);
    }
    if let Some(found) = found {
        let filled = found.fill(destination);
        let segments = destination.split('/').count();
        // A byte of a value is encoded as three.
        assert!(filled.len() <= destination.len() + segments * 3 * path.len());
        // Without a variable, nothing is replaced.
        if !is_pattern(source) {
            assert_eq!(filled, destination);
        }
    }
    // A link ends before its query; a request has none.
    if !path.contains(['?', '#']) {
        let redirects = read(source, destination).redirects;
        let redirect = |redirect: &docs::config::Redirect| Redirect {
            source: redirect.source.clone(),
            destination: redirect.destination.clone(),
            permanent: redirect.permanent,
        };
        let description = SiteDescription::new("", redirects.list().iter().map(redirect).collect());
        assert_eq!(
            redirects.matches(path),
            description.redirect(path).is_some()
        );
    }
});

/// Reads documentation with one redirect.
fn read(source: &str, destination: &str) -> Docs {
    let config = serde_json::json!({
        "redirects": [{"source": source, "destination": destination}],
    });
    let name = TreePath::parse("docs.json").expect("the name is a path");
    let tree = Tree::from_files([(name, config.to_string().into())], []);
    docs::read(&tree, &Options::default()).0
}

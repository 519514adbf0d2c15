//! Pages that were removed without a redirect.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, closest};
use crate::docs::page::{slug_of, url};
use crate::docs::{CONFIG, Docs};
use crate::source::{Tree, TreePath};

/// The rule that a page that moved or was removed has a redirect.
pub const REMOVED: &str = "page-removed";

/// Finds the pages of an earlier commit that no longer exist and have no redirect.
///
/// The help of each diagnostic names the page that probably replaces it.
#[must_use]
pub fn check(before: &[TreePath], docs: &Docs, tree: &Tree) -> Vec<Diagnostic> {
    let root = tree.docs_root();
    let Ok(config) = root.join(CONFIG) else {
        return Vec::new();
    };
    let before = before.iter().filter_map(|path| path.strip_prefix(root));
    let before = before.filter(|below| !docs.ignored.is_ignored(below));
    let before: Vec<_> = before.filter_map(slug_of).map(|slug| url(&slug)).collect();
    let now: Vec<_> = docs
        .navigation
        .pages
        .iter()
        .map(|page| &*page.url)
        .collect();
    let is_redirected = |path: &str| docs.redirects.matches(path);
    find(
        before.iter().map(String::as_str),
        &now,
        is_redirected,
        &config,
    )
}

/// Finds the URLs of earlier pages that no longer exist and have no redirect; `config` is the
/// file to which redirects are added.
pub fn find<'u>(
    before: impl Iterator<Item = &'u str>,
    now: &[&str],
    is_redirected: impl Fn(&str) -> bool,
    config: &TreePath,
) -> Vec<Diagnostic> {
    let pages: HashSet<&str> = now.iter().copied().collect();
    let removed =
        before.filter(|url| !pages.contains(url) && !is_redirected(url.trim_start_matches('/')));
    let diagnostics = removed.map(|url| {
        let message = format!("the page `{url}` was removed without a redirect");
        let diagnostic = Diagnostic::warning(REMOVED, config.as_str(), message);
        match successor(url, now) {
            Some(to) => diagnostic.help(format!(
                "add a redirect: {{\"source\": \"{url}\", \"destination\": \"{to}\"}}"
            )),
            None => diagnostic.help("add a redirect to the page that replaces it"),
        }
    });
    diagnostics.collect()
}

/// Returns the only page with the same name elsewhere, or else one with a similar path.
fn successor<'u>(url: &str, pages: &[&'u str]) -> Option<&'u str> {
    let name = |url: &str| url.rsplit('/').next().map(str::to_owned);
    let mut same = pages.iter().filter(|page| name(page) == name(url));
    match (same.next(), same.next()) {
        (Some(only), None) => Some(only),
        _ => {
            // The slash that all have in common would make short paths similar.
            let path = |url: &'u str| url.strip_prefix('/').unwrap_or(url);
            let paths = pages.iter().map(|page| path(page));
            let paths = paths.filter(|path| !path.is_empty());
            let near = closest(url.trim_start_matches('/'), paths)?;
            pages.iter().copied().find(|page| path(page) == near)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::{Options, read};

    #[test]
    fn a_page_that_moved_is_a_warning_with_its_successor() {
        let path = |text: &str| TreePath::parse(text).unwrap();
        let config = r#"{"name": "A", "navigation": {"pages": ["new/pay", "kept"]},
            "redirects": [{"source": "/redirected", "destination": "/kept"}]}"#;
        let files = [
            ("docs.json", config),
            ("new/pay.mdx", ""),
            ("kept.mdx", ""),
            ("index.mdx", ""),
        ];
        let tree = Tree::from_files(files.map(|(name, text)| (path(name), text.into())), []);
        let (docs, errors) = read(&tree, &Options::default());
        assert_eq!(errors, []);
        let before = [
            "old/pay.mdx",
            "kept.mdx",
            "redirected.md",
            "README.md",
            "a.png",
            "skill.md",
            "b.mdx",
        ];
        let found = check(&before.map(path), &docs, &tree);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs.json: warning[page-removed]: the page `/old/pay` was removed without a redirect \
              (add a redirect: {\"source\": \"/old/pay\", \"destination\": \"/new/pay\"})",
                "docs.json: warning[page-removed]: the page `/b` was removed without a redirect \
              (add a redirect to the page that replaces it)",
            ]
        );
    }
}

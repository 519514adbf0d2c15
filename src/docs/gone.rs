//! Pages that were there and now lead nowhere.

use crate::diagnostic::{Diagnostic, closest};
use crate::docs::page::ignored::Ignored;
use crate::docs::page::{slug_of, url};
use crate::docs::{CONFIG, Docs, redirect};
use crate::source::{Tree, TreePath};

/// The rule that a page which moved without a redirect breaks.
pub const GONE: &str = "page-gone";

/// Finds the pages among the files of an earlier commit that now are neither pages nor
/// redirected, with their likely successors.
#[must_use]
pub fn check(before: &[TreePath], docs: &Docs, tree: &Tree) -> Vec<Diagnostic> {
    let ignored = Ignored::read(tree);
    let root = tree.docs_root();
    let Ok(config) = root.join(CONFIG) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for below in before.iter().filter_map(|path| path.strip_prefix(root)) {
        let Some(slug) = slug_of(below) else {
            continue;
        };
        let url = url(&slug);
        let path = url.trim_start_matches('/');
        let is_page = docs.navigation.pages.iter().any(|page| *page.url == *url);
        if is_page || ignored.is_ignored(below) || redirect::matches(&docs.config.redirects, path) {
            continue;
        }
        let message = format!("the page `{url}` is gone, and nothing is redirected from it");
        let finding = Diagnostic::warning(GONE, config.as_str(), message);
        found.push(match successor(&slug, docs) {
            Some(to) => finding.help(format!(
                "add a redirect: {{\"source\": \"{url}\", \"destination\": \"{to}\"}}"
            )),
            None => finding.help("add a redirect to what takes its place"),
        });
    }
    found
}

/// A page of the same name elsewhere, or of nearly the same path.
fn successor<'d>(slug: &str, docs: &'d Docs) -> Option<&'d str> {
    let pages = &docs.navigation.pages;
    let name = |slug: &str| slug.rsplit('/').next().map(str::to_owned);
    let mut same = pages.iter().filter(|page| name(&page.slug) == name(slug));
    match (same.next(), same.next()) {
        (Some(only), None) => Some(&only.url),
        _ => {
            let near = closest(slug, pages.iter().map(|page| &*page.slug))?;
            let page = pages.iter().find(|page| *page.slug == *near)?;
            Some(&page.url)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::{Options, read};

    #[test]
    fn a_page_that_moved_is_told_with_its_successor() {
        let path = |text: &str| TreePath::parse(text).unwrap();
        let config = r#"{"name": "A", "navigation": {"pages": ["new/pay", "kept"]},
            "redirects": [{"source": "/redirected", "destination": "/kept"}]}"#;
        let files = [("docs.json", config), ("new/pay.mdx", ""), ("kept.mdx", "")];
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
        ];
        let found = check(&before.map(path), &docs, &tree);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "docs.json: warning[page-gone]: the page `/old/pay` is gone, and nothing is redirected from it \
              (add a redirect: {\"source\": \"/old/pay\", \"destination\": \"/new/pay\"})"
            ]
        );
    }
}

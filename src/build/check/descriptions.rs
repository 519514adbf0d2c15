//! The links in the descriptions of specifications.
//!
//! A description is shown on the page of its endpoint or schema. A relative link in it starts at
//! that page, so it is checked for each page that shows it. A link that is broken in the same way on
//! several pages is reported once, at its place in the specification.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Checker, From, Lines, diagnostic, is_inside};
use crate::docs::openapi::Specification;
use crate::mdx::{Node, read_description};
use crate::render::article::Source;
use crate::source::TreePath;
use crate::syntax::{FILE_BYTES_MAX, Span, Value};

/// The links into the site that the texts of a specification have, with the first text of each.
type LinkSpans = HashMap<Box<str>, Span>;

// === impl Checker ===

impl Checker<'_> {
    /// Checks the links in the descriptions that pages show.
    pub(super) fn descriptions(&mut self) {
        let docs = self.docs;
        for (number, specification) in docs.specifications.iter().enumerate() {
            let mut spans = LinkSpans::new();
            gather(&specification.root, &mut spans);
            if spans.is_empty() {
                continue;
            }
            let text = self.text_of(specification);
            let pages = docs.navigation.pages.iter();
            for page in pages.filter(|page| page.specification() == Some(number)) {
                let source = Source::of(docs, page);
                let Ok(file) = self.tree.docs_root().join(&source.file) else {
                    continue;
                };
                let from = From {
                    file: &file,
                    url: &page.url,
                };
                let mut shown = Vec::new();
                links(&source.described(), &mut shown);
                for target in shown {
                    if let Some(span) = spans.get(&target) {
                        self.described(from, &target, *span, specification, text.as_deref());
                    }
                }
            }
        }
    }

    /// Checks a link in a description that a page shows.
    fn described(
        &mut self,
        from: From<'_>,
        target: &str,
        span: Span,
        specification: &Specification,
        text: Option<&str>,
    ) {
        let Err(broken) = self.link(from, target) else {
            return;
        };
        let file = &specification.path;
        let reported = (file.clone(), span.start, broken.1.as_str().into());
        if !self.reported.insert(reported) {
            return;
        }
        let mut diagnostic = diagnostic(broken, file);
        let start = span.start as usize;
        // Escapes of JSON may hide the address: then its text is the place.
        if let Some(text) = text
            && let Some(value) = text.get(start..span.end as usize)
        {
            let (before, length) = match value.find(target) {
                Some(before) => (before, target.chars().count()),
                None => (0, 0),
            };
            let (line, column) = Lines::of(text).locate(start + before);
            diagnostic = diagnostic.at(line, column, u32::try_from(length).unwrap_or(u32::MAX));
        }
        self.found.push(diagnostic);
    }

    /// Returns the text of a specification; `None` if it is not a file of the repository.
    fn text_of(&self, specification: &Specification) -> Option<Arc<str>> {
        let path = TreePath::parse(&specification.path).ok()?;
        let bytes = self.tree.read_at_most(&path, FILE_BYTES_MAX).ok()?;
        std::str::from_utf8(&bytes).ok().map(Arc::from)
    }
}

/// Finds the links into the site in all texts. The recursion is bounded: values are at most
/// `DEPTH_MAX` deep.
fn gather(value: &Value, spans: &mut LinkSpans) {
    if let Some(text) = value.text()
        && ["](", "]:", "href"].iter().any(|part| text.contains(part))
        && let Ok(nodes) = read_description(text)
    {
        let mut found = Vec::new();
        links(&nodes, &mut found);
        for target in found.into_iter().filter(|target| is_inside(target)) {
            spans.entry(target).or_insert(value.span);
        }
    }
    for member in value.members() {
        gather(&member.value, spans);
    }
    for item in value.items() {
        gather(item, spans);
    }
}

/// Finds the addresses of links.
fn links(nodes: &[Node], found: &mut Vec<Box<str>>) {
    for node in nodes {
        match node {
            Node::Link { href, .. } => found.push(href.as_str().into()),
            Node::Element(element) => found.extend(element.text("href").map(Into::into)),
            _ => {}
        }
        node.each_children(&mut |children| links(children, found));
    }
}

#[cfg(test)]
mod tests {
    use crate::build::check::references;
    use crate::docs::{Options, read};
    use crate::source::{Tree, TreePath};

    const API: &str = r#"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"},
  "paths": {"/pay": {"post": {"summary": "Pay",
    "description": "See [a](/docs/guide), [b](/guide), [c](https://x.test/) and <a href='guide#no'>d</a>.",
    "parameters": [{"name": "id", "in": "query", "description": "Up: [e](../../x), [f](#body).", "schema": {"type": "string"}}],
    "responses": {"200": {"description": "[g](/guide#yes)"}}}}},
  "components": {"schemas": {"Hidden": {"description": "[h](/nobody-sees-this)"}}}}"#;

    #[test]
    fn a_broken_link_in_a_description_is_reported_in_the_specification() {
        let config = r#"{"name": "A", "navigation": {"groups": [{"group": "API", "openapi": "api.json", "pages": ["guide", "POST /pay"]}]}}"#;
        let files = [
            ("docs.json", config),
            ("guide.mdx", "## Yes"),
            ("api.json", API),
        ];
        let files = files.map(|(path, text)| {
            let path = TreePath::parse(path).unwrap();
            (path, bytes::Bytes::from(text.to_owned()))
        });
        let tree = Tree::from_files(files, []);
        let (docs, found) = read(&tree, &Options::default());
        assert_eq!(found, []);
        let page = docs
            .navigation
            .pages
            .iter()
            .find(|page| page.subject.is_some());
        assert_eq!(&*page.unwrap().url, "/api-reference/pay");
        let found = references(&docs, &tree);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "api.json:3:29: warning[link]: there is no page `/docs/guide` (did you mean `/guide`?)",
                "api.json:3:90: warning[link]: there is no page `/api-reference/guide` (did you mean `/guide`?)",
                "api.json:4:74: warning[link]: `../../x` leads out of the documentation's root",
                "api.json:4:88: warning[anchor]: /api-reference/pay has no heading `#body`",
            ]
        );
    }
}

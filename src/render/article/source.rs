//! The input of an article.

use std::borrow::Cow;

use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::docs::config::{Defaults, Expanded, Language};
use crate::docs::navigation::language::{self, Code};
use crate::docs::navigation::tree::{Page, Subject};
use crate::docs::page::LIMIT;
use crate::mdx::anchor::Anchors;
use crate::mdx::{self, Node, Rejected};
use crate::render::endpoint;

/// A page to render, with its place in the documentation.
#[derive(Clone, Debug)]
pub struct Source<'p> {
    /// The file, relative to the root of the docs.
    pub file: String,
    /// The page's title.
    pub title: &'p str,
    /// Whether the layout writes the title above the article.
    pub has_title: bool,
    /// Its description, in one line.
    pub description: Option<&'p str>,
    /// The BCP 47 tag of its language; empty if the language is unknown.
    pub language: Box<str>,
    /// The whole text of the file; empty for a generated page.
    pub text: &'p str,
    /// The author's content, or the reason why it cannot be read; `None` for a generated page.
    pub read: Result<Option<&'p mdx::Page>, Rejected>,
    /// The part of a specification that it shows.
    pub subject: Option<endpoint::Subject<'p>>,
    /// How it is shown.
    pub shown: endpoint::Shown<'p>,
}

// === impl Source ===

impl<'p> Source<'p> {
    /// Returns the input for a page of the navigation.
    #[must_use]
    pub fn of(docs: &'p Docs, page: &'p Page) -> Self {
        let written = docs.pages.get(&page.slug);
        let extension = written.and_then(|written| written.path.name().rsplit('.').next());
        let subject = page.subject.as_ref();
        let api = &docs.config.api;
        Self {
            // A generated page has the name that an author would give it.
            file: format!("{}.{}", page.slug, extension.unwrap_or("mdx")),
            title: &page.title,
            has_title: written.is_none_or(|written| written.meta.mode.has_title()),
            description: page.description.as_deref(),
            language: language(page),
            text: written.map_or("", |written| &written.text),
            read: match written.map(|written| &written.read) {
                None => Ok(None),
                Some(Ok(page)) => Ok(Some(page)),
                Some(Err(rejected)) => Err(*rejected),
            },
            subject: subject.and_then(|subject| shown(docs, subject)),
            shown: endpoint::Shown {
                samples: match api.examples.autogenerate {
                    Some(false) => &[],
                    _ => api.examples.languages.as_deref().unwrap_or(&Language::ALL),
                },
                expanded: api.params.expanded == Expanded::All,
                labels: &api.params.post,
                full_address: api.url.as_deref() == Some("full"),
                required_only: api.examples.defaults == Defaults::Required,
            },
        }
    }

    /// Returns the input for a page that is not part of documentation.
    #[must_use]
    pub fn alone(source: &mdx::Source<'p>, read: &'p Result<mdx::Page, Rejected>) -> Self {
        Self {
            file: source.file.to_owned(),
            title: source.title,
            has_title: true,
            description: None,
            language: "en".into(),
            text: source.text,
            read: match read {
                Ok(page) => Ok(Some(page)),
                Err(rejected) => Err(*rejected),
            },
            subject: None,
            shown: endpoint::Shown::default(),
        }
    }

    /// Returns whether the author describes the endpoint of the page by hand.
    pub(super) fn is_by_hand(&self) -> bool {
        matches!(self.subject, Some(endpoint::Subject::Endpoint(of, _)) if of.from_page)
    }

    /// Returns the content of the article: the author's nodes, then the nodes generated from a
    /// specification, with a finding if not all of them are shown; those of an endpoint that is
    /// described by hand come first. All anchors are assigned.
    ///
    /// # Errors
    ///
    /// [`Rejected`] when the author's content cannot be read.
    pub fn nodes(&self) -> Result<(Cow<'p, [Node]>, Option<Diagnostic>), Rejected> {
        let written = self.read?;
        let nodes = written.map_or(&[][..], |page| &page.nodes);
        let Some((generated, _)) = self.generated(written) else {
            return Ok((Cow::Borrowed(nodes), None));
        };
        let found = self.subject.filter(|_| generated.is_cut);
        let found = found.and_then(|subject| {
            let (specification, room) = (&subject.specification()?.path, subject.room());
            let message = format!(
                "`{specification}` has more than {room} bytes for this page: fields or examples are \
                 left out"
            );
            Some(Diagnostic::warning(LIMIT, &self.file, message))
        });
        let all = match self.is_by_hand() {
            true => [&generated.nodes, nodes].concat(),
            false => [nodes, &generated.nodes].concat(),
        };
        Ok((Cow::Owned(all), found))
    }

    /// Returns the content that is made from a specification, without anchors.
    #[must_use]
    pub fn described(&self) -> Vec<Node> {
        let subject = self.subject.into_iter();
        subject
            .flat_map(|subject| endpoint::nodes(subject, &self.language, self.shown))
            .collect()
    }

    /// Returns the anchors of the article; `None` if the author's content cannot be read, or if
    /// the specification of the page was not fetched.
    #[must_use]
    pub fn anchors(&self) -> Option<Cow<'p, Anchors>> {
        let written = self.read.ok()?;
        if matches!(self.subject, Some(endpoint::Subject::Unresolved(..))) {
            return None;
        }
        if let Some((_, anchors)) = self.generated(written) {
            return Some(Cow::Owned(anchors));
        }
        Some(written.map_or_else(Cow::default, |page| Cow::Borrowed(&page.outline.anchors)))
    }

    /// Makes the nodes of a specification; returns them and the anchors of the whole page.
    fn generated(&self, written: Option<&mdx::Page>) -> Option<(endpoint::Made, Anchors)> {
        let mut made = endpoint::made(self.subject?, &self.language, self.shown);
        let is_named =
            |node: &Node, name: &str| matches!(node, Node::Element(of) if *of.name == *name);
        let mut own = written.into_iter().flat_map(|page| &page.nodes);
        // The author has written samples.
        if self.is_by_hand() && own.any(|node| is_named(node, "RequestExample")) {
            made.nodes
                .retain(|node| !is_named(node, endpoint::EXAMPLES));
        }
        let mut anchors =
            written.map_or_else(Anchors::default, |page| page.outline.anchors.clone());
        anchors.assign(&mut made.nodes);
        Some((made, anchors))
    }
}

/// Looks up the part of a specification that a page shows.
fn shown<'d>(docs: &'d Docs, subject: &'d Subject) -> Option<endpoint::Subject<'d>> {
    let specification = |number: usize| docs.specifications.get(number);
    Some(match subject {
        Subject::Endpoint(id) => {
            let specification = specification(id.specification)?;
            let endpoint = specification.endpoints.get(id.endpoint)?;
            endpoint::Subject::Endpoint(specification, endpoint)
        }
        Subject::Unresolved { method, path } => endpoint::Subject::Unresolved(*method, path),
        Subject::Schema(id) => {
            endpoint::Subject::Schema(specification(id.specification)?, &id.name)
        }
    })
}

/// Returns the BCP 47 tag of the language of a page; empty if its place has no language.
fn language(page: &Page) -> Box<str> {
    let place = page.place.as_ref();
    let code = place.and_then(|place| place.language.as_deref());
    match code.map(language::parse) {
        Some(Code::Listed(language) | Code::Alias(language, _)) => language.tag,
        Some(Code::Unknown) | None => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::Docs;
    use crate::render::article::{Article, render};
    use crate::render::link::Map;
    use crate::source::{Tree, TreePath};

    fn docs(files: &[(&str, &str)]) -> (Docs, Vec<String>) {
        let files = files.iter().map(|(path, text)| {
            let path = TreePath::parse(path).unwrap();
            (path, bytes::Bytes::from((*text).to_owned()))
        });
        let tree = Tree::from_files(files, []);
        let (docs, found) = crate::docs::read(&tree, &crate::docs::Options::default());
        (docs, found.iter().map(ToString::to_string).collect())
    }

    /// The article of a page, by its path in URLs.
    fn article(docs: &Docs, slug: &str) -> Article {
        let mut pages = docs.navigation.pages.iter();
        let page = pages.find(|page| &*page.slug == slug).unwrap();
        render(&Source::of(docs, page), &Map::default())
    }

    const BY_HAND: &str = "---\ntitle: Things\napi: \"POST https://api.acme.test/v1/things/{id}\"\nauthMethod: bearer\n---\n\n\
        Makes a thing.\n\n<ParamField query=\"dry\" type=\"boolean\" required>Tries it.</ParamField>\n\n\
        <ParamField body=\"tags\" type=\"string[]\" />\n<ParamField body=\"size\" type=\"integer\" default=\"3\" />\n";

    #[test]
    fn an_endpoint_that_a_page_describes_by_hand_has_its_bar_and_samples() {
        let config = r#"{"name": "A", "navigation": {"pages": ["a", "b", "c", "d"]},
            "api": {"playground": {"display": "interactive"},
              "mdx": {"server": "https://other.test", "auth": {"method": "key", "name": "X-Own"}}}}"#;
        let own = "---\napi: GET /v1/own\n---\n\n<RequestExample>\n```bash\ncurl own\n```\n</RequestExample>\n";
        let (docs, found) = docs(&[
            ("docs.json", config),
            ("a.mdx", BY_HAND),
            ("b.mdx", "---\napi: GET v1/x\n---\n"),
            ("c.mdx", "---\napi: weird\n---\n"),
            ("d.mdx", own),
        ]);
        assert_eq!(
            found,
            [
                "c.mdx:2:6: warning[N6]: `api: weird` names no endpoint (write `METHOD https://host/path`, or `METHOD /path` with `api.mdx.server`)"
            ]
        );
        let things = article(&docs, "a").markdown;
        for piece in [
            "# Things\n\n```http\nPOST /v1/things/{id}\n```\n",
            "curl -X POST \"https://api.acme.test/v1/things/{id}?dry=true\" \\\n  -H \"Authorization: Bearer $TOKEN\"",
            "\"tags\": [\n    \"string\"\n  ],\n  \"size\": 3",
        ] {
            assert!(things.contains(piece), "{piece}\nis not in\n{things}");
        }
        assert_eq!(things.matches("`dry`").count(), 1, "{things}");
        assert_eq!(
            article(&docs, "a").summary.as_deref(),
            Some("Makes a thing.")
        );
        let settings = article(&docs, "b").markdown;
        assert!(settings.contains("https://other.test/v1/x"), "{settings}");
        assert!(settings.contains("X-Own"), "{settings}");
        let own = article(&docs, "d").markdown;
        assert!(
            own.contains("curl own") && !own.contains("other.test"),
            "{own}"
        );
        assert_eq!(docs.published, []);
    }

    #[test]
    fn an_operation_has_the_texts_of_its_page() {
        let config = r#"{"name": "A", "navigation": {"openapi": "api.json", "pages": ["GET /a", "GET /b"]}}"#;
        let api = r#"{"openapi": "3.1.0", "info": {"title": "A", "version": "1"}, "paths": {
            "/a": {"get": {"x-mint": {"href": "/a", "metadata": {"title": "A", "description": "About a."}, "content": "<Note>Mind *it*.</Note>"},
              "responses": {"200": {"description": "Done."}}}},
            "/b": {"get": {"x-mint": {"href": "/b"}, "responses": {"200": {"description": "Done."}}}}}}"#;
        let (docs, _) = docs(&[("docs.json", config), ("api.json", api)]);
        let a = article(&docs, "a");
        assert_eq!(a.summary.as_deref(), Some("About a."));
        assert!(
            a.html.as_str().contains("Mind <em>it</em>."),
            "{}",
            a.html.as_str()
        );
        assert!(a.markdown.contains("> About a.\n"), "{}", a.markdown);
        assert!(
            a.markdown.contains("**Note:** Mind *it*."),
            "{}",
            a.markdown
        );
        // The text of a response does not describe the page.
        assert_eq!(article(&docs, "b").summary, None);
    }

    #[test]
    fn settings_choose_the_samples_of_endpoints() {
        for (examples, samples, required_only) in [
            ("{}", 4, false),
            (r#"{"autogenerate": false}"#, 0, false),
            (r#"{"languages": ["go"], "defaults": "required"}"#, 1, true),
        ] {
            let config = format!(
                r#"{{"name": "A", "api": {{"examples": {examples}}}, "navigation": {{"pages": ["a"]}}}}"#
            );
            let path = |path: &str| TreePath::parse(path).unwrap();
            let files = [
                (path("docs.json"), config.into()),
                (path("a.mdx"), "Text.".to_owned().into()),
            ];
            let (docs, _) = crate::docs::read(
                &Tree::from_files(files, []),
                &crate::docs::Options::default(),
            );
            let shown = Source::of(&docs, &docs.navigation.pages[0]).shown;
            assert_eq!(shown.samples.len(), samples, "{examples}");
            assert_eq!(shown.required_only, required_only, "{examples}");
        }
    }
}

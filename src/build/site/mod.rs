//! The site of a release: pages, what they show, and the lists of them.
//!
//! Pages are independent, so they are rendered on all cores: first the articles, which
//! know only their own page, then the shells around them, which know all titles.
//!
//! **Invariant:** whatever the number of threads, the same docs give the same files.
//!
//! Sources: design section 6; sitemaps.org 0.9; llmstxt.org; RFC 9309 (robots).

mod files;
mod texts;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

use super::{Builder, Options};
use crate::answer::Encoding;
use crate::answer::encoding::Effort;
use crate::diagnostic::Diagnostic;
use crate::discovery::{JSON, MARKDOWN};
use crate::docs::Docs;
use crate::docs::navigation::tree::{Page, PageId};
use crate::release::{ReleaseFile, ReleasePath};
use crate::render::article::{self, Article, Source};
use crate::render::layout::{Assets, Mode, Shell, path_of, search_path, search_titles};
use crate::render::link::Map;
use crate::render::manifest::{self, Manifest, Redirect, page_file};
use crate::render::mdx;
use crate::source::Tree;

const HTML: &str = "text/html; charset=utf-8";

/// Adds the site of a documentation to a release; says what is wrong with its pages.
pub(super) fn insert(
    release: &mut Builder,
    tree: &Tree,
    docs: &Docs,
    options: &Options,
) -> Vec<Diagnostic> {
    let map = Map {
        pages: public(docs).map(|(_, page)| path_of(page).into()).collect(),
        assets: files::find(tree),
        ..Map::default()
    };
    let pages: Vec<_> = public(docs).collect();
    let load = |path: &str| files::text(tree, path);
    let articles = in_parallel(&pages, |(_, page)| article(docs, page, &map, &load));

    let assets = Assets::new(docs);
    let shell = Shell::new(docs, &map, &assets).edited_at(options.edit.as_ref());
    let with_articles: Vec<_> = pages.iter().zip(&articles).collect();
    let written = in_parallel(&with_articles, |((id, page), article)| {
        let mode = docs.pages.get(&page.slug);
        let mode = Mode::parse(mode.and_then(|page| page.meta.mode.as_deref()));
        let path = page_file(path_of(page), "html");
        coded(&path, HTML, shell.page(*id, article, mode).into())
    });

    let mut site = Site {
        release,
        found: Vec::new(),
    };
    site.put_all(written.into_iter().flatten());
    for (page, article) in pages.iter().zip(&articles) {
        let path = page_file(path_of(page.1), "md");
        site.put(&path, MARKDOWN, article.markdown.clone().into());
    }
    site.put(manifest::NOT_FOUND, HTML, shell.not_found().into());
    // Pages of the same style share a stylesheet: its name is its digest.
    let made: BTreeMap<_, _> = articles
        .iter()
        .flat_map(|article| &article.files)
        .map(|file| (&file.path, file))
        .collect();
    for file in [&assets.stylesheet, &assets.script, &assets.speculation]
        .into_iter()
        .chain(made.into_values())
    {
        let path = format!("static/{}", file.path);
        site.put_all(coded(&path, file.media_type, file.bytes.clone()));
    }
    let at: HashMap<PageId, usize> = pages.iter().map(|(id, _)| *id).zip(0..).collect();
    let by_id = |(id, _)| at.get(&id).map(|at| &articles[*at]);
    let of_all: Vec<_> = docs.navigation.pages().map(by_id).collect();
    for language in languages(docs) {
        let list = search_titles(docs, language, of_all.iter().copied());
        let path = format!("static/{}", search_path(language));
        site.put_all(coded(&path, JSON, list.into()));
    }
    for (name, media_type, text) in texts::all(docs, &of_all) {
        site.put(&format!("texts/{name}"), media_type, text.into());
    }
    site.put(
        manifest::PATH,
        JSON,
        manifest(docs, &shell).to_bytes().into(),
    );

    let shown = articles.iter().flat_map(|article| &article.assets);
    let mut shown: BTreeSet<Box<str>> = shown.cloned().collect();
    shown.extend(files::of_config(docs, &map));
    for path in shown {
        if let Some((bytes, media_type)) = files::read(tree, &path) {
            site.put(&format!("assets/{path}"), media_type, bytes);
        }
    }
    let mut found = site.found;
    found.extend(articles.into_iter().flat_map(|article| article.diagnostics));
    found
        .into_iter()
        .map(|found| in_repository(tree, found))
        .collect()
}

/// Returns the languages of a documentation; `None` alone when it has no such divisions.
fn languages(docs: &Docs) -> BTreeSet<Option<&str>> {
    let places = docs
        .navigation
        .pages
        .iter()
        .filter_map(|page| page.place.as_ref());
    let mut found: BTreeSet<_> = places.map(|place| place.language.as_deref()).collect();
    if found.is_empty() {
        found.insert(None);
    }
    found
}

/// Returns the pages that everybody may read.
fn public(docs: &Docs) -> impl Iterator<Item = (PageId, &Page)> {
    docs.navigation.pages().filter(|(_, page)| page.public)
}

fn manifest(docs: &Docs, shell: &Shell<'_>) -> Manifest {
    let redirect = |redirect: &crate::docs::config::Redirect| Redirect {
        source: redirect.source.clone(),
        destination: redirect.destination.clone(),
        permanent: redirect.permanent,
    };
    Manifest::new(shell.home(), docs.redirects.iter().map(redirect).collect())
}

/// Renders a page: its author's text, its endpoint, or both.
fn article(docs: &Docs, page: &Page, map: &Map, load: &mdx::Load<'_>) -> Article {
    let endpoint = page.endpoint.and_then(|id| {
        let specification = docs.specifications.get(id.specification)?;
        Some((specification, specification.endpoints.get(id.endpoint)?))
    });
    let written = docs.pages.get(&page.slug);
    let file = match written {
        Some(written) => {
            let extension = written.path.name().rsplit('.').next().unwrap_or("mdx");
            format!("{}.{extension}", page.slug)
        }
        None => format!("{}.mdx", page.slug),
    };
    let source = Source {
        file: &file,
        title: &page.title,
        description: page.description.as_deref(),
        text: written.map_or("", |written| &written.text),
    };
    match endpoint {
        None => article::render(&source, map, load),
        Some((specification, endpoint)) => {
            article::render_endpoint(&source, specification, endpoint, map, load)
        }
    }
}

/// A finding names the file from the root of the repository.
fn in_repository(tree: &Tree, mut found: Diagnostic) -> Diagnostic {
    if let Ok(path) = tree.docs_root().join(&found.file) {
        found.file = path.as_str().into();
    }
    found
}

/// Returns a file in each coding that pays.
fn coded(path: &str, media_type: &'static str, bytes: Bytes) -> Vec<(String, ReleaseFile)> {
    let mut files: Vec<_> = Encoding::CODED
        .into_iter()
        .filter_map(|encoding| {
            let coded = encoding.encode(&bytes, Effort::Page)?;
            let path = format!("{path}{}", encoding.suffix());
            Some((path, ReleaseFile::new(coded, media_type)))
        })
        .collect();
    files.push((path.to_owned(), ReleaseFile::new(bytes, media_type)));
    files
}

/// A site on its way into a release.
struct Site<'r> {
    release: &'r mut Builder,
    found: Vec<Diagnostic>,
}

// === impl Site ===

impl Site<'_> {
    fn put_all(&mut self, files: impl IntoIterator<Item = (String, ReleaseFile)>) {
        for (path, file) in files {
            self.insert(&path, file);
        }
    }

    fn put(&mut self, path: &str, media_type: &str, bytes: Bytes) {
        self.insert(path, ReleaseFile::new(bytes, media_type));
    }

    /// Paths are made of those of authors: one that no release can have is told.
    fn insert(&mut self, path: &str, file: ReleaseFile) {
        let inserted = ReleasePath::parse(path)
            .map_err(|error| error.to_string())
            .and_then(|path| {
                let inserted = self.release.insert(path, file);
                inserted.map_err(|error| error.to_string())
            });
        if let Err(error) = inserted {
            let file = path.split_once('/').map_or(path, |(_, file)| file);
            self.found.push(Diagnostic::error("page-path", file, error));
        }
    }
}

/// Does the same with each item on all cores; the results are in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // Long pages stand side by side, so they are dealt like cards.
    let deal = |thread: usize| items.iter().skip(thread).step_by(threads).map(&act);
    let mut hands: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || deal(thread).collect::<Vec<R>>()))
            .collect();
        let joined = running.into_iter().map(|running| {
            let hand = running.join();
            hand.expect("what panics in a page is caught where it is rendered")
        });
        joined.map(Vec::into_iter).collect()
    });
    let next = |n: usize| hands[n % threads].next();
    (0..items.len()).filter_map(next).collect()
}

#[cfg(test)]
mod tests;

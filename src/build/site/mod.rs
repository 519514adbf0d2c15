//! The site of a release: its pages, the files that they show, and the lists of pages.
//!
//! A [`Site`] knows its files and makes each on demand: a build requests all of them, a preview
//! only the file that is viewed. Pages are independent, so a build renders them on all cores: first
//! the articles, which depend only on their own page, then the layouts around them, which need all
//! titles.
//!
//! **Invariant:** the same docs give the same files, for any number of threads and any reused
//! articles.
//!
//! Sources: sitemaps.org 0.9; llmstxt.org; RFC 9309 (robots).

mod art;
mod articles;
mod canonical;
mod catalog;
mod check;
mod coded;
mod feeds;
mod files;
mod llms;
mod search;
mod texts;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use rayon::prelude::*;

use super::previous::PreviousRelease;
use super::{Builder, Input, Options, Output};
use crate::diagnostic::Diagnostic;
use crate::digest::Digest;
use crate::discovery::{JSON, MARKDOWN};
use crate::docs::Docs;
use crate::docs::navigation::tree::{Page, PageId};
use crate::docs::page::Mode;
use crate::release::announcements::with_instructions;
use crate::release::site::{
    Redirect, SEARCH_FILE, SITE_FILE, SiteDescription, not_found_file, page_file, search_page_file,
};
use crate::release::{ReleaseFile, ReleasePath};
use crate::render::article::Article;
use crate::render::css::{self, Confined};
use crate::render::file::File as Made;
use crate::render::icon::Library;
use crate::render::image::Form;
use crate::render::layout::{
    Assets, Drawings, Layout, Sidebars, broken_related, diagram_palette, linked_files,
    missing_images, path_of, unknown_icons,
};
use crate::render::link::Map;
use crate::render::raster::{GeneratedImage, PNG};
use crate::response::Encoding;
use crate::response::encoding::Effort;
use crate::site::EditLink;
use crate::source::Tree;

pub use articles::Articles;
use articles::{CachedArticle, RenderInputs};
pub(super) use check::{check, is_of_published_kind, published_files};
use coded::coded;
use llms::Lists;

const HTML: &str = "text/html; charset=utf-8";
/// The encodings of pages. Clients that accept zstd accept brotli too, so a third encoding would
/// only use space.
const CODINGS: [Encoding; 2] = [Encoding::Brotli, Encoding::Gzip];

/// How many files a thread makes before it shares the rest with idle threads.
const FILES_PER_JOB: usize = 8;

/// The inputs of a site beside its documentation, and the articles rendered so far.
#[derive(Debug)]
pub(super) struct Plan {
    map: Map,
    assets: Assets,
    /// The stylesheets of the site's authors.
    authors: Confined,
    /// The images that are drawn, and why some cannot be.
    drawings: Drawings,
    undrawn: Vec<Diagnostic>,
    inputs: RenderInputs,
    /// The service on which the files of the repository are edited.
    edit: Option<EditLink>,
    /// The pages that everybody may read.
    pages: Vec<PageId>,
    /// The articles of these pages, as far as they were rendered.
    articles: Vec<OnceLock<(Digest, CachedArticle)>>,
    /// The search index, after it was requested.
    index: OnceLock<Bytes>,
}

/// A site whose files are made on demand.
pub(super) struct Site<'s> {
    tree: &'s Tree,
    docs: &'s Docs,
    plan: &'s Plan,
    layout: Layout<'s>,
    /// The articles of all pages of the navigation, after all are rendered; private pages have
    /// none.
    articles: OnceLock<Vec<Option<&'s Article>>>,
    description: OnceLock<SiteDescription>,
    /// The lists of pages, after one of them was requested.
    lists: OnceLock<Lists>,
}

/// A file of a site.
#[derive(Clone, Debug)]
pub(super) enum File {
    /// The HTML of a page, by its index in the plan.
    Html(usize),
    /// The Markdown of a page, for agents, by its index in the plan.
    Markdown(usize),
    /// A 404 page, with the sidebar of a page.
    NotFound(Option<PageId>),
    /// A file that was generated for pages.
    Made(Made),
    /// The search index.
    SearchIndex,
    /// The page of search results, with the sidebar of a page.
    SearchPage(Option<PageId>),
    /// One of the lists for agents and search engines.
    Text(Box<str>),
    /// The description of the site.
    SiteDescription,
    /// A file of the repository.
    Asset(Box<str>),
    /// A smaller form of an image of the repository, by the path of the image.
    Form(Box<str>, Form),
    /// An image that is drawn.
    GeneratedImage(Arc<GeneratedImage>),
}

/// Confines the stylesheets of the documentation.
fn authors(tree: &Tree, docs: &Docs, map: &Map) -> Confined {
    let (sheets, skipped) = files::stylesheets(tree, docs);
    let mut authors = css::confine(&sheets, map);
    authors.diagnostics.extend(skipped);
    authors
}

/// Adds a file. Its path is made from a path of the authors; a path that no release can have is an
/// error.
fn put(release: &mut Builder, path: &str, file: ReleaseFile) -> Option<Diagnostic> {
    let inserted = ReleasePath::parse(path)
        .map_err(|error| error.to_string())
        .and_then(|path| {
            let inserted = release.insert(path, file);
            inserted.map_err(|error| error.to_string())
        });
    let error = inserted.err()?;
    let file = path.split_once('/').map_or(path, |(_, file)| file);
    Some(Diagnostic::error("page-path", file, error))
}

// === impl Plan ===

impl Plan {
    /// Finds the inputs of a site. Nothing is rendered yet.
    pub(super) fn new(input: &Input, options: &Options, before: Articles) -> Self {
        let Input { tree, docs, .. } = input;
        let mut map = Map {
            pages: public(docs).map(|(_, page)| path_of(page).into()).collect(),
            assets: files::find(tree, docs),
            icon: None,
            frames: options.frames.clone(),
            library: Library::parse(docs.config.icons.library.as_deref()),
            palette: diagram_palette(docs),
        };
        map.icon = files::icon(tree, docs, &map);
        let pages: Vec<PageId> = public(docs).map(|(id, _)| id).collect();
        let authors = authors(tree, docs, &map);
        let assets = Assets::new(docs, &authors.styles);
        let (arts, undrawn) = art::read(tree, docs, &map);
        Self {
            drawings: Layout::new(docs, &map, &assets).drawings(&arts),
            undrawn,
            assets,
            authors,
            inputs: RenderInputs::new(before, tree, docs, &map),
            edit: options.edit.clone(),
            articles: pages.iter().map(|_| OnceLock::new()).collect(),
            index: OnceLock::new(),
            pages,
            map,
        }
    }

    /// Returns the articles that were rendered or reused.
    pub(super) fn articles(&self) -> Articles {
        Articles::of(self.articles.iter().filter_map(OnceLock::get).cloned())
    }

    /// Finds a file that was generated for a page that is rendered.
    pub(super) fn made(&self, path: &str) -> Option<File> {
        let mut images = self.map.assets.iter();
        let of_image = images.find_map(|(image, asset)| {
            let form = asset.form.as_ref().filter(|form| *form.path == *path)?;
            Some(File::Form(image.clone(), form.clone()))
        });
        if of_image.is_some() {
            return of_image;
        }
        let rendered = self.articles.iter().filter_map(OnceLock::get);
        let mut files = rendered.flat_map(|(_, kept)| &kept.article().files);
        let made = files.find(|made| made.path == path)?;
        Some(File::Made(made.clone()))
    }

    /// Returns whether a page may show a file.
    pub(super) fn may_show(&self, path: &str) -> bool {
        self.map.assets.contains_key(path)
    }

    /// Returns the articles that were rendered or reused, by value.
    pub(super) fn into_articles(self) -> Articles {
        let rendered = self.articles.into_iter();
        Articles::of(rendered.filter_map(OnceLock::into_inner))
    }
}

// === impl Site ===

impl<'s> Site<'s> {
    pub(super) fn new(input: &'s Input, plan: &'s Plan) -> Self {
        let Input { tree, docs, .. } = input;
        Self {
            tree,
            docs,
            plan,
            layout: Layout::new(docs, &plan.map, &plan.assets)
                .edited_at(plan.edit.as_ref())
                .showing(&plan.drawings),
            articles: OnceLock::new(),
            description: OnceLock::new(),
            lists: OnceLock::new(),
        }
    }

    /// Adds all files of the site to a release, made on all cores. Returns the diagnostics of the
    /// files; [`Site::found`] returns the diagnostics of the pages.
    pub(super) fn insert(
        &self,
        release: &mut Builder,
        previous: Option<&PreviousRelease<'_>>,
        output: &dyn Output,
    ) -> Vec<Diagnostic> {
        self.render_all();
        let mut files = self.files();
        // An image takes as long as hundreds of pages, so a thread that began one last would work
        // alone at the end.
        let is_long = |file: &File| {
            matches!(
                file,
                File::Form(..) | File::GeneratedImage(_) | File::SearchIndex
            )
        };
        files.sort_by_key(|(_, file)| !is_long(file));
        let sidebars = Sidebars::default();
        let files: Vec<_> = files
            .par_iter()
            .with_max_len(FILES_PER_JOB)
            .flat_map_iter(|(path, file)| match file {
                File::Html(at) => self.page_encoded(path, *at, &sidebars, previous),
                _ => self.encoded(path, file, previous),
            })
            .map(|(path, file)| match path == SEARCH_FILE {
                // The writer of a skill searches in it.
                true => (path, file),
                false => (path, output.take(file)),
            })
            .collect();
        let put = |(path, file): (String, _)| put(release, &path, file);
        let found = files.into_iter().filter_map(put);
        found
            .map(|found| with_repository_path(self.tree, found))
            .collect()
    }

    /// Returns the diagnostics of the pages, which are rendered for this.
    pub(super) fn found(&self) -> Vec<Diagnostic> {
        let articles = (0..self.plan.pages.len()).map(|at| self.article(at));
        let found = articles.flat_map(|article| article.diagnostics.iter().cloned());
        let found = found.chain(self.plan.authors.diagnostics.iter().cloned());
        let mut found: Vec<_> = found
            .map(|found| with_repository_path(self.tree, found))
            .collect();
        found.extend(unknown_icons(self.docs, &self.plan.map));
        found.extend(canonical::invalid_addresses(self.docs, &self.plan.map));
        found.extend(missing_images(self.docs, &self.plan.map));
        found.extend(self.plan.undrawn.iter().cloned());
        found.extend(broken_related(self.docs, &self.plan.map));
        found
    }

    /// Makes a page, with its encoded variants.
    fn page_encoded(
        &self,
        path: &str,
        at: usize,
        sidebars: &Sidebars,
        previous: Option<&PreviousRelease<'_>>,
    ) -> Vec<(String, ReleaseFile)> {
        let (id, article) = (self.plan.pages[at], self.article(at));
        let written = self.layout.page_with(id, article, self.mode(at), sidebars);
        let identity = ReleaseFile::new(written.html, HTML);
        let segments = written.segments;
        // Only in brotli can the addresses be replaced.
        let codings = match written.is_addressed {
            true => &CODINGS[..1],
            false => &CODINGS[..],
        };
        coded(
            path,
            identity,
            previous,
            codings,
            |encoding, bytes| match segments.is_empty() {
                true => encoding.encode(bytes, Effort::Page),
                false => encoding.encode_segments(bytes, &segments),
            },
        )
    }

    /// Makes a file, with its encoded variants.
    fn encoded(
        &self,
        path: &str,
        file: &File,
        previous: Option<&PreviousRelease<'_>>,
    ) -> Vec<(String, ReleaseFile)> {
        // The name of an image has the digest of its inputs, so the previous file of this name is
        // the same.
        if let (File::Form(..) | File::GeneratedImage(_), Some(previous)) = (file, previous)
            && let Some(Some(form)) = previous.take(path)
        {
            return vec![(path.to_owned(), form)];
        }
        let Some((bytes, media_type)) = self.make(file) else {
            return Vec::new();
        };
        let identity = ReleaseFile::new(bytes, media_type);
        match file.is_coded() {
            true => coded(path, identity, previous, &CODINGS, |encoding, bytes| {
                encoding.encode(bytes, Effort::Page)
            }),
            false => vec![(path.to_owned(), identity)],
        }
    }

    /// Lists the files of the site. All pages are rendered first, because some files depend on what
    /// pages show.
    fn files(&self) -> Vec<(String, File)> {
        let mut files = self.page_files();
        files.extend(self.site_files());
        let articles = || (0..self.plan.pages.len()).map(|at| self.article(at));
        // Pages of the same style share a stylesheet: its name is its digest.
        let made = articles().flat_map(|article| &article.files);
        let made: BTreeMap<_, _> = made.map(|made| (&made.path, made)).collect();
        files.extend(made.into_values().map(into_file));
        let shown = articles().flat_map(|article| article.assets.iter().cloned());
        let mut shown: BTreeSet<Box<str>> = shown.collect();
        shown.extend(linked_files(self.docs, &self.plan.map));
        shown.extend(self.plan.authors.assets.iter().cloned());
        shown.extend(files::specification_files(self.docs, &self.plan.map));
        // Two files with the same bytes have the same form.
        let forms = shown.iter().filter_map(|path| {
            let form = self.plan.map.assets.get(path)?.form.clone()?;
            Some((
                format!("static/{}", form.path),
                File::Form(path.clone(), form),
            ))
        });
        let forms: BTreeMap<_, _> = forms.collect();
        files.extend(forms);
        let asset = |path: Box<str>| (format!("assets/{path}"), File::Asset(path));
        files.extend(shown.into_iter().map(asset));
        files
    }

    /// Returns the smaller form of the site's icon with its path.
    fn icon(&self) -> Option<(String, File)> {
        let form = self.plan.map.icon.clone()?;
        let path = files::icon_file(self.docs, &self.plan.map)?;
        Some((format!("static/{}", form.path), File::Form(path, form)))
    }

    /// Lists the HTML and Markdown files of the pages.
    pub(super) fn page_files(&self) -> Vec<(String, File)> {
        let mut files = Vec::with_capacity(2 * self.plan.pages.len());
        for at in 0..self.plan.pages.len() {
            let path = path_of(self.page(at));
            files.push((page_file(path, "html"), File::Html(at)));
            files.push((page_file(path, "md"), File::Markdown(at)));
        }
        files
    }

    /// Lists the files that a site has once.
    pub(super) fn site_files(&self) -> Vec<(String, File)> {
        let mut files = vec![(SITE_FILE.to_owned(), File::SiteDescription)];
        let directories = self.layout.directories().into_iter();
        let directories = directories.map(|(directory, first)| (directory, Some(first)));
        let not_found = [("", None)].into_iter().chain(directories);
        files.extend(
            not_found
                .map(|(directory, beside)| (not_found_file(directory), File::NotFound(beside))),
        );
        files.extend(self.plan.assets.files().map(into_file));
        files.extend(self.icon());
        let drawn = self.plan.drawings.images().into_iter();
        files.extend(drawn.map(|drawn| {
            (
                format!("static/{}", drawn.path),
                File::GeneratedImage(drawn),
            )
        }));
        let icons = self.plan.drawings.icons.iter();
        files.extend(icons.map(|icons| into_file(&icons.manifest)));
        files.push((SEARCH_FILE.to_owned(), File::SearchIndex));
        files.push((search_page_file(None), File::SearchPage(None)));
        for (language, first) in self.layout.languages() {
            let path = search_page_file(Some(language));
            files.push((path, File::SearchPage(Some(first))));
        }
        for name in texts::names(self.docs, self.lists()) {
            files.push((format!("texts/{name}"), File::Text(name.into())));
        }
        files
    }

    /// Makes a file: its bytes and its media type. Returns nothing for a file of the repository
    /// that cannot be read.
    pub(super) fn make(&self, file: &File) -> Option<(Bytes, &'static str)> {
        Some(match file {
            File::Html(at) => {
                let (id, article) = (self.plan.pages[*at], self.article(*at));
                (self.layout.page(id, article, self.mode(*at)).into(), HTML)
            }
            File::Markdown(at) => {
                let lines = self.docs.config.markdown.lines();
                (
                    with_instructions(&self.article(*at).markdown, lines).into(),
                    MARKDOWN,
                )
            }
            File::NotFound(beside) => (self.layout.not_found(*beside).into(), HTML),
            File::Made(made) => (made.bytes.clone(), made.media_type),
            File::SearchIndex => {
                let write = || search::index(self.docs, &self.layout, self.all_articles());
                let index = self.plan.index.get_or_init(|| write().into());
                (index.clone(), "application/octet-stream")
            }
            File::SearchPage(beside) => (self.layout.results(*beside).into(), HTML),
            File::Text(name) => {
                let (text, media_type) = texts::write(
                    name,
                    self.docs,
                    self.lists(),
                    self.all_articles(),
                    &self.plan.map,
                );
                (text.into(), media_type)
            }
            File::SiteDescription => (self.description().to_bytes().into(), JSON),
            File::Asset(path) => return files::read(self.tree, path),
            File::Form(path, form) => {
                let (bytes, _) = files::read(self.tree, path)?;
                let (bytes, media_type) = form.make(&bytes);
                (bytes.into(), media_type)
            }
            File::GeneratedImage(drawn) => (drawn.make()?.into(), PNG),
        })
    }

    /// Returns the lists that `llms.txt` names instead of pages.
    pub(super) fn page_lists(&self) -> Vec<crate::skills::PageList> {
        self.lists().parts()
    }

    fn lists(&self) -> &Lists {
        self.lists.get_or_init(|| Lists::of(self.docs))
    }

    /// Returns the description of the site, which a release has as a file.
    pub(super) fn description(&self) -> &SiteDescription {
        self.description.get_or_init(|| self.describe())
    }

    fn describe(&self) -> SiteDescription {
        let redirect = |redirect: &crate::docs::config::Redirect| Redirect {
            source: redirect.source.clone(),
            destination: redirect.destination.clone(),
            permanent: redirect.permanent,
        };
        let redirects = self.docs.redirects.list().iter();
        let shown: HashSet<&str> = public(self.docs)
            .filter(|(_, page)| page.is_indexed())
            .map(|(_, page)| path_of(page))
            .collect();
        let translations = self.layout.translations(|path| shown.contains(path));
        let public = self.plan.pages.iter();
        let public = public.map(|id| self.docs.navigation.page(*id));
        let mut description =
            SiteDescription::new(self.layout.home(), redirects.map(redirect).collect())
                .translated(translations);
        description.servers = self.layout.servers();
        description.votes = self.docs.config.feedback.thumbs;
        description.canonical = canonical::find(self.docs, public, &self.plan.map);
        description
    }

    /// Renders all articles, on all cores.
    pub(super) fn render_all(&self) {
        (0..self.plan.pages.len()).into_par_iter().for_each(|at| {
            self.article(at);
        });
    }

    /// Returns an article, and renders it at the first call.
    fn article(&self, at: usize) -> &'s Arc<Article> {
        let plan = self.plan;
        let render = || {
            let page = self.page(at);
            plan.inputs.article(self.docs, page, &plan.map)
        };
        plan.articles[at].get_or_init(render).1.article()
    }

    fn all_articles(&self) -> &[Option<&'s Article>] {
        self.articles.get_or_init(|| {
            let pages = self.plan.pages.iter();
            let at: HashMap<PageId, usize> = pages.copied().zip(0..).collect();
            let article = |(id, _)| at.get(&id).map(|at| &**self.article(*at));
            self.docs.navigation.pages().map(article).collect()
        })
    }

    /// Returns which parts of the layout a page has.
    fn mode(&self, at: usize) -> Mode {
        let written = self.docs.pages.get(&self.page(at).slug);
        written.map_or(Mode::Default, |page| page.meta.mode)
    }

    fn page(&self, at: usize) -> &'s Page {
        self.docs.navigation.page(self.plan.pages[at])
    }
}

// === impl File ===

impl File {
    /// Returns whether a release has encoded variants of the file. A file with a placeholder for
    /// the address of the site is encoded when that address is known.
    fn is_coded(&self) -> bool {
        match self {
            Self::Html(_) | Self::Made(_) => true,
            Self::Form(..)
            | Self::GeneratedImage(_)
            | Self::Markdown(_)
            | Self::NotFound(_)
            | Self::Text(_)
            | Self::SearchIndex
            | Self::SearchPage(_)
            | Self::SiteDescription => false,
            Self::Asset(path) => files::is_text(path),
        }
    }
}

/// Returns a generated file of pages with its path.
fn into_file(made: &Made) -> (String, File) {
    (format!("static/{}", made.path), File::Made(made.clone()))
}

/// Returns the pages that everybody may read.
fn public(docs: &Docs) -> impl Iterator<Item = (PageId, &Page)> {
    docs.navigation.pages().filter(|(_, page)| page.public)
}

/// Changes the file of a diagnostic to a path from the root of the repository.
fn with_repository_path(tree: &Tree, mut found: Diagnostic) -> Diagnostic {
    if let Ok(path) = tree.docs_root().join(&found.file) {
        found.file = path.as_str().into();
    }
    found
}

#[cfg(test)]
mod tests;

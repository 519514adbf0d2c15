//! Files of the repository that pages show: which may be public, and their media types.
//!
//! Only the kinds in [`KINDS`] are served. A browser executes none of them by itself, and the
//! origin adds a policy that forbids the scripts of SVG and PDF files. A file that is ignored or
//! that no page shows is in no release.

use std::collections::BTreeMap;

use bytes::Bytes;
use rayon::prelude::*;

use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::docs::published::Published;
use crate::render::css::{self, Sheet};
use crate::render::image::{self, Form, SITE_PIXELS_MAX, Use};
use crate::render::link::{Asset, Map, Target};
use crate::source::{Tree, TreePath};

/// The largest size of a file.
const BYTES_MAX: u64 = 64 << 20;

/// The kinds of files that may be served, by extension.
const KINDS: [(&str, &str); 26] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("svg", "image/svg+xml"),
    ("ico", "image/x-icon"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("wav", "audio/wav"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("ttf", "font/ttf"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
    ("csv", "text/csv; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("json", "application/json"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("xlsx", "application/octet-stream"),
    ("docx", "application/octet-stream"),
];

/// Finds the files that pages may show, with the sizes of images.
pub(super) fn find(tree: &Tree, docs: &Docs) -> BTreeMap<Box<str>, Asset> {
    let files = shown(tree, docs);
    let mut images: Vec<_> = files.par_iter().map(|path| image(tree, path)).collect();
    plan_forms(tree, &files, &mut images);
    let named = files.iter().zip(images);
    named
        .filter_map(|(path, image)| Some((below(tree, path)?, image.asset)))
        .collect()
}

/// The properties of a file that pages may show.
#[derive(Default)]
struct Image {
    asset: Asset,
    /// How many bytes the file has.
    length: usize,
    /// Whether it is an image that gets a smaller form.
    is_large: bool,
}

/// Plans the smaller forms of images, the heaviest files first, up to [`SITE_PIXELS_MAX`].
fn plan_forms(tree: &Tree, files: &[&TreePath], images: &mut [Image]) {
    let mut order: Vec<usize> = (0..images.len())
        .filter(|at| images[*at].is_large)
        .collect();
    order.sort_by_key(|at| (std::cmp::Reverse(images[*at].length), files[*at]));
    let mut left = SITE_PIXELS_MAX;
    order.retain(|at| {
        let (width, height) = images[*at].asset.size.unwrap_or_default();
        let rest = left.checked_sub(width as u64 * height as u64);
        left = rest.unwrap_or(left);
        rest.is_some()
    });
    let planned: Vec<(usize, Option<Form>)> = order
        .into_par_iter()
        .map(|at| {
            let (path, size) = (files[at], images[at].asset.size);
            let bytes = tree.read_at_most(path, BYTES_MAX).ok();
            let form = bytes.zip(size);
            let form = form.map(|(bytes, size)| Form::new(&bytes, size, Use::Picture));
            (at, form)
        })
        .collect();
    for (at, form) in planned {
        images[at].asset.form = form;
    }
}

/// Returns the smaller form of a site's icon, if the icon gets one.
pub(super) fn icon(tree: &Tree, docs: &Docs, map: &Map) -> Option<Form> {
    let path = icon_file(docs, map)?;
    let size = map.assets.get(&path)?.size?;
    let (bytes, _) = read(tree, &path)?;
    let is_large = Form::is_needed(&path, &bytes, size, Use::Icon);
    is_large.then(|| Form::new(&bytes, size, Use::Icon))
}

/// Returns the file of the repository that is the icon of a site.
pub(super) fn icon_file(docs: &Docs, map: &Map) -> Option<Box<str>> {
    let icon = docs.config.favicon.as_ref()?;
    match map.resolve(crate::docs::CONFIG, &icon.light) {
        Target::Asset(path) => Some(path),
        _ => None,
    }
}

/// Finds the files that pages may show, without reading them.
pub(super) fn named(tree: &Tree, docs: &Docs) -> BTreeMap<Box<str>, Asset> {
    let files = shown(tree, docs).into_iter();
    files
        .filter_map(|path| Some((below(tree, path)?, Asset::default())))
        .collect()
}

fn shown<'t>(tree: &'t Tree, docs: &Docs) -> Vec<&'t TreePath> {
    tree.files()
        .filter(|path| kind(path.as_str()).is_some() && !docs.ignored.is_path_ignored(tree, path))
        .collect()
}

/// Reads the stylesheets of authors: every `.css` file of the documentation that is not ignored.
/// Those nearer to the root apply first.
pub(super) fn stylesheets(tree: &Tree, docs: &Docs) -> (Vec<Sheet>, Vec<Diagnostic>) {
    let is_one = |path: &&TreePath| {
        let extension = path
            .as_str()
            .rsplit_once('.')
            .map(|(_, extension)| extension);
        extension.is_some_and(|extension| extension.eq_ignore_ascii_case("css"))
            && !docs.ignored.is_path_ignored(tree, path)
    };
    let mut paths: Vec<&TreePath> = tree.files().filter(is_one).collect();
    paths.sort_by_key(|path| (path.segments().count(), *path));
    let (mut sheets, mut found) = (Vec::new(), Vec::new());
    for path in paths {
        let Some(below) = path.strip_prefix(tree.docs_root()) else {
            continue;
        };
        // One byte more, so that a file over the limit is reported and not cut.
        let bytes_max = css::SHEET_BYTES_MAX as u64 + 1;
        let text = tree
            .read_at_most(path, bytes_max)
            .map_err(|e| e.to_string());
        let text = text
            .and_then(|bytes| String::from_utf8(bytes.into()).map_err(|error| error.to_string()));
        match text {
            Ok(text) => sheets.push(Sheet {
                path: below.into(),
                text,
            }),
            Err(error) => {
                let message = format!("this stylesheet cannot be read: {error}");
                found.push(Diagnostic::warning("stylesheet", below, message));
            }
        }
    }
    (sheets, found)
}

/// Returns the path of a file from the documentation's root.
fn below(tree: &Tree, path: &TreePath) -> Option<Box<str>> {
    let below = path.strip_prefix(tree.docs_root())?;
    (below != crate::docs::CONFIG).then(|| below.into())
}

pub(super) fn kind(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    let known = KINDS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(extension));
    known.map(|(_, media_type)| *media_type)
}

/// Returns whether compression can make a file smaller.
pub(super) fn is_text(path: &str) -> bool {
    let texts = ["image/svg+xml", "application/json", "application/yaml"];
    kind(path).is_some_and(|kind| kind.starts_with("text/") || texts.contains(&kind))
}

/// Reads the properties of a file that pages need.
fn image(tree: &Tree, path: &TreePath) -> Image {
    if !kind(path.as_str()).is_some_and(|kind| kind.starts_with("image/")) {
        return Image::default();
    }
    let Ok(bytes) = tree.read_at_most(path, BYTES_MAX) else {
        return Image::default();
    };
    let size = image::size(path.as_str(), &bytes);
    let is_large = |size| Form::is_needed(path.as_str(), &bytes, size, Use::Picture);
    Image {
        asset: Asset { size, form: None },
        length: bytes.len(),
        is_large: size.is_some_and(is_large),
    }
}

/// Reads a file that pages show.
pub(super) fn read(tree: &Tree, path: &str) -> Option<(Bytes, &'static str)> {
    let media_type = kind(path)?;
    let path = tree.docs_root().join(path).ok()?;
    Some((tree.read_at_most(&path, BYTES_MAX).ok()?, media_type))
}

/// Returns the specifications that are public.
pub(super) fn specification_files(docs: &Docs, map: &Map) -> impl Iterator<Item = Box<str>> {
    let files = docs.published.iter().filter_map(Published::file);
    let files = files.filter(|path| map.assets.contains_key(*path));
    files.map(Box::from)
}

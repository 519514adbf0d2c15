//! Icons beside the labels of the layout.
//!
//! `docs.json` and the frontmatter of pages give an icon as a name of an icon set, a file of
//! the repository, a URL, or a character such as an emoji.

use std::collections::BTreeSet;

use super::PageWriter;
use crate::diagnostic::Diagnostic;
use crate::docs::{CONFIG, Docs};
use crate::render::icon::{self, Icon};
use crate::render::link::{Map, Start, Target};

/// The meaning of an icon's text.
enum Drawing<'n> {
    /// An icon of an icon set.
    Icon(Icon),
    /// A picture.
    Picture(Picture),
    /// A character, such as an emoji.
    Sign(&'n str),
}

/// A picture that `docs.json` or frontmatter names.
pub(super) enum Picture {
    /// A file of the site, by its path.
    File(Box<str>),
    /// A picture on another server, by its URL.
    Elsewhere(Box<str>),
}

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes an icon beside a label; nothing for an unknown name, because the label is enough.
    pub(super) fn icon(&mut self, icon: Option<&str>) {
        let Some(drawing) = icon.and_then(|name| Drawing::of(name, self.layout.map())) else {
            return;
        };
        let address = match drawing {
            Drawing::Icon(icon) => {
                self.out.icon_once(icon, &mut self.emitted_icons);
                return;
            }
            Drawing::Sign(sign) => {
                self.out
                    .markup("<span class=icon aria-hidden=true>")
                    .text(sign)
                    .markup("</span>");
                return;
            }
            Drawing::Picture(picture) => picture.address(self.start),
        };
        self.out.markup("<img class=icon alt=\"\"");
        self.out.attribute("src", &address).markup(">");
    }
}

// === impl Drawing ===

impl<'n> Drawing<'n> {
    fn of(name: &'n str, map: &Map) -> Option<Self> {
        if icon::is_address(name) {
            return Picture::of(name, map).map(Self::Picture);
        }
        if !name.is_ascii() {
            return Some(Self::Sign(name));
        }
        icon::find(name, None, map.library).map(Self::Icon)
    }
}

// === impl Picture ===

impl Picture {
    pub(super) fn of(source: &str, map: &Map) -> Option<Self> {
        match map.resolve(CONFIG, source) {
            Target::Asset(path) => Some(Self::File(path)),
            // The content security policy of pages allows only `https:`.
            Target::Elsewhere(url) => url.starts_with("https:").then_some(Self::Elsewhere(url)),
            _ => None,
        }
    }

    /// Returns the width of a file of the site at a height in pixels, if its size is known.
    pub(super) fn width_at(&self, height: usize, map: &Map) -> Option<usize> {
        let Self::File(path) = self else {
            return None;
        };
        let (width, full) = map.assets.get(path)?.size?;
        width.checked_mul(height)?.checked_div(full)
    }

    pub(super) fn address(self, start: Start<'_>) -> String {
        match self {
            Self::File(path) => start.to(&path),
            Self::Elsewhere(url) => url.into(),
        }
    }
}

/// Finds the files that `docs.json` and frontmatter name as icons.
pub(super) fn icon_files<'d>(docs: &'d Docs, map: &'d Map) -> impl Iterator<Item = Box<str>> + 'd {
    let of_pages = docs.pages.iter().filter(|page| page.meta.is_public());
    let of_pages = of_pages.filter_map(|page| page.meta.icon.as_deref());
    let names = docs.icons.iter().map(|icon| &*icon.name).chain(of_pages);
    names.filter_map(|name| match Drawing::of(name, map)? {
        Drawing::Picture(Picture::File(path)) => Some(path),
        _ => None,
    })
}

/// Reports unknown icons in `docs.json` and frontmatter, each once per file, and an icon
/// library that is not bundled.
#[must_use]
pub fn unknown_icons(docs: &Docs, map: &Map) -> Vec<Diagnostic> {
    let of_config = docs.icons.iter().map(|icon| {
        let place = icon.location;
        (&*icon.file, &*icon.name, Some(place))
    });
    let of_pages = docs.pages.iter().filter_map(|page| {
        let icon = page.meta.icon.as_deref()?;
        Some((page.path.as_str(), icon, None))
    });
    let library = docs.config.icons.library.as_deref();
    let unbundled = library.and_then(|library| icon::unbundled(CONFIG, library));
    let mut reported = BTreeSet::new();
    let unknown = of_config.chain(of_pages).filter(|(file, name, _)| {
        Drawing::of(name, map).is_none() && reported.insert((*file, *name))
    });
    let unknown = unknown.enumerate().map(|(before, (file, name, place))| {
        let found = match icon::is_address(name) {
            true => Diagnostic::warning("icon", file, format!("there is no file `{name}`")),
            false => icon::unknown(file, name, before),
        };
        match place {
            Some(place) => found.at(place.line, place.column, place.length),
            None => found,
        }
    });
    unbundled.into_iter().chain(unknown).collect()
}

//! Icons beside the labels of the layout.
//!
//! `docs.json` and the frontmatter of pages name them: by a name of one of the sets, by a file
//! of the site, by an address, or by a sign such as an emoji.

use std::collections::BTreeSet;

use super::PageWriter;
use crate::diagnostic::Diagnostic;
use crate::docs::{CONFIG, Docs};
use crate::render::icon::{self, Icon};
use crate::render::link::{Map, Start, Target};

/// What a name stands for.
enum Drawing<'n> {
    /// An icon of the sets.
    Icon(Icon),
    /// A picture.
    Picture(Picture),
    /// A character that is its own drawing.
    Sign(&'n str),
}

/// A picture that `docs.json` or a frontmatter names.
pub(super) enum Picture {
    /// A file of the site, by its path.
    File(Box<str>),
    /// A picture of another server.
    Elsewhere(Box<str>),
}

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Draws an icon beside a label. A name that stands for nothing draws nothing; the label
    /// says it all.
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
            // The policy of pages lets in no others.
            Target::Elsewhere(url) => url.starts_with("https:").then_some(Self::Elsewhere(url)),
            _ => None,
        }
    }

    pub(super) fn address(self, start: Start<'_>) -> String {
        match self {
            Self::File(path) => start.to(&path),
            Self::Elsewhere(url) => url.into(),
        }
    }
}

/// Finds the files of the site that `docs.json` and frontmatters name as icons.
pub(super) fn icon_files<'d>(docs: &'d Docs, map: &'d Map) -> impl Iterator<Item = Box<str>> + 'd {
    let of_pages = docs.pages.iter().filter(|page| page.meta.is_public());
    let of_pages = of_pages.filter_map(|page| page.meta.icon.as_deref());
    let names = docs.icons.iter().map(|icon| &*icon.name).chain(of_pages);
    names.filter_map(|name| match Drawing::of(name, map)? {
        Drawing::Picture(Picture::File(path)) => Some(path),
        _ => None,
    })
}

/// Tells which icons of `docs.json` and of frontmatters there are not, each once; and that the
/// library is not here that they are of.
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
    let library = docs.config.icon_library.as_deref();
    let unbundled = library.and_then(|library| icon::unbundled(CONFIG, library));
    let mut told = BTreeSet::new();
    let unknown = of_config
        .chain(of_pages)
        .filter(|(file, name, _)| Drawing::of(name, map).is_none() && told.insert((*file, *name)));
    let unknown = unknown.enumerate().map(|(told, (file, name, place))| {
        let found = match icon::is_address(name) {
            true => Diagnostic::warning("icon", file, format!("there is no file `{name}`")),
            false => icon::unknown(file, name, told),
        };
        match place {
            Some(place) => found.at(place.line, place.column, place.length),
            None => found,
        }
    });
    unbundled.into_iter().chain(unknown).collect()
}

//! Chooses the images that a build draws for a site: a preview for each part of the site, a preview
//! for each page that asks for one, and the icons of apps.
//!
//! A reader selects a part: a tab, a product, an item of a menu, in one version and
//! language. The pages of a part share an image, so that a site of a thousand pages has a few.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::shared::{Layout, Sidebar};
use crate::docs::config::Scheme;
use crate::docs::navigation::tree::{DivisionKind, PageId};
use crate::render::layout::assets::brand;
use crate::render::raster::app::Icons;
use crate::render::raster::preview::{Style, Texts};
use crate::render::raster::{Arts, GeneratedImage};

/// How many previews a site has. Parts come first; a page beyond it has the preview of its part.
const PREVIEWS_MAX: usize = 300;
/// The text between the names of nested parts.
const SEPARATOR: &str = "  ·  ";

/// The images that a build draws for a site.
#[derive(Debug, Default)]
pub struct Drawings {
    /// The preview of each sidebar.
    of_sidebar: Vec<Option<Arc<GeneratedImage>>>,
    /// The previews of pages that have their own.
    of_page: HashMap<PageId, Arc<GeneratedImage>>,
    /// The icons of apps.
    pub icons: Option<Icons>,
}

// === impl Drawings ===

impl Drawings {
    /// Returns all images, each once.
    #[must_use]
    pub fn images(&self) -> Vec<Arc<GeneratedImage>> {
        let icons = self.icons.iter().flat_map(Icons::images);
        let icons = icons.map(|icon| Arc::new(icon.clone()));
        let previews = self
            .of_sidebar
            .iter()
            .flatten()
            .chain(self.of_page.values());
        let mut seen = HashSet::new();
        let mut images: Vec<_> = previews.map(Arc::clone).chain(icons).collect();
        images.retain(|image| seen.insert(image.path.clone()));
        images.sort_by(|one, two| one.path.cmp(&two.path));
        images
    }
}

// === impl Layout ===

impl Layout<'_> {
    /// Plans the images of the site. Nothing is drawn yet.
    #[must_use]
    pub fn drawings(&self, arts: &Arts) -> Drawings {
        let config = self.config();
        let brand = brand(self.docs);
        let is_dark = config.thumbnails.appearance == Scheme::Dark;
        let (logo, icon) = (arts.logo.as_ref(), arts.icon.as_ref());
        let style = Style::new(
            brand.colours(is_dark),
            &config.name,
            logo,
            icon,
            arts.background.as_ref(),
        );
        let sidebars = self.sidebars().iter().take(PREVIEWS_MAX);
        let of_sidebar: Vec<_> = sidebars
            .map(|sidebar| self.preview_of_part(&style, sidebar).map(Arc::new))
            .collect();
        let mut left = PREVIEWS_MAX - of_sidebar.len();
        let mut of_page = HashMap::new();
        for (id, page) in self.navigation().pages() {
            let own = self.docs.written(page).and_then(|page| page.meta.thumbnail);
            let is_asked = own.unwrap_or(config.thumbnails.pages);
            if !is_asked || !page.public || left == 0 {
                continue;
            }
            let labels = page
                .place
                .as_ref()
                .map(|place| place.breadcrumb.join(SEPARATOR));
            let texts = Texts {
                section: labels.as_deref(),
                title: &page.title,
                description: page.description.as_deref(),
            };
            if let Some(preview) = style.preview(texts) {
                of_page.insert(id, Arc::new(preview));
                left -= 1;
            }
        }
        let background = brand.colours(false).background;
        Drawings {
            of_sidebar,
            of_page,
            icons: icon.and_then(|icon| Icons::new(icon, &config.name, background)),
        }
    }

    /// Plans the preview of the pages of a sidebar.
    fn preview_of_part(&self, style: &Style, sidebar: &Sidebar<'_>) -> Option<GeneratedImage> {
        let config = self.config();
        let selected = sidebar.selected.iter();
        let selected: Vec<_> = selected
            .filter(|(divisions, _)| divisions.kind != DivisionKind::Languages)
            .map(|(divisions, at)| (divisions.kind, &divisions.list[*at]))
            .collect();
        let named = selected
            .iter()
            .rposition(|(kind, _)| *kind != DivisionKind::Versions);
        let labels = selected.iter().enumerate();
        let around: Vec<&str> = labels
            .filter(|(at, _)| Some(*at) != named)
            .map(|(_, (_, division))| &*division.label)
            .collect();
        let around = around.join(SEPARATOR);
        let own = named.map(|at| selected[at].1);
        let is_first = sidebar.selected.iter().all(|(divisions, at)| {
            divisions.kind != DivisionKind::Languages || *at == divisions.default
        });
        let of_site = config.description.as_deref().filter(|_| is_first);
        let of_part = own.and_then(|division| division.description.as_deref());
        style.preview(Texts {
            section: Some(around.as_str()).filter(|around| !around.is_empty()),
            title: own.map_or(&config.name, |division| &division.label),
            description: of_part.or(of_site),
        })
    }

    /// Returns the preview of a page: its own, or that of its part.
    pub(super) fn preview(&self, id: PageId) -> Option<&GeneratedImage> {
        let drawings = self.drawn()?;
        let of_part = || {
            drawings
                .of_sidebar
                .get(self.sidebar_number(Some(id)))?
                .as_ref()
        };
        let preview = drawings.of_page.get(&id).or_else(of_part);
        preview.map(Arc::as_ref)
    }
}

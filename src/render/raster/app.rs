//! The icons of a site as an app, and the manifest that names them.
//!
//! A phone shows an icon when a reader adds a site to the home screen. The icons are drawn from the
//! icon of the site, which is often an SVG. One in pixels is made smaller, never larger.
//!
//! Sources: W3C Web Application Manifest §1.6 (`start_url`), §1.7 (`icons`); Apple, "Configuring
//! Web Applications" (180 pixels, without transparency).

use serde_json::json;

use super::{Art, Fill, GeneratedImage, Layer, PNG, Placed};
use crate::render::file::File;

/// The sizes of the icons in the manifest, in pixels.
const SIZES: [u32; 2] = [192, 512];
/// The size of the icon for Apple's systems, and the space around its picture.
const TOUCH: u32 = 180;
const TOUCH_SPACE: u32 = 18;
/// The media type of a manifest (W3C Web Application Manifest §4.1).
const MANIFEST_TYPE: &str = "application/manifest+json";

/// The icons of a site as an app.
#[derive(Clone, Debug)]
pub struct Icons {
    /// The icon for Apple's systems.
    pub touch: GeneratedImage,
    /// The icons in the manifest.
    pub sizes: Vec<GeneratedImage>,
    /// The manifest.
    pub manifest: File,
}

// === impl Icons ===

impl Icons {
    /// Plans the icons of a site from its icon; `None` if the icon has too few pixels. `background`
    /// is the colour below the icon for Apple's systems, as three channels.
    #[must_use]
    pub fn new(art: &Art, name: &str, background: [u8; 3]) -> Option<Self> {
        let is_enough = |size: u32| f64::from(art.pixels()) >= f64::from(size);
        if !is_enough(TOUCH) {
            return None;
        }
        let inner = TOUCH - 2 * TOUCH_SPACE;
        let picture = Placed::new(art, (inner, inner), Fill::Centre);
        let at = TOUCH_SPACE.cast_signed();
        let layers = vec![Layer::Picture(picture, at, at)];
        let touch = GeneratedImage::new("app", (TOUCH, TOUCH), Some(background), layers);
        let sizes = SIZES.into_iter().filter(|size| is_enough(*size));
        let sizes: Vec<GeneratedImage> = sizes
            .map(|size| {
                let picture = Placed::new(art, (size, size), Fill::Centre);
                let layers = vec![Layer::Picture(picture, 0, 0)];
                GeneratedImage::new("app", (size, size), None, layers)
            })
            .collect();
        let icon = |icon: &GeneratedImage| {
            // The manifest is in the directory of the icons.
            let name = icon.path.rsplit('/').next().unwrap_or_default();
            let size = format!("{}x{}", icon.width, icon.height);
            json!({ "src": name, "sizes": size, "type": PNG })
        };
        let [red, green, blue] = background;
        let background = format!("#{red:02x}{green:02x}{blue:02x}");
        let icons: Vec<_> = sizes.iter().map(icon).collect();
        let manifest = json!({
            "name": name,
            // The manifest is one directory below the root of the site.
            "start_url": "../",
            "display": "minimal-ui",
            "background_color": background,
            "theme_color": background,
            "icons": icons,
        });
        let manifest = manifest.to_string().into();
        Some(Self {
            touch,
            sizes,
            manifest: File::new("app", "webmanifest", manifest, MANIFEST_TYPE),
        })
    }

    /// Returns the images.
    pub fn images(&self) -> impl Iterator<Item = &GeneratedImage> {
        std::iter::once(&self.touch).chain(&self.sizes)
    }
}

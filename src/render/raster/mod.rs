//! Images that a build draws: previews of links, and icons of apps.
//!
//! Networks and chats show the image of a preview, and systems show the icon of an app. They read
//! PNG only. A build draws both with resvg: from text and shapes of our own ([`preview`]), and from
//! the logo and the icon of the site ([`art`]).
//!
//! The same inputs give the same bytes on every machine: fonts of the system and other files are
//! never read. The name of an image contains the digest of its inputs, so a build takes an
//! unchanged image from the previous release and does not draw it again.
//!
//! Everything is bounded before it is drawn: images in pixels, drawings of authors in bytes,
//! elements and layers.
//!
//! Sources: SVG 2; PNG 3; the Open Graph protocol; W3C Web Application Manifest.

pub mod app;
mod art;
pub mod preview;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use resvg::tiny_skia::{Color, Pixmap, PixmapPaint, Transform};
use resvg::usvg::{self, Tree};

use crate::digest::Digest;
use crate::release::site::STATIC;

pub use art::{Art, Arts, Unfit};

/// The media type of every image that is drawn.
pub const PNG: &str = "image/png";
/// A part of the names of images. It changes when the drawing changes.
const VERSION: &str = "1";
/// How many hexadecimal digits of the digest are in a name.
const DIGITS: usize = 16;

/// An image that a build draws when it is needed.
#[derive(Clone, Debug)]
pub struct GeneratedImage {
    /// Its path in URLs. It contains the digest of its inputs.
    pub path: Box<str>,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
    background: Option<[u8; 3]>,
    layers: Vec<Layer>,
}

/// A layer of an image, above the earlier ones.
#[derive(Clone, Debug)]
enum Layer {
    /// A picture of the authors, and where its left upper corner is.
    Picture(Arc<Placed>, i32, i32),
    /// An SVG of our own, as large as the image.
    Shapes(Arc<str>),
}

/// How a picture fills its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// All of it is in the box: at the left edge, halfway up.
    Start,
    /// All of it is in the middle of the box.
    Centre,
    /// It covers the box; the parts outside the box are cut off.
    Cover,
}

/// A picture in a box, drawn once for all images that show it.
#[derive(Debug)]
struct Placed {
    art: Art,
    width: u32,
    height: u32,
    fill: Fill,
    drawn: OnceLock<Option<Pixmap>>,
}

// === impl GeneratedImage ===

impl GeneratedImage {
    fn new(
        name: &str,
        (width, height): (u32, u32),
        background: Option<[u8; 3]>,
        layers: Vec<Layer>,
    ) -> Self {
        let mut inputs = format!("{VERSION} {width} {height} {background:?}");
        for layer in &layers {
            inputs += &match layer {
                Layer::Shapes(svg) => format!("\n{svg}"),
                Layer::Picture(placed, x, y) => {
                    let Placed {
                        art,
                        width,
                        height,
                        fill,
                        drawn: _,
                    } = &**placed;
                    format!("\n{} {x} {y} {width} {height} {fill:?}", art.digest)
                }
            };
        }
        let digest = Digest::of(inputs.as_bytes()).to_string();
        Self {
            path: format!("{STATIC}/{name}.{}.png", &digest[..DIGITS]).into(),
            width,
            height,
            background,
            layers,
        }
    }

    /// Draws the image and returns it as PNG; `None` if it cannot be drawn.
    #[must_use]
    pub fn make(&self) -> Option<Vec<u8>> {
        let mut pixels = Pixmap::new(self.width, self.height)?;
        if let Some([red, green, blue]) = self.background {
            pixels.fill(Color::from_rgba8(red, green, blue, 0xff));
        }
        for layer in &self.layers {
            match layer {
                Layer::Picture(placed, x, y) => {
                    if let Some(picture) = placed.pixels() {
                        let (paint, place) = (PixmapPaint::default(), Transform::identity());
                        pixels.draw_pixmap(*x, *y, picture.as_ref(), &paint, place, None);
                    }
                }
                Layer::Shapes(svg) => {
                    let tree = Tree::from_str(svg, &options()).ok()?;
                    resvg::render(&tree, Transform::identity(), &mut pixels.as_mut());
                }
            }
        }
        encoded(&pixels, self.background.is_some())
    }
}

// === impl Placed ===

impl Placed {
    fn new(art: &Art, (width, height): (u32, u32), fill: Fill) -> Arc<Self> {
        Arc::new(Self {
            art: art.clone(),
            width,
            height,
            fill,
            drawn: OnceLock::new(),
        })
    }

    /// Draws the picture at the first call. A panic while drawing is caught: the picture is then
    /// left out.
    fn pixels(&self) -> Option<&Pixmap> {
        let draw = || {
            catch_unwind(AssertUnwindSafe(|| {
                self.art.draw(self.width, self.height, self.fill)
            }))
        };
        let drawn = self.drawn.get_or_init(|| draw().ok().flatten());
        drawn.as_ref()
    }
}

/// Returns the options for reading SVG: text has the bundled font, and nothing is loaded.
fn options() -> usvg::Options<'static> {
    let mut options = usvg::Options {
        font_family: text::FAMILY.to_owned(),
        fontdb: Arc::clone(&text::FONTS),
        ..usvg::Options::default()
    };
    options.image_href_resolver = usvg::ImageHrefResolver {
        resolve_data: Box::new(|_, _, _| None),
        resolve_string: Box::new(|_, _| None),
    };
    options
}

/// Encodes pixels as PNG, without transparency if there is none.
fn encoded(pixels: &Pixmap, is_opaque: bool) -> Option<Vec<u8>> {
    let straight = pixels.pixels().iter().map(|pixel| pixel.demultiply());
    let (bytes, color): (Vec<u8>, _) = match is_opaque {
        true => (
            straight
                .flat_map(|p| [p.red(), p.green(), p.blue()])
                .collect(),
            ExtendedColorType::Rgb8,
        ),
        false => (
            straight
                .flat_map(|p| [p.red(), p.green(), p.blue(), p.alpha()])
                .collect(),
            ExtendedColorType::Rgba8,
        ),
    };
    let mut out = Vec::new();
    let (compression, filter) = (CompressionType::Default, FilterType::Adaptive);
    PngEncoder::new_with_quality(&mut out, compression, filter)
        .write_image(&bytes, pixels.width(), pixels.height(), color)
        .ok()?;
    Some(out)
}

#[cfg(test)]
mod tests;

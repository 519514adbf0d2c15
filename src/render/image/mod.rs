//! Images: their sizes, and smaller forms of large ones.
//!
//! A screenshot is often larger than any reader sees it. A page names a smaller form beside the
//! original, as WebP without loss, and the browser takes the one that fits. Only PNG files get
//! one: their pixels are decoded to the same values on every machine.
//!
//! Decoding is the most work of a build for its bytes, so it is bounded in pixels: of one image
//! before it is decoded, and of all images of a site. Which images get a form depends on the
//! files of the repository only, so that the same tree gives the same release.
//!
//! Sources: PNG 3 §5 and §11; APNG 1.0 (`acTL`); SVG 2 §8.2; WHATWG HTML §4.8.4.2.

mod svg;

use std::io::Cursor;

use image::codecs::png::{PngDecoder, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageEncoder, Limits};

use crate::digest::Digest;
use crate::release::site::STATIC;

/// The greatest width of a form, in pixels: twice the width of a page's text.
pub const FORM_WIDTH: u32 = 1504;
/// An image with at least this many bytes gets a form, even if it is not wider.
pub const HEAVY_BYTES: usize = 200 << 10;
/// How many pixels an image may have that gets a form.
pub const IMAGE_PIXELS_MAX: u64 = 16_000_000;
/// How many pixels all images may have together that get forms.
pub const SITE_PIXELS_MAX: u64 = 50_000_000;
/// The width of the form of a site's icon, in pixels.
const ICON_WIDTH: u32 = 96;
/// An icon with at least this many bytes gets a form.
const ICON_HEAVY_BYTES: usize = 16 << 10;
/// How much memory the decoder of one image may take.
const DECODER_BYTES_MAX: u64 = 256 << 20;
/// A part of the names of forms. It changes when the conversion changes.
const VERSION: &str = "1";

/// The use of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A picture on a page.
    Picture,
    /// The icon of the site.
    Icon,
}

/// A smaller form of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Its path in URLs. It contains the digest of the original.
    pub path: Box<str>,
    /// Its width in pixels.
    pub width: u32,
    /// Its use.
    pub used: Use,
}

/// Returns width and height of an image, if its first bytes show them.
#[must_use]
pub fn size(path: &str, bytes: &[u8]) -> Option<(usize, usize)> {
    let (_, extension) = path.rsplit_once('.')?;
    if extension.eq_ignore_ascii_case("svg") {
        return svg::size(bytes);
    }
    let known = ["png", "jpg", "jpeg", "gif", "webp"];
    if !known
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
    {
        return None;
    }
    let size = imagesize::blob_size(bytes).ok()?;
    Some((size.width, size.height))
}

// === impl Form ===

impl Form {
    /// Returns whether an image is one that gets a smaller form.
    #[must_use]
    pub fn is_needed(path: &str, bytes: &[u8], size: (usize, usize), used: Use) -> bool {
        let (width, height) = size;
        let pixels = width as u64 * height as u64;
        let heavy = match used {
            Use::Picture => HEAVY_BYTES,
            Use::Icon => ICON_HEAVY_BYTES,
        };
        let is_wide = used == Use::Picture && width > FORM_WIDTH as usize;
        path.to_ascii_lowercase().ends_with(".png")
            && (is_wide || bytes.len() >= heavy)
            && (1..=IMAGE_PIXELS_MAX).contains(&pixels)
            && !is_animated(bytes)
    }

    /// Plans the form of an image.
    #[must_use]
    pub fn new(bytes: &[u8], size: (usize, usize), used: Use) -> Self {
        let (width_max, extension) = match used {
            Use::Picture => (FORM_WIDTH, "webp"),
            Use::Icon => (ICON_WIDTH, "png"),
        };
        let digest = Digest::of(bytes).to_string();
        let width = u32::try_from(size.0).map_or(width_max, |width| width.min(width_max));
        let path = format!(
            "{STATIC}/image.{}-{VERSION}-{width}.{extension}",
            &digest[..16]
        );
        Self {
            path: path.into(),
            width,
            used,
        }
    }

    /// Makes the form: its bytes and its media type. If the image cannot be decoded, or its form
    /// is not smaller, the form is the image itself.
    #[must_use]
    pub fn make(&self, bytes: &[u8]) -> (Vec<u8>, &'static str) {
        let media_type = match self.used {
            Use::Picture => "image/webp",
            Use::Icon => "image/png",
        };
        match self.encoded(bytes).filter(|form| form.len() < bytes.len()) {
            Some(form) => (form, media_type),
            None => (bytes.to_vec(), "image/png"),
        }
    }

    fn encoded(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut limits = Limits::default();
        limits.max_alloc = Some(DECODER_BYTES_MAX);
        let decoder = PngDecoder::with_limits(Cursor::new(bytes), limits).ok()?;
        let (width, height) = decoder.dimensions();
        if u64::from(width) * u64::from(height) > IMAGE_PIXELS_MAX {
            return None;
        }
        let image = DynamicImage::from_decoder(decoder).ok()?;
        // Eight bits for each channel, which is all that WebP has.
        let image = match image.color().has_alpha() {
            true => DynamicImage::ImageRgba8(image.into_rgba8()),
            false => DynamicImage::ImageRgb8(image.into_rgb8()),
        };
        let image = match image.width() > self.width {
            true => {
                let height = u64::from(image.height()) * u64::from(self.width);
                let height = height.div_ceil(u64::from(image.width())).max(1);
                let height = u32::try_from(height).ok()?;
                image.resize_exact(self.width, height, FilterType::CatmullRom)
            }
            false => image,
        };
        let mut out = Vec::new();
        let (width, height) = (image.width(), image.height());
        let color = image.color().into();
        match self.used {
            Use::Picture => WebPEncoder::new_lossless(&mut out)
                .encode(image.as_bytes(), width, height, color)
                .ok()?,
            Use::Icon => PngEncoder::new(&mut out)
                .write_image(image.as_bytes(), width, height, color)
                .ok()?,
        }
        Some(out)
    }
}

/// Returns whether a PNG has several frames; a form would have only one: a chunk `acTL` is before
/// the first `IDAT`.
fn is_animated(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(8..).unwrap_or_default();
    while let Some((head, body)) = rest.split_at_checked(8) {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        match &head[4..] {
            b"acTL" => return true,
            b"IDAT" => return false,
            _ => {}
        }
        let next = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_add(4));
        rest = next.and_then(|next| body.get(next..)).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let low = |number: u32| number.to_le_bytes()[0];
        let pixel = |x: u32, y: u32| image::Rgb([low(x * 7 + y * 13), low(x ^ y), low(x * y)]);
        let image = DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, pixel));
        let mut out = Cursor::new(Vec::new());
        image.write_to(&mut out, image::ImageFormat::Png).unwrap();
        out.into_inner()
    }

    #[test]
    fn a_wide_image_has_a_smaller_form_with_the_same_bytes_each_time() {
        let bytes = png(1600, 40);
        assert!(Form::is_needed("a.png", &bytes, (1600, 40), Use::Picture));
        let form = Form::new(&bytes, (1600, 40), Use::Picture);
        assert_eq!(form.width, FORM_WIDTH);
        let (made, media_type) = form.make(&bytes);
        assert_eq!(media_type, "image/webp");
        assert_eq!(imagesize::blob_size(&made).unwrap().width, 1504);
        assert_eq!(form.make(&bytes).0, made);
    }

    #[test]
    fn small_animated_broken_and_huge_images_have_none() {
        let (small, wide) = (png(20, 20), png(1600, 2));
        let mut animated = wide.clone();
        animated.splice(33..33, *b"\0\0\0\x08acTL\0\0\0\x02\0\0\0\0\0\0\0\0");
        for (path, bytes, size) in [
            ("a.png", &small, (20, 20)),
            ("a.jpg", &wide, (1600, 2)),
            ("a.png", &animated, (1600, 2)),
            ("a.png", &wide, (100_000, 100_000)),
            ("a.png", &wide, (0, 2)),
        ] {
            assert!(
                !Form::is_needed(path, bytes, size, Use::Picture),
                "{path} {size:?}"
            );
        }
        // The header claims more pixels than the data has.
        let form = Form::new(&wide[..60], (1600, 2), Use::Picture);
        assert_eq!(form.make(&wide[..60]), (wide[..60].to_vec(), "image/png"));
    }

    #[test]
    fn a_header_that_claims_a_million_pixels_a_side_is_not_decoded() {
        let mut bomb = png(1600, 2);
        bomb[16..24].copy_from_slice(&[0, 0x0f, 0x42, 0x40, 0, 0x0f, 0x42, 0x40]);
        let form = Form::new(&bomb, (1600, 2), Use::Picture);
        assert_eq!(form.make(&bomb).1, "image/png");
    }

    #[test]
    fn a_heavy_icon_has_a_small_form() {
        let bytes = png(200, 200);
        assert!(bytes.len() > ICON_HEAVY_BYTES);
        assert!(Form::is_needed("icon.png", &bytes, (200, 200), Use::Icon));
        let form = Form::new(&bytes, (200, 200), Use::Icon);
        let (made, media_type) = form.make(&bytes);
        assert_eq!(media_type, "image/png");
        assert_eq!(imagesize::blob_size(&made).unwrap().width, 96);
    }
}

//! Images: their sizes, and smaller forms of large ones.
//!
//! A screenshot is often larger than any reader sees it. A page names a smaller form beside the
//! original, and the browser takes the one that fits: of a PNG file a WebP without loss, of a JPEG
//! file another JPEG. Their pixels are decoded to the same values on every machine. The profile of
//! the colours is kept.
//!
//! Decoding is the most work of a build for its bytes, so it is bounded in pixels: of one image
//! before it is decoded, and of all images of a site. Which images get a form depends on the
//! files of the repository only, so that the same tree gives the same release.
//!
//! **Why without loss.** Of 59 PNG files with at least 200 KiB, from public documentation, the
//! forms without loss have 44 % of the bytes, and with loss (quality 80) 14 %. But WebP with loss
//! halves the resolution of colours (RFC 6386 §2), which blurs coloured text in screenshots. And no
//! encoder fits: `image-webp` writes without loss only, `zenwebp` has a licence that this program
//! cannot have, and libwebp has other instructions for each processor, so its bytes may differ
//! between machines. So an original that is WebP or AVIF already gets no smaller form: its authors
//! have compressed it with loss, and a form without loss would often be larger.
//!
//! Sources: PNG 3 §5 and §11; APNG 1.0 (`acTL`); ITU-T T.81; SVG 2 §8.2; WHATWG HTML §4.8.4.2.

mod jpeg;
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
const VERSION: &str = "2";

/// The use of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A picture on a page.
    Picture,
    /// The icon of the site.
    Icon,
}

/// The formats of images that get forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Png,
    Jpeg,
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
    let known = ["png", "jpg", "jpeg", "gif", "webp", "avif"];
    if !known
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known))
    {
        return None;
    }
    let size = imagesize::blob_size(bytes).ok()?;
    let (_, is_exchanged) = match Format::of(bytes) {
        Some(Format::Jpeg) => jpeg::orientation(bytes),
        _ => (false, false),
    };
    Some(match is_exchanged {
        true => (size.height, size.width),
        false => (size.width, size.height),
    })
}

/// Returns whether [`decode`] reads a file of this format.
pub(super) fn is_decoded(bytes: &[u8]) -> bool {
    Format::of(bytes).is_some()
}

/// Decodes a PNG or JPEG file of at most [`IMAGE_PIXELS_MAX`] pixels, without the profile of its
/// colours.
pub(super) fn decode(bytes: &[u8]) -> Option<DynamicImage> {
    match Format::of(bytes)? {
        Format::Png => Some(decoded_png(bytes)?.0),
        Format::Jpeg => Some(jpeg::decode(bytes)?.image),
    }
}

/// Decodes a PNG file, and returns the profile of its colours beside it.
fn decoded_png(bytes: &[u8]) -> Option<(DynamicImage, Option<Vec<u8>>)> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(DECODER_BYTES_MAX);
    let mut decoder = PngDecoder::with_limits(Cursor::new(bytes), limits).ok()?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > IMAGE_PIXELS_MAX {
        return None;
    }
    let profile = decoder.icc_profile().ok().flatten();
    Some((DynamicImage::from_decoder(decoder).ok()?, profile))
}

// === impl Format ===

impl Format {
    /// Returns the format of a file by its first bytes.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            _ => None,
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
        }
    }
}

// === impl Form ===

impl Form {
    /// Returns whether an image gets a smaller form.
    #[must_use]
    pub fn is_needed(path: &str, bytes: &[u8], size: (usize, usize), used: Use) -> bool {
        let (width, height) = size;
        let pixels = width as u64 * height as u64;
        let heavy = match used {
            Use::Picture => HEAVY_BYTES,
            Use::Icon => ICON_HEAVY_BYTES,
        };
        let is_wide = used == Use::Picture && width > FORM_WIDTH as usize;
        let path = path.to_ascii_lowercase();
        let is_fit = || match Format::of(bytes) {
            Some(Format::Png) => path.ends_with(".png") && !is_animated(bytes),
            // The browser would rotate the original, but not the form.
            Some(Format::Jpeg) => {
                let is_named = path.ends_with(".jpg") || path.ends_with(".jpeg");
                let (is_turned, _) = jpeg::orientation(bytes);
                is_named && used == Use::Picture && !is_turned
            }
            None => false,
        };
        (is_wide || bytes.len() >= heavy) && (1..=IMAGE_PIXELS_MAX).contains(&pixels) && is_fit()
    }

    /// Plans the form of an image.
    #[must_use]
    pub fn new(bytes: &[u8], size: (usize, usize), used: Use) -> Self {
        let (width_max, extension) = match (used, Format::of(bytes)) {
            (Use::Picture, Some(Format::Jpeg)) => (FORM_WIDTH, "jpg"),
            (Use::Picture, _) => (FORM_WIDTH, "webp"),
            (Use::Icon, _) => (ICON_WIDTH, "png"),
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
        let format = Format::of(bytes).unwrap_or(Format::Png);
        let form = match format {
            Format::Png => self.encoded(bytes),
            Format::Jpeg => self.encoded_jpeg(bytes),
        };
        match form.filter(|form| form.len() < bytes.len()) {
            Some(form) => {
                let media_type = match (self.used, format) {
                    (Use::Picture, Format::Png) => "image/webp",
                    _ => format.media_type(),
                };
                (form, media_type)
            }
            None => (bytes.to_vec(), format.media_type()),
        }
    }

    fn encoded_jpeg(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let decoded = jpeg::decode(bytes)?;
        let image = self.resized(decoded.image)?;
        jpeg::encode(&image, decoded.profile.as_deref())
    }

    /// Scales an image down to the width of the form.
    fn resized(&self, image: DynamicImage) -> Option<DynamicImage> {
        if image.width() <= self.width {
            return Some(image);
        }
        let height = u64::from(image.height()) * u64::from(self.width);
        let height = height.div_ceil(u64::from(image.width())).max(1);
        let height = u32::try_from(height).ok()?;
        Some(image.resize_exact(self.width, height, FilterType::CatmullRom))
    }

    fn encoded(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (image, profile) = decoded_png(bytes)?;
        // Eight bits for each channel, which is all that WebP has.
        let image = match image.color().has_alpha() {
            true => DynamicImage::ImageRgba8(image.into_rgba8()),
            false => DynamicImage::ImageRgb8(image.into_rgb8()),
        };
        let image = self.resized(image)?;
        let mut out = Vec::new();
        let (width, height) = (image.width(), image.height());
        let color = image.color().into();
        match self.used {
            Use::Picture => {
                let mut encoder = WebPEncoder::new_lossless(&mut out);
                if let Some(profile) = profile {
                    encoder.set_icc_profile(profile).ok()?;
                }
                encoder.encode(image.as_bytes(), width, height, color)
            }
            Use::Icon => {
                let mut encoder = PngEncoder::new(&mut out);
                if let Some(profile) = profile {
                    encoder.set_icc_profile(profile).ok()?;
                }
                encoder.write_image(image.as_bytes(), width, height, color)
            }
        }
        .ok()?;
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
    fn the_size_of_an_avif_is_known() {
        // ISO/IEC 23008-12 §6.5.3: the boxes `ftyp`, `meta`, `iprp`, `ipco` and `ispe`.
        let boxed = |name: &[u8; 4], content: &[u8]| {
            let length = u32::try_from(content.len() + 8).unwrap();
            [&length.to_be_bytes()[..], name, content].concat()
        };
        let size = [0_u32, 640, 480].map(u32::to_be_bytes).concat();
        let properties = boxed(b"iprp", &boxed(b"ipco", &boxed(b"ispe", &size)));
        let meta = boxed(b"meta", &[&[0; 4][..], &properties].concat());
        let bytes = [boxed(b"ftyp", b"avif\0\0\0\0"), meta].concat();
        assert_eq!(super::size("a.avif", &bytes), Some((640, 480)));
        assert_eq!(super::size("a.avif", &bytes[..20]), None);
    }

    /// Returns a JPEG, with these segments after its first marker.
    fn jpeg(width: u16, height: u16, segments: &[u8]) -> Vec<u8> {
        let low = |number: u32| number.to_le_bytes()[0];
        let pixel = |x: u32, y: u32| image::Rgb([low(x / 9), low(y), low(x / 5 + y)]);
        let image = image::RgbImage::from_fn(width.into(), height.into(), pixel);
        let mut out = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut out, 95);
        let color = jpeg_encoder::ColorType::Rgb;
        encoder.encode(&image, width, height, color).unwrap();
        out.splice(2..2, segments.iter().copied());
        out
    }

    /// Returns the segment with the orientation of the camera (Exif 3.0 §4.6.5).
    fn turned(orientation: u8) -> Vec<u8> {
        let mut segment = b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01".to_vec();
        segment.extend(*b"\x01\x12\0\x03\0\0\0\x01\0");
        segment.extend([orientation, 0, 0, 0, 0, 0, 0]);
        segment
    }

    #[test]
    fn a_wide_photograph_has_a_smaller_form_in_about_the_same_colours() {
        let bytes = jpeg(3000, 40, &[]);
        assert!(Form::is_needed("a.JPG", &bytes, (3000, 40), Use::Picture));
        let form = Form::new(&bytes, (3000, 40), Use::Picture);
        assert!(form.path.ends_with("-1504.jpg"), "{}", form.path);
        let (made, media_type) = form.make(&bytes);
        assert_eq!(media_type, "image/jpeg");
        assert!(
            made.len() < bytes.len() / 2,
            "{} {}",
            made.len(),
            bytes.len()
        );
        assert_eq!(imagesize::blob_size(&made).unwrap().width, 1504);
        assert_eq!(form.make(&bytes).0, made);
        // The same on every machine.
        assert_eq!(&Digest::of(&made).to_string()[..16], "b049b73df8fd850f");
        let (large, small) = (jpeg::decode(&bytes).unwrap(), jpeg::decode(&made).unwrap());
        let (large, small) = (large.image.into_rgb8(), small.image.into_rgb8());
        for (x, y) in [(100, 5), (700, 12), (1400, 18)] {
            let (one, two) = (small.get_pixel(x, y), large.get_pixel(2 * x, 2 * y));
            for (one, two) in one.0.iter().zip(two.0) {
                assert!(one.abs_diff(two) < 12, "{x} {y}: {one} {two}");
            }
        }
    }

    #[test]
    fn a_heavy_photograph_has_a_form_of_the_same_width_that_is_really_smaller() {
        let mut state = 7_u32;
        let pixel = |x: u32, y: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [.., noise] = (state >> 4).to_be_bytes();
            let low = |number: u32| number.to_le_bytes()[0] / 4;
            image::Rgb([
                low(x) + noise / 2,
                low(y) + noise / 3,
                low(x + y) + noise / 2,
            ])
        };
        let image = image::RgbImage::from_fn(1000, 600, pixel);
        let mut bytes = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut bytes, 98);
        encoder
            .encode(&image, 1000, 600, jpeg_encoder::ColorType::Rgb)
            .unwrap();
        assert!(bytes.len() > HEAVY_BYTES, "{}", bytes.len());
        assert!(Form::is_needed("a.jpeg", &bytes, (1000, 600), Use::Picture));
        let form = Form::new(&bytes, (1000, 600), Use::Picture);
        assert_eq!(form.width, 1000);
        let (made, media_type) = form.make(&bytes);
        assert_eq!(media_type, "image/jpeg");
        assert!(
            made.len() * 3 < bytes.len() * 2,
            "{} {}",
            made.len(),
            bytes.len()
        );
        assert!(form.make(&bytes).0 == made);
    }

    #[test]
    fn a_turned_photograph_has_the_size_in_which_it_is_shown_and_no_form() {
        for (orientation, size) in [(1, (1600, 40)), (3, (1600, 40)), (6, (40, 1600))] {
            let bytes = jpeg(1600, 40, &turned(orientation));
            assert_eq!(super::size("a.jpg", &bytes), Some(size));
            let has_form = Form::is_needed("a.jpg", &bytes, size, Use::Picture);
            assert_eq!(has_form, orientation == 1, "{orientation}");
        }
    }

    #[test]
    fn broken_photographs_are_shown_as_they_are() {
        let whole = jpeg(1600, 40, &[]);
        for length in [2, 3, 20, 200, whole.len() / 2] {
            let bytes = &whole[..length];
            let form = Form::new(bytes, (1600, 40), Use::Picture);
            let (made, _) = form.make(bytes);
            assert!(made == bytes || made.len() < bytes.len(), "{length}");
        }
        let mut many = whole.clone();
        // The frame says 65,535 by 65,535 pixels.
        let at = many
            .windows(2)
            .position(|pair| pair == [0xff, 0xc0])
            .unwrap();
        many[at + 5..at + 9].fill(0xff);
        let form = Form::new(&many, (1600, 40), Use::Picture);
        assert_eq!(form.make(&many), (many.clone(), "image/jpeg"));
    }

    #[test]
    fn a_form_keeps_the_profile_of_its_colours() {
        let profile = vec![7; 300];
        let pixels = image::load_from_memory(&png(1600, 40)).unwrap();
        let mut bytes = Vec::new();
        let mut encoder = PngEncoder::new(&mut bytes);
        encoder.set_icc_profile(profile.clone()).unwrap();
        let color = image::ExtendedColorType::Rgb8;
        encoder
            .write_image(pixels.as_bytes(), 1600, 40, color)
            .unwrap();
        let (made, media_type) = Form::new(&bytes, (1600, 40), Use::Picture).make(&bytes);
        assert_eq!(media_type, "image/webp");
        assert!(made.windows(profile.len()).any(|part| part == profile));
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

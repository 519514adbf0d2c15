//! JPEG files: their orientation, their pixels, and smaller forms of them.
//!
//! The decoder and the encoder run without instructions that only some machines have, so their
//! results are the same everywhere.
//!
//! Sources: ITU-T T.81; Exif 3.0 §4.6.5 (`Orientation`).

use image::metadata::Orientation;
use image::{DynamicImage, GrayImage, RgbImage};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::IMAGE_PIXELS_MAX;

/// The quality of smaller forms (1 to 100). Text in screenshots stays readable.
const QUALITY: u8 = 85;
/// How many scans a file may have. A scan may update all pixels, so each one takes time.
const SCANS_MAX: usize = 32;

/// The pixels of an image, and the profile of its colours.
pub(super) struct Decoded {
    pub(super) image: DynamicImage,
    pub(super) profile: Option<Vec<u8>>,
}

/// Returns whether a browser rotates or mirrors the image, and whether that exchanges width and
/// height.
pub(super) fn orientation(bytes: &[u8]) -> (bool, bool) {
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options());
    let is_read = decoder.decode_headers().is_ok();
    let exif = decoder.exif().filter(|_| is_read);
    match exif.and_then(|exif| Orientation::from_exif_chunk(exif)) {
        None | Some(Orientation::NoTransforms) => (false, false),
        Some(Orientation::Rotate180 | Orientation::FlipHorizontal | Orientation::FlipVertical) => {
            (true, false)
        }
        Some(_) => (true, true),
    }
}

/// Decodes a grey or colour image; `None` for other colour spaces and for too many pixels.
pub(super) fn decode(bytes: &[u8]) -> Option<Decoded> {
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options());
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;
    if width as u64 * height as u64 > IMAGE_PIXELS_MAX {
        return None;
    }
    let wanted = match decoder.input_colorspace()? {
        ColorSpace::Luma => ColorSpace::Luma,
        ColorSpace::YCbCr | ColorSpace::RGB => ColorSpace::RGB,
        _ => return None,
    };
    decoder.set_options(options().jpeg_set_out_colorspace(wanted));
    let pixels = decoder.decode().ok()?;
    let profile = decoder.icc_profile();
    let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    let image = match decoder.output_colorspace()? {
        ColorSpace::Luma => DynamicImage::ImageLuma8(GrayImage::from_raw(width, height, pixels)?),
        ColorSpace::RGB => DynamicImage::ImageRgb8(RgbImage::from_raw(width, height, pixels)?),
        _ => return None,
    };
    Some(Decoded { image, profile })
}

/// Encodes an image as JPEG.
pub(super) fn encode(image: &DynamicImage, profile: Option<&[u8]>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_optimized_huffman_tables(true);
    encoder.set_progressive(true);
    if let Some(profile) = profile {
        encoder.add_icc_profile(profile).ok()?;
    }
    let (width, height) = (image.width(), image.height());
    let (width, height) = (u16::try_from(width).ok()?, u16::try_from(height).ok()?);
    let kind = match image {
        DynamicImage::ImageLuma8(_) => ColorType::Luma,
        DynamicImage::ImageRgb8(_) => ColorType::Rgb,
        _ => return None,
    };
    encoder.encode(image.as_bytes(), width, height, kind).ok()?;
    Some(out)
}

fn options() -> DecoderOptions {
    DecoderOptions::new_safe()
        .set_use_unsafe(false)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_max_scans(SCANS_MAX)
}

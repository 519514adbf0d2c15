//! Pictures of authors in images: the logo, the icon, a background.
//!
//! A few bytes of SVG can take hours to draw: copies of copies, filters, dashes. They can also take
//! hours to read: markers, stylesheets. So an SVG of an author is bounded in bytes, elements, depth,
//! copies and rules before it is read, and in layers, lines and areas before it is drawn. Elements that
//! no logo needs are refused.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use image::imageops::FilterType;
use resvg::tiny_skia::{ColorU8, IntSize, Pixmap, PixmapPaint, Point, Transform};
use resvg::usvg::roxmltree::{Document, Error as XmlError, Node as XmlNode, ParsingOptions};
use resvg::usvg::{Group, Node, Paint, Path, Size, Tree};
use thiserror::Error;

use super::{Fill, options};
use crate::digest::Digest;
use crate::render::image::{self as images, IMAGE_PIXELS_MAX};

/// How many bytes an SVG may have.
const SVG_BYTES_MAX: usize = 128 << 10;
/// How many elements and texts an SVG may have, as it is written and with all copies.
const ELEMENTS_MAX: u32 = 4000;
/// How deep elements may be nested.
const DEPTH_MAX: usize = 32;
/// How often an SVG may copy a part of itself.
const COPIES_MAX: usize = 16;
/// How many layers it may have that are drawn by themselves: opacity, clips and masks.
const LAYERS_MAX: usize = 32;
/// How deep such layers may be nested.
const LAYER_DEPTH_MAX: usize = 4;
/// How much its elements may weigh with all copies, clips and masks: one for each element, and one
/// for each [`BYTES_PER_WEIGHT`] bytes of its attributes.
const WEIGHT_MAX: u64 = 16_000;
/// How many bytes of attributes weigh as much as an element.
const BYTES_PER_WEIGHT: usize = 64;
/// How often a rule of a stylesheet may be compared with an element, times its declarations.
const RULES_MAX: u64 = 1_000_000;
/// How many lines and curves its paths may have; one that is stroked counts four times.
const EDGES_MAX: f32 = 40_000.0;
/// How often its edges may cross the picture from top to bottom, together. A path is drawn by its
/// edges in each row of pixels.
const CROSSINGS_MAX: f32 = 4000.0;
/// How often its paths may cover the picture, together; a gradient counts four times.
const COVERS_MAX: f32 = 300.0;
/// How many characters of text it may have.
const TEXT_MAX: usize = 500;
/// Elements that are refused.
const REFUSED: [&str; 7] = [
    "filter",
    "pattern",
    "image",
    "foreignObject",
    "feImage",
    "marker",
    "textPath",
];

/// A picture of the authors that can be drawn.
#[derive(Clone, Debug)]
pub struct Art {
    source: Source,
    /// Width and height, in the units of the picture.
    pub(super) size: (f32, f32),
    pub(super) digest: Digest,
}

/// The source of a picture.
#[derive(Clone, Debug)]
enum Source {
    Svg(Arc<Tree>),
    /// A file with pixels. It is decoded when it is drawn: pixels take more memory than the file.
    Pixels(Bytes),
}

/// The pictures that the images of a site are drawn with.
#[derive(Clone, Debug, Default)]
pub struct Arts {
    /// The logo.
    pub logo: Option<Art>,
    /// The icon.
    pub icon: Option<Art>,
    /// The background picture of previews.
    pub background: Option<Art>,
}

/// The reasons why a picture is not drawn.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unfit {
    /// It is neither SVG nor an image that is read.
    #[error("it is not an SVG, PNG or JPEG file that can be read")]
    Unknown,
    /// It is too large.
    #[error("it is larger than 128 KiB or 16 million pixels")]
    Large,
    /// It is too complex.
    #[error(
        "it has more than 4,000 elements, 32 levels, 32 layers, 16 copies or 500 characters of text, \
         too many rules of a stylesheet, or too many lines and areas"
    )]
    Complex,
    /// It contains something that is not drawn.
    #[error(
        "it has filters, patterns, images, markers, text on paths, dashed lines or entities, which \
         are not drawn"
    )]
    Refused,
}

/// What an SVG contains.
struct Contents {
    /// The size of the picture.
    size: Size,
    elements: u32,
    layers: usize,
    edges: f32,
    crossings: f32,
    covers: f32,
}

// === impl Art ===

impl Art {
    /// Reads a picture. An SVG is checked whole; of other images, only the size.
    ///
    /// # Errors
    ///
    /// [`Unfit`].
    pub fn read(path: &str, bytes: Bytes) -> Result<Self, Unfit> {
        let digest = Digest::of(&bytes);
        let is_svg = path.to_ascii_lowercase().ends_with(".svg");
        let (source, size) = match is_svg {
            true => {
                let read = catch_unwind(AssertUnwindSafe(|| read_svg(&bytes)));
                let tree = read.unwrap_or(Err(Unfit::Unknown))?;
                let size = (tree.size().width(), tree.size().height());
                (Source::Svg(Arc::new(tree)), size)
            }
            false => {
                let (width, height) = images::size(path, &bytes).ok_or(Unfit::Unknown)?;
                let is_read = images::is_decoded(&bytes);
                if !is_read || width == 0 || height == 0 {
                    return Err(Unfit::Unknown);
                }
                if width as u64 * height as u64 > IMAGE_PIXELS_MAX {
                    return Err(Unfit::Large);
                }
                // Below 16 million, so the conversion is exact.
                #[expect(clippy::cast_precision_loss, reason = "below 2^24")]
                let size = (width as f32, height as f32);
                (Source::Pixels(bytes), size)
            }
        };
        Ok(Self {
            source,
            size,
            digest,
        })
    }

    /// Returns how many pixels the smaller side has; an SVG has any number.
    pub(super) fn pixels(&self) -> f32 {
        match &self.source {
            Source::Svg(_) => f32::INFINITY,
            Source::Pixels(_) => self.size.0.min(self.size.1),
        }
    }

    /// Draws the picture in a box.
    pub(super) fn draw(&self, width: u32, height: u32, fill: Fill) -> Option<Pixmap> {
        let mut pixels = Pixmap::new(width, height)?;
        #[expect(clippy::cast_precision_loss, reason = "boxes are small")]
        let (w, h) = (width as f32, height as f32);
        let scales = (w / self.size.0, h / self.size.1);
        let scale = match fill {
            Fill::Cover => scales.0.max(scales.1),
            Fill::Start | Fill::Centre => scales.0.min(scales.1),
        };
        let (own_width, own_height) = (self.size.0 * scale, self.size.1 * scale);
        let x = match fill {
            Fill::Start => 0.0,
            Fill::Centre | Fill::Cover => (w - own_width) / 2.0,
        };
        let y = (h - own_height) / 2.0;
        match &self.source {
            Source::Svg(tree) => {
                let place = Transform::from_scale(scale, scale).post_translate(x, y);
                resvg::render(tree, place, &mut pixels.as_mut());
            }
            Source::Pixels(bytes) => {
                let image = images::decode(bytes)?;
                let whole = |side: f32| {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "it is clamped"
                    )]
                    let whole = side.round().clamp(1.0, 8192.0) as u32;
                    whole
                };
                let (own_width, own_height) = (whole(own_width), whole(own_height));
                let image = image.resize_exact(own_width, own_height, FilterType::CatmullRom);
                let image = image.into_rgba8();
                let data: Vec<u8> = image
                    .pixels()
                    .flat_map(|pixel| premultiplied(pixel.0))
                    .collect();
                let picture = Pixmap::from_vec(data, IntSize::from_wh(own_width, own_height)?)?;
                let place = Transform::from_translate(x.round(), y.round());
                pixels.draw_pixmap(0, 0, picture.as_ref(), &PixmapPaint::default(), place, None);
            }
        }
        Some(pixels)
    }
}

fn premultiplied([red, green, blue, alpha]: [u8; 4]) -> [u8; 4] {
    let colour = ColorU8::from_rgba(red, green, blue, alpha).premultiply();
    [colour.red(), colour.green(), colour.blue(), colour.alpha()]
}

/// Reads an SVG within the limits.
fn read_svg(bytes: &[u8]) -> Result<Tree, Unfit> {
    if bytes.len() > SVG_BYTES_MAX {
        return Err(Unfit::Large);
    }
    let text = str::from_utf8(bytes).map_err(|_not_text| Unfit::Unknown)?;
    if text.contains("<!ENTITY") {
        return Err(Unfit::Refused);
    }
    let parsing = ParsingOptions {
        allow_dtd: true,
        nodes_limit: ELEMENTS_MAX,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, parsing);
    let document = document.map_err(|error| match error {
        XmlError::NodesLimitReached => Unfit::Complex,
        _ => Unfit::Unknown,
    })?;
    check_written(document.root())?;
    let tree = Tree::from_xmltree(&document, &options()).map_err(|_invalid| Unfit::Unknown)?;
    Contents::new(tree.size()).add(tree.root(), 0, 0)?;
    Ok(tree)
}

/// The weight of the elements as they are written, with all copies.
struct Weighed<'w> {
    ids: HashMap<&'w str, XmlNode<'w, 'w>>,
    weight: u64,
}

// === impl Weighed ===

impl<'w> Weighed<'w> {
    /// Adds an element with everything in it, and what it copies, is clipped by or masked by. A
    /// circle of copies ends at a limit.
    fn add(&mut self, node: XmlNode<'w, 'w>, depth: usize) -> Result<(), Unfit> {
        let mut bytes = 0;
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            bytes += value.len();
            let is_copy = name == "href" && node.tag_name().name() == "use";
            let is_cut = matches!(name, "clip-path" | "mask")
                || name == "style" && (value.contains("clip-path") || value.contains("mask"));
            let names: Vec<&str> = match is_copy {
                true => value.trim().strip_prefix('#').into_iter().collect(),
                false if is_cut => addresses(value).collect(),
                false => Vec::new(),
            };
            for name in names {
                if let Some(target) = self.ids.get(name).copied() {
                    self.deeper(target, depth)?;
                }
            }
        }
        self.weight += 1 + (bytes / BYTES_PER_WEIGHT) as u64;
        if self.weight > WEIGHT_MAX {
            return Err(Unfit::Complex);
        }
        for child in node.children().filter(XmlNode::is_element) {
            self.deeper(child, depth)?;
        }
        Ok(())
    }

    fn deeper(&mut self, node: XmlNode<'w, 'w>, depth: usize) -> Result<(), Unfit> {
        match depth < 4 * DEPTH_MAX {
            true => self.add(node, depth + 1),
            false => Err(Unfit::Complex),
        }
    }

    /// Returns how often the elements may be read because of a stylesheet that clips or masks them.
    /// Reading makes a clip or mask again for each element, unless its units are those of the user.
    fn cuts(&mut self, sheet: &str) -> Result<u64, Unfit> {
        let mut times: u64 = 1;
        if !sheet.contains("clip-path") && !sheet.contains("mask") {
            return Ok(times);
        }
        let mut names: Vec<&str> = addresses(sheet).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let Some(target) = self.ids.get(name).copied() else {
                continue;
            };
            let units = |name| target.attribute(name).unwrap_or_default();
            let is_made_again = match target.tag_name().name() {
                "clipPath" => units("clipPathUnits") == "objectBoundingBox",
                "mask" => {
                    units("maskUnits") != "userSpaceOnUse"
                        || units("maskContentUnits") == "objectBoundingBox"
                }
                _ => false,
            };
            if is_made_again {
                let before = std::mem::take(&mut self.weight);
                self.add(target, 0)?;
                times = times.saturating_mul(self.weight);
                self.weight = before;
            }
        }
        Ok(times)
    }
}

/// Returns the names in `url(#name)`.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    text.split("url(").skip(1).filter_map(|rest| {
        let name = rest.split_once(')')?.0;
        name.trim().trim_matches(['"', '\'']).strip_prefix('#')
    })
}

/// Returns how much work the rules of a stylesheet are for each element.
fn rules(sheet: &str) -> u64 {
    let mut work: u64 = 0;
    for rule in sheet.split('}') {
        let mut parts = rule.rsplit('{');
        let declarations = parts.next().unwrap_or_default();
        let selectors = parts.next().unwrap_or_default();
        // A statement such as `@import` may be before the selectors.
        let selectors = selectors.rsplit(';').next().unwrap_or_default();
        let times = 1 + declarations.bytes().filter(|byte| *byte == b':').count() as u64;
        for selector in selectors.split(',') {
            let signs = |sign: char| sign.is_whitespace() || matches!(sign, '>' | '+');
            let names = selector.split(signs).filter(|part| !part.is_empty());
            // For each further name, the elements around each element are compared.
            let further = u32::try_from(names.count().saturating_sub(1)).unwrap_or(u32::MAX);
            let chains = (DEPTH_MAX as u64).saturating_pow(further);
            work = work.saturating_add(times.saturating_mul(chains));
        }
    }
    work
}

/// Returns a stylesheet without its comments, which may be anywhere.
fn without_comments(sheet: &str) -> String {
    let mut out = String::with_capacity(sheet.len());
    let mut rest = sheet;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        out.push(' ');
        rest = after.split_once("*/").map_or("", |(_, rest)| rest);
    }
    out + rest
}

/// Checks the elements as they are written, before copies are made.
fn check_written<'w>(root: XmlNode<'w, 'w>) -> Result<(), Unfit> {
    let (mut copies, mut letters) = (0, 0);
    let mut waiting = vec![(root, 0)];
    while let Some((node, depth)) = waiting.pop() {
        let name = node.tag_name().name();
        copies += usize::from(name == "use");
        letters += match node.parent_element().map(|parent| parent.tag_name().name()) {
            Some("text" | "tspan" | "textPath") => node.text().map_or(0, str::len),
            _ => 0,
        };
        if depth > DEPTH_MAX || copies > COPIES_MAX || letters > TEXT_MAX {
            return Err(Unfit::Complex);
        }
        if REFUSED.contains(&name) {
            return Err(Unfit::Refused);
        }
        waiting.extend(node.children().map(|child| (child, depth + 1)));
    }
    let elements = || root.descendants().filter(XmlNode::is_element);
    let ids = elements().filter_map(|node| Some((node.attribute("id")?, node)));
    let mut weighed = Weighed {
        ids: ids.collect(),
        weight: 0,
    };
    weighed.add(root, 0)?;
    let sheets = elements().filter(|node| node.tag_name().name() == "style");
    let texts = sheets.flat_map(|sheet| sheet.descendants().filter_map(|node| node.text()));
    let sheet = without_comments(&texts.collect::<String>());
    let weight = weighed.weight;
    let work = rules(&sheet).saturating_mul(weight);
    let cuts = weighed.cuts(&sheet)?.saturating_mul(weight);
    match work > RULES_MAX || cuts > RULES_MAX {
        true => Err(Unfit::Complex),
        false => Ok(()),
    }
}

// === impl Contents ===

impl Contents {
    fn new(size: Size) -> Self {
        Self {
            size,
            elements: 0,
            layers: 0,
            edges: 0.0,
            crossings: 0.0,
            covers: 0.0,
        }
    }

    /// Adds what drawing a path costs.
    fn draw(&mut self, path: &Path) -> Result<(), Unfit> {
        let place = path.abs_transform();
        let (width, height) = (self.size.width(), self.size.height());
        let points = path.data().points();
        // Rows outside of the picture are not drawn.
        let row = |point: &Point| {
            let y = place.ky * point.x + place.sy * point.y + place.ty;
            (y / height).clamp(0.0, 1.0)
        };
        let steps = points.windows(2);
        let crossed: f32 = steps
            .map(|pair| (row(&pair[0]) - row(&pair[1])).abs())
            .sum();
        #[expect(clippy::cast_precision_loss, reason = "an SVG is small")]
        let count = points.len() as f32;
        let bounds = path.abs_stroke_bounding_box();
        let side =
            |from: f32, to: f32, most: f32| (to.clamp(0.0, most) - from.clamp(0.0, most)) / most;
        let covered = side(bounds.left(), bounds.right(), width)
            * side(bounds.top(), bounds.bottom(), height);
        let paint = |paint: &Paint| match paint {
            Paint::Color(_) => 1.0,
            _ => 4.0,
        };
        if let Some(fill) = path.fill() {
            self.edges += count;
            self.crossings += crossed;
            self.covers += covered * paint(fill.paint());
        }
        if let Some(stroke) = path.stroke() {
            let (x, y) = place.get_scale();
            let line = (stroke.width().get() * x.max(y) / height).min(1.0);
            // It has two sides, and the end of each line.
            self.edges += 4.0 * count;
            self.crossings += 2.0 * (crossed + count * line);
            self.covers += covered * paint(stroke.paint());
        }
        let fits =
            self.edges <= EDGES_MAX && self.crossings <= CROSSINGS_MAX && self.covers <= COVERS_MAX;
        fits.then_some(()).ok_or(Unfit::Complex)
    }

    /// Adds a group with everything in it. Groups are at most [`DEPTH_MAX`] deep, and some more
    /// that reading adds.
    fn add(&mut self, group: &Group, depth: usize, layers: usize) -> Result<(), Unfit> {
        let is_layer = group.should_isolate();
        let layers = layers + usize::from(is_layer);
        self.layers += usize::from(is_layer);
        let is_deep = depth > 4 * DEPTH_MAX || layers > LAYER_DEPTH_MAX;
        if is_deep || self.layers > LAYERS_MAX {
            return Err(Unfit::Complex);
        }
        if !group.filters().is_empty() {
            return Err(Unfit::Refused);
        }
        let mut clip = group.clip_path();
        while let Some(path) = clip {
            self.layers += 1;
            self.add(path.root(), depth + 1, layers)?;
            clip = path.clip_path();
        }
        let mut mask = group.mask();
        while let Some(one) = mask {
            self.layers += 1;
            self.add(one.root(), depth + 1, layers)?;
            mask = one.mask();
        }
        for node in group.children() {
            self.elements += 1;
            if self.elements > ELEMENTS_MAX {
                return Err(Unfit::Complex);
            }
            match node {
                Node::Group(inner) => self.add(inner, depth + 1, layers)?,
                Node::Path(path) => {
                    let dashes = path.stroke().and_then(|stroke| stroke.dasharray());
                    if dashes.is_some() {
                        return Err(Unfit::Refused);
                    }
                    self.draw(path)?;
                }
                Node::Image(_) => return Err(Unfit::Refused),
                Node::Text(text) => self.add(text.flattened(), depth + 1, layers)?,
            }
        }
        Ok(())
    }
}

//! The image of a preview of a link: logo, section, title and description.
//!
//! Sources: the Open Graph protocol; X, "Cards markup" (1.91 to 1).

use std::fmt::Write as _;
use std::sync::Arc;

use super::text::{self, FAMILY, Setting, Weight};
use super::{Art, Fill, GeneratedImage, Layer, Placed};
use crate::markup::Html;

/// Width and height in pixels.
pub const SIZE: (u32, u32) = (1200, 630);
/// The space at the left and at the right, in pixels.
const MARGIN: f32 = 80.0;
/// The width of text.
const WIDTH: f32 = 1200.0 - 2.0 * MARGIN;
/// The box of the logo, in pixels, and its left upper corner.
const LOGO: (u32, u32) = (480, 64);
const LOGO_AT: (i32, i32) = (80, 72);
/// The box of a logo without any text below it.
const LARGE_LOGO: (u32, u32) = (720, 160);
const LARGE_LOGO_AT: (i32, i32) = (240, 235);
/// The box of an icon before the name of the site.
const ICON: (u32, u32) = (56, 56);
const ICON_AT: (i32, i32) = (80, 76);
/// The base of the lowest line of text, in pixels from the top.
const LAST_BASE: f32 = 538.0;
/// The sizes of a title, the largest first: in pixels, and how many lines it may have.
const TITLES: [(f32, usize); 3] = [(80.0, 2), (68.0, 3), (58.0, 3)];
/// The height of a line, as a part of its size.
const TITLE_LINE: f32 = 1.12;
const DESCRIPTION_LINE: f32 = 1.4;
const DESCRIPTION_SIZE: f32 = 33.0;
const SECTION_SIZE: f32 = 29.0;
const NAME_SIZE: f32 = 38.0;

/// The colours of a preview, each as `#rrggbb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colours {
    /// Below everything, as three channels.
    pub background: [u8; 3],
    /// The title.
    pub strong: String,
    /// The description.
    pub quiet: String,
    /// The section.
    pub accent: String,
    /// A shape in the background.
    pub tint: String,
    /// The line at the bottom.
    pub brand: String,
}

/// The parts that all previews of a site share.
#[derive(Clone, Debug)]
pub struct Style {
    colours: Colours,
    name: Option<String>,
    logo: Option<(Arc<Placed>, Arc<Placed>)>,
    icon: Option<Arc<Placed>>,
    background: Option<Arc<Placed>>,
}

/// The texts of a preview. Texts that the font cannot show are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Texts<'t> {
    /// The section, drawn above the title.
    pub section: Option<&'t str>,
    /// The title; without one, a preview has the logo only.
    pub title: &'t str,
    /// The description, drawn below the title.
    pub description: Option<&'t str>,
}

// === impl Style ===

impl Style {
    /// Collects what previews share: the name of the site, its logo or else its icon, and a picture
    /// below everything.
    #[must_use]
    pub fn new(
        colours: Colours,
        name: &str,
        logo: Option<&Art>,
        icon: Option<&Art>,
        background: Option<&Art>,
    ) -> Self {
        let placed = |art: Option<&Art>, size, fill| art.map(|art| Placed::new(art, size, fill));
        let large = placed(logo, LARGE_LOGO, Fill::Centre);
        Self {
            colours,
            name: text::drawable(name),
            logo: placed(logo, LOGO, Fill::Start).zip(large),
            icon: placed(icon, ICON, Fill::Centre),
            background: placed(background, SIZE, Fill::Cover),
        }
    }

    /// Returns the preview with some texts; `None` if it would show nothing: a site without a logo
    /// whose texts the font cannot show.
    #[must_use]
    pub fn preview(&self, texts: Texts<'_>) -> Option<GeneratedImage> {
        let title = text::drawable(texts.title);
        if title.is_none() && self.logo.is_none() && self.name.is_none() {
            return None;
        }
        let mut layers = Vec::new();
        if let Some(background) = &self.background {
            layers.push(Layer::Picture(Arc::clone(background), 0, 0));
        }
        layers.push(Layer::Shapes(self.shapes(texts, title.as_deref()).into()));
        match (&self.logo, &self.icon) {
            (Some((small, _)), _) if title.is_some() => {
                let (x, y) = LOGO_AT;
                layers.push(Layer::Picture(Arc::clone(small), x, y));
            }
            (Some((_, large)), _) => {
                let (x, y) = LARGE_LOGO_AT;
                layers.push(Layer::Picture(Arc::clone(large), x, y));
            }
            (None, Some(icon)) => {
                let (x, y) = ICON_AT;
                layers.push(Layer::Picture(Arc::clone(icon), x, y));
            }
            (None, None) => {}
        }
        Some(GeneratedImage::new(
            "preview",
            SIZE,
            Some(self.colours.background),
            layers,
        ))
    }

    /// Writes the shapes and texts of a preview as SVG.
    fn shapes(&self, texts: Texts<'_>, title: Option<&str>) -> String {
        let Colours {
            strong,
            quiet,
            accent,
            tint,
            brand,
            ..
        } = &self.colours;
        let (width, height) = SIZE;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\">"
        );
        let mut write = |shape: std::fmt::Arguments<'_>| {
            svg.write_fmt(shape)
                .expect("a String takes every character");
        };
        if self.background.is_none() {
            write(format_args!(
                "<circle cx=\"1130\" cy=\"70\" r=\"300\" fill=\"{tint}\"/>"
            ));
        }
        write(format_args!(
            "<rect y=\"616\" width=\"1200\" height=\"14\" fill=\"{brand}\"/>"
        ));
        let mut line = |setting: Setting, colour: &str, (x, base): (f32, f32), text: &str| {
            let (weight, size) = (setting.weight.number(), setting.size);
            let spacing = setting.spacing * size;
            write(format_args!(
                "<text x=\"{x}\" y=\"{base:.1}\" font-family=\"{FAMILY}\" font-weight=\"{weight}\" \
                 font-size=\"{size}\" letter-spacing=\"{spacing:.2}\" fill=\"{colour}\">{}</text>",
                Html::default().text(text).as_str()
            ));
        };
        let name = self.name.as_deref().filter(|_| self.logo.is_none());
        if let Some(name) = name {
            let setting = Setting::new(Weight::SemiBold, NAME_SIZE, -0.015);
            let x = MARGIN + if self.icon.is_some() { 76.0 } else { 0.0 };
            for name in setting.broken(name, 600.0, 1).0 {
                line(setting, strong, (x, 117.0), &name);
            }
        }
        let Some(title) = title else {
            return svg + "</svg>";
        };
        let mut base = LAST_BASE;
        let description = texts.description.and_then(text::drawable);
        if let Some(description) = description {
            let setting = Setting::new(Weight::Regular, DESCRIPTION_SIZE, 0.0);
            for text in setting.broken(&description, WIDTH, 2).0.iter().rev() {
                line(setting, quiet, (MARGIN, base), text);
                base -= DESCRIPTION_SIZE * DESCRIPTION_LINE;
            }
            base -= 16.0;
        }
        let setting = |size| Setting::new(Weight::SemiBold, size, -0.026);
        let mut sizes = TITLES.into_iter().map(|(size, lines_max)| {
            let (lines, is_cut) = setting(size).broken(title, WIDTH, lines_max);
            (size, lines, is_cut)
        });
        // The largest size in which all words fit, else the smallest one.
        let (mut size, mut lines, mut is_cut) = sizes.next().expect("there are sizes");
        while is_cut && let Some(smaller) = sizes.next() {
            (size, lines, is_cut) = smaller;
        }
        for text in lines.iter().rev() {
            line(setting(size), strong, (MARGIN, base), text);
            base -= size * TITLE_LINE;
        }
        if let Some(section) = texts.section.and_then(text::drawable) {
            let base = base + size * (TITLE_LINE - 0.86) - 18.0;
            let setting = Setting::new(Weight::SemiBold, SECTION_SIZE, 0.0);
            for section in setting.broken(&section, WIDTH, 1).0 {
                line(setting, accent, (MARGIN, base), &section);
            }
        }
        svg + "</svg>"
    }
}

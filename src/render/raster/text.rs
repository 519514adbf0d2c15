//! Text in images: which characters can be drawn, how wide they are, and where lines break.
//!
//! The font has the Latin and Cyrillic scripts. Text in another script is not drawn, because boxes
//! in place of letters are worse than no text.

use std::sync::{Arc, LazyLock};

use resvg::usvg::fontdb::{Database, Source};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider as _};
use unicode_segmentation::UnicodeSegmentation as _;

/// The family of the font.
pub(super) const FAMILY: &str = "Geist";
const REGULAR: &[u8] = include_bytes!("../font/geist-regular.ttf");
const SEMIBOLD: &[u8] = include_bytes!("../font/geist-semibold.ttf");
/// How many bytes of a text are read.
const BYTES_MAX: usize = 2000;

/// A weight of the font.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    SemiBold,
}

/// How a text is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub weight: Weight,
    /// In pixels.
    pub size: f32,
    /// Between two letters, as a part of the size.
    pub spacing: f32,
}

/// The widths of the letters of a setting.
struct Ruler<'f> {
    charmap: skrifa::charmap::Charmap<'f>,
    metrics: skrifa::metrics::GlyphMetrics<'f>,
    spacing: f32,
}

/// A text in lines, and whether words at its end are left out.
pub(super) type Lines = (Vec<String>, bool);

/// The fonts for drawing. Every family that a drawing names is the bundled one.
pub(super) static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    for font in [REGULAR, SEMIBOLD] {
        fonts.load_font_source(Source::Binary(Arc::new(font)));
    }
    fonts.set_serif_family(FAMILY);
    fonts.set_sans_serif_family(FAMILY);
    fonts.set_monospace_family(FAMILY);
    fonts.set_cursive_family(FAMILY);
    fonts.set_fantasy_family(FAMILY);
    Arc::new(fonts)
});

/// Returns a text as it can be drawn: white space as single spaces, without signs that the font
/// lacks. A letter or digit that it lacks makes the whole text unfit.
pub(super) fn drawable(text: &str) -> Option<String> {
    let font = FontRef::new(SEMIBOLD).ok()?;
    let charmap = font.charmap();
    let text = &text[..text.floor_char_boundary(BYTES_MAX)];
    let mut kept = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            kept.push(' ');
        } else if charmap.map(c).is_some() {
            kept.push(c);
        } else if c.is_alphanumeric() {
            return None;
        }
    }
    let words: Vec<&str> = kept.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

// === impl Weight ===

impl Weight {
    /// Returns the value of `font-weight`.
    pub(super) fn number(self) -> u16 {
        match self {
            Self::Regular => 400,
            Self::SemiBold => 600,
        }
    }
}

// === impl Setting ===

impl Setting {
    pub(super) fn new(weight: Weight, size: f32, spacing: f32) -> Self {
        Self {
            weight,
            size,
            spacing,
        }
    }

    /// Breaks a text between words into lines of at most a width in pixels. A text that needs more
    /// lines is cut after a word, or inside a word that is wider than a line.
    pub(super) fn broken(self, text: &str, width: f32, lines_max: usize) -> Lines {
        self.ruler()
            .map(|ruler| ruler.broken(text, width, lines_max))
            .unwrap_or_default()
    }

    fn ruler(self) -> Option<Ruler<'static>> {
        let bytes = match self.weight {
            Weight::Regular => REGULAR,
            Weight::SemiBold => SEMIBOLD,
        };
        let font = FontRef::new(bytes).ok()?;
        Some(Ruler {
            charmap: font.charmap(),
            metrics: font.glyph_metrics(Size::new(self.size), LocationRef::default()),
            spacing: self.spacing * self.size,
        })
    }
}

// === impl Ruler ===

impl Ruler<'_> {
    /// Returns the width of a text in pixels. Kerning, which makes it a little smaller, is left
    /// out.
    fn width(&self, text: &str) -> f32 {
        let glyphs = text.chars().filter_map(|c| self.charmap.map(c));
        let widths = glyphs.map(|glyph| self.metrics.advance_width(glyph).unwrap_or_default());
        widths.map(|width| width + self.spacing).sum()
    }

    fn broken(&self, text: &str, width: f32, lines_max: usize) -> Lines {
        let mut lines: Vec<String> = vec![String::new()];
        let mut is_cut = false;
        for word in text.split(' ') {
            let line = lines.last_mut().expect("there is a line");
            let longer = match line.is_empty() {
                true => word.to_owned(),
                false => format!("{line} {word}"),
            };
            if self.width(&longer) <= width || line.is_empty() {
                *line = longer;
            } else if lines.len() < lines_max {
                lines.push(word.to_owned());
            } else {
                is_cut = true;
                break;
            }
        }
        for at in 0..lines.len() {
            if self.width(&lines[at]) > width {
                lines.truncate(at + 1);
                is_cut = true;
            }
        }
        if is_cut && let Some(line) = lines.last_mut() {
            *line = self.shortened(line, width);
        }
        (lines, is_cut)
    }

    /// Ends a line with an ellipsis, and removes words until it fits.
    fn shortened(&self, line: &str, width: f32) -> String {
        let ended = |kept: &str| {
            let kept = kept.trim_end_matches(|c: char| !c.is_alphanumeric() && c != ')');
            format!("{kept}…")
        };
        let mut kept = line;
        loop {
            let text = ended(kept);
            if self.width(&text) <= width {
                return text;
            }
            let Some((before, _)) = kept.rsplit_once(' ') else {
                break;
            };
            kept = before;
        }
        let mut graphemes: Vec<&str> = kept.graphemes(true).collect();
        while !graphemes.is_empty() && self.width(&ended(&graphemes.concat())) > width {
            graphemes.pop();
        }
        ended(&graphemes.concat())
    }
}

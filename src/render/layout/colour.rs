//! The colours of a site: the brand's own, and those that are derived from it.
//!
//! A fill, such as a button, has exactly the colour of the brand; the text on it is black or white,
//! whichever has more contrast. Text in the colour of the brand is darker in light mode and
//! lighter in dark mode until it is readable on every background. The neutral colours have the
//! brand's hue, with so little chroma that they look gray.
//!
//! Sources: WCAG 2.2 §1.4.3 (4.5 to 1) and §1.4.6 (7 to 1), "relative luminance" and "contrast
//! ratio"; CSS Color 4 §9.3 (Oklab).

use std::fmt::Write as _;

use crate::render::raster::preview::Colours;

/// WCAG 2.2 §1.4.3.
const CONTRAST_MIN: f64 = 4.5;
/// How much of the brand is in the background of a selected entry, in light and in dark mode.
const TINT: (f64, f64) = (0.08, 0.14);
/// The most chroma that a neutral colour has (Oklab).
const NEUTRAL_CHROMA_MAX: f64 = 0.03;

/// A neutral colour. In each mode it has a lightness (Oklab) and a chroma: a share of the
/// brand's, up to [`NEUTRAL_CHROMA_MAX`].
#[derive(Clone, Copy, Debug)]
struct Neutral {
    name: &'static str,
    light: (f64, f64),
    dark: (f64, f64),
}

/// The neutral colours.
const NEUTRALS: [Neutral; 7] = [
    Neutral {
        name: "background",
        light: (1.0, 0.0),
        dark: (0.165, 0.25),
    },
    Neutral {
        name: "raised",
        light: (0.979, 0.10),
        dark: (0.2, 0.3),
    },
    Neutral {
        name: "pressed",
        light: (0.955, 0.16),
        dark: (0.245, 0.35),
    },
    Neutral {
        name: "line",
        light: (0.918, 0.22),
        dark: (0.29, 0.4),
    },
    Neutral {
        name: "strong",
        light: (0.19, 0.6),
        dark: (0.97, 0.12),
    },
    Neutral {
        name: "text",
        light: (0.34, 0.6),
        dark: (0.86, 0.25),
    },
    Neutral {
        name: "quiet",
        light: (0.495, 0.6),
        dark: (0.69, 0.4),
    },
];

/// The neutral colours that text is on.
const BACKGROUNDS: [&str; 3] = ["background", "raised", "pressed"];

/// The colours that diagrams have, in the order in which `diagram.js` reads them.
const DIAGRAM_COLOURS: [&str; 7] = [
    "background",
    "raised",
    "line",
    "strong",
    "quiet",
    "tint",
    "accent",
];

/// The names of all properties that [`Brand::properties`] writes.
pub(in crate::render) const PROPERTIES: [&str; 11] = [
    "background",
    "raised",
    "pressed",
    "line",
    "strong",
    "text",
    "quiet",
    "tint",
    "accent",
    "brand",
    "on-brand",
];

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rgb([u8; 3]);

// === impl Rgb ===

impl Rgb {
    const BLACK: Self = Self([0; 3]);
    const WHITE: Self = Self([0xff; 3]);
    /// The accent of `styles/base.css`.
    pub(super) const DEFAULT: Self = Self([0x0b, 0x6e, 0x4f]);

    /// Returns the three channels as numbers, separated by spaces.
    pub(super) fn channels(self) -> String {
        let [red, green, blue] = self.0;
        format!("{red} {green} {blue}")
    }

    /// Reads `#rgb` or `#rrggbb`. Nothing else is accepted, so that no text of an author can
    /// end the CSS declaration.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix('#')?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        let channel = |text: &str| u8::from_str_radix(text, 16).ok();
        match digits.len() {
            3 => {
                let one = |at: usize| Some(channel(&digits[at..=at])? * 0x11);
                Some(Self([one(0)?, one(1)?, one(2)?]))
            }
            6 => {
                let two = |at: usize| channel(&digits[at..at + 2]);
                Some(Self([two(0)?, two(2)?, two(4)?]))
            }
            _ => None,
        }
    }

    /// Returns black or white, whichever has more contrast with this colour.
    pub(super) fn text_colour(self) -> Self {
        if self.contrast(Self::WHITE) >= self.contrast(Self::BLACK) {
            Self::WHITE
        } else {
            Self::BLACK
        }
    }

    /// Returns the nearest colour of the same hue that is readable on all of some backgrounds.
    ///
    /// `step` is the change of lightness between two attempts: negative for dark text.
    fn readable(self, backgrounds: &[Self], step: f64) -> Self {
        let is_readable = |colour: &Self| {
            backgrounds
                .iter()
                .all(|b| colour.contrast(*b) >= CONTRAST_MIN)
        };
        if is_readable(&self) {
            return self;
        }
        let own = Oklab::of(self);
        let lightness = (1..).map(|n| own.lightness + step * f64::from(n));
        let mut inside = lightness.take_while(|l| (0.0..=1.0).contains(l));
        let found = inside.find_map(|l| {
            Some(
                Oklab {
                    lightness: l,
                    ..own
                }
                .displayed(),
            )
            .filter(is_readable)
        });
        found.unwrap_or(if step < 0.0 { Self::BLACK } else { Self::WHITE })
    }

    /// Mixes a share of another colour into this one.
    fn mixed(self, other: Self, share: f64) -> Self {
        let mix = |at: usize| {
            byte(f64::from(self.0[at]) * (1.0 - share) + f64::from(other.0[at]) * share)
        };
        Self([mix(0), mix(1), mix(2)])
    }

    fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

/// The colours of a brand, as its owner wrote them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Brand {
    /// The main colour.
    pub primary: Rgb,
    /// The main colour in dark mode.
    pub light: Rgb,
    /// The colour of buttons and of the banner.
    pub fill: Rgb,
}

// === impl Brand ===

impl Brand {
    /// Returns the background of a page, in light and in dark mode.
    pub(super) fn backgrounds(self) -> (Rgb, Rgb) {
        let background = |is_dark| self.named("background", is_dark);
        (background(false), background(true))
    }

    /// Returns the colours of images in one mode.
    pub(super) fn colours(self, is_dark: bool) -> Colours {
        let (tint, accent) = self.tint_and_accent(is_dark);
        Colours {
            background: self.named("background", is_dark).0,
            strong: self.named("strong", is_dark).to_string(),
            quiet: self.named("quiet", is_dark).to_string(),
            accent: accent.to_string(),
            tint: tint.to_string(),
            brand: self.fill.to_string(),
        }
    }

    /// Writes the custom properties of the stylesheet that hold colours.
    pub(super) fn properties(self) -> String {
        let mut styles = String::from(":root {");
        let mut write = |name: &str, light: Rgb, dark: Rgb| {
            write!(styles, " --{name}: light-dark({light}, {dark});")
                .expect("a String takes every character");
        };
        for neutral in NEUTRALS {
            let colour = |is_dark| self.neutral(neutral, is_dark);
            write(neutral.name, colour(false), colour(true));
        }
        let (light, dark) = (self.tint_and_accent(false), self.tint_and_accent(true));
        write("tint", light.0, dark.0);
        write("accent", light.1, dark.1);
        write("brand", self.fill, self.fill);
        let ink = self.fill.text_colour();
        write("on-brand", ink, ink);
        styles + " }\n"
    }

    /// Returns the colours of diagrams as hexadecimal digits: [`DIAGRAM_COLOURS`] in light mode, then
    /// in dark mode.
    pub(super) fn palette(self) -> String {
        let mut palette = String::new();
        for is_dark in [false, true] {
            let (tint, accent) = self.tint_and_accent(is_dark);
            for name in DIAGRAM_COLOURS {
                let colour = match name {
                    "tint" => tint,
                    "accent" => accent,
                    name => self.named(name, is_dark),
                };
                palette += colour.to_string().trim_start_matches('#');
            }
        }
        palette
    }

    /// Returns the background of a selected entry in one mode, and the colour of text in the colour
    /// of the brand, which is readable on all backgrounds.
    fn tint_and_accent(self, is_dark: bool) -> (Rgb, Rgb) {
        let (own, share, step) = match is_dark {
            true => (self.light, TINT.1, 0.01),
            false => (self.primary, TINT.0, -0.01),
        };
        let [ground, raised, pressed] = BACKGROUNDS.map(|name| self.named(name, is_dark));
        let tint = ground.mixed(own, share);
        let accent = own.readable(&[ground, raised, pressed, tint], step);
        (tint, accent)
    }

    /// Returns the neutral colour with a name.
    fn named(self, name: &str, is_dark: bool) -> Rgb {
        let neutral = NEUTRALS.into_iter().find(|neutral| neutral.name == name);
        self.neutral(neutral.expect("the name of a neutral colour"), is_dark)
    }

    /// Returns a neutral colour in the brand's hue.
    fn neutral(self, neutral: Neutral, is_dark: bool) -> Rgb {
        let (lightness, share) = if is_dark { neutral.dark } else { neutral.light };
        let own = Oklab::of(self.primary);
        let chroma = own.chroma();
        let wanted = chroma.min(NEUTRAL_CHROMA_MAX) * share;
        let scale = if chroma > 0.0 { wanted / chroma } else { 0.0 };
        Oklab {
            lightness,
            a: own.a * scale,
            b: own.b * scale,
        }
        .displayed()
    }
}

/// A colour in the space Oklab.
#[derive(Clone, Copy, Debug)]
struct Oklab {
    /// From 0, black, to 1, white.
    lightness: f64,
    a: f64,
    b: f64,
}

// === impl Oklab ===

impl Oklab {
    fn of(colour: Rgb) -> Self {
        let [red, green, blue] = colour.0.map(linear);
        let l = (0.412_221_470_8 * red + 0.536_332_536_3 * green + 0.051_445_992_9 * blue).cbrt();
        let m = (0.211_903_498_2 * red + 0.680_699_545_1 * green + 0.107_396_956_6 * blue).cbrt();
        let s = (0.088_302_461_9 * red + 0.281_718_837_6 * green + 0.629_978_700_5 * blue).cbrt();
        Self {
            lightness: 0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
            a: 1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
            b: 0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
        }
    }

    fn chroma(self) -> f64 {
        (self.a * self.a + self.b * self.b).sqrt()
    }

    /// Returns the colour as sRGB, with less chroma if sRGB does not have it.
    fn displayed(self) -> Rgb {
        let mut colour = self;
        // Each step removes a tenth of the chroma, so that after 60 steps less than 1 % is left.
        for _ in 0..60 {
            let channels = colour.linear_channels();
            if channels.iter().all(|c| (-0.000_5..=1.000_5).contains(c)) {
                break;
            }
            colour.a *= 0.9;
            colour.b *= 0.9;
        }
        Rgb(colour.linear_channels().map(|channel| {
            let channel = channel.clamp(0.0, 1.0);
            let value = if channel <= 0.003_130_8 {
                channel * 12.92
            } else {
                1.055 * channel.powf(1.0 / 2.4) - 0.055
            };
            byte(value * 255.0)
        }))
    }

    fn linear_channels(self) -> [f64; 3] {
        let l = self.lightness + 0.396_337_777_4 * self.a + 0.215_803_757_3 * self.b;
        let m = self.lightness - 0.105_561_345_8 * self.a - 0.063_854_172_8 * self.b;
        let s = self.lightness - 0.089_484_177_5 * self.a - 1.291_485_548_0 * self.b;
        let (l, m, s) = (l * l * l, m * m * m, s * s * s);
        [
            4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
            -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
            -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
        ]
    }
}

/// Returns the intensity of a channel, from 0 to 1 (WCAG 2.2, "relative luminance").
fn linear(channel: u8) -> f64 {
    let value = f64::from(channel) / 255.0;
    if value <= 0.04045 {
        value / 12.92
    } else {
        ((value + 0.055) / 1.055).powf(2.4)
    }
}

/// Rounds a channel.
fn byte(value: f64) -> u8 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is clamped"
    )]
    let rounded = value.round().clamp(0.0, 255.0) as u8;
    rounded
}

impl std::fmt::Display for Rgb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hexadecimal_colours_are_read() {
        assert_eq!(Rgb::parse("#0b6e4f").unwrap().to_string(), "#0b6e4f");
        assert_eq!(Rgb::parse("#FA0").unwrap().to_string(), "#ffaa00");
        for colour in ["red", "#ff", "#fff;}*{display:none", "", "fff", "#ééé"] {
            assert_eq!(Rgb::parse(colour), None, "{colour}");
        }
    }

    /// The value of a property in light mode or in dark mode.
    fn property(styles: &str, name: &str, dark: bool) -> Rgb {
        let (_, rest) = styles
            .split_once(&format!(" --{name}: light-dark("))
            .unwrap();
        let (both, _) = rest.split_once(')').unwrap();
        let (light, dark_value) = both.split_once(", ").unwrap();
        Rgb::parse(if dark { dark_value } else { light }).unwrap()
    }

    fn brand(text: &str) -> Brand {
        let colour = Rgb::parse(text).unwrap();
        Brand {
            primary: colour,
            light: colour,
            fill: colour,
        }
    }

    const BRANDS: [&str; 10] = [
        "#ffff00", "#000", "#fff", "#0b6e4f", "#16a34a", "#ff8800", "#ff5a1f", "#635bff",
        "#0000ff", "#888888",
    ];

    #[test]
    fn text_is_readable_on_every_background_of_every_brand() {
        for text in BRANDS {
            let styles = brand(text).properties();
            for dark in [false, true] {
                let of = |name| property(&styles, name, dark);
                for background in ["background", "raised", "pressed", "tint"].map(of) {
                    for (name, least) in [
                        ("text", 7.0),
                        ("strong", 7.0),
                        ("quiet", 4.5),
                        ("accent", 4.5),
                    ] {
                        let contrast = of(name).contrast(background);
                        assert!(
                            contrast >= least,
                            "{text} dark {dark}: {name} has {contrast}"
                        );
                    }
                }
            }
        }
    }

    /// The colours that the stylesheets state for both modes: names of properties, and classes of
    /// code.
    fn stated(styles: &str) -> Vec<(&str, [Rgb; 2])> {
        let parts = styles.match_indices("light-dark(#");
        let colours = parts.filter_map(|(at, _)| {
            let start = styles[..at].rfind(['{', '}', ';', '/'])?;
            let rule = match &styles[start..=start] {
                "{" => &styles[styles[..start].rfind('}')? + 1..start],
                _ => styles[start + 1..at].trim_end_matches([':', ' ']),
            };
            let (both, _) = styles[at + "light-dark(".len()..].split_once(')')?;
            let (light, dark) = both.split_once(", ")?;
            Some((rule.trim(), [Rgb::parse(light)?, Rgb::parse(dark)?]))
        });
        colours.collect()
    }

    /// The share of a colour in a rule of the stylesheets.
    fn share(styles: &str, rule: &str, colour: &str) -> f64 {
        let (_, rest) = styles.split_once(rule).unwrap();
        let (_, rest) = rest.split_once(&format!("{colour} ")).unwrap();
        let percent: f64 = rest.split('%').next().unwrap().parse().unwrap();
        percent / 100.0
    }

    #[test]
    fn every_stated_colour_is_readable_where_it_is_used() {
        let styles = super::super::STYLES.concat() + crate::render::html::STYLES;
        let stated = stated(&styles);
        let tones: Vec<_> = stated
            .iter()
            .filter(|(name, _)| name.starts_with("--"))
            .collect();
        let code: Vec<_> = stated
            .iter()
            .filter(|(name, _)| name.starts_with('.'))
            .collect();
        assert_eq!((tones.len(), code.len()), (5, 6), "{stated:?}");
        let tone = |name: &str| tones.iter().find(|(known, _)| *known == name).unwrap().1;
        let added = share(&styles, ".added { background", "var(--good)");
        let removed = share(&styles, ".removed { background", "var(--danger)");
        let marked = share(&styles, ".marked {", "var(--accent)");
        // In light and in dark mode.
        let callout = [
            "background: light-dark(color-mix(in srgb, var(--tone",
            "%, var(--background)), color-mix(in srgb, var(--tone",
        ]
        .map(|rule| share(&styles, rule, "var(--accent))"));
        let method = share(&styles, ".method {", "currentColor");
        for text in BRANDS {
            let own = brand(text).properties();
            for (mode, dark) in [false, true].into_iter().enumerate() {
                let of = |name| property(&own, name, dark);
                let raised = of("raised");
                let lines = [
                    raised,
                    of("background"),
                    raised.mixed(tone("--good")[mode], added),
                    raised.mixed(tone("--danger")[mode], removed),
                    raised.mixed(of("accent"), marked),
                ];
                let readable = |name: &str, colour: Rgb, ground: Rgb| {
                    let contrast = colour.contrast(ground);
                    assert!(
                        contrast >= CONTRAST_MIN,
                        "{text} dark {dark}: {name} on {ground} has {contrast}"
                    );
                };
                for ground in lines {
                    readable("a comment", of("quiet"), ground);
                    for (name, colours) in &code {
                        readable(name, colours[mode], ground);
                    }
                }
                for (name, colours) in &tones {
                    let colour = colours[mode];
                    for ground in ["background", "raised", "pressed", "tint"].map(of) {
                        readable(name, colour, ground.mixed(colour, method));
                        readable(name, colour, ground);
                    }
                    let ground = of("background").mixed(colour, callout[mode]);
                    readable(name, colour, ground);
                    assert!(
                        of("text").contrast(ground) >= 7.0,
                        "{text}: text of a callout"
                    );
                }
            }
        }
    }

    #[test]
    fn images_have_the_colours_of_pages() {
        for text in BRANDS {
            let styles = brand(text).properties();
            for dark in [false, true] {
                let colours = brand(text).colours(dark);
                for (name, colour) in [("accent", colours.accent), ("tint", colours.tint)] {
                    assert_eq!(property(&styles, name, dark).to_string(), colour, "{text}");
                }
            }
        }
    }

    #[test]
    fn diagrams_have_the_colours_of_pages() {
        for text in BRANDS {
            let styles = brand(text).properties();
            let palette = brand(text).palette();
            let colours = palette.as_bytes().chunks(6);
            let names = [false, true].map(|dark| DIAGRAM_COLOURS.map(|name| (name, dark)));
            assert_eq!(colours.len(), 14);
            for (digits, (name, dark)) in colours.zip(names.into_iter().flatten()) {
                let digits = str::from_utf8(digits).unwrap();
                assert_eq!(
                    property(&styles, name, dark).to_string(),
                    format!("#{digits}")
                );
            }
        }
    }

    #[test]
    fn all_properties_are_listed() {
        let styles = brand("#0b6e4f").properties();
        let written = styles.split(" --").skip(1);
        let written = written.filter_map(|rest| rest.split(':').next());
        assert!(written.eq(PROPERTIES));
    }

    #[test]
    fn a_fill_is_exactly_the_brand_and_its_text_is_readable() {
        for text in BRANDS {
            let styles = brand(text).properties();
            let colour = Rgb::parse(text).unwrap();
            for dark in [false, true] {
                assert_eq!(property(&styles, "brand", dark), colour);
                let ink = property(&styles, "on-brand", dark);
                assert!(ink.contrast(colour) >= CONTRAST_MIN, "{text}");
            }
        }
    }

    #[test]
    fn neutral_colours_have_the_hue_of_the_brand() {
        let quiet = |text| Oklab::of(property(&brand(text).properties(), "quiet", false));
        for text in ["#ff8800", "#0b6e4f", "#635bff"] {
            let (own, neutral) = (Oklab::of(Rgb::parse(text).unwrap()), quiet(text));
            let along = (own.a * neutral.a + own.b * neutral.b) / (own.chroma() * neutral.chroma());
            assert!(along > 0.95, "{text}: {neutral:?}");
        }
        assert!(quiet("#888888").chroma() < 0.002);
    }
}

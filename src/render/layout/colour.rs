//! Adjusts the colour of a site until text in it is readable.
//!
//! The main colour of a brand seldom has enough contrast for text. It is mixed with black for light
//! mode, and with white for dark mode, until the contrast is sufficient. Text on the colour is
//! black or white, whichever has more contrast.
//!
//! Sources: WCAG 2.2 §1.4.3 (4.5 to 1), "relative luminance" and "contrast ratio".

/// The background of light mode with the least contrast: the tinted one of `styles/base.css`.
const LIGHT_BACKGROUND: Rgb = Rgb([0xf0, 0xf5, 0xf2]);
/// The same for dark mode.
const DARK_BACKGROUND: Rgb = Rgb([0x16, 0x1f, 0x1b]);
/// WCAG 2.2 §1.4.3.
const CONTRAST_MIN: f64 = 4.5;

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

    /// Returns the colour for text in light mode.
    pub(super) fn on_light(self) -> Self {
        self.towards(Self::BLACK, LIGHT_BACKGROUND)
    }

    /// Returns the colour for text in dark mode.
    pub(super) fn on_dark(self) -> Self {
        self.towards(Self::WHITE, DARK_BACKGROUND)
    }

    /// Returns black or white, whichever has more contrast with this colour.
    pub(super) fn text_colour(self) -> Self {
        if self.contrast(Self::WHITE) >= self.contrast(Self::BLACK) {
            Self::WHITE
        } else {
            Self::BLACK
        }
    }

    fn towards(self, end: Self, background: Self) -> Self {
        let mixed = (0..=20_u16).map(|step| {
            let mix = |at: usize| {
                let (from, to) = (u16::from(self.0[at]), u16::from(end.0[at]));
                u8::try_from((from * (20 - step) + to * step) / 20).unwrap_or(u8::MAX)
            };
            Self([mix(0), mix(1), mix(2)])
        });
        let mut readable = mixed.filter(|colour| colour.contrast(background) >= CONTRAST_MIN);
        readable.next().unwrap_or(end)
    }

    fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    fn luminance(self) -> f64 {
        let linear = |channel: u8| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
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

    #[test]
    fn text_in_and_on_every_colour_is_readable() {
        for text in ["#ffff00", "#000", "#fff", "#0b6e4f", "#16a34a", "#ff5a1f"] {
            let colour = Rgb::parse(text).unwrap();
            assert!(
                colour.on_light().contrast(LIGHT_BACKGROUND) >= CONTRAST_MIN,
                "{text}"
            );
            assert!(
                colour.on_dark().contrast(DARK_BACKGROUND) >= CONTRAST_MIN,
                "{text}"
            );
            for background in [colour.on_light(), colour.on_dark()] {
                assert!(
                    background.contrast(background.text_colour()) >= CONTRAST_MIN,
                    "{text}"
                );
            }
        }
        let readable = Rgb::parse("#0b6e4f").unwrap();
        assert_eq!(readable.on_light(), readable);
    }
}

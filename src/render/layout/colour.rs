//! A site's own colour, made readable.
//!
//! The main colour of a brand is seldom one that text can have: it is moved towards black
//! on light ground, and towards white on dark ground, until it is. What stands on it is
//! black or white, whichever can be read better.
//!
//! Sources: WCAG 2.2 §1.4.3 (4.5 to 1), "relative luminance" and "contrast ratio".

/// The grounds of the design, as in `styles/base.css`; the tinted one is the worst case.
const LIGHT_GROUND: Rgb = Rgb([0xf0, 0xf5, 0xf2]);
const DARK_GROUND: Rgb = Rgb([0x16, 0x1f, 0x1b]);
/// WCAG 2.2 §1.4.3.
const CONTRAST_MIN: f64 = 4.5;

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rgb([u8; 3]);

// === impl Rgb ===

impl Rgb {
    const BLACK: Self = Self([0; 3]);
    const WHITE: Self = Self([0xff; 3]);

    /// Reads `#rgb` or `#rrggbb`; nothing else can be a colour, so that none can end the
    /// declaration it stands in.
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

    /// Returns the colour as text on light ground can have it.
    pub(super) fn on_light(self) -> Self {
        self.towards(Self::BLACK, LIGHT_GROUND)
    }

    /// Returns the colour as text on dark ground can have it.
    pub(super) fn on_dark(self) -> Self {
        self.towards(Self::WHITE, DARK_GROUND)
    }

    /// Returns black or white, whichever can be read better on this.
    pub(super) fn ink(self) -> Self {
        if self.contrast(Self::WHITE) >= self.contrast(Self::BLACK) {
            Self::WHITE
        } else {
            Self::BLACK
        }
    }

    fn towards(self, end: Self, ground: Self) -> Self {
        let mixed = (0..=20_u16).map(|step| {
            let mix = |at: usize| {
                let (from, to) = (u16::from(self.0[at]), u16::from(end.0[at]));
                u8::try_from((from * (20 - step) + to * step) / 20).unwrap_or(u8::MAX)
            };
            Self([mix(0), mix(1), mix(2)])
        });
        let mut readable = mixed.filter(|colour| colour.contrast(ground) >= CONTRAST_MIN);
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
    fn only_a_colour_can_be_a_colour() {
        assert_eq!(Rgb::parse("#0b6e4f").unwrap().to_string(), "#0b6e4f");
        assert_eq!(Rgb::parse("#FA0").unwrap().to_string(), "#ffaa00");
        for colour in ["red", "#ff", "#fff;}*{display:none", "", "fff", "#ééé"] {
            assert_eq!(Rgb::parse(colour), None, "{colour}");
        }
    }

    #[test]
    fn every_colour_can_be_read_on_either_ground_and_written_on() {
        for text in ["#ffff00", "#000", "#fff", "#0b6e4f", "#16a34a", "#ff5a1f"] {
            let colour = Rgb::parse(text).unwrap();
            assert!(
                colour.on_light().contrast(LIGHT_GROUND) >= CONTRAST_MIN,
                "{text}"
            );
            assert!(
                colour.on_dark().contrast(DARK_GROUND) >= CONTRAST_MIN,
                "{text}"
            );
            for ground in [colour.on_light(), colour.on_dark()] {
                assert!(ground.contrast(ground.ink()) >= CONTRAST_MIN, "{text}");
            }
        }
        let readable = Rgb::parse("#0b6e4f").unwrap();
        assert_eq!(readable.on_light(), readable);
    }
}

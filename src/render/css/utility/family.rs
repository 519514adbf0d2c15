//! Utility classes with a value: `px-4`, `w-1/2`, `text-gray-600`, `w-[12px]`.

use super::palette;
use crate::render::html::is_css_value;

/// The kinds of values of classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A step of the spacing scale.
    Space,
    /// The same, or `auto`; may be negative.
    Margin,
    /// A step, a fraction, or one of the words of sizes. `true` for heights.
    Size(bool),
    /// A step or a fraction, also negative.
    Offset,
    /// One of the named widths of `max-w-`.
    MaxWidth,
    Colour,
    /// A whole number.
    Number,
    /// A percentage without its sign.
    Percent,
    /// A number of milliseconds.
    Milliseconds,
    /// An angle in degrees; may be negative.
    Degrees,
    /// A width in pixels: `border-2`. Without a value it is one pixel.
    Pixels,
    /// One of the words of a table.
    Word(&'static [(&'static str, &'static str)]),
}

/// Classes that begin with the same text.
struct Family {
    prefix: &'static str,
    kind: Kind,
    /// The declarations, with `{}` where the value is.
    declarations: &'static str,
}

const fn family(prefix: &'static str, kind: Kind, declarations: &'static str) -> Family {
    Family {
        prefix,
        kind,
        declarations,
    }
}

const RADII: &[(&str, &str)] = &[
    ("none", "0px"),
    ("sm", ".125rem"),
    ("", ".25rem"),
    ("md", ".375rem"),
    ("lg", ".5rem"),
    ("xl", ".75rem"),
    ("2xl", "1rem"),
    ("3xl", "1.5rem"),
    ("full", "9999px"),
];
const TEXTS: &[(&str, &str)] = &[
    ("xs", ".75rem;line-height:1rem"),
    ("sm", ".875rem;line-height:1.25rem"),
    ("base", "1rem;line-height:1.5rem"),
    ("lg", "1.125rem;line-height:1.75rem"),
    ("xl", "1.25rem;line-height:1.75rem"),
    ("2xl", "1.5rem;line-height:2rem"),
    ("3xl", "1.875rem;line-height:2.25rem"),
    ("4xl", "2.25rem;line-height:2.5rem"),
    ("5xl", "3rem;line-height:1"),
    ("6xl", "3.75rem;line-height:1"),
    ("7xl", "4.5rem;line-height:1"),
    ("8xl", "6rem;line-height:1"),
    ("9xl", "8rem;line-height:1"),
];
const LEADINGS: &[(&str, &str)] = &[
    ("none", "1"),
    ("tight", "1.25"),
    ("snug", "1.375"),
    ("normal", "1.5"),
    ("relaxed", "1.625"),
    ("loose", "2"),
    ("3", ".75rem"),
    ("4", "1rem"),
    ("5", "1.25rem"),
    ("6", "1.5rem"),
    ("7", "1.75rem"),
    ("8", "2rem"),
    ("9", "2.25rem"),
    ("10", "2.5rem"),
];
const TRACKINGS: &[(&str, &str)] = &[
    ("tighter", "-.05em"),
    ("tight", "-.025em"),
    ("normal", "0em"),
    ("wide", ".025em"),
    ("wider", ".05em"),
    ("widest", ".1em"),
];
const SHADOWS: &[(&str, &str)] = &[
    ("sm", "0 1px 2px 0 rgb(0 0 0 / 5%)"),
    (
        "",
        "0 1px 3px 0 rgb(0 0 0 / 10%),0 1px 2px -1px rgb(0 0 0 / 10%)",
    ),
    (
        "md",
        "0 4px 6px -1px rgb(0 0 0 / 10%),0 2px 4px -2px rgb(0 0 0 / 10%)",
    ),
    (
        "lg",
        "0 10px 15px -3px rgb(0 0 0 / 10%),0 4px 6px -4px rgb(0 0 0 / 10%)",
    ),
    (
        "xl",
        "0 20px 25px -5px rgb(0 0 0 / 10%),0 8px 10px -6px rgb(0 0 0 / 10%)",
    ),
    ("2xl", "0 25px 50px -12px rgb(0 0 0 / 25%)"),
    ("inner", "inset 0 2px 4px 0 rgb(0 0 0 / 5%)"),
    ("none", "0 0 #0000"),
];
const BLURS: &[(&str, &str)] = &[
    ("none", "0"),
    ("sm", "4px"),
    ("", "8px"),
    ("md", "12px"),
    ("lg", "16px"),
    ("xl", "24px"),
    ("2xl", "40px"),
    ("3xl", "64px"),
];
const STYLES: &[(&str, &str)] = &[
    ("solid", "solid"),
    ("dashed", "dashed"),
    ("dotted", "dotted"),
    ("double", "double"),
    ("none", "none"),
];
const COLUMNS: &[(&str, &str)] = &[("none", "none"), ("subgrid", "subgrid")];
const SPACED: &str = ">:not([hidden])~:not([hidden])";

/// All families. The order decides between classes that set the same property.
const FAMILIES: &[Family] = &[
    family("inset-", Kind::Offset, "inset:{}"),
    family("inset-x-", Kind::Offset, "left:{};right:{}"),
    family("inset-y-", Kind::Offset, "top:{};bottom:{}"),
    family("start-", Kind::Offset, "inset-inline-start:{}"),
    family("end-", Kind::Offset, "inset-inline-end:{}"),
    family("top-", Kind::Offset, "top:{}"),
    family("right-", Kind::Offset, "right:{}"),
    family("bottom-", Kind::Offset, "bottom:{}"),
    family("left-", Kind::Offset, "left:{}"),
    family("z-", Kind::Word(&[("auto", "auto")]), "z-index:{}"),
    family("z-", Kind::Number, "z-index:{}"),
    family(
        "order-",
        Kind::Word(&[("first", "-9999"), ("last", "9999"), ("none", "0")]),
        "order:{}",
    ),
    family("order-", Kind::Number, "order:{}"),
    family("col-span-", Kind::Number, "grid-column:span {} / span {}"),
    family("col-start-", Kind::Number, "grid-column-start:{}"),
    family("col-end-", Kind::Number, "grid-column-end:{}"),
    family("row-span-", Kind::Number, "grid-row:span {} / span {}"),
    family("row-start-", Kind::Number, "grid-row-start:{}"),
    family("row-end-", Kind::Number, "grid-row-end:{}"),
    family("m-", Kind::Margin, "margin:{}"),
    family("mx-", Kind::Margin, "margin-left:{};margin-right:{}"),
    family("my-", Kind::Margin, "margin-top:{};margin-bottom:{}"),
    family("ms-", Kind::Margin, "margin-inline-start:{}"),
    family("me-", Kind::Margin, "margin-inline-end:{}"),
    family("mt-", Kind::Margin, "margin-top:{}"),
    family("mr-", Kind::Margin, "margin-right:{}"),
    family("mb-", Kind::Margin, "margin-bottom:{}"),
    family("ml-", Kind::Margin, "margin-left:{}"),
    family(
        "line-clamp-",
        Kind::Number,
        "overflow:hidden;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:{}",
    ),
    family("aspect-", Kind::Word(&[]), "aspect-ratio:{}"),
    family("size-", Kind::Size(false), "width:{};height:{}"),
    family("h-", Kind::Size(true), "height:{}"),
    family("max-h-", Kind::Size(true), "max-height:{}"),
    family("min-h-", Kind::Size(true), "min-height:{}"),
    family("w-", Kind::Size(false), "width:{}"),
    family("min-w-", Kind::Size(false), "min-width:{}"),
    family("max-w-", Kind::MaxWidth, "max-width:{}"),
    family("flex-", Kind::Word(&[]), "flex:{}"),
    family("shrink-", Kind::Number, "flex-shrink:{}"),
    family("grow-", Kind::Number, "flex-grow:{}"),
    family("basis-", Kind::Size(false), "flex-basis:{}"),
    family("border-spacing-", Kind::Space, "border-spacing:{}"),
    family(
        "origin-",
        Kind::Word(&[
            ("center", "center"),
            ("top", "top"),
            ("bottom", "bottom"),
            ("left", "left"),
            ("right", "right"),
            ("top-left", "top left"),
            ("top-right", "top right"),
            ("bottom-left", "bottom left"),
            ("bottom-right", "bottom right"),
        ]),
        "transform-origin:{}",
    ),
    family(
        "translate-x-",
        Kind::Offset,
        "--tw-translate-x:{};translate:var(--tw-translate-x) var(--tw-translate-y,0)",
    ),
    family(
        "translate-y-",
        Kind::Offset,
        "--tw-translate-y:{};translate:var(--tw-translate-x,0) var(--tw-translate-y)",
    ),
    family("rotate-", Kind::Degrees, "rotate:{}"),
    family("scale-", Kind::Percent, "scale:{}%"),
    family("scroll-mt-", Kind::Margin, "scroll-margin-top:{}"),
    family("columns-", Kind::Number, "columns:{}"),
    family(
        "grid-cols-",
        Kind::Word(COLUMNS),
        "grid-template-columns:{}",
    ),
    family(
        "grid-cols-",
        Kind::Number,
        "grid-template-columns:repeat({},minmax(0,1fr))",
    ),
    family("grid-rows-", Kind::Word(COLUMNS), "grid-template-rows:{}"),
    family(
        "grid-rows-",
        Kind::Number,
        "grid-template-rows:repeat({},minmax(0,1fr))",
    ),
    family("gap-", Kind::Space, "gap:{}"),
    family("gap-x-", Kind::Space, "column-gap:{}"),
    family("gap-y-", Kind::Space, "row-gap:{}"),
    family("space-x-", Kind::Margin, ">margin-left:{}"),
    family("space-y-", Kind::Margin, ">margin-top:{};margin-bottom:0"),
    family(
        "divide-x",
        Kind::Pixels,
        ">border-left-width:{};border-right-width:0;border-left-style:solid;border-color:var(--line)",
    ),
    family(
        "divide-y",
        Kind::Pixels,
        ">border-top-width:{};border-bottom-width:0;border-top-style:solid;border-color:var(--line)",
    ),
    family("divide-", Kind::Colour, ">border-color:{}"),
    family("rounded", Kind::Word(RADII), "border-radius:{}"),
    family(
        "rounded-t",
        Kind::Word(RADII),
        "border-top-left-radius:{};border-top-right-radius:{}",
    ),
    family(
        "rounded-r",
        Kind::Word(RADII),
        "border-top-right-radius:{};border-bottom-right-radius:{}",
    ),
    family(
        "rounded-b",
        Kind::Word(RADII),
        "border-bottom-right-radius:{};border-bottom-left-radius:{}",
    ),
    family(
        "rounded-l",
        Kind::Word(RADII),
        "border-top-left-radius:{};border-bottom-left-radius:{}",
    ),
    family("rounded-tl", Kind::Word(RADII), "border-top-left-radius:{}"),
    family(
        "rounded-tr",
        Kind::Word(RADII),
        "border-top-right-radius:{}",
    ),
    family(
        "rounded-br",
        Kind::Word(RADII),
        "border-bottom-right-radius:{}",
    ),
    family(
        "rounded-bl",
        Kind::Word(RADII),
        "border-bottom-left-radius:{}",
    ),
    family("border", Kind::Pixels, "border:{} solid var(--line)"),
    family(
        "border-x",
        Kind::Pixels,
        "border-left:{} solid var(--line);border-right:{} solid var(--line)",
    ),
    family(
        "border-y",
        Kind::Pixels,
        "border-top:{} solid var(--line);border-bottom:{} solid var(--line)",
    ),
    family("border-t", Kind::Pixels, "border-top:{} solid var(--line)"),
    family(
        "border-r",
        Kind::Pixels,
        "border-right:{} solid var(--line)",
    ),
    family(
        "border-b",
        Kind::Pixels,
        "border-bottom:{} solid var(--line)",
    ),
    family("border-l", Kind::Pixels, "border-left:{} solid var(--line)"),
    family(
        "border-s",
        Kind::Pixels,
        "border-inline-start:{} solid var(--line)",
    ),
    family(
        "border-e",
        Kind::Pixels,
        "border-inline-end:{} solid var(--line)",
    ),
    family("border-", Kind::Word(STYLES), "border-style:{}"),
    family("border-", Kind::Colour, "border-color:{}"),
    family(
        "border-x-",
        Kind::Colour,
        "border-left-color:{};border-right-color:{}",
    ),
    family(
        "border-y-",
        Kind::Colour,
        "border-top-color:{};border-bottom-color:{}",
    ),
    family("border-t-", Kind::Colour, "border-top-color:{}"),
    family("border-r-", Kind::Colour, "border-right-color:{}"),
    family("border-b-", Kind::Colour, "border-bottom-color:{}"),
    family("border-l-", Kind::Colour, "border-left-color:{}"),
    family("bg-", Kind::Colour, "background-color:{}"),
    family(
        "from-",
        Kind::Colour,
        "--tw-gradient-from:{};--tw-gradient-stops:var(--tw-gradient-from),var(--tw-gradient-to,transparent)",
    ),
    family(
        "via-",
        Kind::Colour,
        "--tw-gradient-stops:var(--tw-gradient-from,transparent),{},var(--tw-gradient-to,transparent)",
    ),
    family("to-", Kind::Colour, "--tw-gradient-to:{}"),
    family("fill-", Kind::Colour, "fill:{}"),
    family("stroke-", Kind::Colour, "stroke:{}"),
    family("stroke-", Kind::Number, "stroke-width:{}"),
    family("p-", Kind::Space, "padding:{}"),
    family("px-", Kind::Space, "padding-left:{};padding-right:{}"),
    family("py-", Kind::Space, "padding-top:{};padding-bottom:{}"),
    family("ps-", Kind::Space, "padding-inline-start:{}"),
    family("pe-", Kind::Space, "padding-inline-end:{}"),
    family("pt-", Kind::Space, "padding-top:{}"),
    family("pr-", Kind::Space, "padding-right:{}"),
    family("pb-", Kind::Space, "padding-bottom:{}"),
    family("pl-", Kind::Space, "padding-left:{}"),
    family("indent-", Kind::Margin, "text-indent:{}"),
    family("text-", Kind::Word(TEXTS), "font-size:{}"),
    family("leading-", Kind::Word(LEADINGS), "line-height:{}"),
    family("tracking-", Kind::Word(TRACKINGS), "letter-spacing:{}"),
    family("text-", Kind::Colour, "color:{}"),
    family("decoration-", Kind::Colour, "text-decoration-color:{}"),
    family("decoration", Kind::Pixels, "text-decoration-thickness:{}"),
    family("underline-offset", Kind::Pixels, "text-underline-offset:{}"),
    family("accent-", Kind::Colour, "accent-color:{}"),
    family("opacity-", Kind::Percent, "opacity:{}%"),
    family(
        "shadow",
        Kind::Word(SHADOWS),
        "--tw-shadow:{};box-shadow:var(--tw-ring-shadow,0 0 #0000),var(--tw-shadow)",
    ),
    family("outline", Kind::Pixels, "outline-width:{}"),
    family("outline-offset", Kind::Pixels, "outline-offset:{}"),
    family("outline-", Kind::Colour, "outline-color:{}"),
    family(
        "ring",
        Kind::Pixels,
        "--tw-ring-shadow:inset 0 0 0 0 #0000,0 0 0 {} var(--tw-ring-color,rgb(59 130 246 / 50%));box-shadow:var(--tw-ring-shadow),var(--tw-shadow,0 0 #0000)",
    ),
    family("ring-", Kind::Colour, "--tw-ring-color:{}"),
    family("blur", Kind::Word(BLURS), "filter:blur({})"),
    family("brightness-", Kind::Percent, "filter:brightness({}%)"),
    family("contrast-", Kind::Percent, "filter:contrast({}%)"),
    family("saturate-", Kind::Percent, "filter:saturate({}%)"),
    family(
        "grayscale",
        Kind::Word(&[("", "100%"), ("0", "0")]),
        "filter:grayscale({})",
    ),
    family(
        "invert",
        Kind::Word(&[("", "100%"), ("0", "0")]),
        "filter:invert({})",
    ),
    family(
        "backdrop-blur",
        Kind::Word(BLURS),
        "-webkit-backdrop-filter:blur({});backdrop-filter:blur({})",
    ),
    family(
        "transition-",
        Kind::Word(&[]),
        "transition-property:{};transition-duration:.15s",
    ),
    family("delay-", Kind::Milliseconds, "transition-delay:{}"),
    family("duration-", Kind::Milliseconds, "transition-duration:{}"),
];

/// The meaning of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    /// The place of the class among all.
    pub(super) order: usize,
    /// The text that is appended to the selector.
    pub(super) suffix: &'static str,
    pub(super) declarations: String,
}

/// Finds the meaning of a class with a value, which may be negative.
pub(super) fn meaning(class: &str, is_negative: bool) -> Option<Meaning> {
    FAMILIES.iter().enumerate().find_map(|(order, family)| {
        let rest = class.strip_prefix(family.prefix)?;
        // The prefixes of pixels and words have no hyphen, because the value may be left out.
        let rest = match family.prefix.ends_with('-') || rest.is_empty() {
            true => rest,
            false => rest.strip_prefix('-')?,
        };
        let value = family.kind.value(rest, is_negative)?;
        let (suffix, declarations) = match family.declarations.strip_prefix('>') {
            Some(declarations) => (SPACED, declarations),
            None => ("", family.declarations),
        };
        Some(Meaning {
            order,
            suffix,
            declarations: declarations.replace("{}", &value),
        })
    })
}

// === impl Kind ===

impl Kind {
    /// Returns the CSS value for the value of a class.
    fn value(self, written: &str, is_negative: bool) -> Option<String> {
        let may_be_negative = matches!(self, Self::Margin | Self::Offset | Self::Degrees);
        if is_negative && (!may_be_negative && self != Self::Number || written == "auto") {
            return None;
        }
        let value = match bracketed(written) {
            Some(value) => self.takes(&value).then_some(value)?,
            None => self.named(written)?,
        };
        Some(match is_negative {
            true => format!("calc({value}*-1)"),
            false => value,
        })
    }

    /// Returns whether a value in brackets is of this kind. The check only has to distinguish
    /// families with the same prefix.
    fn takes(self, value: &str) -> bool {
        let is_number = value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
        let is_colour = ["#", "rgb", "hsl", "oklch", "color"]
            .iter()
            .any(|s| value.starts_with(s));
        match self {
            Self::Colour => is_colour,
            Self::Pixels => is_number,
            _ => !is_colour,
        }
    }

    fn named(self, name: &str) -> Option<String> {
        match self {
            Self::Space => space(name),
            Self::Margin if name == "auto" => Some("auto".to_owned()),
            Self::Margin => space(name),
            Self::Size(is_height) => space(name)
                .or_else(|| fraction(name))
                .or_else(|| size(name, is_height)),
            Self::Offset if name == "auto" => Some("auto".to_owned()),
            Self::Offset => space(name)
                .or_else(|| fraction(name))
                .or_else(|| (name == "full").then(|| "100%".to_owned())),
            Self::MaxWidth => max_width(name)
                .or_else(|| space(name))
                .or_else(|| fraction(name))
                .or_else(|| size(name, false)),
            Self::Colour => {
                let (name, opacity) = match name.split_once('/') {
                    Some((name, opacity)) => (name, Some(share(opacity)?)),
                    None => (name, None),
                };
                palette::colour(name, opacity)
            }
            Self::Number => number(name, 9999),
            Self::Percent => number(name, 999),
            Self::Milliseconds => number(name, 9999).map(|number| number + "ms"),
            Self::Degrees => number(name, 360).map(|number| number + "deg"),
            Self::Pixels if name.is_empty() => Some("1px".to_owned()),
            Self::Pixels => number(name, 99).map(|number| number + "px"),
            Self::Word(words) => {
                let word = words.iter().find(|(known, _)| *known == name);
                word.map(|(_, value)| (*value).to_owned())
            }
        }
    }
}

/// Returns the value in brackets: `[10px_2rem]` is `10px 2rem`.
fn bracketed(written: &str) -> Option<String> {
    let value = written
        .strip_prefix('[')?
        .strip_suffix(']')?
        .replace('_', " ");
    // `[length:2px]` and `[color:red]` say what the value is.
    let value = match value.split_once(':') {
        Some(("length" | "color" | "number" | "percentage", value)) => value.to_owned(),
        _ => value,
    };
    is_css_value(&value).then_some(value)
}

/// Returns a step of the spacing scale.
fn space(name: &str) -> Option<String> {
    if name == "px" {
        return Some("1px".to_owned());
    }
    let (whole, half) = match name.strip_suffix(".5") {
        Some(whole) => (whole, true),
        None => (name, false),
    };
    let step: u16 = number(whole, 96)?.parse().ok()?;
    let is_step = match half {
        true => step <= 3,
        false => {
            step <= 12
                || matches!(step, 14 | 16 | 20 | 24 | 28 | 72 | 80 | 96)
                || (32..=64).contains(&step) && step.is_multiple_of(4)
        }
    };
    let rem = f32::from(step) * 0.25 + if half { 0.125 } else { 0.0 };
    is_step.then(|| {
        if rem == 0.0 {
            "0px".to_owned()
        } else {
            format!("{rem}rem")
        }
    })
}

fn fraction(name: &str) -> Option<String> {
    let (part, whole) = name.split_once('/')?;
    let part: u8 = number(part, 11)?.parse().ok()?;
    let whole: u8 = number(whole, 12)?.parse().ok()?;
    let is_known = matches!(whole, 2..=6 | 12) && part > 0 && part < whole;
    is_known.then(|| format!("calc(100%*{part}/{whole})"))
}

fn size(name: &str, is_height: bool) -> Option<String> {
    let value = match name {
        "auto" => "auto",
        "full" => "100%",
        "screen" if is_height => "100vh",
        "screen" => "100vw",
        "svh" => "100svh",
        "lvh" => "100lvh",
        "dvh" => "100dvh",
        "min" => "min-content",
        "max" => "max-content",
        "fit" => "fit-content",
        "none" => "none",
        _ => return None,
    };
    Some(value.to_owned())
}

fn max_width(name: &str) -> Option<String> {
    let value = match name {
        "xs" => "20rem",
        "sm" => "24rem",
        "md" => "28rem",
        "lg" => "32rem",
        "xl" => "36rem",
        "2xl" => "42rem",
        "3xl" => "48rem",
        "4xl" => "56rem",
        "5xl" => "64rem",
        "6xl" => "72rem",
        "7xl" => "80rem",
        "8xl" => "88rem",
        "prose" => "65ch",
        "screen-sm" => "640px",
        "screen-md" => "768px",
        "screen-lg" => "1024px",
        "screen-xl" => "1280px",
        "screen-2xl" => "1536px",
        _ => return None,
    };
    Some(value.to_owned())
}

/// Returns a whole number without sign or leading zero.
fn number(name: &str, max: u16) -> Option<String> {
    let is_plain = !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_digit())
        && (name == "0" || !name.starts_with('0'));
    let number: u16 = name.parse().ok().filter(|_| is_plain)?;
    (number <= max).then(|| number.to_string())
}

/// Returns an opacity in percent: `10`, or `[0.06]`.
fn share(written: &str) -> Option<f32> {
    if let Some(inner) = written
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        let share = match inner.strip_suffix('%') {
            Some(percent) => percent.parse::<f32>().ok()?,
            None => inner.parse::<f32>().ok()? * 100.0,
        };
        return (0.0..=100.0).contains(&share).then_some(share);
    }
    number(written, 100)?.parse().ok()
}

//! Objects of the hosted platform whose keys have no effect here, or are read without a check.
//!
//! Files have them, so an editor completes and describes their keys. `check` accepts any value.
//!
//! Source: the schema of `docs.json` in `@mintlify/validation` 0.1.878.

use super::{Field, Object, Shape};

/// Makes a key of an object that nothing reads.
const fn key(key: &'static str, types: &'static [&'static str], about: &'static str) -> Field {
    Field::accepted(key, types, about)
}

/// `background`.
pub static BACKGROUND: Object = Object {
    name: "`background`",
    about: "The background of pages; no effect here, the theme decides",
    fields: &[
        key(
            "image",
            &["string", "object"],
            "The path of an image, or one for `light` and `dark`",
        ),
        key("decoration", &["string"], "`gradient`, `grid` or `windows`"),
        key("color", &["object"], "Colours for `light` and `dark`"),
    ],
    shared: &[],
};

/// A colour for each mode.
pub static MODE_COLORS: Object = Object {
    name: "a colour for each mode",
    about: "A colour for light and one for dark mode",
    fields: &[
        key("light", &["string"], "The colour in light mode"),
        key("dark", &["string"], "The colour in dark mode"),
    ],
    shared: &[],
};

/// `api.spec`.
pub static API_SPEC: Object = Object {
    name: "`spec`",
    about: "How specifications are shown; no effect here",
    fields: &[key(
        "download",
        &["boolean"],
        "Whether pages have a button that downloads the specification",
    )],
    shared: &[],
};

/// A source of generated pages: `asyncapi`.
pub static SOURCE: Object = Object {
    name: "a source of pages",
    about: "A file that pages are generated from; no effect here",
    fields: &[
        key("source", &["string"], "The path or URL of the file"),
        key("directory", &["string"], "The directory of the pages"),
    ],
    shared: &[],
};

/// `fonts`.
pub static FONTS: Object = Object {
    name: "`fonts`",
    about: "One font for everything, or one each for text and titles",
    fields: &[
        FAMILY,
        WEIGHT,
        FONT_SOURCE,
        FORMAT,
        Field::new(
            "heading",
            Shape::Described(&[], &FONT),
            "The font of titles",
        ),
        Field::new(
            "body",
            Shape::Described(&[], &FONT),
            "The font of everything but titles",
        ),
    ],
    shared: &[],
};

static FONT: Object = Object {
    name: "a font",
    about: "A font of the repository",
    fields: &[FAMILY, WEIGHT, FONT_SOURCE, FORMAT],
    shared: &[],
};

const FAMILY: Field = Field::new(
    "family",
    Shape::OfType(&["string"]),
    "The name of the family",
);
const WEIGHT: Field = Field::new(
    "weight",
    Shape::OfType(&["number", "string"]),
    "The weight, or the range of weights of a variable font, such as `100 900`",
);
const FONT_SOURCE: Field = Field::new(
    "source",
    Shape::OfType(&["string"]),
    "The path of the file in the repository; a URL is not loaded",
);
const FORMAT: Field = key("format", &["string"], "`woff` or `woff2`; the file says it");

/// `styling.codeblocks`.
pub static CODEBLOCKS: Object = Object {
    name: "`codeblocks`",
    about: "The colours of code, by the names of highlighting themes",
    fields: &[
        Field::new(
            "theme",
            Shape::OfType(&["string", "object"]),
            "A theme, or one for `light` and `dark`: code is dark if the theme for light mode is dark",
        ),
        key(
            "languages",
            &["object"],
            "Grammars of further languages, as `custom`",
        ),
    ],
    shared: &[],
};

/// `thumbnails.fonts`.
pub static THUMBNAIL_FONTS: Object = Object {
    name: "the `fonts` of `thumbnails`",
    about: "The font of the images; no effect here, the text has the built-in font",
    fields: &[key("family", &["string"], "The name of the family")],
    shared: &[],
};

const fn integration(name: &'static str) -> Field {
    key(name, &["object"], "Pages load nothing from this service")
}

/// `integrations`.
pub static INTEGRATIONS: Object = Object {
    name: "`integrations`",
    about: "Analytics and other services, by name; no effect here, pages load nothing from them",
    fields: &[
        integration("adobe"),
        integration("amplitude"),
        integration("clarity"),
        integration("clearbit"),
        integration("cookies"),
        integration("fathom"),
        integration("frontchat"),
        integration("ga4"),
        integration("gtm"),
        integration("heap"),
        integration("hightouch"),
        integration("hotjar"),
        integration("intercom"),
        integration("koala"),
        integration("logrocket"),
        integration("mixpanel"),
        integration("onetrust"),
        integration("pirsch"),
        integration("plausible"),
        integration("posthog"),
        integration("segment"),
        integration("telemetry"),
        integration("transcend"),
    ],
    shared: &[],
};

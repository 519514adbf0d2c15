//! The table: every object of `docs.json` with its keys.
//!
//! Here stands what is not [`navigation`]: the whole of the file, and what the site has
//! around its pages.
//!
//! The keys of other tools that are accepted without effect are those that public
//! `docs.json` files carry.

mod navigation;

use super::{Field, Object, Shape};

pub use navigation::{
    ANCHOR, DIRECTORY, DROPDOWN, GLOBAL, GLOBAL_ANCHOR, GROUP, ITEM, LANGUAGE, NAVIGATION, PRODUCT,
    TAB, VERSION,
};

use Shape::{Any, Flag, Href, Icon, Ignored, Label, Objects, OneOf, OpenApi, Text, TextOr, Texts};

const fn field(key: &'static str, shape: Shape, about: &'static str) -> Field {
    Field::new(key, shape, about)
}

const ICON: Field = field("icon", Icon, "The icon beside the label");
const BANNER_FIELD: Field =
    field("banner", Shape::Object(&BANNER), "A line above every page").rule("N8");
const FOOTER_FIELD: Field = field(
    "footer",
    Shape::Object(&FOOTER),
    "What stands below every page",
)
.rule("N8");
const NAVBAR_FIELD: Field = field(
    "navbar",
    Shape::Object(&NAVBAR),
    "What stands above every page",
)
.rule("N8");

/// A banner.
pub static BANNER: Object = Object {
    name: "a banner",
    about: "A line above every page",
    fields: &[
        field("content", Label, "What it says; may hold inline links")
            .required()
            .rule("N8"),
        field("dismissible", Flag, "Whether a reader can close it").rule("N8"),
        field("type", Ignored, "There is one design"),
    ],
};

/// A footer.
pub static FOOTER: Object = Object {
    name: "a footer",
    about: "What stands below every page",
    fields: &[
        field(
            "socials",
            Texts,
            "Networks and the URLs of the accounts there",
        )
        .rule("N8"),
        field("links", Objects(&FOOTER_COLUMN), "Columns of links").rule("N8"),
    ],
};

/// A column of a footer.
pub static FOOTER_COLUMN: Object = Object {
    name: "a column of a footer",
    about: "A column of links",
    fields: &[
        field("header", Text, "The title of the column").rule("N8"),
        field("items", Objects(&LINK), "The links of the column")
            .required()
            .rule("N8"),
    ],
};

/// A link with its label.
pub static LINK: Object = Object {
    name: "a link",
    about: "A link with its label",
    fields: &[
        field("label", Label, "What the link says")
            .required()
            .rule("N8"),
        field("href", Href, "Where it leads").required().rule("N8"),
        ICON,
        field("type", Ignored, "Links look alike here"),
    ],
};

/// A navbar.
pub static NAVBAR: Object = Object {
    name: "a navbar",
    about: "What stands above every page",
    fields: &[
        field("links", Objects(&NAVBAR_LINK), "Links").rule("N8"),
        field("primary", Shape::Object(&NAVBAR_PRIMARY), "The button").rule("N8"),
    ],
};

/// A link of a navbar: those to a repository need no label.
pub static NAVBAR_LINK: Object = Object {
    name: "a link of a navbar",
    about: "A link above every page",
    fields: &[
        field("label", Text, "What the link says").rule("N8"),
        field("href", Href, "Where it leads").required().rule("N8"),
        ICON,
        field(
            "type",
            Text,
            "`github` and `discord` show what they lead to",
        )
        .rule("N8"),
    ],
};

/// The button of a navbar.
pub static NAVBAR_PRIMARY: Object = Object {
    name: "the `primary` of a navbar",
    about: "The button above every page",
    fields: &[
        field("type", Text, "`button`, `github` or `discord`").rule("N8"),
        field("label", Text, "What the button says").rule("N8"),
        field("href", Href, "Where it leads").required().rule("N8"),
        ICON,
    ],
};

static COLORS: Object = Object {
    name: "`colors`",
    about: "The colours of the site",
    fields: &[
        field("primary", Label, "The main colour, as #rrggbb").required(),
        field("light", Text, "The main colour on dark ground"),
        field("dark", Text, "The main colour of buttons"),
    ],
};

static LOGO: Object = Object {
    name: "`logo`",
    about: "The logo on light and on dark ground",
    fields: &[
        field("light", Text, "The image on light ground"),
        field("dark", Text, "The image on dark ground"),
        field("href", Href, "Where the logo leads"),
        field("url", Href, "Where the logo leads, as older files write it"),
    ],
};

static STYLING: Object = Object {
    name: "`styling`",
    about: "How pages look",
    fields: &[
        field(
            "eyebrows",
            OneOf(&["section", "breadcrumbs"]),
            "What stands above a page's title",
        ),
        field("codeblocks", Any, "How code is shown"),
        field("latex", Any, "Whether pages have formulas"),
        field("custom", Any, "Styles of the site's own"),
        field("rounded", Any, "How round corners are"),
    ],
};

static INTERACTION: Object = Object {
    name: "`interaction`",
    about: "How the sidebar behaves",
    fields: &[field(
        "drilldown",
        Flag,
        "Whether selecting a group opens its first page",
    )],
};

static API: Object = Object {
    name: "`api`",
    about: "Settings of endpoint pages",
    fields: &[
        field(
            "openapi",
            OpenApi,
            "The specification for pages that bind an endpoint",
        ),
        field("asyncapi", Any, "AsyncAPI specifications"),
        field("params", Any, "How parameters are shown"),
        field("playground", Any, "Settings of a playground"),
        field("examples", Any, "Settings of examples"),
        field("mdx", Any, "Settings of pages written by hand"),
        field("auth", Any, "Settings of a playground"),
        field("baseUrl", Any, "The server of pages written by hand"),
        field("maintainOrder", Any, "Settings of examples"),
        field("url", Any, "Settings of a playground"),
        field("proxy", Any, "Settings of a playground"),
        field("spec", Any, "Settings of a playground"),
    ],
};

/// A redirect.
pub static REDIRECT: Object = Object {
    name: "a redirect",
    about: "An old path and where it leads now",
    fields: &[
        field(
            "source",
            Label,
            "The old path; may hold `:name`, `:name*` and `*`",
        )
        .required(),
        field("destination", Label, "Where it leads").required(),
        field(
            "permanent",
            Flag,
            "Whether it leads there for good (308) or for now (307)",
        ),
    ],
};

/// The whole of `docs.json`.
pub static DOCS: Object = Object {
    name: "docs.json",
    about: "The configuration of a documentation site",
    fields: &[
        field(
            "navigation",
            Shape::Object(&NAVIGATION),
            "The structure of the site",
        )
        .required()
        .rule("N1"),
        field("name", Label, "The name of the site").required(),
        field("description", Text, "What the site documents"),
        field(
            "theme",
            Text,
            "The theme; there is one design, whose defaults follow the name",
        ),
        field("colors", Shape::Object(&COLORS), "The colours of the site"),
        field("logo", TextOr(&LOGO), "The logo"),
        field("favicon", TextOr(&LOGO), "The icon of the site"),
        field("styling", Shape::Object(&STYLING), "How pages look"),
        field(
            "interaction",
            Shape::Object(&INTERACTION),
            "How the sidebar behaves",
        ),
        field(
            "redirects",
            Objects(&REDIRECT),
            "Old paths and where they lead",
        ),
        BANNER_FIELD,
        FOOTER_FIELD,
        NAVBAR_FIELD,
        field("api", Shape::Object(&API), "Settings of endpoint pages"),
        field("lenient", Flag, "Rules N1 and N2 warn instead of failing"),
        field("appearance", Any, "Light and dark"),
        field("background", Any, "What stands behind pages"),
        field("fonts", Any, "The fonts"),
        field("icons", Any, "The library of icons"),
        field("thumbnails", Any, "Preview images"),
        field("seo", Any, "Tags for search engines"),
        field("search", Any, "Settings of search"),
        field("metadata", Any, "Settings of pages"),
        field("contextual", Any, "The menu of a page"),
        field("integrations", Any, "Services of others"),
        field("analytics", Any, "Services of others"),
        field("feedback", Any, "Services of others"),
        field("errors", Any, "The page for what is not found"),
        field("scripts", Any, "Scripts are not run"),
        field("markdown", Any, "Settings of Markdown"),
        field("variables", Any, "Values for pages"),
        field("assistant", Any, "Settings of an assistant"),
        field("modeToggle", Any, "Light and dark"),
        field("chat", Any, "Services of others"),
    ],
};

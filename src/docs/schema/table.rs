//! The table: every object of `docs.json` with its keys.
//!
//! Sources: specification 2.2 (what it lists is [`Shape::Elements`]; what real files also
//! nest, [`Shape::Unlisted`]); the keys of other tools that are accepted without effect
//! are those that public `docs.json` files carry.

use super::{Element, Field, Object, Shape};

use Shape::{
    Any, Elements, Flag, Href, Icon, Ignored, Label, Language, Objects, OneOf, OpenApi, Page,
    Pages, Text, TextOr, Texts, Title, Unlisted,
};

const fn field(key: &'static str, shape: Shape, about: &'static str) -> Field {
    Field::new(key, shape, about)
}

/// Rule N4: the values of `directory`.
pub const DIRECTORY: &[&str] = &["accordion", "card", "none"];

const ICON: Field = field("icon", Icon, "The icon beside the label");
const HREF: Field = field("href", Href, "A link in place of children").rule("N2");
const HIDDEN: Field = field(
    "hidden",
    Flag,
    "Keeps it out of sidebar, search and listings; pages stay reachable",
);
const DESCRIPTION: Field = field("description", Text, "A line beneath the label");
const TAG: Field = field("tag", Text, "A badge, like NEW").rule("N7");
const DEFAULT: Field = field(
    "default",
    Flag,
    "Makes this entry the default instead of the first",
)
.rule("N7");
const DIR: Field = field(
    "directory",
    OneOf(DIRECTORY),
    "How root pages of the groups below list their children",
)
.rule("N4");
const OPENAPI: Field = field(
    "openapi",
    OpenApi,
    "The specification of the endpoints below",
)
.rule("N6");
const ASYNCAPI: Field = field("asyncapi", Ignored, "AsyncAPI specifications");
const SEARCHABLE: Field = field("searchable", Ignored, "Search follows `hidden`");
const BOOST: Field = field("boost", Ignored, "The weight in search");
const SDK: Field = field("sdk", Ignored, "Generated SDK references");
const GRAPHQL: Field = field("graphql", Ignored, "GraphQL schemas");
const PUBLIC: Field = field("public", Ignored, "Visibility is the site's");
const COLOR: Field = field("color", Ignored, "The colour of the label");

const PAGES: Field = field(
    "pages",
    Pages,
    "Paths of pages, endpoints, and nested groups",
);
const GROUPS: Field = field("groups", Elements(Element::Group), "Groups of pages");
const TABS: Field = field("tabs", Elements(Element::Tab), "Tabs");
const MENU: Field = field(
    "menu",
    Elements(Element::Item),
    "The items of the tab's menu",
);
const ANCHORS: Field = field("anchors", Elements(Element::Anchor), "Anchors");
const DROPDOWNS: Field = field(
    "dropdowns",
    Elements(Element::Dropdown),
    "Entries of a dropdown",
);
const PRODUCTS: Field = field("products", Elements(Element::Product), "Products");
const VERSIONS: Field = field("versions", Elements(Element::Version), "Versions");
const LANGUAGES: Field = field("languages", Elements(Element::Language), "Languages");
const GLOBAL_FIELD: Field = field("global", Shape::Object(&GLOBAL), "Links on every page");

const LATER_TABS: Field = field("tabs", Unlisted(Element::Tab), "Tabs");
const LATER_MENU: Field = field("menu", Unlisted(Element::Item), "The items of a menu");
const LATER_ANCHORS: Field = field("anchors", Unlisted(Element::Anchor), "Anchors");
const LATER_DROPDOWNS: Field = field(
    "dropdowns",
    Unlisted(Element::Dropdown),
    "Entries of a dropdown",
);
const LATER_PRODUCTS: Field = field("products", Unlisted(Element::Product), "Products");
const LATER_VERSIONS: Field = field("versions", Unlisted(Element::Version), "Versions");
const LATER_LANGUAGES: Field = field("languages", Unlisted(Element::Language), "Languages");

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

/// `navigation`.
pub static NAVIGATION: Object = Object {
    name: "`navigation`",
    about: "The structure of the site: one primary pattern (rule N1)",
    fields: &[
        PAGES,
        GROUPS,
        TABS,
        ANCHORS,
        DROPDOWNS,
        PRODUCTS,
        VERSIONS,
        LANGUAGES,
        GLOBAL_FIELD,
        DIR,
        OPENAPI,
    ],
};

/// A group.
pub static GROUP: Object = Object {
    name: "a group",
    about: "A titled section of the sidebar",
    fields: &[
        field(
            "group",
            Title,
            "The label of the group; a blank one is no title",
        )
        .required(),
        PAGES,
        ICON,
        TAG,
        field("root", Page, "The page that the title opens").rule("N3"),
        field("expanded", Flag, "Whether a nested group is open at first").rule("N5"),
        DIR,
        OPENAPI,
        HIDDEN,
        field(
            "groups",
            Unlisted(Element::Group),
            "Nested groups; `pages` is where they belong",
        ),
        ASYNCAPI,
        SEARCHABLE,
        BOOST,
        SDK,
        PUBLIC,
    ],
};

/// A tab.
pub static TAB: Object = Object {
    name: "a tab",
    about: "A section of the site with its own sidebar",
    fields: &[
        field("tab", Label, "The label of the tab").required(),
        ICON,
        HREF,
        PAGES,
        GROUPS,
        MENU,
        ANCHORS,
        DROPDOWNS,
        PRODUCTS,
        VERSIONS,
        LANGUAGES,
        GLOBAL_FIELD,
        DIR,
        OPENAPI,
        HIDDEN,
        DESCRIPTION,
        TAG,
        LATER_TABS,
        field("align", Ignored, "The side the tab stands on"),
        ASYNCAPI,
        SEARCHABLE,
        BOOST,
        SDK,
        GRAPHQL,
        PUBLIC,
    ],
};

/// An item of a tab's menu.
pub static ITEM: Object = Object {
    name: "a menu item",
    about: "An entry of a tab's menu",
    fields: &[
        field("item", Label, "The label of the item").required(),
        ICON,
        DESCRIPTION,
        GROUPS,
        PAGES,
        HREF,
        HIDDEN,
        DIR,
        OPENAPI,
        LATER_TABS,
        LATER_MENU,
        LATER_ANCHORS,
        LATER_DROPDOWNS,
        LATER_PRODUCTS,
        LATER_VERSIONS,
        LATER_LANGUAGES,
        field("root", Ignored, "A menu item opens its first page"),
        TAG,
        ASYNCAPI,
        SEARCHABLE,
        BOOST,
        PUBLIC,
    ],
};

/// An anchor.
pub static ANCHOR: Object = Object {
    name: "an anchor",
    about: "A link or section at the top of the sidebar",
    fields: &[
        field("anchor", Label, "The label of the anchor").required(),
        ICON,
        HREF,
        GROUPS,
        PAGES,
        OPENAPI,
        DIR,
        HIDDEN,
        DESCRIPTION,
        TAG,
        LATER_TABS,
        LATER_MENU,
        LATER_ANCHORS,
        LATER_DROPDOWNS,
        LATER_PRODUCTS,
        LATER_VERSIONS,
        LATER_LANGUAGES,
        GLOBAL_FIELD,
        COLOR,
        ASYNCAPI,
        SEARCHABLE,
        BOOST,
        PUBLIC,
    ],
};

/// An entry of `global.anchors`.
pub static GLOBAL_ANCHOR: Object = Object {
    name: "a global anchor",
    about: "A link on every page",
    fields: &[
        field("anchor", Label, "The label of the anchor").required(),
        ICON,
        field("href", Href, "A URL, or the path of a page").required(),
        HIDDEN,
        DESCRIPTION,
        COLOR,
    ],
};

/// `global`.
pub static GLOBAL: Object = Object {
    name: "`global`",
    about: "What stands on every page",
    fields: &[
        field(
            "anchors",
            Elements(Element::GlobalAnchor),
            "Links on every page",
        ),
        field("tabs", Ignored, "Only `anchors` are global here"),
        field("dropdowns", Ignored, "Only `anchors` are global here"),
        field("products", Ignored, "Only `anchors` are global here"),
        field("versions", Ignored, "Only `anchors` are global here"),
        field("languages", Ignored, "Only `anchors` are global here"),
    ],
};

/// A product.
pub static PRODUCT: Object = Object {
    name: "a product",
    about: "A product with its own documentation",
    fields: &[
        field("product", Label, "The label of the product").required(),
        DESCRIPTION,
        ICON,
        HREF,
        GROUPS,
        PAGES,
        DIR,
        OPENAPI,
        HIDDEN,
        TAG,
        field("name", Text, "The label, as older files write it"),
        LATER_TABS,
        LATER_MENU,
        LATER_ANCHORS,
        LATER_DROPDOWNS,
        LATER_PRODUCTS,
        LATER_VERSIONS,
        LATER_LANGUAGES,
        GLOBAL_FIELD,
        COLOR,
        ASYNCAPI,
        SEARCHABLE,
        BOOST,
        PUBLIC,
    ],
};

/// A dropdown.
pub static DROPDOWN: Object = Object {
    name: "a dropdown",
    about: "An entry of the dropdown above the sidebar",
    fields: &[
        field("dropdown", Label, "The label of the entry").required(),
        ICON,
        HREF,
        GROUPS,
        PAGES,
        DESCRIPTION,
        DIR,
        OPENAPI,
        HIDDEN,
        TAG,
        LATER_TABS,
        LATER_MENU,
        LATER_ANCHORS,
        LATER_DROPDOWNS,
        LATER_PRODUCTS,
        LATER_VERSIONS,
        LATER_LANGUAGES,
        GLOBAL_FIELD,
        COLOR,
        ASYNCAPI,
        SEARCHABLE,
        BOOST,
        PUBLIC,
    ],
};

/// A version.
pub static VERSION: Object = Object {
    name: "a version",
    about: "One version of the documentation",
    fields: &[
        field("version", Label, "The label of the version").required(),
        DEFAULT,
        TAG,
        PAGES,
        GROUPS,
        TABS,
        ANCHORS,
        DROPDOWNS,
        PRODUCTS,
        LANGUAGES,
        GLOBAL_FIELD,
        DIR,
        OPENAPI,
        HREF,
        ICON,
        HIDDEN,
        DESCRIPTION,
        field("versions", Unlisted(Element::Version), "Versions"),
        ASYNCAPI,
        SEARCHABLE,
        BOOST,
        PUBLIC,
    ],
};

/// A language.
pub static LANGUAGE: Object = Object {
    name: "a language",
    about: "One language of the documentation",
    fields: &[
        field("language", Language, "The code of the language")
            .required()
            .rule("N8"),
        PAGES,
        GROUPS,
        TABS,
        ANCHORS,
        DROPDOWNS,
        PRODUCTS,
        VERSIONS,
        GLOBAL_FIELD,
        DIR,
        OPENAPI,
        BANNER_FIELD,
        FOOTER_FIELD,
        NAVBAR_FIELD,
        DEFAULT,
        HREF,
        HIDDEN,
        ICON,
        field("languages", Unlisted(Element::Language), "Languages"),
        ASYNCAPI,
        SEARCHABLE,
        BOOST,
        PUBLIC,
    ],
};

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

//! The table of `navigation` and of its elements.
//!
//! An element is read key by key while the navigation is compiled, because its meaning depends on
//! the elements around it; so there is a table of its keys, but no struct. The shape of a key is
//! [`Unlisted`] if files contain the key although the documented format does not list it there.

use crate::docs::config::{Banner, Footer, Navbar};

use super::{Declared as _, Element, Field, Object, Shape};

use Shape::{
    Elements, Flag, Href, Icon, Ignored, Label, Language, OneOf, OpenApi, Page, Pages, Text, Title,
    Unlisted, Weight,
};

const fn field(key: &'static str, shape: Shape, about: &'static str) -> Field {
    Field::new(key, shape, about)
}

const ICON: Field = field("icon", Icon, "The icon beside the label");
const BANNER_FIELD: Field = field(
    "banner",
    Shape::Object(Banner::OBJECT),
    Banner::OBJECT.about,
)
.rule("N8");
const FOOTER_FIELD: Field = field(
    "footer",
    Shape::Object(Footer::OBJECT),
    Footer::OBJECT.about,
)
.rule("N8");
const NAVBAR_FIELD: Field = field(
    "navbar",
    Shape::Object(Navbar::OBJECT),
    Navbar::OBJECT.about,
)
.rule("N8");

/// Rule N4: the values of `directory`.
pub const DIRECTORY: &[&str] = &["accordion", "card", "none"];

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
const ASYNCAPI: Field = field(
    "asyncapi",
    Ignored(&["string", "array", "object"]),
    "AsyncAPI specifications: no pages are generated from them",
);
const SEARCHABLE: Field = field(
    "searchable",
    Flag,
    "Whether search finds its pages; without it search follows `hidden`",
);
const BOOST: Field = field(
    "boost",
    Weight,
    "The factor by which search raises its pages, below 1 lowers them",
);
const SDK: Field = field(
    "sdk",
    Ignored(&["string", "array", "object"]),
    "Generated SDK references: no pages are generated from them",
);
const GRAPHQL: Field = field(
    "graphql",
    Ignored(&["string", "array", "object"]),
    "GraphQL schemas: no pages are generated from them",
);
const PUBLIC: Field = field(
    "public",
    Flag,
    "Whether everyone may read its pages; no effect here, visibility is the site's",
)
.without_effect();
const COLOR: Field = field(
    "color",
    Ignored(&["string", "object"]),
    "The colour of the label",
);

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

/// Keys of anchors, products, dropdowns and items of a menu that the documented format does not
/// list there.
const UNLISTED: &[Field] = &[
    TABS.unlisted(),
    MENU.unlisted(),
    ANCHORS.unlisted(),
    DROPDOWNS.unlisted(),
    PRODUCTS.unlisted(),
    VERSIONS.unlisted(),
    LANGUAGES.unlisted(),
];
const GLOBAL_AND_COLOR: &[Field] = &[GLOBAL_FIELD, COLOR];
/// Further keys of every element: the keys of search, and keys without an effect.
const FURTHER: &[Field] = &[ASYNCAPI, SDK, GRAPHQL, SEARCHABLE, BOOST, PUBLIC];

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
        ASYNCAPI,
        SDK,
        GRAPHQL,
    ],
    shared: &[],
};

/// A group.
pub static GROUP: Object = Object {
    name: "a group",
    about: "A titled section of the sidebar",
    fields: &[
        field(
            "group",
            Title,
            "The label of the group; a group with a blank label has no title",
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
            "Nested groups; write them in `pages`",
        ),
    ],
    shared: &[FURTHER],
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
        TABS.unlisted(),
        field("align", Ignored(&["string"]), "The side of the tab"),
    ],
    shared: &[FURTHER],
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
        field(
            "root",
            Ignored(&["boolean", "string"]),
            "A menu item opens its first page",
        ),
        TAG,
        GLOBAL_FIELD,
    ],
    shared: &[UNLISTED, FURTHER],
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
    ],
    shared: &[UNLISTED, GLOBAL_AND_COLOR, FURTHER],
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
        field("directory", Ignored(&["string"]), "A link has no listing"),
        SDK,
        GRAPHQL,
    ],
    shared: &[],
};

/// `global`.
pub static GLOBAL: Object = Object {
    name: "`global`",
    about: "Links on every page",
    fields: &[
        field(
            "anchors",
            Elements(Element::GlobalAnchor),
            "Links on every page",
        ),
        field(
            "tabs",
            Ignored(&["array"]),
            "Elements on every page; no effect here, only `anchors` are global",
        ),
        field(
            "dropdowns",
            Ignored(&["array"]),
            "Elements on every page; no effect here, only `anchors` are global",
        ),
        field(
            "products",
            Ignored(&["array"]),
            "Elements on every page; no effect here, only `anchors` are global",
        ),
        field(
            "versions",
            Ignored(&["array"]),
            "Elements on every page; no effect here, only `anchors` are global",
        ),
        field(
            "languages",
            Ignored(&["array"]),
            "Elements on every page; no effect here, only `anchors` are global",
        ),
    ],
    shared: &[],
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
    ],
    shared: &[UNLISTED, GLOBAL_AND_COLOR, FURTHER],
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
    ],
    shared: &[UNLISTED, GLOBAL_AND_COLOR, FURTHER],
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
        VERSIONS.unlisted(),
    ],
    shared: &[FURTHER],
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
        LANGUAGES.unlisted(),
    ],
    shared: &[FURTHER],
};

//! The schema: the keys of each object of `docs.json`, and the shapes of their values.
//!
//! The keys of an object are declared once. Objects outside the navigation are declared with
//! [`object!`], which also makes the struct and the reader; objects of the navigation are in a
//! table ([`navigation`]). The check of a file, the suggestions in its diagnostics and the JSON
//! Schema for editors ([`json_schema`]) use these declarations, so they cannot disagree.
//!
//! A value of the wrong shape is an error and then counts as absent. A key that is not in the
//! table is a warning, because existing files contain keys of many tools.

mod check;
mod declare;
pub mod elsewhere;
pub mod json_schema;
pub mod kind;
pub mod navigation;

pub use check::check;
pub use declare::{Declared, Kind};
pub(in crate::docs) use declare::{description, object};

use crate::syntax::Value;

/// The rule for a value of the wrong shape, if no numbered rule applies.
pub const SHAPE: &str = "shape";
/// The rule for a missing or empty value.
pub const REQUIRED: &str = "required";
/// The rule for a key that is not in the table.
pub const UNKNOWN_KEY: &str = "unknown-key";
/// The rule for a setting without effect.
pub const NO_EFFECT: &str = "no-effect";

/// The least weight in search.
pub const WEIGHT_MIN: f32 = 0.01;
/// The greatest weight in search.
pub const WEIGHT_MAX: f32 = 100.0;

/// The description of a weight in messages.
pub const WEIGHT: &str = "a number from 0.01 to 100";

/// Reads a weight in search; `None` if the value is not one.
#[must_use]
pub fn weight(value: &Value) -> Option<f32> {
    let weight: f32 = value.scalar()?.parse().ok()?;
    (WEIGHT_MIN..=WEIGHT_MAX)
        .contains(&weight)
        .then_some(weight)
}

/// An object and its keys.
#[derive(Debug)]
pub struct Object {
    /// Its name in messages: "a group".
    pub name: &'static str,
    /// Its description in the JSON Schema.
    pub about: &'static str,
    /// Its own keys.
    pub fields: &'static [Field],
    /// The keys that it shares with other objects.
    pub shared: &'static [&'static [Field]],
}

/// A key of an object.
#[derive(Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// The shape of its value.
    pub shape: Shape,
    /// Whether it is required.
    pub required: bool,
    /// The rule for a wrong value.
    pub rule: &'static str,
    /// Its description in the JSON Schema.
    pub about: &'static str,
    /// Whether it has an effect here; keys of other tools have none.
    pub effect: bool,
}

/// The kinds of elements of a navigation, except pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// An entry of `groups`, or a group inside `pages`.
    Group,
    /// An entry of `tabs`.
    Tab,
    /// An entry of a tab's `menu`.
    Item,
    /// An entry of `anchors`.
    Anchor,
    /// An entry of `global.anchors`.
    GlobalAnchor,
    /// An entry of `products`.
    Product,
    /// An entry of `dropdowns`.
    Dropdown,
    /// An entry of `versions`.
    Version,
    /// An entry of `languages`.
    Language,
}

/// The shape of a value.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A text.
    Text,
    /// A text that is not empty and not only white space.
    Label,
    /// A text that may be blank but not empty.
    Title,
    /// `true` or `false`.
    Flag,
    /// A number from [`WEIGHT_MIN`] to [`WEIGHT_MAX`].
    Weight,
    /// One of some texts.
    OneOf(&'static [&'static str]),
    /// The language codes that `docs.json` may name, and the aliases that are read.
    Language,
    /// The name of an icon, or an object that names it.
    Icon,
    /// A URL, or the path of a page.
    Href,
    /// The path of a page.
    Page,
    /// A specification: a path or URL, an object with `source`, or a list of them.
    OpenApi,
    /// Entries of `pages`: paths, endpoints, groups.
    Pages,
    /// A list of elements of one kind.
    Elements(Element),
    /// A list of elements that is accepted although the documented format does not list it there.
    Unlisted(Element),
    /// An object.
    Object(&'static Object),
    /// A list of objects.
    Objects(&'static Object),
    /// An object of texts under any name.
    Texts,
    /// A text, or an object.
    TextOr(&'static Object),
    /// A value of one of some types of JSON, which is not checked here.
    OfType(&'static [&'static str]),
    /// An object whose keys are described but not checked, or a value of one of some other types.
    Described(&'static [&'static str], &'static Object),
    /// A value without effect, of one of some types of JSON: other tools use the key.
    Ignored(&'static [&'static str]),
}

// === impl Element ===

impl Element {
    /// Returns the keys it has.
    #[must_use]
    pub fn object(self) -> &'static Object {
        match self {
            Self::Group => &navigation::GROUP,
            Self::Tab => &navigation::TAB,
            Self::Item => &navigation::ITEM,
            Self::Anchor => &navigation::ANCHOR,
            Self::GlobalAnchor => &navigation::GLOBAL_ANCHOR,
            Self::Product => &navigation::PRODUCT,
            Self::Dropdown => &navigation::DROPDOWN,
            Self::Version => &navigation::VERSION,
            Self::Language => &navigation::LANGUAGE,
        }
    }

    /// Returns the key that holds its label: the first of its table.
    #[must_use]
    pub fn label_key(self) -> &'static str {
        self.object().fields[0].key
    }
}

// === impl Object ===

impl Object {
    /// Returns its name without article or quotes.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        let quoted = self.name.strip_prefix('`');
        let name = quoted.and_then(|name| name.strip_suffix('`'));
        let name = name.unwrap_or(self.name);
        let articles = ["a ", "an ", "the "];
        let bare = articles
            .iter()
            .find_map(|article| name.strip_prefix(article));
        bare.unwrap_or(name)
    }

    /// Returns all keys of the table.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.fields
            .iter()
            .chain(self.shared.iter().copied().flatten())
    }

    /// Returns a key of the table.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<&'static Field> {
        self.all_fields().find(|field| field.key == key)
    }
}

// === impl Field ===

impl Field {
    /// Makes an optional key whose wrong values break the rule [`SHAPE`].
    pub(in crate::docs) const fn new(key: &'static str, shape: Shape, about: &'static str) -> Self {
        Self {
            key,
            shape,
            required: false,
            rule: SHAPE,
            about,
            effect: !matches!(shape, Shape::Ignored(_)),
        }
    }

    /// Returns the same key of elements, for a place where the documented format does not list it.
    pub(in crate::docs) const fn unlisted(self) -> Self {
        match self.shape {
            Shape::Elements(element) => Self {
                shape: Shape::Unlisted(element),
                ..self
            },
            _ => self,
        }
    }

    /// Makes the entry of a key that is a field of a struct.
    pub(in crate::docs) const fn of<K: Kind>(key: &'static str, about: &'static str) -> Self {
        Self {
            required: K::REQUIRED,
            ..Self::new(key, K::SHAPE, about)
        }
    }

    /// Makes a key without effect whose value has one of some types of JSON and is not checked.
    pub(in crate::docs) const fn accepted(
        key: &'static str,
        types: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Self::new(key, Shape::OfType(types), about).without_effect()
    }

    /// Says that the key has no effect.
    pub(in crate::docs) const fn without_effect(self) -> Self {
        Self {
            effect: false,
            ..self
        }
    }

    /// Makes a key that other tools use and that has no effect.
    pub(in crate::docs) const fn no_effect(
        key: &'static str,
        types: &'static [&'static str],
        about: &'static str,
    ) -> Self {
        Self::new(key, Shape::Ignored(types), about)
    }

    /// Makes the key required.
    pub(in crate::docs) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// Names the rule that wrong values break.
    pub(in crate::docs) const fn rule(self, rule: &'static str) -> Self {
        Self { rule, ..self }
    }
}

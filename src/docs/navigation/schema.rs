//! Reads one element of the navigation as it is written; every key is optional.

use crate::docs::config;
use crate::docs::schema::{self, Element, Object, Shape, navigation};
use crate::syntax::{Span, Value};

use super::tree::DivisionKind;

/// An element as written, or `navigation` itself.
#[derive(Clone, Copy, Debug)]
pub struct SourceElement<'v> {
    /// Its type; `None` for `navigation`.
    pub element: Option<Element>,
    /// Its object.
    pub value: &'v Value,
}

/// Children of one kind, as written.
#[derive(Clone, Copy, Debug)]
pub struct Children<'v> {
    /// Their kind.
    pub kind: ChildKind,
    /// The place of the key.
    pub key: Span,
    /// The children.
    pub items: &'v [Value],
    /// Whether the rules of the navigation list this kind for this element.
    pub listed: bool,
}

/// The kinds of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildKind {
    /// `pages`.
    Pages,
    /// `groups`.
    Groups,
    /// One of the divisions.
    Divisions(DivisionKind, Element),
}

/// The keys of children in order of precedence: if an element has several and the site is
/// lenient, the first is used. The platform that these files come from uses the same order.
const PRECEDENCE: [(&str, ChildKind); 9] = [
    (
        "products",
        ChildKind::Divisions(DivisionKind::Products, Element::Product),
    ),
    (
        "languages",
        ChildKind::Divisions(DivisionKind::Languages, Element::Language),
    ),
    (
        "versions",
        ChildKind::Divisions(DivisionKind::Versions, Element::Version),
    ),
    (
        "tabs",
        ChildKind::Divisions(DivisionKind::Tabs, Element::Tab),
    ),
    (
        "dropdowns",
        ChildKind::Divisions(DivisionKind::Dropdowns, Element::Dropdown),
    ),
    (
        "anchors",
        ChildKind::Divisions(DivisionKind::Anchors, Element::Anchor),
    ),
    ("groups", ChildKind::Groups),
    ("pages", ChildKind::Pages),
    (
        "menu",
        ChildKind::Divisions(DivisionKind::Menu, Element::Item),
    ),
];

// === impl Written ===

impl<'v> SourceElement<'v> {
    /// Returns the table of its keys.
    #[must_use]
    pub fn object(&self) -> &'static Object {
        self.element
            .map_or(&navigation::NAVIGATION, Element::object)
    }

    /// Returns its type and label for a message: "tab `Guides`".
    #[must_use]
    pub fn name(&self) -> String {
        match (self.element, self.label()) {
            (Some(element), Some(label)) => format!("{} `{label}`", element.object().noun()),
            (Some(element), None) => element.object().noun().to_owned(),
            (None, _) => "navigation".to_owned(),
        }
    }

    /// Returns its label if that is a text; only the label of a group may be blank.
    #[must_use]
    pub fn label(&self) -> Option<&'v str> {
        let element = self.element?;
        let label = self.value.get(element.label_key())?.text()?;
        let is_title = match element {
            Element::Group => !label.is_empty(),
            _ => !label.trim().is_empty(),
        };
        is_title.then(|| label.trim())
    }

    /// Returns the place of its label, or of its first byte if it has none.
    #[must_use]
    pub fn place(&self) -> Span {
        let label = self
            .element
            .and_then(|element| self.value.get(element.label_key()));
        match label {
            Some(label) => label.span,
            None => Span {
                end: self.value.span.start + 1,
                ..self.value.span
            },
        }
    }

    /// Returns a text that is not blank.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<(&'v str, Span)> {
        let value = self.value.get(key)?;
        let text = value.text()?.trim();
        (!text.is_empty()).then_some((text, value.span))
    }

    /// Returns a copy of a text that is not blank.
    #[must_use]
    pub fn owned_text(&self, key: &str) -> Option<Box<str>> {
        self.text(key).map(|(text, _)| text.into())
    }

    /// Returns a truth value.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<(bool, Span)> {
        let member = self.value.member(key)?;
        Some((member.value.flag()?, member.span))
    }

    /// Returns a weight in search.
    #[must_use]
    pub fn weight(&self, key: &str) -> Option<f32> {
        schema::weight(self.value.get(key)?)
    }

    /// Returns the name of its icon.
    #[must_use]
    pub fn icon(&self) -> Option<Box<str>> {
        config::icon(self.value)
    }

    /// Returns its children by kind, in the order of precedence; empty lists do not count.
    #[must_use]
    pub fn children(&self) -> Vec<Children<'v>> {
        let object = self.object();
        let children = |(key, kind): &(&str, ChildKind)| {
            let field = object.field(key)?;
            let member = self.value.member(key)?;
            let items = member.value.items();
            (!items.is_empty()).then_some(Children {
                kind: *kind,
                key: member.span,
                items,
                listed: !matches!(field.shape, Shape::Unlisted(_)),
            })
        };
        PRECEDENCE.iter().filter_map(children).collect()
    }
}

// === impl ChildKind ===

impl ChildKind {
    /// Returns the key under which they are written.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Pages => "pages",
            Self::Groups => "groups",
            Self::Divisions(kind, _) => kind.key(),
        }
    }
}

//! The parts around every page: banner, navbar and footer.

use std::marker::PhantomData;

use crate::docs::page::words_of;
use crate::docs::schema::kind::{Flag, Href, Icon, Label, List, OrDefault, Required, Text, Texts};
use crate::docs::schema::{Declared, Field, Kind, Shape, elsewhere, object};
use crate::syntax::Value;

object! {
    /// The banner above every page.
    pub struct Banner = "a banner" {
        /// Its text; may contain inline links.
        "content" ["N8"] => content: Required<Label>,
        /// Whether a reader can close it.
        "dismissible" ["N8"] => dismissible: OrDefault<Flag>,
    }
    also {
        Field::no_effect("type", &["string"], "`info`, `warning` or `critical`"),
        Field::new(
            "color",
            Shape::Described(&["string"], &elsewhere::MODE_COLORS),
            "The colour of the banner; no effect here, it is that of the brand",
        )
        .without_effect(),
    }
}

object! {
    /// The footer of every page.
    pub struct Footer = "a footer" {
        /// Networks and the URLs of the accounts there.
        "socials" ["N8"] => socials: OrDefault<Texts>,
        /// Columns of links.
        "links" ["N8"] => columns: OrDefault<List<Column>>,
    }
}

object! {
    /// A column of links.
    pub struct Column = "a column of a footer" {
        /// The title of the column.
        "header" ["N8"] => header: Text,
        /// The links of the column.
        "items" ["N8"] => items: Required<Links<FooterLink>>,
    }
}

object! {
    /// A link with its label.
    pub struct FooterLink = "a link" {
        /// The label of the link.
        "label" ["N8"] => label: Required<Label>,
        /// The destination of the link: a path or a URL.
        "href" ["N8"] => href: Required<Href>,
        /// The icon beside the label.
        "icon" => icon: Icon,
    }
    also { Field::no_effect("type", &["string"], "The style of the link; all are alike"), }
}

object! {
    /// The bar at the top of every page.
    pub struct Navbar = "a navbar" {
        /// Links.
        "links" ["N8"] => links: OrDefault<Links<NavbarLink>>,
        /// The button.
        "primary" ["N8"] => primary: Button,
    }
}

object! {
    /// A link in the bar at the top of every page; a link to a repository needs no label.
    pub struct NavbarLink = "a link of a navbar" {
        /// The label of the link.
        "label" ["N8"] => label: Text,
        /// The destination of the link: a path or a URL.
        "href" ["N8"] => href: Required<Href>,
        /// The icon beside the label.
        "icon" => icon: Icon,
        /// `github` or `discord`; a link without a label shows this name.
        "type" ["N8"] => kind: Text,
    }
}

object! {
    /// The button of the bar at the top of every page.
    pub struct NavbarPrimary = "the `primary` of a navbar" {
        /// `button`, `github` or `discord`.
        "type" ["N8"] => kind: Text,
        /// The label of the button.
        "label" ["N8"] => label: Text,
        /// The destination of the link: a path or a URL.
        "href" ["N8"] => href: Required<Href>,
        /// The icon beside the label.
        "icon" => icon: Icon,
    }
}

/// A link of a navbar or footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its label; a link to a repository may have none.
    pub label: Option<Box<str>>,
    /// The destination of the link: a path or a URL.
    pub href: Box<str>,
    /// Its type: `button`, `github`, `discord`.
    pub kind: Option<Box<str>>,
    /// Its icon.
    pub icon: Option<Box<str>>,
}

/// The kind of a list of links.
#[derive(Debug)]
pub struct Links<T>(PhantomData<T>);

/// The kind of a navbar's button.
#[derive(Debug)]
pub enum Button {}

// === impl NavbarPrimary ===

impl NavbarPrimary {
    /// Returns the label that is made for a button without label.
    ///
    /// It is `None` if the button has a label, or a type that gives it one.
    #[must_use]
    pub fn missing_label(&self) -> Option<Box<str>> {
        let has_label = self.label.is_some() || self.type_label().is_some();
        (!has_label).then(|| self.text())
    }

    fn type_label(&self) -> Option<Box<str>> {
        match self.kind.as_deref() {
            Some("github") => Some("GitHub".into()),
            Some("discord") => Some("Discord".into()),
            _ => None,
        }
    }

    /// Returns the text of the button: its label, or the host or last segment of its address.
    fn text(&self) -> Box<str> {
        if let Some(label) = self.label.clone().or_else(|| self.type_label()) {
            return label;
        }
        if let Some((_, rest)) = self.href.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
            return host.strip_prefix("www.").unwrap_or(host).into();
        }
        let path = self.href.split(['?', '#']).next().unwrap_or_default();
        let name = path.trim_matches('/').rsplit('/').next();
        let words = words_of(name.unwrap_or_default());
        words.unwrap_or_else(|| self.href.clone())
    }
}

// === impl Link ===

impl From<FooterLink> for Link {
    fn from(link: FooterLink) -> Self {
        Self {
            label: Some(link.label),
            href: link.href,
            kind: None,
            icon: link.icon,
        }
    }
}

impl From<NavbarLink> for Link {
    fn from(link: NavbarLink) -> Self {
        Self {
            label: link.label,
            href: link.href,
            kind: link.kind,
            icon: link.icon,
        }
    }
}

impl From<NavbarPrimary> for Link {
    fn from(primary: NavbarPrimary) -> Self {
        Self {
            label: Some(primary.text()),
            href: primary.href,
            kind: primary.kind,
            icon: primary.icon,
        }
    }
}

// === impl Kind ===

impl<T: Declared + Into<Link>> Kind for Links<T> {
    type Value = Option<Vec<Link>>;
    const SHAPE: Shape = Shape::Objects(T::OBJECT);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.map(|value| {
            let links = value.items().iter().filter_map(T::read);
            links.map(Into::into).collect()
        }))
    }
}

impl Kind for Button {
    type Value = Option<Link>;
    const SHAPE: Shape = Shape::Object(NavbarPrimary::OBJECT);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(NavbarPrimary::read).map(Into::into))
    }
}

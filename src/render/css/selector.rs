//! Selectors of authors. Hooks are replaced by our names. A selector matches only elements of the
//! content, unless it names a part of the shell.
//!
//! The last compound of a selector gets a condition: `.dark h2` becomes
//! `.dark h2:where(main, main *)`. So nothing outside of `<main>` is matched, and the
//! specificity stays the same. A selector that names a part of the shell, the body or the root
//! is left as it is, and its declarations are restricted ([`super::declaration`]).
//!
//! Sources: Selectors 4; CSS Nesting 1.

use lightningcss::selector::{Component, PseudoElement, Selector, SelectorList};
use lightningcss::stylesheet::ParserOptions;
use lightningcss::traits::ParseWithOptions;

use super::hook::{self, Hook};
use super::name;

/// The condition that an element is in the content.
const CONTENT: &str = ":where(main, main *)";
/// Attributes with which public stylesheets select generated elements, their values, and the
/// selector for the same elements here.
const MARKED: [(&str, Option<&str>, &str); 10] = [
    ("data-active", None, ":is([aria-current], .current)"),
    ("data-active-deepest", None, ":has(> [aria-current])"),
    ("data-callout-type", Some("check"), ".check"),
    ("data-callout-type", Some("danger"), ".danger"),
    ("data-callout-type", Some("info"), ".info"),
    ("data-callout-type", Some("note"), ".note"),
    ("data-callout-type", Some("tip"), ".tip"),
    ("data-callout-type", Some("warning"), ".warning"),
    ("data-theme", Some("dark"), ".dark"),
    ("data-theme", Some("light"), ":root:not(.dark)"),
];

/// The elements that a selector matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Matches {
    /// Elements of the content.
    Content,
    /// Elements of the content, and perhaps `<main>` around it.
    Main,
    /// The root or the body.
    Root,
    /// A part of the shell.
    Shell,
}

/// The properties of a selector.
#[derive(Debug, Default)]
struct Properties {
    /// A part of the shell is named, in a place where it must match.
    has_shell: bool,
    /// The last compound can match the root or the body.
    is_root: bool,
    /// The parent's selector is part of it.
    has_parent: bool,
    /// The last compound belongs to the parent.
    is_parent: bool,
    /// Why the selector cannot be used.
    rejected: Option<&'static str>,
}

/// The place of a component in its selector.
#[derive(Clone, Copy, Debug)]
struct ComponentPosition {
    /// In the last compound, or in a list of alternatives there.
    is_last: bool,
    /// Whether a name here must match; not inside `:not()`.
    is_positive: bool,
}

/// Changes a selector, and returns what it matches; an error says why it cannot be used.
/// `parent` is what the selector of the rule around it matches.
pub(super) fn confine<'i>(
    selector: &mut Selector<'i>,
    parent: Option<Matches>,
) -> Result<Matches, &'static str> {
    let mut properties = Properties::default();
    let place = ComponentPosition {
        is_last: true,
        is_positive: true,
    };
    let may_be_main = may_be_main(selector.iter_raw_match_order(), parent);
    rewrite(selector, place, &mut properties);
    if let Some(why) = properties.rejected {
        return Err(why);
    }
    if properties.has_shell || properties.has_parent && parent == Some(Matches::Shell) {
        return Ok(Matches::Shell);
    }
    if properties.is_root || properties.is_parent && parent == Some(Matches::Root) {
        return Ok(Matches::Root);
    }
    let is_confined = matches!(parent, Some(Matches::Content | Matches::Main));
    if !(properties.is_parent && is_confined) {
        let condition = parsed(CONTENT).ok_or("it cannot be read")?;
        condition.into_iter().for_each(|part| selector.append(part));
    }
    Ok(match may_be_main {
        true => Matches::Main,
        false => Matches::Content,
    })
}

/// Returns whether the last compound of a selector may match `<main>`: nothing in it excludes that.
/// The classes and ids of authors are on no element of the shell.
fn may_be_main<'s, 'i: 's>(
    compound: impl Iterator<Item = &'s Component<'i>>,
    parent: Option<Matches>,
) -> bool {
    let is_main = |hook: Option<&Hook>| hook.is_some_and(Hook::is_main);
    let mut last = compound.take_while(|part| {
        part.as_combinator()
            .is_none_or(|combinator| combinator.is_pseudo_element())
    });
    last.all(|part| match part {
        Component::ID(id) => is_main(hook::id(&id.0)),
        Component::Class(class) => is_main(hook::class(&class.0)),
        Component::LocalName(local) => {
            let name = &*local.lower_name.0;
            is_main(hook::element(name))
        }
        Component::Is(list) | Component::Where(list) | Component::Any(_, list) => list
            .iter()
            .any(|one| may_be_main(one.iter_raw_match_order(), parent)),
        Component::Nesting => parent == Some(Matches::Main),
        Component::PseudoElement(_) => false,
        _ => true,
    })
}

fn rewrite<'i>(selector: &mut Selector<'i>, place: ComponentPosition, properties: &mut Properties) {
    let mut place = place;
    for component in selector.iter_mut_raw_match_order() {
        if let Some(combinator) = component.as_combinator() {
            place.is_last &= combinator.is_pseudo_element();
        } else if let Some(part) = replacement(component, place, properties) {
            *component = part;
        }
    }
}

/// Returns the replacement of a component, if it has one.
fn replacement<'i>(
    component: &mut Component<'i>,
    place: ComponentPosition,
    properties: &mut Properties,
) -> Option<Component<'i>> {
    match component {
        Component::ID(id) => hooked(hook::id(&id.0)?, place, properties),
        Component::Class(class) => {
            if let Some(hook) = hook::class(&class.0) {
                return hooked(hook, place, properties);
            }
            let written = name::class(&class.0).into_owned();
            *class = written.into();
            None
        }
        Component::LocalName(local) => {
            let name = &*local.lower_name.0;
            properties.is_root |=
                place.is_last && place.is_positive && matches!(name, "html" | "body");
            hooked(hook::element(name)?, place, properties)
        }
        Component::Root | Component::Scope => {
            properties.is_root |= place.is_last && place.is_positive;
            None
        }
        Component::Nesting => {
            properties.has_parent = true;
            properties.is_parent |= place.is_last && place.is_positive;
            None
        }
        Component::AttributeInNoNamespaceExists { local_name, .. } => marked(&local_name.0, None),
        Component::AttributeInNoNamespace {
            local_name, value, ..
        } => marked(&local_name.0, Some(&value.0)),
        Component::Is(list) | Component::Where(list) | Component::Any(_, list) => {
            list.iter_mut()
                .for_each(|one| rewrite(one, place, properties));
            None
        }
        Component::Negation(list) | Component::Has(list) => {
            let place = ComponentPosition {
                is_last: false,
                is_positive: false,
            };
            list.iter_mut()
                .for_each(|one| rewrite(one, place, properties));
            None
        }
        Component::Slotted(_) | Component::Part(_) | Component::Host(_) => {
            properties.rejected = Some("pages have no shadow trees");
            None
        }
        Component::PseudoElement(part) => {
            if is_above_page(part) {
                properties.rejected = Some("it is shown above the page");
            }
            None
        }
        _ => None,
    }
}

/// Returns the selector of a part of a page.
fn hooked<'i>(
    hook: &'static Hook,
    place: ComponentPosition,
    properties: &mut Properties,
) -> Option<Component<'i>> {
    properties.has_shell |= hook.is_shell && place.is_positive;
    alternatives(hook.selector)
}

/// Returns the selector for elements with an attribute that pages here do not have.
fn marked<'i>(attribute: &str, value: Option<&str>) -> Option<Component<'i>> {
    let mut all = MARKED.into_iter();
    let (.., selector) =
        all.find(|(name, wanted, _)| *name == attribute && (wanted.is_none() || *wanted == value))?;
    alternatives(selector)
}

/// Reads a selector of ours as one component.
fn alternatives<'i>(selector: &'static str) -> Option<Component<'i>> {
    let options = ParserOptions::default();
    let list = SelectorList::parse_string_with_options(selector, options).ok()?;
    let list: Vec<Selector<'i>> = list.0.into_iter().collect();
    Some(Component::Is(list.into()))
}

/// Reads a compound selector of ours.
fn parsed<'i>(selector: &'static str) -> Option<Vec<Component<'i>>> {
    let options = ParserOptions::default();
    let list = SelectorList::parse_string_with_options(selector, options).ok()?;
    let first = list.0.into_iter().next()?;
    Some(first.iter_raw_match_order().cloned().collect())
}

/// Returns whether a pseudo-element is in the top layer, above everything.
fn is_above_page(part: &PseudoElement<'_>) -> bool {
    match part {
        PseudoElement::Backdrop(_)
        | PseudoElement::ViewTransition
        | PseudoElement::ViewTransitionGroup { .. }
        | PseudoElement::ViewTransitionImagePair { .. }
        | PseudoElement::ViewTransitionOld { .. }
        | PseudoElement::ViewTransitionNew { .. } => true,
        PseudoElement::Custom { name } | PseudoElement::CustomFunction { name, .. } => {
            let name = name.to_ascii_lowercase();
            name.contains("transition") || name.contains("backdrop")
        }
        _ => false,
    }
}

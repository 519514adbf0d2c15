//! The declaration of an object of `docs.json`.
//!
//! A key has a struct field, a reader, an entry in the table that the check uses, and a
//! description in the JSON Schema and on the reference page. All of them come from one line of
//! [`object!`]: adding a key is a change in one place.

use crate::syntax::Value;

use super::{Object, Shape};

/// An object of `docs.json` that [`object!`] declares.
pub trait Declared: Sized {
    /// Its keys.
    const OBJECT: &'static Object;

    /// Reads an object; `None` if a required key is missing.
    ///
    /// [`super::check()`] reports the mistakes in the value.
    fn read(value: &Value) -> Option<Self>;
}

/// The shape of the value of a key, and its reader.
pub trait Kind {
    /// The type of the struct field.
    type Value;
    /// The shape of the value.
    const SHAPE: Shape;
    /// Whether the key is required.
    const REQUIRED: bool = false;

    /// Reads the value of the key; `None` if the object has no meaning without it.
    fn read(value: Option<&Value>) -> Option<Self::Value>;
}

/// Returns the text of a comment as a description, without leading space and full stop.
pub(in crate::docs) const fn description(comment: &'static str) -> &'static str {
    let bytes = comment.as_bytes();
    let start = if matches!(bytes, [b' ', ..]) { 1 } else { 0 };
    let end = if matches!(bytes, [.., b'.']) {
        bytes.len() - 1
    } else {
        bytes.len()
    };
    comment.split_at(end).0.split_at(start).1
}

/// Declares an object of `docs.json`: its struct, and [`Declared`] for it.
///
/// ```text
/// object! {
///     /// The banner above every page.
///     pub struct Banner = "a banner" {
///         /// Its text; may contain inline links.
///         "content" ["N8"] => content: Required<Label>,
///     }
///     also { Field::no_effect("type", &["string"], "All themes have the same design"), }
/// }
/// ```
///
/// The text after the struct's name is the name of the object in messages. A key may name the
/// rule for wrong values. `also` adds keys that are accepted but not read into the struct;
/// `places` adds fields for the spans of values.
macro_rules! object {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident = $label:literal {
            $(
                $(#[doc = $field_about:literal])+
                $key:literal $([$rule:literal])? => $field:ident: $kind:ty,
            )*
        }
        $(also { $($other:expr,)* })?
        $(places {
            $($(#[doc = $place_about:literal])+ $place_key:literal => $place:ident,)*
        })?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $(
                $(#[doc = $field_about])+
                pub $field: <$kind as $crate::docs::schema::Kind>::Value,
            )*
            $($(
                $(#[doc = $place_about])+
                pub $place: $crate::syntax::Span,
            )*)?
        }

        impl $crate::docs::schema::Declared for $name {
            const OBJECT: &'static $crate::docs::schema::Object = &$crate::docs::schema::Object {
                name: $label,
                about: $crate::docs::schema::description(concat!($($about),+)),
                fields: &[
                    $(
                        $crate::docs::schema::Field::of::<$kind>(
                            $key,
                            $crate::docs::schema::description(concat!($($field_about),+)),
                        )
                        $(.rule($rule))?,
                    )*
                    $($($other,)*)?
                ],
                shared: &[],
            };

            fn read(value: &$crate::syntax::Value) -> Option<Self> {
                Some(Self {
                    $($field: <$kind as $crate::docs::schema::Kind>::read(value.get($key))?,)*
                    $($($place: value.get($place_key)?.span,)*)?
                })
            }
        }
    };
}

pub(in crate::docs) use object;

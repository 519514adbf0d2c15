//! The kinds of values that keys of `docs.json` have.
//!
//! A kind reads an `Option`; [`Required`] and [`OrDefault`] read the value itself.

use std::marker::PhantomData;

use crate::syntax::{Span, Value};

use super::{Declared, Kind, Shape};

/// A text.
#[derive(Debug)]
pub enum Text {}

/// A text that is not empty.
#[derive(Debug)]
pub enum Label {}

/// A URL, or the path of a page.
#[derive(Debug)]
pub enum Href {}

/// `true` or `false`.
#[derive(Debug)]
pub enum Flag {}

/// `true` or `false`; `true` if it is absent.
#[derive(Debug)]
pub enum OrTrue {}

/// The name of an icon, or an object with it.
#[derive(Debug)]
pub enum Icon {}

/// An object of texts under any name.
#[derive(Debug)]
pub enum Texts {}

/// A list of texts.
#[derive(Debug)]
pub enum TextList {}

/// A text, or a list of texts: lines.
#[derive(Debug)]
pub enum Lines {}

/// Specifications: the path or URL of each, with its place.
#[derive(Debug)]
pub enum Specifications {}

/// An object.
#[derive(Debug)]
pub struct Section<T>(PhantomData<T>);

/// An object whose other keys are not checked.
#[derive(Debug)]
pub struct Unchecked<T>(PhantomData<T>);

/// A list of objects.
#[derive(Debug)]
pub struct List<T>(PhantomData<T>);

/// A required value: without it, the object is not read.
#[derive(Debug)]
pub struct Required<K>(PhantomData<K>);

/// A required value; if it is missing, it is read as empty, so that the object is read.
#[derive(Debug)]
pub struct RequiredOrEmpty<K>(PhantomData<K>);

/// A value that is empty, zero or `false` if it is absent.
#[derive(Debug)]
pub struct OrDefault<K>(PhantomData<K>);

/// Returns the text of a value without white space around it, unless it is empty.
fn text(value: Option<&Value>) -> Option<Box<str>> {
    let text = value?.text()?.trim();
    (!text.is_empty()).then(|| text.into())
}

/// Returns the name of an icon: a text, or an object that has it as `name`.
pub(in crate::docs) fn icon(icon: &Value) -> Option<Box<str>> {
    let name = icon.text().or_else(|| icon.get("name")?.text())?.trim();
    (!name.is_empty()).then(|| name.into())
}

/// Returns the paths and URLs that a value of shape [`Shape::OpenApi`] names.
pub(in crate::docs) fn specifications(value: &Value) -> Vec<(Box<str>, Span)> {
    let one = |value: &Value| {
        let source = value.get("source").unwrap_or(value);
        Some((source.text()?.trim().into(), source.span))
    };
    match value.items() {
        [] => one(value).into_iter().collect(),
        items => items.iter().filter_map(one).collect(),
    }
}

// === impl Kind ===

impl Kind for Text {
    type Value = Option<Box<str>>;
    const SHAPE: Shape = Shape::Text;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(text(value))
    }
}

impl Kind for Label {
    type Value = Option<Box<str>>;
    const SHAPE: Shape = Shape::Label;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(text(value))
    }
}

impl Kind for Href {
    type Value = Option<Box<str>>;
    const SHAPE: Shape = Shape::Href;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(text(value))
    }
}

impl Kind for Flag {
    type Value = Option<bool>;
    const SHAPE: Shape = Shape::Flag;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(Value::flag))
    }
}

impl Kind for OrTrue {
    type Value = bool;
    const SHAPE: Shape = Shape::Flag;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(Value::flag).unwrap_or(true))
    }
}

impl Kind for Icon {
    type Value = Option<Box<str>>;
    const SHAPE: Shape = Shape::Icon;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(icon))
    }
}

impl Kind for Texts {
    type Value = Option<Vec<(Box<str>, Box<str>)>>;
    const SHAPE: Shape = Shape::Texts;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.map(|value| {
            let members = value.members().iter();
            let texts = members
                .filter_map(|member| Some((member.key.clone(), member.value.text()?.into())));
            texts.collect()
        }))
    }
}

impl Kind for TextList {
    type Value = Option<Vec<Box<str>>>;
    const SHAPE: Shape = Shape::OfType(&["array"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        let texts = |list: &[Value]| list.iter().filter_map(|item| text(Some(item))).collect();
        Some(value.and_then(Value::list).map(texts))
    }
}

impl Kind for Lines {
    type Value = Option<Vec<Box<str>>>;
    const SHAPE: Shape = Shape::OfType(&["string", "array"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.map(|value| {
            let texts = value.text().into_iter();
            let texts = texts.chain(value.items().iter().filter_map(Value::text));
            texts.flat_map(str::lines).map(Box::from).collect()
        }))
    }
}

impl Kind for Specifications {
    type Value = Option<Vec<(Box<str>, Span)>>;
    const SHAPE: Shape = Shape::OpenApi;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.map(specifications))
    }
}

impl<T: Declared> Kind for Section<T> {
    type Value = Option<T>;
    const SHAPE: Shape = Shape::Object(T::OBJECT);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(T::read))
    }
}

impl<T: Declared> Kind for Unchecked<T> {
    type Value = Option<T>;
    const SHAPE: Shape = Shape::Described(&[], T::OBJECT);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(T::read))
    }
}

impl<T: Declared> Kind for List<T> {
    type Value = Option<Vec<T>>;
    const SHAPE: Shape = Shape::Objects(T::OBJECT);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.map(|value| value.items().iter().filter_map(T::read).collect()))
    }
}

impl<T, K: Kind<Value = Option<T>>> Kind for Required<K> {
    type Value = T;
    const SHAPE: Shape = K::SHAPE;
    const REQUIRED: bool = true;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        K::read(value)?
    }
}

impl<T: Default, K: Kind<Value = Option<T>>> Kind for RequiredOrEmpty<K> {
    type Value = T;
    const SHAPE: Shape = K::SHAPE;
    const REQUIRED: bool = true;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(K::read(value)?.unwrap_or_default())
    }
}

impl<T: Default, K: Kind<Value = Option<T>>> Kind for OrDefault<K> {
    type Value = T;
    const SHAPE: Shape = K::SHAPE;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(K::read(value)?.unwrap_or_default())
    }
}

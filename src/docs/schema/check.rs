//! The check of one object against the table.

use crate::diagnostic::closest;
use crate::syntax::{Data, Diagnostics, Member, Span, SpanDiagnostic, Value};

use super::{Field, NO_EFFECT, Object, REQUIRED, Shape, UNKNOWN_KEY, WEIGHT, weight};

/// Keys that authors often write, and the correct keys.
const CORRECTIONS: [(&str, &str); 9] = [
    ("collapsed", "expanded"),
    ("expandable", "expanded"),
    ("url", "href"),
    ("link", "href"),
    ("children", "pages"),
    ("items", "pages"),
    ("title", "group"),
    ("badge", "tag"),
    ("default_version", "default"),
];

/// Checks the keys of an object and the shapes of their values.
///
/// Lists of elements and of pages are only checked to be lists; their items are checked when the
/// navigation is compiled. Returns whether `value` is an object.
pub fn check(value: &Value, object: &Object, diagnostics: &mut Diagnostics) -> bool {
    if value.data == Data::Unresolved {
        return false;
    }
    if !value.is_map() {
        let message = format!("{} is an object, not {}", object.name, value.kind());
        diagnostics.push(SpanDiagnostic::error(super::SHAPE, value.span, message));
        return false;
    }
    for member in value.members() {
        match object.field(&member.key) {
            Some(field) => shape(&member.value, field, member.span, object, diagnostics),
            None => unknown(member, value, object, diagnostics),
        }
    }
    for field in object.all_fields().filter(|field| field.required) {
        if value.get(field.key).is_none() {
            let holder = match object.name.split_once(' ') {
                Some((_, noun)) => format!("this {noun}"),
                None => object.name.to_owned(),
            };
            let message = format!("{holder} has no `{}`", field.key);
            let rule = match field.rule {
                super::SHAPE => REQUIRED,
                numbered => numbered,
            };
            let place = Span {
                end: value.span.start + 1,
                ..value.span
            };
            diagnostics.push(SpanDiagnostic::error(rule, place, message).help(field.about));
        }
    }
    true
}

fn unknown(member: &Member, value: &Value, object: &Object, diagnostics: &mut Diagnostics) {
    let (key, span) = (&*member.key, member.span);
    if key.starts_with('$') {
        return;
    }
    let message = format!("`{key}` is not a key of {}", object.name);
    let diagnostic = SpanDiagnostic::warning(UNKNOWN_KEY, span, message);
    let correction = CORRECTIONS.iter().find(|(written, _)| *written == key);
    let correction = correction
        .map(|(_, correction)| *correction)
        .filter(|correction| object.field(correction).is_some());
    // A key whose value would be wrong under the other key is not a misspelling of it.
    let fields = object.all_fields();
    let fields = fields.filter(|field| fits(&member.value, field.shape));
    let keys = fields.map(|field| field.key);
    diagnostics.push(match (closest(key, keys), correction) {
        // Only a misspelling gets an edit; `collapsed: true` would become `expanded: false`.
        (Some(near), _) if value.get(near).is_none() => diagnostic
            .help(format!("did you mean `{near}`?"))
            .edit(span, format!("\"{near}\"")),
        (_, Some(correction)) => diagnostic.help(format!("use `{correction}` here")),
        _ => diagnostic,
    });
}

/// Returns whether a value has the type that a shape requires.
fn fits(value: &Value, shape: Shape) -> bool {
    match shape {
        Shape::Text
        | Shape::Label
        | Shape::Title
        | Shape::OneOf(_)
        | Shape::Language
        | Shape::Href
        | Shape::Page => value.text().is_some(),
        Shape::Flag => value.flag().is_some(),
        Shape::Weight => weight(value).is_some(),
        Shape::Icon | Shape::TextOr(_) => value.text().is_some() || value.is_map(),
        Shape::Pages | Shape::Elements(_) | Shape::Unlisted(_) | Shape::Objects(_) => {
            value.list().is_some()
        }
        Shape::Object(_) | Shape::Texts => value.is_map(),
        Shape::OpenApi | Shape::OfType(_) | Shape::Described(..) => true,
        Shape::Ignored(_) => false,
    }
}

fn shape(value: &Value, field: &Field, key: Span, object: &Object, diagnostics: &mut Diagnostics) {
    if value.data == Data::Unresolved {
        return;
    }
    let expected = match field.shape {
        Shape::Text => match value.text() {
            Some(_) => return,
            None => "a string",
        },
        Shape::Href | Shape::Page => match value.text() {
            Some(text) if text.trim().is_empty() => {
                let message = format!("the `{}` of this {} is empty", field.key, object.noun());
                let diagnostic = SpanDiagnostic::warning(field.rule, value.span, message);
                diagnostics.push(diagnostic.help(format!("remove it, or write: {}", field.about)));
                return;
            }
            Some(_) => return,
            None => "a string",
        },
        Shape::Label | Shape::Language => match value.text() {
            Some(text) if !text.trim().is_empty() => return,
            Some(_) => {
                let message = format!("the `{}` of this {} is empty", field.key, object.noun());
                diagnostics.push(SpanDiagnostic::error(REQUIRED, value.span, message));
                return;
            }
            None => "a string",
        },
        Shape::Title => match value.text() {
            Some("") => {
                let message = format!("the `{}` of this {} is empty", field.key, object.noun());
                diagnostics.push(SpanDiagnostic::error(REQUIRED, value.span, message));
                return;
            }
            Some(_) => return,
            None => "a string",
        },
        Shape::Flag => match &value.data {
            Data::Flag(_) => return,
            Data::Text(text) if matches!(&**text, "true" | "false") => {
                let message = format!("`{}` is true or false, not a string", field.key);
                let diagnostic = SpanDiagnostic::error(field.rule, value.span, message);
                diagnostics.push(
                    diagnostic
                        .help("remove the quotes")
                        .edit(value.span, &**text),
                );
                return;
            }
            _ => "true or false",
        },
        Shape::Weight => match &value.data {
            Data::Number(_) if weight(value).is_some() => return,
            Data::Number(number) => {
                let message = format!("`{}` is {WEIGHT}, not {number}", field.key);
                let diagnostic = SpanDiagnostic::error(field.rule, value.span, message);
                diagnostics.push(diagnostic.help(field.about));
                return;
            }
            _ => WEIGHT,
        },
        Shape::OneOf(allowed) => return one_of(value, allowed, field, diagnostics),
        Shape::Icon => match &value.data {
            Data::Text(_) | Data::Map(_) => return,
            _ => "the name of an icon",
        },
        Shape::OpenApi => match &value.data {
            Data::Text(_) | Data::List(_) | Data::Map(_) => return,
            _ => "the path of a specification",
        },
        Shape::Pages | Shape::Elements(_) | Shape::Unlisted(_) => match value.data {
            Data::List(_) => return,
            _ => "an array",
        },
        Shape::Objects(inner) => match &value.data {
            Data::List(items) => {
                for item in items {
                    check(item, inner, diagnostics);
                }
                return;
            }
            _ => "an array",
        },
        Shape::Object(inner) => match value.data {
            Data::Map(_) => {
                check(value, inner, diagnostics);
                return;
            }
            _ => "an object",
        },
        Shape::TextOr(inner) => match value.data {
            Data::Text(_) => return,
            Data::Map(_) => {
                check(value, inner, diagnostics);
                return;
            }
            _ => "a string or an object",
        },
        Shape::Texts => return texts(value, field, diagnostics),
        Shape::OfType(_) | Shape::Described(..) => return,
        Shape::Ignored(_) => {
            let message = format!("`{}` has no effect here", field.key);
            diagnostics.push(SpanDiagnostic::warning(NO_EFFECT, key, message));
            return;
        }
    };
    let message = format!("`{}` is {expected}, not {}", field.key, value.kind());
    diagnostics.push(SpanDiagnostic::error(field.rule, value.span, message).help(field.about));
}

fn one_of(value: &Value, allowed: &[&str], field: &Field, diagnostics: &mut Diagnostics) {
    let list = || {
        let quoted: Vec<_> = allowed.iter().map(|name| format!("`{name}`")).collect();
        quoted.join(", ")
    };
    match value.text() {
        Some(text) if allowed.contains(&text) => {}
        Some(text) => {
            let message = format!("`{}` is one of {}, not `{text}`", field.key, list());
            let diagnostic = SpanDiagnostic::error(field.rule, value.span, message);
            diagnostics.push(match closest(text, allowed.iter().copied()) {
                Some(near) => diagnostic
                    .help(format!("did you mean `{near}`?"))
                    .edit(value.span, format!("\"{near}\"")),
                None => diagnostic,
            });
        }
        None => {
            let message = format!("`{}` is one of {}, not {}", field.key, list(), value.kind());
            diagnostics.push(SpanDiagnostic::error(field.rule, value.span, message));
        }
    }
}

fn texts(value: &Value, field: &Field, diagnostics: &mut Diagnostics) {
    if !value.is_map() {
        let message = format!(
            "`{}` is an object of names and texts, not {}",
            field.key,
            value.kind()
        );
        diagnostics.push(SpanDiagnostic::error(field.rule, value.span, message));
    }
    for member in value.members() {
        if member.value.text().is_none() {
            let message = format!("`{}` is a string, not {}", member.key, member.value.kind());
            diagnostics.push(SpanDiagnostic::error(
                field.rule,
                member.value.span,
                message,
            ));
        }
    }
}

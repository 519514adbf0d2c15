//! Every field of the schema's table has two cases: one where its value is accepted, and one
//! with a diagnostic at its key or value.
//!
//! A field that the specification does not list for its object needs only the case with a
//! diagnostic. A field whose values are for other tools needs only one case of any kind.

use std::collections::BTreeMap;
use std::fs;

use waypost::diagnostic::Diagnostic;
use waypost::docs::CONFIG;
use waypost::docs::config::Config;
use waypost::docs::schema::{Declared as _, Element, Field, Object, Shape};
use waypost::syntax::{Diagnostics, Span, Value, json};

use super::{case, cases, input_of, path, read};

/// The kinds of cases that exist for a field.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    accepted: bool,
    diagnosed: bool,
}

type Fields = BTreeMap<(&'static str, &'static str), Seen>;

/// A `docs.json` and its diagnostics.
struct Diagnosed<'c> {
    diagnostics: &'c Diagnostics,
    found: &'c [Diagnostic],
}

impl Diagnosed<'_> {
    fn is_at(&self, span: Span) -> bool {
        let place = self.diagnostics.files.locate(span);
        self.found.iter().any(|found| {
            let at = found.location.filter(|_| &*found.file == CONFIG);
            at.is_some_and(|at| (at.line, at.column) == (place.line, place.column))
        })
    }

    fn object(&self, value: &Value, object: &'static Object, fields: &mut Fields) {
        for member in value.members() {
            let Some(field) = object.field(&member.key) else {
                continue;
            };
            let seen = fields.entry((object.name, field.key)).or_default();
            match self.is_at(member.span) || self.is_at(member.value.span) {
                true => seen.diagnosed = true,
                false => seen.accepted = true,
            }
            self.inside(&member.value, field.shape, fields);
        }
    }

    fn inside(&self, value: &Value, shape: Shape, fields: &mut Fields) {
        match shape {
            Shape::Elements(element) | Shape::Unlisted(element) => {
                for item in value.items() {
                    self.object(item, element.object(), fields);
                }
            }
            Shape::Pages => {
                for item in value.items() {
                    self.object(item, Element::Group.object(), fields);
                }
            }
            Shape::Object(object) | Shape::TextOr(object) => self.object(value, object, fields),
            Shape::Objects(object) => {
                for item in value.items() {
                    self.object(item, object, fields);
                }
            }
            _ => {}
        }
    }
}

/// Adds every field that an object of `docs.json` may have.
fn all(
    object: &'static Object,
    fields: &mut BTreeMap<(&'static str, &'static str), &'static Field>,
) {
    for field in object.all_fields() {
        if fields.insert((object.name, field.key), field).is_some() {
            continue;
        }
        match field.shape {
            Shape::Elements(element) | Shape::Unlisted(element) => all(element.object(), fields),
            Shape::Object(object) | Shape::TextOr(object) | Shape::Objects(object) => {
                all(object, fields);
            }
            _ => {}
        }
    }
}

#[test]
fn every_field_has_an_accepted_case_and_one_with_a_diagnostic() {
    let mut seen = Fields::new();
    for file in cases() {
        let case = case(input_of(&fs::read_to_string(file).unwrap()));
        let Ok(bytes) = case.tree.read(&path(CONFIG)) else {
            continue;
        };
        let mut diagnostics = Diagnostics::default();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let config = diagnostics.files.add(CONFIG, text.into());
        let Some(root) = json::read(config, &mut diagnostics) else {
            continue;
        };
        let (_, found) = read(&case);
        let diagnosed = Diagnosed {
            diagnostics: &diagnostics,
            found: &found,
        };
        diagnosed.object(&root, Config::OBJECT, &mut seen);
    }
    let mut fields = BTreeMap::new();
    all(Config::OBJECT, &mut fields);
    let mut missing = Vec::new();
    for ((object, key), field) in fields {
        let Seen {
            accepted,
            diagnosed,
        } = seen.get(&(object, key)).copied().unwrap_or_default();
        let (accepted, diagnosed) = match field.shape {
            Shape::Unlisted(_) | Shape::Ignored(_) => (true, diagnosed),
            Shape::OfType(_) | Shape::Described(..) => (accepted, true),
            _ => (accepted, diagnosed),
        };
        if !accepted {
            missing.push(format!("`{key}` of {object} is nowhere accepted"));
        }
        if !diagnosed {
            missing.push(format!(
                "no case has a diagnostic about `{key}` of {object}"
            ));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

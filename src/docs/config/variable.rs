//! `variables` of `docs.json`: texts that pages name as `{{name}}`.
//!
//! They are replaced in the text of a page and of the snippets that it loads, before it is read: in
//! frontmatter, prose and code. In `docs.json` they are replaced in all values. A name that is not in
//! `docs.json` stays as it is, because braces mean something else in many templates.

use std::borrow::Cow;

use crate::diagnostic::closest;
use crate::docs::schema::{Kind, Shape};
use crate::syntax::{Data, Value};

/// How many bytes the values of variables may add to `docs.json`.
const CONFIG_BYTES_MAX: usize = 1 << 20;

/// Texts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(Vec<(Box<str>, Box<str>)>);

/// A name in a text that is no variable, but nearly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misspelled<'t> {
    /// The name, as written.
    pub name: &'t str,
    /// The byte at which it starts.
    pub at: usize,
    /// The most similar variable.
    pub near: Box<str>,
}

// === impl Variables ===

impl Variables {
    /// Returns a text with the values of the variables in it.
    #[must_use]
    pub fn fill<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = String::new();
        let mut from = 0;
        for (start, end, name) in self.names(text) {
            let Some((_, value)) = self.0.iter().find(|(known, _)| **known == *name) else {
                continue;
            };
            out += &text[from..start];
            out += value;
            from = end;
        }
        match from {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(out + &text[from..]),
        }
    }

    /// Replaces the names in all texts of `docs.json`, except in `variables` itself.
    pub(in crate::docs) fn fill_config(&self, root: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        let Data::Map(members) = &mut root.data else {
            return;
        };
        let mut left = CONFIG_BYTES_MAX;
        for member in members
            .iter_mut()
            .filter(|member| &*member.key != "variables")
        {
            self.fill_value(&mut member.value, &mut left);
        }
    }

    /// The recursion is bounded: values are nested at most `DEPTH_MAX` deep.
    fn fill_value(&self, value: &mut Value, left: &mut usize) {
        match &mut value.data {
            Data::Text(text) => {
                let Cow::Owned(filled) = self.fill(text) else {
                    return;
                };
                if let Some(rest) = left.checked_sub(filled.len()) {
                    *left = rest;
                    *text = filled.into();
                }
            }
            Data::List(items) => items
                .iter_mut()
                .for_each(|item| self.fill_value(item, left)),
            Data::Map(members) => {
                for member in members {
                    self.fill_value(&mut member.value, left);
                }
            }
            _ => {}
        }
    }

    /// Finds the names in a text that are similar to a variable.
    #[must_use]
    pub fn misspelled<'t>(&self, text: &'t str) -> Vec<Misspelled<'t>> {
        let is_known = |name: &str| self.0.iter().any(|(known, _)| **known == *name);
        let names = self.names(text).into_iter();
        let others = names.filter(|(_, _, name)| !is_known(name));
        others
            .filter_map(|(at, _, name)| {
                let near = closest(name, self.0.iter().map(|(known, _)| &**known))?;
                Some(Misspelled {
                    name,
                    at,
                    near: near.into(),
                })
            })
            .collect()
    }

    /// Returns the names between double braces: start and end with the braces, and the name.
    fn names<'t>(&self, text: &'t str) -> Vec<(usize, usize, &'t str)> {
        let mut names = Vec::new();
        if self.0.is_empty() {
            return names;
        }
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&text.as_bytes()[from..], b"{{") {
            let start = from + at;
            let inside = &text[start + 2..];
            let name = inside.trim_start_matches(' ');
            let length = name.bytes().take_while(|b| is_of_name(*b)).count();
            let after = name[length..].trim_start_matches(' ');
            let end = text.len() - after.len() + 2;
            from = start + 2;
            if length > 0 && after.starts_with("}}") {
                names.push((start, end, &name[..length]));
                from = end;
            }
        }
        names
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)
}

// === impl Kind ===

impl Kind for Variables {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::Texts;

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.map(|value| {
            let members = value.members().iter();
            let named = members.filter(|member| member.key.bytes().all(is_of_name));
            let texts = named.filter_map(|member| {
                // A line break would change the lines of the page, which messages name.
                let text = member.value.text()?.replace(['\n', '\r'], " ");
                Some((member.key.clone(), text.into()))
            });
            Self(texts.collect())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_replaced_and_all_others_stay() {
        let variables = Variables(vec![
            ("version".into(), "2.1".into()),
            ("api-url".into(), "https://{{version}}.test".into()),
        ]);
        for (text, filled) in [
            ("v{{version}} and {{ version }}", "v2.1 and 2.1"),
            ("{{api-url}}", "https://{{version}}.test"),
            (
                "{{other}} {{}} {{ }} {{version",
                "{{other}} {{}} {{ }} {{version",
            ),
            ("{{{version}}}", "{{{version}}}"),
            ("style={{color: 1}} {{version}}", "style={{color: 1}} 2.1"),
            ("{{ü}}{{version}}", "{{ü}}2.1"),
            ("{version}", "{version}"),
        ] {
            assert_eq!(variables.fill(text), filled, "{text}");
        }
        assert!(matches!(variables.fill("plain"), Cow::Borrowed("plain")));
        let found = variables.misspelled("a {{versoin}} {{version}} {{unrelated}}");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name, found[0].at, &*found[0].near),
            ("versoin", 2, "version")
        );
        assert_eq!(Variables::default().fill("{{version}}"), "{{version}}");
    }
}

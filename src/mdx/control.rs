//! Controls of forms, which pages cannot have: their words are shown as text.

use super::node::{Element, Node, Value};

/// Controls without content, whose words are attributes.
const FIELDS: [&str; 2] = ["input", "textarea"];
/// Elements whose texts browsers show apart from each other.
const APART: [&str; 8] = [
    "button", "label", "legend", "optgroup", "option", "output", "select", "summary",
];
/// Types of `<input>` that show no text.
const WITHOUT_TEXT: [&str; 8] = [
    "checkbox", "color", "file", "hidden", "image", "password", "radio", "range",
];

/// Makes the words of a control its content: its value, or else its placeholder; and sets its text
/// apart from the text beside it.
pub(super) fn show_words(element: &mut Element) {
    let name = &*element.name;
    if FIELDS.contains(&name) {
        let kind = element.text("type").unwrap_or_default();
        let words = ["value", "defaultValue", "placeholder"].into_iter();
        let mut words = words.filter_map(|name| match element.get(name) {
            Some(Value::Text(text)) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        });
        if !WITHOUT_TEXT.contains(&kind)
            && element.children.is_empty()
            && let Some(text) = words.next()
        {
            element.children.push(Node::Text(format!(" {text} ")));
        }
    } else if APART.contains(&name) && !element.children.is_empty() {
        let space = || Node::Text(" ".to_owned());
        element.children.insert(0, space());
        element.children.push(space());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mdx::plain;

    #[test]
    fn a_field_shows_its_value_or_its_placeholder() {
        for (name, attributes, shown) in [
            ("input", &[("placeholder", "Search")][..], " Search "),
            ("input", &[("placeholder", "Search"), ("value", "a")], " a "),
            ("input", &[("type", "submit"), ("value", "Send")], " Send "),
            ("input", &[("type", "hidden"), ("value", "secret")], ""),
            ("input", &[("type", "radio"), ("value", "a")], ""),
            ("textarea", &[("defaultValue", "b")], " b "),
            ("video", &[("value", "b")], ""),
        ] {
            let mut element = Element::new(name);
            let texts = attributes.iter();
            let texts = texts.map(|(name, text)| ((*name).into(), Value::Text((*text).into())));
            element.attributes = texts.collect();
            show_words(&mut element);
            assert_eq!(plain(&element.children), shown, "{name} {attributes:?}");
        }
    }
}

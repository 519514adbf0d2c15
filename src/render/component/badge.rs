//! `Badge`: a coloured label in a line of text.

use super::Component;
use crate::mdx::Element;
use crate::render::html;

pub(super) const BADGE: Component = Component {
    names: &["Badge"],
    html,
    ..Component::DEFAULT
};

/// The colours for which the stylesheet has a class.
const CLASSES: [(&str, &str); 9] = [
    ("gray", "badge"),
    ("blue", "badge blue"),
    ("green", "badge green"),
    ("yellow", "badge yellow"),
    ("orange", "badge yellow"),
    ("red", "badge red"),
    ("purple", "badge purple"),
    ("white", "badge"),
    ("surface", "badge"),
];

fn html(writer: &mut html::Writer<'_>, badge: &Element) {
    let color = badge.text("color").unwrap_or("gray");
    let known = CLASSES.iter().find(|(name, _)| *name == color);
    let class = match known {
        Some((_, class)) => (*class).to_owned(),
        None => {
            let own = writer.class_with("color", color);
            own.map_or_else(|| "badge".to_owned(), |own| format!("badge {own}"))
        }
    };
    let of = |name: &str, known: &[&'static str]| {
        let value = badge.text(name)?;
        known.iter().find(|known| **known == value).copied()
    };
    let more = [of("size", &["xs", "sm", "lg"]), of("shape", &["pill"])];
    let class = more
        .into_iter()
        .flatten()
        .fold(class, |class, more| format!("{class} {more}"));
    let class = writer.classes(badge, Some(&class)).unwrap_or(class);
    writer
        .out
        .markup("<span")
        .attribute("class", &class)
        .markup(">");
    writer.icon_of(badge, "icon");
    writer.wrap("", &badge.children, "</span>");
}

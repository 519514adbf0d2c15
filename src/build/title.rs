//! The title and the description of a site: `name` and `description` of `docs.json`.
//!
//! A site always has a title, also when its configuration names none.
//!
//! | | first of |
//! |---|---|
//! | title | `name`; `Documentation` |
//! | description | `description`; `Documentation of {name}.`; `Documentation.` |
//!
//! The fallbacks are constants because a release must not depend on where it is built.

use crate::docs::config::Config;
use crate::skills::{DESCRIPTION_UNITS_MAX, NAME_UNITS_MAX, cut};

/// The title of a site that has none.
const TITLE: &str = "Documentation";

/// The title and the description of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Title {
    /// Never empty.
    pub title: String,
    /// Never empty.
    pub description: String,
}

// === impl Title ===

impl Title {
    /// Returns the title and the description that a configuration gives a site.
    pub(super) fn of(config: &Config) -> Self {
        let text = |text: &str, units_max| {
            let text = cut(text.trim(), units_max);
            (!text.is_empty()).then(|| text.to_owned())
        };
        let title = text(&config.name, NAME_UNITS_MAX);
        let description = config.description.as_deref();
        let description = description.and_then(|it| text(it, DESCRIPTION_UNITS_MAX));
        let fallback = match &title {
            Some(name) => format!("{TITLE} of {name}."),
            None => format!("{TITLE}."),
        };
        Self {
            title: title.unwrap_or_else(|| TITLE.to_owned()),
            description: description.unwrap_or(fallback),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, description: Option<&str>, title: &str, described: &str) {
        let found = Title::of(&Config {
            name: name.into(),
            description: description.map(Box::from),
            ..Config::default()
        });
        assert_eq!((&*found.title, &*found.description), (title, described));
    }

    #[test]
    fn a_site_has_the_name_in_its_configuration() {
        check(" Acme ", Some("How to pay."), "Acme", "How to pay.");
        check("Acme", None, "Acme", "Documentation of Acme.");
    }

    #[test]
    fn a_site_without_a_usable_name_is_called_documentation() {
        check("", None, "Documentation", "Documentation.");
        check(" ", Some(" "), "Documentation", "Documentation.");
    }
}

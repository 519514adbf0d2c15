//! The title and the description of a site, from `docs.json` and the first pages.
//!
//! A site always has a title, also when its configuration names none. A description such as
//! "Documentation of Acme" does not say what the product is: see [`skills::about`].
//!
//! [`skills::about`]: crate::skills::about()
//!
//! | | first of |
//! |---|---|
//! | title | `name`; `Documentation` |
//! | description | `description` if it says what the product is; sentences of the first pages that do; `description`; `Documentation of {name}.`; `Documentation.` |
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
    /// Returns the title and the description of a site. `about` says what its product is.
    pub(super) fn of(config: &Config, about: Option<&str>) -> Self {
        let text = |text: &str, units_max| {
            let text = cut(text.trim(), units_max);
            (!text.is_empty()).then(|| text.to_owned())
        };
        let title = text(&config.name, NAME_UNITS_MAX);
        let descriptions = [about, config.description.as_deref()].into_iter().flatten();
        let mut descriptions = descriptions.filter_map(|it| text(it, DESCRIPTION_UNITS_MAX));
        let description = descriptions.next();
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
    fn check(
        (name, description, about): (&str, Option<&str>, Option<&str>),
        title: &str,
        described: &str,
    ) {
        let config = Config {
            name: name.into(),
            description: description.map(Box::from),
            ..Config::default()
        };
        let found = Title::of(&config, about);
        assert_eq!((&*found.title, &*found.description), (title, described));
    }

    #[test]
    fn a_site_has_the_name_in_its_configuration() {
        check((" Acme ", Some("How to pay."), None), "Acme", "How to pay.");
        check(("Acme", None, None), "Acme", "Documentation of Acme.");
        let about = Some("Acme is an API.");
        check(("Acme", None, about), "Acme", "Acme is an API.");
        check(
            ("Acme", Some("Acme docs"), about),
            "Acme",
            "Acme is an API.",
        );
    }

    #[test]
    fn a_site_without_a_usable_name_is_called_documentation() {
        check(("", None, None), "Documentation", "Documentation.");
        check(
            (" ", Some(" "), Some(" ")),
            "Documentation",
            "Documentation.",
        );
    }
}

//! What a site calls itself: `name` and `description` of `docs.json`.
//!
//! Only what discovery prints is read here, as tolerantly as can be: a site has a title
//! whatever else its configuration says.
//!
//! | | first of |
//! |---|---|
//! | title | `name`; `Documentation` |
//! | description | `description`; `Documentation of {name}.`; `Documentation.` |
//!
//! The fallbacks are constants because a release must not depend on where it is built.

use serde::Deserialize;
use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::skills::{DESCRIPTION_UNITS_MAX, NAME_UNITS_MAX, cut};
use crate::source::{LookupError, ReadError, Tree};

/// The configuration of a documentation site, in its root.
const FILE: &str = "docs.json";
/// How many bytes it may have to be read for a title.
const BYTES_MAX: u64 = 16 << 20;
/// The title of a site that has none.
const TITLE: &str = "Documentation";

/// What a site calls itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Title {
    /// Never empty.
    pub title: String,
    /// Never empty.
    pub description: String,
}

/// The part of the configuration that is read; anything may stand in it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    name: Value,
    description: Value,
}

/// Reads what a site calls itself, and tells when its configuration cannot be read.
pub(super) fn read(tree: &Tree) -> (Title, Option<Diagnostic>) {
    let path = tree.docs_root().join(FILE).expect("a constant segment");
    let file = path.as_str();
    let bytes = match tree.read_at_most(&path, BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(ReadError::Lookup(LookupError::NotFound { .. })) => {
            return (Title::of(&Head::default()), None);
        }
        Err(error) => {
            // A file that is there must not be taken for one that is not.
            let unread = Diagnostic::error("docs-json", file, error.to_string());
            return (Title::of(&Head::default()), Some(unread));
        }
    };
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    match serde_json::from_slice::<Head>(text) {
        Ok(head) => (Title::of(&head), None),
        Err(error) => {
            let place = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).max(1);
            let broken = Diagnostic::error("docs-json", file, error.to_string());
            let broken = broken.at(place(error.line()), place(error.column()), 0);
            (Title::of(&Head::default()), Some(broken))
        }
    }
}

// === impl Title ===

impl Title {
    fn of(head: &Head) -> Self {
        let text = |value: &Value, units_max| {
            let text = cut(value.as_str()?.trim(), units_max);
            (!text.is_empty()).then(|| text.to_owned())
        };
        let title = text(&head.name, NAME_UNITS_MAX);
        let fallback = match &title {
            Some(name) => format!("{TITLE} of {name}."),
            None => format!("{TITLE}."),
        };
        Self {
            title: title.unwrap_or_else(|| TITLE.to_owned()),
            description: text(&head.description, DESCRIPTION_UNITS_MAX).unwrap_or(fallback),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::TreePath;

    fn of(docs_json: &str) -> (Title, Option<Diagnostic>) {
        let path = TreePath::parse(FILE).unwrap();
        read(&Tree::from_files([(path, docs_json.to_owned().into())], []))
    }

    #[track_caller]
    fn check(docs_json: &str, title: &str, description: &str) {
        let (found, told) = of(docs_json);
        assert_eq!((&*found.title, &*found.description), (title, description));
        assert_eq!(told, None);
    }

    #[test]
    fn a_site_is_called_what_its_configuration_says() {
        check(
            r#"{"name": " Acme ", "description": "How to pay.", "navigation": {}}"#,
            "Acme",
            "How to pay.",
        );
        check(
            "\u{feff}{\"name\": \"Acme\"}",
            "Acme",
            "Documentation of Acme.",
        );
    }

    #[test]
    fn a_site_without_a_usable_name_is_called_documentation() {
        for docs_json in [
            "{}",
            r#"{"name": ["x"], "description": 7}"#,
            r#"{"name": " "}"#,
        ] {
            check(docs_json, "Documentation", "Documentation.");
        }
        let (found, told) = read(&Tree::from_files([], []));
        assert_eq!((&*found.title, told), ("Documentation", None));
    }

    #[test]
    fn a_configuration_that_cannot_be_read_is_an_error_with_its_place() {
        let (found, told) = of("{\n  \"name\": \"Acme\",\n}");
        assert_eq!(found.title, "Documentation");
        let told = told.unwrap();
        assert!(told.is_error());
        assert_eq!(told.location.map(|at| at.line), Some(3));
    }

    #[test]
    fn a_link_to_nowhere_is_not_taken_for_a_missing_configuration() {
        let path = TreePath::parse(FILE).unwrap();
        let (_, told) = read(&Tree::from_files([], [(path, "../docs.json".into())]));
        assert!(told.unwrap().is_error());
    }
}

//! `Snippet` with a file that does not exist. The reader of pages replaces all other snippets by
//! the content of their files.

use super::Component;

pub(super) const SNIPPET: Component = Component {
    names: &["Snippet"],
    ..Component::DEFAULT
};

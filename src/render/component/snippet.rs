//! `Snippet`: what is left of one whose file does not exist; the reader of pages replaces
//! the others with their content.

use super::Component;

pub(super) const SNIPPET: Component = Component {
    names: &["Snippet"],
    ..Component::DEFAULT
};

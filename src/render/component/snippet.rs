//! `Snippet`: one whose file does not exist. The reader of pages has replaced all others by the
//! content of their files.

use super::Component;

pub(super) const SNIPPET: Component = Component {
    names: &["Snippet"],
    ..Component::DEFAULT
};

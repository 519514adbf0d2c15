//! Docs: what the authors of a documentation wrote.

mod nearest;
pub mod value;
pub mod schema;
pub mod navigation;

//! Docs: what the authors of a documentation wrote.

pub mod value;
pub mod schema;
pub mod page;
pub mod openapi;
pub mod navigation;

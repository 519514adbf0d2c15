//! Docs: what the authors of a documentation wrote.

pub mod value;

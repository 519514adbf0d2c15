//! Navigation.

pub mod language;

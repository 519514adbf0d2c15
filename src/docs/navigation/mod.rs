//! The navigation of a site, read from `docs.json`.
//!
//! [`schema`] reads an element as it is written, [`compile()`] checks and resolves it, and
//! [`tree`] is the result, whose types cannot express a broken rule. Pages, `llms.txt` and
//! generated skills are made from the tree. `navigation.json` ([`to_json`]) is the tree for
//! other programs.
//!
//! **The rules.**
//!
//! * **N1** `navigation` has one primary pattern at its root.
//! * **N2** An element has one kind of children at each level, and none beside `href`.
//! * **N3** `root` names a group's page; the group's title opens it.
//! * **N4** All groups below inherit `directory` unless they set it; a group's root page
//!   shows the listing, so a group without `root` shows none.
//! * **N5** `expanded` affects nested groups; top-level groups are always open.
//! * **N6** `openapi` is inherited unless set again. Without endpoint entries below it there
//!   is a page for every endpoint, else only for those entries.
//! * **N7** The first version or language is the default, unless an entry says it is.
//! * **N8** A language may have banner, footer and navbar of its own.
//!
//! A violation of N1 or N2 is an error, or a warning on a site that is `lenient`. Then only the
//! first kind of children in a fixed order is used ([`schema::SourceElement::children`]).
//!
//! `check --explain` prints the rules in full ([`crate::diagnostic::rules`]).

mod compile;
mod json;
pub mod language;
pub mod schema;
pub mod tree;

pub use compile::{Input, compile, has_scheme};
pub use json::{to_json, urls};
pub use tree::Navigation;

pub use compile::{DUPLICATE_LABEL, EMPTY, LANGUAGE};

//! Navigation: from what authors wrote to what a site shows.
//!
//! [`schema`] looks at `docs.json` as it is written, [`compile()`] checks it and decides,
//! [`tree`] is the result, in which broken rules cannot be expressed. Everything that shows
//! a navigation (pages, `llms.txt`, generated skills) reads the tree; `navigation.json`
//! ([`to_json`]) is the tree for programs.
//!
//! **The rules.**
//!
//! * **N1** `navigation` has one primary pattern at its root.
//! * **N2** An element has one kind of children at each level, and none beside `href`.
//! * **N3** `root` names a group's page; the group's title opens it.
//! * **N4** `directory` is inherited by all groups below unless they set it; the listing
//!   stands on a group's root page, so a group without `root` shows none.
//! * **N5** `expanded` affects nested groups; top-level groups are always open.
//! * **N6** `openapi` is inherited unless set again. Without endpoint entries below there
//!   is a page for every endpoint; with some, only for those.
//! * **N7** The first version or language is the default, unless an entry says it is.
//! * **N8** A language may have banner, footer and navbar of its own.
//!
//! What breaks N1 or N2 is an error, and a warning on a site that is `lenient`; then the
//! strongest kind of children is kept ([`schema::Written::children`]), never silently.
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

//! JSX that authors write, evaluated while a page is read.
//!
//! ```text
//!  source ──compile──▶ plain JavaScript, and the names that it uses      (oxc)
//!         ──engine───▶ a tree of elements, texts and references          (QuickJS, prelude.js)
//! ```
//!
//! [`compile`] turns an expression or a module into plain JavaScript. An [`Engine`] runs it for one
//! page: it knows no files, no clock, no randomness and no network, and calls no function of this
//! program. Its result ([`Output`]) is a value: the reader of pages turns it into nodes, which
//! are sanitised like everything that an author writes. Nothing of it runs in a browser.
//!
//! **Limits.** All limits that a page meets count work, so the same page gives the same result on
//! every machine: pieces ([`PIECES_MAX`]), steps ([`STEPS_MAX`], [`PIECE_STEPS_MAX`]), work of
//! built-in functions and of long texts ([`WORK_MAX`], [`PIECE_WORK_MAX`]), requested memory
//! ([`ALLOCATED_BYTES_MAX`], [`PIECE_ALLOCATED_BYTES_MAX`]), memory requested at once, and so the
//! length of texts and lists ([`ALLOCATION_BYTES_MAX`]), parts ([`NODES_MAX`]), depth
//! ([`DEPTH_MAX`], [`JSON_DEPTH_MAX`], [`PROTOTYPES_MAX`], [`PROXIES_MAX`]), characters of output ([`OUTPUT_CHARS_MAX`]), renders
//! ([`RENDERS_MAX`], [`EFFECT_RENDERS_MAX`]) and modules ([`MODULES_MAX`]). Two further limits
//! depend on sizes inside the engine: memory in use ([`MEMORY_BYTES_MAX`], which counts requested
//! bytes, not what the allocator rounds them to) and the stack ([`STACK_BYTES_MAX`]). They are so
//! high that a real page reaches one of the other limits first.
//!
//! Sources: ECMA-262 (2025); JSX; React 19 (`createElement`, hooks, `Children`).

mod allocator;
mod bytecode;
mod charge;
pub mod compile;
mod engine;
pub mod literal;
mod output;
pub mod script;
mod unavailable;

#[cfg(test)]
pub(crate) use engine::engines_started;
pub use engine::{Engine, Failed, is_global};
pub use output::{Failure, Output, Shown, Value};

/// How many steps all pieces of one page may take: calls of functions and jumps back, and steps
/// of regular expressions.
pub const STEPS_MAX: u64 = 50_000_000;
/// How many steps one piece of a page may take.
pub const PIECE_STEPS_MAX: u64 = 10_000_000;
/// How many units of work one page may do.
///
/// | work | units |
/// |---|---|
/// | an item of an array | about 1 |
/// | a property of an object | 4 |
/// | a text that is read | 1 for each 64 characters |
/// | a text that is compared, converted to a number, or used as the name of a property | 1 for each 16 characters |
/// | a search for a text of *m* characters in one of *n* characters | *n* × *m* / 64 |
/// | a call of a function, or one turn of a loop, with *n* parts, if *n* is over 24 | *n* / 4 |
pub const WORK_MAX: u64 = 50_000_000;
/// How many units of work one piece of a page may do.
pub const PIECE_WORK_MAX: u64 = 20_000_000;
/// How many pieces of one page are evaluated: expressions, attributes and components that are not
/// inside a component.
pub const PIECES_MAX: u32 = 5_000;
/// How many parts the result of one piece may have: elements, texts and values of attributes.
pub const NODES_MAX: u32 = 200_000;
/// How deep components, elements and arrays of one piece may be nested.
pub const DEPTH_MAX: u32 = 400;
/// How many levels a value may have that a page writes as JSON.
pub const JSON_DEPTH_MAX: u32 = 1000;
/// How many characters the result of one piece may have.
pub const OUTPUT_CHARS_MAX: u32 = 4 << 20;
/// How often a component may set its state while it is called.
pub const RENDERS_MAX: u32 = 25;
/// How often effects may cause a piece to be rendered again.
pub const EFFECT_RENDERS_MAX: u32 = 10;
/// How many prototypes an object may have, one after the other.
pub const PROTOTYPES_MAX: u32 = 12;
/// How many proxies may stand for each other.
pub const PROXIES_MAX: u32 = 8;
/// How many files one page may import, through other files too.
pub const MODULES_MAX: usize = 256;
/// How many bytes of memory all pieces of one page may request. What is given back counts too:
/// each copy of a list or of a text requests memory.
pub const ALLOCATED_BYTES_MAX: u64 = 4 << 30;
/// How many bytes of memory one piece of a page may request.
pub const PIECE_ALLOCATED_BYTES_MAX: u64 = 1 << 30;
/// How many bytes of memory may be requested at once.
pub const ALLOCATION_BYTES_MAX: usize = 16 << 20;
/// How many bytes of memory the engine of one page may use.
pub const MEMORY_BYTES_MAX: usize = 256 << 20;
/// How many bytes of stack the engine may use.
pub const STACK_BYTES_MAX: usize = 4 << 20;

/// Properties of the authors' own components whose texts are titles. They are shown if the
/// component fails.
pub const TITLES: [&str; 6] = [
    "title", "label", "heading", "header", "headline", "question",
];
/// Properties of such components with other texts. They are shown if the component fails.
pub const TEXTS: [&str; 8] = [
    "subtitle",
    "description",
    "summary",
    "text",
    "content",
    "answer",
    "message",
    "caption",
];

/// The name that generated code uses for its runtime.
pub const RUNTIME: &str = "_wp$";

#[cfg(test)]
mod tests;

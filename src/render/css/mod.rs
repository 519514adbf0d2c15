//! Stylesheets of authors: read, confined and written again.
//!
//! Every `.css` file of the documentation applies to all of its pages. Its text is parsed, each
//! rule is checked, and the accepted rules are printed as the layer `author`. This layer overrides
//! our own layer `waypost`, and the `style` of an element overrides it. No text is copied without
//! being parsed.
//!
//! | part of a stylesheet | result |
//! |---|---|
//! | selectors | match the content, or a documented part of the shell ([`hook`]) |
//! | names that our stylesheets use too | renamed, in pages and in stylesheets ([`name`]) |
//! | `url()` | the address of a file of the release; otherwise the declaration is left out ([`address`]) |
//! | declarations that could cover the shell | left out ([`declaration`]); `<main>` clips its content |
//! | `@import`, unknown rules | left out |
//!
//! Each rejected part is a diagnostic with the file and line. The work is bounded by the bytes and
//! the nesting of the sheets and by the bytes that are written.
//!
//! Utility classes, which pages use without a stylesheet, are in [`utility`].
//!
//! Sources: CSS Syntax 3; CSS Cascade 5; Selectors 4; CSS Containment 2.

mod address;
mod declaration;
mod hook;
mod name;
mod selector;
mod sheet;
pub mod utility;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::link::Map;
use crate::diagnostic::Diagnostic;

pub use name::{class, classes};

/// Rule of all diagnostics about stylesheets.
const RULE: &str = "stylesheet";
/// The layers, weakest first. `waypost` is our own design.
pub const LAYERS: &str = "@layer waypost, utilities, author;\n";

/// How large a stylesheet may be.
pub const SHEET_BYTES_MAX: usize = 256 << 10;
/// How much all stylesheets of a site may be after they are confined.
const WRITTEN_BYTES_MAX: usize = 1 << 20;
/// How deep blocks and parentheses of a stylesheet may be nested.
const DEPTH_MAX: usize = 32;
/// How much stack the parser gets: it is recursive, and [`DEPTH_MAX`] bounds it.
const STACK_BYTES: usize = 32 << 20;

/// A stylesheet of an author.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Its path from the root of the documentation.
    pub path: Box<str>,
    /// Its text.
    pub text: String,
}

/// The stylesheets of a site, confined.
#[derive(Clone, Debug, Default)]
pub struct Confined {
    /// One stylesheet; empty if there is nothing to apply.
    pub styles: String,
    /// The files of the site that it loads.
    pub assets: BTreeSet<Box<str>>,
    /// The parts that were left out, and the reasons.
    pub diagnostics: Vec<Diagnostic>,
}

/// Confines the stylesheets of a site, in the order in which they apply.
#[must_use]
pub fn confine(sheets: &[Sheet], map: &Map) -> Confined {
    let mut all = Confined::default();
    for sheet in sheets {
        let one = confine_one(sheet, map);
        all.diagnostics.extend(one.diagnostics);
        if one.styles.is_empty() {
            continue;
        }
        if all.styles.len() + one.styles.len() > WRITTEN_BYTES_MAX {
            let message = format!(
                "the stylesheets of this site have more than {WRITTEN_BYTES_MAX} bytes, so this \
                 one is left out"
            );
            all.diagnostics.push(left_out(&sheet.path, message));
            continue;
        }
        all.styles += &one.styles;
        all.assets.extend(one.assets);
    }
    all
}

fn confine_one(sheet: &Sheet, map: &Map) -> Confined {
    let rejected = |message: String| Confined {
        diagnostics: vec![left_out(&sheet.path, message)],
        ..Confined::default()
    };
    if sheet.text.len() > SHEET_BYTES_MAX {
        return rejected(format!(
            "a stylesheet may have {SHEET_BYTES_MAX} bytes, so this one is left out"
        ));
    }
    if sheet::is_deeper_than(&sheet.text, DEPTH_MAX) {
        return rejected(format!(
            "blocks may be nested {DEPTH_MAX} deep, so this stylesheet is left out"
        ));
    }
    let read = || stacker::grow(STACK_BYTES, || sheet::confine(sheet, map));
    let failed = || rejected("this stylesheet cannot be read, so it is left out".to_owned());
    let Ok(confined) = catch_unwind(AssertUnwindSafe(read)) else {
        return failed();
    };
    // The printed text is checked once more, without the parser that printed it.
    match sheet::is_confined(&confined.styles, 2 * DEPTH_MAX) {
        true => confined,
        false => failed(),
    }
}

fn left_out(file: &str, message: String) -> Diagnostic {
    Diagnostic::warning(RULE, file, message)
}

#[cfg(test)]
mod tests;

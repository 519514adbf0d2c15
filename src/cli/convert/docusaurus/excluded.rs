//! The pages that the key `exclude` of Docusaurus keeps unpublished.

use ignore::overrides::{Override, OverrideBuilder};

use crate::syntax::Value;

/// The patterns of `exclude`, relative to the directory of the pages.
#[derive(Debug)]
pub(super) struct Excluded(Override);

impl Excluded {
    /// Reads a list of patterns. An invalid pattern excludes nothing.
    pub(super) fn of(patterns: Option<&Value>) -> Self {
        let mut builder = OverrideBuilder::new("");
        let patterns = patterns.map_or(&[][..], Value::items).iter();
        for pattern in patterns.filter_map(Value::text) {
            // Only a slash at the start makes a pattern relative to the directory.
            let _skipped = builder.add(&format!("/{}", pattern.trim_start_matches('/')));
        }
        Self(builder.build().unwrap_or_else(|_| Override::empty()))
    }

    /// Returns whether a page is excluded; its path is relative to the directory.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.matched(path, false).is_whitelist()
    }
}

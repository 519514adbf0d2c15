//! Any bytes as a documentation: `docs.json`, a specification and a page.
//!
//! The input is split at zero bytes. Whatever it is, reading ends, nothing panics, and the
//! navigation can be written down.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use waypost::docs::{self, Options};
use waypost::source::{Tree, TreePath};

const NAMES: [&str; 4] = ["docs.json", "api.yaml", "api.json", "page.mdx"];

fuzz_target!(|data: &[u8]| {
    let parts = data.split(|byte| *byte == 0);
    let files = NAMES.iter().zip(parts).map(|(name, bytes)| {
        let path = TreePath::parse(name).expect("the names are paths");
        (path, Bytes::copy_from_slice(bytes))
    });
    let tree = Tree::from_files(files, []);
    let (docs, found) = docs::read(&tree, &Options::default());
    let links = docs::check::check(&docs, &tree);
    let _ = docs::navigation::to_json(&docs.navigation);
    for diagnostic in found.iter().chain(&links) {
        assert!(docs::rules::find(diagnostic.rule).is_some(), "{diagnostic}");
    }
});

//! Any bytes as documentation: `docs.json`, a specification and a page.
//!
//! The input is split at zero bytes. For every input, reading ends, nothing panics, and the
//! navigation can be serialized.
//!
//! With a stable compiler, from the root of the repository:
//!
//! ```sh
//! cp Cargo.lock fuzz/Cargo.lock      # the versions that are built already
//! fuzz/seeds fuzz/corpus/docs        # the golden cases
//! RUSTC_WRAPPER=$PWD/fuzz/instrument cargo run --manifest-path fuzz/Cargo.toml \
//!     --target-dir target --bin docs -- \
//!     -max_total_time=300 -timeout=20 -max_len=16384 -artifact_prefix=fuzz/ fuzz/corpus/docs
//! ```
//!
//! `cargo +nightly fuzz run docs` adds the address sanitizer. To run a found input again, give its
//! file in place of the corpus.

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
    let links = waypost::build::check::check(&docs, &tree);
    let _ = docs::navigation::to_json(&docs.navigation);
    for diagnostic in found.iter().chain(&links) {
        assert!(waypost::diagnostic::rules::find(diagnostic.rule).is_some(), "{diagnostic}");
    }
});

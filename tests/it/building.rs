//! `waypost build` makes the same release however many threads it has.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A site of three parts, each with its own search index.
///
/// The index of a single page needs no threads.
const CONFIG: &str = r#"{"name": "Acme", "navigation": {"languages": [
    {"language": "en", "versions": [
        {"version": "2", "pages": ["a", "b"]},
        {"version": "1", "pages": ["c", "d"]}]},
    {"language": "fr", "pages": ["e", "f"]}]}}"#;

/// Builds a directory with this many threads in the pool that all parts of a build share.
///
/// A build that does not end is killed, and the test fails.
fn build(docs: &Path, out: &Path, threads: usize) -> Output {
    Command::new("timeout")
        .args(["300", env!("CARGO_BIN_EXE_waypost"), "build", "--out"])
        .arg(out)
        .arg(docs)
        .env("RAYON_NUM_THREADS", threads.to_string())
        .output()
        .unwrap()
}

#[test]
fn a_build_with_one_thread_makes_the_same_release() {
    let directory = TempDir::new().unwrap();
    let docs = directory.path().join("docs");
    fs::create_dir(&docs).unwrap();
    for (name, text) in [
        ("docs.json", CONFIG),
        ("a.mdx", "Whales sing."),
        ("b.mdx", "Seals bark."),
        ("c.mdx", "Whales sang."),
        ("d.mdx", "Seals barked."),
        ("e.mdx", "Les baleines chantent."),
        ("f.mdx", "Les phoques aboient."),
    ] {
        fs::write(docs.join(name), text).unwrap();
    }
    let inventory = |threads: usize| {
        let out = directory.path().join(threads.to_string());
        let output = build(&docs, &out, threads);
        assert!(output.status.success(), "{threads} threads: {output:?}");
        fs::read(out.join("inventory.json")).unwrap()
    };
    assert_eq!(inventory(1), inventory(4));
}

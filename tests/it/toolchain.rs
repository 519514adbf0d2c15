//! The oldest Rust that `Cargo.toml` names is enough for every dependency.
//!
//! `clippy::incompatible_msrv` checks our own code; this test checks `Cargo.lock`.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

/// A version of Rust: `1.91`, `1.91.0`.
fn version(text: &str) -> (u32, u32, u32) {
    let mut parts = text.split('.').map(|part| part.parse().unwrap());
    (
        parts.next().unwrap(),
        parts.next().unwrap_or(0),
        parts.next().unwrap_or(0),
    )
}

#[test]
fn no_dependency_needs_a_newer_rust_than_we_name() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut needed = BTreeMap::new();
    let mut ours = None;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(rust) = package["rust_version"].as_str() else {
            continue;
        };
        if name == "waypost" {
            ours = Some(version(rust));
        } else {
            let text = format!("{name} {}", package["version"].as_str().unwrap());
            needed.insert(text, version(rust));
        }
    }
    let ours = ours.unwrap();
    assert!(needed.len() > 100, "{} packages", needed.len());
    needed.retain(|_, rust| *rust > ours);
    assert!(needed.is_empty(), "rust-version is {ours:?}: {needed:#?}");
}

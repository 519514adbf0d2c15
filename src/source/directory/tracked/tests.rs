//! Tests of the paths that git's index tracks, and of damaged indexes.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::source::directory::tests::git;

/// A repository with four recorded paths, one of them a submodule.
fn repository(format: &str) -> TempDir {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    git(root, &["init", "-q", &format!("--object-format={format}")]);
    for file in [
        "docs/a.md",
        "docs/ab.md",
        "docs-b/a very long name that shares little.md",
    ] {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "text").unwrap();
    }
    git(root, &["add", "."]);
    let commit = if format == "sha256" {
        "1".repeat(64)
    } else {
        "1".repeat(40)
    };
    let submodule = format!("160000,{commit},module");
    git(root, &["update-index", "--add", "--cacheinfo", &submodule]);
    directory
}

fn tracked(root: &Path) -> Result<Tracked, IndexError> {
    GitDirectory::of(root).unwrap().tracked()
}

#[track_caller]
fn knows_all(tracked: &Tracked) {
    for path in ["docs/a.md", "docs/ab.md", "module"] {
        assert!(tracked.is_recorded(path), "{path}");
    }
    assert!(tracked.is_recorded("docs-b/a very long name that shares little.md"));
    for path in ["docs", "docs/a", "docs/a.md/x", "other", ""] {
        assert!(!tracked.is_recorded(path), "{path}");
    }
    assert!(tracked.is_submodule("module") && !tracked.is_submodule("docs/a.md"));
    assert!(tracked.is_recorded_below("docs") && tracked.is_recorded_below("docs-b"));
    assert!(!tracked.is_recorded_below("doc") && !tracked.is_recorded_below("docs/a.md"));
}

#[test]
fn every_version_of_the_index_is_read() {
    for version in ["2", "3", "4"] {
        let directory = repository("sha1");
        let root = directory.path();
        // Version 3 is written only when an entry has extended flags.
        fs::write(root.join("later"), "").unwrap();
        git(root, &["add", "--intent-to-add", "later"]);
        git(root, &["update-index", "--index-version", version]);
        knows_all(&tracked(root).unwrap());
    }
}

#[test]
fn object_names_of_either_length_are_read() {
    knows_all(&tracked(repository("sha256").path()).unwrap());
}

#[test]
fn a_repository_without_an_index_tracks_nothing() {
    let directory = TempDir::new().unwrap();
    git(directory.path(), &["init", "-q"]);
    assert_eq!(tracked(directory.path()).unwrap(), Tracked::default());
    assert!(GitDirectory::of(&directory.path().join(".git/objects")).is_none());
}

#[test]
fn a_linked_working_tree_has_its_own_index_and_the_common_patterns() {
    let directory = repository("sha1");
    let root = directory.path();
    git(root, &["rm", "-q", "--cached", "module"]);
    git(root, &["commit", "-q", "-m", "first"]);
    git(root, &["worktree", "add", "-q", "linked"]);
    let linked = GitDirectory::of(&root.join("linked")).unwrap();
    assert!(linked.tracked().unwrap().is_recorded("docs/a.md"));
    let exclude = linked.exclude.canonicalize().unwrap();
    assert_eq!(
        exclude,
        root.join(".git/info/exclude").canonicalize().unwrap()
    );
}

#[test]
fn a_split_index_is_reported() {
    let directory = repository("sha1");
    git(directory.path(), &["update-index", "--split-index"]);
    assert!(matches!(tracked(directory.path()), Err(IndexError::Split)));
}

#[test]
fn a_truncated_index_is_rejected() {
    let directory = repository("sha1");
    let bytes = fs::read(directory.path().join(".git/index")).unwrap();
    assert!(Tracked::parse(&bytes, 20).is_ok());
    let entries_end = bytes.len() - 20;
    for length in 0..entries_end {
        let cut = Tracked::parse(&bytes[..length], 20);
        // Extensions may be missing; entries may not.
        if let Ok(tracked) = cut {
            knows_all(&tracked);
        }
    }
    assert!(matches!(
        Tracked::parse(b"DIRC\0\0\0\x09\0\0\0\0", 20),
        Err(IndexError::Unknown)
    ));
}

#[test]
fn any_bytes_are_parsed_or_rejected() {
    let directory = repository("sha1");
    git(directory.path(), &["update-index", "--index-version", "4"]);
    let bytes = fs::read(directory.path().join(".git/index")).unwrap();
    for at in 0..bytes.len() {
        for flipped in [0x01, 0x40, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] ^= flipped;
            let tracked = Tracked::parse(&bytes, 20).unwrap_or_default();
            assert!(tracked.paths.is_sorted(), "byte {at}");
        }
    }
}

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A directory with these files; a text that starts with `->` makes a link.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("->") {
            Some(target) => symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    directory
}

fn open_all(directory: &TempDir) -> (Tree, Vec<Diagnostic>) {
    open(directory.path(), &TreePath::root(), Limits::default()).unwrap()
}

fn files(tree: &Tree) -> Vec<&str> {
    tree.files().map(TreePath::as_str).collect()
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

#[test]
fn files_are_read_through_links_inside_the_root() {
    let directory = directory(&[("shared/a.md", "text"), ("docs/a.md", "->../shared/a.md")]);
    let (tree, diagnostics) = open_all(&directory);
    assert_eq!(tree.read(&path("docs/a.md")).unwrap(), "text");
    assert_eq!(diagnostics, []);
}

#[test]
fn a_link_out_of_the_root_is_never_read() {
    let outside = directory(&[("secret", "key")]);
    let target = format!("->{}", outside.path().join("secret").display());
    let directory = directory(&[("a", &target), ("b", "->../../../../../../etc/hostname")]);
    let (tree, _) = open_all(&directory);
    for name in ["a", "b"] {
        let error = tree.read(&path(name)).unwrap_err();
        assert!(
            matches!(
                error,
                ReadError::Lookup(LookupError::LeavesRepository { .. })
            ),
            "{error:?}"
        );
    }
}

#[test]
fn a_file_exchanged_for_a_link_after_the_walk_is_an_error() {
    let outside = directory(&[("secret", "key"), ("docs/a.md", "key")]);
    let directory = directory(&[("a.md", "text"), ("docs/a.md", "text")]);
    let (tree, _) = open_all(&directory);

    fs::remove_file(directory.path().join("a.md")).unwrap();
    symlink(outside.path().join("secret"), directory.path().join("a.md")).unwrap();
    fs::remove_dir_all(directory.path().join("docs")).unwrap();
    symlink(outside.path().join("docs"), directory.path().join("docs")).unwrap();

    for name in ["a.md", "docs/a.md"] {
        let error = tree.read(&path(name)).unwrap_err();
        assert!(matches!(error, ReadError::Io { .. }), "{name}: {error:?}");
    }
}

#[test]
fn a_file_exchanged_for_a_pipe_does_not_stop_the_reader() {
    let directory = directory(&[("a.md", "text")]);
    let (tree, _) = open_all(&directory);
    let file = directory.path().join("a.md");
    fs::remove_file(&file).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &file, FileType::Fifo, mode, 0).unwrap();
    let error = tree.read(&path("a.md")).unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }), "{error:?}");
}

#[test]
fn what_git_does_not_record_is_not_listed() {
    let directory = directory(&[
        (".git/config", ""),
        (".git/info/exclude", "*.swp\n"),
        (".gitignore", "node_modules/\n*.log\n"),
        ("node_modules/x/SKILL.md", ""),
        ("docs/.gitignore", "!kept.log\n"),
        ("docs/kept.log", ""),
        ("docs/lost.log", ""),
        ("docs/.a.swp", ""),
    ]);
    fs::create_dir(directory.path().join("empty")).unwrap();
    let socket = directory.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(socket).unwrap();

    let (tree, diagnostics) = open_all(&directory);
    assert_eq!(
        files(&tree),
        [".gitignore", "docs/.gitignore", "docs/kept.log"]
    );
    assert!(tree.lookup(&path("empty")).is_err());
    assert_eq!(diagnostics, []);
}

#[test]
fn a_nested_repository_is_a_submodule() {
    let directory = directory(&[("module/.git", "gitdir: ../x"), ("module/a", ""), ("b", "")]);
    let (tree, _) = open_all(&directory);
    assert_eq!(files(&tree), ["b"]);
    let kind = tree.lookup(&path("module")).unwrap().kind;
    assert_eq!(kind, crate::source::Kind::Submodule);
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_not_utf8_are_left_out_with_a_diagnostic() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let directory = directory(&[("docs/a.md", "")]);
    let strange = OsStr::from_bytes(b"docs/\xff.md");
    fs::write(directory.path().join(strange), "").unwrap();
    symlink(OsStr::from_bytes(b"\xfe"), directory.path().join("link")).unwrap();

    let (tree, diagnostics) = open_all(&directory);
    assert_eq!(files(&tree), ["docs/a.md"]);
    let told: Vec<_> = diagnostics.iter().map(|d| (d.rule, &*d.file)).collect();
    let expected = [("source-name", "docs/\u{fffd}.md"), ("source-name", "link")];
    assert_eq!(told, expected);
}

#[test]
fn each_limit_has_its_error() {
    let directory = directory(&[("a/b/c", "four"), ("d", "")]);
    let open = |limits| open(directory.path(), &TreePath::root(), limits);
    let plenty = Limits::default();

    let entries = Limits {
        entries_max: 3,
        ..plenty
    };
    assert!(matches!(
        open(entries),
        Err(OpenError::TooManyEntries { limit: 3 })
    ));
    let depth = Limits {
        depth_max: 1,
        ..plenty
    };
    assert!(matches!(
        open(depth),
        Err(OpenError::TooDeep { limit: 1, .. })
    ));
    let bytes = Limits {
        file_bytes_max: 3,
        ..plenty
    };
    let (tree, _) = open(bytes).unwrap();
    assert!(matches!(
        tree.read(&path("a/b/c")),
        Err(ReadError::TooLarge { bytes: 4, limit: 3 })
    ));
}

#[test]
fn the_docs_root_is_a_directory_reached_through_links() {
    let directory = directory(&[("site/docs/a.md", ""), ("docs", "->site/docs")]);
    let open = |docs: &str| open(directory.path(), &path(docs), Limits::default());
    assert_eq!(open("docs").unwrap().0.docs_root().as_str(), "site/docs");
    assert!(matches!(open("nowhere"), Err(OpenError::Docs(_))));
    assert!(matches!(open("docs/a.md"), Err(OpenError::Docs(_))));
}

#[test]
fn the_root_is_the_nearest_directory_with_git_in_it() {
    let directory = directory(&[(".git/HEAD", ""), ("docs/en/a.md", ""), ("lone/x", "")]);
    let root = directory.path().canonicalize().unwrap();
    let located = locate(&root.join("docs/en"), None).unwrap();
    assert_eq!(located, (root.clone(), path("docs/en")));

    let explicit = locate(&root.join("docs/en"), Some(&root.join("docs"))).unwrap();
    assert_eq!(explicit, (root.join("docs"), path("en")));
    let outside = locate(&root.join("lone"), Some(&root.join("docs")));
    assert!(matches!(outside, Err(OpenError::Outside { .. })));
}

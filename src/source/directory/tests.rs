//! Directories as commits: links, what git ignores, limits.

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

/// Runs git in a directory, alone with its own configuration.
#[track_caller]
pub(super) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.com"])
        .args(arguments)
        .output()
        .expect("git is installed");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("names in these tests are UTF-8")
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
fn a_file_replaced_by_a_link_after_the_walk_is_an_error() {
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
fn a_file_replaced_by_a_pipe_does_not_block_the_reader() {
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
fn files_that_git_ignores_are_not_listed() {
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
    let found: Vec<_> = diagnostics.iter().map(|d| (d.rule, &*d.file)).collect();
    let expected = [("source-name", "docs/\u{fffd}.md"), ("source-name", "link")];
    assert_eq!(found, expected);
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

#[test]
fn a_tracked_file_is_listed_although_a_pattern_ignores_it() {
    let directory = directory(&[
        (".gitignore", "*.log\nvendor/\n"),
        ("recorded.log", ""),
        ("other.log", ""),
        ("vendor/deep/recorded.md", ""),
        ("vendor/deep/other.md", ""),
        ("vendor/other/x.md", ""),
    ]);
    git(directory.path(), &["init", "-q"]);
    git(
        directory.path(),
        &[
            "add",
            "--force",
            ".gitignore",
            "recorded.log",
            "vendor/deep/recorded.md",
        ],
    );

    let (tree, diagnostics) = open_all(&directory);
    let expected = [".gitignore", "recorded.log", "vendor/deep/recorded.md"];
    assert_eq!(files(&tree), expected);
    assert_eq!(diagnostics, []);
}

#[test]
fn a_submodule_without_a_checkout_is_recognised() {
    let directory = directory(&[("a.md", "")]);
    let commit = format!("160000,{},module", "1".repeat(40));
    git(directory.path(), &["init", "-q"]);
    git(
        directory.path(),
        &["update-index", "--add", "--cacheinfo", &commit],
    );
    fs::create_dir(directory.path().join("module")).unwrap();
    let (tree, _) = open_all(&directory);
    let kind = tree.lookup(&path("module")).unwrap().kind;
    assert_eq!(kind, crate::source::Kind::Submodule);
}

#[test]
fn an_unreadable_index_is_reported() {
    let directory = directory(&[(".git/index", "not an index"), ("a.md", "")]);
    let (tree, diagnostics) = open_all(&directory);
    assert_eq!(files(&tree), ["a.md"]);
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].rule, "source-index");
}

#[test]
fn the_listing_is_what_git_would_add() {
    let directory = directory(&[
        (
            ".gitignore",
            "*.o\n!kept.o\n/build\nlogs/*\n!logs/keep/\n**/cache\ndocs/**/tmp\n\\#x\nsp\\ \n[ab]?.c\n*.d/\n!/a/b/\n#no\n\\!y\n",
        ),
        ("a/.gitignore", "b/*\n!b/c.o\nx*\n!*.md\n"),
        ("a/b/c.o", ""),
        ("a/b/d.md", ""),
        ("a/b/e", ""),
        ("a/xa", ""),
        ("a/x.md", ""),
        ("a/build", ""),
        ("build/kept.o", ""),
        ("kept.o", ""),
        ("lost.o", ""),
        ("logs/a", ""),
        ("logs/keep/a", ""),
        ("logs/keep/b.o", ""),
        ("sub/logs/a", ""),
        ("cache", ""),
        ("sub/cache/x", ""),
        ("docs/tmp", ""),
        ("docs/a/b/tmp/x", ""),
        ("#x", ""),
        ("#no", ""),
        ("!y", ""),
        ("sp ", ""),
        ("sp", ""),
        ("a1.c", ""),
        ("c1.c", ""),
        ("q.d", ""),
        ("p.d/x", ""),
        ("link.d", "->docs"),
        ("ünï/日本.md", ""),
        ("sub/.git-not/x", ""),
    ]);
    git(directory.path(), &["init", "-q"]);
    let exclude = directory.path().join(".git/info/exclude");
    fs::write(exclude, "c1.c\n!lost.o\n").unwrap();

    let (tree, _) = open_all(&directory);
    git(directory.path(), &["add", "."]);
    let recorded = git(directory.path(), &["ls-files", "-z"]);
    let mut recorded: Vec<_> = recorded.split_terminator('\0').collect();
    recorded.sort_unstable();
    let mut listed: Vec<_> = tree.files().map(ToString::to_string).collect();
    listed.push("link.d".to_owned());
    listed.sort();
    assert_eq!(listed, recorded);
}

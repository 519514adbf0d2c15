//! Tests with real repositories, real git and the `file` transport: how each state is reported.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::source::{EntryKind, LookupError, ReadError, directory};

/// A repository that receives commits, and our mirrors of it.
pub(super) struct TestRepository {
    pub(super) root: tempfile::TempDir,
    pub(super) config: Config,
}

impl TestRepository {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::new(&root.path().join("mirrors"));
        config.local = vec![root.path().to_owned()];
        let place = Self { root, config };
        std::fs::create_dir(place.work()).unwrap();
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        place
    }

    pub(super) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    #[track_caller]
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        self.git_at("2026-01-01T12:00:00Z", arguments)
    }

    /// Runs git with the time of its commits.
    #[track_caller]
    pub(super) fn git_at(&self, time: &str, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(self.work())
            .env("GIT_COMMITTER_DATE", time)
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@acme.test"])
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(super) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn commit(&self, message: &str) -> String {
        self.commit_at("2026-01-01T12:00:00Z", message)
    }

    pub(super) fn commit_at(&self, time: &str, message: &str) -> String {
        self.git(&["add", "--all"]);
        let commit = ["commit", "--quiet", "--allow-empty", "--message", message];
        self.git_at(time, &commit);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(super) fn url(&self) -> String {
        format!("file://{}", self.work().display())
    }

    fn fetch(&self, branch: &str) -> Result<Head, FetchError> {
        self.fetch_from(&self.url(), branch)
    }

    fn fetch_from(&self, url: &str, branch: &str) -> Result<Head, FetchError> {
        self.fetch_with(url, branch, |address, fetching| {
            let head = fetch(&self.config, address, fetching)?;
            head.clean(fetching.mirror);
            Ok(head)
        })
    }

    /// Fetches something into the mirror of a repository.
    pub(super) fn fetch_with<T>(
        &self,
        url: &str,
        branch: &str,
        fetch: impl FnOnce(&Address, &Fetching<'_>) -> Result<T, FetchError>,
    ) -> Result<T, FetchError> {
        let address = Address::parse(url, branch, &self.config)?;
        let mirror = Mirror::take(&self.config, "acme", address.url(), None)?;
        let fetching = Fetching {
            mirror: mirror.directory(),
            bytes_max: mirror.bytes_max(),
            rate_min: 0,
            grace: Duration::ZERO,
            secrets: &Secrets::default(),
            scratch: self.root.path(),
        };
        fetch(&address, &fetching)
    }

    /// The directory of the only mirror.
    pub(super) fn mirror(&self) -> PathBuf {
        let name = mirror::name("acme", &self.url());
        self.config.mirrors.join(format!("{name}.git"))
    }

    fn open(&self, docs: &TreePath) -> Result<(Tree, Vec<Diagnostic>), OpenError> {
        let head = self.head();
        open(&self.config, &self.mirror(), &head.commit, docs)
    }

    pub(super) fn head(&self) -> Head {
        self.fetch("main").unwrap()
    }

    fn tree(&self) -> (Tree, Vec<Diagnostic>) {
        self.open(&TreePath::root()).unwrap()
    }
}

pub(super) fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

#[test]
fn a_commit_is_read_without_a_work_tree() {
    let place = TestRepository::new();
    place.write("docs/index.mdx", "# Hello");
    place.write("shared/SKILL.md", "skill");
    std::os::unix::fs::symlink("../shared", place.work().join("docs/skills")).unwrap();
    let commit = place.commit("Say hello\n\nAt length.");

    let head = place.head();
    assert_eq!(*head.commit, *commit);
    assert_eq!(
        (&*head.author, &*head.message),
        ("Ada", "Say hello\n\nAt length.")
    );
    let (tree, diagnostics) = place.open(&path("docs")).unwrap();
    assert!(diagnostics.is_empty());
    assert_eq!(tree.docs_root(), &path("docs"));
    assert_eq!(tree.read(&path("docs/index.mdx")).unwrap(), "# Hello");
    assert_eq!(tree.read(&path("docs/skills/SKILL.md")).unwrap(), "skill");
    let names: Vec<_> = tree.files().map(TreePath::as_str).collect();
    assert_eq!(names, ["docs/index.mdx", "shared/SKILL.md"]);
    let mirror = std::fs::read_dir(&place.config.mirrors).unwrap();
    let names: Vec<_> = mirror.map(|entry| entry.unwrap().path()).collect();
    assert!(
        names.iter().all(|path| !path.join("docs").exists()),
        "{names:?}"
    );
}

#[test]
fn a_commit_and_its_work_tree_have_the_same_content() {
    let place = TestRepository::new();
    for (name, text) in [
        ("a.mdx", "a"),
        ("b/c.mdx", ""),
        ("b/d e.mdx", "\r\n\0"),
        ("ü.mdx", "ü"),
    ] {
        place.write(name, text);
    }
    std::os::unix::fs::symlink("b/c.mdx", place.work().join("link")).unwrap();
    place.commit("All kinds");

    let (from_git, _) = place.tree();
    let limits = directory::Limits::default();
    let (from_disk, _) = directory::open(&place.work(), &TreePath::root(), limits).unwrap();
    let content = |tree: &Tree| -> Vec<_> {
        let files = tree
            .files()
            .map(|file| (file.clone(), tree.read(file).unwrap()));
        files.collect()
    };
    assert_eq!(content(&from_git), content(&from_disk));
    assert_eq!(
        from_git.list(&TreePath::root()).unwrap(),
        from_disk.list(&TreePath::root()).unwrap()
    );
}

#[test]
fn a_second_fetch_gets_new_commits_and_lists_the_changes() {
    let place = TestRepository::new();
    place.write("kept", "1");
    place.write("gone", "1");
    place.write("edited", "1");
    let first = place.commit("One");
    assert_eq!(*place.head().commit, *first);

    std::fs::remove_file(place.work().join("gone")).unwrap();
    place.write("edited", "2");
    place.write("new/file", "2");
    place.commit("Two");
    let changes = place.head().changes_since(&first, 1000).unwrap();
    let names = |names: &[Box<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&changes.added), ["new/file"]);
    assert_eq!(names(&changes.modified), ["edited"]);
    assert_eq!(names(&changes.removed), ["gone"]);
    assert!(place.head().changes_since(&"0".repeat(40), 1000).is_none());
}

#[test]
fn a_rewritten_history_is_followed() {
    let place = TestRepository::new();
    place.write("page", "1");
    place.commit("One");
    place.head();
    place.write("page", "2");
    place.git(&["add", "--all"]);
    place.git(&["commit", "--quiet", "--amend", "--message", "Instead"]);
    assert_eq!(&*place.head().message, "Instead");
    assert_eq!(place.tree().0.read(&path("page")).unwrap(), "2");
}

#[test]
fn a_missing_branch_and_a_missing_repository_are_final_and_named() {
    let place = TestRepository::new();
    place.write("page", "1");
    place.commit("One");
    let error = place.fetch("gone").unwrap_err();
    assert_eq!(error.to_string(), "the repository has no branch \"gone\"");
    assert!(!error.is_transient());

    let nowhere = format!("file://{}/nowhere", place.root.path().display());
    let error = place.fetch_from(&nowhere, "main").unwrap_err();
    assert!(
        matches!(error, FetchError::MissingRepository(_)),
        "{error:?}"
    );
    assert!(!error.is_transient());
}

#[test]
fn an_unreachable_host_is_a_transient_error() {
    let mut place = TestRepository::new();
    // A port that was free a moment ago: connections to it are refused.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    place.config.plaintext = true;
    place.config.private_hosts = ["127.0.0.1".parse().unwrap()].into_iter().collect();
    let url = format!("http://{address}/docs.git");
    let error = place.fetch_from(&url, "main").unwrap_err();
    assert!(error.is_transient(), "{error}");
}

#[test]
fn an_empty_repository_has_no_branch() {
    let error = TestRepository::new().fetch("main").unwrap_err();
    assert!(matches!(error, FetchError::MissingBranch(_)), "{error:?}");
}

#[test]
fn a_damaged_mirror_is_replaced() {
    let place = TestRepository::new();
    place.write("page", "1");
    place.commit("One");
    place.head();
    let mirror = place.mirror();
    std::fs::write(mirror.join("refs/heads/main.lock"), "").unwrap();
    std::fs::write(mirror.join("shallow.lock"), "").unwrap();
    assert_eq!(place.tree().0.read(&path("page")).unwrap(), "1");

    std::fs::write(mirror.join("config"), "[[[").unwrap();
    assert_eq!(place.tree().0.read(&path("page")).unwrap(), "1");
}

#[test]
fn submodules_are_listed_and_not_entered() {
    let place = TestRepository::new();
    place.write("page", "1");
    place.commit("One");
    place.git(&["submodule", "--quiet", "add", &place.url(), "other"]);
    place.commit("Two");
    let (tree, _) = place.tree();
    let other = tree.list(&TreePath::root()).unwrap();
    assert!(
        other.contains(&("other".into(), EntryKind::Submodule)),
        "{other:?}"
    );
    assert!(matches!(
        tree.lookup(&path("other/page")),
        Err(LookupError::NotADirectory { .. })
    ));
}

#[test]
fn an_lfs_pointer_is_reported() {
    let place = TestRepository::new();
    let pointer = format!(
        "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 12345\n",
        "0".repeat(64)
    );
    place.write("logo.png", pointer);
    place.commit("One");
    let (_, diagnostics) = place.tree();
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(
        (diagnostics[0].rule, &*diagnostics[0].file),
        ("source-lfs", "logo.png")
    );
}

#[test]
fn a_name_that_is_not_utf_8_is_left_out_and_reported() {
    use std::os::unix::ffi::OsStrExt as _;

    let place = TestRepository::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.mdx");
    std::fs::write(place.work().join(name), "x").unwrap();
    place.write("page", "1");
    place.commit("One");
    let (tree, diagnostics) = place.tree();
    assert_eq!(tree.files().count(), 1);
    assert_eq!(diagnostics[0].rule, "source-name");
}

#[test]
fn a_file_over_the_limit_is_not_read() {
    let mut place = TestRepository::new();
    place.write("huge", vec![b'x'; 4097]);
    place.commit("One");
    place.config.file_bytes_max = 4096;
    let error = place.tree().0.read(&path("huge")).unwrap_err();
    assert!(
        matches!(
            error,
            ReadError::TooLarge {
                bytes: 4097,
                limit: 4096
            }
        ),
        "{error}"
    );
}

#[test]
fn a_repository_over_the_limit_is_rejected() {
    let mut place = TestRepository::new();
    for n in 0..4 {
        place.write(&format!("f{n}"), "x");
    }
    place.commit("One");
    place.config.entries_max = 3;
    let error = place.open(&TreePath::root()).unwrap_err();
    assert_eq!(error.to_string(), "repository has more than 3 files");
}

#[test]
fn trees_that_contain_each_other_are_listed_only_up_to_the_limit() {
    let mut place = TestRepository::new();
    place.write("page", "1");
    place.commit("One");
    // Each tree has ten entries, and each entry is the previous tree: 10^12 files in 12 small
    // objects.
    let mut tree = place.git(&["rev-parse", "HEAD^{tree}"]);
    for _ in 0..12 {
        let lines: String = (0..10)
            .map(|n| format!("040000 tree {tree}\t{n}\n"))
            .collect();
        place.write("lines", lines);
        let shell = "git mktree < lines";
        let made = Command::new("sh")
            .args(["-c", shell])
            .current_dir(place.work())
            .output()
            .unwrap();
        tree = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    }
    let first = place.git(&["rev-parse", "HEAD"]);
    let commit = place.git(&["commit-tree", "-m", "Bomb", "-p", &first, &tree]);
    place.git(&["update-ref", "refs/heads/main", &commit]);
    place.config.entries_max = 2000;
    let error = place.open(&TreePath::root()).unwrap_err();
    assert_eq!(error.to_string(), "repository has more than 2000 files");
    // The changes since an ordinary commit are not listed: git would hold all in memory.
    place.git(&["update-ref", "refs/heads/main", &first]);
    place.head();
    place.git(&["update-ref", "refs/heads/main", &commit]);
    assert!(place.head().changes_since(&first, 2000).is_none());
}

/// Bytes that no compression makes smaller.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = 2 * seed + 1;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

#[test]
fn commits_that_were_replaced_do_not_stay_in_the_mirror() {
    let place = TestRepository::new();
    place.write("page", "1");
    place.commit("One");
    for seed in 1..=5 {
        place.write("large", noise(seed, 3 << 20));
        place.git(&["add", "--all"]);
        place.git(&["commit", "--quiet", "--amend", "--message", "Again"]);
        place.head();
    }
    let bytes = mirror::size(&place.mirror());
    assert!(bytes < 6 << 20, "{bytes}");
    assert_eq!(place.tree().0.read(&path("large")).unwrap().len(), 3 << 20);
}

#[test]
fn a_mirror_that_is_full_is_made_anew_and_a_repository_over_the_limit_is_rejected() {
    let mut place = TestRepository::new();
    place.config.mirror_bytes_max = 5 << 20;
    place.write("large", noise(1, 3 << 20));
    place.commit("One");
    place.head();
    place.write("large", noise(2, 3 << 20));
    place.commit("Two");
    // There is room for the new version, but not for both versions.
    assert_eq!(&*place.head().message, "Two");
    assert!(mirror::size(&place.mirror()) < 5 << 20);
    place.write("larger", noise(3, 3 << 20));
    place.commit("Three");
    let error = place.fetch("main").unwrap_err();
    assert!(matches!(error, FetchError::OverQuota { .. }), "{error:?}");
    assert!(!error.is_transient());
    assert!(mirror::size(&place.mirror()) < 8 << 20);
}

#[test]
fn a_repository_is_not_too_large_because_others_use_the_disk() {
    let mut place = TestRepository::new();
    place.config.mirror_bytes_max = 6 << 20;
    place.config.mirrors_bytes_max = 8 << 20;
    place.write("large", noise(1, 4 << 20));
    place.commit("One");
    // Updates of other projects may use six of eight mebibytes.
    let held = Mirror::take(&place.config, "other", "u", None).unwrap();
    let error = place.fetch("main").unwrap_err();
    assert!(matches!(error, FetchError::Full), "{error:?}");
    assert!(error.is_transient());
    drop(held);
    assert_eq!(&*place.head().message, "One");
}

#[test]
fn a_repository_with_sha_256_names_is_rejected_for_good() {
    let place = TestRepository::new();
    let made = Command::new("git")
        .args([
            "init",
            "--quiet",
            "--object-format=sha256",
            "--initial-branch=main",
        ])
        .arg(place.root.path().join("other"))
        .status();
    assert!(made.unwrap().success());
    let commit = Command::new("git")
        .current_dir(place.root.path().join("other"))
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@acme.test"])
        .args(["commit", "--quiet", "--allow-empty", "--message", "One"])
        .status();
    assert!(commit.unwrap().success());
    let url = format!("file://{}/other", place.root.path().display());
    let error = place.fetch_from(&url, "main").unwrap_err();
    assert!(matches!(error, FetchError::ObjectFormat), "{error:?}");
}

#[test]
fn a_missing_documentation_directory_is_named() {
    let place = TestRepository::new();
    place.write("page", "1");
    place.commit("One");
    let error = place.open(&path("docs")).unwrap_err();
    assert!(
        matches!(error, OpenError::Docs(LookupError::NotFound { .. })),
        "{error}"
    );
}

#[test]
fn a_mirror_has_no_hooks_and_remembers_no_url() {
    let place = TestRepository::new();
    place.write("page", "1");
    place.commit("One");
    place.head();
    let mirror = place.mirror();
    assert!(!mirror.join("hooks").exists());
    assert!(!mirror.join("FETCH_HEAD").exists());
}

#[test]
fn only_allowed_transports_become_addresses() {
    let config = Config {
        local: vec!["/srv/git".into()],
        ..Config::new(Path::new("/var/mirrors"))
    };
    let parse = |url: &str| Address::parse(url, "main", &config).map(|_| ());
    for allowed in [
        "https://git.example/acme/docs.git",
        "https://bot@git.example:8443/acme/docs.git",
        "ssh://git@git.example:22/acme/docs.git",
        "git@git.example:acme/docs.git",
        "file:///srv/git/docs.git",
        "/srv/git/docs.git",
    ] {
        assert_eq!(parse(allowed), Ok(()), "{allowed}");
    }
    let transport = |name: &str| Err(InvalidAddress::Transport(name.into()));
    for (url, why) in [
        ("ext::sh -c id", Err(InvalidAddress::Url)),
        ("ext::sh%20-c%20id", transport("ext")),
        ("fd::17", transport("fd")),
        ("http://git.example/docs.git", transport("http")),
        ("git://git.example/docs.git", transport("git")),
        ("ftp://git.example/docs.git", transport("ftp")),
        ("/etc", Err(InvalidAddress::Local)),
        ("file:///etc", Err(InvalidAddress::Local)),
        ("file:///srv/git/../../etc", Err(InvalidAddress::Local)),
        ("/srv/gitx/docs.git", Err(InvalidAddress::Local)),
        ("../docs.git", Err(InvalidAddress::Local)),
        (
            "https://bot:token@git.example/docs.git",
            Err(InvalidAddress::Password),
        ),
        ("ssh://-oProxyCommand=id/docs.git", Err(InvalidAddress::Url)),
        ("-oProxyCommand=id:docs.git", Err(InvalidAddress::Url)),
        ("--upload-pack=id", Err(InvalidAddress::Url)),
        ("https://", Err(InvalidAddress::Url)),
        // The shell would run the command in the host.
        ("ssh://a$(id).example/r", Err(InvalidAddress::Url)),
        ("git@git.example;id:r", Err(InvalidAddress::Url)),
        ("git@`id`:r", Err(InvalidAddress::Url)),
        ("ssh://[::1&id]/r", Err(InvalidAddress::Url)),
        ("", Err(InvalidAddress::Url)),
        ("https://git.example/a\nb", Err(InvalidAddress::Url)),
    ] {
        assert_eq!(parse(url), why, "{url}");
    }
}

#[test]
fn branch_names_follow_the_rules_of_git() {
    let config = Config::new(Path::new("/var/mirrors"));
    let parse = |branch: &str| Address::parse("https://h/r", branch, &config).is_ok();
    for name in ["main", "release/2.0", "feature-ü", "a.b", "v1@x"] {
        assert!(parse(name), "{name}");
    }
    for name in [
        "", "-x", "a b", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "@", "a@{1}", "/a",
        "a/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "a\n",
    ] {
        assert!(!parse(name), "{name:?}");
    }
}

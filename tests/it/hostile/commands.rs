//! The commands of an author read documentation in a sandboxed process. If a hostile repository
//! takes over this process, it can reach no network, no secrets and no other file.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use tempfile::TempDir;

use crate::edge::Setup;
use crate::http::TIMEOUT;

const CONFIG: &str = r#"{ "name": "Acme", "navigation": { "pages": ["index"] } }"#;

fn waypost() -> Command {
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_waypost")]);
    command
}

fn documentation() -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("docs.json"), CONFIG).unwrap();
    fs::write(directory.path().join("index.mdx"), "# Welcome\n").unwrap();
    directory
}

#[track_caller]
fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@acme.test"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned()
}

/// A preview that runs until it is dropped.
struct Preview {
    process: Child,
    _output: BufReader<ChildStdout>,
    port: u16,
}

impl Preview {
    fn start(docs: &Path, temporary: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_waypost"))
            .args(["preview", "--port", "0", "--root"])
            .args([docs, docs])
            .env("WAYPOST_TEST_SECRET", "s3cr3t")
            .env("TMPDIR", temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let port = line.trim().trim_end_matches('/').rsplit(':').next();
        Self {
            port: port.unwrap().parse().unwrap(),
            process,
            _output: output,
        }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut response = String::new();
        // The process may be killed while it answers.
        let _read = stream.read_to_string(&mut response);
        response
    }

    /// Requests a page until it has a text: the process may be starting.
    fn wait_for(&self, path: &str, text: &str) {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !self.get(path).contains(text) {
            assert!(std::time::Instant::now() < end, "{path} has no {text:?}");
        }
    }

    /// Waits for the process that reads the documentation, and returns its directory in `/proc`.
    fn reader(&self) -> PathBuf {
        let parent = format!("PPid:\t{}\n", self.process.id());
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            let processes = fs::read_dir("/proc").unwrap().flatten();
            let mut children = processes.filter(|entry| {
                let status = fs::read_to_string(entry.path().join("status"));
                status.is_ok_and(|status| status.contains(&parent))
            });
            if let Some(child) = children.next() {
                return child.path();
            }
            assert!(std::time::Instant::now() < end, "it has no child");
        }
    }
}

impl Drop for Preview {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

#[test]
fn the_reader_of_a_preview_has_walls_and_no_environment() {
    let (docs, temporary) = (documentation(), TempDir::new().unwrap());
    let preview = Preview::start(docs.path(), temporary.path());
    preview.wait_for("/", "Welcome");
    let reader = preview.reader();
    let status = fs::read_to_string(reader.join("status")).unwrap();
    for restriction in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000"] {
        assert!(status.contains(restriction), "{restriction}: {status}");
    }
    let environment = fs::read(reader.join("environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("PATH="), "{environment}");
    assert!(!environment.contains("WAYPOST_TEST_SECRET"));
}

#[test]
fn a_preview_goes_on_after_its_reader_was_killed_and_its_directory_replaced() {
    let (above, temporary) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let docs = above.path().join("docs");
    let write = |text: &str| {
        fs::create_dir_all(&docs).unwrap();
        fs::write(docs.join("docs.json"), CONFIG).unwrap();
        fs::write(docs.join("index.mdx"), text).unwrap();
    };
    write("The first text.");
    let mut preview = Preview::start(&docs, temporary.path());
    preview.wait_for("/", "The first text.");

    fs::rename(&docs, above.path().join("before")).unwrap();
    write("The second text.");
    preview.wait_for("/", "The second text.");

    // The reader of the replaced directory may end by itself meanwhile; then another one is killed.
    let reader = loop {
        let reader = preview.reader();
        let id = reader.file_name().unwrap().to_str().unwrap().to_owned();
        let killed = Command::new("kill").args(["-KILL", &id]).status().unwrap();
        if killed.success() {
            break reader;
        }
    };
    while fs::read_to_string(reader.join("status")).is_ok_and(|status| !status.contains("\tZ")) {}
    // The next change starts another process. The watch may begin after the first change.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        write("The third text.");
        let parent = format!("PPid:\t{}\n", preview.process.id());
        let has_reader = fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let status = fs::read_to_string(entry.path().join("status"));
            status.is_ok_and(|status| status.contains(&parent) && !status.contains("\tZ"))
        });
        if has_reader {
            break;
        }
        assert!(std::time::Instant::now() < end, "no reader is started");
    }
    preview.wait_for("/", "The third text.");

    let id = preview.process.id().to_string();
    let stopped = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(stopped.success());
    assert!(preview.process.wait().unwrap().success());
    let left: Vec<_> = fs::read_dir(temporary.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_linked_working_tree_is_checked_with_the_files_that_git_keeps_elsewhere() {
    let directory = documentation();
    let (main, linked) = (directory.path(), TempDir::new().unwrap());
    let linked = linked.path().join("linked");
    git(main, &["init", "--quiet"]);
    git(main, &["add", "--all"]);
    git(main, &["commit", "--quiet", "--message", "one"]);
    git(
        main,
        &["worktree", "add", "--quiet", linked.to_str().unwrap()],
    );
    fs::rename(linked.join("index.mdx"), linked.join("start.mdx")).unwrap();
    let config = CONFIG.replace("index", "start");
    fs::write(linked.join("docs.json"), config).unwrap();
    let check = |directory: &Path| {
        let mut check = waypost();
        check.arg("check").arg(directory).args(["--since", "HEAD"]);
        check.output().unwrap()
    };
    let output = check(&linked);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 page"), "{said}");
    assert!(said.contains("was removed without a redirect"), "{said}");

    // A file `.git` that names no directory of git opens nothing.
    let hostile = documentation();
    fs::write(hostile.path().join(".git"), "gitdir: /etc\n").unwrap();
    let output = check(hostile.path());
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
}

#[test]
fn a_check_corrects_files_of_the_documentation_and_leaves_nothing_behind() {
    let (docs, temporary) = (documentation(), TempDir::new().unwrap());
    let config = CONFIG.replace("\"index\"", "\"/index.mdx\",");
    fs::write(docs.path().join("docs.json"), config).unwrap();
    let output = waypost()
        .args(["check", "--fix"])
        .arg(docs.path())
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("+++ docs.json"), "{said}");
    let fixed = fs::read_to_string(docs.path().join("docs.json")).unwrap();
    assert!(fixed.contains("[\"index\"]"), "{fixed}");
    let left: Vec<_> = fs::read_dir(temporary.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// On a kernel without Landlock or seccomp, the commands report that and continue.
#[test]
fn what_the_kernel_lacks_is_said() {
    let docs = documentation();
    for (call, feature) in [
        ("landlock_create_ruleset", "Landlock"),
        ("seccomp", "seccomp"),
    ] {
        let inject = format!("inject={call}:error=ENOSYS");
        let output = Command::new("strace")
            .args(["-f", "-qqq", "-o", "/dev/null", "-e", &inject])
            .args(["timeout", "60", env!("CARGO_BIN_EXE_waypost"), "check"])
            .arg(docs.path())
            .output()
            .expect("strace is not installed; `make test` installs it");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{call}: {said}");
        let expected = format!("waypost: this system has no {feature}: ");
        assert!(said.contains(&expected), "{call}: {said}");
    }
    let output = waypost().arg("check").arg(docs.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn the_check_of_a_configuration_names_the_walls_and_what_could_never_be_fetched() {
    let setup = Setup::new().site(
        "acme",
        "repository: { url: \"file:///srv/elsewhere\", branch: main }",
    );
    setup.write_conf();
    let conf = setup.path("waypost.yaml");
    let check = || {
        let mut check = waypost();
        check.args(["check", "--conf"]).arg(&conf);
        check.output().unwrap()
    };
    let output = check();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the repository of acme: "), "{said}");

    setup.write_site("acme", "");
    let output = check();
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("isolation of builds, in force: Landlock (ABI"),
        "{said}"
    );
}

#[test]
fn a_publication_needs_free_space_and_says_so() {
    let setup = Setup::new().site("acme", "");
    let root = setup.path("").display().to_string();
    let setup = setup.conf(
        "store",
        &format!("{{ local: {{ path: {root}/store, free_bytes_min: 1125899906842624 }} }}"),
    );
    setup.write_conf();
    let docs = documentation();
    let docs = docs.path().to_str().unwrap();
    let output = setup.run(&["publish", docs, "--root", docs, "--project", "acme"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("1125899906842624 bytes must stay free"),
        "{said}"
    );
}

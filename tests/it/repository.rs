//! A git repository that is pushed to, and the site that is built from it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use crate::edge::{Edge, Setup};
use crate::http::Response;

/// The host of the admin API.
pub const API: &str = "api.waypost.localhost";

/// A repository with a work tree.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Makes an empty repository in the directory of a gateway.
    pub fn new(setup: &Setup, name: &str) -> Self {
        let root = setup.path(name);
        fs::create_dir(&root).unwrap();
        let repository = Self { root };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// Returns a repository that was made before.
    pub fn of(setup: &Setup, name: &str) -> Self {
        Self {
            root: setup.path(name),
        }
    }

    /// The lines of a site record that name it.
    pub fn record(&self) -> String {
        let url = format!("file://{}", self.root.display());
        format!("repository: {{ url: \"{url}\", branch: main }}")
    }

    #[track_caller]
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(&self.root)
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@acme.test"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Runs git with a file as its input.
    #[track_caller]
    pub fn git_reading(&self, arguments: &[&str], input: &std::path::Path) {
        let status = Command::new("git")
            .current_dir(&self.root)
            .args(arguments)
            .stdin(fs::File::open(input).unwrap())
            .status()
            .unwrap();
        assert!(status.success(), "git {arguments:?}");
    }

    /// Writes files, commits them, and returns the commit's id.
    #[track_caller]
    pub fn push(&self, message: &str, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }
}

/// A git host that accepts connections and never responds.
#[derive(Debug)]
pub struct SilentHost(TcpListener);

impl SilentHost {
    /// Listens until it is dropped.
    pub fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// The lines of a site record whose repository is on this host.
    pub fn record(&self) -> String {
        let url = format!("http://{}/docs.git", self.0.local_addr().unwrap());
        format!("repository: {{ url: \"{url}\", branch: main }}")
    }

    /// Waits until git has connected: while the connection is held, the build is in the middle of
    /// its fetch.
    pub fn connected(&self) -> TcpStream {
        self.0.accept().unwrap().0
    }
}

/// A setup whose gateway may fetch from its own directory, and without TLS.
pub fn setup() -> Setup {
    let setup = Setup::new();
    let root = setup.path("").display().to_string();
    let git = format!(
        "{{ mirrors: {root}/mirrors, local: [{root}], allow_http: true, private_hosts: [127.0.0.1] }}"
    );
    setup
        .conf("git", &git)
        .conf("admin", "{ triggers_max: 1000000 }")
}

/// Makes an admin key.
#[track_caller]
pub fn key(setup: &Setup, owner: &str) -> String {
    let output = setup.run(&["key", "create", "--owner", owner]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Calls the admin API with a key.
#[track_caller]
pub fn call(edge: &Edge, key: &str, method: &str, path: &str) -> Response {
    let authorization = format!("Bearer {key}");
    edge.request(method, API, path, &[("Authorization", &authorization)])
}

/// Triggers an update and returns its id.
#[track_caller]
pub fn trigger(edge: &Edge, key: &str, project: &str) -> String {
    let response = call(edge, key, "POST", &format!("/v1/project/update/{project}"));
    assert_eq!(response.status, 202, "{}", response.text());
    response.json()["statusId"].as_str().unwrap().to_owned()
}

/// Queues an update as the operator does, and returns its id.
#[track_caller]
pub fn queue(setup: &Setup, project: &str) -> String {
    let output = setup.run(&["update", "trigger", project]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Follows an update to its end and returns its record.
#[track_caller]
pub fn follow(setup: &Setup, id: &str) -> serde_json::Value {
    let followed = setup.run(&["update", "status", id, "--follow"]);
    assert!(
        followed.status.code().is_some_and(|code| code < 2),
        "{followed:?}"
    );
    record(setup, id)
}

/// Triggers a newer update of a project, and asserts that the running one ends with what it has.
#[track_caller]
pub fn ends_for_a_newer_update(edge: &Edge, key: &str, project: &str, running: &str) {
    assert_ne!(running, trigger(edge, key, project));
    let record = follow(&edge.setup, running);
    assert_eq!(record["status"], "success", "{record:#}");
    assert!(
        record["logs"].to_string().contains("a newer update waits"),
        "{record:#}"
    );
}

/// Reads the record of an update.
#[track_caller]
pub fn record(setup: &Setup, id: &str) -> serde_json::Value {
    let output = setup.run(&["update", "status", id]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

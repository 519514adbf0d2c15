//! A build is confined: its command reads no file of the service, reaches no other machine, leaves
//! no process, and does not fill the disk.
//!
//! The command of `generate` runs in the same sandbox as a build. A build has no command that an
//! author could choose, so the tests use this one.

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::neighbours::children;
use crate::edge::{Edge, Setup};
use crate::presets::DOMAIN;
use crate::repository::{Repository, SilentHost, follow, key, queue, setup, trigger};

const PAGES: [(&str, &str); 2] = [
    (
        "docs.json",
        r#"{ "name": "Acme", "navigation": { "pages": ["index"] } }"#,
    ),
    ("index.mdx", "# Acme\n"),
];
/// The first part of a script: it writes the frontmatter of a skill, and defines `try`, which
/// writes a line that says whether a command succeeded.
const HEAD: &str = r#"cat >/dev/null
printf -- '---\nname: acme\ndescription: Use it.\n---\n\n'
try() { name=$1; shift; if (eval "$*") >/dev/null 2>&1; then echo "$name: yes"; else echo "$name: no"; fi; }
"#;

/// Starts a gateway whose command is a shell script, which the test writes after the start.
fn commanded(setup: Setup, conf: &str) -> (Edge, String) {
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &PAGES);
    fs::write(setup.path("write"), "exit 1").unwrap();
    fs::set_permissions(setup.path("write"), fs::Permissions::from_mode(0o644)).unwrap();
    let root = setup.path("").display().to_string();
    let root = root.trim_end_matches('/');
    let generate = format!("{{ command: [sh, \"{root}/write\"], {conf} }}");
    let key = key(&setup, "acme");
    let record = docs.record();
    let edge = setup.conf("generate", &generate).acme(&record).start();
    (edge, key)
}

/// Runs an update with this script and returns its record.
fn run(edge: &Edge, key: &str, script: &str) -> serde_json::Value {
    fs::write(edge.setup.path("write"), script).unwrap();
    let record = follow(&edge.setup, &trigger(edge, key, "acme"));
    assert_eq!(record["status"], "success", "{record:#}");
    record
}

/// Returns the result of each `try` of the script.
fn results(edge: &Edge, record: &serde_json::Value) -> Vec<String> {
    let skill = edge.get(DOMAIN, "/skill.md").text().to_owned();
    assert!(
        skill.contains("description: Use it."),
        "{skill}\n{record:#}"
    );
    skill.lines().skip(5).map(str::to_owned).collect()
}

#[test]
fn a_command_reads_no_file_of_the_service_and_changes_none() {
    let setup = setup();
    fs::write(setup.path("secret"), "secret").unwrap();
    let (edge, key) = commanded(setup, "seconds: 60");
    let root = edge.setup.path("").display().to_string();
    let root = root.trim_end_matches('/');
    let gateway = edge.id();
    let script = format!(
        r#"{HEAD}
        try own 'echo x >file && cat file'
        try shadow 'cat /etc/shadow'
        try secret 'cat {root}/secret'
        try configuration 'cat {root}/waypost.yaml'
        try keys 'ls {root}/store/keys'
        try content 'ls {root}/store/content'
        try queue 'cat {root}/*.sqlite'
        try mirrors 'ls {root}/mirrors'
        try other-builds 'ls ..'
        try parent-environment 'cat /proc/$PPID/environ'
        try gateway-environment 'cat /proc/{gateway}/environ'
        try gateway-memory 'cat /proc/{gateway}/maps'
        try write 'echo x >{root}/store/x'
        try overwrite 'echo x >{root}/secret'
        try temporary 'echo x >/tmp/waypost-hostile'
        try remove 'rm {root}/secret'
        try signal 'kill -0 {gateway}'
        try session 'setsid true'
        try namespace 'unshare -r true'
        try link 'ln -s {root}/secret here && cat here'
        "#
    );
    let record = run(&edge, &key, &script);
    let results = results(&edge, &record);
    assert_eq!(results[0], "own: yes", "{results:#?}");
    let rejected = results[1..].iter().filter(|line| line.ends_with(": no"));
    assert_eq!(rejected.count(), 19, "{results:#?}");
    assert_eq!(
        fs::read_to_string(edge.setup.path("secret")).unwrap(),
        "secret"
    );
}

#[test]
fn a_command_reaches_other_machines_only_if_the_operator_allows_it() {
    for (conf, reached) in [("network: false", "no"), ("network: true", "yes")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (edge, key) = commanded(setup(), conf);
        let script = format!(
            "{HEAD}\ntry connect \"bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'\"\n\
             try unix 'python3 -c \"import socket; socket.socket(socket.AF_UNIX)\"'\n"
        );
        let record = run(&edge, &key, &script);
        let expected = [format!("connect: {reached}"), "unix: no".to_owned()];
        assert_eq!(results(&edge, &record), expected, "{conf}");
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().is_ok(), reached == "yes", "{conf}");
    }
}

#[test]
fn a_command_does_not_fill_the_disk() {
    let setup = setup().conf("worker", "{ output_bytes_max: 4194304 }");
    let (edge, key) = commanded(setup, "seconds: 60");
    let one = "head -c 64M /dev/zero >large; sleep 60";
    let many = "n=0; while :; do n=$((n+1)); head -c 1M /dev/zero >file-$n || sleep 60; done";
    for script in [one, many] {
        let record = run(&edge, &key, script);
        let logs = record["logs"].to_string();
        assert!(
            logs.contains("the command wrote more than 4194304 bytes"),
            "{logs}"
        );
    }
    // A workspace is removed after its update has ended, and before the worker stops.
    edge.signal("TERM");
    let setup = edge.ended();
    let left: Vec<_> = fs::read_dir(setup.path("builds"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_command_of_another_user_cannot_start_processes_without_end() {
    assert!(
        is_root(),
        "only root can start processes of another user: run this test as root"
    );
    let setup = setup().conf("worker", "{ user: nobody, processes_max: 32 }");
    let passage = fs::Permissions::from_mode(0o711);
    fs::set_permissions(setup.path(""), passage).unwrap();
    let (edge, key) = commanded(setup, "seconds: 30");
    // git serves a repository only to the user that it belongs to.
    let docs = edge.setup.path("docs");
    let changed = Command::new("chown")
        .args(["-R", "nobody"])
        .arg(docs)
        .status();
    assert!(changed.unwrap().success());
    let script =
        format!("n=0; while [ $n -lt 300 ]; do n=$((n+1)); sleep 977 >/dev/null & done; {HEAD}");
    let record = run(&edge, &key, &script);
    let logs = record["logs"].to_string();
    assert!(
        logs.contains("the command ended with exit status"),
        "{logs}"
    );
    let running = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let mut text = String::new();
        let file = fs::File::open(entry.path().join("cmdline"));
        file.is_ok_and(|mut file| file.read_to_string(&mut text).is_ok())
            && text == "sleep\u{0}977\u{0}"
    });
    assert_eq!(running.count(), 0, "no process is left");
}

/// Whether this test runs as root.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// What the service has in its environment, such as passwords, is not in that of its processes. If
/// memory is short, they are ended before the service.
#[test]
fn the_processes_of_an_update_have_no_environment_and_are_ended_first() {
    let host = SilentHost::start();
    let edge = setup()
        .wrapped_by(&["env", "WAYPOST_TEST_SECRET=s3cr3t"])
        .site("acme", &host.record())
        .start();
    queue(&edge.setup, "acme");
    let _held = host.connected();
    let read = |id: u32, file: &str| fs::read_to_string(format!("/proc/{id}/{file}")).unwrap();
    assert!(read(edge.id(), "environ").contains("WAYPOST_TEST_SECRET"));
    let process = children(edge.id())[0];
    let programs = children(process);
    assert!(!programs.is_empty(), "git runs");
    for id in [&[process][..], &programs].concat() {
        assert!(!read(id, "environ").contains("WAYPOST_TEST_SECRET"));
        // proc_pid_oom_score_adj(5)
        let score: i32 = read(id, "oom_score_adj").trim().parse().unwrap();
        assert!(score >= 500, "{score}");
        let status = read(id, "status");
        for restriction in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000"] {
            assert!(status.contains(restriction), "{restriction}: {status}");
        }
    }
}

#[test]
fn what_is_in_force_is_logged_and_counted() {
    let edge = setup().start();
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("isolation of builds, in force: Landlock (ABI")
            && message.contains("seccomp")
    });
    assert!(edge.metric("build_isolation{feature=\"seccomp\"}") > 0.5);
}

#[test]
fn required_isolation_rejects_a_kernel_without_it() {
    for call in ["landlock_create_ruleset", "seccomp"] {
        let inject = format!("inject={call}:error=ENOSYS");
        let setup = setup().conf("worker", "{ isolation: required }");
        setup.write_conf();
        let output = Command::new("strace")
            .args(["-f", "-qqq", "-o", "/dev/null", "-e", &inject])
            // The program must end even if it starts.
            .args([
                "timeout",
                "20",
                env!("CARGO_BIN_EXE_waypost"),
                "serve",
                "--conf",
            ])
            .arg(setup.path("waypost.yaml"))
            .output()
            .expect("strace is not installed; `make test` installs it");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{call}: {said}");
        assert!(said.contains("worker.isolation"), "{call}: {said}");
    }
}

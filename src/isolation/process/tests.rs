//! Tests with shell scripts instead of a sandboxed process: how the process ends, and that no child
//! of it stays alive.

use std::fs;
use std::time::{Duration, Instant};

use super::*;

/// A line that a script writes.
#[derive(Debug, Serialize, Deserialize)]
struct Said(String);

impl Report for Said {
    fn in_force(in_force: InForce) -> Self {
        Self(in_force.to_string())
    }

    fn refused(error: &IsolationError) -> Self {
        Self(error.to_string())
    }

    fn late(sentence: String) -> Self {
        Self(sentence)
    }
}

/// Runs a script. Its events are lines in quotes.
async fn start(directory: &tempfile::TempDir, script: &str) -> Running<Said> {
    let path = directory.path().join("script");
    // It reads its order first, as every process does.
    fs::write(&path, format!("read -r order\n{script}")).unwrap();
    let launcher = Launcher {
        program: "/bin/sh".into(),
        mode: Mode::Available,
        user: None,
        log: None,
    };
    let start = Start {
        subcommand: path.to_str().unwrap().to_owned().leak(),
        order: &(),
        sandbox: Sandbox::new(),
        home: directory.path(),
        limits: Limits {
            memory_bytes: 1 << 30,
            file_bytes: 1 << 30,
            open_files: 100,
            processes: 100,
            page: Duration::from_secs(60),
        },
        has_network: false,
        listener: None,
    };
    launcher.start(start).await.unwrap()
}

/// Whether a process runs: it exists, and has not ended without a parent that has waited for it.
fn runs(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

#[tokio::test]
async fn a_process_that_reports_too_much_is_an_error_and_not_an_end() {
    let directory = tempfile::tempdir().unwrap();
    let line = "y".repeat(10_000);
    let mut running = start(&directory, &format!("exec yes '\"{line}\"'")).await;
    let error = loop {
        match running.event().await {
            Ok(Some(_said)) => {}
            Ok(None) => panic!("the process still runs, and waits until somebody reads"),
            Err(error) => break error,
        }
    };
    let said = error.to_string();
    assert!(said.contains("reports more than 67108864 bytes"), "{said}");
    running.kill().await;
}

#[tokio::test]
async fn a_process_that_closes_its_output_and_runs_on_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut running = start(&directory, "exec sleep 1000 >/dev/null").await;
    assert!(running.event().await.unwrap().is_none());
    let ended = tokio::time::timeout(Duration::from_secs(20), running.ended()).await;
    assert!(ended.unwrap().ends_with("was killed by signal 9"));
}

#[tokio::test]
async fn what_a_killed_process_has_started_is_killed_too() {
    let directory = tempfile::tempdir().unwrap();
    let script = "sleep 1000 >/dev/null & echo \"\\\"$!\\\"\"; kill -9 $$";
    let mut running = start(&directory, script).await;
    let Said(started) = running.event().await.unwrap().unwrap();
    assert!(running.event().await.unwrap().is_none());
    assert!(running.ended().await.ends_with("was killed by signal 9"));
    let deadline = Instant::now() + Duration::from_secs(10);
    while runs(&started) {
        assert!(Instant::now() < deadline, "process {started} still runs");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn the_status_of_a_process_that_has_ended_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let mut running = start(&directory, "exit 3").await;
        assert!(running.event().await.unwrap().is_none());
        assert!(running.ended().await.ends_with("exit status: 3"));
    }
}

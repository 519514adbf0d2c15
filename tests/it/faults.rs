//! Faults from outside: a system call of the program that fails or kills it.
//!
//! `strace` lists the calls with which a command touches the store; then the same command is
//! run again and killed as it enters one of them, or the call fails as on a full or a broken
//! disk. The program contains no code for these tests.
//!
//! Source: strace(1), "Tampering".

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use crate::edge::Setup;

/// Every call that changes or reads a store. Some machines have no `open`.
const CALLS: &str = "?open,?openat,?write,?pwrite64,?fsync,?fdatasync,?rename,?renameat,?renameat2,\
                     ?link,?linkat,?unlink,?unlinkat,?mkdir,?mkdirat,?flock,?utimensat,?ftruncate";
/// Calls that need space on a disk.
const NEEDS_ROOM: [&str; 8] = [
    "open", "openat", "write", "fsync", "rename", "renameat", "mkdir", "mkdirat",
];
/// One call of a command: its name, and its number among the calls with that name.
#[derive(Clone, Debug)]
pub struct Point {
    pub call: String,
    pub nth: usize,
}

/// The fault that replaces the call.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Kill,
    Error(&'static str),
}

// === impl Point ===

impl Point {
    pub fn inject(&self, fault: Fault) -> String {
        let Self { call, nth } = self;
        match fault {
            Fault::Kill => format!("inject={call}:signal=SIGKILL:when={nth}"),
            Fault::Error(error) => format!("inject={call}:error={error}:when={nth}"),
        }
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = vec![Fault::Kill, Fault::Error("EIO")];
        if NEEDS_ROOM.contains(&&*self.call) {
            faults.push(Fault::Error("ENOSPC"));
        }
        faults
    }
}

/// Returns the release build if it is of these sources, and otherwise the tests' own build.
pub fn binary() -> PathBuf {
    fn newest(path: &Path) -> SystemTime {
        if !path.is_dir() {
            return fs::metadata(path).unwrap().modified().unwrap();
        }
        let entries = fs::read_dir(path).unwrap();
        entries
            .map(|entry| newest(&entry.unwrap().path()))
            .max()
            .unwrap()
    }
    let built = PathBuf::from(env!("CARGO_BIN_EXE_waypost"));
    let release = built
        .parent()
        .unwrap()
        .with_file_name("release")
        .join("waypost");
    let is_current = fs::metadata(&release)
        .and_then(|found| found.modified())
        .is_ok_and(|time| {
            time > newest(Path::new("src")) && time > newest(Path::new("Cargo.lock"))
        });
    if is_current { release } else { built }
}

/// Runs a command of the program under `strace`.
///
/// Only `serve` touches the store in more than one thread. Other commands touch it in their first
/// thread; a process that they start makes its own calls, which must not be changed.
pub fn strace(setup: &Setup, options: &[&str], arguments: &[impl AsRef<OsStr>]) -> Output {
    let follow: &[&str] = match arguments[0].as_ref() == "serve" {
        true => &["-f", "--seccomp-bpf"],
        false => &[],
    };
    // The command must end even if the fault does not happen.
    Command::new("timeout")
        .args(["20", "strace", "-qqq"])
        .args(follow)
        .args(options)
        .arg(binary())
        .args(arguments)
        .arg("--conf")
        .arg(setup.path("waypost.yaml"))
        .output()
        .expect("strace is not installed; `make test` installs it")
}

/// Runs a command and lists its calls on the store.
#[track_caller]
pub fn points(setup: &Setup, arguments: &[String]) -> Vec<Point> {
    let trace = setup.path("trace");
    let options = [
        "-y",
        "-e",
        &format!("trace={CALLS}"),
        "-o",
        trace.to_str().unwrap(),
    ];
    let output = strace(setup, &options, arguments);
    assert!(output.status.success(), "{output:?}");
    let store = setup.path("store");
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    let mut points = Vec::new();
    let text = fs::read_to_string(&trace).unwrap();
    for line in text.lines() {
        // Each line begins with the process if `strace` follows more than one.
        let (process, rest) = match line.split_once(' ') {
            Some((id, rest)) if id.parse::<u32>().is_ok() => (id, rest),
            _ => ("", line),
        };
        let Some((call, _)) = rest.trim_start().split_once('(') else {
            continue;
        };
        // strace counts the calls of each process.
        let nth = counts.entry((process, call)).or_default();
        *nth += 1;
        if line.contains(store.to_str().unwrap()) {
            let call = call.to_owned();
            points.push(Point { call, nth: *nth });
        }
    }
    points
}

/// Returns this many items, evenly spaced, or all of them in a long run.
pub fn sample<T>(all: Vec<T>, count: usize) -> Vec<T> {
    if std::env::var_os("WAYPOST_LONG_TESTS").is_some() || all.len() <= count {
        return all;
    }
    let length = all.len();
    let is_picked = |nth: usize| nth * count / length != (nth + 1) * count / length;
    let numbered = all.into_iter().enumerate();
    numbered
        .filter(|(nth, _)| is_picked(*nth))
        .map(|(_, one)| one)
        .collect()
}

pub fn cases(points: &[Point]) -> Vec<(Point, Fault)> {
    let faults = |point: &Point| {
        let point = point.clone();
        let faults = point.faults().into_iter();
        faults.map(move |fault| (point.clone(), fault))
    };
    points.iter().flat_map(faults).collect()
}

/// Returns whether the fault happened.
///
/// Panics if the fault does not explain how the command ended.
#[track_caller]
pub fn has_struck(output: &Output, fault: Fault, store: &Path) -> bool {
    let words = str::from_utf8(&output.stderr).unwrap();
    let is_killed = output.status.signal() == Some(9) || output.status.code() == Some(128 + 9);
    match (fault, output.status.code()) {
        (_, Some(0)) => false,
        (Fault::Kill, _) if is_killed => true,
        (Fault::Error(_), Some(2)) => {
            // The command reports an error that names the file; it does not panic.
            assert!(words.contains(store.to_str().unwrap()), "{words}");
            assert!(!words.contains("panicked"), "{words}");
            true
        }
        _ => panic!("{output:?}"),
    }
}

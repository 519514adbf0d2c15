//! `waypost build` makes the same release on every machine: however many processors it has, and in
//! whichever time zone it is.
//!
//! The building process is isolated and inherits no environment. So the processors are set by
//! affinity, which every process inherits, and from which the pool of threads gets its size.
//!
//! `build` and `check` both list the interactive components. A page shows only the first render of
//! such a component.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

/// A site of three parts, each with its own search index.
///
/// The index of a single page needs no threads.
const CONFIG: &str = r#"{"name": "Acme", "navigation": {"languages": [
    {"language": "en", "versions": [
        {"version": "2", "pages": ["a", "b"]},
        {"version": "1", "pages": ["c", "d"]}]},
    {"language": "fr", "pages": ["e", "f"]}]}}"#;

/// A page that shows dates.
const DATES: &str = "export const at = new Date(2026, 10, 22, 23, 30);\n\n\
    {at.toISOString()} {at.toString()} {at.toLocaleString()} {at.getTimezoneOffset()} \
    {new Date('2026-07-01T00:30').toJSON()}\n";

/// Calls a function while this thread, and each process that it starts, may use only one
/// processor.
fn on_one_processor<T>(call: impl FnOnce() -> T) -> T {
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|at| all.is_set(*at)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).unwrap();
    let result = call();
    sched_setaffinity(None, &all).unwrap();
    result
}

/// Builds a directory in a time zone, and returns the inventory of the release: the digest of each
/// file.
///
/// A build that does not end is killed, and the test fails.
fn build(docs: &Path, out: &Path, zone: &str) -> String {
    let output: Output = Command::new("timeout")
        .args(["300", env!("CARGO_BIN_EXE_waypost"), "build", "--out"])
        .arg(out)
        .arg(docs)
        .env("TZ", zone)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    fs::read_to_string(out.join("inventory.json")).unwrap()
}

/// Asserts that a directory has the same release on one processor and on all, in other time zones.
fn has_one_release(docs: &Path, directory: &TempDir) {
    let out = |name: &str| directory.path().join(name);
    let one = on_one_processor(|| build(docs, &out("one"), "Asia/Kolkata"));
    let all = build(docs, &out("all"), "America/New_York");
    assert!(one == all, "{one}\n{all}");
}

#[test]
fn a_build_on_one_processor_in_another_time_zone_makes_the_same_release() {
    let directory = TempDir::new().unwrap();
    let docs = directory.path().join("docs");
    fs::create_dir(&docs).unwrap();
    for (name, text) in [
        ("docs.json", CONFIG),
        ("a.mdx", DATES),
        ("b.mdx", "Seals bark."),
        ("c.mdx", "Whales sang."),
        ("d.mdx", "Seals barked."),
        ("e.mdx", "Les baleines chantent."),
        ("f.mdx", "Les phoques aboient."),
    ] {
        fs::write(docs.join(name), text).unwrap();
    }
    has_one_release(&docs, &directory);
    let page = directory.path().join("one/files/pages/a.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("2026-11-22T23:30:00.000Z"), "{page}");
}

#[test]
fn the_bundled_documentation_has_the_same_release_on_one_processor() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/demo/docs");
    has_one_release(&docs, &TempDir::new().unwrap());
}

#[test]
fn check_and_build_name_the_components_that_show_their_first_render() {
    let directory = TempDir::new().unwrap();
    let docs = directory.path().join("docs");
    fs::create_dir_all(docs.join("snippets")).unwrap();
    fs::create_dir(directory.path().join(".git")).unwrap();
    let counter = "export const Counter = () => { const [n] = useState(1); return <p>{n}</p>; };";
    for (path, text) in [
        (
            "docs.json",
            r#"{"name": "A", "navigation": {"pages": ["index"]}}"#,
        ),
        (
            "index.mdx",
            "import { Counter } from '/snippets/counter.jsx';\n\n<Counter />\n",
        ),
        ("snippets/counter.jsx", counter),
    ] {
        fs::write(docs.join(path), text).unwrap();
    }
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waypost"));
        let output = command.args(arguments).arg(&docs).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            text.contains("interactive components show their first render: Counter (1 page)"),
            "{text}"
        );
    };
    run(&["check"]);
    let out = directory.path().join("out").display().to_string();
    run(&["build", "--out", &out, "--keep-going"]);
}

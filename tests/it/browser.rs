//! The bundled example and some small sites in a browser: the real binary, headless Chromium.
//!
//! The assertions are in `tests/browser/`, in JavaScript; this file starts a gateway and runs
//! them. Chromium is Debian's, driven by `playwright-core`; `make test` installs both. A
//! failure names the page and the rule.
//!
//! Sources: WCAG 2.2, as checked by `axe-core`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, Weak};

use crate::clients::client;
use crate::edge::{Edge, Setup};

/// A host that browsers resolve to loopback, and to which they allow access to the clipboard.
pub const HOST: &str = "docs.acme.localhost";

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/demo/docs")
}

/// Returns a gateway that serves the bundled example.
///
/// Tests that run at the same time share it, because none of them changes it.
pub fn serving() -> Arc<Edge> {
    static SHARED: Mutex<Weak<Edge>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    if let Some(edge) = shared.upgrade() {
        return edge;
    }
    let repository =
        r#"{ url: "https://github.com/acme/docs.git", branch: main, directory: handbook }"#;
    let record = format!("domains: [{HOST}]\nrepository: {repository}");
    let edge = Setup::new().site("acme", &record).start();
    let published = edge.setup.publish_directory("acme", &example());
    edge.wait_until_served("acme", published.generation);
    let edge = Arc::new(edge);
    *shared = Arc::downgrade(&edge);
    edge
}

/// Starts a gateway with small sites that differ in one setting.
fn settings() -> Edge {
    const NONE: &str = "";
    const BUTTON: &str =
        r#"{"primary": {"type": "button", "label": "Start", "href": "/payments/start"}}"#;
    const KNOWN: &str =
        r#"repository: { url: "git@gitlab.acme.test:docs/guide.git", branch: next }"#;
    const UNKNOWN: &str = r#"repository: { url: "https://git.acme.test/docs.git", branch: main }"#;
    const SITES: [(&str, &str, &str); 7] = [
        (
            "always",
            r#""theme": "mint", "interaction": {"drilldown": true}"#,
            KNOWN,
        ),
        (
            "never",
            r#""theme": "willow", "interaction": {"drilldown": false}"#,
            UNKNOWN,
        ),
        ("willow", r#""theme": "willow""#, NONE),
        ("mint", r#""theme": "mint""#, NONE),
        ("styled", r#""theme": "mint""#, NONE),
        (
            "orange",
            r##""theme": "aspen", "colors": {"primary": "#ff8800"}, "styling": {"codeblocks": "dark"}"##,
            NONE,
        ),
        (
            "dark",
            r#""theme": "linden", "appearance": {"default": "dark", "strict": true}"#,
            NONE,
        ),
    ];
    const STYLED: &str = "<div className=\"brand\"><div className=\"cover fixed inset-0 z-50 \
        bg-black/50 md:w-[300px]\">x</div></div>\n\n<table><thead><tr style={{background: \
        '#111', color: '#fff'}}><th>Name</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>";
    const TABBED: &str = "## Before\n\n<Tabs>\n<Tab title=\"Linux\">\n## Install\n\n### Check\n</Tab>\n\
        <Tab title=\"macOS\">\n## Install with brew\n</Tab>\n</Tabs>\n\n## After\n";
    const REFUNDS: &str = "Give it back.\n\n```bash\necho one\n```\n\n```bash\necho two\necho three, \
        which is a line that is longer than its block and longer than the screen of any phone and of most windows\n```\n";
    const STYLES: &str = ".brand { color: rgb(1, 2, 3) !important } .dark .brand { border-left: 3px \
        solid } .cover { top: -900px; z-index: 9999 } #navbar { background: rgb(4, 5, 6) } #sidebar \
        { position: fixed; inset: 0 } body { background: rgb(7, 8, 9) } a { color: rgb(9, 9, 9) }";
    let setup = SITES
        .iter()
        .fold(Setup::new(), |setup, (project, _, record)| {
            setup.site(project, record)
        });
    let edge = setup.start();
    for (project, setting, _) in SITES {
        let navigation = r#"{"groups": [{"group": "Guides", "pages": ["index", {"group": "Payments", "icon": "star", "pages": ["payments/start", "payments/refunds"]}]}]}"#;
        let config = format!(
            r#"{{"name": "Acme", {setting}, "navbar": {BUTTON}, "navigation": {navigation}}}"#
        );
        let is_styled = project == "styled";
        let mut files = vec![
            ("docs.json", &*config),
            ("index.mdx", if is_styled { STYLED } else { "Welcome." }),
            (
                "payments/start.mdx",
                if is_styled { TABBED } else { "Take one." },
            ),
            ("payments/refunds.mdx", REFUNDS),
        ];
        files.extend(is_styled.then_some(("style.css", STYLES)));
        edge.publish(project, &files);
    }
    edge
}

/// Runs a file of `tests/browser` with the bundled example.
#[track_caller]
fn passes(file: &str) {
    let edge = serving();
    let site = format!("http://{HOST}:{}", edge.http.port());
    run(file, ("WAYPOST_SITE", &site));
}

/// Runs a file of `tests/browser`.
#[track_caller]
fn run(file: &str, place: (&str, &str)) {
    let packages = client("browser", "playwright-core@1.65.1");
    let output = Command::new("node")
        .args(["--test", "--test-reporter=spec"])
        .arg(Path::new("tests/browser").join(file))
        .env(place.0, place.1)
        .env("WAYPOST_CLIENT", packages)
        .env("WAYPOST_CHROMIUM", "/usr/bin/chromium")
        .output()
        .unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output_text}");
}

#[test]
fn the_rules_of_the_navigation_are_visible() {
    passes("navigation.mjs");
}

#[test]
fn a_page_can_be_read_copied_and_linked() {
    passes("reading.mjs");
}

#[test]
fn search_finds_pages_in_the_language_and_version_of_the_reader() {
    passes("search.mjs");
}

#[test]
fn icons_and_diagrams_are_visible() {
    passes("drawn.mjs");
}

#[test]
fn settings_change_the_page() {
    let edge = settings();
    let domain = format!("waypost.localhost:{}", edge.http.port());
    run("settings.mjs", ("WAYPOST_DOMAIN", &domain));
}

#[test]
fn every_page_can_be_used_without_scripts() {
    passes("plain.mjs");
}

#[test]
fn every_kind_of_page_is_accessible_stable_and_small() {
    passes("quality.mjs");
}

#[test]
fn the_api_reference_of_the_example_matches_the_api() {
    let shown = std::fs::read_to_string(example().join("api/openapi.json")).unwrap();
    assert!(
        shown == include_str!("../../src/deploy/api/openapi.json"),
        "copy src/deploy/api/openapi.json to conf/demo/docs/api"
    );
}

#[test]
fn the_example_has_no_findings() {
    let docs = example();
    let docs = docs.to_str().unwrap();
    let checked = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["check", docs, "--root", docs, "--strict"])
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

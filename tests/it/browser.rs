//! The bundled example and some small sites in a browser: the real binary, headless Chromium.
//!
//! The assertions are in `tests/browser/`, in JavaScript; this file starts a gateway and runs
//! them. Chromium is Debian's, driven by `playwright-core`; `make test` installs both. A
//! failure names the page and the rule.
//!
//! Sources: WCAG 2.2, as checked by `axe-core`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, Weak};
use std::thread;

use crate::clients::client;
use crate::edge::{Edge, Setup};
use crate::ports::free_address;

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
    const SITES: [(&str, &str, &str); 8] = [
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
        (
            "menu",
            r#""feedback": {"thumbs": true}, "search": {"prompt": "Ask Acme"}, "errors": {"404": {"title": "Lost", "description": "See [refunds](/payments/refunds)."}},
               "contextual": {"display": "toc", "options": ["copy", "claude", "vscode", "mcp", {"title": "Report", "href": {"base": "https://acme.test/new", "query": [{"key": "page", "value": "$page"}, {"key": "at", "value": "$path"}]}}]}"#,
            NONE,
        ),
    ];
    const STYLED: &str = "<div className=\"brand\"><div className=\"cover fixed inset-0 z-50 \
        bg-black/50 md:w-[300px]\">x</div></div>\n\n<table><thead><tr style={{background: \
        '#111', color: '#fff'}}><th>Name</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>";
    const TABBED: &str = "## Before\n\n<Tabs>\n<Tab title=\"Linux\">\n## Install\n\n### Check\n</Tab>\n\
        <Tab title=\"macOS\">\n## Install with brew\n</Tab>\n</Tabs>\n\n## After\n";
    const REFUNDS: &str = "Give it back.\n\n```bash\necho one\n```\n\n```bash\necho two\necho three, \
        which is a line that is longer than its block and longer than the screen of any phone and of most windows\n```\n\n\
        ```js\nlet a = 1; // [!code --]\nlet a = 2; // [!code ++]\nlet b = 3; // [!code ++]\nlet c = 4;\n```\n\n\
        ```diff\n@@ -1 +1 @@\n-let a = 1;\n+let a = 2;\n let b = 3;\n```\n";
    const STYLES: &str = ".brand { color: rgb(1, 2, 3) !important } .dark .brand { border-left: 3px \
        solid } .cover { top: -900px; z-index: 9999 } #navbar { background: rgb(4, 5, 6) } #sidebar \
        { position: fixed; inset: 0; outline: 900px solid; box-shadow: 0 0 0 900px red } main { \
        margin: -200px 0 0 -320px } body { background: rgb(7, 8, 9); display: grid } #navbar, \
        #body-content { grid-area: 1 / 1 } #navbar { filter: drop-shadow(0 300px red) } a { color: rgb(9, 9, 9) }";
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
        let is_styled = matches!(project, "styled" | "menu");
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

/// Starts a gateway with sites that have what few pages have: one in English, one in Hebrew.
fn rare() -> Edge {
    const PERCENT: &str = "## One {#a%b}\n\nText.\n\n## Two {#100%25zz%}\n\n<Tabs>\n<Tab title=\"Left\">\nOne\n</Tab>\n\
        <Tab title=\"Right\">\nTwo\n</Tab>\n</Tabs>\n";
    const GROUPS: &str = "<Tabs>\n<Tab title=\"Linux\">\nOne\n</Tab>\n<Tab title=\"macOS\">\nTwo\n</Tab>\n</Tabs>\n\n\
        <Tabs sync={false}>\n<Tab title=\"Linux\">\nThree\n</Tab>\n<Tab title=\"macOS\">\nFour\n</Tab>\n</Tabs>\n\n\
        <CodeGroup dropdown>\n```bash Linux\napt-get\n```\n\n```bash macOS\nbrew\n```\n</CodeGroup>\n";
    const NUMBERS: &str = "<Tabs defaultTabIndex={1}>\n<Tab title=\"First\">\nOne\n</Tab>\n<Tab title=\"Second\">\nTwo\n</Tab>\n</Tabs>\n\n\
        <Steps>\n<Step title=\"Seventh\" stepNumber={7}>\nGo\n</Step>\n<Step title=\"Eighth\">\nOn\n</Step>\n</Steps>\n";
    const CLOSED: &str = "<Accordion title=\"More\">\nUnder it\n</Accordion>\n";
    const TIPS: &str = "Text.\n\n<p style={{textAlign: 'right'}}><Tooltip tip=\"A text of one line or more, which a reader \
        sees who points at the term\">term</Tooltip></p>\n\n\
        | Name | <Tooltip tip=\"Seconds, with one digit after the point, as in a log\">Time</Tooltip> |\n|---|---|\n| a | 1.0 |\n";
    const HEBREW: &str = "הפקודה `--help` מציגה את `.env`, ומקש <kbd>F1.</kbd> עוזר.\n\n\
        <Tree>\n<Tree.Folder name=\"docs/\" defaultOpen>\n<Tree.File name=\".env\" />\n</Tree.Folder>\n</Tree>\n\n\
        <ParamField query=\"limit\" type=\"string[]\" default=\"-1\">\nמספר.\n</ParamField>\n\n<Accordion>\nטקסט\n</Accordion>\n\n\
        <Tabs>\n<Tab>\nטקסט\n</Tab>\n</Tabs>\n\n<View>\nטקסט\n</View>\n\n";
    let long = format!("{HEBREW}```text expandable\n{}```\n", "line\n".repeat(20));
    let edge = Setup::new().site("rare", "").site("hebrew", "").start();
    let pages = r#"{"name": "Acme", "navigation": {"pages": ["index", "percent", "groups", "numbers", "closed", "tips"]}}"#;
    edge.publish(
        "rare",
        &[
            ("docs.json", pages),
            ("index.mdx", "Welcome."),
            ("percent.mdx", PERCENT),
            ("groups.mdx", GROUPS),
            ("numbers.mdx", NUMBERS),
            ("closed.mdx", CLOSED),
            ("tips.mdx", TIPS),
        ],
    );
    let hebrew = r#"{"name": "Acme", "navigation": {"languages": [{"language": "he", "pages": ["index"]}]}}"#;
    edge.publish("hebrew", &[("docs.json", hebrew), ("index.mdx", &*long)]);
    edge
}

#[test]
fn pages_with_what_few_pages_have_can_be_read() {
    let edge = rare();
    let domain = format!("waypost.localhost:{}", edge.http.port());
    run("rare.mjs", ("WAYPOST_DOMAIN", &domain));
}

/// An API for the forms of endpoints. It answers every request with what it received, and allows
/// requests of other origins or not.
struct Api {
    address: SocketAddr,
}

impl Api {
    fn start(allows: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A browser may close a connection that it opened early.
                let _hung_up = Self::respond(stream, allows);
            }
        });
        Self { address }
    }

    fn respond(mut stream: TcpStream, allows: bool) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let field = |name: &str| {
            let mut fields = head.iter().filter_map(|line| line.split_once(": "));
            let found = fields.find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        let length = field("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let echo = serde_json::json!({
            "request": head[0], "key": field("x-key"), "authorization": field("authorization"),
            "type": field("content-type"), "cookie": field("cookie"),
            "body": String::from_utf8_lossy(&body),
        });
        let (status, body) = match head[0].starts_with("OPTIONS ") {
            true => ("204 No Content", String::new()),
            false if head[0].contains("/missing") => ("404 Not Found", "gone".to_owned()),
            false => ("200 OK", echo.to_string()),
        };
        let cors = match allows {
            true => {
                "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: *\r\n\
                 Access-Control-Allow-Headers: authorization, content-type, x-key\r\n\
                 Access-Control-Expose-Headers: x-request\r\nX-Request: r1\r\n"
            }
            false => "",
        };
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{cors}Content-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        )
    }
}

#[test]
fn a_request_is_sent_from_the_page_of_its_endpoint() {
    let (open, closed) = (Api::start(true), Api::start(false));
    let gone = free_address();
    let servers = [open.address, closed.address, gone];
    let servers = servers
        .map(|address| format!(r#"{{"url": "http://{address}/v1"}}"#))
        .join(", ");
    let tenants = format!(
        r#"{{"url": "http://{{tenant}}.acme.localhost:{}/v1", "variables": {{"tenant": {{"default": "a"}}}}}}"#,
        open.address.port()
    );
    let specification = format!(
        r##"{{"openapi": "3.1.0", "info": {{"title": "Pay", "version": "1"}}, "servers": [{servers}, {tenants}],
        "components": {{"securitySchemes": {{"key": {{"type": "apiKey", "in": "header", "name": "X-Key"}}, "basic": {{"type": "http", "scheme": "basic"}}}}}},
        "security": [{{"key": []}}, {{"basic": []}}],
        "paths": {{"/pay/{{id}}": {{"post": {{"summary": "Pay", "parameters": [
            {{"name": "id", "in": "path", "required": true, "schema": {{"type": "string"}}}},
            {{"name": "tags", "in": "query", "schema": {{"type": "array", "items": {{"type": "string"}}}}}},
            {{"name": "mode", "in": "query", "schema": {{"enum": ["fast", "slow"]}}}}],
          "requestBody": {{"content": {{"application/json": {{"example": {{"sum": 3}}}}, "application/x-www-form-urlencoded": {{"schema": {{"properties": {{"sum": {{"type": "integer"}}}}}}}}}}}},
          "responses": {{"200": {{"description": "Paid"}}}}}}}},
          "/missing": {{"get": {{"summary": "Missing", "security": [], "responses": {{}}}}}}}}}}"##
    );
    let edge = Setup::new().site("pay", "").site("simple", "").start();
    for (project, display) in [("pay", "interactive"), ("simple", "simple")] {
        let config = format!(
            r#"{{"name": "Pay", "api": {{"openapi": "api.json", "playground": {{"display": "{display}"}}}},
            "navigation": {{"groups": [{{"group": "Guides", "pages": ["index"]}}, {{"group": "API", "openapi": {{"source": "api.json", "directory": "api"}}}}]}}}}"#
        );
        let files = [
            ("docs.json", &*config),
            ("index.mdx", "Welcome."),
            ("api.json", &specification),
        ];
        edge.publish(project, &files);
    }
    let domain = format!("waypost.localhost:{}", edge.http.port());
    run("try.mjs", ("WAYPOST_DOMAIN", &domain));
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
fn the_example_has_no_diagnostics() {
    let docs = example();
    let docs = docs.to_str().unwrap();
    let checked = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["check", docs, "--root", docs, "--strict"])
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

//! `waypost preview`: a saved change is shown at once.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The longest time until a change is shown; other tests run at the same time.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A preview that runs until it is dropped.
struct Preview {
    directory: TempDir,
    process: Child,
    _output: BufReader<ChildStdout>,
    port: u16,
}

/// The event stream that a browser reads.
struct Events(BufReader<TcpStream>);

impl Preview {
    fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let root = directory.path();
        write(root, "docs.json", CONFIG);
        write(root, "index.mdx", "# Welcome\n\nThe first text.");
        write(root, "guide.mdx", "See [the start](/).");
        Self::of(directory, "")
    }

    /// Shows the documentation in a directory of a repository.
    fn of(directory: TempDir, documentation: &str) -> Self {
        let root = directory.path();
        let mut process = Command::new(env!("CARGO_BIN_EXE_waypost"))
            .args(["preview", "--port", "0", "--root"])
            .arg(root)
            .arg(root.join(documentation))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let port = line
            .trim()
            .trim_end_matches('/')
            .rsplit(':')
            .next()
            .unwrap();
        Self {
            port: port.parse().unwrap_or_else(|_| panic!("{line}")),
            directory,
            process,
            _output: output,
        }
    }

    fn save(&self, path: &str, text: &str) {
        write(self.directory.path(), path, text);
    }

    /// Requests a path and returns the whole response.
    fn get_as(&self, path: &str, fields: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    fn get(&self, path: &str) -> String {
        self.get_as(path, "Host: localhost\r\n")
    }

    fn events(&self) -> Events {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let path = "/_waypost/preview/events";
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        Events(BufReader::new(stream))
    }
}

impl Drop for Preview {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Events {
    /// Waits for the next event of a name and returns its data.
    fn next(&mut self, name: &str) -> u64 {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "no event {name}");
            if line.trim_end() == format!("event: {name}") {
                line.clear();
                self.0.read_line(&mut line).unwrap();
                return line.trim().trim_start_matches("data: ").parse().unwrap();
            }
        }
    }

    /// Waits until the site has a later version than this.
    fn site_after(&mut self, version: u64) -> u64 {
        loop {
            let now = self.next("site");
            if now > version {
                return now;
            }
        }
    }
}

const CONFIG: &str = r#"{"name": "Acme", "navigation": {"pages": ["index", "guide"]}}"#;

/// Writes a file in one step: the preview would show a file that is empty for a moment.
fn write(root: &Path, path: &str, text: &str) {
    let (new, path) = (tempfile::NamedTempFile::new().unwrap(), root.join(path));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(new.path(), text).unwrap();
    new.persist(path).unwrap();
}

#[test]
fn a_page_of_an_earlier_preview_is_not_taken_for_the_current_one() {
    let earlier = Preview::start();
    let version = earlier.events().site_after(0);
    drop(earlier);
    let later = Preview::start();
    assert_ne!(later.events().site_after(0), version);
}

#[test]
fn a_file_that_a_link_names_is_watched_too() {
    let directory = TempDir::new().unwrap();
    let root = directory.path();
    write(root, "docs/docs.json", CONFIG);
    write(root, "docs/guide.mdx", "See [the start](/).");
    write(root, "shared/index.mdx", "# Welcome\n\nThe first text.");
    let link = root.join("docs/index.mdx");
    std::os::unix::fs::symlink("../shared/index.mdx", link).unwrap();
    let preview = Preview::of(directory, "docs");
    let mut events = preview.events();
    let version = events.site_after(0);
    assert!(preview.get("/").contains("The first text."));
    preview.save("shared/index.mdx", "# Welcome\n\nThe second text.");
    events.site_after(version);
    assert!(preview.get("/").contains("The second text."));
}

#[test]
fn the_search_finds_what_was_saved_a_moment_ago() {
    let preview = Preview::start();
    let mut events = preview.events();
    let version = events.site_after(0);
    let ask = |word: &str| preview.get(&format!("/_waypost/search?q={word}"));
    assert!(
        ask("whales").contains("\"results\":[]"),
        "{}",
        ask("whales")
    );
    preview.save("guide.mdx", "Whales sing.");
    events.site_after(version);
    assert!(
        ask("whales").contains("\"url\":\"/guide\""),
        "{}",
        ask("whales")
    );
}

#[test]
fn a_saved_page_is_shown_when_the_browser_is_notified() {
    let preview = Preview::start();
    let mut events = preview.events();
    let mut version = events.site_after(0);
    assert!(preview.get("/").contains("The first text."));
    for text in ["The second text.", "The third text."] {
        let since = Instant::now();
        preview.save("index.mdx", text);
        version = events.site_after(version);
        let page = preview.get("/");
        assert!(page.contains(text), "{page}");
        assert!(
            page.contains(&format!("data-version=\"{version}\"")),
            "{page}"
        );
        assert!(since.elapsed() < TIMEOUT, "{:?}", since.elapsed());
    }
}

#[test]
fn an_added_page_is_shown_and_a_removed_page_is_not_found() {
    let preview = Preview::start();
    let mut events = preview.events();
    let version = events.site_after(0);
    preview.save("more.mdx", "More to read.");
    let version = events.site_after(version);
    assert!(preview.get("/more").contains("More to read."));
    fs::remove_file(preview.directory.path().join("more.mdx")).unwrap();
    events.site_after(version);
    assert!(preview.get("/more").starts_with("HTTP/1.1 404"));
}

#[test]
fn diagnostics_are_shown_in_the_page_and_never_end_the_preview() {
    let preview = Preview::start();
    let mut events = preview.events();
    let version = events.site_after(0);
    events.next("diagnostics");
    preview.save("docs.json", "{\"name\": \"Acme\", ");
    loop {
        events.next("diagnostics");
        let page = preview.get("/guide");
        assert!(
            page.contains("the start"),
            "the last good page stays: {page}"
        );
        if page.contains("<strong>error</strong> <code>docs.json:1:") {
            break;
        }
    }
    preview.save("docs.json", &CONFIG.replace("Acme", "Renamed"));
    events.site_after(version);
    assert!(preview.get("/guide").contains("Renamed"));
}

#[test]
fn discovery_and_lists_are_served_as_on_the_edge() {
    let preview = Preview::start();
    preview.events().site_after(0);
    let skill = preview.get("/skill.md");
    assert!(skill.starts_with("HTTP/1.1 200 OK"), "{skill}");
    assert!(skill.contains("text/markdown"), "{skill}");
    let list = preview.get("/llms.txt");
    let address = format!("http://localhost:{}/guide.md", preview.port);
    assert!(list.contains(&address), "{list}");
    let card = preview.get("/.well-known/agent-card.json");
    assert!(card.contains("\"protocolVersion\""), "{card}");
    let fields = "Host: localhost\r\nAccept: text/markdown\r\n";
    assert!(preview.get_as("/guide", fields).contains("text/markdown"));
}

#[test]
fn a_preview_is_shown_by_every_name_of_the_machine() {
    let preview = Preview::start();
    preview.events().site_after(0);
    for name in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"] {
        for host in [name.to_owned(), format!("{name}:{}", preview.port)] {
            let page = preview.get_as("/", &format!("Host: {host}\r\n"));
            assert!(page.starts_with("HTTP/1.1 200 OK"), "{host}: {page}");
        }
    }
    let page = preview.get_as("/", "Host: 192.0.2.1\r\n");
    assert!(page.starts_with("HTTP/1.1 421"), "{page}");
}

#[test]
fn a_page_of_another_site_cannot_read_a_preview() {
    let preview = Preview::start();
    preview.events().site_after(0);
    let foreign = preview.get_as("/", "Host: evil.test\r\n");
    assert!(foreign.starts_with("HTTP/1.1 421"), "{foreign}");
    assert!(!foreign.contains("The first text."), "{foreign}");
    let page = preview.get("/");
    assert!(page.contains("script-src 'self'"), "{page}");
    assert!(page.contains("Cache-Control: no-store"), "{page}");
}

//! Limits of size that the node checks before it publishes, and an edge before it fetches: whatever
//! is published can be fetched. Limits of connections on which no token was sent.

use std::net::Ipv4Addr;
use std::time::Duration;

use waypost::release::{INVENTORY_BYTES_MAX, PATH_LENGTH_MAX, Release, ReleaseFile, ReleasePath};

use super::rollout::{generation, publish_release};
use super::*;
use crate::http::Connection;
use crate::repository::{self, Repository};

/// Returns a release whose inventory has more than this many bytes, because its paths are long.
fn release_with_inventory_of(bytes: usize) -> Release {
    let mut release = Release::builder();
    let directories = vec!["d".repeat(250); 12].join("/");
    assert!(directories.len() + 20 < PATH_LENGTH_MAX);
    for number in 0..=bytes / directories.len() {
        let path = ReleasePath::parse(&format!("{directories}/{number}")).unwrap();
        let file = ReleaseFile::new("the same bytes", "text/plain");
        release.insert(path, file).unwrap();
    }
    release.finish()
}

#[test]
fn an_edge_fetches_a_long_inventory_that_the_node_puts() {
    let (_, source, edge) = source_and_edge();
    let before = generation(&edge);
    // A third of the limit, so that the test does not need more memory.
    let release = release_with_inventory_of(usize::try_from(INVENTORY_BYTES_MAX / 3).unwrap());
    publish_release(&source, &release);
    wait_until("the edge has the release", || {
        assert!(!cause(&edge).contains("more than"), "{}", cause(&edge));
        generation(&edge) != before
    });
}

#[test]
fn a_file_that_no_edge_would_fetch_is_not_published() {
    let setup = repository::setup();
    let docs = Repository::new(&setup, "docs");
    let listen = free_address();
    let edges = format!("{{ listen: \"{listen}\", allow_http: true, object_bytes_max: 1048576 }}");
    let source = setup.acme(&docs.record()).conf("edges", &edges).start();
    let push = |bytes: usize, text: &str| {
        let files = [
            ("skill.md", text),
            (
                "docs.json",
                r#"{ "name": "Acme", "navigation": { "pages": ["index"] } }"#,
            ),
            ("index.md", "# Acme\n\nRead the [paper](/paper.pdf).\n"),
            ("paper.pdf", &*"x".repeat(bytes)),
        ];
        docs.push("Change", &files);
        repository::follow(&source.setup, &repository::queue(&source.setup, "acme"))
    };
    let small = push(1 << 20, SKILL);
    assert_eq!(small["status"], "success", "{small:#}");
    let more = ", object_bytes_max: 1048576";
    let edge = edge_of(&source.setup, &url(listen), "paris", more).start();
    wait_until_serves(&edge, SKILL);
    // One byte more than edges fetch: the author learns which file it is, and who can allow it.
    let large = push((1 << 20) + 1, PAY);
    assert_eq!(large["status"], "failure", "{large:#}");
    assert_eq!(large["attempts"], 1, "{large:#}");
    let why = large["summary"].as_str().unwrap();
    for part in ["paper.pdf", "1048577 bytes", "`edges.object_bytes_max`"] {
        assert!(why.contains(part), "{why}");
    }
    // `waypost publish` rejects the file too.
    let root = source.setup.path("docs").display().to_string();
    let publish = ["publish", &*root, "--root", &*root, "--project", "acme"];
    let published = source.setup.run(&publish);
    assert_eq!(published.status.code(), Some(2), "{published:?}");
    let said = String::from_utf8(published.stderr).unwrap();
    assert!(said.contains("`edges.object_bytes_max`"), "{said}");
    let last = push(
        1 << 20,
        "---\nname: sdk\ndescription: Last.\n---\n\n# Last\n",
    );
    assert_eq!(last["status"], "success", "{last:#}");
    wait_until("the last one", || served(&edge, DOMAIN).contains("# Last"));
}

#[test]
fn an_edge_says_which_file_is_longer_than_it_fetches() {
    let (_, source, edge) = source_and_edge_with(", object_bytes_max: 4096");
    let long = format!("{PAY}{}", "word ".repeat(2000));
    source.publish("acme", &[("skill.md", &long)]);
    wait_until("it says why", || {
        let cause = cause(&edge);
        // The file is the longest one: the skill, or one that has its text.
        cause.contains("bytes, and at most 4096 are fetched (`store.follow.object_bytes_max`)")
    });
    assert_eq!(served(&edge, DOMAIN), SKILL);
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&edge, PAY);
}

/// Sends a request without a token, and returns the status of its response; `None` if the
/// connection is closed instead.
fn ask_from(from: Ipv4Addr, to: SocketAddr) -> Option<u16> {
    let mut connection = Connection::over(http::connect_from(from, to));
    let head = "GET /v1/follow/changes HTTP/1.1\r\nHost: source\r\n\r\n";
    connection.try_send(head.as_bytes()).ok()?;
    connection.receive("GET").map(|response| response.status)
}

#[test]
fn a_connection_without_a_token_takes_no_place_for_long_and_an_address_has_few() {
    const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
    // The edge follows on connections that count no longer: it has a token.
    let (listen, source, edge) = source_and_edge();
    let silent: Vec<_> = (0..64)
        .map(|_| http::connect_from(Ipv4Addr::LOCALHOST, listen))
        .collect();
    let since = Instant::now();
    // The listener accepts them in order.
    assert_eq!(ask_from(Ipv4Addr::LOCALHOST, listen), None);
    assert_eq!(ask_from(OTHER, listen), Some(401));
    // Each is closed soon, also one on which requests without a token come.
    let mut busy = Connection::over(http::connect_from(OTHER, listen));
    let get = "GET /v1/follow/changes HTTP/1.1\r\nHost: source\r\n\r\n";
    let mut responses = 0;
    while busy.try_send(get.as_bytes()).is_ok() && busy.receive("GET").is_some() {
        responses += 1;
        http::silence(Duration::from_millis(200));
        assert!(since.elapsed() < TIMEOUT, "{responses} responses");
    }
    assert!(responses > 0);
    for stream in silent {
        assert_eq!(Connection::over(stream).receive_rest(), b"");
    }
    assert!(since.elapsed() < TIMEOUT);
    assert_eq!(ask_from(Ipv4Addr::LOCALHOST, listen), Some(401));
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&edge, PAY);
}

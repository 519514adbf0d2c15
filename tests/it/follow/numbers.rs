//! What edges count for the owners of sites reaches the node that they follow, once.

use std::path::Path;

use serde_json::Value;

use super::*;

/// A source with a page, which counts nothing itself in these tests.
fn counting(listen: SocketAddr) -> Edge {
    let source = source(listen).start();
    let files = [
        ("skill.md", SKILL),
        ("docs.json", NAVIGATION),
        ("guide.md", "# Guide\n"),
    ];
    source.publish("acme", &files);
    source
}

fn read(edge: &Edge, times: u64) {
    for _ in 0..times {
        let page = edge.get(DOMAIN, "/guide");
        assert_eq!(page.status, 200, "{}", page.text());
    }
}

/// Returns how often the page was read, as the owner sees it.
fn counted(source: &Setup) -> u64 {
    let printed = output(source, &["site", "numbers", "acme", "--format", "json"]);
    let numbers: Value = serde_json::from_str(&printed).unwrap();
    let pages = numbers["pages"].as_array().unwrap();
    let guide = pages.iter().find(|page| page["path"] == "/guide");
    guide.map_or(0, |guide| guide["html"].as_u64().unwrap())
}

/// Returns whether an edge has counts that it has not sent.
fn waits(cache: &Path) -> bool {
    let batches = std::fs::read_dir(cache.join("numbers-outbox"));
    batches.is_ok_and(|mut batches| {
        batches.any(|batch| {
            let name = batch.unwrap().file_name();
            name.to_str().unwrap().parse::<u64>().is_ok()
        })
    })
}

/// Stops an edge, which then sends its counts.
fn stop(edge: Edge) -> Setup {
    edge.signal("TERM");
    edge.ended()
}

#[test]
fn what_edges_count_is_counted_once_at_their_source() {
    let [first, relay] = [free_address(), free_address()];
    let source = counting(first);
    let edges = format!("{{ listen: \"{relay}\", allow_http: true }}");
    let middle = edge_of(&source.setup, &url(first), "middle", "").conf("edges", &edges);
    let middle = middle.start();
    wait_until_serves(&middle, SKILL);
    // An edge of an edge, whose acknowledgement is lost.
    let between = Between::start(relay);
    let last = edge_of(&source.setup, &url(between.address), "last", "").start();
    wait_until_serves(&last, SKILL);
    read(&last, 3);
    between.lie(|path, response| {
        if path.contains("numbers") {
            assert!(response.starts_with(b"HTTP/1.1 204"), "{response:?}");
            *response = empty(503);
        }
    });
    let mut setup = stop(last);
    // On a busy machine, the last seconds of the process may be too short.
    let since = Instant::now();
    while counted(&source.setup) == 0 {
        assert!(since.elapsed() < 2 * TIMEOUT, "counted in time");
        setup = stop(setup.start());
    }
    assert_eq!(counted(&source.setup), 3);
    assert!(waits(&setup.path("cache")));
    // It sends the same again, and more in another batch.
    between.be_honest();
    let last = setup.start();
    wait_until("sent again", || !waits(&last.setup.path("cache")));
    assert_eq!(counted(&source.setup), 3);
    read(&last, 1);
    let last = stop(last).start();
    wait_until("sent", || !waits(&last.setup.path("cache")));
    wait_until("counted", || counted(&source.setup) == 4);
    read(&middle, 2);
    let middle = stop(middle).start();
    wait_until("counted", || counted(&source.setup) == 6);
    drop((last, middle));
}

#[test]
fn what_an_edge_counts_while_its_source_is_away_is_sent_later() {
    let listen = free_address();
    let source = counting(listen);
    let edge = edge_of(&source.setup, &url(listen), "paris", "").start();
    wait_until_serves(&edge, SKILL);
    let source = kill(source);
    for reads in 1..=2 {
        read(&edge, reads);
    }
    let setup = stop(edge);
    assert!(waits(&setup.path("cache")));
    // It is not lost when the edge is killed.
    let edge = kill(setup.start());
    assert_eq!(counted(&source), 0);
    let source = source.start();
    let edge = edge.start();
    wait_until("sent", || !waits(&edge.setup.path("cache")));
    assert_eq!(counted(&source.setup), 3);
    // The numbers go with their site, and an edge does not bring them back.
    read(&edge, 1);
    source.remove_site("acme");
    wait_until("removed", || !knows(&source, DOMAIN));
    stop(edge);
    source.write_site("acme", &format!("domains: [{DOMAIN}]"));
    wait_until("there again", || knows(&source, DOMAIN));
    assert_eq!(counted(&source.setup), 0);
}

#[test]
fn counts_are_taken_only_from_an_edge_and_within_a_bound() {
    let listen = free_address();
    let source = counting(listen);
    let token = output(&source.setup, &["edge", "add", "paris"]);
    let path = "/v1/follow/numbers?life=a&sequence=1";
    let ask = |token: &str, path: &str, length: usize, content: &[u8]| {
        let mut stream = TcpStream::connect(listen).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(content).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        String::from_utf8(status[9..].to_vec()).unwrap()
    };
    // A refused content is not even read.
    assert_eq!(ask("waypost_edge_paris_00", path, 1 << 30, b""), "401");
    assert_eq!(ask(&token, path, 1 << 30, b""), "413");
    assert_eq!(ask(&token, "/v1/follow/changes", 9, b""), "405");
    let packed = |content: &[u8]| zstd::bulk::compress(content, 1).unwrap();
    let send = |content: &[u8]| ask(&token, path, content.len(), content);
    assert_eq!(send(b"no compression"), "400");
    assert_eq!(send(&packed(b"{}\n")), "400");
    assert_eq!(send(&packed(&vec![b'\n'; 17 << 20])), "400");
    assert_eq!(ask(&token, "/v1/follow/numbers", 0, b""), "400");
    let day = waypost::clock::Day::of(waypost::clock::Clock::System.now());
    let line = format!(
        r#"{{"project":"acme","day":"{day}","numbers":{{"version":1,"pages":{{"/guide":{{"html":{{"browsers":2}}}}}}}}}}"#
    );
    assert_eq!(send(&packed(line.as_bytes())), "204");
    assert_eq!(counted(&source.setup), 2);
}

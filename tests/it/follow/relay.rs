//! Edges of an edge: signed and encrypted messages of the first source go through unchanged.

use super::*;

#[test]
fn an_edge_serves_other_edges_and_can_neither_forge_nor_read() {
    let (first, source, middle, relay) = {
        let first = free_address();
        let source = source(first).with_skill().start();
        let listen = free_address();
        let edges = format!("{{ listen: \"{listen}\", allow_http: true }}");
        let setup = edge_of(&source.setup, &url(first), "middle", "").conf("edges", &edges);
        (first, source, setup.start(), listen)
    };
    wait_until_serves(&middle, SKILL);
    let between = Between::start(relay);
    let last = edge_of(&source.setup, &url(between.address), "last", "").start();
    wait_until_serves(&last, SKILL);
    wait_until("the source knows both", || {
        fleet(&source).matches("following  0 behind").count() == 2
    });
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&last, PAY);
    assert!(middle.metric("follow_passed_requests_total{kind=\"object\",status=\"200\"}") > 0.0);
    // What goes through the relay is checked as if it came from the source.
    between.lie(|path, response| {
        if path.contains("changes") && response.starts_with(b"HTTP/1.1 200") {
            change_end(response);
        }
    });
    source.publish("acme", &[("skill.md", SKILL)]);
    wait_until("it says why", || {
        cause(&last).contains("has signed the message")
    });
    assert_eq!(served(&last, DOMAIN), PAY);
    between.be_honest();
    wait_until_serves(&last, SKILL);
    // A token that the source does not know gets nothing, and no file of the cache.
    let ask = |path: &str| {
        let fields = [("Authorization", "Bearer waypost_edge_last_00")];
        http::request(relay, "GET", "relay", path, &fields).status
    };
    assert_eq!(ask("/v1/follow/snapshot"), 401);
    let digest = cached_digest(&middle);
    assert_eq!(ask(&format!("/v1/follow/objects/{digest}")), 401);
    // A removed edge is refused there too.
    output(&source.setup, &["edge", "remove", "last"]);
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&middle, PAY);
    wait_until("it is refused", || cause(&last).contains("401"));
    // While the first source is away, all serve, and say so.
    let _source = kill(source);
    assert_eq!(served(&middle, DOMAIN), PAY);
    assert_eq!(served(&last, DOMAIN), SKILL);
    wait_until("it says why", || {
        cause(&middle).contains(&first.to_string())
    });
}

/// Returns the digest of a file in the cache of an edge.
fn cached_digest(edge: &Edge) -> String {
    let files = content(edge.setup.path("cache"));
    let mut paths = files.iter().map(|(path, _)| path);
    let path = paths.find(|path| path.starts_with("content")).unwrap();
    // The directory begins the digest, and the name of the file ends it.
    path.to_str().unwrap().split('/').skip(1).collect()
}

#[test]
fn an_edge_gives_no_file_to_a_token_that_only_an_error_of_the_source_has_answered() {
    let listen = free_address();
    let source = source(listen).with_skill().start();
    let between = Between::start(listen);
    let relay = free_address();
    let edges = format!("{{ listen: \"{relay}\", allow_http: true }}");
    let setup = edge_of(&source.setup, &url(between.address), "middle", "").conf("edges", &edges);
    let middle = setup.start();
    wait_until_serves(&middle, SKILL);
    between.lie(|path, response| {
        // A request for changes of the stranger names the status.
        if let Some((_, status)) = path.split_once("identity=stranger") {
            let (status, _) = status.split_once('&').unwrap();
            *response = empty(status.parse().unwrap());
        }
    });
    let digest = cached_digest(&middle);
    for status in [400, 403, 404, 429, 500, 501, 502, 503, 504] {
        let token = format!("Bearer waypost_edge_stranger_{status}");
        let ask = |path: &str| {
            let fields = [("Authorization", &*token)];
            http::request(relay, "GET", "relay", path, &fields).status
        };
        let changes = format!("/v1/follow/changes?identity=stranger{status}&after=0");
        assert_eq!(ask(&changes), status);
        assert_eq!(
            ask(&format!("/v1/follow/objects/{digest}")),
            401,
            "after {status}"
        );
    }
}

//! Rings, freezing and going back: a change that breaks one ring never reaches the next one.

use std::sync::atomic::{AtomicUsize, Ordering};

use waypost::clock::Clock;
use waypost::release::{Release, ReleaseFile, ReleasePath};
use waypost::site::ProjectId;
use waypost::store::{Local, Store, local};

use super::*;
use crate::repository::{self, Repository};

/// Starts a source with two rings, and an edge in each.
fn rings(hold: u64) -> (SocketAddr, Edge, [Edge; 2]) {
    rings_of(Setup::new().acme("").with_skill(), hold)
}

/// Starts a source with these settings and two rings, and an edge in each ring.
fn rings_of(source: Setup, hold: u64) -> (SocketAddr, Edge, [Edge; 2]) {
    let listen = free_address();
    let edges =
        format!("{{ listen: \"{listen}\", allow_http: true, rings: 2, hold_seconds: {hold} }}");
    let source = source.conf("edges", &edges).start();
    let edges = [("first", "0"), ("second", "1")].map(|(name, ring)| {
        let setup = edge_of(&source.setup, &url(listen), name, "");
        output(&source.setup, &["edge", "set", name, "--ring", ring]);
        setup.start()
    });
    (listen, source, edges)
}

/// Promotes a release that no gateway can serve.
fn publish_poison(source: &Edge) {
    let mut poison = Release::builder();
    let file = ReleaseFile::new("this is no documentation", "text/plain");
    poison
        .insert(ReleasePath::parse("poison").unwrap(), file)
        .unwrap();
    publish_release(source, &poison.finish());
}

/// Puts a release into the store of a source, and promotes it.
pub(super) fn publish_release(source: &Edge, release: &Release) {
    let config = local::Config {
        path: source.setup.path("store"),
        ..local::Config::default()
    };
    let store = Store::Local(Local::open(&config, Clock::System).unwrap());
    let project = ProjectId::parse("acme").unwrap();
    let release = store.put(release).unwrap();
    let fence = store.next_fence(&project, 0).unwrap();
    store.promote(&project, release, fence).unwrap();
}

/// Returns the generation of the current release in the cache of an edge.
pub(super) fn generation(edge: &Edge) -> Option<u64> {
    let config = local::Config {
        path: edge.setup.path("cache"),
        ..local::Config::default()
    };
    let store = Store::Local(Local::open(&config, Clock::System).unwrap());
    let current = store.current(&ProjectId::parse("acme").unwrap()).unwrap();
    current.map(|pointer| pointer.current.generation)
}

#[test]
fn a_change_reaches_the_second_ring_after_the_hold() {
    let (_, source, [first, second]) = rings(1);
    wait_until_serves(&first, SKILL);
    wait_until_serves(&second, SKILL);
    wait_until("both follow", || {
        fleet(&source).matches("0 behind").count() == 2
    });
    let published = Instant::now();
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&first, PAY);
    wait_until_serves(&second, PAY);
    assert!(published.elapsed().as_secs_f64() >= 1.0);
    assert_eq!(source.metric("follow_source_frozen"), 0.0);
    wait_until("the metrics", || source.metric("follow_source_edges") > 1.5);
}

#[test]
fn an_update_is_visible_when_the_slowest_edge_serves_it() {
    let setup = repository::setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let setup = setup.acme(&docs.record());
    let (_, source, edges) = rings_of(setup, 5);
    let update = |text: &str| {
        docs.push("Change", &[("skill.md", text)]);
        let id = repository::queue(&source.setup, "acme");
        let record = repository::follow(&source.setup, &id);
        assert_eq!(record["status"], "success", "{record:#}");
        id
    };
    let visible_at = |id: &str| repository::record(&source.setup, id)["visibleAt"].clone();
    wait_until("the second ring begins", || {
        readiness(&edges[1])["status"] == "ready"
    });
    update(PAY);
    edges.iter().for_each(|edge| wait_until_serves(edge, PAY));
    let [first, second] = edges;
    let id = update(SKILL);
    wait_until_serves(&first, SKILL);
    // While it is not visible, the list of edges names the ring that does not have it.
    wait_until("it is named", || {
        fleet(&source).contains("ring 1: the changes of 1 project wait for it.")
    });
    assert!(visible_at(&id).is_null() || served(&second, DOMAIN) == SKILL);
    wait_until("visible", || !visible_at(&id).is_null());
    assert_eq!(served(&second, DOMAIN), SKILL);
}

#[test]
fn an_update_is_visible_only_when_the_second_ring_serves_it_also_after_a_restart() {
    let setup = repository::setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let setup = setup.acme(&docs.record());
    let (_, source, [first, second]) = rings_of(setup, 6);
    let update = |text: &str| {
        docs.push("Change", &[("skill.md", text)]);
        let id = repository::queue(&source.setup, "acme");
        let record = repository::follow(&source.setup, &id);
        assert_eq!(record["status"], "success", "{record:#}");
        id
    };
    update(PAY);
    wait_until_serves(&first, PAY);
    wait_until_serves(&second, PAY);
    let id = update(SKILL);
    wait_until_serves(&first, SKILL);
    // The next process has not seen the edges yet.
    let source = kill(source).start();
    let visible_at = || repository::record(&source.setup, &id)["visibleAt"].clone();
    wait_until("visible", || !visible_at().is_null());
    assert_eq!(served(&second, DOMAIN), SKILL);
}

#[test]
fn an_edge_of_a_ring_that_has_not_begun_is_seen() {
    let listen = free_address();
    let edges = format!("{{ listen: \"{listen}\", allow_http: true, rings: 2 }}");
    let source = Setup::new().acme("").with_skill();
    let source = source.conf("edges", &edges).start();
    // No edge of the first ring follows.
    output(&source.setup, &["edge", "add", "first"]);
    let setup = edge_of(&source.setup, &url(listen), "second", "");
    output(&source.setup, &["edge", "set", "second", "--ring", "1"]);
    let _second = setup.start();
    wait_until("it is seen", || {
        fleet(&source).contains("second  ring 1  following  comparing")
    });
    assert!(fleet(&source).contains("first  ring 0  never_seen"));
}

#[test]
fn an_update_is_not_visible_while_an_edge_cannot_fetch_it() {
    let setup = repository::setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let listen = free_address();
    let edges = format!("{{ listen: \"{listen}\", allow_http: true }}");
    let source = setup.acme(&docs.record()).conf("edges", &edges).start();
    let update = || {
        let id = repository::queue(&source.setup, "acme");
        let record = repository::follow(&source.setup, &id);
        assert_eq!(record["status"], "success", "{record:#}");
        id
    };
    update();
    let between = Between::start(listen);
    let edge = edge_of(&source.setup, &url(between.address), "paris", "").start();
    wait_until_serves(&edge, SKILL);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    between.lie(move |path, response| {
        if path.contains("objects") {
            change_end(response);
        }
        if path.contains("failing=1") {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    docs.push("Change", &[("skill.md", PAY)]);
    let id = update();
    let visible_at = || repository::record(&source.setup, &id)["visibleAt"].clone();
    // The edge has the change and asks for later ones.
    wait_until("it reports twice that it fails", || {
        asked.load(Ordering::SeqCst) > 1
    });
    assert!(visible_at().is_null());
    assert_eq!(served(&edge, DOMAIN), SKILL);
    between.be_honest();
    wait_until_serves(&edge, PAY);
    wait_until("visible", || !visible_at().is_null());
}

#[test]
fn a_poisoned_release_cannot_take_down_two_rings() {
    let (_, source, edges) = rings(1);
    edges.iter().for_each(|edge| wait_until_serves(edge, SKILL));
    let [first, second] = edges;
    let before = generation(&second);
    publish_poison(&source);
    wait_until("the first ring is ill", || {
        fleet(&source).contains("Nothing goes on: first does not serve 1 current releases")
    });
    assert_ne!(generation(&first), before);
    // A restart of each does not let it through: the first edge serves the last good one.
    let source = kill(source).start();
    let first = kill(first).start();
    wait_until_serves(&first, SKILL);
    wait_until("the first ring is still ill", || {
        fleet(&source).contains("does not serve 1 current releases")
    });
    let since = Instant::now();
    while since.elapsed().as_millis() < 2500 {
        // More than twice the hold.
        assert_eq!(generation(&second), before);
        crate::http::pause();
    }
    assert_eq!(served(&second, DOMAIN), SKILL);
    // The mended one reaches both.
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&first, PAY);
    wait_until_serves(&second, PAY);
}

#[test]
fn a_record_that_edges_refuse_stays_in_the_first_ring_and_the_last_good_one_is_served() {
    let listen = free_address();
    let edges = format!("{{ listen: \"{listen}\", allow_http: true, rings: 2, hold_seconds: 1 }}");
    let source = Setup::new().acme("").with_skill();
    let source = source.conf("edges", &edges).start();
    let [first, second] = [("first", "0"), ("second", "1")].map(|(name, ring)| {
        // No site of these edges may have a server on a private address.
        let setup = edge_of(&source.setup, &url(listen), name, "").conf("upstream", "{}");
        output(&source.setup, &["edge", "set", name, "--ring", ring]);
        setup.start()
    });
    wait_until_serves(&first, SKILL);
    wait_until_serves(&second, SKILL);
    source.setup.write_site(
        "acme",
        &format!("domains: [{DOMAIN}, later.test]\norigin: {{ url: \"http://127.0.0.1:9\" }}"),
    );
    wait_until("the first ring is ill", || {
        fleet(&source).contains("Nothing goes on: first does not serve 1 ")
    });
    wait_until("it says why", || {
        cause(&first).contains("the record of acme and of 0 others cannot be served here")
    });
    // A restart of each does not change it.
    let source = kill(source).start();
    let first = kill(first).start();
    wait_until("the first ring is still ill", || {
        fleet(&source).contains("Nothing goes on: first does not serve 1 ")
    });
    let since = Instant::now();
    while since.elapsed().as_millis() < 2500 {
        // More than twice the hold.
        assert_eq!(served(&first, DOMAIN), SKILL);
        assert_eq!(served(&second, DOMAIN), SKILL);
        crate::http::pause();
    }
    let second = kill(second).start();
    assert_eq!(served(&second, DOMAIN), SKILL);
    assert!(!cause(&second).contains("cannot be served here"));
    // The mended one reaches both.
    source
        .setup
        .write_site("acme", &format!("domains: [{DOMAIN}, later.test]"));
    for edge in [&first, &second] {
        wait_until("the mended record", || served(edge, "later.test") == SKILL);
    }
    wait_until("the first ring is well", || {
        !fleet(&source).contains("does not serve")
    });
}

#[test]
fn an_earlier_state_of_another_ring_is_not_accepted() {
    let listen = free_address();
    let edges = format!("{{ listen: \"{listen}\", allow_http: true, rings: 2, hold_seconds: 1 }}");
    let source = Setup::new().acme("").with_skill();
    let source = source.conf("edges", &edges).start();
    let between = Between::start(listen);
    let first = edge_of(&source.setup, &url(listen), "first", "").start();
    let setup = edge_of(&source.setup, &url(between.address), "second", "");
    output(&source.setup, &["edge", "set", "second", "--ring", "1"]);
    let second = setup.start();
    wait_until_serves(&first, SKILL);
    wait_until_serves(&second, SKILL);
    // A snapshot of the first ring is kept by the server between, and sent again later.
    let kept = snapshot_of(listen, &first);
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&second, PAY);
    between.lie(move |path, response| match path.contains("snapshot") {
        true => response.clone_from(&kept),
        false if path.contains("changes") => {
            *response = empty(410);
        }
        false => {}
    });
    wait_until("it says why", || {
        assert_eq!(served(&second, DOMAIN), PAY);
        cause(&second).contains("earlier state")
    });
    assert_eq!(served(&second, DOMAIN), PAY);
    between.be_honest();
    source.publish("acme", &[("skill.md", SKILL)]);
    wait_until_serves(&second, SKILL);
}

#[test]
fn a_frozen_fleet_gets_nothing_and_a_rollback_does_not_wait() {
    let (_, source, [first, second]) = rings(3600);
    wait_until_serves(&first, SKILL);
    // The second ring waits for an hour after the start of the source.
    assert!(!knows(&second, DOMAIN));
    assert!(
        fleet(&source).contains("ring 1: the changes of 1 project wait for it."),
        "{}",
        fleet(&source)
    );
    source.publish("acme", &[("skill.md", PAY)]);
    wait_until_serves(&first, PAY);
    output(&source.setup, &["freeze", "--why", "look at this"]);
    wait_until("it is frozen", || fleet(&source).contains("FROZEN: since"));
    assert!(fleet(&source).contains("look at this"));
    let again = source.publish("acme", &[("skill.md", &skill(3))]);
    source.wait_until_served("acme", again.generation);
    source.write_site("more", "domains: [more.test]");
    wait_until("the source has it", || knows(&source, "more.test"));
    assert_eq!(served(&first, DOMAIN), PAY);
    // Freezing holds over a restart of the source.
    let source = kill(source).start();
    wait_until("the edge is there again", || {
        fleet(&source).contains("first  ring 0  following")
    });
    assert_eq!(served(&first, DOMAIN), PAY);
    assert!(!knows(&first, "more.test"));
    let back = output(&source.setup, &["rollback", "acme"]);
    assert!(
        back.contains("promoted") && back.contains("of acme as"),
        "{back}"
    );
    output(&source.setup, &["unfreeze"]);
    wait_until("more", || knows(&first, "more.test"));
    assert_eq!(served(&first, DOMAIN), PAY);
    // All changes since a time are undone.
    let refused = source.setup.run(&["rollback", "--since", "1999-01-01"]);
    assert!(!refused.status.success());
    let nothing = output(&source.setup, &["rollback", "--since", "2999-01-01"]);
    assert_eq!(nothing, "");
}

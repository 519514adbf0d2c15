//! Faults between an edge and its source: a network that loses everything, an end at each answer.

use std::sync::Condvar;

use super::*;
use crate::namespace::Namespace;

#[test]
fn an_edge_serves_while_the_network_loses_every_answer_and_is_current_afterwards() {
    let network = Namespace::new();
    let [[source_address, _], [_, edge_address]] = &network.links;
    let listen = SocketAddr::new(source_address.parse().unwrap(), free_address().port());
    let source = source(listen).with_skill().start();
    let setup = edge_of(&source.setup, &url(listen), "paris", "")
        .conf(
            "listen",
            &format!("{{ http: [\"{edge_address}:0\"], operator: \"{edge_address}:0\" }}"),
        )
        .wrapped_by(&network.wrapper());
    let edge = setup.start();
    wait_until_serves(&edge, SKILL);
    wait_until("it waits for changes", || {
        fleet(&source).contains("following  0 behind")
    });
    // The source sends the change into a connection that stays open, and nothing arrives.
    network.lose_answers();
    let published = source.publish("acme", &[("skill.md", PAY)]);
    source.wait_until_served("acme", published.generation);
    let sent = |source: &Edge| source.metric("follow_source_lag_revisions{edge=\"paris\"}") > 0.5;
    wait_until("the source sees that it is behind", || sent(&source));
    assert_eq!(served(&edge, DOMAIN), SKILL);
    // A start in the middle of it: from the cache, and the edge says why it does not follow.
    let edge = kill(edge).start();
    assert_eq!(served(&edge, DOMAIN), SKILL);
    wait_until("it says why", || cause(&edge).contains(&listen.to_string()));
    assert_eq!(readiness(&edge)["status"], "degraded");
    // Its age grows as long as the source is away, and the time of contact stays.
    let age = || readiness(&edge)["follow"]["age_seconds"].as_u64().unwrap();
    let contact = || edge.metric("follow_contact_timestamp_seconds");
    let (young, last) = (age(), contact());
    wait_until("the age grows", || {
        assert_eq!(contact(), last);
        age() >= young + 3
    });
    let old = age();
    network.find_answers();
    wait_until_serves(&edge, PAY);
    wait_until("it follows", || readiness(&edge)["status"] == "ready");
    assert!(age() < old, "{} after {old}", age());
    assert!(contact() > last);
}

/// Holds the answer with a number, until the edge is gone.
#[derive(Default)]
struct Hold {
    /// How many answers went through, which one is held, and whether it has arrived.
    state: Mutex<(usize, Option<usize>, bool)>,
    changed: Condvar,
}

impl Hold {
    fn answer(&self) {
        let mut state = self.state.lock().unwrap();
        let number = state.0;
        state.0 += 1;
        if state.1 == Some(number) {
            state.2 = true;
            self.changed.notify_all();
            drop(
                self.changed
                    .wait_while(state, |state| state.1 == Some(number)),
            );
        }
    }

    /// Holds an answer from now on, counted from the next one.
    fn hold(&self, number: usize) {
        let mut state = self.state.lock().unwrap();
        *state = (0, Some(number), false);
    }

    /// Waits until it has arrived; `false` if `is_over` says that there will be none.
    fn has_arrived(&self, is_over: impl Fn() -> bool) -> bool {
        let since = Instant::now();
        loop {
            let state = self.state.lock().unwrap();
            let step = std::time::Duration::from_millis(50);
            let (state, _) = self
                .changed
                .wait_timeout_while(state, step, |state| !state.2)
                .unwrap();
            if state.2 {
                return true;
            }
            drop(state);
            if is_over() {
                return false;
            }
            assert!(since.elapsed() < TIMEOUT);
        }
    }

    fn end(&self) {
        self.state.lock().unwrap().1 = None;
        self.changed.notify_all();
    }
}

#[test]
fn an_edge_that_is_killed_at_each_answer_serves_whole_releases_only() {
    let (_, source, between, mut edge) = source_between_edge();
    let hold = Arc::new(Hold::default());
    let holding = Arc::clone(&hold);
    between.lie(move |path, response| {
        let is_counted = path.contains("changes") || path.contains("objects");
        if is_counted && response.starts_with(b"HTTP/1.1 200") {
            holding.answer();
        }
    });
    let mut before = SKILL.to_owned();
    let mut killed = 0;
    for step in 0.. {
        let text = skill(step);
        // The page and the skill of a release have the same text.
        let files = [
            ("skill.md", &*text),
            ("docs.json", NAVIGATION),
            ("guide.md", &*text),
        ];
        hold.hold(step);
        source.publish("acme", &files);
        let is_over = || served(&edge, DOMAIN) == text;
        if !hold.has_arrived(is_over) {
            hold.end();
            break;
        }
        // The answer is held, so not everything has arrived.
        let here = served(&edge, DOMAIN);
        assert!(here == before || here == text, "{here}");
        let setup = kill(edge);
        hold.end();
        killed += 1;
        edge = setup.start();
        let here = served(&edge, DOMAIN);
        assert!(here == before || here == text, "{here}");
        wait_until_serves(&edge, &text);
        let guide = edge.get(DOMAIN, "/guide.md");
        assert_eq!(guide.body, source.get(DOMAIN, "/guide.md").body);
        before = text;
    }
    // The change, the inventory, and the files.
    assert!(killed >= 3, "{killed}");
}

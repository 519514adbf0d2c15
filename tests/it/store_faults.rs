//! A shared store whose object store fails, hangs or lies, and whose gateways get the
//! updates of one project: nothing is published before it is stored, and nothing goes back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::edge::Setup;
use crate::follow::{Between, edge_of, url};
use crate::ports::free_address;
use crate::queue_postgres::{Worker, wait_until};
use crate::repository::{Repository, follow, key, record, trigger};
use crate::store_postgres::{
    Objects, S3, cluster, command, epochs, init, machine, number, serves, skill,
};

/// A server in front of an object store.
fn in_front_of(s3: &S3) -> (Between, String) {
    let address = s3.address.trim_start_matches("http://").parse().unwrap();
    let between = Between::start(address);
    let url = format!("http://{}", between.address);
    (between, url)
}

fn is_object(path: &str) -> bool {
    path.contains("/content/")
}

#[test]
fn objects_with_other_bytes_of_the_same_length_are_refused_and_fetched_again() {
    let (cluster, s3) = (cluster(), S3::start(false));
    let writer = machine(&cluster, None, &Objects::S3(&s3)).acme("");
    init(&writer);
    writer.publish("acme", &[("skill.md", &skill(0))]);
    let (between, address) = in_front_of(&s3);
    let listen = free_address();
    let gateway = machine(&cluster, None, &Objects::S3At(&s3, address))
        .acme("")
        .conf(
            "edges",
            &format!("{{ listen: \"{listen}\", allow_http: true }}"),
        )
        .start();
    let edge = edge_of(&gateway.setup, &url(listen), "paris", "").start();
    let both = [&gateway, &edge];
    let all_serve = |number: usize| {
        for one in both {
            wait_until("the release is not served", || serves(one, &skill(number)));
        }
    };
    all_serve(0);
    let lies = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lies);
    between.lie(move |path, response| {
        if is_object(path) && response.starts_with(b"HTTP/1.1 200") {
            counted.fetch_add(1, Ordering::SeqCst);
            *response.last_mut().unwrap() ^= 1;
        }
    });
    writer.publish("acme", &[("skill.md", &skill(1))]);
    wait_until("it does not try again", || lies.load(Ordering::SeqCst) > 1);
    gateway.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("stays as it is") && message.contains("its digest is not its name")
    });
    gateway.wait_for_metric("follow_waiting_releases", 1.0);
    for one in both {
        assert!(serves(one, &skill(0)), "the last good one is served");
    }
    // Also after a start.
    gateway.signal("KILL");
    let gateway = gateway.ended().start();
    assert!(serves(&gateway, &skill(0)));
    gateway.wait_for_metric("follow_waiting_releases", 1.0);
    assert!(serves(&edge, &skill(0)));
    between.be_honest();
    for one in [&gateway, &edge] {
        wait_until("the release is not served", || serves(one, &skill(1)));
    }
    let checked = command(&gateway.setup, &["store", "check"]);
    assert!(checked.contains("0 damages"), "{checked}");
}

/// How many objects the database names.
fn named(cluster: &Cluster) -> String {
    let count = "SELECT count(*) FROM waypost_store.objects";
    cluster.psql("waypost", count).unwrap()
}

#[test]
fn the_outcome_of_an_update_is_recorded_only_after_its_objects_are_stored() {
    let (cluster, s3) = (cluster(), S3::start(false));
    let gateway = machine(&cluster, None, &Objects::S3(&s3)).conf("worker", "{ embedded: false }");
    init(&gateway);
    let docs = Repository::new(&gateway, "docs");
    docs.push("Begin", &[("skill.md", &skill(0))]);
    let (between, address) = in_front_of(&s3);
    let elsewhere = machine(&cluster, Some(&gateway), &Objects::S3At(&s3, address));
    let record_of = format!("owner: acme\n{}", docs.record());
    elsewhere.write_site("acme", &record_of);
    let gateway = gateway.site("acme", &record_of);
    let key = key(&gateway, "acme");
    let gateway = gateway.start();
    let worker = Worker::start(&elsewhere);
    let update = || trigger(&gateway, &key, "acme");
    assert_eq!(follow(&gateway.setup, &update())["status"], "success");
    wait_until("the release is not served", || serves(&gateway, &skill(0)));

    let before = named(&cluster);
    let is_not_published = |id: &str| {
        let status = record(&gateway.setup, id)["status"].clone();
        assert!(status == "queued" || status == "in_progress", "{status}");
        assert_eq!(
            named(&cluster),
            before,
            "the database names what is not stored"
        );
        assert!(serves(&gateway, &skill(0)));
    };
    // First every put is answered with an error, although the store may have the object.
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    between.lie(move |path, response| {
        if is_object(path) {
            counted.fetch_add(1, Ordering::SeqCst);
            let head = "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            *response = head.as_bytes().to_vec();
        }
    });
    docs.push("Change", &[("skill.md", &skill(1))]);
    let id = update();
    wait_until("no put is tried again", || {
        is_not_published(&id);
        refused.load(Ordering::SeqCst) > 2
    });
    // Then every put hangs.
    let (release, hold) = mpsc::channel::<()>();
    let hanging = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&hanging);
    between.lie(move |path, _response| {
        if is_object(path) {
            counted.fetch_add(1, Ordering::SeqCst);
            // It returns when the other end is dropped.
            let _dropped = hold.recv();
        }
    });
    wait_until("no put hangs", || {
        is_not_published(&id);
        hanging.load(Ordering::SeqCst) > 0
    });
    // A claim that is not renewed ends after 5 seconds.
    let epoch = || {
        let sql = format!("SELECT epoch FROM waypost_queue.updates WHERE id = '{id}'");
        cluster.psql("waypost", &sql).unwrap()
    };
    let first = epoch();
    let since = std::time::Instant::now();
    while since.elapsed().as_secs() < 6 {
        is_not_published(&id);
    }
    assert_eq!(epoch(), first, "the worker keeps its claim while it waits");
    drop::<Sender<()>>(release);
    between.be_honest();
    let update = follow(&gateway.setup, &id);
    assert_eq!(update["status"], "success", "{update:#}");
    wait_until("the release is not served", || serves(&gateway, &skill(1)));
    assert_ne!(named(&cluster), before);
    let checked = command(&gateway.setup, &["store", "check"]);
    assert!(checked.contains("0 damages"), "{checked}");
    drop(worker);
}

/// Ends those who watch when it is dropped, also when the test fails.
struct End<'t>(&'t AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn triggers_at_two_gateways_for_one_project_keep_their_order_and_publish_nothing_older() {
    const ROUNDS: usize = 9;
    let cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory);
    init(&first);
    let docs = Repository::new(&first, "docs");
    docs.push("Begin", &[("skill.md", &skill(0))]);
    let record_of = format!("owner: acme\n{}", docs.record());
    let second = machine(&cluster, Some(&first), &Objects::Directory).site("acme", &record_of);
    let first = first.site("acme", &record_of);
    let key = key(&first, "acme");
    // Each builds too.
    let gateways = [first.start(), second.start()];
    let is_over = AtomicBool::new(false);
    let ids: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        let end = End(&is_over);
        let watching: Vec<_> = gateways
            .iter()
            .map(|gateway| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let (mut newest, mut seen) = (0, 0);
                    while !is_over.load(Ordering::SeqCst) {
                        let now = number(gateway);
                        assert!(now >= newest, "{now} after {newest}");
                        seen += usize::from(now > newest);
                        newest = now;
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    seen
                })
            })
            .collect();
        for round in 1..=ROUNDS {
            docs.push("Change", &[("skill.md", &skill(round))]);
            // Both are asked at the same time.
            std::thread::scope(|scope| {
                for gateway in &gateways {
                    let (key, ids) = (&key, &ids);
                    scope.spawn(move || {
                        let id = trigger(gateway, key, "acme");
                        ids.lock().unwrap().push(id);
                    });
                }
            });
            if round % 3 == 0 {
                // Several are built, and not only the last one.
                for id in std::mem::take(&mut *ids.lock().unwrap()) {
                    ended(&gateways[round / 3 % 2].setup, &id);
                }
            }
        }
        for gateway in &gateways {
            wait_until("the last one is not served", || {
                serves(gateway, &skill(ROUNDS))
            });
        }
        drop(end);
        for watching in watching {
            assert!(watching.join().unwrap() >= 3);
        }
    });
    // The generations of the queue, and the fences that promoted them, have one order.
    let epochs = epochs(&cluster);
    assert!(epochs.len() >= 3 && epochs.is_sorted(), "{epochs:?}");
    let releases = command(&gateways[1].setup, &["releases", "acme"]);
    assert!(releases.lines().count() >= 3, "{releases}");
}

/// Waits for the end of an update, which is a success.
fn ended(setup: &Setup, id: &str) -> Value {
    let update = follow(setup, id);
    assert_eq!(update["status"], "success", "{update:#}");
    update
}

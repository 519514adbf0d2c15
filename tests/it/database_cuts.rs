//! A network between a gateway and its database that fails at any message of an update: the
//! connections end before the server has the message, or after it has it and before its answer
//! arrives, or nothing arrives for a while.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::cluster::{Cluster, USER};
use crate::edge::Edge;
use crate::queue_postgres::{Worker, wait_until};
use crate::repository::{Repository, call, key, record, trigger};
use crate::store_postgres::{
    Objects, cluster, init, machine, machine_at, machine_with, number, serves, skill,
};

/// How many pages a build has that takes some seconds.
const PAGES: usize = 600;

/// What happens at a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// All connections end. The server does not get the message.
    Before,
    /// All connections end. The server gets the message, and the client gets no answer.
    After,
    /// Nothing arrives any more, and nobody is told. It arrives when the network works again.
    Silence,
}

/// A server in front of a database, which cuts all connections at one message of the clients.
struct Cutter {
    directory: tempfile::TempDir,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What happens, and at which of the next messages.
    next: Option<(Cut, usize)>,
    is_silent: bool,
    connections: Vec<UnixStream>,
}

// === impl Cutter ===

impl Cutter {
    fn start(cluster: &Cluster) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let name = format!(".s.PGSQL.{}", cluster.port);
        let target = cluster.directory.join(&name);
        let listener = UnixListener::bind(directory.path().join(name)).unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                serve(client.unwrap(), &target, &shared);
            }
        });
        Self { directory, state }
    }

    fn url(&self) -> String {
        let socket = self.directory.path().display();
        format!("postgres://{USER}@/waypost?host={socket}")
    }

    /// Cuts all connections at the message with this number from now.
    fn cut(&self, cut: Cut, number: usize) {
        self.state.lock().unwrap().next = Some((cut, number));
    }

    fn has_cut(&self) -> bool {
        self.state.lock().unwrap().next.is_none()
    }

    /// Lets everything arrive again, also what was sent in between.
    fn end_silence(&self) {
        self.state.lock().unwrap().is_silent = false;
    }
}

/// Passes the bytes of a connection on, until it is cut.
fn serve(client: UnixStream, target: &PathBuf, state: &Arc<Mutex<State>>) {
    let Ok(server) = UnixStream::connect(target) else {
        return;
    };
    let streams = [client.try_clone().unwrap(), server.try_clone().unwrap()];
    state.lock().unwrap().connections.extend(streams);
    let (mut answers, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let of_answers = Arc::clone(state);
    std::thread::spawn(move || {
        pass(&mut answers, &mut to_client, |_, _| {
            wait_for_end_of_silence(&of_answers);
            true
        });
    });
    let state = Arc::clone(state);
    let (mut client, mut server) = (client, server);
    std::thread::spawn(move || {
        pass(&mut client, &mut server, |bytes, server| {
            let all = &state;
            let mut state = all.lock().unwrap();
            match &mut state.next {
                Some((_, left)) if *left > 1 => *left -= 1,
                Some((Cut::Silence, _)) => {
                    state.next = None;
                    state.is_silent = true;
                }
                Some((cut, _)) => {
                    // The server works on what it has, also when the connection has ended.
                    if *cut == Cut::After {
                        let _ended = server.write_all(bytes);
                    }
                    state.next = None;
                    for stream in state.connections.drain(..) {
                        let _ended = stream.shutdown(Shutdown::Both);
                    }
                    return false;
                }
                None => {}
            }
            drop(state);
            wait_for_end_of_silence(all);
            true
        });
    });
}

fn wait_for_end_of_silence(state: &Mutex<State>) {
    while state.lock().unwrap().is_silent {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Passes bytes on while `may` allows it.
fn pass(
    from: &mut UnixStream,
    to: &mut UnixStream,
    mut may: impl FnMut(&[u8], &mut UnixStream) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let bytes = &bytes[..length];
        if !may(bytes, to) || to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ended = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn an_update_whose_database_is_cut_at_any_message_ends_once_if_it_was_acknowledged() {
    let (most, step) = match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => (120, 1),
        None => (60, 13),
    };
    let cluster = cluster();
    let cutter = Cutter::start(&cluster);
    let password = cluster.password_file();
    let direct = machine(&cluster, None, &Objects::Directory);
    init(&direct);
    let docs = Repository::new(&direct, "docs");
    docs.push("Begin", &[("skill.md", &skill(0))]);
    let site = format!("owner: acme\n{}", docs.record());
    let gateway = machine_at(&cutter.url(), &password, Some(&direct), &Objects::Directory);
    let direct = direct.site("acme", &site);
    let key = key(&direct, "acme");
    let edge = gateway.site("acme", &site).start();
    let (mut round, mut acknowledged, mut newest) = (0, 0, 0);
    for cut in [Cut::Before, Cut::After] {
        for at in (1..=most).step_by(step) {
            round += 1;
            docs.push("Change", &[("skill.md", &skill(round))]);
            cutter.cut(cut, at);
            let response = call(&edge, &key, "POST", "/v1/project/update/acme");
            if response.status == 202 {
                acknowledged += 1;
                let id = response.json()["statusId"].as_str().unwrap().to_owned();
                wait_until(&format!("the update ends: {cut:?} {at}"), || {
                    let status = record(&direct, &id)["status"].clone();
                    status != "queued" && status != "in_progress"
                });
                let update = record(&direct, &id);
                assert_eq!(update["status"], "success", "{cut:?} {at}: {update:#}");
                wait_until(&format!("the release is served: {cut:?} {at}"), || {
                    serves(&edge, &skill(round))
                });
            } else {
                assert_eq!(response.status, 503, "{}", response.text());
            }
            // The gateway asks for changes, so every message comes some time.
            wait_until("the connections are cut", || cutter.has_cut());
            let now = number(&edge);
            assert!(now >= newest, "{now} after {newest}: {cut:?} {at}");
            newest = now;
        }
    }
    assert!(acknowledged > round / 2, "{acknowledged} of {round}");
    let epochs = epochs(&cluster);
    assert!(
        epochs.len() >= acknowledged && epochs.is_sorted(),
        "{epochs:?}"
    );
}

/// Returns the epochs of the updates that ended well, in the order in which these began.
fn epochs(cluster: &Cluster) -> Vec<u64> {
    let sql = "SELECT epoch FROM waypost_queue.updates WHERE state = 'success' ORDER BY generation";
    let epochs = cluster.psql("waypost", sql).unwrap();
    epochs.lines().map(|epoch| epoch.parse().unwrap()).collect()
}

#[test]
fn what_a_gateway_sent_before_it_was_divided_from_its_database_changes_nothing_when_it_arrives() {
    let cluster = cluster();
    let cutter = Cutter::start(&cluster);
    let password = cluster.password_file();
    let direct = machine(&cluster, None, &Objects::Directory);
    init(&direct);
    let docs = Repository::new(&direct, "docs");
    // Its builds take a while.
    let names: Vec<String> = (0..PAGES).map(|page| format!("page-{page}")).collect();
    let pages: Vec<String> = names.iter().map(|name| format!("{name}.mdx")).collect();
    let navigation = json!({ "name": "Acme", "navigation": { "pages": names } }).to_string();
    let push = |number: usize| {
        let text = format!("# Page\n\nVersion {number}. {}", "Words. ".repeat(200));
        let skill = skill(number);
        let mut files = vec![("skill.md", &*skill), ("docs.json", &*navigation)];
        files.extend(pages.iter().map(|page| (&**page, &*text)));
        docs.push("Change", &files);
    };
    push(0);
    let site = format!("owner: acme\n{}", docs.record());
    // It notices soon that nothing arrives.
    let keys = ", statement_seconds: 1";
    let objects = Objects::Directory;
    let divided = machine_with(&cutter.url(), &password, Some(&direct), &objects, keys);
    let builds = machine(&cluster, Some(&direct), &Objects::Directory).site("acme", &site);
    let direct = direct.site("acme", &site);
    let key = key(&direct, "acme");
    let divided = divided.site("acme", &site).start();
    let other = direct.conf("worker", "{ embedded: false }").start();
    let ended = |id: &str| {
        wait_until("the update ends", || {
            record(&other.setup, id)["status"] == "success"
        });
    };
    let wait_until_served = |edge: &Edge, number: usize| {
        wait_until("the release is served", || serves(edge, &skill(number)));
    };
    let id = trigger(&divided, &key, "acme");
    ended(&id);
    for edge in [&divided, &other] {
        wait_until_served(edge, 0);
    }

    // The gateway builds, and cannot tell anybody.
    push(1);
    let before = trigger(&divided, &key, "acme");
    let state = format!("SELECT state FROM waypost_queue.updates WHERE id = '{before}'");
    wait_until("the build begins", || {
        cluster.psql("waypost", &state).unwrap() == "in_progress"
    });
    cutter.cut(Cut::Silence, 1);
    wait_until("nothing arrives", || cutter.has_cut());
    assert_eq!(record(&other.setup, &before)["status"], "in_progress");
    let asked = call(&divided, &key, "POST", "/v1/project/update/acme");
    assert_eq!(asked.status, 503, "{}", asked.text());
    assert!(number(&divided) <= 1);
    // Another worker ends its update and a newer one.
    let _worker = Worker::start(&builds);
    ended(&before);
    wait_until_served(&other, 1);
    push(2);
    ended(&trigger(&other, &key, "acme"));
    wait_until_served(&other, 2);

    cutter.end_silence();
    wait_until_served(&divided, 2);
    push(3);
    ended(&trigger(&divided, &key, "acme"));
    for edge in [&divided, &other] {
        wait_until_served(edge, 3);
    }
    let epochs = epochs(&cluster);
    assert!(epochs.len() >= 4 && epochs.is_sorted(), "{epochs:?}");
}

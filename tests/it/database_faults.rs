//! The network between a gateway and its database fails at any message of an update: connections
//! end before the server has the message, or after it has it and before its answer arrives, or the
//! network delivers nothing for a while. In one test it is a network of the kernel, and its link is
//! unplugged.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::cluster::{Cluster, USER};
use crate::edge::{Edge, Setup};
use crate::namespace::Namespace;
use crate::queue_postgres::{Worker, wait_until};
use crate::repository::{Repository, call, key, record, trigger};
use crate::store_postgres::{
    Objects, cluster, epochs, init, machine, machine_with, number, serves, skill, with_database,
};

/// The number of pages with which a build takes some seconds.
const PAGES: usize = 600;
/// With these keys of `postgres`, a gateway notices soon that the network delivers nothing.
const NOTICES_SOON: &str = ", statement_seconds: 1";

/// What happens at a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// All connections end. The server does not get the message.
    EndBefore,
    /// All connections end. The server gets the message, and the client gets no answer.
    EndAfter,
    /// The network holds back all messages, and no connection ends. When the network works again,
    /// it delivers these messages.
    Partition,
}

/// A network to a database, which fails at one message of the clients.
struct Network {
    directory: tempfile::TempDir,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What happens, and at which of the next messages.
    next: Option<(Fault, usize)>,
    is_partitioned: bool,
    connections: Vec<UnixStream>,
}

// === impl Network ===

impl Network {
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
                connect(client.unwrap(), &target, &shared);
            }
        });
        Self { directory, state }
    }

    /// Returns the address of the database behind this network.
    fn url(&self) -> String {
        let socket = self.directory.path().display();
        format!("postgres://{USER}@/waypost?host={socket}")
    }

    /// Fails at the message with this number from now.
    fn fail(&self, fault: Fault, number: usize) {
        self.state.lock().unwrap().next = Some((fault, number));
    }

    fn has_failed(&self) -> bool {
        self.state.lock().unwrap().next.is_none()
    }

    /// Ends a partition.
    fn heal(&self) {
        self.state.lock().unwrap().is_partitioned = false;
    }
}

// === impl State ===

impl State {
    /// Counts a message for a server. Returns whether the connection goes on.
    fn count(&mut self, message: &[u8], server: &mut UnixStream) -> bool {
        let Some((fault, left)) = &mut self.next else {
            return true;
        };
        if *left > 1 {
            *left -= 1;
            return true;
        }
        let fault = *fault;
        self.next = None;
        if fault == Fault::Partition {
            self.is_partitioned = true;
            return true;
        }
        // The server works on what it has, also when the connection has ended.
        if fault == Fault::EndAfter {
            let _ended = server.write_all(message);
        }
        for stream in self.connections.drain(..) {
            let _ended = stream.shutdown(Shutdown::Both);
        }
        false
    }
}

/// Connects a client with the server, in threads of their own.
fn connect(client: UnixStream, target: &Path, state: &Arc<Mutex<State>>) {
    let Ok(server) = UnixStream::connect(target) else {
        return;
    };
    let copies = || [client.try_clone().unwrap(), server.try_clone().unwrap()];
    state.lock().unwrap().connections.extend(copies());
    let [to_client, answers] = copies();
    let shared = Arc::clone(state);
    std::thread::spawn(move || pass(answers, to_client, &shared, |_, _, _| true));
    let shared = Arc::clone(state);
    std::thread::spawn(move || pass(client, server, &shared, State::count));
}

/// Passes messages on while `may` allows it.
fn pass(
    mut from: UnixStream,
    mut to: UnixStream,
    state: &Mutex<State>,
    may: impl Fn(&mut State, &[u8], &mut UnixStream) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let message = &bytes[..length];
        if !may(&mut state.lock().unwrap(), message, &mut to) {
            break;
        }
        while state.lock().unwrap().is_partitioned {
            std::thread::sleep(Duration::from_millis(5));
        }
        if to.write_all(message).is_err() {
            break;
        }
    }
    let _ended = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// A database with the repository of a site, and two machines: one asks the database directly, the
/// other one through a network that may fail.
struct Parts<N> {
    cluster: Cluster,
    network: N,
    direct: Setup,
    behind: Setup,
    docs: Repository,
}

impl Parts<Network> {
    /// Starts the database and a network in front of it.
    fn start(keys: &str) -> Self {
        let cluster = cluster();
        let network = Network::start(&cluster);
        let url = network.url();
        Self::of(cluster, network, &url, keys)
    }
}

impl Parts<Namespace> {
    /// Starts the database, and the network of a machine with a link to it.
    fn apart(keys: &str) -> Self {
        let network = Namespace::new();
        let address = &network.links[0][0];
        let cluster = with_database(Cluster::listening(address));
        let url = format!("postgres://{USER}@{address}/waypost");
        let mut parts = Self::of(cluster, network, &url, keys);
        let [_, [_, own]] = &parts.network.links;
        let listen = format!("{{ http: [\"{own}:0\"], operator: \"{own}:0\" }}");
        parts.behind = parts
            .behind
            .conf("listen", &listen)
            .conf("admin", "{ triggers_max: 1000000, allow_plaintext: true }")
            .wrapped_by(&parts.network.wrapper());
        parts
    }
}

impl<N> Parts<N> {
    /// Makes the machines. The one behind the network asks a database at this address, and has more
    /// keys of `postgres`.
    fn of(cluster: Cluster, network: N, url: &str, keys: &str) -> Self {
        let direct = machine(&cluster, None, &Objects::Directory);
        init(&direct);
        let docs = Repository::new(&direct, "docs");
        let password = cluster.password_file();
        let behind = machine_with(url, &password, Some(&direct), &Objects::Directory, keys);
        Self {
            direct: direct.site("acme", &site(&docs)),
            behind: behind.site("acme", &site(&docs)),
            cluster,
            network,
            docs,
        }
    }
}

/// Returns the record of the site.
fn site(docs: &Repository) -> String {
    format!("owner: acme\n{}", docs.record())
}

#[test]
fn an_acknowledged_update_ends_once_if_the_connections_to_the_database_end_at_any_message() {
    let (most, step) = match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => (120, 1),
        None => (60, 13),
    };
    let parts = Parts::start("");
    parts.docs.push("Begin", &[("skill.md", &skill(0))]);
    let (network, direct) = (&parts.network, &parts.direct);
    let key = key(direct, "acme");
    let edge = parts.behind.start();
    let (mut round, mut acknowledged, mut newest) = (0, 0, 0);
    for fault in [Fault::EndBefore, Fault::EndAfter] {
        for at in (1..=most).step_by(step) {
            round += 1;
            parts.docs.push("Change", &[("skill.md", &skill(round))]);
            network.fail(fault, at);
            let response = call(&edge, &key, "POST", "/v1/project/update/acme");
            if response.status == 202 {
                acknowledged += 1;
                let id = response.json()["statusId"].as_str().unwrap().to_owned();
                wait_until(&format!("the update ends: {fault:?} {at}"), || {
                    let status = record(direct, &id)["status"].clone();
                    status != "queued" && status != "in_progress"
                });
                let update = record(direct, &id);
                assert_eq!(update["status"], "success", "{fault:?} {at}: {update:#}");
                wait_until(&format!("the release is served: {fault:?} {at}"), || {
                    serves(&edge, &skill(round))
                });
            } else {
                assert_eq!(response.status, 503, "{}", response.text());
            }
            // The gateway asks for changes, so the message with this number comes.
            wait_until("the network fails", || network.has_failed());
            let now = number(&edge);
            assert!(now >= newest, "{now} after {newest}: {fault:?} {at}");
            newest = now;
        }
    }
    assert!(acknowledged > round / 2, "{acknowledged} of {round}");
    let epochs = epochs(&parts.cluster);
    assert!(
        epochs.len() >= acknowledged && epochs.is_sorted(),
        "{epochs:?}"
    );
}

#[test]
fn messages_that_arrive_after_a_network_partition_change_nothing() {
    let parts = Parts::start(NOTICES_SOON);
    changes_nothing(
        parts,
        |network| {
            network.fail(Fault::Partition, 1);
            wait_until("the network fails", || network.has_failed());
        },
        Network::heal,
    );
}

#[test]
fn a_link_to_the_database_that_is_unplugged_and_plugged_in_again_changes_nothing() {
    changes_nothing(
        Parts::apart(NOTICES_SOON),
        Namespace::unplug,
        Namespace::plug_in,
    );
}

/// Ends the network in the middle of a build and lets another worker go on. Then the network works
/// again, and delivers what it held back.
fn changes_nothing<N>(parts: Parts<N>, fail: impl Fn(&N), heal: impl Fn(&N)) {
    let (cluster, network, docs) = (&parts.cluster, &parts.network, &parts.docs);
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
    let builder = machine(cluster, Some(&parts.direct), &Objects::Directory);
    let builder = builder.site("acme", &site(docs));
    let key = key(&parts.direct, "acme");
    let behind = parts.behind.start();
    let other = parts.direct.conf("worker", "{ embedded: false }").start();
    let ended = |id: &str| {
        wait_until("the update ends", || {
            record(&other.setup, id)["status"] == "success"
        });
    };
    let wait_until_served = |edge: &Edge, number: usize| {
        wait_until("the release is served", || serves(edge, &skill(number)));
    };
    ended(&trigger(&behind, &key, "acme"));
    for edge in [&behind, &other] {
        wait_until_served(edge, 0);
    }

    // In the middle of a build, the gateway cannot reach its database any more.
    push(1);
    let before = trigger(&behind, &key, "acme");
    let state = format!("SELECT state FROM waypost_queue.updates WHERE id = '{before}'");
    wait_until("the build begins", || {
        cluster.psql("waypost", &state).unwrap() == "in_progress"
    });
    fail(network);
    assert_eq!(record(&other.setup, &before)["status"], "in_progress");
    let asked = call(&behind, &key, "POST", "/v1/project/update/acme");
    assert_eq!(asked.status, 503, "{}", asked.text());
    assert!(number(&behind) <= 1);
    // Another worker ends its update and a newer one.
    let _worker = Worker::start(&builder);
    ended(&before);
    wait_until_served(&other, 1);
    push(2);
    ended(&trigger(&other, &key, "acme"));
    wait_until_served(&other, 2);

    heal(network);
    wait_until_served(&behind, 2);
    push(3);
    ended(&trigger(&behind, &key, "acme"));
    for edge in [&behind, &other] {
        wait_until_served(edge, 3);
    }
    let epochs = epochs(cluster);
    assert!(epochs.len() >= 4 && epochs.is_sorted(), "{epochs:?}");
}

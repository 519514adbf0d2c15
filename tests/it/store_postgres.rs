//! The store in PostgreSQL and an object store, with the real program, a real server and a server
//! with the protocol of S3: machines share it, and each serves from its own cache.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::edge::{Edge, Setup};
use crate::follow::{Between, edge_of, url};
use crate::http::{Connection, Response};
use crate::ports::free_address;
use crate::presets::SKILL;
use crate::queue_postgres::{Worker, wait_until};
use crate::repository::{API, Repository, follow, record, setup, trigger};

/// Where the objects are.
pub enum Objects<'s> {
    Directory,
    S3(&'s S3),
    /// The same, at the address of a server in front of it.
    S3At(&'s S3, String),
}

/// A machine whose queue and store are in a database of this server. Machines of one fleet have
/// the objects and the site records in files of the first one.
pub fn machine(cluster: &Cluster, first: Option<&Setup>, objects: &Objects<'_>) -> Setup {
    let password = cluster.password_file();
    machine_at(&cluster.url("waypost"), &password, first, objects)
}

/// The same, with a database at this address, and the file with its password.
pub fn machine_at(
    url: &str,
    password_file: &Path,
    first: Option<&Setup>,
    objects: &Objects<'_>,
) -> Setup {
    machine_with(url, password_file, first, objects, "")
}

/// The same, with more keys of `postgres`.
pub fn machine_with(
    url: &str,
    password_file: &Path,
    first: Option<&Setup>,
    objects: &Objects<'_>,
    keys: &str,
) -> Setup {
    let setup = setup();
    let place = |setup: &Setup, name: &str| setup.path(name).display().to_string();
    let password = setup.path("password");
    fs::copy(password_file, &password).unwrap();
    private(&password);
    let database = |more: &str| {
        format!(
            "postgres: {{ url: \"{url}\", password_file: {}, tls: false{keys}{more} }}",
            password.display()
        )
    };
    let root = first.unwrap_or(&setup);
    let objects = match objects {
        Objects::Directory => {
            let directory = root.path("objects");
            fs::create_dir_all(&directory).unwrap();
            format!("{{ url: \"file://{}\" }}", directory.display())
        }
        Objects::S3(s3) => s3.settings(&setup),
        Objects::S3At(s3, address) => s3.settings(&setup).replace(&s3.address, address),
    };
    let cache = format!(", cache: {}", place(&setup, "store"));
    let store = format!(
        "{{ local: {{ path: {} }}, {}, objects: {objects} }}",
        place(&setup, "unused"),
        database(&cache)
    );
    let sqlite = place(&setup, "unused.sqlite");
    let queue = format!(
        "{{ sqlite: {{ path: {sqlite} }}, lease_seconds: 5, {} }}",
        database("")
    );
    let git = format!(
        "{{ mirrors: {}, local: [{}], allow_http: true }}",
        place(&setup, "mirrors"),
        place(root, "")
    );
    setup
        .conf("store", &store)
        .conf("queue", &queue)
        .conf("git", &git)
        .conf("verification", "{ required: false }")
}

pub fn private(file: &Path) {
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A cluster with an empty database.
pub fn cluster() -> Cluster {
    with_database(Cluster::start(&[]))
}

/// The cluster, with an empty database.
pub fn with_database(cluster: Cluster) -> Cluster {
    cluster.psql("postgres", "CREATE DATABASE waypost").unwrap();
    cluster
}

#[track_caller]
pub fn command(setup: &Setup, arguments: &[&str]) -> String {
    let output = setup.run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[track_caller]
fn refused(setup: &Setup, arguments: &[&str]) -> String {
    let output = setup.run(arguments);
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

pub fn init(setup: &Setup) {
    command(setup, &["queue", "init"]);
    command(setup, &["store", "init"]);
}

/// Replaces the site record of a project through the admin API.
fn put_site(edge: &Edge, key: &str, project: &str, record: &Value) -> Response {
    let text = record.to_string();
    let head = format!(
        "PUT /v1/sites/{project} HTTP/1.1\r\nHost: {API}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n",
        text.len()
    );
    let mut connection = Connection::open(edge.http);
    connection.send(format!("{head}\r\n{text}").as_bytes());
    connection.receive("PUT").unwrap()
}

fn operator(setup: &Setup) -> String {
    let arguments = ["key", "create", "--owner", "platform", "--role", "operator"];
    command(setup, &arguments)
}

/// The record of a site whose repository is in the directory of a machine.
fn site(setup: &Setup, project: &str) -> Value {
    let url = format!("file://{}", setup.path(project).display());
    json!({
        "owner": "acme", "subdomain": project,
        "repository": { "url": url, "branch": "main" },
    })
}

pub fn skill(number: usize) -> String {
    SKILL.replacen("description:", &format!("description: Number {number}."), 1)
}

pub fn serves(edge: &Edge, text: &str) -> bool {
    let response = edge.get("acme.waypost.localhost", "/skill.md");
    response.status == 200 && response.text() == text
}

/// Returns the epochs of the successful updates, in the order in which the updates began.
pub fn epochs(cluster: &Cluster) -> Vec<u64> {
    let sql = "SELECT epoch FROM waypost_queue.updates WHERE state = 'success' ORDER BY generation";
    let epochs = cluster.psql("waypost", sql).unwrap();
    epochs.lines().map(|epoch| epoch.parse().unwrap()).collect()
}

/// Returns the number of the skill that a gateway serves.
pub fn number(edge: &Edge) -> usize {
    let response = edge.get("acme.waypost.localhost", "/skill.md");
    let text = response.text();
    let (_, rest) = text.split_once("Number ").unwrap_or(("", "0."));
    rest.split('.').next().unwrap().parse().unwrap()
}

#[test]
fn a_gateway_fetches_the_files_of_a_release_whose_inventory_it_has() {
    let cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory).acme("");
    init(&first);
    let published = first.publish("acme", &[("skill.md", &skill(0))]);
    let second = machine(&cluster, Some(&first), &Objects::Directory).acme("");
    // A sweep of the second machine reads the inventories of all releases, and keeps them.
    let [from, to] = [&first, &second].map(|setup| setup.path("store/inventories"));
    for shard in fs::read_dir(from).unwrap() {
        let shard = shard.unwrap();
        let to = to.join(shard.file_name());
        fs::create_dir_all(&to).unwrap();
        for file in fs::read_dir(shard.path()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    let edge = second.start();
    edge.wait_until_served("acme", published.generation);
    assert!(serves(&edge, &skill(0)));
}

#[test]
fn a_gateway_that_ends_while_releases_wait_serves_them_after_the_next_start() {
    let cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory).acme("");
    init(&first);
    first.write_site("other", "");
    first.publish("acme", &[("skill.md", &skill(0))]);
    first.publish("other", &[("skill.md", &skill(1))]);
    let (there, moved) = (first.path("objects"), first.path("away"));
    fs::rename(&there, &moved).unwrap();
    let second = machine(&cluster, Some(&first), &Objects::Directory).acme("");
    second.write_site("other", "");
    // The place of the objects was made again, empty.
    fs::remove_dir(&there).unwrap();
    let edge = second.start();
    edge.wait_for_metric("follow_waiting_releases", 2.0);
    edge.signal("KILL");
    fs::rename(&moved, &there).unwrap();
    let edge = edge.ended().start();
    wait_until("the release is not served", || serves(&edge, &skill(0)));
}

#[test]
fn machines_share_a_store_and_serve_while_its_database_is_away() {
    let mut cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory).conf("worker", "{ embedded: false }");
    let text = refused(&first, &["releases", "acme"]);
    assert!(text.contains("`waypost store init` makes it"), "{text}");
    init(&first);
    assert!(command(&first, &["store", "init"]).contains("is there already"));
    command(&first, &["store", "migrate"]);
    let docs = Repository::new(&first, "acme");
    docs.push("Begin", &[("skill.md", &skill(0))]);
    let second =
        machine(&cluster, Some(&first), &Objects::Directory).conf("worker", "{ embedded: false }");
    let elsewhere = machine(&cluster, Some(&first), &Objects::Directory);
    let operator = operator(&first);
    let edge = first.start();
    let record_of = site(&edge.setup, "acme");
    let other = second.start();
    let created = put_site(&edge, &operator, "acme", &record_of);
    assert_eq!(created.status, 201, "{}", created.text());
    let _worker = Worker::start(&elsewhere);
    let id = trigger(&edge, &operator, "acme");
    let update = follow(&edge.setup, &id);
    assert_eq!(update["status"], "success", "{update:#}");
    for gateway in [&edge, &other] {
        wait_until("a gateway does not serve the release", || {
            serves(gateway, &skill(0))
        });
    }
    assert!(
        !edge.setup.path("unused").exists(),
        "the store is elsewhere"
    );
    wait_until("the update is not visible", || {
        !record(&edge.setup, &id)["visibleAt"].is_null()
    });

    // Without its database, a gateway serves, and starts from its cache.
    cluster.stop();
    assert!(serves(&other, &skill(0)));
    other.signal("KILL");
    let other = other.ended().start();
    assert!(serves(&other, &skill(0)));
    let late = put_site(&edge, &operator, "beta", &record_of);
    assert!(late.status >= 500, "{}", late.text());
    assert!(serves(&edge, &skill(0)));

    cluster.restart();
    docs.push("Change", &[("skill.md", &skill(1))]);
    wait_until("the queue does not come back", || {
        let path = "/v1/project/update/acme";
        crate::repository::call(&edge, &operator, "POST", path).status == 202
    });
    for gateway in [&edge, &other] {
        wait_until("a gateway does not follow again", || {
            serves(gateway, &skill(1))
        });
    }
    // A rollback on one machine is seen on the other one.
    command(&edge.setup, &["rollback", "acme"]);
    wait_until("the rollback is not served", || serves(&other, &skill(0)));
    // A removed site ends everywhere.
    let path = "/v1/sites/acme";
    let authorization = format!("Bearer {operator}");
    let fields = [("Authorization", &*authorization), ("If-Match", "*")];
    let removed = edge.request("DELETE", API, path, &fields);
    assert_eq!(removed.status, 204, "{}", removed.text());
    let status = |edge: &Edge| edge.get("acme.waypost.localhost", "/skill.md").status;
    assert_eq!(status(&edge), 404, "it is acknowledged after it is served");
    wait_until("a removed site is served", || status(&other) == 404);
}

/// The figure of a release that one machine publishes: when another one serves it. Run with
/// `WAYPOST_LONG_TESTS=1` and `--nocapture`.
#[test]
fn a_release_is_on_another_machine_in_a_moment() {
    let rounds = match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 200,
        None => 3,
    };
    let cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory);
    init(&first);
    let second = machine(&cluster, Some(&first), &Objects::Directory);
    for setup in [&first, &second] {
        setup.write_site("acme", "owner: acme");
    }
    first.publish("acme", &[("skill.md", &*skill(0))]);
    let edge = second.start();
    let mut times = Vec::new();
    for round in 1..=rounds {
        let text = skill(round);
        let published = first.publish("acme", &[("skill.md", &*text)]);
        let since = Instant::now();
        edge.wait_until_served("acme", published.generation);
        times.push(since.elapsed());
        assert!(serves(&edge, &text));
    }
    times.sort();
    let (half, most) = (times[rounds / 2], times[rounds * 99 / 100]);
    println!("published to visible on another machine: p50 {half:?}, p99 {most:?}");
}

#[test]
fn kills_of_workers_gateways_edges_and_the_database_lose_nothing_and_publish_nothing_older() {
    let rounds = match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 400,
        None => 8,
    };
    let mut cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory).conf("worker", "{ embedded: false }");
    init(&first);
    let docs = Repository::new(&first, "acme");
    docs.push("Begin", &[("skill.md", &skill(0))]);
    let beside = |first: &Setup| machine(&cluster, Some(first), &Objects::Directory);
    let machines = [beside(&first), beside(&first)];
    let mut workers = machines.each_ref().map(Worker::start);
    let followed = free_address();
    let edges = format!("{{ listen: \"{followed}\", allow_http: true }}");
    let second = beside(&first)
        .conf("worker", "{ embedded: false }")
        .conf("edges", &edges);
    let operator = operator(&first);
    let edge = first.start();
    let mut other = second.start();
    let follower = edge_of(&other.setup, &url(followed), "paris", "");
    let mut follower = follower.start();
    let created = put_site(&edge, &operator, "acme", &site(&edge.setup, "acme"));
    assert_eq!(created.status, 201, "{}", created.text());
    let mut acknowledged = Vec::new();
    let mut newest = [0; 3];
    let mut random = 11_u64;
    for round in 0..rounds {
        docs.push("Change", &[("skill.md", &skill(round + 1))]);
        let path = "/v1/project/update/acme";
        let response = crate::repository::call(&edge, &operator, "POST", path);
        if response.status == 202 {
            acknowledged.push(response.json()["statusId"].as_str().unwrap().to_owned());
        }
        // Each run kills the same processes after the same pauses.
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        std::thread::sleep(Duration::from_millis((random >> 33) % 600));
        match round % 4 {
            0 => workers[round / 4 % 2].restart(&machines[round / 4 % 2]),
            1 => {
                other.signal("KILL");
                other = other.ended().start();
            }
            2 => {
                follower.signal("KILL");
                follower = follower.ended().start();
            }
            _ => {
                cluster.stop();
                cluster.restart();
            }
        }
        for (newest, node) in newest.iter_mut().zip([&edge, &other, &follower]) {
            let now = number(node);
            assert!(now >= *newest, "{now} after {newest} in round {round}");
            *newest = now;
        }
    }
    assert!(!acknowledged.is_empty());
    for id in &acknowledged {
        wait_until("an acknowledged update does not end", || {
            let status = record(&edge.setup, id)["status"].clone();
            status != "queued" && status != "in_progress"
        });
    }
    docs.push("End", &[("skill.md", &skill(rounds + 1))]);
    let id = trigger(&edge, &operator, "acme");
    assert_eq!(follow(&edge.setup, &id)["status"], "success");
    for node in [&edge, &other, &follower] {
        wait_until("the machines are not equal", || {
            serves(node, &skill(rounds + 1))
        });
    }
    let checked = command(&edge.setup, &["store", "check"]);
    assert!(checked.contains("0 damages"), "{checked}");
    // Updates were published in the order in which they began.
    let epochs = epochs(&cluster);
    assert!(!epochs.is_empty() && epochs.is_sorted(), "{epochs:?}");
}

#[test]
fn a_gateway_that_was_stopped_notices_a_restored_copy_of_the_files_of_the_database() {
    let mut cluster = cluster();
    let first = machine(&cluster, None, &Objects::Directory).acme("");
    init(&first);
    let second = machine(&cluster, Some(&first), &Objects::Directory).acme("");
    for setup in [&first, &second] {
        setup.write_site("other", "");
    }
    first.publish("acme", &[("skill.md", &skill(0))]);
    let published = first.publish("other", &[("skill.md", &skill(1))]);
    let key = operator(&first);
    let id = command(&first, &["key", "list"])[..16].to_owned();
    let edge = second.start();
    edge.wait_until_served("other", published.generation);
    // A copy of all files has the same system identifier, timeline and numbers of tables.
    let (data, copy) = (cluster.data(), cluster.directory.join("copy"));
    let copied = |from: &Path, to: &Path| {
        let status = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(status.unwrap().success());
    };
    cluster.stop();
    copied(&data, &copy);
    cluster.restart();
    // The gateway reads a release and a key that the copy does not have.
    let lost = first.publish("acme", &[("skill.md", &skill(2))]);
    let lost_key = operator(&first);
    edge.wait_until_served("acme", lost.generation);
    let read =
        |edge: &Edge, key: &str| crate::repository::call(edge, key, "GET", "/v1/sites").status;
    wait_until("the new key is not accepted", || {
        read(&edge, &lost_key) == 200
    });
    assert_eq!(read(&edge, &key), 200);
    edge.signal("KILL");
    let second = edge.ended();
    cluster.stop();
    fs::remove_dir_all(&data).unwrap();
    copied(&copy, &data);
    cluster.restart();
    // As many changes as were lost: the numbers are the same.
    first.publish("other", &[("skill.md", &skill(3))]);
    command(&first, &["key", "revoke", &id]);
    let edge = second.start();
    let skill_of = |project: &str| {
        let host = format!("{project}.waypost.localhost");
        edge.get(&host, "/skill.md").text().to_owned()
    };
    wait_until("the content is not that of the database", || {
        skill_of("acme") == skill(0) && skill_of("other") == skill(3)
    });
    for (key, why) in [(&key, "a revoked key"), (&lost_key, "a lost key")] {
        wait_until(why, || read(&edge, key) == 401);
    }
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("was restored to a state before revision")
    });
}

/// A signature; the server does not check it.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 \
     Credential=waypost/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

/// Moto: a server with the protocol of S3, with an empty bucket. It ends with the value.
pub struct S3 {
    process: Child,
    pub address: String,
    secret: &'static str,
}

impl S3 {
    /// Starts it. With `is_strict`, it refuses every request whose key it does not know.
    #[track_caller]
    pub fn start(is_strict: bool) -> Self {
        let address = free_address();
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("target/clients/moto/bin/moto_server");
        let free = if is_strict { "1" } else { "1000000000" };
        let process = Command::new(&program)
            .args(["-H", "127.0.0.1", "-p", &address.port().to_string()])
            .env("INITIAL_NO_AUTH_ACTION_COUNT", free)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "start {}: {error}; `.ci/install test` installs it",
                    program.display()
                )
            });
        let s3 = Self {
            process,
            address: format!("http://{address}"),
            secret: "the secret",
        };
        wait_until("the server does not start", || {
            std::net::TcpStream::connect(address).is_ok()
        });
        s3.curl(&["-X", "PUT"], "bucket");
        s3
    }

    fn curl(&self, options: &[&str], path: &str) -> String {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail"])
            .args(["-H", SIGNED, "-H", "Content-Type: application/octet-stream"])
            .args(options)
            .arg(format!("{}/{path}", self.address))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn settings(&self, setup: &Setup) -> String {
        let secret = setup.path("secret");
        fs::write(&secret, self.secret).unwrap();
        private(&secret);
        format!(
            "{{ url: \"s3://bucket/docs\", endpoint: \"{}\", region: eu-west-1, account: waypost, \
             secret_file: {}, allow_http: true }}",
            self.address,
            secret.display()
        )
    }

    /// The names of all objects of files of releases.
    fn names(&self) -> Vec<String> {
        let listed = self.curl(&[], "bucket?list-type=2&prefix=docs/content/");
        let names = listed.split("<Key>").skip(1);
        names
            .map(|rest| rest.split('<').next().unwrap().to_owned())
            .collect()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

#[test]
fn an_object_store_that_fails_in_the_middle_delays_a_release_and_never_damages_it() {
    let (cluster, s3) = (cluster(), S3::start(false));
    let writer = machine(&cluster, None, &Objects::S3(&s3)).acme("");
    init(&writer);
    let address = s3.address.trim_start_matches("http://").parse().unwrap();
    let between = Between::start(address);
    let objects = Objects::S3At(&s3, format!("http://{}", between.address));
    writer.publish("acme", &[("skill.md", &skill(0))]);
    let edge = machine(&cluster, None, &objects).acme("").start();
    wait_until("the release is not served", || serves(&edge, &skill(0)));
    let unavailable = || {
        let head = "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        head.as_bytes().to_vec()
    };
    // Each object is answered with 503, cut in half, late, and then as it is.
    let asked: Mutex<BTreeMap<String, usize>> = Mutex::default();
    between.lie(move |path, response| {
        let mut asked = asked.lock().unwrap();
        let count = asked.entry(path.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => *response = unavailable(),
            2 => response.truncate(response.len() - 1),
            3 => std::thread::sleep(Duration::from_millis(200)),
            _ => {}
        }
    });
    writer.publish("acme", &[("skill.md", &skill(1))]);
    wait_until("the release is not served", || serves(&edge, &skill(1)));
    // While it only fails, the release before is served, and the reason is shown.
    between.lie(move |_path, response| *response = unavailable());
    writer.publish("acme", &[("skill.md", &skill(2))]);
    wait_until("the failure is not counted", || {
        edge.metric("follow_waiting_releases") > 0.5
    });
    assert!(serves(&edge, &skill(1)));
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("stays as it is") && message.contains("503")
    });
    between.be_honest();
    wait_until("the release is not served", || serves(&edge, &skill(2)));
    let checked = command(&edge.setup, &["store", "check"]);
    assert!(checked.contains("0 damages"), "{checked}");
}

#[test]
fn a_node_moves_into_a_database_and_s3_and_back() {
    let (cluster, s3) = (cluster(), S3::start(false));
    let node = Setup::new().site("acme", "owner: acme");
    let root = node.path("store");
    node.publish("acme", &[("skill.md", &skill(0))]);
    node.publish("acme", &[("skill.md", &skill(1))]);
    let fleet = machine(&cluster, None, &Objects::S3(&s3));
    fleet.write_site("acme", "owner: acme");
    init(&fleet);
    let from = root.display().to_string();
    let copied = command(&fleet, &["store", "copy", "--from", &from]);
    assert_eq!(copied, "copied 2 releases, 1 pointers and 0 site records");
    let again = command(&fleet, &["store", "copy", "--from", &from]);
    assert_eq!(again, "copied 0 releases, 0 pointers and 0 site records");
    let checked = command(&fleet, &["store", "check"]);
    assert!(checked.contains("0 damages"), "{checked}");

    // Another machine has nothing but the configuration.
    let other = machine(&cluster, None, &Objects::S3(&s3));
    other.write_site("acme", "owner: acme");
    let edge = other.start();
    wait_until("the copied release is not served", || {
        serves(&edge, &skill(1))
    });
    edge.setup.publish("acme", &[("skill.md", &skill(2))]);
    wait_until("a new release is not served", || serves(&edge, &skill(2)));

    // An object store that lies: a machine without a cache refuses, the others serve.
    for name in s3.names() {
        s3.curl(
            &["-X", "PUT", "--data-binary", "lies"],
            &format!("bucket/{name}"),
        );
    }
    let fresh = machine(&cluster, None, &Objects::S3(&s3));
    fresh.write_site("acme", "owner: acme");
    let fresh = fresh.start();
    fresh.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("stays as it is") && message.contains("its digest is not its name")
    });
    assert_eq!(fresh.get("acme.waypost.localhost", "/skill.md").status, 404);
    assert!(serves(&edge, &skill(2)));
    let damaged = edge.setup.run(&["store", "check"]);
    assert!(!damaged.status.success());
    // Each machine repairs what it still has: one has copied the earlier releases, the other one
    // has published the last one.
    let partly = fleet.run(&["store", "check", "--repair"]);
    assert!(!partly.status.success(), "{partly:?}");
    let text = command(&edge.setup, &["store", "check", "--repair"]);
    assert!(text.contains("written again from the cache"), "{text}");
    wait_until("the repaired release is not served", || {
        serves(&fresh, &skill(2))
    });

    let back = edge.setup.path("back");
    let to = back.display().to_string();
    let copied = edge.setup.run(&["store", "copy", "--to", &to]);
    assert!(copied.status.success(), "{copied:?}");
    let node = Setup::new()
        .site("acme", "owner: acme")
        .conf("store", &format!("{{ local: {{ path: {to} }} }}"));
    let node = node.start();
    assert!(serves(&node, &skill(2)));
}

#[test]
fn a_bucket_without_permission_is_refused_with_a_sentence() {
    let (cluster, s3) = (cluster(), S3::start(true));
    let setup = machine(&cluster, None, &Objects::S3(&s3));
    command(&setup, &["queue", "init"]);
    let text = refused(&setup, &["store", "init"]);
    assert!(text.contains("the object store refuses access"), "{text}");
    assert!(text.contains("s3://bucket/docs"), "{text}");
    assert!(!text.contains(s3.secret), "{text}");
    let tables = cluster.psql("waypost", "SELECT to_regnamespace('waypost_store')");
    assert_eq!(tables.unwrap(), "", "no tables without their objects");
    drop(s3);
    let text = refused(&setup, &["store", "init"]);
    assert!(text.contains("s3://bucket/docs"), "{text}");
    let backup = refused(
        &setup,
        &[
            "backup",
            "--key-file",
            "key",
            &setup.path("b").display().to_string(),
        ],
    );
    assert!(backup.contains("tools of both"), "{backup}");
}

//! The queue in PostgreSQL, with the real program and a real server: workers in other processes,
//! kills of workers and of the server, and databases that must not be used.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::edge::{Edge, Setup};
use crate::presets::SKILL;
use crate::repository::{API, Repository, call, follow, key, record, setup, trigger};

/// A setup whose queue is in a database of this server.
fn with_database(cluster: &Cluster, name: &str) -> Setup {
    cluster
        .psql("postgres", &format!("CREATE DATABASE {name}"))
        .unwrap();
    configured(setup(), cluster, name, "")
}

fn configured(setup: Setup, cluster: &Cluster, name: &str, more: &str) -> Setup {
    // The server's user owns its files; the program's is another one.
    let password = setup.path("password");
    fs::copy(cluster.password_file(), &password).unwrap();
    fs::set_permissions(
        &password,
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let sqlite = setup.path("unused.sqlite").display().to_string();
    let database = format!(
        "{{ sqlite: {{ path: {sqlite} }}, lease_seconds: 5, postgres: {{ url: \"{}\", \
         password_file: {}, tls: false{more} }} }}",
        cluster.url(name),
        password.display(),
    );
    setup.conf("queue", &database)
}

/// A gateway that builds nothing, with a site whose repository has a skill. Returns the key of the
/// site too.
fn without_worker(cluster: &Cluster) -> (Setup, String) {
    let setup = with_database(cluster, "waypost").conf("worker", "{ embedded: false }");
    init(&setup);
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let key = key(&setup, "acme");
    let record = format!("owner: acme\n{}", docs.record());
    (setup.site("acme", &record), key)
}

/// Kills the server with SIGKILL.
fn kill(cluster: &Cluster) {
    let first_line = "SELECT split_part(pg_read_file('postmaster.pid'), chr(10), 1)";
    let id = cluster.psql("postgres", first_line).unwrap();
    let status = Command::new("kill").args(["-9", &id]).status();
    assert!(status.unwrap().success());
}

#[track_caller]
fn init(setup: &Setup) {
    let output = setup.run(&["queue", "init"]);
    assert!(output.status.success(), "{output:?}");
}

/// `waypost worker`, running.
pub struct Worker(Child);

impl Worker {
    pub fn start(setup: &Setup) -> Self {
        setup.write_conf();
        let process = Command::new(env!("CARGO_BIN_EXE_waypost"))
            .args(["worker", "--conf"])
            .arg(setup.path("waypost.yaml"))
            .env("TMPDIR", setup.temporary())
            .stderr(Stdio::null())
            .spawn();
        Self(process.unwrap())
    }

    /// Kills it, and then starts it again.
    pub fn restart(&mut self, setup: &Setup) {
        self.kill();
        *self = Self::start(setup);
    }

    fn kill(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
    }
}

#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_worker_in_another_process_builds_what_the_api_queued() {
    let cluster = Cluster::start(&[]);
    let (setup, key) = without_worker(&cluster);
    let edge = setup.start();
    let id = trigger(&edge, &key, "acme");
    assert_eq!(record(&edge.setup, &id)["status"], "queued");
    let _worker = Worker::start(&edge.setup);
    let update = follow(&edge.setup, &id);
    assert_eq!(update["status"], "success", "{update:#}");
    wait_until("the release is not visible", || {
        !record(&edge.setup, &id)["visibleAt"].is_null()
    });
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
    assert!(!edge.setup.path("unused.sqlite").exists());
    assert!(edge.metric("deploy_queue_database_durable") > 0.0);
    assert!(edge.metric("deploy_queue_database_timeline") > 0.0);
    edge.wait_for_log(|line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.contains("acknowledged updates are durable")
    });
}

/// The status of a trigger, with what the answer says.
fn triggered(edge: &Edge, key: &str) -> (u16, String, bool) {
    let response = call(edge, key, "POST", "/v1/project/update/acme");
    let retry = response.field("retry-after").is_some();
    (response.status, response.text().to_owned(), retry)
}

#[test]
fn without_its_database_the_api_asks_to_retry_and_sites_are_served() {
    let mut cluster = Cluster::start(&[]);
    let setup = with_database(&cluster, "waypost");
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let setup = setup.site("acme", &format!("owner: acme\n{}", docs.record()));
    let key = key(&setup, "acme");
    // Not made yet.
    let edge = setup.start();
    let (status, text, retry) = triggered(&edge, &key);
    assert_eq!((status, retry), (503, true), "{text}");
    assert!(text.contains("its database cannot be used"), "{text}");
    init(&edge.setup);
    wait_until("the queue is not used", || triggered(&edge, &key).0 == 202);
    // Away in the middle.
    cluster.stop();
    let (status, text, retry) = triggered(&edge, &key);
    assert_eq!((status, retry), (503, true), "{text}");
    assert!(text.contains("its database cannot be reached"), "{text}");
    assert_eq!(edge.get(API, "/openapi.json").status, 200);
    cluster.restart();
    wait_until("the queue does not come back", || {
        triggered(&edge, &key).0 == 202
    });
}

#[test]
fn a_database_that_must_not_be_used_is_refused_by_commands() {
    let cluster = Cluster::start(&[]);
    let setup = with_database(&cluster, "other");
    let refused = |setup: &Setup, arguments: &[&str]| {
        let output = setup.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let dead_letters = ["update", "dead-letters"];
    let text = refused(&setup, &dead_letters);
    assert!(text.contains("`waypost queue init` makes it"), "{text}");
    cluster
        .psql("other", "CREATE TABLE accounts (id int)")
        .unwrap();
    let text = refused(&setup, &["queue", "init"]);
    assert!(text.contains("public.accounts"), "{text}");
    assert!(setup.run(&["queue", "init", "--shared"]).status.success());
    assert!(setup.run(&["queue", "migrate"]).status.success());
    assert!(setup.run(&dead_letters).status.success());
    cluster
        .psql(
            "other",
            "UPDATE waypost_queue.identity SET version = 9, compatible = 9",
        )
        .unwrap();
    for arguments in [&dead_letters[..], &["queue", "migrate"]] {
        let text = refused(&setup, arguments);
        assert!(text.contains("the queue has schema 9"), "{text}");
    }
    fs::write(setup.path("password"), "wrong").unwrap();
    let text = refused(&setup, &dead_letters);
    assert!(text.contains("password authentication failed"), "{text}");
    assert!(!text.contains("wrong"), "{text}");
    let setup = configured(setup, &cluster, "other", ", require_standby: true");
    let text = refused(&setup, &dead_letters);
    assert!(
        text.contains("`synchronous_standby_names` is empty"),
        "{text}"
    );
}

#[test]
fn a_database_that_was_lost_is_put_back_from_the_backup() {
    let cluster = Cluster::start(&[]);
    let (setup, key) = without_worker(&cluster);
    let edge = setup.start();
    // One that has ended, with its log, and one that waits.
    let done = trigger(&edge, &key, "acme");
    let worker = Worker::start(&edge.setup);
    follow(&edge.setup, &done);
    drop(worker);
    let waiting = trigger(&edge, &key, "acme");
    let records = |setup: &Setup| [&done, &waiting].map(|id| record(setup, id));
    let before = records(&edge.setup);
    assert_eq!(
        (&before[0]["status"], &before[1]["status"]),
        (&"success".into(), &"queued".into())
    );
    let totals = || {
        let sql = "SELECT state, updates FROM waypost_queue.totals ORDER BY state";
        cluster.psql("waypost", sql).unwrap()
    };
    let counted = totals();
    let elsewhere = tempfile::tempdir().unwrap();
    let place = |name: &str| elsewhere.path().join(name).display().to_string();
    let (directory, key_file) = (place("backups"), place("key"));
    let backup = || {
        edge.setup
            .run(&["backup", &directory, "--key-file", &key_file])
    };
    let made = backup();
    assert!(made.status.success(), "{made:?}");

    // The database and the node are lost.
    edge.signal("KILL");
    let setup = edge.ended();
    fs::remove_dir_all(setup.path("store")).unwrap();
    fs::remove_dir_all(setup.path("sites")).unwrap();
    fs::remove_file(setup.path("waypost.yaml")).unwrap();
    fs::remove_file(setup.path("password")).unwrap();
    cluster.psql("postgres", "DROP DATABASE waypost").unwrap();
    cluster.psql("postgres", "CREATE DATABASE waypost").unwrap();
    let restore = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waypost"));
        let arguments = ["restore", &directory, "--key-file", &key_file];
        command.args(arguments).args(more).output().unwrap()
    };
    // Nothing is left on this machine: the password comes from the backup too.
    let output = restore(&[]);
    assert!(output.status.success(), "{output:?}");
    assert!(setup.path("password").exists());
    assert_eq!(totals(), counted);

    // It is the queue that it was: the same records, and what waited is built.
    let edge = setup.start();
    assert_eq!(records(&edge.setup), before);
    let worker = Worker::start(&edge.setup);
    let update = follow(&edge.setup, &waiting);
    assert_eq!(update["status"], "success", "{update:#}");
    // New updates follow the old ones.
    let next = trigger(&edge, &key, "acme");
    follow(&edge.setup, &next);
    let sql = "SELECT count(*), count(DISTINCT generation) FROM waypost_queue.updates";
    assert_eq!(cluster.psql("waypost", sql).unwrap(), "3|3");
    drop(worker);
    edge.signal("TERM");
    drop(edge.ended());

    // A queue that is in use is not overwritten.
    let output = restore(&[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    let why = "the queue in the database of `queue.postgres` is not empty";
    assert!(error.contains(why), "{error}");
    let output = restore(&["--replace"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("moved the schema waypost_queue to waypost_queue_before_"),
        "{text}"
    );
    assert_eq!(totals(), counted);
    let output = restore(&["--replace", "--without-queue"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_backup_is_made_without_a_database_that_does_not_answer() {
    let mut cluster = Cluster::start(&[]);
    let setup = with_database(&cluster, "waypost");
    init(&setup);
    setup.publish("acme", &[("skill.md", SKILL)]);
    cluster.stop();
    let elsewhere = tempfile::tempdir().unwrap();
    let place = |name: &str| elsewhere.path().join(name).display().to_string();
    let output = setup.run(&["backup", &place("backups"), "--key-file", &place("key")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("not in the backup: the queue: the queue cannot be reached"),
        "{text}"
    );
    assert!(text.contains("1 projects, 1 releases"), "{text}");
}

#[test]
fn a_check_of_the_configuration_looks_at_the_database() {
    let mut cluster = Cluster::start(&[]);
    let setup = with_database(&cluster, "waypost").site("acme", "");
    let check = |more: &[&str]| {
        let output = setup.run(&[&["check", "--all"], more].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    let (code, text) = check(&[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("`waypost queue init` makes it"), "{text}");
    init(&setup);
    let (code, text) = check(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("queue"), "{text}");
    // It may come back before the start, so this is a warning.
    cluster.stop();
    let (code, text) = check(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("warning[conf]: no database answers now: the queue cannot be reached"),
        "{text}"
    );
    assert!(text.contains("waypost.yaml:"), "{text}");
    let (code, text) = check(&["--offline"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("database"), "{text}");
}

#[test]
fn kills_of_workers_and_of_the_server_lose_nothing_and_publish_nothing_twice() {
    let rounds = match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => 200,
        None => 6,
    };
    let mut cluster = Cluster::start(&[]);
    let setup = with_database(&cluster, "waypost").conf("worker", "{ embedded: false }");
    init(&setup);
    let projects = ["p0", "p1", "p2"];
    let mut setup = setup;
    let docs: Vec<_> = projects
        .iter()
        .map(|project| {
            let docs = Repository::new(&setup, project);
            docs.push("Begin", &[("skill.md", SKILL)]);
            docs
        })
        .collect();
    for (project, docs) in projects.iter().zip(&docs) {
        let record = format!("owner: acme\n{}", docs.record());
        setup = setup.site(project, &record);
    }
    let key = key(&setup, "acme");
    let edge = setup.start();
    let mut workers = [Worker::start(&edge.setup), Worker::start(&edge.setup)];
    let mut acknowledged = BTreeMap::new();
    // Each run kills the same processes after the same pauses.
    let mut random = 7u64;
    for round in 0..rounds {
        for project in projects {
            let path = format!("/v1/project/update/{project}");
            let response = call(&edge, &key, "POST", &path);
            if response.status == 202 {
                let id = response.json()["statusId"].as_str().unwrap().to_owned();
                acknowledged.insert(id, project);
            } else {
                assert_eq!(response.status, 503, "{}", response.text());
            }
        }
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        std::thread::sleep(Duration::from_millis((random >> 33) % 400));
        match round % 3 {
            0 => workers[round / 3 % 2] = Worker::start(&edge.setup),
            1 => {
                kill(&cluster);
                cluster.restart();
            }
            _ => {
                cluster.stop();
                cluster.restart();
            }
        }
    }
    assert!(acknowledged.len() >= rounds, "{}", acknowledged.len());
    // Every acknowledged update is there and ends well.
    for id in acknowledged.keys() {
        wait_until("an update does not end", || {
            record(&edge.setup, id)["status"] == "success"
        });
    }
    // No promotion went back, and no claim ended twice: an update that a newer one superseded ends
    // with it, at the same time.
    for project in projects {
        let success =
            format!("waypost_queue.updates WHERE project = '{project}' AND state = 'success'");
        let sql = format!("SELECT epoch FROM {success} ORDER BY generation");
        let epochs: Vec<u64> = cluster
            .psql("waypost", &sql)
            .unwrap()
            .lines()
            .map(|epoch| epoch.parse().unwrap())
            .collect();
        assert!(epochs.is_sorted(), "{epochs:?}");
        let sql = format!(
            "SELECT epoch FROM {success} GROUP BY epoch HAVING count(DISTINCT (ended_at, release)) > 1"
        );
        assert_eq!(cluster.psql("waypost", &sql).unwrap(), "");
    }
}

//! Further guarantees of a shared store: they share a database and an object store,
//! revisions have an order, and what must not be used is refused with a reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::database::cluster::Cluster;
use crate::database::testing::{empty, psql, with_tables};
use crate::error::chain;
use crate::site::Host;
use crate::store::copy::{Copied, copy};
use crate::store::documents::{Documents as _, Kind, KnownKeys};
use crate::store::shared::{Config, ObjectsConfig, Place, Shared};

/// An empty store with a database of its own.
pub(super) fn store(retention: Retention) -> (Store, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), retention);
    (node(&config, directory.path(), "cache"), directory)
}

pub(crate) fn config(directory: &Path, retention: Retention) -> Config {
    let objects = directory.join("objects");
    std::fs::create_dir_all(&objects).unwrap();
    let mut config = Config {
        objects: ObjectsConfig {
            url: format!("file://{}", objects.display()).into(),
            ..ObjectsConfig::default()
        },
        retention,
        ..Config::default()
    };
    config.database = with_tables("store_template", |database| {
        let objects = tempfile::tempdir().unwrap();
        let mut config = config.clone();
        config.objects.url = format!("file://{}", objects.path().display()).into();
        config.database = database.clone();
        Shared::init(&config, "tests", false).unwrap();
    });
    // The tables are there; the place of the objects is marked.
    Shared::init(&config, "tests", false).unwrap();
    config
}

/// A machine of the store.
pub(crate) fn node(config: &Config, directory: &Path, cache: &str) -> Store {
    let settings = local::Config {
        path: directory.join(cache),
        ..local::Config::default()
    };
    let cache = Local::open(&settings, Clock::System).unwrap();
    Store::Shared(Shared::open(config, "tests", cache, Clock::System).unwrap())
}

pub(super) fn of(store: &Store) -> &Shared {
    match store {
        Store::Shared(shared) => shared,
        Store::Local(_) => panic!("it is local"),
    }
}

/// The files of all objects, without the marker.
fn objects(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut directories = vec![directory.join("objects/content")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => files.push(path),
            }
        }
    }
    files
}

#[test]
fn one_machine_reads_what_another_has_put() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let one = node(&config, directory.path(), "one");
    let other = node(&config, directory.path(), "other");
    let acme = project("acme");
    let id = one.put(&numbered(1)).unwrap();
    let promoted = other.promote(&acme, id, fence(1, 0)).unwrap();
    assert_eq!(one.current(&acme).unwrap(), Some(promoted));
    is_whole(&other, &numbered(1));
    let item = numbered(1).inventory().get("own.md").unwrap().clone();
    let (_file, length) = other.object(&item.digest).unwrap().unwrap();
    assert_eq!(length, item.length);
    // A file that was read once can be read while the objects are away.
    std::fs::rename(
        directory.path().join("objects"),
        directory.path().join("away"),
    )
    .unwrap();
    is_whole(&other, &numbered(1));
}

#[test]
fn two_machines_that_put_the_same_release_leave_each_object_once() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let nodes = ["a", "b", "c"].map(|name| node(&config, directory.path(), name));
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| {
                for number in 0..5 {
                    node.put(&numbered(number)).unwrap();
                }
            });
        }
    });
    // One shared file, five others, five inventories.
    assert_eq!(objects(directory.path()).len(), 11);
    (0..5).for_each(|number| is_whole(&nodes[0], &numbered(number)));
}

#[test]
fn what_the_object_store_has_changed_is_not_used_and_can_be_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let writer = node(&config, directory.path(), "writer");
    let id = writer.put(&numbered(1)).unwrap();
    writer.promote(&project("acme"), id, fence(1, 0)).unwrap();
    for path in objects(directory.path()) {
        std::fs::write(path, "lies").unwrap();
    }
    let reader = node(&config, directory.path(), "reader");
    let item = numbered(1).inventory().get("own.md").unwrap().clone();
    for error in [
        reader.read(&item).map(drop).unwrap_err(),
        reader.inventory(id).map(drop).unwrap_err(),
    ] {
        let text = chain(&error);
        assert!(text.contains("its digest is not its name"), "{text}");
    }
    for path in objects(directory.path()) {
        std::fs::remove_file(path).unwrap();
    }
    let text = chain(&reader.read(&item).unwrap_err());
    assert!(
        text.contains("the object store has no such object"),
        "{text}"
    );

    let now = Clock::System.now();
    let found = reader.check(true, now).unwrap();
    assert!(found.damages.iter().all(|damage| damage.repaired.is_none()));
    let repaired = writer.check(true, now).unwrap();
    assert_eq!(repaired.damages.len(), 3, "{repaired:?}");
    assert!(
        repaired
            .damages
            .iter()
            .all(|damage| damage.repaired.is_some())
    );
    assert_eq!(writer.check(false, now).unwrap().damages, []);
    is_whole(&reader, &numbered(1));
}

#[test]
fn a_reader_that_continues_by_revision_misses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let reader = node(&config, directory.path(), "reader");
    let ids: Vec<_> = (0..4)
        .map(|number| reader.put(&numbered(number)).unwrap())
        .collect();
    let is_over = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (config, ids) = (&config, &ids);
                let directory = directory.path();
                scope.spawn(move || {
                    let store = node(config, directory, &format!("writer{writer}"));
                    for generation in 1..=25 {
                        let name = project(&format!("p{}", generation % 3));
                        let own = project(&format!("w{writer}"));
                        let id = ids[usize::try_from(generation).unwrap() % ids.len()];
                        let fence = fence(generation * 10 + writer, 0);
                        store.promote(&own, id, fence).unwrap();
                        // Others promote it too; the newest wins.
                        match store.promote(&name, id, fence) {
                            Ok(_) | Err(PromoteError::Stale { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        let following = scope.spawn(|| {
            let (mut seen, mut place) = (BTreeMap::new(), Place::default());
            loop {
                let was_over = is_over.load(Ordering::SeqCst);
                let changes = of(&reader).changes(&place).unwrap().unwrap();
                let revision = place.revision;
                assert!(changes.place.revision >= revision);
                for change in changes.changes {
                    assert!(change.revision > revision && change.revision <= changes.latest);
                    seen.insert(change.project, change.current.unwrap().fence());
                }
                place = changes.place;
                if was_over && place.revision == changes.latest {
                    return seen;
                }
            }
        });
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        following.join().unwrap()
    });
    let everything = of(&reader).snapshot().unwrap();
    let current: BTreeMap<_, _> = everything
        .changes
        .into_iter()
        .map(|change| (change.project, change.current.unwrap().fence()))
        .collect();
    assert_eq!(seen.len(), 7);
    assert_eq!(seen, current);
}

#[test]
fn changes_that_are_not_kept_any_more_need_a_comparison() {
    let (store, _directory) = store(Retention::default());
    let id = store.put(&numbered(1)).unwrap();
    let shared = of(&store);
    let begin = Place::default();
    assert_eq!(shared.changes(&begin).unwrap().unwrap().changes, []);
    let places = promoted(&store, id, 3);
    let revision = |place: &Place| {
        let changes = shared.changes(place).unwrap()?;
        Some(changes.place.revision)
    };
    assert_eq!(revision(&begin), Some(3));
    assert_eq!(revision(&places[0]), Some(3));
    // A revision of another life.
    let beyond = Place {
        revision: 4,
        ..places[2].clone()
    };
    assert_eq!(revision(&beyond), None);
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let store = node(&config, directory.path(), "cache");
    let id = store.put(&numbered(1)).unwrap();
    let places = promoted(&store, id, 3);
    psql(
        &config.database,
        "DELETE FROM waypost_store.changes WHERE revision < 2",
    );
    let shared = of(&store);
    let after = |place: &Place| shared.changes(place).unwrap();
    assert_eq!(after(&places[0]), None);
    assert_eq!(after(&Place::default()), None);
    assert_eq!(after(&places[1]).unwrap().place, places[2]);
    assert_eq!(after(&places[2]).unwrap().changes, []);
    // The row of the change is removed, so its mark cannot be compared.
    psql(&config.database, "DELETE FROM waypost_store.changes");
    assert_eq!(after(&places[1]), None);
    assert_eq!(after(&places[2]), None);
    let compared = shared.snapshot().unwrap().place;
    assert_eq!(after(&compared).unwrap().place.revision, 3);
}

/// Promotes a release some times. Returns the place of a reader after each promotion.
fn promoted(store: &Store, id: ReleaseId, count: u64) -> Vec<Place> {
    let places = (1..=count).map(|generation| {
        store
            .promote(&project("acme"), id, fence(generation, 0))
            .unwrap();
        of(store).snapshot().unwrap().place
    });
    places.collect()
}

#[test]
fn another_change_with_the_same_number_needs_a_comparison() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let store = node(&config, directory.path(), "cache");
    let id = store.put(&numbered(1)).unwrap();
    let places = promoted(&store, id, 2);
    let shared = of(&store);
    let after = |place: &Place| shared.changes(place).unwrap();
    // The state after the first promotion is restored, and the number is used again.
    psql(
        &config.database,
        "DELETE FROM waypost_store.changes WHERE revision = 2; \
         UPDATE waypost_store.revision SET n = 1",
    );
    assert_eq!(after(&places[1]), None);
    store.promote(&project("other"), id, fence(1, 0)).unwrap();
    let again = shared.snapshot().unwrap().place;
    assert_eq!((again.revision, again != places[1]), (2, true));
    assert_eq!(after(&places[1]), None);
    // Nor when more has followed.
    store.promote(&project("other"), id, fence(2, 0)).unwrap();
    assert_eq!(after(&places[1]), None);
    // A reader that has read no lost change goes on.
    assert_eq!(after(&places[0]).unwrap().changes.len(), 1);
    assert_eq!(after(&again).unwrap().place.revision, 3);
    // A reader that waits is woken at once.
    let since = Instant::now();
    let long = Duration::from_secs(60);
    let lost = Place {
        revision: 3,
        ..places[1].clone()
    };
    shared.wait_for_change(&lost, long).unwrap();
    assert!(since.elapsed() < long);
}

#[test]
fn a_store_of_the_first_schema_is_raised_while_its_programs_run() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let store = node(&config, directory.path(), "cache");
    let id = store.put(&numbered(1)).unwrap();
    store.promote(&project("acme"), id, fence(1, 0)).unwrap();
    of(&store)
        .documents()
        .put(Kind::Request, "docs.acme.com", b"1")
        .unwrap();
    drop(store);
    // What schema 1 did not have.
    psql(
        &config.database,
        "SET search_path = waypost_store; ALTER TABLE changes DROP COLUMN mark; \
         DROP TABLE document_marks; ALTER TABLE edge_progress DROP COLUMN edges; \
         UPDATE identity SET version = 1, compatible = 1",
    );
    let why = Shared::check_database(&config, "tests").unwrap_err();
    let why = crate::error::chain(&why);
    assert!(why.contains("`waypost store migrate` raises it"), "{why}");
    assert_eq!(Shared::migrate(&config, "tests").unwrap(), 2);
    assert_eq!(Shared::migrate(&config, "tests").unwrap(), 2);
    let versions = "SELECT version, compatible FROM waypost_store.identity";
    assert_eq!(psql(&config.database, versions), "2|1");
    // An older program writes changes as it did.
    psql(
        &config.database,
        "SET search_path = waypost_store; \
         WITH next AS (UPDATE revision SET n = n + 1 RETURNING n) \
         INSERT INTO changes SELECT n, 'acme', 1 FROM next; \
         WITH next AS (UPDATE documents_revision SET n = n + 1 RETURNING n) \
         INSERT INTO documents SELECT 'requests', 'other', '1', n, 1 FROM next; \
         INSERT INTO edge_progress VALUES ('older', 1, '{}', 1)",
    );
    let store = node(&config, directory.path(), "cache");
    let shared = of(&store);
    let place = shared.snapshot().unwrap().place;
    assert_eq!((place.revision, place.mark.is_some()), (2, true));
    assert_eq!(shared.changes(&place).unwrap().unwrap().changes, []);
    let documents = shared.documents();
    let mut known = KnownKeys::default();
    let changes = |known: &mut KnownKeys| documents.changes(Kind::Request, known).unwrap().len();
    assert_eq!(changes(&mut known), 2);
    assert_eq!(changes(&mut known), 0);
    documents.put(Kind::Request, "third", b"1").unwrap();
    assert_eq!(changes(&mut known), 1);
}

#[test]
fn what_the_server_promises_is_asked_again_while_connections_last() {
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(&[]);
    let mut config = config(directory.path(), Retention::default());
    config.database = crate::database::Config {
        url: Some(cluster.url("postgres").into()),
        password_file: Some(cluster.password_file()),
        tls: false,
        ..crate::database::Config::default()
    };
    assert!(config.database.require_durable);
    // The other tables of the cluster are none of ours; the objects are those of this store.
    std::fs::remove_dir_all(directory.path().join("objects")).unwrap();
    std::fs::create_dir(directory.path().join("objects")).unwrap();
    Shared::init(&config, "tests", false).unwrap();
    let metrics = crate::telemetry::Metrics::new();
    let store = node(&config, directory.path(), "cache");
    let Store::Shared(shared) = store else {
        unreachable!("it was made of a database");
    };
    let shared = shared.with_metrics(&metrics);
    let documents = shared.documents();
    documents.revision().unwrap();
    let wait = |is_refused: bool, is_durable: u8| {
        let since = Instant::now();
        let durable = format!("store_database_durable {is_durable}\n");
        loop {
            let asked = documents.revision();
            if asked.is_err() == is_refused
                && String::from_utf8(metrics.to_text())
                    .unwrap()
                    .contains(&durable)
            {
                return asked.err().map(|error| chain(&error));
            }
            assert!(since.elapsed() < Duration::from_secs(30), "{asked:?}");
            std::thread::yield_now();
        }
    };
    wait(false, 1);
    let set = |sql: &str| {
        cluster.psql("postgres", sql).unwrap();
        cluster.psql("postgres", "SELECT pg_reload_conf()").unwrap();
    };
    set("ALTER SYSTEM SET fsync = off");
    let why = wait(true, 0).unwrap();
    assert!(why.contains("`fsync` is off"), "{why}");
    set("ALTER SYSTEM SET fsync = on");
    wait(false, 1);
    set("UPDATE waypost_store.identity SET version = 99, compatible = 99");
    let why = wait(true, 1).unwrap();
    assert!(why.contains("schema 99"), "{why}");
}

#[test]
fn a_sweep_of_changes_leaves_no_hole_between_revisions() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let store = node(&config, directory.path(), "cache");
    let id = store.put(&numbered(1)).unwrap();
    for name in ["a", "b", "c"] {
        store.promote(&project(name), id, fence(1, 0)).unwrap();
    }
    let set = |revision: u64| {
        let sql = format!("UPDATE waypost_store.changes SET at = 0 WHERE revision = {revision}");
        psql(&config.database, &sql);
    };
    let sql = |revision: u64| {
        format!("SELECT mark FROM waypost_store.changes WHERE revision = {revision}")
    };
    let marks = [1, 2, 3].map(|revision| psql(&config.database, &sql(revision)));
    // A transaction that began long before its commit.
    set(2);
    let names = |after: usize| {
        let place = Place {
            revision: after as u64,
            mark: Some(marks[after - 1].clone()),
        };
        let changes = of(&store).changes(&place).unwrap()?.changes;
        let names = changes.into_iter().map(|change| change.project.to_string());
        Some(names.collect::<Vec<_>>())
    };
    store.sweep(Clock::System.now()).unwrap();
    assert_eq!(names(1).unwrap(), ["b", "c"]);
    set(1);
    store.sweep(Clock::System.now()).unwrap();
    assert_eq!(names(1), None);
    assert_eq!(names(2).unwrap(), ["c"]);
    // If all are old, only the last one is kept.
    set(3);
    store.sweep(Clock::System.now()).unwrap();
    assert_eq!(names(2), None);
    assert_eq!(names(3).unwrap(), [""; 0]);
}

#[test]
fn a_lock_of_site_records_is_for_all_machines_and_a_lost_one_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let one = node(&config, directory.path(), "one");
    let other = node(&config, directory.path(), "other");
    let lock = one.lock_sites().unwrap();
    let brief = Duration::from_millis(100);
    let owner = one.lock_owner("acme", brief).unwrap();
    assert!(owner.is_some());
    assert!(other.lock_owner("acme", brief).unwrap().is_none());
    assert!(other.lock_owner("other", brief).unwrap().is_some());
    assert!(one.lead_verification().unwrap().unwrap().holds());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| other.lock_sites().unwrap());
        one.change_site(&lock, &change("acme", "docs.acme.test"))
            .unwrap();
        drop(lock);
        let lock = waiting.join().unwrap();
        other
            .change_site(&lock, &change("beta", "docs.beta.test"))
            .unwrap();
        // Another process took it over.
        psql(
            &config.database,
            "UPDATE waypost_store.leases SET epoch = epoch + 1, holder = 'x' WHERE name = 'sites'",
        );
        let error = other
            .change_site(&lock, &change("gamma", "docs.gamma.test"))
            .unwrap_err();
        assert!(chain(&error).contains("the lock of site records was lost"));
    });
    assert_eq!(one.site_record(&project("gamma")).unwrap(), None);
    let entries = one.audit(&audit::Filter {
        limit: 10,
        ..audit::Filter::default()
    });
    let ids: Vec<_> = entries.unwrap().iter().map(|entry| entry.id).collect();
    assert_eq!(ids, [2, 1]);
    assert_eq!(
        one.verification_key().unwrap(),
        other.verification_key().unwrap()
    );
}

#[test]
fn an_owner_with_many_changes_removes_no_entry_of_another_owner() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path(), Retention::default());
    config.audit_bytes_max = 5000;
    let store = node(&config, directory.path(), "cache");
    let lock = store.lock_sites().unwrap();
    store
        .change_site(&lock, &owned_change("quiet", "quiet"))
        .unwrap();
    for _ in 0..50 {
        store
            .change_site(&lock, &owned_change("many", "many"))
            .unwrap();
    }
    store.sweep(Clock::System.now()).unwrap();
    let entries = store.audit(&audit::Filter {
        limit: 100,
        ..audit::Filter::default()
    });
    let entries = entries.unwrap();
    assert!((5..45).contains(&entries.len()), "{}", entries.len());
    assert_eq!((entries[0].id, entries.last().unwrap().id), (51, 1));
}

fn owned_change(name: &str, owner: &str) -> SiteChange {
    let mut change = change(name, &format!("docs.{name}.test"));
    change.entry.owner = owner.into();
    change
}

fn change(name: &str, host: &str) -> SiteChange {
    let record = serde_json::json!({ "owner": "acme", "subdomain": name, "domains": [host] });
    let record = record.as_object().unwrap().clone();
    let host = Host::parse(host).unwrap();
    SiteChange {
        project: project(name),
        record: Some(SiteRecord {
            project: project(name),
            changed_at: 7,
            record: record.clone(),
            ownership: BTreeMap::new(),
        }),
        claimed: vec![host.clone()],
        released: Vec::new(),
        quarantine: None,
        handovers: BTreeMap::new(),
        entry: audit::Entry {
            id: 0,
            at: 7000,
            who: audit::Who::default(),
            what: "site.create".into(),
            project: name.into(),
            owner: "acme".into(),
            host: Some(host.as_str().into()),
            before: None,
            after: Some(record),
        },
    }
}

#[test]
fn a_copy_into_the_database_and_back_has_everything_and_never_goes_backwards() {
    let directory = tempfile::tempdir().unwrap();
    let open = |name| Store::open_directory(directory.path().join(name)).unwrap();
    let from = open("from");
    let acme = project("acme");
    for number in 1..=3 {
        let id = from.put(&numbered(number)).unwrap();
        let fence = fence(u64::try_from(number).unwrap(), 0);
        from.promote(&acme, id, fence).unwrap();
    }
    let lock = from.lock_sites().unwrap();
    from.change_site(&lock, &change("acme", "docs.acme.test"))
        .unwrap();
    let mut quarantined = change("acme", "docs.acme.test");
    quarantined.claimed.clear();
    quarantined.released = vec![Host::parse("old.acme.test").unwrap()];
    let quarantine = Quarantine {
        owner: "acme".into(),
        until: 99,
    };
    quarantined.quarantine = Some((quarantined.released.clone(), quarantine));
    quarantined.handovers = BTreeMap::from([(quarantined.released[0].clone(), 3)]);
    from.change_site(&lock, &quarantined).unwrap();
    let (shared, _kept) = store(Retention::default());
    let who = audit::Who::default();

    let copied = copy(&from, &shared, &who, &Clock::System).unwrap();
    assert_eq!((copied.releases, copied.pointers, copied.sites), (3, 1, 1));
    let again = copy(&from, &shared, &who, &Clock::System).unwrap();
    assert_eq!(again, Copied::default());
    let back = open("back");
    copy(&shared, &back, &who, &Clock::System).unwrap();
    for store in [&shared, &back] {
        assert_eq!(store.current(&acme).unwrap(), from.current(&acme).unwrap());
        (1..=3).for_each(|number| is_whole(store, &numbered(number)));
        assert_eq!(
            store.site_record(&acme).unwrap(),
            from.site_record(&acme).unwrap()
        );
        for host in ["docs.acme.test", "old.acme.test"] {
            let host = Host::parse(host).unwrap();
            let claim = from.host_claim(&host).unwrap();
            assert!(claim.is_some());
            assert_eq!(store.host_claim(&host).unwrap(), claim);
        }
        assert_eq!(
            store.verification_key().unwrap(),
            from.verification_key().unwrap()
        );
    }
    let id = shared.put(&numbered(4)).unwrap();
    let newest = shared.promote(&acme, id, fence(9, 0)).unwrap();
    let late = copy(&from, &shared, &who, &Clock::System).unwrap();
    assert_eq!(late.newer, std::slice::from_ref(&acme));
    assert_eq!(shared.current(&acme).unwrap(), Some(newest));
}

#[test]
fn a_place_or_a_database_that_must_not_be_used_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(directory.path(), Retention::default());
    let why_not = |config: &Config| {
        let cache = tempfile::tempdir().unwrap();
        let store = node(config, cache.path(), "cache");
        let error = store.put(&numbered(1)).unwrap_err();
        assert!(of(&store).check_reachable().is_err());
        chain(&error)
    };
    let at = |name: &str| {
        let path = directory.path().join(name);
        let mut config = config.clone();
        config.objects.url = format!("file://{}", path.display()).into();
        (path, config)
    };
    let (path, unmarked) = at("unmarked");
    assert!(
        why_not(&unmarked).contains("use the objects in"),
        "not mounted"
    );
    std::fs::create_dir(&path).unwrap();
    let text = why_not(&unmarked);
    assert!(text.contains("`waypost store init` makes it"), "{text}");
    std::fs::write(path.join("waypost-store"), "another").unwrap();
    let text = why_not(&unmarked);
    assert!(text.contains("it belongs to another store"), "{text}");
    let refused = Shared::init(&unmarked, "tests", false).unwrap_err();
    assert!(chain(&refused).contains("it belongs to another store"));

    let mut without = config.clone();
    without.database = empty();
    let text = why_not(&without);
    assert!(
        text.contains("the database has no store; `waypost store init` makes it"),
        "{text}"
    );
    psql(&without.database, "CREATE TABLE accounts (id int)");
    let refused = Shared::init(&without, "tests", false).unwrap_err();
    assert!(chain(&refused).contains("for example `public.accounts`"));
    let refused = Shared::init(&config, "other.test", false).unwrap_err();
    assert!(chain(&refused).contains("the store in the database belongs to the service tests"));
    psql(
        &config.database,
        "UPDATE waypost_store.identity SET version = 7, compatible = 7",
    );
    let text = why_not(&config);
    assert!(
        text.contains("the store has schema 7; this program reads schemas up to 2"),
        "{text}"
    );
}

#[test]
fn a_sweep_never_removes_what_others_put_and_promote_at_the_same_time() {
    let directory = tempfile::tempdir().unwrap();
    // Everything that no pointer names is old at once.
    let retention = Retention {
        releases: 1,
        unnamed_seconds: 0,
    };
    let config = config(directory.path(), retention);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let (config, directory) = (&config, directory.path());
                scope.spawn(move || {
                    let store = node(config, directory, &format!("writer{writer}"));
                    let name = project(&format!("p{writer}"));
                    for generation in 1..=12 {
                        let release = numbered(usize::try_from(generation).unwrap() % 4);
                        let promoted = loop {
                            // Both may find that the sweep was faster, and are repeated.
                            let Ok(id) = store.put(&release) else {
                                continue;
                            };
                            match store.promote(&name, id, fence(generation, 0)) {
                                Ok(pointer) => break pointer,
                                Err(PromoteError::UnknownRelease(_)) => {}
                                Err(error) => panic!("{}", chain(&error)),
                            }
                        };
                        assert_eq!(promoted.current.release, release.id());
                        let reader = tempfile::tempdir().unwrap();
                        is_whole(&node(config, reader.path(), "reader"), &release);
                    }
                })
            })
            .collect();
        let sweeping = scope.spawn(|| {
            let store = node(&config, directory.path(), "sweeper");
            while !is_over.load(Ordering::SeqCst) {
                // It ends early when a release vanishes that it reads.
                let _swept = store.sweep(Clock::System.now());
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::SeqCst);
        sweeping.join().unwrap();
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
}

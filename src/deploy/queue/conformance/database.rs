//! Further guarantees of a queue in PostgreSQL: processes share it, the server's clock decides, and
//! a database that must not be used is refused with a reason.

use std::sync::Mutex;

use super::*;
use crate::database::testing;
use crate::database::testing::psql;

/// Makes an empty database, with the tables of a queue or without.
fn database(with_tables: bool) -> PostgresConfig {
    let init = |config: &PostgresConfig| {
        Postgres::init(config, "tests", false).unwrap();
    };
    match with_tables {
        true => testing::with_tables("queue_template", init),
        false => testing::empty(),
    }
}

/// An empty queue in a database of its own.
pub(super) fn queue(policy: &Policy) -> Queue {
    open(&database(true), policy)
}

fn open(config: &PostgresConfig, policy: &Policy) -> Queue {
    let postgres = Postgres::open_for_tests(config);
    Queue::new(Backend::Postgres(postgres), policy.clone())
}

/// Opens a queue as a process does, and returns why it cannot be used.
fn why_not(config: &PostgresConfig) -> String {
    let postgres = Postgres::open(config, "tests", None).unwrap();
    let queue = Queue::new(Backend::Postgres(postgres), Policy::default());
    let error = queue.heal().unwrap_err();
    assert!(error.is_outage(), "{error}");
    crate::error::chain(&error)
}

#[test]
fn two_processes_share_a_database() {
    let config = database(true);
    let (one, other) = (
        open(&config, &Policy::default()),
        open(&config, &Policy::default()),
    );
    let id = enqueue(&one, "docs", 0).id;
    assert_eq!(enqueue(&other, "docs", 0).id, id);
    assert_eq!(claim(&other, 1).update.id, id);
    drop((one, other));
    let later = open(&config, &Policy::default());
    assert_eq!(status(&later, &id), Status::InProgress);
}

#[test]
fn leases_end_by_the_clock_of_the_server() {
    let config = database(true);
    let open = || Postgres::open(&config, "tests", None).unwrap();
    let queue = Queue::new(Backend::Postgres(open()), Policy::default());
    // The clocks of the two callers are years apart, and wrong.
    enqueue(&queue, "docs", 0);
    let held = queue.claim(&worker(), Owners::All, Timestamp::from_millis(1));
    let held = held.unwrap().expect("it is due by the server's clock");
    let ahead = at(1_000_000_000);
    assert_eq!(queue.claim(&worker(), Owners::All, ahead).unwrap(), None);
    assert_eq!(queue.correct_times(Timestamp::from_millis(1)).unwrap(), 0);
    let beat = queue.heartbeat(&held, Progress::default(), Timestamp::from_millis(1));
    assert_eq!(beat.unwrap(), Held::Yes);
    assert_eq!(queue.claim(&worker(), Owners::All, ahead).unwrap(), None);
}

#[test]
fn many_workers_claim_each_update_once() {
    let config = database(true);
    let queue = open(&config, &Policy::default());
    let names: Vec<_> = (0..40).map(|n| format!("p{n}")).collect();
    for name in &names {
        enqueue(&queue, name, 0);
    }
    let workers: Vec<_> = (0..4).map(|_| open(&config, &Policy::default())).collect();
    let claimed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for queue in &workers {
            scope.spawn(|| {
                while let Some(claim) = queue.claim(&worker(), Owners::All, at(1)).unwrap() {
                    let beat = queue.heartbeat(&claim, Progress::default(), at(2));
                    assert_eq!(beat.unwrap(), Held::Yes);
                    claimed.lock().unwrap().push(claim.project().to_string());
                    let ended = queue.finish(&claim, &published(), "", at(3));
                    assert_eq!(ended.unwrap(), Held::Yes);
                }
            });
        }
    });
    let mut claimed = claimed.into_inner().unwrap();
    claimed.sort();
    let mut expected = names;
    expected.sort();
    assert_eq!(claimed, expected);
    assert_eq!(queue.depth().unwrap(), Depth::default());
}

#[test]
fn an_acknowledged_update_that_a_fail_over_lost_is_queued_again() {
    let config = database(true);
    let postgres = Postgres::open_for_tests(&config);
    let queue = Queue::new(Backend::Postgres(postgres), Policy::default());
    let lost = enqueue(&queue, "docs", 0).id;
    let kept = enqueue(&queue, "other", 0).id;
    psql(
        &config,
        &format!("DELETE FROM waypost_queue.updates WHERE id = '{lost}'"),
    );
    assert!(queue.record(&lost).unwrap().is_none());
    let Backend::Postgres(postgres) = &queue.backend else {
        unreachable!("it was made above");
    };
    postgres.find_new_life();
    queue.heal().unwrap();
    assert_eq!(status(&queue, &lost), Status::Queued);
    assert_eq!(status(&queue, &kept), Status::Queued);
    assert_eq!(queue.depth().unwrap().queued, 2);
    // Its number is new, so its release is newer than any that was lost.
    assert_eq!(queue.generation(&project("docs")).unwrap(), 2);
}

#[test]
fn an_update_that_a_restored_copy_of_the_database_lacks_is_queued_again() {
    let config = database(true);
    let postgres = Postgres::open_for_tests(&config);
    let queue = Queue::new(Backend::Postgres(postgres), Policy::default());
    let kept = enqueue(&queue, "docs", 0).id;
    let lost = enqueue(&queue, "other", 0).id;
    // The server ends all connections, and its life stays the same.
    psql(
        &config,
        &format!(
            "DELETE FROM waypost_queue.updates WHERE id = '{lost}'; \
             SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ),
    );
    queue.heal().unwrap();
    assert_eq!(status(&queue, &lost), Status::Queued);
    assert_eq!(status(&queue, &kept), Status::Queued);
    // Another connection finds nothing to do.
    psql(
        &config,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    queue.heal().unwrap();
    assert_eq!(queue.generation(&project("other")).unwrap(), 2);
}

#[test]
fn a_claim_that_a_fail_over_lost_holds_nothing_beside_its_successor() {
    let config = database(true);
    let (one, other) = (
        open(&config, &Policy::default()),
        open(&config, &Policy::default()),
    );
    let id = enqueue(&one, "docs", 0).id;
    let lost = claim(&one, 0);
    psql(
        &config,
        "UPDATE waypost_queue.updates SET state = 'queued', due_at = created_at, worker = NULL, epoch = NULL, attempts = 0; \
         UPDATE waypost_queue.projects SET epoch = 0",
    );
    let held = claim(&other, 1);
    assert_eq!(held.epoch, lost.epoch, "numbers are used again");
    let beat = |queue: &Queue, claim| queue.heartbeat(claim, Progress::default(), at(2)).unwrap();
    assert_eq!(beat(&one, &lost), Held::Lost);
    assert_eq!(beat(&other, &held), Held::Yes);
    let raised = one.raise_generation(&mut lost.clone(), 9).unwrap();
    assert_eq!(raised, Held::Lost);
    let ended = one.finish(&lost, &Outcome::Failure, "mine", at(3)).unwrap();
    assert_eq!(ended, Held::Lost);
    let ended = other.finish(&held, &published(), "done", at(4)).unwrap();
    assert_eq!(ended, Held::Yes);
    assert_eq!(status(&other, &id), Status::Success);
}

#[test]
fn a_lost_update_is_superseded_by_one_that_waits() {
    let config = database(true);
    let postgres = Postgres::open_for_tests(&config);
    let queue = Queue::new(Backend::Postgres(postgres), Policy::default());
    let lost = enqueue(&queue, "docs", 0).id;
    let delete = format!("DELETE FROM waypost_queue.updates WHERE id = '{lost}'");
    psql(&config, &delete);
    // Another process has queued the project before this one has noticed the fail-over.
    let waiting = enqueue(&open(&config, &Policy::default()), "docs", 1).id;
    let Backend::Postgres(postgres) = &queue.backend else {
        unreachable!("it was made above");
    };
    postgres.find_new_life();
    queue.heal().unwrap();
    assert_eq!(status(&queue, &lost), Status::Queued);
    let claimed = claim(&queue, 2);
    assert_eq!(*claimed.id(), waiting);
    let ended = queue.finish(&claimed, &published(), "done", at(3));
    assert_eq!(ended.unwrap(), Held::Yes);
    assert_eq!(status(&queue, &lost), Status::Success);
    assert_eq!(queue.depth().unwrap(), Depth::default());
}

#[test]
fn a_change_whose_answer_was_lost_has_its_own_result() {
    let mut config = database(true);
    let relay = testing::Relay::start(&mut config);
    let queue = open(&config, &Policy::default());
    queue.heal().unwrap();
    let lost_answer = |act: &dyn Fn()| {
        relay.lose_next_commit();
        act();
        assert!(relay.has_lost());
    };
    lost_answer(&|| assert!(!enqueue(&queue, "docs", 0).coalesced));
    let claimed = claim(&queue, 1);
    lost_answer(&|| {
        let ended = queue.finish(&claimed, &published(), "done", at(2));
        assert_eq!(ended.unwrap(), Held::Yes);
    });
    assert_eq!(status(&queue, claimed.id()), Status::Success);

    let waiting = enqueue(&queue, "docs", 3).id;
    let cancel = || queue.cancel(&project("docs"), "cancelled", at(4)).unwrap();
    lost_answer(&|| assert!(cancel()));
    assert_eq!(status(&queue, &waiting), Status::Failure);
    assert!(!cancel());

    enqueue(&queue, "docs", 10);
    for round in 0..6 {
        let _ = queue
            .claim(&worker(), Owners::All, at(10 + round * 31))
            .unwrap();
    }
    let requeue = || queue.requeue(&project("docs"), at(300)).unwrap();
    lost_answer(&|| {
        let requeued = requeue().unwrap();
        assert_eq!(status(&queue, &requeued.id), Status::Queued);
    });
    assert_eq!(requeue(), None);
}

#[test]
fn a_log_line_may_contain_nul() {
    let queue = queue(&Policy::default());
    let id = enqueue(&queue, "docs", 0).id;
    let held = claim(&queue, 0);
    let progress = Progress {
        lines: vec!["a\0b".to_owned()],
        commit: None,
    };
    assert_eq!(queue.heartbeat(&held, progress, at(1)).unwrap(), Held::Yes);
    assert!(record(&queue, &id).logs[0].ends_with("a\u{fffd}b"));
}

#[test]
fn a_database_that_must_not_be_used_is_refused_with_a_reason() {
    let empty = database(false);
    assert_eq!(
        why_not(&empty),
        "the database has no queue; `waypost queue init` makes it"
    );
    psql(&empty, "CREATE TABLE accounts (id int)");
    let init = |config: &PostgresConfig, service: &str, shared| {
        Postgres::init(config, service, shared).map_err(|error| crate::error::chain(&error))
    };
    let refused = init(&empty, "tests", false).unwrap_err();
    assert!(
        refused.contains("for example `public.accounts`"),
        "{refused}"
    );
    assert_eq!(init(&empty, "tests", true), Ok(true));
    assert_eq!(init(&empty, "tests", false), Ok(false));
    let refused = init(&empty, "other.test", false).unwrap_err();
    assert!(
        refused.contains("belongs to the service tests, not to other.test"),
        "{refused}"
    );

    // A newer schema that programs of this version may use, and a schema that they may not.
    psql(&empty, "UPDATE waypost_queue.identity SET version = 7");
    open(&empty, &Policy::default()).heal().unwrap();
    psql(&empty, "UPDATE waypost_queue.identity SET compatible = 7");
    let newer = "the queue has schema 7; this program reads schemas up to 1";
    assert_eq!(why_not(&empty), newer);
    assert_eq!(init(&empty, "tests", false), Err(newer.to_owned()));
    psql(
        &empty,
        "UPDATE waypost_queue.identity SET version = 0, compatible = 0",
    );
    assert!(why_not(&empty).contains("`waypost queue migrate` raises it"));

    let foreign = database(false);
    psql(&foreign, "CREATE SCHEMA waypost_queue");
    assert!(why_not(&foreign).contains("that Waypost did not make"));

    let durable = PostgresConfig {
        require_durable: true,
        require_standby: true,
        ..database(true)
    };
    assert!(why_not(&durable).contains(
        "may lose acknowledged updates: `fsync` is off, `full_page_writes` is off, \
             `synchronous_standby_names` is empty"
    ));

    let directory = tempfile::tempdir().unwrap();
    let wrong = PostgresConfig {
        password_file: Some(directory.path().join("password")),
        ..database(true)
    };
    assert!(why_not(&wrong).contains("read the password in"));
    std::fs::write(directory.path().join("password"), "wrong\n").unwrap();
    let refused = why_not(&wrong);
    assert!(
        refused.contains("refuses access: password authentication failed"),
        "{refused}"
    );
    let missing = PostgresConfig {
        url: Some(wrong.url.unwrap().replace("/test", "/no_test").into()),
        ..database(true)
    };
    assert!(why_not(&missing).contains("does not exist"));
}

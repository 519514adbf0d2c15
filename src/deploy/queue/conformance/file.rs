//! Further guarantees of a queue in a file: processes share it, it survives a restart, and newer
//! files are rejected.

use std::fs;

use super::*;
use crate::clock::Clock;
use crate::telemetry::Health;

#[test]
fn two_processes_share_a_durable_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/updates.sqlite");
    let open = || {
        let sqlite = Sqlite::open(&path).unwrap();
        Queue::new(Backend::Sqlite(sqlite), Policy::default())
    };
    let (one, other) = (open(), open());
    let id = enqueue(&one, "docs", 0).id;
    assert_eq!(enqueue(&other, "docs", 0).id, id);
    assert_eq!(claim(&other, 1).update.id, id);
    drop((one, other));
    assert_eq!(status(&open(), &id), Status::InProgress);
}

#[test]
fn a_file_of_a_newer_version_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("updates.sqlite");
    drop(Sqlite::open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let opened = Sqlite::open(&path);
    assert_eq!(
        opened.unwrap_err().to_string(),
        "the queue has schema 7; this program reads schemas up to 3"
    );
}

#[test]
fn a_file_that_cannot_be_opened_is_reported_until_the_queue_has_healed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("updates.sqlite");
    // A directory has the name of the file.
    fs::create_dir(&path).unwrap();
    let health = Health::new(Clock::System);
    let policy = Policy {
        attempts_max: 2,
        ..Policy::default()
    };
    let sqlite = Sqlite::open_or_retry(&path);
    let queue = Queue::new(Backend::Sqlite(sqlite), policy.clone()).reporting_to(&health);
    assert_eq!(queue.policy(), &policy);
    assert!(queue.enqueue(&trigger("docs"), at(0)).is_err());
    assert!(queue.heal().is_err());
    assert!(!health.is_whole());

    fs::remove_dir(&path).unwrap();
    queue.heal().unwrap();
    assert!(health.is_whole());
    let id = enqueue(&queue, "docs", 1).id;
    assert_eq!(status(&queue, &id), Status::Queued);

    // A trigger that is rejected says nothing about the file.
    let limited = Policy {
        waiting_max: 1,
        ..policy
    };
    let sqlite = Sqlite::open(&path).unwrap();
    let queue = Queue::new(Backend::Sqlite(sqlite), limited).reporting_to(&health);
    let rejected = queue.enqueue(&trigger("other"), at(1));
    assert!(matches!(rejected, Err(QueueError::Full { limit: 1 })));
    assert!(health.is_whole());
}

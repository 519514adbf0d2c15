//! Further guarantees of a queue in a file: processes share it, it survives a restart, and newer
//! files are rejected.

use super::*;

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
        "the queue has schema 7; this program reads schemas up to 1"
    );
}

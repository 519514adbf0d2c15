//! What only a queue in a file promises.

use super::*;

#[test]
fn two_processes_share_a_file_and_what_it_holds_survives() {
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
fn a_file_of_a_newer_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("updates.sqlite");
    drop(Sqlite::open(&path).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 7).unwrap();
    drop(connection);
    let opened = Sqlite::open(&path);
    assert_eq!(
        opened.unwrap_err().to_string(),
        "the queue has schema 7, this version knows 3"
    );
}

#[test]
fn a_file_of_the_first_version_is_brought_up_to_date_with_what_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("updates.sqlite");
    let waiting = StatusId::generate(at(0)).unwrap();
    let ended = StatusId::generate(at(0)).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch(include_str!("../sqlite/schema.sql"))
        .unwrap();
    let release = release("one");
    let rows = format!(
        "INSERT INTO projects (project, generation, epoch) VALUES ('docs', 2, 1); \
         INSERT INTO updates (id, project, owner, subdomain, source, generation, created_at, \
             attempts, state, due_at, ended_at, release, summary) VALUES \
         ('{ended}', 'docs', 'acme', 'docs', 'api', 1, 0, 1, 'success', NULL, 1, '{release}', ''), \
         ('{waiting}', 'docs', 'acme', 'docs', 'api', 2, 0, 0, 'queued', 1, NULL, NULL, '')",
    );
    connection.execute_batch(&rows).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    drop(connection);

    let sqlite = Sqlite::open(&path).unwrap();
    let queue = Queue::new(Backend::Sqlite(sqlite), Policy::default());
    assert_eq!(status(&queue, &ended), Status::Success);
    assert_eq!(
        queue.unseen().unwrap(),
        [],
        "nobody knows which claim published it"
    );
    let claimed = claim(&queue, 1);
    assert_eq!((claimed.id(), claimed.epoch), (&waiting, 2));
    let _ = queue.finish(&claimed, &published(), "done", at(2)).unwrap();
    assert_eq!(queue.unseen().unwrap(), [project("docs")]);
}

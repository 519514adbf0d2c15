//! One suite over every back end of the queue.

mod attempts;
mod database;
mod file;
mod histories;
mod model;
mod notified;
mod triggers;
mod round_robin;
mod spending;
mod visible;

use super::super::record::{Commit, FilesChanged};
use super::super::update::{Source, Status};
use super::*;
use crate::digest::Digest;
use crate::release::ReleaseId;

/// An empty queue in a file of this directory.
fn sqlite(policy: &Policy) -> (Queue, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(&directory.path().join("updates.sqlite")).unwrap();
    let queue = Queue::new(Backend::Sqlite(sqlite), policy.clone());
    (queue, directory)
}

/// An empty queue of each kind. The directory must outlive the queue.
fn queues(policy: &Policy) -> Vec<(Queue, tempfile::TempDir)> {
    let of_database = (database::queue(policy), tempfile::tempdir().unwrap());
    vec![sqlite(policy), of_database]
}

/// Runs a check on a queue of each kind.
fn on_each(check: impl Fn(&Queue)) {
    for (queue, _directory) in queues(&Policy::default()) {
        check(&queue);
    }
}

fn project(name: &str) -> ProjectId {
    ProjectId::parse(name).unwrap()
}

fn trigger(name: &str) -> Trigger {
    Trigger {
        project: project(name),
        owner: "acme".into(),
        subdomain: name.into(),
        source: Source::Api,
        idempotency: None,
    }
}

/// A trigger of another owner.
fn trigger_of(owner: &str, name: &str) -> Trigger {
    Trigger {
        owner: owner.into(),
        ..trigger(name)
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + seconds * 1000)
}

fn worker() -> WorkerId {
    WorkerId::new("worker")
}

fn release(name: &str) -> ReleaseId {
    ReleaseId::parse(&Digest::of(name.as_bytes()).to_string()).unwrap()
}

fn published() -> Outcome {
    Outcome::Success {
        release: release("one"),
        visible_at: None,
    }
}

#[track_caller]
fn claim(queue: &Queue, seconds: u64) -> Claim {
    let claim = queue.claim(&worker(), Owners::All, at(seconds)).unwrap();
    claim.expect("an update is due")
}

#[track_caller]
fn enqueue(queue: &Queue, name: &str, seconds: u64) -> Enqueued {
    queue.enqueue(&trigger(name), at(seconds)).unwrap()
}

#[track_caller]
fn record(queue: &Queue, id: &StatusId) -> Record {
    queue.record(id).unwrap().expect("the record is kept")
}

#[track_caller]
fn status(queue: &Queue, id: &StatusId) -> Status {
    record(queue, id).status()
}

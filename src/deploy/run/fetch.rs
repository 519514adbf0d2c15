//! The process that fetches: it has the network and the credentials, and one mirror.

use std::time::Instant;

use super::child::Parent;
use super::job::{Event, FetchJob, Step, Stopped};
use crate::deploy::record::{Commit, FilesChanged};
use crate::error::chain;
use crate::source::git::{self, Address, FetchError, Fetching, Head};
use crate::telemetry::logging::printable;

/// Fetches a branch and reports its newest commit; the last event says how it ended.
pub(super) fn fetch(job: &FetchJob, parent: &mut Parent<'_>) {
    parent.report(Event::Step(Step::Fetch));
    let last = match attempt(job, parent) {
        Ok(commit) => Event::Fetched(commit),
        Err(stopped) => Event::Stopped(stopped),
    };
    parent.report(last);
}

fn attempt(job: &FetchJob, parent: &mut Parent<'_>) -> Result<Box<str>, Stopped> {
    let since = Instant::now();
    let address = Address::parse(&job.url, &job.branch, &job.git)
        .map_err(|invalid| stopped(&invalid.into()))?;
    let head = git::fetch(&job.git, &address, &fetching(job)).map_err(|error| stopped(&error))?;
    let commit = commit(job, &head);
    head.clean(&job.mirror);
    let subject = commit.message.lines().next().unwrap_or_default();
    parent.report(Event::Line(format!(
        "fetch: {} is at {} \"{}\" by {} ({} ms)",
        job.branch,
        short(&head.commit),
        printable(subject),
        printable(&head.author),
        since.elapsed().as_millis(),
    )));
    parent.report(Event::Line(format!(
        "fetch: {}",
        changed(job, &commit.files_changed)
    )));
    parent.report(Event::Commit(commit));
    Ok(head.commit)
}

/// Fetches the history of a branch, for the days on which its files were last changed.
pub(super) fn fetch_history(job: &FetchJob, parent: &mut Parent<'_>) {
    let since = Instant::now();
    let last = match attempt_history(job) {
        Ok(()) => {
            let took = since.elapsed().as_millis();
            parent.report(Event::Line(format!(
                "read: fetched the history ({took} ms)"
            )));
            Event::Done
        }
        Err(Stopped { summary, transient }) => Event::Stopped(Stopped {
            summary: format!("`metadata.timestamp` needs the history of the branch: {summary}"),
            transient,
        }),
    };
    parent.report(last);
}

fn attempt_history(job: &FetchJob) -> Result<(), Stopped> {
    let address = Address::parse(&job.url, &job.branch, &job.git)
        .map_err(|invalid| stopped(&invalid.into()))?;
    git::fetch_history(&job.git, &address, &fetching(job)).map_err(|error| stopped(&error))
}

fn fetching(job: &FetchJob) -> Fetching<'_> {
    Fetching {
        mirror: &job.mirror,
        bytes_max: job.bytes_max,
        rate_min: job.rate_min,
        grace: job.grace,
        secrets: &job.secrets,
        scratch: &job.home,
    }
}

/// Returns what the record says about an error. The log gets the paths.
pub(super) fn stopped(error: &FetchError) -> Stopped {
    match error {
        FetchError::Mirror { path, source } => {
            log::error!(target: "deploy", "cannot use {}: {source}", path.display());
        }
        FetchError::MissingRepository(said) | FetchError::Credentials(said) => {
            log::warn!(target: "deploy", "cannot fetch a repository: {}", printable(said));
        }
        FetchError::Full => {
            log::error!(
                target: "deploy",
                "there is no room for a mirror: see git.mirrors_bytes_max, git.free_bytes_min and \
                 the free space of the disk"
            );
        }
        _ => {}
    }
    Stopped {
        transient: error.is_transient(),
        summary: chain(error),
    }
}

fn commit(job: &FetchJob, head: &Head) -> Commit {
    let before = job.commit_before.as_deref();
    let changes = before
        .and_then(|before| head.changes_since(before, job.git.entries_max))
        .unwrap_or_default();
    let commit = Commit {
        sha: head.commit.clone(),
        branch: job.branch.clone(),
        message: head.message.clone(),
        author: head.author.clone(),
        files_changed: FilesChanged {
            added: changes.added,
            modified: changes.modified,
            removed: changes.removed,
        },
    };
    commit.bounded()
}

fn changed(job: &FetchJob, changed: &FilesChanged) -> String {
    let Some(before) = &job.commit_before else {
        return "this is the first deployment".to_owned();
    };
    format!(
        "{} added, {} modified, {} removed since {}",
        changed.added.len(),
        changed.modified.len(),
        changed.removed.len(),
        short(before),
    )
}

pub(super) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

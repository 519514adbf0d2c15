//! The part of an update that handles the content of customers: fetch, read, build and put.
//!
//! If the operator has configured a command, it also has the command write a better skill than
//! the generated one. It does not change what is served: it ends with a release in the store that
//! no pointer names. It runs in a separate process ([`super::child`]), reports its progress as
//! [`Event`]s and may block; the parent enforces the time limits.

use std::time::Instant;

use bytes::Bytes;

use super::cache::BuildCache;
use super::generate::Task;
use super::job::{Event, Job, Prepared, Step, Stopped};
use crate::build::{Built, Input, NAVIGATION_PATH, Previous, PreviousRelease, build_after};
use crate::clock::Clock;
use crate::deploy::record::{Commit, FilesChanged};
use crate::diagnostic::count;
use crate::docs::page::Pages;
use crate::error::chain;
use crate::release::Item;
use crate::site::ProjectId;
use crate::source::TreePath;
use crate::source::git::{self, Address, FetchError, Head};
use crate::source::remote::{self, Remote};
use crate::store::{Local, Retention, Store, local};

/// The result of a preparation.
struct Made<'j> {
    store: Store,
    built: Built,
    prepared: Prepared,
    /// The task of the command, if it must run now.
    task: Option<Task<'j>>,
}

/// Prepares a release and reports its progress; the last event says how it ended.
pub(super) fn prepare(job: &Job, report: &mut dyn FnMut(Event)) {
    let made = match attempt(job, report) {
        Ok(made) => made,
        Err(stopped) => return report(Event::Stopped(stopped)),
    };
    report(Event::Prepared(made.prepared.clone()));
    if let Some(task) = made.task {
        report(Event::Step(Step::Generate));
        let last = match rebuild_with_skill(&task, made.built, &made.store, report) {
            Ok(prepared) if prepared.release != made.prepared.release => Event::Prepared(prepared),
            Ok(_) => Event::SkillStays("the command wrote the same".to_owned()),
            Err(why) => Event::SkillStays(why),
        };
        report(last);
    }
}

fn attempt<'j>(job: &'j Job, report: &mut dyn FnMut(Event)) -> Result<Made<'j>, Stopped> {
    report(Event::Step(Step::Fetch));
    let head = fetch(job, report)?;
    report(Event::Step(Step::Read));
    let input = read(job, &head, report)?;
    report(Event::Step(Step::Build));
    let store = open(job)?;
    let mut built = build(job, &input, &store, report)?;
    let mut task = task(job, input, &built);
    if let Some(cached) = task.as_ref().and_then(Task::cached) {
        let line = "generate: the input of the command has not changed; its last output is used";
        report(Event::Line(line.to_owned()));
        built = built.with_skill(cached);
        task = None;
    }
    report(Event::Step(Step::Put));
    let mut prepared = put(&store, &built, report)?;
    prepared.skill_pending = task.is_some();
    let cache = BuildCache {
        release: prepared.release,
        articles: std::mem::take(&mut built.articles),
    };
    if let Err(error) = cache.write(job) {
        report(Event::Line(format!(
            "put: the next build starts without a cache: {error}"
        )));
    }
    Ok(Made {
        store,
        built,
        prepared,
        task,
    })
}

/// Returns the task of the command: to write a better skill than the generated one.
fn task<'j>(job: &'j Job, input: Input, built: &Built) -> Option<Task<'j>> {
    let config = job.generate.as_ref()?;
    let skill = built.generated()?.to_owned();
    Some(Task {
        config,
        docs: input.docs,
        skill,
        cache: job.skill_cache(),
    })
}

/// Runs the command, and prepares the release with its output.
fn rebuild_with_skill(
    task: &Task<'_>,
    built: Built,
    store: &Store,
    report: &mut dyn FnMut(Event),
) -> Result<Prepared, String> {
    let since = Instant::now();
    let written = task.write().map_err(|error| error.to_string())?;
    report(Event::Line(format!(
        "generate: the command wrote skill {} of {} characters ({} ms)",
        written.slug.as_str(),
        written.text.chars().count(),
        since.elapsed().as_millis(),
    )));
    put(store, &built.with_skill(written), report).map_err(|stopped| stopped.summary)
}

fn fetch(job: &Job, report: &mut dyn FnMut(Event)) -> Result<Head, Stopped> {
    let since = Instant::now();
    let stopped = |error: FetchError| Stopped {
        transient: error.is_transient(),
        summary: chain(&error),
    };
    let address = Address::parse(&job.url, &job.branch, &job.git)
        .map_err(|invalid| stopped(invalid.into()))?;
    let head = git::fetch(&job.git, &address).map_err(stopped)?;
    let commit = commit(job, &head);
    let subject = commit.message.lines().next().unwrap_or_default();
    report(Event::Line(format!(
        "fetch: {} is at {} \"{subject}\" by {} ({} ms)",
        job.branch,
        short(&head.commit),
        head.author,
        since.elapsed().as_millis(),
    )));
    report(Event::Line(format!(
        "fetch: {}",
        changed(job, &commit.files_changed)
    )));
    report(Event::Commit(commit));
    Ok(head)
}

fn commit(job: &Job, head: &Head) -> Commit {
    let before = job.commit_before.as_deref();
    let changes = before
        .and_then(|before| head.changes_since(before))
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

fn changed(job: &Job, changed: &FilesChanged) -> String {
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

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Reads the documentation, and the OpenAPI specifications that it names by URL.
fn read(job: &Job, head: &Head, report: &mut dyn FnMut(Event)) -> Result<Input, Stopped> {
    let since = Instant::now();
    let docs = TreePath::parse(&job.directory).map_err(|invalid| Stopped::lasting(&invalid))?;
    let (tree, left_out) = head.open(&docs).map_err(|error| match error {
        git::OpenError::Git(_) => Stopped::transient(&error),
        _ => Stopped::lasting(&error),
    })?;
    let files = tree.files().count();
    let mut input = Input::fetch(tree, &job.options(), &Pages::default(), |urls| {
        specifications(job, urls, report)
    })?;
    input.diagnostics.extend(left_out);
    report(Event::Line(format!(
        "read: {files} files, {} ({} ms)",
        count(input.docs.pages.iter().len(), "page"),
        since.elapsed().as_millis(),
    )));
    Ok(input)
}

/// Fetches the OpenAPI specifications that are named by URL, if the service allows it.
///
/// A failure of the network ends this attempt. A failure that the author must correct becomes an
/// error of the build.
fn specifications(
    job: &Job,
    urls: &[Box<str>],
    report: &mut dyn FnMut(Event),
) -> Result<Option<Remote>, Stopped> {
    if !job.specifications.is_allowed() {
        return Ok(None);
    }
    let since = Instant::now();
    let fetched = remote::fetch(&job.specifications, urls);
    for (url, file) in fetched.iter() {
        match file {
            Ok(bytes) => report(Event::Line(format!("read: {url}: {} bytes", bytes.len()))),
            Err(error) if error.is_transient() => {
                let why = chain(error);
                return Err(Stopped {
                    summary: format!("the specification {url} could not be fetched: {why}"),
                    transient: true,
                });
            }
            Err(_) => {}
        }
    }
    report(Event::Line(format!(
        "read: fetched {} ({} ms)",
        count(urls.len(), "specification"),
        since.elapsed().as_millis()
    )));
    Ok(Some(fetched))
}

/// Builds a release. Errors of the authors end the update here.
fn build(
    job: &Job,
    input: &Input,
    store: &Store,
    report: &mut dyn FnMut(Event),
) -> Result<Built, Stopped> {
    let since = Instant::now();
    let mut built = build_with_cache(job, input, store);
    if let Some(before) = previous_navigation(job, store) {
        let removed = built.removed_pages(input, &before);
        built.report.add(removed);
    }
    for line in built.report.to_string().lines() {
        report(Event::Line(format!("build: {line}")));
    }
    report(Event::Line(format!(
        "build: done ({} ms)",
        since.elapsed().as_millis()
    )));
    built
        .report
        .refuse_if_errors()
        .map_err(|refused| Stopped::lasting(&refused))?;
    Ok(built)
}

/// Builds with the cache of the previous build.
fn build_with_cache(job: &Job, input: &Input, store: &Store) -> Built {
    let cache = BuildCache::read(job);
    let inventory = cache.as_ref();
    let inventory = inventory.and_then(|cache| store.inventory(cache.release).ok());
    let read = |item: &Item| store.read(item).ok();
    let previous = Previous {
        articles: cache.map(|cache| cache.articles).unwrap_or_default(),
        release: inventory.as_ref().map(|inventory| PreviousRelease {
            inventory,
            read: &read,
        }),
    };
    build_after(input, &job.options(), &previous)
}

/// Returns the navigation of the current release. Only warnings depend on it.
fn previous_navigation(job: &Job, store: &Store) -> Option<Bytes> {
    let project = ProjectId::parse(&job.project).ok()?;
    let current = store.current(&project).ok()??.current.release;
    let inventory = store.inventory(current).ok()?;
    store.read(inventory.get(NAVIGATION_PATH)?).ok()
}

fn open(job: &Job) -> Result<Store, Stopped> {
    let config = local::Config {
        path: job.store.clone(),
        // Only a promotion removes old releases.
        retention: Retention::default(),
    };
    let store = Local::open(&config, Clock::System).map_err(|error| Stopped::transient(&error))?;
    Ok(Store::Local(store))
}

fn put(store: &Store, built: &Built, report: &mut dyn FnMut(Event)) -> Result<Prepared, Stopped> {
    let since = Instant::now();
    let release = store
        .put(&built.release)
        .map_err(|error| Stopped::transient(&error))?;
    report(Event::Line(format!(
        "put: release {} is in the store ({} ms)",
        short(&release.to_string()),
        since.elapsed().as_millis(),
    )));
    let (files, skills) = (built.report.files, built.report.skills.len());
    let warnings = built.report.tally().warnings;
    Ok(Prepared {
        release,
        summary: format!(
            "{files} files, {}, {}",
            count(skills, "skill"),
            count(warnings, "warning")
        ),
        skill_pending: false,
    })
}

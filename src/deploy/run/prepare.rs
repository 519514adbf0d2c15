//! The part of an update that handles what strangers wrote: fetch, read, build, put, and
//! where an operator wants it, a command that writes the skill nobody wrote.
//!
//! Nobody sees anything of it: it ends with a release in the store that no pointer names.
//! It runs in a process of its own ([`super::child`]), says what it does in [`Event`]s, and
//! blocks as long as it takes; whoever started it holds the clock.

use std::time::Instant;

use bytes::Bytes;

use super::generate::Task;
use super::job::{Event, Job, Prepared, Step, Stopped, chain};
use super::kept::Kept;
use crate::build::{Articles, Before, Built, Earlier, NAVIGATION_PATH, build_after, gone};
use crate::clock::Clock;
use crate::deploy::record::{Commit, FilesChanged};
use crate::diagnostic::Diagnostic;
use crate::docs;
use crate::release::Item;
use crate::site::ProjectId;
use crate::source::git::{self, Address, FetchError, Head};
use crate::source::{Tree, TreePath, remote};
use crate::store::{Local, Retention, Store, local};

/// What a preparation has made.
struct Made<'j> {
    store: Store,
    built: Built,
    prepared: Prepared,
    /// What a command is to write now.
    task: Option<Task<'j>>,
}

/// Prepares a release and tells how it goes; the last event says how it ended.
pub(super) fn prepare(job: &Job, tell: &mut dyn FnMut(Event)) {
    let made = match attempt(job, tell) {
        Ok(made) => made,
        Err(stopped) => return tell(Event::Stopped(stopped)),
    };
    tell(Event::Prepared(made.prepared.clone()));
    if let Some(task) = made.task {
        tell(Event::Step(Step::Generate));
        let last = match rewrite(&task, made.built, &made.store, tell) {
            Ok(prepared) if prepared.release != made.prepared.release => Event::Prepared(prepared),
            Ok(_) => Event::Kept("the command wrote the same".to_owned()),
            Err(why) => Event::Kept(why),
        };
        tell(last);
    }
}

fn attempt<'j>(job: &'j Job, tell: &mut dyn FnMut(Event)) -> Result<Made<'j>, Stopped> {
    tell(Event::Step(Step::Fetch));
    let head = fetch(job, tell)?;
    tell(Event::Step(Step::Read));
    let (tree, found) = read(job, &head, tell)?;
    let tree = specifications(job, tree, tell)?;
    tell(Event::Step(Step::Build));
    let store = open(job)?;
    let (mut built, articles) = make(job, &tree, found, &store, tell)?;
    let mut task = task(job, &tree, &built);
    if let Some(kept) = task.as_ref().and_then(Task::kept) {
        let line = "generate: nothing it is told of has changed; what the command wrote stays";
        tell(Event::Line(line.to_owned()));
        built = built.with_skill(kept);
        task = None;
    }
    tell(Event::Step(Step::Put));
    let mut prepared = put(&store, &built, tell)?;
    prepared.follows = task.is_some();
    let kept = Kept {
        release: prepared.release,
        articles,
    };
    if let Err(error) = kept.write(job) {
        tell(Event::Line(format!(
            "put: the next build starts from nothing: {error}"
        )));
    }
    Ok(Made {
        store,
        built,
        prepared,
        task,
    })
}

/// Finds what there is for a command to write: a skill that nobody wrote.
fn task<'j>(job: &'j Job, tree: &Tree, built: &Built) -> Option<Task<'j>> {
    let config = job.generate.as_ref()?;
    let skill = built.generated()?.to_owned();
    let (docs, _told_before) = docs::read(tree, &docs::Options::default());
    Some(Task {
        config,
        docs,
        skill,
        kept: job.written(),
    })
}

/// Has the command write, and prepares the release with what it wrote.
fn rewrite(
    task: &Task<'_>,
    built: Built,
    store: &Store,
    tell: &mut dyn FnMut(Event),
) -> Result<Prepared, String> {
    let since = Instant::now();
    let written = task.write().map_err(|error| error.to_string())?;
    tell(Event::Line(format!(
        "generate: the command wrote skill {} of {} characters ({} ms)",
        written.slug.as_str(),
        written.text.chars().count(),
        since.elapsed().as_millis(),
    )));
    put(store, &built.with_skill(written), tell).map_err(|stopped| stopped.summary)
}

fn fetch(job: &Job, tell: &mut dyn FnMut(Event)) -> Result<Head, Stopped> {
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
    tell(Event::Line(format!(
        "fetch: {} is at {} \"{subject}\" by {} ({} ms)",
        job.branch,
        short(&head.commit),
        head.author,
        since.elapsed().as_millis(),
    )));
    tell(Event::Line(format!(
        "fetch: {}",
        changed(job, &commit.files_changed)
    )));
    tell(Event::Commit(commit));
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

fn read(
    job: &Job,
    head: &Head,
    tell: &mut dyn FnMut(Event),
) -> Result<(Tree, Vec<Diagnostic>), Stopped> {
    let since = Instant::now();
    let docs = TreePath::parse(&job.directory).map_err(|invalid| Stopped::lasting(&invalid))?;
    let (tree, found) = head.open(&docs).map_err(|error| match error {
        git::OpenError::Git(_) => Stopped::transient(&error),
        _ => Stopped::lasting(&error),
    })?;
    tell(Event::Line(format!(
        "read: {} files ({} ms)",
        tree.files().count(),
        since.elapsed().as_millis(),
    )));
    Ok((tree, found))
}

/// Brings the specifications that are named by URL. The world's fault ends this attempt;
/// what the author has to change is for the build to tell.
fn specifications(job: &Job, tree: Tree, tell: &mut dyn FnMut(Event)) -> Result<Tree, Stopped> {
    if !job.specifications.is_allowed() {
        return Ok(tree);
    }
    let urls = docs::urls(&tree);
    if urls.is_empty() {
        return Ok(tree);
    }
    let since = Instant::now();
    let fetched = remote::fetch(&job.specifications, &urls);
    for (url, file) in fetched.iter() {
        match file {
            Ok(bytes) => tell(Event::Line(format!("read: {url}: {} bytes", bytes.len()))),
            Err(error) if error.is_transient() => {
                let summary = format!("the specification {url} did not come: {}", chain(error));
                return Err(Stopped {
                    summary,
                    transient: true,
                });
            }
            Err(_) => {}
        }
    }
    tell(Event::Line(format!(
        "read: asked for {} specifications ({} ms)",
        urls.len(),
        since.elapsed().as_millis()
    )));
    Ok(tree.with_remote(fetched))
}

fn make(
    job: &Job,
    tree: &Tree,
    found: Vec<Diagnostic>,
    store: &Store,
    tell: &mut dyn FnMut(Event),
) -> Result<(Built, Articles), Stopped> {
    let since = Instant::now();
    let (mut built, articles) = build_on(job, tree, store);
    built.report.add(found);
    if let Some(before) = navigation_before(job, store) {
        let gone = gone(&before, &built, tree);
        built.report.add(gone);
    }
    for line in built.report.to_string().lines() {
        tell(Event::Line(format!("build: {line}")));
    }
    tell(Event::Line(format!(
        "build: done ({} ms)",
        since.elapsed().as_millis()
    )));
    built
        .report
        .refuse_if_errors()
        .map_err(|error| Stopped::lasting(&error))?;
    Ok((built, articles))
}

/// Builds on what the last build left.
fn build_on(job: &Job, tree: &Tree, store: &Store) -> (Built, Articles) {
    let before = Kept::read(job);
    let inventory = before.as_ref();
    let inventory = inventory.and_then(|before| store.inventory(before.release).ok());
    let read = |item: &Item| store.read(item).ok();
    let before = Before {
        articles: before.map(|before| before.articles).unwrap_or_default(),
        release: inventory.as_ref().map(|inventory| Earlier {
            inventory,
            read: &read,
        }),
    };
    build_after(tree, &job.options(), &before)
}

/// Returns what the current release says of its pages; nothing depends on it but warnings.
fn navigation_before(job: &Job, store: &Store) -> Option<Bytes> {
    let project = ProjectId::parse(&job.project).ok()?;
    let current = store.current(&project).ok()??.current.release;
    let inventory = store.inventory(current).ok()?;
    store.read(inventory.get(NAVIGATION_PATH)?).ok()
}

fn open(job: &Job) -> Result<Store, Stopped> {
    let config = local::Config {
        path: job.store.clone(),
        // Only a promotion trims what is kept.
        retention: Retention::default(),
    };
    let store = Local::open(&config, Clock::System).map_err(|error| Stopped::transient(&error))?;
    Ok(Store::Local(store))
}

fn put(store: &Store, built: &Built, tell: &mut dyn FnMut(Event)) -> Result<Prepared, Stopped> {
    let since = Instant::now();
    let release = store
        .put(&built.release)
        .map_err(|error| Stopped::transient(&error))?;
    tell(Event::Line(format!(
        "put: release {} is in the store ({} ms)",
        short(&release.to_string()),
        since.elapsed().as_millis(),
    )));
    let skills = built.report.skills.len();
    let summary = format!(
        "{} files, {skills} skill{}, {} warning{}",
        built.report.files,
        if skills == 1 { "" } else { "s" },
        built.report.warnings(),
        if built.report.warnings() == 1 {
            ""
        } else {
            "s"
        },
    );
    Ok(Prepared {
        release,
        summary,
        follows: false,
    })
}

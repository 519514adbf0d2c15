//! The process that builds: from the tree of a commit to a release in the workspace.
//!
//! It has no network, and can read nothing but its mirror and its workspace. It reports its
//! progress as [`Event`]s and may block; the parent enforces the time limits, fetches the
//! specifications that are named by URL, runs the writer of a skill, and puts the release.

use std::fs;
use std::io;
use std::time::Instant;

use super::cache::BuildCache;
use super::child::Parent;
use super::content::Writer;
use super::generate::{Task, WriteError};
use super::job::{BuildJob, Event, Prepared, Source, Step, Stopped};
use super::workspace::{
    CACHE, NAVIGATION, PREVIOUS, Part, SEARCH_INDEX, SKILL, SKILL_BEFORE, SKILL_REJECTED,
    SPECIFICATIONS, WRITER_INPUT, WRITER_OUTPUT,
};
use crate::build::{Built, Input, Previous, PreviousRelease, build_into};
use crate::deploy::queue::{LOG_LINE_BYTES_MAX, LOG_LINES_MAX};
use crate::deploy::update::cut;
use crate::diagnostic::{Diagnostic, count};
use crate::docs::page::Pages;
use crate::docs::{Fetched, Needs};
use crate::release::site::SEARCH_FILE;
use crate::release::{Inventory, Item, Release, ReleaseFile};
use crate::skills::Age;
use crate::source::history::History;
use crate::source::remote::Remote;
use crate::source::{Tree, TreePath, directory, git};

/// How many lines of a report are in the record. The others are counted, and the rest of the log is
/// left for other lines.
const REPORT_LINES_MAX: usize = LOG_LINES_MAX - 500;

/// The result of a preparation.
struct Made<'j> {
    built: Built,
    prepared: Prepared,
    /// The inventory of the release that the store has.
    previous: Option<Inventory>,
    /// The task of the writer, if it must run now.
    task: Option<Task<'j>>,
}

/// Prepares a release and reports its progress; the last event says how it ended.
pub(super) fn prepare(job: &BuildJob, parent: &mut Parent<'_>) {
    let made = match attempt(job, parent) {
        Ok(made) => made,
        Err(stopped) => return parent.report(Event::Stopped(stopped)),
    };
    parent.report(Event::Prepared(made.prepared.clone()));
    let first = made.prepared.release;
    if let Some(task) = made.task {
        parent.report(Event::Step(Step::Generate));
        let previous = made.previous.as_ref();
        let last = match rebuild_with_skill(job, &task, made.built, previous, parent) {
            Ok(Some(prepared)) if prepared.release != first => Event::Prepared(prepared),
            Ok(Some(_)) => Event::SkillStays("the writer wrote the same".to_owned()),
            Ok(None) => Event::SkillWaits,
            Err(why) => Event::SkillStays(why),
        };
        parent.report(last);
    }
}

fn attempt<'j>(job: &'j BuildJob, parent: &mut Parent<'_>) -> Result<Made<'j>, Stopped> {
    parent.report(Event::Step(Step::Read));
    let input = read(job, parent)?;
    parent.report(Event::Step(Step::Build));
    let previous = previous(job);
    let known: Vec<&Inventory> = previous.iter().collect();
    let writer = Writer::new(&job.workspace, Part::First, &known).map_err(not_written)?;
    let mut built = build(job, &input, previous.as_ref(), &writer, parent)?;
    let mut task = task(job, &input, &built);
    // A large documentation takes a while to free. The release need not wait for it.
    rayon::spawn(move || drop(input));
    let last = task.as_mut().map(Task::last_accepted).unwrap_or_default();
    for line in last.lines {
        parent.report(Event::Line(line));
    }
    if let Some(last) = last.text {
        let age = last.age;
        let why = match age {
            Age::Now => "the input of the writer has not changed; its last output is used",
            Age::Earlier => "the last output of the writer stays until it has written another one",
        };
        parent.report(Event::Line(format!("generate: {why}")));
        built = built.with_written(last.skill, &last.stored);
        if age == Age::Now {
            task = None;
        }
    }
    if let Some(why) = task.as_ref().and_then(Task::reason_to_wait) {
        parent.report(Event::Line(format!("generate: {why}")));
        task = None;
    }
    parent.report(Event::Step(Step::Put));
    writer.finish(&built.release).map_err(not_written)?;
    if job.cache.is_some() {
        let cache = BuildCache {
            release: built.release.id(),
            articles: std::mem::take(&mut built.articles),
        };
        if let Err(error) = cache.write(&job.workspace.join(CACHE)) {
            parent.report(Event::Line(format!(
                "put: the next build starts without a cache: {error}"
            )));
        }
    }
    let mut prepared = prepared(&built, Part::First);
    prepared.skill_pending = task.is_some();
    Ok(Made {
        built,
        prepared,
        previous,
        task,
    })
}

/// Returns the inventory of the release of the last build, which the store has.
fn previous(job: &BuildJob) -> Option<Inventory> {
    let bytes = fs::read(job.workspace.join(PREVIOUS)).ok()?;
    Inventory::parse(&bytes).ok()
}

/// Returns the task of the writer: to write a better skill than the generated one.
fn task<'j>(job: &'j BuildJob, input: &Input, built: &Built) -> Option<Task<'j>> {
    let config = job.generate.as_ref()?;
    let skill = built.generated()?;
    let name = &*built.report.skills.first()?.slug;
    let released = fs::read(job.workspace.join(SKILL_BEFORE)).ok();
    let stored = (job.skill_files.clone(), released);
    Some(Task::new(
        config,
        &input.docs,
        (name, skill),
        &built.articles,
        stored,
    ))
}

/// Runs the writer, and prepares the release with its text; `None` if the text waits for
/// approval.
fn rebuild_with_skill(
    job: &BuildJob,
    task: &Task<'_>,
    built: Built,
    previous: Option<&Inventory>,
    parent: &mut Parent<'_>,
) -> Result<Option<Prepared>, String> {
    let since = Instant::now();
    let file = |name: &str| job.workspace.join(name);
    let index = built.release.file(SEARCH_FILE);
    let index = index.map(|file| file.bytes.clone()).unwrap_or_default();
    let give = task.give(&file(WRITER_INPUT), (&file(SEARCH_INDEX), &index));
    give.map_err(|error| format!("write the input of the writer: {error}"))?;
    drop(index);
    // The writer may take minutes.
    let built = built.without_content();
    parent.ask(Event::Write);
    let written = task.take(&file(WRITER_OUTPUT), &file(SKILL));
    let written = written.map_err(|error: WriteError| {
        task.reject(&error, &file(SKILL_REJECTED));
        error.to_string()
    })?;
    parent.report(Event::Line(format!(
        "generate: {} wrote skill {} of {} characters ({} ms)",
        task.config.writer_name(),
        written.skill.slug.as_str(),
        written.skill.text.chars().count(),
        since.elapsed().as_millis(),
    )));
    for line in written.lines {
        parent.report(Event::Line(line));
    }
    if task.config.approve {
        return Ok(None);
    }
    let first = built.release.inventory().clone();
    let built = built.with_written(written.skill, &written.stored);
    write_second(job, &built.release, previous, &first).map_err(|stopped| stopped.summary)?;
    Ok(Some(prepared(&built, Part::Second)))
}

/// Writes the files of a release that are in no inventory before it.
fn write_second(
    job: &BuildJob,
    release: &Release,
    previous: Option<&Inventory>,
    first: &Inventory,
) -> Result<(), Stopped> {
    let known: Vec<&Inventory> = previous.into_iter().chain([first]).collect();
    Writer::new(&job.workspace, Part::Second, &known)
        .and_then(|writer| writer.finish(release))
        .map_err(not_written)
}

fn not_written(error: io::Error) -> Stopped {
    Stopped::of_machine("write the release", &error)
}

fn prepared(built: &Built, part: Part) -> Prepared {
    let (files, skills) = (built.report.files, built.report.skills.len());
    let warnings = built.report.tally().warnings;
    Prepared {
        release: built.release.id(),
        part,
        summary: format!(
            "{files} files, {}, {}",
            count(skills, "skill"),
            count(warnings, "warning")
        ),
        skill_pending: false,
    }
}

/// Opens the source of the build. The diagnostics name the files that were left out.
fn open(source: &Source) -> Result<(Tree, Vec<Diagnostic>), Stopped> {
    match source {
        Source::Mirror {
            git,
            mirror,
            commit,
            directory,
        } => {
            let docs = TreePath::parse(directory).map_err(|invalid| Stopped::lasting(&invalid))?;
            git::open(git, mirror, commit, &docs).map_err(|error| match error {
                git::OpenError::Git(_) => Stopped::transient(&error),
                _ => Stopped::lasting(&error),
            })
        }
        Source::Directory { path, root } => directory::locate(path, Some(root))
            .and_then(|(root, docs)| directory::open(&root, &docs, directory::Limits::default()))
            .map_err(|error| Stopped::lasting(&error)),
    }
}

/// Reads the documentation, with the OpenAPI specifications that it names by URL.
fn read(job: &BuildJob, parent: &mut Parent<'_>) -> Result<Input, Stopped> {
    let since = Instant::now();
    let (tree, left_out) = open(&job.source)?;
    let files = tree.files().count();
    let mut input = Input::fetch(tree, &job.options(), &Pages::default(), |needs| {
        Ok(Fetched {
            remote: specifications(job, &needs.urls, parent),
            history: history(job, needs, parent)?,
        })
    })?;
    input.diagnostics.extend(left_out);
    parent.report(Event::Line(format!(
        "read: {files} files, {} ({} ms)",
        count(input.docs.pages.iter().len(), "page"),
        since.elapsed().as_millis(),
    )));
    Ok(input)
}

/// Requests the OpenAPI specifications that are named by URL, if the service allows it.
fn specifications(job: &BuildJob, urls: &[Box<str>], parent: &mut Parent<'_>) -> Option<Remote> {
    if !job.has_specifications || urls.is_empty() {
        return None;
    }
    let since = Instant::now();
    parent.ask(Event::Specifications(urls.to_vec()));
    let bytes = fs::read(job.workspace.join(SPECIFICATIONS)).unwrap_or_default();
    let fetched = Remote::from_bytes(&bytes)?;
    parent.report(Event::Line(format!(
        "read: fetched {} ({} ms)",
        count(urls.len(), "specification"),
        since.elapsed().as_millis()
    )));
    Some(fetched)
}

/// Reads the days on which pages were last changed, if they are needed. A mirror has the newest
/// commit only, so its history is requested.
fn history(
    job: &BuildJob,
    needs: &Needs,
    parent: &mut Parent<'_>,
) -> Result<Option<History>, Stopped> {
    let (docs, files) = (&needs.docs_root, &needs.undated);
    if files.is_empty() {
        return Ok(None);
    }
    let since = Instant::now();
    let history = match &job.source {
        Source::Directory { root, .. } => git::local::history(root, docs, files),
        Source::Mirror {
            git,
            mirror,
            commit,
            ..
        } => {
            parent.ask(Event::History);
            git::history(git, mirror, commit, docs, files)
                .map_err(|error| Stopped::transient(&error))?
        }
    };
    parent.report(Event::Line(format!(
        "read: the days of {} ({} ms)",
        count(files.len(), "page"),
        since.elapsed().as_millis()
    )));
    Ok(Some(history))
}

/// Builds a release. Errors of the authors end the update here.
fn build(
    job: &BuildJob,
    input: &Input,
    previous: Option<&Inventory>,
    output: &Writer,
    parent: &mut Parent<'_>,
) -> Result<Built, Stopped> {
    let since = Instant::now();
    let mut built = build_with_cache(job, input, previous, output);
    // Only warnings depend on the navigation of the current release.
    let navigation = fs::read(job.workspace.join(NAVIGATION)).unwrap_or_default();
    if !navigation.is_empty() {
        let removed = built.removed_pages(input, &navigation);
        built.report.add(removed);
    }
    let report = built.report.to_string();
    for line in report.lines().take(REPORT_LINES_MAX) {
        let line = cut(line, LOG_LINE_BYTES_MAX);
        parent.report(Event::Line(format!("build: {line}")));
    }
    let left_out = report.lines().skip(REPORT_LINES_MAX).count();
    if left_out > 0 {
        parent.report(Event::Line(format!(
            "build: {} of the report are left out",
            count(left_out, "line")
        )));
    }
    let published = built.report.publishable();
    if matches!(job.source, Source::Directory { .. }) {
        let has_errors = published.is_err();
        parent.report(Event::Report { report, has_errors });
    }
    parent.report(Event::Line(format!(
        "build: done ({} ms)",
        since.elapsed().as_millis()
    )));
    if !job.keep_going {
        published.map_err(|error| Stopped::lasting(&error))?;
    }
    Ok(built)
}

/// Builds with the cache of the previous build, and with the files of its release.
fn build_with_cache(
    job: &BuildJob,
    input: &Input,
    previous: Option<&Inventory>,
    output: &Writer,
) -> Built {
    let mut options = job.options();
    // Without a repository around it, paths begin at the directory itself.
    if matches!(job.source, Source::Directory { .. }) && input.tree.docs_root().is_root() {
        options.edit = options.edit.map(|edit| edit.below(&job.edit_below));
    }
    let cache = job.cache.as_deref().and_then(BuildCache::read);
    let file = |item: &Item| Some(ReleaseFile::stored(item));
    let previous = Previous {
        articles: cache.map(|cache| cache.articles).unwrap_or_default(),
        release: previous.map(|inventory| PreviousRelease {
            inventory,
            file: &file,
        }),
    };
    build_into(input, &options, &previous, output)
}

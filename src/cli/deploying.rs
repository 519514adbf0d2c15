//! Opens the resources that several commands need for updates: the queue, the admin keys, the
//! stages.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::settings::{self, store_path};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::deploy::keys::{ADMIN_KEYS, Directory, KeyCache, Keys};
use crate::deploy::presence::Presence;
use crate::deploy::queue::{Backend, Postgres, Queue, Sqlite};
use crate::deploy::run::{Announce, Launcher, ProjectsOf, Quota, Stages, Stopped, clear_leftovers};
use crate::deploy::slots::{Shares, Slots};
use crate::deploy::update::WorkerId;
use crate::deploy::{StatusId, Timestamp};
use crate::isolation;
use crate::site::{ProjectId, Site};
use crate::store::Store;
use crate::store::sites::{Changes, Removals, ScanError, Sites};
use crate::telemetry::{Health, Metrics, logging, panics};

/// The directory of admin keys below the store's.
pub(super) const KEYS: &str = "keys";

/// Longer than any work takes.
const NEVER_HEAVY: Duration = Duration::from_secs(10 * 24 * 60 * 60);

/// Reads the site of a project again, in the files and in the store. Of the store, only its own
/// record is read: a platform may have a million of them.
///
/// # Errors
///
/// When the site is unknown, and its record or the directory of records cannot be read.
pub(super) fn read_site(
    sites: &mut Sites,
    project: &ProjectId,
) -> Result<Option<Arc<Site>>, Stopped> {
    let files = sites.scan_files(Removals::Guarded);
    let record = sites.scan_records(std::slice::from_ref(project));
    scanned(sites, project, [files, record])
}

/// Does what [`read_site`] does, without the files.
///
/// # Errors
///
/// As [`read_site`].
pub(super) fn read_stored_site(
    sites: &mut Sites,
    project: &ProjectId,
) -> Result<Option<Arc<Site>>, Stopped> {
    let record = sites.scan_records(std::slice::from_ref(project));
    scanned(sites, project, [record])
}

/// Returns the site of a project after these scans.
fn scanned(
    sites: &Sites,
    project: &ProjectId,
    scans: impl IntoIterator<Item = Result<Changes, ScanError>>,
) -> Result<Option<Arc<Site>>, Stopped> {
    let mut is_complete = true;
    for scanned in scans {
        match scanned {
            Ok(changes) => {
                for diagnostic in &changes.diagnostics {
                    log::log!(target: "sites", diagnostic.severity.level(), "{diagnostic}");
                }
            }
            Err(error) => {
                log::error!(target: "sites", "cannot read the site records, the earlier ones stay in use: {error}");
                is_complete = false;
            }
        }
    }
    match sites.get(project) {
        Some(site) => Ok(Some(Arc::clone(site))),
        None if !is_complete || sites.is_unreadable(project) => Err(Stopped {
            summary: "read the site record: the log of the service says why".to_owned(),
            transient: true,
        }),
        None => Ok(None),
    }
}

/// Opens the queue of a configuration.
///
/// # Errors
///
/// When its file or database cannot be opened, or was written by a newer program.
pub(super) fn open_queue(config: &Config) -> anyhow::Result<Queue> {
    let config::Queue { sqlite, postgres } = &config.queue;
    let backend = match postgres.url {
        Some(_) => Backend::Postgres(open_postgres(config, None)?),
        None => {
            let opened = Sqlite::open(sqlite);
            Backend::Sqlite(opened.with_context(|| format!("open {}", sqlite.display()))?)
        }
    };
    let queue = Queue::new(backend, config.updates.clone());
    if postgres.url.is_some() {
        queue.heal().context("open the queue in PostgreSQL")?;
    }
    Ok(queue)
}

/// Opens the queue of a configuration now or, if that fails, as soon as it is possible. Until
/// then every call of it fails with the reason, which `health` shows.
///
/// # Errors
///
/// When threads cannot be started.
pub(super) fn open_queue_or_retry(
    config: &Config,
    metrics: &Metrics,
    health: &Health,
) -> anyhow::Result<Arc<Queue>> {
    let config::Queue { sqlite, postgres } = &config.queue;
    let backend = match postgres.url {
        Some(_) => Backend::Postgres(open_postgres(config, Some(metrics))?),
        None => Backend::Sqlite(Sqlite::open_or_retry(sqlite)),
    };
    let queue = Arc::new(Queue::new(backend, config.updates.clone()).reporting_to(health));
    if postgres.url.is_some() {
        // What the database promises is in the log from the start, and nothing waits for it.
        let queue = Arc::clone(&queue);
        panics::essential_thread("queue-open", move || {
            // The health of the queue says why it does not work, and it is tried again.
            let _later = queue.heal();
        })
        .context("start a thread")?;
    }
    Ok(queue)
}

fn open_postgres(config: &Config, metrics: Option<&Metrics>) -> anyhow::Result<Postgres> {
    let service = config.service.domain.as_str();
    Postgres::open(&config.queue.postgres, service, metrics)
        .context("start the connections to PostgreSQL")
}

/// Returns where workers declare themselves alive: beside the file of the queue, also if the queue
/// is in a database, because only the workers of a machine know of each other.
pub(super) fn presence(config: &Config) -> Presence {
    let mut directory = config.queue.sqlite.clone().into_os_string();
    directory.push(".workers");
    Presence::new(directory.into())
}

/// Returns the generation of a project's newest update; 0 if there is no queue yet.
///
/// # Errors
///
/// As [`open_queue`].
pub(super) fn last_generation(config: &Config, project: &ProjectId) -> anyhow::Result<u64> {
    let config::Queue { sqlite, postgres } = &config.queue;
    if postgres.url.is_none() && !sqlite.exists() {
        return Ok(0);
    }
    Ok(open_queue(config)?.generation(project)?)
}

/// Opens the admin keys: in the database of a store that several machines share, or in a directory
/// below the store's. Open the store first: it rejects a directory with other files, and this
/// directory would be one.
///
/// # Errors
///
/// When it does not exist and cannot be created.
pub(super) fn open_keys(config: &Config) -> anyhow::Result<Keys> {
    if config.store.shared().is_some() {
        return Ok(Keys::Shared(settings::open_shared(config)?.documents()));
    }
    key_directory(config).map(Keys::Directory)
}

/// Returns the admin keys of a store that is open.
///
/// # Errors
///
/// When their directory does not exist and cannot be created.
pub(super) fn keys_of(config: &Config, store: &Store) -> anyhow::Result<Keys> {
    match store {
        Store::Local(_) => key_directory(config).map(Keys::Directory),
        Store::Shared(shared) => Ok(Keys::Shared(shared.documents())),
    }
}

fn key_directory(config: &Config) -> anyhow::Result<Directory> {
    Ok(Directory::open(&store_path(config).join(KEYS))?)
}

/// Reads all admin keys of a store. Those of a database are read from their copy on this machine.
///
/// # Errors
///
/// When their directory cannot be read.
pub(super) fn load_key_cache(config: &Config, store: &Store) -> anyhow::Result<Arc<KeyCache>> {
    let load = |directory| {
        let cache = KeyCache::load(directory, &config.service.name, Clock::System);
        cache.context("read the admin keys")
    };
    let cache = match keys_of(config, store)? {
        Keys::Directory(directory) => load(directory)?,
        Keys::Shared(documents) => {
            let copy = settings::copied_path(config).join(ADMIN_KEYS);
            load(Directory::open(&copy)?)?.recording_in(documents)
        }
    };
    Ok(Arc::new(cache))
}

/// Returns the resources of an update's stages.
///
/// # Errors
///
/// When the path of this program or the user of builds cannot be found.
pub(super) fn stages(
    config: &Config,
    queue: &Arc<Queue>,
    store: &Arc<Store>,
    projects_of: ProjectsOf,
    announce: Option<Announce>,
) -> anyhow::Result<Stages> {
    let local = config.store.local();
    let quota = Quota::new(local.owner_bytes_max, projects_of)
        .with_file_bytes_max(config.edges.object_bytes_max);
    Ok(Stages {
        quota: Arc::new(quota),
        queue: Arc::clone(queue),
        builds: Slots::new(Shares {
            count: config.worker.builds_max,
            light: config.worker.light,
        }),
        store: Arc::clone(store),
        service: config.service.clone(),
        git: config.git.clone(),
        specifications: config.specifications.clone(),
        launcher: launcher(
            config,
            // A build writes to standard error, which its worker logs.
            Some(logging::Config {
                file: None,
                ..config.log.clone()
            }),
        )?,
        generate: config.generate.clone(),
        writers: Slots::new(Shares {
            count: config.generate.runs_max,
            // Models are slow by nature, so writing makes no owner heavy.
            light: NEVER_HEAVY,
        }),
        writing: Arc::default(),
        clock: Clock::System,
        announce,
    })
}

/// Returns the launcher of build processes.
///
/// # Errors
///
/// When the path of this program or the user of builds cannot be found.
pub(super) fn launcher(config: &Config, log: Option<logging::Config>) -> anyhow::Result<Launcher> {
    let launcher = Launcher::new(program()?, config.builds.clone(), &config.isolation, log);
    launcher.context("isolate builds")
}

/// Starts a process as a build would be started, and reports in the log and in the metrics which
/// restrictions are in force. Removes the files that killed processes have left.
///
/// # Errors
///
/// When isolation is required and the kernel lacks a feature, or no process can be started.
pub(super) fn report_isolation(stages: &Stages, metrics: &Metrics) -> anyhow::Result<()> {
    let launcher = &stages.launcher;
    let in_force = launcher.probe().context("isolate builds")?;
    clear_leftovers(&launcher.directory);
    isolation::Metrics::new(metrics).show(in_force);
    let is_isolated = in_force.landlock > 0 && in_force.seccomp;
    let level = match is_isolated {
        true => log::Level::Info,
        false => log::Level::Warn,
    };
    log::log!(target: "deploy", level, "isolation of builds, {in_force}");
    Ok(())
}

/// Returns a name for this process that no other worker has.
///
/// # Errors
///
/// When the operating system has no random bytes.
pub(super) fn worker_id() -> anyhow::Result<WorkerId> {
    // A process id is not enough: it is reused after a restart, and containers all have 1.
    let once = StatusId::generate(Timestamp::of(Clock::System.now()))
        .map_err(|error| anyhow::anyhow!("name this worker: {error}"))?;
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let suffix = &once.as_str()[22..];
    Ok(WorkerId::new(&format!(
        "{host}-{}-{suffix}",
        std::process::id()
    )))
}

/// Returns the path of this program. On Linux it is the link to the running program, so that
/// a child has the version of its parent even if the file was replaced since.
///
/// # Errors
///
/// When the system does not return the path.
pub(super) fn program() -> anyhow::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe().context("find this program")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn config_in(directory: &std::path::Path) -> Config {
        let at = directory.display();
        let conf = format!("sites: {at}/sites\nstore: {{ local: {{ path: {at}/store }} }}\n");
        fs::create_dir(directory.join("sites")).unwrap();
        Config::parse("waypost.yaml", &conf).unwrap()
    }

    #[test]
    fn an_update_finds_a_site_that_is_not_served_yet() {
        let directory = tempfile::tempdir().unwrap();
        let mut sites = settings::unread_sites(&config_in(directory.path()));
        let project = ProjectId::parse("acme").unwrap();
        assert!(read_site(&mut sites, &project).unwrap().is_none());
        let record = "project: acme\nsubdomain: acme\n";
        fs::write(directory.path().join("sites/acme.yaml"), record).unwrap();
        let site = read_site(&mut sites, &project).unwrap();
        assert_eq!(site.unwrap().project, project);
    }

    #[test]
    fn a_record_that_cannot_be_read_does_not_mean_that_the_site_was_removed() {
        let directory = tempfile::tempdir().unwrap();
        let config = config_in(directory.path());
        let store = Arc::new(settings::open_local(&config).unwrap());
        let mut sites = settings::unread_sites(&config).with_store(store);
        let project = ProjectId::parse("acme").unwrap();
        assert_eq!(read_site(&mut sites, &project), Ok(None));
        let shard = hex::encode([crate::digest::Digest::of(b"acme").as_bytes()[0]]);
        let record = directory
            .path()
            .join(format!("store/sites/{shard}/acme.json"));
        fs::create_dir_all(record.parent().unwrap()).unwrap();
        fs::write(&record, "damaged").unwrap();
        let stopped = read_site(&mut sites, &project).unwrap_err();
        assert!(stopped.transient, "{stopped:?}");
        fs::remove_file(record).unwrap();
        assert_eq!(read_site(&mut sites, &project), Ok(None));
    }

    #[test]
    fn a_missing_directory_of_records_does_not_mean_that_a_site_was_removed() {
        let directory = tempfile::tempdir().unwrap();
        let mut sites = settings::unread_sites(&config_in(directory.path()));
        let project = ProjectId::parse("acme").unwrap();
        fs::remove_dir(directory.path().join("sites")).unwrap();
        let stopped = read_site(&mut sites, &project).unwrap_err();
        assert!(stopped.transient, "{stopped:?}");
        fs::create_dir(directory.path().join("sites")).unwrap();
        assert_eq!(read_site(&mut sites, &project), Ok(None));
    }
}

//! What the commands of the deploying side open: queue, keys, and the stages of an update.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;

use crate::clock::Clock;
use crate::config::{self, Config};
use crate::deploy::keys::{Directory, KeyCache};
use crate::deploy::queue::{Backend, Queue, Sqlite};
use crate::deploy::run::{Announce, Stages};
use crate::deploy::update::WorkerId;
use crate::deploy::{StatusId, Timestamp};
use crate::site::ProjectId;
use crate::store::Store;

/// The directory of admin keys below the store's.
const KEYS: &str = "keys";

/// Opens the queue of a configuration.
///
/// # Errors
///
/// When its file cannot be opened, or was written by a newer program.
pub(super) fn open_queue(config: &Config) -> anyhow::Result<Queue> {
    let config::Queue::Sqlite { path } = &config.queue;
    let sqlite = Sqlite::open(path).with_context(|| format!("open {}", path.display()))?;
    Ok(Queue::new(Backend::Sqlite(sqlite), config.updates.clone()))
}

/// Returns the generation of a project's newest update; 0 while there is no queue.
///
/// # Errors
///
/// As [`open_queue`].
pub(super) fn last_generation(config: &Config, project: &ProjectId) -> anyhow::Result<u64> {
    let config::Queue::Sqlite { path } = &config.queue;
    if !path.exists() {
        return Ok(0);
    }
    Ok(open_queue(config)?.generation(project)?)
}

/// Opens the directory of admin keys. The store must have been opened before: it does not
/// make itself at home where something else lies.
///
/// # Errors
///
/// When it can neither be found nor made.
pub(super) fn open_keys(config: &Config) -> anyhow::Result<Directory> {
    Ok(Directory::open(&store_path(config).join(KEYS))?)
}

/// Reads all admin keys.
///
/// # Errors
///
/// When their directory cannot be read.
pub(super) fn load_key_cache(config: &Config) -> anyhow::Result<Arc<KeyCache>> {
    let cache = KeyCache::load(open_keys(config)?, &config.service.name, Clock::System);
    Ok(Arc::new(cache.context("read the admin keys")?))
}

/// Puts together what an update passes through.
///
/// # Errors
///
/// When this program cannot say where it lies.
pub(super) fn stages(
    config: &Config,
    queue: &Arc<Queue>,
    store: &Arc<Store>,
    announce: Option<Announce>,
) -> anyhow::Result<Stages> {
    Ok(Stages {
        queue: Arc::clone(queue),
        store: Arc::clone(store),
        store_path: store_path(config),
        service: config.service.clone(),
        git: config.git.clone(),
        specifications: config.specifications.clone(),
        limits: config.builds.clone(),
        generate: config.generate.clone(),
        program: program()?,
        clock: Clock::System,
        announce,
    })
}

/// Names this process among workers.
///
/// # Errors
///
/// The operating system has no randomness to give.
pub(super) fn worker_id() -> anyhow::Result<WorkerId> {
    // A process id alone comes back after a restart of the machine, and in containers at once.
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

fn store_path(config: &Config) -> PathBuf {
    let config::Store::Local(local) = &config.store;
    local.path.clone()
}

/// Returns this program. On Linux by the link that follows it through a replacement of its
/// file: parent and child must speak the same version.
fn program() -> anyhow::Result<PathBuf> {
    if cfg!(target_os = "linux") {
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe().context("find this program")
}

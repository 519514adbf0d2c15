//! Taking and building updates: the admin API, the queue behind it, and a worker.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio::sync::watch;

use super::reload::{Reload, locked};
use crate::cli::deploying;
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::api::Api;
use crate::deploy::keys::{self, KeyCache};
use crate::deploy::queue::Queue;
use crate::deploy::run::{Announce, SITE_REMOVED};
use crate::deploy::worker::{self, Worker};
use crate::deploy::{FindSite, Timestamp, lower_priority};
use crate::index::Index;
use crate::index::reload::Reloader;
use crate::site::ProjectId;
use crate::store::Fence;
use crate::telemetry::Metrics;

/// The deploying side, open and not yet at work.
pub(super) struct Updates {
    pub(super) api: Arc<Api>,
    worker: Worker,
    key_cache: Arc<KeyCache>,
    queue: Arc<Queue>,
}

/// What the queue is told of what is served.
pub(super) struct Notes {
    queue: Arc<Queue>,
}

/// The deploying side at work.
pub(super) struct Working {
    thread: JoinHandle<()>,
    _keys: keys::Watch,
}

impl Updates {
    pub(super) fn open(
        config: &Config,
        index: &Arc<Index>,
        reload: &Reload,
        metrics: &Metrics,
    ) -> anyhow::Result<Self> {
        let queue = Arc::new(deploying::open_queue(config)?);
        let key_cache = deploying::load_key_cache(config)?;
        let index = Arc::clone(index);
        let find_site: FindSite =
            Arc::new(move |project| Some(Arc::clone(&index.served_by(project)?.site)));
        let reloader = Arc::clone(&reload.reloader);
        let announce: Announce = Arc::new(move |project| {
            // The record says so itself, at its end.
            let _ = locked(&reloader).promoted(project);
        });
        let stages = deploying::stages(config, &queue, &reload.store, Some(announce))?;
        let api = Api::new(
            config.admin.clone(),
            &config.service,
            Arc::clone(&key_cache),
            Arc::clone(&queue),
            Arc::clone(&find_site),
            Clock::System,
        );
        let worker = Worker::new(
            deploying::worker_id()?,
            config.worker.clone(),
            Arc::new(stages),
            find_site,
            worker::Metrics::new(metrics),
        );
        Ok(Self {
            api: Arc::new(api),
            worker,
            key_cache,
            queue,
        })
    }

    pub(super) fn notes(&self) -> Notes {
        Notes {
            queue: Arc::clone(&self.queue),
        }
    }

    pub(super) fn start(self, told: watch::Receiver<worker::Stop>) -> anyhow::Result<Working> {
        let keys = self.key_cache.watch().context("watch the admin keys")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start the worker")?;
        let worker = self.worker;
        let thread = std::thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || {
                lower_priority();
                runtime.block_on(worker.run(told));
            })
            .context("start the worker")?;
        Ok(Working {
            thread,
            _keys: keys,
        })
    }
}

impl Notes {
    /// Ends what waits for sites that are no more.
    pub(super) fn removed(&self, projects: &[ProjectId]) {
        let now = Timestamp::of(Clock::System.now());
        for project in projects {
            match self.queue.cancel(project, SITE_REMOVED, now) {
                Ok(true) => {
                    log::info!(target: "deploy", project:%; "the update of {project} is cancelled: its site was removed");
                }
                Ok(false) => {}
                // Whoever claims one of them finds no site, and ends it.
                Err(error) => {
                    log::error!(target: "deploy", "cancel the updates of removed sites: {error}");
                    break;
                }
            }
        }
    }

    /// Says what is served of a project from now on.
    pub(super) fn served(&self, project: &ProjectId, fence: Fence) {
        let now = Timestamp::of(Clock::System.now());
        if let Err(error) = self.queue.record_served(project, fence, now) {
            // The next comparison finds it.
            log::warn!(target: "deploy", project:%; "note since when {project} is served: {error}");
        }
    }

    /// Says what is served of all projects whose successes nobody has seen.
    pub(super) fn compare(&self, reloader: &Mutex<Reloader>) {
        match self.queue.not_yet_visible() {
            Ok(projects) => {
                for project in projects {
                    let fence = locked(reloader).served(&project);
                    if let Some(fence) = fence {
                        self.served(&project, fence);
                    }
                }
            }
            Err(error) => {
                log::warn!(target: "deploy", "look for what became visible: {error}");
            }
        }
    }
}

impl Working {
    /// Waits until what ran has finished or was given back.
    pub(super) fn end(self) {
        if self.thread.join().is_err() {
            log::error!(target: "serve", "the worker panicked");
        }
    }
}

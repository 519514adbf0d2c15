//! Taking and building updates: the admin API, the queue behind it, and a worker.

use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio::sync::watch;

use super::reload::{Reload, locked};
use crate::cli::deploying;
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::FindSite;
use crate::deploy::api::Api;
use crate::deploy::keys::{self, Ring};
use crate::deploy::run::Announce;
use crate::deploy::worker::{self, Worker};
use crate::index::Index;
use crate::telemetry::Metrics;

/// The deploying side, open and not yet at work.
pub(super) struct Updates {
    pub(super) api: Arc<Api>,
    worker: Worker,
    ring: Arc<Ring>,
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
        let ring = deploying::load_ring(config)?;
        let index = Arc::clone(index);
        let find_site: FindSite =
            Arc::new(move |project| Some(Arc::clone(&index.served_by(project)?.site)));
        let reloader = Arc::clone(&reload.reloader);
        let announce: Announce = Arc::new(move |project| locked(&reloader).promoted(project));
        let stages = deploying::stages(config, &queue, &reload.store, Some(announce))?;
        let api = Api::new(
            config.admin.clone(),
            &config.service,
            Arc::clone(&ring),
            queue,
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
            ring,
        })
    }

    pub(super) fn start(self, told: watch::Receiver<worker::Stop>) -> anyhow::Result<Working> {
        let keys = self.ring.watch().context("watch the admin keys")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start the worker")?;
        let worker = self.worker;
        let thread = std::thread::Builder::new()
            .name("worker".to_owned())
            .spawn(move || runtime.block_on(worker.run(told)))
            .context("start the worker")?;
        Ok(Working {
            thread,
            _keys: keys,
        })
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

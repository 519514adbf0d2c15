//! The threads that keep the state up to date.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use tokio::sync::watch;

use super::Process;
use super::certificates::Ordering;
use super::counting::{Counting, CountingThreads};
use super::follow::{EdgeServices, Filling};
use super::reload;
use super::shared_store;
use super::state::State;
use super::successor::Predecessor;
use super::updates::{ServedLog, Updates, WorkerThreads};
use super::verification::Verification;
use crate::config::Config;
use crate::deploy::worker;

/// The threads that end in order. The others can be stopped at any point.
pub(super) struct Threads {
    working: Option<WorkerThreads>,
    ordering: Option<Ordering>,
    checking: Option<Verification>,
    reloading: reload::Threads,
    counting: Option<CountingThreads>,
}

/// What the worker waits for, and what waits for it.
pub(super) struct WorkerSignals {
    /// Whether it has to stop.
    pub(super) stop: watch::Receiver<worker::Stop>,
    /// It begins when the worker of this process has ended.
    pub(super) predecessor: Option<Predecessor>,
    /// Closed when it has ended.
    pub(super) ended: Sender<()>,
}

// === impl Threads ===

impl Threads {
    /// Starts all threads.
    ///
    /// # Errors
    ///
    /// When one cannot be started, or a resource of one cannot be opened.
    pub(super) fn start(
        config: &Config,
        state: State,
        edges: EdgeServices,
        process: &Process,
        worker: WorkerSignals,
    ) -> anyhow::Result<Self> {
        let Process {
            metrics, health, ..
        } = process;
        let State {
            index,
            directory,
            reload,
            written,
            copied,
            acme,
            following,
            counting,
            updates,
            ..
        } = state;
        let ordering =
            acme.map(|acme| acme.start(config, index, directory.clone(), metrics, health));
        let ordering = ordering.transpose()?;
        let checking = updates.as_ref().map(|updates| {
            Verification::start(
                config,
                &updates.site_admin,
                &written,
                &updates.domain_changes,
                metrics,
                health,
            )
        });
        let checking = checking.transpose()?.flatten();
        let served_log = updates
            .as_ref()
            .map_or_else(ServedLog::none, Updates::served_log);
        let fleet = edges.fleet();
        if fleet.is_some() || config.store.shared().is_some() {
            served_log.follow(fleet, &written, &reload.reloader)?;
        }
        let domain_changes = updates
            .as_ref()
            .map(|updates| updates.domain_changes.clone())
            .unwrap_or_default();
        let filling = following.as_ref().map(|following| Filling {
            status: Arc::clone(&following.status),
            reloader: Arc::clone(&reload.reloader),
        });
        let counting = counting.map(Counting::start).transpose()?;
        let metrics = Arc::clone(metrics);
        let reloading = reload.start(directory, metrics, served_log, domain_changes)?;
        let WorkerSignals {
            stop,
            predecessor,
            ended,
        } = worker;
        let working = updates
            .map(|updates| updates.start(stop, predecessor, ended))
            .transpose()?;
        if let (Some(edges), Some(copied)) = (&edges.node, &copied) {
            copied.follow_edges(edges.source.fleet(), &edges.secrets)?;
        }
        // Before this process accepts connections: commands then wait for it.
        if let Some(copied) = copied {
            copied.start(health)?;
        }
        edges.start(filling)?;
        if let Some(following) = following {
            following.start()?;
        }
        shared_store::start(&written)?;
        Ok(Self {
            working,
            ordering,
            checking,
            reloading,
            counting,
        })
    }

    /// Stops them, and waits until they have ended. All requests have ended.
    pub(super) fn end(self) {
        if let Some(working) = self.working {
            working.end();
        }
        if let Some(ordering) = self.ordering {
            ordering.end();
        }
        if let Some(checking) = self.checking {
            checking.end();
        }
        self.reloading.end();
        if let Some(counting) = self.counting {
            counting.end();
        }
    }
}

//! The thread that checks with DNS whether domains belong to the owners of their sites.

use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::sites::SiteAdmin;
use crate::deploy::sites::verification::{Changes, Metrics as VerificationMetrics, Verifier};
use crate::dns::Client;
use crate::store::Store;
use crate::telemetry::{Health, Metrics, panics};

/// The started thread.
pub(super) struct Verification {
    thread: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Verification {
    /// Starts the thread, if proof of ownership is required.
    pub(super) fn start(
        config: &Config,
        site_admin: &Arc<SiteAdmin>,
        store: &Arc<Store>,
        changes: &Changes,
        metrics: &Metrics,
        health: &Health,
    ) -> anyhow::Result<Option<Self>> {
        let settings = &config.verification;
        if !settings.is_required {
            return Ok(None);
        }
        let client = Client::new(
            &settings.resolvers,
            config.private_hosts.clone(),
            settings.check_timeout,
        );
        let verifier = Verifier::new(
            settings.clone(),
            Arc::clone(site_admin),
            Arc::clone(store),
            client,
            changes.clone(),
            VerificationMetrics::new(metrics),
            health.part("verification"),
            Clock::System,
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start a thread")?;
        let (stop, stopped) = watch::channel(false);
        let thread = panics::essential_thread("verification", move || {
            runtime.block_on(verifier.run(stopped));
            // Checks that run are not waited for.
            runtime.shutdown_background();
        });
        Ok(Some(Self {
            thread: thread.context("start a thread")?,
            stop,
        }))
    }

    /// Stops the checks. Another process may check from now on.
    pub(super) fn end(self) {
        self.stop.send_replace(true);
        // A panic in it ends the process.
        let _joined = self.thread.join();
    }
}

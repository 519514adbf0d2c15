//! A gateway on a store of several machines: it follows the database into its cache, and sweeps.

use std::sync::Arc;

use anyhow::Context as _;

use super::reload;
use crate::cli::settings;
use crate::config::Config;
use crate::store::Store;
use crate::telemetry::panics;

/// Returns the store that updates, the admin API and the verification of domains write: the one
/// that is served from, or the database and the objects behind that cache.
pub(super) fn written(config: &Config, served: &Arc<Store>) -> anyhow::Result<Arc<Store>> {
    match config.store.shared() {
        Some(_) => Ok(Arc::new(settings::open_store(config)?)),
        None => Ok(Arc::clone(served)),
    }
}

/// Starts to remove what no pointer names. The thread is never joined: it can be stopped at any
/// point.
pub(super) fn start_sweep(store: &Arc<Store>) -> anyhow::Result<()> {
    let store = Arc::clone(store);
    if matches!(*store, Store::Shared(_)) {
        panics::essential_thread("store-sweep", move || reload::sweep(&store))
            .context("start a thread")?;
    }
    Ok(())
}

//! Counting for the owners of sites: the thread that writes the counts into the store.

use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;

use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::sites::WriteCounts;
use crate::index::Index;
use crate::numbers::Writer;
use crate::store::Store;
use crate::telemetry::panics;

/// The writer of counts, not started.
pub(super) struct Counting {
    writer: Arc<Writer>,
    index: Arc<Index>,
}

/// The started writer.
pub(super) struct CountingThread {
    writer: Arc<Writer>,
    thread: JoinHandle<()>,
}

impl Counting {
    /// Returns whether this node counts. An edge does not: it has no store that an owner can read.
    pub(super) fn is_on(config: &Config) -> bool {
        config.numbers.enabled && !config.store.is_edge()
    }

    pub(super) fn new(config: &Config, index: &Arc<Index>, store: &Arc<Store>) -> Self {
        let counted = Arc::clone(index);
        let writer = Writer::new(
            Arc::clone(store),
            Box::new(move || counted.counted()),
            config.numbers.keep_days,
            Clock::System,
        );
        Self {
            writer: Arc::new(writer),
            index: Arc::clone(index),
        }
    }

    /// Returns the function that writes the counts of a site, so that a reader of the store gets them.
    pub(super) fn write_counts(&self) -> WriteCounts {
        let (writer, index) = (Arc::clone(&self.writer), Arc::clone(&self.index));
        Arc::new(move |project| {
            let served = index.served_by(project);
            if let Some(numbers) = served.and_then(|served| served.numbers.clone()) {
                writer.write_site(project, &numbers);
            }
        })
    }

    pub(super) fn writer(&self) -> Arc<Writer> {
        Arc::clone(&self.writer)
    }

    pub(super) fn start(self) -> anyhow::Result<CountingThread> {
        let writer = Arc::clone(&self.writer);
        let thread = panics::essential_thread("numbers", move || writer.run());
        Ok(CountingThread {
            writer: self.writer,
            thread: thread.context("start a thread")?,
        })
    }
}

impl CountingThread {
    /// Writes the last counts. All requests have ended.
    pub(super) fn end(self) {
        self.writer.close();
        // A panic in it ends the process.
        let _joined = self.thread.join();
    }
}

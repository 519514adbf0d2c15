//! Counting for the owners of sites: the thread that writes the counts into the store, and on an
//! edge the thread that sends them to the node that it follows.

use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;

use super::follow::Following;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::deploy::sites::WriteCounts;
use crate::follow::CountSender;
use crate::index::Index;
use crate::numbers::received::Receiver;
use crate::numbers::{self, Writer};
use crate::site::ProjectId;
use crate::store::Store;
use crate::telemetry::panics;

/// For how many days an edge keeps counts that it cannot send.
const UNSENT_DAYS: u32 = 31;

/// The writer of counts, not started.
pub(super) struct Counting {
    writer: Arc<Writer>,
    index: Arc<Index>,
    /// `None` on a node.
    sender: Option<Arc<CountSender>>,
}

/// The started threads.
pub(super) struct CountingThreads {
    writer: Arc<Writer>,
    writing: JoinHandle<()>,
    sender: Option<Arc<CountSender>>,
}

impl Counting {
    /// Prepares the threads; `None` if nothing is counted. On an edge, `store` is the cache.
    pub(super) fn open(
        config: &Config,
        index: &Arc<Index>,
        store: &Arc<Store>,
        following: Option<&Following>,
    ) -> anyhow::Result<Option<Self>> {
        let numbers::Config { enabled, keep_days } = config.numbers;
        if !enabled {
            return Ok(None);
        }
        let (sender, keep_days) = match (&config.store, following) {
            (config::Store::Follow { follow, cache }, Some(following)) => {
                let service = config.service.domain.as_str();
                let status = Arc::clone(&following.status);
                let sender =
                    CountSender::new(follow, service, Arc::clone(store), &cache.path, status);
                let sender = sender.context("send counts to the node that is followed")?;
                (Some(Arc::new(sender)), keep_days.min(UNSENT_DAYS))
            }
            _ => (None, keep_days),
        };
        let counted = Arc::clone(index);
        let sites = Box::new(move || counted.counted());
        let writer = Writer::new(Arc::clone(store), sites, keep_days, Clock::System);
        Ok(Some(Self {
            writer: Arc::new(writer),
            index: Arc::clone(index),
            sender,
        }))
    }

    /// Returns the receiver, which adds the counts of edges to the counts of this node.
    pub(super) fn receiver(&self, config: &Config, store: &Arc<Store>) -> Receiver {
        let index = Arc::clone(&self.index);
        let is_counted = move |project: &ProjectId| {
            let served = index.served_by(project);
            served.is_some_and(|served| served.numbers.is_some())
        };
        let keep_days = config.numbers.keep_days;
        Receiver::new(
            Arc::clone(store),
            Box::new(is_counted),
            keep_days,
            Clock::System,
        )
    }

    /// Returns the function that writes the counts of a site, so that a reader of the store gets
    /// them.
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

    pub(super) fn start(self) -> anyhow::Result<CountingThreads> {
        let Self { writer, sender, .. } = self;
        let writes = Arc::clone(&writer);
        let writing = panics::essential_thread("numbers", move || writes.run());
        if let Some(sender) = &sender {
            let sends = Arc::clone(sender);
            // Never joined: it can be stopped at any point.
            panics::essential_thread("numbers-send", move || sends.run())
                .context("start a thread")?;
        }
        Ok(CountingThreads {
            writer,
            writing: writing.context("start a thread")?,
            sender,
        })
    }
}

impl CountingThreads {
    /// Writes and sends the last counts. All requests have ended.
    pub(super) fn end(self) {
        self.writer.close();
        // A panic in it ends the process.
        let _joined = self.writing.join();
        if let Some(sender) = self.sender {
            sender.close();
            sender.send_last();
        }
    }
}

//! From a signal to the end of the process.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::reload::Request;
use crate::deploy::worker;
use crate::gateway::Limits;
use crate::gateway::drain::{Drain, Phase};

/// Turns signals into a drain, and the end of the drain into the end of the process.
pub(super) struct Stop {
    pub(super) drain: Drain,
    pub(super) limits: Arc<Limits>,
    pub(super) reload: Request,
    pub(super) worker: watch::Sender<worker::Stop>,
}

#[async_trait]
impl ShutdownSignalWatch for Stop {
    async fn recv(&self) -> ShutdownSignal {
        let open = |kind| signal(kind).expect("the runtime handles signals");
        let (mut term, mut int) = (open(SignalKind::terminate()), open(SignalKind::interrupt()));
        let mut hangup = open(SignalKind::hangup());
        loop {
            tokio::select! {
                _ = hangup.recv() => {
                    log::info!(target: "serve", "SIGHUP: comparing everything with the disk");
                    self.reload.rescan(false);
                }
                _ = either(&mut term, &mut int) => break,
            }
        }
        // A worker that does not listen any more has stopped.
        let _ = self.worker.send(worker::Stop::Soon);
        tokio::select! {
            () = self.leave() => {}
            _ = either(&mut term, &mut int) => {
                log::warn!(target: "serve", "told twice, leaving at once");
                let _ = self.worker.send(worker::Stop::Now);
            }
        }
        // pingora's own graceful stop would sleep its whole grace period; ours is over.
        ShutdownSignal::FastShutdown
    }
}

impl Stop {
    async fn leave(&self) {
        let open = self.drain.open();
        log::info!(target: "serve", open; "leaving: {open} connections are open");
        self.drain.enter(Phase::Unready);
        tokio::time::sleep(self.limits.drain_delay).await;
        self.drain.enter(Phase::Draining);
        let left = self.drain.finished(self.limits.drain).await;
        if left > 0 {
            log::warn!(target: "serve", left; "{left} connections were not finished in time");
        }
    }
}

async fn either(term: &mut Signal, int: &mut Signal) -> Option<()> {
    tokio::select! {
        signal = term.recv() => signal,
        signal = int.recv() => signal,
    }
}

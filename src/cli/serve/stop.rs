//! Signals, and the graceful end of the process.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::reload::Request;
use super::upgrade::ListeningSockets;
use crate::deploy::worker;
use crate::gateway::drain::{Drain, Phase};
use crate::gateway::{Gateway, Limits};

/// Drains after a signal; the process ends when the drain has finished.
pub(super) struct Stop {
    pub(super) drain: Drain,
    pub(super) limits: Arc<Limits>,
    pub(super) reload: Request,
    /// Its access log is opened again.
    pub(super) gateway: Arc<Gateway>,
    pub(super) worker: watch::Sender<worker::Stop>,
    /// The copies of listening sockets that must be closed with the listeners.
    pub(super) sockets: ListeningSockets,
    /// Cancelled when another process serves in the place of this one.
    pub(super) handed_over: CancellationToken,
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
                    log::info!(target: "serve", "SIGHUP: reading site records and releases, and opening log files, again");
                    self.gateway.access.reopen();
                    self.reload.rescan(false);
                }
                _ = next_signal(&mut term, &mut int) => break,
                () = self.handed_over.cancelled() => break,
            }
        }
        // This fails only if the worker has stopped already.
        let _ = self.worker.send(worker::Stop::Soon);
        tokio::select! {
            () = self.drain() => {}
            _ = next_signal(&mut term, &mut int) => {
                log::warn!(target: "serve", "a second signal: stopping at once");
                let _ = self.worker.send(worker::Stop::Now);
            }
        }
        // Our drain is complete. pingora's graceful stop would sleep for its whole grace period.
        ShutdownSignal::FastShutdown
    }
}

impl Stop {
    async fn drain(&self) {
        let open = self.drain.open();
        log::info!(target: "serve", open; "draining: {open} connections are open");
        // After an upgrade the new process is ready, so there is nothing to wait for.
        if !self.handed_over.is_cancelled() {
            self.drain.enter(Phase::Unready);
            tokio::time::sleep(self.limits.drain_delay).await;
        }
        self.sockets.close();
        self.drain.enter(Phase::Draining);
        let left = self.drain.finished(self.limits.drain).await;
        if left > 0 {
            log::warn!(target: "serve", left; "the drain timed out with {left} open connections");
        }
    }
}

async fn next_signal(term: &mut Signal, int: &mut Signal) -> Option<()> {
    tokio::select! {
        signal = term.recv() => signal,
        signal = int.recv() => signal,
    }
}

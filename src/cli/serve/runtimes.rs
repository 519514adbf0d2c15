//! The services on pingora's runtimes: client connections, and the operator's listener.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::server::ShutdownWatch;
use pingora::services::background::{BackgroundService, GenBackgroundService};
use tokio::net::TcpSocket;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::freed;
use super::successor::{self, Predecessor};
use crate::gateway::operator::Operator;
use crate::gateway::{ConnectionHandler, Listeners};
use crate::telemetry::panics;

/// Accepts client connections.
pub(super) struct ConnectionService {
    handler: Arc<ConnectionHandler>,
    listeners: Mutex<Option<(Listeners, Begin)>>,
    operator: Operator,
}

/// What happens when the listeners are open.
pub(super) struct Begin {
    /// The process to replace.
    pub(super) predecessor: Option<Predecessor>,
    /// Runs when this process serves.
    pub(super) serving: Box<dyn FnOnce() + Send>,
}

impl ConnectionService {
    pub(super) fn new(
        handler: Arc<ConnectionHandler>,
        listeners: Listeners,
        begin: Begin,
        operator: Operator,
    ) -> Self {
        Self {
            handler,
            listeners: Mutex::new(Some((listeners, begin))),
            operator,
        }
    }

    pub(super) fn named(self) -> GenBackgroundService<Self> {
        GenBackgroundService::new("connections".to_owned(), Arc::new(self))
    }
}

#[async_trait]
impl BackgroundService for ConnectionService {
    async fn start(&self, _shutdown: ShutdownWatch) {
        let Some((listeners, begin)) = self.listeners.lock().await.take() else {
            return;
        };
        if begin.predecessor.is_some()
            && let Err(error) = successor::greet(&self.handler).await
        {
            log::error!(target: "upgrade", "this process does not answer its own request: {error}");
            std::process::exit(2);
        }
        match listeners.open() {
            Ok(open) => {
                self.operator.loaded();
                (begin.serving)();
                if let Some(predecessor) = &begin.predecessor
                    && let Err(error) = predecessor.replace()
                {
                    log::error!(target: "upgrade", "cannot notify the earlier process: {error}");
                    std::process::exit(2);
                }
                log::info!(target: "serve", ready = true; "ready: connections of clients are accepted");
                let work = freed::watch_threads();
                drop(tokio::spawn(panics::essential("freed-memory", work)));
                panics::essential("listeners", self.handler.listen(open)).await;
            }
            Err(error) => {
                log::error!(target: "serve", "{error}");
                std::process::exit(2);
            }
        }
    }
}

/// Serves health, readiness and metrics.
pub(super) struct OperatorService {
    operator: Operator,
    /// Cancelled when another process responds on this address.
    handed_over: CancellationToken,
    socket: Mutex<Option<TcpSocket>>,
}

impl OperatorService {
    pub(super) fn new(
        operator: Operator,
        socket: TcpSocket,
        handed_over: CancellationToken,
    ) -> Self {
        Self {
            operator: operator.with_successor(handed_over.clone()),
            handed_over,
            socket: Mutex::new(Some(socket)),
        }
    }

    pub(super) fn named(self) -> GenBackgroundService<Self> {
        GenBackgroundService::new("operator".to_owned(), Arc::new(self))
    }
}

#[async_trait]
impl BackgroundService for OperatorService {
    async fn start(&self, _shutdown: ShutdownWatch) {
        let Some(socket) = self.socket.lock().await.take() else {
            return;
        };
        let listener = match socket.listen(128) {
            Ok(listener) => listener,
            Err(error) => {
                log::error!(target: "serve", "cannot listen for the operator: {error}");
                std::process::exit(2);
            }
        };
        if let Ok(address) = listener.local_addr() {
            log::info!(target: "serve", operator:% = address; "health, readiness and metrics on http://{address}");
        }
        let listening = panics::essential("operator", self.operator.clone().listen(listener));
        self.handed_over.run_until_cancelled(listening).await;
    }
}

//! The services on pingora's runtimes: client connections, and the operator's listener.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::server::ShutdownWatch;
use pingora::services::background::{BackgroundService, GenBackgroundService};
use tokio::net::TcpSocket;
use tokio::sync::Mutex;

use crate::gateway::operator::Operator;
use crate::gateway::{ConnectionHandler, Listeners};
use crate::telemetry::panics;

/// Accepts client connections.
pub(super) struct ConnectionService {
    handler: Arc<ConnectionHandler>,
    listeners: Mutex<Option<Listeners>>,
    operator: Operator,
}

impl ConnectionService {
    pub(super) fn new(
        handler: Arc<ConnectionHandler>,
        listeners: Listeners,
        operator: Operator,
    ) -> Self {
        Self {
            handler,
            listeners: Mutex::new(Some(listeners)),
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
        let Some(listeners) = self.listeners.lock().await.take() else {
            return;
        };
        match listeners.open() {
            Ok(open) => {
                self.operator.loaded();
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
    socket: Mutex<Option<TcpSocket>>,
}

impl OperatorService {
    pub(super) fn new(operator: Operator, socket: TcpSocket) -> Self {
        Self {
            operator,
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
                log::error!(target: "serve", "listen for the operator: {error}");
                std::process::exit(2);
            }
        };
        if let Ok(address) = listener.local_addr() {
            log::info!(target: "serve", operator:% = address; "health, readiness and metrics on http://{address}");
        }
        panics::essential("operator", self.operator.clone().listen(listener)).await;
    }
}

//! The operator's listener: health, readiness, metrics. It is never public.
//!
//! * `GET /healthz`: 200 as long as the process can respond.
//! * `GET /readyz`: 200 once the index is loaded; 503 when the process is stopping (RFC 9110
//!   §15.6.4), so that load balancers stop sending before the listeners close.
//! * `GET /metrics`: the Prometheus text format 0.0.4.
//! * `POST /reload`: compares what is served with the disk; with `?accept-removals` also if that
//!   removes many sites at once. The response is 202, the comparison happens after it. A worker
//!   serves nothing and has no such call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use pingora::apps::HttpServerApp as _;
use pingora::apps::http_app::{HttpServer, ServeHttp};
use pingora::protocols::http::ServerSession;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::connection::ClientConnection;
use super::drain::{Drain, Phase};
use crate::telemetry::Metrics;

/// Compares what is served with the disk.
pub trait Reload: std::fmt::Debug + Send + Sync {
    /// Asks for a comparison; see `POST /reload`.
    fn reload(&self, accept_removals: bool);
}

/// The operator's listener.
#[derive(Clone, Debug)]
pub struct Operator {
    reload: Option<Arc<dyn Reload>>,
    metrics: Arc<Metrics>,
    drain: Drain,
    is_loaded: Arc<AtomicBool>,
}

// === impl Operator ===

impl Operator {
    /// Makes it; the process is not ready until [`Operator::loaded`].
    #[must_use]
    pub fn new(metrics: Arc<Metrics>, drain: Drain, reload: Option<Arc<dyn Reload>>) -> Self {
        Self {
            reload,
            metrics,
            drain,
            is_loaded: Arc::default(),
        }
    }

    /// Declares the process ready: the index is loaded, or a worker has what it needs.
    pub fn loaded(&self) {
        self.is_loaded.store(true, Ordering::Release);
    }

    /// Responds until the process ends.
    pub async fn listen(self, listener: TcpListener) {
        // Not the drain of client connections: the operator has access until the process ends.
        let own = Drain::new();
        let app = Arc::new(HttpServer::new_app(self));
        let (_never, shutdown) = watch::channel(false);
        loop {
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    log::warn!(target: "operator", "accept: {error}");
                    tokio::task::yield_now().await;
                    continue;
                }
            };
            let (app, shutdown) = (Arc::clone(&app), shutdown.clone());
            let connection = ClientConnection::plain(stream, peer, own.guard());
            tokio::spawn(async move {
                let mut session = ServerSession::new_http1(Box::new(connection));
                session.set_keepalive(None);
                app.process_new_http(session, &shutdown).await;
            });
        }
    }

    fn page(&self, path: &str) -> (StatusCode, &'static str, Bytes) {
        let text = |status, text: &'static str| {
            (
                status,
                "text/plain; charset=utf-8",
                Bytes::from_static(text.as_bytes()),
            )
        };
        match path {
            "/healthz" => text(StatusCode::OK, "ok\n"),
            "/readyz" if !self.is_loaded.load(Ordering::Acquire) => {
                text(StatusCode::SERVICE_UNAVAILABLE, "loading\n")
            }
            "/readyz" if self.drain.phase() > Phase::Serving => {
                text(StatusCode::SERVICE_UNAVAILABLE, "leaving\n")
            }
            "/readyz" => text(StatusCode::OK, "ready\n"),
            "/metrics" => {
                let open = i64::try_from(self.drain.open()).unwrap_or(i64::MAX);
                self.metrics.connections_open.set(open);
                (
                    StatusCode::OK,
                    "text/plain; version=0.0.4; charset=utf-8",
                    self.metrics.to_text().into(),
                )
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "/healthz, /readyz, /metrics or /reload\n",
            ),
        }
    }
}

#[async_trait]
impl ServeHttp for Operator {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let request = session.req_header();
        let (status, media_type, body) = match (&request.method, &self.reload) {
            (&Method::GET | &Method::HEAD, _) => self.page(request.uri.path()),
            (&Method::POST, Some(reload)) if request.uri.path() == "/reload" => {
                reload.reload(request.uri.query() == Some("accept-removals"));
                (
                    StatusCode::ACCEPTED,
                    "text/plain; charset=utf-8",
                    Bytes::from_static(b"comparing\n"),
                )
            }
            _ => (
                StatusCode::METHOD_NOT_ALLOWED,
                "text/plain; charset=utf-8",
                Bytes::new(),
            ),
        };
        let mut response = Response::new(body.to_vec());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static(media_type),
        );
        headers.insert(
            header::CACHE_CONTROL,
            header::HeaderValue::from_static("no-store"),
        );
        headers.insert(
            header::CONTENT_LENGTH,
            header::HeaderValue::from(body.len()),
        );
        response
    }
}

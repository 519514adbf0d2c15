//! The operator's listener: health, readiness, metrics. It is never public.
//!
//! * `GET /healthz`: 200 as long as the process can respond.
//! * `GET /readyz`: 200 once the index is loaded; 503 when the process is stopping (RFC 9110
//!   §15.6.4), so that load balancers stop sending before the listeners close. `?full` gives the
//!   same status with a JSON body that says which parts of the process fail, and why. A part that
//!   fails does not change the status: the sites are served without it. An edge is not ready before
//!   its cache was filled once, and its body says how old its state is.
//! * `GET /metrics`: the Prometheus text format 0.0.4.
//! * `GET /edges`: the edges that follow this node, with the revision of each, as JSON.
//! * `GET /upstreams`: the servers of the sites that have their own, with their state, as JSON.
//! * `GET /top?by=host&of=bytes&limit=20`: the heaviest hosts, addresses or reasons ([`mod@top`]).
//! * `POST /reload`: compares the served sites with the disk; with `?accept-removals` also if that
//!   removes many sites at once. The response is 202, the comparison happens after it. A worker
//!   serves nothing and has no such call.
//!
//! A request that changes state must name this listener in `Host` (a loopback name, its own
//! address or a configured name), so that no page in a browser can send it (DNS rebinding), and
//! must have the [`Token`]. For the same reason, a request for metrics, hosts, edges or upstreams
//! must have a known name or any address in `Host`. A request that has passed through this gateway
//! is rejected whatever it asks: an upstream that names this machine does not lead here.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use http::uri::Authority;
use http::{Method, Response, StatusCode, header};
use pingora::apps::HttpServerApp as _;
use pingora::apps::http_app::{HttpServer, ServeHttp};
use pingora::protocols::http::ServerSession;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Limits;
use super::balance::Balancer;
use super::connection::ClientConnection;
use super::drain::{Drain, Phase};
use super::forward;
use super::handler::ACCEPT_PAUSE;
use super::open::Guards;
use super::token::Token;
use super::top::{self, By, Of, Top};
use super::write_rate::WriteRate;
use crate::follow::{Fleet, Status};
use crate::telemetry::{Health, Metrics};

/// How many connections the listener has open at once; more wait in the queue of the kernel.
pub const CONNECTIONS_MAX: usize = 64;
/// How long one request may take.
const TIME_MAX: Duration = Duration::from_secs(30);
const TEXT: &str = "text/plain; charset=utf-8";
/// The answer to a request for another host.
const WRONG_HOST: &str = "the Host is not a name of this listener; see listen.operator_hosts\n";

/// Compares the served sites with the disk.
pub trait Reload: std::fmt::Debug + Send + Sync {
    /// Asks for a comparison; see `POST /reload`.
    fn reload(&self, accept_removals: bool);
}

/// The operator's listener.
#[derive(Clone, Debug)]
pub struct Operator {
    changes: Option<Arc<Changes>>,
    metrics: Arc<Metrics>,
    health: Health,
    drain: Drain,
    /// The name of this gateway in `Via`.
    pseudonym: Arc<str>,
    /// Names in `Host` that are accepted beside `localhost` and addresses.
    hosts: Arc<[String]>,
    is_loaded: Arc<AtomicBool>,
    began: Instant,
    edges: Option<Arc<Fleet>>,
    following: Option<Arc<Status>>,
    /// Cancelled when another process serves on the same addresses.
    handed_over: CancellationToken,
}

/// The requests that change the state of the process, and who may send them.
#[derive(Debug)]
pub struct Changes {
    /// Compares the served sites with the disk.
    pub reload: Arc<dyn Reload>,
    /// The token that a request must have; without one, no request is accepted.
    pub token: Option<Token>,
    /// The servers of each site that has its own.
    pub upstreams: Arc<Balancer>,
    /// The hosts, addresses and reasons with the most requests and bytes.
    pub top: Arc<Top>,
    /// Names in `Host` that are accepted beside loopback names and the listener's address.
    pub hosts: Vec<String>,
}

/// Status, media type and body of a response.
type PageParts = (StatusCode, &'static str, Bytes);

// === impl Operator ===

impl Operator {
    /// Makes it; the process is not ready until [`Operator::loaded`].
    #[must_use]
    pub fn new(
        metrics: Arc<Metrics>,
        health: Health,
        drain: Drain,
        pseudonym: &str,
        changes: Option<Changes>,
    ) -> Self {
        let hosts = changes.as_ref().map(|changes| &*changes.hosts);
        Self {
            hosts: hosts.unwrap_or_default().into(),
            changes: changes.map(Arc::new),
            metrics,
            health,
            drain,
            pseudonym: pseudonym.into(),
            is_loaded: Arc::default(),
            began: Instant::now(),
            edges: None,
            following: None,
            handed_over: CancellationToken::new(),
        }
    }

    /// Accepts these names in `Host`.
    #[must_use]
    pub fn with_hosts(self, hosts: Vec<String>) -> Self {
        Self {
            hosts: hosts.into(),
            ..self
        }
    }

    /// Once the token is cancelled, `/readyz` answers 200 although this process drains: another
    /// process serves the same addresses, and this one may still get a connection.
    #[must_use]
    pub fn with_successor(self, handed_over: CancellationToken) -> Self {
        Self {
            handed_over,
            ..self
        }
    }

    /// Shows the edges that follow this node, and how this node follows another one. An edge is
    /// ready when its cache has been filled once.
    #[must_use]
    pub fn with_follow(self, edges: Option<Arc<Fleet>>, following: Option<Arc<Status>>) -> Self {
        Self {
            edges,
            following,
            ..self
        }
    }

    /// Declares the process ready: the index is loaded, or a worker has what it needs.
    pub fn loaded(&self) {
        self.is_loaded.store(true, Ordering::Release);
    }

    /// Responds until the process ends.
    pub async fn listen(self, listener: TcpListener) {
        // The drain of client connections does not end this: the operator has access until the
        // process ends.
        let own = Drain::new();
        let metrics = Arc::clone(&self.metrics);
        let app = Arc::new(HttpServer::new_app(self));
        let (_never, shutdown) = watch::channel(false);
        loop {
            own.below(CONNECTIONS_MAX).await;
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                // No file descriptors left, or the client closed the connection already.
                Err(error) => {
                    log::warn!(target: "operator", "cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let (app, shutdown) = (Arc::clone(&app), shutdown.clone());
            let guards = Guards {
                connection: own.guard(),
                address: None,
                open: None,
            };
            let write_rate = WriteRate::of_connection(&Limits::default(), &metrics);
            let connection = ClientConnection::plain(stream.into(), peer, guards, write_rate);
            tokio::spawn(async move {
                let mut session = ServerSession::new_http1(Box::new(connection));
                session.set_keepalive(None);
                let responding = app.process_new_http(session, &shutdown);
                let _elapsed = tokio::time::timeout(TIME_MAX, responding).await;
            });
        }
    }

    fn page(&self, path: &str, query: Option<&str>) -> PageParts {
        match path {
            "/healthz" => text(StatusCode::OK, "ok\n"),
            "/readyz" => {
                let (status, word) = self.readiness();
                match query {
                    Some("full") => (status, "application/json", self.readiness_in_full(word)),
                    _ => text(status, word),
                }
            }
            "/metrics" => {
                let open = i64::try_from(self.drain.open()).unwrap_or(i64::MAX);
                self.metrics.connections_open.set(open);
                (
                    StatusCode::OK,
                    "text/plain; version=0.0.4; charset=utf-8",
                    self.metrics.to_text().into(),
                )
            }
            _ => match (path, &self.changes) {
                ("/top", Some(changes)) => match top(&changes.top, query.unwrap_or_default()) {
                    Some(body) => (StatusCode::OK, "application/json", body),
                    None => text(
                        StatusCode::BAD_REQUEST,
                        "by=host|address|reason, of=requests|bytes, limit=1 to 128\n",
                    ),
                },
                ("/upstreams", Some(changes)) => {
                    let body = format!("{:#}\n", changes.upstreams.to_json());
                    (StatusCode::OK, "application/json", body.into())
                }
                ("/edges", _) => match &self.edges {
                    Some(edges) => {
                        let body = format!("{:#}\n", edges.to_json());
                        (StatusCode::OK, "application/json", body.into())
                    }
                    None => text(StatusCode::NOT_FOUND, "no edge can follow this node\n"),
                },
                _ => text(
                    StatusCode::NOT_FOUND,
                    "/healthz, /readyz, /metrics, /upstreams, /edges, /top or /reload\n",
                ),
            },
        }
    }

    fn readiness(&self) -> (StatusCode, &'static str) {
        let is_filled = self.following.as_ref().is_none_or(|edge| edge.is_filled());
        if !self.is_loaded.load(Ordering::Acquire) || !is_filled {
            (StatusCode::SERVICE_UNAVAILABLE, "loading\n")
        } else if self.drain.phase() > Phase::Serving && !self.handed_over.is_cancelled() {
            (StatusCode::SERVICE_UNAVAILABLE, "leaving\n")
        } else {
            (StatusCode::OK, "ready\n")
        }
    }

    /// Returns the body of `/readyz?full`. A process that serves, with a part that fails, is
    /// `degraded`.
    fn readiness_in_full(&self, word: &str) -> Bytes {
        let status = match word.trim_end() {
            "ready" if !self.health.is_whole() => "degraded",
            word => word,
        };
        let mut body = json!({
            "status": status,
            "version": env!("CARGO_PKG_VERSION"),
            "process": std::process::id(),
            "uptime_seconds": self.began.elapsed().as_secs(),
            "parts": self.health.to_json(),
        });
        if let Some(following) = &self.following {
            body["follow"] = following.to_json();
        }
        format!("{body:#}\n").into()
    }

    fn reload(&self, changes: &Changes, session: &ServerSession) -> PageParts {
        let request = session.req_header();
        let own = session
            .digest()
            .and_then(|digest| digest.socket_digest.as_deref()?.local_addr()?.as_inet())
            .map(std::net::SocketAddr::ip);
        if !changes.accepts_host(&request.headers, own) {
            return text(StatusCode::MISDIRECTED_REQUEST, WRONG_HOST);
        }
        let Some(token) = &changes.token else {
            let why = "this gateway has no token; its log says why\n";
            return text(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        let given = request.headers.get(header::AUTHORIZATION);
        if !given.is_some_and(|given| token.is_in(given.as_bytes())) {
            let why = "this needs the token of listen.operator_token\n";
            return text(StatusCode::UNAUTHORIZED, why);
        }
        changes
            .reload
            .reload(request.uri.query() == Some("accept-removals"));
        text(StatusCode::ACCEPTED, "comparing\n")
    }
}

// === impl Changes ===

impl Changes {
    /// Returns whether `Host` names this listener.
    fn accepts_host(&self, headers: &http::HeaderMap, own: Option<IpAddr>) -> bool {
        let is_own = |address: IpAddr| address.to_canonical().is_loopback() || Some(address) == own;
        is_named(headers, &self.hosts, is_own)
    }
}

/// Returns whether `Host` is `localhost`, one of these names, or an address that is accepted. A page
/// of a browser can give its own name the address of this listener (DNS rebinding), but the name
/// stays in `Host`.
fn is_named(
    headers: &http::HeaderMap,
    hosts: &[String],
    accepts: impl FnOnce(IpAddr) -> bool,
) -> bool {
    let mut fields = headers.get_all(header::HOST).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return false;
    };
    let authority = field.to_str().ok().and_then(|text| text.parse().ok());
    let Some(authority): Option<Authority> = authority else {
        return false;
    };
    let name = authority.host();
    let in_brackets = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match in_brackets.unwrap_or(name).parse::<IpAddr>() {
        Ok(address) => accepts(address),
        Err(_not_an_address) => {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            is("localhost") || hosts.iter().any(|known| is(known))
        }
    }
}

/// Returns whether a path tells about sites and clients. Health is asked by load balancers, whatever
/// they send as `Host`.
fn tells(path: &str) -> bool {
    matches!(path, "/metrics" | "/top" | "/upstreams" | "/edges")
}

/// Returns the body of `/top` for a query; `None` if the query has a mistake.
fn top(top: &Top, query: &str) -> Option<Bytes> {
    let (mut by, mut of, mut limit) = (By::Host, Of::Requests, 20);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=')?;
        match key {
            "by" => by = By::NAMES.iter().find(|(name, _)| *name == value)?.1,
            "of" => of = Of::NAMES.iter().find(|(name, _)| *name == value)?.1,
            "limit" => limit = value.parse().ok()?,
            _ => return None,
        }
    }
    let is_possible = (1..=top::ENTRIES_MAX).contains(&limit);
    is_possible.then(|| format!("{:#}\n", top.to_json(by, of, limit)).into())
}

fn text(status: StatusCode, text: &'static str) -> PageParts {
    (status, TEXT, Bytes::from_static(text.as_bytes()))
}

#[async_trait]
impl ServeHttp for Operator {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        let request = session.req_header();
        let (status, media_type, body) = match (&request.method, &self.changes) {
            _ if forward::is_loop(request, &self.pseudonym) => text(
                StatusCode::FORBIDDEN,
                "this request came through the gateway\n",
            ),
            (&Method::GET | &Method::HEAD, _)
                if tells(request.uri.path())
                    && !is_named(&request.headers, &self.hosts, |_address| true) =>
            {
                text(StatusCode::MISDIRECTED_REQUEST, WRONG_HOST)
            }
            (&Method::GET | &Method::HEAD, _) => self.page(request.uri.path(), request.uri.query()),
            (&Method::POST, Some(changes)) if request.uri.path() == "/reload" => {
                self.reload(changes, session)
            }
            _ => (StatusCode::METHOD_NOT_ALLOWED, TEXT, Bytes::new()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::UpstreamLimits;

    #[derive(Debug)]
    struct Never;

    impl Reload for Never {
        fn reload(&self, _accept_removals: bool) {}
    }

    #[test]
    fn a_host_is_a_loopback_name_the_own_address_or_configured() {
        let changes = Changes {
            reload: Arc::new(Never),
            token: None,
            upstreams: Arc::new(Balancer::new(UpstreamLimits::default(), Arc::default())),
            top: Arc::default(),
            hosts: vec!["edge-1.internal".to_owned()],
        };
        let own = Some(IpAddr::from([192, 0, 2, 9]));
        let accepts = |host: &str| {
            let mut headers = http::HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            changes.accepts_host(&headers, own)
        };
        for right in [
            "localhost:9080",
            "LOCALHOST",
            "127.0.0.1:9080",
            "[::1]:9080",
            "192.0.2.9:9080",
            "edge-1.internal",
        ] {
            assert!(accepts(right), "{right}");
        }
        for wrong in [
            "evil.example",
            "localhost.evil.example",
            "192.0.2.8",
            "127.0.0.1.evil.example:9080",
            "",
        ] {
            assert!(!accepts(wrong), "{wrong}");
        }
        assert!(!changes.accepts_host(&http::HeaderMap::new(), own));
    }
}

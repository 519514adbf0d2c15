//! The server of a preview: HTTP/1.1 on one address, for browsers on this machine.
//!
//! The strict reader of the gateway reads request heads, within its limits, and the gateway's
//! writer formats response heads; this module has only the loop between them. The gateway's
//! connections need a process with TLS, telemetry, an access log and a live index, and hyper would
//! read requests by other rules than the gateway.
//!
//! `Host` must name this machine: otherwise a page of another site whose name resolves to this
//! machine (DNS rebinding) could read pages that are not published.
//!
//! Sources: WHATWG HTML §9.2 (server-sent events); RFC 9112.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::panel;
use super::shown::{Shown, Version};
use crate::clock::Clock;
use crate::discovery::paths;
use crate::gateway::Limits;
use crate::gateway::head::{self, Framing, Head};
use crate::origin;
use crate::response::{
    Connection, Content, MaybeCached, Problem, RequestHeaders, Response, caching, push_date,
};

const HTML: &str = "text/html; charset=utf-8";
/// How often an event stream without events sends a comment, which keeps it open.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// The reply to a request.
enum Reply {
    Response(Box<Response>),
    Events,
}

/// The parts of a request that a preview needs.
struct Request {
    path: String,
    query: Option<String>,
    accept: Option<Vec<u8>>,
    method: String,
    content: Content,
    is_last: bool,
    /// Whether `Host` names this machine.
    is_local: bool,
}

/// Accepts connections until the process ends.
pub(super) async fn serve(listener: TcpListener, shown: Arc<Shown>, listen: IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => {
                let shown = Arc::clone(&shown);
                // An error means that the browser closed the connection.
                tokio::spawn(async move { handle_connection(stream, shown, listen).await.ok() });
            }
            Err(error) => {
                log::warn!(target: "preview", "cannot accept a connection: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Responds to the requests of a connection.
async fn handle_connection(
    mut stream: TcpStream,
    shown: Arc<Shown>,
    listen: IpAddr,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let limits = Limits::default();
    let mut inbox = Vec::new();
    loop {
        let waiting =
            tokio::time::timeout(limits.idle, read_head(&mut stream, &mut inbox, &limits));
        let Ok(Some(length)) = waiting.await.unwrap_or(Ok(None)) else {
            return Ok(());
        };
        let request = match Head::parse_with_address(&inbox[..length], &limits) {
            Ok(head) => Request::of(&head, listen),
            Err(rejection) => {
                let response = rejection.response();
                return write(&mut stream, response, Content::Whole, Connection::Close).await;
            }
        };
        inbox.drain(..length);
        let (content, is_last) = (request.content, request.is_last);
        let shown_now = Arc::clone(&shown);
        let reply = tokio::task::spawn_blocking(move || reply(&shown_now, &request));
        let response = match reply.await.map_err(io::Error::other)? {
            Reply::Events => return events(stream, &shown).await,
            Reply::Response(response) => response,
        };
        let connection = match is_last {
            true => Connection::Close,
            false => Connection::Keep,
        };
        write(&mut stream, *response, content, connection).await?;
        if is_last {
            return stream.shutdown().await;
        }
    }
}

/// Waits for a whole head and returns its length; `None` when the connection ended or the
/// head exceeds a limit.
async fn read_head(
    stream: &mut TcpStream,
    inbox: &mut Vec<u8>,
    limits: &Limits,
) -> io::Result<Option<usize>> {
    loop {
        if let Some(length) = head::length(inbox, 0) {
            return Ok(Some(length));
        }
        if head::reject_early(inbox, limits).is_some() || stream.read_buf(inbox).await? == 0 {
            return Ok(None);
        }
    }
}

/// Makes the reply. It may render a page, which would block a thread that serves connections.
fn reply(shown: &Shown, request: &Request) -> Reply {
    if !request.is_local {
        let problem = Problem::new(421, "a preview serves only the machine that it runs on");
        return Reply::Response(Box::new(problem.response()));
    }
    let response = match request.path.strip_prefix(panel::PATH) {
        Some("events") => return Reply::Events,
        Some("diagnostics") => Response::new(200, HTML, shown.panel().as_str().to_owned().into()),
        Some("preview.css") => Response::new(200, "text/css; charset=utf-8", panel::STYLES.into()),
        Some("preview.js") => {
            Response::new(200, "text/javascript; charset=utf-8", panel::SCRIPT.into())
        }
        _ => page(shown, request),
    };
    Reply::Response(Box::new(response))
}

/// Makes the response of the gateway, and adds the panel to a page. Nothing is cached, because it
/// may change in a moment.
fn page(shown: &Shown, request: &Request) -> Response {
    // The version is read before the site, so that it is never newer than the response.
    let version = *shown.versions().borrow();
    let headers = RequestHeaders {
        method: &request.method,
        query: request.query.as_deref(),
        accept: request.accept.as_deref(),
        ..RequestHeaders::GET
    };
    let response = match shown.served() {
        None => Response::new(503, HTML, Bytes::from_static(panel::empty_page())),
        Some(served) => {
            let path = paths::normalise(&request.path);
            match paths::find(&path, &served.site.base_path) {
                Some(document) => shown
                    .index
                    .response(&served, "localhost", document, &headers),
                None => origin::response(&served, &path, &headers),
            }
        }
    };
    let is_page = response.media_type == Some(HTML);
    // The files of a preview are in memory.
    let body = match response.body.memory() {
        Some(page) if is_page => Bytes::from(panel::add(page, &shown.panel(), version)).into(),
        _ => response.body,
    };
    Response {
        body,
        etag: None,
        last_modified: None,
        caching: caching::NEVER,
        ..response
    }
}

async fn write(
    stream: &mut TcpStream,
    response: Response,
    content: Content,
    connection: Connection,
) -> io::Result<()> {
    let mut date = Vec::new();
    push_date(&mut date, Clock::System.unix_seconds());
    let mut out = Vec::with_capacity(response.body.len() + 1024);
    let response = MaybeCached::Built(response);
    response.write_head(&mut out, &date, connection);
    let response = response.response();
    if response.body_bytes(content) > 0 {
        out.extend_from_slice(&response.body.read_all()?);
    }
    stream.write_all(&out).await
}

/// Sends a browser the version that is shown, now and after each change, until it closes the
/// connection.
async fn events(mut stream: TcpStream, shown: &Shown) -> io::Result<()> {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
        Cache-Control: no-store\r\nConnection: close\r\n\r\n";
    let mut versions = shown.versions();
    stream.write_all(HEAD).await?;
    let mut sent: Option<Version> = None;
    loop {
        let now = *versions.borrow_and_update();
        let is_new = sent.is_none_or(|sent| sent.site != now.site);
        // Before the first site there is nothing to load.
        if is_new && shown.served().is_some() {
            let event = format!("event: site\ndata: {}\n\n", now.site);
            stream.write_all(event.as_bytes()).await?;
        }
        if sent.is_none_or(|sent| sent.diagnostics != now.diagnostics) {
            let event = format!("event: diagnostics\ndata: {}\n\n", now.diagnostics);
            stream.write_all(event.as_bytes()).await?;
        }
        sent = Some(now);
        let mut rest = [0; 64];
        tokio::select! {
            changed = versions.changed() => changed.map_err(io::Error::other)?,
            read = stream.read(&mut rest) => if read? == 0 { return Ok(()) },
            () = tokio::time::sleep(HEARTBEAT) => stream.write_all(b":\n\n").await?,
        }
    }
}

// === impl Request ===

impl Request {
    fn of(head: &Head<'_>, listen: IpAddr) -> Self {
        let headers = &head.headers;
        Self {
            path: headers.path.to_owned(),
            query: headers.query.map(str::to_owned),
            accept: headers.accept.map(<[u8]>::to_vec),
            method: headers.method.to_owned(),
            content: headers.content(),
            // A body is not read, so the connection cannot be reused after one.
            is_last: !head.keep_alive || head.framing != Framing::None,
            is_local: is_local(headers.host, listen),
        }
    }
}

/// Returns whether a `Host` names this machine: `localhost` and names below it, a loopback address,
/// or the address of `--listen`.
fn is_local(host: &str, listen: IpAddr) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = address.parse::<IpAddr>() {
        // `--listen 0.0.0.0` allows every address of this machine.
        return address.is_loopback() || address == listen || listen.is_unspecified();
    }
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn only_the_names_and_addresses_of_this_machine_are_local() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for host in [
            "localhost:3000",
            "localhost",
            "LocalHost.:3000",
            "docs.localhost:3000",
            "127.0.0.1:3000",
            "[::1]:3000",
        ] {
            assert!(is_local(host, loopback), "{host}");
        }
        for host in [
            "evil.test:3000",
            "localhost.evil.test",
            "10.0.0.5:3000",
            "",
            "notlocalhost",
        ] {
            assert!(!is_local(host, loopback), "{host}");
        }
        assert!(is_local("10.0.0.5:3000", IpAddr::from([10, 0, 0, 5])));
    }
}

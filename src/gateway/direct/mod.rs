//! The direct path: requests to a site's own HTTP/1.1 server, without pingora's proxy.
//!
//! Most requests to an upstream are simple: a head, maybe a short body, and a response whose end is
//! clear. Such a request needs no header map, no task and no channel. Its head is rewritten from
//! the bytes that the connection has parsed ([`request`]) and sent in one piece. The head of the
//! response is read strictly ([`response`]), and its content follows in pieces ([`content`]). The
//! next piece is read when the client has taken the one before, so a slow client costs one piece.
//! [`exchange`] does all this in the task of the client's connection, and allocates nothing once
//! its buffers have grown. The [`stream`]s of an HTTP/2 connection do so side by side, in its task.
//!
//! pingora's connector makes the connections, with the same checks as on the proxy path
//! ([`upstream`](super::upstream)). They are kept in a [`Pool`] of our own: pingora's pool starts a
//! task for each connection that becomes idle and makes three system calls to reuse it, and a
//! connection must belong to one site. On the proxy path a request of 1.2 KB takes 52 µs of
//! processor time, 34 µs of them in the program: in pingora's futures, header maps and channels,
//! with no single function above 5 %. On the direct path it takes 16 µs, 6 µs of them in the
//! program; nginx's `proxy_pass` takes 12 µs. So pingora's session could not be fed in another way,
//! as the session itself is what costs.
//!
//! All other requests stay on the [proxy path](super::proxy), which is the reference: upgrades,
//! `Expect`, chunked and long bodies, fields with underscores, HTTP/2 to the upstream, HTTP/2
//! requests with content, HTTP/1.0 clients. If the fast path is switched off, so is this one.
//! `tests/it/direct/mod.rs` compares both, with generated requests and responses.
//!
//! An exchange is tried again in two cases only: the connection could not be made; or it ended
//! before anything was received, it came from the pool or the site has another server, and the
//! method is idempotent or nothing was sent.

mod content;
mod downstream;
mod exchange;
mod pool;
mod request;
mod response;
mod stream;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::server::configuration::ServerConf;
use prometheus::IntCounter;

use super::Gateway;
use super::access::{Client, Outcome};
use super::balance::Group;
use super::copies::Asked;
use super::file_response;
use super::head::{Framing, Head};
use super::route::{self, Target};
use crate::acme::HTTP_PATH;
use crate::index::Served;
use crate::response::trace::{RequestId, TraceContext};
use crate::response::{Connection, Content, RequestHeaders};
use crate::site::{HostHeader, Hsts, Scheme, Site, Upstream, UpstreamHttp};

pub(super) use downstream::Http1Downstream;
pub(super) use exchange::{ExchangeEnd, FinalResponse, Parts};
use pool::Pool;
pub(super) use stream::PlannedStream;

/// How long it is remembered that an upstream has chosen HTTP/2.
const HTTP2_TIME: Duration = Duration::from_secs(600);
/// How many such upstreams are remembered.
const HTTP2_MAX: usize = 10_000;
/// The longest content of a request: it is read whole before the upstream gets it, so that nothing
/// has to be sent and received at the same time.
const CONTENT_BYTES_MAX: usize = 32 << 10;
/// How often idle connections are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The connections of the direct path.
pub(super) struct Direct {
    connector: TransportConnector,
    pool: Pool,
    /// Names of upstreams that have chosen HTTP/2, and when: their requests take the proxy path.
    http2: Mutex<HashMap<Box<str>, Instant>>,
    opened: IntCounter,
    reused: IntCounter,
}

/// A request that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived<'b> {
    pub(super) head: Head<'b>,
    /// The head, and the bytes that have arrived after it.
    pub(super) bytes: &'b [u8],
    /// The length of the head, in bytes.
    pub(super) length: usize,
    /// Its host in normal form.
    pub(super) host: &'b str,
    pub(super) client: Client,
    /// The version of HTTP that it came over, as `Via` has it.
    pub(super) version: &'static str,
    /// Whether the connection is kept open after the response.
    pub(super) after: Connection,
}

/// A request that takes the direct path.
#[derive(Debug)]
pub(super) struct Plan {
    served: Arc<Served>,
    group: Arc<Group>,
    client: Client,
    is_head: bool,
    is_idempotent: bool,
    after: Connection,
    /// Set if a copy of the response may be kept or used.
    copy: Option<Asked>,
    /// Where its content is in the inbox, when it has arrived.
    content: Range<usize>,
    logged: Logged,
}

/// The servers of the site that the last request of a connection was for: most connections are for
/// one site, and need not look for its servers each time.
#[derive(Debug, Default)]
pub(super) struct LastGroup(Option<(Arc<Site>, Arc<Group>)>);

/// Where the values of an access line are in the head of a request.
#[derive(Clone, Copy, Debug)]
struct Logged {
    method: Span,
    host: Span,
    path: Span,
    user_agent: Span,
    request_id: Span,
    made_id: Option<RequestId>,
    trace: Option<TraceContext>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    from: usize,
    length: usize,
}

// === impl Direct ===

impl Direct {
    pub(super) fn new(gateway: &Gateway, conf: &ServerConf) -> Self {
        let connections = &gateway.metrics.upstream_connections;
        let options = ConnectorOptions::from_server_conf(conf);
        Self {
            pool: Pool::new(options.keepalive_pool_size, gateway.upstream.idle),
            connector: TransportConnector::new(Some(options)),
            http2: Mutex::default(),
            opened: connections.with_label_values(&["opened"]),
            reused: connections.with_label_values(&["reused"]),
        }
    }

    /// Closes connections that were idle for too long, or that the upstream has closed. It never
    /// returns.
    pub(super) async fn sweep(&self) {
        let mut interval = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            interval.tick().await;
            self.pool.sweep();
        }
    }

    /// Returns whether an upstream takes requests of this path.
    fn serves(&self, upstream: &Upstream) -> bool {
        // The head is written before the server is chosen.
        if upstream.host_header == HostHeader::Upstream && !upstream.others.is_empty() {
            return false;
        }
        let has_http1 = |scheme: Scheme, host: &str| match (upstream.http, scheme) {
            (UpstreamHttp::Two, _) => false,
            (UpstreamHttp::One, _) | (UpstreamHttp::OneOrTwo, Scheme::Http) => true,
            (UpstreamHttp::OneOrTwo, Scheme::Https) => {
                let known = self.http2.lock().unwrap_or_else(PoisonError::into_inner);
                let since = known.get(host);
                since.is_none_or(|since| since.elapsed() > HTTP2_TIME)
            }
        };
        has_http1(upstream.scheme, &upstream.host)
            && upstream
                .others
                .iter()
                .all(|other| has_http1(other.scheme, &other.host))
    }

    /// Remembers that an upstream has chosen HTTP/2.
    fn chose_http2(&self, upstream: &Upstream) {
        let mut known = self.http2.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= HTTP2_MAX {
            known.clear();
        }
        known.insert(upstream.host.clone(), Instant::now());
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct").finish_non_exhaustive()
    }
}

// === impl Plan ===

impl Plan {
    /// Decides whether a request takes the direct path, and writes what the upstream gets to
    /// `out`, without the content.
    pub(super) fn of(
        (gateway, direct): (&Gateway, &Direct),
        arrived: Arrived<'_>,
        group: &mut LastGroup,
        out: &mut Vec<u8>,
    ) -> Option<Self> {
        let Arrived {
            head,
            bytes,
            length,
            host,
            client,
            version,
            after,
        } = arrived;
        if !gateway.fast_path || !head.is_fast_message_form() {
            return None;
        }
        if gateway.challenges.is_some() && head.headers.path.starts_with(HTTP_PATH) {
            return None;
        }
        let has_upstream = |served: &Arc<Served>| {
            Target::upstream(served).is_some_and(|upstream| direct.serves(upstream))
        };
        if !gateway.index.with(host, has_upstream)? {
            return None;
        }
        // The same decision as on the proxy path.
        let Target::Upstream(served) = route::route(&gateway.index, host, false, &head.headers)
        else {
            return None;
        };
        let content = match head.framing {
            Framing::None => 0,
            Framing::Length(length) => usize::try_from(length).ok()?,
            Framing::Chunked => return None,
        };
        if content > CONTENT_BYTES_MAX {
            return None;
        }
        out.clear();
        let made = gateway.made(client.peer, &head.headers);
        let forwarded = request::Forwarded {
            upstream: Target::upstream(&served)?,
            host,
            peer: client.peer,
            tls: client.tls,
            is_trusted: gateway.trusted.contains(client.peer),
            service: gateway.index.service(),
            version,
            made,
        };
        if !forwarded.write(&bytes[..length], &head.headers, out) {
            return None;
        }
        let method = head.headers.method;
        let copy = gateway.copies.as_ref().and_then(|copies| {
            let (target, fields) = request::split(&bytes[..length], method)?;
            let fields = request::lines(fields);
            let how = (method, client.tls);
            copies.asked(
                &served.site,
                how,
                host,
                target,
                forwarded.is_trusted,
                fields,
            )
        });
        let group = group.of(gateway, &served.site, forwarded.upstream);
        group.count_request();
        Some(Self {
            group,
            client,
            is_head: method == "HEAD",
            is_idempotent: matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS"),
            after,
            copy,
            content: length..length + content,
            logged: Logged {
                trace: made.trace.or(head.headers.trace),
                made_id: made.request_id,
                ..Logged::of(&head.headers, bytes)
            },
            served,
        })
    }

    /// Writes the access line. `inbox` begins with the request.
    pub(super) fn log(&self, gateway: &Gateway, inbox: &[u8], outcome: Outcome) {
        gateway.log(self.client, &self.logged.headers(inbox), outcome);
    }

    /// Returns the fields of the request, which is at the front of the inbox.
    pub(super) fn fields<'b>(
        &self,
        inbox: &'b [u8],
    ) -> impl Iterator<Item = (&'b [u8], &'b [u8])> + use<'b> {
        let head = inbox.get(..self.content.start).unwrap_or_default();
        let fields = request::split(head, self.logged.method.text(inbox));
        request::lines(fields.map_or(b"", |(_, fields)| fields))
    }

    /// Returns what the connection is for after a response of ours: if the whole request has
    /// arrived, it is used again.
    pub(super) fn after(&self, inbox: &[u8]) -> Connection {
        match inbox.len() >= self.content.end {
            true => self.after,
            false => Connection::Close,
        }
    }

    pub(super) fn client(&self) -> Client {
        self.client
    }

    /// Returns what an access line shows of the request, which is at the front of the inbox.
    pub(super) fn logged(&self, inbox: &[u8]) -> file_response::Logged {
        file_response::Logged::of(&self.logged.headers(inbox))
    }

    /// Returns `Strict-Transport-Security` of responses over TLS.
    pub(super) fn hsts(&self, gateway: &Gateway) -> Option<Hsts> {
        gateway.hsts_of(&self.served.site)
    }

    /// Returns what the client gets of a response of ours.
    pub(super) fn own_content(&self) -> Content {
        match self.is_head {
            true => Content::HeadOnly,
            false => Content::Whole,
        }
    }
}

// === impl LastGroup ===

impl LastGroup {
    /// Returns the servers of a site.
    fn of(&mut self, gateway: &Gateway, site: &Arc<Site>, upstream: &Upstream) -> Arc<Group> {
        if let Some((last, group)) = &self.0
            && Arc::ptr_eq(last, site)
        {
            group.touch();
            return Arc::clone(group);
        }
        let group = gateway.balancer.group(site, upstream);
        self.0 = Some((Arc::clone(site), Arc::clone(&group)));
        group
    }
}

// === impl Logged ===

impl Logged {
    /// Finds the values in the bytes that they were read from.
    fn of(headers: &RequestHeaders<'_>, bytes: &[u8]) -> Self {
        Self {
            method: Span::of(headers.method, bytes),
            host: Span::of(headers.host, bytes),
            path: Span::of(headers.path, bytes),
            user_agent: Span::of(headers.user_agent, bytes),
            request_id: Span::of(headers.request_id, bytes),
            made_id: headers.made_id,
            trace: headers.trace,
        }
    }

    fn headers<'b>(&self, bytes: &'b [u8]) -> RequestHeaders<'b> {
        RequestHeaders {
            method: self.method.text(bytes),
            host: self.host.text(bytes),
            path: self.path.text(bytes),
            user_agent: self.user_agent.text(bytes),
            request_id: self.request_id.text(bytes),
            made_id: self.made_id,
            trace: self.trace,
            ..RequestHeaders::default()
        }
    }
}

// === impl Span ===

impl Span {
    fn of(text: &str, bytes: &[u8]) -> Self {
        let from = text.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
        Self {
            from,
            length: text.len(),
        }
    }

    fn text(self, bytes: &[u8]) -> &str {
        let found = bytes
            .get(self.from..)
            .and_then(|rest| rest.get(..self.length));
        str::from_utf8(found.unwrap_or_default()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::testing;
    use crate::site::Server;

    fn upstream(http: UpstreamHttp, scheme: Scheme, host: &str) -> Upstream {
        Upstream {
            http,
            ..Upstream::new(scheme, host, 443)
        }
    }

    #[tokio::test]
    async fn an_upstream_that_chose_http_2_takes_the_proxy_path() {
        let direct = Direct::new(&testing::gateway(), &ServerConf::default());
        let [two, one, any] = [UpstreamHttp::Two, UpstreamHttp::One, UpstreamHttp::OneOrTwo];
        let (http, https) = (Scheme::Http, Scheme::Https);
        let https_any = upstream(any, https, "a.test");
        let serves = |http, scheme, host| direct.serves(&upstream(http, scheme, host));
        for is_chosen in [false, true] {
            assert_eq!(direct.serves(&https_any), !is_chosen);
            assert!(serves(one, https, "a.test") && serves(one, http, "a.test"));
            assert!(!serves(two, https, "a.test") && !serves(two, http, "a.test"));
            assert!(serves(any, http, "a.test") && serves(any, https, "b.test"));
            direct.chose_http2(&https_any);
        }
        // Each server of a site may get the request.
        let with_other = |host: &str, host_header| Upstream {
            others: Box::new([Server {
                scheme: https,
                host: host.into(),
                port: 443,
                weight: 1,
                is_backup: false,
            }]),
            host_header,
            ..upstream(any, https, "b.test")
        };
        assert!(direct.serves(&with_other("c.test", HostHeader::Preserve)));
        assert!(!direct.serves(&with_other("a.test", HostHeader::Preserve)));
        // Its head would depend on the server.
        assert!(!direct.serves(&with_other("c.test", HostHeader::Upstream)));
        let single = Upstream {
            host_header: HostHeader::Upstream,
            ..upstream(one, https, "c.test")
        };
        assert!(direct.serves(&single));
    }

    #[tokio::test]
    async fn a_full_list_of_upstreams_with_http_2_begins_anew() {
        let direct = Direct::new(&testing::gateway(), &ServerConf::default());
        let chosen =
            |n: usize| upstream(UpstreamHttp::OneOrTwo, Scheme::Https, &format!("{n}.test"));
        for n in 0..HTTP2_MAX {
            direct.chose_http2(&chosen(n));
        }
        assert!(!direct.serves(&chosen(0)) && !direct.serves(&chosen(HTTP2_MAX - 1)));
        direct.chose_http2(&chosen(HTTP2_MAX));
        assert!(direct.serves(&chosen(0)) && !direct.serves(&chosen(HTTP2_MAX)));
    }

    #[test]
    fn the_values_of_an_access_line_are_found_in_the_head_again() {
        let bytes = b"GET /a?b HTTP/1.1\r\nHost: docs.acme.test\r\nUser-Agent: agent/1\r\n\
            X-Request-Id: id-1\r\n\
            traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n";
        let read = Head::parse(bytes, &super::super::Limits::default()).unwrap();
        let logged = Logged::of(&read.headers, bytes);
        let found = logged.headers(bytes);
        let values = |headers: &RequestHeaders<'_>| {
            let texts = [
                headers.method,
                headers.host,
                headers.path,
                headers.user_agent,
                headers.request_id,
            ];
            (texts.map(str::to_owned), headers.trace)
        };
        assert_eq!(values(&found), values(&read.headers));
        assert_eq!((found.path, found.user_agent), ("/a", "agent/1"));
        assert!(found.trace.is_some());
        // Bytes that are no longer there are no error.
        assert_eq!(logged.headers(b"GET").path, "");
    }
}

//! Connections to upstreams, on both paths that use them.

use std::sync::Arc;

use pingora::protocols::{ALPN, TcpKeepalive};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType};

use super::UpstreamLimits;
use super::balance::Places;
use super::balance::race::Race;
use super::ending::End;
use crate::origin::{Resolved, Resolver};
use crate::site::{Scheme, Upstream, UpstreamHttp};
use crate::telemetry::Metrics;

/// The upstream has a private address that the operator has not allowed.
pub(super) const PRIVATE_UPSTREAM: ErrorType = ErrorType::Custom("PrivateUpstream");
/// The server has too many requests, and so has its queue.
pub(super) const QUEUE_FULL: ErrorType = ErrorType::Custom("UpstreamQueueFull");
/// The request has waited too long for a place at the server.
pub(super) const QUEUE_TIMEOUT: ErrorType = ErrorType::Custom("UpstreamQueueTimeout");
/// The limit of descriptors has no room for another connection.
pub(super) const NO_DESCRIPTOR: ErrorType = ErrorType::Custom("NoDescriptor");
/// The error detail for a server with too many requests.
pub(super) const BUSY: &str = "the site's origin has too many requests at the moment";
/// The error detail for an upstream that is too slow.
pub(super) const TOO_LATE: &str = "the site's origin did not respond in time";
/// The error detail for any other failure of an upstream.
pub(super) const FAILED: &str =
    "the site's origin could not be reached, or its response was invalid";

/// Describes the upstream at addresses that were checked, and how to connect to it. `places` are
/// those of the process: if several addresses are tried at once, each needs one.
pub(super) fn peer(
    limits: &UpstreamLimits,
    resolver: &Resolver,
    places: &Arc<Places>,
    upstream: &Upstream,
    resolved: &Resolved,
) -> HttpPeer {
    let is_tls = upstream.scheme == Scheme::Https;
    let name = match is_tls {
        true => upstream.host.to_string(),
        false => String::new(),
    };
    let mut peer = HttpPeer::new(resolved.address, is_tls, name);
    if let Some(all) = &resolved.all {
        let name = (resolver, &*upstream.host);
        let race = Race::new(name, resolved.address, all, limits.connect, places);
        peer.options.custom_l4 = Some(Arc::new(race));
    }
    peer.options.connection_timeout = Some(limits.connect);
    peer.options.total_connection_timeout = Some(limits.connect);
    // A stream of events or a WebSocket may send nothing for a long time. `Silence` enforces the
    // shorter timeout of other responses.
    peer.options.read_timeout = Some(limits.upgraded.max(limits.read));
    // An upstream that acknowledges no packet is no longer connected. Without this option, an
    // HTTP/2 connection would be used until the system closes it.
    peer.options.tcp_keepalive = Some(TcpKeepalive {
        idle: limits.idle,
        interval: limits.idle / 4,
        count: 3,
        #[cfg(target_os = "linux")]
        user_timeout: limits.write,
    });
    peer.options.write_timeout = Some(limits.write);
    peer.options.idle_timeout = Some(limits.idle);
    peer.options.alpn = match upstream.http {
        UpstreamHttp::One => ALPN::H1,
        UpstreamHttp::OneOrTwo => ALPN::H2H1,
        UpstreamHttp::Two => ALPN::H2,
    };
    peer
}

/// Returns whether an error in connecting may not happen again. A certificate that is invalid
/// stays invalid.
pub(super) fn may_pass(error: &Error) -> bool {
    !matches!(
        error.etype(),
        ErrorType::InvalidCert | ErrorType::TLSHandshakeFailure
    )
}

/// Counts a failure of an upstream, if the request has ended because of one.
pub(super) fn count(metrics: &Metrics, end: End) {
    if let Some(kind) = end.upstream_failure() {
        metrics.upstream_failures.with_label_values(&[kind]).inc();
    }
}

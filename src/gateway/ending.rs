//! How a request ended, and how long it waited for an upstream.
//!
//! Access lines and metrics use the same closed list of words ([`End`]). A failure before the
//! response also decides what the client gets ([`End::status_and_detail`]).

use std::io;
use std::time::{Duration, Instant};

use http::header::{HeaderValue, RETRY_AFTER};
use pingora::{Error, ErrorSource, ErrorType};

use super::GATEWAY_FAILED;
use super::balance::Refused;
use super::head::Rejection;
use super::upstream::{self, NO_DESCRIPTOR, PRIVATE_UPSTREAM, QUEUE_FULL, QUEUE_TIMEOUT};
use crate::origin::UnresolvedUpstream;
use crate::response::{Problem, Response};

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The client has got the whole response.
    #[default]
    Complete,
    /// The client has closed its connection, or reset its stream.
    ClientClosed,
    /// The client has read the response too slowly.
    ClientSlow,
    /// The request is malformed, or not accepted in this form.
    RequestInvalid,
    /// The head of the request has not arrived in time.
    HeadTimeout,
    /// The body of the request has arrived too slowly.
    BodyTimeout,
    /// The head of the request, its target or its fields are too large.
    HeadLimit,
    /// The client has sent too many requests.
    RateLimit,
    /// The name of the upstream has no address.
    UpstreamUnknown,
    /// The address of the upstream is not allowed.
    UpstreamPrivate,
    /// The upstream has refused the connection, or there is no way to it.
    UpstreamRefused,
    /// The TLS handshake with the upstream has failed.
    UpstreamTls,
    /// Connecting to the upstream has taken too long.
    ConnectTimeout,
    /// The upstream has not taken the request in time.
    SendTimeout,
    /// The response of the upstream has not begun in time.
    FirstByteTimeout,
    /// The upstream has paused for too long within its response.
    ReadTimeout,
    /// The upstream has closed the connection before the end of its response.
    UpstreamClosed,
    /// The response of the upstream is malformed.
    UpstreamInvalid,
    /// The upstream has responded 500, 502, 503 or 504, and the client gets a copy instead.
    UpstreamError,
    /// The upstream has too many requests, and so has its queue.
    QueueFull,
    /// The request has waited too long for a place at its upstream.
    QueueTimeout,
    /// The gateway has as many connections to upstreams, or as many files open, as the limit of
    /// file descriptors has room for.
    DescriptorLimit,
    /// The gateway itself has failed.
    Failed,
}

/// The time that a request has waited for its upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The time until it had a connection: look-up of the name, all attempts, TLS handshake.
    pub connect: Option<Duration>,
    /// The time from then until the head of the final response.
    pub first_byte: Option<Duration>,
    /// The time from then until the client had the rest.
    pub body: Option<Duration>,
}

/// Measures [`Waits`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch {
    began: Instant,
    connected: Option<Instant>,
    answered: Option<Instant>,
}

// === impl End ===

impl End {
    /// Returns the name in access lines and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientClosed => "client_closed",
            Self::ClientSlow => "client_slow",
            Self::RequestInvalid => "request_invalid",
            Self::HeadTimeout => "head_timeout",
            Self::BodyTimeout => "body_timeout",
            Self::HeadLimit => "head_limit",
            Self::RateLimit => "rate_limit",
            Self::UpstreamUnknown => "upstream_unknown",
            Self::UpstreamPrivate => "upstream_private",
            Self::UpstreamRefused => "upstream_refused",
            Self::UpstreamTls => "upstream_tls",
            Self::ConnectTimeout => "upstream_connect_timeout",
            Self::SendTimeout => "upstream_send_timeout",
            Self::FirstByteTimeout => "upstream_first_byte_timeout",
            Self::ReadTimeout => "upstream_read_timeout",
            Self::UpstreamClosed => "upstream_closed",
            Self::UpstreamInvalid => "upstream_invalid",
            Self::UpstreamError => "upstream_error",
            Self::QueueFull => "upstream_queue_full",
            Self::QueueTimeout => "upstream_queue_timeout",
            Self::DescriptorLimit => "descriptor_limit",
            Self::Failed => "failed",
        }
    }

    /// Returns the end of a request whose head was rejected.
    pub(super) fn of_rejection(rejection: &Rejection) -> Self {
        Self::of_status(rejection.status)
    }

    /// Returns the end of a request that got this status instead of being served.
    pub(super) fn of_status(status: u16) -> Self {
        match status {
            408 => Self::HeadTimeout,
            414 | 431 => Self::HeadLimit,
            429 => Self::RateLimit,
            500 => Self::Failed,
            _ => Self::RequestInvalid,
        }
    }

    /// Returns the end of a response that could not be written to its client.
    pub(super) fn of_client(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::ClientSlow,
            _ => Self::ClientClosed,
        }
    }

    /// Returns the end of a response that pingora could not write to its client.
    pub(super) fn of_client_error(error: &Error) -> Self {
        let is_slow = || {
            let cause = error.root_cause().downcast_ref::<io::Error>();
            cause.is_some_and(|cause| Self::of_client(cause) == Self::ClientSlow)
        };
        match error.etype() {
            ErrorType::WriteTimedout => Self::ClientSlow,
            ErrorType::WriteError if is_slow() => Self::ClientSlow,
            _ => Self::ClientClosed,
        }
    }

    /// Returns the end of a request whose upstream has no address.
    pub(super) fn of_unresolved(error: &UnresolvedUpstream) -> Self {
        match error {
            UnresolvedUpstream::Private(..) => Self::UpstreamPrivate,
            _ => Self::UpstreamUnknown,
        }
    }

    /// Returns the end of a request after an error of pingora that concerns the upstream.
    pub(super) fn of_upstream_error(error: &Error, is_answered: bool) -> Self {
        match error.etype() {
            ErrorType::ConnectTimedout | ErrorType::TLSHandshakeTimedout => Self::ConnectTimeout,
            ErrorType::WriteTimedout => Self::SendTimeout,
            ErrorType::ReadTimedout => Self::silent(is_answered),
            ErrorType::ConnectError
                if error
                    .root_cause()
                    .downcast_ref::<UnresolvedUpstream>()
                    .is_some() =>
            {
                Self::UpstreamUnknown
            }
            ErrorType::ConnectError | ErrorType::ConnectRefused | ErrorType::ConnectNoRoute => {
                Self::UpstreamRefused
            }
            ErrorType::TLSHandshakeFailure | ErrorType::InvalidCert => Self::UpstreamTls,
            kind if *kind == PRIVATE_UPSTREAM => Self::UpstreamPrivate,
            kind if *kind == QUEUE_FULL => Self::QueueFull,
            kind if *kind == QUEUE_TIMEOUT => Self::QueueTimeout,
            kind if *kind == NO_DESCRIPTOR => Self::DescriptorLimit,
            ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::WriteError => {
                Self::UpstreamClosed
            }
            // The names that pingora gives to a body that ends too early.
            ErrorType::Custom("PrematureBodyEnd") => Self::UpstreamClosed,
            _ => Self::UpstreamInvalid,
        }
    }

    /// Returns the end of a request whose upstream sends nothing.
    pub(super) fn silent(is_answered: bool) -> Self {
        match is_answered {
            true => Self::ReadTimeout,
            false => Self::FirstByteTimeout,
        }
    }

    /// Returns the status and the detail that the client gets if it has got nothing yet. It gets
    /// nothing after [`End::ClientClosed`].
    pub(super) fn status_and_detail(self) -> (u16, &'static str) {
        match self {
            Self::Complete | Self::Failed => (500, GATEWAY_FAILED),
            Self::ClientClosed | Self::ClientSlow => (0, ""),
            Self::RequestInvalid => (400, "the request body is malformed"),
            Self::HeadTimeout => (408, "the request head did not arrive in time"),
            Self::BodyTimeout => (408, "the request body arrived too slowly"),
            Self::HeadLimit => (431, "the request head is too large"),
            Self::RateLimit => (429, "this address sends too many requests"),
            Self::QueueFull | Self::QueueTimeout => (503, upstream::BUSY),
            Self::DescriptorLimit => (503, "too many requests are in progress at the moment"),
            Self::ConnectTimeout
            | Self::SendTimeout
            | Self::FirstByteTimeout
            | Self::ReadTimeout => (504, upstream::TOO_LATE),
            Self::UpstreamUnknown
            | Self::UpstreamPrivate
            | Self::UpstreamRefused
            | Self::UpstreamTls
            | Self::UpstreamClosed
            | Self::UpstreamInvalid
            | Self::UpstreamError => (502, upstream::FAILED),
        }
    }

    /// Returns the end of a request without a place at a server.
    pub(super) fn of_refused(refused: Refused) -> Self {
        match refused {
            Refused::Tried => Self::UpstreamRefused,
            Refused::Full => Self::QueueFull,
            Refused::Late => Self::QueueTimeout,
            Refused::NoDescriptor => Self::DescriptorLimit,
        }
    }

    /// Returns the response that the client gets if it has got nothing yet.
    pub(super) fn response(self) -> Response {
        let (status, detail) = self.status_and_detail();
        let mut response = Problem::new(status, detail).response();
        if status == 503 {
            response
                .more
                .push((RETRY_AFTER, HeaderValue::from_static("1")));
        }
        response
    }

    /// Returns whether the site's server is why there is no response, so that a copy of an earlier
    /// one may take its place.
    pub(super) fn is_outage(self) -> bool {
        match self {
            Self::UpstreamUnknown
            | Self::UpstreamRefused
            | Self::UpstreamTls
            | Self::ConnectTimeout
            | Self::SendTimeout
            | Self::FirstByteTimeout
            | Self::UpstreamClosed
            | Self::UpstreamInvalid
            | Self::UpstreamError
            | Self::QueueFull
            | Self::QueueTimeout => true,
            // The operator does not allow this address.
            Self::UpstreamPrivate
            | Self::DescriptorLimit
            // The client has got a part of the response.
            | Self::ReadTimeout
            | Self::Complete
            | Self::ClientClosed
            | Self::ClientSlow
            | Self::RequestInvalid
            | Self::HeadTimeout
            | Self::BodyTimeout
            | Self::HeadLimit
            | Self::RateLimit
            | Self::Failed => false,
        }
    }

    /// Returns the kind of failure that is counted for an upstream; `None` if it has not failed.
    pub(super) fn upstream_failure(self) -> Option<&'static str> {
        match self {
            Self::ConnectTimeout
            | Self::SendTimeout
            | Self::FirstByteTimeout
            | Self::ReadTimeout => Some("timeout"),
            Self::UpstreamUnknown | Self::UpstreamRefused => Some("connect"),
            Self::UpstreamPrivate => Some("private"),
            Self::UpstreamTls => Some("tls"),
            Self::UpstreamClosed | Self::UpstreamInvalid => Some("protocol"),
            _ => None,
        }
    }
}

// === impl Stopwatch ===

impl Stopwatch {
    /// Starts with the wait for a connection.
    pub(super) fn start(now: Instant) -> Self {
        Self {
            began: now,
            connected: None,
            answered: None,
        }
    }

    /// The request has a connection.
    pub(super) fn connected(&mut self) {
        self.connected = Some(Instant::now());
    }

    /// The head of the final response has arrived.
    pub(super) fn answered(&mut self) {
        self.answered = Some(Instant::now());
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered.is_some()
    }

    /// Returns the waits of a request that ends now. The one in which it ends counts up to its
    /// end; later ones have no value.
    pub(super) fn stop(&self, now: Instant) -> Waits {
        let until = |from: Instant, to: Option<Instant>| {
            Some(to.unwrap_or(now).saturating_duration_since(from))
        };
        Waits {
            connect: until(self.began, self.connected),
            first_byte: self.connected.and_then(|from| until(from, self.answered)),
            body: self.answered.and_then(|from| until(from, None)),
        }
    }
}

/// Returns whether an error of pingora concerns the client.
pub(super) fn is_of_client(error: &Error) -> bool {
    error.esource() == &ErrorSource::Downstream
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_ends_where_the_next_begins() {
        let began = Instant::now();
        let after = |millis| began + Duration::from_millis(millis);
        let millis = |wait: Option<Duration>| wait.map(|wait| wait.as_millis());
        let mut stopwatch = Stopwatch::start(began);
        let waits = stopwatch.stop(after(5));
        assert_eq!(
            (millis(waits.connect), waits.first_byte, waits.body),
            (Some(5), None, None)
        );
        stopwatch.connected = Some(after(2));
        let waits = stopwatch.stop(after(5));
        assert_eq!(
            (millis(waits.connect), millis(waits.first_byte)),
            (Some(2), Some(3))
        );
        stopwatch.answered = Some(after(4));
        let waits = stopwatch.stop(after(9));
        assert_eq!(millis(waits.first_byte), Some(2));
        assert_eq!(millis(waits.body), Some(5));
    }

    #[test]
    fn a_timeout_has_the_name_of_its_wait() {
        let error = |kind| Error::explain(kind, "late").into_up();
        for (kind, is_answered, expected) in [
            (
                ErrorType::ConnectTimedout,
                false,
                "upstream_connect_timeout",
            ),
            (ErrorType::WriteTimedout, false, "upstream_send_timeout"),
            (
                ErrorType::ReadTimedout,
                false,
                "upstream_first_byte_timeout",
            ),
            (ErrorType::ReadTimedout, true, "upstream_read_timeout"),
            (ErrorType::ConnectRefused, false, "upstream_refused"),
            (ErrorType::InvalidCert, false, "upstream_tls"),
            (ErrorType::InvalidHTTPHeader, false, "upstream_invalid"),
            (ErrorType::ConnectionClosed, true, "upstream_closed"),
        ] {
            let end = End::of_upstream_error(&error(kind), is_answered);
            assert_eq!(end.as_str(), expected);
        }
    }
}

//! Sends a request, and repeats it when that may help.
//!
//! | failure | what follows |
//! |---|---|
//! | 408, 409, 429, 5xx (529: overloaded), no connection, a cut, broken or malformed answer | the request is repeated, after the time that `Retry-After` names, else after 1, 2, 4, … s |
//! | other 4xx | the conversation ends; the model is asked again by a later update |
//! | an answer that is too long, or a request that takes too long | the conversation ends |
//!
//! A repeated request that the server has carried out before costs twice; providers do not bill
//! failed requests.

use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, SystemTime};

use http::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, RustlsConnector};
use ureq::{Agent, Proxy};

use super::budget::{Ledger, Spent};
use super::connection::{NextSocket, NoNames, SocketConnector};
use super::wire::{Format, Malformed, Reply, StreamError, error_kind, error_message};
use super::{Config, Failed, Key};
use crate::clock::Clock;
use crate::source::remote::client_settings;

/// The longest time between two tries that follows from no `Retry-After`.
const DELAY_MAX: Duration = Duration::from_secs(30);
/// The longest text of a provider in the log, in characters.
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// The functions of the process that the loop calls.
pub trait Link {
    /// Opens a connection to the server of the configuration, or to its proxy.
    ///
    /// # Errors
    ///
    /// The error of the system, or a limit of the parent.
    fn connect(&mut self) -> std::io::Result<TcpStream>;

    /// Adds a line to the record of the update.
    fn line(&mut self, line: String);

    /// Reports the amount that was spent until now.
    fn spent(&mut self, spent: Spent);
}

/// The client of one conversation.
pub(super) struct Client<'c> {
    config: &'c Config,
    key: &'c Key,
    agent: Agent,
    next_socket: NextSocket,
}

/// Why a request has no usable answer.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("the server of the model answered {status}{}", in_brackets(.kind))]
    Status {
        status: u16,
        kind: String,
        message: String,
        wait: Option<Duration>,
    },
    #[error("the server of the model cannot be reached")]
    Network(String),
    #[error("the server of the model did not answer within {} s", .0.as_secs())]
    Late(Duration),
    #[error("the server of the model answered more than {0} bytes")]
    TooLong(u64),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    Stream(#[from] StreamError),
}

fn in_brackets(kind: &str) -> String {
    match kind {
        "" => String::new(),
        kind => format!(" ({kind})"),
    }
}

// === impl RequestError ===

impl RequestError {
    /// Returns whether the same request may succeed soon.
    fn may_end(&self) -> bool {
        match self {
            Self::Status { status, .. } => *status >= 500 || matches!(status, 408 | 409 | 429),
            Self::Network(_) | Self::Malformed(_) | Self::Stream(_) => true,
            Self::Late(_) | Self::TooLong(_) => false,
        }
    }

    /// Returns what the provider said, for the log of the service.
    fn details(&self) -> &str {
        match self {
            Self::Status { message, .. } => message,
            Self::Network(why) => why,
            Self::Stream(StreamError::Broken { message, .. }) => message,
            _ => "",
        }
    }

    fn wait(&self) -> Option<Duration> {
        match self {
            Self::Status { wait, .. } => *wait,
            _ => None,
        }
    }
}

// === impl Client ===

impl<'c> Client<'c> {
    pub(super) fn new(config: &'c Config, key: &'c Key) -> Result<Self, Failed> {
        let next_socket = NextSocket::default();
        let proxy = match &config.proxy {
            Some(proxy) => {
                let proxy = Proxy::new(proxy.as_str());
                Some(proxy.map_err(|_invalid| Failed::now("the proxy cannot be used"))?)
            }
            None => None,
        };
        let settings = client_settings("writer")
            .proxy(proxy)
            .max_idle_connections(0)
            .accept("application/json")
            .build();
        let connector =
            ().chain(ConnectProxyConnector::default())
                .chain(SocketConnector(next_socket.clone()))
                .chain(RustlsConnector::default());
        Ok(Self {
            config,
            key,
            agent: Agent::with_parts(settings, connector, NoNames),
            next_socket,
        })
    }

    /// Sends a request until it is answered, and adds what it cost.
    pub(super) fn ask(
        &self,
        body: &[u8],
        ledger: &mut Ledger<'_>,
        link: &mut dyn Link,
    ) -> Result<Reply, Failed> {
        let mut tries = 0;
        loop {
            let error = match self.once(body, ledger, link) {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let details = self.key.hide(error.details());
            let details: String = details.chars().take(MESSAGE_CHARACTERS_MAX).collect();
            log::warn!(target: "writer", "{error}: {details:?}");
            if !error.may_end() || tries >= self.config.limits.retries {
                return Err(Failed::now(error.to_string()));
            }
            let usual = Duration::from_secs(1 << tries.min(5)).min(DELAY_MAX);
            let wait = error.wait().unwrap_or(usual);
            if wait >= ledger.left() {
                let why = format!(
                    "{error}, and it asks to wait {} s, which is longer than the time that is left",
                    wait.as_secs()
                );
                return Err(Failed::now(why));
            }
            tries += 1;
            link.line(format!(
                "generate: {error}; asking again in {} s",
                wait.as_secs()
            ));
            std::thread::sleep(wait);
        }
    }

    fn once(
        &self,
        body: &[u8],
        ledger: &mut Ledger<'_>,
        link: &mut dyn Link,
    ) -> Result<Reply, RequestError> {
        let limit = self.config.limits.request.min(ledger.left());
        let network = |error: &dyn std::fmt::Display| RequestError::Network(error.to_string());
        let failed = |error: ureq::Error| match error {
            ureq::Error::Timeout(_) => RequestError::Late(limit),
            error => network(&error),
        };
        let socket = link.connect().map_err(|error| network(&error))?;
        self.next_socket.put(socket);
        let format = Format::of(self.config);
        let mut request = self.agent.post(format.url());
        for (name, value) in format.fields(self.key) {
            request = request.header(name, value);
        }
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.config().timeout_global(Some(limit)).build();
        let response = request.send(body).map_err(failed)?;
        let (status, fields) = (response.status().as_u16(), response.headers().clone());
        let bytes = self.read(response, limit)?;
        if status == 200 && is_stream(&fields) {
            let joined = format.joined(&String::from_utf8_lossy(&bytes));
            // The server may charge for an answer that it did not finish.
            let length = joined
                .as_ref()
                .map_or(bytes.len(), |joined| joined.to_string().len());
            let reply = joined
                .map_err(RequestError::from)
                .and_then(|joined| Ok(format.reply(&joined)?));
            return Self::add(reply, (body.len(), length), ledger, link);
        }
        let value: Option<Value> = serde_json::from_slice(&bytes).ok();
        if status != 200 {
            let value = value.unwrap_or_default();
            return Err(RequestError::Status {
                status,
                kind: error_kind(&value),
                message: error_message(&value).to_owned(),
                wait: wait_of(&fields, Clock::System.now()),
            });
        }
        let reply = match &value {
            Some(value) => format.reply(value),
            None => Err(Malformed("is not JSON")),
        };
        Self::add(
            reply.map_err(RequestError::from),
            (body.len(), bytes.len()),
            ledger,
            link,
        )
    }

    /// Adds the cost of an answer. The server may charge for an answer in a wrong format too.
    /// `lengths` are those of the request and of the answer, in bytes.
    fn add(
        reply: Result<Reply, RequestError>,
        lengths: (usize, usize),
        ledger: &mut Ledger<'_>,
        link: &mut dyn Link,
    ) -> Result<Reply, RequestError> {
        let usage = reply.as_ref().map(|reply| reply.usage);
        ledger.add(usage.unwrap_or_default(), lengths.0, lengths.1);
        link.spent(ledger.spent());
        reply
    }

    fn read(
        &self,
        response: http::Response<ureq::Body>,
        limit: Duration,
    ) -> Result<Vec<u8>, RequestError> {
        let bytes_max = self.config.limits.answer_bytes;
        let mut bytes = Vec::new();
        let body = response.into_body().into_with_config();
        // One byte more than the limit, to detect an answer that is too long.
        let reader = body.limit(bytes_max.saturating_add(2)).reader();
        let read = reader.take(bytes_max + 1).read_to_end(&mut bytes);
        match read {
            Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
                return Err(RequestError::Late(limit));
            }
            Err(error) => return Err(RequestError::Network(error.to_string())),
            Ok(_) => {}
        }
        match bytes.len() as u64 > bytes_max {
            true => Err(RequestError::TooLong(bytes_max)),
            false => Ok(bytes),
        }
    }
}

/// Returns whether an answer is a stream of events. A server may ignore that we want one.
fn is_stream(fields: &HeaderMap) -> bool {
    let media_type = fields
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next());
    media_type.is_some_and(|value| value.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// Returns how long a server wants us to wait: milliseconds, seconds or a date.
fn wait_of(fields: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| fields.get(name)?.to_str().ok().map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_to_wait_is_read_in_each_form() {
        let now = httpdate::parse_http_date("Sun, 22 Nov 2026 12:00:00 GMT").unwrap();
        let wait = |name: &'static str, value: &'static str| {
            let mut fields = HeaderMap::new();
            fields.insert(name, value.parse().unwrap());
            wait_of(&fields, now)
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(wait("retry-after", "7"), seconds(7));
        assert_eq!(
            wait("retry-after", "Sun, 22 Nov 2026 12:00:09 GMT"),
            seconds(9)
        );
        assert_eq!(
            wait("retry-after", "Sun, 22 Nov 2026 11:00:00 GMT"),
            seconds(0)
        );
        assert_eq!(
            wait("retry-after-ms", "1500"),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(wait("retry-after", "soon"), None);
        assert_eq!(wait("retry-after", "-1"), None);
    }
}

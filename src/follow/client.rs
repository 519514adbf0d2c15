//! Requests of an edge to its source, with limits: a source may be slow, may send anything, and at
//! any length.

use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use http::StatusCode;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

use super::message::{InvalidMessage, Kind, Message};
use super::report::Report;
use super::signature::PublicKey;
use super::source::Request;
use super::{Config, NUMBERS_PATH, PATH, SIGNATURE};
use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::source::remote::client_settings;
use crate::store::{FileError, PromoteError, PutError, ReadError, SiteError};

/// How many connections are kept for further requests: as many as are used at once.
const CONNECTIONS_IDLE_MAX: usize = 32;
/// How long a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long a source may take to begin a response, in addition to the requested wait.
const RESPONSE_TIME: Duration = Duration::from_secs(30);
/// How long a snapshot or a message of changes may take.
const MESSAGE_TIME: Duration = Duration::from_secs(300);
/// The lowest accepted transfer rate, in bytes per second; a slower transfer is aborted.
const RATE_MIN: u64 = 64 << 10;
/// The longest error text that is read, in bytes.
const SENTENCE_BYTES_MAX: u64 = 4096;
/// The longest message of changes that is read, in bytes.
const CHANGES_BYTES_MAX: u64 = 64 << 20;

/// Sends the requests of an edge.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    url: String,
    token_file: PathBuf,
    keys: Vec<PublicKey>,
    service: String,
    snapshot_bytes_max: u64,
}

/// Why an edge does not follow, or why it does not have a release.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// The source does not respond.
    #[error("ask {url}")]
    Connect {
        /// The address.
        url: String,
        /// The error.
        #[source]
        source: Box<ureq::Error>,
    },
    /// The file with the token cannot be read.
    #[error("read the token in {}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The source refuses the token.
    #[error(
        "the source refuses the token of this edge (401): it was removed, or is of another source"
    )]
    Token,
    /// The source responds with another status.
    #[error("the source responds {status} for {path}")]
    Status {
        /// The status.
        status: u16,
        /// The requested path.
        path: String,
    },
    /// The response ended early or was too slow.
    #[error("read the response of the source")]
    Read(#[source] io::Error),
    /// The response is longer than it may be.
    #[error("the response of the source has more than {0} bytes")]
    TooLarge(u64),
    /// No trusted key has signed the message.
    #[error(
        "no key of `store.follow.public_keys` has signed the message of the source; \
         `waypost edge key` prints the key there"
    )]
    Signature,
    /// The message is encrypted for another edge.
    #[error(
        "the message of the source is encrypted for another key than the one in \
         `store.follow.key_file`; `waypost edge key` prints the public key of this edge, for \
         `waypost edge set NAME --key` on the source"
    )]
    Sealed,
    /// The message cannot be read.
    #[error("the message of the source is not valid: {0}")]
    Message(String),
    /// The message belongs to another request.
    #[error("the message of the source belongs to another request")]
    OtherRequest,
    /// The source serves another domain.
    #[error("the source is of the service {found}; this edge is of {expected}")]
    Service {
        /// The domain of the source.
        found: String,
        /// The domain of this edge.
        expected: String,
    },
    /// The message is older than what the cache has.
    #[error("the message is of an earlier state of the source than the cache (F4)")]
    Older,
    /// The source may not have everything of a shared store that the cache has.
    #[error(
        "the source has revision {found} of the store, and this edge has revision {known}: it would \
         go back to an earlier state, and waits until the source has caught up (F4)"
    )]
    Behind {
        /// The revision up to which the source has everything.
        found: u64,
        /// The revision that the cache may have.
        known: u64,
    },
    /// The database or the object store that is followed fails.
    #[error("read the store")]
    Store(#[source] ReadError),
    /// The store that is followed has no such file.
    #[error("the store has no object {0}")]
    Missing(Digest),
    /// The cache was filled by another store.
    #[error(
        "the database holds another store than the one that filled the cache; if that is right, \
         use another directory for the cache (`store.postgres.cache`)"
    )]
    OtherStore,
    /// The file has other bytes.
    #[error("the source sends other bytes for {0}")]
    Digest(Digest),
    /// The release cannot be kept.
    #[error("release {release} cannot be fetched: {why}")]
    Release {
        /// The release.
        release: ReleaseId,
        /// The reason.
        why: String,
    },
    /// The cache has no space.
    #[error(
        "the cache is full: {needed} bytes more are needed, and `store.follow.cache_bytes_max` \
         is {bytes_max}"
    )]
    CacheFull {
        /// How many bytes the release needs.
        needed: u64,
        /// How many bytes the cache may have.
        bytes_max: u64,
    },
    /// Too many sites would be removed.
    #[error(
        "the snapshot of the source would remove {removed} of {sites} sites; accept it with \
         `waypost reload --accept-removals`"
    )]
    Removals {
        /// How many would be removed.
        removed: usize,
        /// How many there are.
        sites: usize,
    },
    /// The cache cannot be written.
    #[error("write the cache")]
    Put(#[from] PutError),
    /// The cache cannot be read.
    #[error("read the cache")]
    Cache(#[from] ReadError),
    /// A pointer of the cache cannot be written.
    #[error("write the cache")]
    Promote(#[from] PromoteError),
    /// A record of the cache cannot be written.
    #[error("write the cache")]
    Record(#[from] SiteError),
    /// A document of the cache cannot be read or written.
    #[error("use the cache")]
    Document(#[from] FileError),
    /// A file of the cache cannot be written.
    #[error("write the cache")]
    File(#[source] io::Error),
}

/// The response to a request for changes.
#[derive(Debug)]
pub(super) enum Changes {
    /// There were none.
    None,
    /// The edge must compare everything.
    Gone,
    /// These.
    Some(Message),
}

/// A response that is passed on to another edge.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) status: StatusCode,
    pub(super) content: Vec<u8>,
    /// `None` for a file.
    pub(super) signature: Option<String>,
    pub(super) is_compressed: bool,
}

// === impl FollowError ===

impl FollowError {
    /// Returns the reason, for metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "connect",
            Self::TokenFile { .. } | Self::Token => "token",
            Self::Status { .. } => "status",
            Self::Read(_) => "read",
            Self::TooLarge(_) => "too_large",
            Self::Signature => "signature",
            Self::Sealed => "sealed",
            Self::Message(_) | Self::OtherRequest => "message",
            Self::Service { .. } => "service",
            Self::Older => "older",
            Self::Behind { .. } => "behind",
            Self::Digest(_) => "digest",
            Self::Missing(_) => "missing",
            Self::Store(_) => "store",
            Self::OtherStore => "other_store",
            Self::Release { .. } => "release",
            Self::CacheFull { .. } => "cache_full",
            Self::Removals { .. } => "removals",
            Self::Put(PutError::Full { .. }) => "disk_full",
            Self::Put(_)
            | Self::Cache(_)
            | Self::Promote(_)
            | Self::Record(_)
            | Self::Document(_)
            | Self::File(_) => "cache",
        }
    }

    /// Returns whether the source has answered, and this edge cannot use the answer.
    pub(super) fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::Connect { .. }
                | Self::TokenFile { .. }
                | Self::Token
                | Self::Status { .. }
                | Self::Read(_)
        )
    }

    fn message(error: &InvalidMessage) -> Self {
        Self::Message(error.to_string())
    }
}

// === impl Client ===

impl Client {
    /// Makes a client.
    ///
    /// # Errors
    ///
    /// When the file of authorities holds none.
    pub(super) fn new(config: &Config, service: &str) -> io::Result<Self> {
        let mut settings = client_settings("follow")
            .https_only(!config.allow_http)
            .proxy(None)
            .timeout_connect(Some(CONNECT_TIME))
            .max_idle_connections(CONNECTIONS_IDLE_MAX)
            .max_idle_connections_per_host(CONNECTIONS_IDLE_MAX);
        if let Some(file) = &config.ca_file {
            let text = fs::read(file)?;
            let mut roots = Vec::new();
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(io::Error::other)?;
                roots.push(Certificate::from_der(&certificate).to_owned());
            }
            if roots.is_empty() {
                return Err(io::Error::other("it holds no certificate"));
            }
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .root_certs(RootCerts::new_with_certs(&roots))
                .unversioned_rustls_crypto_provider(std::sync::Arc::new(
                    aws_lc_rs::default_provider(),
                ))
                .build();
            settings = settings.tls_config(tls);
        }
        Ok(Self {
            agent: settings.build().into(),
            url: config.url.trim_end_matches('/').to_owned(),
            token_file: config.token_file.clone(),
            keys: config.public_keys.clone(),
            service: service.to_owned(),
            snapshot_bytes_max: config.snapshot_bytes_max,
        })
    }

    /// Asks for the changes after a revision, and waits for them.
    pub(super) fn changes(
        &self,
        identity: &str,
        after: u64,
        wait: Duration,
        report: &Report,
    ) -> Result<Changes, FollowError> {
        let seconds = wait.as_secs();
        let report = report.to_query();
        let path = format!("changes?identity={identity}&after={after}&wait={seconds}{report}");
        let mut response = self.get(&path, wait + RESPONSE_TIME, MESSAGE_TIME)?;
        let signature = signature(&response);
        match response.status() {
            StatusCode::NO_CONTENT => return Ok(Changes::None),
            StatusCode::GONE => return Ok(Changes::Gone),
            StatusCode::OK => {}
            status => return Err(refused(status, "changes")),
        }
        let bytes = read(response.body_mut().as_reader(), CHANGES_BYTES_MAX)?;
        let message = self.checked(&bytes, &signature, Kind::Changes)?;
        let head = &message.head;
        if head.identity.id != identity || head.after != after || head.revision <= after {
            return Err(FollowError::OtherRequest);
        }
        Ok(Changes::Some(message))
    }

    /// Asks for everything. Also returns how many bytes were read.
    pub(super) fn snapshot(&self) -> Result<(Message, u64), FollowError> {
        let mut response = self.get("snapshot", MESSAGE_TIME, MESSAGE_TIME)?;
        let signature = signature(&response);
        if response.status() != StatusCode::OK {
            return Err(refused(response.status(), "snapshot"));
        }
        let compressed = response.body_mut().as_reader();
        let reader = zstd::stream::read::Decoder::new(compressed).map_err(FollowError::Read)?;
        let bytes = read(reader, self.snapshot_bytes_max)?;
        let message = self.checked(&bytes, &signature, Kind::Snapshot)?;
        Ok((message, bytes.len() as u64))
    }

    /// Sends the request of another edge, with its token, and returns the response as it is.
    pub(super) fn pass(&self, request: &Request) -> Result<Passed, FollowError> {
        let url = format!("{}{}?{}", self.url, request.path, request.query);
        let wait = request
            .position()
            .map_or(Duration::ZERO, |(_, _, wait)| wait);
        let fields = [
            ("authorization", &request.authorization[..]),
            ("user-agent", request.program.as_bytes()),
        ];
        let result = match &request.content {
            None => {
                let mut get = self.agent.get(&url);
                for (name, value) in fields {
                    get = get.header(name, value);
                }
                get.config()
                    .timeout_recv_response(Some(wait + RESPONSE_TIME))
                    .timeout_recv_body(Some(MESSAGE_TIME))
                    .build()
                    .call()
            }
            Some(content) => {
                let mut post = self.agent.post(&url);
                for (name, value) in fields {
                    post = post.header(name, value);
                }
                post.config()
                    .timeout_send_body(Some(MESSAGE_TIME))
                    .timeout_recv_response(Some(MESSAGE_TIME))
                    .timeout_recv_body(Some(MESSAGE_TIME))
                    .build()
                    .send(&content[..])
            }
        };
        let mut response = result.map_err(|error| self.connection_error(error))?;
        let field = |name| {
            let field = response.headers().get(name)?;
            Some(field.to_str().ok()?.to_owned())
        };
        let signature = field(SIGNATURE);
        let is_compressed = field("content-type").is_some_and(|value| value.ends_with("zstd"));
        Ok(Passed {
            status: response.status(),
            content: read(response.body_mut().as_reader(), self.snapshot_bytes_max)?,
            signature,
            is_compressed,
        })
    }

    /// Asks for secrets after a revision, and waits for them; `None` if there are none. With
    /// `wants_all`, asks for all of them as soon as the source knows the key of this edge.
    pub(super) fn secrets(
        &self,
        identity: &str,
        after: u64,
        wants_all: bool,
        wait: Duration,
    ) -> Result<Option<Vec<u8>>, FollowError> {
        let seconds = wait.as_secs();
        let all = u8::from(wants_all);
        let path = format!("secrets?identity={identity}&after={after}&all={all}&wait={seconds}");
        let mut response = self.get(&path, wait + RESPONSE_TIME, MESSAGE_TIME)?;
        match response.status() {
            StatusCode::NO_CONTENT => return Ok(None),
            StatusCode::OK => {}
            status => return Err(refused(status, "secrets")),
        }
        signed(&mut response, &self.keys).map(Some)
    }

    /// Asks for certificates.
    pub(super) fn certificates(&self, wanted: &[String]) -> Result<Vec<u8>, FollowError> {
        let path = format!("certificates?keys={}", wanted.join(","));
        let mut response = self.get(&path, RESPONSE_TIME, MESSAGE_TIME)?;
        match response.status() {
            StatusCode::OK => signed(&mut response, &self.keys),
            status => Err(refused(status, "certificates")),
        }
    }

    /// Fetches an object of at most this length, and checks its digest.
    pub(super) fn object(&self, digest: &Digest, length_max: u64) -> Result<Vec<u8>, FollowError> {
        let time = RESPONSE_TIME + Duration::from_secs(length_max / RATE_MIN);
        let path = format!("objects/{digest}");
        let mut response = self.get(&path, RESPONSE_TIME, time)?;
        if response.status() != StatusCode::OK {
            return Err(refused(response.status(), &path));
        }
        let bytes = read(response.body_mut().as_reader(), length_max)?;
        match Digest::of(&bytes) == *digest {
            true => Ok(bytes),
            false => Err(FollowError::Digest(*digest)),
        }
    }

    /// Sends a batch of counts, and returns the status of the response.
    pub(super) fn numbers(
        &self,
        life: &str,
        sequence: u64,
        content: &[u8],
        time: Duration,
    ) -> Result<StatusCode, FollowError> {
        let url = format!("{}{NUMBERS_PATH}?life={life}&sequence={sequence}", self.url);
        let request = self
            .agent
            .post(&url)
            .header("authorization", self.authorization()?)
            .config()
            .timeout_global(Some(time))
            .build();
        let mut response = request
            .send(content)
            .map_err(|error| self.connection_error(error))?;
        // The connection is used again.
        read(response.body_mut().as_reader(), SENTENCE_BYTES_MAX)?;
        Ok(response.status())
    }

    fn get(
        &self,
        path: &str,
        response: Duration,
        body: Duration,
    ) -> Result<http::Response<Body>, FollowError> {
        let url = format!("{}{PATH}{path}", self.url);
        let request = self
            .agent
            .get(&url)
            .header("authorization", self.authorization()?)
            .config()
            .timeout_recv_response(Some(response))
            .timeout_recv_body(Some(body))
            .build();
        request.call().map_err(|error| self.connection_error(error))
    }

    /// Reads the token each time, so that a new one is used at once.
    fn authorization(&self) -> Result<String, FollowError> {
        let token = fs::read_to_string(&self.token_file).map_err(|source| {
            let path = self.token_file.clone();
            FollowError::TokenFile { path, source }
        })?;
        Ok(format!("Bearer {}", token.trim()))
    }

    fn connection_error(&self, error: ureq::Error) -> FollowError {
        FollowError::Connect {
            url: self.url.clone(),
            source: Box::new(error),
        }
    }

    /// Checks the signature of a message, and reads it.
    fn checked(&self, bytes: &[u8], signature: &[u8], kind: Kind) -> Result<Message, FollowError> {
        if !self.keys.iter().any(|key| key.has_signed(bytes, signature)) {
            return Err(FollowError::Signature);
        }
        let message = Message::parse(bytes).map_err(|error| FollowError::message(&error))?;
        if message.head.kind != kind {
            return Err(FollowError::OtherRequest);
        }
        match message.head.service == self.service {
            true => Ok(message),
            false => Err(FollowError::Service {
                found: message.head.service,
                expected: self.service.clone(),
            }),
        }
    }
}

/// Reads a content, and checks its signature.
fn signed(response: &mut http::Response<Body>, keys: &[PublicKey]) -> Result<Vec<u8>, FollowError> {
    let signature = signature(response);
    let bytes = read(response.body_mut().as_reader(), CHANGES_BYTES_MAX)?;
    match keys.iter().any(|key| key.has_signed(&bytes, &signature)) {
        true => Ok(bytes),
        false => Err(FollowError::Signature),
    }
}

fn signature(response: &http::Response<Body>) -> Vec<u8> {
    let field = response.headers().get(SIGNATURE);
    field.map_or_else(Vec::new, |field| field.as_bytes().to_vec())
}

fn refused(status: StatusCode, path: &str) -> FollowError {
    match status {
        StatusCode::UNAUTHORIZED => FollowError::Token,
        status => FollowError::Status {
            status: status.as_u16(),
            path: path.to_owned(),
        },
    }
}

/// Reads everything, but not more than a limit.
fn read(from: impl io::Read, bytes_max: u64) -> Result<Vec<u8>, FollowError> {
    let mut bytes = Vec::new();
    from.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(FollowError::Read)?;
    match bytes.len() as u64 > bytes_max {
        true => Err(FollowError::TooLarge(bytes_max)),
        false => Ok(bytes),
    }
}

//! Requests to an authority, over TLS.
//!
//! `instant-acme` writes and reads the messages; this client sends them, with limits: an authority
//! may answer slowly, at any length, with any fields.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::clock::Clock;
use crate::source::remote::client_settings;

/// The longest answer that is read: a chain of certificates is some kilobytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// The longest wait that an authority can ask for.
const WAIT_MAX: Duration = Duration::from_secs(7 * 86_400);
/// The wait for renewal information of an authority that names none (RFC 9773 §4.3.2 has six hours
/// as its example).
const RENEWAL_INFO_WAIT: &str = "21600";
/// How many bytes of an answer a message quotes.
const START_BYTES: usize = 120;

tokio::task_local! {
    /// The last answer that the running task got from an authority.
    pub(super) static EXCHANGE: Arc<Exchange>;
}

/// The last answer of an authority.
#[derive(Debug, Default)]
pub(super) struct Exchange(Mutex<Answered>);

/// Facts of an answer that messages need.
#[derive(Clone, Debug, Default)]
pub(super) struct Answered {
    /// Its status; 0 without an answer.
    pub(super) status: u16,
    /// How long it asks to wait.
    pub(super) wait: Option<Duration>,
    /// The beginning of its content, if it is an error.
    pub(super) start: String,
}

/// What an authority says about itself (RFC 8555 §7.1.1) that `instant-acme` does not pass on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Directory {
    /// Whether it has renewal information, so that orders can name what they replace (RFC 9773).
    pub(super) has_renewal_info: bool,
    /// Its names in CAA records.
    pub(super) caa_identities: Vec<Box<str>>,
}

/// Sends requests.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    agent: Agent,
    /// The address of the directory.
    address: Arc<str>,
    /// The directory as it was last read.
    directory: Arc<Mutex<Option<Arc<Directory>>>>,
    clock: Clock,
}

/// A directory that cannot be used.
#[derive(Debug, thiserror::Error)]
enum InvalidDirectory {
    #[error("the answer is not a directory of RFC 8555 §7.1.1: {0}")]
    Json(serde_json::Error),
    #[error("the directory names {0:?}, which is not an https address")]
    Address(String),
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn last(&self) -> Answered {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, answered: Answered) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = answered;
    }
}

// === impl Transport ===

impl Transport {
    /// Makes a client that trusts the authorities of this machine, or those of a file.
    ///
    /// # Errors
    ///
    /// When the file holds no certificate.
    pub(super) fn new(
        ca_file: Option<&Path>,
        address: &str,
        time: Duration,
        clock: Clock,
    ) -> io::Result<Self> {
        let mut settings = client_settings("acme")
            .https_only(true)
            .timeout_global(Some(time))
            .accept("application/json, application/pem-certificate-chain, */*");
        if let Some(file) = ca_file {
            let roots = roots(file)?;
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .root_certs(RootCerts::new_with_certs(&roots))
                .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
                .build();
            settings = settings.tls_config(tls);
        }
        Ok(Self {
            agent: settings.build().into(),
            address: address.into(),
            directory: Arc::default(),
            clock,
        })
    }

    /// Returns the directory as it was last read; `None` if it was not read yet.
    pub(super) fn directory(&self) -> Option<Arc<Directory>> {
        let directory = self.directory.lock();
        directory.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn send(&self, request: Request<Vec<u8>>) -> Result<(Response<Bytes>, Answered), ureq::Error> {
        let (parts, body) = request.into_parts();
        let is_get = parts.method == Method::GET;
        let is_directory = is_get && parts.uri == *self.address;
        let response = match parts.method {
            Method::GET | Method::HEAD => self.agent.run(Request::from_parts(parts, ()))?,
            _ => self.agent.run(Request::from_parts(parts, body))?,
        };
        let (mut parts, mut body) = response.into_parts();
        let bytes = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        if is_directory && parts.status.is_success() {
            let read = read_directory(&bytes);
            let read = read.map_err(|error| ureq::Error::Other(Box::new(error)))?;
            let directory = self.directory.lock();
            *directory.unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(read));
        }
        let wait = self.wait(parts.headers.get(RETRY_AFTER));
        // `instant-acme` adds the number to the time of day, which a large one overflows.
        match (wait, is_get) {
            (Some(wait), _) => {
                parts.headers.insert(RETRY_AFTER, wait.as_secs().into());
            }
            (None, true) => {
                let usual = HeaderValue::from_static(RENEWAL_INFO_WAIT);
                parts.headers.insert(RETRY_AFTER, usual);
            }
            (None, false) => {
                parts.headers.remove(RETRY_AFTER);
            }
        }
        let status = parts.status.as_u16();
        let start = &bytes[..bytes.len().min(START_BYTES)];
        let answered = Answered {
            status,
            wait,
            start: match is_get || status >= 400 {
                true => String::from_utf8_lossy(start).into_owned(),
                false => String::new(),
            },
        };
        Ok((Response::from_parts(parts, bytes.into()), answered))
    }

    /// Reads `Retry-After` (RFC 9110 §10.2.3), as far as it makes sense.
    fn wait(&self, field: Option<&HeaderValue>) -> Option<Duration> {
        let text = field?.to_str().ok()?.trim();
        let wait = match text.parse::<u64>() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_not_a_number) if text.bytes().all(|b| b.is_ascii_digit()) => WAIT_MAX,
            Err(_not_a_number) => {
                let at = httpdate::parse_http_date(text).ok()?;
                let at = at.duration_since(UNIX_EPOCH).ok()?;
                at.saturating_sub(Duration::from_secs(self.clock.unix_seconds()))
            }
        };
        Some(wait.min(WAIT_MAX))
    }
}

/// Reads a directory, and checks its addresses, which `instant-acme` takes for addresses.
fn read_directory(bytes: &[u8]) -> Result<Directory, InvalidDirectory> {
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).map_err(InvalidDirectory::Json)?;
    for address in members.values().filter_map(|value| value.as_str()) {
        let is_https = address
            .parse::<http::Uri>()
            .is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.authority().is_some());
        if !is_https {
            return Err(InvalidDirectory::Address(address.to_owned()));
        }
    }
    let meta = members.get("meta");
    let identities = meta.and_then(|meta| meta.get("caaIdentities")?.as_array());
    let identities = identities.into_iter().flatten();
    Ok(Directory {
        has_renewal_info: members.get("renewalInfo").is_some_and(|at| at.is_string()),
        caa_identities: identities
            .filter_map(|identity| Some(identity.as_str()?.into()))
            .collect(),
    })
}

fn roots(file: &Path) -> io::Result<Vec<Certificate<'static>>> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let text = std::fs::read(file)?;
    let mut roots = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
        roots.push(Certificate::from_der(&certificate).to_owned());
    }
    match roots.is_empty() {
        true => Err(invalid("it holds no certificate".to_owned())),
        false => Ok(roots),
    }
}

impl HttpClient for Transport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        let exchange = EXCHANGE.try_with(Arc::clone).unwrap_or_default();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            // The conversion to a response is what reads the bytes.
            let mut body = BytesResponse::from(Response::new(body)).body;
            let body = body.into_bytes().await.map_err(Error::Other)?;
            let request = Request::from_parts(parts, body.to_vec());
            let sent = tokio::task::spawn_blocking(move || client.send(request)).await;
            let sent = sent.map_err(|panic| Error::Other(panic.into()))?;
            match sent {
                Ok((response, answered)) => {
                    exchange.set(answered);
                    let (parts, bytes) = response.into_parts();
                    Ok(BytesResponse {
                        parts,
                        body: Box::new(bytes),
                    })
                }
                Err(error) => {
                    exchange.set(Answered::default());
                    Err(Error::Other(error.into()))
                }
            }
        })
    }
}

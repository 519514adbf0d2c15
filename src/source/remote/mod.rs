//! Files that documentation names by URL, fetched if the configuration allows it.
//!
//! Authors may name an OpenAPI specification by URL. Such a file is not part of the commit. It is
//! fetched once, before the build begins, and becomes part of the [`Tree`](super::Tree). So
//! `docs` and `build` still depend on the tree only.
//!
//! Authors are not trusted, and a URL lets them send a request from the address of this machine.
//! So:
//!
//! * **Invariant:** requests go only to hosts that a [`Pattern`] of the configuration names. This
//!   is also checked for redirects.
//! * **Invariant:** only `https`, with verified certificates, without credentials or cookies, and
//!   without a proxy from the environment: a proxy would resolve the names.
//! * **Invariant:** a connection goes only to an address that was checked: a public address
//!   ([`address`]), unless the operator has listed the host as private. The name is resolved
//!   once, so it cannot get another address between the check and the connection.
//! * Length, time, number of URLs and redirects are limited: [`Config`], [`URLS_MAX`],
//!   [`REDIRECTS_MAX`].
//!
//! **Limits.** A fetched file is not stored between builds. Files that a specification refers to
//! are not fetched.
//!
//! Sources: RFC 9110 §15.4 (redirects), RFC 3986 §5.2 (relative references), RFC 6890 and
//! its registries (special addresses).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Uri;
use http::header::LOCATION;
use rustls::crypto::aws_lc_rs;
use serde::{Deserialize, Serialize};
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::typestate::AgentScope;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::site::{Host, address};

pub use crate::site::pattern::{InvalidPattern, Pattern};

/// The largest number of URLs that the documentation may name.
pub const URLS_MAX: usize = 100;
/// The largest number of redirects for one URL.
pub const REDIRECTS_MAX: usize = 5;
/// The longest URL, in bytes.
const URL_BYTES_MAX: usize = 2048;

/// Which files may be fetched, and their limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The hosts that files may be fetched from. By default there are none.
    pub hosts: Vec<Pattern>,
    /// The hosts that may have an address outside the public Internet.
    pub private_hosts: Vec<Pattern>,
    /// The longest file, in bytes.
    pub bytes_max: u64,
    /// How long fetching all files may take.
    pub time: Duration,
}

/// The files that documentation names by URL, or the reasons why there is no file.
#[derive(Debug, Default)]
pub struct Remote {
    files: HashMap<Box<str>, Result<Bytes, FetchError>>,
}

/// Why there is no file for a URL.
#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FetchError {
    /// It is not a URL with a host name.
    #[error("it is not a URL like https://host/path")]
    Url,
    /// The scheme is not `https`.
    #[error("only https is fetched")]
    Scheme,
    /// The configuration does not name the host.
    #[error("{host} is not an allowed host")]
    Host {
        /// The host.
        host: Box<str>,
    },
    /// The host has no public address.
    #[error("{host} has no public address")]
    Private {
        /// The host.
        host: Box<str>,
    },
    /// The documentation names too many URLs.
    #[error("more than {URLS_MAX} URLs are named")]
    TooMany,
    /// The status of the response is not 200.
    #[error("{host} responded with {status}")]
    Status {
        /// The host.
        host: Box<str>,
        /// The status.
        status: u16,
    },
    /// The URL redirects to a URL that may not be fetched.
    #[error("it is redirected")]
    Redirected(#[source] Box<FetchError>),
    /// There are too many redirects.
    #[error("it is redirected more than {REDIRECTS_MAX} times")]
    Redirects,
    /// The file is too long.
    #[error("it is longer than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// It took too long.
    #[error("it did not arrive within {} s", limit.as_secs())]
    Time {
        /// The time limit.
        limit: Duration,
    },
    /// The host could not be resolved or reached, or its certificate is not valid.
    #[error("request from {host}")]
    Network {
        /// The host.
        host: Box<str>,
        /// The error of the client.
        #[source]
        source: ClientError,
    },
}

/// The error message of the HTTP client.
#[derive(Clone, Debug, thiserror::Error, Serialize, Deserialize)]
#[error("{0}")]
pub struct ClientError(String);

/// The state while all files of one documentation are fetched.
struct Fetching<'c> {
    config: &'c Config,
    agent: Agent,
    deadline: Instant,
}

/// Resolves names, and returns only the allowed addresses.
#[derive(Debug)]
struct Guard {
    private_hosts: Vec<Pattern>,
    names: DefaultResolver,
}

/// A name has no allowed address.
#[derive(Debug, thiserror::Error)]
#[error("no public address")]
struct NoPublicAddress;

/// Fetches the files of these URLs that the configuration allows.
///
/// Blocks for at most [`Config::time`].
#[must_use]
pub fn fetch(config: &Config, urls: &[Box<str>]) -> Remote {
    let fetching = Fetching {
        config,
        agent: agent(config),
        deadline: Instant::now() + config.time,
    };
    let files = urls.iter().enumerate().map(|(at, url)| {
        let file = match at < URLS_MAX {
            true => fetching.file(url),
            false => Err(FetchError::TooMany),
        };
        (url.clone(), file)
    });
    Remote {
        files: files.collect(),
    }
}

// === impl Config ===

impl Default for Config {
    /// Nothing is fetched.
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            private_hosts: Vec::new(),
            bytes_max: 16 << 20,
            time: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// Returns whether anything may be fetched.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        !self.hosts.is_empty()
    }
}

// === impl Remote ===

impl Remote {
    /// Returns the file of a URL, or the error; `None` when the URL was not fetched.
    #[must_use]
    pub fn get(&self, url: &str) -> Option<Result<&Bytes, &FetchError>> {
        self.files.get(url).map(Result::as_ref)
    }

    /// Adds files that were fetched before.
    #[must_use]
    pub fn with(mut self, files: impl IntoIterator<Item = (Box<str>, Bytes)>) -> Self {
        let files = files.into_iter().map(|(url, bytes)| (url, Ok(bytes)));
        self.files.extend(files);
        self
    }

    /// Returns the file of each URL, or the error, in the order of the URLs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Result<&Bytes, &FetchError>)> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_unstable_by_key(|(url, _)| *url);
        files.into_iter().map(|(url, file)| (&**url, file.as_ref()))
    }
}

impl Remote {
    /// Writes the files for another process: [`Remote::from_bytes`] reads them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let files: Vec<(&str, Result<&[u8], &FetchError>)> = self
            .iter()
            .map(|(url, file)| (url, file.map(|bytes| &**bytes)))
            .collect();
        postcard::to_allocvec(&files).expect("texts, bytes and numbers in memory")
    }

    /// Reads the files that another process has written; `None` for any other bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        type File = (Box<str>, Result<Vec<u8>, FetchError>);
        let files: Vec<File> = postcard::from_bytes(bytes).ok()?;
        let files = files.into_iter();
        let files = files.map(|(url, file)| (url, file.map(Bytes::from)));
        Some(files.collect())
    }

    /// Returns the TCP ports that the URLs name.
    #[must_use]
    pub fn ports(urls: &[Box<str>]) -> Vec<u16> {
        let urls = urls.iter().filter_map(|url| url.parse::<Uri>().ok());
        // A redirect may lead to the usual port.
        urls.filter_map(|url| url.port_u16()).chain([443]).collect()
    }
}

impl FromIterator<(Box<str>, Result<Bytes, FetchError>)> for Remote {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Result<Bytes, FetchError>)>>(files: I) -> Self {
        Self {
            files: files.into_iter().collect(),
        }
    }
}

// === impl FetchError ===

impl FetchError {
    /// Returns whether fetching again may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            // RFC 9110 §15.6, RFC 6585 §4: an error of the server, or too many requests.
            Self::Status { status, .. } => *status >= 500 || *status == 429,
            Self::Time { .. } | Self::Network { .. } => true,
            _ => false,
        }
    }

    /// Returns whether no request was sent because the configuration does not allow it.
    #[must_use]
    pub fn is_not_allowed(&self) -> bool {
        matches!(self, Self::Host { .. } | Self::Scheme)
    }
}

// === impl Fetching ===

impl Fetching<'_> {
    fn file(&self, url: &str) -> Result<Bytes, FetchError> {
        let mut url = self.allowed(url)?;
        for _ in 0..=REDIRECTS_MAX {
            let host: Box<str> = url.host().unwrap_or_default().into();
            let failed = |error| self.failed(&host, error);
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.late());
            }
            let request = self.agent.get(url.clone()).config();
            let request = request.timeout_global(Some(left)).build();
            let response = request.call().map_err(failed)?;
            let status = response.status();
            if status.is_redirection()
                && let Some(location) = response.headers().get(LOCATION)
            {
                let Ok(location) = location.to_str() else {
                    return Err(FetchError::Url);
                };
                let target = self.allowed(&absolute(&url, location));
                url = target.map_err(|error| FetchError::Redirected(Box::new(error)))?;
                continue;
            }
            if status != http::StatusCode::OK {
                let status = status.as_u16();
                return Err(FetchError::Status { host, status });
            }
            let body = response.into_body().into_with_config();
            // One byte more than the limit, to detect a file that is too long.
            let bytes = body.limit(self.config.bytes_max.saturating_add(1));
            let bytes = bytes.read_to_vec().map_err(failed)?;
            if bytes.len() as u64 > self.config.bytes_max {
                return Err(self.long());
            }
            return Ok(bytes.into());
        }
        Err(FetchError::Redirects)
    }

    /// Reads a URL and checks that it may be fetched.
    fn allowed(&self, url: &str) -> Result<Uri, FetchError> {
        if url.len() > URL_BYTES_MAX {
            return Err(FetchError::Url);
        }
        let Ok(url) = url.parse::<Uri>() else {
            return Err(FetchError::Url);
        };
        if url.scheme_str() != Some("https") {
            return Err(FetchError::Scheme);
        }
        let authority = url.authority().ok_or(FetchError::Url)?;
        // A user name is a credential, or it hides the real host from a human reader.
        if authority.as_str().contains('@') {
            return Err(FetchError::Url);
        }
        // Patterns name hosts, so an address is never allowed.
        let Ok(host) = Host::parse(authority.host()) else {
            return Err(FetchError::Url);
        };
        if !self.config.hosts.iter().any(|pattern| pattern.is_of(&host)) {
            let host = host.as_str().into();
            return Err(FetchError::Host { host });
        }
        Ok(url)
    }

    fn failed(&self, host: &str, error: ureq::Error) -> FetchError {
        match error {
            ureq::Error::Timeout(_) => self.late(),
            ureq::Error::BodyExceedsLimit(_) => self.long(),
            ureq::Error::Other(error) if error.is::<NoPublicAddress>() => {
                FetchError::Private { host: host.into() }
            }
            error => FetchError::Network {
                host: host.into(),
                source: ClientError(error.to_string()),
            },
        }
    }

    fn late(&self) -> FetchError {
        FetchError::Time {
            limit: self.config.time,
        }
    }

    fn long(&self) -> FetchError {
        FetchError::TooLarge {
            limit: self.config.bytes_max,
        }
    }
}

// === impl Guard ===

impl Resolver for Guard {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.names.resolve(uri, config, timeout)?;
        let host = Host::parse(uri.host().unwrap_or_default());
        let is_private = |pattern: &Pattern| host.as_ref().is_ok_and(|host| pattern.is_of(host));
        if self.private_hosts.iter().any(is_private) {
            return Ok(found);
        }
        let mut public = self.empty();
        for address in found.iter().filter(|found| address::is_public(found.ip())) {
            public.push(*address);
        }
        if public.is_empty() {
            return Err(ureq::Error::Other(Box::new(NoPublicAddress)));
        }
        Ok(public)
    }
}

/// Returns the settings of an HTTP client: it follows no redirect, returns every status, and trusts
/// the certificate authorities of this machine. `target` is the target of its log lines.
#[must_use]
pub fn client_settings(target: &str) -> ConfigBuilder<AgentScope> {
    let roots = rustls_native_certs::load_native_certs().unwrap_or_else(|error| {
        log::warn!(target: target, "cannot read this machine's certificate authorities: {error}");
        Vec::new()
    });
    let roots: Vec<_> = roots
        .iter()
        .map(|root| Certificate::from_der(root).to_owned())
        .collect();
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
        .build();
    Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("waypost/", env!("CARGO_PKG_VERSION")))
        .tls_config(tls)
}

fn agent(config: &Config) -> Agent {
    let settings = client_settings("source")
        .https_only(true)
        .proxy(None)
        .accept("application/json, application/yaml, */*")
        .build();
    let guard = Guard {
        private_hosts: config.private_hosts.clone(),
        names: DefaultResolver::default(),
    };
    Agent::with_parts(settings, DefaultConnector::default(), guard)
}

/// Resolves a reference against a base (RFC 3986 §5.2.2).
///
/// Dot segments are not removed; the server does that.
fn absolute(base: &Uri, reference: &str) -> String {
    let has_scheme = reference
        .split_once(':')
        .is_some_and(|(scheme, _)| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    if has_scheme {
        return reference.to_owned();
    }
    if reference.starts_with("//") {
        return format!("https:{reference}");
    }
    let authority = base.authority().map_or("", |authority| authority.as_str());
    if reference.starts_with('/') {
        return format!("https://{authority}{reference}");
    }
    if reference.starts_with('?') {
        return format!("https://{authority}{}{reference}", base.path());
    }
    let directory = base.path().rsplit_once('/').map_or("", |(above, _)| above);
    format!("https://{authority}{directory}/{reference}")
}

#[cfg(test)]
mod tests;

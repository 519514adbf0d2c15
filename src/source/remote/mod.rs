//! Files that a documentation names by URL, brought here where the configuration allows it.
//!
//! Authors may name an OpenAPI specification by URL. What is behind it is no part of the
//! commit, so it is fetched once, before anything is built, and handed to the reader as
//! part of the [`Tree`](super::Tree): `docs` and `build` stay functions of that value.
//!
//! Authors are strangers, and a URL is a request that they make with our address. So:
//!
//! * **Invariant:** nothing is asked of a host that no [`Pattern`] of the configuration
//!   names; a redirect is a URL like any other.
//! * **Invariant:** only `https`, certificates verified, no credentials, no cookies, and no
//!   proxy from the environment, which would resolve names in our place.
//! * **Invariant:** a connection goes only to an address that was looked at first: one of
//!   the public Internet ([`address`]), unless the operator has named the host as a private
//!   one. The name is resolved once, so it cannot mean another address a moment later.
//! * Length, time, number and redirects are bounded: [`Config`], [`URLS_MAX`],
//!   [`REDIRECTS_MAX`].
//!
//! **Limits.** A fetched file is not kept between builds. What its specification refers to
//! in other files is not fetched.
//!
//! Sources: RFC 9110 §15.4 (redirects), RFC 3986 §5.2 (relative references), RFC 6890 and
//! its registries (special addresses).

mod address;
mod pattern;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Uri;
use http::header::LOCATION;
use rustls::crypto::aws_lc_rs;
use serde::{Deserialize, Serialize};
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::site::Host;

pub use pattern::{InvalidPattern, Pattern};

/// How many URLs one documentation may name.
pub const URLS_MAX: usize = 100;
/// How often one URL may lead to another.
pub const REDIRECTS_MAX: usize = 5;
/// How long a URL may be.
const URL_BYTES_MAX: usize = 2048;

/// What may be fetched, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The hosts that may be asked; none by default, and then nothing is fetched.
    pub hosts: Vec<Pattern>,
    /// Those that may have an address which is not of the public Internet.
    pub private_hosts: Vec<Pattern>,
    /// The longest file.
    pub bytes_max: u64,
    /// How long all files of a documentation together may take.
    pub time: Duration,
}

/// What is known of the files that URLs name.
#[derive(Debug, Default)]
pub struct Remote {
    files: HashMap<Box<str>, Result<Bytes, FetchError>>,
}

/// Why there is no file for a URL.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Not a URL of a host by name.
    #[error("it is no URL like https://host/path")]
    Url,
    /// Another scheme than `https`.
    #[error("only https is fetched")]
    Scheme,
    /// A host that the configuration does not name.
    #[error("{host} is not among the hosts that are asked")]
    Host {
        /// Which host.
        host: Box<str>,
    },
    /// A host without an address of the public Internet.
    #[error("{host} has no public address")]
    Private {
        /// Which host.
        host: Box<str>,
    },
    /// More URLs than allowed.
    #[error("more than {URLS_MAX} URLs are named")]
    TooMany,
    /// Another answer than the file.
    #[error("{host} answered {status}")]
    Status {
        /// Who answered.
        host: Box<str>,
        /// What.
        status: u16,
    },
    /// The URL leads to one that may not be asked.
    #[error("it is redirected")]
    Redirected(#[source] Box<FetchError>),
    /// The URL leads to another, and that to another, too often.
    #[error("it is redirected more than {REDIRECTS_MAX} times")]
    Redirects,
    /// The file is longer than it may be.
    #[error("it is longer than {limit} bytes")]
    TooLarge {
        /// How long it may be.
        limit: u64,
    },
    /// It took too long.
    #[error("it did not come within {} s", limit.as_secs())]
    Time {
        /// How long everything may take.
        limit: Duration,
    },
    /// The host could not be found, reached or believed.
    #[error("ask {host}")]
    Network {
        /// Which host.
        host: Box<str>,
        /// What happened.
        #[source]
        source: Box<ureq::Error>,
    },
}

/// Fetches for one documentation.
struct Fetching<'c> {
    config: &'c Config,
    agent: Agent,
    deadline: Instant,
}

/// Resolves names, and gives away only addresses that may be asked.
#[derive(Debug)]
struct Guard {
    private_hosts: Vec<Pattern>,
    names: DefaultResolver,
}

/// A name has addresses, and none that may be asked.
#[derive(Debug, thiserror::Error)]
#[error("no public address")]
struct NoPublicAddress;

/// Fetches the files of a documentation, those that may be.
///
/// Blocks as long as hosts do, at most [`Config::time`].
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
    /// Returns what came of a URL; `None` when it was not asked for.
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

    /// Returns what came of each URL, by URL.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Result<&Bytes, &FetchError>)> {
        let mut files: Vec<_> = self.files.iter().collect();
        files.sort_unstable_by_key(|(url, _)| *url);
        files.into_iter().map(|(url, file)| (&**url, file.as_ref()))
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
    /// Returns whether the same may come later without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            // RFC 9110 §15.6, RFC 6585 §4: the server's trouble, or too many requests.
            Self::Status { status, .. } => *status >= 500 || *status == 429,
            Self::Time { .. } | Self::Network { .. } => true,
            _ => false,
        }
    }

    /// Returns whether nothing was asked, because the configuration does not allow it.
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
            // One byte more than allowed is needed to see that it is too long.
            let bytes = body.limit(self.config.bytes_max.saturating_add(1));
            let bytes = bytes.read_to_vec().map_err(failed)?;
            if bytes.len() as u64 > self.config.bytes_max {
                return Err(self.long());
            }
            return Ok(bytes.into());
        }
        Err(FetchError::Redirects)
    }

    /// Reads a URL that may be asked for.
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
        // A user name there is a credential, or a trick on the eye.
        if authority.as_str().contains('@') {
            return Err(FetchError::Url);
        }
        // An address has no name that could be allowed.
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
                source: Box::new(error),
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

fn agent(config: &Config) -> Agent {
    // As everywhere in the process: the authorities of this machine.
    let roots = rustls_native_certs::load_native_certs().unwrap_or_else(|error| {
        log::warn!(target: "source", "read this machine's certificate authorities: {error}");
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
    let built = Agent::config_builder()
        .https_only(true)
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("waypost/", env!("CARGO_PKG_VERSION")))
        .accept("application/json, application/yaml, */*")
        .tls_config(tls)
        .build();
    let guard = Guard {
        private_hosts: config.private_hosts.clone(),
        names: DefaultResolver::default(),
    };
    Agent::with_parts(built, DefaultConnector::default(), guard)
}

/// RFC 3986 §5.2.2: what a reference means where it was found. Dot segments are left to
/// the server.
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

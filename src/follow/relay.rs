//! An edge that serves other edges: it passes their requests on, and sends files from its own
//! cache.
//!
//! Messages go through as they are, with the token of the edge that asks. So they are signed by the
//! first source for that edge, and private keys are encrypted for it: this edge can withhold them,
//! and can neither read nor change them. The first source knows every edge, its ring and its
//! reports.
//!
//! Counts for the owners of sites go through too, to the first source.
//!
//! A file is sent only for a token that the first source has accepted lately. One that the cache
//! does not have, or not any more, is fetched from there and not kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::client::{Client, Passed};
use super::metrics::RelayMetrics;
use super::source::{Request, SourceResponse, find_object};
use super::{Config, FollowError, PATH};
use crate::digest::Digest;
use crate::error::chain;
use crate::store::Store;
use crate::telemetry::Metrics;

/// How long a token counts as accepted. For so long, a removed edge still gets files of the cache. An
/// edge asks for changes at least every 30 seconds. If it asks only for files, one request in a minute
/// goes to the first source.
const ACCEPTED: Duration = Duration::from_secs(60);
/// How many tokens are remembered.
const TOKENS_MAX: usize = 10_000;
/// How many requests are passed on at the same time. Each needs a thread.
const PASSED_MAX: usize = 400;

/// Passes on what edges ask.
#[derive(Debug)]
pub struct Relay {
    client: Arc<Client>,
    store: Arc<Store>,
    /// The digest of each token that was accepted, and when.
    accepted: Mutex<HashMap<Digest, Instant>>,
    passing: Semaphore,
    ending: CancellationToken,
    metrics: RelayMetrics,
}

impl Relay {
    /// Makes it for the cache of an edge. It stops responding when `ending` is cancelled.
    ///
    /// # Errors
    ///
    /// When the file of authorities cannot be used.
    pub fn new(
        config: &Config,
        service: &str,
        store: Arc<Store>,
        metrics: &Metrics,
        ending: CancellationToken,
    ) -> Result<Self, FollowError> {
        let client = Client::new(config, service).map_err(FollowError::File)?;
        Ok(Self {
            client: Arc::new(client),
            store,
            accepted: Mutex::default(),
            passing: Semaphore::new(PASSED_MAX),
            ending,
            metrics: RelayMetrics::new(metrics),
        })
    }

    pub(super) fn ending(&self) -> &CancellationToken {
        &self.ending
    }

    /// Returns whether a request has a token that the first source has accepted lately.
    pub(super) fn knows(&self, request: &Request) -> bool {
        self.is_accepted(Digest::of(&request.authorization))
    }

    /// Responds to a request.
    pub(super) async fn respond(self: &Arc<Self>, request: &Request) -> SourceResponse {
        let asked = request.path.strip_prefix(PATH).unwrap_or_default();
        let (kind, response) = match asked.split_once('/') {
            Some(("objects", digest)) => ("object", self.object(request, digest).await),
            _ => match asked {
                "changes" => ("changes", self.pass(request).await),
                "snapshot" => ("snapshot", self.pass(request).await),
                "secrets" => ("secrets", self.pass(request).await),
                "certificates" => ("certificates", self.pass(request).await),
                "numbers" => ("numbers", self.pass(request).await),
                _ => (
                    "other",
                    SourceResponse::Status(404, "this is not asked of an edge\n"),
                ),
            },
        };
        let status = response.status().to_string();
        let labels = [kind, &status];
        self.metrics.requests.with_label_values(&labels).inc();
        response
    }

    /// Passes a request on, and returns the response as it is.
    async fn pass(self: &Arc<Self>, request: &Request) -> SourceResponse {
        let Ok(_place) = self.passing.try_acquire() else {
            return SourceResponse::Status(503, "too many edges follow this edge\n");
        };
        let (relay, request) = (Arc::clone(self), request.clone());
        let digest = Digest::of(&request.authorization);
        let passing = tokio::task::spawn_blocking(move || relay.client.pass(&request));
        // At an upgrade the edge asks the next process.
        let passed = tokio::select! {
            passed = passing => passed,
            () = self.ending.cancelled() => return SourceResponse::Status(503, "this process ends\n"),
        };
        let passed = match passed {
            Ok(Ok(passed)) => passed,
            Ok(Err(error)) => {
                log::debug!(target: "follow", "pass on a request of an edge: {}", chain(&error));
                return SourceResponse::Status(
                    503,
                    "the node that this edge follows does not respond\n",
                );
            }
            Err(_panic) => return SourceResponse::Status(500, "a panic\n"),
        };
        let Passed {
            status,
            content,
            signature,
            is_compressed,
        } = passed;
        match status {
            StatusCode::UNAUTHORIZED => self.forget(digest),
            // Only a source that has checked the token responds so. Anything else may come from a
            // server in between, or from a source that is overloaded and has checked nothing.
            StatusCode::OK | StatusCode::NO_CONTENT | StatusCode::GONE => self.accept(digest),
            _ => {}
        }
        match (status, signature) {
            (StatusCode::OK, Some(signature)) => SourceResponse::Message {
                content: content.into(),
                is_compressed,
                signature,
            },
            (StatusCode::OK, None) => SourceResponse::Content(content.into()),
            (status, _) => {
                SourceResponse::Status(status.as_u16(), "the response of the first source\n")
            }
        }
    }

    async fn object(self: &Arc<Self>, request: &Request, digest: &str) -> SourceResponse {
        let Ok(digest) = Digest::parse(digest) else {
            return SourceResponse::Status(400, "a digest has 64 hexadecimal digits\n");
        };
        if self.is_accepted(Digest::of(&request.authorization)) {
            let store = Arc::clone(&self.store);
            match find_object(store, digest).await {
                SourceResponse::Status(404, _) => {}
                found => return found,
            }
        }
        self.pass(request).await
    }

    fn is_accepted(&self, token: Digest) -> bool {
        self.accepted()
            .get(&token)
            .is_some_and(|at| at.elapsed() < ACCEPTED)
    }

    fn accept(&self, token: Digest) {
        let mut accepted = self.accepted();
        if accepted.len() >= TOKENS_MAX {
            accepted.retain(|_, at| at.elapsed() < ACCEPTED);
        }
        if accepted.len() < TOKENS_MAX {
            accepted.insert(token, Instant::now());
        }
    }

    fn forget(&self, token: Digest) {
        self.accepted().remove(&token);
    }

    fn accepted(&self) -> MutexGuard<'_, HashMap<Digest, Instant>> {
        // Every change is one call, so the map is whole after a panic too.
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The admin API: a function from a request to a response.
//!
//! | Call | Response |
//! |---|---|
//! | `POST /v1/project/update/{projectId}` | 202 with the status id, once the update is durable |
//! | `GET /v1/project/update-status/{statusId}` | 200 with the record |
//! | `GET /v1/sites`, `GET /v1/audit` | 200 with a page of sites, of changes |
//! | `GET`, `PUT`, `PATCH`, `DELETE /v1/sites/{projectId}` | the site record ([`sites`](super::sites)) |
//! | `GET /v1/sites/{projectId}/domains` | 200 with a page of its domains |
//! | `GET`, `PUT`, `DELETE /v1/sites/{projectId}/domains/{host}` | one of them |
//! | `POST /v1/sites/{projectId}/domains/{host}/check` | 202: its DNS is checked now |
//! | `GET /v1/sites/{projectId}/numbers` | 200: the numbers of the site |
//! | `GET /openapi.json` | the description of the API; it needs no key |
//!
//! Rules, each named by a test:
//!
//! * A1: a call for another owner's project gets the same response, after the same work, as a
//!   call for a project that does not exist.
//! * A2: every key that is not valid gets the same response. Only the log says why.
//! * A3: 202 means that the update is durable. When the queue does not confirm that in time, the
//!   response is 503. If the update was stored nevertheless, the next call finds it.
//! * A4: no response may be cached. A 503 says why the queue does not work, in words that name
//!   no file and no other owner.
//! * A5: keys are accepted over TLS or from this machine only, unless the operator allows more.
//! * A6: a change of a site record that exists names the record that it changes (`If-Match`).
//!
//! The calls are below `/v1`. New ones may be added; none is removed.
//!
//! Sources: RFC 6750 §3 (challenges), RFC 9110 §15, RFC 9457,
//! draft-ietf-httpapi-idempotency-key-header.

mod content;
mod numbers;
mod calls;
mod page;
mod rate;
mod request;
mod sites;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use prometheus::{IntCounterVec, Opts};
use tokio::sync::Semaphore;

use super::keys::{InvalidKey, Key, KeyCache};
use super::queue::{Enqueued, Queue, QueueError, Trigger};
use super::run::blocking;
use super::sites::SiteAdmin;
use super::update::Source;
use super::{FindSite, StatusId, Timestamp};
use crate::clock::Clock;
use crate::error::chain;
use crate::response::{Problem, Response};
use crate::site::{ProjectId, Service, Site};
use crate::telemetry;
use calls::Calls;
use rate::{Left, Limiter};
use request::{Resource, bearer, idempotency};

pub use rate::Rate;
pub use request::Request;

/// The largest content of a request. Only changes of site records have content; that of other calls
/// is read and ignored.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// How long a caller waits for the queue: longer than another process may lock it.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many calls may wait for the queue at once.
const WAITING_MAX: usize = 256;
/// How many of them may be calls of one owner.
const WAITING_OF_OWNER_MAX: usize = 64;
const JSON: &str = "application/json";
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const OPENAPI: &str = include_str!("openapi.json");

/// The settings of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How often an owner may trigger updates; changes of sites are counted on their own.
    pub rate: Rate,
    /// Whether keys are accepted in plain text from other machines.
    pub allow_plaintext: bool,
    /// Whether keys of owners may add domains ([`SiteAdmin`]).
    pub owners_add_domains: bool,
}

/// The admin API of a node.
pub struct Api {
    config: Config,
    realm: Box<str>,
    openapi: Bytes,
    keys: Arc<KeyCache>,
    queue: Arc<Queue>,
    find_site: FindSite,
    site_admin: Arc<SiteAdmin>,
    limiter: Limiter,
    /// Counts changes of sites by owners.
    changes: Limiter,
    /// Counts reads of the audit log by owners.
    reads: Limiter,
    waiting: Arc<Semaphore>,
    /// The calls in progress, by owner.
    calls: Calls,
    metrics: Metrics,
    clock: Clock,
}

/// The metrics of the API.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Triggers with a valid key that were rejected, by reason.
    rejected: IntCounterVec,
}

/// An error response. It is boxed, because the other variant of the results that contain it is
/// small.
type ErrorResponse = Box<Response>;

/// A call that the queue rejected, or to which it did not respond.
struct NotStored {
    /// The reason, as the metric names it.
    reason: &'static str,
    response: ErrorResponse,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers the family.
    #[must_use]
    pub fn new(metrics: &telemetry::Metrics) -> Self {
        let rejected = Opts::new(
            "deploy_triggers_rejected_total",
            "Triggers with a valid key that were rejected, by reason: rate (the owner's limit), no_repository, key_reused, queue_full, queue_busy, queue_outage.",
        );
        Self {
            rejected: metrics.register(IntCounterVec::new(rejected, &["reason"])),
        }
    }

    fn rejected(&self, reason: &str) {
        self.rejected.with_label_values(&[reason]).inc();
    }
}

// === impl Api ===

impl Api {
    /// Makes the API.
    #[must_use]
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a node, each named once"
    )]
    pub fn new(
        config: Config,
        service: &Service,
        keys: Arc<KeyCache>,
        queue: Arc<Queue>,
        find_site: FindSite,
        site_admin: Arc<SiteAdmin>,
        metrics: Metrics,
        clock: Clock,
    ) -> Self {
        Self {
            limiter: Limiter::new(config.rate),
            changes: Limiter::new(config.rate),
            reads: Limiter::new(config.rate),
            site_admin,
            config,
            realm: service.name.clone(),
            openapi: describe(service),
            keys,
            queue,
            find_site,
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            calls: Calls::new(WAITING_OF_OWNER_MAX),
            metrics,
            clock,
        }
    }

    /// Responds to a request.
    pub async fn handle(&self, request: &Request<'_>) -> Response {
        self.response(request)
            .await
            .unwrap_or_else(|error_response| *error_response)
    }

    /// Returns the response to a request that is rejected before its content is read: it has no
    /// path of the API, or no valid key.
    pub fn reject(&self, request: &Request<'_>) -> Option<Response> {
        self.admit(request)
            .err()
            .map(|error_response| *error_response)
    }

    /// Finds what a request names, and its key if that needs one.
    fn admit<'r>(
        &self,
        request: &Request<'r>,
    ) -> Result<(Resource<'r>, Option<Arc<Key>>), ErrorResponse> {
        let resource = Resource::find(request.path).ok_or_else(no_such_path)?;
        let allow = resource.methods();
        if !allow.split(", ").any(|method| method == request.method) {
            let problem = Problem::new(405, format!("this path has the methods {allow}"));
            return Err(Box::new(Response {
                allow: Some(allow),
                ..problem.response()
            }));
        }
        let key = match resource {
            Resource::Description => None,
            _ => Some(self.authenticate(request)?),
        };
        Ok((resource, key))
    }

    async fn response(&self, request: &Request<'_>) -> Result<Response, ErrorResponse> {
        let (resource, key) = self.admit(request)?;
        let Some(key) = key else {
            return Ok(Response::new(200, JSON, self.openapi.clone()));
        };
        if request.is_too_large {
            let detail = format!("the request has more than {BODY_BYTES_MAX} bytes of content");
            return Err(error_response(413, &detail));
        }
        let Some(_call) = self.calls.begin(&key.owner) else {
            return Err(unavailable("too many calls of this owner wait", 1));
        };
        match resource {
            Resource::Trigger(project) => self.trigger(request, &key, project).await,
            Resource::Status(id) => self.status(&key, id).await,
            Resource::Description => Err(no_such_path()),
            Resource::Sites
            | Resource::Site(_)
            | Resource::Domains(_)
            | Resource::Domain(..)
            | Resource::Check(..)
            | Resource::Numbers(_)
            | Resource::Audit => self.sites(request, &key, resource).await,
        }
    }

    /// Returns the key of a request, or the response when there is no valid one (rules A2, A5).
    fn authenticate(&self, request: &Request<'_>) -> Result<Arc<Key>, ErrorResponse> {
        if !(request.is_confidential || self.config.allow_plaintext) {
            let detail = "admin keys are accepted over TLS only; revoke this one, because it was sent in plain text";
            return Err(error_response(403, detail));
        }
        let [field] = request.authorization.as_slice() else {
            // RFC 6750 §3.1: no error code when the request has no key.
            let detail = "send an admin key: Authorization: Bearer …";
            return Err(self.challenge(detail, None));
        };
        let presented = bearer(field).ok_or(InvalidKey::Malformed);
        presented.and_then(|key| self.keys.verify(key)).map_err(|rejected| {
            log::warn!(target: "audit", client:? = request.client, reason:? = rejected; "an admin key was rejected");
            self.challenge("the admin key is not valid", Some("invalid_token"))
        })
    }

    fn challenge(&self, detail: &str, error: Option<&str>) -> ErrorResponse {
        let mut challenge = format!("Bearer realm=\"{}\"", self.realm);
        if let Some(error) = error {
            challenge.push_str(&format!(", error=\"{error}\""));
        }
        let response = Problem::new(401, detail).response();
        Box::new(response.with(header::WWW_AUTHENTICATE, text(&challenge)))
    }

    async fn trigger(
        &self,
        request: &Request<'_>,
        key: &Key,
        project: &str,
    ) -> Result<Response, ErrorResponse> {
        // Calls for a project that the owner does not have are not counted: a wrong name in a
        // script must not prevent deployments of the owner's other projects.
        let site = self.site(key, project)?;
        let left = self.limiter.call(&key.owner, Instant::now());
        if left.is_over {
            self.metrics.rejected("rate");
            let Rate { calls, window } = self.limiter.rate();
            let detail = format!("more than {calls} triggers in {} s", window.as_secs());
            let response = Problem::new(429, detail).response();
            return Err(Box::new(
                self.limited(retry_after(response, left.next), left),
            ));
        }
        let triggered = self.enqueue(request, &site).await;
        let response = triggered.map(|enqueued| {
            let id = &enqueued.id;
            log::info!(
                target: "audit", client:? = request.client, owner = &*key.owner, key:% = key.id(), project, update:% = id;
                "an update of {project} was triggered: {id}"
            );
            Response {
                location: Some(format!("/v1/project/update-status/{id}").into()),
                ..Response::new(202, JSON, format!("{{\"statusId\":\"{id}\"}}\n").into())
            }
        });
        match response {
            Ok(response) => Ok(self.limited(response, left)),
            Err(error_response) => Err(Box::new(self.limited(*error_response, left))),
        }
    }

    /// Returns the site of a project that the key covers.
    fn site(&self, key: &Key, project: &str) -> Result<Arc<Site>, ErrorResponse> {
        let site = ProjectId::parse(project)
            .ok()
            .and_then(|project| (self.find_site)(&project));
        let site = site
            .filter(|site| key.is_for(&site.owner))
            .ok_or_else(no_project)?;
        self.check_scope(key, &site.project)?;
        Ok(site)
    }

    async fn enqueue(&self, request: &Request<'_>, site: &Site) -> Result<Enqueued, ErrorResponse> {
        let idempotency = idempotency(&request.idempotency_key)?;
        if site.repository.is_none() {
            self.metrics.rejected("no_repository");
            let detail =
                "the site record of the project names no repository, so there is nothing to build";
            return Err(error_response(422, detail));
        }
        let trigger = Trigger {
            project: site.project.clone(),
            owner: site.owner.clone(),
            subdomain: site.subdomain.clone(),
            source: Source::Api,
            idempotency,
        };
        let now = Timestamp::of(self.clock.now());
        let operation = self.queue.enqueue_soon(trigger, now);
        self.wait_for(operation)
            .await
            .inspect_err(|rejected| self.metrics.rejected(rejected.reason))
            .map_err(|rejected| rejected.response)
    }

    async fn status(&self, key: &Key, id: &str) -> Result<Response, ErrorResponse> {
        let id = StatusId::parse(id).map_err(|_invalid| no_update())?;
        let queue = Arc::clone(&self.queue);
        let read = blocking(move || queue.record(&id));
        let record = self.wait_for(read).await;
        let record = record.map_err(|rejected| rejected.response)?;
        let record = record
            .filter(|record| key.is_for(&record.update.owner))
            .ok_or_else(no_update)?;
        self.check_scope(key, &record.update.project)?;
        Ok(Response::new(200, JSON, record.to_json().into()))
    }

    /// Rejects a valid key that does not cover this project of its owner.
    fn check_scope(&self, key: &Key, project: &ProjectId) -> Result<(), ErrorResponse> {
        if key.covers(project) {
            return Ok(());
        }
        // RFC 6750 §3.1.
        let challenge = format!(
            "Bearer realm=\"{}\", error=\"insufficient_scope\"",
            self.realm
        );
        let response = Problem::new(403, "the admin key does not cover this project").response();
        Err(Box::new(
            response.with(header::WWW_AUTHENTICATE, text(&challenge)),
        ))
    }

    /// Waits for the queue, up to a limit (rule A3).
    async fn wait_for<T>(
        &self,
        operation: impl Future<Output = Result<T, QueueError>>,
    ) -> Result<T, NotStored> {
        let Ok(_place) = self.waiting.try_acquire() else {
            let detail = "too many calls wait for the queue";
            return Err(NotStored::new("queue_busy", unavailable(detail, 1)));
        };
        match tokio::time::timeout(QUEUE_TIMEOUT, operation).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(QueueError::KeyReused)) => {
                let detail = "the Idempotency-Key was used for another project";
                Err(NotStored::new("key_reused", error_response(422, detail)))
            }
            Ok(Err(error @ QueueError::Full { .. })) => {
                let detail = format!("the queue is full: {}", error.reason());
                Err(NotStored::new("queue_full", unavailable(&detail, 30)))
            }
            Ok(Err(error)) => {
                // The queue reports its own outages.
                if !error.is_outage() {
                    log::error!(target: "deploy", "a call was rejected: {}", chain(&error));
                }
                let detail = format!("the queue does not work: {}", error.reason());
                Err(NotStored::new("queue_outage", unavailable(&detail, 5)))
            }
            Err(_elapsed) => {
                let detail = "the queue does not respond in time";
                Err(NotStored::new("queue_outage", unavailable(detail, 5)))
            }
        }
    }

    /// Adds the fields that say how many calls are left.
    fn limited(&self, response: Response, left: Left) -> Response {
        let Rate { calls, window } = self.limiter.rate();
        let policy = format!("\"owner\";q={calls};w={}", window.as_secs());
        let state = format!("\"owner\";r={};t={}", left.calls, seconds(left.next));
        response
            .with(RATE_LIMIT_POLICY, text(&policy))
            .with(RATE_LIMIT, text(&state))
    }
}

// === impl NotStored ===

impl NotStored {
    fn new(reason: &'static str, response: ErrorResponse) -> Self {
        Self { reason, response }
    }
}

fn error_response(status: u16, detail: &str) -> ErrorResponse {
    Box::new(Problem::new(status, detail).response())
}

fn no_such_path() -> ErrorResponse {
    error_response(404, "the admin API has no such path")
}

fn no_project() -> ErrorResponse {
    error_response(404, "there is no such project")
}

fn no_update() -> ErrorResponse {
    error_response(404, "there is no such update")
}

fn unavailable(why: &str, wait_seconds: u64) -> ErrorResponse {
    let detail = format!("{why}; nothing was acknowledged, try again");
    let wait = Duration::from_secs(wait_seconds);
    Box::new(retry_after(Problem::new(503, detail).response(), wait))
}

fn retry_after(response: Response, wait: Duration) -> Response {
    response.with(header::RETRY_AFTER, HeaderValue::from(seconds(wait).max(1)))
}

/// Rounds up to whole seconds.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).expect("numbers, constants and the service's name")
}

/// Returns the description with the address of this service.
fn describe(service: &Service) -> Bytes {
    let mut document: serde_json::Value =
        serde_json::from_str(OPENAPI).expect("our own document is JSON");
    let url = service.site_url(&service.api_host, &crate::site::BasePath::default());
    document["servers"] = serde_json::json!([{ "url": url }]);
    let text = serde_json::to_vec_pretty(&document).expect("JSON can be written");
    text.into()
}

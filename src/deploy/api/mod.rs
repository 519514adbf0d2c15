//! The admin API: a function from a request to a response.
//!
//! | Call | Response |
//! |---|---|
//! | `POST /v1/project/update/{projectId}` | 202 with the status id, once the update is durable |
//! | `GET /v1/project/update-status/{statusId}` | 200 with the record |
//! | `GET /openapi.json` | the description of the API; it needs no key |
//!
//! Rules, each named by a test:
//!
//! * A1: a call for another owner's project gets the same response, after the same work, as a
//!   call for a project that does not exist.
//! * A2: every key that is not valid gets the same response. Only the log says why.
//! * A3: 202 means that the update is durable. When the queue does not confirm that in time, the
//!   response is 503. If the update was stored all the same, the next call finds it.
//! * A4: no response may be cached, and none says which internal part has failed.
//! * A5: keys are accepted over TLS or from this machine only, unless the operator allows more.
//!
//! Only paths below `/v1` exist. New ones may be added; none is removed.
//!
//! Sources: RFC 6750 §3 (challenges), RFC 9110 §15, RFC 9457,
//! draft-ietf-httpapi-idempotency-key-header.

mod rate;
mod request;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use tokio::sync::Semaphore;

use super::keys::{Key, KeyCache, Refused};
use super::queue::{Enqueued, Queue, QueueError, Trigger};
use super::run::blocking;
use super::update::Source;
use super::{FindSite, StatusId, Timestamp};
use crate::clock::Clock;
use crate::response::{Problem, Response};
use crate::site::{ProjectId, Service};
use rate::{Left, Limiter};
use request::{Resource, bearer, idempotency};

pub use rate::Rate;
pub use request::Request;

/// The largest content of a request. No call needs content; it is read and ignored.
pub const BODY_BYTES_MAX: u64 = 64 << 10;
/// How long a caller waits for the queue: longer than another process may lock it.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many calls may wait for the queue at once.
const WAITING_MAX: usize = 256;
const JSON: &str = "application/json";
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const OPENAPI: &str = include_str!("openapi.json");

/// The settings of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How often an owner may trigger updates.
    pub rate: Rate,
    /// Whether keys are accepted in plain text from other machines.
    pub allow_plaintext: bool,
}

/// The admin API of a node.
pub struct Api {
    config: Config,
    realm: Box<str>,
    openapi: Bytes,
    keys: Arc<KeyCache>,
    queue: Arc<Queue>,
    find_site: FindSite,
    limiter: Limiter,
    waiting: Semaphore,
    clock: Clock,
}

/// A response that refuses a request. It is boxed, because the other variant of the results that
/// carry it is small.
type Refusal = Box<Response>;

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

// === impl Api ===

impl Api {
    /// Makes the API.
    #[must_use]
    pub fn new(
        config: Config,
        service: &Service,
        keys: Arc<KeyCache>,
        queue: Arc<Queue>,
        find_site: FindSite,
        clock: Clock,
    ) -> Self {
        Self {
            limiter: Limiter::new(config.rate),
            config,
            realm: service.name.clone(),
            openapi: describe(service),
            keys,
            queue,
            find_site,
            waiting: Semaphore::new(WAITING_MAX),
            clock,
        }
    }

    /// Answers a request.
    pub async fn handle(&self, request: &Request<'_>) -> Response {
        self.response(request)
            .await
            .unwrap_or_else(|refusal| *refusal)
    }

    async fn response(&self, request: &Request<'_>) -> Result<Response, Refusal> {
        let resource = Resource::find(request.path).ok_or_else(no_such_path)?;
        let allow = resource.methods();
        if !allow.split(", ").any(|method| method == request.method) {
            let problem = Problem::new(405, format!("this path has the methods {allow}"));
            return Err(Box::new(Response {
                allow: Some(allow),
                ..problem.response()
            }));
        }
        if let Resource::Description = resource {
            return Ok(Response::new(200, JSON, self.openapi.clone()));
        }
        let key = self.authenticate(request)?;
        if request.is_too_large {
            let detail = format!("the request has more than {BODY_BYTES_MAX} bytes of content");
            return Err(refusal(413, &detail));
        }
        match resource {
            Resource::Trigger(project) => self.trigger(request, &key, project).await,
            Resource::Status(id) => self.status(&key, id).await,
            Resource::Description => Err(no_such_path()),
        }
    }

    /// Returns the key of a request, or the response when there is no valid one (rules A2, A5).
    fn authenticate(&self, request: &Request<'_>) -> Result<Arc<Key>, Refusal> {
        if !(request.is_confidential || self.config.allow_plaintext) {
            let detail = "admin keys are accepted over TLS only; revoke this one, because it was sent in plain text";
            return Err(refusal(403, detail));
        }
        let [field] = request.authorization.as_slice() else {
            // RFC 6750 §3.1: no error code when the request has no key.
            let detail = "send an admin key: Authorization: Bearer …";
            return Err(self.challenge(detail, None));
        };
        let presented = bearer(field).ok_or(Refused::Malformed);
        presented.and_then(|key| self.keys.verify(key)).map_err(|refused| {
            log::warn!(target: "audit", client:? = request.client, reason:? = refused; "an admin key was refused");
            self.challenge("the admin key is not valid", Some("invalid_token"))
        })
    }

    fn challenge(&self, detail: &str, error: Option<&str>) -> Refusal {
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
    ) -> Result<Response, Refusal> {
        let left = self.limiter.call(&key.owner, Instant::now());
        if left.is_over {
            let Rate { calls, window } = self.limiter.rate();
            let detail = format!("more than {calls} triggers in {} s", window.as_secs());
            let response = Problem::new(429, detail).response();
            return Err(Box::new(
                self.limited(retry_after(response, left.next), left),
            ));
        }
        let triggered = self.enqueue(request, key, project).await;
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
            Err(refusal) => Err(Box::new(self.limited(*refusal, left))),
        }
    }

    async fn enqueue(
        &self,
        request: &Request<'_>,
        key: &Key,
        project: &str,
    ) -> Result<Enqueued, Refusal> {
        let idempotency = idempotency(&request.idempotency_key)?;
        let site = ProjectId::parse(project)
            .ok()
            .and_then(|project| (self.find_site)(&project));
        let site = site
            .filter(|site| site.owner == key.owner)
            .ok_or_else(no_project)?;
        self.check_scope(key, &site.project)?;
        let trigger = Trigger {
            project: site.project.clone(),
            owner: site.owner.clone(),
            subdomain: site.subdomain.clone(),
            source: Source::Api,
            idempotency,
        };
        let now = Timestamp::of(self.clock.now());
        self.wait_for(self.queue.enqueue_soon(trigger, now)).await
    }

    async fn status(&self, key: &Key, id: &str) -> Result<Response, Refusal> {
        let id = StatusId::parse(id).map_err(|_invalid| no_update())?;
        let queue = Arc::clone(&self.queue);
        let read = blocking(move || queue.record(&id));
        let record = self.wait_for(read).await?;
        let record = record
            .filter(|record| record.update.owner == key.owner)
            .ok_or_else(no_update)?;
        self.check_scope(key, &record.update.project)?;
        Ok(Response::new(200, JSON, record.to_json().into()))
    }

    /// Refuses a valid key that does not cover this project of its owner.
    fn check_scope(&self, key: &Key, project: &ProjectId) -> Result<(), Refusal> {
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
        asked: impl Future<Output = Result<T, QueueError>>,
    ) -> Result<T, Refusal> {
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err(unavailable(Duration::from_secs(1)));
        };
        match tokio::time::timeout(QUEUE_TIMEOUT, asked).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(QueueError::KeyReused)) => {
                let detail = "the Idempotency-Key was used for another project";
                Err(refusal(422, detail))
            }
            Ok(Err(error @ QueueError::Full { .. })) => {
                log::error!(target: "deploy", "a trigger was refused: {error}");
                Err(unavailable(Duration::from_secs(30)))
            }
            Ok(Err(error)) => {
                log::error!(target: "deploy", "a call was refused: {error}");
                Err(unavailable(Duration::from_secs(5)))
            }
            Err(_elapsed) => {
                log::error!(target: "deploy", "a call was refused: the queue does not respond");
                Err(unavailable(Duration::from_secs(5)))
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

fn refusal(status: u16, detail: &str) -> Refusal {
    Box::new(Problem::new(status, detail).response())
}

fn no_such_path() -> Refusal {
    refusal(404, "the admin API has no such path")
}

fn no_project() -> Refusal {
    refusal(404, "there is no such project")
}

fn no_update() -> Refusal {
    refusal(404, "there is no such update")
}

fn unavailable(wait: Duration) -> Refusal {
    let detail = "the queue cannot be reached; nothing was acknowledged, try again";
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

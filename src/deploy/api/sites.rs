//! The calls for sites, domains and the audit log.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::page::Query;
use super::request::Resource;
use super::{
    Api, ErrorResponse, JSON, Limiter, QUEUE_TIMEOUT, Rate, Request, content, error_response,
    no_project, no_such_path, retry_after, unavailable,
};
use crate::deploy::Timestamp;
use crate::deploy::keys::{Key, Role, Scope};
use crate::deploy::run::blocking;
use crate::deploy::sites::{
    Caller, Condition, Domain, Done, Refused, Representation, Shown, SiteAdmin,
};
use crate::error::chain;
use crate::response::{Conditions, Outcome, Problem, Response};
use crate::site::percent::decode_or_keep;
use crate::site::{Host, ProjectId};
use crate::store::audit::{Entry, Filter, Who};

/// RFC 5789 §3.1: the media types of patches.
const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

/// More domains than a site may have.
const DOMAINS_MAX: u64 = 1_000_000;
/// RFC 8259 §6: the greatest number that every reader of JSON reads exactly.
const ENTRY_MAX: u64 = (1 << 53) - 1;
/// About how much of the audit log one call reads.
const AUDIT_READ_BYTES: u64 = 32 << 20;

impl Api {
    pub(super) async fn sites(
        &self,
        request: &Request<'_>,
        key: &Key,
        resource: Resource<'_>,
    ) -> Result<Response, ErrorResponse> {
        let caller = caller(request, key);
        let query = Query::parse(request.query)?;
        let is_read = matches!(request.method, "GET" | "HEAD");
        if !is_read && key.role != Role::Operator {
            self.count(&self.changes, &key.owner, "changes")?;
        }
        match resource {
            Resource::Sites => {
                let (limit, owner) = (query.limit()?, query.get("owner").map(str::to_owned));
                let after = query.project("after")?.map(str::to_owned);
                let listed = self.ask(move |sites| {
                    sites.sites(&caller, owner.as_deref(), after.as_deref(), limit)
                });
                let (sites, has_more) = listed.await?;
                let last = sites
                    .last()
                    .and_then(|site| site.members["project"].as_str());
                let next = has_more.then(|| query.next("/v1/sites", "after", last.unwrap_or("")));
                let sites: Vec<_> = sites.iter().map(|site| &site.members).collect();
                Ok(object(200, &json!({ "sites": sites, "next": next })))
            }
            Resource::Audit => {
                if key.role != Role::Operator {
                    self.count(&self.reads, &key.owner, "reads of the audit log")?;
                }
                self.audit(&query, caller).await
            }
            Resource::Site(project) => self.site_call(request, caller, &parse(project)?).await,
            Resource::Domains(project) => self.domains(&query, caller, parse(project)?).await,
            Resource::Numbers(project) => self.numbers(&query, caller, parse(project)?).await,
            Resource::Domain(project, host) => {
                self.domain_call(request, caller, parse(project)?, host)
                    .await
            }
            Resource::Check(project, host) => {
                let host = Host::parse(&decode_or_keep(host));
                let (project, Ok(host)) = (parse(project)?, host) else {
                    return Err(problem(Refused::NoDomain));
                };
                let path = format!("/v1/sites/{project}/domains/{host}");
                let asked = self.ask(move |sites| sites.check_domain(&caller, &project, &host));
                Ok(Response {
                    location: Some(path.into()),
                    ..object(202, &domain(&asked.await?))
                })
            }
            Resource::Description | Resource::Trigger(_) | Resource::Status(_) => {
                Err(no_such_path())
            }
        }
    }

    async fn site_call(
        &self,
        request: &Request<'_>,
        caller: Caller,
        project: &ProjectId,
    ) -> Result<Response, ErrorResponse> {
        let id = project.clone();
        match request.method {
            "PUT" => {
                let record = content::object(request, false)?;
                let condition = condition(request, true);
                let done = self.ask(move |sites| sites.put(&caller, &id, record, &condition));
                Ok(changed(project, done.await?))
            }
            "PATCH" => {
                let patch = content::object(request, true)?;
                let condition = condition(request, true);
                let done = self.ask(move |sites| sites.patch(&caller, &id, &patch, &condition));
                Ok(changed(project, done.await?))
            }
            "DELETE" => {
                let condition = condition(request, true);
                self.ask(move |sites| sites.delete(&caller, &id, &condition))
                    .await?;
                Ok(Response::empty(204))
            }
            _ => {
                let site = self.ask(move |sites| sites.site(&caller, &id)).await?;
                let response = shown(200, &site);
                let if_match = joined(&request.if_match);
                let if_none_match = joined(&request.if_none_match);
                let conditions = Conditions {
                    if_match: if_match.as_deref(),
                    if_none_match: if_none_match.as_deref(),
                    ..Conditions::default()
                };
                match response.evaluate(&conditions) {
                    Outcome::Send => Ok(response),
                    Outcome::NotModified => Ok(response.not_modified()),
                    Outcome::Failed => Err(problem(Refused::Changed)),
                }
            }
        }
    }

    async fn domains(
        &self,
        query: &Query,
        caller: Caller,
        project: ProjectId,
    ) -> Result<Response, ErrorResponse> {
        let limit = query.limit()?;
        let first = query.skip(DOMAINS_MAX)?;
        let path = format!("/v1/sites/{project}/domains");
        let domains = self
            .ask(move |sites| sites.domains(&caller, &project))
            .await?;
        let end = first.saturating_add(limit);
        let next = (domains.len() > end).then(|| query.next(&path, "after", &end.to_string()));
        let page: Vec<Value> = domains.iter().skip(first).take(limit).map(domain).collect();
        Ok(object(200, &json!({ "domains": page, "next": next })))
    }

    async fn domain_call(
        &self,
        request: &Request<'_>,
        caller: Caller,
        project: ProjectId,
        host: &str,
    ) -> Result<Response, ErrorResponse> {
        let host = &*decode_or_keep(host);
        let host = match (Host::parse(host), request.method) {
            (Ok(host), _) => host,
            (Err(error), "PUT") => {
                let detail = format!("{host:?} is not a domain: {error}");
                return Err(error_response(422, &detail));
            }
            (Err(_), _) => return Err(problem(Refused::NoDomain)),
        };
        let condition = condition(request, false);
        match request.method {
            "PUT" => {
                let path = format!("/v1/sites/{project}/domains/{host}");
                let added =
                    self.ask(move |sites| sites.add_domain(&caller, &project, &host, &condition));
                let (added, is_new) = added.await?;
                Ok(match is_new {
                    true => Response {
                        location: Some(path.into()),
                        ..object(201, &domain(&added))
                    },
                    false => object(200, &domain(&added)),
                })
            }
            "DELETE" => {
                let removed = self
                    .ask(move |sites| sites.remove_domain(&caller, &project, &host, &condition));
                removed.await?;
                Ok(Response::empty(204))
            }
            _ => {
                let found = self.ask(move |sites| sites.domain(&caller, &project, &host));
                Ok(object(200, &domain(&found.await?)))
            }
        }
    }

    async fn audit(&self, query: &Query, caller: Caller) -> Result<Response, ErrorResponse> {
        let limit = query.limit()?;
        let filter = Filter {
            project: query.project("project")?.map(Into::into),
            owner: query.get("owner").map(Into::into),
            before: query.number("before", ENTRY_MAX)?,
            // One more, to see whether there is another page.
            limit: limit + 1,
            bytes_max: AUDIT_READ_BYTES,
            ..Filter::default()
        };
        let page = self.ask(move |sites| sites.audit(&caller, filter)).await?;
        let (mut entries, mut before) = (page.entries, page.before);
        if entries.len() > limit {
            entries.truncate(limit);
            before = entries.last().map(|entry| entry.id);
        }
        let next = before.map(|before| query.next("/v1/audit", "before", &before.to_string()));
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        Ok(object(200, &json!({ "entries": entries, "next": next })))
    }

    /// Counts a call of an owner; `what` are such calls.
    fn count(&self, calls: &Limiter, owner: &str, what: &str) -> Result<(), ErrorResponse> {
        let left = calls.call(owner, Instant::now());
        if !left.is_over {
            return Ok(());
        }
        let Rate { calls, window } = calls.rate();
        let detail = format!("more than {calls} {what} in {} s", window.as_secs());
        let response = Problem::new(429, detail).response();
        Err(Box::new(
            self.limited(retry_after(response, left.next), left),
        ))
    }

    /// Runs a call on a thread that may block, for a limited time.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&SiteAdmin) -> Result<T, Refused> + Send + 'static,
    ) -> Result<T, ErrorResponse> {
        let Ok(place) = Arc::clone(&self.waiting).try_acquire_owned() else {
            return Err(unavailable("too many calls wait for the store", 1));
        };
        let sites = Arc::clone(&self.site_admin);
        let call = move || {
            // A call that takes too long keeps its thread, so it keeps its place.
            let _place = place;
            call(&sites)
        };
        match tokio::time::timeout(QUEUE_TIMEOUT, blocking(call)).await {
            Ok(result) => result.map_err(problem),
            Err(_elapsed) => {
                let detail = "the store does not respond in time; a change may still be made, so read the site again";
                let response = Problem::new(503, detail).response();
                Err(Box::new(retry_after(response, QUEUE_TIMEOUT)))
            }
        }
    }
}

/// Returns the problem of a refused call.
fn problem(refused: Refused) -> ErrorResponse {
    let text = refused.to_string();
    match refused {
        Refused::NoSite | Refused::NoDomain => error_response(404, &text),
        Refused::Forbidden(why) => error_response(403, why),
        Refused::Invalid(mistakes) => Box::new(Problem::of_mistakes(422, mistakes).response()),
        Refused::Conflict(conflicts) => Box::new(Problem::of_mistakes(409, conflicts).response()),
        Refused::Changed | Refused::Exists => error_response(412, &text),
        Refused::Unconditional => error_response(428, &text),
        Refused::TooSoon(wait) => {
            let response = Problem::new(429, text).response();
            Box::new(retry_after(response, wait))
        }
        Refused::Store(error) => {
            log::error!(target: "sites", "a call for a site failed: {}", chain(&error));
            let detail = "the store does not work; read the site again before you repeat a change";
            let response = Problem::new(503, detail).response();
            Box::new(retry_after(response, QUEUE_TIMEOUT))
        }
    }
}

fn caller(request: &Request<'_>, key: &Key) -> Caller {
    Caller {
        role: key.role,
        owner: key.owner.clone(),
        projects: match &key.scope {
            Scope::All => None,
            Scope::Projects(projects) => Some(projects.clone()),
        },
        who: Who {
            key: Some(key.id().as_str().into()),
            client: request.client.map(|client| client.to_string().into()),
            user: None,
        },
    }
}

fn parse(project: &str) -> Result<ProjectId, ErrorResponse> {
    ProjectId::parse(project).map_err(|_invalid| no_project())
}

fn condition(request: &Request<'_>, is_required: bool) -> Condition {
    Condition {
        if_match: joined(&request.if_match),
        if_none_match: joined(&request.if_none_match),
        is_required,
    }
}

/// RFC 9110 §5.3: several lines of a list are one.
fn joined(fields: &[&[u8]]) -> Option<Vec<u8>> {
    (!fields.is_empty()).then(|| fields.join(&b", "[..]))
}

/// Returns the response to a change of a record.
fn changed(project: &ProjectId, done: Done) -> Response {
    let Some(after) = done.after else {
        return Response::empty(204);
    };
    match done.is_new {
        true => Response {
            location: Some(format!("/v1/sites/{project}").into()),
            ..shown(201, &after)
        },
        false => shown(200, &after),
    }
}

fn shown(status: u16, site: &Representation) -> Response {
    let response = Response {
        etag: Some(site.etag()),
        ..Response::new(status, JSON, site.text())
    };
    let media_type = HeaderValue::from_static("application/merge-patch+json");
    response.with(ACCEPT_PATCH, media_type)
}

pub(super) fn object(status: u16, value: &Value) -> Response {
    let mut text = serde_json::to_vec_pretty(value).expect("JSON can be written");
    text.push(b'\n');
    Response::new(status, JSON, Bytes::from(text))
}

fn domain(domain: &Domain) -> Value {
    json!({
        "host": domain.host.as_str(),
        "canonical": domain.is_canonical,
        "served": domain.is_served,
        "ownership": domain.ownership.as_ref().map(ownership),
        "certificate_problem": domain.certificate_trouble,
    })
}

fn ownership(shown: &Shown) -> Value {
    let time = |seconds: u64| Timestamp::from_millis(seconds.saturating_mul(1000)).to_string();
    let records = shown.records.iter().map(|record| {
        json!({
            "type": record.kind,
            "name": record.name,
            "value": record.value,
            "purpose": record.purpose,
        })
    });
    json!({
        "state": shown.state.as_str(),
        "since": time(shown.since),
        "in_the_way": shown.in_the_way,
        "records": records.collect::<Vec<_>>(),
        "checked_at": shown.checked_at.map(time),
        "next_check_at": shown.next_at.map(time),
    })
}

fn entry(entry: &Entry) -> Value {
    let Entry {
        id,
        at,
        who,
        what,
        project,
        owner,
        host,
        before,
        after,
    } = entry;
    json!({
        "id": id,
        "at": Timestamp::from_millis(*at).to_string(),
        "who": { "key": who.key, "client": who.client, "user": who.user },
        "what": what,
        "project": project,
        "owner": owner,
        "host": host,
        "before": before,
        "after": after,
    })
}

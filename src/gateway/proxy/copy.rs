//! Copies of responses of a site's own server: which response is kept, and when a copy is sent in
//! the place of a failed one ([`copies`]).

use std::time::Instant;

use http::{Version, header};
use pingora::ErrorType;
use pingora::http::ResponseHeader;
use pingora::prelude::{Error, Result};
use pingora::proxy::Session;

use super::{Proxy, RequestCtx, client_of, fields_of};
use crate::gateway::copies::{self, Asked, Reason};
use crate::gateway::ending::End;
use crate::gateway::file_response::{CopyReason, FileResponse};
use crate::gateway::request::{host_of, is_http2, logged};
use crate::index::Served;
use crate::site;

/// The server has responded with a status that a copy replaces.
const REPLACED: ErrorType = ErrorType::Custom("ReplacedByCopy");

// === impl Proxy ===

impl Proxy {
    /// Reads what copies need to know of a request to a site's own server.
    pub(super) fn asked(&self, session: &Session, served: &Served) -> Option<Asked> {
        let copies = self.gateway.copies.as_ref()?;
        let request = session.req_header();
        let host = site::normalise(host_of(request)?).ok()?;
        let target = request.uri.path_and_query()?.as_str().as_bytes();
        let client = client_of(session);
        let is_trusted = self.gateway.trusted.contains(client.peer);
        let how = (request.method.as_str(), client.tls);
        let fields = fields_of(&request.headers);
        copies.asked(&served.site, how, &host, target, is_trusted, fields)
    }

    /// Looks at the head of a server's response: a copy of it may be kept, or an earlier one may be
    /// needed.
    pub(super) async fn observe(
        &self,
        response: &ResponseHeader,
        ctx: &mut RequestCtx,
    ) -> Result<()> {
        let (Some(copies), Some(asked), Some(served)) =
            (&self.gateway.copies, &ctx.copy, &ctx.served)
        else {
            return Ok(());
        };
        let status = response.status.as_u16();
        if response.status.is_informational() {
            return Ok(());
        }
        if copies::is_failure(status)
            && let Some(found) = copies.find(asked, &served.site).await
        {
            ctx.found = Some(found);
            ctx.replaced = Some(status);
            if let Some(stopwatch) = &mut ctx.stopwatch {
                stopwatch.answered();
            }
            return Err(Error::explain(REPLACED, "a copy replaces the response").into_up());
        }
        let fields: Vec<_> = fields_of(&response.headers).collect();
        let has = |name| response.headers.contains_key(name);
        let is_delimited = response.version == Version::HTTP_2
            || has(header::TRANSFER_ENCODING)
            || has(header::CONTENT_LENGTH);
        ctx.collecting = copies.observe(asked, &served.site, status, is_delimited, &fields);
        Ok(())
    }

    /// Sends a copy in the place of a response that has failed, if there is one. Returns whether
    /// there is.
    pub(super) async fn send_copy(
        &self,
        session: &mut Session,
        end: End,
        ctx: &mut RequestCtx,
    ) -> bool {
        let (Some(copies), Some(asked), Some(served)) =
            (&self.gateway.copies, &ctx.copy, &ctx.served)
        else {
            return false;
        };
        let found = match ctx.found.take() {
            Some(found) => Some(found),
            None if end.is_outage() => copies.find(asked, &served.site).await,
            None => return false,
        };
        let status = ctx.replaced;
        let Some(found) = found else { return false };
        let age = found.age;
        let request = session.req_header();
        let reason = Reason { end, status };
        let response = found.response(reason, self.pseudonym(), fields_of(&request.headers));
        ctx.copy_age = Some(age);
        if FileResponse::file(&response, &logged(request)).is_some() {
            let stopwatch = ctx.stopwatch.map(|it| it.stop(Instant::now()));
            let waits = stopwatch.unwrap_or_default();
            let copy = CopyReason { end, waits, age };
            self.hand_over(session, response, Some(copy), ctx);
        } else {
            let mut sent = self.send(session, response).await;
            if is_http2(session.req_header()) {
                // As for an error response: a reset could take it away.
                sent = sent.and(session.finish_body().await);
            }
            if let Err(error) = sent {
                log::debug!(target: "gateway", "send a copy: {error}");
            }
        }
        true
    }
}

//! A connection to a server of the site, from the pool or a new one.

use std::net::{IpAddr, SocketAddr};
use std::task::Poll;
use std::time::Instant;

use pingora::protocols::ALPN;

use super::{Exchange, ExchangeEnd};
use crate::gateway::balance::HeldPlace;
use crate::gateway::direct::downstream::{Downstream, Interrupted};
use crate::gateway::direct::pool::Link;
use crate::gateway::ending::End;
use crate::gateway::upstream;

// === impl Exchange ===

impl<D: Downstream> Exchange<'_, D> {
    /// Finds a connection to a server of the site, or makes one. Returns whether it was used
    /// before.
    pub(super) async fn connect(
        &mut self,
        may_reuse: bool,
    ) -> Result<(Link, SocketAddr, bool), ExchangeEnd> {
        let Self {
            gateway,
            direct,
            plan,
            ..
        } = *self;
        let has_others = plan.group.len() > 1;
        let client = gateway.clients.network_of(plan.client.counted);
        let mut failures = 0;
        loop {
            let held = match self.held.take().or_else(|| plan.group.hold_now(client)) {
                Some(held) => held,
                None => Box::pin(self.hold(client)).await?,
            };
            let upstream = held.upstream();
            let owner = &plan.served.site.owner;
            let resolving = gateway
                .resolver
                .resolve(owner, &upstream.host, upstream.port);
            let resolved = match resolving.await {
                Ok(resolved) => resolved,
                Err(error) => {
                    let failed = self.failed(End::of_unresolved(&error), Some(&error));
                    if self.tried.leave(held, has_others) {
                        continue;
                    }
                    return Err(failed);
                }
            };
            let (site, address) = (&plan.served.site, resolved.address);
            if may_reuse && let Some(link) = direct.pool.take(site, held.server(), address) {
                direct.reused.inc();
                self.stopwatch.connected();
                self.held = Some(held);
                return Ok((link, address, true));
            }
            let (resolver, places) = (&gateway.resolver, gateway.balancer.places());
            let peer = upstream::peer(&gateway.upstream, resolver, places, upstream, &resolved);
            let error = match Box::pin(direct.connector.new_stream(&peer)).await {
                Ok(stream) if stream.selected_alpn_proto() == Some(ALPN::H2) => {
                    direct.chose_http2(upstream);
                    return Err(ExchangeEnd::Proxy);
                }
                Ok(stream) => {
                    direct.opened.inc();
                    self.stopwatch.connected();
                    self.held = Some(held);
                    return Ok((Link::new(stream), address, false));
                }
                Err(error) => error,
            };
            failures += 1;
            let failed = self.failed(End::of_upstream_error(&error, false), Some(&error));
            let may_pass = has_others || upstream::may_pass(&error);
            let is_within = failures <= gateway.upstream.retries_max;
            if !self.tried.leave(held, may_pass && is_within) {
                return Err(failed);
            }
        }
    }

    /// Waits for a place at a server of the site.
    async fn hold(&mut self, client: IpAddr) -> Result<HeldPlace, ExchangeEnd> {
        let plan = self.plan;
        // The queue has its own timeout, which is shorter.
        let late = self.gateway.upstream.queue * 2;
        let mut deadline = None;
        let holding = plan.group.hold(client, self.tried, plan.is_idempotent);
        let mut holding = std::pin::pin!(holding);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(held) = holding.as_mut().poll(cx) {
                return Poll::Ready(held.map_err(|why| ExchangeEnd::Failed(End::of_refused(why))));
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + late);
            self.downstream
                .poll_interrupted(deadline, cx)
                .map(|interrupted| match interrupted {
                    Interrupted::Gone => Err(ExchangeEnd::Cut(End::ClientClosed)),
                    Interrupted::Late => Err(ExchangeEnd::Failed(End::QueueTimeout)),
                })
        })
        .await
    }
}

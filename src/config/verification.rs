//! The settings of the proof of ownership of domains.

use std::net::{IpAddr, SocketAddr};

use super::read::{DAY_SECONDS, Section};
use crate::deploy::sites::verification::Config;
use crate::site::{Host, Service};
use crate::syntax::Value;
use crate::syntax::strict::{self, Expected, Report, boolean, number, parsed, seconds};

/// The port of name servers.
const PORT: u16 = 53;
/// The length of a token and its dot in front of the edge domain.
const TOKEN_CHARACTERS: usize = 33;

pub(super) fn read(
    section: Section<'_, '_, '_>,
    verification: &mut Config,
    service: &Service,
    report: &Report<'_>,
) {
    let Config {
        is_required,
        edge_domain,
        addresses,
        resolvers,
        check_timeout,
        retries,
        recheck,
        dangling,
        unanswered,
        quarantine,
        pause,
        parallel_max,
        parallel_owner_max,
    } = &mut *verification;
    section.set("required", is_required, boolean);
    section.set("edge_domain", edge_domain, |value| match value.is_null() {
        true => Ok(None),
        false => parsed(Host::parse)(value).map(Some),
    });
    if let Some(list) = section.list("addresses", parsed(str::parse::<IpAddr>)) {
        *addresses = list;
    }
    if let Some(list) = section.list("resolvers", resolver) {
        *resolvers = list;
    }
    let year = 365 * DAY_SECONDS;
    section.set("check_timeout_seconds", check_timeout, seconds(1..=300));
    if let Some(waits) = section.list("retry_seconds", seconds(1..=30 * DAY_SECONDS)) {
        *retries = waits;
    }
    section.set("recheck_seconds", recheck, seconds(1..=30 * DAY_SECONDS));
    section.set("dangling_seconds", dangling, seconds(1..=year));
    section.set("unanswered_seconds", unanswered, seconds(1..=year));
    section.set("quarantine_seconds", quarantine, seconds(1..=10 * year));
    section.set("check_now_seconds", pause, seconds(1..=3600));
    section.set("parallel_max", parallel_max, number(1..=1000));
    section.set("parallel_owner_max", parallel_owner_max, number(1..=1000));
    if retries.is_empty() {
        report.error(section.value(), "`verification.retry_seconds` is empty");
    }
    let edge = verification.edge(service);
    if edge.as_str().len() + TOKEN_CHARACTERS > crate::site::LENGTH_MAX {
        let message = format!(
            "`verification.edge_domain` is too long: {TOKEN_CHARACTERS} characters come in front of {edge}"
        );
        report.error(section.value(), message);
    }
}

/// Reads an address, with or without a port.
fn resolver(value: &Value) -> Result<SocketAddr, Expected> {
    let text = strict::text(value)?;
    let with_port = text.parse::<SocketAddr>();
    let without = || text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, PORT));
    with_port
        .or_else(|_no_port| without())
        .map_err(|_neither| "an address like 10.0.0.53 or 10.0.0.53:5353".into())
}

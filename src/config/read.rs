//! Reads the settings: the key, unit and range of each.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{Backup, Config, Connections, Listen, Sites, UpgradeSocket, deploying, follow};
use crate::diagnostic::Diagnostic;
use crate::gateway::clients::{ClientLimits, LimitKind};
use crate::gateway::tls::{self, MinVersion};
use crate::gateway::{Limits, UpstreamLimits, access, copies, memory, server};
use crate::numbers;
use crate::site::{FrameHost, Frames, Host, Network, PrivateHost, PrivateHosts, Scheme, Service};
use crate::syntax::strict::{
    self, Expected, Mapping, Report, boolean, number, one_of, parsed, seconds,
};
use crate::syntax::{Data, Value as Yaml};
use crate::telemetry::logging;

/// The rule of diagnostics about the configuration.
const RULE: &str = "conf";

/// The greatest value of most settings of time.
pub(super) const DAY_SECONDS: u64 = 24 * 60 * 60;

/// The mapping that a function reads.
pub(super) type Section<'s, 'v, 't> = &'s mut Mapping<'v, 't>;

/// Reads a configuration.
pub(super) fn read(file: &str, text: &str) -> Result<Config, Vec<Diagnostic>> {
    let report = Report::new(RULE, file, text);
    let mut config = Config::default();
    let documents = report.documents().unwrap_or_default();
    // A file with nothing but comments leaves every setting at its default.
    let mut documents = documents.iter().filter(|document| !document.is_null());
    if let Some(mut top) = documents.next().and_then(|d| Mapping::of(d, &report)) {
        read_top(&mut top, &mut config, &report);
        top.finish();
    }
    if let Some(second) = documents.next() {
        report.error(second, "a configuration is one document");
    }
    if report.has_errors() {
        Err(report.into_vec())
    } else {
        Ok(config)
    }
}

fn read_top(top: Section<'_, '_, '_>, config: &mut Config, report: &Report<'_>) {
    let Config {
        service,
        listen,
        store,
        edges,
        queue,
        updates,
        git,
        specifications,
        worker,
        builds,
        isolation,
        generate,
        sites,
        tls,
        acme,
        connections,
        clients,
        memory,
        upstream,
        copies,
        private_hosts,
        access_log,
        log,
        admin,
        numbers,
        backup,
        verification,
        server,
    } = config;
    within(top, "service", |section| read_service(section, service));
    within(top, "listen", |section| read_listen(section, listen));
    within(top, "store", |section| {
        follow::read_store(section, store, report);
    });
    within(top, "edges", |section| {
        follow::read_edges(section, edges, report);
    });
    within(top, "queue", |section| {
        deploying::read_queue(section, queue, updates, report);
    });
    within(top, "git", |section| deploying::read_git(section, git));
    within(top, "specifications", |section| {
        deploying::read_specifications(section, specifications);
    });
    within(top, "worker", |section| {
        deploying::read_worker(section, worker, builds, isolation);
    });
    within(top, "generate", |section| {
        deploying::read_generate(section, generate, report);
    });
    read_sites(top, sites);
    within(top, "tls", |section| {
        read_tls(section, tls, listen, service, report);
    });
    within(top, "acme", |section| {
        super::acme::read(section, acme, listen, report);
    });
    if store.is_edge() && acme.is_on() {
        let why = "`acme.authorities` and `store.follow.url` exclude each other: the node that an \
                   edge follows orders, and gives the certificates to edges with \
                   `store.follow.key_file`";
        report.add(Diagnostic::error(RULE, report.file(), why));
    }
    within(top, "connections", |section| {
        read_connections(section, connections)
    });
    within(top, "clients", |section| read_clients(section, clients));
    within(top, "memory", |section| {
        read_memory(section, memory, report)
    });
    within(top, "upstream", |section| {
        read_upstream(section, upstream, private_hosts);
        within(section, "copies", |section| {
            read_copies(section, copies, report)
        });
    });
    top.set("access_log", access_log, access_target);
    within(top, "log", |section| read_log(section, log));
    within(top, "admin", |section| {
        deploying::read_admin(section, admin)
    });
    within(top, "numbers", |section| read_numbers(section, numbers));
    within(top, "backup", |section| read_backup(section, backup));
    within(top, "verification", |section| {
        super::verification::read(section, verification, service, report);
    });
    service.edge.clone_from(&verification.edge_domain);
    read_server(top, server, report);
}

fn read_numbers(section: Section<'_, '_, '_>, numbers: &mut numbers::Config) {
    let numbers::Config { enabled, keep_days } = numbers;
    section.set("enabled", enabled, boolean);
    section.set("keep_days", keep_days, number(1..=3650));
}

fn read_backup(section: Section<'_, '_, '_>, backup: &mut Backup) {
    let Backup { key_file, keep } = backup;
    section.set("key_file", key_file, |value| path(value).map(Some));
    section.set("keep", keep, number(0..=100_000));
}

fn read_service(section: Section<'_, '_, '_>, service: &mut Service) {
    let Service {
        name,
        domain,
        api_host,
        // It is `verification.edge_domain`.
        edge: _,
        scheme,
        port,
        frames,
    } = service;
    section.set("name", name, service_name);
    section.set("domain", domain, parsed(Host::parse));
    section.set("api_host", api_host, parsed(Host::parse));
    let schemes = [("https", Scheme::Https), ("http", Scheme::Http)];
    section.set("scheme", scheme, one_of(&schemes));
    section.set("port", port, number(0..=u16::MAX));
    if let Some(hosts) = section.list("frame_hosts", parsed(FrameHost::parse)) {
        *frames = Frames::new(hosts);
    }
}

fn read_listen(section: Section<'_, '_, '_>, listen: &mut Listen) {
    let Listen {
        http,
        https,
        operator,
        operator_token,
        operator_hosts,
        upgrade_socket,
    } = listen;
    let address = parsed(str::parse);
    if let Some(addresses) = section.list("http", &address) {
        *http = addresses;
    }
    if let Some(addresses) = section.list("https", &address) {
        *https = addresses;
    }
    section.set("operator", operator, address_or_off);
    section.set("operator_token", operator_token, |value| {
        path(value).map(Some)
    });
    if let Some(hosts) = section.list("operator_hosts", parsed(Host::parse)) {
        *operator_hosts = hosts.iter().map(ToString::to_string).collect();
    }
    section.set("upgrade_socket", upgrade_socket, |value| {
        match value.flag() {
            Some(false) => Ok(UpgradeSocket::Off),
            _ => path(value).map(UpgradeSocket::At),
        }
    });
}

/// Reads the address of the operator's listener; `false` turns the listener off.
pub(super) fn address_or_off(value: &Yaml) -> Result<Option<SocketAddr>, Expected> {
    if value.flag() == Some(false) {
        return Ok(None);
    }
    parsed(str::parse)(value).map(Some)
}

/// Reads the size of the audit log. A smaller one would not have room for one change.
pub(super) fn audit_bytes(value: &Yaml) -> Result<u64, Expected> {
    match number(0..=1_u64 << 50)(value)? {
        1..0x10_0000 => Err("0, or at least 1048576".into()),
        bytes => Ok(bytes),
    }
}

fn read_sites(top: Section<'_, '_, '_>, sites: &mut Sites) {
    let Sites {
        path: place,
        rescan,
    } = sites;
    top.set("sites", place, path);
    top.set("rescan_seconds", rescan, seconds(1..=DAY_SECONDS));
}

fn read_tls(
    section: Section<'_, '_, '_>,
    tls: &mut tls::Config,
    listen: &Listen,
    service: &Service,
    report: &Report<'_>,
) {
    let tls::Config {
        directory,
        default,
        redirect,
        hsts,
        min_version,
        cipher_suites,
        groups,
    } = &mut *tls;
    section.set("directory", directory, |value| path(value).map(Some));
    section.set("default", default, |value| {
        parsed(Host::parse)(value).map(Some)
    });
    section.set("redirect", redirect, |value| match value.is_null() {
        true => Ok(None),
        false => boolean(value).map(Some),
    });
    section.set("hsts_seconds", hsts, seconds(0..=2 * 365 * DAY_SECONDS));
    section.set("min_version", min_version, one_of(&MinVersion::NAMES));
    if let Some(list) = section.list("cipher_suites", |value| {
        tls::Config::cipher_suite(&strict::text(value)?)
    }) {
        *cipher_suites = list;
    }
    if let Some(list) = section.list("groups", |value| tls::Config::group(&strict::text(value)?)) {
        *groups = list;
    }
    let (redirect, hsts) = (tls.redirect == Some(true), &tls.hsts);
    if let Some(why) = tls.contradiction() {
        report.error(section.value(), why);
    }
    if (redirect || !hsts.is_zero()) && listen.https.is_empty() {
        let why = "`tls.redirect` and `tls.hsts_seconds` need an address in `listen.https`";
        report.error(section.value(), why);
    }
    if redirect && service.scheme != Scheme::Https {
        let why = "`tls.redirect` needs `service.scheme: https`";
        report.error(section.value(), why);
    }
}

fn read_connections(section: Section<'_, '_, '_>, connections: &mut Connections) {
    let Connections {
        limits,
        fast_path,
        page_cache_bytes,
        trusted_peers,
        proxy_protocol,
    } = connections;
    let Limits {
        head,
        idle,
        write,
        write_rate_min,
        body,
        body_rate_min,
        head_bytes_max,
        target_bytes_max,
        fields_max,
        connections_max,
        requests_per_connection_max,
        streams_max,
        stream_heads_bytes_max,
        stream_faults_max,
        drain,
        drain_delay,
        drain_idle,
        upgrade,
    } = limits;
    let wait = || seconds(1..=DAY_SECONDS);
    section.set("fast_path", fast_path, boolean);
    section.set("page_cache_bytes", page_cache_bytes, number(0..=1 << 40));
    if let Some(networks) = section.list("trusted_peers", parsed(str::parse::<Network>)) {
        *trusted_peers = networks;
    }
    if let Some(networks) = section.list("proxy_protocol", parsed(str::parse::<Network>)) {
        *proxy_protocol = networks;
    }
    section.set("head_seconds", head, wait());
    section.set("idle_seconds", idle, wait());
    section.set("write_seconds", write, wait());
    section.set("write_rate_min", write_rate_min, number(0..=1 << 30));
    section.set("body_seconds", body, wait());
    section.set("body_rate_min", body_rate_min, number(0..=1 << 30));
    section.set("head_bytes_max", head_bytes_max, number(1024..=1 << 20));
    section.set("target_bytes_max", target_bytes_max, number(256..=1 << 20));
    // 256 is the size of pingora's arrays.
    section.set("fields_max", fields_max, number(10..=256));
    section.set("connections_max", connections_max, number(1..=10_000_000));
    let requests_max = number(0..=u32::MAX);
    section.set(
        "requests_per_connection_max",
        requests_per_connection_max,
        requests_max,
    );
    section.set("streams_max", streams_max, number(1..=10_000));
    section.set(
        "stream_heads_bytes_max",
        stream_heads_bytes_max,
        number(1024..=1 << 30),
    );
    section.set(
        "stream_faults_max",
        stream_faults_max,
        number(1..=1_000_000),
    );
    section.set("drain_seconds", drain, wait());
    section.set("drain_delay_seconds", drain_delay, seconds(0..=3600));
    section.set("drain_idle_seconds", drain_idle, seconds(0..=3600));
    section.set("upgrade_seconds", upgrade, wait());
}

fn read_clients(section: Section<'_, '_, '_>, clients: &mut ClientLimits) {
    let ClientLimits {
        ipv6_prefix,
        connections_max,
        handshakes_per_second,
        requests_per_second,
        bytes_per_second,
        mcp_requests_per_second,
        mcp_site_requests_per_second,
        votes_per_day,
        burst,
        addresses_max,
        dry_run,
    } = clients;
    section.set("ipv6_prefix", ipv6_prefix, number(16..=128));
    section.set("connections_max", connections_max, number(0..=10_000_000));
    let rate = || number(0..=1_000_000);
    section.set("handshakes_per_second", handshakes_per_second, rate());
    section.set("requests_per_second", requests_per_second, rate());
    section.set("bytes_per_second", bytes_per_second, number(0..=1 << 40));
    section.set("mcp_requests_per_second", mcp_requests_per_second, rate());
    section.set(
        "mcp_site_requests_per_second",
        mcp_site_requests_per_second,
        rate(),
    );
    section.set("votes_per_day", votes_per_day, rate());
    section.set("burst_seconds", burst, seconds(1..=3600));
    section.set("addresses_max", addresses_max, number(1000..=100_000_000));
    let kinds = LimitKind::ALL.map(|kind| (kind.as_str(), kind));
    if let Some(kinds) = section.list("dry_run", one_of(&kinds)) {
        *dry_run = kinds;
    }
}

fn read_memory(section: Section<'_, '_, '_>, memory: &mut memory::Config, report: &Report<'_>) {
    let memory::Config {
        bytes_max,
        cgroup,
        no_keep_alive_percent,
        refuse_percent,
    } = memory;
    section.set("bytes_max", bytes_max, number(0..=1 << 50));
    section.set("cgroup", cgroup, |value| path(value).map(Some));
    let percent = || number(10..=100);
    section.set("no_keep_alive_percent", no_keep_alive_percent, percent());
    section.set("refuse_percent", refuse_percent, percent());
    if no_keep_alive_percent > refuse_percent {
        let why = "`memory.no_keep_alive_percent` is greater than `memory.refuse_percent`";
        report.error(section.value(), why);
    }
}

fn read_upstream(
    section: Section<'_, '_, '_>,
    upstream: &mut UpstreamLimits,
    private_hosts: &mut PrivateHosts,
) {
    let UpstreamLimits {
        connect,
        read,
        write,
        idle,
        upgraded,
        retries_max,
        retry_percent,
        eject_failures,
        eject,
        eject_max,
        slow_start,
        requests_max,
        queue_max,
        queue,
        create_trace_context,
        create_request_id,
    } = upstream;
    section.set("create_trace_context", create_trace_context, boolean);
    section.set("create_request_id", create_request_id, boolean);
    let wait = || seconds(1..=DAY_SECONDS);
    section.set("connect_seconds", connect, wait());
    section.set("read_seconds", read, wait());
    section.set("write_seconds", write, wait());
    section.set("idle_seconds", idle, wait());
    section.set("upgraded_seconds", upgraded, wait());
    section.set("retries_max", retries_max, number(0..=16));
    section.set("retry_percent", retry_percent, number(0..=100));
    section.set("eject_failures", eject_failures, number(0..=1_000_000));
    section.set("eject_seconds", eject, wait());
    section.set("eject_seconds_max", eject_max, wait());
    section.set("slow_start_seconds", slow_start, seconds(0..=DAY_SECONDS));
    section.set("requests_max", requests_max, number(1..=1_000_000));
    section.set("queue_max", queue_max, number(0..=1_000_000));
    section.set("queue_seconds", queue, wait());
    if let Some(entries) = section.list("private_hosts", parsed(str::parse::<PrivateHost>)) {
        *private_hosts = entries.into_iter().collect();
    }
}

fn read_copies(section: Section<'_, '_, '_>, copies: &mut copies::Config, report: &Report<'_>) {
    let copies::Config {
        directory,
        site_bytes_max,
        total_bytes_max,
        response_bytes_max,
        stale,
        free_bytes_min,
        request_fields,
    } = copies;
    section.set("directory", directory, |value| path(value).map(Some));
    let bytes = || number(1 << 20..=1 << 50);
    section.set("site_bytes_max", site_bytes_max, bytes());
    section.set("total_bytes_max", total_bytes_max, bytes());
    section.set(
        "response_bytes_max",
        response_bytes_max,
        number(1..=32 << 20),
    );
    section.set("stale_seconds_max", stale, seconds(0..=365 * DAY_SECONDS));
    section.set("free_bytes_min", free_bytes_min, number(0..=1 << 50));
    if let Some(names) = section.list("request_fields", field_name) {
        *request_fields = names;
    }
    if site_bytes_max > total_bytes_max {
        let why = "`upstream.copies.site_bytes_max` is greater than `total_bytes_max`";
        report.error(section.value(), why);
    }
}

fn read_log(section: Section<'_, '_, '_>, log: &mut logging::Config) {
    let logging::Config {
        format,
        filter,
        file,
        repeats: logging::Limit { lines, interval },
    } = log;
    let formats = [
        ("text", logging::Format::Text),
        ("json", logging::Format::Json),
    ];
    section.set("format", format, one_of(&formats));
    section.set("filter", filter, log_filter);
    section.set("file", file, |value| path(value).map(Some));
    section.set("repeats_max", lines, number(0..=1_000_000));
    section.set("repeats_seconds", interval, seconds(1..=DAY_SECONDS));
}

/// Reads the settings of pingora; pingora checks them.
fn read_server(top: Section<'_, '_, '_>, server: &mut Map<String, Value>, report: &Report<'_>) {
    let Some(value) = top.take("server") else {
        return;
    };
    match json(value) {
        Ok(Value::Object(written)) => {
            for error in server::server_conf(&written).err().into_iter().flatten() {
                report.error(value, error.to_string());
            }
            *server = written;
        }
        Ok(_) => report.error(value, "`server` is not a mapping"),
        Err(wanted) => report.error(value, format!("`server` has a value that is not {wanted}")),
    }
}

/// Reads the mapping under a key and reports its unknown keys.
pub(super) fn within<'v, 't>(
    above: &mut Mapping<'v, 't>,
    key: &'static str,
    read: impl FnOnce(&mut Mapping<'v, 't>),
) {
    if let Some(mut section) = above.section(key) {
        read(&mut section);
        section.finish();
    }
}

/// Reads the name of a header field.
fn field_name(value: &Yaml) -> Result<Box<str>, Expected> {
    let text = strict::text(value)?;
    match http::HeaderName::from_bytes(text.as_bytes()) {
        Ok(_) => Ok(text),
        Err(_) => Err("the name of a header field".into()),
    }
}

/// Reads a path.
pub(super) fn path(value: &Yaml) -> Result<PathBuf, Expected> {
    let text = strict::text(value)?;
    if text.is_empty() || text.contains('\0') {
        return Err("a path".into());
    }
    Ok(PathBuf::from(&*text))
}

/// Reads the name that admin keys (`{name}_…`) and directories (`.{name}/skills`) contain.
fn service_name(value: &Yaml) -> Result<Box<str>, Expected> {
    let text = strict::text(value)?;
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if (1..=32).contains(&text.len()) && text.bytes().all(plain) {
        Ok(text)
    } else {
        Err("1 to 32 lower-case letters, digits and hyphens".into())
    }
}

/// Reads `off`, `stdout` or the path of a file.
fn access_target(value: &Yaml) -> Result<access::Target, Expected> {
    let wanted = "`off`, `stdout` or { file: PATH }";
    // In YAML 1.1, `off` means `false`, so `false` also means `off` here.
    if value.flag() == Some(false) {
        return Ok(access::Target::Off);
    }
    match value.text() {
        Some("off") => return Ok(access::Target::Off),
        Some("stdout") => return Ok(access::Target::Stdout),
        _ => {}
    }
    let file = match value.members() {
        [member] if &*member.key == "file" => Some(&member.value),
        _ => None,
    };
    file.and_then(|file| path(file).ok())
        .map(access::Target::File)
        .ok_or_else(|| wanted.into())
}

/// Reads a level or directives such as `info,pingora=warn`.
fn log_filter(value: &Yaml) -> Result<String, Expected> {
    let text = strict::text(value)?;
    let is_directive = |directive: &str| {
        let (_, level) = directive.rsplit_once('=').unwrap_or(("", directive));
        level.trim().parse::<log::LevelFilter>().is_ok()
    };
    if text.split(',').all(is_directive) {
        Ok(text.into())
    } else {
        Err("a level (error, warn, info, debug, trace, off) or TARGET=LEVEL, with commas".into())
    }
}

fn json(value: &Yaml) -> Result<Value, Expected> {
    match &value.data {
        Data::Null => Ok(Value::Null),
        Data::Flag(flag) => Ok((*flag).into()),
        Data::Number(text) => match (value.integer(), text.parse::<f64>()) {
            (Some(number), _) => Ok(number.into()),
            (None, Ok(number)) => Ok(number.into()),
            (None, Err(_)) => Err("a number".into()),
        },
        Data::Text(text) => Ok((&**text).into()),
        Data::List(items) => items.iter().map(json).collect(),
        Data::Map(members) => members
            .iter()
            .map(|member| Ok((member.key.to_string(), json(&member.value)?)))
            .collect(),
        Data::Unresolved => Err("plain YAML".into()),
    }
}

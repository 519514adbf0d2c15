//! One site record: a YAML document becomes a [`Site`].
//!
//! A file may contain many records; a platform may write a million of them into one file. So a
//! file is first split at its document markers, which needs no parser, and each document is read
//! on its own. A mistake stays in its record, records can be read in parallel, and the tree of a
//! whole file is never in memory.
//!
//! Source: YAML 1.2.2 §9.1.2: a line that begins with `---` or `...` and white space ends a
//! document wherever it is, also inside quotes and blocks.

use std::net::IpAddr;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::site::{
    self, BasePath, Check, HSTS_SECONDS_MAX, Host, HostHeader, Hsts, KeptIn, Origin, PrivateHosts,
    ProjectId, Repository, Scheme, Server, Service, Site, Upstream, UpstreamHttp, Visibility,
};
use crate::store::{OwnershipState, SiteRecord};
use crate::syntax::strict::{self, Expected, Mapping, Report};
use crate::syntax::{Data, Member, Span, Value};

/// The rule of diagnostics about site records.
pub(super) const RULE: &str = "site";

/// The longest record, in bytes.
const RECORD_BYTES_MAX: usize = 64 << 10;
/// RFC 1034 §3.1: the longest label.
const LABEL_LENGTH_MAX: usize = 63;
/// The most servers of one site, beside the first.
const OTHERS_MAX: usize = 15;
/// The largest weight of a server.
const WEIGHT_MAX: u16 = 1000;
/// The most requests that a record may allow each server at once.
const REQUESTS_MAX: u32 = 1_000_000;
/// The longest path of a check, in bytes.
const CHECK_BYTES_MAX: usize = 1024;
/// The longest time between two checks of a server, and the longest time for one.
const CHECK_SECONDS_MAX: u64 = 3600;
/// The most checks in a row that decide about a server.
const CHECK_THRESHOLD_MAX: u32 = 100;
/// The most domains of one site.
const DOMAINS_MAX: usize = 1000;

/// A part of a file that is one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Document<'t> {
    /// How many lines of the file are before it.
    pub(super) lines_before: u32,
    pub(super) text: &'t str,
}

/// The result of reading a document.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It has only comments.
    Empty,
    Site(Record),
    /// It is not valid; with its project, if that could be read.
    Broken(Option<ProjectId>),
}

/// Whether the domains of a record in the store are served only if their ownership is proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// All domains are served.
    #[default]
    NotRequired,
    /// A domain without proof is left out.
    Required,
}

/// A site, and the places of its names.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) site: Arc<Site>,
    pub(super) places: Places,
}

/// Line and column of the names that another record may have.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) project: (u32, u32),
    pub(super) subdomain: (u32, u32),
    pub(super) domains: Box<[(u32, u32)]>,
}

/// Splits a file into its documents.
pub(super) fn documents(text: &str) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let mut start = 0;
    let mut lines_before = 0;
    let mut has_content = false;
    let mut at = 0;
    for (line_number, line) in (0..).zip(text.split_inclusive('\n')) {
        let begins = is_marker(line, "---");
        if begins && has_content {
            documents.push(Document {
                lines_before,
                text: &text[start..at],
            });
            (start, lines_before, has_content) = (at, line_number, false);
        }
        // Comments and directives belong to the next document.
        has_content |= begins
            || !matches!(
                line.trim_start().as_bytes().first(),
                None | Some(b'#' | b'%')
            );
        at += line.len();
    }
    documents.push(Document {
        lines_before,
        text: &text[start..],
    });
    documents
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

/// Reads a document.
pub(super) fn read(
    file: &str,
    document: Document<'_>,
    service: &Service,
    private_hosts: &PrivateHosts,
) -> (Outcome, Vec<Diagnostic>) {
    let report = Report::after_lines(RULE, file, document.text, document.lines_before);
    let outcome = read_into(&report, document, service, private_hosts);
    (outcome, report.into_vec())
}

fn read_into(
    report: &Report<'_>,
    document: Document<'_>,
    service: &Service,
    private_hosts: &PrivateHosts,
) -> Outcome {
    if document.text.len() > RECORD_BYTES_MAX {
        let message = format!("a record has at most {RECORD_BYTES_MAX} bytes");
        let diagnostic = Diagnostic::error(RULE, report.file(), message);
        report.add(diagnostic.at(document.lines_before + 1, 1, 0));
        return Outcome::Broken(None);
    }
    let Some(values) = report.documents() else {
        return Outcome::Broken(None);
    };
    let mut values = values.iter().filter(|value| !value.is_null());
    let Some(value) = values.next() else {
        return Outcome::Empty;
    };
    // After `...` another document may begin without `---`. It is rejected, because the split
    // above has not seen it.
    if let Some(second) = values.next() {
        report.error(second, "a record begins with a line `---`");
    }
    read_value(value, report, service, private_hosts)
}

fn read_value(
    value: &Value,
    report: &Report<'_>,
    service: &Service,
    private_hosts: &PrivateHosts,
) -> Outcome {
    let Some(mut record) = Mapping::of(value, report) else {
        return Outcome::Broken(None);
    };
    let project = record.require("project", strict::parsed(ProjectId::parse));
    let site = read_site(&mut record, project.clone(), service, private_hosts, report);
    record.finish();
    match site {
        Some(record) if !report.has_errors() => Outcome::Site(record),
        _ => Outcome::Broken(project),
    }
}

/// Reads a record that the store keeps, by the rules of records in files. `name` is what the
/// diagnostics call it.
pub(super) fn read_stored(
    name: &str,
    stored: &SiteRecord,
    service: &Service,
    private_hosts: &PrivateHosts,
    ownership: Proof,
) -> (Outcome, Vec<Diagnostic>) {
    let mut members = serde_json::Map::new();
    members.insert("project".to_owned(), stored.project.as_str().into());
    members.extend(stored.record.clone());
    let value = value_of(&serde_json::Value::Object(members));
    // The values have no places: the client that wrote them sent another text.
    let report = Report::new(RULE, name, "");
    let outcome = read_value(&value, &report, service, private_hosts);
    let outcome = match outcome {
        Outcome::Site(record) => {
            let mut site = Arc::unwrap_or_clone(record.site);
            site.kept_in = KeptIn::Api;
            if ownership == Proof::Required {
                site.domains.retain(|host| stored.serves(host));
                let leads_elsewhere = |host: &&Host| {
                    stored
                        .ownership_of(host)
                        .is_some_and(|state| state != OwnershipState::Active)
                };
                let not_ordered = site.domains.iter().filter(leads_elsewhere);
                site.not_ordered = not_ordered.cloned().collect();
            }
            Outcome::Site(Record {
                site: Arc::new(site),
                ..record
            })
        }
        outcome => outcome,
    };
    (outcome, report.into_vec())
}

/// Converts a value of JSON.
fn value_of(json: &serde_json::Value) -> Value {
    let data = match json {
        serde_json::Value::Null => Data::Null,
        serde_json::Value::Bool(flag) => Data::Flag(*flag),
        serde_json::Value::Number(number) => Data::Number(number.to_string().into()),
        serde_json::Value::String(text) => Data::Text(text.as_str().into()),
        serde_json::Value::Array(items) => Data::List(items.iter().map(value_of).collect()),
        serde_json::Value::Object(members) => Data::Map(
            members
                .iter()
                .map(|(key, value)| Member {
                    key: key.as_str().into(),
                    span: Span::default(),
                    value: value_of(value),
                })
                .collect(),
        ),
    };
    Value {
        span: Span::default(),
        data,
    }
}

fn read_site(
    record: &mut Mapping<'_, '_>,
    project: Option<ProjectId>,
    service: &Service,
    private_hosts: &PrivateHosts,
    report: &Report<'_>,
) -> Option<Record> {
    let owner = record.get("owner", name);
    let subdomain = record.require("subdomain", |value| subdomain(value, service));
    let domains = record.list("domains", |value| {
        domain(value, service).map(|host| (host, report.place(value)))
    });
    let mut base_path = BasePath::default();
    record.set("base_path", &mut base_path, strict::parsed(BasePath::parse));
    let mut visibility = Visibility::Public;
    let visibilities = [
        ("public", Visibility::Public),
        ("private", Visibility::Private),
    ];
    record.set("visibility", &mut visibility, strict::one_of(&visibilities));
    let repository = record.section("repository").map(read_repository);
    let mut lenient = false;
    record.set("lenient", &mut lenient, strict::boolean);
    let mut allow_empty = false;
    record.set("allow_empty", &mut allow_empty, strict::boolean);
    let origin = read_origin(record, private_hosts, report);
    // At the customer's own server, `/mcp` may be the customer's.
    let mut mcp = origin == Some(Origin::Embedded);
    record.set("mcp", &mut mcp, strict::boolean);
    let mut numbers = true;
    record.set("numbers", &mut numbers, strict::boolean);
    let hsts = record
        .section("hsts")
        .and_then(|section| read_hsts(section, report));

    let (domains, domain_places): (Vec<_>, Vec<_>) =
        domains.unwrap_or_default().into_iter().unzip();
    if domains.len() > DOMAINS_MAX {
        let message = format!("a site has at most {DOMAINS_MAX} domains");
        report.error(record.value(), message);
    }
    for (nth, domain) in domains.iter().enumerate() {
        if domains[..nth].contains(domain) {
            let (line, column) = domain_places[nth];
            let message = format!("{domain} is listed twice");
            report.add(Diagnostic::error(RULE, report.file(), message).at(line, column, 0));
        }
    }
    let (project, subdomain) = (project?, subdomain?);
    if visibility == Visibility::Private && origin == Some(Origin::Embedded) {
        // The embedded origin cannot authenticate readers, so it shows a private site to nobody.
        let message = "a private site with the embedded origin responds with 404 to every request";
        report.warning(record.value(), message);
    }
    let places = Places {
        project: record.place_of("project"),
        subdomain: record.place_of("subdomain"),
        domains: domain_places.into(),
    };
    let site = Site {
        owner: owner.unwrap_or_else(|| project.as_str().into()),
        project,
        subdomain,
        domains,
        base_path,
        visibility,
        repository: repository.flatten(),
        lenient,
        allow_empty,
        origin: origin?,
        mcp,
        numbers,
        hsts,
        kept_in: KeptIn::File(report.file().into()),
        not_ordered: Box::default(),
    };
    Some(Record {
        site: Arc::new(site),
        places,
    })
}

fn read_hsts(mut section: Mapping<'_, '_>, report: &Report<'_>) -> Option<Hsts> {
    let seconds = section.require("seconds", strict::number(0..=HSTS_SECONDS_MAX));
    let (mut subdomains, mut preload) = (false, false);
    section.set("subdomains", &mut subdomains, strict::boolean);
    section.set("preload", &mut preload, strict::boolean);
    let hsts = Hsts {
        seconds: seconds?,
        subdomains,
        preload,
    };
    if let Some(why) = hsts.contradiction() {
        report.error(section.value(), format!("`hsts`: {why}"));
    }
    section.finish();
    Some(hsts)
}

fn read_repository(mut section: Mapping<'_, '_>) -> Option<Repository> {
    let url = section.require("url", |value| git_word(value, "a URL"));
    let mut branch = "main".into();
    section.set("branch", &mut branch, |value| git_word(value, "a branch"));
    let mut directory = "".into();
    section.set("directory", &mut directory, directory_in_repository);
    section.finish();
    Some(Repository {
        url: url?,
        branch,
        directory,
    })
}

/// Reads `embedded`, which is the default, or an upstream; `None` after a mistake.
fn read_origin(
    record: &mut Mapping<'_, '_>,
    private_hosts: &PrivateHosts,
    report: &Report<'_>,
) -> Option<Origin> {
    let Some(value) = record.take("origin") else {
        return Some(Origin::Embedded);
    };
    if value.text() == Some("embedded") {
        return Some(Origin::Embedded);
    }
    if !value.is_map() {
        report.error(
            value,
            "`origin` is neither `embedded` nor a mapping with a `url`",
        );
        return None;
    }
    let mut section = record.section("origin")?;
    let server = section.require(
        "url",
        strict::parsed(|text| parse_upstream(text, private_hosts)),
    );
    let mut http = UpstreamHttp::OneOrTwo;
    section.set("http", &mut http, upstream_http);
    let mut host_header = HostHeader::Preserve;
    let headers = [
        ("preserve", HostHeader::Preserve),
        ("upstream", HostHeader::Upstream),
    ];
    section.set("host", &mut host_header, strict::one_of(&headers));
    let mut weight = 1;
    section.set("weight", &mut weight, strict::number(1..=WEIGHT_MAX));
    let mut requests_max = None;
    section.set("requests_max", &mut requests_max, |value| {
        strict::number(1..=REQUESTS_MAX)(value).map(Some)
    });
    let mut copies = true;
    section.set("copies", &mut copies, strict::boolean);
    let check = section.section("check").and_then(read_check);
    let others = section.take("others");
    let others = others.map(|list| read_others(list, private_hosts, report));
    section.finish();
    let (scheme, host, port) = server?;
    Some(Origin::Upstream(Upstream {
        scheme,
        host,
        port,
        http,
        host_header,
        weight,
        others: others.unwrap_or_default(),
        requests_max,
        copies,
        check: check.map(Box::new),
    }))
}

/// Reads how servers are asked whether they work; `None` after a mistake.
fn read_check(mut section: Mapping<'_, '_>) -> Option<Check> {
    let path = section.require("path", strict::parsed(check_path));
    let mut check = Check::new(path.clone().unwrap_or_default());
    let Check {
        path: _,
        interval,
        timeout,
        status,
        healthy_threshold,
        unhealthy_threshold,
    } = &mut check;
    let wait = || strict::seconds(1..=CHECK_SECONDS_MAX);
    section.set("interval_seconds", interval, wait());
    section.set("timeout_seconds", timeout, wait());
    section.set("status", status, |value| {
        strict::number(200..=599)(value).map(Some)
    });
    let threshold = || strict::number(1..=CHECK_THRESHOLD_MAX);
    section.set("healthy_threshold", healthy_threshold, threshold());
    section.set("unhealthy_threshold", unhealthy_threshold, threshold());
    section.finish();
    path.map(|_| check)
}

/// Reads the path of a check, which may have a query.
fn check_path(text: &str) -> Result<Box<str>, String> {
    if !text.starts_with('/') || text.contains('#') {
        return Err("a path begins with `/` and has no fragment".into());
    }
    if text.len() > CHECK_BYTES_MAX {
        return Err(format!("a path has at most {CHECK_BYTES_MAX} bytes"));
    }
    let parsed: Result<http::uri::PathAndQuery, _> = text.parse();
    parsed
        .map(|_| text.into())
        .map_err(|error| format!("{error}"))
}

/// Reads the other servers of a site. Mistakes are reported.
fn read_others(list: &Value, private_hosts: &PrivateHosts, report: &Report<'_>) -> Box<[Server]> {
    let Some(items) = list.list() else {
        report.error(list, "`origin.others` is not a list");
        return Box::default();
    };
    if items.len() > OTHERS_MAX {
        let message = format!("an origin has at most {OTHERS_MAX} other servers");
        report.error(list, message);
    }
    let server = |item: &Value| {
        if !item.is_map() {
            report.error(item, "each of `origin.others` is a mapping with a `url`");
            return None;
        }
        let mut section = Mapping::of(item, report)?;
        let url = section.require(
            "url",
            strict::parsed(|text| parse_upstream(text, private_hosts)),
        );
        let mut weight = 1;
        section.set("weight", &mut weight, strict::number(1..=WEIGHT_MAX));
        let mut is_backup = false;
        section.set("backup", &mut is_backup, strict::boolean);
        section.finish();
        let (scheme, host, port) = url?;
        Some(Server {
            scheme,
            host,
            port,
            weight,
            is_backup,
        })
    };
    items.iter().filter_map(server).collect()
}

/// Reads `https://name` or `http://name:port`. An upstream has no path, because the path of the
/// request is forwarded unchanged.
fn parse_upstream(
    text: &str,
    private_hosts: &PrivateHosts,
) -> Result<(Scheme, Box<str>, u16), String> {
    let uri: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err("it begins with neither `http://` nor `https://`".into()),
    };
    let authority = uri.authority().ok_or("it names no host")?;
    if authority.as_str().contains('@') {
        return Err("credentials do not belong in a record".into());
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err("an upstream has no path and no query".into());
    }
    // A URI may have a number that is no port.
    let text = authority.as_str().strip_prefix(authority.host());
    let port = match text.and_then(|text| text.strip_prefix(':')) {
        Some(text) => text.parse().unwrap_or(0),
        None => scheme.default_port(),
    };
    // RFC 3986 §3.2.2: only an IPv6 address is in brackets.
    let host = authority
        .host()
        .trim_matches(['[', ']'])
        .to_ascii_lowercase();
    if port == 0 {
        return Err("its port is not a number from 1 to 65535".into());
    }
    match host.parse::<IpAddr>() {
        Ok(address) if !private_hosts.allow(&host, address) => {
            return Err(format!(
                "{address} is not a public address, and `upstream.private_hosts` does not list it"
            ));
        }
        Ok(_) => {}
        Err(_) => {
            Host::parse(&host).map_err(|error| error.to_string())?;
        }
    }
    Ok((scheme, host.into(), port))
}

/// Reads `"1.1"`, `"2"` (also without quotes) or `auto`.
fn upstream_http(value: &Value) -> Result<UpstreamHttp, Expected> {
    match value.scalar() {
        Some("auto") => Ok(UpstreamHttp::OneOrTwo),
        Some("1.1") => Ok(UpstreamHttp::One),
        Some("2") => Ok(UpstreamHttp::Two),
        _ => Err("`auto`, \"1.1\" or \"2\"".into()),
    }
}

fn name(value: &Value) -> Result<Box<str>, Expected> {
    let text = strict::text(value)?;
    let plain = !text.is_empty() && text.len() <= 256 && !text.contains(char::is_control);
    if plain {
        Ok(text)
    } else {
        Err("1 to 256 printable characters".into())
    }
}

/// Reads the first label of a default subdomain.
fn subdomain(value: &Value, service: &Service) -> Result<Box<str>, Expected> {
    let text = strict::text(value)?.to_ascii_lowercase();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    // RFC 952, RFC 1123 §2.1: what browsers and certificate authorities take.
    let is_label = (1..=LABEL_LENGTH_MAX).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if !is_label {
        return Err("a label: letters, digits and, inside, hyphens; at most 63".into());
    }
    let host = Host::parse(&format!("{text}.{}", service.domain))
        .map_err(|error| format!("another: {error}"))?;
    if host == service.api_host {
        return Err("another label: this one is the host of the admin API".into());
    }
    Ok(text.into())
}

/// Reads a host of a customer, which is not below the domain of the platform.
fn domain(value: &Value, service: &Service) -> Result<Host, Expected> {
    let host = strict::parsed(Host::parse)(value)?;
    if host == service.api_host {
        return Err("another host: this one is the host of the admin API".into());
    }
    let is_within = |top: &Host| site::is_within(host.as_str(), top.as_str());
    if is_within(&service.domain) {
        return Err(format!(
            "a domain of the customer: hosts below {} are default subdomains",
            service.domain
        ));
    }
    if let Some(edge) = service.edge.as_ref().filter(|edge| is_within(edge)) {
        return Err(format!(
            "a domain of the customer: {edge} and hosts below it are names of the edge"
        ));
    }
    Ok(host)
}

/// Reads an argument of git. It must not look like an option.
fn git_word(value: &Value, what: &str) -> Result<Box<str>, Expected> {
    let text = strict::text(value)?;
    let is_invalid = |c: char| c.is_control() || c.is_whitespace();
    if text.is_empty() || text.starts_with('-') || text.contains(is_invalid) {
        return Err(format!(
            "{what}, without spaces, and without a hyphen at the start"
        ));
    }
    Ok(text)
}

fn directory_in_repository(value: &Value) -> Result<Box<str>, Expected> {
    let text = strict::text(value)?;
    let inside = text.trim_end_matches('/');
    let leads_out = |segment: &str| matches!(segment, "" | "." | "..") || segment.contains('\0');
    if text.starts_with('/') || (!inside.is_empty() && inside.split('/').any(leads_out)) {
        return Err("a path below the root of the repository, without `.` and `..`".into());
    }
    Ok(inside.into())
}

//! What would fail at the start, at a reload or at the first request, although the configuration is
//! well formed: ports, files, directories, certificates, servers of sites.
//!
//! Nothing is created or changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Access;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::conf::RULE;
use crate::cli::{deploying, named, serve, settings};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::database::DatabaseError;
use crate::deploy::queue::{Postgres, QueueError, Sqlite};
use crate::deploy::run::generate;
use crate::diagnostic::Diagnostic;
use crate::error::chain;
use crate::gateway::access::Target;
use crate::gateway::followers::Identity;
use crate::gateway::tls::Certificates;
use crate::origin::Resolver;
use crate::site::{Origin, Site};
use crate::store::FileError;
use crate::store::sites::Sites;
use crate::syntax::Value;
use crate::syntax::strict::Report;

/// How long a server of a site may take to accept a connection.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// The port of an authority that names none.
const HTTPS_PORT: u16 = 443;
/// How many servers are tried at the same time.
const CONNECTS_MAX: usize = 64;
/// How many diagnostics of one kind are listed; the rest is counted.
const LISTED_MAX: usize = 20;
/// The longest path of a unix socket (`unix(7)`), without its end.
const SOCKET_PATH_MAX: usize = 107;

/// Why the parts of a shared store were not used.
pub(super) struct Unused {
    pub(super) database: Option<DatabaseError>,
    pub(super) objects: Option<FileError>,
}

/// Checks a configuration. Each diagnostic is at its place in the file.
struct Checker<'t> {
    report: Report<'t>,
    /// The document; `None` for an empty file.
    document: Option<Value>,
}

/// Returns everything that can be found on this machine, and, unless `is_offline`, whether the
/// servers of sites and the database of the queue accept connections. `unused` is why the store was
/// not used.
pub(super) fn check(
    (name, text): (&str, &str),
    config: &Config,
    sites: Option<&Sites>,
    unused: &Unused,
    is_offline: bool,
) -> Vec<Diagnostic> {
    let report = Report::new(RULE, name, text);
    let mut documents = report.documents().unwrap_or_default().into_iter();
    let document = documents.find(|document| !document.is_null());
    let checker = Checker { report, document };
    checker.addresses(config);
    checker.paths(config);
    checker.named_files(config);
    checker.programs(config);
    checker.queue(config);
    if let Some(why) = &unused.database {
        checker.store_database(why);
    }
    if let Some(why) = &unused.objects {
        checker.store_objects(why);
    }
    if !is_offline {
        checker.database(config);
        checker.authorities(config);
    }
    let certificates = checker.certificates(config);
    let mut found = Vec::new();
    if let Some(sites) = sites {
        checker.hosts_without_certificate(config, sites, certificates.as_ref());
        if !is_offline {
            found = unreachable(config, sites);
        }
    }
    let mut all = checker.report.into_vec();
    all.append(&mut found);
    all
}

// === impl Checker ===

impl Checker<'_> {
    /// Returns the value at keys, or the last one on the way that the file has.
    fn place(&self, keys: &[&str]) -> Option<&Value> {
        let mut value = self.document.as_ref()?;
        for key in keys {
            let mut members = value.members().iter();
            match members.find(|member| &*member.key == *key) {
                Some(member) => value = &member.value,
                None => break,
            }
        }
        Some(value)
    }

    fn error(&self, keys: &[&str], message: String) {
        match self.place(keys) {
            Some(value) => self.report.error(value, message),
            None => {
                let file = self.report.file();
                self.report.add(Diagnostic::error(RULE, file, message));
            }
        }
    }

    fn warning(&self, keys: &[&str], message: String) {
        match self.place(keys) {
            Some(value) => self.report.warning(value, message),
            None => {
                let file = self.report.file();
                self.report.add(Diagnostic::warning(RULE, file, message));
            }
        }
    }

    fn addresses(&self, config: &Config) {
        let socket = settings::upgrade_socket(config);
        if let Some(path) = &socket
            && path.as_os_str().len() > SOCKET_PATH_MAX
        {
            let path = path.display();
            let why = format!("the path {path} is too long for a socket: {SOCKET_PATH_MAX} bytes");
            self.error(&["listen", "upgrade_socket"], why);
        }
        // The gateway of this configuration has its addresses itself.
        let is_running = socket.is_some_and(|path| UnixStream::connect(path).is_ok());
        let listen = &config.listen;
        let http = listen.http.iter().map(|address| ("http", *address));
        let https = listen.https.iter().map(|address| ("https", *address));
        let operator = listen.operator.map(|address| ("operator", address));
        let of_listen = http.chain(https).chain(operator);
        let of_listen = of_listen.map(|(key, address)| (["listen", key], address));
        let edges = config.edges.listen;
        let edges = edges.map(|address| (["edges", "listen"], address));
        let mut seen: BTreeSet<SocketAddr> = BTreeSet::new();
        for (keys, address) in of_listen.chain(edges) {
            if address.port() != 0 && !seen.insert(address) {
                self.error(&keys, format!("`{}` names {address} twice", keys[0]));
            } else if !is_running {
                self.address(&keys, address);
            }
        }
        // A worker of this configuration has its address itself, and so has a gateway.
        if let Some(address) = config.worker.operator
            && !is_running
            && !deploying::presence(config).is_any_alive()
        {
            self.address(&["worker", "operator"], address);
        }
    }

    /// Reports why a process cannot listen on an address.
    fn address(&self, keys: &[&str], address: SocketAddr) {
        let Err(error) = serve::socket(address) else {
            return;
        };
        let why = format!("{error:#}");
        // systemd may open the socket and pass it.
        let is_denied = error.downcast_ref::<io::Error>();
        match is_denied.is_some_and(|e| e.kind() == io::ErrorKind::PermissionDenied) {
            true => self.warning(keys, why),
            false => self.error(keys, why),
        }
    }

    fn paths(&self, config: &Config) {
        let store = config.store.local();
        let certificates = settings::certificates_path(config);
        let key: &[&str] = match &config.store {
            config::Store::Follow { .. } => &["store", "follow", "cache"],
            config::Store::Shared(_) => &["store", "postgres", "cache"],
            config::Store::Local(_) => &["store", "local", "path"],
        };
        let mut directories = vec![(key, store.path.clone())];
        if config.queue.postgres.url.is_none() {
            directories.push((&["queue", "sqlite", "path"], above(&config.queue.sqlite)));
        }
        if config.worker.embedded {
            directories.push((&["git", "mirrors"], config.git.mirrors.clone()));
            directories.push((&["worker", "directory"], config.isolation.directory.clone()));
        }
        if config.acme.is_on() {
            directories.push((&["acme", "directory"], certificates));
        }
        if let Some(path) = &config.copies.directory {
            directories.push((&["upstream", "copies", "directory"], path.clone()));
        }
        let mut files = Vec::new();
        if let Target::File(path) = &config.access_log {
            files.push((&["access_log", "file"][..], path.clone()));
        }
        if let Some(path) = &config.log.file {
            files.push((&["log", "file"], path.clone()));
        }
        for (keys, path) in directories {
            if let Err(why) = may_write_directory(&path) {
                self.error(keys, why);
            }
        }
        for (keys, path) in files {
            let found = match fs::metadata(&path) {
                Ok(found) if found.is_dir() => Err(format!("{} is a directory", path.display())),
                Ok(_) => may(&path, Access::WRITE_OK, "written"),
                // A log does not make its directory.
                Err(_) if !above(&path).is_dir() => {
                    Err(format!("there is no directory {}", above(&path).display()))
                }
                Err(_) => may(&above(&path), Access::WRITE_OK, "written"),
            };
            if let Err(why) = found {
                self.error(keys, why);
            }
        }
    }

    fn named_files(&self, config: &Config) {
        for named::Named { key, path, .. } in named::files(config) {
            // These are made at the first start.
            let is_made = matches!(
                &*key,
                "acme.key_file" | "listen.operator_token" | "store.follow.key_file"
            );
            let found = match path.exists() {
                false if is_made => may_write_directory(&above(&path)),
                false => Err(format!("there is no file {}", path.display())),
                true => may(&path, Access::READ_OK, "read"),
            };
            if let Err(why) = found {
                let top = key.split(['.', '[']).collect::<Vec<_>>();
                self.error(&top, format!("`{key}`: {why}"));
            }
        }
        let edges = &config.edges;
        if let (Some(_), Some(certificate), Some(key)) =
            (edges.listen, &edges.certificate, &edges.key)
            && certificate.exists()
            && key.exists()
            && let Err(error) = Identity::read(certificate, key)
        {
            let why = format!("{}: {}", certificate.display(), chain(&error));
            self.error(&["edges", "certificate"], why);
        }
    }

    /// Looks for the programs of the operator.
    fn programs(&self, config: &Config) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if config.acme.is_on()
            && let Some(program) = config.acme.dns_command.first()
            && let Err(why) = may_start(program, &path)
        {
            let why = format!("`acme.dns_command`: {why}");
            self.error(&["acme", "dns_command"], why);
        }
        if let Some(program) = config.generate.command.first()
            && let Err(why) = may_start(program, OsStr::new(generate::PATH))
        {
            let why = format!("`generate.command`: {why}");
            let keys = ["generate", "command"];
            // Only the machines of workers need it.
            match config.worker.embedded {
                true => self.error(&keys, why),
                false => self.warning(&keys, why),
            }
        }
    }

    /// Looks whether the certificate authorities accept connections.
    fn authorities(&self, config: &Config) {
        for authority in &config.acme.authorities {
            let address = authority.directory.parse::<http::Uri>();
            let address = address.ok().and_then(|uri| uri.into_parts().authority);
            let Some(address) = address else {
                continue;
            };
            let port = address.port_u16().unwrap_or(HTTPS_PORT);
            let host = address.host();
            // Names of IPv6 addresses are in brackets.
            let name = host.trim_start_matches('[').trim_end_matches(']');
            if let Err(why) = connects(name, port) {
                let why = format!(
                    "the authority at {host}:{port} does not accept connections now: {why}"
                );
                self.warning(&["acme", "authorities"], why);
            }
        }
    }

    fn queue(&self, config: &Config) {
        let path = &config.queue.sqlite;
        if config.queue.postgres.url.is_some() || !path.exists() {
            return;
        }
        if let Err(error) = Sqlite::check(path) {
            let why = format!("{}: {}", path.display(), chain(&error));
            self.error(&["queue", "sqlite", "path"], why);
        }
    }

    /// Looks whether the database of the queue can be used.
    fn database(&self, config: &Config) {
        let postgres = &config.queue.postgres;
        if postgres.url.is_none() {
            return;
        }
        let keys = ["queue", "postgres", "url"];
        match Postgres::check(postgres, config.service.domain.as_str()) {
            Ok(()) => {}
            Err(error @ QueueError::Unavailable(_)) => {
                self.warning(&keys, format!("no database answers now: {}", chain(&error)));
            }
            Err(error) => self.error(&keys, chain(&error)),
        }
    }

    /// Reports why the database of the store was not used.
    fn store_database(&self, error: &DatabaseError) {
        let keys = ["store", "postgres", "url"];
        let why = chain(error);
        // It may come back before the start, and a gateway serves from its cache without it.
        match error.is_outage() {
            true => self.warning(
                &keys,
                format!(
                    "`store.postgres.url`: no database answers now: {why}; of the sites only \
                     those in files were checked"
                ),
            ),
            false => self.error(&keys, format!("`store.postgres.url`: {why}")),
        }
    }

    /// Reports why the object store was not used.
    fn store_objects(&self, error: &FileError) {
        let keys = ["store", "objects", "url"];
        let why = format!("`store.objects.url`: {}", chain(error));
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData => self.error(&keys, why),
            // It may come back before the start.
            _ => self.warning(&keys, why),
        }
    }

    fn certificates(&self, config: &Config) -> Option<Certificates> {
        let directory = config.tls.directory.as_ref()?;
        let keys = ["tls", "directory"];
        let certificates = Certificates::new(directory.clone(), Clock::System);
        match certificates.read() {
            Ok(report) => {
                for (name, why) in &report.failures {
                    self.error(&keys, format!("the certificate for {name}: {}", chain(why)));
                }
            }
            Err(error) => self.error(&keys, format!("{}: {error}", directory.display())),
        }
        if let Some(default) = &config.tls.default
            && !certificates.names(default.as_str())
            && !config.acme.is_on()
        {
            let why = format!("there is no certificate for {default}");
            self.error(&["tls", "default"], why);
        }
        Some(certificates)
    }

    fn hosts_without_certificate(
        &self,
        config: &Config,
        sites: &Sites,
        certificates: Option<&Certificates>,
    ) {
        // Certificates by ACME are ordered for all of them.
        let Some(certificates) = certificates.filter(|_| !config.acme.is_on()) else {
            return;
        };
        if config.listen.https.is_empty() {
            return;
        }
        let mut missing: Vec<_> = sites
            .iter()
            .flat_map(|site| &site.domains)
            .map(|host| host.as_str())
            .filter(|host| !certificates.names(host))
            .collect();
        missing.sort_unstable();
        for host in missing.iter().take(LISTED_MAX) {
            let why = format!("there is no certificate for {host}, a domain of a site");
            self.warning(&["tls", "directory"], why);
        }
        if missing.len() > LISTED_MAX {
            let more = missing.len() - LISTED_MAX;
            let why = format!("there is no certificate for {more} more domains of sites");
            self.warning(&["tls", "directory"], why);
        }
    }
}

/// Returns the directory of a file.
fn above(path: &Path) -> PathBuf {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    above.unwrap_or(Path::new(".")).to_owned()
}

/// Returns why this user may not read or write a file or directory.
fn may(path: &Path, access: Access, how: &str) -> Result<(), String> {
    rustix::fs::access(path, access).map_err(|error| {
        let error = io::Error::from(error);
        format!("{} cannot be {how}: {error}", path.display())
    })
}

/// Returns why a program cannot be started. A name without a slash is looked for in `directories`.
fn may_start(program: &str, directories: &OsStr) -> Result<(), String> {
    let is_file = |path: &PathBuf| path.is_file();
    let found = match program.contains('/') {
        true => Some(PathBuf::from(program)).filter(is_file),
        false => std::env::split_paths(directories)
            .map(|directory| directory.join(program))
            .find(is_file),
    };
    match found {
        Some(path) => may(&path, Access::EXEC_OK, "executed"),
        None => Err(format!("there is no program {program}")),
    }
}

/// Returns why files cannot be made in a directory, which may not exist yet.
fn may_write_directory(path: &Path) -> Result<(), String> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let exists = |path: &&Path| fs::symlink_metadata(path).is_ok();
    let existing = absolute.ancestors().find(exists);
    let existing = existing.unwrap_or(Path::new("/"));
    if !existing.is_dir() {
        return Err(format!("{} is not a directory", existing.display()));
    }
    may(existing, Access::WRITE_OK | Access::EXEC_OK, "written")
}

/// Returns why a server accepts no connection.
fn connects(host: &str, port: u16) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let connecting = async {
        let connected = TcpStream::connect((host, port)).await;
        connected.map(drop).map_err(|error| error.to_string())
    };
    let connected = runtime.block_on(in_time(connecting));
    // A lookup of the name that does not end is not waited for.
    runtime.shutdown_background();
    connected
}

/// Returns the result of connecting, or that it took too long.
async fn in_time(connecting: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let late = || format!("no answer in {} s", CONNECT_TIME.as_secs());
    let connected = tokio::time::timeout(CONNECT_TIME, connecting).await;
    connected.unwrap_or_else(|_elapsed| Err(late()))
}

/// Returns a warning for each server of a site that accepts no connection.
fn unreachable(config: &Config, sites: &Sites) -> Vec<Diagnostic> {
    let mut servers: BTreeMap<(Box<str>, u16), &Site> = BTreeMap::new();
    for site in sites.iter() {
        if let Origin::Upstream(upstream) = &site.origin {
            servers
                .entry((upstream.host.clone(), upstream.port))
                .or_insert(site);
            for other in &upstream.others {
                servers
                    .entry((other.host.clone(), other.port))
                    .or_insert(site);
            }
        }
    }
    if servers.is_empty() {
        return Vec::new();
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let failed = runtime.block_on(connect_to_all(config, servers.keys().cloned().collect()));
    let mut warnings = Vec::new();
    for (server, why) in failed {
        let (host, port) = &server;
        let project = servers.get(&server).map(|site| site.project.as_str());
        let message = format!(
            "the server {host}:{port} of {} does not accept connections now: {why}",
            project.unwrap_or_default()
        );
        let file = sites.path().display().to_string();
        warnings.push(Diagnostic::warning(RULE, &file, message));
    }
    warnings
}

/// Returns the servers that accept no connection, with the reason, in their order.
async fn connect_to_all(
    config: &Config,
    servers: Vec<(Box<str>, u16)>,
) -> BTreeMap<(Box<str>, u16), String> {
    let resolver = Resolver::new(config.private_hosts.clone());
    let mut failed = BTreeMap::new();
    let mut running = JoinSet::new();
    for server in servers {
        while running.len() >= CONNECTS_MAX {
            add(&mut failed, running.join_next().await);
        }
        let resolver = resolver.clone();
        running.spawn(async move {
            let why = in_time(connect(&resolver, &server)).await.err();
            (server, why)
        });
    }
    while !running.is_empty() {
        add(&mut failed, running.join_next().await);
    }
    failed
}

type Tried = Result<((Box<str>, u16), Option<String>), tokio::task::JoinError>;

fn add(failed: &mut BTreeMap<(Box<str>, u16), String>, tried: Option<Tried>) {
    if let Some(Ok((server, Some(why)))) = tried {
        failed.insert(server, why);
    }
}

async fn connect(resolver: &Resolver, (host, port): &(Box<str>, u16)) -> Result<(), String> {
    let resolved = resolver.resolve(host, host, *port).await;
    let resolved = resolved.map_err(|error| chain(&error))?;
    let connected = TcpStream::connect(resolved.address).await;
    connected.map(drop).map_err(|error| error.to_string())
}

//! The settings of the database.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::Rejection;

/// The settings of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Server, database and user, as a URL or as `key=value` pairs; `None`: no PostgreSQL.
    pub url: Option<Box<str>>,
    /// The file with the password. It is read for every connection.
    pub password_file: Option<PathBuf>,
    /// Whether connections use TLS and check the server's certificate.
    pub tls: bool,
    /// The file with the authorities that may sign that certificate; `None`: those of this
    /// machine.
    pub ca_file: Option<PathBuf>,
    /// How many connections a process opens at most.
    pub connections_max: usize,
    /// How long a statement may take.
    pub statement: Duration,
    /// Whether a server that may lose acknowledged updates is refused.
    pub require_durable: bool,
    /// Whether a server without a synchronous standby counts as a server that may lose updates.
    pub require_standby: bool,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            url: None,
            password_file: None,
            tls: true,
            ca_file: None,
            connections_max: 4,
            statement: Duration::from_secs(10),
            require_durable: true,
            require_standby: false,
        }
    }
}

impl Config {
    /// Returns why a text names no database.
    ///
    /// # Errors
    ///
    /// The reason, without the text: it may contain a password.
    pub fn check(url: &str) -> Result<(), &'static str> {
        let server = tokio_postgres::Config::from_str(url)
            .map_err(|_invalid| "a URL like postgres://USER@HOST/DATABASE")?;
        if server.get_password().is_some() {
            return Err("a URL without a password: put it into `password_file`");
        }
        if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
            return Err("a URL with a host, or with `?host=/directory/of/the/socket`");
        }
        // In a URL, tokio-postgres takes the text for one directory.
        let is_list = |host: &Host| match host {
            Host::Unix(directory) => directory.as_os_str().as_bytes().contains(&b','),
            Host::Tcp(_) => false,
        };
        if server.get_hosts().iter().any(is_list) {
            return Err("one directory of a socket in each `host=`: `?host=/a&host=/b`");
        }
        Ok(())
    }

    /// Returns the settings of a connection.
    pub(super) fn server(&self) -> Result<tokio_postgres::Config, Rejection> {
        let url = self.url.as_deref().unwrap_or_default();
        let mut server = tokio_postgres::Config::from_str(url)
            .map_err(|_invalid| Rejection::Access("its URL is not valid".to_owned()))?;
        if let Some(file) = &self.password_file {
            let password = fs::read_to_string(file).map_err(|error| {
                Rejection::Access(format!("read the password in {}: {error}", file.display()))
            })?;
            server.password(password.trim_end_matches(['\r', '\n']));
        }
        server.ssl_mode(match self.tls {
            true => SslMode::Require,
            false => SslMode::Disable,
        });
        if server.get_hosts().len() > 1 {
            // The others may be standbys.
            server.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(server)
    }
}

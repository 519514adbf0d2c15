//! The address of a repository: a URL and a branch that are safe as arguments of git.
//!
//! git accepts addresses that are dangerous here: `ext::` runs programs, a plain path reads this
//! machine, and a leading hyphen is an option. An [`Address`] is always allowed by the
//! configuration.
//!
//! Sources: `git-fetch(1)` "GIT URLS", `gitremote-helpers(7)`, `git-check-ref-format(1)`.

use std::borrow::Cow;
use std::net::Ipv6Addr;
use std::path::{Component, Path};

use super::Config;
use crate::site::percent::decode_utf8;

const URL_BYTES_MAX: usize = 2048;
const BRANCH_BYTES_MAX: usize = 255;

/// A repository's URL and a branch of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    url: Box<str>,
    branch: Box<str>,
    transport: Transport,
    /// `user@host:port`, or nothing for a repository of this machine.
    authority: Box<str>,
    host: Option<Box<str>>,
    path: Box<str>,
}

/// How a repository is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Https,
    Http,
    Ssh,
    File,
}

/// Why an address is rejected. The messages contain no part of the URL that may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAddress {
    /// It is not a URL, or git could read it in several ways.
    #[error(
        "this is not the URL of a repository: write https://host/path, ssh://host/path or user@host:path"
    )]
    Url,
    /// The transport is not allowed.
    #[error("this service does not fetch repositories over {0}")]
    Transport(Box<str>),
    /// The repository is on this machine, in a directory that the configuration does not name.
    #[error("repositories of this machine are fetched only from the configured directories")]
    Local,
    /// The URL contains a password or token.
    #[error("the repository's URL contains a password; name a file of credentials instead")]
    Password,
    /// The path has bytes that are not UTF-8, percent-encoded.
    #[error("the path of the repository's URL has a percent-encoding that is not UTF-8")]
    Encoding,
    /// The name of the branch is not valid.
    #[error("{0:?} is not the name of a branch")]
    Branch(Box<str>),
}

// === impl Address ===

impl Address {
    /// Reads the URL and the branch of a site record.
    ///
    /// # Errors
    ///
    /// [`InvalidAddress`] says which rule is broken.
    pub fn parse(url: &str, branch: &str, config: &Config) -> Result<Self, InvalidAddress> {
        let printable = url.bytes().all(|byte| byte.is_ascii_graphic());
        if url.is_empty() || url.len() > URL_BYTES_MAX || url.starts_with('-') || !printable {
            return Err(InvalidAddress::Url);
        }
        if !is_branch(branch) {
            let shown = branch.chars().take(80).collect();
            return Err(InvalidAddress::Branch(shown));
        }
        let UrlParts {
            transport,
            authority,
            host,
            path,
        } = read(url, config)?;
        Ok(Self {
            url: url.into(),
            branch: branch.into(),
            transport,
            authority: authority.into(),
            host: host.map(Into::into),
            path: path.into(),
        })
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the branch.
    #[must_use]
    pub fn branch(&self) -> &str {
        &self.branch
    }

    pub(super) fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    pub(super) fn transport(&self) -> Transport {
        self.transport
    }

    /// Returns the path on the host, or on this machine, without percent-encoding: the repository
    /// that the host finds.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the user that the URL names.
    pub(super) fn user(&self) -> Option<&str> {
        self.authority.rsplit_once('@').map(|(user, _host)| user)
    }

    /// Returns the host, with the port if the URL names one.
    pub(super) fn host_and_port(&self) -> &str {
        match self.authority.rsplit_once('@') {
            Some((_user, host)) => host,
            None => &self.authority,
        }
    }

    /// Returns the TCP port that is connected to; `None` for a repository of this machine.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        let host = self.host_and_port();
        // An address of IPv6 has colons too: `[::1]:22`.
        let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
        let named = after
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        match self.transport {
            Transport::Https => Some(named.unwrap_or(443)),
            Transport::Http => Some(named.unwrap_or(80)),
            Transport::Ssh => Some(named.unwrap_or(22)),
            Transport::File => None,
        }
    }

    /// Returns the configured directory in which a repository of this machine is.
    #[must_use]
    pub fn local_root<'c>(&self, config: &'c Config) -> Option<&'c Path> {
        let path = Path::new(&*self.path);
        let mut roots = config.local.iter().filter(|root| path.starts_with(root));
        match self.transport {
            Transport::File => roots.next().map(std::path::PathBuf::as_path),
            _ => None,
        }
    }
}

// === impl Transport ===

impl Transport {
    /// Returns its name in `GIT_ALLOW_PROTOCOL`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }
}

/// The parts of a URL.
struct UrlParts<'u> {
    transport: Transport,
    authority: &'u str,
    host: Option<&'u str>,
    path: Cow<'u, str>,
}

fn read<'u>(url: &'u str, config: &Config) -> Result<UrlParts<'u>, InvalidAddress> {
    if let Some((scheme, rest)) = url.split_once("://") {
        let transport = match scheme {
            "https" => Transport::Https,
            "http" if config.plaintext => Transport::Http,
            "ssh" => Transport::Ssh,
            "file" => return local(rest, config),
            other => return Err(unsupported(other)),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        // The host decodes the path, and git does so before ssh. `%61cme` is the directory `acme`.
        let path = decode_utf8(path).ok_or(InvalidAddress::Encoding)?;
        return remote(transport, authority, path);
    }
    // `helper::address` runs `git-remote-helper`, and `ext::` runs any program.
    if let Some((helper, _)) = url.split_once("::") {
        return Err(unsupported(helper));
    }
    // git-fetch(1): a colon before the first slash makes it `user@host:path` over ssh.
    match (url.find(':'), url.find('/')) {
        (Some(colon), slash) if slash.is_none_or(|slash| colon < slash) => {
            remote(Transport::Ssh, &url[..colon], url[colon + 1..].into())
        }
        _ => local(url, config),
    }
}

fn remote<'u>(
    transport: Transport,
    authority: &'u str,
    path: Cow<'u, str>,
) -> Result<UrlParts<'u>, InvalidAddress> {
    // `a/../b` would have the credentials of `a` and be the repository `b`.
    if path
        .split('/')
        .any(|segment| segment == ".." || segment == ".")
    {
        return Err(InvalidAddress::Url);
    }
    Ok(UrlParts {
        transport,
        authority,
        host: Some(host(authority)?),
        path,
    })
}

fn unsupported(transport: &str) -> InvalidAddress {
    let shown = transport.chars().filter(char::is_ascii_alphanumeric);
    InvalidAddress::Transport(shown.take(20).collect())
}

/// Returns the host of `user@host:port`.
fn host(authority: &str) -> Result<&str, InvalidAddress> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err(InvalidAddress::Password);
    }
    // The host becomes part of a command of the shell (`GIT_SSH_COMMAND`).
    let (name, is_name) = match host.strip_prefix('[') {
        Some(literal) => {
            let name = literal.split(']').next().unwrap_or_default();
            (name, name.parse::<Ipv6Addr>().is_ok())
        }
        None => {
            let name = host.split(':').next().unwrap_or_default();
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            (name, name.bytes().all(is_plain))
        }
    };
    // A host or user with a leading hyphen would be an option of ssh.
    let option = name.starts_with('-') || user.is_some_and(|user| user.starts_with('-'));
    if name.is_empty() || option || !is_name {
        return Err(InvalidAddress::Url);
    }
    Ok(name)
}

fn local<'u>(text: &'u str, config: &Config) -> Result<UrlParts<'u>, InvalidAddress> {
    let path = Path::new(text);
    let plain = path.is_absolute()
        && path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let allowed = config.local.iter().any(|root| path.starts_with(root));
    if plain && allowed {
        Ok(UrlParts {
            transport: Transport::File,
            authority: "",
            host: None,
            path: text.into(),
        })
    } else {
        Err(InvalidAddress::Local)
    }
}

/// Checks a name by the rules of `git-check-ref-format(1)`; comments give their numbers.
fn is_branch(name: &str) -> bool {
    let forbidden = |byte: u8| {
        // 4, 5 and 10: no control characters, spaces, globs or backslashes.
        byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte)
    };
    !name.is_empty()
        && name.len() <= BRANCH_BYTES_MAX
        && !name.starts_with('-')
        && !name.bytes().any(forbidden)
        // 3 and 8.
        && !name.contains("..")
        && !name.contains("@{")
        // 7 and 9.
        && !name.ends_with('.')
        && name != "@"
        // 1 and 6: every component has a name that does not start with a dot.
        && name.split('/').all(|part| {
            !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock")
        })
}

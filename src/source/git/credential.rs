//! Credentials: which of them a project may use, and how git gets them.
//!
//! An operator configures credentials for a host or for a part of it, and names the owners that
//! may use them. git asks a helper for the login. The helper is one line of shell that answers
//! `get` and ignores `store` and `erase`: a host that rejects a login once cannot make git remove
//! it from the operator's file, as `git-credential-store(1)` does.
//!
//! Sources: `gitcredentials(7)`, `git-credential-store(1)` "STORAGE FORMAT", RFC 3986 §2.1.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::address::{Address, Transport};
use super::failure::FetchError;
use crate::site::percent::decode_utf8;

/// The longest file of credentials or keys, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The name that means every owner.
const EVERY_OWNER: &str = "*";

/// The files with the credentials for a host or a part of it, and who may use them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    /// The host, as in URLs.
    pub host: Box<str>,
    /// The directory on the host, such as `acme` or `acme/docs`; empty for the whole host.
    pub path: Box<str>,
    /// The owners whose projects may use it; `*` means every owner.
    pub owners: Vec<Box<str>>,
    /// For https: a file in the format of `git-credential-store(1)`, a line
    /// `https://user:token@host`.
    pub https: Option<PathBuf>,
    /// For ssh: a private key that only its owner may read.
    pub ssh_key: Option<PathBuf>,
    /// For ssh: a file with the host keys that are accepted.
    pub ssh_known_hosts: Option<PathBuf>,
}

/// The credentials of one fetch. They are read before the process of the fetch starts, because that
/// process cannot read the files of the operator.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// The user name and the password or token for https.
    pub login: Option<(String, String)>,
    /// The content of the private key for ssh.
    pub ssh_key: Option<Vec<u8>>,
    /// The content of the file with the host keys.
    pub ssh_known_hosts: Option<Vec<u8>>,
}

// === impl Credential ===

impl Credential {
    fn covers(&self, address: &Address) -> bool {
        self.is_on_host_of(address) && is_below(address.path(), &self.path)
    }

    /// Returns whether these credentials reserve a repository. Many hosts ignore the case of a path,
    /// so a path that differs only in its case is reserved too.
    fn reserves(&self, address: &Address) -> bool {
        let lower = |path: &str| path.to_ascii_lowercase();
        self.is_on_host_of(address) && is_below(&lower(address.path()), &lower(&self.path))
    }

    fn is_on_host_of(&self, address: &Address) -> bool {
        let host = address.host();
        host.is_some_and(|host| host.eq_ignore_ascii_case(&self.host))
    }

    fn is_for(&self, owner: &str) -> bool {
        self.owners
            .iter()
            .any(|named| &**named == EVERY_OWNER || &**named == owner)
    }
}

/// Returns whether a path of a URL is a directory or in it. Both may begin and end with a slash.
fn is_below(path: &str, directory: &str) -> bool {
    let mut path = path.split('/').filter(|segment| !segment.is_empty());
    let mut directory = directory.split('/').filter(|segment| !segment.is_empty());
    directory.all(|expected| {
        path.next().is_some_and(|segment| {
            let plain = segment.strip_suffix(".git").unwrap_or(segment);
            segment == expected || plain == expected
        })
    })
}

/// Chooses the credentials that an owner's project uses for a repository: of those that are for
/// the owner, the one with the longest path, and at the same path the one that names the owner.
///
/// # Errors
///
/// [`FetchError::Reserved`] when the credentials that name this part of the host are for other
/// owners. Credentials for a whole host do not reserve it, because other owners may have public
/// repositories there; they are fetched without credentials.
pub fn choose<'c>(
    credentials: &'c [Credential],
    address: &Address,
    owner: &str,
) -> Result<Option<&'c Credential>, FetchError> {
    let segments = |one: &Credential| one.path.split('/').filter(|part| !part.is_empty()).count();
    let chosen = credentials
        .iter()
        .filter(|one| one.covers(address) && one.is_for(owner))
        .max_by_key(|one| {
            let names_owner = one.owners.iter().any(|named| &**named == owner);
            (segments(one), names_owner)
        });
    let of_others = credentials
        .iter()
        .filter(|one| one.reserves(address) && !one.is_for(owner));
    let reserved = of_others.map(segments).max().unwrap_or(0);
    match chosen {
        // Credentials with a longer path that are only for other owners reserve the repository,
        // even if a shorter path allows this owner.
        Some(chosen) if segments(chosen) >= reserved => Ok(Some(chosen)),
        None if reserved == 0 => Ok(None),
        _ => Err(FetchError::Reserved),
    }
}

// === impl Secrets ===

impl std::fmt::Debug for Secrets {
    /// Shows which secrets there are, never the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets")
            .field("login", &self.login.is_some())
            .field("ssh_key", &self.ssh_key.is_some())
            .field("ssh_known_hosts", &self.ssh_known_hosts.is_some())
            .finish()
    }
}

impl Secrets {
    /// Reads what a fetch of this repository needs.
    ///
    /// # Errors
    ///
    /// [`FetchError::Unconfigured`] when a file cannot be read. The log names the file.
    pub fn read(credential: &Credential, address: &Address) -> Result<Self, FetchError> {
        let read = |file: &Option<PathBuf>| file.as_deref().map(read).transpose();
        match address.transport() {
            Transport::Https | Transport::Http => {
                let Some(file) = read(&credential.https)? else {
                    return Ok(Self::default());
                };
                Ok(Self {
                    login: login(&file, address),
                    ..Self::default()
                })
            }
            Transport::Ssh => Ok(Self {
                login: None,
                ssh_key: read(&credential.ssh_key)?,
                ssh_known_hosts: read(&credential.ssh_known_hosts)?,
            }),
            Transport::File => Ok(Self::default()),
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, FetchError> {
    let read = || {
        if fs::metadata(file)?.len() > FILE_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        fs::read(file)
    };
    read().map_err(|error| {
        log::error!(target: "source", "cannot read the credentials in {}: {error}", file.display());
        FetchError::Unconfigured
    })
}

/// A line `scheme://user:password@host[:port][/path]` of a file of credentials.
struct Login<'l> {
    scheme: &'l str,
    user: Cow<'l, str>,
    password: Cow<'l, str>,
    host: Cow<'l, str>,
    path: Cow<'l, str>,
}

// === impl Login ===

impl<'l> Login<'l> {
    /// Reads a line; `None` if it has another form, or a part that is not UTF-8.
    fn parse(line: &'l [u8]) -> Option<Self> {
        let (scheme, rest) = str::from_utf8(line).ok()?.trim().split_once("://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host) = authority.rsplit_once('@')?;
        let (user, password) = login.split_once(':')?;
        Some(Self {
            scheme,
            user: decode_utf8(user)?,
            password: decode_utf8(password)?,
            host: decode_utf8(host)?,
            path: decode_utf8(path)?,
        })
    }

    fn fits(&self, address: &Address) -> bool {
        self.scheme == address.transport().as_str()
            && self.host.eq_ignore_ascii_case(address.host_and_port())
            && is_below(address.path(), &self.path)
            && address.user().is_none_or(|expected| expected == self.user)
    }
}

/// Finds the login for a repository: the first line that fits it.
fn login(file: &[u8], address: &Address) -> Option<(String, String)> {
    for (at, line) in file.split(|byte| *byte == b'\n').enumerate() {
        match Login::parse(line) {
            Some(login) if login.fits(address) => {
                return Some((login.user.into_owned(), login.password.into_owned()));
            }
            None if !matches!(line.trim_ascii().first(), None | Some(b'#')) => {
                // The line may have a password.
                log::warn!(target: "source", "line {} of a file of credentials is not used: it is not https://user:password@host/path, percent-encoded in UTF-8", at + 1);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::address::InvalidAddress;
    use super::*;

    fn address(url: &str) -> Address {
        Address::parse(url, "main", &Config::default()).unwrap()
    }

    fn credential(path: &str, owners: &[&str]) -> Credential {
        Credential {
            host: "git.example".into(),
            path: path.into(),
            owners: owners.iter().map(|owner| (*owner).into()).collect(),
            ..Credential::default()
        }
    }

    #[test]
    fn credentials_are_those_of_the_owner_with_the_longest_path() {
        let all = [
            credential("", &["*"]),
            credential("acme", &["acme"]),
            credential("acme/secret", &["board"]),
        ];
        let chosen = |url: &str, owner: &str| {
            choose(&all, &address(url), owner)
                .map(|chosen| chosen.map(|chosen| &*chosen.path))
                .map_err(|_reserved| "reserved")
        };
        assert_eq!(
            chosen("https://git.example/bob/docs.git", "bob"),
            Ok(Some(""))
        );
        assert_eq!(
            chosen("https://git.example/acme/docs", "acme"),
            Ok(Some("acme"))
        );
        assert_eq!(
            chosen("https://git.example/acme/docs", "bob"),
            Err("reserved")
        );
        assert_eq!(
            chosen("git@git.example:acme/docs.git", "bob"),
            Err("reserved")
        );
        assert_eq!(
            chosen("https://git.example/acmeX/docs", "bob"),
            Ok(Some(""))
        );
        assert_eq!(
            chosen("https://git.example/acme/secret.git", "acme"),
            Err("reserved")
        );
        assert_eq!(
            chosen("https://git.example/acme/secret.git", "board"),
            Ok(Some("acme/secret"))
        );
        assert_eq!(chosen("https://other.example/acme/docs", "bob"), Ok(None));
    }

    #[test]
    fn a_path_in_another_case_is_reserved_and_has_no_credentials_of_its_own() {
        let all = [
            credential("", &["*"]),
            credential("acme", &["acme"]),
            credential("Bob", &["bob"]),
            credential("acme/Secret", &["board"]),
        ];
        let chosen = |path: &str, owner: &str| {
            let address = address(&format!("https://git.example/{path}"));
            let chosen = choose(&all, &address, owner);
            chosen
                .map(|chosen| chosen.map(|chosen| &*chosen.path))
                .map_err(|_reserved| "reserved")
        };
        for (path, owner) in [
            ("ACME/docs", "bob"),
            ("bob/docs", "acme"),
            ("Acme/secret.GIT", "acme"),
        ] {
            assert_eq!(chosen(path, owner), Err("reserved"), "{path}");
        }
        // A host may have two directories, so credentials are sent only to the one that is named.
        assert_eq!(chosen("ACME/docs", "acme"), Ok(Some("")));
        assert_eq!(chosen("Bob/docs", "bob"), Ok(Some("Bob")));
    }

    #[test]
    fn a_percent_encoded_path_has_the_credentials_of_the_path_that_it_means() {
        let all = [credential("", &["*"]), credential("acme", &["acme"])];
        for url in [
            "https://git.example/%61cme/docs",
            "https://git.example/acme%2Fdocs",
            "ssh://git.example/ac%6De/docs",
        ] {
            let chosen = choose(&all, &address(url), "bob");
            assert!(matches!(chosen, Err(FetchError::Reserved)), "{url}");
            let chosen = choose(&all, &address(url), "acme").unwrap().unwrap();
            assert_eq!(&*chosen.path, "acme", "{url}");
        }
        // git passes the path of this form on as it is written.
        let literal = choose(&all, &address("git@git.example:ac%6De/docs"), "bob");
        assert_eq!(&*literal.unwrap().unwrap().path, "");
    }

    #[test]
    fn a_path_that_is_not_utf_8_has_no_credentials_of_another_path() {
        // Both would be the path `\u{fffd}` if the bytes were replaced.
        let parsed = Address::parse("https://git.example/%FF/docs", "main", &Config::default());
        assert_eq!(parsed, Err(InvalidAddress::Encoding));
        let other = address("https://git.example/%EF%BF%BD/docs");
        for file in [
            &b"https://a:1@git.example/%FF\n"[..],
            b"https://a:1@git.example/\xff\n",
        ] {
            assert_eq!(login(file, &other), None);
        }
        let file = b"https://a:%FF@git.example\nhttps://b:2@git.example/%EF%BF%BD\n";
        let found = login(file, &other);
        assert_eq!(found, Some(("b".to_owned(), "2".to_owned())));
    }

    #[test]
    fn credentials_for_a_whole_host_leave_it_open_to_others_without_credentials() {
        let all = [credential("", &["acme"])];
        let found = choose(&all, &address("https://git.example/bob/docs"), "bob");
        assert!(matches!(found, Ok(None)));
    }

    #[test]
    fn a_login_is_the_first_line_that_fits() {
        let file = "https://a:1@other.example\nhttps://b:2@git.example%3a8443\n\
                    https://c:p%40ss@git.example\nhttps://d:4@git.example\n";
        let found = |url: &str| login(file.as_bytes(), &address(url));
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(found("https://git.example/x"), pair("c", "p@ss"));
        assert_eq!(found("https://d@git.example/x"), pair("d", "4"));
        assert_eq!(found("https://git.example:8443/x"), pair("b", "2"));
        assert_eq!(found("https://git.example:9/x"), None);
    }
}

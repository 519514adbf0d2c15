//! Classifies errors of git.
//!
//! git reports errors as text. It runs with untranslated messages, and [`classify`] lists the
//! messages that separate an error that the author or operator must correct from a temporary
//! error. An unknown error counts as temporary, and the fetch is tried again.
//!
//! Sources: messages of git (`remote-curl.c`, `connect.c`, `fetch.c`) and of OpenSSH (`ssh(1)`).

use std::io;
use std::path::PathBuf;

use super::address::InvalidAddress;

/// The longest message of git that is shown, in bytes.
const MESSAGE_BYTES_MAX: usize = 600;

/// The message in a record about a repository that cannot be read. It is the same for every
/// response of the host.
const UNREADABLE: &str = "the repository does not exist, or the service may not read it: check its \
     URL, and the credentials that the operator has for its host";

/// git ended with an error, or could not be run.
#[derive(Debug, thiserror::Error)]
#[error("git {command}: {message}")]
pub struct GitError {
    command: &'static str,
    message: String,
}

/// Why a branch was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address in the site record is rejected.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// The host has no such repository, or does not show it to this client. The log has the message
    /// of the host; the record does not, because it would reveal which private repositories exist.
    #[error("{UNREADABLE}")]
    MissingRepository(String),
    /// The repository has no such branch.
    #[error("the repository has no branch {0:?}")]
    MissingBranch(Box<str>),
    /// The host rejects the credentials, or none are configured.
    #[error("{UNREADABLE}")]
    Credentials(String),
    /// The URL has an address that may not be connected to.
    #[error(
        "the repository's host has no public address; the operator can allow it (git.private_hosts)"
    )]
    Private,
    /// The ssh key of the host is in no file of known keys.
    #[error(
        "the repository's host has an unknown key; the operator must add it to ssh_known_hosts"
    )]
    UnknownHostKey,
    /// The ssh key of the host is another one than before.
    #[error(
        "the repository's host has another ssh key than before ({}): compare it with what the host \
         publishes, then correct ssh_known_hosts",
        .0.as_deref().unwrap_or("its fingerprint is unknown")
    )]
    ChangedHostKey(Option<String>),
    /// The credentials for this part of the host are for other owners.
    #[error("this repository is reserved for another owner")]
    Reserved,
    /// The configured credentials cannot be read.
    #[error(
        "the credentials for the repository's host cannot be read; the log of the service says why"
    )]
    Unconfigured,
    /// The repository uses the object format sha256.
    #[error(
        "the repository uses SHA-256 object names, which are not supported; convert it to SHA-1"
    )]
    ObjectFormat,
    /// The URL redirects to another one.
    #[error(
        "the repository's URL redirects; write the URL to which it redirects in the site record"
    )]
    Redirect,
    /// The repository is larger than the limits of the process allow.
    #[error("the repository is too large: {0}")]
    TooLarge(String),
    /// The mirror would use more of the disk than it may.
    #[error(
        "the repository needs more than {limit} bytes on the disk, which is all that one may use: \
         remove large files"
    )]
    OverQuota {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The host sends too slowly.
    #[error("the repository's host sends fewer than {least} bytes per second")]
    TooSlow {
        /// The least rate, in bytes per second.
        least: u64,
    },
    /// Another process uses the mirror.
    #[error("another process fetches this repository for the same project")]
    Busy,
    /// There is no room for the mirror.
    #[error("the service has no room to fetch the repository; the log of the service says why")]
    Full,
    /// The mirror cannot be read.
    #[error("read the mirror: {0}")]
    Damaged(String),
    /// An error of the network or of the host. Only the log has the details: in a record they
    /// would show authors which addresses and ports of the operator's network answer.
    #[error(
        "the repository's host cannot be reached, or does not answer as a git server; a host of the \
         operator's own network must be allowed (git.private_hosts)"
    )]
    Network,
    /// An operation on the directory of mirrors failed. The log has the path.
    #[error("use the mirror of the repository")]
    Mirror {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// git cannot be run, or refuses its arguments.
    #[error(transparent)]
    Git(#[from] GitError),
}

// === impl FetchError ===

impl FetchError {
    /// Returns whether trying again may succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Address(_)
            | Self::MissingRepository(_)
            | Self::MissingBranch(_)
            | Self::Credentials(_)
            | Self::Private
            | Self::UnknownHostKey
            | Self::ChangedHostKey(_)
            | Self::Reserved
            | Self::ObjectFormat
            | Self::Redirect
            | Self::OverQuota { .. }
            | Self::TooLarge(_) => false,
            Self::Damaged(_)
            | Self::Network
            | Self::Unconfigured
            | Self::TooSlow { .. }
            | Self::Busy
            | Self::Full
            | Self::Mirror { .. }
            | Self::Git(_) => true,
        }
    }
}

// === impl GitError ===

impl GitError {
    pub(super) fn unreadable(command: &'static str) -> Self {
        Self::damaged(command, "its output does not have the requested form")
    }

    pub(super) fn damaged(command: &'static str, message: &str) -> Self {
        Self {
            command,
            message: message.to_owned(),
        }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

/// Returns the useful part of git's messages: without progress, hints and credentials.
pub(super) fn message(stderr: &str) -> String {
    let lines = stderr.lines().map(str::trim).filter(|line| {
        !line.is_empty() && !line.starts_with("hint:") && !line.starts_with("Warning: Permanently")
    });
    let mut joined = String::new();
    for line in lines {
        let line = line.strip_prefix("fatal: ").unwrap_or(line);
        let line = line.strip_prefix("remote: ").unwrap_or(line);
        if !joined.is_empty() {
            joined.push_str("; ");
        }
        joined.push_str(&without_user(line));
    }
    joined.truncate(joined.floor_char_boundary(MESSAGE_BYTES_MAX));
    joined
}

/// Removes `user:password@` from the URLs in a line.
fn without_user(line: &str) -> String {
    let mut clean = String::new();
    let mut rest = line;
    while let Some(scheme_end) = rest.find("://") {
        let (before, after) = rest.split_at(scheme_end + 3);
        let authority_end = after
            .find(|c: char| c == '/' || c.is_whitespace() || c == '\'')
            .unwrap_or(after.len());
        let user_end = after[..authority_end].rfind('@').map_or(0, |at| at + 1);
        clean.push_str(before);
        rest = &after[user_end..];
    }
    clean.push_str(rest);
    clean
}

/// Returns the error that a message of git, ssh or curl means; `None` for an unknown message.
pub(super) fn classify(message: &str) -> Option<FetchError> {
    let says = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    let owned = message.to_owned();
    if says(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
        let words = message.split(|c: char| c.is_whitespace() || c == ';');
        let mut fingerprints = words.filter(|word| word.starts_with("SHA256:"));
        let fingerprint = fingerprints.next().map(|word| word.trim_end_matches('.'));
        return Some(FetchError::ChangedHostKey(fingerprint.map(str::to_owned)));
    }
    if says(&["Host key verification failed"]) {
        return Some(FetchError::UnknownHostKey);
    }
    if says(&[
        "mismatched algorithms",
        "unknown object format",
        "hash algorithm 'sha256'",
    ]) {
        return Some(FetchError::ObjectFormat);
    }
    if ["301", "302", "303", "307", "308"]
        .iter()
        .any(|status| message.contains(&format!("returned error: {status}")))
        || says(&["unable to update url base from redirection"])
    {
        return Some(FetchError::Redirect);
    }
    if says(&[
        "Authentication failed",
        "could not read Username",
        "could not read Password",
        "terminal prompts disabled",
        "Permission denied (",
        "returned error: 401",
        "returned error: 403",
        "Invalid username or",
    ]) {
        return Some(FetchError::Credentials(owned));
    }
    if says(&[
        // These are errors of the connection. The next test would classify them wrongly.
        "Could not resolve host",
        "Couldn't connect to server",
        "HTTP/0.9",
        "Failed to connect",
        "Could not read from remote repository",
    ]) && !says(&["does not appear to be a git repository", "not found"])
    {
        return Some(FetchError::Network);
    }
    if says(&["not allowed", "credentials in plaintext", "remote helper"]) {
        return Some(FetchError::Address(InvalidAddress::Transport(
            "this URL".into(),
        )));
    }
    if says(&[
        "File too large",
        "maximum allowed size",
        "file size limit exceeded",
        // SIGXFSZ: the system's limit on the length of a file (`setrlimit(2)`).
        "died of signal 25",
        "Out of memory",
        "Cannot allocate memory",
    ]) {
        return Some(FetchError::TooLarge(owned));
    }
    if says(&[
        "does not appear to be a git repository",
        "not found",
        "No such file or directory",
        "returned error: 404",
    ]) {
        return Some(FetchError::MissingRepository(owned));
    }
    if says(&[
        "not a git repository",
        "bad object",
        "is corrupt",
        "did not send all necessary objects",
        "unable to read",
        "bad config",
    ]) {
        return Some(FetchError::Damaged(owned));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_key_of_the_host_is_named_by_its_fingerprint() {
        let said = message(
            "@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@\n\
             The fingerprint for the ED25519 key sent by the remote host is\n\
             SHA256:uNiVztksCsDhcc0u9e8BrMzZA1BM3zJ9LwRUvlBzXhk.\n\
             Add correct host key in /srv/known to get rid of this message.\n\
             Host key verification failed.\n",
        );
        let told = classify(&said).unwrap().to_string();
        assert!(
            told.contains("(SHA256:uNiVztksCsDhcc0u9e8BrMzZA1BM3zJ9LwRUvlBzXhk)"),
            "{told}"
        );
        assert!(!told.contains('@') && !told.contains("/srv"), "{told}");
    }

    #[test]
    fn a_repository_with_other_object_names_is_a_lasting_error() {
        let error = classify("mismatched algorithms: client sha1; server sha256").unwrap();
        assert!(matches!(error, FetchError::ObjectFormat) && !error.is_transient());
    }

    #[test]
    fn how_a_connection_failed_is_not_told() {
        for said in [
            "unable to access 'http://10.0.0.5:22/r/': Failed to connect to 10.0.0.5 port 22",
            "unable to access 'https://h/r/': Could not resolve host: h",
            "ssh: connect to host h port 22: Connection refused; Could not read from remote repository.",
        ] {
            assert!(
                matches!(classify(said), Some(FetchError::Network)),
                "{said}"
            );
        }
    }

    #[test]
    fn credentials_in_messages_are_removed() {
        for (line, clean) in [
            (
                "unable to access 'https://u:p@h/r/': x",
                "unable to access 'https://h/r/': x",
            ),
            ("https://token@h https://h2", "https://h https://h2"),
            ("no url @ all", "no url @ all"),
        ] {
            assert_eq!(without_user(line), clean);
        }
    }
}

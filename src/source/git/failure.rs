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
    /// The address in the site record is refused.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// The host has no such repository, or does not show it to this client.
    #[error("the repository does not exist, or its host does not show it: {0}")]
    MissingRepository(String),
    /// The repository has no such branch.
    #[error("the repository has no branch {0:?}")]
    MissingBranch(Box<str>),
    /// The host refuses the credentials, or none are configured.
    #[error("the repository's host refuses the credentials: {0}")]
    Credentials(String),
    /// The host's key is not the configured one.
    #[error("the repository's host has an unknown key: {0}")]
    HostKey(String),
    /// The repository is larger than the limits of the process allow.
    #[error("the repository is too large: {0}")]
    TooLarge(String),
    /// The mirror cannot be read.
    #[error("read the mirror: {0}")]
    Damaged(String),
    /// An error of the network or of the host.
    #[error("fetch the repository: {0}")]
    Network(String),
    /// An operation on the directory of mirrors failed.
    #[error("use {}", path.display())]
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
            | Self::HostKey(_)
            | Self::TooLarge(_) => false,
            Self::Damaged(_) | Self::Network(_) | Self::Mirror { .. } | Self::Git(_) => true,
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
    if says(&[
        "Host key verification failed",
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
    ]) {
        return Some(FetchError::HostKey(owned));
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

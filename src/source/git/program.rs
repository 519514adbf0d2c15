//! Running git, with nothing but our own settings, and telling whose fault a failure is.
//!
//! git tells errors in prose. It is asked for its untranslated messages, and the few that
//! decide between the author's, the operator's and the world's fault are listed in
//! [`classify`]; everything unknown is the world's and is tried again.
//!
//! Sources: `git(1)` "Environment Variables", `git-config(1)`; messages from
//! `remote-curl.c`, `connect.c`, `fetch.c` and OpenSSH's `ssh(1)`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::Config;
use super::address::{Address, InvalidAddress, Transport};

/// The longest message taken from git, in bytes.
const MESSAGE_BYTES_MAX: usize = 600;

/// git on one mirror.
#[derive(Clone, Debug)]
pub(super) struct Git {
    program: PathBuf,
    directory: Box<Path>,
    allowed: &'static str,
    ssh: Option<String>,
    settings: Vec<String>,
}

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
    /// The site record names no repository that may be fetched.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// The host knows no such repository, or does not show it to us.
    #[error("the repository does not exist, or its host does not show it: {0}")]
    MissingRepository(String),
    /// The repository has no such branch.
    #[error("the repository has no branch {0:?}")]
    MissingBranch(Box<str>),
    /// The host refuses our credentials, or we have none.
    #[error("the repository's host refuses the credentials: {0}")]
    Credentials(String),
    /// The host is not the one we know.
    #[error("the repository's host has an unknown key: {0}")]
    HostKey(String),
    /// The repository is larger than a process of ours may write.
    #[error("the repository is too large: {0}")]
    TooLarge(String),
    /// Our own mirror cannot be read.
    #[error("read the mirror: {0}")]
    Damaged(String),
    /// The network, or the host.
    #[error("fetch the repository: {0}")]
    Network(String),
    /// Our own disk.
    #[error("use {}", path.display())]
    Mirror {
        /// Which file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// git cannot be run or does not understand us.
    #[error(transparent)]
    Git(#[from] GitError),
}

// === impl FetchError ===

impl FetchError {
    /// Returns whether trying again may help without anybody changing anything.
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
        Self::damaged(command, "its output has not the form that was asked for")
    }

    pub(super) fn damaged(command: &'static str, message: &str) -> Self {
        Self {
            command,
            message: message.to_owned(),
        }
    }
}

// === impl Git ===

impl Git {
    pub(super) fn new(config: &Config, directory: &Path, address: &Address) -> Self {
        let credential = config.credentials.iter().find(|credential| {
            address
                .host()
                .is_some_and(|host| host.eq_ignore_ascii_case(&credential.host))
        });
        let mut settings: Vec<String> = [
            // No hook of a template or of a mirror someone wrote into.
            "core.hooksPath=/dev/null",
            // A mirror is a cache: a damaged one is made anew.
            "core.fsync=none",
            "gc.auto=0",
            "gc.autoDetach=false",
            "maintenance.auto=false",
            "fetch.recurseSubmodules=false",
            "fetch.fsckObjects=true",
            // Old repositories have harmless oddities; what could hurt stays an error.
            "fetch.fsck.zeroPaddedFilemode=ignore",
            "fetch.fsck.badTimezone=ignore",
            "fetch.fsck.missingSpaceBeforeDate=ignore",
            "transfer.credentialsInUrl=die",
            // A host that sends less than 1 KB/s for 30 s hangs.
            "http.lowSpeedLimit=1000",
            "http.lowSpeedTime=30",
            "http.followRedirects=initial",
            // An empty value clears what any other configuration may have named.
            "credential.helper=",
        ]
        .map(str::to_owned)
        .into();
        if let Some(file) = credential.and_then(|credential| credential.https.as_ref()) {
            // Run by git through a shell: the path, not what is in the file.
            let helper = format!("store --file={}", quoted(file));
            settings.push(format!("credential.helper={helper}"));
        }
        let ssh = (address.transport() == Transport::Ssh).then(|| {
            let of = |file: fn(&super::Credential) -> Option<&PathBuf>| credential.and_then(file);
            ssh_command(
                of(|credential| credential.ssh_key.as_ref()),
                of(|credential| credential.ssh_known_hosts.as_ref()),
            )
        });
        Self {
            program: config.program.clone(),
            directory: directory.into(),
            allowed: address.transport().as_str(),
            ssh,
            settings,
        }
    }

    /// git on a repository of this machine, to read what is in it.
    pub(super) fn local(directory: &Path) -> Self {
        Self {
            program: Config::default().program,
            directory: directory.into(),
            // Nothing is fetched.
            allowed: "",
            ssh: None,
            settings: vec!["core.hooksPath=/dev/null".to_owned()],
        }
    }

    pub(super) fn init(&self) -> Result<(), FetchError> {
        let mut command = self.command();
        command.args(["init", "--quiet", "--bare", "--template="]);
        command.arg(&*self.directory);
        self.run("init", command)
            .map(|_output| ())
            .map_err(|error| classify(&error.message).unwrap_or(FetchError::Git(error)))
    }

    /// Fetches the newest commit of the branch, and only that.
    pub(super) fn fetch(&self, address: &Address) -> Result<(), FetchError> {
        let branch = address.branch();
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args([
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--depth=1",
        ]);
        // The plus sign takes a rewritten history.
        command.args(["--end-of-options", address.url()]);
        command.arg(format!("+refs/heads/{branch}:refs/heads/{branch}"));
        self.run("fetch", command)
            .map(|_output| ())
            .map_err(|error| {
                let message = &error.message;
                if message.contains("couldn't find remote ref") {
                    return FetchError::MissingBranch(branch.into());
                }
                classify(message).unwrap_or_else(|| FetchError::Network(message.clone()))
            })
    }

    /// Packs what many small fetches have left; what fails is tried after the next fetch.
    pub(super) fn tidy(&self) {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        // The later setting wins: only here may git decide to collect.
        command.args(["-c", "gc.auto=6700", "gc", "--auto", "--quiet"]);
        if let Err(error) = self.run("gc", command) {
            log::warn!(target: "source", "{error}");
        }
    }

    /// Reads id, author and message of a branch's head.
    pub(super) fn head(&self, branch: &str) -> Result<[Box<str>; 3], GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["log", "-1", "--no-show-signature", "--encoding=UTF-8"]);
        command.args([
            "--format=%H%x00%an%x00%B",
            &format!("refs/heads/{branch}"),
            "--",
        ]);
        let output = self.run("log", command)?;
        let text = String::from_utf8_lossy(&output);
        let mut fields = text.splitn(3, '\0').map(|field| field.trim().into());
        match [fields.next(), fields.next(), fields.next()] {
            [Some(commit), Some(author), Some(message)] => Ok([commit, author, message]),
            _ => Err(GitError::unreadable("log")),
        }
    }

    /// Lists a commit's tree: `mode type id size<TAB>path`, each ended by NUL.
    pub(super) fn list(&self, commit: &str) -> Result<Vec<u8>, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["ls-tree", "-r", "-z", "--long", "--full-tree", commit]);
        self.run("ls-tree", command)
    }

    /// Lists the paths of the files that a commit holds, each ended by NUL.
    pub(super) fn names(&self, reference: &str) -> Result<Vec<u8>, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["ls-tree", "-r", "-z", "--name-only", "--full-tree"]);
        command.args(["--end-of-options", reference]);
        self.run("ls-tree", command)
    }

    /// Lists what changed between two commits: `kind<NUL>path<NUL>`.
    pub(super) fn changes(&self, from: &str, to: &str) -> Result<Vec<u8>, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args([
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--name-status",
            from,
            to,
        ]);
        self.run("diff-tree", command)
    }

    /// A process that answers ids on its input with objects on its output.
    pub(super) fn objects(&self) -> Command {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["cat-file", "--batch"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        command
    }

    /// git with our settings and no others.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        let kept = [
            "PATH",
            "HTTPS_PROXY",
            "https_proxy",
            "NO_PROXY",
            "no_proxy",
            "SSL_CERT_FILE",
        ];
        command.env_clear();
        command.envs(
            kept.iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
        command.env("LC_ALL", "C");
        command.env("HOME", "/nonexistent");
        command.env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env("GIT_ATTR_NOSYSTEM", "1");
        command.env("GIT_TERMINAL_PROMPT", "0");
        command.env("GIT_ASKPASS", "true");
        command.env("GIT_ALLOW_PROTOCOL", self.allowed);
        command.env("GIT_OPTIONAL_LOCKS", "0");
        command.env("GIT_NO_REPLACE_OBJECTS", "1");
        if let Some(ssh) = &self.ssh {
            command.env("GIT_SSH_COMMAND", ssh);
            command.env("GIT_SSH_VARIANT", "ssh");
        }
        // A mirror may belong to the user the service ran as before.
        command.args([
            "-c",
            "safe.directory=*",
            "-c",
            "safe.bareRepository=explicit",
        ]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, name: &'static str, mut command: Command) -> Result<Vec<u8>, GitError> {
        let failed = |message: String| GitError {
            command: name,
            message,
        };
        let Output {
            status,
            stdout,
            stderr,
        } = command
            .output()
            .map_err(|error| failed(format!("cannot run {}: {error}", self.program.display())))?;
        if status.success() {
            return Ok(stdout);
        }
        let message = message(&String::from_utf8_lossy(&stderr));
        if message.is_empty() {
            return Err(failed(format!("ended with {status}")));
        }
        Err(failed(message))
    }
}

/// ssh with our settings and no others. Everything is quoted: git hands it to a shell.
fn ssh_command(key: Option<&PathBuf>, known_hosts: Option<&PathBuf>) -> String {
    let mut command = "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=yes \
         -o ConnectTimeout=10 -o ServerAliveInterval=10 -o ServerAliveCountMax=3 \
         -o PermitLocalCommand=no -o ClearAllForwardings=yes"
        .to_owned();
    if let Some(key) = key {
        command.push_str(&format!(
            " -o IdentitiesOnly=yes -o IdentityAgent=none -i {}",
            quoted(key)
        ));
    }
    if let Some(file) = known_hosts {
        let option = format!("UserKnownHostsFile={}", file.display());
        command.push_str(&format!(" -o {}", quoted(Path::new(&option))));
    }
    command
}

/// Quotes a path for a POSIX shell.
fn quoted(path: impl AsRef<OsStr>) -> String {
    let text = path.as_ref().to_string_lossy();
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Takes from git's complaints what a person needs: no progress, no hints, no credentials.
fn message(stderr: &str) -> String {
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

/// Tells what a message of git, ssh or curl means; `None` when it is not known.
fn classify(message: &str) -> Option<FetchError> {
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

    #[test]
    fn a_path_survives_a_shell() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}

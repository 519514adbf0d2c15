//! Runs git, with our settings only.
//!
//! Sources: `git(1)` "Environment Variables", `git-config(1)`, `ssh(1)`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::Config;
use super::address::{Address, Transport};
use super::failure::{FetchError, GitError, classify, message};

/// The git program, for one mirror.
#[derive(Clone, Debug)]
pub(super) struct Git {
    program: PathBuf,
    directory: Box<Path>,
    allowed: &'static str,
    ssh: Option<String>,
    settings: Vec<String>,
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
            // No hook of a template runs, and no hook that another process wrote into a mirror.
            "core.hooksPath=/dev/null",
            // A mirror is a cache: a damaged one is created again.
            "core.fsync=none",
            "gc.auto=0",
            "gc.autoDetach=false",
            "maintenance.auto=false",
            "fetch.recurseSubmodules=false",
            "fetch.fsckObjects=true",
            // Old repositories have these harmless errors; all other errors are reported.
            "fetch.fsck.zeroPaddedFilemode=ignore",
            "fetch.fsck.badTimezone=ignore",
            "fetch.fsck.missingSpaceBeforeDate=ignore",
            "transfer.credentialsInUrl=die",
            // A host that sends less than 1 KB/s for 30 s is treated as hanging.
            "http.lowSpeedLimit=1000",
            "http.lowSpeedTime=30",
            "http.followRedirects=initial",
            // An empty value removes the helpers of other configurations.
            "credential.helper=",
        ]
        .map(str::to_owned)
        .into();
        if let Some(file) = credential.and_then(|credential| credential.https.as_ref()) {
            // git runs the helper through a shell. The command contains the path of the file, not
            // its content.
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

    /// Returns a git that reads a repository of this machine.
    pub(super) fn local(directory: &Path) -> Self {
        Self {
            program: Config::default().program,
            directory: directory.into(),
            // No transport is allowed, because nothing is fetched.
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
            .map_err(|error| classify(error.message()).unwrap_or(FetchError::Git(error)))
    }

    /// Fetches the newest commit of the branch, and no other commit.
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
        // With the plus sign, git also accepts a rewritten history.
        command.args(["--end-of-options", address.url()]);
        command.arg(format!("+refs/heads/{branch}:refs/heads/{branch}"));
        self.run("fetch", command)
            .map(|_output| ())
            .map_err(|error| {
                let message = error.message();
                if message.contains("couldn't find remote ref") {
                    return FetchError::MissingBranch(branch.into());
                }
                classify(message).unwrap_or_else(|| FetchError::Network(message.to_owned()))
            })
    }

    /// Packs the objects of many small fetches. If this fails, the next fetch tries again.
    pub(super) fn collect_garbage(&self) {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        // The later setting has priority: only this command may collect garbage.
        command.args(["-c", "gc.auto=6700", "gc", "--auto", "--quiet"]);
        if let Err(error) = self.run("gc", command) {
            log::warn!(target: "source", "{error}");
        }
    }

    /// Reads the id, the author and the message of the newest commit of a branch.
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

    /// Lists a commit's tree: lines of `mode type id size<TAB>path`, each ended by NUL.
    pub(super) fn list(&self, commit: &str) -> Result<Vec<u8>, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["ls-tree", "-r", "-z", "--long", "--full-tree", commit]);
        self.run("ls-tree", command)
    }

    /// Lists the paths of a commit's files, each ended by NUL.
    pub(super) fn names(&self, reference: &str) -> Result<Vec<u8>, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["ls-tree", "-r", "-z", "--name-only", "--full-tree"]);
        command.args(["--end-of-options", reference]);
        self.run("ls-tree", command)
    }

    /// Lists the changes between two commits: `kind<NUL>path<NUL>`.
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

    /// Returns a command that reads ids from its input and writes the objects to its output.
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

    /// Returns a command of git with our settings only.
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
        // A mirror may belong to another user, if the service ran as that user before.
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
        let failed = |message: String| GitError::damaged(name, &message);
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

/// Returns the ssh command with our settings only.
///
/// Paths are quoted, because git runs the command through a shell.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_a_shell() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}

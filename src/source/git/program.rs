//! Runs git, with our settings only.
//!
//! Sources: `git(1)` "Environment Variables", `git-config(1)`, `ssh(1)`.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::Config;
use super::address::{Address, Transport};
use super::destination::Destination;
use super::failure::{FetchError, GitError, classify, message};
use super::history::DEPTH;
use crate::source::TreePath;

/// The longest output of a command that is not a list, in bytes: a commit and its message.
const OUTPUT_BYTES_MAX: u64 = 8 << 20;
/// The longest message of an error that is read, in bytes.
const ERROR_BYTES_MAX: u64 = 64 << 10;
/// How often the growth of a mirror is measured during a fetch.
const MEASURE_EVERY: Duration = Duration::from_millis(50);

/// How long a stopped fetch waits for the programs that git has started.
const PROGRAMS_END_WITHIN: Duration = Duration::from_secs(2);
/// The variables in which the helper finds the login, in the environment of git only.
const HOST: &str = "WAYPOST_GIT_HOST";
const USER: &str = "WAYPOST_GIT_USER";
const PASSWORD: &str = "WAYPOST_GIT_PASSWORD";
/// Answers `get` for our host with our login, and nothing else: it stores and erases nothing.
/// git runs it with a shell; it asks for the credentials of a proxy with another host.
const HELPER: &str = r#"!f() { test "$1" = get || return 0; while IFS= read -r line && test -n "$line"; do if test "$line" = "host=$WAYPOST_GIT_HOST"; then printf 'username=%s\npassword=%s\n' "$WAYPOST_GIT_USER" "$WAYPOST_GIT_PASSWORD"; fi; done; }; f"#;

/// The git program, for one mirror.
#[derive(Clone, Debug)]
pub(super) struct Git {
    program: PathBuf,
    directory: Box<Path>,
    allowed: &'static str,
    ssh: Option<String>,
    settings: Vec<String>,
    /// The variables of the helper; never part of a message.
    login: Vec<(&'static str, Secret)>,
}

/// How much of a branch is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Its newest commit.
    Newest,
    /// Its newest commits, without the contents of files.
    History,
}

/// A text that is never shown.
#[derive(Clone)]
struct Secret(String);

/// The files with the ssh key and the host keys of one fetch.
#[derive(Clone, Debug, Default)]
pub(super) struct SshFiles {
    pub(super) key: Option<PathBuf>,
    pub(super) known_hosts: Option<PathBuf>,
}

// === impl Secret ===

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

// === impl Git ===

impl Git {
    /// Returns a git that fetches into a mirror.
    pub(super) fn fetching(
        config: &Config,
        directory: &Path,
        address: &Address,
        destination: &Destination,
        login: Option<&(String, String)>,
        ssh: &SshFiles,
    ) -> Self {
        let mut git = Self::reading(config, directory);
        git.allowed = address.transport().as_str();
        git.settings.extend(
            [
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
                // A redirect could lead to a host that the policy does not allow.
                "http.followRedirects=false",
                // An empty value removes the helpers of other configurations.
                "credential.helper=",
            ]
            .map(str::to_owned),
        );
        git.settings.extend(destination.setting(address));
        if let Some((user, password)) = login {
            git.settings.push(format!("credential.helper={HELPER}"));
            let host = address.host_and_port().to_owned();
            let values = [
                (HOST, host),
                (USER, user.clone()),
                (PASSWORD, password.clone()),
            ];
            git.login = values.map(|(name, value)| (name, Secret(value))).into();
        }
        git.ssh = (address.transport() == Transport::Ssh).then(|| {
            let mut command = ssh_command(ssh);
            command.push_str(&destination.ssh_options(address).unwrap_or_default());
            command
        });
        git
    }

    /// Returns a git that reads a mirror, and can reach no other repository.
    pub(super) fn reading(config: &Config, directory: &Path) -> Self {
        let settings = [
            // No hook of a template runs, and no hook that another process wrote into a mirror.
            "core.hooksPath=/dev/null",
            // A mirror is a cache: a damaged one is created again.
            "core.fsync=none",
            // Nothing that git finds in a mirror may run a program.
            "core.fsmonitor=false",
            "core.attributesFile=/dev/null",
            "core.bigFileThreshold=8m",
            "gc.auto=0",
            "gc.autoDetach=false",
            "maintenance.auto=false",
        ];
        Self {
            program: config.program.clone(),
            directory: directory.into(),
            allowed: "",
            ssh: None,
            settings: settings.map(str::to_owned).into(),
            login: Vec::new(),
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
            settings: ["core.hooksPath=/dev/null", "core.fsmonitor=false"]
                .map(str::to_owned)
                .into(),
            login: Vec::new(),
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

    /// Fetches a branch. `watch` is called several times a second, and its error ends the fetch.
    pub(super) fn fetch(
        &self,
        address: &Address,
        extent: Extent,
        watch: &mut dyn FnMut() -> Result<(), FetchError>,
    ) -> Result<(), FetchError> {
        let branch = address.branch();
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
        match extent {
            Extent::Newest => command.arg("--depth=1"),
            Extent::History => command
                .arg(format!("--depth={DEPTH}"))
                .arg("--filter=blob:none"),
        };
        // With the plus sign, git also accepts a rewritten history.
        command.args(["--end-of-options", address.url()]);
        command.arg(format!("+refs/heads/{branch}:refs/heads/{branch}"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command
            .spawn()
            .map_err(|error| self.not_run("fetch", &error))?;
        let errors = process.stderr.take();
        let (sender, messages) = mpsc::channel();
        std::thread::Builder::new()
            .name("git-errors".to_owned())
            .spawn(move || {
                // The receiver is gone if the fetch was stopped.
                let _sent = sender.send(read_errors(errors));
            })
            .map_err(|error| self.not_run("fetch", &error))?;
        let status = loop {
            match process.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Err(self.not_run("fetch", &error).into()),
            }
            if let Err(stopped) = watch() {
                let _ended = process.kill();
                let _reaped = process.wait();
                // The programs that git has started end when they lose their pipes. Until they
                // close the error output, they may write to the mirror.
                let _closed = messages.recv_timeout(PROGRAMS_END_WITHIN);
                return Err(stopped);
            }
            std::thread::sleep(MEASURE_EVERY);
        };
        if status.success() {
            return Ok(());
        }
        let message = message(&messages.recv().unwrap_or_default());
        if message.contains("couldn't find remote ref") {
            return Err(FetchError::MissingBranch(branch.into()));
        }
        let message = match message.is_empty() {
            true => format!("ended with {status}"),
            false => self.without_paths(&message),
        };
        let error = classify(&message).unwrap_or(FetchError::Network);
        if matches!(error, FetchError::Network) {
            log::warn!(target: "source", "cannot fetch {}: {message}", address.host_and_port());
        }
        Err(error)
    }

    /// Removes the objects that no branch needs any more, and packs the rest.
    pub(super) fn prune(&self) -> Result<(), GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["gc", "--prune=now", "--quiet"]);
        self.run("gc", command).map(|_output| ())
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
    pub(super) fn list(&self, commit: &str) -> Result<Lines, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["ls-tree", "-r", "-z", "--long", "--full-tree"]);
        command.args(["--end-of-options", commit]);
        Lines::start("ls-tree", command)
    }

    /// Lists the paths of a commit's files, each ended by NUL.
    pub(super) fn names(&self, reference: &str) -> Result<Lines, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["ls-tree", "-r", "-z", "--name-only", "--full-tree"]);
        command.args(["--end-of-options", reference]);
        Lines::start("ls-tree", command)
    }

    /// Lists the changes between two commits: `kind<NUL>path<NUL>`.
    pub(super) fn changes(&self, from: &str, to: &str) -> Result<Lines, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args([
            "diff-tree",
            "-r",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--name-status",
            "--end-of-options",
            from,
            to,
        ]);
        Lines::start("diff-tree", command)
    }

    /// Lists the changes of a commit and of all commits before it, along first parents: for each
    /// commit `/id seconds`, then the paths that differ from its first parent, the first one after
    /// a line end. Each part ends with NUL. With `below`, only paths below it are listed.
    pub(super) fn changes_of_commits(
        &self,
        commit: &str,
        below: Option<&TreePath>,
    ) -> Result<Lines, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        // A path is a text, not a pattern.
        command.arg("--literal-pathspecs");
        command.args([
            "log",
            "-z",
            "--first-parent",
            "-m",
            // All commits are listed, so that they can be counted.
            "--sparse",
            "--root",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--no-relative",
            "--no-show-signature",
            "--name-only",
            "--format=/%H %ct",
            "--end-of-options",
            commit,
            "--",
        ]);
        command.args(below.map(TreePath::as_str));
        Lines::start("log", command)
    }

    /// Returns the ids of the commits whose parents a shallow repository lacks, one on each line.
    pub(super) fn shallow(&self) -> Result<String, GitError> {
        let mut command = self.command();
        command.arg("--git-dir").arg(&*self.directory);
        command.args(["rev-parse", "--git-path", "shallow"]);
        let path = self.run("rev-parse", command)?;
        let path = path.strip_suffix(b"\n").unwrap_or(&path);
        match std::fs::read_to_string(Path::new(OsStr::from_bytes(path))) {
            Ok(ids) => Ok(ids),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(GitError::damaged("rev-parse", &error.to_string())),
        }
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
        command.env("GIT_NO_LAZY_FETCH", "1");
        command.env("GIT_PAGER", "cat");
        command.envs(self.login.iter().map(|(name, value)| (name, &value.0)));
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
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command
            .spawn()
            .map_err(|error| self.not_run(name, &error))?;
        let (output, errors) = (process.stdout.take(), process.stderr.take());
        let reading = std::thread::Builder::new()
            .name("git-errors".to_owned())
            .spawn(move || read_errors(errors))
            .map_err(|error| self.not_run(name, &error))?;
        let mut bytes = Vec::new();
        if let Some(output) = output {
            let read = output.take(OUTPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
            read.map_err(|error| failed(error.to_string()))?;
        }
        if bytes.len() as u64 > OUTPUT_BYTES_MAX {
            let _ended = process.kill();
            let _reaped = process.wait();
            return Err(failed(format!("wrote more than {OUTPUT_BYTES_MAX} bytes")));
        }
        let status = process.wait().map_err(|error| failed(error.to_string()))?;
        if status.success() {
            return Ok(bytes);
        }
        let message = message(&reading.join().unwrap_or_default());
        if message.is_empty() {
            return Err(failed(format!("ended with {status}")));
        }
        Err(failed(self.without_paths(&message)))
    }

    fn not_run(&self, name: &'static str, error: &io::Error) -> GitError {
        let message = format!("cannot run {}: {error}", self.program.display());
        GitError::damaged(name, &message)
    }

    /// Replaces the path of the mirror: records are read by authors.
    fn without_paths(&self, message: &str) -> String {
        message.replace(&*self.directory.to_string_lossy(), "(mirror)")
    }
}

/// Reads the messages of a git process until it closes them; what is too long is left out.
fn read_errors(errors: Option<std::process::ChildStderr>) -> String {
    let mut text = Vec::new();
    if let Some(mut errors) = errors {
        // Without its messages, the error is its exit status.
        let _read = (&mut errors).take(ERROR_BYTES_MAX).read_to_end(&mut text);
        // git would wait for a reader.
        let _drained = io::copy(&mut errors, &mut io::sink());
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The output of a git process, in parts that end with NUL.
///
/// A few trees that contain each other can have millions of names. So the parts are read one
/// after the other, and the reader ends the process when it has seen enough.
#[derive(Debug)]
pub(super) struct Lines {
    name: &'static str,
    process: Child,
    output: BufReader<ChildStdout>,
    part: Vec<u8>,
}

// === impl Lines ===

impl Lines {
    /// The longest part: a mode, an id, a size and a path.
    const PART_BYTES_MAX: u64 = 64 << 10;

    fn start(name: &'static str, mut command: Command) -> Result<Self, GitError> {
        let failed = |error: io::Error| GitError::damaged(name, &error.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(failed)?;
        let output = process.stdout.take();
        let output = output.ok_or_else(|| GitError::unreadable(name))?;
        Ok(Self {
            name,
            process,
            output: BufReader::with_capacity(64 << 10, output),
            part: Vec::new(),
        })
    }

    /// Returns the next part, without its NUL; `None` after the last one.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, GitError> {
        self.part.clear();
        let mut limited = (&mut self.output).take(Self::PART_BYTES_MAX);
        let read = limited.read_until(0, &mut self.part);
        read.map_err(|error| GitError::damaged(self.name, &error.to_string()))?;
        if self.part.pop() == Some(0) {
            return Ok(Some(&self.part));
        }
        let status = self.process.wait();
        let is_good = status.is_ok_and(|status| status.success());
        match is_good {
            true => Ok(None),
            false => Err(GitError::damaged(self.name, "it ended with an error")),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The process only reads, so killing it loses nothing. Waiting prevents a zombie.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Returns the ssh command with our settings only: no key and no known host of a user.
///
/// Paths are quoted, because git runs the command through a shell.
fn ssh_command(files: &SshFiles) -> String {
    let mut command = "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=yes \
         -o ConnectTimeout=10 -o ServerAliveInterval=10 -o ServerAliveCountMax=3 \
         -o PermitLocalCommand=no -o ClearAllForwardings=yes \
         -o IdentitiesOnly=yes -o IdentityAgent=none"
        .to_owned();
    match &files.key {
        Some(key) => command.push_str(&format!(" -i {}", quoted(key))),
        None => command.push_str(" -o IdentityFile=none"),
    }
    let known = files
        .known_hosts
        .as_deref()
        .unwrap_or(Path::new("/dev/null"));
    let option = format!("UserKnownHostsFile={}", known.display());
    command.push_str(&format!(" -o {}", quoted(Path::new(&option))));
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

//! A PostgreSQL server of the tests: as another user if the tests run as root, in a directory of
//! its own, on a unix socket. It ends when its value is dropped or the test process ends.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The user that tests connect as.
pub(crate) const USER: &str = "waypost";
/// Its password.
pub(crate) const PASSWORD: &str = "for tests only";

/// A server with its data.
pub(crate) struct Cluster {
    pub(crate) directory: PathBuf,
    pub(crate) settings: Vec<String>,
    /// The name of the socket contains it.
    pub(crate) port: u16,
    process: Option<Child>,
}

impl Cluster {
    /// Makes a cluster with these settings of the server and starts it.
    #[track_caller]
    pub(crate) fn start(settings: &[&str]) -> Self {
        let mut cluster = Self::empty(settings);
        cluster.init();
        cluster.restart();
        cluster
    }

    /// Makes a directory without data.
    pub(crate) fn empty(settings: &[&str]) -> Self {
        // A short path: that of a socket has at most 107 bytes.
        let directory = tempfile::tempdir().unwrap().keep();
        std::fs::write(directory.join("password"), PASSWORD).unwrap();
        Self {
            settings: settings.iter().map(ToString::to_string).collect(),
            directory,
            port: 5432,
            process: None,
        }
    }

    /// Makes the data.
    #[track_caller]
    pub(crate) fn init(&self) {
        self.own();
        let made = as_user(&self.directory)
            .arg(program("initdb"))
            .args(["--auth=scram-sha-256", "--no-sync", "-U", USER, "-D"])
            .arg(self.data())
            .arg("--pwfile=password")
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
    }

    /// Gives the directory to the user of the server.
    #[track_caller]
    pub(crate) fn own(&self) {
        if rustix::process::geteuid().is_root() {
            let mut chown = Command::new("chown");
            let status = chown.args(["-R", "nobody:"]).arg(&self.directory).status();
            assert!(status.unwrap().success());
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Starts the server, after it was killed.
    #[track_caller]
    pub(crate) fn restart(&mut self) {
        // The shell notices the end of this process by the end of its input.
        // A process that ends without `stop` leaves the directory to it.
        const RUN: &str = "\"$@\" >> log 2>&1 & server=$!; read -r keep; \
             kill -QUIT $server 2>/dev/null; wait $server; \
             [ \"$keep\" ] || { directory=$PWD; cd /; rm -rf \"$directory\"; }; exit 0";
        let mut deadline = Instant::now() + Duration::from_secs(30);
        let last = Instant::now() + Duration::from_secs(120);
        loop {
            self.stop();
            let mut run = as_user(&self.directory);
            run.args(["sh", "-c", RUN, "sh"])
                .arg(program("postgres"))
                .arg("-D")
                .arg(self.data())
                .args(["-c", "listen_addresses=", "-c", "shared_buffers=16MB", "-k"])
                .arg(&self.directory)
                .args(["-p", &self.port.to_string()]);
            for setting in &self.settings {
                run.args(["-c", setting]);
            }
            self.process = Some(run.stdin(Stdio::piped()).spawn().unwrap());
            // After a kill, the old processes may need a moment to end.
            let mut until = Instant::now() + Duration::from_secs(5);
            while Instant::now() < until {
                let starting = ["starting up", "not yet accepting connections"];
                match self.psql("postgres", "SELECT 1") {
                    Ok(_one) => return,
                    // It recovers: on a busy disk this takes a while, and another start would begin
                    // again.
                    Err(why) if starting.iter().any(|text| why.contains(text)) => {
                        until = last.min(Instant::now() + Duration::from_secs(5));
                        deadline = deadline.max(until);
                    }
                    Err(_gone) => {}
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let log = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            assert!(
                Instant::now() < deadline,
                "PostgreSQL does not start: {log}"
            );
        }
    }

    /// Ends the server without a checkpoint, as `pg_ctl stop -m immediate` does.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let mut stdin = process.stdin.take().unwrap();
            // It may have ended.
            let _gone = stdin.write_all(b"keep\n");
            drop(stdin);
            process.wait().unwrap();
        }
    }

    /// Returns the file with the password.
    pub(crate) fn password_file(&self) -> PathBuf {
        self.directory.join("password")
    }

    /// Returns the address of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        let socket = self.directory.display();
        format!("postgres://{USER}@/{database}?host={socket}")
    }

    /// Runs a statement, and returns what it prints.
    pub(crate) fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = Command::new(program("psql"))
            .args([
                "-XqAt",
                "-v",
                "ON_ERROR_STOP=1",
                "-U",
                USER,
                "-d",
                database,
                "-p",
                &self.port.to_string(),
                "-h",
            ])
            .arg(&self.directory)
            .env("PGPASSWORD", PASSWORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A psql that cannot connect ends before it reads; its status and its message say so.
        let _unread = psql.stdin.take().unwrap().write_all(sql.as_bytes());
        let output = psql.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap().trim().to_owned();
        match output.status.success() {
            true => Ok(text(output.stdout)),
            false => Err(text(output.stderr)),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
        let _left = std::fs::remove_dir_all(&self.directory);
    }
}

/// A command in the directory, as another user if this one is root: PostgreSQL refuses root.
pub(crate) fn as_user(directory: &Path) -> Command {
    let mut command = match rustix::process::geteuid().is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
            command
        }
        false => Command::new("env"),
    };
    command.current_dir(directory);
    command
}

/// Returns the path of a program of PostgreSQL: Debian has them in a directory for each version.
pub(crate) fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut found: Vec<_> = versions
        .flatten()
        .map(|version| version.path().join("bin").join(name))
        .filter(|program| program.exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| name.into())
}

//! The sandbox of each process of an update: what it may read, write and connect to.

use std::path::{Path, PathBuf};

use super::generate::{self, SkillFiles};
use super::job::{BuildJob, FetchJob, Source, SpecificationsJob};
use super::workspace::{
    CACHE, NAVIGATION, PREVIOUS, Part, SEARCH_INDEX, SKILL, SKILL_BEFORE, SKILL_REJECTED,
    SPECIFICATIONS, WRITER_INPUT, WRITER_OUTPUT, Workspace,
};
use crate::deploy::writer;
use crate::isolation::{Network, Sandbox, program_root};
use crate::source::directory;
use crate::source::git::Address;
use crate::source::remote::Remote;

/// The variables that name a proxy, whose port a process with network may use.
const PROXIES: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];

/// Returns the sandbox of a process that fetches a branch: its mirror, and the port of the host.
pub(super) fn of_fetch(job: &FetchJob, address: &Address, workspace: &Workspace) -> Sandbox {
    let local = address.local_root(&job.git).map(std::path::absolute);
    Sandbox {
        read: local.into_iter().filter_map(Result::ok).collect(),
        execute: program_root(&job.git.program).into_iter().collect(),
        write: Vec::new(),
        own: vec![job.mirror.clone(), workspace.home()],
        // git sets the mode of the configuration of a mirror.
        sets_attributes: true,
        network: match address.port() {
            None => Network::None,
            Some(port) => Network::Ports(std::iter::once(port).chain(proxy_ports()).collect()),
        },
    }
}

/// Returns the sandbox of a process that builds: it reads its source, and changes the files of its
/// workspace.
pub(super) fn of_build(job: &BuildJob, workspace: &Workspace) -> Sandbox {
    let given = [
        PREVIOUS,
        NAVIGATION,
        SKILL_BEFORE,
        SPECIFICATIONS,
        WRITER_OUTPUT,
    ];
    let mut read: Vec<_> = given.map(|name| workspace.file(name)).into();
    read.extend(job.cache.clone());
    read.extend(job.skill_files.iter().flat_map(SkillFiles::paths));
    let mut execute = Vec::new();
    match &job.source {
        Source::Mirror { git, mirror, .. } => {
            read.push(mirror.clone());
            execute.extend(program_root(&git.program));
        }
        Source::Directory { root, .. } => {
            read.extend(of_directory(root));
            execute.extend(git_in_path());
        }
    }
    let (first, second) = (Part::First, Part::Second);
    let written = [
        first.inventory(),
        first.content(),
        second.inventory(),
        second.content(),
        CACHE,
        SKILL,
        SKILL_REJECTED,
        WRITER_INPUT,
        SEARCH_INDEX,
    ];
    Sandbox {
        read,
        execute,
        write: written.map(|name| workspace.file(name)).into(),
        own: Vec::new(),
        sets_attributes: false,
        network: Network::None,
    }
}

/// Returns what a process reads of a directory of this machine.
pub(super) fn of_directory(root: &Path) -> impl Iterator<Item = PathBuf> {
    let files = directory::files_of_git(root);
    let linked = directory::linked_directories_of_git(root);
    std::iter::once(root.to_owned()).chain(files).chain(linked)
}

/// Returns the directory that must be executable to run git, if git is not in a directory of the
/// system. git reads the history of a directory.
pub(super) fn git_in_path() -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    let mut programs = std::env::split_paths(&directories).map(|directory| directory.join("git"));
    let program = programs.find(|program| program.is_file())?;
    program_root(&program.canonicalize().ok()?)
}

/// Returns the sandbox of a process that fetches specifications.
pub(super) fn of_specifications(job: &SpecificationsJob) -> Sandbox {
    Sandbox {
        write: vec![job.output.clone()],
        network: Network::Ports(Remote::ports(&job.urls)),
        ..Sandbox::new()
    }
}

/// Returns the sandbox of a process that runs the command of the operator.
pub(super) fn of_command(config: &generate::Config, workspace: &Workspace) -> Sandbox {
    let mut own = vec![workspace.home()];
    own.extend(config.write.iter().cloned());
    Sandbox {
        read: vec![workspace.file(WRITER_INPUT)],
        execute: config.named_files().chain(config.read.clone()).collect(),
        write: vec![workspace.file(WRITER_OUTPUT)],
        own,
        sets_attributes: false,
        network: match config.network {
            true => Network::Any,
            false => Network::None,
        },
    }
}

/// Returns the sandbox of a process that asks a language model: it opens no socket itself.
pub(super) fn of_model(job: &writer::Job) -> Sandbox {
    Sandbox {
        read: vec![job.material.clone(), job.index.clone()],
        write: vec![job.output.clone()],
        network: Network::None,
        ..Sandbox::new()
    }
}

/// Returns the ports of the configured proxies, such as 3128 of `http://proxy.acme.test:3128`.
fn proxy_ports() -> impl Iterator<Item = u16> {
    PROXIES.iter().filter_map(|name| {
        let url: http::Uri = std::env::var(name).ok()?.parse().ok()?;
        let usual = match url.scheme_str() {
            Some("https") => 443,
            _ => 80,
        };
        Some(url.port_u16().unwrap_or(usual))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::process::Command;
    use std::time::Duration;

    use super::*;
    use crate::isolation::Mode;
    use crate::source::git;

    /// What a process of an update may try. Each line is one attempt, and its name is printed if
    /// it succeeds.
    const ATTEMPTS: &str = r#"
        try() { name=$1; shift; if (eval "$*") >/dev/null 2>&1; then echo "$name"; fi; }
        try run 'git --version'
        try home 'echo x >"$HOME/x"'
        try mirror-read 'cat "$R/mirror/HEAD"'
        try mirror-write 'echo x >"$R/mirror/x"'
        try shadow 'cat /etc/shadow'
        try secret 'cat "$R/secret"'
        try list 'ls "$R"'
        try overwrite 'echo x >"$R/secret"'
        try create 'echo x >"$R/x"'
        try remove 'rm "$R/secret"'
        try link 'ln -s "$R/secret" "$HOME/here" && cat "$HOME/here"'
        try other-mirror 'cat "$R/other/HEAD"'
        try temporary 'echo x >/tmp/waypost-hostile'
        try environment 'cat /proc/$S/environ'
        try memory 'cat /proc/$S/maps'
        try signal 'kill -0 $S'
        try session 'setsid true'
        try namespace 'unshare -r true'
        try port "bash -c 'exec 3<>/dev/tcp/127.0.0.1/$P'"
        try unix 'python3 -c "import socket; socket.socket(socket.AF_UNIX)"'
    "#;

    /// Makes the attempts in a sandbox, and returns the names of those that succeeded.
    fn succeeded(sandbox: Sandbox, root: &Path, home: PathBuf) -> Vec<String> {
        // A service of this machine, on a port that no sandbox names.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut service = Command::new("sleep").arg("600").spawn().unwrap();
        let (root, id) = (root.to_owned(), service.id());
        let inside = std::thread::spawn(move || {
            sandbox.enter(Mode::Required).unwrap();
            Command::new("sh")
                .args(["-c", ATTEMPTS])
                .env("HOME", home)
                .env("R", root)
                .env("S", id.to_string())
                .env("P", port.to_string())
                .output()
                .unwrap()
        });
        let output = inside.join().unwrap();
        service.kill().unwrap();
        service.wait().unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_processes_of_a_mirror_reach_nothing_but_their_own_files() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for (name, text) in [
            ("secret", "secret"),
            ("mirror/HEAD", "x"),
            ("other/HEAD", "x"),
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let workspace = Workspace::make(&root.join("builds"), None).unwrap();
        let git = git::Config::default();
        let mirror = root.join("mirror");
        let address = Address::parse("https://git.acme.test/docs", "main", &git).unwrap();
        let fetch = FetchJob {
            url: "https://git.acme.test/docs".into(),
            branch: "main".into(),
            commit_before: None,
            git: git.clone(),
            mirror: mirror.clone(),
            bytes_max: 1 << 20,
            rate_min: 0,
            grace: Duration::ZERO,
            secrets: git::Secrets::default(),
            home: workspace.home(),
        };
        let sandbox = of_fetch(&fetch, &address, &workspace);
        assert_eq!(
            succeeded(sandbox, root, workspace.home()),
            ["run", "home", "mirror-read", "mirror-write"]
        );
        let build = BuildJob {
            source: Source::Mirror {
                git,
                mirror,
                commit: "0".repeat(40).into(),
                directory: "".into(),
            },
            service_name: "Acme".into(),
            frames: crate::site::Frames::default(),
            edit: None,
            edit_below: Box::default(),
            lenient: false,
            allow_empty: false,
            keep_going: false,
            has_specifications: false,
            generate: None,
            workspace: workspace.path().to_owned(),
            cache: None,
            skill_files: None,
        };
        let sandbox = of_build(&build, &workspace);
        assert_eq!(
            succeeded(sandbox, root, workspace.home()),
            ["run", "mirror-read"]
        );
        assert_eq!(fs::read_to_string(root.join("secret")).unwrap(), "secret");
    }
}

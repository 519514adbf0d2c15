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

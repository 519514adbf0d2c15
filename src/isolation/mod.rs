//! Isolation: restricts a process before it handles content that is not trusted.
//!
//! A process describes its [`Sandbox`] and enters it ([`Sandbox::enter`]). From then on, it and
//! every program that it starts are restricted by the kernel, and nothing can undo that:
//!
//! | feature | Linux | what it forbids |
//! |---|---|---|
//! | Landlock, files | 5.13 | every file and directory that the sandbox does not name |
//! | Landlock, TCP | 6.7 | connections to ports that the sandbox does not name, and listening |
//! | Landlock, scopes | 6.12 | signals to processes outside, abstract Unix sockets |
//! | seccomp | 3.17 | sockets, modes of files, shared memory, and system calls that no build needs: `ptrace`, `mount`, `bpf`, … |
//! | `no_new_privs` | 3.5 | more rights by a set-user-id program |
//! | capabilities | 2.2 | the special rights of root, when the process is root |
//!
//! Landlock and seccomp restrict the calling thread and the threads and processes that it starts
//! later. So a process enters its sandbox before it starts a thread.
//!
//! A kernel or a container may lack a feature. [`InForce`] says which features are in force;
//! [`Mode`] says whether the process goes on without them.
//!
//! Sources: `landlock(7)`, `seccomp(2)`, `prctl(2)`, `capabilities(7)`.

mod files;
mod metrics;
pub mod process;
mod system_calls;
mod user;

use std::fmt;
use std::path::{Path, PathBuf};

use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

pub use metrics::Metrics;
pub use user::{User, UserError, make_directory, make_passage};

/// Directories with programs and libraries: they may be read and executed.
const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
];

/// Files that programs need: names, addresses, certificates of authorities. None is secret.
const SYSTEM_FILES: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Files that programs read and write.
const SYSTEM_DEVICES: &[&str] = &["/dev/null"];

/// Whether a process must be isolated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Landlock and seccomp are not used.
    Off,
    /// The features of the kernel are used; missing features are logged.
    #[default]
    Available,
    /// Without Landlock and seccomp, no content that is not trusted is read.
    Required,
}

/// Which connections a process may open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// None: it cannot make a socket.
    #[default]
    None,
    /// To these TCP ports of any host, and names may be resolved: UDP is not restricted. Older
    /// kernels (before Linux 6.7) do not restrict the ports.
    Ports(Vec<u16>),
    /// To any port.
    Any,
}

/// The resources that a process may use after it enters this sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Files and directories that it may read. A path that does not exist is left out.
    pub read: Vec<PathBuf>,
    /// Files and directories that it may read and execute.
    pub execute: Vec<PathBuf>,
    /// Files, or directories whose existing files it may read and change. It cannot make, rename
    /// or remove one.
    pub write: Vec<PathBuf>,
    /// Directories in which it may do everything.
    pub own: Vec<PathBuf>,
    /// Whether it may change the modes, owners and times of files. Landlock does not restrict that:
    /// the process could change every file of its user, also those that it cannot open.
    pub sets_attributes: bool,
    /// Which connections it may open.
    pub network: Network,
}

/// Which restrictions the kernel applies to a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InForce {
    /// The ABI version of Landlock; 0 if there is none. 1 restricts files, 3 also truncation,
    /// 4 also TCP ports, 6 also signals.
    pub landlock: u32,
    /// Whether a seccomp filter refuses system calls.
    pub seccomp: bool,
    /// Whether the process runs as another user than its parent.
    pub user: bool,
    /// Whether the number of its processes is limited. The kernel does not limit root.
    pub processes: bool,
}

/// Why a process did not enter its sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IsolationError {
    /// The rules of Landlock are refused.
    #[error("restrict files with Landlock")]
    Landlock(#[from] landlock::RulesetError),
    /// The filter of system calls is refused.
    #[error("restrict system calls with seccomp")]
    Seccomp(#[from] system_calls::FilterError),
    /// The rights of root cannot be given up.
    #[error("give up the rights of root")]
    Capabilities(#[source] rustix::io::Errno),
    /// The kernel lacks a feature that is required.
    #[error("isolation is required, and this kernel has no {0}")]
    Missing(&'static str),
}

// === impl Mode ===

impl Mode {
    /// All modes with their names in the configuration.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("off", Self::Off),
        ("available", Self::Available),
        ("required", Self::Required),
    ];
}

// === impl Sandbox ===

impl Sandbox {
    /// Returns a sandbox that lets a process run the programs of the system, and nothing else.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Restricts this thread, and the threads and processes that it starts from now on.
    ///
    /// Call it before the process starts a thread.
    ///
    /// # Errors
    ///
    /// [`IsolationError`]. With [`Mode::Required`] also when the kernel lacks a feature. The
    /// process must then end, because it may be restricted in part.
    pub fn enter(&self, mode: Mode) -> Result<InForce, IsolationError> {
        let mut in_force = InForce::default();
        if mode == Mode::Off {
            return Ok(in_force);
        }
        in_force.landlock = files::restrict(self)?;
        if mode == Mode::Required && in_force.landlock < files::LEAST_ABI {
            return Err(IsolationError::Missing("Landlock of Linux 6.2 or later"));
        }
        give_up_capabilities().map_err(IsolationError::Capabilities)?;
        match system_calls::restrict(self) {
            Ok(()) => in_force.seccomp = true,
            Err(error) if mode == Mode::Required => return Err(error.into()),
            Err(_unavailable) => {}
        }
        Ok(in_force)
    }
}

/// Returns what this kernel can restrict.
///
/// A thread enters a sandbox and ends; the process is not restricted.
#[must_use]
pub fn available() -> InForce {
    let probe = std::thread::Builder::new()
        .name("isolation-probe".to_owned())
        .spawn(|| Sandbox::new().enter(Mode::Available).unwrap_or_default());
    probe
        .ok()
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default()
}

/// Gives up all capabilities, which only root has.
///
/// With `no_new_privs`, a program that root starts does not get them back (`capabilities(7)`).
fn give_up_capabilities() -> rustix::io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

/// Returns the path of a directory from which a program outside of the system's directories can be
/// run: `/opt/git/bin/git` needs `/opt/git`.
#[must_use]
pub fn program_root(program: &Path) -> Option<PathBuf> {
    if !program.is_absolute() {
        return None;
    }
    let directory = program.parent()?;
    let root = match directory.file_name() {
        Some(name) if name == "bin" => directory.parent()?,
        _ => program,
    };
    // `/bin/x` must not open the whole file system.
    let is_whole = root.parent().is_none();
    Some(if is_whole { program } else { root }.to_owned())
}

// === impl InForce ===

impl InForce {
    /// Returns the names of the restrictions and whether each is in force.
    #[must_use]
    pub fn features(self) -> [(&'static str, bool); 6] {
        [
            ("landlock_files", self.landlock >= 1),
            ("landlock_tcp", self.landlock >= 4),
            ("landlock_signals", self.landlock >= 6),
            ("seccomp", self.seccomp),
            ("user", self.user),
            ("processes", self.processes),
        ]
    }
}

/// A list for people: `Landlock (ABI 7), seccomp; not: another user`.
impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut has, mut lacks) = (Vec::new(), Vec::new());
        match self.landlock {
            0 => lacks.push("Landlock".to_owned()),
            abi => has.push(format!("Landlock (ABI {abi})")),
        }
        for (name, is_in_force) in [
            ("seccomp", self.seccomp),
            ("another user", self.user),
            ("a limit of processes", self.processes),
        ] {
            let list = if is_in_force { &mut has } else { &mut lacks };
            list.push(name.to_owned());
        }
        let list = |names: &[String]| match names {
            [] => "nothing".to_owned(),
            names => names.join(", "),
        };
        write!(
            f,
            "in force: {}; not in force: {}",
            list(&has),
            list(&lacks)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    use super::*;

    /// Runs a function in a thread that has entered a sandbox.
    fn within<T: Send + 'static>(
        sandbox: Sandbox,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> (InForce, T) {
        let inside = std::thread::spawn(move || {
            let in_force = sandbox.enter(Mode::Available).unwrap();
            (in_force, act())
        });
        inside.join().unwrap()
    }

    #[test]
    fn only_named_files_are_read_and_only_existing_ones_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["open", "secret", "output"] {
            fs::write(path(name), name).unwrap();
        }
        fs::create_dir(path("own")).unwrap();
        let sandbox = Sandbox {
            read: vec![path("open"), path("absent")],
            write: vec![path("output")],
            own: vec![path("own")],
            ..Sandbox::new()
        };
        let root = directory.path().to_owned();
        let (in_force, seen) = within(sandbox, move || {
            let path = |name: &str| root.join(name);
            [
                fs::read(path("open")).is_ok(),
                fs::read(path("secret")).is_ok(),
                fs::read_dir(&root).is_ok(),
                fs::write(path("output"), "new").is_ok(),
                fs::write(path("new"), "new").is_ok(),
                fs::remove_file(path("output")).is_ok(),
                fs::write(path("own/new"), "new").is_ok(),
                Command::new("true")
                    .status()
                    .is_ok_and(|status| status.success()),
            ]
        });
        if in_force.landlock >= files::LEAST_ABI {
            assert_eq!(
                seen,
                [true, false, false, true, false, false, true, true],
                "{in_force}"
            );
        }
    }

    #[test]
    fn without_network_there_is_no_socket_and_with_ports_only_those_are_reached() {
        let one = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, other) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        let listening = (TcpListener::bind(one).ok(), TcpListener::bind(other).ok());
        let connects = move || [one, other].map(|address| TcpStream::connect(address).is_ok());
        drop(listening);
        let _listening = (TcpListener::bind(one), TcpListener::bind(other));
        let (in_force, reached) = within(Sandbox::new(), connects);
        if in_force.seccomp {
            assert_eq!(reached, [false, false]);
        }
        let ports = Sandbox {
            network: Network::Ports(vec![one.port()]),
            ..Sandbox::new()
        };
        let (in_force, reached) = within(ports, connects);
        assert!(reached[0]);
        if in_force.landlock >= 4 {
            assert!(!reached[1]);
        }
    }

    #[test]
    fn a_program_of_its_own_prefix_is_found() {
        let root = |path: &str| program_root(Path::new(path));
        assert_eq!(root("/opt/git/bin/git"), Some("/opt/git".into()));
        assert_eq!(root("/srv/tool"), Some("/srv/tool".into()));
        assert_eq!(root("/bin/sh"), Some("/bin/sh".into()));
        assert_eq!(root("git"), None);
    }
}

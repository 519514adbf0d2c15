//! seccomp: which system calls a process can make.
//!
//! The filter refuses the calls that builds, git and commands do not need, with an error that
//! programs can handle. All other calls are allowed: git, ssh and the programs of operators use
//! many calls, and a list of allowed calls would break with the next version of the C library.
//!
//! Sources: `seccomp(2)`, `syscalls(2)`, the kernel's
//! `Documentation/userspace-api/seccomp_filter.rst`.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::{Network, Sandbox};

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// This processor is not supported.
    #[error("there is no filter for this processor")]
    Processor,
    /// The filter cannot be compiled.
    #[error("compile the filter")]
    Compile(#[from] seccompiler::BackendError),
    /// The kernel refuses the filter.
    #[error("load the filter")]
    Load(#[from] seccompiler::Error),
}

/// Calls that are always refused with EPERM.
const REFUSED: &[libc::c_long] = &[
    // Other processes and their memory.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_process_mrelease,
    // Signals by other means than `kill` and `tgkill`. No program of a build needs them.
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_tkill,
    // A process that leaves its group or session would outlive its build.
    libc::SYS_setsid,
    libc::SYS_setpgid,
    // System V IPC and message queues have no path, so Landlock does not restrict them: another
    // build could read them, and their memory is used until somebody removes them.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // Mounts and namespaces, with which an unprivileged process reaches more code of the kernel.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Parts of the kernel that had many vulnerabilities.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_acct,
    // The machine itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Calls of x86 only.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Calls that change the mode, the owner or an extended attribute of a file. Landlock does not
/// restrict them (`landlock(7)`): a process could make a file unusable that it cannot open.
const ATTRIBUTES: &[libc::c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];

/// Older calls of x86 that do the same, or set the times of the file at a path.
#[cfg(target_arch = "x86_64")]
const ATTRIBUTES_HERE: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const ATTRIBUTES_HERE: &[libc::c_long] = &[];

// Numbers that `libc` does not have yet. New calls have the same number on every processor
// (`scripts/syscall.tbl` of the kernel).
const SYS_SETXATTRAT: libc::c_long = 463;
const SYS_REMOVEXATTRAT: libc::c_long = 466;
const SYS_FILE_SETATTR: libc::c_long = 469;

/// `PRIO_USER` of `setpriority(2)`: all processes of a user. Its type in `libc` is another one with
/// each C library.
const PRIO_USER: u64 = 2;

/// `IOPRIO_WHO_USER` of `ioprio_set(2)`.
const IOPRIO_WHO_USER: u64 = 3;

/// Requests of `fcntl(2)` that let the kernel send a signal to another process when a descriptor
/// becomes ready: the owner, also of a thread or a group, and the signal.
const SIGNALLING: [u64; 3] = [F_SETOWN, F_SETSIG, F_SETOWN_EX];
const F_SETOWN: u64 = 8;
const F_SETSIG: u64 = 10;
const F_SETOWN_EX: u64 = 15;

/// Requests of `ioctl(2)` that write into the terminal of the user who runs our command, as if the
/// user typed, and that do the same as `F_SETOWN` (`FIOSETOWN`, `SIOCSPGRP`).
const REFUSED_REQUESTS: [u64; 4] = [libc::TIOCSTI, libc::TIOCLINUX, 0x8901, 0x8902];

/// The flags of `clone(2)` that make a namespace.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// The smallest number of 32 bits that is negative, if it has a sign.
const NEGATIVE: u64 = 1 << 31;

/// The bit that marks calls of the x32 ABI, which have other numbers for the same calls.
const X32_BIT: u32 = 0x4000_0000;

/// Restricts this thread, and the threads and processes that it starts from now on.
pub(super) fn restrict(sandbox: &Sandbox) -> Result<(), FilterError> {
    // There are two filters, because each filter returns one error. The kernel applies both.
    let unknown = filter(unknown_calls(), libc::ENOSYS)?;
    let refused = filter(refused_calls(sandbox)?, libc::EPERM)?;
    seccompiler::apply_filter(&unknown)?;
    seccompiler::apply_filter(&refused)?;
    Ok(())
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn filter(rules: Rules, errno: i32) -> Result<BpfProgram, FilterError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)
        .map_err(|_unsupported| FilterError::Processor)?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    Ok(without_x32(BpfProgram::try_from(filter)?))
}

/// Calls that fail as on an older kernel. The flags of `clone3` are in memory, where a filter
/// cannot see them; if it fails, the C library uses `clone`.
fn unknown_calls() -> Rules {
    Rules::from([(libc::SYS_clone3, Vec::new())])
}

fn refused_calls(sandbox: &Sandbox) -> Result<Rules, FilterError> {
    use SeccompCmpArgLen::Dword;

    let mut rules = Rules::new();
    for call in REFUSED.iter().chain(REFUSED_HERE) {
        rules.insert(*call, Vec::new());
    }
    let namespaces = (0..u64::BITS).map(|bit| 1_u64 << bit);
    let namespaces = namespaces.filter(|flag| NAMESPACES & flag != 0);
    let with_flag = |flag| {
        let set = SeccompCmpOp::MaskedEq(flag);
        rule(vec![when(0, SeccompCmpArgLen::Qword, set, flag)?])
    };
    rules.insert(
        libc::SYS_clone,
        namespaces.map(with_flag).collect::<Result<_, _>>()?,
    );
    let requested = |request| rule(vec![when(1, Dword, SeccompCmpOp::Eq, request)?]);
    let requests = REFUSED_REQUESTS.into_iter().map(requested);
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    let requests = SIGNALLING.into_iter().map(requested);
    rules.insert(libc::SYS_fcntl, requests.collect::<Result<_, _>>()?);
    // Signals to the process that has started this one, to all processes of the user (-1), and to
    // other groups (negative numbers). A filter sees only numbers, so it cannot tell other
    // processes from those that this one starts; newer kernels can (Landlock, ABI 6).
    let target = |operator, process| when(0, Dword, operator, process);
    let parent = u64::from(std::os::unix::process::parent_id());
    let to_parent = || rule(vec![target(SeccompCmpOp::Eq, parent)?]);
    let mut to_group = vec![target(SeccompCmpOp::Ge, NEGATIVE)?];
    let group = rustix::process::getpgrp().as_raw_nonzero().get();
    if group > 1 {
        let own = u64::from(group.wrapping_neg().cast_unsigned());
        to_group.push(target(SeccompCmpOp::Ne, own)?);
    }
    rules.insert(libc::SYS_kill, vec![to_parent()?, rule(to_group)?]);
    rules.insert(libc::SYS_tgkill, vec![to_parent()?]);
    // The limits, the scheduling and the priority of other processes of the user; 0 is the calling
    // process, or its group.
    let other = |argument| rule(vec![when(argument, Dword, SeccompCmpOp::Ne, 0)?]);
    for call in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        rules.insert(call, vec![other(0)?]);
    }
    let user = |number| rule(vec![when(0, Dword, SeccompCmpOp::Eq, number)?]);
    rules.insert(libc::SYS_setpriority, vec![other(1)?, user(PRIO_USER)?]);
    rules.insert(
        libc::SYS_ioprio_set,
        vec![other(1)?, user(IOPRIO_WHO_USER)?],
    );
    if !sandbox.sets_attributes {
        for call in ATTRIBUTES.iter().chain(ATTRIBUTES_HERE) {
            rules.insert(*call, Vec::new());
        }
        // Without a path it sets the times of an open file, as `touch` does.
        let has_path = rule(vec![when(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?])?;
        rules.insert(libc::SYS_utimensat, vec![has_path]);
    }
    let sockets = match &sandbox.network {
        Network::None => Vec::new(),
        // Sockets of other families reach services of this machine: a Unix socket of a container
        // manager gives all rights of root.
        Network::Ports(_) | Network::Any => {
            let ne = |family: i32| {
                let family = u64::from(family.unsigned_abs());
                when(0, Dword, SeccompCmpOp::Ne, family)
            };
            vec![rule(vec![ne(libc::AF_INET)?, ne(libc::AF_INET6)?])?]
        }
    };
    rules.insert(libc::SYS_socket, sockets);
    Ok(rules)
}

fn when(
    argument: u8,
    length: SeccompCmpArgLen,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, FilterError> {
    Ok(SeccompCondition::new(argument, length, operator, value)?)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, FilterError> {
    Ok(SeccompRule::new(conditions)?)
}

/// Returns the code of an instruction. The constants of `libc` are wider than the field.
#[expect(clippy::cast_possible_truncation, reason = "all codes are below 256")]
const fn code(code: u32) -> u16 {
    code as u16
}

/// Puts a test in front of a filter that refuses all calls of the x32 ABI.
fn without_x32(filter: BpfProgram) -> BpfProgram {
    if !cfg!(target_arch = "x86_64") {
        return filter;
    }
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    const LOAD: u16 = code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS);
    const JUMP_IF_NOT_LESS: u16 = code(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K);
    const RETURN: u16 = code(libc::BPF_RET | libc::BPF_K);
    let rejection = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let mut program = vec![
        // The number of the call is the first member of `seccomp_data`.
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_NOT_LESS, 0, 1, X32_BIT),
        instruction(RETURN, 0, 0, rejection),
    ];
    program.extend(filter);
    program
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::*;

    /// Sends signal 0, which only asks whether a signal may be sent, in every way that there is.
    const SIGNALS: &str = r#"
import ctypes, os, sys
parent, other, tgkill, tkill, queue, queue_thread, open_pid, send = map(int, sys.argv[1:])
libc = ctypes.CDLL(None)
info = (ctypes.c_int * 32)(0, 0, -1)
me = os.getpid()
def call(*arguments):
    return libc.syscall(*arguments) == 0
def kill(process):
    try:
        os.kill(process, 0)
        return True
    except OSError:
        return False
descriptor = libc.syscall(open_pid, parent, 0)
ways = {
    "itself": kill(me),
    "own group": kill(0),
    "own group by number": kill(-os.getpgrp()),
    "own thread": call(tgkill, me, me, 0),
    "parent": kill(parent),
    "all": kill(-1),
    "other group": kill(-other),
    "thread of the parent": call(tgkill, parent, parent, 0),
    "any thread": call(tkill, parent, 0),
    "queue": call(queue, parent, 0, info),
    "queue of a thread": call(queue_thread, parent, parent, 0, info),
    "descriptor": call(send, descriptor, 0, 0, 0),
}
print(", ".join(name for name, sent in ways.items() if sent))
"#;

    #[test]
    fn without_landlock_too_no_signal_reaches_the_parent_or_another_group() {
        let mut other = Command::new("sleep")
            .arg("600")
            .process_group(0)
            .spawn()
            .unwrap();
        let arguments = [
            i64::from(std::os::unix::process::parent_id()),
            i64::from(other.id()),
            libc::SYS_tgkill,
            libc::SYS_tkill,
            libc::SYS_rt_sigqueueinfo,
            libc::SYS_rt_tgsigqueueinfo,
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_send_signal,
        ]
        .map(|number| number.to_string());
        let send = || {
            let mut command = Command::new("python3");
            let output = command.args(["-c", SIGNALS]).args(&arguments).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let allowed = "itself, own group, own group by number, own thread";
        let all = send();
        assert!(
            all.starts_with(allowed) && all.contains("descriptor"),
            "{all}"
        );
        let sent = std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                rustix::thread::set_no_new_privs(true).unwrap();
                restrict(&Sandbox::new()).unwrap();
                send()
            });
            inside.join().unwrap()
        });
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(sent.trim_end(), allowed);
    }

    /// Makes each call with arguments that no call accepts; prints those that the filter lets pass.
    const CALLS: &str = r#"
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
for name, number in (argument.split("=") for argument in sys.argv[1:]):
    libc.syscall(int(number), -1, -1, -1, -1, -1, -1)
    if ctypes.get_errno() != errno.EPERM:
        print(name)
"#;

    /// Changes another process, memory that outlives a process, and a file that cannot be opened.
    const OTHERS: &str = r#"
import ctypes, fcntl, os, sys
other, shmget, msgget, semget, mq_open, ioprio, path, own = *map(int, sys.argv[1:7]), *sys.argv[7:]
libc = ctypes.CDLL(None)
def call(*arguments):
    return libc.syscall(*arguments) >= 0
def does(act):
    try:
        act()
        return True
    except OSError:
        return False
reader, writer = os.pipe()
name = ctypes.create_string_buffer(b"waypost-test-queue")
ways = {
    "own priority": does(lambda: os.setpriority(os.PRIO_PROCESS, 0, 1)),
    "own processors": does(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))),
    "times of an open file": does(lambda: os.utime(os.open(own, os.O_RDWR))),
    "descriptor flags": does(lambda: fcntl.fcntl(reader, fcntl.F_SETFD, 1)),
    "priority": does(lambda: os.setpriority(os.PRIO_PROCESS, other, 1)),
    "priority of a group": does(lambda: os.setpriority(os.PRIO_PGRP, other, 2)),
    "processors": does(lambda: os.sched_setaffinity(other, os.sched_getaffinity(0))),
    "scheduler": does(lambda: os.sched_setscheduler(other, os.SCHED_BATCH, os.sched_param(0))),
    "disk priority": call(ioprio, 1, other, 2 << 13 | 7),
    "owner of a pipe": does(lambda: fcntl.fcntl(reader, 8, other)),
    "signal of a pipe": does(lambda: fcntl.fcntl(reader, 10, 9)),
    "shared memory": call(shmget, 0, 4096, 0o600),
    "message queue": call(msgget, 0, 0o600),
    "semaphore": call(semget, 0, 1, 0o600),
    "mode": does(lambda: os.chmod(path, 0o600)),
    "owner": does(lambda: os.chown(path, os.getuid(), os.getgid())),
    "times": does(lambda: os.utime(path)),
    "mode of an open file": does(lambda: os.fchmod(os.open(own, os.O_RDWR), 0o600)),
}
print(", ".join(name for name, is_done in ways.items() if is_done))
"#;

    /// Runs a script, without a filter or in one.
    fn python(script: &str, arguments: &[String], sandbox: Option<Sandbox>) -> String {
        let run = move || {
            if let Some(sandbox) = sandbox {
                rustix::thread::set_no_new_privs(true).unwrap();
                restrict(&sandbox).unwrap();
            }
            let mut command = Command::new("python3");
            let output = command.args(["-c", script]).args(arguments).output();
            let output = output.unwrap();
            assert!(output.status.success(), "{output:?}");
            let said = String::from_utf8(output.stdout).unwrap();
            said.trim_end().to_owned()
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    #[test]
    fn calls_of_every_group_are_refused() {
        let calls = [
            ("ptrace", libc::SYS_ptrace),
            ("process_vm_readv", libc::SYS_process_vm_readv),
            ("process_vm_writev", libc::SYS_process_vm_writev),
            ("pidfd_getfd", libc::SYS_pidfd_getfd),
            ("move_pages", libc::SYS_move_pages),
            ("setsid", libc::SYS_setsid),
            ("shmget", libc::SYS_shmget),
            ("msgget", libc::SYS_msgget),
            ("semget", libc::SYS_semget),
            ("mq_open", libc::SYS_mq_open),
            ("mount", libc::SYS_mount),
            ("open_tree", libc::SYS_open_tree),
            ("unshare", libc::SYS_unshare),
            ("setns", libc::SYS_setns),
            ("chroot", libc::SYS_chroot),
            ("bpf", libc::SYS_bpf),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("userfaultfd", libc::SYS_userfaultfd),
            ("io_uring_setup", libc::SYS_io_uring_setup),
            ("io_uring_enter", libc::SYS_io_uring_enter),
            ("keyctl", libc::SYS_keyctl),
            ("add_key", libc::SYS_add_key),
            ("open_by_handle_at", libc::SYS_open_by_handle_at),
            ("init_module", libc::SYS_init_module),
            ("kexec_load", libc::SYS_kexec_load),
            ("reboot", libc::SYS_reboot),
            ("clock_settime", libc::SYS_clock_settime),
            ("fchmodat", libc::SYS_fchmodat),
            ("fchmodat2", libc::SYS_fchmodat2),
            ("fchownat", libc::SYS_fchownat),
            ("setxattr", libc::SYS_setxattr),
            ("setxattrat", SYS_SETXATTRAT),
            ("file_setattr", SYS_FILE_SETATTR),
            ("socket", libc::SYS_socket),
        ];
        let arguments = calls.map(|(name, number)| format!("{name}={number}"));
        assert_eq!(python(CALLS, &arguments, Some(Sandbox::new())), "");
    }

    #[test]
    fn only_sockets_of_ip_are_made_if_there_is_a_network() {
        let families = r#"
import socket
for name in ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"]:
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW]:
        try:
            socket.socket(getattr(socket, name), kind)
            print(name)
            break
        except OSError:
            pass
"#;
        let any = Sandbox {
            network: Network::Any,
            ..Sandbox::new()
        };
        assert_eq!(python(families, &[], Some(any)), "AF_INET\nAF_INET6");
        assert_eq!(python(families, &[], Some(Sandbox::new())), "");
    }

    #[test]
    fn other_processes_shared_memory_and_the_attributes_of_files_stay_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        for name in ["closed", "own"] {
            std::fs::write(path(name), "").unwrap();
        }
        let mut other = Command::new("sleep")
            .arg("600")
            .process_group(0)
            .spawn()
            .unwrap();
        let mut arguments = [
            i64::from(other.id()),
            libc::SYS_shmget,
            libc::SYS_msgget,
            libc::SYS_semget,
            libc::SYS_mq_open,
            libc::SYS_ioprio_set,
        ]
        .map(|number| number.to_string())
        .to_vec();
        arguments.extend([path("closed"), path("own")]);
        let fetch = Sandbox {
            sets_attributes: true,
            ..Sandbox::new()
        };
        let fetched = python(OTHERS, &arguments, Some(fetch));
        let built = python(OTHERS, &arguments, Some(Sandbox::new()));
        let without = python(OTHERS, &arguments, None);
        other.kill().unwrap();
        other.wait().unwrap();
        let harmless = "own priority, own processors, times of an open file, descriptor flags";
        assert_eq!(built, harmless);
        let attributes = "mode, owner, times, mode of an open file";
        assert_eq!(fetched, format!("{harmless}, {attributes}"));
        let all = "priority, priority of a group, processors, scheduler, disk priority, \
            owner of a pipe, signal of a pipe";
        assert!(
            without.starts_with(&format!("{harmless}, {all}")),
            "{without}"
        );
    }
}

//! Landlock: which files and ports a process can reach.
//!
//! Source: `landlock(7)`.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, LandlockStatus, NetPort,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
    make_bitflags, path_beneath_rules,
};

use super::{Network, PROGRAMS, SYSTEM_DEVICES, SYSTEM_FILES, Sandbox};

/// The newest Landlock ABI that we use. An older kernel applies only the rules that it supports.
const NEWEST_ABI: ABI = ABI::V9;
/// The oldest ABI that counts as isolation: before it (Linux 6.2), any file could be truncated.
pub(super) const LEAST_ABI: u32 = 3;
/// DNS over TCP, for answers that do not fit a datagram.
const DNS_PORT: u16 = 53;

/// Restricts this thread. Returns the ABI version that is in force, 0 if there is none.
pub(super) fn restrict(sandbox: &Sandbox) -> Result<u32, RulesetError> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let execute = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute});
    let write = make_bitflags!(AccessFs::{ReadFile | ReadDir | WriteFile | Truncate});
    let all = AccessFs::from_all(NEWEST_ABI);
    // In a directory that it may write, a process can make no device and run no program. An
    // interpreter can still read a script there.
    let own = all & !make_bitflags!(AccessFs::{MakeChar | MakeBlock | Execute});
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST_ABI))?;
    if sandbox.network != Network::Any {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST_ABI))?;
    } else {
        ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
    }
    let system = |paths: &'static [&'static str]| paths.iter().map(Path::new);
    let mut created = ruleset
        .create()?
        .add_rules(path_beneath_rules(system(PROGRAMS), execute))?
        .add_rules(path_beneath_rules(system(SYSTEM_FILES), read))?
        .add_rules(path_beneath_rules(system(SYSTEM_DEVICES), write))?
        .add_rules(path_beneath_rules(&sandbox.read, read))?
        .add_rules(path_beneath_rules(&sandbox.execute, execute))?
        .add_rules(path_beneath_rules(&sandbox.write, write))?
        .add_rules(path_beneath_rules(&sandbox.own, own))?;
    if let Network::Ports(ports) = &sandbox.network {
        for port in ports.iter().chain([&DNS_PORT]) {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    let status = created.restrict_self()?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => 0,
        (_, LandlockStatus::Available { effective_abi, .. }) => effective_abi as u32,
        _ => 0,
    })
}

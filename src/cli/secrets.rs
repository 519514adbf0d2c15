//! The permissions of the secrets of a configuration.
//!
//! A secret that every user of the machine may read or change is an error at the start: private
//! keys of certificates, credentials for git, the key of a model, admin keys, the operator's token.
//! A secret that its group may read is a warning, because some systems give keys to a group on
//! purpose.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::deploying::KEYS;
use super::{named, settings};
use crate::config::Config;

/// The permissions of all other users.
const OTHERS: u32 = 0o007;
/// The permissions of the group.
const GROUP: u32 = 0o070;

/// A secret whose permissions are too wide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exposed {
    path: PathBuf,
    mode: u32,
}

/// Checks the permissions of all secrets.
///
/// # Errors
///
/// A line for each secret that others may read or change.
pub(super) fn check(config: &Config) -> anyhow::Result<()> {
    let (to_others, to_group): (Vec<_>, Vec<_>) =
        exposed(config).into_iter().partition(Exposed::is_to_others);
    for secret in &to_group {
        log::warn!(target: "secrets", "{}", secret.message());
    }
    if to_others.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = to_others.iter().map(Exposed::message).collect();
    anyhow::bail!("{}", lines.join("\n"))
}

/// Returns the secrets that group or others may read or change. A file that does not exist is
/// left out: the code that reads it reports that.
pub(super) fn exposed(config: &Config) -> Vec<Exposed> {
    let mut secrets: Vec<_> = named::secrets(config).collect();
    secrets.extend(config.backup.key_file.clone());
    if let Some(directory) = &config.tls.directory {
        let pairs = entries(directory);
        secrets.extend(pairs.into_iter().map(|pair| pair.join("privkey.pem")));
    }
    let store = settings::store_path(config);
    secrets.extend(entries(&store.join(KEYS)));
    secrets.push(settings::operator_token(config));
    secrets.push(store.join(settings::TICKET_KEYS));
    secrets.push(store.join(settings::VERIFICATION_KEY));
    secrets.push(store.join(settings::EDGE_KEY));
    secrets.sort();
    secrets.dedup();
    secrets
        .iter()
        .filter_map(|path| Exposed::of(path))
        .collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}

// === impl Exposed ===

impl Exposed {
    fn of(path: &Path) -> Option<Self> {
        // Follows links, because ACME clients store the files elsewhere.
        let metadata: io::Result<fs::Metadata> = fs::metadata(path);
        let metadata = metadata.ok().filter(fs::Metadata::is_file)?;
        let mode = metadata.permissions().mode() & 0o777;
        (mode & (GROUP | OTHERS) != 0).then(|| Self {
            path: path.to_owned(),
            mode,
        })
    }

    /// Returns whether every user of the machine may use it.
    pub(super) fn is_to_others(&self) -> bool {
        self.mode & OTHERS != 0
    }

    /// Returns a message that says who may use it, and what to do.
    pub(super) fn message(&self) -> String {
        let path = self.path.display();
        let who = if self.is_to_others() {
            "every user of this machine"
        } else {
            "its group"
        };
        let mode = self.mode;
        format!("{path} has mode {mode:04o}: {who} may use it (chmod go= {path})")
    }
}

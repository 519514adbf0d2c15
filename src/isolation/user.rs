//! The user of builds, and the directories that belong to it.
//!
//! Source: `passwd(5)`.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// The file with the users of this machine.
const USERS: &str = "/etc/passwd";

/// A user and its main group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The number of the user.
    pub id: u32,
    /// The number of the group.
    pub group: u32,
}

/// Why builds cannot run as a user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserError {
    /// The file with the users cannot be read.
    #[error("read {USERS}")]
    Users(#[source] io::Error),
    /// There is no such user.
    #[error("there is no user {0:?} in {USERS}")]
    Unknown(Box<str>),
    /// Builds would have all rights.
    #[error("the user {0:?} of builds is root")]
    Root(Box<str>),
    /// Only root can start a process of another user.
    #[error("only a service that runs as root can run builds as the user {0:?}")]
    NotRoot(Box<str>),
}

// === impl User ===

impl User {
    /// Finds a user of this machine.
    ///
    /// # Errors
    ///
    /// [`UserError::Users`], [`UserError::Unknown`].
    pub fn named(name: &str) -> Result<Self, UserError> {
        let users = fs::read_to_string(USERS).map_err(UserError::Users)?;
        Self::find(&users, name).ok_or_else(|| UserError::Unknown(name.into()))
    }

    /// Finds the user with whose rights builds run.
    ///
    /// # Errors
    ///
    /// [`UserError`].
    pub fn of_builds(name: &str) -> Result<Self, UserError> {
        let user = Self::named(name)?;
        if user.id == 0 {
            return Err(UserError::Root(name.into()));
        }
        let own = rustix::process::geteuid();
        if !own.is_root() && own.as_raw() != user.id {
            return Err(UserError::NotRoot(name.into()));
        }
        Ok(user)
    }

    fn find(users: &str, name: &str) -> Option<Self> {
        users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let is_named = fields.next() == Some(name);
            let (id, group) = (fields.nth(1)?, fields.next()?);
            is_named.then_some(Self {
                id: id.parse().ok()?,
                group: group.parse().ok()?,
            })
        })
    }
}

/// Makes a directory that only its owner can use. A directory of another user is emptied.
///
/// # Errors
///
/// The error of the system.
pub fn make_directory(directory: &Path, owner: Option<User>) -> io::Result<()> {
    let make = || fs::DirBuilder::new().mode(0o700).create(directory);
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made?,
    }
    let found = fs::symlink_metadata(directory)?;
    let (id, group) = match owner {
        Some(owner) => (owner.id, owner.group),
        None => (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        ),
    };
    if found.uid() == id {
        return Ok(());
    }
    // This user may be unable to change files of another user.
    fs::remove_dir_all(directory)?;
    make()?;
    std::os::unix::fs::chown(directory, Some(id), Some(group))
}

/// Makes a directory whose subdirectories belong to other users. These users may enter the
/// subdirectories, but not list the directory.
///
/// # Errors
///
/// The error of the system.
pub fn make_passage(directory: &Path, is_passed: bool) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mode = fs::metadata(directory)?.permissions().mode() & 0o7777;
    if is_passed && mode & 0o011 != 0o011 {
        fs::set_permissions(directory, fs::Permissions::from_mode(mode | 0o011))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbuilder:x:998:997::/nonexistent:/bin/false\n";
        let builder = User {
            id: 998,
            group: 997,
        };
        assert_eq!(User::find(users, "builder"), Some(builder));
        assert_eq!(User::find(users, "build"), None);
        assert!(matches!(User::of_builds("root"), Err(UserError::Root(_))));
        assert!(matches!(
            User::of_builds("no-such-user"),
            Err(UserError::Unknown(_))
        ));
    }
}

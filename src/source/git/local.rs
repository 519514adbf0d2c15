//! The names of the files in a commit of a repository on this machine, and the days of their last
//! changes.

use std::path::Path;

use super::failure::GitError;
use super::program::Git;
use crate::source::TreePath;
use crate::source::history::{End, History};

/// Lists the files of a commit in the repository whose working tree is at `root`.
///
/// `reference` names the commit (a branch, a tag, `HEAD~1`). Files whose names are not valid
/// paths are left out.
///
/// # Errors
///
/// [`GitError`] when git cannot be run or there is no such commit.
pub fn files(root: &Path, reference: &str) -> Result<Vec<TreePath>, GitError> {
    let mut listed = Git::local(&root.join(".git")).names(reference)?;
    let mut files = Vec::new();
    while let Some(name) = listed.next()? {
        let name = std::str::from_utf8(name).ok();
        files.extend(name.and_then(|name| TreePath::parse(name).ok()));
    }
    Ok(files)
}

/// Reads the days on which files were last changed, from the commit that is checked out in the
/// repository whose working tree is at `root`. The files are below `below`, or somewhere in the
/// repository.
///
/// A history that cannot be read has no days, and says why.
#[must_use]
pub fn history(root: &Path, below: &TreePath, files: &[TreePath]) -> History {
    let repository = root.join(".git");
    let unreadable = |why: String| History::new([], End::Unreadable(why.into()));
    if !repository.exists() {
        return unreadable("this is not the working tree of a git repository".to_owned());
    }
    super::history::read(&Git::local(&repository), "HEAD", below, files)
        .unwrap_or_else(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn git(root: &Path, args: &[&str]) {
        let mut command = Command::new("git");
        command
            .current_dir(root)
            .args(["-c", "user.name=a", "-c", "user.email=a@b.test"]);
        assert!(
            command.args(args).output().unwrap().status.success(),
            "{args:?}"
        );
    }

    #[test]
    fn file_names_of_a_commit_are_not_changed() {
        let directory = tempfile::TempDir::new().unwrap();
        let root = directory.path();
        git(root, &["init", "-q", "-b", "main"]);
        fs::write(root.join("old é.md"), "").unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "-q", "-m", "one"]);
        fs::rename(root.join("old é.md"), root.join("new.md")).unwrap();
        git(root, &["add", "."]);
        git(root, &["commit", "-q", "-m", "two"]);
        let names = |reference: &str| files(root, reference).unwrap();
        assert_eq!(names("HEAD~1"), [TreePath::parse("old é.md").unwrap()]);
        assert_eq!(names("main"), [TreePath::parse("new.md").unwrap()]);
        for absent in ["absent", "--help", ""] {
            assert!(files(root, absent).is_err(), "{absent:?}");
        }
    }
}

//! Reads the days on which files were last changed, from the commits of a repository.
//!
//! A mirror has the newest commit only. Its history is in a repository of its own below it, which
//! has commits and trees and no blobs, so it is small, and reading the newest commit is not slower.
//!
//! Sources: `git-log(1)`, `git-fetch(1)` on `--filter`, `gitformat-shallow`,
//! `gitrepository-layout(5)`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::failure::{FetchError, GitError};
use super::program::{Extent, Git};
use super::{Address, Config, Fetching, clean, git_of, mirror, of_room, update};
use crate::source::TreePath;
use crate::source::history::{COMMITS_MAX, End, History};

/// The directory of the history in a mirror.
const DIRECTORY: &str = "history";
/// How many commits are fetched: the commits that are read, their parents, and 1,000 more, because
/// the branch may have got commits since the newest one was fetched.
pub(super) const DEPTH: usize = COMMITS_MAX + 1000;
/// The beginning of a line about a commit: no path begins so.
const COMMIT: u8 = b'/';

/// Fetches the history of a branch into the mirror of its repository: commits and trees, no blobs.
///
/// A server that does not filter sends the blobs too. The limits of the mirror hold for both.
///
/// # Errors
///
/// [`FetchError`] says what failed, and whether another attempt may succeed.
pub fn fetch_history(
    config: &Config,
    address: &Address,
    fetching: &Fetching<'_>,
) -> Result<(), FetchError> {
    let directory = directory(fetching.mirror);
    fs::create_dir_all(&directory).map_err(|source| FetchError::Mirror {
        path: directory.clone(),
        source,
    })?;
    let others = mirror::size(fetching.mirror).saturating_sub(mirror::size(&directory));
    let within = Fetching {
        mirror: &directory,
        bytes_max: fetching.bytes_max.saturating_sub(others),
        ..*fetching
    };
    let git = git_of(config, address, &within)?;
    let updated = update(&git, address, &within, Extent::History);
    updated.map_err(|error| of_room(error, config, fetching))?;
    clean(&git, &directory);
    Ok(())
}

/// Reads the days on which files were last changed, from the history in a mirror.
///
/// # Errors
///
/// [`GitError`] when the history is missing or damaged.
pub fn history(
    config: &Config,
    mirror: &Path,
    commit: &str,
    below: &TreePath,
    files: &[TreePath],
) -> Result<History, GitError> {
    let git = Git::reading(config, &directory(mirror));
    read(&git, commit, below, files)
}

/// Returns the directory of the history in a mirror.
pub(super) fn directory(mirror: &Path) -> PathBuf {
    mirror.join(DIRECTORY)
}

/// Reads the history of a commit until all files have a day. Only changes below a directory are
/// listed, if it holds all of the files.
pub(super) fn read(
    git: &Git,
    commit: &str,
    below: &TreePath,
    files: &[TreePath],
) -> Result<History, GitError> {
    let mut missing: HashMap<&str, &TreePath> =
        files.iter().map(|path| (path.as_str(), path)).collect();
    let prefix = format!("{below}/");
    let is_below = |path: &TreePath| path.as_str().starts_with(&prefix);
    let below = Some(below).filter(|below| !below.is_root() && files.iter().all(is_below));
    let shallow = git.shallow()?;
    let shallow: HashSet<&str> = shallow.lines().collect();
    let mut days = Vec::new();
    let mut commits = 0;
    let mut day: Option<Box<str>> = None;
    let mut lines = git.changes_of_commits(commit, below)?;
    while !missing.is_empty() {
        let Some(line) = lines.next()? else {
            return Ok(History::new(days, End::Complete));
        };
        if let Some((COMMIT, line)) = line.split_first().map(|(first, rest)| (*first, rest)) {
            let fields = str::from_utf8(line)
                .ok()
                .and_then(|line| line.split_once(' '));
            let (id, time) = fields.ok_or_else(|| GitError::unreadable("log"))?;
            // Its parents are not there, so all of its files seem to be new.
            if shallow.contains(id) {
                return Ok(History::new(days, End::Shallow));
            }
            if commits == COMMITS_MAX {
                return Ok(History::new(days, End::TooLong));
            }
            commits += 1;
            day = day_of(time);
            continue;
        }
        // A line end comes before the first path of a commit.
        let path = line.strip_prefix(b"\n").unwrap_or(line);
        let path = str::from_utf8(path)
            .ok()
            .and_then(|path| missing.remove(path));
        if let (Some(path), Some(day)) = (path, &day) {
            days.push((path.clone(), day.clone()));
        }
    }
    Ok(History::new(days, End::Complete))
}

/// Returns the day in UTC of a time in seconds.
fn day_of(seconds: &str) -> Option<Box<str>> {
    let time = jiff::Timestamp::from_second(seconds.trim().parse().ok()?).ok()?;
    Some(time.strftime("%Y-%m-%d").to_string().into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::super::local;
    use super::super::tests::{TestRepository, path};
    use super::*;

    fn fetch(place: &TestRepository) {
        // A mirror has its newest commit before its history.
        place.head();
        let fetched = place.fetch_with(&place.url(), "main", |address, fetching| {
            fetch_history(&place.config, address, fetching)
        });
        fetched.unwrap();
    }

    fn of_mirror(place: &TestRepository, below: &TreePath, files: &[TreePath]) -> History {
        let head = place.head();
        history(&place.config, &place.mirror(), &head.commit, below, files).unwrap()
    }

    fn days<'h>(history: &'h History, files: &[TreePath]) -> Vec<Option<&'h str>> {
        files.iter().map(|file| history.day(file)).collect()
    }

    #[test]
    fn a_file_has_the_day_in_utc_on_which_the_branch_got_it_in_a_work_tree_and_in_a_mirror() {
        let place = TestRepository::new();
        for (file, text) in [
            ("docs/a.mdx", "a"),
            ("docs/b.mdx", "b"),
            ("docs/c d.mdx", "c"),
        ] {
            place.write(file, text);
        }
        place.commit_at("2026-01-31T23:30:00-0500", "begin");
        place.git(&["checkout", "--quiet", "-b", "side"]);
        place.write("docs/ü.mdx", "side");
        place.commit_at("2026-02-10T12:00:00Z", "side");
        place.git(&["checkout", "--quiet", "main"]);
        place.write("docs/b.mdx", "b2");
        place.commit_at("2026-03-01T12:00:00Z", "change");
        let merge = ["merge", "--quiet", "--no-ff", "--message", "merge", "side"];
        place.git_at("2026-04-01T12:00:00Z", &merge);
        place.git(&["mv", "docs/c d.mdx", "docs/[e].mdx"]);
        place.commit_at("2026-05-01T12:00:00Z", "move");
        place.write("other", "x");
        place.commit_at("2026-06-01T12:00:00Z", "another directory");
        place.write("docs/new.mdx", "not committed");
        let files = ["a", "b", "ü", "[e]", "new"].map(|name| path(&format!("docs/{name}.mdx")));

        fetch(&place);
        let docs = path("docs");
        let found = [
            local::history(&place.work(), &docs, &files),
            local::history(&place.work(), &TreePath::root(), &files),
            of_mirror(&place, &docs, &files),
        ];
        for history in found {
            let expected = ["2026-02-01", "2026-03-01", "2026-04-01", "2026-05-01"].map(Some);
            assert_eq!(days(&history, &files[..4]), expected);
            assert_eq!(
                (history.day(&files[4]), history.end()),
                (None, &End::Complete)
            );
        }
    }

    #[test]
    fn the_history_in_a_mirror_has_no_contents_of_files_and_follows_the_branch() {
        let place = TestRepository::new();
        place.git(&["config", "uploadpack.allowFilter", "true"]);
        let files = [path("a.mdx"), path("b.mdx")];
        place.write("a.mdx", "a");
        place.write(
            ".gitmodules",
            "[submodule \"x\"]\n\tpath = x\n\turl = https://acme.test/x\n",
        );
        place.commit_at("2026-01-01T12:00:00Z", "one");
        fetch(&place);
        let root = TreePath::root();
        assert_eq!(
            days(&of_mirror(&place, &root, &files), &files),
            [Some("2026-01-01"), None]
        );
        place.write("b.mdx", "b");
        place.commit_at("2026-01-02T12:00:00Z", "two");
        fetch(&place);
        let history = of_mirror(&place, &root, &files);
        assert_eq!(
            days(&history, &files),
            ["2026-01-01", "2026-01-02"].map(Some)
        );

        let mut command = Command::new("git");
        command.arg("--git-dir").arg(directory(&place.mirror()));
        command.args([
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objecttype)",
        ]);
        let kinds = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let number = |kind: &str| kinds.lines().filter(|line| *line == kind).count();
        assert_eq!(
            (number("commit"), number("tree"), number("blob")),
            (2, 2, 0)
        );
    }

    #[test]
    fn a_clone_that_lacks_older_commits_gives_no_wrong_days() {
        let place = TestRepository::new();
        let files = ["a.mdx", "b.mdx", "c.mdx"].map(path);
        for (month, file) in (1..).zip(&files) {
            place.write(file.as_str(), "text");
            place.commit_at(&format!("2026-0{month}-01T12:00:00Z"), file.as_str());
        }
        let clone = place.root.path().join("clone");
        let to = clone.to_str().unwrap();
        place.git(&["clone", "--quiet", "--depth=2", &place.url(), to]);
        let history = local::history(&clone, &TreePath::root(), &files);
        assert_eq!(days(&history, &files), [None, None, Some("2026-03-01")]);
        assert_eq!(history.end(), &End::Shallow);
        let newest = local::history(&clone, &TreePath::root(), &files[2..]);
        assert_eq!(newest.end(), &End::Complete, "nothing is missing");
    }

    #[test]
    fn a_directory_without_a_repository_or_without_commits_says_why_it_has_no_days() {
        let root = tempfile::tempdir().unwrap();
        let files = [path("a.mdx")];
        let of = |root: &Path| local::history(root, &TreePath::root(), &files);
        assert!(matches!(of(root.path()).end(), End::Unreadable(_)));
        let place = TestRepository::new();
        assert!(matches!(of(&place.work()).end(), End::Unreadable(_)));
    }

    #[test]
    fn the_settings_of_a_work_tree_start_no_program() {
        let place = TestRepository::new();
        place.write("a.mdx", "a");
        place.commit_at("2026-01-01T12:00:00Z", "one");
        let (program, proof) = (
            place.root.path().join("run"),
            place.root.path().join("proof"),
        );
        fs::write(&program, format!("#!/bin/sh\ntouch {}\n", proof.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let program = program.to_str().unwrap();
        for key in [
            "core.fsmonitor",
            "core.pager",
            "diff.external",
            "gpg.program",
            "core.sshCommand",
        ] {
            place.git(&["config", key, program]);
        }
        place.git(&["config", "log.showSignature", "true"]);
        place.git(&["config", "log.showRoot", "false"]);
        let files = [path("a.mdx")];
        let history = local::history(&place.work(), &TreePath::root(), &files);
        assert_eq!(days(&history, &files), [Some("2026-01-01")]);
        assert!(!proof.exists());
    }
}

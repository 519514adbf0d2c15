//! The files of the numbers of sites: `numbers/{ab}/{project}/{day}.json`, where `{ab}` begins the
//! digest of the project.
//!
//! Several processes add to one file. Each locks the directory `numbers/{ab}` while it reads the
//! file and replaces it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Local;
use super::layout::{self, Lock};
use crate::clock::Day;
use crate::site::ProjectId;
use crate::store::ChangeNumbers;
use crate::store::durable::{self, FileError, Temp};

/// The largest file that is read.
const BYTES_MAX: u64 = 8 << 20;
const EXTENSION: &str = ".json";

impl Local {
    pub(in crate::store) fn numbers(
        &self,
        project: &ProjectId,
        first: Day,
        last: Day,
    ) -> Result<Vec<(Day, Vec<u8>)>, FileError> {
        let mut found = Vec::new();
        for (day, path) in days(&self.layout.numbers(project))? {
            if (first..=last).contains(&day)
                && let Some(bytes) = durable::read(&path, BYTES_MAX)?
            {
                found.push((day, bytes));
            }
        }
        found.sort_unstable_by_key(|(day, _)| *day);
        Ok(found)
    }

    pub(in crate::store) fn numbered(&self) -> Result<Vec<(ProjectId, Day)>, FileError> {
        let mut found = Vec::new();
        for shard in self.layout.number_shards().filter(|shard| shard.is_dir()) {
            for directory in super::sweep::list(&shard)? {
                if let Some(project) = project_of(&directory) {
                    let days = days(&directory)?.into_iter();
                    found.extend(days.map(|(day, _)| (project.clone(), day)));
                }
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Moves documents of numbers into a directory on the same file system, each as
    /// `{project}~{day}.json`: at most so many, and none after so many bytes.
    ///
    /// # Errors
    ///
    /// [`FileError`] when one could not be moved. Those before are moved, perhaps not durably.
    pub fn move_numbers(
        &self,
        to: &Path,
        files_max: usize,
        bytes_max: u64,
    ) -> Result<(), FileError> {
        let (mut files, mut bytes) = (0, 0);
        for shard in self.layout.number_shards().filter(|shard| shard.is_dir()) {
            let _lock = layout::lock_directory(&shard)?;
            let before = files;
            for directory in super::sweep::list(&shard)? {
                let Some(project) = project_of(&directory) else {
                    continue;
                };
                for (day, path) in days(&directory)? {
                    if files >= files_max || bytes >= bytes_max {
                        break;
                    }
                    bytes += length(&path)?;
                    let moved = to.join(format!("{project}~{day}{EXTENSION}"));
                    fs::rename(&path, &moved).map_err(FileError::on("move", &path))?;
                    files += 1;
                }
                // It stays if it has other files.
                if fs::remove_dir(&directory).is_err() {
                    durable::flush_directory(&directory)?;
                }
            }
            // An edge without requests flushes nothing.
            if files > before {
                durable::flush_directory(&shard)?;
            }
            if files >= files_max || bytes >= bytes_max {
                break;
            }
        }
        match files {
            0 => Ok(()),
            _ => durable::flush_directory(to),
        }
    }

    /// Removes the oldest days of numbers until they have at most so many bytes. Returns how many
    /// bytes are left, and how many documents were removed.
    ///
    /// # Errors
    ///
    /// [`FileError`] when the documents cannot be listed or removed.
    pub fn bound_numbers(&self, bytes_max: u64) -> Result<(u64, u64), FileError> {
        let mut all = Vec::new();
        for (project, day) in self.numbered()? {
            let path = self.numbers_file(&project, day);
            all.push((day, project, length(&path)?));
        }
        all.sort_unstable();
        let (mut bytes, mut removed) = (all.iter().map(|(_, _, bytes)| bytes).sum(), 0);
        for (day, project, length) in all {
            if bytes <= bytes_max {
                break;
            }
            let _lock = self.lock_numbers(&project)?;
            durable::remove(&self.numbers_file(&project, day))?;
            bytes -= length;
            removed += 1;
        }
        Ok((bytes, removed))
    }

    pub(in crate::store) fn change_numbers(
        &self,
        project: &ProjectId,
        day: Day,
        change: ChangeNumbers<'_>,
    ) -> Result<(), FileError> {
        let writer = self.layout.lock_for_writer()?;
        let _lock = self.lock_numbers(project)?;
        let directory = self.layout.numbers(project);
        let path = self.numbers_file(project, day);
        let before = durable::read(&path, BYTES_MAX)?;
        let Some(bytes) = change(before.as_deref()) else {
            return Ok(());
        };
        match before {
            // The new file is durable, but its name is not yet. After a power cut the previous file
            // may be back. A kill may lose the same counts, and this saves half of the flushes.
            Some(_) => Temp::write(writer.temp(), &bytes)?.rename(&path),
            None => {
                layout::make(&directory)?;
                durable::replace(writer.temp(), &path, &bytes)
            }
        }
    }

    pub(in crate::store) fn remove_numbers(&self, project: &ProjectId) -> Result<(), FileError> {
        let directory = self.layout.numbers(project);
        if !directory.is_dir() {
            return Ok(());
        }
        let _lock = self.lock_numbers(project)?;
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(FileError::on("remove", &directory)(error))
            }
            _ => Ok(()),
        }
    }

    pub(in crate::store) fn sweep_numbers(&self, first: Day) -> Result<u64, FileError> {
        let mut removed = 0;
        for shard in self.layout.number_shards().filter(|shard| shard.is_dir()) {
            let _lock = layout::lock_directory(&shard)?;
            for directory in super::sweep::list(&shard)? {
                let days = days(&directory)?;
                let old = days.iter().filter(|(day, _)| *day < first);
                for (_, path) in old.clone() {
                    durable::remove(path)?;
                    removed += 1;
                }
                if old.count() == days.len() {
                    // It stays if another program keeps something in it.
                    let _removed = fs::remove_dir(&directory);
                }
            }
        }
        Ok(removed)
    }

    fn numbers_file(&self, project: &ProjectId, day: Day) -> PathBuf {
        let directory = self.layout.numbers(project);
        directory.join(format!("{day}{EXTENSION}"))
    }

    fn lock_numbers(&self, project: &ProjectId) -> Result<Lock, FileError> {
        let directory = self.layout.numbers(project);
        let shard = directory.parent().unwrap_or(&directory);
        layout::make(shard)?;
        layout::lock_directory(shard)
    }
}

/// Lists the files of a project, in no particular order.
fn days(directory: &Path) -> Result<Vec<(Day, PathBuf)>, FileError> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let day_of = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?;
        Some((Day::parse(name).ok()?, path))
    };
    let listed = super::sweep::list(directory)?.into_iter();
    Ok(listed.filter_map(day_of).collect())
}

/// Returns the project of a directory of days.
fn project_of(directory: &Path) -> Option<ProjectId> {
    ProjectId::parse(directory.file_name()?.to_str()?).ok()
}

/// Returns the length of a file; 0 if there is none.
fn length(path: &Path) -> Result<u64, FileError> {
    match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(FileError::on("look at", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::local::Config;

    const DOCUMENTS: [(&str, &str); 3] = [
        ("a", "2026-11-01"),
        ("b", "2026-11-02"),
        ("a", "2026-11-03"),
    ];

    /// Makes a store with numbers of ten bytes for each of these days.
    fn store() -> (Local, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let config = Config {
            path: directory.path().join("store"),
            ..Config::default()
        };
        let local = Local::open(&config, Clock::System).unwrap();
        for (name, on) in DOCUMENTS {
            let mut write = |_before: Option<&[u8]>| Some(vec![b'x'; 10]);
            local
                .change_numbers(&project(name), day(on), &mut write)
                .unwrap();
        }
        (local, directory)
    }

    fn project(name: &str) -> ProjectId {
        ProjectId::parse(name).unwrap()
    }

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    fn left(local: &Local) -> Vec<String> {
        let numbered = local.numbered().unwrap().into_iter();
        numbered
            .map(|(project, day)| format!("{project}~{day}"))
            .collect()
    }

    #[test]
    fn the_oldest_numbers_are_removed_until_the_others_fit() {
        let all = ["a~2026-11-01", "a~2026-11-03", "b~2026-11-02"];
        for (bytes_max, bytes, expected) in [
            (30, 30, &all[..]),
            (29, 20, &all[1..]),
            (20, 20, &all[1..]),
            (19, 10, &all[1..2]),
            (0, 0, &[]),
        ] {
            let (local, _directory) = store();
            let removed = (all.len() - expected.len()) as u64;
            assert_eq!(local.bound_numbers(bytes_max).unwrap(), (bytes, removed));
            assert_eq!(left(&local), expected);
        }
    }

    #[test]
    fn numbers_are_moved_until_there_are_enough_files_or_bytes() {
        for (files_max, bytes_max, expected) in [
            (9, 1000, 3),
            (3, 30, 3),
            (2, 1000, 2),
            (9, 21, 3),
            (9, 20, 2),
            (9, 1, 1),
            (0, 1000, 0),
            (9, 0, 0),
        ] {
            let (local, directory) = store();
            let to = directory.path().join("to");
            fs::create_dir(&to).unwrap();
            local.move_numbers(&to, files_max, bytes_max).unwrap();
            let files = fs::read_dir(&to).unwrap();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<_> = names.collect();
            assert_eq!(names.len(), expected, "{files_max} {bytes_max}");
            // Each is in one place.
            names.extend(left(&local).iter().map(|name| format!("{name}.json")));
            names.sort_unstable();
            let mut all = DOCUMENTS.map(|(project, day)| format!("{project}~{day}.json"));
            all.sort_unstable();
            assert_eq!(names, all);
        }
    }

    #[test]
    fn a_sweep_removes_the_days_before_the_first_and_empty_directories() {
        let (local, _directory) = store();
        let other = local.layout.numbers(&project("b")).join("other.txt");
        fs::write(&other, "of another program").unwrap();
        assert_eq!(local.sweep_numbers(day("2026-11-01")).unwrap(), 0);
        assert_eq!(local.sweep_numbers(day("2026-11-03")).unwrap(), 2);
        assert_eq!(left(&local), ["a~2026-11-03"]);
        assert_eq!(local.sweep_numbers(day("2026-11-04")).unwrap(), 1);
        assert!(!local.layout.numbers(&project("a")).exists());
        assert!(other.exists());
    }
}

//! The stored files of the skill writer of a project, beside the mirrors.
//!
//! | file | contains |
//! |---|---|
//! | `{project}.skill` | the last accepted text, which is published |
//! | `{project}.skill-waiting` | a text that waits for approval |
//! | `{project}.skill-rejected` | why the writer is not asked again for the same documentation |
//!
//! The first line contains the digest of the documentation and the digest of the rest of the file.
//! So a file that a power failure has left incomplete is not used.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::StoredSkill;
use crate::digest::Digest;
use crate::site::ProjectId;

/// The longest file that is read, in bytes.
const BYTES_MAX: u64 = 8 << 20;

/// The files of a project.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SkillFiles {
    /// The last accepted text.
    pub accepted: PathBuf,
    /// The text that waits for approval.
    pub waiting: PathBuf,
    /// Why the writer is not asked again.
    pub rejected: PathBuf,
}

/// A text that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingSkill {
    /// The file that would be published, with a placeholder for the address of the site.
    pub text: String,
    /// How it differs from the accepted text, as lines.
    pub changes: Vec<String>,
}

// === impl SkillFiles ===

impl SkillFiles {
    /// Returns the files of a project; `mirrors` is the directory of the mirrors.
    #[must_use]
    pub fn of(mirrors: &Path, project: &ProjectId) -> Self {
        let mirrors = std::path::absolute(mirrors).unwrap_or_else(|_no_directory| mirrors.into());
        let file = |kind: &str| mirrors.join(format!("{}.{kind}", project.as_str()));
        Self {
            accepted: file("skill"),
            waiting: file("skill-waiting"),
            rejected: file("skill-rejected"),
        }
    }

    /// Returns all paths.
    pub(in crate::deploy::run) fn paths(&self) -> [PathBuf; 3] {
        [
            self.accepted.clone(),
            self.waiting.clone(),
            self.rejected.clone(),
        ]
    }

    pub(super) fn accepted_bytes(&self) -> Option<Vec<u8>> {
        read(&self.accepted)
    }

    pub(super) fn waiting_bytes(&self) -> Option<Vec<u8>> {
        read(&self.waiting)
    }

    /// Returns why the writer is not asked again for this documentation.
    pub(super) fn rejection_of(&self, input: &str) -> Option<String> {
        let bytes = read(&self.rejected)?;
        let (rejected, why) = without_head(&bytes)?;
        (rejected == input).then(|| String::from_utf8_lossy(why).into_owned())
    }

    /// Returns the text that waits for approval; `None` if there is none.
    #[must_use]
    pub fn waiting(&self) -> Option<WaitingSkill> {
        let text = |bytes: &[u8]| {
            let (_, body) = without_head(bytes)?;
            let stored: StoredSkill = serde_json::from_slice(body).ok()?;
            Some(stored.text)
        };
        let waiting = text(&self.waiting_bytes()?)?;
        let accepted = self.accepted_bytes().and_then(|bytes| text(&bytes));
        let changes = super::diff::lines(
            &accepted.unwrap_or_default(),
            &waiting,
            crate::discovery::BASE_URL_PLACEHOLDER,
        );
        Some(WaitingSkill {
            text: waiting,
            changes,
        })
    }

    /// Accepts the text that waits: the next update publishes it. Returns `false` if there is none.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn approve(&self) -> io::Result<bool> {
        if self.waiting().is_none() {
            return Ok(false);
        }
        fs::rename(&self.waiting, &self.accepted)?;
        Ok(true)
    }

    /// Rejects the text that waits: the writer is not asked again until the documentation changes.
    /// Returns `false` if there is none.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn reject(&self) -> io::Result<bool> {
        let Some(bytes) = self.waiting_bytes() else {
            return Ok(false);
        };
        let Some((input, _)) = without_head(&bytes) else {
            return Ok(false);
        };
        let partial = self.rejected.with_extension("partial");
        fs::write(&partial, with_head(input, b"an operator rejected the text"))?;
        fs::rename(&partial, &self.rejected)?;
        fs::remove_file(&self.waiting)?;
        Ok(true)
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let found = fs::metadata(path).ok()?;
    let is_short = found.is_file() && found.len() <= BYTES_MAX;
    is_short.then(|| fs::read(path).ok()).flatten()
}

/// Puts the first line before the content of a file. `input` is the digest of the documentation.
pub(super) fn with_head(input: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{input} {}\n", Digest::of(body)).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Returns the digest of the documentation and the content; `None` if the file is not whole.
pub(super) fn without_head(file: &[u8]) -> Option<(&str, &[u8])> {
    let (head, body) = file.split_at_checked(file.iter().position(|&b| b == b'\n')? + 1)?;
    let (input, output) = str::from_utf8(head).ok()?.trim_end().split_once(' ')?;
    (output == Digest::of(body).to_string()).then_some((input, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(files: &SkillFiles, text: &str) {
        let stored = StoredSkill {
            text: text.to_owned(),
            draft: None,
        };
        let body = serde_json::to_vec(&stored).unwrap();
        fs::write(
            &files.waiting,
            with_head(&Digest::of(b"docs").to_string(), &body),
        )
        .unwrap();
    }

    #[test]
    fn a_waiting_text_is_approved_or_rejected_once() {
        let directory = tempfile::tempdir().unwrap();
        let files = SkillFiles::of(directory.path(), &ProjectId::parse("acme").unwrap());
        assert!(files.waiting().is_none() && !files.approve().unwrap() && !files.reject().unwrap());
        waiting(&files, "one\n");
        assert_eq!(files.waiting().unwrap().text, "one\n");
        assert!(files.approve().unwrap());
        assert!(files.waiting().is_none() && files.accepted_bytes().is_some());

        waiting(&files, "two\n");
        assert_eq!(
            files.waiting().unwrap().changes[1..],
            ["generate: - one", "generate: + two"]
        );
        assert!(files.reject().unwrap());
        let digest = Digest::of(b"docs").to_string();
        assert!(files.rejection_of(&digest).unwrap().contains("rejected"));
        assert_eq!(files.rejection_of("other"), None);
        assert!(files.waiting().is_none());

        // A file that is not whole is not used.
        waiting(&files, "three\n");
        let bytes = fs::read(&files.waiting).unwrap();
        fs::write(&files.waiting, &bytes[..bytes.len() - 1]).unwrap();
        assert!(files.waiting().is_none() && !files.approve().unwrap());
    }
}

//! A writer of the `skill.md` of sites whose authors wrote none: a configured command or a language
//! model.
//!
//! A release is published first, as in every update. Its `skill.md` is the last text of the writer
//! that was accepted, for this or for an earlier state of the documentation; before the writer has
//! ever succeeded, it is the generated file. Then the writer runs in a process of its own, in a
//! sandbox, as a build, and in a slot of its own. If its text passes the rules, a second release
//! with it is stored and promoted. If not, the first release stays and the record says why.
//!
//! A written skill and a generated skill have the same name, and so the same address.
//!
//! | | [`command`] | [`model`], [`writer`] |
//! |---|---|---|
//! | reads | its standard input: [`command::Input`] | the pages, by tools |
//! | network | only with [`Config::network`] | connections that the parent opens, to one host |
//! | writes | the file | a draft with quotes, which becomes the file |
//! | rules | [`skills::accept`] | [`written::check`], which includes them |
//!
//! The process of the build applies the rules. It has no network, and waits with little memory
//! while the writer runs: it first drops everything except the two files that change.
//!
//! The texts are stored beside the mirrors ([`SkillFiles`]), and the published one also in the release
//! itself: so another worker, and a machine that was restored, publish it without the writer. With [`Config::approve`] a text that
//! has passed waits there until a person approves it. A model is not asked again as long as the
//! documentation is the same, whether its draft has passed or not.

mod command;
mod diff;
mod files;
mod model;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::build::Articles;
use crate::deploy::writer::{self, Failed, Outcome};
use crate::digest::Digest;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::Docs;
use crate::skills::written::{self, Draft};
use crate::skills::{self, Age, Generated, Material};

pub use command::PATH;
pub(super) use command::run;
pub use files::{SkillFiles, WaitingSkill};
pub(super) use model::{Running, run as run_model};

/// The writer, and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The program and its arguments; if empty, no command runs.
    pub command: Vec<Box<str>>,
    /// How long the command may take.
    pub time: Duration,
    /// How many bytes of the pages' texts the command gets.
    pub input_bytes_max: usize,
    /// How many bytes the command may write.
    pub output_bytes_max: u64,
    /// Whether the command may connect to other machines.
    pub network: bool,
    /// Files and directories that the command may read and execute, besides the files of the
    /// system.
    pub read: Vec<PathBuf>,
    /// Directories in which the command may write.
    pub write: Vec<PathBuf>,
    /// The language model.
    pub model: writer::Config,
    /// How many writers run at once.
    pub runs_max: usize,
    /// Whether a text is published only after a person has approved it.
    pub approve: bool,
}

/// The task of a writer: to improve a generated skill.
#[derive(Debug)]
pub(super) struct Task<'c> {
    /// The writer.
    pub(super) config: &'c Config,
    /// The documentation that the skill describes.
    material: Material,
    /// The input of a command; empty for a model.
    input: Vec<u8>,
    /// The digest of what the text is written from.
    digest: Digest,
    /// The skill files from earlier updates.
    files: Option<SkillFiles>,
    /// The text in the current release, in its stored form.
    released: Option<Vec<u8>>,
    /// The text that is published until there is a new one.
    published: String,
}

/// A text that has passed.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) skill: Generated,
    /// The result in the record of the update.
    pub(super) lines: Vec<String>,
    /// The stored form of the text.
    pub(super) stored: Vec<u8>,
}

/// The text that a writer wrote in an earlier update.
#[derive(Debug)]
pub(super) struct Last {
    pub(super) skill: Generated,
    pub(super) age: Age,
    /// The stored form of the text.
    pub(super) stored: Vec<u8>,
}

/// The search for such a text.
#[derive(Debug, Default)]
pub(super) struct LastAccepted {
    /// `None` if there is none that may be published.
    pub(super) text: Option<Last>,
    /// Why others may not be published, for the record of the update.
    pub(super) lines: Vec<String>,
}

/// Why a writer made no usable text.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// It cannot be started, or its pipes fail.
    #[error("{act} the writer: {source}")]
    Process {
        act: &'static str,
        source: io::Error,
    },
    /// The exit status of the command is not 0.
    #[error("the command ended with {0}")]
    Status(ExitStatus),
    /// The output of the command is longer than allowed.
    #[error("the command wrote more than {0} bytes")]
    OutputTooLarge(u64),
    /// The output of the command breaks a rule.
    #[error("the output of the command is rejected: {0}")]
    Rejected(#[from] skills::Rejected),
    /// The file of the command has code that no page has, or covers too little.
    #[error("the output of the command is rejected: {0}")]
    File(String),
    /// The model wrote nothing usable.
    #[error("{0}")]
    Model(#[from] Failed),
    /// The process of the model accepted a draft that breaks a rule.
    #[error("the draft of the model is rejected: {0}")]
    Draft(String),
}

/// The stored form of a text.
#[derive(Debug, Serialize, Deserialize)]
struct StoredSkill {
    /// The file.
    text: String,
    /// The draft of a model, whose quotes can be checked again.
    draft: Option<Draft>,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            time: Duration::from_secs(300),
            input_bytes_max: 4 << 20,
            output_bytes_max: 128 << 10,
            network: false,
            read: Vec::new(),
            write: Vec::new(),
            model: writer::Config::default(),
            runs_max: 2,
            approve: false,
        }
    }
}

impl Config {
    /// Returns whether there is a writer.
    #[must_use]
    pub fn has_writer(&self) -> bool {
        self.has_model() || !self.command.is_empty()
    }

    /// Returns whether the writer is a model.
    #[must_use]
    pub fn has_model(&self) -> bool {
        self.model.url.is_some()
    }

    /// Returns how long the writer may take.
    pub(super) fn time(&self) -> Duration {
        match self.has_model() {
            // The process of the model ends by itself, with a reason.
            true => self.model.limits.total + Duration::from_secs(30),
            false => self.time,
        }
    }

    /// Returns how records call the writer.
    pub(super) fn writer_name(&self) -> &'static str {
        match self.has_model() {
            true => "the model",
            false => "the command",
        }
    }
}

// === impl Accepted ===

impl Accepted {
    fn new(skill: Generated, lines: Vec<String>) -> Self {
        Self {
            skill,
            lines,
            stored: Vec::new(),
        }
    }
}

// === impl Task ===

impl<'c> Task<'c> {
    /// Makes the task of improving `skill`, the generated file `name` of a documentation whose
    /// pages are rendered as `articles`.
    pub(super) fn new(
        config: &'c Config,
        docs: &Docs,
        generated: (&str, &str),
        articles: &Articles,
        (files, released): (Option<SkillFiles>, Option<Vec<u8>>),
    ) -> Self {
        let material = Material::of(docs, generated, &articles.markdown(), BASE_URL_PLACEHOLDER);
        let (input, digest) = match config.has_model() {
            true => (Vec::new(), config.model.digest(&material)),
            false => {
                let input = command::input(config, &material);
                let words = serde_json::to_vec(&config.command);
                let words = words.expect("words are written as JSON");
                let digest = Digest::of(&[&words[..], &input].concat());
                (input, digest)
            }
        };
        Self {
            config,
            published: material.skill.clone(),
            material,
            input,
            digest,
            files,
            released,
        }
    }

    /// Writes what the writer reads: its input, and for a model the search index.
    pub(super) fn give(&self, input: &Path, index: (&Path, &[u8])) -> io::Result<()> {
        if !self.config.has_model() {
            return fs::write(input, &self.input);
        }
        let material = serde_json::to_vec(&self.material)?;
        fs::write(input, material)?;
        let (file, bytes) = index;
        fs::write(file, bytes)
    }

    /// Reads what the writer has written, checks it, and writes it to the file that the parent
    /// keeps.
    pub(super) fn take(&self, written: &Path, keep: &Path) -> Result<Accepted, WriteError> {
        let failed = |act| move |source| WriteError::Process { act, source };
        let bytes = fs::read(written).map_err(failed("read the output of"))?;
        let (mut accepted, draft) = match self.config.has_model() {
            true => {
                let outcome = serde_json::from_slice(&bytes).map_err(io::Error::other);
                match outcome.map_err(failed("read the output of"))? {
                    Outcome::Draft(draft) => (self.checked(&draft)?, Some(*draft)),
                    Outcome::Failed(why) => return Err(why.into()),
                }
            }
            false => {
                let skill = skills::accept(&self.material, &bytes, Age::Now)?;
                self.covers_as_much(&skill)?;
                (Accepted::new(skill, Vec::new()), None)
            }
        };
        accepted.lines.extend(diff::lines(
            &self.published,
            &accepted.skill.text,
            BASE_URL_PLACEHOLDER,
        ));
        let stored = StoredSkill {
            text: accepted.skill.text.clone(),
            draft,
        };
        let body = serde_json::to_vec(&stored).map_err(io::Error::other);
        let body = body.map_err(failed("keep the output of"))?;
        accepted.stored = files::with_head(&self.digest.to_string(), &body);
        if let Err(error) = fs::write(keep, &accepted.stored) {
            // The release has the text, too.
            log::warn!(target: "deploy", "cannot store the output of the writer: {error}");
        }
        Ok(accepted)
    }

    /// Applies the rules to the draft of a model.
    fn checked(&self, draft: &Draft) -> Result<Accepted, WriteError> {
        let checked = written::check(&self.material, draft);
        let checked = checked.map_err(|problems| WriteError::Draft(problems.join("; ")))?;
        let lines = vec![
            format!(
                "generate: {} statements with a quote of their page, {} blocks of code of pages",
                checked.statements, checked.code_blocks
            ),
            format!("generate: covered: {}", checked.covers),
            format!("generate: covered before: {}", checked.generated_covers),
        ];
        Ok(Accepted::new(checked.skill, lines))
    }

    /// Writes why the writer is not asked again for this documentation, for the parent to keep.
    pub(super) fn reject(&self, error: &WriteError, file: &Path) {
        let is_final = match error {
            WriteError::Model(failed) => failed.is_final,
            WriteError::Draft(_) => true,
            _ => false,
        };
        if !is_final {
            return;
        }
        let why = error.to_string();
        let rejection = files::with_head(&self.digest.to_string(), why.as_bytes());
        if let Err(error) = fs::write(file, rejection) {
            log::warn!(target: "deploy", "cannot store the rejection of the writer: {error}");
        }
    }

    /// Returns the last accepted text, and whether it was for the same documentation. It is
    /// published until there is a new one.
    ///
    /// The rules are applied again, because they may have changed.
    pub(super) fn last_accepted(&mut self) -> LastAccepted {
        let mut found = LastAccepted::default();
        let files = self.files.as_ref();
        let accepted = files.and_then(SkillFiles::accepted_bytes);
        let released = self.released.clone().filter(|bytes| !bytes.is_empty());
        let candidates = match self.config.approve {
            // What a person has approved is newer than the release.
            true => [None, accepted, released],
            // Another worker may have written the release. Without approval, what waits for it may
            // be published.
            false => [
                files.and_then(SkillFiles::waiting_bytes),
                released,
                accepted,
            ],
        };
        for stored in candidates.into_iter().flatten() {
            let age = found.text.as_ref().map(|last| last.age);
            match self.accepted_before(&stored) {
                Ok(Some((skill, Age::Now))) => {
                    let age = Age::Now;
                    found.text = Some(Last { skill, age, stored });
                    break;
                }
                Ok(Some((skill, Age::Earlier))) if age.is_none() => {
                    let age = Age::Earlier;
                    found.text = Some(Last { skill, age, stored });
                }
                Ok(_) => {}
                Err(why) => {
                    let line =
                        format!("generate: the last output of the writer is not used: {why}");
                    if !found.lines.contains(&line) {
                        found.lines.push(line);
                    }
                }
            }
        }
        if let Some(last) = &found.text {
            self.published.clone_from(&last.skill.text);
            found.lines.clear();
        }
        found
    }

    /// Reads a stored text; `None` if it is not whole.
    ///
    /// # Errors
    ///
    /// The rule that the text breaks.
    fn accepted_before(&self, bytes: &[u8]) -> Result<Option<(Generated, Age)>, String> {
        let Some((input, body)) = files::without_head(bytes) else {
            return Ok(None);
        };
        let Ok(stored) = serde_json::from_slice::<StoredSkill>(body) else {
            return Ok(None);
        };
        let accept = |age| {
            let accepted = skills::accept(&self.material, stored.text.as_bytes(), age);
            accepted.map_err(|rejected| rejected.to_string())
        };
        if input != self.digest.to_string() {
            return Ok(Some((accept(Age::Earlier)?, Age::Earlier)));
        }
        let skill = match &stored.draft {
            Some(draft) => {
                let checked = written::check(&self.material, draft);
                checked.map_err(|problems| problems.join("; "))?.skill
            }
            None => {
                let skill = accept(Age::Now)?;
                self.covers_as_much(&skill)
                    .map_err(|error| error.to_string())?;
                skill
            }
        };
        Ok(Some((skill, Age::Now)))
    }

    /// Checks that the file of a command covers what the generated file covers, and that its code is
    /// code of a page.
    fn covers_as_much(&self, skill: &Generated) -> Result<(), WriteError> {
        let problems = written::check_file(&self.material, &skill.text);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(WriteError::File(problems.join("; "))),
        }
    }

    /// Returns why the writer need not run now: its text for this documentation waits for a person,
    /// or was rejected.
    pub(super) fn reason_to_wait(&self) -> Option<String> {
        let files = self.files.as_ref()?;
        let digest = self.digest.to_string();
        if self.config.approve
            && let Some(bytes) = files.waiting_bytes()
            && files::without_head(&bytes).is_some_and(|(input, _)| input == digest)
        {
            return Some("a skill for these pages waits for approval".to_owned());
        }
        let why = files.rejection_of(&digest)?;
        Some(format!(
            "the writer is not asked again for the same pages: {why}"
        ))
    }
}

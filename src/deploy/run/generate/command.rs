//! The command of the operator.
//!
//! It gets:
//!
//! * on its standard input one JSON object, [`Input`]: the generated `skill.md`, its name, which
//!   the command must keep, the limits, the base URL that every link must begin with (a
//!   placeholder, because a release knows no domain), and the pages that it may mention, with their
//!   texts in Markdown as agents get them;
//! * a new empty directory, which is also its `HOME` and `TMPDIR` and is removed afterwards. It
//!   writes there and in the directories of [`Config::write`], and reads the programs and libraries
//!   of the system, the files that its arguments name, and [`Config::read`];
//! * network only with [`Config::network`];
//! * no other environment variables except `PATH` and `LANG`: the operator puts credentials for a
//!   model into files, and names these files in the arguments.
//!
//! It writes the file to its standard output and ends with status 0. Its standard error is the
//! standard error of the service. It never goes into a record, because customers read records.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use super::super::child::Parent;
use super::super::job::{CommandJob, Event};
use super::{Config, WriteError};
use crate::skills::{CHARACTERS_MAX, LINES_MAX, Material};

/// The search path for the command and the programs that it starts.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The JSON object on the command's standard input.
#[derive(Debug, Serialize)]
pub(super) struct Input<'a> {
    /// The prefix that every link must have.
    base_url: &'a str,
    /// The most lines and characters that the command may write.
    lines_max: usize,
    characters_max: usize,
    /// The generated file.
    skill: &'a str,
    /// Its name, which the command must keep.
    name: &'a str,
    /// The public pages of the default language and version.
    pages: Vec<Page<'a>>,
}

#[derive(Debug, Serialize)]
struct Page<'a> {
    url: String,
    group: &'a str,
    title: &'a str,
    about: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<&'a str>,
    /// The page as agents get it, in Markdown; empty when the limit of the input is reached.
    text: &'a str,
}

/// Writes the input of the command.
pub(super) fn input(config: &Config, material: &Material) -> Vec<u8> {
    let mut remaining = config.input_bytes_max;
    let pages = material.pages.iter().map(|page| {
        let text = match remaining.checked_sub(page.text.len()) {
            Some(rest) => {
                remaining = rest;
                &*page.text
            }
            None => "",
        };
        Page {
            url: format!("{}{}", material.base_url, page.path),
            group: &page.group,
            title: &page.title,
            about: &page.about,
            endpoint: page.endpoint.as_deref(),
            text,
        }
    });
    let input = Input {
        base_url: &material.base_url,
        lines_max: LINES_MAX,
        characters_max: CHARACTERS_MAX,
        skill: &material.skill,
        name: &material.name,
        pages: pages.collect(),
    };
    serde_json::to_vec(&input).expect("texts and numbers are written as JSON")
}

/// Runs the command in its process, and reports how it ended.
///
/// There is no time limit here: when the time is over, the parent kills this process and every
/// process that it has started.
pub(in crate::deploy::run) fn run(job: &CommandJob, parent: &mut Parent<'_>) {
    let written = job.config.run(&job.home, &job.input);
    let stored = written.and_then(|written| {
        fs::write(&job.output, written).map_err(|source| WriteError::Process {
            act: "keep the output of",
            source,
        })
    });
    parent.report(match stored {
        Ok(()) => Event::Done,
        Err(error) => Event::SkillStays(error.to_string()),
    });
}

// === impl Config ===

impl Config {
    /// Returns the files that the words of the command name.
    pub(in crate::deploy::run) fn named_files(&self) -> impl Iterator<Item = PathBuf> {
        let words = self.command.iter().map(|word| Path::new(&**word));
        let files = words.filter(|word| word.is_absolute() && word.is_file());
        files.map(Path::to_owned)
    }

    fn run(&self, directory: &Path, input: &Path) -> Result<Vec<u8>, WriteError> {
        let failed = |act| move |source| WriteError::Process { act, source };
        let input = File::open(input).map_err(failed("write to"))?;
        let mut process = self.process(directory);
        let mut process = process.stdin(input).spawn().map_err(failed("start"))?;
        let mut written = Vec::new();
        if let Some(stdout) = process.stdout.take() {
            stdout
                .take(self.output_bytes_max + 1)
                .read_to_end(&mut written)
                .map_err(failed("read from"))?;
        }
        if written.len() as u64 > self.output_bytes_max {
            return Err(WriteError::OutputTooLarge(self.output_bytes_max));
        }
        let status = process.wait().map_err(failed("wait for"))?;
        if !status.success() {
            return Err(WriteError::Status(status));
        }
        Ok(written)
    }

    fn process(&self, directory: &Path) -> Command {
        let program = self.command.first().map_or("", |program| program);
        let mut process = Command::new(program);
        process
            .args(self.command.iter().skip(1).map(|argument| &**argument))
            .env_clear()
            .env("PATH", PATH)
            .env("LANG", "C.UTF-8")
            .env("HOME", directory)
            .env("TMPDIR", directory)
            .current_dir(directory)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        process
    }
}

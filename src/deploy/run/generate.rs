//! A configured command that writes the `skill.md` of sites whose authors wrote none.
//!
//! A release is published first, as in every update. Its `skill.md` is the last output of the
//! command that was accepted, for this or for an earlier state of the documentation; before the
//! command has ever succeeded, it is the generated file. Then the command runs in a process of its
//! own, in a sandbox, as a build. The same rules ([`skills::accept`]) apply to its output. If the output
//! passes, a second release with it is stored and promoted. If the command fails, takes too long,
//! writes too much or breaks a rule, the first release stays and the record says why.
//!
//! A written skill and a generated skill have the same name, and so the same address.
//!
//! The command gets:
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
//!
//! Its last accepted output is kept beside the mirrors, with the digests of the input and of the
//! output. An update with the same input publishes it and does not run the command.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::child::Parent;
use super::job::{CommandJob, Event};
use crate::build::Articles;
use crate::digest::Digest;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::Docs;
use crate::skills::{self, Age, CHARACTERS_MAX, Generated, LINES_MAX};

/// The search path for the command and the programs that it starts.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The command, and its limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The program and its arguments; if empty, no command runs and the generated file stays.
    pub command: Vec<Box<str>>,
    /// How long it may take.
    pub time: Duration,
    /// How many bytes of the pages' texts it gets.
    pub input_bytes_max: usize,
    /// How many bytes it may write.
    pub output_bytes_max: u64,
    /// Whether it may connect to other machines.
    pub network: bool,
    /// Files and directories that it may read and execute, besides the files of the system.
    pub read: Vec<PathBuf>,
    /// Directories in which it may write.
    pub write: Vec<PathBuf>,
}

/// The input of the command: a generated skill that it must improve.
#[derive(Debug)]
pub(super) struct Task<'c> {
    /// The command.
    pub(super) config: &'c Config,
    /// The documentation that the skill describes.
    docs: Docs,
    /// The name of the generated file.
    name: String,
    /// The standard input of the command: [`Input`] as JSON.
    input: Vec<u8>,
    /// The file with the last accepted output of the command, if there is any.
    cache: Option<PathBuf>,
}

/// The JSON object on the command's standard input.
#[derive(Debug, Serialize)]
struct Input<'a> {
    /// The prefix that every link must have.
    base_url: &'static str,
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
    group: String,
    title: String,
    about: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// The page as agents get it, in Markdown; empty when the limit of the input is reached.
    text: &'a str,
}

/// Why the command made no usable file.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// It cannot be started, or its pipes fail.
    #[error("{act} the command: {source}")]
    Command {
        act: &'static str,
        source: io::Error,
    },
    /// Its exit status is not 0.
    #[error("the command ended with {0}")]
    Status(std::process::ExitStatus),
    /// Its output is longer than allowed.
    #[error("the command wrote more than {0} bytes")]
    OutputTooLarge(u64),
    /// Its output breaks a rule.
    ///
    /// The authors read the reason, so it names a page by its path on the site.
    #[error("the output of the command is rejected: {}", .0.to_string().replace(BASE_URL_PLACEHOLDER, ""))]
    Rejected(#[from] skills::Rejected),
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
        }
    }
}

impl Config {
    /// Returns the files that the words of the command name.
    pub(super) fn named_files(&self) -> impl Iterator<Item = PathBuf> {
        let words = self.command.iter().map(|word| Path::new(&**word));
        let files = words.filter(|word| word.is_absolute() && word.is_file());
        files.map(Path::to_owned)
    }

    fn run(&self, directory: &Path, input: &Path) -> Result<Vec<u8>, WriteError> {
        let failed = |act| move |source| WriteError::Command { act, source };
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

// === impl Task ===

impl<'c> Task<'c> {
    /// Makes the task of improving `skill`, the generated file `name` of documentation whose pages
    /// are rendered as `articles`.
    pub(super) fn new(
        config: &'c Config,
        docs: Docs,
        name: &str,
        skill: &str,
        articles: &Articles,
        cache: Option<PathBuf>,
    ) -> Self {
        Self {
            input: input(config, &docs, (name, skill), &articles.markdown()),
            config,
            docs,
            name: name.to_owned(),
            cache,
        }
    }

    /// Writes the input of the command to a file.
    pub(super) fn give(&self, file: &Path) -> io::Result<()> {
        fs::write(file, &self.input)
    }

    /// Reads what the command has written, checks it, and writes it to the file that the parent
    /// keeps for the next update.
    pub(super) fn take(&self, written: &Path, keep: &Path) -> Result<Generated, WriteError> {
        let failed = |act| move |source| WriteError::Command { act, source };
        let written = fs::read(written).map_err(failed("read the output of"))?;
        let accepted = self.accept(&written, Age::Now)?;
        let head = head(&self.digest(), &written);
        if let Err(error) = fs::write(keep, [head.as_bytes(), &written].concat()) {
            // Without the cached output, the next update runs the command again.
            log::warn!(target: "deploy", "keep the output of the command: {error}");
        }
        Ok(accepted)
    }

    /// Returns the last accepted output of the command, and whether it was for the same input.
    ///
    /// The rules are applied again, because they may have changed.
    pub(super) fn kept(&self) -> Option<(Generated, Age)> {
        let file = fs::read(self.cache.as_ref()?).ok()?;
        let (head, written) = file.split_at_checked(file.iter().position(|&b| b == b'\n')? + 1)?;
        let (input, output) = str::from_utf8(head).ok()?.trim_end().split_once(' ')?;
        if output != Digest::of(written).to_string() {
            return None;
        }
        let age = match input == self.digest().to_string() {
            true => Age::Now,
            false => Age::Earlier,
        };
        Some((self.accept(written, age).ok()?, age))
    }

    fn accept(&self, written: &[u8], age: Age) -> Result<Generated, skills::Rejected> {
        skills::accept(&self.docs, written, &self.name, BASE_URL_PLACEHOLDER, age)
    }

    /// Returns the digest of the command and its input.
    ///
    /// The output depends on both; other dependencies of the command are not known here.
    fn digest(&self) -> Digest {
        let command = serde_json::to_vec(&self.config.command);
        let command = command.expect("words are written as JSON");
        Digest::of(&[&command[..], &self.input].concat())
    }
}

fn input(
    config: &Config,
    docs: &Docs,
    (name, skill): (&str, &str),
    texts: &HashMap<&str, &str>,
) -> Vec<u8> {
    let mut remaining = config.input_bytes_max;
    let pages = skills::source_pages(docs).into_iter().map(|page| {
        let path = page.url.trim_start_matches('/');
        let text = texts.get(path).copied().unwrap_or_default();
        let text = match remaining.checked_sub(text.len()) {
            Some(rest) => {
                remaining = rest;
                text
            }
            None => "",
        };
        Page {
            url: format!("{BASE_URL_PLACEHOLDER}{}", page.url),
            group: page.group,
            title: page.title,
            about: page.about,
            endpoint: page.endpoint,
            text,
        }
    });
    let input = Input {
        base_url: BASE_URL_PLACEHOLDER,
        lines_max: LINES_MAX,
        characters_max: CHARACTERS_MAX,
        skill,
        name,
        pages: pages.collect(),
    };
    serde_json::to_vec(&input).expect("texts and numbers are written as JSON")
}

/// Returns the first line of a cache file.
///
/// If a power failure has left the file incomplete, this line does not match its content.
fn head(input: &Digest, written: &[u8]) -> String {
    format!("{input} {}\n", Digest::of(written))
}

/// Runs the command in its process, and reports how it ended.
///
/// There is no time limit here: when the time is over, the parent kills this process and every
/// process that it has started.
pub(super) fn run(job: &CommandJob, parent: &mut Parent<'_>) {
    let written = job.config.run(&job.home, &job.input);
    let kept = written.and_then(|written| {
        fs::write(&job.output, written).map_err(|source| WriteError::Command {
            act: "keep the output of",
            source,
        })
    });
    parent.report(match kept {
        Ok(()) => Event::Done,
        Err(error) => Event::SkillStays(error.to_string()),
    });
}

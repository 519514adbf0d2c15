//! A configured command that writes the `skill.md` of sites whose authors wrote none.
//!
//! The deterministic file is published first, as with every update. Then, in the build's own
//! process and under its limits, the command runs; what it writes is judged by the same
//! rules ([`skills::accept`]), and when it passes, a second release with it is put and
//! promoted after the first. A command that fails, takes too long, says too much or breaks a
//! rule changes nothing but the record, which says why.
//!
//! What the command is given:
//!
//! * on its standard input one JSON object, [`Input`]: the deterministic `skill.md`, the
//!   bounds, the base URL that every link must begin with (a placeholder, since a release
//!   knows no domain), and the pages it may speak of, with their texts;
//! * an empty directory of its own, which is also its `HOME` and `TMPDIR` and is removed
//!   afterwards;
//! * no environment beyond those, `PATH` and `LANG`: what it needs to reach a model lies in
//!   files that the operator names in its arguments.
//!
//! It writes the file on its standard output and ends with status 0. What it says on its
//! standard error goes where ours goes, and never into a record, which customers read.
//!
//! What it wrote is kept beside the mirrors, with the digest of what it was told and of its
//! own words: an update that would tell the same publishes that at once and runs nothing.
//!
//! Source: `internals/decisions#generated-skill`.

use std::fs::{self, DirBuilder};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::Docs;
use crate::skills::{self, CHARACTERS_MAX, Generated, LINES_MAX};

/// Where the command and what it starts are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Which command writes, and what it may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The program and its arguments; nothing: the deterministic file stays.
    pub command: Vec<Box<str>>,
    /// How long it may take.
    pub time: Duration,
    /// How much it is told of the pages' texts.
    pub input_bytes_max: usize,
    /// How much it may write.
    pub output_bytes_max: u64,
}

/// A skill that nobody wrote, for the command to write a better one.
#[derive(Debug)]
pub(super) struct Task<'c> {
    /// The command.
    pub(super) config: &'c Config,
    /// The documentation that the skill is of.
    pub(super) docs: Docs,
    /// The deterministic file.
    pub(super) skill: String,
    /// Where what the command wrote is kept.
    pub(super) kept: PathBuf,
}

/// What the command reads.
#[derive(Debug, Serialize)]
struct Input<'a> {
    /// What every link must begin with.
    base_url: &'static str,
    /// The most lines and characters of what it writes.
    lines_max: usize,
    characters_max: usize,
    /// The file that stands until it has written a better one.
    skill: &'a str,
    /// The pages of the default language and version that everybody may read.
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
    /// The author's MDX; empty where the bound on the input is reached.
    text: &'a str,
}

/// Why there is no other file.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    /// It cannot be started, or spoken with.
    #[error("{act} the command: {source}")]
    Command {
        act: &'static str,
        source: io::Error,
    },
    /// It says itself that it has failed.
    #[error("the command ended with {0}")]
    Status(std::process::ExitStatus),
    /// More than anybody reads.
    #[error("the command wrote more than {0} bytes")]
    TooMuch(u64),
    /// A rule is broken.
    #[error("what the command wrote is refused: {0}")]
    Refused(#[from] skills::Refused),
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            time: Duration::from_secs(300),
            input_bytes_max: 4 << 20,
            output_bytes_max: 128 << 10,
        }
    }
}

impl Config {
    fn run(&self, directory: &Path, input: Vec<u8>) -> Result<Vec<u8>, WriteError> {
        let failed = |act| move |source| WriteError::Command { act, source };
        DirBuilder::new()
            .mode(0o700)
            .create(directory)
            .map_err(failed("make a directory for"))?;
        let mut process = self.process(directory).spawn().map_err(failed("start"))?;
        let stdin = process.stdin.take();
        // It may write before it has read everything, or never read at all.
        let told = std::thread::Builder::new()
            .name("generate-input".to_owned())
            .spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(&input)))
            .map_err(failed("speak with"))?;
        let mut written = Vec::new();
        if let Some(stdout) = process.stdout.take() {
            stdout
                .take(self.output_bytes_max + 1)
                .read_to_end(&mut written)
                .map_err(failed("read from"))?;
        }
        if written.len() as u64 > self.output_bytes_max {
            return Err(WriteError::TooMuch(self.output_bytes_max));
        }
        let status = process.wait().map_err(failed("wait for"))?;
        if !status.success() {
            return Err(WriteError::Status(status));
        }
        // A command that does not need to know everything closes its input: no failure.
        drop(told);
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
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        process
    }
}

// === impl Task ===

impl Task<'_> {
    /// Runs the command in a directory of its own, and keeps what it wrote.
    ///
    /// Nothing here holds the clock: whoever started this process ends it and everything it
    /// has started when the time is over.
    pub(super) fn write(&self) -> Result<Generated, WriteError> {
        let input = self.input();
        let material = self.digest(&input);
        let written = self.config.run(&directory(std::process::id()), input)?;
        let accepted = skills::accept(&self.docs, &written, BASE_URL_PLACEHOLDER)?;
        if let Err(error) = keep(&self.kept, &material, &written) {
            // The next update runs the command again.
            log::warn!(target: "deploy", "keep {}: {error}", self.kept.display());
        }
        Ok(accepted)
    }

    /// Returns what the command has written of the very same, if that is kept. It is judged
    /// again: the rules may have changed.
    pub(super) fn kept(&self) -> Option<Generated> {
        let file = fs::read(&self.kept).ok()?;
        let (head, written) = file.split_at_checked(file.iter().position(|&b| b == b'\n')? + 1)?;
        let material = self.digest(&self.input());
        if head != self::head(&material, written).as_bytes() {
            return None;
        }
        skills::accept(&self.docs, written, BASE_URL_PLACEHOLDER).ok()
    }

    /// Returns the digest of everything that decides what the command writes, as far as we
    /// know it.
    fn digest(&self, input: &[u8]) -> Digest {
        let command = serde_json::to_vec(&self.config.command);
        let command = command.expect("words are written as JSON");
        Digest::of(&[&command, input].concat())
    }

    fn input(&self) -> Vec<u8> {
        let mut left = self.config.input_bytes_max;
        let pages = skills::material(&self.docs).into_iter().map(|page| {
            let text = match left.checked_sub(page.text.len()) {
                Some(rest) => {
                    left = rest;
                    page.text
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
            skill: &self.skill,
            pages: pages.collect(),
        };
        serde_json::to_vec(&input).expect("texts and numbers are written as JSON")
    }
}

/// Keeps what a command wrote, and what it was told.
fn keep(kept: &Path, material: &Digest, written: &[u8]) -> io::Result<()> {
    let partial = kept.with_extension("partial");
    let head = head(material, written);
    fs::write(&partial, [head.as_bytes(), written].concat())?;
    fs::rename(partial, kept)
}

/// The first line of what is kept. A file that a power cut has left incomplete has another.
fn head(material: &Digest, written: &[u8]) -> String {
    format!("{material} {}\n", Digest::of(written))
}

/// Returns the directory of the command that a build process runs.
fn directory(process: u32) -> PathBuf {
    std::env::temp_dir().join(format!("waypost-generate-{process}"))
}

/// Removes what a build process has left: it may have been killed in the middle.
pub(super) fn clean(process: u32) {
    let directory = directory(process);
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            log::warn!(target: "deploy", "remove {}: {error}", directory.display());
        }
        _ => {}
    }
}

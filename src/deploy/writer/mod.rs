//! A language model writes the skill of a site: the loop of requests and tools.
//!
//! The model is asked over the API of a provider, or of a local server that speaks it
//! ([`Provider`]). It gets tools to read the built documentation (`tool`) and works in steps: a
//! plan, a draft, and corrections until the draft passes
//! [`written::check`](crate::skills::written::check()).
//!
//! | module | does |
//! |---|---|
//! | `config` | the settings |
//! | `wire` | requests and answers in the format of a provider |
//! | `client` | sends a request, and repeats it when that may help |
//! | `connection` | the connector of the HTTP client: it uses sockets that the parent has opened |
//! | `tool` | the tools, over the pages and the search index of the release |
//! | `prompt` | the texts for the model |
//! | `budget` | steps, tokens, time and money |
//! | `conversation` | the loop |
//! | `evaluation` | the judgement of a model about a written skill |
//!
//! It runs in a process of its own ([`run`](super::run)) that can open no socket: it asks its
//! parent for each connection, and the parent connects only to the host of the configuration. The
//! process reads only its input. The parent gives it the key.
//!
//! **Invariant:** text of the documentation is data. The model gets it only as the result of a tool;
//! a model that judges a file gets it as quoted lines. The model has no tool that changes anything, and
//! the process of the build, which has no network, checks what it proposes.
//!
//! **Invariant:** the key is in no event, no log and no file. Texts of the provider are shown only
//! after the key was removed from them, and never in a record.
//!
//! Sources: Anthropic API, "Messages" and "Errors" (version 2023-06-01); `OpenAI` API reference,
//! "Chat Completions"; RFC 9110 §10.2.3 (Retry-After).

mod budget;
mod client;
mod config;
mod connection;
mod conversation;
mod evaluation;
mod prompt;
mod tool;
mod wire;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::skills::Material;
use crate::skills::written::Draft;

pub use budget::{Budget, Spent};
pub use client::Link;
pub use config::{Config, InvalidAddress, Price, Provider, ServerAddress, StepLimits};
pub use conversation::{Report, converse};

/// A version of prompts, tools and checks. A change makes every skill be written again.
const VERSION: u32 = 2;
/// The longest draft that is read, in bytes.
pub const OUTCOME_BYTES_MAX: u64 = 4 << 20;

/// The order for one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The settings.
    pub config: Config,
    /// The key for the API.
    pub key: Key,
    /// The budget.
    pub budget: Budget,
    /// The file with the [`Material`], as JSON.
    pub material: PathBuf,
    /// The file with the search index of the release.
    pub index: PathBuf,
    /// The file for the [`Outcome`], as JSON.
    pub output: PathBuf,
}

/// The key for an API. It is never shown.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key(Option<String>);

/// How a conversation ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model has written a draft that passed in this process.
    Draft(Box<Draft>),
    /// There is no draft.
    Failed(Failed),
}

/// Why a model wrote no skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{why}")]
pub struct Failed {
    /// The reason, for the record. It contains no text of the provider.
    pub why: String,
    /// Whether the model is not asked again for the same documentation.
    pub is_final: bool,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[error("read the key of the model from {}", .path.display())]
pub struct KeyError {
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

// === impl Key ===

impl Key {
    /// Reads the key from a file; without a file there is no key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] when the file cannot be read or its text is no key.
    pub fn read(file: Option<&Path>) -> Result<Self, KeyError> {
        let Some(path) = file else {
            return Ok(Self::default());
        };
        let failed = |source| KeyError {
            path: path.to_owned(),
            source,
        };
        let key = fs::read_to_string(path).map_err(failed)?;
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let source = std::io::Error::other("it is empty, or has other characters than a key");
            return Err(failed(source));
        }
        Ok(Self(Some(key.to_owned())))
    }

    /// Returns the text, for the header of a request.
    fn expose(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// Removes the key from a text of the provider.
    fn hide(&self, text: &str) -> String {
        match &self.0 {
            Some(key) => text.replace(key.as_str(), "[key]"),
            None => text.to_owned(),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.0.is_some()).finish()
    }
}

// === impl Failed ===

impl Failed {
    fn last(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_final: true,
        }
    }

    fn now(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_final: false,
        }
    }
}

// === impl Config ===

impl Config {
    /// Returns the digest of the documentation and of the model. The text of a model may differ for
    /// the same digest, but it is not asked again. The generated skill is not a part of it: a new
    /// version of this program may generate another one from the same documentation.
    #[must_use]
    pub fn digest(&self, material: &Material) -> crate::digest::Digest {
        let documentation = material.documentation();
        let value = (VERSION, self.provider, &self.model, documentation);
        let bytes = serde_json::to_vec(&value).expect("texts and numbers are written as JSON");
        crate::digest::Digest::of(&bytes)
    }
}

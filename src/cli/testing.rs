//! For tests: a configuration with its own store and documentation, in a temporary directory.

use std::fs;
use std::path::PathBuf;

use super::settings::{self, Settings};
use crate::store::Store;

/// A directory with a configuration, a store and documentation.
#[derive(Debug)]
pub(super) struct Installation {
    directory: tempfile::TempDir,
}

impl Installation {
    pub(super) fn new() -> Self {
        let installation = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let store = installation.directory.path().join("store");
        let conf = format!("store: {{ local: {{ path: {store:?} }} }}\n");
        fs::write(installation.conf(), conf).unwrap();
        installation
    }

    fn conf(&self) -> PathBuf {
        self.directory.path().join("waypost.yaml")
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            conf: Some(self.conf()),
        }
    }

    pub(super) fn store(&self) -> Store {
        settings::open_store(&self.settings().load().unwrap()).unwrap()
    }

    /// Writes documentation with this `skill.md`.
    pub(super) fn documentation(&self, skill: &str) -> PathBuf {
        let docs = self.directory.path().join("docs");
        fs::create_dir(&docs).unwrap();
        fs::write(docs.join("skill.md"), skill).unwrap();
        docs
    }
}

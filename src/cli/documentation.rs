//! The arguments that name a directory of documentation on this machine.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::build::Options;
use crate::deploy::run::DocsDirectory;
use crate::diagnostic::Diagnostic;
use crate::docs::Needs;
use crate::site::Service;
use crate::source::git::local;
use crate::source::history::History;
use crate::source::remote::{self, Pattern};
use crate::source::{Tree, directory};

/// Documentation in a directory.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub struct Documentation {
    /// The directory that holds the documentation
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// The root of its repository; files outside of it are not read [default: the nearest
    /// parent directory with a `.git`]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The short name of the service: skills are read from `.{NAME}/skills` [default:
    /// `service.name` of the configuration, or waypost]
    #[arg(long, value_name = "NAME")]
    pub service_name: Option<String>,
    /// Allow specifications to be fetched by URL from this host, such as api.acme.com,
    /// *.acme.com or *
    #[arg(long, value_name = "HOST")]
    pub fetch_from: Vec<Pattern>,
    /// Report rules N1 and N2 as warnings, not as errors
    #[arg(long)]
    pub lenient: bool,
    /// Whether a release without pages may be published; only `publish` has an option for it.
    #[arg(skip)]
    pub allow_empty: bool,
}

// === impl Documentation ===

impl Documentation {
    /// Reads the directory, in a sandboxed process. The diagnostics name the files that were
    /// left out.
    ///
    /// # Errors
    ///
    /// When a directory does not exist, cannot be read or is too large.
    pub fn open(&self) -> anyhow::Result<(Tree, Vec<Diagnostic>)> {
        let opened = directory::locate(&self.path, self.root.as_deref())
            .and_then(|(root, docs)| directory::open(&root, &docs, directory::Limits::default()));
        opened.with_context(|| format!("open documentation in {}", self.path.display()))
    }

    /// Reads the days on which pages were last changed, in a sandboxed process; `None` if none are
    /// needed.
    #[must_use]
    pub fn history(&self, needs: &Needs) -> Option<History> {
        if needs.undated.is_empty() {
            return None;
        }
        let (root, _) = directory::locate(&self.path, self.root.as_deref()).ok()?;
        Some(local::history(&root, &needs.docs_root, &needs.undated))
    }

    /// Finds the directory and the root of its repository.
    ///
    /// # Errors
    ///
    /// When one does not exist, or the directory is not below the root.
    pub fn place(&self) -> anyhow::Result<DocsDirectory> {
        let (root, docs) = directory::locate(&self.path, self.root.as_deref())
            .with_context(|| format!("open documentation in {}", self.path.display()))?;
        let path = match docs.is_root() {
            true => root.clone(),
            false => root.join(docs.as_str()),
        };
        Ok(DocsDirectory { path, root })
    }

    /// Returns the same documentation, with paths that are valid in every directory.
    #[must_use]
    pub fn at(&self, place: &DocsDirectory) -> Self {
        Self {
            path: place.path.clone(),
            root: Some(place.root.clone()),
            ..self.clone()
        }
    }

    /// Returns how specifications are fetched: as configured, and also from the hosts that the
    /// command line names.
    #[must_use]
    pub fn specifications(&self, configured: &remote::Config) -> remote::Config {
        let mut config = configured.clone();
        config.hosts.extend(self.fetch_from.iter().cloned());
        // A host that is named in full may have a private address; one that a pattern matches
        // may not.
        let named = self.fetch_from.iter().filter(|pattern| pattern.is_one());
        config.private_hosts.extend(named.cloned());
        config
    }

    /// Returns how a service builds it: under its name unless another is given.
    #[must_use]
    pub fn options(&self, service: &Service) -> Options {
        let mut options = Options::of(service);
        if let Some(name) = &self.service_name {
            options.service_name = name.as_str().into();
        }
        options.lenient = self.lenient;
        options.allow_empty = self.allow_empty;
        options
    }
}

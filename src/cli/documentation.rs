//! The arguments that name a directory of documentation on this machine.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use crate::build::{Built, Options, build};
use crate::diagnostic::Diagnostic;
use crate::docs;
use crate::site::{Repository, Service};
use crate::source::remote::{self, Pattern};
use crate::source::{Tree, directory};

/// Documentation in a directory.
#[derive(Args, Clone, Debug)]
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
}

// === impl Documentation ===

impl Documentation {
    /// Reads the directory. The diagnostics name the files that were left out.
    ///
    /// # Errors
    ///
    /// When a directory does not exist, cannot be read or is too large.
    pub fn open(&self) -> anyhow::Result<(Tree, Vec<Diagnostic>)> {
        let opened = directory::locate(&self.path, self.root.as_deref())
            .and_then(|(root, docs)| directory::open(&root, &docs, directory::Limits::default()));
        opened.with_context(|| format!("open documentation in {}", self.path.display()))
    }

    /// Adds the specifications that are named by URL, from hosts that the configuration or
    /// the command line names.
    pub fn fetch(&self, tree: Tree, specifications: &remote::Config) -> Tree {
        let mut config = specifications.clone();
        config.hosts.extend(self.fetch_from.iter().cloned());
        // A host that is named in full may have a private address; one that a pattern matches
        // may not.
        let named = self.fetch_from.iter().filter(|pattern| pattern.is_one());
        config.private_hosts.extend(named.cloned());
        if !config.is_allowed() {
            return tree;
        }
        let urls = docs::urls(&tree);
        if urls.is_empty() {
            return tree;
        }
        tree.with_remote(remote::fetch(&config, &urls))
    }

    /// Builds a release of it, for a service, under its name unless another is given;
    /// pages link to their source in the repository when that is known.
    ///
    /// # Errors
    ///
    /// As [`Documentation::open`]; what authors did wrong is in the report.
    pub fn build(
        &self,
        service: &Service,
        specifications: &remote::Config,
        repository: Option<&Repository>,
    ) -> anyhow::Result<Built> {
        let (tree, found) = self.open()?;
        let tree = self.fetch(tree, specifications);
        let edit = repository.and_then(|repository| {
            // Without a repository around it, paths begin at the directory itself.
            let is_whole = tree.docs_root().is_root();
            let below = if is_whole { &*repository.directory } else { "" };
            Some(repository.edit_link()?.below(below))
        });
        let mut options = Options {
            edit,
            ..Options::of(service)
        };
        if let Some(name) = &self.service_name {
            options.service_name = name.as_str().into();
        }
        let mut built = build(&tree, &options);
        built.report.add(found);
        Ok(built)
    }
}

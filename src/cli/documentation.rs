//! The arguments that name a directory of documentation on this machine.

use std::convert::Infallible;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use crate::build::{Built, Input, Options, build};
use crate::diagnostic::Diagnostic;
use crate::docs::page::Pages;
use crate::site::{Service, Site};
use crate::source::remote::{self, Pattern, Remote};
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
    /// Report rules N1 and N2 as warnings, not as errors
    #[arg(long)]
    pub lenient: bool,
    /// Whether a release without pages may be published; only `publish` has an option for it.
    #[arg(skip)]
    pub allow_empty: bool,
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

    /// Fetches the specifications that URLs name, from hosts that the configuration or the
    /// command line names; `None` when there is no such host.
    pub fn fetch(&self, urls: &[Box<str>], specifications: &remote::Config) -> Option<Remote> {
        let mut config = specifications.clone();
        config.hosts.extend(self.fetch_from.iter().cloned());
        // A host that is named in full may have a private address; one that a pattern matches
        // may not.
        let named = self.fetch_from.iter().filter(|pattern| pattern.is_one());
        config.private_hosts.extend(named.cloned());
        config.is_allowed().then(|| remote::fetch(&config, urls))
    }

    /// Reads the documentation once, with what it names by URL.
    ///
    /// # Errors
    ///
    /// As [`Documentation::open`]; what authors did wrong is in the value.
    pub fn read(
        &self,
        options: &Options,
        specifications: &remote::Config,
    ) -> anyhow::Result<Input> {
        let (tree, left_out) = self.open()?;
        let fetch = |urls: &[Box<str>]| Ok::<_, Infallible>(self.fetch(urls, specifications));
        let mut input = match Input::fetch(tree, options, &Pages::default(), fetch) {
            Ok(input) => input,
            Err(never) => match never {},
        };
        input.diagnostics.extend(left_out);
        Ok(input)
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

    /// Builds a release of it for a service, and for a site when there is one: pages link to
    /// their source in its repository.
    ///
    /// # Errors
    ///
    /// As [`Documentation::open`]; what authors did wrong is in the report.
    pub fn build(
        &self,
        service: &Service,
        specifications: &remote::Config,
        site: Option<&Site>,
    ) -> anyhow::Result<Built> {
        let mut options = self.options(service);
        options.lenient |= site.is_some_and(|site| site.lenient);
        options.allow_empty |= site.is_some_and(|site| site.allow_empty);
        let input = self.read(&options, specifications)?;
        let repository = site.and_then(|site| site.repository.as_ref());
        options.edit = repository.and_then(|repository| {
            // Without a repository around it, paths begin at the directory itself.
            let is_whole = input.tree.docs_root().is_root();
            let below = if is_whole { &*repository.directory } else { "" };
            Some(repository.edit_link()?.below(below))
        });
        Ok(build(&input, &options))
    }
}

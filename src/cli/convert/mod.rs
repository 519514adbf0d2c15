//! `waypost convert`: writes a `docs.json` from the configuration of another tool.
//!
//! ```text
//!  mint.json            ──▶ docs.json beside it
//!  docusaurus.config.*  ──▶ docs.json beside it, or above it and its pages
//!  mkdocs.yml           ──▶ docs.json in its docs_dir
//! ```
//!
//! Nothing that the other tool would run is run: JavaScript is read as data
//! ([`crate::jsx::literal`]). What has no counterpart is reported with its file and line. Files
//! that exist are replaced only with `--force`, and pages are changed only with `--pages`.

mod docusaurus;
mod mintlify;
mod mkdocs;
mod notes;
mod pages;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value as Json};

use super::Documentation;
use super::check::{self, Format, colour, draw, ignore_broken_pipe};
use crate::diagnostic::text::Folding;
use crate::diagnostic::{Diagnostic, count};
use crate::docs::CONFIG;
use crate::source::{Tree, TreePath, directory};

use notes::Notes;

/// Write a docs.json from mint.json, a Docusaurus site or mkdocs.yml
///
/// Reports everything that it could not convert, with file and line, and then what `check` says
/// about the new docs.json. Exit status: 0 if that has no errors, 1 if it has, 2 if nothing was
/// written.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The directory with the configuration of the other tool
    #[arg(default_value = ".", value_name = "DIR")]
    pub path: PathBuf,
    /// The other tool; needed only if the directory has the files of several
    #[arg(long, value_enum)]
    pub from: Option<Tool>,
    /// Replace a docs.json that is already there
    #[arg(long)]
    pub force: bool,
    /// Also write titles and labels into the frontmatter of pages
    #[arg(long)]
    pub pages: bool,
    /// Show every note of a kind, not only the first 20
    #[arg(long)]
    pub all: bool,
}

/// A tool whose configuration is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tool {
    /// mint.json of Mintlify
    Mintlify,
    /// docusaurus.config.js with its sidebars
    Docusaurus,
    /// mkdocs.yml, also with the theme Material
    Mkdocs,
}

/// The result of a conversion; nothing is written yet.
struct Converted {
    /// The directory that becomes the root of the documentation.
    root: TreePath,
    /// `docs.json`.
    config: Map<String, Json>,
    /// The lines of a `.waypostignore`; none if every file below the root may be published.
    ignored: Vec<String>,
    /// The pages with a changed frontmatter, with their new text.
    pages: Vec<(TreePath, String)>,
    /// The parts that could not be converted.
    notes: Vec<Diagnostic>,
}

/// Converts a configuration, writes the result and checks it.
///
/// # Errors
///
/// When there is no configuration, it cannot be read, or a file would be replaced.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (root, below) = directory::locate(&args.path, None)
        .with_context(|| format!("open the directory {}", args.path.display()))?;
    let (tree, _left_out) = directory::open(&root, &below, directory::Limits::default())
        .with_context(|| format!("read the directory {}", args.path.display()))?;
    let (tool, config) = find(&tree, args)?;
    let notes = Notes::new(&tree);
    let converted = match tool {
        Tool::Mintlify => mintlify::convert(notes, &config)?,
        Tool::Docusaurus => docusaurus::convert(notes, &config, args.pages)?,
        Tool::Mkdocs => mkdocs::convert(notes, &config, args.pages)?,
    };
    let directory = match converted.root.is_root() {
        true => root.clone(),
        false => root.join(converted.root.as_str()),
    };
    let written = write(&root, &directory, &converted, args.force)?;
    let folding = match args.all {
        true => Folding::Unfolded,
        false => Folding::Folded,
    };
    let pages = converted.pages.iter();
    let changed = pages.map(|(path, text)| (path.clone(), text.clone().into()));
    let tree = tree.with_changed(changed);
    let text = draw(&tree, &converted.notes, colour(), folding);
    let printed = write!(
        io::stdout(),
        "{text}wrote {written}; {} not converted\n\n",
        count(converted.notes.len(), "thing")
    );
    ignore_broken_pipe(printed).context("print the notes")?;
    check(&root, directory, args.all)
}

/// Finds the configuration of another tool.
fn find(tree: &Tree, args: &Args) -> anyhow::Result<(Tool, TreePath)> {
    const FILES: [(&str, Tool); 8] = [
        ("mint.json", Tool::Mintlify),
        ("docusaurus.config.ts", Tool::Docusaurus),
        ("docusaurus.config.js", Tool::Docusaurus),
        ("docusaurus.config.mjs", Tool::Docusaurus),
        ("docusaurus.config.cjs", Tool::Docusaurus),
        ("docusaurus.config.mts", Tool::Docusaurus),
        ("mkdocs.yml", Tool::Mkdocs),
        ("mkdocs.yaml", Tool::Mkdocs),
    ];
    let mut found = Vec::new();
    for (name, tool) in FILES {
        let path = tree.docs_root().join(name)?;
        let is_wanted = args.from.is_none_or(|wanted| wanted == tool);
        if is_wanted && tree.lookup(&path).is_ok() {
            found.push((tool, path));
        }
    }
    let Some((tool, path)) = found.first().cloned() else {
        bail!(
            "there is no mint.json, docusaurus.config.js or mkdocs.yml in {}",
            args.path.display()
        );
    };
    if found.iter().any(|(other, _)| *other != tool) {
        bail!(
            "{} has the configurations of several tools: name one with --from",
            args.path.display()
        );
    }
    Ok((tool, path))
}

/// Writes the files; returns their names for the report.
fn write(
    root: &Path,
    directory: &Path,
    converted: &Converted,
    force: bool,
) -> anyhow::Result<String> {
    let config = directory.join(CONFIG);
    let ignore = directory.join(".waypostignore");
    let files = [
        Some(&config),
        Some(&ignore).filter(|_| !converted.ignored.is_empty()),
    ];
    // All are looked at before one is written.
    for file in files.into_iter().flatten() {
        if !force && file.symlink_metadata().is_ok() {
            bail!("{} is already there: --force replaces it", file.display());
        }
    }
    let text = serde_json::to_string_pretty(&converted.config).context("write docs.json")?;
    new_file(&config, &format!("{text}\n"), force)?;
    let mut written = config.display().to_string();
    if !converted.ignored.is_empty() {
        new_file(
            &ignore,
            &format!("{}\n", converted.ignored.join("\n")),
            force,
        )?;
        written.push_str(&format!(", {}", ignore.display()));
    }
    for (path, text) in &converted.pages {
        let file = root.join(path.as_str());
        fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
    }
    if !converted.pages.is_empty() {
        let pages = count(converted.pages.len(), "page");
        written.push_str(&format!(", the frontmatter of {pages}"));
    }
    Ok(written)
}

fn new_file(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    let mut options = fs::File::options();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("write {}", path.display()))
}

/// Checks the new `docs.json` and the pages that it names.
fn check(root: &Path, directory: PathBuf, all: bool) -> anyhow::Result<ExitCode> {
    check::run(&check::Args {
        documentation: Documentation {
            path: directory,
            root: Some(root.to_owned()),
            service_name: None,
            fetch_from: Vec::new(),
            lenient: false,
            allow_empty: false,
        },
        format: Format::Text,
        strict: false,
        all,
        config_only: false,
        since: None,
        fix: false,
        conf: None,
        offline: false,
        rules_url: None,
        explain: None,
    })
}

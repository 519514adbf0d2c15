//! The sandboxed process that reads the documentation.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::fix::{self, Fixed};
use super::{Args, Format, is_failure};
use crate::build;
use crate::cli::{Documentation, sandboxed};
use crate::diagnostic::text::{Colour, Folding};
use crate::diagnostic::{Diagnostic, Tally, count, github, json, sarif, text};
use crate::docs::page::Pages;
use crate::docs::{self, Docs, Extent, Fetched, Needs, Parsed};
use crate::isolation::process::{self, Parent};
use crate::skills;
use crate::source::git::local;
use crate::source::remote::Remote;
use crate::source::{Tree, TreePath, directory};

/// The subcommand that starts this process.
pub const SUBCOMMAND: &str = "check-child";
/// How many bytes of text one event has, so that no event is large.
const TEXT_BYTES: usize = 64 << 10;

/// The documentation to check, and the form of the report.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The arguments of the command, with absolute paths.
    pub(super) args: Args,
    /// Whether the report has colours.
    pub(super) colour: Colour,
    /// The file for fetched specifications; `None` if none are fetched.
    pub(super) specifications: Option<PathBuf>,
}

/// The events that the process reports.
pub(super) type Event = sandboxed::Event<Checking>;

/// The events of a check only.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Checking {
    /// A file with corrected mistakes.
    Fixed(Fixed),
    /// Text for standard error.
    Note(String),
    /// Text for standard output.
    Report(String),
    /// The last event: the check has ended.
    CheckedFiles {
        /// Whether there is a mistake for which the command fails.
        is_failure: bool,
    },
}

/// The files that were read, and their diagnostics.
pub(super) struct CheckedFiles {
    pub(super) tree: Tree,
    docs: Docs,
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Checks documentation in a sandbox.
///
/// # Errors
///
/// As [`process::serve`].
pub fn serve() -> io::Result<()> {
    process::serve(|order: Order, parent: &mut Parent<'_, Event>| {
        let last = match carry_out(&order, parent) {
            Ok(is_failure) => Event::Own(Checking::CheckedFiles { is_failure }),
            Err(error) => Event::Failed(format!("{error:#}")),
        };
        parent.report(last);
    })
}

fn carry_out(order: &Order, parent: &mut Parent<'_, Event>) -> anyhow::Result<bool> {
    let Order { args, .. } = order;
    let (mut checked, fixed) = {
        let mut fetch = |urls: &[Box<str>]| {
            let file = order.specifications.as_ref()?;
            parent.ask(Event::Specifications(urls.to_vec()));
            Remote::from_bytes(&fs::read(file).ok()?)
        };
        run(args, &mut fetch)?
    };
    for fixed in fixed {
        match fixed {
            Ok(fixed) => {
                parent.report(Event::Own(Checking::Note(fixed.difference.clone())));
                parent.report(Event::Own(Checking::Fixed(fixed)));
            }
            Err(kept) => parent.report(Event::Own(Checking::Note(kept))),
        }
    }
    let text = report(args, &mut checked, order.colour);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(TEXT_BYTES));
        parent.report(Event::Own(Checking::Report(piece.to_owned())));
        rest = after;
    }
    Ok(is_failure(args, &checked.diagnostics))
}

/// The result of the check, and the files that `--fix` corrects or does not change.
type Outcome = (CheckedFiles, Vec<Result<Fixed, String>>);

/// Checks documentation, and checks it again with the mistakes corrected.
pub(super) fn run(
    args: &Args,
    fetch: &mut dyn FnMut(&[Box<str>]) -> Option<Remote>,
) -> anyhow::Result<Outcome> {
    let (tree, left_out) = args.documentation.open()?;
    let checked = check(args, tree, &left_out, fetch)?;
    if !args.fix {
        return Ok((checked, Vec::new()));
    }
    let errors = |tree: &Tree| errors_of(args, tree, &left_out);
    let (tree, fixed) = fix::fix(checked.tree, &checked.diagnostics, &errors)?;
    Ok((check(args, tree, &left_out, fetch)?, fixed))
}

fn options(args: &Args) -> docs::Options {
    docs::Options {
        lenient: args.documentation.lenient,
        extent: match args.config_only {
            true => Extent::Config,
            false => Extent::Everything,
        },
    }
}

/// Checks a tree with the specifications that it names by URL; `left_out` are the diagnostics
/// about files that are not in it.
fn check(
    args: &Args,
    tree: Tree,
    left_out: &[Diagnostic],
    fetch: &mut dyn FnMut(&[Box<str>]) -> Option<Remote>,
) -> anyhow::Result<CheckedFiles> {
    let parsed = docs::parse(&tree, &options(args), &Pages::default());
    let needs = match args.config_only {
        true => Needs::default(),
        false => parsed.needs(&tree),
    };
    let fetched = Fetched {
        remote: (!needs.urls.is_empty())
            .then(|| fetch(&needs.urls))
            .flatten(),
        history: args.documentation.history(&needs),
    };
    let tree = fetched.into_tree(tree);
    let (docs, diagnostics) = diagnostics_of(args, &tree, parsed, left_out)?;
    Ok(CheckedFiles {
        tree,
        docs,
        diagnostics,
    })
}

/// Counts the errors of a tree, with the specifications that were fetched before.
pub(super) fn errors_of(
    args: &Args,
    tree: &Tree,
    left_out: &[Diagnostic],
) -> anyhow::Result<usize> {
    let parsed = docs::parse(tree, &options(args), &Pages::default());
    let (_docs, diagnostics) = diagnostics_of(args, tree, parsed, left_out)?;
    Ok(Tally::of(&diagnostics).errors)
}

fn diagnostics_of(
    args: &Args,
    tree: &Tree,
    parsed: Parsed,
    left_out: &[Diagnostic],
) -> anyhow::Result<(Docs, Vec<Diagnostic>)> {
    let mut diagnostics = left_out.to_vec();
    let (docs, of_docs) = parsed.resolve(tree);
    diagnostics.extend(of_docs);
    if !args.config_only {
        diagnostics.extend(docs::without_pages(&docs, tree));
        diagnostics.extend(build::check::check(&docs, tree));
        let default = build::Options::default().service_name;
        let named = args.documentation.service_name.as_deref();
        let (_skills, of_skills) = skills::collect(tree, named.unwrap_or(&default));
        diagnostics.extend(of_skills);
    }
    if let Some(reference) = &args.since {
        diagnostics.extend(removed_pages(&args.documentation, tree, &docs, reference)?);
    }
    diagnostics.sort_by(|one, other| (&one.file, one.location).cmp(&(&other.file, other.location)));
    Ok((docs, diagnostics))
}

/// Finds the pages of a commit that no longer exist and have no redirect.
fn removed_pages(
    documentation: &Documentation,
    tree: &Tree,
    docs: &Docs,
    reference: &str,
) -> anyhow::Result<Vec<Diagnostic>> {
    let (root, _) = directory::locate(&documentation.path, documentation.root.as_deref())?;
    let before = local::files(&root, reference)
        .with_context(|| format!("read the files of {reference:?}"))?;
    Ok(docs::removed::check(&before, docs, tree))
}

/// Writes a report for programs; `None` if one for people is wanted.
pub(super) fn for_programs(args: &Args, diagnostics: &[Diagnostic]) -> Option<String> {
    Some(match args.format {
        Format::Json => format!("{}\n", json::render(diagnostics)),
        Format::Sarif => {
            let rules_url = args.rules_url.as_deref();
            format!("{}\n", sarif::render(diagnostics, rules_url))
        }
        Format::Github => github::render(diagnostics).to_string(),
        Format::Text => return None,
    })
}

/// Writes the report of a check.
fn report(args: &Args, checked: &mut CheckedFiles, colour: Colour) -> String {
    let diagnostics = &checked.diagnostics;
    match for_programs(args, diagnostics) {
        Some(report) => report,
        None => {
            let folding = match args.all {
                true => Folding::Unfolded,
                false => Folding::Folded,
            };
            let mut text = draw(&checked.tree, diagnostics, colour, folding);
            if let Some(line) = build::first_renders(&checked.docs) {
                let _infallible = writeln!(text, "{line}");
            }
            let _infallible = writeln!(text, "{}", summary(checked));
            if let Some(error_summary) = Tally::of(diagnostics).error_summary() {
                let _infallible = writeln!(text, "{error_summary}");
            }
            text
        }
    }
}

/// Draws diagnostics for people.
pub(in crate::cli) fn draw(
    tree: &Tree,
    diagnostics: &[Diagnostic],
    colour: Colour,
    folding: Folding,
) -> String {
    let source = |file: &str| source(tree, file);
    text::render(diagnostics, &source, colour, folding).to_string()
}

fn source(tree: &Tree, file: &str) -> Option<Arc<str>> {
    let bytes = match (tree.remote().get(file), TreePath::parse(file)) {
        (Some(fetched), _) => fetched.ok()?.clone(),
        (None, path) => tree
            .read_at_most(&path.ok()?, crate::syntax::FILE_BYTES_MAX)
            .ok()?,
    };
    Some(String::from_utf8_lossy(&bytes).into())
}

fn summary(checked: &CheckedFiles) -> String {
    let tally = Tally::of(&checked.diagnostics);
    let pages = &checked.docs.navigation.pages;
    let specifications = checked.docs.specifications.iter();
    let specifications = specifications.filter(|specification| !specification.from_page);
    let unlisted = pages.iter().filter(|page| page.place.is_none()).count();
    format!(
        "{} ({} not in the navigation), {}: {tally}",
        count(pages.len(), "page"),
        unlisted,
        count(specifications.count(), "specification"),
    )
}

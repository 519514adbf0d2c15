//! `waypost check`: reports all mistakes of a documentation at once.

mod conf;
mod fix;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};

use super::Documentation;
use crate::build;
use crate::diagnostic::text::{Colour, Folding};
use crate::diagnostic::{Diagnostic, Tally, count, github, json, rules, sarif, text};
use crate::docs::page::Pages;
use crate::docs::{self, Docs, Extent, Parsed};
use crate::skills;
use crate::source::git::local;
use crate::source::{Tree, TreePath, directory, remote};

/// Check documentation, or a configuration
///
/// Reads docs.json, all pages, specifications, links and skills, and reports every mistake
/// with file, line and column. Exit status: 0 without errors, 1 with an error (with --strict
/// also with a warning), 2 if the check could not run.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to check.
    #[command(flatten)]
    pub documentation: Documentation,
    /// The format of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Exit with status 1 for warnings too
    #[arg(long)]
    pub strict: bool,
    /// Show every diagnostic of a rule, not only the first 20
    #[arg(long)]
    pub all: bool,
    /// Check docs.json only; do not look for the pages that it names
    #[arg(long)]
    pub config_only: bool,
    /// Report pages of this commit that no longer exist and have no redirect
    #[arg(long, value_name = "REF", conflicts_with = "config_only")]
    pub since: Option<String>,
    /// Correct mistakes that have only one correction, and show the changes
    #[arg(long)]
    pub fix: bool,
    /// Check this configuration and its site records, not documentation
    #[arg(long, value_name = "FILE")]
    pub conf: Option<PathBuf>,
    /// The URL of the published reference of the rules, for the links of a SARIF log
    #[arg(long, value_name = "URL")]
    pub rules_url: Option<String>,
    /// Explain a rule, like N2, and check nothing
    #[arg(long, value_name = "RULE")]
    pub explain: Option<String>,
}

/// How diagnostics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people, with the source line and a caret
    Text,
    /// One JSON object
    Json,
    /// A SARIF log, for code scanning
    Sarif,
    /// Workflow commands, which annotate a change on GitHub
    Github,
}

/// What was read and what is wrong with it.
struct Checked {
    tree: Tree,
    docs: Docs,
    diagnostics: Vec<Diagnostic>,
}

/// Checks a documentation.
///
/// # Errors
///
/// When it cannot be read at all.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(id) = &args.explain {
        return explain(id);
    }
    if let Some(file) = &args.conf {
        let diagnostics = conf::check(file)?;
        ignore_broken_pipe(print_lines(args, &diagnostics)).context("print the diagnostics")?;
        return Ok(outcome(args, &diagnostics));
    }
    let (tree, left_out) = args.documentation.open()?;
    let mut checked = check(args, tree, &left_out)?;
    if args.fix {
        let errors = |tree: &Tree| errors_of(args, tree, &left_out);
        let Checked {
            tree, diagnostics, ..
        } = checked;
        fix::fix(&args.documentation, tree, &diagnostics, &errors)?;
        let (tree, left_out) = args.documentation.open()?;
        checked = check(args, tree, &left_out)?;
    }
    ignore_broken_pipe(print(args, &checked)).context("print the diagnostics")?;
    Ok(outcome(args, &checked.diagnostics))
}

/// A program that reads our output may close it early, as `head` does: that is not an error.
pub(super) fn ignore_broken_pipe(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

fn outcome(args: &Args, diagnostics: &[Diagnostic]) -> ExitCode {
    let is_failure = |diagnostic: &Diagnostic| args.strict || diagnostic.is_error();
    match diagnostics.iter().any(is_failure) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Prints diagnostics about files that are in no tree, one in each line.
fn print_lines(args: &Args, diagnostics: &[Diagnostic]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if args.format == Format::Json {
        serde_json::to_writer(&mut out, diagnostics)?;
        return writeln!(out);
    }
    for diagnostic in diagnostics {
        writeln!(out, "{diagnostic}")?;
    }
    let errors = fix::errors_of(diagnostics);
    writeln!(
        out,
        "{errors} errors, {} warnings",
        diagnostics.len() - errors
    )
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
fn check(args: &Args, tree: Tree, left_out: &[Diagnostic]) -> anyhow::Result<Checked> {
    let parsed = docs::parse(&tree, &options(args), &Pages::default());
    let urls = match args.config_only {
        true => Vec::new(),
        false => parsed.urls(),
    };
    let fetched = match urls.is_empty() {
        true => None,
        false => args.documentation.fetch(&urls, &remote::Config::default()),
    };
    let tree = match fetched {
        Some(fetched) => tree.with_remote(fetched),
        None => tree,
    };
    let (docs, diagnostics) = diagnostics_of(args, &tree, parsed, left_out)?;
    Ok(Checked {
        tree,
        docs,
        diagnostics,
    })
}

/// Counts the errors of a tree, with the specifications that were fetched before.
fn errors_of(args: &Args, tree: &Tree, left_out: &[Diagnostic]) -> anyhow::Result<usize> {
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
    let before =
        local::files(&root, reference).with_context(|| format!("read what {reference:?} holds"))?;
    Ok(docs::removed::check(&before, docs, tree))
}

fn explain(id: &str) -> anyhow::Result<ExitCode> {
    let Some(rule) = rules::find(id) else {
        let known: Vec<_> = rules::RULES.iter().map(|rule| rule.id).collect();
        bail!(
            "there is no rule {id:?}; the rules are {}",
            known.join(", ")
        );
    };
    let printed = writeln!(io::stdout(), "{}: {}\n\n{}", rule.id, rule.title, rule.text);
    ignore_broken_pipe(printed).context("print the rule")?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &Args, checked: &Checked) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match args.format {
        Format::Json => writeln!(out, "{}", json::render(&checked.diagnostics)),
        Format::Sarif => writeln!(
            out,
            "{}",
            sarif::render(&checked.diagnostics, args.rules_url.as_deref())
        ),
        Format::Github => write!(out, "{}", github::render(&checked.diagnostics)),
        Format::Text => {
            let folding = match args.all {
                true => Folding::Unfolded,
                false => Folding::Folded,
            };
            draw(&mut out, &checked.tree, &checked.diagnostics, folding)?;
            writeln!(out, "{}", summary(checked))?;
            match Tally::of(&checked.diagnostics).error_summary() {
                Some(error_summary) => writeln!(out, "{error_summary}"),
                None => Ok(()),
            }
        }
    }
}

/// Draws diagnostics for people, in colours when the standard output is a terminal.
pub(super) fn draw(
    out: &mut impl io::Write,
    tree: &Tree,
    diagnostics: &[Diagnostic],
    folding: Folding,
) -> io::Result<()> {
    let colour = match io::stdout().is_terminal() {
        true => Colour::Styled,
        false => Colour::Plain,
    };
    let source = |file: &str| source(tree, file);
    write!(
        out,
        "{}",
        text::render(diagnostics, &source, colour, folding)
    )
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

fn summary(checked: &Checked) -> String {
    let tally = Tally::of(&checked.diagnostics);
    let pages = &checked.docs.navigation.pages;
    let unlisted = pages.iter().filter(|page| page.place.is_none()).count();
    format!(
        "{} ({} not in the navigation), {}: {tally}",
        count(pages.len(), "page"),
        unlisted,
        count(checked.docs.specifications.len(), "specification"),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn args(directory: &TempDir) -> Args {
        Args {
            documentation: Documentation {
                root: Some(directory.path().to_owned()),
                path: directory.path().to_owned(),
                service_name: None,
                fetch_from: Vec::new(),
                lenient: false,
                allow_empty: false,
            },
            format: Format::Json,
            strict: false,
            all: false,
            config_only: false,
            since: None,
            fix: false,
            rules_url: None,
            conf: None,
            explain: None,
        }
    }

    fn documentation(config: &str) -> TempDir {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("docs.json"), config).unwrap();
        fs::write(directory.path().join("index.mdx"), "# Welcome").unwrap();
        directory
    }

    #[test]
    fn the_exit_status_says_whether_there_is_an_error() {
        let good = documentation(r#"{"name": "A", "navigation": {"pages": ["index"]}}"#);
        assert_eq!(run(&args(&good)).unwrap(), ExitCode::SUCCESS);
        let warned = documentation(r#"{"name": "A", "navigation": {"pages": ["index"]}, "x": 1}"#);
        assert_eq!(run(&args(&warned)).unwrap(), ExitCode::SUCCESS);
        let strict = Args {
            strict: true,
            ..args(&warned)
        };
        assert_eq!(run(&strict).unwrap(), ExitCode::FAILURE);
        let wrong = documentation(r#"{"name": "A", "navigation": {}}"#);
        assert_eq!(run(&args(&wrong)).unwrap(), ExitCode::FAILURE);
    }

    #[test]
    fn unreadable_input_has_the_exit_status_of_a_failure() {
        let directory = TempDir::new().unwrap();
        let absent = Args {
            documentation: Documentation {
                path: directory.path().join("absent"),
                ..args(&directory).documentation
            },
            ..args(&directory)
        };
        run(&absent).unwrap_err();
    }

    #[test]
    fn fix_corrects_only_unambiguous_mistakes() {
        let config = "{\n  \"name\": \"A\",\n  \"navigation\": {\"pages\": [\"/index.mdx\", \"absent\",]},\n}\n";
        let directory = documentation(config);
        let fixing = Args {
            fix: true,
            ..args(&directory)
        };
        assert_eq!(run(&fixing).unwrap(), ExitCode::SUCCESS);
        let fixed = fs::read_to_string(directory.path().join("docs.json")).unwrap();
        assert_eq!(
            fixed,
            "{\n  \"name\": \"A\",\n  \"navigation\": {\"pages\": [\"index\", \"absent\"]}\n}\n"
        );
        run(&fixing).unwrap();
        let again = fs::read_to_string(directory.path().join("docs.json")).unwrap();
        assert_eq!(again, fixed);
    }

    #[test]
    fn a_key_whose_value_does_not_fit_is_not_renamed() {
        let config = r#"{"name": "A", "navigation": {"anchors": [
            {"anchor": "B", "group": "Let's talk", "pages": ["index"]}]}}"#;
        let directory = documentation(config);
        let fixing = Args {
            fix: true,
            ..args(&directory)
        };
        run(&fixing).unwrap();
        let after = fs::read_to_string(directory.path().join("docs.json")).unwrap();
        assert_eq!(after, config);
    }

    #[test]
    fn a_file_that_edits_would_make_worse_stays_as_it_is() {
        let config = r#"{"name": "A", "navigation": {"pages": ["index"]}}"#;
        let directory = documentation(config);
        let (tree, _) = args(&directory).documentation.open().unwrap();
        let wrong = Diagnostic::warning("N1", "docs.json", "m").edit(15..27, "\"navigate\"");
        let errors = |tree: &Tree| errors_of(&args(&directory), tree, &[]);
        let documentation = &args(&directory).documentation;
        let changed = fix::fix(documentation, tree, &[wrong], &errors).unwrap();
        let after = fs::read_to_string(directory.path().join("docs.json")).unwrap();
        assert_eq!((changed, &*after), (false, config));
    }

    #[test]
    fn comments_are_removed() {
        let config = "{\n  // the name\n  \"name\": \"A\", // here\n  /* and\n  the rest */\n  \"navigation\": {\"pages\": /* one */ [\"index\"]}\n}\n";
        let directory = documentation(config);
        let fixing = Args {
            fix: true,
            ..args(&directory)
        };
        assert_eq!(run(&fixing).unwrap(), ExitCode::SUCCESS);
        assert_eq!(
            fs::read_to_string(directory.path().join("docs.json")).unwrap(),
            "{\n  \"name\": \"A\",\n  \"navigation\": {\"pages\": [\"index\"]}\n}\n"
        );
    }

    #[test]
    fn config_only_reports_a_subset_of_the_whole_check() {
        let config = r#"{"name": "A", "navigation": {"openapi": "openapi.json"}}"#;
        let directory = documentation(config);
        let openapi = r#"{"openapi": "3.1.0", "info": {"title": "A"},
            "paths": {"/a": {"get": {"summary": "A"}}}}"#;
        fs::write(directory.path().join("openapi.json"), openapi).unwrap();
        for config_only in [false, true] {
            let args = Args {
                config_only,
                ..args(&directory)
            };
            assert_eq!(run(&args).unwrap(), ExitCode::SUCCESS, "{config_only}");
        }
    }

    #[test]
    fn an_unknown_rule_cannot_be_explained() {
        let directory = TempDir::new().unwrap();
        let explaining = |id: &str| Args {
            explain: Some(id.to_owned()),
            ..args(&directory)
        };
        assert_eq!(run(&explaining("n2")).unwrap(), ExitCode::SUCCESS);
        run(&explaining("N99")).unwrap_err();
    }
}

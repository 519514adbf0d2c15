//! `waypost check`: what is wrong with a documentation, all of it at once.

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
use crate::diagnostic::{Diagnostic, Tally, count, github, json, sarif, text};
use crate::docs::page::Pages;
use crate::docs::{self, Docs, Extent, rules};
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
    /// Report pages that this commit had and that now are neither there nor redirected
    #[arg(long, value_name = "REF", conflicts_with = "config_only")]
    pub since: Option<String>,
    /// Correct what has only one right answer, and show the changes
    #[arg(long)]
    pub fix: bool,
    /// Check this configuration and its site records, not documentation
    #[arg(long, value_name = "FILE")]
    pub conf: Option<PathBuf>,
    /// Explain a rule, like N2, and check nothing
    #[arg(long, value_name = "RULE")]
    pub explain: Option<String>,
}

/// How findings are written.
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
    found: Vec<Diagnostic>,
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
        let found = conf::find(file)?;
        print_lines(args, &found).context("print the findings")?;
        return Ok(outcome(args, &found));
    }
    let mut checked = check(args)?;
    if args.fix {
        let mended = fix::mend(&args.documentation, &checked.tree, &checked.found)?;
        if mended > 0 {
            checked = check(args)?;
        }
    }
    print(args, &checked).context("print the findings")?;
    Ok(outcome(args, &checked.found))
}

fn outcome(args: &Args, found: &[Diagnostic]) -> ExitCode {
    let fails = |found: &Diagnostic| args.strict || found.is_error();
    match found.iter().any(fails) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Prints findings about files that are in no tree, a line for each.
fn print_lines(args: &Args, found: &[Diagnostic]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    if args.format == Format::Json {
        serde_json::to_writer(&mut out, found)?;
        return Ok(writeln!(out)?);
    }
    for finding in found {
        writeln!(out, "{finding}")?;
    }
    let errors = found.iter().filter(|found| found.is_error()).count();
    Ok(writeln!(
        out,
        "{errors} errors, {} warnings",
        found.len() - errors
    )?)
}

fn check(args: &Args) -> anyhow::Result<Checked> {
    let (tree, mut found) = args.documentation.open()?;
    let extent = match args.config_only {
        true => Extent::Config,
        false => Extent::Everything,
    };
    let options = docs::Options {
        lenient: args.documentation.lenient,
        extent,
    };
    let parsed = docs::parse(&tree, &options, &Pages::default());
    let urls = match extent {
        Extent::Config => Vec::new(),
        Extent::Everything => parsed.urls(),
    };
    let fetched = match urls.is_empty() {
        true => None,
        false => args.documentation.fetch(&urls, &remote::Config::default()),
    };
    let tree = match fetched {
        Some(fetched) => tree.with_remote(fetched),
        None => tree,
    };
    let (docs, of_docs) = parsed.resolve(&tree);
    found.extend(of_docs);
    if extent == Extent::Everything {
        found.extend(docs::check::check(&docs, &tree));
        let default = build::Options::default().service_name;
        let named = args.documentation.service_name.as_deref();
        let (_skills, of_skills) = skills::collect(&tree, named.unwrap_or(&default));
        found.extend(of_skills);
    }
    if let Some(reference) = &args.since {
        found.extend(gone(&args.documentation, &tree, &docs, reference)?);
    }
    found.sort_by(|one, other| (&one.file, one.location).cmp(&(&other.file, other.location)));
    Ok(Checked { tree, docs, found })
}

/// Finds the pages that a commit had and that now lead nowhere.
fn gone(
    documentation: &Documentation,
    tree: &Tree,
    docs: &Docs,
    reference: &str,
) -> anyhow::Result<Vec<Diagnostic>> {
    let (root, _) = directory::locate(&documentation.path, documentation.root.as_deref())?;
    let before =
        local::files(&root, reference).with_context(|| format!("read what {reference:?} holds"))?;
    Ok(docs::gone::check(&before, docs, tree))
}

fn explain(id: &str) -> anyhow::Result<ExitCode> {
    let Some(rule) = rules::find(id) else {
        let known: Vec<_> = rules::RULES.iter().map(|rule| rule.id).collect();
        bail!(
            "there is no rule {id:?}; the rules are {}",
            known.join(", ")
        );
    };
    writeln!(io::stdout(), "{}: {}\n\n{}", rule.id, rule.title, rule.text)?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &Args, checked: &Checked) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match args.format {
        Format::Json => writeln!(out, "{}", json::render(&checked.found)),
        Format::Sarif => writeln!(out, "{}", sarif::render(&checked.found)),
        Format::Github => write!(out, "{}", github::render(&checked.found)),
        Format::Text => {
            let folding = match args.all {
                true => Folding::Unfolded,
                false => Folding::Folded,
            };
            draw(&mut out, &checked.tree, &checked.found, folding)?;
            writeln!(out, "{}", summary(checked))?;
            match Tally::of(&checked.found).refusal() {
                Some(refusal) => writeln!(out, "{refusal}"),
                None => Ok(()),
            }
        }
    }
}

/// Draws findings for people, in colours when the standard output is a terminal.
pub(super) fn draw(
    out: &mut impl io::Write,
    tree: &Tree,
    found: &[Diagnostic],
    folding: Folding,
) -> io::Result<()> {
    let colour = match io::stdout().is_terminal() {
        true => Colour::Styled,
        false => Colour::Plain,
    };
    let source = |file: &str| source(tree, file);
    write!(out, "{}", text::render(found, &source, colour, folding))
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
    let tally = Tally::of(&checked.found);
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
            },
            format: Format::Json,
            strict: false,
            all: false,
            config_only: false,
            since: None,
            fix: false,
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
    fn what_cannot_be_read_at_all_is_not_an_exit_status_of_its_own() {
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
    fn fixing_mends_what_has_one_right_answer_and_nothing_else() {
        let config = "{\n  \"name\": \"A\",\n  \"navigation\": {\"pages\": [\"/index.mdx\", \"absent\",]},\n}\n";
        let directory = documentation(config);
        let fixing = Args {
            fix: true,
            ..args(&directory)
        };
        assert_eq!(run(&fixing).unwrap(), ExitCode::SUCCESS);
        let mended = fs::read_to_string(directory.path().join("docs.json")).unwrap();
        assert_eq!(
            mended,
            "{\n  \"name\": \"A\",\n  \"navigation\": {\"pages\": [\"index\", \"absent\"]}\n}\n"
        );
        run(&fixing).unwrap();
        let again = fs::read_to_string(directory.path().join("docs.json")).unwrap();
        assert_eq!(again, mended);
    }

    #[test]
    fn a_rule_that_is_none_cannot_be_explained() {
        let directory = TempDir::new().unwrap();
        let explaining = |id: &str| Args {
            explain: Some(id.to_owned()),
            ..args(&directory)
        };
        assert_eq!(run(&explaining("n2")).unwrap(), ExitCode::SUCCESS);
        run(&explaining("N99")).unwrap_err();
    }
}

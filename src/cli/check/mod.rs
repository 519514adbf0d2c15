//! `waypost check`: reports all mistakes of the documentation at once.

mod child;
mod conf;
mod fix;
mod start;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use super::{Documentation, sandboxed};
use crate::deploy::run::{DocsDirectory, Limits, Session};
use crate::diagnostic::text::Colour;
use crate::diagnostic::{Diagnostic, Tally, rules};
use crate::isolation::Mode;
use crate::source::{directory, remote};

use child::{Checking, Event, Order};

pub(super) use child::draw;
pub use child::{SUBCOMMAND, serve};

/// Check documentation, or a configuration
///
/// Reads docs.json, all pages, specifications, links and skills, and reports every mistake
/// with file, line and column. Exit status: 0 without errors, 1 with an error (with --strict
/// also with a warning), 2 if the check could not run.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
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
    /// With --conf: do not connect to databases and the servers of sites
    #[arg(long, requires = "conf")]
    pub offline: bool,
    /// The URL of the published reference of the rules, for the links of a SARIF log
    #[arg(long, value_name = "URL")]
    pub rules_url: Option<String>,
    /// Explain a rule, like N2, and check nothing
    #[arg(long, value_name = "RULE")]
    pub explain: Option<String>,
}

/// How diagnostics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
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

/// Checks documentation or a configuration.
///
/// # Errors
///
/// When it cannot be read at all.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(id) = &args.explain {
        return explain(id);
    }
    if let Some(file) = &args.conf {
        let mut diagnostics = conf::check(file, args.offline)?;
        let has_errors = diagnostics.iter().any(Diagnostic::is_error);
        let isolation = match has_errors {
            true => None,
            false => match conf::isolation(file) {
                Ok(in_force) => Some(in_force),
                Err(error) => {
                    diagnostics.push(conf::error(file, &format!("{error:#}")));
                    None
                }
            },
        };
        ignore_broken_pipe(print_lines(args, &diagnostics)).context("print the diagnostics")?;
        if let (Some(in_force), Format::Text) = (isolation, args.format) {
            let printed = writeln!(io::stdout(), "isolation of builds, {in_force}");
            ignore_broken_pipe(printed).context("print the isolation")?;
        }
        return Ok(match is_failure(args, &diagnostics) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        });
    }
    let place = args.documentation.place()?;
    let specifications = args
        .documentation
        .specifications(&remote::Config::default());
    let act = async |session: &Session| check(args, &place, session).await;
    let is_failure = sandboxed::run(Mode::default(), &Limits::default(), specifications, act)?;
    Ok(match is_failure {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Checks the documentation in a sandboxed process, prints the report of that process, and writes
/// the files that it corrects. Returns whether the check has failed.
async fn check(args: &Args, place: &DocsDirectory, session: &Session) -> anyhow::Result<bool> {
    let order = Order {
        args: Args {
            documentation: args.documentation.at(place),
            ..args.clone()
        },
        colour: colour(),
        specifications: session
            .has_specifications()
            .then(|| session.specifications()),
    };
    let mut sandbox = session.sandbox(place);
    if args.since.is_some() {
        sandbox
            .read
            .extend(directory::directories_of_git(&place.root));
    }
    let mut running = session.start(SUBCOMMAND, &order, sandbox, None).await?;
    let mut out = io::stdout();
    loop {
        match running.event().await? {
            Some(Event::InForce(in_force)) => sandboxed::report_missing(in_force)?,
            Some(Event::Specifications(urls)) => {
                session.fetch(urls).await?;
                running.answer().await?;
            }
            Some(Event::Failed(why)) => bail!("{why}"),
            Some(Event::Own(event)) => match event {
                Checking::Fixed(fixed) if args.fix => fix::write(&place.root, &fixed)?,
                Checking::Fixed(_) => bail!("the check reported a file that it must not change"),
                Checking::Note(text) => write!(io::stderr(), "{text}")?,
                Checking::Report(text) => {
                    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                    ignore_broken_pipe(printed).context("print the diagnostics")?;
                }
                Checking::CheckedFiles { is_failure } => return Ok(is_failure),
            },
            None => bail!("check: {}", running.ended().await),
        }
    }
}

/// A program that reads our output may close it early, as `head` does: that is not an error.
pub(super) fn ignore_broken_pipe(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Returns whether a check with these diagnostics has failed.
fn is_failure(args: &Args, diagnostics: &[Diagnostic]) -> bool {
    let counts = |diagnostic: &Diagnostic| args.strict || diagnostic.is_error();
    diagnostics.iter().any(counts)
}

/// Prints diagnostics about files that are in no tree; for people, one in each line.
fn print_lines(args: &Args, diagnostics: &[Diagnostic]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if let Some(report) = child::for_programs(args, diagnostics) {
        return out.write_all(report.as_bytes());
    }
    for diagnostic in diagnostics {
        writeln!(out, "{diagnostic}")?;
    }
    writeln!(out, "{}", Tally::of(diagnostics))
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

/// Returns how diagnostics are drawn: in colours when the standard output is a terminal.
pub(super) fn colour() -> Colour {
    match io::stdout().is_terminal() {
        true => Colour::Styled,
        false => Colour::Plain,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::source::{Tree, TreePath};

    /// Checks documentation in this process, and returns whether the check has failed.
    fn checked(args: &Args) -> anyhow::Result<bool> {
        let (checked, fixed) = child::run(args, &mut |_urls| None)?;
        for fixed in fixed.into_iter().flatten() {
            fix::write(&args.documentation.path, &fixed)?;
        }
        Ok(is_failure(args, &checked.diagnostics))
    }

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
            offline: false,
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
        assert!(!checked(&args(&good)).unwrap());
        let warned = documentation(r#"{"name": "A", "navigation": {"pages": ["index"]}, "x": 1}"#);
        assert!(!checked(&args(&warned)).unwrap());
        let strict = Args {
            strict: true,
            ..args(&warned)
        };
        assert!(checked(&strict).unwrap());
        let wrong = documentation(r#"{"name": "A", "navigation": {}}"#);
        assert!(checked(&args(&wrong)).unwrap());
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
        checked(&absent).unwrap_err();
    }

    #[test]
    fn fix_corrects_only_unambiguous_mistakes() {
        let config = "{\n  \"name\": \"A\",\n  \"navigation\": {\"pages\": [\"/index.mdx\", \"absent\",]},\n}\n";
        let directory = documentation(config);
        let fixing = Args {
            fix: true,
            ..args(&directory)
        };
        assert!(!checked(&fixing).unwrap());
        let fixed = fs::read_to_string(directory.path().join("docs.json")).unwrap();
        assert_eq!(
            fixed,
            "{\n  \"name\": \"A\",\n  \"navigation\": {\"pages\": [\"index\", \"absent\"]}\n}\n"
        );
        checked(&fixing).unwrap();
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
        checked(&fixing).unwrap();
        let after = fs::read_to_string(directory.path().join("docs.json")).unwrap();
        assert_eq!(after, config);
    }

    #[test]
    fn a_file_that_edits_would_make_worse_stays_as_it_is() {
        let config = r#"{"name": "A", "navigation": {"pages": ["index"]}}"#;
        let directory = documentation(config);
        let (tree, _) = args(&directory).documentation.open().unwrap();
        let wrong = Diagnostic::warning("N1", "docs.json", "m").edit(15..27, "\"navigate\"");
        let errors = |tree: &Tree| child::errors_of(&args(&directory), tree, &[]);
        let (tree, fixed) = fix::fix(tree, &[wrong], &errors).unwrap();
        let kept = fixed[0].as_ref().unwrap_err();
        assert!(kept.contains("docs.json: not changed"), "{kept}");
        let after = tree.read(&TreePath::parse("docs.json").unwrap()).unwrap();
        assert_eq!(after, config);
    }

    #[test]
    fn comments_are_removed() {
        let config = "{\n  // the name\n  \"name\": \"A\", // here\n  /* and\n  the rest */\n  \"navigation\": {\"pages\": /* one */ [\"index\"]}\n}\n";
        let directory = documentation(config);
        let fixing = Args {
            fix: true,
            ..args(&directory)
        };
        assert!(!checked(&fixing).unwrap());
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
            assert!(!checked(&args).unwrap(), "{config_only}");
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

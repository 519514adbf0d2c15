//! `waypost schema`: the JSON Schema of `docs.json`, for editors.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;

use super::check::ignore_broken_pipe;
use crate::docs::schema::json_schema::json_schema;

/// Print the JSON Schema of docs.json
///
/// It contains the keys that `check` knows. If `$schema` in docs.json names it, an editor
/// completes and describes the keys.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Args {}

/// Prints the schema.
///
/// # Errors
///
/// If standard output cannot be written.
pub fn run(_args: &Args) -> anyhow::Result<ExitCode> {
    let schema = serde_json::to_string_pretty(&json_schema()).context("write the schema")?;
    ignore_broken_pipe(writeln!(io::stdout(), "{schema}")).context("print the schema")?;
    Ok(ExitCode::SUCCESS)
}

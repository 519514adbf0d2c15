//! The command line: a file for each subcommand, and what several of them take.
//!
//! Here, and nowhere below, values are put together into a process: the only module that
//! names configuration files, prints, and ends with an exit code.
//!
//! Design section 5.

pub mod build;
mod documentation;
pub mod publish;
pub mod releases;
pub mod settings;
#[cfg(test)]
mod testing;

pub use documentation::Documentation;
pub use settings::Settings;

use crate::site::{InvalidProjectId, ProjectId};

/// Reads a project id from the command line.
fn project(text: &str) -> Result<ProjectId, InvalidProjectId> {
    ProjectId::parse(text)
}

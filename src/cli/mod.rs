//! The command line: a file for each subcommand, and what several of them take.
//!
//! Here, and nowhere below, values are put together into a process: the only module that
//! names configuration files, prints, and ends with an exit code.
//!
//! Design section 5.

pub mod build;
mod documentation;

pub use documentation::Documentation;

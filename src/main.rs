//! The `waypost` program.

use std::process::ExitCode;

use clap::Parser as _;
use waypost::cli::Cli;

/// Small allocations by the million, which the system's allocator would scatter.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(
    clippy::print_stderr,
    reason = "the last word of a program that cannot go on"
)]
fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("waypost: {error:#}");
            ExitCode::from(2)
        }
    }
}

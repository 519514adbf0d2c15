//! The `waypost` program.

use std::process::ExitCode;

use clap::Parser as _;
use waypost::cli::Cli;

/// The index has millions of small allocations, which fragment memory less with this one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(
    clippy::print_stderr,
    reason = "the last message of a program that cannot continue"
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

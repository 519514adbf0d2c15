//! Compares what `waypost check` says of links with the HTML that is built, for a checkout of
//! any repository.
//!
//! ```sh
//! cargo run --release --example links -- ../some/docs
//! ```
//!
//! The exit status is 1 if the check accepts a link that does not work in the HTML, or warns of a
//! link that works.

#![expect(clippy::print_stdout, reason = "a tool for the terminal")]

#[path = "../tests/links/compare.rs"]
mod compare;

use std::process::ExitCode;

use waypost::source::directory;

fn main() -> ExitCode {
    let mut wrong = 0;
    for path in std::env::args_os().skip(1) {
        let path = std::path::PathBuf::from(path);
        let opened = directory::locate(&path, None)
            .and_then(|(root, docs)| directory::open(&root, &docs, directory::Limits::default()));
        let tree = match opened {
            Ok((tree, _)) => tree,
            Err(error) => {
                println!("{}: {error}", path.display());
                wrong += 1;
                continue;
            }
        };
        let compared = compare::compare(tree);
        println!(
            "{}: {} found, {} missing, {} unknown, {} not public; passed and dead: {}, warned of \
             and alive: {}",
            path.display(),
            compared.found,
            compared.missing,
            compared.unknown,
            compared.private,
            compared.dead.len(),
            compared.alive.len(),
        );
        for (what, links) in [("dead", &compared.dead), ("alive", &compared.alive)] {
            for link in links.iter().take(20) {
                println!("  {what}: {} on {} to {}", link.anchor, link.from, link.to);
            }
        }
        wrong += compared.dead.len() + compared.alive.len();
    }
    match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

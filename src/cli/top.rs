//! `waypost top`: the heaviest hosts, client addresses and reasons of a running gateway.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use serde::Deserialize;

use super::operator::Operator;
use super::settings::Settings;

/// Show which hosts, client addresses and reasons have the most requests or bytes
///
/// The numbers are of the last 30 to 60 seconds. A busy gateway counts a sample of its requests.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Only this list; without it the first entries of all lists are shown
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// Count requests, or bytes of content
    #[arg(long, value_enum, default_value = "requests")]
    pub of: Of,
    /// How many entries each list shows, 1 to 128 [default: 20 of one list, 8 of each list]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=128))]
    pub limit: Option<u64>,
    /// Show it again every so many seconds, until it is interrupted
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub every: Option<u64>,
    /// Print the answers of the gateway, one JSON object in each line
    #[arg(long)]
    pub json: bool,
    /// The configuration, which has the address of the operator's listener.
    #[command(flatten)]
    pub settings: Settings,
}

/// What entries are named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// The host of the request.
    Host,
    /// The address of the client.
    Address,
    /// Who responded, with which status, and how the request ended.
    Reason,
}

/// The unit of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Of {
    /// Requests.
    Requests,
    /// Bytes of content.
    Bytes,
}

/// A list of the gateway.
#[derive(Debug, Deserialize)]
struct List {
    seconds: f64,
    sampled_each: u64,
    total: u64,
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    name: String,
    count: u64,
}

/// Prints the lists.
///
/// # Errors
///
/// When no gateway responds.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let operator = Operator::of(&args.settings.load()?)?;
    loop {
        show(args, &operator, &mut io::stdout().lock())?;
        match args.every {
            Some(seconds) => std::thread::sleep(Duration::from_secs(seconds)),
            None => return Ok(ExitCode::SUCCESS),
        }
    }
}

fn show(args: &Args, operator: &Operator, out: &mut impl Write) -> anyhow::Result<()> {
    let (all, limit) = match args.by {
        Some(by) => (vec![by], args.limit.unwrap_or(20)),
        None => (
            vec![By::Host, By::Address, By::Reason],
            args.limit.unwrap_or(8),
        ),
    };
    let of = word(args.of);
    for by in all {
        let by = word(by);
        let answer = operator.json(&format!("/top?by={by}&of={of}&limit={limit}"))?;
        if args.json {
            writeln!(out, "{answer}")?;
            continue;
        }
        let list: List = serde_json::from_value(answer).context("read the list")?;
        print(&list, &by, &of, out)?;
    }
    Ok(())
}

/// Returns the name of a value on the command line, which is that of the query too.
fn word(value: impl ValueEnum) -> String {
    let name = value.to_possible_value();
    name.map_or_else(String::new, |name| name.get_name().to_owned())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates and shares need few digits"
)]
fn print(list: &List, by: &str, of: &str, out: &mut impl Write) -> io::Result<()> {
    let seconds = list.seconds.max(0.001);
    let rate = list.total as f64 / seconds;
    let sample = match list.sampled_each {
        1 => String::new(),
        each => format!(", a sample of 1 in {each} requests"),
    };
    writeln!(
        out,
        "{of} by {by}: {}/s in the last {seconds:.0} s{sample}",
        short(rate)
    )?;
    for Entry { name, count } in &list.entries {
        let share = 100.0 * *count as f64 / (list.total.max(1)) as f64;
        let rate = short(*count as f64 / seconds);
        // A host is what a client sent: it must not change the terminal.
        let name = name.escape_debug();
        writeln!(out, "{share:5.1} % {rate:>8}/s  {name}")?;
    }
    if list.entries.is_empty() {
        writeln!(out, "        nothing")?;
    }
    Ok(())
}

/// Writes a number with three digits.
fn short(number: f64) -> String {
    for (bound, unit) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if number >= bound {
            return format!("{:.1}{unit}", number / bound);
        }
    }
    match number {
        number if number >= 10.0 => format!("{number:.0}"),
        number => format!("{number:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_printed_with_shares_and_rates() {
        let list: List = serde_json::from_value(serde_json::json!({
            "seconds": 40.0, "sampled_each": 4, "total": 80_000,
            "entries": [
                { "name": "docs.acme.test", "count": 60_000, "excess_max": 0 },
                { "name": "\u{1b}[2J", "count": 10, "excess_max": 0 },
            ],
        }))
        .unwrap();
        let mut out = Vec::new();
        print(&list, "host", "requests", &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "requests by host: 2.0k/s in the last 40 s, a sample of 1 in 4 requests\n\
             \x2075.0 %     1.5k/s  docs.acme.test\n\
             \x20 0.0 %      0.2/s  \\u{1b}[2J\n"
        );
    }
}

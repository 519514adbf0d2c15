//! The measured figures: one file has them, and the README shows them.
//!
//! The pages of the bundled documentation import the file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::assert_file;

/// The file of the figures.
const FIGURES: &str = include_str!("../../../conf/demo/docs/snippets/figures.json");
const README: &str = "README.md";
/// The lines before and after the tables that are written from the file.
const START: &str =
    "<!-- Written by `make reference` from conf/demo/docs/snippets/figures.json. -->";
const END: &str = "<!-- Written by hand from here on. -->";

/// Writes a number with commas between thousands.
fn grouped(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1000), number % 1000),
    }
}

/// Writes a ratio; one below 1 is bold.
fn ratio(value: &Value) -> String {
    let number = value.as_f64().expect("a ratio is a number");
    match number < 1.0 {
        true => format!("**{number:.2}**"),
        false => format!("{number:.2}"),
    }
}

fn text<'v>(row: &'v Value, key: &str) -> &'v str {
    let value = row[key].as_str();
    value.unwrap_or_else(|| panic!("{row} has the text `{key}`"))
}

fn requests(figures: &Value) -> String {
    let mut table =
        "| What | Waypost | requests, compared with nginx | processor time |\n|---|---|---|---|\n"
            .to_owned();
    for row in figures["requests"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().expect("a ratio is a number");
        let mut compared = format!(
            "{} ({:.2} to {:.2})",
            ratio(&row["ratio"]),
            number("low"),
            number("high"),
        );
        if let Some(of) = row["of"].as_str() {
            write!(compared, " times {of}").unwrap();
        }
        if let Some(also) = row.get("also") {
            let (times, of) = (ratio(&also["ratio"]), text(also, "of"));
            write!(compared, "; {times} times {of}").unwrap();
        }
        let (what, rate) = (text(row, "what"), row["perSecond"].as_u64().unwrap());
        let (rate, processor) = (grouped(rate), ratio(&row["processor"]));
        writeln!(table, "| {what} | {rate}/s | {compared} | {processor} |").unwrap();
    }
    table
}

fn costs(figures: &Value) -> String {
    let mut table = "| What | Figure | Command |\n|---|---|---|\n".to_owned();
    for row in figures["costs"].as_array().unwrap() {
        let (what, figure, command) =
            (text(row, "what"), text(row, "figure"), text(row, "command"));
        let more = row["more"].as_str().unwrap_or_default();
        writeln!(table, "| {what} | {figure}{more} | {command} |").unwrap();
    }
    table
}

/// Writes the measured part of the README.
fn measured(figures: &Value) -> String {
    let (machine, nginx, commit) = (
        text(figures, "machine"),
        text(figures, "nginx"),
        text(figures, "commit"),
    );
    format!(
        "{machine}, nginx {nginx} (Debian 12): the server on one processor, the load on the other. A ratio\n\
         above 1 is in favour of Waypost: more requests per second, or less processor time for each. Where the load is the\n\
         limit, only the processor time tells the servers apart. Waypost is the program that packages contain\n\
         (`cargo build --profile dist`), at commit `{commit}`. The range covers the rounds of one run (`benches/peers/run`,\n\
         9 rounds of 1 s). Machines differ and drift: read the ratios.\n\n\
         {}\n\
         Measured at commit `{}`:\n\n\
         {}",
        requests(figures),
        text(figures, "costsCommit"),
        costs(figures),
    )
}

#[test]
fn the_readme_shows_the_figures_of_the_file_that_pages_import() {
    let figures: Value = serde_json::from_str(FIGURES).unwrap();
    let readme = fs::read_to_string(README).unwrap();
    let (before, rest) = readme.split_once(START).expect("the README has the line");
    let (_, after) = rest.split_once(END).expect("the README has the line");
    let expected = format!("{before}{START}\n\n{}\n{END}{after}", measured(&figures));
    assert_file(Path::new(README), &expected);
}

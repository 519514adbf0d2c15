//! The process log: one line per event, on standard error.
//!
//! It is text for people, or JSON for machines. The message can be understood without the
//! key-values, which are for filtering. Requests are in the access log and not here. A warning or
//! an error that repeats is logged a limited number of times ([`Limit`]).

use std::cell::Cell;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use log::kv::{self, VisitSource, VisitValue};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::log_file::LogFile;
use super::repeats::Limited;
use crate::clock::Clock;

pub use super::repeats::Limit;

/// The format of the process log, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The format of a line.
    pub format: Format,
    /// The filter: a level, or directives such as `info,pingora=warn`.
    pub filter: String,
    /// How often the same warning or error is logged.
    pub repeats: Limit,
    /// The file of the log; `None`: standard error.
    #[serde(default)]
    pub file: Option<PathBuf>,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// `2026-11-20T20:17:30Z INFO deploy: promoted … project=acme`.
    Text,
    /// One JSON object.
    Json,
}

// === impl Config ===

impl Default for Config {
    /// pingora logs every connection that a client breaks off as an error; those are counted.
    fn default() -> Self {
        Self {
            format: Format::Text,
            filter: "info,pingora_core=warn,pingora_core::apps=off,pingora_proxy=off".to_owned(),
            repeats: Limit::default(),
            file: None,
        }
    }
}

/// Starts logging. Called once, by the composition root.
///
/// # Errors
///
/// When something in this process is logging already, or the file cannot be opened.
pub fn start(config: &Config) -> io::Result<()> {
    let mut builder = env_logger::Builder::new();
    if let Some(path) = &config.file {
        let named = |error: io::Error| {
            let path = path.display();
            io::Error::new(error.kind(), format!("open the log {path}: {error}"))
        };
        let file = LogFile::open(path).map_err(named)?;
        builder.target(env_logger::Target::Pipe(Box::new(ToFile(file))));
    }
    builder.parse_filters(&config.filter);
    let clock = Clock::System;
    match config.format {
        Format::Text => builder.format(move |out, record| write_text(out, record, clock.now())),
        Format::Json => builder.format(move |out, record| write_json(out, record, clock.now())),
    };
    let logger = builder.build();
    let level = logger.filter();
    let logger = Box::new(Limited::new(logger, config.repeats));
    log::set_boxed_logger(logger).map_err(io::Error::other)?;
    log::set_max_level(level);
    Ok(())
}

/// Writes lines to a file, and to standard error if that is not possible.
struct ToFile(LogFile);

impl io::Write for ToFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.0.reopen() {
            let path = self.0.path().display();
            let line = format!("open the log {path} again: {error}; lines go to the file before\n");
            io::stderr().write_all(line.as_bytes())?;
        }
        if self.0.write(lines).is_err() {
            io::stderr().write_all(lines)?;
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_text(
    out: &mut dyn std::io::Write,
    record: &log::Record<'_>,
    now: SystemTime,
) -> std::io::Result<()> {
    let target = record.target().trim_start_matches("waypost::");
    let message = printable(&record.args().to_string());
    // Further lines of a message are no lines of the log.
    let message = message.replace('\n', "\n    ");
    write!(
        out,
        "{} {} {target}: {message}",
        timestamp(now),
        record.level()
    )?;
    let mut pairs = Pairs::default();
    // A value that cannot be formatted is left out; the line is written without it.
    let _shown = record.key_values().visit(&mut pairs);
    let mut rest = String::new();
    for (key, value) in pairs.0 {
        match value {
            // A backtrace: its lines follow the line of the event.
            Value::String(text) if text.contains('\n') => {
                for line in text.lines() {
                    rest.push_str("\n    ");
                    rest.push_str(line);
                }
            }
            Value::String(text) => write!(out, " {key}={text}")?,
            other => write!(out, " {key}={other}")?,
        }
    }
    writeln!(out, "{rest}")
}

fn write_json(
    out: &mut dyn std::io::Write,
    record: &log::Record<'_>,
    now: SystemTime,
) -> std::io::Result<()> {
    let mut line = serde_json::Map::new();
    line.insert("time".to_owned(), timestamp(now).into());
    line.insert(
        "level".to_owned(),
        record.level().as_str().to_lowercase().into(),
    );
    line.insert("target".to_owned(), record.target().into());
    let message = printable(&record.args().to_string());
    line.insert("message".to_owned(), message.into());
    let mut pairs = Pairs::default();
    let _shown = record.key_values().visit(&mut pairs);
    for (key, value) in pairs.0 {
        line.entry(key).or_insert(value);
    }
    let mut text = serde_json::to_vec(&line)?;
    text.push(b'\n');
    out.write_all(&text)
}

/// Replaces the characters that a terminal would obey: control characters, except for tabs and the
/// ends of lines, and characters that change the direction of the text (Unicode TR 36 §3.2).
///
/// Logs and records contain text of strangers: of authors, of git hosts, of servers of sites.
#[must_use]
pub fn printable(text: &str) -> String {
    let shown = text.chars().map(|c| match c {
        '\n' | '\t' => c,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            char::REPLACEMENT_CHARACTER
        }
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    });
    shown.collect()
}

/// The key-values of a record. Numbers stay numbers, so that a program that reads the log can
/// compare and add them.
#[derive(Default)]
struct Pairs(Vec<(String, Value)>);

struct ToJson(Value);

impl<'kvs> VisitSource<'kvs> for Pairs {
    fn visit_pair(&mut self, key: kv::Key<'kvs>, value: kv::Value<'kvs>) -> Result<(), kv::Error> {
        let mut json = ToJson(Value::Null);
        value.visit(&mut json)?;
        self.0.push((key.to_string(), json.0));
        Ok(())
    }
}

impl<'kvs> VisitValue<'kvs> for ToJson {
    fn visit_any(&mut self, value: kv::Value<'_>) -> Result<(), kv::Error> {
        self.0 = printable(&value.to_string()).into();
        Ok(())
    }

    fn visit_null(&mut self) -> Result<(), kv::Error> {
        self.0 = Value::Null;
        Ok(())
    }

    fn visit_u64(&mut self, value: u64) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_i64(&mut self, value: i64) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_f64(&mut self, value: f64) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_bool(&mut self, value: bool) -> Result<(), kv::Error> {
        self.0 = value.into();
        Ok(())
    }
}

/// Writes a time as RFC 3339 in UTC with milliseconds.
#[must_use]
pub fn timestamp(time: SystemTime) -> String {
    let mut out = Vec::with_capacity(24);
    write_timestamp(&mut out, time);
    String::from_utf8(out).expect("digits and punctuation")
}

/// Appends a time as RFC 3339 in UTC with milliseconds: `2026-11-20T20:17:30.123Z`.
pub fn write_timestamp(out: &mut Vec<u8>, time: SystemTime) {
    /// The date and the time of day, to the second.
    const TO_SECOND: usize = "2026-11-20T20:17:30".len();
    // Formatted once a second on each thread: a busy log has many lines of one second.
    thread_local! {
        static LAST: Cell<(u64, [u8; TO_SECOND])> = const { Cell::new((u64::MAX, [0; TO_SECOND])) };
    }
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let (of, mut text) = LAST.get();
    if of != since.as_secs() {
        let timestamp = jiff::Timestamp::UNIX_EPOCH
            .saturating_add(Duration::from_secs(since.as_secs()))
            .unwrap_or(jiff::Timestamp::MAX);
        let formatted = timestamp.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        let mut rest = &mut text[..];
        // A year has four digits, also the last one.
        let _cut = rest.write_all(formatted.as_bytes());
        LAST.set((since.as_secs(), text));
    }
    out.extend_from_slice(&text);
    let [hundreds, tens, ones] = digits(since.subsec_millis());
    out.extend_from_slice(&[b'.', hundreds, tens, ones, b'Z']);
}

/// Returns the last three digits of a number.
fn digits(number: u32) -> [u8; 3] {
    [100, 10, 1].map(|unit| b"0123456789"[(number / unit % 10) as usize])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timestamps_are_rfc_3339_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (1_795_206_656, "2026-11-20T20:30:56.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(
                timestamp(SystemTime::UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7)),
                text
            );
        }
    }

    #[test]
    fn text_of_strangers_neither_begins_a_line_nor_reaches_a_terminal_as_a_command() {
        let said = "git said: \u{1b}]0;owned\u{7}\r\n2026-11-20T20:17:30.123Z ERROR x: a lie";
        let host = kv::Value::from("a\u{9b}2J\u{202e}b");
        let pairs = [("host", host)];
        let write = |write: fn(&mut dyn io::Write, &log::Record<'_>, SystemTime) -> _| {
            let mut out = Vec::new();
            let written: io::Result<()> = write(
                &mut out,
                &log::Record::builder()
                    .args(format_args!("{said}"))
                    .level(log::Level::Warn)
                    .key_values(&pairs)
                    .build(),
                SystemTime::UNIX_EPOCH,
            );
            written.unwrap();
            String::from_utf8(out).unwrap()
        };
        let [text, json] = [write(write_text), write(write_json)];
        for line in [&text, &json] {
            let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
            assert!(!line.contains(obeyed), "{line:?}");
            assert!(line.contains("owned"), "{line}");
        }
        let begins = |line: &&str| line.starts_with("1970-");
        assert_eq!(text.lines().filter(begins).count(), 1, "{text}");
        assert!(
            text.lines()
                .all(|line| begins(&line) || line.starts_with("    "))
        );
        assert_eq!(json.lines().count(), 1);
    }

    #[test]
    fn a_json_line_has_the_key_values() {
        let mut out = Vec::new();
        let args = format_args!("promoted \"x\"");
        let pairs = [
            ("project", kv::Value::from("acme")),
            ("took_ms", kv::Value::from(12_u64)),
            ("message", kv::Value::from("not this")),
        ];
        let mut builder = log::Record::builder();
        let record = builder
            .args(args)
            .level(log::Level::Info)
            .target("deploy")
            .key_values(&pairs)
            .build();
        write_json(&mut out, &record, SystemTime::UNIX_EPOCH).unwrap();
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["project"], "acme");
        assert_eq!(line["message"], "promoted \"x\"");
        assert_eq!(line["level"], "info");
        assert_eq!(line["took_ms"], 12);
    }
}

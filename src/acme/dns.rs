//! TXT records for DNS-01, which a command of the operator sets and removes.
//!
//! The command gets three more arguments: `set` or `remove`, the name of the record, and its value.
//! It ends when the authority can read the record.
//!
//! Source: RFC 8555 §8.4.

use std::process::Stdio;
use std::time::Duration;

use super::failure::{Cause, Failure, shortened};

/// A record that is set.
#[derive(Debug)]
pub(super) struct Record {
    command: Vec<Box<str>>,
    time: Duration,
    name: String,
    value: String,
}

/// Why a run of the command failed.
#[derive(Debug)]
enum Failed {
    /// The program was not started, so it has changed nothing.
    NotStarted(Failure),
    /// It was started.
    Started(Failure),
}

// === impl Record ===

impl Record {
    /// Sets the record for a name.
    pub(super) async fn set(
        command: &[Box<str>],
        time: Duration,
        host: &str,
        value: String,
    ) -> Result<Self, Failure> {
        let host = host.strip_prefix("*.").unwrap_or(host);
        let record = Self {
            command: command.to_vec(),
            time,
            name: format!("_acme-challenge.{host}"),
            value,
        };
        match record.run("set").await {
            Ok(()) => Ok(record),
            Err(Failed::NotStarted(failure)) => Err(failure),
            // It may have set the record before it failed.
            Err(Failed::Started(failure)) => {
                record.remove().await;
                Err(failure)
            }
        }
    }

    /// Removes the record. It is harmless if it stays.
    pub(super) async fn remove(self) {
        if let Err(Failed::NotStarted(failure) | Failed::Started(failure)) =
            self.run("remove").await
        {
            let name = &self.name;
            log::warn!(target: "acme", name:%; "the TXT record {name} was not removed: {failure}");
        }
    }

    async fn run(&self, act: &str) -> Result<(), Failed> {
        let failure = |why: String| {
            let text = format!("`acme.dns_command` {act} {}: {why}", self.name);
            Failure::new(Cause::Command, text)
        };
        let failed = |why: String| Failed::Started(failure(why));
        let [program, arguments @ ..] = &*self.command else {
            return Err(Failed::NotStarted(failure(
                "there is no command".to_owned(),
            )));
        };
        let mut command = tokio::process::Command::new(&**program);
        command
            .args(arguments.iter().map(|argument| &**argument))
            .args([act, &self.name, &self.value])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let started = command.spawn();
        let started = started.map_err(|error| {
            let text = format!("it cannot be started: {error}");
            Failed::NotStarted(failure(text))
        })?;
        let output = tokio::time::timeout(self.time, started.wait_with_output()).await;
        let output = output.map_err(|_elapsed| failed("it took too long".to_owned()))?;
        let output = output.map_err(|error| failed(error.to_string()))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(failed(format!(
                    "{}: {}",
                    output.status,
                    shortened(said.trim())
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn command(words: &[&str]) -> Vec<Box<str>> {
        words.iter().map(|word| (*word).into()).collect()
    }

    #[tokio::test]
    async fn a_record_that_may_have_been_set_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let calls = root.path().join("calls");
        let file = calls.to_str().unwrap();
        // `sh -c SCRIPT FILE` has the file as `$0`.
        let fails = "echo $1 $2 $3 >> $0; exit 3";
        let hangs = "echo $1 $2 $3 >> $0; test $1 = remove || exec sleep 600";
        for (script, time, why) in [
            (fails, Duration::from_secs(20), "exit status: 3"),
            (hangs, Duration::from_secs(5), "it took too long"),
        ] {
            let command = command(&["sh", "-c", script, file]);
            let set = Record::set(&command, time, "*.acme.test", "value".to_owned()).await;
            let failure = set.unwrap_err();
            assert_eq!(failure.cause, Cause::Command);
            assert!(failure.text.contains(why), "{failure}");
            let called = fs::read_to_string(&calls).unwrap();
            let name = "_acme-challenge.acme.test value";
            assert_eq!(called, format!("set {name}\nremove {name}\n"));
            fs::remove_file(&calls).unwrap();
        }
        let command = command(&["/nowhere/dns"]);
        let time = Duration::from_secs(20);
        let set = Record::set(&command, time, "acme.test", "value".to_owned()).await;
        let failure = set.unwrap_err();
        assert!(failure.text.contains("cannot be started"), "{failure}");
    }
}

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
        record.run("set").await?;
        Ok(record)
    }

    /// Removes the record. It is harmless if it stays.
    pub(super) async fn remove(self) {
        if let Err(failure) = self.run("remove").await {
            let name = &self.name;
            log::warn!(target: "acme", name:%; "the TXT record {name} was not removed: {failure}");
        }
    }

    async fn run(&self, act: &str) -> Result<(), Failure> {
        let failed = |why: String| {
            let text = format!("`acme.dns_command` {act} {}: {why}", self.name);
            Failure::new(Cause::Ourselves, text)
        };
        let [program, arguments @ ..] = &*self.command else {
            return Err(failed("there is no command".to_owned()));
        };
        let mut command = tokio::process::Command::new(&**program);
        command
            .args(arguments.iter().map(|argument| &**argument))
            .args([act, &self.name, &self.value])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let output = tokio::time::timeout(self.time, command.output()).await;
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

//! `waypost cert`: lists, replaces and revokes certificates by ACME.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::json;

use super::check::ignore_broken_pipe;
use super::settings::{self, Acting};
use crate::acme::{Authorities, Name, OrderState, Reason, Record, Request, Vault, renewal};
use crate::clock::Clock;
use crate::deploy::Timestamp;
use crate::error::chain;
use crate::store::documents::{Kind, key_of};

/// The arguments of the command.
pub type Args = Acting<Action>;

/// The action of the command.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// List certificates, and names whose order has failed; those that expire first come first
    List {
        /// Write a JSON object for each name
        #[arg(long)]
        json: bool,
        /// Only names with at most so many days left, and failed orders
        #[arg(long, value_name = "DAYS")]
        days: Option<u64>,
    },
    /// Order other certificates now; the gateway that orders does it
    Renew {
        /// The names of the certificates
        #[arg(required = true, value_name = "NAME", value_parser = Name::parse)]
        names: Vec<Name>,
    },
    /// Revoke the certificate of a name at its authority; it stays in use until the gateway has
    /// another one
    Revoke {
        /// The name of the certificate
        #[arg(value_parser = Name::parse)]
        name: Name,
        /// Tell the authority that the private key is known to somebody else
        #[arg(long)]
        key_compromise: bool,
    },
}

/// A line of the list: the certificate of a name, and its failed order.
#[derive(Default)]
struct Row {
    record: Option<Record>,
    failed: Option<OrderState>,
    unusable: Option<String>,
}

/// Runs the action.
///
/// # Errors
///
/// When the configuration or the certificates cannot be used, or the authority refuses.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let config = args.settings.load()?;
    let vault = settings::open_vault(&config)?;
    match &args.action {
        Action::List { json, days } => list(&vault, *json, *days)?,
        Action::Renew { names } => {
            for name in names {
                request(&vault, name)?;
                writeln!(io::stdout(), "{name}: another certificate is requested")
                    .context("print the outcome")?;
            }
        }
        Action::Revoke {
            name,
            key_compromise,
        } => {
            let record = current(&vault, name)?;
            let authorities = Authorities::new(&config.acme, &vault, Clock::System);
            let authorities =
                authorities.map_err(|wrong| anyhow::anyhow!("{}", wrong.join("\n")))?;
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .context("start")?;
            let reason = match key_compromise {
                true => Reason::KeyCompromise,
                false => Reason::Superseded,
            };
            let revoked = runtime.block_on(authorities.revoke(&record, reason));
            if let Err(failure) = revoked {
                bail!("{name}: {failure}");
            }
            request(&vault, name)?;
            writeln!(
                io::stdout(),
                "{name}: the certificate {} is revoked, and another one is requested",
                record.leaf.serial
            )
            .context("print the outcome")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the gateway that orders for another certificate.
fn request(vault: &Vault, name: &Name) -> anyhow::Result<()> {
    let bytes = Request::new(name.as_str()).to_bytes();
    vault
        .documents
        .put(Kind::Request, &key_of(name.as_str()), &bytes)
        .context("request another certificate")
}

/// Returns the certificate that serves a name.
fn current(vault: &Vault, name: &Name) -> anyhow::Result<Record> {
    let keys = vault
        .documents
        .keys_of(Kind::Certificate, &key_of(name.as_str()))?;
    let mut newest: Option<Record> = None;
    for key in keys {
        let Some(bytes) = vault.documents.get(Kind::Certificate, &key)? else {
            continue;
        };
        let record = Record::parse(&bytes).with_context(|| format!("read the record {key}"))?;
        let is_newer = newest
            .as_ref()
            .is_none_or(|known| record.issued_at >= known.issued_at);
        if *record.name == *name.as_str() && is_newer {
            newest = Some(record);
        }
    }
    newest.with_context(|| format!("there is no certificate by ACME for {name}"))
}

fn list(vault: &Vault, as_json: bool, days: Option<u64>) -> anyhow::Result<()> {
    let mut rows: BTreeMap<Box<str>, Row> = BTreeMap::new();
    for (kind, key) in keys(vault)? {
        let Some(bytes) = vault.documents.get(kind, &key)? else {
            continue;
        };
        match kind {
            Kind::Order => {
                if let Some(state) = OrderState::parse(&bytes) {
                    let row = rows.entry(state.name.as_str().into()).or_default();
                    row.failed = Some(state);
                }
            }
            _ => match Record::parse(&bytes) {
                Ok(record) => {
                    let row = rows.entry(record.name.clone()).or_default();
                    let known = row.record.as_ref();
                    if known.is_none_or(|known| record.issued_at >= known.issued_at) {
                        row.record = Some(record);
                    }
                }
                Err(error) => {
                    let name = key.split_once('~').map_or(&*key, |(name, _)| name);
                    rows.entry(name.into()).or_default().unusable = Some(chain(&error));
                }
            },
        }
    }
    let now = Clock::System.unix_seconds();
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.retain(|(_, row)| match (days, &row.record) {
        (Some(days), Some(record)) => {
            row.failed.is_some() || record.leaf.not_after.saturating_sub(now) / 86_400 <= days
        }
        _ => true,
    });
    let expires = |row: &Row| {
        row.record
            .as_ref()
            .map_or(0, |record| record.leaf.not_after)
    };
    rows.sort_by_key(|(_, row)| expires(row));
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (name, row) in &rows {
        let line = match as_json {
            true => row.to_json(name).to_string(),
            false => row.line(name, now),
        };
        ignore_broken_pipe(writeln!(out, "{line}")).context("print the certificates")?;
    }
    ignore_broken_pipe(out.flush()).context("print the certificates")
}

fn keys(vault: &Vault) -> anyhow::Result<Vec<(Kind, Box<str>)>> {
    let mut keys = Vec::new();
    for kind in [Kind::Certificate, Kind::Order] {
        let of_kind = vault.documents.keys(kind)?.into_iter();
        keys.extend(of_kind.map(|key| (kind, key)));
    }
    Ok(keys)
}

// === impl Row ===

impl Row {
    /// Returns the line of a name: days left, dates, authority, failures.
    fn line(&self, name: &str, now: u64) -> String {
        let mut line = match &self.record {
            Some(record) => {
                let left = record.leaf.not_after.saturating_sub(now) / 86_400;
                let (expires, renewed) = (record.leaf.not_after, renewal(record.leaf.life()));
                format!(
                    "{name}  {left} days left  expires {}  renewed about {}  {}",
                    timestamp(expires),
                    timestamp(renewed),
                    record.authority
                )
            }
            None => format!("{name}  no certificate"),
        };
        if let Some(failed) = &self.failed {
            let (failures, why) = (failed.failures, &failed.why);
            let again = timestamp(failed.retry_at);
            line.push_str(&format!(
                "  failed {failures} times, tried again {again}: {why}"
            ));
        }
        if let Some(unusable) = &self.unusable {
            line.push_str(&format!("  a record cannot be used: {unusable}"));
        }
        line
    }

    fn to_json(&self, name: &str) -> serde_json::Value {
        let certificate = self.record.as_ref().map(|record| {
            json!({
                "id": record.id,
                "serial": record.leaf.serial,
                "authority": record.authority,
                "issuedAt": timestamp(record.issued_at),
                "expiresAt": timestamp(record.leaf.not_after),
                "renewedAbout": timestamp(renewal(record.leaf.life())),
            })
        });
        let failed = self.failed.as_ref().map(|failed| {
            json!({
                "failures": failed.failures,
                "failedAt": timestamp(failed.failed_at),
                "retryAt": timestamp(failed.retry_at),
                "why": failed.why,
            })
        });
        json!({
            "name": name,
            "certificate": certificate,
            "failed": failed,
            "unusable": self.unusable,
        })
    }
}

/// Writes seconds after the Unix epoch as RFC 3339.
fn timestamp(seconds: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
    Timestamp::of(time).to_string()
}

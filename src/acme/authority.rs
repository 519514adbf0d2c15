//! The authorities of the configuration, with their accounts and budgets.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
use instant_acme::{
    Account, AccountCredentials, Error, ExternalAccountKey, NewAccount, Problem, RevocationReason,
    RevocationRequest,
};
use serde::{Deserialize, Serialize};

use super::Vault;
use super::budget::Budget;
use super::config::{self, Config};
use super::failure::{Cause, Failure};
use super::quota::Quota;
use super::record::Record;
use super::state::{Issues, Taken, Versioned as _};
use super::transport::{EXCHANGE, Exchange, Transport};
use crate::clock::Clock;
use crate::digest::Digest;
use crate::error::chain;
use crate::store::documents::{Kind, Sealed};

/// The version of the record of an account.
const VERSION: u64 = 1;
/// How many digits of a digest name an authority.
const KEY_DIGITS: usize = 32;

/// All authorities, in the order of the configuration.
#[derive(Debug)]
pub struct Authorities {
    list: Vec<Arc<Authority>>,
}

/// One authority.
pub(super) struct Authority {
    pub(super) config: config::Authority,
    contacts: Vec<Box<str>>,
    transport: Transport,
    eab_key: Option<Vec<u8>>,
    vault: Vault,
    /// The account, once it was used.
    account: tokio::sync::Mutex<Option<Account>>,
    budget: Mutex<Budget>,
    quota: Mutex<Quota>,
}

/// Why a certificate is revoked (RFC 5280 §5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Somebody else may know its key.
    KeyCompromise,
    /// Another certificate takes its place.
    Superseded,
    /// The name is not served any more.
    Ceased,
}

/// The content of the record of an account.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountDocument {
    version: u64,
    directory: String,
    credentials: Sealed,
}

// === impl Authorities ===

impl Authorities {
    /// Makes it; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// A sentence for each file that cannot be used.
    pub fn new(config: &Config, vault: &Vault, clock: Clock) -> Result<Self, Vec<String>> {
        let mut list = Vec::new();
        let mut wrong = Vec::new();
        for authority in &config.authorities {
            match Authority::new(authority, config, vault, clock) {
                Ok(authority) => list.push(Arc::new(authority)),
                Err(why) => wrong.push(why),
            }
        }
        match wrong.is_empty() {
            true => Ok(Self { list }),
            false => Err(wrong),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Authority>> {
        self.list.iter()
    }

    /// Reads again when the orders began that count for the limits: another process may have begun
    /// some.
    pub(super) fn read_budgets(&self) {
        for authority in &self.list {
            authority.read_budget();
        }
    }

    pub(super) fn at(&self, directory: &str) -> Option<&Arc<Authority>> {
        let mut list = self.list.iter();
        list.find(|authority| *authority.config.directory == *directory)
    }

    /// Revokes a certificate (RFC 8555 §7.6). A certificate that was revoked before is no error.
    ///
    /// # Errors
    ///
    /// [`Failure`]; among others when the authority of the certificate is not in the configuration.
    pub async fn revoke(&self, record: &Record, reason: Reason) -> Result<(), Failure> {
        let authority = self.at(&record.authority).ok_or_else(|| {
            let text = format!(
                "the certificate was issued by {}, which `acme.authorities` does not name",
                record.authority
            );
            // No wait helps.
            Failure::new(Cause::Name, text)
        })?;
        let exchange = Arc::new(Exchange::default());
        let revoked = EXCHANGE
            .scope(Arc::clone(&exchange), async {
                let account = authority.account().await?;
                let reason = match reason {
                    Reason::KeyCompromise => RevocationReason::KeyCompromise,
                    Reason::Superseded => RevocationReason::Superseded,
                    Reason::Ceased => RevocationReason::CessationOfOperation,
                };
                let request = RevocationRequest {
                    certificate: &record.chain[0],
                    reason: Some(reason),
                };
                match account.revoke(&request).await {
                    Err(Error::Api(problem)) if is_revoked(&problem) => Ok(()),
                    Err(error) => Err(Failure::of("revoke the certificate", &error, &exchange)),
                    Ok(()) => Ok(()),
                }
            })
            .await;
        if let Err(failure) = &revoked
            && matches!(failure.cause, Cause::Authority | Cause::Account)
        {
            authority.forget(failure.cause == Cause::Account).await;
        }
        revoked
    }
}

// === impl Authority ===

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Authority")
            .field(&self.config.directory)
            .finish()
    }
}

impl Authority {
    fn new(
        authority: &config::Authority,
        config: &Config,
        vault: &Vault,
        clock: Clock,
    ) -> Result<Self, String> {
        let ca_file = authority.ca_file.as_deref();
        let transport = Transport::new(ca_file, &authority.directory, config.request_time, clock)
            .map_err(|error| {
            let file = ca_file.map_or_else(String::new, |file| file.display().to_string());
            format!("read `acme.authorities` ca_file {file}: {error}")
        })?;
        let eab_key = match &authority.eab_key_file {
            None => None,
            Some(file) => {
                let named = |why: &str| {
                    format!(
                        "read `acme.authorities` eab_key_file {}: {why}",
                        file.display()
                    )
                };
                let text = fs::read_to_string(file).map_err(|error| named(&error.to_string()))?;
                let key = decode(text.trim()).ok_or_else(|| named("it is not base 64"))?;
                Some(key)
            }
        };
        let taken = taken(vault, authority).unwrap_or_default();
        let authority = Self {
            config: authority.clone(),
            contacts: config.contacts.clone(),
            transport,
            eab_key,
            vault: vault.clone(),
            account: tokio::sync::Mutex::new(None),
            budget: Mutex::new(Budget::new(config.orders_max, config.orders_window, taken)),
            quota: Mutex::new(Quota::new(
                config.domain_certificates_max,
                config.name_certificates_max,
                config.certificates_window,
            )),
        };
        authority.read_quota();
        Ok(authority)
    }

    fn read_budget(&self) {
        if let Some(taken) = taken(&self.vault, &self.config) {
            self.budget().replace(taken);
        }
        self.read_quota();
    }

    fn read_quota(&self) {
        let documents = &self.vault.documents;
        let own = key(&self.config);
        for key in documents.keys(Kind::Budget).unwrap_or_default() {
            let part = key
                .strip_prefix(&*own)
                .and_then(|key| key.strip_prefix('~'));
            let part = part.and_then(|part| u8::from_str_radix(part, 16).ok());
            let bytes = documents.get(Kind::Budget, &key).ok().flatten();
            let issues = bytes.and_then(|bytes| Issues::read(&bytes));
            if let Some((part, issues)) = part.zip(issues) {
                self.quota().replace(part, issues.list);
            }
        }
    }

    fn write_quota(&self, name: &str) {
        let (part, list) = self.quota().part_with(name);
        let bytes = Issues::new(list).write();
        let put = self
            .vault
            .documents
            .put(Kind::Budget, &self.key_of(part), &bytes);
        if let Err(error) = put {
            log::warn!(target: "acme", name; "count a certificate: {}", chain(&error));
        }
    }

    /// Returns the key of the document with a part of the issued certificates.
    fn key_of(&self, part: u8) -> String {
        format!("{}~{part:02x}", key(&self.config))
    }

    fn quota(&self) -> MutexGuard<'_, Quota> {
        // Each step leaves it valid.
        self.quota.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether renewals that name what they replace do not count for its limits. It has no
    /// way to name that without renewal information.
    pub(super) fn exempts_renewals(&self) -> bool {
        let directory = self.transport.directory();
        directory.is_none_or(|directory| directory.has_renewal_info)
    }

    /// Returns the names of the authority in CAA records, as its directory has them.
    pub(super) fn caa_identities(&self) -> Vec<Box<str>> {
        let directory = self.transport.directory();
        directory.map_or_else(Vec::new, |directory| directory.caa_identities.clone())
    }

    /// The budget of the authority.
    pub(super) fn budget(&self) -> MutexGuard<'_, Budget> {
        // Each step leaves it valid.
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new order for a name, if one may begin, also for the time after a restart.
    pub(super) fn take(&self, now: u64, name: &str) -> Result<(), Failure> {
        if let Err(full) = self.quota().check(now, name) {
            let wait = full.until.saturating_sub(now);
            return Err(Failure {
                wait: Some(Duration::from_secs(wait)),
                ..Failure::new(Cause::Quota, full.to_string())
            });
        }
        let mut budget = self.budget();
        if !budget.take(now) {
            return Err(Failure::new(Cause::Budget, "no new order may begin now"));
        }
        let taken = budget.taken();
        drop(budget);
        let bytes = Taken::new(taken).write();
        let put = self
            .vault
            .documents
            .put(Kind::Budget, &key(&self.config), &bytes);
        if let Err(error) = put {
            log::warn!(target: "acme", "cannot count an order: {}", chain(&error));
        }
        self.quota().begin(now, name);
        self.write_quota(name);
        Ok(())
    }

    /// Notes the end of an order of a name. Only a certificate that was issued stays counted.
    pub(super) fn ended(&self, now: u64, name: &str, is_issued: bool) {
        let is_counted = self.quota().end(now, name, is_issued);
        if is_counted {
            self.write_quota(name);
        }
    }

    /// Returns the account; it is made when it is used for the first time.
    pub(super) async fn account(&self) -> Result<Account, Failure> {
        let mut account = self.account.lock().await;
        if let Some(account) = &*account {
            return Ok(account.clone());
        }
        let opened = match self.read_account()? {
            Some(credentials) => self.restore(credentials).await?,
            None => self.create().await?,
        };
        *account = Some(opened.clone());
        Ok(opened)
    }

    /// Discards the cached state of the authority, so that its directory is read again; with
    /// `is_unknown` the account too, because the authority does not know it.
    pub(super) async fn forget(&self, is_unknown: bool) {
        *self.account.lock().await = None;
        if is_unknown {
            let removed = self
                .vault
                .documents
                .remove(Kind::Account, &key(&self.config));
            if let Err(error) = removed {
                log::warn!(target: "acme", "cannot remove an account: {}", chain(&error));
            }
        }
    }

    fn read_account(&self) -> Result<Option<AccountCredentials>, Failure> {
        let ourselves = |why: String| {
            let text = format!(
                "the record of the account at {}: {why}",
                self.config.directory
            );
            Failure::new(Cause::Ourselves, text)
        };
        let bytes = self.vault.documents.get(Kind::Account, &key(&self.config));
        let Some(bytes) = bytes.map_err(|error| ourselves(chain(&error)))? else {
            return Ok(None);
        };
        let written: AccountDocument =
            serde_json::from_slice(&bytes).map_err(|error| ourselves(error.to_string()))?;
        if written.version > VERSION {
            let newer = written.version;
            return Err(ourselves(format!(
                "it has version {newer}; this program reads versions up to {VERSION}"
            )));
        }
        let context = self.context();
        let secret = self.vault.seal.unseal(&written.credentials, &context);
        let secret = secret.map_err(|error| ourselves(error.to_string()))?;
        let credentials =
            serde_json::from_slice(&secret).map_err(|_secret| ourselves("it is damaged".into()))?;
        Ok(Some(credentials))
    }

    async fn restore(&self, credentials: AccountCredentials) -> Result<Account, Failure> {
        let builder = Account::builder_with_http(Box::new(self.transport.clone()));
        let restored = builder.from_credentials(credentials).await;
        restored.map_err(|error| Failure::of("read the directory", &error, &exchange()))
    }

    async fn create(&self) -> Result<Account, Failure> {
        let contacts: Vec<&str> = self.contacts.iter().map(|contact| &**contact).collect();
        let wanted = NewAccount {
            contact: &contacts,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let external = match (&self.config.eab_id, &self.eab_key) {
            (Some(id), Some(key)) => Some(ExternalAccountKey::new(id.to_string(), key)),
            _ => None,
        };
        let builder = Account::builder_with_http(Box::new(self.transport.clone()));
        let directory = self.config.directory.to_string();
        let (account, credentials) = builder
            .create(&wanted, directory.clone(), external.as_ref())
            .await
            .map_err(|error| {
                let failure = Failure::of("make an account", &error, &exchange());
                Failure {
                    // No name can be ordered without an account.
                    cause: Cause::Authority,
                    ..failure
                }
            })?;
        let ourselves = |why: String| Failure::new(Cause::Ourselves, why);
        let secret = serde_json::to_vec(&credentials)
            .map_err(|error| ourselves(format!("write the account: {error}")))?;
        let written = AccountDocument {
            version: VERSION,
            directory,
            credentials: self
                .vault
                .seal
                .seal(&secret, &self.context())
                .map_err(|error| ourselves(chain(&error)))?,
        };
        let bytes = serde_json::to_vec_pretty(&written).expect("texts are JSON");
        self.vault
            .documents
            .put(Kind::Account, &key(&self.config), &bytes)
            .map_err(|error| ourselves(chain(&error)))?;
        let (directory, id) = (&self.config.directory, account.id());
        log::info!(target: "acme", directory:%, account = id; "made the account {id} at {directory}");
        Ok(account)
    }

    fn context(&self) -> String {
        format!("account at {}", self.config.directory)
    }
}

/// RFC 8555 §7.6.
fn is_revoked(problem: &Problem) -> bool {
    problem.r#type.as_deref() == Some("urn:ietf:params:acme:error:alreadyRevoked")
}

/// Returns the last answer that the running task got.
pub(super) fn exchange() -> Arc<Exchange> {
    EXCHANGE.try_with(Arc::clone).unwrap_or_default()
}

/// Reads when the orders began that count for the limits of an authority.
fn taken(vault: &Vault, authority: &config::Authority) -> Option<Vec<u64>> {
    let bytes = vault.documents.get(Kind::Budget, &key(authority));
    Some(Taken::read(&bytes.ok()??)?.at)
}

/// Returns the key of the documents of an authority.
fn key(authority: &config::Authority) -> String {
    let digest = Digest::of(authority.directory.as_bytes()).to_string();
    digest[..KEY_DIGITS].to_owned()
}

/// Decodes base 64 with either alphabet, with or without padding: authorities write it in each way.
fn decode(text: &str) -> Option<Vec<u8>> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabets = [alphabet::URL_SAFE, alphabet::STANDARD];
    alphabets
        .iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, lenient).decode(text).ok())
}

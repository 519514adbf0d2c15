//! One order: from the name to the record of its certificate.
//!
//! 1. The order is placed, with the certificate that it replaces (RFC 9773 §5).
//! 2. A private key is made and written, with the address of the order: if the process ends now,
//!    the next one goes on with this order.
//! 3. This machine and the edges get the answer to the challenge. Then this program tells the
//!    authority to fetch the answer.
//! 4. The authority issues the certificate, and the record is written.

use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeHandle, ChallengeType, Error,
    Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};

use super::authority::{Authority, exchange};
use super::caa;
use super::challenges::{Challenges, Installed};
use super::config::{ChallengeKind, Config};
use super::dns;
use super::failure::{Cause, Failure, is_internal, sentence_of};
use super::queue::Lane;
use super::record::Record;
use super::state::{Pending, Versioned as _};
use super::{UnusableRecord, Vault};
use crate::clock::Clock;
use crate::dns::Client;
use crate::error::chain;
use crate::store::documents::{Kind, key_of};

/// How much free space an order needs on the disk.
const SPACE_BYTES: u64 = 256 << 10;
/// The first wait for the authority; each further one is longer by half.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const WAIT_GROWTH: f32 = 1.5;

/// The parts of the process that every order uses.
#[derive(Debug)]
pub(super) struct Shared {
    /// Asks name servers.
    pub(super) client: Client,
    pub(super) config: Config,
    pub(super) vault: Vault,
    pub(super) challenges: Arc<Challenges>,
    pub(super) clock: Clock,
}

/// A certificate to be ordered.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) name: Arc<str>,
    /// The owner of its site; `None` for a name of the operator.
    pub(super) owner: Option<Arc<str>>,
    /// How the control of the name is proven.
    pub(super) kind: ChallengeKind,
    /// The identifier of the certificate that is replaced, and the directory of its authority.
    pub(super) replaces: Option<(Arc<str>, (String, String))>,
}

/// The proof of control of a name, installed until this is dropped.
enum Proof {
    Installed { _installed: Installed },
    Record(dns::Record),
}

// === impl Job ===

impl Job {
    /// Returns whether it names a certificate of an authority that it replaces, so that it does not
    /// count for the limits of that authority.
    pub(super) fn is_exempt_at(&self, authority: &Authority) -> bool {
        let replaced = self.replaces.as_ref();
        let is_renewal =
            replaced.is_some_and(|(issuer, _)| **issuer == *authority.config.directory);
        is_renewal && authority.exempts_renewals()
    }
}

// === impl Shared ===

impl Shared {
    /// Orders a certificate at an authority, and returns its record, which is not written yet.
    pub(super) async fn order(&self, authority: &Authority, job: &Job) -> Result<Record, Failure> {
        let ordered = self.order_counted(authority, job).await;
        if ordered.is_ok() || !self.has_begun(&job.name) {
            authority.ended(self.clock.unix_seconds(), &job.name, ordered.is_ok());
        }
        ordered
    }

    /// Returns whether an order counts for the limits of an authority.
    pub(super) fn lane(&self, authority: &Authority, job: &Job) -> Lane {
        match job.is_exempt_at(authority) || self.begun_at(authority, &job.name).is_some() {
            true => Lane::Uncounted,
            false => Lane::Counted,
        }
    }

    async fn order_counted(&self, authority: &Authority, job: &Job) -> Result<Record, Failure> {
        match self.vault.documents.has_space(SPACE_BYTES) {
            Ok(true) => {}
            Ok(false) => {
                let why =
                    "the disk is full, so a certificate could not be kept: nothing is ordered";
                return Err(Failure::new(Cause::Ourselves, why));
            }
            Err(error) => return Err(Failure::new(Cause::Ourselves, chain(&error))),
        }
        // What counts, and the names in CAA records, depend on the directory, which is read now.
        let account = authority.account().await?;
        let identities = match self.config.caa_identities.is_empty() {
            true => authority.caa_identities(),
            false => self.config.caa_identities.clone(),
        };
        let issuer = caa::Issuer {
            identities: &identities,
            account: account.id(),
        };
        caa::permit(&self.client, &job.name, &issuer).await?;
        let begun = self.begun_at(authority, &job.name);
        if begun.is_none() {
            self.count(authority, job)?;
        }
        let (mut order, key) = match begun {
            Some(begun) => match self.resume(&account, begun).await {
                Some(resumed) => resumed,
                // The authority does not have it any more.
                None => {
                    self.count(authority, job)?;
                    self.place(authority, &account, job).await?
                }
            },
            None => self.place(authority, &account, job).await?,
        };
        let mut proofs = Vec::new();
        let proven = self.prove(&mut order, job, &mut proofs).await;
        for proof in proofs {
            if let Proof::Record(record) = proof {
                record.remove().await;
            }
        }
        if let Err(failure) = proven {
            if failure.cause == Cause::Name {
                self.forget(&job.name);
            }
            return Err(failure);
        }
        let chain = self.finish(&mut order, job, &key).await?;
        let now = self.clock.unix_seconds();
        let directory = &authority.config.directory;
        Record::new(&job.name, directory, now, &chain, &key, &self.vault.seal).map_err(|error| {
            self.forget(&job.name);
            let cause = match error {
                UnusableRecord::Seal(_) | UnusableRecord::Unsealed(_) => Cause::Ourselves,
                _ => Cause::Authority,
            };
            Failure::new(
                cause,
                format!(
                    "the authority has issued something else: {}",
                    crate::error::chain(&error)
                ),
            )
        })
    }

    /// Returns the names whose orders have begun.
    pub(super) fn begun(&self) -> Vec<String> {
        let documents = &self.vault.documents;
        let keys = documents.keys(Kind::Pending).unwrap_or_default();
        let read = keys
            .iter()
            .filter_map(|key| Pending::read(&documents.get(Kind::Pending, key).ok()??));
        read.map(|pending| pending.name).collect()
    }

    /// Returns whether an order of a name has begun.
    pub(super) fn has_begun(&self, name: &str) -> bool {
        self.pending(name).is_some()
    }

    fn pending(&self, name: &str) -> Option<Pending> {
        let bytes = self.vault.documents.get(Kind::Pending, &key_of(name));
        let pending = Pending::read(&bytes.ok().flatten()?)?;
        (pending.name == name).then_some(pending)
    }

    /// Returns the order that has begun at an authority.
    fn begun_at(&self, authority: &Authority, name: &str) -> Option<Pending> {
        let pending = self.pending(name)?;
        (pending.authority == *authority.config.directory).then_some(pending)
    }

    /// Counts a new order for the limits of the authority.
    fn count(&self, authority: &Authority, job: &Job) -> Result<(), Failure> {
        match job.is_exempt_at(authority) {
            true => Ok(()),
            false => authority.take(self.clock.unix_seconds(), &job.name),
        }
    }

    /// Returns an order that has begun, and its private key; `None` if it cannot go on.
    async fn resume(&self, account: &Account, pending: Pending) -> Option<(Order, Vec<u8>)> {
        let context = Pending::context(&pending.name);
        let key = self.vault.seal.unseal(&pending.key, &context).ok()?;
        let mut order = account.order(pending.order).await.ok()?;
        match order.state().status {
            OrderStatus::Invalid => None,
            _ => Some((order, key)),
        }
    }

    /// Places an order, and writes its key.
    async fn place(
        &self,
        authority: &Authority,
        account: &Account,
        job: &Job,
    ) -> Result<(Order, Vec<u8>), Failure> {
        let identifiers = [Identifier::Dns(job.name.to_string())];
        let wanted = || {
            let order = NewOrder::new(&identifiers);
            match &authority.config.profile {
                Some(profile) => order.profile(profile),
                None => order,
            }
        };
        let replaced = job.replaces.as_ref();
        let replaced = replaced.filter(|_| job.is_exempt_at(authority));
        let place = "place the order";
        let failed = |error: &Error| Failure::of(place, error, &exchange());
        let order = match replaced {
            Some((_, (authority_key, serial))) => {
                let replaced = CertificateIdentifier {
                    authority_key_identifier: authority_key.as_str().into(),
                    serial: serial.as_str().into(),
                };
                match account.new_order(&wanted().replaces(replaced)).await {
                    // It was replaced already, or the authority does not know it any more: some
                    // say so, others report an internal error. This order counts for the limits.
                    Err(error)
                        if is_internal(&error)
                            || matches!(failed(&error).cause, Cause::Replaced | Cause::Name) =>
                    {
                        match authority.take(self.clock.unix_seconds(), &job.name) {
                            Err(failure) if failure.cause == Cause::Quota => return Err(failure),
                            _ => account.new_order(&wanted()).await,
                        }
                    }
                    placed => placed,
                }
            }
            None => account.new_order(&wanted()).await,
        };
        let order = order.map_err(|error| failed(&error))?;
        let ourselves = |why: String| Failure::new(Cause::Ourselves, why);
        let key = KeyPair::generate()
            .map_err(|error| ourselves(format!("make a private key: {error}")))?
            .serialize_der();
        let sealed = self.vault.seal.seal(&key, &Pending::context(&job.name));
        let sealed = sealed.map_err(|error| ourselves(chain(&error)))?;
        let pending = Pending::new(&job.name, &authority.config.directory, order.url(), sealed);
        self.vault
            .documents
            .put(Kind::Pending, &key_of(&job.name), &pending.write())
            .map_err(|error| ourselves(format!("keep a private key: {}", chain(&error))))?;
        Ok((order, key))
    }

    /// Removes the documents of an order that has ended.
    pub(super) fn forget(&self, name: &str) {
        let removed = self.vault.documents.remove(Kind::Pending, &key_of(name));
        if let Err(error) = removed {
            log::warn!(target: "acme", name; "cannot remove the key of an order: {}", chain(&error));
        }
    }

    /// Proves the control of the name, and waits until the order is ready.
    async fn prove(
        &self,
        order: &mut Order,
        job: &Job,
        proofs: &mut Vec<Proof>,
    ) -> Result<(), Failure> {
        let failed = |act: &str, error: &Error| Failure::of(act, error, &exchange());
        if order.state().status != OrderStatus::Pending {
            return Ok(());
        }
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization =
                authorization.map_err(|error| failed("read the authorization", &error))?;
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                _ => break,
            }
            let wanted = match job.kind {
                ChallengeKind::Http => ChallengeType::Http01,
                ChallengeKind::TlsAlpn => ChallengeType::TlsAlpn01,
                ChallengeKind::Dns => ChallengeType::Dns01,
            };
            let challenge = authorization.challenge(wanted);
            let mut challenge = challenge.ok_or_else(|| {
                let text = format!("the authority offers no challenge of the kind {}", job.kind);
                Failure::new(Cause::Name, text)
            })?;
            let proof = self.proof(&challenge, job).await?;
            proofs.push(proof);
            let accepted = challenge.set_ready().await;
            accepted.map_err(|error| failed("begin the challenge", &error))?;
        }
        let policy = self.policy();
        let validated = match order.poll_ready(&policy).await {
            Ok(OrderStatus::Ready | OrderStatus::Valid | OrderStatus::Processing) => return Ok(()),
            Ok(_) => None,
            Err(error) => Some(error),
        };
        // The problem of the challenge has more details than that of the order.
        let details = details(order).await;
        let text = match (&details, &validated) {
            (Some(details), _) => format!("the challenge {} failed: {details}", job.kind),
            (None, Some(error)) => return Err(failed("validate the name", error)),
            (None, None) => format!("the challenge {} failed", job.kind),
        };
        Err(Failure::new(Cause::Name, text))
    }

    async fn proof(&self, challenge: &ChallengeHandle<'_>, job: &Job) -> Result<Proof, Failure> {
        let authorization = challenge.key_authorization();
        let installed = match job.kind {
            ChallengeKind::Http => {
                let (token, text) = (&challenge.token, authorization.as_str());
                self.challenges.put_http(&job.name, token, text)?
            }
            ChallengeKind::TlsAlpn => {
                let digest = authorization.digest();
                self.challenges.put_tls(&job.name, digest.as_ref())?
            }
            ChallengeKind::Dns => {
                let Config {
                    dns_command,
                    dns_time,
                    ..
                } = &self.config;
                let value = authorization.dns_value();
                let set = dns::Record::set(dns_command, *dns_time, &job.name, value);
                return Ok(Proof::Record(set.await?));
            }
        };
        self.challenges.everywhere(&job.name).await;
        Ok(Proof::Installed {
            _installed: installed,
        })
    }

    /// Asks for the certificate, and returns its chain.
    async fn finish(&self, order: &mut Order, job: &Job, key: &[u8]) -> Result<String, Failure> {
        let failed = |act: &str, error: &Error| Failure::of(act, error, &exchange());
        if matches!(
            order.state().status,
            OrderStatus::Ready | OrderStatus::Pending
        ) {
            let request = request(&job.name, key);
            let request = request.map_err(|error| {
                Failure::new(Cause::Ourselves, format!("write the request: {error}"))
            })?;
            let asked = order.finalize_csr(&request).await;
            asked.map_err(|error| failed("ask for the certificate", &error))?;
        }
        let chain = order.poll_certificate(&self.policy()).await;
        chain.map_err(|error| failed("fetch the certificate", &error))
    }

    fn policy(&self) -> RetryPolicy {
        RetryPolicy::new()
            .initial_delay(FIRST_WAIT)
            .backoff(WAIT_GROWTH)
            .timeout(self.config.order_time)
    }
}

/// Writes a certificate signing request (RFC 2986) for a name.
fn request(name: &str, key: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
    let key = KeyPair::try_from(key)?;
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(&key)?.der().to_vec())
}

/// Returns the problem of a failed challenge.
async fn details(order: &mut Order) -> Option<String> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let state = authorization.refresh().await.ok()?;
        let mut challenges = state.challenges.iter();
        if let Some(problem) = challenges.find_map(|challenge| challenge.error.as_ref()) {
            return Some(sentence_of(problem));
        }
    }
    None
}

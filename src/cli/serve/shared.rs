//! Secrets for edges: what a node gives them, and where an edge keeps it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::acme::{Challenges, Elsewhere, Ordered, Record, Vault};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::error::chain;
use crate::follow::{
    self, Certificate, Certificates, EdgeKey, EdgeKeys, Fleet, FollowedTickets, Rings,
    SecretFollowerParts, SecretKind, SecretLog, Status,
};
use crate::gateway::tls;
use crate::store::FileError;
use crate::store::documents::{Change, Documents, Kind, KnownKeys, LocalDocuments, SealKey};
use crate::store::ticket_keys::{TicketSource, to_text};
use crate::telemetry::Health;

/// How often a node looks for changes of its secrets. Its own challenges are not waited for.
const INTERVAL: Duration = Duration::from_secs(1);
/// The key of the one item of ticket keys.
const TICKETS: &str = "keys";
/// Where certificates of the directory of the operator are from.
const OF_DIRECTORY: &str = "tls.directory";
/// The documents of an edge, below the directory of its cache.
const DOCUMENTS: &str = "certificates";
/// The position in the secrets of the source, and the keys of session tickets, below it.
const POSITION: &str = "secrets-position";
const TICKET_KEYS: &str = "ticket-keys";

/// The secrets of a node that edges follow.
#[derive(Debug)]
pub(super) struct SourceSecrets {
    pub(super) log: Arc<SecretLog>,
    vault: Option<Vault>,
    directory: Option<Arc<tls::Certificates>>,
    tickets: Box<dyn TicketSource>,
    state: Mutex<State>,
}

/// The state that was read last.
#[derive(Debug, Default)]
struct State {
    certificates: KnownKeys,
    challenges: KnownKeys,
    /// The keys of challenges that could not be read. They are read again the next time.
    unread: HashSet<Box<str>>,
    /// The generation of the directory, and its certificates.
    generation: Option<u64>,
    of_directory: HashMap<String, Certificate>,
}

/// Waits until edges answer challenges.
#[derive(Debug)]
pub(super) struct ByEdges {
    pub(super) fleet: Arc<Fleet>,
    pub(super) secrets: Arc<SourceSecrets>,
    /// How long it waits.
    pub(super) time: Duration,
}

/// The secrets of an edge, read but not yet followed.
pub(super) struct EdgeSecrets {
    /// `None` if the edge has no key.
    pub(super) ordered: Option<Arc<Ordered>>,
    pub(super) challenges: Arc<Challenges>,
    pub(super) tickets: Option<FollowedTickets>,
    documents: Arc<dyn Documents>,
    key: Option<(EdgeKey, Arc<SealKey>)>,
    cache: PathBuf,
}

// === impl SourceSecrets ===

impl SourceSecrets {
    /// Reads the secrets of this node.
    pub(super) fn new(
        rings: &Rings,
        vault: Option<Vault>,
        directory: Option<Arc<tls::Certificates>>,
        tickets: Box<dyn TicketSource>,
    ) -> Arc<Self> {
        let secrets = Self {
            log: Arc::new(rings.log(0).secrets()),
            vault,
            directory,
            tickets,
            state: Mutex::default(),
        };
        secrets.read();
        Arc::new(secrets)
    }

    /// Reads changes. It never returns.
    pub(super) fn run(&self) {
        loop {
            std::thread::sleep(INTERVAL);
            self.read();
        }
    }

    /// Reads what has changed since the last time. What cannot be read is read the next time.
    pub(super) fn read(&self) {
        let mut state = self.state();
        let log = &self.log;
        if let Some(vault) = &self.vault {
            let documents = &vault.documents;
            let mut unread = std::mem::take(&mut state.unread);
            let changes = documents.changes(Kind::Challenge, &mut state.challenges);
            for change in changes.unwrap_or_default() {
                match change {
                    Change::Added(key) => {
                        unread.insert(key);
                    }
                    Change::Removed(key) => {
                        unread.remove(&key);
                        log.remove(SecretKind::Challenge, &key);
                    }
                }
            }
            for key in unread {
                match documents.get(Kind::Challenge, &key) {
                    Ok(bytes) => {
                        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
                        if let Some(text) = text {
                            log.put(SecretKind::Challenge, &key, Some(&text));
                        }
                    }
                    Err(error) => {
                        log::warn!(target: "follow", "read the challenge {key}: {}", chain(&error));
                        state.unread.insert(key);
                    }
                }
            }
            let changes = documents.changes(Kind::Certificate, &mut state.certificates);
            for change in changes.unwrap_or_default() {
                match change {
                    Change::Added(key) => log.put(SecretKind::Certificate, &key, None),
                    Change::Removed(key) => log.remove(SecretKind::Certificate, &key),
                }
            }
        }
        self.read_directory(&mut state);
        match self.tickets.current(Clock::System.unix_seconds()) {
            Ok(keys) => log.put(SecretKind::Tickets, TICKETS, Some(&to_text(&keys))),
            // The part `session-tickets` reports it on a node with TLS.
            Err(error) => {
                log::debug!(target: "follow", "read the keys of session tickets: {}", chain(&error));
            }
        }
    }

    /// Reads the certificates of the operator, if they were read again.
    fn read_directory(&self, state: &mut State) {
        let Some(directory) = &self.directory else {
            return;
        };
        let generation = directory.generation();
        if state.generation == Some(generation) {
            return;
        }
        state.generation = Some(generation);
        let now = Clock::System.unix_seconds();
        let mut found = HashMap::new();
        let mut kept: Vec<Certificate> = Vec::new();
        for (name, chain, private_key) in directory.exported() {
            // The key of the record that the edge makes of it.
            let first = CertificateDer::pem_slice_iter(chain.as_bytes()).next();
            let Some(Ok(first)) = first else {
                continue;
            };
            let key = Record::key_of(&name, &first);
            // A known one keeps its time, so that only a new one replaces another.
            let issued_at = state.of_directory.get(&key).map(|known| known.issued_at);
            let certificate = Certificate {
                key: key.clone(),
                name: name.into(),
                authority: OF_DIRECTORY.to_owned(),
                issued_at: issued_at.unwrap_or(now),
                chain,
                private_key: BASE64_STANDARD.encode(private_key),
            };
            found.insert(key, certificate);
        }
        for (key, known) in &state.of_directory {
            if found.contains_key(key) {
                continue;
            }
            let is_replaced = found.values().any(|new| new.name == known.name);
            match is_replaced || !directory.names(&known.name) {
                true => self.log.remove(SecretKind::Certificate, key),
                // A pair whose files are broken now stays in use, as here.
                false => kept.push(known.clone()),
            }
        }
        found.extend(kept.into_iter().map(|known| (known.key.clone(), known)));
        for key in found.keys() {
            self.log.put(SecretKind::Certificate, key, None);
        }
        state.of_directory = found;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What was not read because of a panic is read the next time, or at the next start.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Certificates for Arc<SourceSecrets> {
    fn certificate(&self, key: &str) -> Result<Option<Certificate>, FileError> {
        if let Some(known) = self.state().of_directory.get(key) {
            return Ok(Some(known.clone()));
        }
        // A key is never a path to another file.
        if key.contains('/') || !key.contains('~') {
            return Ok(None);
        }
        let Some(vault) = &self.vault else {
            return Ok(None);
        };
        let bytes = vault.documents.get(Kind::Certificate, key)?;
        let record = bytes.and_then(|bytes| Record::parse(&bytes).ok());
        Ok(record.and_then(|record| {
            let private_key = record.private_key(&vault.seal).ok()?;
            Some(Certificate {
                key: key.to_owned(),
                name: record.name.to_string(),
                authority: record.authority.to_string(),
                issued_at: record.issued_at,
                chain: record.chain_pem(),
                private_key: BASE64_STANDARD.encode(private_key),
            })
        }))
    }
}

// === impl ByEdges ===

impl Elsewhere for ByEdges {
    fn answers(&self) -> Pin<Box<dyn Future<Output = Vec<String>> + Send + '_>> {
        self.secrets.read();
        let revision = self.secrets.log.revision();
        Box::pin(async move {
            let behind = self.fleet.applied_by_all(revision, self.time).await;
            behind.iter().map(ToString::to_string).collect()
        })
    }
}

// === impl EdgeSecrets ===

impl EdgeSecrets {
    /// Opens what the cache of an edge has; `None` on other nodes.
    ///
    /// # Errors
    ///
    /// When the cache or the key of the edge cannot be used.
    pub(super) fn open(config: &Config) -> anyhow::Result<Option<Self>> {
        let config::Store::Follow { follow, cache } = &config.store else {
            return Ok(None);
        };
        let cache = cache.path.clone();
        let documents = LocalDocuments::open(&cache.join(DOCUMENTS), Clock::System)
            .context("open the certificates of the cache")?;
        let documents: Arc<dyn Documents> = Arc::new(documents);
        let key = follow.key_file.as_deref().map(EdgeKey::read_or_create);
        let key = key.transpose()?;
        let key = key.map(|(key, seal)| (key, Arc::new(seal)));
        let ordered = key.as_ref().map(|(_, seal)| {
            let vault = Vault {
                documents: Arc::clone(&documents),
                seal: Arc::clone(seal),
            };
            Arc::new(Ordered::new(vault, Clock::System))
        });
        if let Some(ordered) = &ordered {
            refresh(ordered);
            let names = ordered.len();
            log::info!(target: "follow", names; "certificates of the cache for {names} names");
        }
        let tickets = key
            .as_ref()
            .map(|(_, seal)| FollowedTickets::open(cache.join(TICKET_KEYS), Arc::clone(seal)))
            .transpose()
            .context("make keys of session tickets")?;
        Ok(Some(Self {
            challenges: Arc::new(Challenges::new(Arc::clone(&documents))),
            ordered,
            tickets,
            documents,
            key,
            cache,
        }))
    }

    /// Returns the parts of the follower.
    pub(super) fn parts(
        self,
        config: &Config,
        follow: &follow::Config,
        status: Arc<Status>,
        health: &Health,
    ) -> SecretFollowerParts {
        let key = self.key.zip(self.ordered).zip(self.tickets);
        let edge_keys = key.map(|(((key, seal), ordered), tickets)| EdgeKeys {
            key,
            is_usable: {
                let seal = Arc::clone(&seal);
                Box::new(move |record| {
                    let record = Record::parse(record);
                    record.is_ok_and(|record| record.private_key(&seal).is_ok())
                })
            },
            to_record: Box::new(move |certificate| to_record(certificate, &seal)),
            tickets,
            changed: Box::new(move || refresh(&ordered)),
        });
        SecretFollowerParts {
            config: follow.clone(),
            service: config.service.domain.to_string(),
            documents: self.documents,
            position: self.cache.join(POSITION),
            edge_keys,
            status,
            part: health.part("edge-secrets"),
        }
    }
}

/// Makes the record of a certificate of the source.
fn to_record(certificate: &Certificate, seal: &SealKey) -> Result<Vec<u8>, String> {
    let key = BASE64_STANDARD.decode(&certificate.private_key);
    let key = key.map_err(|error| error.to_string())?;
    let now = Clock::System.unix_seconds();
    let Certificate {
        name,
        authority,
        chain: pem,
        ..
    } = certificate;
    let record = Record::new(name, authority, now, pem, &key, seal);
    let mut record = record.map_err(|error| chain(&error))?;
    record.issued_at = certificate.issued_at;
    Ok(record.to_bytes())
}

/// Reads the certificates that have changed.
fn refresh(ordered: &Ordered) {
    match ordered.refresh() {
        Ok(refreshed) => {
            for (key, why) in refreshed.failures {
                log::error!(target: "follow", "the certificate {key} of the cache cannot be used: {why}");
            }
        }
        Err(error) => {
            log::error!(target: "follow", "cannot read the certificates of the cache: {}", chain(&error));
        }
    }
}

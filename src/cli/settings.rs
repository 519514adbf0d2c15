//! The option that names the configuration file, and functions that open the parts that it
//! configures.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::acme::{OrderState, Vault};
use crate::clock::Clock;
use crate::config::{self, Config, SharedStore};
use crate::deploy::sites::{CertificateTrouble, Rules};
use crate::follow::{EDGE_TOKENS, SigningKey, Tokens};
use crate::store::documents::{Documents, Kind, key_of};
use crate::store::sites::{Changes, Proof, Removals, Sites};
use crate::store::ticket_keys::TicketKeys;
use crate::store::{Local, Shared, Store};

/// The file that is read if none is named. It need not exist.
const DEFAULT_FILE: &str = "conf/waypost.yaml";

/// Which configuration file to read.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Settings {
    /// The configuration file [default: conf/waypost.yaml; if it does not exist, every key
    /// has its default]
    #[arg(long, value_name = "FILE", global = true)]
    pub conf: Option<PathBuf>,
}

/// The arguments of a command that has several actions.
#[derive(clap::Args, Clone, Debug)]
pub struct Acting<A: clap::Subcommand> {
    #[command(subcommand)]
    pub(super) action: A,
    /// The configuration that the action reads.
    #[command(flatten)]
    pub(super) settings: Settings,
}

// === impl Settings ===

impl Settings {
    /// Returns the file, if it exists.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let file = self.conf.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        file.exists().then(|| file.to_owned())
    }

    /// Reads the configuration.
    ///
    /// # Errors
    ///
    /// When a named file cannot be read, or has mistakes: then a line for each of them.
    pub fn load(&self) -> anyhow::Result<Config> {
        let file = self.conf.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.conf.is_none() => {
                return Ok(Config::default());
            }
            Err(error) => {
                return Err(error).with_context(|| format!("read {}", file.display()));
            }
        };
        Config::parse(&file.to_string_lossy(), &text).map_err(|diagnostics| {
            let lines: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("{}", lines.join("\n"))
        })
    }
}

/// The token of the operator's listener, below the directory of the store.
const OPERATOR_TOKEN: &str = "operator-token";

/// Returns the directory of the store.
pub(super) fn store_path(config: &Config) -> PathBuf {
    config.store.local().path.clone()
}

/// Returns the file with the token of the operator's listener.
pub(super) fn operator_token(config: &Config) -> PathBuf {
    let configured = config.listen.operator_token.clone();
    configured.unwrap_or_else(|| store_path(config).join(OPERATOR_TOKEN))
}

/// The socket for `waypost upgrade`, below the directory of the store.
const UPGRADE_SOCKET: &str = "upgrade.sock";

/// Returns the path of the socket for `waypost upgrade`; `None` if there is none.
pub(super) fn upgrade_socket(config: &Config) -> Option<PathBuf> {
    match &config.listen.upgrade_socket {
        config::UpgradeSocket::InStore => Some(store_path(config).join(UPGRADE_SOCKET)),
        config::UpgradeSocket::At(path) => Some(path.clone()),
        config::UpgradeSocket::Off => None,
    }
}

/// The directory of certificates by ACME, below the directory of the store.
pub(super) const CERTIFICATES: &str = "certificates";

/// The copy of the documents of a database, below the directory of its cache.
const COPIED: &str = "documents";

/// Returns the directory with the copy of the documents of a store that several machines share.
pub(super) fn copied_path(config: &Config) -> PathBuf {
    store_path(config).join(COPIED)
}

/// The keys of TLS session tickets, below the directory of the store.
pub(super) const TICKET_KEYS: &str = "ticket-keys";
/// The file in the directory of the store with the key that tokens for owners are made with.
pub(super) const VERIFICATION_KEY: &str = "verification-key";

/// Returns the keys of TLS session tickets of this machine.
pub(super) fn ticket_keys(config: &Config) -> TicketKeys {
    let store = store_path(config);
    TicketKeys::new(store.join(TICKET_KEYS), store)
}

/// Returns the directory of certificates by ACME. Of a store that several machines share, it has
/// the copy of this machine.
pub(super) fn certificates_path(config: &Config) -> PathBuf {
    if config.store.shared().is_some() {
        return copied_path(config).join(CERTIFICATES);
    }
    let configured = config.acme.directory.clone();
    configured.unwrap_or_else(|| store_path(config).join(CERTIFICATES))
}

/// Returns the file with the key of secrets.
///
/// # Errors
///
/// When it is not configured.
pub(super) fn key_file(config: &Config) -> anyhow::Result<&Path> {
    let key_file = config.acme.key_file.as_deref();
    key_file.context("`acme.key_file` is not configured")
}

/// Opens the certificates by ACME, in a directory or in the database of a store that several
/// machines share.
///
/// # Errors
///
/// When they are not configured, or the directory or the key file cannot be used.
pub(super) fn open_vault(config: &Config) -> anyhow::Result<Vault> {
    let key_file = key_file(config)?;
    if config.store.shared().is_some() {
        let documents = open_shared(config)?.documents();
        return Ok(Vault::of_store(
            &documents,
            Arc::new(documents.clone()),
            key_file,
        )?);
    }
    // A store that does not exist is not made around them.
    open_local(config)?;
    Ok(Vault::open(
        &certificates_path(config),
        key_file,
        Clock::System,
    )?)
}

/// Opens the store of a configuration.
///
/// # Errors
///
/// When it cannot be used, for example because a newer version of this program wrote it.
pub fn open_store(config: &Config) -> anyhow::Result<Store> {
    if config.store.is_edge() {
        anyhow::bail!(
            "this is the configuration of an edge (`store.follow.url`), which changes nothing \
             itself; use the node that it follows"
        );
    }
    open_written(config)
}

/// Opens the store that changes are written to.
fn open_written(config: &Config) -> anyhow::Result<Store> {
    match config.store.shared() {
        Some(_) => Ok(Store::Shared(open_shared(config)?)),
        None => open_local(config),
    }
}

/// Opens a store that several machines share.
///
/// # Errors
///
/// When none is configured, or its settings or its cache cannot be used.
pub(super) fn open_shared(config: &Config) -> anyhow::Result<Shared> {
    let shared = config.store.shared();
    let shared = shared.context("`store.postgres.url` is not configured")?;
    let cache = Local::open(&shared.cache, Clock::System)?;
    shared_with(config, shared, cache)
}

fn shared_with(config: &Config, shared: &SharedStore, cache: Local) -> anyhow::Result<Shared> {
    let service = config.service.domain.as_str();
    Ok(Shared::open(&shared.config, service, cache, Clock::System)?)
}

/// Opens the store of a configuration to read it, and creates nothing. `None` if it does not exist
/// yet.
///
/// # Errors
///
/// As [`open_store`].
pub(super) fn store_to_read(config: &Config) -> anyhow::Result<Option<Store>> {
    let shared = config.store.shared();
    if shared.is_none() && !Local::exists(&store_path(config)) {
        return Ok(None);
    }
    let local = Local::open_to_read(config.store.local(), Clock::System)?;
    Ok(Some(match shared {
        Some(shared) => Store::Shared(shared_with(config, shared, local)?),
        None => Store::Local(local),
    }))
}

/// Opens the store of a configuration, or the cache of an edge or of a shared store.
///
/// # Errors
///
/// As [`open_store`].
pub(super) fn open_local(config: &Config) -> anyhow::Result<Store> {
    let store = Local::open(config.store.local(), Clock::System)?;
    Ok(Store::Local(store))
}

/// Returns whether domains of records in the store are served only with a proof of ownership.
pub(super) fn proof(config: &Config) -> Proof {
    // An edge gets only the domains that the node which it follows serves.
    match config.verification.is_required && !config.store.is_edge() {
        true => Proof::Required,
        false => Proof::NotRequired,
    }
}

/// Returns the rules of the proof of ownership; `None` if none is required.
///
/// # Errors
///
/// When the key for tokens can be neither read nor made.
pub(super) fn rules(config: &Config, store: &Store) -> anyhow::Result<Option<Rules>> {
    let settings = &config.verification;
    if !settings.is_required {
        return Ok(None);
    }
    let key = store
        .verification_key()
        .context("read the key for tokens")?;
    Ok(Some(Rules::new(&key, &config.service, settings)))
}

/// Returns the rules for a gateway: it also serves when its store cannot be written. Then the key
/// for tokens is of this process. A record keeps the token of its domain, so every domain that
/// exists can still be proven.
///
/// # Errors
///
/// When the system gives no random bytes.
pub(super) fn rules_while_serving(config: &Config, store: &Store) -> anyhow::Result<Option<Rules>> {
    rules(config, store).or_else(|error| {
        log::error!(
            target: "sites",
            "domains that are added now get other tokens than before: {error:#}"
        );
        let mut key = [0; 32];
        getrandom::fill(&mut key).context("make a key for tokens")?;
        Ok(Some(Rules::new(
            &key,
            &config.service,
            &config.verification,
        )))
    })
}

/// Returns where the reasons of failed orders of certificates are read from.
pub(super) fn certificate_trouble(documents: Arc<dyn Documents>) -> CertificateTrouble {
    Arc::new(move |host| {
        let name = key_of(host.as_str());
        let bytes = documents.get(Kind::Order, &name).ok().flatten()?;
        Some(OrderState::parse(&bytes)?.why)
    })
}

/// The tokens of edges, below the directory of the store.
pub(super) const EDGES: &str = "edges";
/// The key that signs what edges get, below the directory of the store.
pub(super) const EDGE_KEY: &str = "edges-key";

/// The file that freezes the edges, below the directory of the store.
const FROZEN: &str = "edges-frozen";
/// The set of the document that freezes the edges of all gateways of a database.
pub(super) const FREEZE: &str = "edges-freeze";
/// The key of that document.
pub(super) const FREEZE_KEY: &str = "all";
/// What follows that key in the name of its copy.
pub(super) const FREEZE_ENDING: &str = ".txt";

/// Returns the file that freezes the edges while it exists. With a shared store it is the copy of a
/// document in the database, so it is on every gateway.
pub(super) fn frozen(config: &Config) -> PathBuf {
    match config.store.shared() {
        Some(_) => copied_path(config)
            .join(FREEZE)
            .join(format!("{FREEZE_KEY}{FREEZE_ENDING}")),
        None => store_path(config).join(FROZEN),
    }
}

/// Returns the tokens of edges for a gateway: the files of this machine. With a shared store they
/// are the copy of the tokens in the database, so a gateway needs no database to know its edges.
pub(super) fn edge_tokens_here(config: &Config) -> Tokens {
    let directory = match config.store.shared() {
        Some(_) => copied_path(config).join(EDGE_TOKENS),
        None => store_path(config).join(EDGES),
    };
    Tokens::new(directory, &config.service.name)
}

/// Returns the tokens of edges for a command: in the database of a shared store, else in files.
pub(super) fn edge_tokens(config: &Config, store: &Store) -> Tokens {
    let here = edge_tokens_here(config);
    match store {
        Store::Local(_) => here,
        Store::Shared(shared) => here.in_database(shared.documents()),
    }
}

/// Reads or makes the key that signs what edges get.
///
/// # Errors
///
/// When its file cannot be used.
pub(super) fn edge_key(config: &Config) -> anyhow::Result<SigningKey> {
    Ok(SigningKey::read_or_create(
        &store_path(config).join(EDGE_KEY),
    )?)
}

/// Reads the site records of a configuration, in files and in the store. Broken records are
/// reported in the changes. A store that does not exist yet is not created.
///
/// # Errors
///
/// When they cannot be listed.
pub fn read_sites(config: &Config) -> anyhow::Result<(Sites, Changes)> {
    let mut sites = unread_sites(config);
    if config.store.shared().is_some() {
        sites = sites.with_store(Arc::new(open_written(config)?));
    } else if Local::exists(&store_path(config)) {
        sites = sites.with_store(Arc::new(open_local(config)?));
    }
    let changes = sites.scan(Removals::Guarded)?;
    Ok((sites, changes))
}

/// Returns a reader of the site records in files, which has read none yet.
pub fn unread_sites(config: &Config) -> Sites {
    let sites = Sites::new(
        config.service.clone(),
        config.private_hosts.clone(),
        config.sites.path.clone(),
        Clock::System,
    )
    .with_proof(proof(config));
    match config.store.is_edge() {
        true => sites.without_files(),
        false => sites,
    }
}

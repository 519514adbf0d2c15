//! Copies certificates, admin keys, tokens of edges and keys of session tickets between the
//! directory of a node and the database of a store that several machines share.
//!
//! A document that the destination has stays, so a copy can be repeated. A key that is revoked here
//! is revoked there too. Challenges and requests belong to a gateway that runs, and are not copied.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use super::deploying::KEYS;
use super::settings;
use crate::acme::Record;
use crate::clock::Clock;
use crate::config::Config;
use crate::deploy::keys::{Directory, Key, Keys};
use crate::error::chain;
use crate::follow::{EDGE_TOKENS, Tokens};
use crate::store::documents::{Documents, Kind, LocalDocuments, SealKey};
use crate::store::shared::{Shared, SharedTicketKeys, TICKET_KEYS};
use crate::store::ticket_keys::TicketKeys;

/// The result of a copy.
#[derive(Debug, Default)]
pub(super) struct CopiedDocuments {
    /// How many documents of certificates were not there.
    pub(super) certificates: u64,
    /// How many admin keys were not there, or are revoked there now.
    pub(super) keys: u64,
    /// How many tokens of edges were not there.
    pub(super) edges: u64,
    /// The documents that were not copied, each with the reason.
    pub(super) left_out: Vec<String>,
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the directory into the database.
    In,
    /// From the database into the directory.
    Out,
}

/// Copies what the other side does not have.
///
/// # Errors
///
/// When one of both cannot be read or written, or the key file is not that of the database.
pub(super) fn copy(
    config: &Config,
    store: &Shared,
    directory: &Path,
    way: Way,
) -> anyhow::Result<CopiedDocuments> {
    let documents = store.documents();
    let mut copied = CopiedDocuments::default();

    let of_node = Keys::Directory(Directory::open(&directory.join(KEYS))?);
    let of_store = Keys::Shared(documents.clone());
    let (from, to) = ordered(way, &of_node, &of_store);
    let keys: Vec<Key> = from.list()?.into_iter().map(|listed| listed.key).collect();
    copied.keys = to.add(&keys)?;

    let name = &config.service.name;
    let of_node = Tokens::new(directory.join(settings::EDGES), name);
    let of_store = Tokens::new(settings::copied_path(config).join(EDGE_TOKENS), name);
    let of_store = of_store.in_database(documents.clone());
    let (from, to) = ordered(way, &of_node, &of_store);
    copied.edges = from.copy_to(to)?;

    let configured = config.acme.directory.clone().filter(|_| way == Way::In);
    let certificates = configured.unwrap_or_else(|| directory.join(settings::CERTIFICATES));
    let ticket_file = directory.join(settings::TICKET_KEYS);
    let has_any = way == Way::Out || certificates.exists() || ticket_file.exists();
    let Some(key_file) = config.acme.key_file.as_deref() else {
        if certificates.exists() {
            let why = "certificates, because `acme.key_file` is not configured";
            copied.left_out.push(why.to_owned());
        }
        return Ok(copied);
    };
    if !has_any {
        return Ok(copied);
    }
    let seal = Arc::new(documents.open_seal(key_file)?);
    if way == Way::Out || certificates.exists() {
        let of_node = LocalDocuments::open(&certificates, Clock::System)
            .context("open the directory of certificates")?;
        let (of_node, of_store): (&dyn Documents, &dyn Documents) = (&of_node, &documents);
        let (from, to) = ordered(way, &of_node, &of_store);
        copy_certificates(*from, *to, &seal, &mut copied)?;
    }
    let of_node = TicketKeys::new(ticket_file, directory.to_owned());
    let copy = settings::copied_path(config).join(TICKET_KEYS);
    let of_store = SharedTicketKeys::new(documents, seal, &copy);
    match way {
        Way::In => {
            let keys = of_node.stored()?;
            if !keys.is_empty() {
                of_store.begin_with(&keys)?;
            }
        }
        Way::Out => {
            let keys = of_store.stored()?;
            if !keys.is_empty() {
                of_node.begin_with(&keys)?;
            }
        }
    }
    Ok(copied)
}

/// Returns where a copy is from and where it goes to.
fn ordered<'t, T>(way: Way, of_node: &'t T, of_store: &'t T) -> (&'t T, &'t T) {
    match way {
        Way::In => (of_node, of_store),
        Way::Out => (of_store, of_node),
    }
}

fn copy_certificates(
    from: &dyn Documents,
    to: &dyn Documents,
    seal: &SealKey,
    copied: &mut CopiedDocuments,
) -> anyhow::Result<()> {
    let kinds = Kind::ALL.into_iter();
    for kind in kinds.filter(|kind| !matches!(kind, Kind::Challenge | Kind::Request)) {
        for key in from.keys(kind)? {
            if to.get(kind, &key)?.is_some() {
                continue;
            }
            let Some(bytes) = from.get(kind, &key)? else {
                continue;
            };
            if kind == Kind::Certificate {
                let usable = Record::parse(&bytes).and_then(|record| record.private_key(seal));
                if let Err(why) = usable {
                    let line = format!("the certificate {key}, because {}", chain(&why));
                    copied.left_out.push(line);
                    continue;
                }
            }
            to.put(kind, &key, &bytes)?;
            copied.certificates += 1;
        }
    }
    Ok(())
}

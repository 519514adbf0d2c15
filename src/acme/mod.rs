//! Certificates by ACME: orders them ahead of traffic, renews them, and answers challenges.
//!
//! ```text
//!  names of sites ─┐                      ┌─▶ authority (RFC 8555), over TLS
//!                  ├─▶ manager ─▶ orders ─┤
//!  records ────────┘   (leader)           └─▶ challenges ◀── the authority asks (HTTP-01, TLS-ALPN-01)
//!     ▲                                            ▲
//!     └──────── new record                          └── every process answers
//!     │
//!     ▼
//!  Ordered: certificates by name, in memory ─▶ TLS handshakes
//! ```
//!
//! * A certificate is ordered when its name appears, never in a handshake.
//! * One of the processes that share the documents is the leader and orders. Every process serves
//!   all certificates and answers every challenge: the answers are documents too. The documents are
//!   in a directory, or in the database of a store that several machines share.
//! * A certificate is one immutable record; its private key is encrypted. A renewal writes another
//!   record. The newest usable record serves the name.
//! * If an order fails, the certificate that was served stays served.
//! * If no site has a name any more, its certificate is revoked after a while, and its key removed.
//!
//! | what | module |
//! |---|---|
//! | the settings | [`Config`] |
//! | one certificate on disk | [`Record`] |
//! | all certificates in memory | [`Ordered`] |
//! | answers to challenges | [`Challenges`] |
//! | when a certificate is renewed; which name is next | `schedule`, `queue` |
//! | what an authority allows: for an account; for a domain and a name | `budget`, `quota` |
//! | requests to an authority | `transport`, `authority` |
//! | one order | `order` |
//! | whether the owner of a name allows our authorities | `caa` |
//! | names that no site has any more | `released` |
//! | the loop | [`Manager`] |
//!
//! Sources: RFC 8555 (ACME), RFC 8737 (TLS-ALPN-01), RFC 9773 (ARI), RFC 8659 (CAA).

mod authority;
mod budget;
mod caa;
mod challenges;
mod config;
mod dns;
mod failure;
mod leaf;
mod manager;
mod metrics;
mod order;
mod ordered;
mod owners;
mod queue;
mod quota;
mod record;
mod released;
mod schedule;
mod state;
mod transport;

pub use authority::{Authorities, Reason};
pub use challenges::{Challenges, Elsewhere, HTTP_PATH, TLS_PROTOCOL};
pub use config::{Authority, ChallengeKind, Config, InvalidName, Name};
pub use failure::Failure;
pub use leaf::{Leaf, Life, NotALeaf};
pub use manager::{Manager, Names};
pub use metrics::Metrics;
pub use ordered::{HeldCertificate, Ordered, Refreshed};
pub use record::{Record, UnusableRecord};
pub use schedule::renewal;
pub use state::{OrderState, Request};

use std::path::Path;
use std::sync::Arc;

use crate::clock::Clock;
use crate::store::FileError;
use crate::store::documents::{Documents, KeyFileError, Kind, LocalDocuments, SealKey};
use crate::store::shared::{SealError, SharedDocuments};

/// The documents of certificates, and the key that encrypts their secrets.
#[derive(Clone, Debug)]
pub struct Vault {
    /// Where the documents are.
    pub documents: Arc<dyn Documents>,
    /// The key for secrets.
    pub seal: Arc<SealKey>,
}

/// Why the documents cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory cannot be used.
    #[error("open the directory of certificates")]
    Documents(#[from] FileError),
    /// The key file cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The key file is not that of the other gateways.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// There are encrypted secrets and no key.
    #[error(
        "the key file {0} is missing, and {1} is encrypted with a key of it; a new key file would \
         make the certificates unusable: restore it, or remove the directory of certificates"
    )]
    KeyMissing(String, String),
}

// === impl Vault ===

impl Vault {
    /// Opens the documents in a directory, and the key file; both are made if they do not exist.
    ///
    /// # Errors
    ///
    /// [`OpenError`], for example if the key file is missing and a stored secret needs it.
    pub fn open(directory: &Path, key_file: &Path, clock: Clock) -> Result<Self, OpenError> {
        let documents = LocalDocuments::open(directory, clock)?;
        let seal = match SealKey::read(key_file)? {
            Some(seal) => seal,
            None => {
                for kind in [Kind::Certificate, Kind::Account] {
                    if !documents.keys(kind)?.is_empty() {
                        let what = match kind {
                            Kind::Account => "an account",
                            _ => "a certificate",
                        };
                        let key_file = key_file.display().to_string();
                        return Err(OpenError::KeyMissing(key_file, what.to_owned()));
                    }
                }
                SealKey::make(key_file)?
            }
        };
        Ok(Self {
            documents: Arc::new(documents),
            seal: Arc::new(seal),
        })
    }

    /// Reads the key file of a store that several machines share; it is made if the database has no
    /// secrets yet. `documents` are its documents, perhaps with a copy on this machine.
    ///
    /// # Errors
    ///
    /// [`OpenError::Seal`], for example if the other gateways have another key file.
    pub fn of_store(
        store: &SharedDocuments,
        documents: Arc<dyn Documents>,
        key_file: &Path,
    ) -> Result<Self, OpenError> {
        Ok(Self {
            documents,
            seal: Arc::new(store.open_seal(key_file)?),
        })
    }
}

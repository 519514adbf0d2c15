//! One certificate with its private key, as it is kept.
//!
//! A record is written once and never changed. It is JSON with a `version`, as the other records
//! are. A record of a newer version is not used; the certificate that was used before stays.

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};

use super::leaf::{Leaf, NotALeaf};
use crate::digest::Digest;
use crate::store::documents::{KeyFileError, SealKey, Sealed, UnsealError, key_of};
use crate::version::newer_than;

/// The version of the format that is written, and the highest that is read.
const VERSION: u64 = 1;
/// How many digits of the digest of a certificate are its identifier.
const ID_DIGITS: usize = 16;
/// How many certificates a chain may have.
const CHAIN_MAX: usize = 10;

/// A certificate that an authority has issued.
#[derive(Clone, Debug)]
pub struct Record {
    /// The name that it was ordered for.
    pub name: Box<str>,
    /// The first digits of the digest of the certificate.
    pub id: Box<str>,
    /// The address of the directory of its authority.
    pub authority: Box<str>,
    /// When it was issued, in seconds after the Unix epoch.
    pub issued_at: u64,
    /// Names and dates of the certificate.
    pub leaf: Leaf,
    /// The certificate and those of its authorities.
    pub chain: Vec<CertificateDer<'static>>,
    sealed: Sealed,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordDocument {
    version: u64,
    name: String,
    authority: String,
    issued_at: u64,
    chain: String,
    key: Sealed,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableRecord {
    /// A newer program wrote it.
    #[error("it has version {0}; this program reads versions up to {VERSION}")]
    Newer(u64),
    /// It is not a record.
    #[error("it is not a record of a certificate")]
    Json(#[from] serde_json::Error),
    /// The chain is not a list of certificates.
    #[error("its chain is not valid PEM")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// The chain has no certificate, or too many.
    #[error("its chain has {0} certificates, and may have 1 to {CHAIN_MAX}")]
    Length(usize),
    /// The first certificate cannot be read.
    #[error("{0}")]
    Leaf(#[from] NotALeaf),
    /// The certificate is for other names.
    #[error("its certificate does not cover {0}")]
    Name(Box<str>),
    /// The certificate has expired, or is not valid yet.
    #[error("its certificate is not valid now")]
    Dates,
    /// The key cannot be decrypted.
    #[error(transparent)]
    Seal(#[from] UnsealError),
    /// The key cannot be encrypted.
    #[error(transparent)]
    Unsealed(#[from] KeyFileError),
    /// The key does not belong to the certificate.
    #[error("its key does not belong to its certificate")]
    Key(#[source] rustls::Error),
}

// === impl Record ===

impl Record {
    /// Makes the record of a certificate that an authority has issued, and checks it.
    ///
    /// # Errors
    ///
    /// [`UnusableRecord`] when the certificate cannot serve the name.
    pub fn new(
        name: &str,
        authority: &str,
        issued_at: u64,
        chain: &str,
        key: &[u8],
        seal: &SealKey,
    ) -> Result<Self, UnusableRecord> {
        let (chain, leaf, id) = read_chain(chain)?;
        let record = Self {
            sealed: seal.seal(key, &context(name, &id))?,
            name: name.into(),
            id,
            authority: authority.into(),
            issued_at,
            leaf,
            chain,
        };
        if !record.leaf.covers(name) {
            return Err(UnusableRecord::Name(name.into()));
        }
        if !record.leaf.is_valid_at(issued_at) {
            return Err(UnusableRecord::Dates);
        }
        record.certified(seal)?;
        Ok(record)
    }

    /// Reads the bytes of a record.
    ///
    /// # Errors
    ///
    /// [`UnusableRecord`] when they are not a record that this program can use.
    pub fn parse(bytes: &[u8]) -> Result<Self, UnusableRecord> {
        let RecordDocument {
            version,
            name,
            authority,
            issued_at,
            chain,
            key,
        } = serde_json::from_slice(bytes).map_err(|error| match newer_than(VERSION, bytes) {
            Some(version) => UnusableRecord::Newer(version),
            None => error.into(),
        })?;
        if version > VERSION {
            return Err(UnusableRecord::Newer(version));
        }
        let (chain, leaf, id) = read_chain(&chain)?;
        if !leaf.covers(&name) {
            return Err(UnusableRecord::Name(name.into()));
        }
        Ok(Self {
            name: name.into(),
            id,
            authority: authority.into(),
            issued_at,
            leaf,
            chain,
            sealed: key,
        })
    }

    /// Returns the bytes of the record.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let written = RecordDocument {
            version: VERSION,
            name: self.name.to_string(),
            authority: self.authority.to_string(),
            issued_at: self.issued_at,
            chain: pem(&self.chain),
            key: self.sealed.clone(),
        };
        serde_json::to_vec_pretty(&written).expect("numbers and texts are JSON")
    }

    /// Returns the key under which it is kept.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}~{}", key_of(&self.name), self.id)
    }

    /// Returns the key under which a record of this name and certificate is kept.
    #[must_use]
    pub fn key_of(name: &str, certificate: &CertificateDer<'_>) -> String {
        format!("{}~{}", key_of(name), id_of(certificate))
    }

    /// Decrypts the private key, in DER.
    ///
    /// # Errors
    ///
    /// [`UnusableRecord`] when it cannot be decrypted.
    pub fn private_key(&self, seal: &SealKey) -> Result<Vec<u8>, UnusableRecord> {
        Ok(seal.unseal(&self.sealed, &context(&self.name, &self.id))?)
    }

    /// Returns the chain in PEM.
    #[must_use]
    pub fn chain_pem(&self) -> String {
        pem(&self.chain)
    }

    /// Decrypts the private key, and returns the certificate as TLS uses it.
    ///
    /// # Errors
    ///
    /// [`UnusableRecord`] when the key cannot be decrypted or does not belong to the certificate.
    pub fn certified(&self, seal: &SealKey) -> Result<CertifiedKey, UnusableRecord> {
        let key = self.private_key(seal)?;
        // A key of an operator may also be in the form of PKCS #1 or SEC 1.
        let key = PrivateKeyDer::try_from(key).map_err(|_other| {
            UnusableRecord::Key(rustls::Error::General("not a private key".to_owned()))
        })?;
        CertifiedKey::from_der(self.chain.clone(), key, &aws_lc_rs::default_provider())
            .map_err(UnusableRecord::Key)
    }
}

/// Names the document that an encrypted key belongs to.
fn context(name: &str, id: &str) -> String {
    format!("certificate {id} of {name}")
}

/// Reads a chain in PEM: the certificates, the first of them, and its identifier.
fn read_chain(
    text: &str,
) -> Result<(Vec<CertificateDer<'static>>, Leaf, Box<str>), UnusableRecord> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(UnusableRecord::Pem)?;
    let first = chain.first().filter(|_| chain.len() <= CHAIN_MAX);
    let first = first.ok_or(UnusableRecord::Length(chain.len()))?;
    let leaf = Leaf::parse(first)?;
    let id = id_of(first);
    Ok((chain, leaf, id))
}

/// Returns the identifier of a certificate.
fn id_of(certificate: &CertificateDer<'_>) -> Box<str> {
    Digest::of(certificate).to_string()[..ID_DIGITS].into()
}

/// Writes certificates as PEM (RFC 7468 §5).
fn pem(chain: &[CertificateDer<'_>]) -> String {
    use base64::prelude::{BASE64_STANDARD, Engine as _};
    let mut text = String::new();
    for certificate in chain {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = BASE64_STANDARD.encode(certificate);
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(64));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

//! Certificates by server name, from a directory of the operator.
//!
//! Each sub-directory has the name of a server and holds two files, as ACME clients write them:
//! `docs.acme.com/fullchain.pem` and `docs.acme.com/privkey.pem`. A pair is used if it can serve
//! its name now: both files parse, the key belongs to the certificate, and the certificate covers
//! the name and is valid today. If a pair cannot be used, the previous pair stays in use, the
//! reason is logged once, and the pair is read again when its files change.
//!
//! A lookup is two map accesses, in a map that is replaced as a whole.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::acme::{Leaf, Life};
use crate::clock::{Clock, unix_seconds};
use crate::telemetry::Metrics;

/// The files of a pair, as certbot names them.
const CHAIN: &str = "fullchain.pem";
const KEY: &str = "privkey.pem";
/// The largest size of a file of a pair.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The certificates of a process.
#[derive(Debug)]
pub struct Certificates {
    directory: PathBuf,
    clock: Clock,
    /// How often the set was replaced.
    generation: AtomicU64,
    pairs: ArcSwap<HashMap<Box<str>, Pair>>,
    /// Time and size of each pair's files at the last reading.
    seen: Mutex<HashMap<Box<str>, Stamp>>,
}

#[derive(Clone, Debug)]
struct Pair {
    key: Arc<CertifiedKey>,
    expires_at: u64,
    late_at: u64,
}

/// Modification time and size of the two files of a pair.
type Stamp = [Option<(SystemTime, u64)>; 2];

/// The result of reading the directory.
#[derive(Debug, Default)]
pub struct Report {
    /// How many names have a certificate.
    pub names: usize,
    /// The pairs that cannot be used: name and reason.
    pub failures: Vec<(Box<str>, UnusableCertificate)>,
    /// When the first certificate expires, in seconds after the Unix epoch.
    pub expires_at: Option<u64>,
    /// When the first certificate should have been replaced, in seconds after the Unix epoch.
    pub late_at: Option<u64>,
}

/// Why a pair of files cannot serve its name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableCertificate {
    /// A file cannot be read.
    #[error("read {0}")]
    Read(&'static str, #[source] io::Error),
    /// The chain or the key is not PEM.
    #[error("{0} is not valid PEM: {1}")]
    Pem(&'static str, rustls::pki_types::pem::Error),
    /// There is no certificate in the chain.
    #[error("{CHAIN} holds no certificate")]
    Empty,
    /// The key is not usable, or does not belong to the certificate.
    #[error("{KEY} does not fit {CHAIN}")]
    Key(#[source] rustls::Error),
    /// The certificate is not X.509.
    #[error("{CHAIN} is not an X.509 certificate")]
    Syntax,
    /// The certificate is not valid yet, or has expired.
    #[error("the certificate is not valid now")]
    Dates,
    /// The certificate was issued for other names.
    #[error("the certificate does not cover the name of its directory")]
    Name,
}

// === impl Report ===

impl Report {
    /// Logs and counts the failures, and sets the metrics for the first expiry.
    pub fn record(&self, metrics: &Metrics) {
        for (name, error) in &self.failures {
            metrics.certificate_failures.inc();
            let cause = std::error::Error::source(error)
                .map_or_else(String::new, |cause| format!(": {cause}"));
            log::error!(target: "tls", name:%; "the previous certificate stays in use for {name}: {error}{cause}");
        }
        for (gauge, at) in [
            (&metrics.certificate_expires_at, self.expires_at),
            (&metrics.certificate_late_at, self.late_at),
        ] {
            #[expect(
                clippy::cast_precision_loss,
                reason = "seconds stay exact for 285 million years"
            )]
            gauge.set(at.unwrap_or(0) as f64);
        }
    }
}

// === impl Certificates ===

impl Certificates {
    /// Makes an empty set for a directory; [`Certificates::read`] fills it.
    #[must_use]
    pub fn new(directory: PathBuf, clock: Clock) -> Self {
        Self {
            directory,
            clock,
            generation: AtomicU64::new(0),
            pairs: ArcSwap::default(),
            seen: Mutex::default(),
        }
    }

    /// Returns the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads the pairs that have changed since the last reading, and uses them.
    ///
    /// # Errors
    ///
    /// When the directory cannot be listed. All certificates stay in use.
    pub fn read(&self) -> io::Result<Report> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pairs = HashMap::clone(&self.pairs.load());
        let mut report = Report::default();
        let mut listed = HashMap::new();
        for entry in fs::read_dir(&self.directory)? {
            let directory = entry?.path();
            let Some(name) = directory
                .file_name()
                .and_then(|name| name.to_str())
                .map(server_name)
            else {
                continue;
            };
            let stamp = [CHAIN, KEY].map(|file| stamp(&directory.join(file)));
            if stamp == [None, None] {
                continue;
            }
            if seen.get(&name) != Some(&stamp) {
                match load(&directory, &name, unix_seconds(self.clock.now())) {
                    Ok(pair) => {
                        pairs.insert(name.clone(), pair);
                    }
                    Err(error) => report.failures.push((name.clone(), error)),
                }
            }
            listed.insert(name, stamp);
        }
        pairs.retain(|name, _| listed.contains_key(name));
        report.names = pairs.len();
        report.expires_at = pairs.values().map(|pair| pair.expires_at).min();
        report.late_at = pairs.values().map(|pair| pair.late_at).min();
        *seen = listed;
        self.pairs.store(Arc::new(pairs));
        self.generation.fetch_add(1, Ordering::Release);
        Ok(report)
    }

    /// Reads the files of all pairs that are in use: name, chain in PEM, and private key in DER. A
    /// pair whose files cannot be used now is left out, although an earlier one may still be in
    /// use.
    #[must_use]
    pub fn exported(&self) -> Vec<(Box<str>, String, Vec<u8>)> {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let now = unix_seconds(self.clock.now());
        let pairs = entries.flatten().filter_map(|entry| {
            let directory = entry.path();
            let name = server_name(directory.file_name()?.to_str()?);
            load(&directory, &name, now).ok()?;
            let chain = fs::read_to_string(directory.join(CHAIN)).ok()?;
            let key = fs::read(directory.join(KEY)).ok()?;
            let key = PrivateKeyDer::from_pem_slice(&key).ok()?;
            Some((name, chain, key.secret_der().to_vec()))
        });
        pairs.collect()
    }

    /// Returns a number that changes when the certificates were read again.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns whether there is a certificate for a name in normal form: an exact one or a
    /// wildcard.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        named(&self.pairs.load(), name).is_some()
    }

    /// Finds the certificate for a name in normal form: exact, then wildcard.
    pub(super) fn find(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&named(&self.pairs.load(), name)?.key))
    }
}

/// Finds the pair for a name in normal form: exact, then wildcard.
fn named<'p>(pairs: &'p HashMap<Box<str>, Pair>, name: &str) -> Option<&'p Pair> {
    pairs.get(name).or_else(|| {
        let (_label, rest) = name.split_once('.')?;
        pairs.get(format!("*.{rest}").as_str())
    })
}

/// Returns the server name for the name of a directory: `_.` means `*.`.
fn server_name(directory: &str) -> Box<str> {
    let name = directory.to_ascii_lowercase();
    match name.strip_prefix("_.") {
        Some(rest) => format!("*.{rest}").into(),
        None => name.into(),
    }
}

fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn load(directory: &Path, name: &str, now: u64) -> Result<Pair, UnusableCertificate> {
    let read = |file: &'static str| {
        let path = directory.join(file);
        let too_large = || {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                "larger than a certificate can be",
            )
        };
        let length = fs::metadata(&path)
            .map_err(|error| UnusableCertificate::Read(file, error))?
            .len();
        if length > FILE_BYTES_MAX {
            return Err(UnusableCertificate::Read(file, too_large()));
        }
        fs::read(&path).map_err(|error| UnusableCertificate::Read(file, error))
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(CHAIN)?)
        .collect::<Result<_, _>>()
        .map_err(|error| UnusableCertificate::Pem(CHAIN, error))?;
    let key = PrivateKeyDer::from_pem_slice(&read(KEY)?)
        .map_err(|error| UnusableCertificate::Pem(KEY, error))?;
    let leaf = chain.first().ok_or(UnusableCertificate::Empty)?;
    let life = check(leaf, name, now)?;
    let key = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
        .map_err(UnusableCertificate::Key)?;
    Ok(Pair {
        key: Arc::new(key),
        expires_at: life.not_after,
        late_at: life.late_at(),
    })
}

/// Checks that a certificate can serve a name now, and returns when it is valid.
fn check(leaf: &CertificateDer<'_>, name: &str, now: u64) -> Result<Life, UnusableCertificate> {
    let leaf = Leaf::parse(leaf).map_err(|_malformed| UnusableCertificate::Syntax)?;
    if !leaf.is_valid_at(now) {
        return Err(UnusableCertificate::Dates);
    }
    match leaf.covers(name) {
        true => Ok(leaf.life()),
        false => Err(UnusableCertificate::Name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a self-signed pair for `names` into the directory of `name`.
    fn write(root: &Path, name: &str, names: &[&str]) {
        let made = rcgen::generate_simple_self_signed(
            names.iter().map(ToString::to_string).collect::<Vec<_>>(),
        )
        .unwrap();
        let directory = root.join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(CHAIN), made.cert.pem()).unwrap();
        fs::write(directory.join(KEY), made.signing_key.serialize_pem()).unwrap();
    }

    fn certificates(root: &Path) -> Certificates {
        Certificates::new(root.to_owned(), Clock::System)
    }

    #[test]
    fn a_broken_pair_leaves_the_previous_pair_in_use_and_is_reported_once() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "docs.acme.com", &["docs.acme.com"]);
        let set = certificates(root.path());
        assert!(set.read().unwrap().failures.is_empty());
        let before = set.find("docs.acme.com").unwrap();
        fs::write(
            root.path().join("docs.acme.com").join(CHAIN),
            "no certificate",
        )
        .unwrap();
        let report = set.read().unwrap();
        assert_eq!(report.failures.len(), 1);
        assert!(Arc::ptr_eq(&before, &set.find("docs.acme.com").unwrap()));
        assert!(set.read().unwrap().failures.is_empty());
        fs::remove_dir_all(root.path().join("docs.acme.com")).unwrap();
        set.read().unwrap();
        assert!(set.find("docs.acme.com").is_none());
    }

    #[test]
    fn a_pair_that_does_not_cover_its_name_is_rejected() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "wrong.example", &["right.example"]);
        write(root.path(), "mixed.example", &["mixed.example"]);
        write(root.path(), "spare", &["mixed.example"]);
        fs::copy(
            root.path().join("spare").join(KEY),
            root.path().join("mixed.example").join(KEY),
        )
        .unwrap();
        fs::remove_dir_all(root.path().join("spare")).unwrap();
        let mut failures = certificates(root.path()).read().unwrap().failures;
        failures.sort_by(|a, b| a.0.cmp(&b.0));
        assert!(
            matches!(failures[0].1, UnusableCertificate::Key(_)),
            "{failures:?}"
        );
        assert!(
            matches!(failures[1].1, UnusableCertificate::Name),
            "{failures:?}"
        );
    }
}

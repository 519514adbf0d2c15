//! All certificates by ACME, by name, in memory.
//!
//! The names are divided into small maps, each behind its own pointer. A handshake reads one map
//! and takes no lock. A new certificate copies one map, so the others are not disturbed, however
//! many there are.
//!
//! Certificates of authorities occur in many chains; each is kept once.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use rayon::prelude::*;
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;

use super::Vault;
use super::leaf::{Leaf, Life};
use super::record::{Record, UnusableRecord};
use super::schedule::seed_of;
use crate::clock::Clock;
use crate::error::chain;
use crate::store::FileError;
use crate::store::documents::{Change, Kind, KnownKeys, key_of};

/// The number of maps, a power of two.
const PARTS: usize = 1024;
/// How many certificates of authorities are kept once. They are never removed.
const SHARED_MAX: usize = 256;

type Part = HashMap<Box<str>, Arc<HeldCertificate>, RandomState>;

/// The certificates of a process.
#[derive(Debug)]
pub struct Ordered {
    vault: Vault,
    clock: Clock,
    hasher: RandomState,
    parts: Box<[ArcSwap<Part>]>,
    wildcards: AtomicUsize,
    /// Locked while it is written.
    writing: Mutex<Writing>,
}

#[derive(Debug, Default)]
struct Writing {
    known: KnownKeys,
    /// The keys of records that could not be used. They are read again each time: the disk may have
    /// failed only once.
    failed: HashSet<Box<str>>,
    /// The keys of records that had expired. They are read again if the clock goes back: it may have
    /// been wrong.
    expired: HashSet<Box<str>>,
    /// When records were read last, in seconds after the Unix epoch.
    read_at: u64,
    /// Certificates of authorities, which live as long as the process.
    shared: HashSet<&'static [u8]>,
    /// The addresses of directories.
    authorities: HashSet<Arc<str>>,
    /// The names that are too long to be keys, by key.
    long: HashMap<Box<str>, Box<str>>,
}

/// A certificate that serves a name.
#[derive(Debug)]
pub struct HeldCertificate {
    /// The certificate and its key, as TLS uses them.
    pub key: Arc<CertifiedKey>,
    /// The identifier of its record.
    pub id: Box<str>,
    /// When it is valid.
    pub life: Life,
    /// When it was issued, in seconds after the Unix epoch.
    pub issued_at: u64,
    /// The address of the directory of its authority.
    pub authority: Arc<str>,
}

/// The result of reading again.
#[derive(Debug, Default)]
pub struct Refreshed {
    /// The names whose certificate has changed.
    pub names: Vec<Box<str>>,
    /// Records that cannot be used: the key, and why. Each is here only the first time.
    pub failures: Vec<(Box<str>, String)>,
}

// === impl HeldCertificate ===

impl HeldCertificate {
    /// Reads the certificate again: its names, its serial number.
    #[must_use]
    pub fn leaf(&self) -> Option<Leaf> {
        Leaf::parse(self.key.cert.first()?).ok()
    }

    /// Returns whether it serves a name better than another one.
    fn is_newer_than(&self, other: &Self) -> bool {
        let order = |held: &Self| (held.issued_at, held.life.not_after);
        (order(self), &self.id) > (order(other), &other.id)
    }
}

// === impl Ordered ===

impl Ordered {
    /// Makes it without certificates; [`Ordered::refresh`] reads them.
    #[must_use]
    pub fn new(vault: Vault, clock: Clock) -> Self {
        let parts = std::iter::repeat_with(|| ArcSwap::from_pointee(Part::default()));
        Self {
            vault,
            clock,
            hasher: RandomState::default(),
            parts: parts.take(PARTS).collect(),
            wildcards: AtomicUsize::new(0),
            writing: Mutex::default(),
        }
    }

    /// Finds the certificate for a name in normal form: exact, then wildcard.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<HeldCertificate>> {
        self.exactly(name).or_else(|| {
            if self.wildcards.load(Ordering::Relaxed) == 0 {
                return None;
            }
            let (_label, rest) = name.split_once('.')?;
            self.exactly(&format!("*.{rest}"))
        })
    }

    /// Finds the certificate that was ordered for a name.
    #[must_use]
    pub fn exactly(&self, name: &str) -> Option<Arc<HeldCertificate>> {
        self.part(name).load().get(name).cloned()
    }

    /// Returns how many names have a certificate.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.load().len()).sum()
    }

    /// Returns whether no name has a certificate.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all names with a certificate.
    #[must_use]
    pub fn names(&self) -> Vec<Box<str>> {
        let names = self.parts.iter().flat_map(|part| {
            let part = part.load();
            part.keys().cloned().collect::<Vec<_>>()
        });
        names.collect()
    }

    /// Reads the records that were added since the last call, and tries the records again that could
    /// not be read. Removes the deleted ones.
    ///
    /// # Errors
    ///
    /// When the records cannot be listed. All certificates stay in use.
    pub fn refresh(&self) -> Result<Refreshed, FileError> {
        let mut writing = self.lock();
        let changes = self
            .vault
            .documents
            .changes(Kind::Certificate, &mut writing.known)?;
        let mut refreshed = Refreshed::default();
        let now = self.clock.unix_seconds();
        let mut wanted: Vec<Box<str>> = writing.failed.iter().cloned().collect();
        if now < writing.read_at {
            wanted.extend(writing.expired.drain());
        }
        writing.read_at = now;
        if changes.is_empty() && wanted.is_empty() {
            return Ok(refreshed);
        }
        for change in changes {
            match change {
                Change::Added(key) => wanted.push(key),
                Change::Removed(key) => {
                    writing.failed.remove(&key);
                    writing.expired.remove(&key);
                    if let Some(name) = self.holder_of(&writing.long, &key) {
                        self.apply(vec![(name.clone(), None)]);
                        // An older certificate of the name may still exist.
                        let left = self
                            .vault
                            .documents
                            .keys_of(Kind::Certificate, &key_of(&name));
                        wanted.extend(left.unwrap_or_default());
                        refreshed.names.push(name);
                    }
                }
            }
        }
        let read: Vec<_> = wanted
            .par_iter()
            .map(|key| (key, self.read(key, now)))
            .collect();
        let mut added = Vec::with_capacity(read.len());
        for (key, outcome) in read {
            match outcome {
                Ok(Some((record, certified))) => {
                    writing.failed.remove(key);
                    let held = writing.hold(&record, certified);
                    added.push((record.name, held));
                }
                // It has expired, or was removed meanwhile.
                Ok(None) => {
                    writing.failed.remove(key);
                    writing.expired.insert(key.clone());
                }
                Err(why) => {
                    if writing.failed.insert(key.clone()) {
                        refreshed.failures.push((key.clone(), why));
                    }
                }
            }
        }
        let names = added.iter().map(|(name, _)| name.clone());
        refreshed.names.extend(names);
        self.apply(
            added
                .into_iter()
                .map(|(name, held)| (name, Some(held)))
                .collect(),
        );
        Ok(refreshed)
    }

    /// Serves a certificate whose record is not written yet.
    pub(super) fn serve(&self, record: &Record) -> Result<(), UnusableRecord> {
        let certified = record.certified(&self.vault.seal)?;
        let held = self.lock().hold(record, certified);
        self.apply(vec![(record.name.clone(), Some(held))]);
        Ok(())
    }

    fn read(&self, key: &str, now: u64) -> Result<Option<(Record, CertifiedKey)>, String> {
        let bytes = self.vault.documents.get(Kind::Certificate, key);
        let Some(bytes) = bytes.map_err(|error| chain(&error))? else {
            return Ok(None);
        };
        let record = Record::parse(&bytes).map_err(|error| chain(&error))?;
        if record.leaf.not_after <= now {
            return Ok(None);
        }
        let certified = record.certified(&self.vault.seal);
        Ok(Some((record, certified.map_err(|error| chain(&error))?)))
    }

    /// Returns the name that the record under a key serves. The key of a long name is another text.
    fn holder_of(&self, long: &HashMap<Box<str>, Box<str>>, key: &str) -> Option<Box<str>> {
        let (key, id) = key.split_once('~')?;
        let name = long.get(key).map_or(key, |name| &**name);
        let held = self.exactly(name)?;
        (*held.id == *id).then(|| name.into())
    }

    /// Changes certificates; each map is copied and swapped once. An older certificate never
    /// replaces a newer one.
    fn apply(&self, changes: Vec<(Box<str>, Option<Arc<HeldCertificate>>)>) {
        let mut by_part: Vec<_> = changes
            .into_iter()
            .map(|change| (self.at(&change.0), change))
            .collect();
        by_part.sort_by_key(|(at, _)| *at);
        for group in by_part.chunk_by(|(a, _), (b, _)| a == b) {
            let part = &self.parts[group[0].0];
            let mut changed = Part::clone(&part.load());
            for (_, (name, held)) in group {
                let before = match held {
                    None => changed.remove(name),
                    Some(held) => match changed.get(name) {
                        Some(known) if !held.is_newer_than(known) => continue,
                        _ => changed.insert(name.clone(), Arc::clone(held)),
                    },
                };
                if name.starts_with("*.") {
                    match (before.is_some(), held.is_some()) {
                        (false, true) => self.wildcards.fetch_add(1, Ordering::Relaxed),
                        (true, false) => self.wildcards.fetch_sub(1, Ordering::Relaxed),
                        _ => 0,
                    };
                }
            }
            part.store(Arc::new(changed));
        }
    }

    fn part(&self, name: &str) -> &ArcSwap<Part> {
        &self.parts[self.at(name)]
    }

    fn at(&self, name: &str) -> usize {
        let hash = self.hasher.hash_one(name) >> 32;
        usize::try_from(hash).unwrap_or(0) & (PARTS - 1)
    }

    fn lock(&self) -> MutexGuard<'_, Writing> {
        // Each step leaves all of it valid.
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Writing ===

impl Writing {
    fn hold(&mut self, record: &Record, certified: CertifiedKey) -> Arc<HeldCertificate> {
        let CertifiedKey { cert, key, ocsp } = certified;
        let mut chain = cert.into_iter();
        let mut shared: Vec<CertificateDer<'static>> = chain.next().into_iter().collect();
        shared.extend(chain.map(|certificate| self.share(certificate)));
        // The vectors of bytes are as long as their content.
        shared.shrink_to_fit();
        let authority = match self.authorities.get(&*record.authority) {
            Some(known) => Arc::clone(known),
            None => {
                let new: Arc<str> = Arc::from(&*record.authority);
                self.authorities.insert(Arc::clone(&new));
                new
            }
        };
        let name_key = key_of(&record.name);
        if *name_key != *record.name {
            self.long.insert(name_key.into(), record.name.clone());
        }
        let mut certified = CertifiedKey::new(shared, key);
        certified.ocsp = ocsp;
        Arc::new(HeldCertificate {
            key: Arc::new(certified),
            id: record.id.clone(),
            life: Life {
                not_before: record.leaf.not_before,
                not_after: record.leaf.not_after,
                seed: seed_of(&record.leaf.serial),
            },
            issued_at: record.issued_at,
            authority,
        })
    }

    /// Returns the one copy of a certificate of an authority.
    fn share(&mut self, certificate: CertificateDer<'static>) -> CertificateDer<'static> {
        if let Some(known) = self.shared.get(certificate.as_ref()) {
            return CertificateDer::from_slice(known);
        }
        if self.shared.len() >= SHARED_MAX {
            return certificate;
        }
        let kept: &'static [u8] = Box::leak(certificate.as_ref().into());
        self.shared.insert(kept);
        CertificateDer::from_slice(kept)
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    /// Writes a record of a name, and returns its key and its identifier.
    fn put(vault: &Vault, name: &str, issued_at: u64) -> (String, Box<str>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let chain = params.self_signed(&key).unwrap().pem();
        let der = key.serialize_der();
        let record = Record::new(
            name,
            "https://ca.test/dir",
            issued_at,
            &chain,
            &der,
            &vault.seal,
        );
        let record = record.unwrap();
        let documents = &vault.documents;
        documents
            .put(Kind::Certificate, &record.key(), &record.to_bytes())
            .unwrap();
        (record.key(), record.id)
    }

    #[test]
    fn a_removed_record_leaves_the_newest_one_that_is_left_also_of_a_long_name() {
        let root = tempfile::tempdir().unwrap();
        let key_file = root.path().join("key");
        let vault = Vault::open(&root.path().join("certificates"), &key_file, Clock::System);
        let vault = vault.unwrap();
        let ordered = Ordered::new(vault.clone(), Clock::System);
        let now = Clock::System.unix_seconds();
        let label = "a".repeat(60);
        let long = format!("{label}.{label}.{label}.acme.test");
        assert_ne!(key_of(&long), long);
        for name in ["docs.acme.test", &*long] {
            let records: Vec<_> = (0..3).map(|n| put(&vault, name, now + n)).collect();
            ordered.refresh().unwrap();
            let held = || ordered.exactly(name).map(|held| held.id.clone());
            let remove = |nth: usize| {
                let key: &str = &records[nth].0;
                vault.documents.remove(Kind::Certificate, key).unwrap();
                ordered.refresh().unwrap().names
            };
            assert_eq!(held(), Some(records[2].1.clone()));
            // An old record is no change of the name.
            assert_eq!(remove(0), Vec::<Box<str>>::new());
            assert_eq!(held(), Some(records[2].1.clone()));
            assert!(remove(2).contains(&name.into()));
            assert_eq!(held(), Some(records[1].1.clone()));
            assert_eq!(remove(1), [name.into()]);
            assert_eq!(held(), None);
        }
    }

    #[test]
    fn a_certificate_that_a_wrong_clock_took_for_expired_is_used_when_the_clock_is_right() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("certificates");
        let vault = Vault::open(&directory, &root.path().join("key"), Clock::System).unwrap();
        let now = Clock::System.unix_seconds();
        // The certificates of the tests live for thousands of years.
        let mut ordered = Ordered::new(vault.clone(), Clock::fixed_at(now + (1 << 40)));
        let (_, id) = put(&vault, "docs.acme.test", now);
        assert_eq!(ordered.refresh().unwrap().names, Vec::<Box<str>>::new());
        assert!(ordered.is_empty());
        ordered.clock = Clock::fixed_at(now);
        assert_eq!(ordered.refresh().unwrap().names, ["docs.acme.test".into()]);
        assert_eq!(ordered.find("docs.acme.test").unwrap().id, id);
        assert_eq!(ordered.refresh().unwrap().names, Vec::<Box<str>>::new());
    }

    #[test]
    fn a_record_that_could_not_be_read_once_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("certificates");
        let vault = Vault::open(&directory, &root.path().join("key"), Clock::System).unwrap();
        let ordered = Ordered::new(vault.clone(), Clock::System);
        let (key, id) = put(&vault, "docs.acme.test", Clock::System.unix_seconds());
        // The disk fails: a directory cannot be read as a file.
        let mut parts = std::fs::read_dir(directory.join("certificates")).unwrap();
        let file = parts.find_map(|part| {
            let file = part.unwrap().path().join(&key);
            file.exists().then_some(file)
        });
        let (file, aside) = (file.unwrap(), root.path().join("aside"));
        std::fs::rename(&file, &aside).unwrap();
        std::fs::create_dir(&file).unwrap();
        let failures = || ordered.refresh().unwrap().failures.len();
        // It is reported once.
        assert_eq!([failures(), failures()], [1, 0]);
        assert!(ordered.is_empty());
        std::fs::remove_dir(&file).unwrap();
        std::fs::rename(&aside, &file).unwrap();
        let names = ordered.refresh().unwrap().names;
        assert_eq!(names, ["docs.acme.test".into()]);
        assert_eq!(ordered.exactly("docs.acme.test").unwrap().id, id);
        assert!(ordered.lock().failed.is_empty());
    }
}

//! Answers to the challenges of authorities.
//!
//! The leader writes an answer before it tells the authority that it is ready, and removes it
//! afterwards. Answers are documents, so every process that shares them answers: the authority may
//! connect to any of them, and from several places at once.
//!
//! An answer never changes: another challenge for the same name has another key. A process that
//! copies the documents sees new and removed keys. It does not see that the bytes of a key were
//! replaced.
//!
//! Sources: RFC 8555 §8.3 (HTTP-01), RFC 8737 (TLS-ALPN-01).

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};

use super::failure::{Cause, Failure};
use crate::error::chain;
use crate::store::documents::{Documents, Kind, key_of};

/// The path below which an authority asks (RFC 8555 §8.3).
pub const HTTP_PATH: &str = "/.well-known/acme-challenge/";
/// The protocol with which an authority asks in a handshake (RFC 8737 §6.2).
pub const TLS_PROTOCOL: &[u8] = b"acme-tls/1";
/// How many digits of its digest are in the key of an answer.
const DIGEST_DIGITS: usize = 32;
/// The lengths that a token may have. RFC 8555 §8.3: at least 128 bits in base 64.
const TOKEN_LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;

/// The answers that authorities may ask for now.
#[derive(Debug)]
pub struct Challenges {
    documents: Arc<dyn Documents>,
    /// The answers of this process, which are documents too.
    own: Mutex<HashMap<String, Answer>>,
    elsewhere: Mutex<Vec<Arc<dyn Elsewhere>>>,
}

/// Other machines that answer challenges.
pub trait Elsewhere: std::fmt::Debug + Send + Sync {
    /// Waits for a bounded time until they answer every challenge that is installed now. Returns
    /// the names of the machines that do not answer yet.
    fn answers(&self) -> Pin<Box<dyn Future<Output = Vec<String>> + Send + '_>>;
}

/// An answer that is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Installed {
    challenges: Arc<Challenges>,
    key: String,
}

#[derive(Clone, Debug)]
enum Answer {
    /// The host that it is for, and the key authorization.
    Http(Box<str>, Box<str>),
    /// The host that it is for, and its certificate.
    Tls(Box<str>, Arc<CertifiedKey>),
}

/// The content of the document.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChallengeDocument {
    version: u64,
    host: String,
    /// HTTP-01: the key authorization. TLS-ALPN-01: the digest of it, in hexadecimal digits.
    answer: String,
}

const VERSION: u64 = 1;

// === impl Challenges ===

impl Challenges {
    /// Makes it; there are no answers of this process yet.
    #[must_use]
    pub fn new(documents: Arc<dyn Documents>) -> Self {
        Self {
            documents,
            own: Mutex::default(),
            elsewhere: Mutex::default(),
        }
    }

    /// Lets other machines answer too.
    pub fn share(&self, elsewhere: Arc<dyn Elsewhere>) {
        let mut all = self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.push(elsewhere);
    }

    /// Waits for a bounded time until other machines answer the installed challenges. A machine
    /// that does not answer in time is logged: the authority may ask another machine.
    pub(super) async fn everywhere(&self, name: &str) {
        let all = self
            .elsewhere
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let missing = join_all(all.iter().map(|elsewhere| elsewhere.answers())).await;
        for missing in missing {
            if !missing.is_empty() {
                let missing = missing.join(", ");
                log::warn!(target: "acme", name; "these machines do not answer the challenge of {name} yet: {missing}");
            }
        }
    }

    /// Returns the answer to a request for a path of a host (in normal form). It may read a file.
    #[must_use]
    pub fn http(&self, host: &str, path: &str) -> Option<Box<str>> {
        let token = path.strip_prefix(HTTP_PATH)?;
        let is_token = TOKEN_LENGTHS.contains(&token.len())
            && token
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        if !is_token {
            return None;
        }
        let key = http_key(token);
        if let Some(Answer::Http(of, answer)) = self.lock().get(&key) {
            return (**of == *host).then(|| answer.clone());
        }
        let written = self.read(&key)?;
        (written.host == host).then(|| written.answer.into())
    }

    /// Returns the certificate for the handshake of an authority. It may read a file.
    #[must_use]
    pub fn tls(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        let own = self.lock();
        let of_host = own.values().find_map(|answer| match answer {
            Answer::Tls(of, certificate) if **of == *host => Some(Arc::clone(certificate)),
            _ => None,
        });
        drop(own);
        if of_host.is_some() {
            return of_host;
        }
        let keys = self.documents.keys_of(Kind::Challenge, &tls_name(host));
        let mut written = keys.ok()?.into_iter().filter_map(|key| self.read(&key));
        let written = written.find(|written| written.host == host)?;
        let mut digest = [0; 32];
        hex::decode_to_slice(&written.answer, &mut digest).ok()?;
        Some(Arc::new(tls_certificate(host, &digest)?))
    }

    fn read(&self, key: &str) -> Option<ChallengeDocument> {
        let bytes = self.documents.get(Kind::Challenge, key).ok().flatten()?;
        let written: ChallengeDocument = serde_json::from_slice(&bytes).ok()?;
        (written.version == VERSION).then_some(written)
    }

    /// Installs the answer of HTTP-01.
    pub(super) fn put_http(
        self: &Arc<Self>,
        host: &str,
        token: &str,
        authorization: &str,
    ) -> Result<Installed, Failure> {
        let answer = Answer::Http(host.into(), authorization.into());
        self.put(http_key(token), answer, host, authorization)
    }

    /// Installs the answer of TLS-ALPN-01.
    pub(super) fn put_tls(
        self: &Arc<Self>,
        host: &str,
        digest: &[u8],
    ) -> Result<Installed, Failure> {
        let made = <&[u8; 32]>::try_from(digest).ok();
        let made = made.and_then(|digest| tls_certificate(host, digest));
        let made = made.ok_or_else(|| {
            Failure::new(Cause::Ourselves, "make the certificate of the challenge")
        })?;
        // An earlier answer that could not be removed would be found too.
        let left = self.documents.keys_of(Kind::Challenge, &tls_name(host));
        for key in left.unwrap_or_default() {
            let _left = self.documents.remove(Kind::Challenge, &key);
        }
        let answer = Answer::Tls(host.into(), Arc::new(made));
        let text = hex::encode(digest);
        self.put(tls_key(host, &text), answer, host, &text)
    }

    fn put(
        self: &Arc<Self>,
        key: String,
        answer: Answer,
        host: &str,
        text: &str,
    ) -> Result<Installed, Failure> {
        let written = ChallengeDocument {
            version: VERSION,
            host: host.to_owned(),
            answer: text.to_owned(),
        };
        let bytes = serde_json::to_vec(&written).expect("texts are JSON");
        self.documents
            .put(Kind::Challenge, &key, &bytes)
            .map_err(|error| Failure::new(Cause::Ourselves, chain(&error)))?;
        self.lock().insert(key.clone(), answer);
        Ok(Installed {
            challenges: Arc::clone(self),
            key,
        })
    }

    /// Removes the answers that an earlier leader has left.
    pub(super) fn sweep(&self) {
        for key in self.documents.keys(Kind::Challenge).unwrap_or_default() {
            // It is harmless, and the next leader tries again.
            let _left = self.documents.remove(Kind::Challenge, &key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Answer>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        self.challenges.lock().remove(&self.key);
        // The next leader removes the remaining answers.
        let _left = self.challenges.documents.remove(Kind::Challenge, &self.key);
    }
}

fn http_key(token: &str) -> String {
    format!("http~{token}")
}

/// Returns the name under which all keys of a host are.
fn tls_name(host: &str) -> String {
    format!("tls-{}", key_of(host))
}

fn tls_key(host: &str, digest: &str) -> String {
    let begin = digest.get(..DIGEST_DIGITS).unwrap_or(digest);
    format!("{}~{begin}", tls_name(host))
}

/// Makes the certificate of RFC 8737 §3.
fn tls_certificate(host: &str, digest: &[u8; 32]) -> Option<CertifiedKey> {
    let mut params = CertificateParams::new(vec![host.to_owned()]).ok()?;
    params.distinguished_name = DistinguishedName::new();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate().ok()?;
    let certificate = params.self_signed(&key).ok()?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // `from_der` would read the certificate, and reject its critical extension.
    let key = aws_lc_rs::default_provider()
        .key_provider
        .load_private_key(key)
        .ok()?;
    Some(CertifiedKey::new(vec![certificate.der().clone()], key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::documents::{Change, KnownKeys, LocalDocuments};

    const TOKEN: &str = "LoqXcYV8q5ONbJQxbmR7SCTNo3tiAXDfowyjxAjEuX0";

    #[test]
    fn every_process_answers_until_the_order_is_over() {
        let root = tempfile::tempdir().unwrap();
        let open = || {
            let documents = LocalDocuments::open(root.path(), Clock::System).unwrap();
            Arc::new(Challenges::new(Arc::new(documents)))
        };
        let (leader, other) = (open(), open());
        let path = format!("{HTTP_PATH}{TOKEN}");
        assert_eq!(leader.http("docs.acme.com", &path), None);
        let http = leader.put_http("docs.acme.com", TOKEN, "answer").unwrap();
        let tls = leader.put_tls("docs.acme.com", &[7; 32]).unwrap();
        for process in [&leader, &other] {
            let answer = process.http("docs.acme.com", &path);
            assert_eq!(answer.as_deref(), Some("answer"));
            assert_eq!(process.http("docs.evil.com", &path), None);
            assert!(process.tls("docs.acme.com").is_some());
            assert!(process.tls("docs.evil.com").is_none());
        }
        drop((http, tls));
        for process in [&leader, &other] {
            assert_eq!(process.http("docs.acme.com", &path), None);
            assert!(process.tls("docs.acme.com").is_none());
        }
    }

    #[test]
    fn another_challenge_for_a_name_has_another_key() {
        let root = tempfile::tempdir().unwrap();
        let documents: Arc<dyn Documents> =
            Arc::new(LocalDocuments::open(root.path(), Clock::System).unwrap());
        let challenges = Arc::new(Challenges::new(Arc::clone(&documents)));
        let other = Challenges::new(Arc::clone(&documents));
        let mut known = KnownKeys::default();
        let mut changes = || documents.changes(Kind::Challenge, &mut known).unwrap();
        let first = challenges.put_tls("docs.acme.com", &[7; 32]).unwrap();
        assert_eq!(changes().len(), 1);
        drop(first);
        let second = challenges.put_tls("docs.acme.com", &[8; 32]).unwrap();
        assert!(matches!(
            &*changes(),
            [Change::Removed(_), Change::Added(_)]
        ));
        let seen = other.tls("docs.acme.com").unwrap();
        assert!(seen.cert[0].windows(32).any(|part| part == [8; 32]));
        // An answer that an ended process has left is no answer any more.
        std::mem::forget(second);
        let _third = challenges.put_tls("docs.acme.com", &[9; 32]).unwrap();
        assert!(matches!(
            &*changes(),
            [Change::Removed(_), Change::Added(_)]
        ));
    }

    #[test]
    fn a_path_leads_to_no_other_file() {
        let root = tempfile::tempdir().unwrap();
        let documents = LocalDocuments::open(root.path(), Clock::System).unwrap();
        let challenges = Challenges::new(Arc::new(documents));
        for token in [
            "",
            "short",
            "../../../accounts/aaaaaaaaaaaaaaaaaaaa",
            "LoqXcYV8q5ONbJQxbmR7SCT%2e",
            "LoqXcYV8q5ONbJQxbmR7SCT~x",
            &"a".repeat(129),
        ] {
            let path = format!("{HTTP_PATH}{token}");
            assert_eq!(challenges.http("docs.acme.com", &path), None, "{token}");
        }
    }
}

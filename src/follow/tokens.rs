//! The tokens of edges: one JSON file for each, named by the edge.
//!
//! A token is `{service}_edge_{name}_` and 64 hexadecimal digits, which are 32 random bytes. Only
//! its SHA-256 is stored, as for admin keys. The file is read at each request, so a removed edge is
//! refused at once. With a store that several machines share, the tokens are documents of its
//! database, and the files are a copy of them, which is some hundred milliseconds old at most.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use super::files;
use super::sealing::SealingKey;
use crate::digest::Digest;
use crate::store::FileError;
use crate::store::shared::SharedDocuments;

/// The set of the documents of tokens in a database.
pub const EDGE_TOKENS: &str = "edge-tokens";
/// The version of the files.
const VERSION: u32 = 1;
/// Random bytes of a token.
const RANDOM_BYTES: usize = 32;
/// The longest name of an edge.
const NAME_LENGTH_MAX: usize = 63;

/// The name of an edge: lower-case letters, digits and hyphens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EdgeName(Box<str>);

/// Why a text is not the name of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of an edge is 1 to {NAME_LENGTH_MAX} lower-case letters, digits and hyphens")]
pub struct InvalidEdgeName;

/// The tokens of a source.
#[derive(Clone, Debug)]
pub struct Tokens {
    directory: PathBuf,
    /// What every token begins with.
    prefix: String,
    /// The database of the tokens, if the files are a copy of it.
    shared: Option<SharedDocuments>,
}

/// An edge that has a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEdge {
    /// Its name.
    pub name: EdgeName,
    /// When it got its token, in seconds after the Unix epoch.
    pub created_at: u64,
    /// Its public key; `None` if it gets no private keys.
    pub key: Option<SealingKey>,
    /// Its ring: changes reach ring 0 first.
    pub ring: u8,
}

/// Why tokens could not be changed or listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The edge has a token already.
    #[error("the edge {0} has a token; remove the edge first to give it another one")]
    Exists(EdgeName),
    /// There is no such edge.
    #[error("there is no edge {0}")]
    Unknown(EdgeName),
    /// The database of the tokens cannot be used.
    #[error("use the tokens of edges of the store")]
    Database(#[from] FileError),
    /// The file or the document of a token is damaged, or a newer program wrote it.
    #[error("the token of the edge {0} cannot be read: it is damaged, or a newer program wrote it")]
    Unreadable(EdgeName),
    /// An operation of the file system failed.
    #[error("use the tokens of edges in {}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    digest: Digest,
    created_at: u64,
    key: Option<String>,
    ring: u8,
}

// === impl EdgeName ===

impl EdgeName {
    /// Reads a name.
    ///
    /// # Errors
    ///
    /// [`InvalidEdgeName`] for any other text, so that no name is a path to another file.
    pub fn parse(text: &str) -> Result<Self, InvalidEdgeName> {
        let is_valid = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let length = 1..=NAME_LENGTH_MAX;
        match length.contains(&text.len()) && text.bytes().all(is_valid) {
            true => Ok(Self(text.into())),
            false => Err(InvalidEdgeName),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EdgeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

// === impl Tokens ===

impl Tokens {
    /// Names the directory of the tokens. It need not exist.
    #[must_use]
    pub fn new(directory: PathBuf, service_name: &str) -> Self {
        Self {
            directory,
            prefix: format!("{service_name}_edge_"),
            shared: None,
        }
    }

    /// Makes the directory a copy of the tokens in a database, where they are changed.
    #[must_use]
    pub fn in_database(mut self, documents: SharedDocuments) -> Self {
        self.shared = Some(documents);
        self
    }

    /// Makes the token of an edge, and returns it.
    ///
    /// # Errors
    ///
    /// [`TokenError::Exists`] if the edge has one.
    pub fn add(
        &self,
        name: &EdgeName,
        key: Option<SealingKey>,
        ring: u8,
        now: u64,
    ) -> Result<String, TokenError> {
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)
            .map_err(|error| failed(&self.file(name), io::Error::other(error)))?;
        let token = format!("{}{name}_{}", self.prefix, hex::encode(random));
        let stored = Stored {
            version: VERSION,
            digest: Digest::of(token.as_bytes()),
            created_at: now,
            key: key.map(|key| key.to_string()),
            ring,
        };
        self.put_new(name, &stored).map(|()| token)
    }

    /// Sets the public key or the ring of an edge. It counts from the next request on.
    ///
    /// # Errors
    ///
    /// [`TokenError::Unknown`] if there is no such edge.
    pub fn set(
        &self,
        name: &EdgeName,
        key: Option<SealingKey>,
        ring: Option<u8>,
    ) -> Result<(), TokenError> {
        if let Some(documents) = &self.shared {
            let mut is_readable = false;
            let there = documents.change_in(EDGE_TOKENS, name.as_str(), |there| {
                let stored = there.and_then(Stored::parse);
                is_readable = stored.is_some();
                let mut stored = stored?;
                stored.set(key, ring);
                Some(stored.to_bytes())
            })?;
            return match (there, is_readable) {
                (None, _) => Err(TokenError::Unknown(name.clone())),
                (Some(_), false) => Err(TokenError::Unreadable(name.clone())),
                (Some(_), true) => Ok(()),
            };
        }
        let stored = self.stored(name);
        let mut stored = stored.ok_or_else(|| TokenError::Unknown(name.clone()))?;
        stored.set(key, ring);
        let path = self.file(name);
        let written = files::replace_durably(&path, &stored.to_bytes());
        written.map_err(|error| failed(&path, error))
    }

    /// Removes the token of an edge. Returns whether it had one.
    ///
    /// # Errors
    ///
    /// When its file cannot be removed.
    pub fn remove(&self, name: &EdgeName) -> Result<bool, TokenError> {
        if let Some(documents) = &self.shared {
            return Ok(documents.remove_in(EDGE_TOKENS, name.as_str())?);
        }
        let path = self.file(name);
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(&path, error)),
        }
        // A power cut must not bring the token back.
        let flushed = files::flush_directory(&self.directory);
        flushed.map_err(|error| failed(&self.directory, error))?;
        Ok(true)
    }

    /// Lists the edges that have a token, by name.
    ///
    /// # Errors
    ///
    /// When the directory cannot be listed.
    pub fn list(&self) -> Result<Vec<ListedEdge>, TokenError> {
        let all = self.all()?.into_iter();
        Ok(all.map(|(name, stored)| stored.listed(name)).collect())
    }

    /// Returns the stored record of each edge, by name.
    fn all(&self) -> Result<Vec<(EdgeName, Stored)>, TokenError> {
        if let Some(documents) = &self.shared {
            let all = documents.all_in(EDGE_TOKENS)?.into_iter();
            let read = |(name, bytes): (String, Vec<u8>)| {
                Some((EdgeName::parse(&name).ok()?, Stored::parse(&bytes)?))
            };
            return Ok(all.filter_map(read).collect());
        }
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(&self.directory, error)),
        };
        let mut edges = Vec::new();
        for entry in entries {
            let name = entry
                .map_err(|error| failed(&self.directory, error))?
                .file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(name) = name.and_then(|name| EdgeName::parse(name).ok()) else {
                continue;
            };
            if let Some(stored) = self.stored(&name) {
                edges.push((name, stored));
            }
        }
        edges.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(edges)
    }

    /// Returns which edge has sent the value of an `Authorization` field; `None` if no edge has
    /// this token.
    #[must_use]
    pub fn holder(&self, authorization: &[u8]) -> Option<ListedEdge> {
        let (scheme, token) = authorization.split_at_checked(7)?;
        let token = std::str::from_utf8(token.trim_ascii()).ok()?;
        let (name, _digits) = token.strip_prefix(&self.prefix)?.rsplit_once('_')?;
        let name = EdgeName::parse(name).ok()?;
        let stored = self.stored(&name)?;
        let given = Digest::of(token.as_bytes());
        let is_equal = bool::from(given.as_bytes().ct_eq(stored.digest.as_bytes()));
        let is_holder = scheme.eq_ignore_ascii_case(b"bearer ") && is_equal;
        is_holder.then(|| stored.listed(name))
    }

    /// Waits until every running gateway of the database has the last change, at most for a time.
    /// Returns the names of the gateways that do not have it. Files are read at each request.
    ///
    /// # Errors
    ///
    /// [`TokenError::Database`] when the database cannot be read.
    pub fn wait_until_read(&self, time: Duration) -> Result<Vec<String>, TokenError> {
        match &self.shared {
            None => Ok(Vec::new()),
            Some(documents) => Ok(documents.wait_until_read(false, time)?),
        }
    }

    /// Copies the tokens of edges that the other one does not have. Returns how many.
    ///
    /// # Errors
    ///
    /// When they cannot be read or written; those before are copied.
    pub fn copy_to(&self, other: &Self) -> Result<u64, TokenError> {
        let mut copied = 0;
        for (name, stored) in self.all()? {
            match other.put_new(&name, &stored) {
                Ok(()) => copied += 1,
                Err(TokenError::Exists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(copied)
    }

    /// Writes the token of an edge that has none.
    fn put_new(&self, name: &EdgeName, stored: &Stored) -> Result<(), TokenError> {
        if let Some(documents) = &self.shared {
            let mut is_there = false;
            documents.change_in(EDGE_TOKENS, name.as_str(), |there| {
                is_there = there.is_some();
                (!is_there).then(|| stored.to_bytes())
            })?;
            return match is_there {
                true => Err(TokenError::Exists(name.clone())),
                false => Ok(()),
            };
        }
        let path = self.file(name);
        let write = || -> io::Result<()> {
            fs::create_dir_all(&self.directory)?;
            files::written(&self.directory, &stored.to_bytes())?.persist_noclobber(&path)?;
            files::flush_directory(&self.directory)
        };
        write().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => TokenError::Exists(name.clone()),
            _ => failed(&path, error),
        })
    }

    /// Returns whether an edge has a token.
    pub(super) fn has(&self, name: &EdgeName) -> bool {
        self.file(name).exists()
    }

    fn stored(&self, name: &EdgeName) -> Option<Stored> {
        let bytes = fs::read(self.file(name)).ok()?;
        Stored::parse(&bytes)
    }

    fn file(&self, name: &EdgeName) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }
}

impl Stored {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let stored: Self = serde_json::from_slice(bytes).ok()?;
        (stored.version == VERSION).then_some(stored)
    }

    fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers are JSON")
    }

    fn set(&mut self, key: Option<SealingKey>, ring: Option<u8>) {
        if let Some(key) = key {
            self.key = Some(key.to_string());
        }
        self.ring = ring.unwrap_or(self.ring);
    }

    fn listed(&self, name: EdgeName) -> ListedEdge {
        let key = self.key.as_deref();
        ListedEdge {
            name,
            created_at: self.created_at,
            key: key.and_then(|key| key.parse().ok()),
            ring: self.ring,
        }
    }
}

fn failed(path: &Path, source: io::Error) -> TokenError {
    TokenError::File {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_its_edge_until_the_edge_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(directory.path().join("edges"), "waypost");
        assert_eq!(tokens.list().unwrap(), []);
        let name = EdgeName::parse("paris-1").unwrap();
        let token = tokens.add(&name, None, 0, 7).unwrap();
        let field = format!("Bearer {token}");
        assert_eq!(tokens.holder(field.as_bytes()).unwrap().name, name);
        assert!(matches!(
            tokens.add(&name, None, 0, 8),
            Err(TokenError::Exists(_))
        ));
        let key: SealingKey = format!("x25519:{}=", "A".repeat(43)).parse().unwrap();
        tokens.set(&name, Some(key), Some(2)).unwrap();
        tokens.set(&name, None, None).unwrap();
        let holder = tokens.holder(field.as_bytes()).unwrap();
        assert_eq!((holder.key, holder.ring), (Some(key), 2));
        let other = EdgeName::parse("tokyo").unwrap();
        let unknown = tokens.set(&other, Some(key), None);
        assert!(matches!(unknown, Err(TokenError::Unknown(_))));
        assert_eq!(tokens.list().unwrap().len(), 1);
        let stored = fs::read_to_string(tokens.file(&name)).unwrap();
        assert!(!stored.contains(&token[token.len() - 64..]), "{stored}");
        let mut wrong = field.clone();
        wrong.replace_range(
            field.len() - 1..,
            if token.ends_with('0') { "1" } else { "0" },
        );
        for wrong in [&wrong, "", "Bearer ", &token, "Bearer waypost_edge_../x_00"] {
            assert_eq!(tokens.holder(wrong.as_bytes()), None, "{wrong}");
        }
        assert!(tokens.remove(&name).unwrap());
        assert!(!tokens.remove(&name).unwrap());
        assert_eq!(tokens.holder(field.as_bytes()), None);
    }

    #[test]
    fn a_name_is_never_a_path() {
        let long = "a".repeat(64);
        for wrong in ["", "..", "a/b", "A", "a_b", "a.b", &long] {
            assert_eq!(EdgeName::parse(wrong), Err(InvalidEdgeName), "{wrong}");
        }
    }
}

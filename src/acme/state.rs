//! Small documents beside certificates: failures of a name, requests of the operator, unfinished
//! orders, and the orders and certificates that count for the limits of an authority.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::store::documents::Sealed;

/// The version of these documents. A document of another version is ignored: each can be lost.
const VERSION: u64 = 1;

/// The failed orders of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderState {
    version: u64,
    /// The name.
    pub name: String,
    /// How many orders in a row have failed.
    pub failures: u32,
    /// When the last one failed, in seconds after the Unix epoch.
    pub failed_at: u64,
    /// When the next one is tried, in seconds after the Unix epoch.
    pub retry_at: u64,
    /// Why the last one failed.
    pub why: String,
}

/// A request of the operator to replace the certificate of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    version: u64,
    /// The name.
    pub name: String,
}

/// An order that has begun. Its key is not lost if the process ends before the certificate comes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    version: u64,
    /// The name.
    pub(super) name: String,
    /// The directory of the authority.
    pub(super) authority: String,
    /// The address of the order.
    pub(super) order: String,
    /// The private key.
    pub(super) key: Sealed,
}

/// When the orders of an authority began that count for its budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Taken {
    version: u64,
    pub(super) at: Vec<u64>,
}

/// Certificates that count for the limits of their domains and names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issues {
    version: u64,
    pub(super) list: Vec<Issue>,
}

/// A certificate that counts for the limits of its domain and its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issue {
    pub(super) name: Box<str>,
    /// When it was issued, or when its order began.
    pub(super) at: u64,
    /// Whether it was issued; its order may fail.
    pub(super) is_issued: bool,
}

/// A document with a version.
pub(super) trait Versioned: Serialize + DeserializeOwned {
    fn version(&self) -> u64;

    /// Reads a document; `None` if it is damaged or of another version.
    fn read(bytes: &[u8]) -> Option<Self> {
        let read: Self = serde_json::from_slice(bytes).ok()?;
        (read.version() == VERSION).then_some(read)
    }

    fn write(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("numbers and texts are JSON")
    }
}

macro_rules! versioned {
    ($($kind:ty),*) => {
        $(impl Versioned for $kind {
            fn version(&self) -> u64 {
                self.version
            }
        })*
    };
}

versioned!(OrderState, Request, Pending, Taken, Issues);

// === impl OrderState ===

impl OrderState {
    pub(super) fn new(name: &str, failures: u32, failed_at: u64, retry_at: u64, why: &str) -> Self {
        Self {
            version: VERSION,
            name: name.to_owned(),
            failures,
            failed_at,
            retry_at,
            why: why.to_owned(),
        }
    }

    /// Reads it; `None` if it is damaged or of another version.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes)
    }
}

// === impl Request ===

impl Request {
    /// Makes a request for a name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            version: VERSION,
            name: name.to_owned(),
        }
    }

    /// Returns its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.write()
    }
}

// === impl Pending ===

impl Pending {
    pub(super) fn new(name: &str, authority: &str, order: &str, key: Sealed) -> Self {
        Self {
            version: VERSION,
            name: name.to_owned(),
            authority: authority.to_owned(),
            order: order.to_owned(),
            key,
        }
    }

    /// Names the document that an encrypted key belongs to.
    pub(super) fn context(name: &str) -> String {
        format!("pending key of {name}")
    }
}

// === impl Taken ===

impl Taken {
    pub(super) fn new(at: Vec<u64>) -> Self {
        Self {
            version: VERSION,
            at,
        }
    }
}

// === impl Issues ===

impl Issues {
    pub(super) fn new(list: Vec<Issue>) -> Self {
        Self {
            version: VERSION,
            list,
        }
    }
}

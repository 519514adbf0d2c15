//! The certificate of a server: its names and dates.
//!
//! Sources: RFC 5280 §4.1.2.5 and §4.2.1.6; RFC 6125 §6.4; RFC 9773 §4.1.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::schedule::seed_of;

/// A certificate that was not replaced when so long is left of it is late, if a tenth of its life
/// is longer.
const LATE_SECONDS_MAX: u64 = 7 * 86_400;
/// The part of a life.
const LATE_PART: u64 = 10;

/// The names, dates and numbers in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The names that it covers, in lower case.
    pub names: Vec<String>,
    /// From when it is valid, in seconds after the Unix epoch.
    pub not_before: u64,
    /// Until when it is valid, in seconds after the Unix epoch.
    pub not_after: u64,
    /// Its serial number, in hexadecimal digits.
    pub serial: String,
    /// Its identifier for renewal information (RFC 9773 §4.1); `None` if it names no key of its
    /// authority.
    pub renewal_id: Option<(String, String)>,
}

/// When a certificate is valid, and a number by which the times of many certificates differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// From when it is valid, in seconds after the Unix epoch.
    pub not_before: u64,
    /// Until when it is valid, in seconds after the Unix epoch.
    pub not_after: u64,
    /// The number, made of the serial number.
    pub seed: u64,
}

/// The bytes are not an X.509 certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not an X.509 certificate")]
pub struct NotALeaf;

// === impl Leaf ===

impl Leaf {
    /// Reads a certificate in DER.
    ///
    /// # Errors
    ///
    /// [`NotALeaf`].
    pub fn parse(der: &[u8]) -> Result<Self, NotALeaf> {
        let (_rest, certificate) = X509Certificate::from_der(der).map_err(|_malformed| NotALeaf)?;
        let time = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
        let validity = certificate.validity();
        // RFC 6125 §6.4.4: the names are in this extension; the common name is ignored.
        let names = match certificate.subject_alternative_name() {
            Ok(Some(names)) => names.value.general_names.clone(),
            _ => Vec::new(),
        };
        let names = names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        });
        let serial = certificate.tbs_certificate.raw_serial();
        let authority_key = certificate.iter_extensions().find_map(|extension| {
            match extension.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(key) => key.key_identifier.as_ref(),
                _ => None,
            }
        });
        let encoded = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        Ok(Self {
            names: names.collect(),
            not_before: time(validity.not_before),
            not_after: time(validity.not_after),
            serial: hex::encode(serial),
            renewal_id: authority_key.map(|key| (encoded(key.0), encoded(serial))),
        })
    }

    /// Returns its dates.
    #[must_use]
    pub fn life(&self) -> Life {
        Life {
            not_before: self.not_before,
            not_after: self.not_after,
            seed: seed_of(&self.serial),
        }
    }

    /// Returns whether it is valid at a time.
    #[must_use]
    pub fn is_valid_at(&self, now: u64) -> bool {
        (self.not_before..self.not_after).contains(&now)
    }

    /// Returns whether it covers a name in normal form.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        self.names.iter().any(|pattern| covers(pattern, name))
    }
}

// === impl Life ===

impl Life {
    /// Returns when a certificate that was not replaced is late: a tenth of its life before its
    /// end, and at most seven days.
    #[must_use]
    pub fn late_at(&self) -> u64 {
        let life = self.not_after.saturating_sub(self.not_before);
        self.not_after
            .saturating_sub((life / LATE_PART).min(LATE_SECONDS_MAX))
    }
}

/// RFC 6125 §6.4.3: a wildcard replaces exactly the first label.
fn covers(pattern: &str, name: &str) -> bool {
    pattern == name
        || pattern.strip_prefix("*.").is_some_and(|rest| {
            name.split_once('.')
                .is_some_and(|(_label, tail)| tail == rest)
        })
}

//! Patterns of hosts: one name, all names below a name, or all names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Host, InvalidHost};

/// `api.acme.com`, `*.acme.com` (not `acme.com` itself), or `*`.
///
/// ```
/// use waypost::site::Host;
/// use waypost::site::pattern::Pattern;
///
/// let below: Pattern = "*.acme.com".parse()?;
/// assert!(below.is_of(&Host::parse("api.acme.com").unwrap()));
/// assert!(!below.is_of(&Host::parse("acme.com").unwrap()));
/// # Ok::<(), waypost::site::pattern::InvalidPattern>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Names);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Names {
    Any,
    Below(Host),
    Only(Host),
}

/// Why a text is not a pattern of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a host like api.acme.com, *.acme.com or *")]
pub struct InvalidPattern {
    text: Box<str>,
    #[source]
    source: InvalidHost,
}

// === impl Pattern ===

impl Pattern {
    /// Returns whether the pattern names a single host.
    #[must_use]
    pub fn is_one(&self) -> bool {
        matches!(self.0, Names::Only(_))
    }

    /// Returns whether the pattern matches a host.
    #[must_use]
    pub fn is_of(&self, host: &Host) -> bool {
        match &self.0 {
            Names::Any => true,
            Names::Only(only) => only == host,
            Names::Below(above) => host
                .as_str()
                .strip_suffix(above.as_str())
                .is_some_and(|below| below.len() > 1 && below.ends_with('.')),
        }
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let host = |name| {
            Host::parse(name).map_err(|source| InvalidPattern {
                text: text.into(),
                source,
            })
        };
        Ok(Self(match text.strip_prefix("*.") {
            _ if text == "*" => Names::Any,
            Some(above) => Names::Below(host(above)?),
            None => Names::Only(host(text)?),
        }))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Names::Any => f.write_str("*"),
            Names::Below(above) => write!(f, "*.{above}"),
            Names::Only(host) => write!(f, "{host}"),
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, InvalidPattern> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}
